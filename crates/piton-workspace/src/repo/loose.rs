//! Refs read from their files, where that is as good as asking git.
//!
//! Git itself looks at the file of a ref first, and what a whole one says holds; each is replaced at
//! once, so none is ever seen half written. One without a file is packed or nowhere. Everything else
//! (symbolic or broken refs, those of one work tree alone, repositories without such files) is left to
//! git.

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Refs that each work tree has for itself.
const OF_ONE_TREE: [&str; 3] = ["refs/worktree/", "refs/bisect/", "refs/rewritten/"];

/// Longer than any file of a ref that names an object, and than most that name another ref.
const FILE_BYTES_MAX: usize = 256;

/// What the files say of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It names this object.
    Names(String),
    /// There is no such ref.
    Missing,
    /// Only git can tell.
    Unsure,
}

/// What a ref that all work trees share names, as far as files say.
pub(crate) fn read(common: &Path, name: &str) -> Found {
    // What cannot be in the name of a ref is an expression about one.
    let plain = |b: u8| b > b' ' && b != 0x7f && !b"^~:?*[\\{".contains(&b);
    let whole = name.starts_with("refs/") && name.bytes().all(plain) && !name.contains("..");
    if !whole || OF_ONE_TREE.iter().any(|prefix| name.starts_with(prefix)) {
        return Found::Unsure;
    }
    match text(&common.join(name)) {
        Ok(Some(text)) => named(text),
        // Looked at in this order: git packs a ref before its file goes.
        Err(Errno::NOENT) if !is_there(common, "reftable") => packed(common, name),
        _ => Found::Unsure,
    }
}

/// What the packed refs say of one that has no file.
fn packed(common: &Path, name: &str) -> Found {
    let text = match std::fs::read_to_string(common.join("packed-refs")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Found::Missing,
        Err(_) => return Found::Unsure,
        Ok(text) => text,
    };
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(_, packed)| *packed == name);
    found.map_or(Found::Missing, |(id, _)| named(id.to_owned()))
}

/// What a work tree has checked out, likewise.
pub(crate) fn head(git_dir: &Path, common: &Path) -> Found {
    let Ok(Some(text)) = text(&git_dir.join("HEAD")) else { return Found::Unsure };
    match text.strip_prefix("ref: ") {
        Some(name) => read(common, name),
        None => named(text),
    }
}

fn named(text: String) -> Found {
    if is_id(&text) { Found::Names(text) } else { Found::Unsure }
}

/// Whether something may be there: only a look that found nothing says that there is nothing.
fn is_there(common: &Path, name: &str) -> bool {
    !matches!(rustix::fs::lstat(common.join(name)), Err(Errno::NOENT))
}

/// Tells whether a text is the whole id of an object, as git writes it.
pub(crate) fn is_id(text: &str) -> bool {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    matches!(text.len(), 40 | 64) && text.bytes().all(hex) && text.bytes().any(|b| b != b'0')
}

/// The one line of a file that is not a link; read in one go, because this is done so often.
fn text(path: &Path) -> Result<Option<String>, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let mut bytes = [0; FILE_BYTES_MAX];
    let len = rustix::io::read(&file, &mut bytes)?;
    let text = std::str::from_utf8(&bytes[..len]).ok();
    Ok(text.and_then(|text| text.strip_suffix('\n')).map(ToOwned::to_owned))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_a_whole_id_in_a_plain_file_counts() {
        let home = tempfile::tempdir().unwrap();
        let top = home.path();
        fs::create_dir_all(top.join("refs/heads")).unwrap();
        fs::create_dir_all(top.join("refs/bisect")).unwrap();
        let id = "0123456789abcdef0123456789abcdef01234567";
        let put = |name: &str, text: &str| fs::write(top.join(name), text).unwrap();
        put("refs/heads/a", &format!("{id}\n"));
        put("refs/bisect/a", &format!("{id}\n"));
        put("refs/heads/zero", &format!("{}\n", "0".repeat(40)));
        put("refs/heads/torn", "");
        put("refs/heads/half", &id[..20]);
        put("refs/heads/name", "ref: refs/heads/a\n");
        std::os::unix::fs::symlink("a", top.join("refs/heads/link")).unwrap();
        let found = Found::Names(id.to_owned());
        assert_eq!(read(top, "refs/heads/a"), found);
        let others = ["zero", "torn", "half", "name", "link", "a^{commit}", "../heads/a"];
        for name in others.map(|name| format!("refs/heads/{name}")) {
            assert_eq!(read(top, &name), Found::Unsure, "{name}");
        }
        assert_eq!(read(top, "refs/bisect/a"), Found::Unsure);
        put("HEAD", "ref: refs/heads/a\n");
        assert_eq!(head(top, top), found);
        put("HEAD", &format!("{id}\n"));
        assert_eq!(head(top, top), found);
    }

    #[test]
    fn a_ref_is_missing_only_where_all_refs_are_files_and_it_is_not_packed() {
        let home = tempfile::tempdir().unwrap();
        let top = home.path();
        fs::create_dir_all(top.join("refs/heads")).unwrap();
        fs::write(top.join("HEAD"), "ref: refs/heads/.invalid\n").unwrap();
        let none = ["refs/heads/none", "refs/heads/none/below", "refs/piton/r/x"];
        assert!(none.iter().all(|name| read(top, name) == Found::Missing));
        assert_eq!(head(top, top), Found::Missing);
        assert_eq!(read(top, "refs/bisect/none"), Found::Unsure);
        assert_eq!(read(top, "refs/heads"), Found::Unsure);
        let id = "0123456789abcdef0123456789abcdef01234567";
        fs::write(top.join("packed-refs"), format!("# pack-refs\n{id} {}\n", none[0])).unwrap();
        assert_eq!(read(top, none[0]), Found::Names(id.to_owned()));
        assert_eq!(read(top, none[2]), Found::Missing);
        fs::write(top.join("reftable"), "").unwrap();
        assert!(none.iter().all(|name| read(top, name) == Found::Unsure));
        assert_eq!(head(top, top), Found::Unsure);
    }
}

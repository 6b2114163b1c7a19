//! Refs read from their files, where that is as good as asking git.
//!
//! Git itself looks at the file of a ref first, and what a whole one says holds; each is replaced at
//! once, so none is ever seen half written. Everything else (packed, symbolic, broken or missing
//! refs, those of one work tree alone, repositories without such files) is left to git.

use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Refs that each work tree has for itself.
const OF_ONE_TREE: [&str; 3] = ["refs/worktree/", "refs/bisect/", "refs/rewritten/"];

/// Longer than any file of a ref that names an object, and than most that name another ref.
const FILE_BYTES_MAX: usize = 256;

/// What a ref that all work trees share names, if its file says so.
pub(crate) fn read(common: &Path, name: &str) -> Option<String> {
    // What cannot be in the name of a ref is an expression about one.
    let plain = |b: u8| b > b' ' && b != 0x7f && !b"^~:?*[\\{".contains(&b);
    let whole = name.starts_with("refs/") && name.bytes().all(plain) && !name.contains("..");
    if !whole || OF_ONE_TREE.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    text(&common.join(name)).filter(|text| is_id(text))
}

/// What a work tree has checked out, likewise.
pub(crate) fn head(git_dir: &Path, common: &Path) -> Option<String> {
    let text = text(&git_dir.join("HEAD"))?;
    match text.strip_prefix("ref: ") {
        Some(name) => read(common, name),
        None => Some(text).filter(|text| is_id(text)),
    }
}

/// Tells whether a text is the whole id of an object, as git writes it.
pub(crate) fn is_id(text: &str) -> bool {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    matches!(text.len(), 40 | 64) && text.bytes().all(hex) && text.bytes().any(|b| b != b'0')
}

/// The one line of a file that is not a link; read in one go, because this is done so often.
fn text(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let mut bytes = [0; FILE_BYTES_MAX];
    let len = rustix::io::read(&file, &mut bytes).ok()?;
    let text = std::str::from_utf8(&bytes[..len]).ok()?;
    text.strip_suffix('\n').map(ToOwned::to_owned)
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
        assert_eq!(read(top, "refs/heads/a").as_deref(), Some(id));
        let others = ["zero", "torn", "half", "name", "link", "none", "a^{commit}", "../heads/a"];
        for name in others.map(|name| format!("refs/heads/{name}")) {
            assert_eq!(read(top, &name), None, "{name}");
        }
        assert_eq!(read(top, "refs/bisect/a"), None);
        put("HEAD", "ref: refs/heads/a\n");
        assert_eq!(head(top, top).as_deref(), Some(id));
        put("HEAD", &format!("{id}\n"));
        assert_eq!(head(top, top).as_deref(), Some(id));
        put("HEAD", "ref: refs/heads/.invalid\n");
        assert_eq!(head(top, top), None);
    }
}

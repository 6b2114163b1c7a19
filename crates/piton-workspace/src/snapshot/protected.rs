//! Names that git refuses in a tree, because they mean its own folder on some system.
//!
//! A tree with such a name can be written, but no index can hold it, so no commit of a lane may have
//! it. Which names those are depends on two settings of git's; the rules are git's own, from its
//! documentation of `core.protectNTFS` and `core.protectHFS`.

use super::codec::{Reader, Writer};

/// What git is told to refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProtectedNames {
    /// Names that mean `.git` on NTFS.
    pub(crate) ntfs: bool,
    /// Names that mean `.git` on HFS+.
    pub(crate) hfs: bool,
}

impl ProtectedNames {
    /// As git has it without a setting.
    pub(crate) fn usual() -> Self {
        Self { ntfs: true, hfs: cfg!(target_os = "macos") }
    }

    pub(crate) fn write(self, to: &mut Writer) {
        to.u8(u8::from(self.ntfs) | u8::from(self.hfs) << 1);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let bits = from.u8()?;
        Some(Self { ntfs: bits & 1 != 0, hfs: bits & 2 != 0 })
    }

    /// Whether git refuses a name.
    pub(crate) fn refuses(self, name: &[u8], is_link: bool) -> bool {
        // As good as no name gets past this.
        let starts = matches!(name.first(), Some(b'.' | b'g' | b'G'));
        if !starts && (!self.hfs || name.is_ascii()) {
            return false;
        }
        if name.eq_ignore_ascii_case(b".git") || (self.ntfs && is_git_on_ntfs(name)) {
            return true;
        }
        if self.hfs && seen_by_hfs(name).as_deref() == Some(".git") {
            return true;
        }
        is_link && self.is_modules(name)
    }

    /// Whether git refuses a folder because of its own name, or of one above it.
    pub(crate) fn refuses_path(self, path: &[u8]) -> bool {
        path.split(|b| *b == b'/').any(|name| self.refuses(name, false))
    }

    /// Whether a name means the list of submodules, which may be no link.
    fn is_modules(self, name: &[u8]) -> bool {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        let short =
            |start: &str| (1..=4).any(|n| trimmed(name) == format!("{start}~{n}").as_bytes());
        is(".gitmodules")
            || (self.ntfs && (trimmed(name) == b".gitmodules" || short("gitmod")))
            || (self.hfs && seen_by_hfs(name).as_deref() == Some(".gitmodules"))
    }
}

/// NTFS knows `.git` by a short name too, and takes no notice of dots and spaces at the end, nor of
/// the name of a stream behind a colon; a backslash ends a name there.
fn is_git_on_ntfs(name: &[u8]) -> bool {
    let end = name.iter().position(|b| matches!(b, b':' | b'\\')).unwrap_or(name.len());
    [b".git".as_slice(), b"git~1"].contains(&trimmed(&name[..end]).as_slice())
}

/// A name in lower case without dots and spaces at its end.
fn trimmed(name: &[u8]) -> Vec<u8> {
    let end = name.iter().rposition(|b| !matches!(b, b'.' | b' ')).map_or(0, |at| at + 1);
    name[..end].to_ascii_lowercase()
}

/// A name in lower case without the characters that HFS+ takes no notice of.
fn seen_by_hfs(name: &[u8]) -> Option<String> {
    let is_seen = |c: &char| !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let text = std::str::from_utf8(name).ok()?;
    Some(text.chars().filter(is_seen).collect::<String>().to_ascii_lowercase())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::git::{Git, git};

    const NAMES: [&str; 22] = [
        ".git",
        ".GIT",
        ".gIt",
        ".git ",
        ".git.",
        ".git. .",
        ".git:x",
        ".git::$INDEX_ALLOCATION",
        ".git\\x",
        "git~1",
        "GIT~1",
        "git~1 ",
        "git~2",
        "git",
        ".gitx",
        "gitx~1",
        ".gitignore",
        ".g\u{200c}it",
        "\u{feff}.git",
        ".gitmodules",
        ".GITMODULES",
        "gitmod~2",
    ];

    /// Git is asked what it takes into an index, with each of its settings.
    #[test]
    fn names_are_judged_as_git_judges_them() {
        let home = tempfile::tempdir().unwrap();
        git(home.path(), &["init", "-q"]).unwrap();
        let blob = Git::at(home.path()).args(["hash-object", "-w", "--stdin"]).input("x").text();
        let blob = blob.unwrap();
        for (ntfs, hfs) in [(true, false), (false, false), (true, true), (false, true)] {
            for (mode, is_link) in [("100644", false), ("120000", true)] {
                for name in NAMES {
                    let taken = Git::at(home.path())
                        .config(&format!("core.protectNTFS={ntfs}"))
                        .config(&format!("core.protectHFS={hfs}"))
                        .index(&home.path().join("index"))
                        .args(["update-index", "--add", "--cacheinfo"])
                        .arg(format!("{mode},{blob},{name}"))
                        .run()
                        .is_ok();
                    let protected = ProtectedNames { ntfs, hfs }.refuses(name.as_bytes(), is_link);
                    assert_eq!(protected, !taken, "{name:?} as {mode} with {ntfs} {hfs}");
                }
            }
        }
        assert!(
            ProtectedNames::usual().refuses_path(b"a/.GIT/b")
                && !ProtectedNames::usual().refuses_path(b"a/git/b")
        );
    }
}

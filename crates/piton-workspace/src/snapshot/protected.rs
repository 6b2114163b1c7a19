//! Names that git refuses in a tree, because they mean its own folder on some system.
//!
//! No index can hold such a name, so no commit of a lane may have it, and no snapshot does. The rules are
//! git's own, from its documentation of `core.protectNTFS`, which holds unless somebody turns it off.

/// Whether git refuses a name.
pub(super) fn is_refused(name: &[u8], is_link: bool) -> bool {
    // NTFS knows `.git` by a short name too, and takes no notice of dots and spaces at the end, nor of
    // the name of a stream behind a colon; a backslash ends a name there.
    let end = name.iter().position(|b| matches!(b, b':' | b'\\')).unwrap_or(name.len());
    let end = name[..end].iter().rposition(|b| !matches!(b, b'.' | b' ')).map_or(0, |at| at + 1);
    let means = |own: &[u8]| name[..end].eq_ignore_ascii_case(own);
    means(b".git") || means(b"git~1") || (is_link && name.eq_ignore_ascii_case(b".gitmodules"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::git::{Git, git};

    const NAMES: &[&str] = &[
        ".git",
        ".gIt",
        ".git. .",
        ".git::$INDEX_ALLOCATION",
        ".git\\x",
        "GIT~1 ",
        "git~2",
        "git",
        ".gitx",
        "gitx~1",
        ".gitignore",
        ".GITMODULES",
    ];

    /// Git is asked what it takes into an index.
    #[test]
    fn names_are_judged_as_git_judges_them() {
        let home = tempfile::tempdir().unwrap();
        git(home.path(), &["init", "-q"]).unwrap();
        let blob = Git::at(home.path()).args(["hash-object", "-w", "--stdin"]).input("x").text();
        let blob = blob.unwrap();
        for (mode, is_link) in [("100644", false), ("120000", true)] {
            for name in NAMES {
                let taken = Git::at(home.path())
                    .index(&home.path().join("index"))
                    .args(["update-index", "--add", "--cacheinfo"])
                    .arg(format!("{mode},{blob},{name}"))
                    .run()
                    .is_ok();
                assert_eq!(is_refused(name.as_bytes(), is_link), !taken, "{name:?} as {mode}");
            }
        }
    }
}

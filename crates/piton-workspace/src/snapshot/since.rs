//! Whether a work tree changed since a moment, by what its files and folders are stamped with.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::capture::{head_of, open_top};
use super::entry::Kind;
use super::settings::{self, Settings};
use super::stat::{Stat, now_ns};
use super::walk::{Body, Walk};
use super::{Error, Rules, Workspace};
use crate::index::Index;
use crate::objects::GITLINK;

/// Whether anything that a snapshot holds was changed, made or deleted at `since` or later, in
/// nanoseconds by the clock that files are stamped with.
///
/// It may say yes without a reason, as where a folder got a file that git ignores. It reads no
/// contents and no cache: what it is asked about is young.
pub fn changed_since(workspace: &Workspace, rules: &Rules, since: i64) -> Result<bool, Error> {
    let repo = settings::open(&workspace.dir)?;
    let settings = Settings::load(&repo, now_ns())?;
    let mut head = head_of(&repo, rules, settings.into(), None);
    let index = Index::read(&repo.root, &repo.index())?;
    head.links = index.entries.iter().filter(|t| t.mode == GITLINK).cloned().collect();
    let walk = Walk {
        top: open_top(&repo)?,
        repo: &repo,
        rules,
        cache: None,
        head: &head,
        reconsider: true,
        index_changed: true,
        index: OnceLock::from(Ok(index)),
        files: AtomicUsize::new(0),
        vanished: AtomicBool::new(false),
    };
    let is_young = |stat: &Stat| stat.ctime.max(stat.mtime) >= since;
    let folders = walk.run()?;
    Ok(walk.vanished.into_inner()
        || folders.iter().any(|folder| {
            let Body::Listed(entries) = &folder.body else { return true };
            let young = entries.iter().any(|e| e.kind != Kind::Ignored && is_young(&e.stat));
            is_young(&folder.stat) || young
        }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::git::Git;

    /// What a person or a test may do to a work tree, and whether it is a change.
    type Act = (&'static str, fn(&Path), bool);

    /// Lost, a lane would be merged with files that its tests have not seen.
    #[test]
    fn whatever_a_snapshot_would_hold_is_seen_to_change() {
        let acts: [Act; 8] = [
            ("nothing", |_| {}, false),
            ("an edit", |at| fs::write(at.join("deep/kept"), "edited").unwrap(), true),
            (
                "an edit that keeps the time",
                |at| {
                    let path = at.join("deep/kept");
                    let time = fs::metadata(&path).unwrap().modified().unwrap();
                    fs::write(&path, "other").unwrap();
                    fs::File::options()
                        .write(true)
                        .open(&path)
                        .unwrap()
                        .set_modified(time)
                        .unwrap();
                },
                true,
            ),
            ("a new file", |at| fs::write(at.join("new"), "").unwrap(), true),
            ("a deletion", |at| fs::remove_file(at.join("deep/kept")).unwrap(), true),
            (
                "a file that is made and goes",
                |at| {
                    fs::write(at.join("deep/passing"), "").unwrap();
                    fs::remove_file(at.join("deep/passing")).unwrap();
                },
                true,
            ),
            ("an empty folder", |at| fs::create_dir(at.join("deep/empty")).unwrap(), true),
            (
                "a file in a folder that git ignores",
                |at| {
                    fs::write(at.join("ignored/log"), "more").unwrap();
                },
                false,
            ),
        ];
        for (name, act, expected) in acts {
            let home = tempfile::tempdir().unwrap();
            let dir = home.path().join("tree");
            for folder in ["deep", "ignored"] {
                fs::create_dir_all(dir.join(folder)).unwrap();
            }
            for (file, text) in
                [("deep/kept", "text"), (".gitignore", "ignored/\n"), ("ignored/a", "")]
            {
                fs::write(dir.join(file), text).unwrap();
            }
            for words in [&["init", "--quiet"][..], &["add", "--all"]] {
                Git::at(&dir).args(words.iter().copied()).run().unwrap();
            }
            std::thread::sleep(Duration::from_millis(12));
            let since = now_ns();
            std::thread::sleep(Duration::from_millis(12));
            act(&dir);
            let workspace = Workspace { dir: dir.clone(), cache: home.path().join("cache") };
            let changed = changed_since(&workspace, &Rules::default(), since).unwrap();
            assert_eq!(changed, expected, "{name}");
        }
    }
}

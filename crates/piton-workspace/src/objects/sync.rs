//! Objects that git wrote, made durable before a ref of ours relies on them.
//!
//! Git does not sync the objects that a `git commit` or `git add` of a step writes, and does not
//! write an object again that is there already, however it is told to sync. Packs it syncs, so only
//! files of single objects are looked at. What a snapshot holds is durable without this: it writes
//! its objects itself.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::files::sync as files;
use crate::git::{self, Git};
use crate::repo::Repo;

/// Makes all that a commit or tree names durable, apart from what the others name: those are known
/// to be, or are not ours to answer for.
pub fn sync(dir: &Path, tip: &str, not: &[&str]) -> Result<(), git::Error> {
    sync_with(dir, tip, not, &mut sync_loose)
}

/// Syncs files named from the folder that all work trees share.
type Sync<'a> = &'a mut dyn FnMut(&Path, &[String]) -> io::Result<()>;

fn sync_with(dir: &Path, tip: &str, not: &[&str], sync: Sync<'_>) -> Result<(), git::Error> {
    let common = Repo::find(dir)?.common;
    // Where a lane began may be gone in the meantime, which only makes for more to sync.
    let args = ["rev-list", "--objects", "--no-object-names", "--ignore-missing"];
    let list = Git::at(dir).args(args).args([tip, "--not"]).args(not).text()?;
    let name = |id: &str| Some(format!("objects/{}/{}", id.get(..2)?, id.get(2..)?));
    let mut names: Vec<String> = list.lines().filter_map(name).collect();
    names.retain(|name| common.join(name).exists());
    sync(&common, &names).map_err(|error| git::Error {
        command: format!("rev-list --objects {tip}"),
        code: None,
        message: format!("its objects could not be synced: {error}; see that the disk is in order"),
    })
}

fn sync_loose(common: &Path, names: &[String]) -> io::Result<()> {
    if files::is_many(names.len()) {
        return files::file_system(&common.join("objects"));
    }
    let mut folders = BTreeSet::new();
    for name in names {
        match File::open(common.join(name)) {
            Ok(file) => file.sync_all()?,
            // It was packed in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        }
        // The first of a folder stands for all of it.
        if folders.insert(name.rsplit_once('/').map_or("", |(folder, _)| folder)) {
            files::way_up(common, name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::git::git;

    #[test]
    fn single_objects_since_a_commit_are_synced_and_packed_ones_are_not() {
        let home = tempfile::tempdir().unwrap();
        let at = |args: &[&str]| git(home.path(), args).unwrap();
        at(&["init", "-q"]);
        for setting in ["user.name=Ann", "user.email=ann@example.org"] {
            let (name, value) = setting.split_once('=').unwrap();
            at(&["config", name, value]);
        }
        let commit = |name: &str| {
            std::fs::write(home.path().join(name), name).unwrap();
            at(&["add", "."]);
            at(&["commit", "-q", "-m", name]);
            at(&["rev-parse", "HEAD"])
        };
        let synced = |not: &str| {
            let mut all = Vec::new();
            let mut note = |_: &Path, names: &[String]| {
                all.extend(names.iter().map(|name| name.replace('/', "")));
                Ok(())
            };
            sync_with(home.path(), "HEAD", &[not], &mut note).unwrap();
            all.sort();
            all
        };
        let first = commit("one");
        commit("two");
        let names = ["HEAD", "HEAD^{tree}", "HEAD:two"];
        let mut wanted = names.map(|name| format!("objects{}", at(&["rev-parse", name])));
        wanted.sort();
        assert_eq!(synced(&first), wanted);
        sync(home.path(), "HEAD", &[]).unwrap();
        at(&["repack", "-a", "-d", "-q"]);
        assert!(synced(&first).is_empty());
    }
}

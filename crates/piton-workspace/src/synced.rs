//! Objects and files that git wrote, made durable before a ref of ours relies on them.
//!
//! Git does not sync the objects that a `git commit` or `git add` of a step writes, and does not
//! write an object again that is there already, however it is told to sync. Packs it syncs, so only
//! files of single objects are looked at. What a snapshot holds is durable without this: it writes
//! its objects itself.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::git::{self, Git};
use crate::refs;
use crate::worktree::Place;

/// Files from which one sync of the whole file system takes less time than one for each.
const SINGLE_MAX: usize = 64;

/// Makes all that a commit or tree names durable, apart from what the others name: those are known
/// to be, or are not ours to answer for.
pub fn objects(dir: &Path, tip: &str, not: &[&str]) -> Result<(), git::Error> {
    objects_with(dir, tip, not, &mut sync)
}

/// Syncs files named from the folder that all work trees share.
type Sync<'a> = &'a mut dyn FnMut(&Path, &[String]) -> io::Result<()>;

fn objects_with(dir: &Path, tip: &str, not: &[&str], sync: Sync<'_>) -> Result<(), git::Error> {
    let common = Place::of(dir)?.common;
    // Where a lane began may be gone meanwhile, which only makes for more to sync.
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

/// Makes files of a work tree that were written or deleted durable, and the folders they are in.
pub(crate) fn files<'a>(root: &Path, paths: impl Iterator<Item = &'a Path>) -> io::Result<()> {
    let paths: Vec<&Path> = paths.collect();
    contents(root, &paths)?;
    if is_many(paths.len()) {
        return Ok(());
    }
    let folders: BTreeSet<&Path> = paths.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    for folder in folders {
        match File::open(root.join(folder)) {
            Ok(folder) => folder.sync_all()?,
            // It went with its last file.
            Err(error) if is_out_of_reach(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes what files of a work tree hold durable; of many, their folders too.
pub(crate) fn contents(root: &Path, paths: &[&Path]) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if is_many(paths.len()) {
        return Ok(rustix::fs::syncfs(File::open(root)?)?);
    }
    for path in paths {
        let file = root.join(path);
        // Opening a FIFO of the user's would wait for ever.
        if file.symlink_metadata().is_ok_and(|found| found.is_file()) {
            match File::open(&file) {
                Ok(file) => file.sync_all()?,
                // Its owner may not read it, or it went meanwhile.
                Err(error) if is_out_of_reach(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Whether one sync of the whole file system stands for those of so many files.
fn is_many(files: usize) -> bool {
    cfg!(target_os = "linux") && files > SINGLE_MAX
}

fn is_out_of_reach(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotADirectory | NotFound | PermissionDenied)
}

fn sync(common: &Path, names: &[String]) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if is_many(names.len()) {
        return Ok(rustix::fs::syncfs(File::open(common.join("objects"))?)?);
    }
    let mut folders = BTreeSet::new();
    for name in names {
        match File::open(common.join(name)) {
            Ok(file) => file.sync_all()?,
            // It was packed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        }
        // The first of a folder stands for all of it.
        if folders.insert(name.rsplit_once('/').map_or("", |(folder, _)| folder)) {
            refs::sync_up(common, name)?;
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
            objects_with(home.path(), "HEAD", &[not], &mut note).unwrap();
            all.sort();
            all
        };
        let first = commit("one");
        commit("two");
        let names = ["HEAD", "HEAD^{tree}", "HEAD:two"];
        let mut wanted = names.map(|name| format!("objects{}", at(&["rev-parse", name])));
        wanted.sort();
        assert_eq!(synced(&first), wanted);
        objects(home.path(), "HEAD", &[]).unwrap();
        at(&["repack", "-a", "-d", "-q"]);
        assert!(synced(&first).is_empty());
    }
}

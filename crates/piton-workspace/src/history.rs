//! Questions about commits and what they hold. Nothing here changes anything.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::git::{self, Error, Git};

/// The commits of a range, or those that a commit descends from and itself.
pub fn commits(dir: &Path, range: &str) -> Result<Vec<String>, Error> {
    let text = Git::at(dir).args(["rev-list", range]).text()?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The first line of a commit's message.
pub fn subject(dir: &Path, commit: &str) -> Option<String> {
    Git::at(dir).args(["log", "-1", "--format=%s", commit]).text().ok()
}

/// Where two commits parted.
pub fn merge_base(dir: &Path, one: &str, other: &str) -> Option<String> {
    Git::at(dir).args(["merge-base", one, other]).text().ok()
}

/// The branches, here and of remotes, that contain a commit: what each names, and its full name.
pub fn containing(dir: &Path, commit: &str) -> Result<Vec<(String, String)>, Error> {
    let contains = format!("--contains={commit}");
    let args = ["for-each-ref", &contains, "--format=%(objectname) %(refname)"];
    let text = Git::at(dir).args(args).args(["refs/heads", "refs/remotes"]).text()?;
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.map(|(commit, name)| (commit.to_owned(), name.to_owned())).collect())
}

/// Whether what a work tree has checked out is on a branch, tagged or at a remote.
pub fn is_named(dir: &Path) -> bool {
    let own = ["rev-list", "-n", "1", "HEAD", "--not", "--branches", "--tags", "--remotes"];
    Git::at(dir).args(own).text().is_ok_and(|commit| commit.is_empty())
}

/// The bytes of a file by its name in git: an id, or `COMMIT:PATH`.
pub fn file(dir: &Path, name: &[u8]) -> Option<Vec<u8>> {
    Git::at(dir).args(["cat-file", "blob"]).arg(OsStr::from_bytes(name)).bytes().ok()
}

/// Whether a commit or tree has a file, named as seen from the folder.
pub fn has_file(dir: &Path, tree: &str, path: &Path) -> bool {
    let listed = Git::at(dir).args(["ls-tree", "-z", "--name-only", tree, "--"]).arg(path).bytes();
    listed.is_ok_and(|found| !found.is_empty())
}

/// The paths at which two trees differ.
pub fn changed(dir: &Path, old: &str, new: &str) -> Result<Vec<Vec<u8>>, Error> {
    let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new];
    let bytes = Git::at(dir).args(args).bytes()?;
    Ok(git::words(&bytes).map(<[u8]>::to_vec).collect())
}

/// How two trees differ, as git shows it to people: line by line, or counted for each file.
pub fn diff(dir: &Path, old: &str, new: &str, is_counted: bool) -> Result<String, Error> {
    let stat = is_counted.then_some("--stat");
    Git::at(dir).args(["diff", "--no-color", "--no-ext-diff"]).args(stat).args([old, new]).text()
}

/// How some files differ between two trees, line by line.
pub fn diff_of(dir: &Path, old: &str, new: &str, paths: &[String]) -> Result<String, Error> {
    let git = Git::at(dir).args(["--literal-pathspecs", "diff", "--no-color", "--no-ext-diff"]);
    git.args([old, new, "--"]).args(paths).text()
}

/// The paths at which a work tree differs from its commit, untracked files included.
pub fn uncommitted(dir: &Path) -> Result<Vec<String>, Error> {
    let args = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];
    let bytes = Git::at(dir).args(args).bytes()?;
    let path = |line: &[u8]| Some(String::from_utf8_lossy(line.get(3..)?).into_owned());
    Ok(git::words(&bytes).filter_map(path).collect())
}

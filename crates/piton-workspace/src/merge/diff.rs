//! Which paths differ: between two commits, an index and a commit, an index and its files.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{Error, Result};
use crate::files::os_path;
use crate::git::{self, Git, RawChange as GitChange};

/// A path that differs between two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The path, which need not be text.
    pub path: PathBuf,
    pub in_old: bool,
    /// Mode and object in the new commit, if it is there.
    pub new: Option<(String, String)>,
}

/// The paths that differ between two commits.
pub(super) fn commits(dir: &Path, old: &str, new: &str) -> Result<Vec<Change>> {
    let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new];
    let bytes = Git::at(dir).args(args).bytes()?;
    raw(&bytes)
}

/// The paths at which an index (the user's without one) differs from a commit.
pub(super) fn index(dir: &Path, index: Option<&Path>, commit: &str) -> Result<BTreeSet<PathBuf>> {
    let args = ["diff-index", "--cached", "-z", "--raw", "--no-renames", "--no-abbrev", commit];
    let git = Git::at(dir).args(args);
    let git = if let Some(index) = index { git.index(index) } else { git };
    Ok(raw(&git.bytes()?)?.into_iter().map(|change| change.path).collect())
}

/// The paths at which the files differ from an index that is ours to refresh.
pub(super) fn files(dir: &Path, index: &Path) -> Result<BTreeSet<PathBuf>> {
    // Its exit says that files differ, which is what we ask.
    Git::at(dir).index(index).args(["update-index", "-q", "--refresh"]).output()?;
    let args = ["diff-files", "-z", "--raw", "--no-abbrev", "--ignore-submodules=all"];
    let bytes = Git::at(dir).index(index).args(args).bytes()?;
    Ok(raw(&bytes)?.into_iter().map(|change| change.path).collect())
}

/// The entries of the new commit as `update-index --index-info` takes them; those that go are taken
/// out, which is said with a name of zeros, as long as names are here.
pub(super) fn index_info<'a>(changes: impl Iterator<Item = &'a Change>, id_len: usize) -> Vec<u8> {
    git::ended(changes.map(|change| {
        let gone = || format!("0 {}\t", "0".repeat(id_len));
        let head = change.new.as_ref().map_or_else(gone, |(mode, id)| format!("{mode} {id}\t"));
        [head.as_bytes(), change.path.as_os_str().as_bytes()].concat()
    }))
}

fn raw(bytes: &[u8]) -> Result<Vec<Change>> {
    let changes = git::raw_changes(bytes).ok_or(Error::Strange("diff"))?;
    let change = |GitChange { modes: [old, new], ids: [_, id], path }: GitChange<'_>| Change {
        path: os_path(path).to_owned(),
        in_old: old != "000000",
        new: (new != "000000").then(|| (new.to_owned(), id.to_owned())),
    };
    Ok(changes.into_iter().map(change).collect())
}

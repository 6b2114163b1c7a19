//! Snapshots: the files of a work tree as a commit, without touching the user's HEAD, index, stash
//! or files.
//!
//! A snapshot is a commit on a chain of its own (a ref below `refs/piton/`). Its tree has two
//! entries: `tree`, exactly what git would commit (`git show SNAPSHOT:tree/PATH`), and `side`, what
//! git cannot hold: raw bytes of converted files, permissions, folders without files, and the list
//! of what was not captured (`git show SNAPSHOT:side/manifest`). All of it hangs on the ref, so the
//! user's `git gc` keeps it.
//!
//! Captured is what is tracked or untracked and not ignored. When [`take`] returns, all objects
//! and the ref are synced. Nothing else is guaranteed to be: the stat cache is only a cache.
//! Putting files back is the `restore` module's work.

mod attributes;
mod cache;
pub(crate) mod capture;
mod codec;
mod content;
mod convert;
mod costs;
mod entry;
mod error;
mod packs;
mod protected;
mod recorded;
pub(crate) mod rules;
pub(crate) mod settings;
pub(crate) mod side;
mod since;
pub(crate) mod stat;
mod taker;
pub(crate) mod temporary;
mod trees;
mod visit;
mod walk;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub use costs::{Costs, costs, shares};
pub use entry::Why;
pub use error::Error;
pub use recorded::{Recorded, recorded};
pub use since::changed_since;
pub use taker::{Taker, take};

use crate::files::{self, join};
use crate::git::Git;
use crate::objects::{self, Oid};

/// A work tree to take snapshots of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// The top of the work tree.
    pub dir: PathBuf,
    /// The file of its stat cache; each work tree has one of its own.
    pub cache: PathBuf,
}

/// What is captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Larger files are not captured.
    pub file_bytes_max: u64,
    /// Work trees with more files are refused.
    pub files_max: usize,
    /// Paths that are neither captured nor named nor restored: a file, or a folder and all in it.
    pub exclude: Vec<String>,
    /// Files that are captured although they are ignored, and folders, whose names end in a slash.
    pub also: BTreeSet<Vec<u8>>,
    /// The user's home folder, which is refused as a work tree.
    pub home: Option<PathBuf>,
}

impl Default for Rules {
    /// The defaults of the settings.
    fn default() -> Self {
        Self {
            // A source file is smaller; what is larger is data or a build's output.
            file_bytes_max: 50_000_000,
            // Ten times the largest source trees that people work in.
            files_max: 1_000_000,
            exclude: vec![".worktrees".to_owned()],
            also: BTreeSet::new(),
            home: None,
        }
    }
}

impl Rules {
    /// Whether a path is left alone, as what a restore that was killed left is.
    pub fn excludes(&self, path: &[u8]) -> bool {
        if temporary::writer(files::name(path)).is_some() {
            return true;
        }
        self.exclude.iter().any(|excluded| {
            let rest = path.strip_prefix(excluded.trim_end_matches('/').as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        })
    }

    /// Whether a path is captured although it is ignored, or leads to one that is.
    pub(crate) fn takes(&self, path: &[u8], is_dir: bool) -> bool {
        if !is_dir {
            return self.also.contains(path);
        }
        let below = join(path, b"");
        self.also.range(below.clone()..).next().is_some_and(|first| first.starts_with(&below))
    }

    fn digest(&self) -> Oid {
        let mut all = codec::Writer::default();
        all.u64(self.file_bytes_max);
        all.len(self.exclude.len());
        self.exclude.iter().for_each(|path| all.bytes(path.as_bytes()));
        self.also.iter().for_each(|path| all.bytes(path));
        Oid::hash(objects::Kind::Blob, &all.0)
    }
}

/// What a snapshot says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// The commit's message.
    pub message: &'a str,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// Something that is not in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// Its path from the top of the work tree.
    pub path: Vec<u8>,
    /// Why not.
    pub why: Why,
}

/// The files of a work tree at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The commit that holds it.
    pub commit: String,
    /// What git would commit.
    pub tree: String,
    /// What was not captured, sorted by path.
    pub degraded: Vec<Missed>,
    /// Whether it differs from the one before in its chain; if not, this is the one before.
    pub changed: bool,
}

/// Reads a snapshot that was taken before.
pub fn load(dir: &Path, commit: &str) -> Result<Snapshot, Error> {
    let manifest = manifest(dir, commit)?;
    let manifest = manifest.ok_or_else(|| Error::NotASnapshot { commit: commit.to_owned() })?;
    let named = |name: String| Git::at(dir).args(["rev-parse", "--verify", &name]).text();
    let (tree, commit) = (named(format!("{commit}:tree"))?, named(format!("{commit}^{{commit}}"))?);
    Ok(Snapshot { commit, tree, degraded: manifest.missed, changed: true })
}

/// The side of a snapshot; `None` if the commit is not a snapshot.
pub(crate) fn manifest(dir: &Path, commit: &str) -> Result<Option<side::Manifest>, Error> {
    let name = format!("{commit}:side/manifest");
    let output = Git::at(dir).args(["cat-file", "blob", &name]).output()?;
    if output.status.success() {
        return Ok(side::Manifest::decode(&output.stdout));
    }
    if !is_there(dir, commit)? {
        return Err(Error::Gone { commit: commit.to_owned() });
    }
    Ok(None)
}

/// Whether the repository has a commit.
pub fn is_there(dir: &Path, commit: &str) -> Result<bool, Error> {
    let asked = Git::at(dir).env("GIT_NO_LAZY_FETCH", "1").args(["cat-file", "--batch-check"]);
    let said = asked.input(format!("{commit}^{{tree}}\n")).text()?;
    Ok(!said.ends_with(" missing"))
}

//! What can go wrong with a snapshot, and what people can do about it.

use std::path::{Path, PathBuf};

use piton_core::refusal::Refusal;

use crate::{git, objects};

/// Why a snapshot could not be taken or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not the top of a work tree.
    #[error("{} is not the top of a git work tree: {why}", dir.display())]
    NotAWorkTree {
        /// The folder.
        dir: PathBuf,
        /// Why not.
        why: String,
    },
    /// A folder that is far more than a project.
    #[error("{} is {what}, not a project", dir.display())]
    NotAProject {
        /// The folder.
        dir: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// More files than allowed.
    #[error("the work tree has more than {max} files that are not ignored")]
    TooManyFiles {
        /// How many are allowed.
        max: usize,
    },
    /// A repository whose objects have other ids.
    #[error("the repository uses {format} object ids, but snapshots need SHA-1")]
    Format {
        /// Which.
        format: String,
    },
    /// A commit that is not a snapshot.
    #[error("{commit} is not a snapshot that Piton took")]
    NotASnapshot {
        /// The commit.
        commit: String,
    },
    /// A snapshot that the repository does not have any more.
    #[error(
        "snapshot {commit} is no longer in the repository: its refs below `refs/piton` were deleted \
         and git removed it"
    )]
    Gone {
        /// Its commit.
        commit: String,
    },
    /// New objects could not be written.
    #[error(transparent)]
    Objects(#[from] objects::Error),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn io(path: &Path, errno: rustix::io::Errno) -> Self {
        Self::file(path, errno.into())
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        use Error as E;
        let refusal = Self::new("snapshot", error.to_string());
        match error {
            E::NotAProject { .. } => refusal.or("run piton in a repository of the project"),
            E::TooManyFiles { .. } => {
                refusal.or("ignore files that need no snapshot").or("raise `snapshots.files_max`")
            }
            E::Format { .. } => refusal.or("convert it").or("set `snapshots.enabled = false`"),
            E::Gone { .. } => refusal.or("choose another checkpoint"),
            E::Objects(error) => error.into(),
            E::Git(error) => error.into(),
            E::NotAWorkTree { .. } | E::NotASnapshot { .. } | E::Io { .. } => refusal,
        }
    }
}

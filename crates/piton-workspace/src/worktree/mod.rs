//! Worktrees of lanes: made, found again, moved, removed. Only those with our mark are touched.
//!
//! Git registers a worktree in a folder of its own, its *admin folder*. Ours are locked with a
//! reason that names run and lane, which git writes before anything else, and get a file `piton`
//! there once they are complete. So after a kill at any point it can be told what is ours and
//! whether it is whole, and what carries no mark is somebody else's: it is never touched, and a
//! name it takes is left to it.
//!
//! Everything here may be killed and called again. Nothing here decides when a lane gets a
//! worktree or loses it.

mod add;
mod admin;
mod adopt;
mod branch;
mod checkout;
mod commit;
mod copy;
mod links;
mod list;
pub(crate) mod locks;
mod mark;
mod register;
mod remove;
mod reset;

use std::path::PathBuf;

pub use add::{Added, Spec, add, copy_missing, is_complete, note_complete, restarted};
pub use adopt::adopt;
pub use branch::{BranchEnd, delete_branch_if_contained, drop_branch, keep_commit};
pub use commit::{Committed, FALLBACK_EMAIL, FALLBACK_NAME, Identity, commit};
pub(crate) use commit::{ended, signed};
pub use list::{Entry, checked_out, list, rebased};
pub use register::register_again;
pub use remove::{empty_trash, may_remove, remove, sweep_begun, trash_folders};
pub use reset::{Files, move_to, move_with_files, start_from, unmerged};

use crate::files::beneath::LinkLeadsOut;
use crate::git;
use crate::refs::{Fence, Transaction};
use crate::repo::Repo;

/// Why something could not be done with a worktree.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// A file could not be read or written.
    #[error("{path}: {source}; see that the folder can be written and the disk has room")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another driver took the run over.
    #[error("another driver took this run over; follow it with `piton status`")]
    Superseded,
    /// The worktree is not ours.
    #[error("{0} was not made by piton, so it is left alone; move it away if it is in the way")]
    Foreign(PathBuf),
    /// Git forgot it, and it takes git to register it.
    #[error(
        "git does not know the worktree {0} any more; move the folder away: the worktree is made again \
         from its branch and its last checkpoint, and files can be copied into it"
    )]
    Forgotten(PathBuf),
    /// The user locked it.
    #[error("{path} was locked ({reason}); run `{}` first", unlocked(path))]
    Locked {
        /// The worktree.
        path: PathBuf,
        /// The user's reason.
        reason: String,
    },
    /// Another worktree lies within.
    #[error("another worktree lies within {0}; remove that one first")]
    Nested(PathBuf),
    /// The lane's branch is checked out elsewhere.
    #[error("the branch {branch} is checked out in {path}; check out another one there")]
    BranchInUse {
        /// The branch.
        branch: String,
        /// Where.
        path: PathBuf,
    },
    /// A branch that should be there is not.
    #[error("there is no branch {0}; name one that exists, or let the lane start over")]
    NoBranch(String),
    /// Every name that was tried is taken.
    #[error("all names like {0} are taken; delete branches or folders that are no longer needed")]
    NoFreeName(String),
    /// A file is where a folder of worktrees should be.
    #[error("{0} is no folder, so no worktree can be made in it; move it away")]
    NoFolder(PathBuf),
    /// A path to copy that leads out of the project.
    #[error("`{0}` cannot be copied into a worktree; name a path within the project")]
    OutOfProject(String),
    /// A folder to copy that has the worktrees in it.
    #[error("`{0}` holds the worktrees and cannot be copied into one; take it out of `copy`")]
    HoldsWorktrees(String),
    /// A link on the way leads out of the project.
    #[error("{0}")]
    LinkLeadsOut(std::io::Error),
    /// Another process of ours is still at work.
    #[error("a git command of an earlier driver still runs here; wait for it, then call again")]
    Busy,
}

fn unlocked(path: &std::path::Path) -> String {
    piton_core::shell::git(None, &["worktree", "unlock", &path.to_string_lossy()])
}

/// A result with this module's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Names the file an operation failed on.
pub(crate) trait At<T> {
    fn at(self, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| {
            if LinkLeadsOut::is(&source) {
                return Error::LinkLeadsOut(source);
            }
            Error::File { path: path.into(), source }
        })
    }
}

/// Carries out a fenced transaction; a failure of one that was taken over is that.
fn commit_fenced(transaction: Transaction, repo: &Repo, fence: &Fence, why: &str) -> Result<()> {
    let failed = |error| if fence.holds_in(repo) { Error::Git(error) } else { Error::Superseded };
    transaction.commit_in(repo, why).map_err(failed)
}

/// Refuses to go on for a driver that was taken over.
fn check(repo: &Repo, fence: &Fence) -> Result<()> {
    if fence.holds_in(repo) { Ok(()) } else { Err(Error::Superseded) }
}

//! Worktrees of lanes: made, found again, moved, removed. Only those with our mark are touched.
//!
//! Git registers a worktree in a folder of its own, its *admin folder*. Ours are locked with a
//! reason that names run and lane, which git writes before anything else, and get a file `piton`
//! there once they are complete. So after a kill at any point it is known what is ours and
//! whether it is complete, and what carries no mark is somebody else's: it is never touched, and a
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
mod error;
mod links;
mod list;
pub(crate) mod locks;
mod mark;
mod remove;
mod reset;

use std::path::{Path, PathBuf};

pub use add::{
    Added, Spec, add, copy_missing, is_complete, note_complete, refuse_forgotten, restarted,
};
pub use adopt::adopt;
pub use branch::{BranchEnd, delete_branch_if_contained, drop_branch, keep_commit};
pub use commit::{Committed, FALLBACK_EMAIL, FALLBACK_NAME, Identity, commit};
pub(crate) use commit::{ended, signed, write};
pub use error::Error;
pub use list::{Entry, checked_out, list, rebased};
pub use remove::{empty_trash, may_remove, remove, sweep_begun, trash_folders};
pub use reset::{Files, move_to, move_with_files, start_from, unmerged};

use crate::files::beneath::LinkLeadsOut;
use crate::git::{self, Git};
use crate::refs::{Fence, Transaction};
use crate::repo::Repo;

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

/// Carries out a fenced transaction of a lane; a failure of one that was taken over is that.
fn commit_fenced(transaction: Transaction, repo: &Repo, fence: &Fence, why: &str) -> Result<()> {
    let failed = |error| if fence.holds_in(repo) { Error::Git(error) } else { Error::Superseded };
    transaction.of_lane().commit_in(repo, why).map_err(failed)
}

/// Refuses to go on for a driver that was taken over.
fn check(repo: &Repo, fence: &Fence) -> Result<()> {
    if fence.holds_in(repo) { Ok(()) } else { Err(Error::Superseded) }
}

/// Does something while a commit is checked out in a folder of its own, which no branch is at; the folder
/// is removed afterwards.
pub fn with_scratch<T>(
    root: &Path,
    dir: &Path,
    commit: &str,
    act: impl FnOnce() -> T,
) -> std::result::Result<T, git::Error> {
    let add = ["worktree", "add", "--quiet", "--detach"];
    Git::at(root).args(add).arg(dir).arg(commit).run()?;
    let done = act();
    Git::at(root).args(["worktree", "remove", "--force"]).arg(dir).run()?;
    Ok(done)
}

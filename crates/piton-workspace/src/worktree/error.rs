//! What can go wrong with the worktree of a lane, and what people can do about it.

use std::path::PathBuf;

use piton_core::refusal::{Refusal, Remedy};
use piton_core::shell;

use crate::git;

/// Why something could not be done with a worktree.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another driver took the run over.
    #[error("another driver took over this run")]
    Superseded,
    /// The worktree is not ours.
    #[error("{0} was not created by piton, so it is left alone")]
    Foreign(PathBuf),
    /// Git forgot it, and it takes git to register it.
    #[error("git no longer knows the worktree {0}")]
    Forgotten(PathBuf),
    /// The user locked it.
    #[error("the worktree {path} is locked ({reason})")]
    Locked {
        /// The worktree.
        path: PathBuf,
        /// The user's reason.
        reason: String,
    },
    /// Another worktree is within.
    #[error("there is another worktree within {0}")]
    Nested(PathBuf),
    /// The lane's branch is checked out elsewhere.
    #[error("the branch {branch} is checked out in {path}")]
    BranchInUse {
        /// The branch.
        branch: String,
        /// Where.
        path: PathBuf,
    },
    /// A branch that should be there is not.
    #[error("there is no branch {0}")]
    NoBranch(String),
    /// Every name that was tried is taken.
    #[error("all names like {0} are taken")]
    NoFreeName(String),
    /// A file is where a folder of worktrees should be.
    #[error("{0} is not a folder, so no worktree can be created in it")]
    NoFolder(PathBuf),
    /// A path to copy that leads out of the project.
    #[error("`{0}` can't be copied into a worktree: it is not within the project")]
    OutOfProject(String),
    /// A folder to copy that has the worktrees in it.
    #[error("`{0}` can't be copied into a worktree: it contains the worktrees")]
    HoldsWorktrees(String),
    /// A link on the way leads out of the project.
    #[error("{0}")]
    LinkLeadsOut(std::io::Error),
    /// Another process of ours is still at work.
    #[error("a git command of an earlier driver is still running here")]
    Busy,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        use Error as E;
        let refusal = Self::new("worktree", error.to_string());
        match error {
            E::Git(error) => error.into(),
            E::File { .. } => {
                refusal.or("make sure that the folder is writable and the disk is not full")
            }
            E::Foreign(_) | E::NoFolder(_) => refusal.or("move it to another place"),
            E::Forgotten(_) => refusal.or(
                "move the folder to another place: the worktree is created again from its branch and \
                 its last checkpoint",
            ),
            E::Locked { path, .. } => {
                let path = path.display().to_string();
                refusal.or(Remedy::shell(shell::git(None, &["worktree", "unlock", &path])))
            }
            E::Nested(_) => refusal.or("remove that one first"),
            E::BranchInUse { .. } => refusal.or("check out another branch there"),
            E::NoBranch(_) => refusal.or("name a branch that exists").or("start the lane again"),
            E::NoFreeName(_) => refusal.or("delete branches and folders that are not needed"),
            E::OutOfProject(_) => refusal.or("name a path within the project"),
            E::HoldsWorktrees(_) => refusal.or("remove it from `copy`"),
            E::LinkLeadsOut(_) => Self { code: "link-leads-out".into(), ..refusal },
            E::Busy => refusal.or("wait until it ends"),
            E::Superseded => refusal,
        }
    }
}

//! What can be said to the commands that take files back, or forth again.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Arguments of `rollback`.
#[derive(Debug, Default, Args)]
pub struct RollbackArgs {
    /// The run; without it, the newest.
    pub run: Option<String>,
    /// Only lanes with this id (or PHASE/LANE).
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
    /// Only this phase.
    #[arg(long, value_name = "PHASE")]
    pub phase: Option<String>,
    /// Go back to this stage or checkpoint instead of `before_lane_start`.
    #[arg(long, value_name = "STAGE|CHECKPOINT")]
    pub to: Option<String>,
    /// Remove files too that did not come from this run.
    #[arg(long)]
    pub exact: bool,
    /// Print what would change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Take the run from a process that is at work on a rollback of it, or drives it elsewhere.
    #[arg(long)]
    pub takeover: bool,
}

/// Arguments of `undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// The run; without it, the newest.
    pub run: Option<String>,
    /// Undo this act, not the last one; `--list` numbers them.
    #[arg(long, value_name = "N")]
    pub act: Option<u64>,
    /// List the acts that can be undone, the newest first, and change nothing.
    #[arg(long, conflicts_with_all = ["act", "dry_run", "takeover"])]
    pub list: bool,
    /// Print what would change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Take the run from the process that drives it.
    #[arg(long)]
    pub takeover: bool,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The checkpoint: a stage, `PHASE/LANE@STAGE`, `PHASE/LANE/STEP#N`, `manual-N`, or a commit.
    pub checkpoint: String,
    /// Only these paths, from the top of the work tree.
    pub paths: Vec<OsString>,
    /// The run; without it, the newest.
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// The lane, where the checkpoint is of several.
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
    /// Put the files into this folder instead.
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Remove files too that the checkpoint does not have.
    #[arg(long)]
    pub exact: bool,
    /// Print what would change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Take the run from the process that drives it.
    #[arg(long)]
    pub takeover: bool,
}

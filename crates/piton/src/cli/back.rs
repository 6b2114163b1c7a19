//! The arguments of the commands that take files back and forth.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Arguments of `rollback`.
#[derive(Debug, Default, Args)]
pub struct RollbackArgs {
    /// The run (default: the newest).
    pub run: Option<String>,
    /// Roll back only this lane (LANE or PHASE/LANE).
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
    /// Roll back only this phase.
    #[arg(long, value_name = "PHASE")]
    pub phase: Option<String>,
    /// The stage or checkpoint to go back to (default: `before_lane_start`).
    #[arg(long, value_name = "STAGE|CHECKPOINT")]
    pub to: Option<String>,
    /// Also remove files that did not come from this run.
    #[arg(long)]
    pub exact: bool,
    /// Print what would change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Take over the run from a process that drives it or rolls it back.
    #[arg(long)]
    pub takeover: bool,
}

/// Arguments of `undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// The run (default: the newest).
    pub run: Option<String>,
    /// Undo act N of `--list` instead of the last one.
    #[arg(long, value_name = "N")]
    pub act: Option<u64>,
    /// List what can be undone, the newest first, and change nothing.
    #[arg(long, conflicts_with_all = ["act", "dry_run", "takeover"])]
    pub list: bool,
    /// Print what would change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Take over the run from the process that drives it.
    #[arg(long)]
    pub takeover: bool,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The checkpoint: a stage, `PHASE/LANE@STAGE`, `PHASE/LANE/STEP#N`, `manual-N`, or a commit.
    pub checkpoint: String,
    /// Restore only these paths, relative to the top of the work tree.
    pub paths: Vec<OsString>,
    /// The run (default: the newest).
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// The lane, if several lanes have the checkpoint.
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
    /// Write the files to this folder instead.
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Also remove files that the checkpoint does not have.
    #[arg(long)]
    pub exact: bool,
    /// Print what would change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Take over the run from the process that drives it.
    #[arg(long)]
    pub takeover: bool,
}

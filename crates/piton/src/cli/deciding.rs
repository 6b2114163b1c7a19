//! The arguments of commands that begin a plan, change it and decide about its gates.

use std::path::PathBuf;

use clap::Args;

use super::Command;

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// An agent program (`claude`, `codex`, `gemini`, `opencode`, `all`), or a kind of plan
    /// (`pipeline`); default: the agent programs that are installed.
    pub kind: Option<String>,
    /// What a plan is called.
    pub name: Option<String>,
    /// Print what would be made, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Take back what was set up for agent programs.
    #[arg(long)]
    pub undo: bool,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The plan.
    pub plan: PathBuf,
    /// Lanes start from this branch and are merged into it (default: the current branch).
    #[arg(long, value_name = "BRANCH")]
    pub base: Option<String>,
    /// Lanes start with your uncommitted changes instead of refusing them.
    #[arg(long)]
    pub seed_dirty: bool,
}

/// Arguments of `reject`.
#[derive(Debug, Args)]
pub struct RejectArgs {
    /// What is rejected.
    #[command(flatten)]
    pub gate: GateArgs,
    /// Ask for changes: the work before the gate runs again with your comments.
    #[arg(long)]
    pub changes: bool,
    /// A file with comments for `--changes`; lines `PATH:LINE: TEXT` are about a place.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Arguments of `approve` and `reject`.
#[derive(Debug, Args)]
pub struct GateArgs {
    /// The run, or the gate if you do not name a run.
    pub run_or_gate: String,
    /// The gate, by its place (PHASE or PHASE/LANE) or its text.
    pub gate: Option<String>,
    /// A message to record.
    #[arg(short, long, default_value = "")]
    pub message: String,
    /// Only record the decision; do not continue the run.
    #[arg(long)]
    pub no_resume: bool,
}

/// Arguments of `replan`.
#[derive(Debug, Args)]
pub struct ReplanArgs {
    /// The phase to plan again (default: the current one).
    pub phase: Option<String>,
    /// The run (default: the newest unfinished one).
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Why the plan must change.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Replan once although the limits of replans are reached.
    #[arg(long)]
    pub force_replan: bool,
    /// Do not continue the run.
    #[arg(long)]
    pub no_resume: bool,
}

impl Command {
    /// What is typed for it; of those that a step may try, the others have no name here.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Abort(_) => "abort",
            Self::Approve(_) => "approve",
            Self::Doctor(_) => "doctor",
            Self::Gc(_) => "gc",
            Self::Reject(_) => "reject",
            Self::Replan(_) => "replan",
            Self::Restore(_) => "restore",
            Self::Resume(_) => "resume",
            Self::Retry(_) => "retry",
            Self::Rollback(_) => "rollback",
            Self::Run(_) => "run",
            Self::Skip(_) => "skip",
            Self::Undo(_) => "undo",
            _ => "",
        }
    }
}

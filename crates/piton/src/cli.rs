//! The command line: what can be said, and its help. What is done stands in `commands/`.

mod back;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use back::{RestoreArgs, RollbackArgs, UndoArgs};

/// The section of the help for what every command takes.
const GLOBAL: &str = "Global options";
/// The command that Piton starts itself.
pub const KEEPER: &str = "__keeper";

/// Run long work done by coding agents so that a crash costs no more than the step in flight.
#[derive(Debug, Parser)]
#[command(name = "piton", version, max_term_width = 100, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 complete, 1 failed, 2 usage or plan error, 3 waiting for a person, \
4 blocked, 5 driven by another process, 6 stopped by a budget, 130 interrupted."
)]
pub struct Cli {
    /// Work as if called in this folder.
    #[arg(short = 'C', long, global = true, value_name = "DIR", help_heading = GLOBAL)]
    pub directory: Option<PathBuf>,
    /// Print data as JSON on stdout.
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
    /// Answer questions with yes; never approves a gate or a changed spec.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub yes: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a plan, or go on with what is unfinished here.
    Run(RunArgs),
    /// Go on with a run where it stood.
    Resume(ResumeArgs),
    /// Watch a run that another process drives.
    Attach(RunName),
    /// Show where a run stands.
    Status(StatusArgs),
    /// Show the output of a run's steps.
    Log(LogArgs),
    /// List the runs of this project.
    Runs(RunsArgs),
    /// Show a run, or one phase, lane or step of it.
    Show(ShowArgs),
    /// Record a checkpoint.
    Checkpoint(CheckpointArgs),
    /// Approve a gate.
    Approve(GateArgs),
    /// Reject a gate.
    Reject(GateArgs),
    /// Try a failed step again, or run finished work again on purpose.
    Retry(RetryArgs),
    /// Leave a step out.
    Skip(SkipArgs),
    /// End a run: running steps are ended first.
    Abort(AbortArgs),
    /// Delete what the policy does not keep. This is final.
    Gc(GcArgs),
    /// Take lanes back to a checkpoint; it can be undone.
    Rollback(RollbackArgs),
    /// Undo the last rollback, restore, merge, skip or removal of a worktree.
    Undo(UndoArgs),
    /// Bring files of a checkpoint back; steps stay as they are.
    Restore(RestoreArgs),
    /// Show what differs between two checkpoints, or one and now.
    Diff(DiffArgs),
    /// Check ledger, leases, keepers, strays, disk and git.
    Doctor(DoctorArgs),
    /// Tell what a protocol file is and what it says; changes nothing.
    Inspect(InspectArgs),
    /// Take over a run that another tool recorded.
    Import(ImportArgs),
    /// Explain an error code.
    Explain(ExplainArgs),
    /// Print the JSON Schema of a document.
    Schema(SchemaArgs),
    /// Print the completion script for a shell.
    Completions(CompletionsArgs),
    /// Show a run that is killed and resumed, in a scratch repository.
    Demo(DemoArgs),
    /// Hold the children of a run (started by Piton itself).
    #[command(name = KEEPER, hide = true)]
    Keeper {
        /// The run's folder.
        dir: PathBuf,
        /// Anything the starter adds.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<std::ffi::OsString>,
    },
}

impl Command {
    /// Whether it only looks, decides about a run or ends one: broken settings don't keep it from
    /// that.
    pub fn needs_no_settings(&self) -> bool {
        matches!(
            self,
            Self::Status(_)
                | Self::Runs(_)
                | Self::Log(_)
                | Self::Show(_)
                | Self::Attach(_)
                | Self::Approve(_)
                | Self::Reject(_)
                | Self::Abort(_)
                | Self::Doctor(_)
        )
    }
}

/// How a run is driven; shared by `run` and `resume`.
#[derive(Clone, Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct DriveArgs {
    /// Run only this phase.
    #[arg(long, value_name = "PHASE")]
    pub phase: Option<String>,
    /// Run only lanes with this id (or PHASE/LANE).
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
    /// Run at most so many lanes at once.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Try each failed step so many times again.
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// Go on after a failure with what does not depend on it.
    #[arg(long)]
    pub keep_going: bool,
    /// Print what would run and what would not, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Let it run in the background.
    #[arg(long)]
    pub detach: bool,
    /// Take the run from the process that drives it.
    #[arg(long)]
    pub takeover: bool,
    /// Start lanes from this branch and merge them into it, instead of the current one.
    #[arg(long, value_name = "BRANCH")]
    pub base: Option<String>,
    /// Start lanes from uncommitted changes instead of refusing them.
    #[arg(long)]
    pub seed_dirty: bool,
    /// Accept that finished steps changed in the plan, which run again, or that open gates are gone.
    #[arg(long)]
    pub accept_plan: bool,
    /// Accept that the spec changed.
    #[arg(long)]
    pub accept_spec: bool,
    /// Accept gates that were ticked while steps were at work.
    #[arg(long)]
    pub accept_gates: bool,
}

impl DriveArgs {
    /// Takes `PHASE/LANE` apart, as which a lane may be named; the phase that was named otherwise if
    /// it is another one.
    pub fn split_lane(&mut self) -> Result<(), String> {
        let Some((phase, lane)) = self.lane.as_deref().and_then(|l| l.split_once('/')) else {
            return Ok(());
        };
        let (phase, lane) = (phase.to_owned(), lane.to_owned());
        match &self.phase {
            Some(other) if *other != phase => return Err(other.clone()),
            _ => {}
        }
        (self.phase, self.lane) = (Some(phase), Some(lane));
        Ok(())
    }
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The plan; without it, what is unfinished here, else `plan.toml`.
    pub plan: Option<PathBuf>,
    /// Go on with the unfinished run of this plan.
    #[arg(long, conflicts_with = "fresh")]
    pub resume: bool,
    /// Set an unfinished run of this plan aside and start anew.
    #[arg(long)]
    pub fresh: bool,
    /// Take the run of this plan back to a checkpoint instead.
    #[arg(long, conflicts_with_all = ["resume", "fresh"])]
    pub rollback: bool,
    /// With `--rollback`: the stage or checkpoint, instead of `before_lane_start`.
    #[arg(long, value_name = "STAGE|CHECKPOINT", requires = "rollback")]
    pub to: Option<String>,
    /// Whether tasks of a lane get worktrees of their own; `auto` where they can run at once.
    #[arg(long, value_enum, value_name = "WHEN")]
    pub task_worktrees: Option<TaskWorktrees>,
    /// When the phase is complete, say so with the document of the next one, as the last line.
    #[arg(long, value_name = "PLAN", requires = "plan", conflicts_with_all = ["rollback", "detach"])]
    pub next_phase: Option<PathBuf>,
    /// Name the run; with `--resume` and `--rollback`, the one that is meant.
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
    /// How it is driven.
    #[command(flatten)]
    pub drive: DriveArgs,
}

/// Whether tasks of a lane get worktrees of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TaskWorktrees {
    /// Never: they work in the lane's worktree, one after the other.
    Off,
    /// Those that can run at once and own different files.
    Auto,
    /// All of them.
    On,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A checkpoint, `now` or `base`.
    pub a: String,
    /// Another one; `now` without it.
    pub b: Option<String>,
    /// The run; without it, the newest.
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// The lane, where a checkpoint is of several.
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
    /// Print only which files differ, and how much.
    #[arg(long)]
    pub stat: bool,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run; without it, the newest unfinished one.
    pub run: Option<String>,
    /// How it is driven.
    #[command(flatten)]
    pub drive: DriveArgs,
}

/// Names a run.
#[derive(Debug, Args)]
pub struct RunName {
    /// The run; without it, the newest that fits.
    pub run: Option<String>,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The run; without it, the newest.
    pub run: Option<String>,
    /// Show it again and again until it ends.
    #[arg(short, long)]
    pub watch: bool,
}

/// Which stream of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Stream {
    /// Both, in the order they were written.
    #[default]
    Both,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Arguments of `log`.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// The run; without it, the newest.
    pub run: Option<String>,
    /// Go on printing as output comes.
    #[arg(short, long)]
    pub follow: bool,
    /// Only lanes with this id (or PHASE/LANE).
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
    /// Only steps with this id (or PHASE/LANE/STEP).
    #[arg(long, value_name = "STEP")]
    pub step: Option<String>,
    /// Only this attempt.
    #[arg(long, value_name = "N")]
    pub attempt: Option<u32>,
    /// Which stream.
    #[arg(long, value_enum, default_value_t)]
    pub stream: Stream,
}

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Show all runs, also those of long ago.
    #[arg(short, long)]
    pub all: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// `RUN[/PHASE[/LANE[/STEP]]]`, or a checkpoint; without it, the newest run.
    pub what: Option<String>,
    /// The lane, where a checkpoint is of several.
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
}

/// Arguments of `checkpoint`.
#[derive(Debug, Args)]
pub struct CheckpointArgs {
    /// The run; without it, the newest unfinished one.
    pub run: Option<String>,
    /// What to say of it.
    #[arg(short, long)]
    pub message: String,
}

/// Arguments of `approve` and `reject`.
#[derive(Debug, Args)]
pub struct GateArgs {
    /// The run, or the gate where the run is plain.
    pub run_or_gate: String,
    /// The gate, by its place (PHASE or PHASE/LANE) or its text.
    pub gate: Option<String>,
    /// What to say about it.
    #[arg(short, long, default_value = "")]
    pub message: String,
    /// Do not go on with the run, as is done on a terminal after an approval.
    #[arg(long)]
    pub no_resume: bool,
}

/// Arguments of `retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// The run, or the step where the run is plain.
    pub run_or_step: Option<String>,
    /// The step: PHASE/LANE/STEP, or an id that occurs once.
    pub step: Option<String>,
    /// Run it again although it is finished.
    #[arg(long)]
    pub again: bool,
    /// Run what comes after it again too.
    #[arg(long, requires = "again")]
    pub downstream: bool,
    /// Do not go on with the run, as is done on a terminal.
    #[arg(long)]
    pub no_resume: bool,
}

/// Arguments of `skip`.
#[derive(Debug, Args)]
pub struct SkipArgs {
    /// The run, or the step where the run is plain.
    pub run_or_step: Option<String>,
    /// The step: PHASE/LANE/STEP, or an id that occurs once.
    pub step: Option<String>,
    /// Let what needs it go on as if it had finished.
    #[arg(long)]
    pub satisfy: bool,
}

/// Arguments of `abort`.
#[derive(Debug, Args)]
pub struct AbortArgs {
    /// The run; without it, the newest unfinished one.
    pub run: Option<String>,
    /// End it for good: it can't be resumed.
    #[arg(long)]
    pub cancel: bool,
    /// What to say about it.
    #[arg(short, long, default_value = "")]
    pub message: String,
}

/// Arguments of `gc`.
#[derive(Debug, Args)]
pub struct GcArgs {
    /// Print what would go, and delete nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Keep so many of the newest runs.
    #[arg(long, value_name = "N")]
    pub keep_runs: Option<u32>,
    /// Keep runs younger than so many days.
    #[arg(long, value_name = "N")]
    pub keep_days: Option<u32>,
    /// Delete also what is left of runs that the ledger does not know.
    #[arg(long)]
    pub unknown: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Copy the live ledger, consistently, to a new file.
    #[arg(long, value_name = "FILE")]
    pub backup: Option<PathBuf>,
    /// Begin a new ledger where the old one was lost or damaged; what is there of it is kept.
    #[arg(long, conflicts_with = "backup")]
    pub new_ledger: bool,
    /// Go on with a ledger that is older than it was: a backup that you restored, say.
    #[arg(long, conflicts_with_all = ["backup", "new_ledger"])]
    pub restored: bool,
}

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// A phase document, checkpoints.json or a run log.
    pub file: PathBuf,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The file of the records, `checkpoints.json`.
    pub file: PathBuf,
    /// The plan of the run; without it, the document in `plans/` with the phase of the records.
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    /// The run, where the file has several.
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The code; without it, all are listed.
    pub code: Option<String>,
}

/// Which document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Document {
    /// `plan.toml`.
    Plan,
    /// `piton.toml`.
    Settings,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The document.
    pub document: Document,
}

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: Shell,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Keep the scratch repository.
    #[arg(long)]
    pub keep: bool,
}

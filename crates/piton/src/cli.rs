//! The command line and its help. The commands themselves are in `commands/`.

mod back;
mod brief;
mod deciding;
mod other_tools;
mod report;
mod session;
mod upkeep;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use back::{RestoreArgs, RollbackArgs, UndoArgs};
pub use brief::BriefArgs;
pub use deciding::{CheckArgs, GateArgs, InitArgs, RejectArgs, ReplanArgs};
pub use other_tools::{HookArgs, ImportArgs};
pub use report::{Format, ReportArgs};
pub use session::{
    EndArgs, SaveArgs, SessionArgs, SessionCommand, StartArgs, TaskArgs, TaskCommand, Trigger,
    Which,
};
pub use upkeep::{
    CompletionsArgs, DemoArgs, DoctorArgs, Document, ExplainArgs, GcArgs, InspectArgs, SchemaArgs,
    Shell,
};

/// The help section for options that every command has.
const GLOBAL: &str = "Global options";
/// The command that Piton itself starts.
pub const KEEPER: &str = "__keeper";

/// Run long work done by coding agents so that a crash costs no more than the step in flight.
#[derive(Debug, Parser)]
#[command(name = "piton", version, max_term_width = 100, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 complete, 1 failed, 2 usage or plan error, 3 waiting for a person, \
4 blocked, 5 driven by another process, 6 stopped by a budget, 130 interrupted."
)]
pub struct Cli {
    /// Run as if started in DIR.
    #[arg(short = 'C', long, global = true, value_name = "DIR", help_heading = GLOBAL)]
    pub directory: Option<PathBuf>,
    /// Print output as JSON.
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
    /// Answer yes to all questions; does not approve gates or a changed spec.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub yes: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a plan, or continue an unfinished run.
    Run(RunArgs),
    /// Continue a run where it stopped.
    Resume(ResumeArgs),
    /// Watch a run that another process drives.
    Attach(RunName),
    /// Check whether a plan can run here, and change nothing.
    Check(CheckArgs),
    /// Show the status of a run.
    Status(StatusArgs),
    /// Show the output of a run's steps.
    Log(LogArgs),
    /// List the runs of this project.
    Runs(RunsArgs),
    /// Show details of a run, phase, lane, step or checkpoint.
    Show(ShowArgs),
    /// Report the course of a run: time line, attempts, failures, decisions, costs.
    Report(ReportArgs),
    /// Sum up a run for an agent that continues it.
    Brief(BriefArgs),
    /// Record a checkpoint of a run.
    Checkpoint(CheckpointArgs),
    /// Approve a gate.
    Approve(GateArgs),
    /// Reject a gate, or ask for changes.
    Reject(RejectArgs),
    /// List everything that waits for a person, over all runs.
    Waiting,
    /// Set up agent programs here, or make the files of a new plan.
    Init(InitArgs),
    /// Answer a hook of an agent program: reads its JSON on standard input.
    Hook(HookArgs),
    /// Print the status line of an agent program: reads its JSON on standard input.
    Statusline,
    /// Serve agents over the Model Context Protocol, on standard input and output.
    Mcp,
    /// Retry a failed step, or run finished work again.
    Retry(RetryArgs),
    /// Plan a phase again.
    Replan(ReplanArgs),
    /// Skip a step.
    Skip(SkipArgs),
    /// End a run and its running steps.
    Abort(AbortArgs),
    /// Delete old runs for good, except those that the settings keep.
    Gc(GcArgs),
    /// Take lanes back to a checkpoint; can be undone.
    Rollback(RollbackArgs),
    /// Undo the last rollback, restore, merge, replan, skip or worktree removal.
    Undo(UndoArgs),
    /// Restore files of a checkpoint; steps do not change.
    Restore(RestoreArgs),
    /// Show the differences between two checkpoints, or one and now.
    Diff(DiffArgs),
    /// Check the ledger, leases, processes, disk and git.
    Doctor(DoctorArgs),
    /// Read a protocol file and show what Piton understands.
    Inspect(InspectArgs),
    /// Import a run that another tool recorded.
    Import(ImportArgs),
    /// Record what happens in an agent's session, and continue from its checkpoint.
    Session(SessionArgs),
    /// Explain an error code.
    Explain(ExplainArgs),
    /// Print the JSON Schema of a document.
    Schema(SchemaArgs),
    /// Print a shell completion script.
    Completions(CompletionsArgs),
    /// Watch a run being killed and resumed, in a temporary repository.
    Demo(DemoArgs),
    /// Hold the processes of a run (Piton starts this itself).
    #[command(name = KEEPER, hide = true)]
    Keeper {
        /// The run's folder.
        dir: PathBuf,
        /// Further arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<std::ffi::OsString>,
    },
}

impl Command {
    /// Whether it only looks at a run, decides about it or ends it, which works with broken
    /// settings too.
    pub fn needs_no_settings(&self) -> bool {
        matches!(
            self,
            Self::Status(_)
                | Self::Runs(_)
                | Self::Log(_)
                | Self::Show(_)
                | Self::Report(_)
                | Self::Brief(_)
                | Self::Attach(_)
                | Self::Approve(_)
                | Self::Reject(_)
                | Self::Abort(_)
                | Self::Doctor(_)
                | Self::Mcp
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
    /// Run only this lane (LANE or PHASE/LANE).
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
    /// Run at most N lanes at once.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Retry each failed step up to N times.
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// After a failure, continue with everything that does not depend on it.
    #[arg(long)]
    pub keep_going: bool,
    /// Print what would run, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Run in the background.
    #[arg(long)]
    pub detach: bool,
    /// Take over the run from the process that drives it.
    #[arg(long)]
    pub takeover: bool,
    /// Start lanes from this branch and merge into it (default: the current branch).
    #[arg(long, value_name = "BRANCH")]
    pub base: Option<String>,
    /// Start lanes with your uncommitted changes instead of refusing them.
    #[arg(long)]
    pub seed_dirty: bool,
    /// Accept a changed plan: run changed steps again, and drop open gates that it removed.
    #[arg(long)]
    pub accept_plan: bool,
    /// Accept a changed spec.
    #[arg(long)]
    pub accept_spec: bool,
    /// Accept outputs of finished steps that were changed from outside the run.
    #[arg(long)]
    pub accept_outputs: bool,
    /// Accept gates that were ticked while steps were running.
    #[arg(long)]
    pub accept_gates: bool,
    /// Replan once although the limits of replans are reached.
    #[arg(long)]
    pub force_replan: bool,
    /// Whether nothing is said about what to type next.
    #[arg(skip)]
    pub no_next: bool,
}

impl DriveArgs {
    /// Whether they say what only a person may: to push a driver out, or to accept what changed.
    pub fn is_decision(&self) -> bool {
        let accepts = self.accept_plan || self.accept_spec || self.accept_outputs;
        self.takeover || accepts || self.accept_gates || self.force_replan
    }
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The plan (default: the unfinished run here, else `plan.toml`).
    pub plan: Option<PathBuf>,
    /// Continue the unfinished run of this plan.
    #[arg(long, conflicts_with = "fresh")]
    pub resume: bool,
    /// Set the unfinished run of this plan aside and start a new one.
    #[arg(long)]
    pub fresh: bool,
    /// Take the run of this plan back to a checkpoint.
    #[arg(long, conflicts_with_all = ["resume", "fresh"])]
    pub rollback: bool,
    /// The stage or checkpoint for `--rollback` (default: `before_lane_start`).
    #[arg(long, value_name = "STAGE|CHECKPOINT", requires = "rollback")]
    pub to: Option<String>,
    /// When to give tasks of a lane their own worktrees.
    #[arg(long, value_enum, value_name = "WHEN")]
    pub task_worktrees: Option<TaskWorktrees>,
    /// Name this document of the next phase in the last line, if the phase is complete.
    #[arg(long, value_name = "PLAN", requires = "plan", conflicts_with_all = ["rollback", "detach"])]
    pub next_phase: Option<PathBuf>,
    /// Begin a roadmap with this phase: those before it are done.
    #[arg(long, value_name = "PHASE", requires = "plan")]
    pub start_phase: Option<String>,
    /// The id of the new run, or of the run to resume or roll back.
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
    /// How the run is driven.
    #[command(flatten)]
    pub drive: DriveArgs,
}

/// Whether tasks of a lane get their own worktrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TaskWorktrees {
    /// Never: tasks work in the lane's worktree, one after the other.
    Off,
    /// Tasks that can run at the same time and own different files.
    Auto,
    /// All tasks.
    On,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A checkpoint, `now` or `base`.
    pub a: String,
    /// Another one (default: `now`).
    pub b: Option<String>,
    /// The run (default: the newest).
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// The lane, if several lanes have the checkpoint.
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
    /// Print only which files differ and by how much.
    #[arg(long)]
    pub stat: bool,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run (default: the newest unfinished one).
    pub run: Option<String>,
    /// Print what continues the run when the machine starts, and do nothing else.
    #[arg(long)]
    pub at_boot: bool,
    /// How the run is driven.
    #[command(flatten)]
    pub drive: DriveArgs,
}

/// Names a run.
#[derive(Debug, Args)]
pub struct RunName {
    /// The run (default: the newest unfinished one).
    pub run: Option<String>,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The run (default: the newest).
    pub run: Option<String>,
    /// Update the output until the run ends.
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
    /// The run (default: the newest).
    pub run: Option<String>,
    /// Keep printing new output.
    #[arg(short, long)]
    pub follow: bool,
    /// Show only this lane (LANE or PHASE/LANE).
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
    /// Show only this step (STEP or PHASE/LANE/STEP).
    #[arg(long, value_name = "STEP")]
    pub step: Option<String>,
    /// Show only this attempt.
    #[arg(long, value_name = "N")]
    pub attempt: Option<u32>,
    /// The stream to show.
    #[arg(long, value_enum, default_value_t)]
    pub stream: Stream,
}

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Show all runs, not only recent ones.
    #[arg(short, long)]
    pub all: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// `RUN[/PHASE[/LANE[/STEP]]]` or a checkpoint (default: the newest run).
    pub what: Option<String>,
    /// The lane, if several lanes have the checkpoint.
    #[arg(long, value_name = "LANE")]
    pub lane: Option<String>,
    /// Show the prompt of a step as it was sent, or its template if it has not started.
    #[arg(long)]
    pub prompt: bool,
    /// The attempt for `--prompt` (default: the last one).
    #[arg(long, value_name = "N", requires = "prompt")]
    pub attempt: Option<u32>,
}

/// Arguments of `checkpoint`.
#[derive(Debug, Args)]
pub struct CheckpointArgs {
    /// The run (default: the newest unfinished one).
    pub run: Option<String>,
    /// A message for the checkpoint.
    #[arg(short, long)]
    pub message: String,
}

/// Arguments of `retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// The run, or the step if you do not name a run.
    pub run_or_step: Option<String>,
    /// The step: PHASE/LANE/STEP, or a unique id.
    pub step: Option<String>,
    /// Run the step again even if it is finished.
    #[arg(long)]
    pub again: bool,
    /// Also run everything after it again.
    #[arg(long, requires = "again")]
    pub downstream: bool,
    /// Only record the retry; do not continue the run.
    #[arg(long)]
    pub no_resume: bool,
}

/// Arguments of `skip`.
#[derive(Debug, Args)]
pub struct SkipArgs {
    /// The run, or the step if you do not name a run.
    pub run_or_step: Option<String>,
    /// The step: PHASE/LANE/STEP, or a unique id.
    pub step: Option<String>,
    /// Let steps that need it run as if it had finished.
    #[arg(long)]
    pub satisfy: bool,
}

/// Arguments of `abort`.
#[derive(Debug, Args)]
pub struct AbortArgs {
    /// The run (default: the newest unfinished one).
    pub run: Option<String>,
    /// End the run for good: it cannot be resumed.
    #[arg(long)]
    pub cancel: bool,
    /// A message to record.
    #[arg(short, long, default_value = "")]
    pub message: String,
}

//! The arguments of `session`.

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `session`.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SessionCommand,
}

/// What happens in a session.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Begin a session: print what a fresh agent needs to continue from the last checkpoint.
    Start(StartArgs),
    /// Record a checkpoint of the session and its files.
    Checkpoint(SaveArgs),
    /// Start or finish a task of the board.
    #[command(subcommand)]
    Task(TaskCommand),
    /// End a session: save the work in progress.
    End(EndArgs),
}

/// Which session, and how full its conversation is.
#[derive(Clone, Debug, Default, Args)]
pub struct Which {
    /// What the agent program calls the session (default: the last one here).
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Tokens of the conversation, and how many fit, such as `150000/200000`.
    #[arg(long, value_name = "USED[/WINDOW]")]
    pub tokens: Option<String>,
}

/// Arguments of `session start`.
#[derive(Clone, Debug, Default, Args)]
pub struct StartArgs {
    /// Which session.
    #[command(flatten)]
    pub which: Which,
    /// Resume although the protocol file says to ask first.
    #[arg(long)]
    pub resume: bool,
}

/// Arguments of `session checkpoint`.
#[derive(Clone, Debug, Default, Args)]
pub struct SaveArgs {
    /// Which session.
    #[command(flatten)]
    pub which: Which,
    /// Why (default: what `--tokens` asks for, else `manual`).
    #[arg(long, value_enum)]
    pub trigger: Option<Trigger>,
    /// A part that is left to do of the current task; may be given several times.
    #[arg(long = "part", value_name = "TITLE")]
    pub parts: Vec<String>,
    /// A message to record.
    #[arg(short, long, default_value = "")]
    pub message: String,
}

/// Why a checkpoint is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Trigger {
    /// The conversation is 75 % full.
    Warning,
    /// The conversation is 90 % full.
    Critical,
    /// The session ends.
    End,
    /// A task is finished.
    Task,
    /// Somebody asked for it.
    Manual,
}

/// What happens to a task.
#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Move a task to the tasks in progress.
    Start(TaskArgs),
    /// Move a task to the finished tasks, and write all collected changes.
    Finish(TaskArgs),
}

/// Arguments of `session task`.
#[derive(Clone, Debug, Args)]
pub struct TaskArgs {
    /// The task, such as T001.
    pub id: String,
    /// Which session.
    #[command(flatten)]
    pub which: Which,
}

/// Arguments of `session end`.
#[derive(Clone, Debug, Default, Args)]
pub struct EndArgs {
    /// Which session.
    #[command(flatten)]
    pub which: Which,
}

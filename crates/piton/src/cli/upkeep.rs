//! Arguments of commands that look after the project, or say something about Piton itself.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `gc`.
#[derive(Debug, Args)]
pub struct GcArgs {
    /// Print what would be deleted, and delete nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Keep the N newest finished runs.
    #[arg(long, value_name = "N")]
    pub keep_runs: Option<u32>,
    /// Keep finished runs for N days.
    #[arg(long, value_name = "N")]
    pub keep_days: Option<u32>,
    /// Also delete files of runs that are not in the ledger.
    #[arg(long)]
    pub unknown: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Copy the ledger to a new file; safe while runs are in progress.
    #[arg(long, value_name = "FILE")]
    pub backup: Option<PathBuf>,
    /// Start a new ledger if the old one is lost or damaged; the old file is kept.
    #[arg(long, conflicts_with = "backup")]
    pub new_ledger: bool,
    /// Accept a ledger that is older than it was, such as a restored backup.
    #[arg(long, conflicts_with_all = ["backup", "new_ledger"])]
    pub restored: bool,
}

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// A phase document, checkpoints.json or a run log.
    pub file: PathBuf,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The code (default: list all codes).
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
    /// Keep the temporary repository.
    #[arg(long)]
    pub keep: bool,
}

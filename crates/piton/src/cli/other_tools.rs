//! The arguments of commands that deal with other tools: their hooks, and the runs that they recorded.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `hook`.
#[derive(Debug, Args)]
pub struct HookArgs {
    /// The program that calls: `claude`, `codex`, `gemini` or `opencode`.
    pub program: String,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The `checkpoints.json` file with the records.
    pub file: PathBuf,
    /// The plan of the run (default: the document in `plans/` with the same phase).
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    /// The run to import, if the file has several.
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
}

//! The arguments of `brief`.

use clap::Args;
use piton_agents::brief::{LIMIT_DEFAULT, LIMIT_MAX, LIMIT_MIN};

/// Arguments of `brief`.
#[derive(Debug, Args)]
pub struct BriefArgs {
    /// The run (default: the newest).
    pub run: Option<String>,
    /// Use at most N tokens.
    #[arg(long, value_name = "N", default_value_t = LIMIT_DEFAULT, value_parser = tokens)]
    pub tokens: usize,
    /// Brief this agent: its own step comes first, and its way to count tokens is allowed for.
    #[arg(long = "for", value_name = "AGENT")]
    pub agent: Option<String>,
}

impl BriefArgs {
    /// The arguments for a run, with a limit if it is not the usual one.
    pub fn of(run: Option<String>, tokens: Option<usize>) -> Self {
        Self { run, tokens: tokens.unwrap_or(LIMIT_DEFAULT), agent: None }
    }
}

fn tokens(text: &str) -> Result<usize, String> {
    let within = |tokens: &usize| (LIMIT_MIN..=LIMIT_MAX).contains(tokens);
    text.parse()
        .ok()
        .filter(within)
        .ok_or_else(|| format!("not a number between {LIMIT_MIN} and {LIMIT_MAX}"))
}

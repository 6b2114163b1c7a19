//! Developer commands: `cargo xtask test | soak | bench | agents | report-check`.
//!
//! What a developer or a CI machine does with the whole workspace lives here rather than in shell
//! scripts: it is typed, it runs on a fresh clone with nothing but cargo, and the loops that kill
//! the real program are code like any other. Nothing here is part of what is shipped.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers' terminals"
)]

mod agents;
mod bench;
mod report_check;
mod rng;
mod shell;
mod soak;
mod test;
mod tools;

use std::process::ExitCode;

use clap::Parser as _;

/// Developer commands.
#[derive(clap::Parser)]
#[command(bin_name = "cargo xtask", arg_required_else_help = true)]
enum Command {
    /// Check formatting, lints, docs, tests, doctests and a sample of every soak loop
    Test,
    /// Kill the release program at random moments, and look at what is left
    Soak(soak::SoakArgs),
    /// Measure floors, peers and ours side by side
    Bench(bench::BenchArgs),
    /// Measure the HTML report of a run with 40 lanes in a headless Chromium
    ReportCheck(report_check::ReportCheckArgs),
    /// Check the adapters against the real agent programs and a scripted model API
    Agents(agents::AgentsArgs),
    #[command(name = soak::READER_COMMAND, hide = true)]
    Read,
    #[command(name = bench::ROLE_COMMAND, hide = true)]
    Role(bench::RoleArgs),
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Test => test::run(),
        Command::Soak(args) => soak::command(args),
        Command::Bench(args) => bench::command(&args),
        Command::ReportCheck(args) => report_check::command(args),
        Command::Agents(args) => agents::command(&args),
        Command::Read => soak::read(),
        Command::Role(args) => bench::role(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Said) => ExitCode::FAILURE,
        Err(Failure::Other(message)) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Why a command ends with something other than success.
#[derive(Debug)]
enum Failure {
    /// What failed was already shown.
    Said,
    /// Anything else, in words.
    Other(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// The result of a command.
type Result<T> = std::result::Result<T, Failure>;

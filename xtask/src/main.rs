//! Developer commands: `cargo xtask test | soak | bench`.
//!
//! What a developer or a CI machine does with the whole workspace lives here rather than in shell
//! scripts: it is typed, it runs on a fresh clone with nothing but cargo, and the loops that kill
//! the real program are code like any other. Nothing here is part of what is shipped.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers' terminals"
)]

mod args;
mod bench;
mod rng;
mod shell;
mod soak;
mod test;
mod tools;

use std::process::ExitCode;

use args::Args;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test                     formatting, lints, docs, tests, doctests and a sample of every soak loop
  soak [NAME] [options]    kill the release program at random moments, and look at what is left
       --rounds N          so many rounds of each loop instead of the full number
       --sample            a few seconds of each loop
       --seed S            the random moments of an earlier run
       --keep-failed       leave the scratch folders of failed rounds
       --piton FILE        this program instead of a fresh release build
  bench [options]          floors, peers and ours, measured side by side
       --only ROWS         only these rows, of a to h (as in `ac`)
       --rounds N          so many rounds for each median
       --peers             run LangGraph and DBOS beside it (they are installed below target/)
       --json              results as JSON on stdout
       --check             exit 1 when a ratio is over its limit
";

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let command = if words.is_empty() { String::new() } else { words.remove(0) };
    let done = match command.as_str() {
        "test" => Args::read(&words, &[], &[], 0).and_then(|_| test::run()),
        "soak" => soak::command(&words),
        "bench" => bench::command(&words),
        soak::READER_COMMAND => soak::read(),
        bench::ROLE_COMMAND => bench::role(&words),
        "" | "help" | "-h" | "--help" => {
            print!("{USAGE}");
            return if command.is_empty() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
        unknown => Err(Failure::Usage(format!("there is no command `{unknown}`"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => {
            eprint!("error: {message}\n\n{USAGE}");
            ExitCode::from(2)
        }
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
    /// The words on the command line make no sense.
    Usage(String),
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

/// The result of a command.
type Result<T> = std::result::Result<T, Failure>;

//! The `piton` program as a library: reads the command line, finds the project, calls the command.
//!
//! Which protocols there are is said by whoever calls it.

mod cli;
mod commands;
mod context;
mod drive;
mod environment;
mod error;
mod plan_file;
mod ui;

use piton_core::remedy;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;
use piton_protocols::Table;
use piton_view::answers::Answer;

use crate::context::Context;
use crate::error::{CommandError, Result};

/// Runs the program with a table of protocols.
pub fn main_with(table: &'static Table) -> ExitCode {
    let clock = environment::clock();
    if let Some(at) = clock.and_then(|text| piton_protocols::time::read(&text)) {
        piton_world::fix_clock(at);
    }
    // Called between any two operations of an agent: before anything else that takes time.
    if let Some(code) = commands::hook::called(table) {
        return code;
    }
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let lines = error.to_string();
            let why = lines.lines().next().unwrap_or_default().trim_start_matches("error: ");
            return commands::hook::misread(why).unwrap_or_else(|| usage_error(&error));
        }
        Err(error) => return usage_error(&error),
    };
    let json = cli.json;
    match start(table, cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui::error(&error, json);
            ExitCode::from(error.kind.exit_code())
        }
    }
}

/// Help, the version, or what is wrong with the command line: in words, or as an object where one
/// was asked for.
fn usage_error(error: &clap::Error) -> ExitCode {
    // What Piton starts itself is no command for people; clap hides it from its help only.
    let hidden = format!(", {}", cli::KEEPER);
    let json = environment::asks_for_json();
    if json && error.kind() == clap::error::ErrorKind::DisplayVersion {
        ui::data_json(&Answer::Version(env!("CARGO_PKG_VERSION")));
        return ExitCode::SUCCESS;
    }
    if !error.use_stderr() || !json {
        if error.kind() == clap::error::ErrorKind::MissingSubcommand {
            let text = error.render();
            let text = if ui::stderr().color { text.ansi().to_string() } else { text.to_string() };
            ui::say_as_is(text.replace(&hidden, "").trim_end());
        } else {
            // A terminal that is gone is no reason to say more.
            let _ = error.print();
        }
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    let text = error.to_string().replace(&hidden, "");
    let message = text.trim().trim_start_matches("error: ");
    let error = CommandError::usage("usage", message)
        .hint(remedy![Piton "--help", Words " lists all commands"]);
    ui::error(&error, true);
    ExitCode::from(error.kind.exit_code())
}

fn start(table: &'static Table, cli: cli::Cli) -> Result<()> {
    let (json, lenient) = (cli.json, cli.command.needs_no_settings());
    let command = cli.command.name();
    // Made only for commands that need it: others work where there is no folder any more.
    let context = || {
        let cwd = folder(cli.directory)?;
        let mut context = Context::new(table, &cwd, (json, cli.yes), lenient)?;
        context.command = command;
        Ok(context)
    };
    commands::dispatch(table, json, context, cli.command)
}

/// The folder that is named, or that the command was called in.
fn folder(directory: Option<PathBuf>) -> Result<PathBuf> {
    let here = || {
        environment::current_folder().map_err(|e| {
            CommandError::usage("directory", format!("the current folder cannot be used: {e}"))
                .hint("go to an existing folder, or name one with `-C DIR`")
        })
    };
    let Some(dir) = directory else { return here() };
    ui::works_in(&dir);
    dir.canonicalize()
        .map_err(|e| CommandError::usage("directory", format!("{}: {e}", dir.display())))
}

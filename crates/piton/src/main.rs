//! The `piton` program: reads the command line, finds the project, calls the command.

mod cli;
mod commands;
mod context;
mod error;
mod plan_file;
mod session;
mod ui;
mod world;

use std::process::ExitCode;

use clap::Parser as _;

use crate::context::Context;
use crate::error::{CommandError, Result};

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let json = cli.json;
    match start(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui::error(&error, json);
            ExitCode::from(error.kind.exit_code())
        }
    }
}

fn start(cli: cli::Cli) -> Result<()> {
    let here = || {
        std::env::current_dir()
            .map_err(|e| CommandError::usage("directory", format!("no current folder: {e}")))
    };
    let cwd = match cli.directory {
        Some(dir) => dir
            .canonicalize()
            .map_err(|e| CommandError::usage("directory", format!("{}: {e}", dir.display())))?,
        None => here()?,
    };
    let context = Context::new(&cwd, cli.json, cli.yes)?;
    commands::dispatch(&context, cli.command)
}

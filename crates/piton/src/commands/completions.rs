//! `piton completions`: the completion script for a shell, made from the command line's own types.

use clap::CommandFactory as _;
use clap_complete::Shell as Generator;
use piton_view::answers::Answer;

use crate::cli::{Cli, CompletionsArgs, Shell};
use crate::error::Result;
use crate::ui;

/// Prints the script.
#[expect(clippy::unnecessary_wraps, reason = "all commands have one form")]
pub fn run(as_json: bool, args: &CompletionsArgs) -> Result<()> {
    let script = script(args.shell);
    ui::show(as_json, &Answer::Script(&script), || script.clone());
    Ok(())
}

fn script(shell: Shell) -> String {
    let generator = match shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut offered(), "piton", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The command line without what people don't type; generators would offer it all the same.
fn offered() -> clap::Command {
    let full = Cli::command();
    let commands: Vec<_> = full.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
    clap::Command::new("piton").args(full.get_arguments().cloned()).subcommands(commands)
}

//! What only a person may do: the commands that decide, end, delete or take over.
//!
//! A step that gives such a command is refused, and nothing that an agent reads names one as the way
//! out. Both ask here, so that neither forgets a command that the other knows.

use crate::refusal::{Part, Remedy};

/// Commands of ours that only a person may give.
pub const COMMANDS: &[&str] =
    &["abort", "approve", "gc", "reject", "restore", "retry", "rollback", "skip", "undo"];

/// Options of ours that make a command one of those.
pub const OPTIONS: &[&str] = &[
    "--accept-gates",
    "--accept-outputs",
    "--accept-plan",
    "--accept-spec",
    "--force",
    "--force-replan",
    "--fresh",
    "--new-ledger",
    "--restored",
    "--rollback",
    "--takeover",
    "--unknown",
];

/// Programs that end or delete.
const PROGRAMS: &[&str] = &["kill", "mv", "rm"];

/// Commands of git that delete, or change what is checked out.
const GIT: &[&str] = &[
    "branch",
    "checkout",
    "clean",
    "gc",
    "prune",
    "reset",
    "restore",
    "stash",
    "switch",
    "update-ref",
    "worktree",
];

/// Whether the arguments of a command of ours are only for a person.
pub fn is_command(arguments: &str) -> bool {
    let mut words = arguments.split_whitespace();
    words.clone().next().is_some_and(|word| COMMANDS.contains(&word))
        || words.any(|word| OPTIONS.contains(&word))
}

/// Whether a command of somebody else ends or deletes something.
fn is_shell(command: &str) -> bool {
    // `git -C DIR` goes before the command of git.
    let mut words = command.split_whitespace().skip_while(|word| word.contains('='));
    match words.next() {
        Some("git") => words.any(|word| GIT.contains(&word)),
        Some(program) => PROGRAMS.contains(&program),
        None => false,
    }
}

/// Whether something to do is only for a person.
pub fn is_remedy(remedy: &Remedy) -> bool {
    remedy.0.iter().any(|part| match part {
        Part::Words(_) => false,
        Part::Piton(arguments) => is_command(arguments),
        Part::Option(option) => option.split_whitespace().any(|word| OPTIONS.contains(&word)),
        Part::Shell(command) => is_shell(command),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remedy;

    /// Lost: an agent that reads an error is told to delete what is in its way.
    #[test]
    fn what_decides_ends_or_deletes_is_for_people() {
        for for_people in [
            remedy![Words "or start over with ", Piton "run plan.toml --fresh"],
            remedy![Piton "approve r P2"],
            remedy![Piton "doctor --new-ledger"],
            remedy![Words "continue with ", Option "--accept-plan"],
            remedy![Words "then ", Shell "git -C base reset --hard"],
            remedy![Shell "kill -9 42"],
        ] {
            assert!(is_remedy(&for_people), "{for_people}");
        }
        for harmless in [
            remedy![Piton "status r"],
            remedy![Piton "resume r"],
            remedy![Words "run git reset by hand"],
            remedy![Shell "git status"],
            remedy![Shell "cd there"],
        ] {
            assert!(!is_remedy(&harmless), "{harmless}");
        }
    }
}

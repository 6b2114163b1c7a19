//! Commands to be typed, as they are true where the person stands: with the `-C` they gave.
//!
//! Whoever words a message writes `piton resume`; here the folder is put into it. Only what is meant
//! to be typed is changed: a command of ours in backquotes, or alone on its side of a line. Output
//! of steps and commands of plans do not come here.

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

use clap::CommandFactory as _;
use piton_formats::template::quote_for_shell;

/// What the commands are called by.
const NAME: &str = "piton ";

/// What may stand before a command that is to be typed; so may the beginning of a line.
const BEFORE: [&str; 7] = ["`", "(", "&& ", ": ", "  ", "then ", "⏸ "];

static ELSEWHERE: OnceLock<Elsewhere> = OnceLock::new();

struct Elsewhere {
    /// The option, for a shell.
    option: String,
    /// The names of all commands.
    commands: Vec<String>,
}

impl Elsewhere {
    fn new(dir: &Path) -> Self {
        let cli = crate::cli::Cli::command();
        let commands = cli.get_subcommands().map(|c| c.get_name().to_owned()).collect();
        Self { option: format!("-C {} ", quote_for_shell(&dir.to_string_lossy())), commands }
    }

    fn told(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = 0;
        for (at, _) in text.match_indices(NAME) {
            let after = at + NAME.len();
            let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..at];
            let word = text[after..].split(|c: char| !c.is_ascii_lowercase()).next();
            let is_command = word.is_some_and(|word| self.commands.iter().any(|c| c == word));
            let is_meant = line.is_empty() || BEFORE.iter().any(|before| line.ends_with(before));
            // It goes to its folder by itself.
            let is_there = line.ends_with("&& ") && line.contains("cd ");
            if is_command && is_meant && !is_there {
                out.push_str(&text[rest..after]);
                out.push_str(&self.option);
                rest = after;
            }
        }
        out.push_str(&text[rest..]);
        out
    }
}

/// Notes that the person works in another folder than where they stand.
pub fn works_in(dir: &Path) {
    // Said once, by the command line.
    let _ = ELSEWHERE.set(Elsewhere::new(dir));
}

/// A text with the commands in it as they are to be typed.
pub fn told(text: &str) -> Cow<'_, str> {
    ELSEWHERE.get().map_or(Cow::Borrowed(text), |elsewhere| Cow::Owned(elsewhere.told(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_get_the_folder_and_nothing_else_changes() {
        let elsewhere = Elsewhere::new(Path::new("../my project"));
        for (text, told) in [
            ("piton resume r", "piton -C '../my project' resume r"),
            ("then `piton resume`", "then `piton -C '../my project' resume`"),
            (
                "  next: piton retry r P/a && piton resume r\n    or: piton abort r",
                "  next: piton -C '../my project' retry r P/a && piton -C '../my project' resume r\n    \
                 or: piton -C '../my project' abort r",
            ),
            ("raise it, then piton resume r", "raise it, then piton -C '../my project' resume r"),
            ("(piton show r/P lists them)", "(piton -C '../my project' show r/P lists them)"),
        ] {
            assert_eq!(elsewhere.told(text), told);
            assert_eq!(elsewhere.told(told), told, "again is the same");
        }
        for text in [
            "cd /srv/project && piton run plan.toml --resume",
            "only a newer piton knows",
            "`piton --help` lists all commands",
            "`piton.toml` is not used",
            "the piton resume",
        ] {
            assert_eq!(elsewhere.told(text), text);
        }
    }
}

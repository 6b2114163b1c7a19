//! Commands as text that a person can paste into a shell: words quoted, several commands as one.
//!
//! Nothing here is run: it is what views and records say was run.

/// Characters of which a word may consist that means itself to every shell.
const PLAIN: &str = "_./:=,@%+-";
/// Words that change the shell they are said in; each command had a shell of its own.
const CHANGING: [&str; 20] = [
    ".", "alias", "break", "cd", "continue", "eval", "exec", "exit", "export", "hash", "local",
    "read", "readonly", "return", "set", "shift", "source", "trap", "umask", "unset",
];

/// A word as the shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Several commands as one: each as if it had been typed alone, in the same folder; the first that
/// fails is the failure.
pub fn joined<S: AsRef<str>>(commands: &[S]) -> String {
    match commands {
        [one] => one.as_ref().to_owned(),
        many => many.iter().map(|c| grouped(c.as_ref())).collect::<Vec<_>>().join(" && "),
    }
}

/// A command that stands beside others.
fn grouped(command: &str) -> String {
    if command.contains(['#', '\n']) || command.ends_with('\\') {
        // The bracket has a line of its own: a comment or a text that goes on would swallow it.
        return format!("( {command}\n)");
    }
    let first = command.split_whitespace().next().unwrap_or_default();
    let alone = command.contains([';', '&', '|', '(', ')', '`', '!'])
        || CHANGING.contains(&first)
        || first.contains('=');
    if alone { format!("( {command} )") } else { command.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: a command pasted from a record would be another than the one that ran.
    #[test]
    fn joined_commands_mean_what_each_means_alone() {
        assert_eq!(joined(&["a || b; c # d"]), "a || b; c # d", "one is as it was written");
        assert_eq!(joined(&["make a", "make -C 'x y' b"]), "make a && make -C 'x y' b");
        assert_eq!(joined(&["a || b", "c; d", "e"]), "( a || b ) && ( c; d ) && e");
        assert_eq!(joined(&["a # why", "b\nc"]), "( a # why\n) && ( b\nc\n)");
        assert_eq!(joined(&["cd x", "A=1", "b \\"]), "( cd x ) && ( A=1 ) && ( b \\\n)");
        assert_eq!(joined::<&str>(&[]), "");
    }

    #[test]
    fn words_are_quoted_where_the_shell_would_read_something_else() {
        assert_eq!(quoted("--out=a/b.txt"), "--out=a/b.txt");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!((quoted("a b"), quoted("")), ("'a b'".to_owned(), "''".to_owned()));
    }
}

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
    // No shell takes a NUL, and no name of a file or branch has one.
    format!("'{}'", word.replace('\0', "").replace('\'', "'\\''"))
}

/// A git command for a person to paste, in a folder or where they stand. Each word is quoted: names may
/// come from files of others.
pub fn git(dir: Option<&str>, words: &[&str]) -> String {
    let at = dir.into_iter().flat_map(|dir| ["-C", dir]);
    let words = ["git"].into_iter().chain(at).chain(words.iter().copied());
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// A command with the values of variables in their place, so that it means the same where those are not
/// set. Between single quotes nothing is a variable. A value that is not a plain word is set before it.
pub fn filled(command: &str, values: &[(String, String)]) -> String {
    let (mut out, mut rest) = (String::new(), command);
    let (mut single, mut double) = (false, false);
    let mut before: Vec<String> = Vec::new();
    while let Some(c) = rest.chars().next() {
        let found = if c == '$' && !single { variable(&rest[1..]) } else { None };
        if let Some((name, length)) = found
            && let Some((_, value)) = values.iter().find(|(known, _)| known == name)
        {
            let (plain, whole) = (quoted(value) == *value, &rest[..=length]);
            if !plain {
                let set = format!("{name}={}", quoted(value));
                if !before.contains(&set) {
                    before.push(set);
                }
            }
            out.push_str(if plain { value } else { whole });
            rest = &rest[whole.len()..];
            continue;
        }
        let mut taken = c.len_utf8();
        match c {
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            // The character that follows is taken as it is.
            '\\' if !single => taken += rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => {}
        }
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    if before.is_empty() { out } else { format!("export {}; {out}", before.join(" ")) }
}

/// The variable that a text after `$` begins with, and how much of it that is.
fn variable(text: &str) -> Option<(&str, usize)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(braced) = text.strip_prefix('{') {
        let name = &braced[..braced.find('}')?];
        return name.chars().all(is_part).then_some((name, name.len() + 2));
    }
    let length = text.find(|c| !is_part(c)).unwrap_or(text.len());
    (length > 0).then_some((&text[..length], length))
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

    /// Lost: a command from a record would be called without what it is about, or with something else.
    #[test]
    fn variables_are_told_by_their_values() {
        let value = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let values = [value("BRANCH", "lane/P1"), value("BASE", "my base's"), value("NONE", "")];
        let with_values = |command: &str| filled(command, &values);
        assert_eq!(with_values("gh --head \"$BRANCH\" -x"), "gh --head \"lane/P1\" -x");
        assert_eq!(
            with_values("a ${BRANCH}_x $BRANCHES $OTHER $? $"),
            "a lane/P1_x $BRANCHES $OTHER $? $"
        );
        assert_eq!(with_values("a '$BRANCH' \"it's $BRANCH\""), "a '$BRANCH' \"it's lane/P1\"");
        assert_eq!(with_values("a \\$BRANCH \\'$BRANCH"), "a \\$BRANCH \\'lane/P1");
        let base = "export BASE='my base'\\''s'; a \"$BASE\" \"${BASE}\" lane/P1";
        assert_eq!(with_values("a \"$BASE\" \"${BASE}\" $BRANCH"), base);
        assert_eq!(
            with_values("a \"$NONE\" ${BRANCH:-x} ${"),
            "export NONE=''; a \"$NONE\" ${BRANCH:-x} ${"
        );
        assert_eq!(with_values("ü \"$BRANCH\" \\ü"), "ü \"lane/P1\" \\ü");
    }

    #[test]
    fn words_are_quoted_where_the_shell_would_read_something_else() {
        assert_eq!(quoted("--out=a/b.txt"), "--out=a/b.txt");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!((quoted("a b"), quoted("")), ("'a b'".to_owned(), "''".to_owned()));
    }
}

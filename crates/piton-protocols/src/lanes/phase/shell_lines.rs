//! What lines of shell have to do with each other, and what of them a person has to fill in.
//!
//! Not a parser of a shell: it looks at quotes, comments and words. In doubt lines belong together, for
//! a script means the same as its lines, and lines of a script do not mean the same alone.

/// Commands that affect the lines after them.
const LASTING: [&str; 10] =
    ["pushd", "popd", "export", "unset", "source", ".", "set", "alias", "trap", "shopt"];
/// Commands that change the folder; behind one that does, others of the same line use it up.
const MOVING: &str = "cd";
/// Words that begin a construct over several lines.
const OPENERS: [&str; 6] = ["for", "while", "until", "if", "case", "function"];
/// What is about a command that was begun before.
const BEGUN: [&str; 5] = ["$!", "$?", "%1", "${PIPESTATUS", "$PIPESTATUS"];
/// Words that may stand before an assignment.
const DECLARING: [&str; 5] = ["export", "declare", "local", "readonly", "typeset"];
/// Marks that stand for something that is left out.
const LEFT_OUT: [&str; 2] = ["...", "…"];

/// Tells whether lines are one script: one of them ends on another, or affects another.
pub(super) fn are_one(lines: &[&str]) -> bool {
    let alone = |line: &&str| !spans_lines(line) && !lasts(line) && !is_background(line);
    !lines.iter().all(alone) || shares_a_variable(lines)
}

/// Tells whether a line begins something that ends on another line.
fn spans_lines(text: &str) -> bool {
    let first = text.split([' ', ';']).next().unwrap_or_default();
    let closed = ["done", "fi", "esac", "}"].iter().any(|end| text.ends_with(end));
    let odd = |quote: char| text.matches(quote).count() % 2 == 1;
    (OPENERS.contains(&first) && !closed)
        || text.contains("<<")
        || text.ends_with('{')
        || text.ends_with('(')
        // A quote that stays open, apostrophes in words of the other kind of quotes aside.
        || (odd('"') && !text.contains('\''))
        || (odd('\'') && !text.contains('"'))
}

/// Tells whether a line affects those after it: it changes the folder, a setting of the shell or a
/// variable, defines a function, or is about a command of a line before.
fn lasts(text: &str) -> bool {
    let code = unquoted(text);
    let mut words = code.split_whitespace();
    let first = words.next().unwrap_or_default();
    let alone = !code.contains("&&") && !code.contains("||") && !code.contains(';');
    let back = matches!(words.next(), Some(".." | "-" | "../.."));
    (first == MOVING && (alone || back))
        || LASTING.contains(&first)
        || (alone && name_set_by(first).is_some_and(|_| code.split_whitespace().count() == 1))
        || code.contains("() {")
        || code.contains("(){")
        || BEGUN.iter().any(|begun| text.contains(begun))
}

/// Tells whether a line leaves a command running: it has a single `&` outside of quotes.
fn is_background(text: &str) -> bool {
    let code: Vec<char> = unquoted(text).chars().collect();
    let at = |place: Option<usize>| place.and_then(|at| code.get(at)).copied().unwrap_or(' ');
    code.iter().enumerate().any(|(place, c)| {
        let (before, after) = (at(place.checked_sub(1)), at(Some(place + 1)));
        *c == '&' && !matches!(before, '&' | '>' | '<' | '|' | '\\') && !matches!(after, '&' | '>')
    })
}

/// Tells whether a line uses a variable that another one sets.
fn shares_a_variable(lines: &[&str]) -> bool {
    lines.iter().enumerate().any(|(at, line)| {
        let code = unquoted(line).replace(['(', ')', '|', '&', '{'], ";");
        let settings = code.split(';').filter_map(|part| {
            let mut words = part.split_whitespace().filter(|word| !DECLARING.contains(word));
            words.next().and_then(name_set_by).map(str::to_owned)
        });
        let settings: Vec<String> = settings.collect();
        let later = lines.get(at + 1..).unwrap_or_default();
        settings.iter().any(|name| later.iter().any(|line| uses(line, name)))
    })
}

fn uses(line: &str, name: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let plain = line.split('$').skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        rest.trim_start_matches(['#', '!']).strip_prefix(name)
    });
    plain.into_iter().any(ends)
}

/// The name that `NAME=value` sets.
fn name_set_by(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(name)
}

/// Tells whether a command has something in it that is to be filled in: `<run-id>`, or a word `...`.
///
/// Within quotes and in the text of a `<<` such marks mean themselves.
pub(super) fn has_placeholder(command: &str) -> bool {
    let code = unquoted(&without_texts(command));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ');
    let named = code.split('<').skip(1).any(|after| {
        let end = after.find(|c: char| !is_name(c)).unwrap_or(after.len());
        let is_phrase = !after[..end].ends_with(' ');
        let closed = after[end..].starts_with('>');
        is_phrase && closed && after.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    named || code.split_whitespace().any(|word| LEFT_OUT.contains(&word))
}

/// A command without the texts that it gives to programs by `<<`.
fn without_texts(command: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut until: Option<&str> = None;
    for line in command.lines() {
        match until {
            Some(end) if line.trim() == end => until = None,
            Some(_) => {}
            None => {
                kept.push(line);
                let mark =
                    line.split_once("<<").map(|(_, rest)| rest.trim_start_matches(['-', ' ']));
                let mark = mark.filter(|rest| !rest.starts_with('<'));
                let mark = mark.map(|rest| rest.trim_start_matches(['\'', '"', '\\']));
                let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
                until = mark.and_then(|rest| rest.split(ends).next()).filter(|end| !end.is_empty());
            }
        }
    }
    kept.join("\n")
}

/// A text without what is in quotes or in comments.
fn unquoted(text: &str) -> String {
    let mut bare = String::new();
    let mut quote: Option<char> = None;
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match quote {
            Some('#') => {
                if c == '\n' {
                    quote = None;
                    bare.push(c);
                }
            }
            Some(open) => {
                if c == '\\' && open == '"' {
                    letters.next();
                } else if c == open {
                    quote = None;
                    bare.push(c);
                }
            }
            None => {
                let begins = bare.is_empty() || bare.ends_with(char::is_whitespace);
                match c {
                    '#' if begins => quote = Some('#'),
                    '"' | '\'' => {
                        quote = Some(c);
                        bare.push(c);
                    }
                    '\\' => {
                        bare.push(c);
                        bare.extend(letters.next().filter(|next| !matches!(next, '"' | '\'')));
                    }
                    _ => bare.push(c),
                }
            }
        }
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: a server would be ended before what asks it, and a variable be empty.
    #[test]
    fn lines_that_affect_each_other_are_one_script() {
        for lines in [
            ["serve & PID=$!", "kill $PID"].as_slice(),
            &["serve &", "curl x"],
            &["serve > log 2>&1 &", "curl x"],
            &["export A=1; make", "make b"],
            &["A=$(x); test -n \"$A\"", "y \"${A}\""],
            &["cd web && make", "cd .. && make"],
            &["f() { make; }", "f"],
            &["set -euo pipefail; make", "make b"],
            &["source .venv/bin/activate && x", "y"],
            &["make", "test $? -eq 0"],
            &["ID=$(gh run list)", "gh run view $ID"],
            &["python - <<'PY'", "x = 1", "PY"],
        ] {
            assert!(are_one(lines), "{lines:?}");
        }
        for lines in [
            ["make && make test", "x"].as_slice(),
            &["make > log 2>&1", "make &> log", "make |& tee log"],
            &["curl 'x?a=1&b=2'", "curl \"x?a=1&b=2\""],
            &["make # this & that", "x"],
            &["cd web && make", "make"],
            &["A=1 make", "test $B"],
            &["x \\& y", "z"],
        ] {
            assert!(!are_one(lines), "{lines:?}");
        }
    }

    #[test]
    fn a_placeholder_stands_outside_of_quotes_and_texts() {
        for text in ["gh run watch <run-id> --x", "make ...", "x <the name> y", "a\nb <id>"] {
            assert!(has_placeholder(text), "{text}");
        }
        for text in [
            "grep '<title>' a.html",
            "go test ./...",
            "sort <a.txt >b.txt",
            "diff <(a) <(b)",
            "cat <<EOF\n<html>\nEOF\nmake",
            "make # <id>",
        ] {
            assert!(!has_placeholder(text), "{text}");
        }
    }
}

//! What of a text is a command for a shell, and what is prose for an agent and a person.
//!
//! A code span is a command if it has the form of one and stands where a command stands: at the
//! beginning, after a label, or in a list of others. A text without code spans is a command only if it
//! begins with a well-known program. In doubt it is prose: nothing is given to a shell by guess.

use std::ops::Range;
use std::path::Path;

use piton_formats::markdown::inline::{code_spans, is_none, plain, without_brackets};

/// What a text asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Commands for a shell, in order.
    pub(super) commands: Vec<String>,
    /// The text, if more is asked for than the commands.
    pub(super) prose: Option<String>,
}

/// Programs that begin a command where nothing marks it as one.
const PROGRAMS: [&str; 78] = [
    "actionlint",
    "ansible",
    "awk",
    "bash",
    "bats",
    "bazel",
    "black",
    "bun",
    "bundle",
    "cargo",
    "cat",
    "cd",
    "cmake",
    "composer",
    "ctest",
    "curl",
    "deno",
    "diff",
    "docker",
    "dotnet",
    "echo",
    "env",
    "eslint",
    "exit",
    "false",
    "flake8",
    "gh",
    "git",
    "go",
    "golangci-lint",
    "gradle",
    "grep",
    "hadolint",
    "jest",
    "jq",
    "just",
    "kubectl",
    "ls",
    "make",
    "markdownlint",
    "mix",
    "mkdocs",
    "mvn",
    "mypy",
    "node",
    "nosetests",
    "nox",
    "npm",
    "npx",
    "php",
    "phpunit",
    "pip",
    "pnpm",
    "poetry",
    "pre-commit",
    "prettier",
    "pyright",
    "pytest",
    "python",
    "python3",
    "rg",
    "rspec",
    "rubocop",
    "ruff",
    "sbt",
    "sh",
    "shellcheck",
    "sleep",
    "terraform",
    "test",
    "tox",
    "true",
    "tsc",
    "uv",
    "vitest",
    "xcodebuild",
    "yamllint",
    "yarn",
];
/// Words of sentences: with one of them, outside of quotes, a text is prose.
const SENTENCE: [&str; 8] = ["are", "is", "must", "otherwise", "should", "that", "the", "which"];
/// The same for a text that nothing marks as a command.
const SENTENCE_BARE: [&str; 13] = [
    "an", "and", "as", "be", "by", "confirm", "ensure", "its", "or", "sure", "until", "when",
    "with",
];
/// Words between two commands of a list.
const BETWEEN: [&str; 5] = ["", "and", "then", "and then", "followed by"];
/// Words before a command.
const BEFORE: [&str; 4] = ["run", "execute", "command", "re-run"];
/// Words after a command that say how it ends.
const ENDINGS: [&str; 11] = [
    "exits",
    "exit",
    "passes",
    "pass",
    "succeeds",
    "returns",
    "expect",
    "expected",
    "is green",
    "is clean",
    "must pass",
];
/// Marks after a command.
const MARKS: [char; 12] = ['(', '—', '–', '-', '#', '.', ':', ',', ';', '→', '=', '&'];
/// What stands between two values: such a text says what holds.
const COMPARISONS: [&str; 6] = ["==", "=", "!=", ">=", "<=", "→"];
/// Endings of files that are read rather than run.
const DOCUMENTS: [&str; 14] = [
    ".c", ".css", ".html", ".ini", ".js", ".json", ".lock", ".md", ".rs", ".toml", ".ts", ".txt",
    ".yaml", ".yml",
];
/// Words beside the commands that are still no task of their own, such as `both exit 0`.
const REMARK_WORDS_MAX: usize = 2;

/// Reads a text.
pub(super) fn read(text: &str) -> Asked {
    read_with(text, has_form)
}

/// Reads a cell of a column of commands: there a word alone is the name of a program.
pub(super) fn read_cell(text: &str) -> Asked {
    read_with(text, |command| has_form(command) || is_name_of_program(command))
}

fn read_with(text: &str, is_command: impl Fn(&str) -> bool) -> Asked {
    if is_none(text) {
        return Asked::default();
    }
    let spans = code_spans(text);
    if spans.is_empty() {
        return bare(text);
    }
    let mut commands = Vec::new();
    let mut taken: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    for span in spans {
        let (open, close) = outer(text, &span);
        let command = unwrapped(&text[span]);
        let before = &text[from..open];
        if stands_alone(before, taken.is_empty(), &text[close..]) && is_command(&command) {
            commands.push(command);
            taken.push(open..close);
        }
        from = close;
    }
    let prose = (commands.is_empty() || says_more(text, &taken)).then(|| text.trim().to_owned());
    Asked { commands, prose }
}

/// A text without code spans: each of its lines is a command, or all of it is prose.
fn bare(text: &str) -> Asked {
    let unified = text.replace("<br/>", "<br>").replace("<br />", "<br>").replace("<br>", "\n");
    let lines: Vec<&str> = unified.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    if lines.iter().all(|line| is_plain_command(line)) {
        let commands = lines.into_iter().map(ToOwned::to_owned).collect();
        return Asked { commands, prose: None };
    }
    Asked { commands: Vec::new(), prose: Some(lines.join("\n")) }
}

/// A code span with its backquotes.
fn outer(text: &str, span: &Range<usize>) -> (usize, usize) {
    let open = text[..span.start].trim_end_matches('`').len();
    let rest = &text[span.end..];
    (open, span.end + rest.len() - rest.trim_start_matches('`').len())
}

/// A command on one line, unless it holds a text of several lines.
fn unwrapped(command: &str) -> String {
    let command = command.trim();
    let command = command.strip_prefix("$ ").unwrap_or(command);
    if command.contains("<<") {
        let command = unescaped(command);
        let lines: Vec<&str> = command.lines().map(str::trim_end).collect();
        return lines.join("\n");
    }
    let lines: Vec<&str> =
        command.lines().map(|l| l.trim().trim_end_matches('\\').trim()).collect();
    lines.join(" ").trim().to_owned()
}

/// A text for a program on one line, with its line breaks written as `\n`: without them it never ends.
fn unescaped(command: &str) -> String {
    if command.contains('\n') || !command.contains("\\n") {
        return command.to_owned();
    }
    let mut text = String::new();
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match (c, rest.clone().next()) {
            ('\\', Some(next @ ('n' | '\\'))) => {
                text.push(if next == 'n' { '\n' } else { next });
                rest.next();
            }
            _ => text.push(c),
        }
    }
    text
}

/// Whether a code span stands where a command stands.
fn stands_alone(before: &str, is_first: bool, after: &str) -> bool {
    let before = plain(&before.replace("<br>", ";").replace("<br/>", ";")).to_lowercase();
    let word = before
        .trim_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&' | '.' | '+'));
    let labelled = before.ends_with([':', '—', '–']) || before.ends_with(" -");
    let joined = BETWEEN.contains(&word)
        || word.trim_start_matches(['—', '–', '-', ' ']).strip_prefix("then") == Some("")
        || (is_first && BEFORE.contains(&word));
    if !(joined || labelled) {
        return false;
    }
    let after = after.trim_start();
    let lower = plain(after).to_lowercase();
    let listed = BETWEEN[1..]
        .iter()
        .any(|b| after.strip_prefix(b).is_some_and(|r| r.trim_start().starts_with('`')));
    let ends = ENDINGS
        .iter()
        .any(|e| lower.strip_prefix(e).is_some_and(|r| !r.starts_with(char::is_alphanumeric)));
    after.is_empty() || after.starts_with("<br") || after.starts_with(MARKS) || listed || ends
}

/// Whether more is asked for than the commands: more than a few words are left beside them.
fn says_more(text: &str, taken: &[Range<usize>]) -> bool {
    let mut rest = String::new();
    let mut from = 0;
    for span in taken {
        rest.push_str(&text[from..span.start]);
        rest.push(' ');
        from = span.end;
    }
    rest.push_str(&text[from..]);
    let rest = without_brackets(&rest).to_lowercase().replace("<br>", " ");
    // A label names what is run, and is nothing to do.
    let rest = rest.rsplit(':').next().unwrap_or_default();
    let known =
        |word: &&str| BETWEEN.contains(word) || BEFORE.contains(word) || ENDINGS.contains(word);
    let words =
        rest.split(|c: char| !c.is_alphanumeric()).filter(|w| w.contains(char::is_alphabetic));
    words.filter(|word| !known(word)).count() > REMARK_WORDS_MAX
}

/// Whether a text without a mark is a command: it begins with a known program, and is no sentence.
fn is_plain_command(text: &str) -> bool {
    let program = program(text);
    let known = program.is_some_and(|word| {
        PROGRAMS.contains(&word) || word.starts_with("./") || word.starts_with("../")
    });
    known && !is_sentence(text, &SENTENCE) && !is_sentence(text, &SENTENCE_BARE)
}

/// Whether a code span has the form of a command.
pub(super) fn has_form(text: &str) -> bool {
    let Some(program) = program(text) else { return false };
    let first = program.chars().next().unwrap_or(' ');
    // Compounds, tests and substitutions of a shell begin otherwise than a program.
    if matches!(first, '(' | '[' | '{' | '!' | '$' | '"' | '\'') {
        return text.split_whitespace().count() > 1;
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_./-~+@$\"{}".contains(c);
    let begins = first.is_ascii_lowercase() || matches!(first, '.' | '/' | '~' | '_');
    let is_path = program.contains('/');
    if !(begins || is_path) || !program.trim_end_matches(';').chars().all(allowed) {
        return false;
    }
    let mut words = text.split_whitespace().skip_while(|word| *word != program).skip(1);
    let second = words.next();
    let compares = second.is_some_and(|word| COMPARISONS.contains(&word));
    if compares || has_placeholder(text) || is_sentence(text, &SENTENCE) {
        return false;
    }
    // A word alone may be a name of anything, and a path alone that of a file.
    second.is_some() || (is_path && is_executable(program)) || PROGRAMS.contains(&program)
}

/// Whether a word alone may name a program: it is no name of a function, a file or a gate.
fn is_name_of_program(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Whether a path that stands alone is one of a program.
fn is_executable(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let document = DOCUMENTS.iter().any(|end| lower.ends_with(end)) || path.ends_with('/');
    let begins = ["./", "../", "/", "~/"].iter().any(|start| path.starts_with(start));
    let is_script = Path::new(&lower).extension().is_some_and(|end| end == "sh");
    !document && (begins || path.contains("bin/") || is_script)
}

/// Whether a text has something in it that is to be filled in: `<run-id>`.
fn has_placeholder(text: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let line = text.lines().next().unwrap_or_default();
    line.split('<').skip(1).any(|after| {
        let end = after.find(|c: char| !is_name(c)).unwrap_or(after.len());
        end > 0 && after[end..].starts_with('>') && after.starts_with(|c: char| c.is_alphabetic())
    })
}

/// The first word that is not the setting of a variable.
fn program(text: &str) -> Option<&str> {
    let is_setting = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    text.split_whitespace().find(|word| !is_setting(word))
}

/// Whether words outside of quotes are those of a sentence.
fn is_sentence(text: &str, words: &[&str]) -> bool {
    let mut quote: Option<char> = None;
    let mut bare = String::new();
    for c in text.lines().next().unwrap_or_default().chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None => bare.push(c),
        }
    }
    // The first word is the program, whatever its name.
    bare.split_whitespace().skip(1).any(|word| words.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<String> {
        read(text).commands
    }

    #[test]
    fn code_spans_and_known_programs_are_commands() {
        assert_eq!(commands("`a b` ; `c d, e`"), ["a b", "c d, e"]);
        assert_eq!(commands("pytest a, b"), ["pytest a, b"]);
        assert_eq!(commands("make<br/>make test"), ["make", "make test"]);
        assert_eq!(commands("``echo `date` ``"), ["echo `date`"]);
        assert_eq!(commands("`python -m x --help` exits 0"), ["python -m x --help"]);
        assert_eq!(commands("`A=1 ./run.sh | tail -5` (expect 0)"), ["A=1 ./run.sh | tail -5"]);
        assert_eq!(commands("`.venv/bin/pytest -q`"), [".venv/bin/pytest -q"]);
        assert_eq!(commands("**Full**: `make b` (slow)"), ["make b"]);
        assert_eq!(commands("`a x` — expect `0 failed`; then `b y`"), ["a x", "b y"]);
        assert_eq!(commands("`make a`, `make b`, and `make c`."), ["make a", "make b", "make c"]);
        assert_eq!(commands("`git diff --check`, and posture tests."), ["git diff --check"]);
        assert_eq!(
            commands("`make`, `./check`, `scripts/all.sh`"),
            ["make", "./check", "scripts/all.sh"]
        );
        assert_eq!(commands("`sort < in.txt > out.txt`"), ["sort < in.txt > out.txt"]);
        assert!(commands("—").is_empty());
    }

    #[test]
    fn a_command_over_several_lines_is_one() {
        assert_eq!(commands("`pytest a.py\n  b.py -v`"), ["pytest a.py b.py -v"]);
        let text = "python - <<'PY'\nprint(1)\nPY";
        assert_eq!(commands(&format!("`{text}`")), [text]);
        assert_eq!(commands("`python - <<'PY'\\nprint(1)\\nPY`"), [text], "as an abbreviation");
        let text = r"`python - <<'PY'\nre(r'\\d')\nPY`";
        assert_eq!(commands(text), ["python - <<'PY'\nre(r'\\d')\nPY"]);
    }

    #[test]
    fn prose_is_never_a_command() {
        for text in [
            "same",
            "see `## Verification` steps V0-V5",
            "Run `make lint` and confirm that it passes",
            "Full `pytest tests` with only explicit skips",
            "`no` is the tool",
            "`README.md`",
            "`test_parser`",
            "`initialize_services()`",
            "`IF-0-P1-A`",
            "make sure that all is well",
            "test the parser by hand",
            "`the 60 paths not otherwise owned`",
            "`corpus`: compare the bytes",
            "`src/tool/matcher.py`",
            "`state == MERGED`, and a commit",
            "`tool --config <private-config.json> --run <run-id>`",
            "Review this plan before implementation starts.",
        ] {
            let asked = read(text);
            assert!(asked.commands.is_empty(), "{text}: {:?}", asked.commands);
            assert_eq!(asked.prose.as_deref(), Some(text));
        }
        assert_eq!(read("none"), Asked::default());
    }

    #[test]
    fn a_word_alone_in_a_column_of_commands_is_a_program() {
        assert_eq!(read_cell("`check-all`, `b`").commands, ["check-all", "b"]);
        for text in ["same", "`test_parser`", "`README.md`", "`IF-0-P1-A`", "`src/a.py`"] {
            assert!(read_cell(text).commands.is_empty(), "{text}");
        }
    }

    #[test]
    fn words_beside_a_command_are_kept_as_prose() {
        assert_eq!(read("`make`").prose, None);
        assert_eq!(read("Lane tests: `make` (slow)").prose, None);
        let text = "`make`; then compare the two screens by eye";
        assert_eq!(read(text).prose.as_deref(), Some(text));
        assert_eq!(read(text).commands, ["make"]);
    }
}

//! A problem in a document: where it is, what it is, what to do, and how it looks on a terminal.
//!
//! Does not decide what is a problem and never prints. Rendering makes control characters visible,
//! so that a hostile document cannot control the reader's terminal.

use std::fmt::Write as _;
use std::ops::Range;

use serde::Serialize;
use unicode_width::UnicodeWidthChar as _;

/// Fewest columns for a source line: with fewer, an underline shows nothing useful.
const SOURCE_COLUMNS_MIN: usize = 20;
/// Most columns for a source line: text further away does not help to find the place, even if the
/// output goes to a file.
const SOURCE_COLUMNS_MAX: usize = 160;
/// Columns that a tab takes in a rendered line; the underline must agree with it.
const TAB_COLUMNS: usize = 4;
/// Longest piece of a document that a message quotes; the underline shows the rest.
const QUOTE_CHARS_MAX: usize = 60;

/// How serious a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document is refused.
    Error,
    /// The document is accepted, but a person should check it.
    Warning,
}

impl Severity {
    /// The word for it in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A problem at one place of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How serious it is.
    pub severity: Severity,
    /// The kind of problem, one of [`CODES`].
    pub code: &'static str,
    /// The document, as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The offending bytes of the document.
    #[serde(skip)]
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

#[rustfmt::skip]
/// The codes as constants.
pub mod code {
    piton_core::error_codes! {
        /// Every code of an error or warning about a document, for `piton explain`.
        CODES;
        BAD_DURATION = "bad-duration", "not a duration", "A duration is a number with a unit, or several from large to small.", "Write it like \"500ms\", \"90s\", \"45m\", \"1h30m\" or \"2d\".";
        BAD_ENV = "bad-env", "not a variable name", "The name is empty, contains `=` or NUL, or starts with PITON_, which is reserved.", "Choose another name.";
        BAD_GATE = "bad-gate", "a gate that is not clear", "A gate has no id or no box, or it is listed twice.", "Write it once, like `- [ ] IF-0-P1-AUTH: text`. It is open until its box is ticked.";
        BAD_GLOB = "bad-glob", "not a valid glob", "A bracket or brace is not closed, a range is reversed, or it is a template.", "Name files, or use `*`, `**`, `?`, `[…]` and `{a,b}`.";
        BAD_ID = "bad-id", "not a valid id", "Ids become file names, branch names and values of variables.", "Use at most 64 letters, digits, `.`, `_` and `-`. Start with a letter or digit. Do not use `..`, and do not end with `.` or `.lock`.";
        BAD_JSON = "bad-json", "not valid JSON", "The file is damaged, cut off, or not JSON at all. It was not changed.", "Correct it at that place, or move it away.";
        BAD_MONEY = "bad-money", "not an amount of money", "Money is written in dollars, not negative, with at most six decimals.", "Write it like \"12.50\".";
        BAD_PATH = "bad-path", "a path that leaves the project", "Paths are relative to the project's root: not absolute, without `..`, `~` or a drive letter.", "Write the path from the project's root.";
        BAD_RECORD = "bad-record", "a record that is incomplete", "A record lacks a required field, or one of its values is unknown.", "Add what the message names. Records that Piton does not understand are kept as they are.";
        BAD_SIZE = "bad-size", "not a size", "A size is a number with a unit, or a whole number of bytes.", "Write it like \"64MB\" or \"1GiB\".";
        BAD_SYNTAX = "bad-syntax", "not valid TOML", "The document cannot be parsed at the underlined place.", "Correct it there: put strings in quotes and lists in brackets, and use each key once.";
        BAD_TEMPLATE = "bad-template", "not a valid template", "The template has a mistake or uses an unknown name.", "Correct it, or put text that is not a template between {% raw %} and {% endraw %}.";
        BAD_VALUE = "bad-value", "a value that cannot be used", "The value has the right type, but it is empty, out of range or not one of the choices.", "Use a value that the hint names.";
        BAD_YAML = "bad-yaml", "not valid YAML", "The file, or the front matter of a Markdown file, cannot be parsed at that place, or is not a mapping. It was not changed.", "Correct it at that place, or move it away.";
        CLASHING_TESTS = "clashing-tests", "tests that cannot run together", "The tests of a lane in a worktree run again together, as one step, on the files to be merged. There, `step.id` and variables differ from their own steps.", "Write the step's id, or the value of the variable, into the commands.";
        CONSTITUTION_CHECK = "constitution-check", "a Constitution Check that is not complete", "Every article needs a status, and every exception a row in the Complexity Justification table. A template that nobody has filled in is not a check.", "Choose COMPLIES, EXCEPTION or N/A for each article, and justify the exceptions.";
        CYCLE = "cycle", "parts of the plan wait for each other", "Phases or lanes wait for each other in a cycle, so none can start. A phase without `needs` waits for the previous phase.", "Remove one of the `needs` in the cycle.";
        DUPLICATE_ID = "duplicate-id", "an id that is used twice", "Phases of a plan, lanes of a phase and steps of a lane must have different ids.", "Rename one of the two.";
        MISSING_FIELD = "missing-field", "a task that lacks a field", "A task needs Task ID, Type, Depends On, Files in Scope, Tests Owned Files and Test Command(s).", "Fill in the missing fields; write `-` for none.";
        MISSING = "missing-value", "something is missing", "The plan lacks an id, the work of a step, the command of an agent, or a phase, lane or step.", "Add what the hint names.";
        MIXED_FORMS = "mixed-forms", "short and long form mixed", "A phase or lane has work of its own and also lanes or steps.", "Use one form: move the work into a step.";
        NEEDS_GIT = "needs-git", "a worktree without git", "A lane should work in a git worktree, but the project is not a git repository.", "Run `git init` and make a first commit, or set `isolation = \"in-place\"`.";
        NEEDS_WORKTREE = "needs-worktree", "a key that needs a worktree", "The lane works in place, where it has no branch to merge, no new folder to prepare and no files of its own to reset.", "Add `isolation = \"worktree\"` to the lane, or remove the key.";
        NO_LANE_INDEX = "no-lane-index", "a phase without a lane index", "The lanes are read from the swim lanes, where dependencies may be missing.", "Confirm the lanes when asked, or add `## Lane Index & Dependencies`.";
        NO_LANES = "no-lanes", "a phase without lanes", "The document has neither a lane index nor swim lanes.", "Add `## Lane Index & Dependencies` with items like `- SL-1 -- Name`.";
        NO_PHASE_ID = "no-phase-id", "a phase without an id", "The id of a phase is the text before the colon in the first heading.", "Write `# P1: Title` as the first heading.";
        NO_SPEC = "no-spec", "a template uses a missing spec", "The plan has no spec, so `spec` is empty in the template.", "Add `spec = \"PATH\"` at the top of the plan.";
        NOT_UTF8 = "not-utf8", "text that is not UTF-8", "The file contains bytes that are not valid UTF-8.", "Save it as UTF-8.";
        RESERVED_ID = "reserved-id", "an id that is reserved", "Piton adds the steps `setup`, `tests` and `pull-request` to lanes in worktrees.", "Choose another id for the step.";
        SHARED_ARTIFACT = "shared-artifact", "two lanes make the same file", "The lanes may run at the same time, so either file may overwrite the other.", "Let one lane need the other, or use two files.";
        STRAY_TASK = "stray-task", "a task without a lane", "The task is not below the heading of a lane, and its id does not start with the id of a lane.", "Move it below the heading of its lane, or start its id with the lane's id.";
        TOO_LARGE = "too-large", "a plan that is too large", "The plan has more bytes, phases, lanes or steps than one run can have.", "Split it into several plans.";
        TORN_LINE = "torn-line", "a last line that is cut off", "The program that wrote the file was stopped in the middle of the line.", "Nothing: the lines before it are complete.";
        TWO_WORKS = "two-works", "a step with two kinds of work", "A step has exactly one of `run`, `prompt` and `prompt_file`.", "Keep one, or make two steps.";
        UNCLOSED = "unclosed", "a code fence or comment that is not closed", "Everything after it is not read as text.", "Close the fence with as many marks as opened it, or the comment with `-->`.";
        UNEDITABLE = "uneditable-yaml", "YAML that cannot be edited in place", "The value is written in a form that Piton does not change, such as a list of mappings on one line. The file was not changed.", "Write each element on lines of its own, or make the change by hand.";
        UNFILLED = "unfilled", "a template that is not filled in", "The value is still that of the template: text in angle brackets, or words to choose from. Without status or current stage, the file does not describe a run.", "Fill in the value, or move the file away.";
        UNKNOWN_AGENT = "unknown-agent", "an agent that is not defined", "Neither the plan nor the settings define the agent of a prompt.", "Add [agents.NAME] with a `command`, or correct the name.";
        UNKNOWN_FORMAT = "unknown-format", "a file of unknown format", "The file does not match any format that Piton reads.", "Name a file of one of the formats that the hint lists.";
        UNKNOWN_ID = "unknown-id", "a phase or lane that does not exist", "`needs` names a phase or lane that the plan does not have.", "Correct the id. Write a lane of another phase as PHASE/LANE.";
        UNKNOWN_KEY = "unknown-key", "an unknown key", "The key is not known at this place.", "Correct or remove it. `piton schema plan` and `piton schema settings` list all keys.";
        UNLISTED_GATE = "unlisted-gate", "a gate that is not listed", "A lane names a gate that is not listed below Interface Freeze Gates.", "List it there. Until then it is open.";
        UNLISTED_LANE = "unlisted-lane", "a lane that is not in the index", "The lane has its own section, but the lane index does not list it.", "Add it to the index, or remove its section.";
        UNQUOTED = "unquoted-text", "text from logs in a shell command", "The failure context is text from logs. Without quotes, the shell may run parts of it.", "Write {{ failure_context | sh }}.";
        UNREADABLE_PROMPT = "unreadable-prompt", "a prompt file that cannot be used", "The file does not exist, cannot be read, is empty or is too large.", "Create it or correct its path, which is relative to the project's root.";
        UNUSED = "unused-key", "a key without effect", "For example, `agent` has no effect on a step that runs a command.", "Remove it.";
        WRONG_TYPE = "wrong-type", "a value of the wrong type", "The key needs a value of another type, such as a string in quotes.", "Write it as the hint shows.";
    }
}
pub use code::CODES;

impl Diagnostic {
    /// Whether the plan must be updated: a task lacks a field.
    pub fn asks_for_update(&self) -> bool {
        self.code == code::MISSING_FIELD
    }
}

/// Writes a problem for a person: place and message, the source line, the underline, the hint.
///
/// `source` is the text of the document; `width` is the number of columns of the terminal.
pub fn render(diagnostic: &Diagnostic, source: &str, color: bool, width: usize) -> String {
    let (name, tint) = match diagnostic.severity {
        Severity::Error => ("error", "\u{1b}[31m"),
        Severity::Warning => ("warning", "\u{1b}[33m"),
    };
    let paint = |style: &str, text: &str| {
        if color { format!("{style}{text}\u{1b}[0m") } else { text.to_owned() }
    };
    let Diagnostic { file, line, column, message, code, .. } = diagnostic;
    let mut out = format!(
        "{}:{line}:{column}: {}: {} [{code}]\n",
        visible(file),
        paint(tint, name),
        visible(message)
    );
    if let Some((shown, pad, underline)) = excerpt(diagnostic, source, width) {
        let number = line.to_string();
        let gutter = " ".repeat(number.len());
        let marks = paint(tint, &"^".repeat(underline));
        let pad = " ".repeat(pad);
        let _ = write!(out, " {number} | {shown}\n {gutter} | {pad}{marks}\n");
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = writeln!(out, "{} {}", paint("\u{1b}[36m", "hint:"), visible(hint));
    }
    out
}

/// The part of the source line around the problem, and where to underline it, in columns.
fn excerpt(diagnostic: &Diagnostic, source: &str, width: usize) -> Option<(String, usize, usize)> {
    let start = diagnostic.span.start;
    source.get(..start)?;
    let line_start = line_start(source, start);
    let line = source[line_start..].split('\n').next().unwrap_or_default();
    let line = line.strip_suffix('\r').unwrap_or(line);
    let columns_max = width.saturating_sub(diagnostic.line.to_string().len() + 4);
    let columns_max = columns_max.clamp(SOURCE_COLUMNS_MIN, SOURCE_COLUMNS_MAX);

    // One cell per character: its text, its columns, and whether it is underlined.
    let cells: Vec<(String, usize, bool)> = line
        .char_indices()
        .map(|(at, c)| {
            let (text, columns) = cell(c);
            (text, columns, diagnostic.span.contains(&(line_start + at)))
        })
        .collect();
    let columns = |cells: &[(String, usize, bool)]| cells.iter().map(|c| c.1).sum::<usize>();
    // An empty span, or one at the end of the line, is marked at its place.
    let before = line.char_indices().take_while(|(at, _)| line_start + at < start).count();
    let first = cells.iter().position(|c| c.2).unwrap_or(before);
    // A line that is too long is cut a third of the width before the problem.
    let (mut from, mut before) = (0, columns(&cells[..first]));
    let is_long = columns(&cells) > columns_max;
    while is_long && before > columns_max / 3 {
        before -= cells[from].1;
        from += 1;
    }
    let mut shown = String::from(if from > 0 { "…" } else { "" });
    let (mut used, mut pad, mut underline) = (usize::from(from > 0), 0, 0);
    pad += used;
    for (index, (text, cell_columns, marked)) in cells.iter().enumerate().skip(from) {
        if used + cell_columns > columns_max.saturating_sub(1) && index + 1 < cells.len() {
            shown.push('…');
            break;
        }
        shown.push_str(text);
        used += cell_columns;
        if *marked {
            underline += cell_columns;
        } else if index < first {
            pad += cell_columns;
        }
    }
    Some((shown, pad, underline.max(1)))
}

/// What a character looks like in a rendered line, and how many columns it takes.
fn cell(c: char) -> (String, usize) {
    match c {
        '\t' => (" ".repeat(TAB_COLUMNS), TAB_COLUMNS),
        '\u{feff}' => (String::new(), 0),
        c if is_unsafe(c) => ("\u{fffd}".to_owned(), 1),
        c => (c.to_string(), c.width().unwrap_or(0)),
    }
}

/// Whether a character could control a terminal or change the order of text on it.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text without characters that could control a terminal.
fn visible(text: &str) -> String {
    text.chars().map(|c| if is_unsafe(c) { '\u{fffd}' } else { c }).collect()
}

/// A piece of the document for use in a message: short, on one line, in backquotes.
pub fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTE_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{}`", short.replace('\r', "").replace('\n', "⏎"))
}

/// The start of the line that contains a byte; a byte order mark is not part of any line.
pub fn line_start(source: &str, at: usize) -> usize {
    match source[..at].rfind('\n') {
        Some(newline) => newline + 1,
        None if source.starts_with('\u{feff}') && at >= 3 => 3,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(source: &str, needle: &str) -> Diagnostic {
        let start = source.find(needle).unwrap_or_default();
        let from = line_start(source, start);
        Diagnostic {
            severity: Severity::Error,
            code: code::UNKNOWN_KEY,
            file: "plan.toml".to_owned(),
            line: source[..start].matches('\n').count() + 1,
            column: source[from..start].chars().count() + 1,
            span: start..start + needle.len(),
            message: "unknown key".to_owned(),
            hint: Some("did you mean `prompt`?".to_owned()),
        }
    }

    #[test]
    fn shows_place_line_underline_and_hint() {
        let source = "id = \"a\"\r\npromt = 1\r\n";
        let text = render(&at(source, "promt"), source, false, 80);
        assert_eq!(
            text,
            "plan.toml:2:1: error: unknown key [unknown-key]\n 2 | promt = 1\n   | ^^^^^\n\
             hint: did you mean `prompt`?\n"
        );
    }

    /// Lost: the underline would be at another place than the one named.
    #[test]
    fn what_spans_nothing_is_marked_where_it_is() {
        for (span, marked) in [(0..0, "| ^\n"), (2..2, "|   ^\n"), (3..4, "|    ^\n")] {
            let text = render(
                &Diagnostic { span: span.clone(), ..at("abc\nd", "abc") },
                "abc\nd",
                false,
                80,
            );
            assert!(text.contains(marked), "{span:?}: {text}");
        }
    }

    #[test]
    fn underlines_by_columns_not_by_bytes() {
        let source = "\t日本 = bad";
        let text = render(&at(source, "bad"), source, false, 80);
        assert!(text.contains("   |            ^^^\n"), "{text}");
    }

    #[test]
    fn a_long_line_is_cut_around_the_problem() {
        let source = format!("x = \"{}\" bad \"{}\"", "a".repeat(500), "b".repeat(500));
        let text = render(&at(&source, "bad"), &source, false, 60);
        for line in text.lines().skip(1).take(2) {
            assert!(line.chars().count() <= 60, "{line}");
        }
        assert!(text.contains("bad") && text.contains("^^^\n"), "{text}");
    }

    #[test]
    fn a_line_is_cut_where_no_terminal_limits_it_and_the_column_stays() {
        let source = format!("x = \"{}\" bad \"{}\"", "a".repeat(300_000), "b".repeat(300_000));
        let text = render(&at(&source, "bad"), &source, false, 100_000);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("plan.toml:1:300008: error"), "{}", lines[0]);
        assert!(lines[1].chars().count() <= SOURCE_COLUMNS_MAX + 5, "{}", lines[1]);
        let found = lines[1].find("bad").map(|at| lines[1][..at].chars().count());
        assert_eq!(found, lines[2].find("^^^"), "{text}");
        assert!(lines[1].starts_with(" 1 | …a") && lines[1].ends_with("b…"), "{}", lines[1]);
    }

    #[test]
    fn escape_sequences_of_a_document_do_not_reach_the_terminal() {
        let source = "a = \"\u{1b}[2J\"";
        let mut problem = at(source, "a");
        problem.message = format!("bad {source}");
        assert!(!render(&problem, source, false, 80).contains('\u{1b}'));
        assert!(render(&problem, source, true, 80).contains("\u{1b}[31merror"));
    }

    #[test]
    fn a_span_outside_the_source_does_no_harm() {
        let mut problem = at("abc", "b");
        problem.span = 90..95;
        assert!(render(&problem, "abc", false, 80).starts_with("plan.toml:1:2: error"));
    }

    #[test]
    fn codes_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        assert!(CODES.iter().all(|c| seen.insert(c.code)));
        assert!(CODES.is_sorted_by_key(|c| c.code));
    }
}

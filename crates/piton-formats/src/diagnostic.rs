//! A problem in a document: where it is, what it is, what to do; and how it looks on a terminal.
//!
//! Does not decide what is a problem and never prints. Rendering makes control characters visible,
//! so that a hostile document cannot drive the reader's terminal.

use std::fmt::Write as _;
use std::ops::Range;

use piton_core::error_codes::Entry;
use unicode_width::UnicodeWidthChar as _;

/// Narrowest room for a source line: below it an underline says nothing any more.
const SOURCE_COLUMNS_MIN: usize = 20;
/// Most room for a source line: what is further away says nothing about the place, also where the
/// reader is a file and no line is too long.
const SOURCE_COLUMNS_MAX: usize = 160;
/// Columns that a tab takes in a rendered line; the underline must agree with it.
const TAB_COLUMNS: usize = 4;
/// Longest piece of a document that a message quotes; the underline shows the rest.
const QUOTE_CHARS_MAX: usize = 60;

/// How much a problem matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The document is refused.
    Error,
    /// The document is accepted; a person should look.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// The kind of problem, one of [`CODES`].
    pub code: &'static str,
    /// The document, as the person named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The offending bytes of the document.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

macro_rules! codes {
    ($($name:ident = $code:literal, $title:literal, $cause:literal, $next:literal;)+) => {
        /// The codes as constants.
        pub mod code {
            $(#[doc = $title] pub const $name: &str = $code;)+
        }
        /// Every code a document can be refused or warned with, for `piton explain`.
        pub const CODES: &[Entry] =
            &[$(Entry { code: $code, title: $title, cause: $cause, next: $next }),+];
    };
}

#[rustfmt::skip]
mod table {
    use super::Entry;
    codes! {
        BAD_DURATION = "bad-duration", "not a duration", "A duration is a number with a unit, or several from large to small.", "Write it like \"500ms\", \"90s\", \"45m\", \"1h30m\" or \"2d\".";
        BAD_ENV = "bad-env", "not a name for a variable", "The name is empty, has a `=` or NUL in it, or starts with PITON_, which is reserved.", "Choose another name.";
        BAD_GATE = "bad-gate", "a gate that is not clear", "A gate has no id, no plain box, or stands twice.", "Write it once, like `- [ ] IF-0-P1-AUTH: text`; it counts as open until its box is ticked.";
        BAD_GLOB = "bad-glob", "a glob that cannot be used", "A bracket or brace is not closed, a range is the wrong way round, or it is a template.", "Name files, or use `*`, `**`, `?`, `[…]` and `{a,b}`.";
        BAD_ID = "bad-id", "not an id", "Ids become names of files and branches, and values of variables.", "Start with a letter or digit, go on with letters, digits, `.`, `_` or `-`, at most 64 in all, without `..`, and without `.` or `.lock` at the end.";
        BAD_JSON = "bad-json", "not valid JSON", "The file is not the JSON it should be: it is damaged, cut off or something else.", "Correct it at that place, or move it away; it was not touched.";
        BAD_MONEY = "bad-money", "not an amount of money", "Money is written in dollars, not negative, with at most six decimals.", "Write it like \"12.50\".";
        BAD_PATH = "bad-path", "a path that leaves the project", "Paths are relative to the project's root: not absolute, without `..`, `~` or a drive.", "Write the path from the project's root.";
        BAD_RECORD = "bad-record", "a record that lacks something", "A record lacks a field that every reader needs, or a value in it is not known.", "Add what the message names; records that are not understood are kept as they are.";
        BAD_SIZE = "bad-size", "not a size", "A size is a number with a unit, or a whole number of bytes.", "Write it like \"64MB\" or \"1GiB\".";
        BAD_SYNTAX = "bad-syntax", "not valid TOML", "The document cannot be read at the underlined place.", "Correct it there: texts stand in quotes, lists in brackets, each key once.";
        BAD_TEMPLATE = "bad-template", "a template that cannot be read", "It has a mistake or uses a name that Piton does not know.", "Correct it, or put text that is no template between {% raw %} and {% endraw %}.";
        BAD_VALUE = "bad-value", "a value that cannot be used", "The value has the right type but is empty, out of range or not one of the choices.", "Take a value that the hint names.";
        CLASHING_TESTS = "clashing-tests", "tests that cannot run together", "The tests of a lane in a worktree run once more together, as one step, on the files that are merged. There they must mean what they mean in their own steps.", "Write the step's id, or the value of the variable, into the commands.";
        CYCLE = "cycle", "parts of the plan wait for each other", "Phases or lanes wait for each other in a circle, so none could start. A phase without `needs` waits for the one before it.", "Remove one of the `needs` on the path.";
        DUPLICATE_ID = "duplicate-id", "an id that occurs twice", "Phases of a plan, lanes of a phase and steps of a lane are told apart by their ids.", "Rename one of the two.";
        MISSING_FIELD = "missing-field", "a task that lacks a field", "A task needs Task ID, Type, Depends On, Files in Scope, Tests Owned Files and Test Command(s).", "Ask for a plan update that fills them in; `-` says that there is none.";
        MISSING = "missing-value", "something is missing", "An id, the work of a step, the command of an agent, or a phase, lane or step at all is not there.", "Add what the hint names.";
        MIXED_FORMS = "mixed-forms", "short and long form mixed", "A phase or lane has work of its own and also lanes or steps.", "Keep one form: move the work into a step.";
        NEEDS_GIT = "needs-git", "a worktree without git", "A lane shall work in a git worktree, but the project has no git.", "Run `git init` and make a first commit, or write `isolation = \"in-place\"`.";
        NEEDS_WORKTREE = "needs-worktree", "a key that asks for a worktree", "The lane works in place, where it has no branch to merge, no fresh folder to set up, and no files of its own to reset.", "Add `isolation = \"worktree\"` to the lane, or remove the key.";
        NO_LANE_INDEX = "no-lane-index", "a phase without a lane index", "Its lanes come from the swim lanes, and what depends on what may be missing there.", "Confirm the lanes when asked, or add `## Lane Index & Dependencies`.";
        NO_LANES = "no-lanes", "a phase without lanes", "The document has neither a lane index nor swim lanes.", "Add `## Lane Index & Dependencies` with items like `- SL-1 -- Name`.";
        NO_PHASE_ID = "no-phase-id", "a phase without an id", "The id of a phase is the text before the colon of its first heading.", "Write `# P1: Title` as the first heading.";
        NO_SPEC = "no-spec", "a template uses a spec that is not there", "The plan names no spec, so the text is empty.", "Add `spec = \"PATH\"` at the top of the plan.";
        NOT_UTF8 = "not-utf8", "text that is not UTF-8", "The file has bytes that are no UTF-8 text.", "Save it as UTF-8.";
        RESERVED_ID = "reserved-id", "an id that Piton uses itself", "A lane in a worktree gets the steps `setup`, `tests` and `pull-request` from Piton where it needs them.", "Choose another id for the step.";
        SHARED_ARTIFACT = "shared-artifact", "two lanes make the same file", "The lanes may run at the same time, and chance decides whose file stays.", "Let one lane need the other, or use two files.";
        STRAY_TASK = "stray-task", "a task that belongs to no lane", "It stands below no lane, and its id names none.", "Put it below the heading of its lane, or begin its id with the id of the lane.";
        TOO_LARGE = "too-large", "a plan that is too large", "It has more bytes, phases, lanes or steps than one run holds.", "Split it into several plans.";
        TORN_LINE = "torn-line", "a last line that is cut off", "Whoever wrote it was stopped in the middle of the line.", "Nothing need be done: the line before it is whole.";
        TWO_WORKS = "two-works", "a step with two kinds of work", "A step has one of `run`, `prompt` and `prompt_file`.", "Keep one, or make two steps.";
        UNCLOSED = "unclosed", "a fence or comment that is not closed", "What follows it is not read as text.", "Close the fence with as many marks as opened it, or the comment with `-->`.";
        UNKNOWN_AGENT = "unknown-agent", "an agent that is not defined", "A prompt goes to an agent that neither the plan nor the settings define.", "Add [agents.NAME] with a `command`, or correct the name.";
        UNKNOWN_FORMAT = "unknown-format", "a file of no known format", "Its content fits none of the formats that Piton reads.", "Name a phase document, checkpoints.json or a run log.";
        UNKNOWN_ID = "unknown-id", "a phase or lane that is not there", "`needs` names what the plan does not have.", "Correct the id; a lane of another phase is written PHASE/LANE.";
        UNKNOWN_KEY = "unknown-key", "a key that is not known", "The key is not known at this place.", "Use the nearest known key, or remove it; `piton schema plan` lists all.";
        UNLISTED_GATE = "unlisted-gate", "a gate that is not listed", "A lane names a gate that does not stand below Interface Freeze Gates.", "Add it there; until then it counts as open.";
        UNLISTED_LANE = "unlisted-lane", "a lane that is not in the index", "It has a section of its own, but the lane index leaves it out.", "Add it to the index, or take its section out.";
        UNQUOTED = "unquoted-text", "text from logs in a shell command", "The failure context is text from logs; without quotes the shell would run parts of it.", "Write {{ failure_context | sh }}.";
        UNREADABLE_PROMPT = "unreadable-prompt", "a prompt file that cannot be used", "The file is not there, cannot be read, is empty or too large.", "Create it or correct its path, which is relative to the project's root.";
        UNUSED = "unused-key", "a key without effect", "For example an agent on a step that runs a command.", "Remove it.";
        WRONG_TYPE = "wrong-type", "a value of the wrong type", "The key asks for another type, such as a text in quotes.", "Write it as the hint shows.";
    }
}
pub use table::CODES;
pub use table::code;

impl Diagnostic {
    /// Whether it asks for a plan update: a task of a phase document lacks what it needs.
    pub fn asks_for_update(&self) -> bool {
        self.code == code::MISSING_FIELD
    }
}

/// Writes a problem for a person: place and message, the source line, the underline, the hint.
///
/// `source` is the text the document was read from; `width` the columns there are.
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
    let room = width.saturating_sub(diagnostic.line.to_string().len() + 4);
    let room = room.clamp(SOURCE_COLUMNS_MIN, SOURCE_COLUMNS_MAX);

    // One cell per character: its text, its columns, and whether it is underlined.
    let cells: Vec<(String, usize, bool)> = line
        .char_indices()
        .map(|(at, c)| {
            let (text, columns) = cell(c);
            (text, columns, diagnostic.span.contains(&(line_start + at)))
        })
        .collect();
    let columns = |cells: &[(String, usize, bool)]| cells.iter().map(|c| c.1).sum::<usize>();
    // What spans nothing, or only the end of the line, is marked where it is.
    let before = line.char_indices().take_while(|(at, _)| line_start + at < start).count();
    let first = cells.iter().position(|c| c.2).unwrap_or(before);
    // A line too long begins a third of the room before the problem.
    let (mut from, mut before) = (0, columns(&cells[..first]));
    let is_long = columns(&cells) > room;
    while is_long && before > room / 3 {
        before -= cells[from].1;
        from += 1;
    }
    let mut shown = String::from(if from > 0 { "…" } else { "" });
    let (mut used, mut pad, mut underline) = (usize::from(from > 0), 0, 0);
    pad += used;
    for (index, (text, cell_columns, marked)) in cells.iter().enumerate().skip(from) {
        if used + cell_columns > room.saturating_sub(1) && index + 1 < cells.len() {
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

/// Tells whether a character could drive a terminal or hide the order of a text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text without characters that could drive a terminal.
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

/// Where the line begins that holds a byte; a byte order mark belongs to no line.
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

    /// Lost: the mark below the line would stand elsewhere than the place that is named.
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

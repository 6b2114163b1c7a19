//! What commands answer: values with a key for whatever a program may want, and words for people.

use std::fmt::{self, Display, Write as _};
use std::path::Path;

use piton_core::lane_state::Undoable;
use piton_core::{GateRef, LanePath, Status};
use piton_formats::{Diagnostic, Severity};
use serde::Serialize;

use crate::look::{self, Look, style_of};
use crate::place::{At, Place};
use crate::resume::Resume;
use crate::rewind::HeadLeft;
use crate::shape::shapes;
use crate::summary::Summary;
use crate::text::{count, sanitize, sanitize_lines};

/// Answers that have one key.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
#[expect(clippy::large_enum_variant, reason = "made once, printed, gone")]
pub enum Answer<'a> {
    Error(Failure<'a>),
    Summary(Summary<'a>),
    Resume(Resume<'a>),
    NextPhase(&'a str),
    Script(&'a str),
    Version(&'a str),
    Backup(&'a Path),
}

shapes! {
    /// How a command failed.
    Failure<'a> {
        code: &'a str, message: String, hints: Vec<String>, exit_code: u8,
        #[serde(skip_serializing_if = "<[_]>::is_empty")] problems: &'a [Diagnostic],
    }

    /// What came of requests to a run.
    Requests<'a> {
        run_id: &'a str, requests: &'a [Sent],
        /// The next command where nobody drives the run.
        next: Option<String>,
        /// The checkpoint that was recorded.
        #[serde(skip_serializing_if = "Option::is_none")] checkpoint: Option<String>,
    }

    /// What came of one request.
    Sent {
        /// The step, gate or run that was meant.
        target: String,
        outcome: Outcome,
        /// The answer in words.
        answer: String,
        /// What depends on a step that was left out.
        #[serde(skip_serializing_if = "Option::is_none")] dependents: Option<Vec<String>>,
    }

    /// A run that was ended.
    Ended<'a> { run_id: &'a str, answer: &'a str }

    /// A run that has nothing left to do.
    Complete<'a> { run_id: &'a str, status: Status, #[serde(skip)] words: String }

    /// A run that goes on in the background.
    Detached<'a> { run_id: &'a str, pid: u32, log: &'a Path }

    /// What ran how often in the demo.
    Demo { ran: Vec<Ran> }

    /// How often one step ran.
    Ran { step: String, driver_killed: usize, everything_killed: usize }

    /// What differs between two commits.
    Diff<'a> { from: &'a str, to: &'a str, changes: Vec<Change> }

    /// A path that differs.
    Change { path: String, kind: String }

    /// A checkpoint whose files are back.
    Restored<'a> {
        run_id: &'a str, restored: &'a str, paths: Vec<String>, #[serde(skip)] files: String,
    }

    /// Files of a checkpoint in a folder of their own.
    Exported<'a> { checkpoint: &'a str, to: String, files: usize, dry_run: bool }

    /// An act that was undone.
    Undone<'a> { run_id: &'a str, undone: &'a str }

    /// The acts of a run that can be undone.
    Acts<'a> { run_id: &'a str, acts: Vec<Act<'a>> }

    /// An act.
    Act<'a> { act: u64, at: At, what: &'a str, undoes: Option<u64>, undone: bool }

    /// A run that was rolled back.
    RolledBack<'a> {
        run_id: &'a str, rolled_back: Option<&'a str>, kept: Vec<&'a str>,
        head: Option<&'a HeadLeft>, approvals_taken_back: &'a [GateRef], resume_hint: String,
        rollback_hint: String, undo_hint: String,
    }

    /// A ledger that was begun anew.
    NewLedger<'a> {
        ledger: &'a Path,
        /// What the old one is now.
        aside: Option<&'a Path>,
    }

    /// A ledger that is gone on with although it is older than it was.
    AcceptedLedger<'a> { ledger: &'a Path, accepted: bool, runs: Vec<String> }

    /// What `piton doctor` found.
    Findings<'a> { clean: bool, findings: &'a [Finding] }

    /// Something that was looked at.
    Finding {
        severity: Health, what: String,
        /// What to do; empty where there is nothing to do.
        #[serde(skip_serializing_if = "String::is_empty")] next: String,
    }

    /// A run that was taken over from another tool.
    Imported<'a> { run_id: &'a str, plan: &'a str, lanes: &'a [Taken], remarks: &'a [String] }

    /// A lane that was taken over.
    Taken { lane: LanePath, stage: Option<&'static str>, goes_on: String, unknown: Vec<String> }

    /// A line of the output of a step, or a part of one if there is `more`; or how much of it is gone.
    LogLine<'a> {
        step: String, attempt: u32, stream: &'static str, #[serde(flatten)] output: Output<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")] more: bool,
    }
}

impl<'a> Failure<'a> {
    /// An error with what to do next, as it is to be typed in a place.
    pub fn new(
        code: &'a str,
        message: &str,
        hints: &[String],
        exit_code: u8,
        place: &Place,
    ) -> Self {
        let hints = hints.iter().map(|hint| place.told(hint).into_owned()).collect();
        Self { code, message: place.told(message).into_owned(), hints, exit_code, problems: &[] }
    }

    /// A document that is refused.
    pub fn of_document(problems: &'a [Diagnostic], exit_code: u8) -> Self {
        // What refuses the document comes first, wherever it stands.
        let refuses = problems.iter().find(|p| p.severity == Severity::Error);
        let first = refuses.or(problems.first());
        let message = |p: &Diagnostic| format!("{}:{}:{}: {}", p.file, p.line, p.column, p.message);
        Self {
            code: first.map_or("", |p| p.code),
            message: first.map(message).unwrap_or_default(),
            hints: first.and_then(|p| p.hint.clone()).into_iter().collect(),
            exit_code,
            problems,
        }
    }

    /// For people: the code and the cause, and a line for each hint.
    pub fn render(&self, look: &Look) -> String {
        let label = look.paint(look::BAD, &format!("error[{}]:", self.code));
        let mut out = format!("{label} {}\n", sanitize_lines(&self.message));
        for hint in &self.hints {
            let label = look.paint(look::NOTE, "hint:");
            let _ = writeln!(out, "{label} {}", sanitize_lines(hint));
        }
        out
    }
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Outcome {
    Done,
    /// In the inbox, not answered yet.
    Asked,
    Refused,
}

impl Display for Ended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.run_id, self.answer)
    }
}

impl Display for Complete<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl Display for Detached<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (run, pid) = (self.run_id, self.pid);
        writeln!(f, "run {run} goes on in the background (process {pid})")?;
        write!(f, "hint: watch it with `piton attach {run}`, end it with `piton abort {run}`")
    }
}

impl Display for Demo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n== What ran how often")?;
        writeln!(f, "   step                 driver killed   everything killed")?;
        for Ran { step, driver_killed, everything_killed } in &self.ran {
            writeln!(f, "   {step:<20} {driver_killed:>6}x         {everything_killed:>6}x")?;
        }
        write!(f, "\nA killed driver costs nothing; a fallen machine at most the steps in flight.")
    }
}

impl Display for Restored<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, name, run) = (sanitize(&self.files), self.restored, self.run_id);
        write!(f, "restored {files} from {name}; take it back with: piton undo {run}")
    }
}

impl Display for Exported<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, to) = (self.checkpoint, sanitize(&self.to));
        if self.dry_run {
            return write!(f, "{} of {name} would be put into {to}", count(self.files, "file"));
        }
        write!(f, "{name} is in {to}")
    }
}

impl<'a> Acts<'a> {
    /// The newest first.
    pub fn new(run_id: &'a str, acts: &'a [Undoable]) -> Self {
        let act = |act: &'a Undoable| Act {
            act: act.id,
            at: At(act.at),
            what: &act.words,
            undoes: act.undoes,
            undone: act.undone,
        };
        Self { run_id, acts: acts.iter().rev().map(act).collect() }
    }
}

impl Display for NewLedger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(aside) = self.aside {
            writeln!(f, "the old ledger is {} now", aside.display())?;
        }
        write!(
            f,
            "a new ledger was begun in {}",
            self.ledger.parent().unwrap_or(self.ledger).display()
        )
    }
}

impl Display for AcceptedLedger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ledger = self.ledger.display();
        if !self.accepted {
            return write!(f, "the ledger in {ledger} is not behind; nothing was changed");
        }
        writeln!(f, "the ledger in {ledger} is gone on with as it is")?;
        f.write_str("what it does not have counts as never done: `piton resume RUN` runs it again")
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should be, or taken care of.
    Ok,
    /// Works, but a person should look.
    Warning,
    /// Does not work.
    Error,
}

impl Finding {
    /// All is well.
    pub fn ok(what: impl Into<String>) -> Self {
        Self { severity: Health::Ok, what: what.into(), next: String::new() }
    }

    /// A person should look.
    pub fn warning(what: impl Into<String>) -> Self {
        Self { severity: Health::Warning, ..Self::ok(what) }
    }

    /// Something does not work.
    pub fn error(what: impl Into<String>) -> Self {
        Self { severity: Health::Error, ..Self::ok(what) }
    }

    /// Adds what to do.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }

    /// For people.
    pub fn render(&self, look: &Look) -> String {
        let (word, style) = match self.severity {
            Health::Ok => ("ok:", style_of(Status::Complete)),
            Health::Warning => ("warning:", look::NOTE),
            Health::Error => ("error:", look::BAD),
        };
        let mut line = format!("{} {}", look.paint(style, word), sanitize(&self.what));
        if !self.next.is_empty() {
            let _ = write!(line, "\n  next: {}", sanitize(&self.next));
        }
        line
    }
}

impl Display for Imported<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "imported {} (plan {})", self.run_id, sanitize(self.plan))?;
        for Taken { lane, stage, goes_on, unknown } in self.lanes {
            write!(f, "\n  {lane}: {}; {goes_on}", stage.unwrap_or("not begun"))?;
            for unknown in unknown {
                write!(f, "\n    not known: {}", sanitize(unknown))?;
            }
        }
        Ok(())
    }
}

/// What a line of a log is.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Output<'a> {
    Line(&'a str),
    Dropped(u64),
}

impl LogLine<'_> {
    /// As one line of JSON.
    pub fn json(&self) -> String {
        // Plain values serialise to memory without fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    fn example() -> Failure<'static> {
        let hints = ["accept it with `--accept-spec`", "or undo the change"].map(str::to_owned);
        Failure::new("spec-changed", "the spec\u{1b}[2J changed", &hints, 4, &Place::default())
    }

    #[test]
    fn an_error_has_a_code_and_each_hint_its_line() {
        assert_eq!(
            example().render(&Look::plain(80)),
            "error[spec-changed]: the spec changed\n\
             hint: accept it with `--accept-spec`\n\
             hint: or undo the change\n"
        );
    }

    #[test]
    fn programs_get_the_error_as_one_object() {
        let value = serde_json::to_value(Answer::Error(example())).unwrap();
        assert_eq!(value["error"]["code"], "spec-changed");
        assert_eq!(value["error"]["exit_code"], 4);
        assert_eq!(value["error"]["hints"][1], "or undo the change");
    }

    #[test]
    fn a_finding_reads_without_colour_and_says_what_to_do() {
        let (finding, look) = (Finding::warning("little space").next("free some"), Look::plain(80));
        assert_eq!(finding.render(&look), "warning: little space\n  next: free some");
        assert_eq!(Finding::ok("fine").render(&look), "ok: fine");
    }
}

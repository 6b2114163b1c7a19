//! What commands answer: values with a key for whatever a program may want, and words for people.

use std::fmt::{self, Display, Write as _};
use std::path::Path;

use piton_core::lane_state::Undoable;
use piton_core::refusal::{Refusal, Remedy};
use piton_core::{GateRef, LanePath, Status, error_codes, remedy};
use piton_formats::diagnostic::CODES;
use piton_formats::{Diagnostic, Severity};
use serde::{Serialize, Serializer};

use crate::layout::{self, Layout, style_of};
use crate::place::{At, Place};
use crate::resume::Resume;
use crate::shape::shapes;
use crate::summary::Summary;
use crate::text::{count, sanitize, sanitize_lines};

/// Answers that have one key.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
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
    Complete<'a> { run_id: &'a str, status: Status, #[serde(skip)] words: Remedy }

    /// The files of a new plan.
    Begun<'a> { path: &'a str, files: Vec<&'a str>, dry_run: bool, next: Vec<String> }

    /// What was set up for agent programs, or taken back.
    SetUp<'a> {
        programs: Vec<&'a str>, changes: &'a [FileChange], dry_run: bool, undo: bool,
        /// What a person must still do.
        next: Vec<String>,
    }

    /// A file that is changed for an agent program.
    FileChange { path: String, change: &'static str }

    /// A run that continues in the background.
    Detached<'a> { run_id: &'a str, pid: u32, log: &'a Path }

    /// A report that was written to a file.
    Reported<'a> { run_id: &'a str, file: &'a Path, format: &'a str, bytes: usize }

    /// How often each step ran in the demo.
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
    Acts<'a> { run_id: &'a str, acts: Vec<Act> }

    /// An act.
    Act { act: u64, at: At, what: String, undoes: Option<u64>, undone: bool }

    /// A run that was rolled back.
    RolledBack<'a> {
        run_id: &'a str, rolled_back: Option<String>, kept: Vec<String>,
        approvals_taken_back: &'a [GateRef], resume_hint: String,
        rollback_hint: String, undo_hint: String,
    }

    /// A ledger that was begun anew.
    NewLedger<'a> {
        ledger: &'a Path,
        /// What the old one is now.
        aside: Option<&'a Path>,
    }

    /// A ledger that is used although it is older than it was.
    AcceptedLedger<'a> { ledger: &'a Path, accepted: bool, runs: Vec<String> }

    /// What `piton doctor` found.
    Findings<'a> { clean: bool, findings: &'a [Finding], agents: Vec<AgentFound<'a>> }

    /// What `piton check` found.
    Checked<'a> {
        plan: &'a str, ready: bool, problems: Vec<Problem>, remarks: &'a [String],
        agents: Vec<AgentFound<'a>>,
    }

    /// What it found of the phases of a roadmap.
    CheckedPhases<'a> {
        plan: String, ready: bool, phases: Vec<Checked<'a>>,
        /// Phases without a document, before the first of which the roadmap stops.
        unwritten: Vec<&'a str>,
    }

    /// Something that keeps a plan from running.
    Problem { code: String, cause: String, remedies: Vec<String> }

    /// An agent program that was looked for, and what is missing for work without a person.
    AgentFound<'a> {
        id: &'a str, program: &'static str, path: Option<&'a str>, version: Option<&'a str>,
        /// The version that Piton was tested with.
        tested: Option<&'static str>,
        login: bool, missing: Vec<&'static str>,
    }

    /// Something that was checked.
    Finding {
        severity: Health, what: String,
        /// What to do; empty if there is nothing to do.
        #[serde(skip_serializing_if = "Remedy::is_empty", serialize_with = "typed")] next: Remedy,
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

impl Problem {
    /// A refusal, with commands as they are typed in a place.
    pub fn new(refusal: &Refusal, place: &Place) -> Self {
        Self {
            code: refusal.code.clone().into_owned(),
            cause: refusal.cause.clone(),
            remedies: refusal.remedies.iter().map(|remedy| place.remedy(remedy)).collect(),
        }
    }
}

impl AgentFound<'_> {
    /// Which program and version it is, in one line; a version that was not asked for is not named.
    pub fn line(&self) -> String {
        let id = sanitize(self.id);
        let Some(path) = self.path else {
            return format!("agent {id}: {} is not found", self.program);
        };
        let version = self.version.map(|version| format!(", version {}", sanitize(version)));
        let other = self.tested.filter(|tested| self.version.is_some_and(|v| v != *tested));
        let tested = other.map(|tested| format!(" (tested with {tested})"));
        let (version, tested) = (version.unwrap_or_default(), tested.unwrap_or_default());
        format!("agent {id}: {}{version}{tested}", sanitize(path))
    }
}

impl Checked<'_> {
    /// For people.
    pub fn render(&self, layout: &Layout) -> String {
        let mut out = String::new();
        for Problem { code, cause, remedies } in &self.problems {
            let label = layout.paint(layout::BAD, &format!("error[{code}]:"));
            let _ = writeln!(out, "{label} {}", sanitize_lines(cause));
            for remedy in remedies {
                let label = layout.paint(layout::NOTE, "hint:");
                let _ = writeln!(out, "{label} {}", sanitize_lines(remedy));
            }
        }
        for agent in &self.agents {
            let _ = writeln!(out, "{}", agent.line());
        }
        for remark in self.remarks {
            let _ = writeln!(out, "note: {}", sanitize(remark));
        }
        let plan = sanitize(self.plan);
        let _ = match self.problems.len() {
            0 => writeln!(out, "{plan} can run"),
            n => writeln!(out, "{plan} cannot run: {}", count(n, "problem")),
        };
        out
    }
}

impl CheckedPhases<'_> {
    /// For people.
    pub fn render(&self, layout: &Layout) -> String {
        let mut out: String = self.phases.iter().map(|phase| phase.render(layout)).collect();
        if let Some(phase) = self.unwritten.first() {
            let phase = sanitize(phase);
            let _ = writeln!(
                out,
                "note: phase {phase} has no document yet: the roadmap stops before it"
            );
        }
        out
    }
}

impl<'a> Failure<'a> {
    /// An error with what to do next, as it is typed in a place.
    pub fn new(
        code: &'a str,
        message: &str,
        hints: &[Remedy],
        exit_code: u8,
        place: &Place,
    ) -> Self {
        let mut hints: Vec<String> = hints.iter().map(|hint| place.text(hint)).collect();
        // A step may be told the same of several.
        hints.dedup();
        Self { code, message: message.to_owned(), hints, exit_code, problems: &[] }
    }

    /// A document that is refused.
    pub fn from_problems(problems: &'a [Diagnostic], exit_code: u8) -> Self {
        // What refuses the document comes first, wherever it is.
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

    /// For people: the code and the cause, a line for each hint, and where the code is explained.
    pub fn render(&self, layout: &Layout, place: &Place) -> String {
        let label = layout.paint(layout::BAD, &format!("error[{}]:", self.code));
        let mut out = format!("{label} {}\n", sanitize_lines(&self.message));
        for hint in self.hints.iter().cloned().chain(explain(self.code, place)) {
            let label = layout.paint(layout::NOTE, "hint:");
            let _ = writeln!(out, "{label} {}", sanitize_lines(&hint));
        }
        out
    }
}

/// Where a code is explained.
pub fn explain(code: &str, place: &Place) -> Option<String> {
    let mut all = error_codes::TABLE.iter().chain(CODES);
    let is_explained = all.any(|entry| entry.code == code);
    is_explained.then(|| place.remedy(&remedy![Words "for details, run ", Piton "explain {code}"]))
}

fn typed<S: Serializer>(next: &Remedy, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(next)
}

/// An answer that people get in words.
pub trait InWords {
    /// The words.
    fn words(&self) -> Remedy;
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

impl InWords for Ended<'_> {
    fn words(&self) -> Remedy {
        format!("{}: {}", self.run_id, self.answer).into()
    }
}

impl InWords for Complete<'_> {
    fn words(&self) -> Remedy {
        self.words.clone()
    }
}

impl InWords for Detached<'_> {
    fn words(&self) -> Remedy {
        let (run, pid) = (self.run_id, self.pid);
        remedy![
            Words "run {run} continues in the background (process {pid})\nhint: watch it with ",
            Piton "attach {run}",
            Words ", end it with ",
            Piton "abort {run}",
        ]
    }
}

impl InWords for Reported<'_> {
    fn words(&self) -> Remedy {
        let (run, file) = (self.run_id, sanitize(&self.file.to_string_lossy()));
        remedy![Words "wrote the report of run {run} to {file}"]
    }
}

impl InWords for Demo {
    fn words(&self) -> Remedy {
        let mut out = "\n== How often each step ran\n".to_owned();
        out.push_str("   step                 driver killed   everything killed\n");
        for Ran { step, driver_killed, everything_killed } in &self.ran {
            let _ =
                writeln!(out, "   {step:<20} {driver_killed:>6}x         {everything_killed:>6}x");
        }
        out.push_str(
            "\nA killed driver costs nothing. A machine crash costs at most the steps in flight.",
        );
        out.into()
    }
}

impl InWords for Restored<'_> {
    fn words(&self) -> Remedy {
        let (files, name, run) = (sanitize(&self.files), self.restored, self.run_id);
        remedy![Words "restored {files} from {name}; undo it with ", Piton "undo {run}"]
    }
}

impl InWords for Exported<'_> {
    fn words(&self) -> Remedy {
        let (name, to, files) = (self.checkpoint, sanitize(&self.to), count(self.files, "file"));
        let verb = if self.dry_run { "would write" } else { "wrote" };
        format!("{verb} {files} of {name} to {to}").into()
    }
}

impl<'a> Acts<'a> {
    /// The newest first.
    pub fn new(run_id: &'a str, acts: &'a [Undoable]) -> Self {
        let act = |act: &'a Undoable| Act {
            act: act.id,
            at: At(act.at),
            what: act.title(),
            undoes: act.undoes,
            undone: act.undone,
        };
        Self { run_id, acts: acts.iter().rev().map(act).collect() }
    }
}

impl InWords for NewLedger<'_> {
    fn words(&self) -> Remedy {
        let dir = self.ledger.parent().unwrap_or(self.ledger).display();
        let aside = self.aside.map(|aside| format!("the old ledger is now {}\n", aside.display()));
        format!("{}started a new ledger in {dir}", aside.unwrap_or_default()).into()
    }
}

impl InWords for AcceptedLedger<'_> {
    fn words(&self) -> Remedy {
        let ledger = self.ledger.display();
        if !self.accepted {
            return format!("the ledger in {ledger} is not behind; nothing was changed").into();
        }
        remedy![
            Words "accepted the ledger in {ledger} as it is\n\
                   what it does not have counts as never done: ",
            Piton "resume RUN",
            Words " runs it again",
        ]
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
        Self { severity: Health::Ok, what: what.into(), next: Remedy::default() }
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
    pub fn next(mut self, next: impl Into<Remedy>) -> Self {
        self.next = next.into();
        self
    }

    /// For people.
    pub fn render(&self, layout: &Layout, place: &Place) -> String {
        let (word, style) = match self.severity {
            Health::Ok => ("ok:", style_of(Status::Complete)),
            Health::Warning => ("warning:", layout::NOTE),
            Health::Error => ("error:", layout::BAD),
        };
        let mut line = format!("{} {}", layout.paint(style, word), sanitize(&self.what));
        if !self.next.is_empty() {
            let _ = write!(line, "\n  next: {}", place.remedy(&self.next));
        }
        line
    }
}

impl Display for Imported<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "imported {} (plan {})", self.run_id, sanitize(self.plan))?;
        for Taken { lane, stage, goes_on, unknown } in self.lanes {
            write!(f, "\n  {lane}: {}; {goes_on}", stage.unwrap_or("not started"))?;
            for unknown in unknown {
                write!(f, "\n    unknown: {}", sanitize(unknown))?;
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
mod tests {
    use super::*;

    fn example() -> Failure<'static> {
        let hints = ["accept it with `--accept-spec`", "or undo the change"].map(Remedy::from);
        Failure::new("spec-changed", "the spec\u{1b}[2J changed", &hints, 4, &Place::default())
    }

    #[test]
    fn an_error_has_a_code_and_each_hint_its_line() {
        assert_eq!(
            example().render(&Layout::plain(80), &Place::default()),
            "error[spec-changed]: the spec changed\n\
             hint: accept it with `--accept-spec`\n\
             hint: or undo the change\n\
             hint: for details, run `piton explain spec-changed`\n"
        );
    }
}

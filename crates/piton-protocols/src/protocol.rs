//! The trait that every protocol implements, and the types of its methods.
//!
//! A protocol is pure: it asks for the files that it wants to read, and returns questions to a person
//! as [`Question`], additions to a step as [`Given`] and changes of its files as edits.

mod existing;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;

use piton_core::hash::Sha;
use piton_core::lane::{TaskOf, TaskWorktrees};
use piton_core::refusal::{Refusal, Remedy};
use piton_core::{GateRef, LanePath, Plan, RunState, StepPath, Timestamp};
use piton_formats::Diagnostic;
use piton_formats::keys::Section;
use piton_formats::settings::Settings;
use piton_formats::template::Given;
use serde::Serialize;

pub use existing::{Existing, Midway, Offer, Start, Unclear, Upgrade};

use crate::files::{Files, Run};
use crate::format::{Claim, Format};
use crate::import::ForeignRun;
use crate::shown::Shown;

/// What a brief says of a run whose steps do not say what is to be done, line by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The task, and where its work is.
    pub task: Vec<String>,
    /// What must hold when it is done.
    pub acceptance: Vec<String>,
    /// What comes after.
    pub next: Vec<String>,
    /// Files that were made.
    pub changed: Vec<String>,
}

/// A published protocol: what it claims, reads, writes, checks and says.
pub trait Protocol: Sync + Debug {
    /// Its name, which `run.created` records; it never changes.
    fn id(&self) -> &'static str;

    /// The version of the protocol that this program implements.
    fn version(&self) -> u32 {
        1
    }

    /// What its plans are, for a person who named something else; empty if it has none of its own.
    fn plans(&self) -> &'static str {
        ""
    }

    /// How sure it is that a file or folder is a plan of its own.
    fn claim(&self, source: &Source<'_>) -> Claim;

    /// The plan to use if none is named; `list` gives the names in a folder of the project.
    fn around(&self, _list: &dyn Fn(&str) -> Vec<String>) -> Option<String> {
        None
    }

    /// The plans that a file or folder lists, to be run one after the other; nothing if it lists none.
    fn chain(&self, _source: &Source<'_>) -> Vec<Link> {
        Vec::new()
    }

    /// The plan of a task that blocks a phase, if the run has that task.
    fn fix(&self, _state: &RunState, _task: &str) -> Option<Fix> {
        None
    }

    /// Reads a plan, or says why it cannot be used.
    fn read(&self, source: &Source<'_>) -> Result<Reading, Unreadable>;

    /// Tells whether runs of a `plan.toml` that names no protocol follow it.
    fn adopts(&self, _plan: &Plan, _settings: &Settings) -> bool {
        false
    }

    /// Removes from a plan that was read again what its own run changed in the file.
    fn as_recorded(&self, _plan: &mut Plan, _recorded: &Plan) {}

    /// The keys of its own section in the settings, which is named like the protocol.
    fn settings(&self) -> Option<&'static Section> {
        None
    }

    /// The formats of its files, for `piton inspect`.
    fn formats(&self) -> &'static [Format] {
        &[]
    }

    /// What an earlier run of the same file means for a new one, at this time.
    fn start(&self, _plan: &Plan, _earlier: &RunState, _now: Timestamp) -> Start {
        Start::Ask
    }

    /// Tells whether a run does the work that a [`Need`] names.
    fn is_needed(&self, _run: &RunState, _need: &str) -> bool {
        false
    }

    /// Features, plans or workflows here that look unfinished, by its files; `list` gives the names in
    /// a folder of the project.
    fn unfinished(&self, _look: &Look<'_>) -> Vec<Candidate> {
        Vec::new()
    }

    /// The files beside a plan that get other names when a new run takes the place of what they tell.
    fn aside(&self, _plan: &Plan, _now: Timestamp) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The files of a new plan of its kind, for `piton init`; `None` if it has none to begin with.
    fn init(&self, _new: &New<'_>) -> Option<Begun> {
        None
    }

    /// What the files beside a plan say about a run that the ledger does not know.
    fn existing(&self, _source: &Source<'_>, _plan: &Plan, _now: Timestamp) -> Existing {
        Existing::Nothing
    }

    /// What its files say about a run that is about to resume.
    fn checks(&self, _plan: &Plan, _state: &RunState, _read: &Reader<'_>) -> Vec<Finding> {
        Vec::new()
    }

    /// Tells whether what a step makes is complete although its last attempt was cut short: it need not
    /// run again.
    fn is_complete(&self, _starting: &Starting<'_>) -> bool {
        false
    }

    /// Why an attempt failed although its program succeeded and made all artifacts.
    fn rejects(&self, _ended: &Starting<'_>) -> Option<String> {
        None
    }

    /// Tells whether the end of a successful step is recorded in full: the files that it changed, and its
    /// last lines where it wrote no notes.
    fn sums_up(&self) -> bool {
        false
    }

    /// Tells whether a resume grants failed steps new retries.
    fn retries_on_resume(&self) -> bool {
        false
    }

    /// The runs that another tool recorded in a file; `None` if the file is not of that kind.
    fn import(&self, _file: &str, _text: &str) -> Option<Imported> {
        None
    }

    /// Tells whether a text is the plan of a phase of such a run.
    fn is_plan_of(&self, _text: &str, _phase: &str) -> bool {
        false
    }

    /// The ticked boxes of its files, and the hash of the file they are in. A box is named like the
    /// gate that lanes wait for, or like the gate that it approves: by its place or its text.
    fn inputs(&self, _plan: (&str, &Plan), _read: &Reader<'_>) -> Option<(Vec<String>, Sha)> {
        None
    }

    /// What a person should see before they decide about a gate, besides files and what changed.
    fn presents(
        &self,
        _run: (&Plan, &RunState),
        _gate: &GateRef,
        _read: &Reader<'_>,
    ) -> Vec<Shown> {
        Vec::new()
    }

    /// What an attempt of a step is given besides what the plan says: values for its templates,
    /// environment variables, and text around its prompt.
    fn dispatch(&self, _starting: &Starting<'_>) -> Given {
        Given::default()
    }

    /// What is to be done in a run, for a brief; `None` where its steps say it.
    fn told(&self, _run: &Run<'_>, _read: &Reader<'_>) -> Option<Told> {
        None
    }

    /// What the branch and the worktree of a lane are called. A task of a lane has both as well.
    fn names(&self, lane: &LanePath, task: Option<&TaskOf>) -> Names {
        let folder = task.map_or(lane.to_string(), |task| format!("tasks/{}", task.task));
        Names { branch: format!("{}/{lane}", self.id()), folder }
    }

    /// The files that it keeps for a run; `None` if it keeps none.
    fn files(&self, _run: &Run<'_>) -> Option<Box<dyn Files>> {
        None
    }

    /// The files and folders that it writes, from the root, whatever protocol the run follows. They
    /// never count as uncommitted changes.
    fn own_paths(&self, _run: &Run<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Those of its files and folders, from the root, that are kept out of commits unless the project
    /// tracks them.
    fn kept_out(&self, _settings: &Settings) -> Vec<String> {
        Vec::new()
    }

    /// The tasks that block phases of a run although all their steps are done.
    fn blockers(&self, _state: &RunState) -> Vec<Blocker> {
        Vec::new()
    }
}

/// An attempt that is about to start.
#[derive(Clone, Copy)]
pub struct Starting<'a> {
    /// The plan, as its file has it.
    pub plan: &'a Plan,
    /// The run.
    pub state: &'a RunState,
    /// The step.
    pub step: &'a StepPath,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Reads a file of the folder that the step works in.
    pub read: &'a Reader<'a>,
    /// The files that earlier attempts of the step changed and that are there, as far as it is known.
    pub left: &'a dyn Fn() -> Vec<String>,
}

/// What the branch and the worktree of a lane are called; a number is added to names that are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The branch.
    pub branch: String,
    /// The worktree: below the folder of all worktrees, and that of a task below its lane's worktree.
    pub folder: String,
}

/// A task that blocks a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocker {
    /// Its id.
    pub id: String,
    /// The phase that it blocks.
    pub phase: String,
    /// The command that failed; empty if it was not recorded.
    pub command: String,
    /// Its exit code.
    pub exit_code: Option<i32>,
}

impl Blocker {
    /// What blocks the phase, in one line.
    pub fn words(&self) -> String {
        let command = if self.command.is_empty() { "validation" } else { &self.command };
        match self.exit_code {
            Some(code) => format!("blocked by {}: {command}, exit code {code}", self.id),
            None => format!("blocked by {}: {command}, no exit code", self.id),
        }
    }
}

/// Reads a file, given its path from the project's root.
pub type Reader<'a> = dyn Fn(&str) -> io::Result<String> + 'a;

/// The runs of a file and its problems, or why it cannot be used.
pub type Imported = Result<(Vec<ForeignRun>, Vec<Diagnostic>), Box<Diagnostic>>;

/// What a person named, and what a protocol needs to read it.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// As the person named it.
    pub file: &'a str,
    /// Its path from the project's root.
    pub path: &'a str,
    /// Its text; `None` for a folder.
    pub text: Option<&'a str>,
    /// Reads other files of the project.
    pub read: &'a Reader<'a>,
    /// The names in a folder, given its path from the project's root.
    pub list: &'a dyn Fn(&str) -> Vec<String>,
    /// When a file was modified last, given its path from the project's root.
    pub modified: &'a dyn Fn(&str) -> Option<Timestamp>,
    /// The settings, for what the plan leaves open.
    pub settings: &'a Settings,
    /// Whether the project is a git repository: worktrees need one.
    pub git: bool,
    /// Whether tasks get worktrees of their own; `None` leaves it to the settings.
    pub task_worktrees: Option<TaskWorktrees>,
}

impl Source<'_> {
    /// Tells whether its name has an extension.
    pub fn has_extension(&self, wanted: &str) -> bool {
        self.file.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case(wanted))
    }
}

/// A plan, and what must be known before it runs.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The plan.
    pub plan: Plan,
    /// Warnings for a person.
    pub warnings: Vec<Diagnostic>,
    /// How the ids of its runs begin; `None` to use the name of the file.
    pub name: Option<String>,
    /// The open gates that each lane waits for.
    pub open_gates: BTreeMap<LanePath, Vec<String>>,
    /// Work of other plans that lanes depend on.
    pub needs: Vec<Need>,
    /// What a person decides before a run starts.
    pub questions: Vec<Question>,
    /// What is said about the files of the plan.
    pub notes: Vec<String>,
}

impl Reading {
    /// A plan without names, gates, needs or questions of its own.
    pub fn new(plan: Plan, warnings: Vec<Diagnostic>) -> Self {
        let (name, open_gates) = (None, BTreeMap::new());
        let (needs, questions, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { plan, warnings, name, open_gates, needs, questions, notes }
    }
}

/// A phase of a roadmap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its id, as its document or the roadmap says it.
    pub phase: String,
    /// Its document, by its path from the project's root; `None` if there is none yet.
    pub document: Option<String>,
}

/// The plan of a task that blocks a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The name of its file.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Work of another plan that a lane depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The lane.
    pub lane: LanePath,
    /// The work, as the plan names it.
    pub name: String,
}

impl Need {
    /// The reminder to a person.
    pub fn words(&self) -> String {
        let Self { lane, name } = self;
        format!(
            "{lane} depends on {name}, which is not in this document: make sure that it is done"
        )
    }
}

/// A question about something that a plan leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub text: String,
    /// What happens if the answer is not yes.
    pub otherwise: Otherwise,
}

/// What happens if the answer to a question is not yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// No run starts.
    Stop {
        /// What a person can do instead.
        instead: &'static str,
        /// What is printed if nobody can be asked.
        unasked: Option<String>,
    },
    /// A lane runs alone.
    Alone {
        /// The lane.
        lane: LanePath,
        /// What is printed about that.
        said: String,
    },
}

/// Why there is no plan.
#[derive(Clone, Debug)]
pub enum Unreadable {
    /// The document is wrong.
    Problems(Vec<Diagnostic>),
    /// Something else is missing or wrong.
    Refused(Refusal),
    /// A precondition is missing.
    Blocked(Refusal),
}

impl From<Vec<Diagnostic>> for Unreadable {
    fn from(problems: Vec<Diagnostic>) -> Self {
        Self::Problems(problems)
    }
}

/// A plan that is to be begun.
#[derive(Clone, Copy)]
pub struct New<'a> {
    /// What a person calls it.
    pub name: Option<&'a str>,
    /// What is there already.
    pub look: Look<'a>,
    /// The time.
    pub now: Timestamp,
}

/// The files of a new plan, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The plan, by its path from the project's root.
    pub path: String,
    /// Its files with their texts; one that is there stays.
    pub files: Vec<(String, String)>,
    /// What a person does next, step by step.
    pub next: Vec<Remedy>,
}

/// What a protocol looks at to find what is unfinished.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The names in a folder, given its path from the project's root.
    pub list: &'a dyn Fn(&str) -> Vec<String>,
    /// Reads a file.
    pub read: &'a Reader<'a>,
    /// The settings of the project.
    pub settings: &'a Settings,
}

/// Something unfinished that a person may want to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The plan, by its path from the project's root.
    pub path: String,
    /// What it is called.
    pub name: String,
    /// Where it stands, in a few words.
    pub stands: String,
    /// When something last happened to it.
    pub at: Option<Timestamp>,
}

/// What a check of a protocol's files found, before a run resumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked, in a word or two.
    pub check: &'static str,
    /// What follows.
    pub effect: Effect,
    /// What was found.
    pub message: String,
}

/// What follows from a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: all is as recorded.
    Holds,
    /// It is said, and the run goes on.
    Warns,
    /// The run does not resume.
    Stops,
    /// A finished step runs again.
    RunsAgain(StepPath),
}

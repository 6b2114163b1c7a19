//! The seat of a protocol: one trait, one table.
//!
//! A run records which protocol it follows, and which version of it, when it is created. After that
//! nothing is guessed from a file's name: whoever needs to know asks the table for the recorded one.
//! A new protocol is its folder and its line in [`TABLE`].
//!
//! A protocol is pure. What it wants to read it asks for, what it wants asked it returns as a
//! [`Question`].

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;

use piton_core::event::ProtocolRef;
use piton_core::hash::Sha;
use piton_core::lane::TaskWorktrees;
use piton_core::{LanePath, Plan, RunState};
use piton_formats::Diagnostic;
use piton_formats::settings::Settings;
use serde::Serialize;

use crate::files::{Files, Run};
use crate::import::ForeignRun;
use crate::inspect::Format;
use crate::lanes::Lanes;
use crate::plain::Plain;

/// A published protocol: what it claims, reads, writes, checks and says.
pub trait Protocol: Sync + Debug {
    /// Its frozen name: what `run.created` records.
    fn id(&self) -> &'static str;

    /// The version of it that this program follows.
    fn version(&self) -> u32 {
        1
    }

    /// How sure it is that a file or folder is a plan of its own.
    fn claim(&self, source: &Source<'_>) -> Claim;

    /// The plan of its own that lies around where none is named; `list` gives the names in a folder.
    fn around(&self, _list: &dyn Fn(&str) -> Vec<String>) -> Option<String> {
        None
    }

    /// Reads a plan; one that it did not claim is refused with its problems.
    fn read(&self, source: &Source<'_>) -> Result<Reading, Unreadable>;

    /// Tells whether runs of a `plan.toml` that names no protocol follow it.
    fn adopts(&self, _plan: &Plan, _settings: &Settings) -> bool {
        false
    }

    /// Takes out of a plan that was read again what a run of it changed in its file.
    fn as_recorded(&self, _plan: &mut Plan, _recorded: &Plan) {}

    /// The formats of its files, for `piton inspect`.
    fn formats(&self) -> &'static [Format] {
        &[]
    }

    /// What an earlier run of the same file means for a plan.
    fn start(&self, _plan: &Plan, _earlier: &RunState) -> Start {
        Start::Ask
    }

    /// Tells whether a run is of what a [`Need`] names.
    fn is_needed(&self, _run: &RunState, _need: &str) -> bool {
        false
    }

    /// What its files say about a run that is about to go on.
    fn checks(&self, _state: &RunState, _read: &Reader<'_>) -> Vec<Finding> {
        Vec::new()
    }

    /// Tells whether resuming is how a person says that what failed may be tried again.
    fn retries_on_resume(&self) -> bool {
        false
    }

    /// The runs that another tool recorded in a file; nothing where it is no such file.
    fn import(&self, _file: &str, _text: &str) -> Option<Imported> {
        None
    }

    /// Tells whether a text is the plan of a phase that such a run is about.
    fn is_plan_of(&self, _text: &str, _phase: &str) -> bool {
        false
    }

    /// The boxes that are ticked in its files, and the bytes of the file that has them: each is named
    /// as lanes wait for it, or as the place of the gate that it approves. `read` gives a file of the
    /// project.
    fn inputs(&self, _plan_path: &str, _read: &Reader<'_>) -> Option<(Vec<String>, Sha)> {
        None
    }

    /// The files that it keeps of a run; nothing where it keeps none.
    fn files(&self, _run: &Run<'_>) -> Option<Box<dyn Files>> {
        None
    }

    /// Paths from the root, whatever protocol a run follows, that this one writes: files, and folders
    /// with all in them. They never count as dirt.
    fn own_paths(&self, _run: &Run<'_>) -> Vec<String> {
        Vec::new()
    }

    /// What blocks phases of a run although all their work is done.
    fn blockers(&self, _state: &RunState) -> Vec<Blocker> {
        Vec::new()
    }
}

/// What blocks a phase: a task that nobody has done yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocker {
    /// Its id.
    pub id: String,
    /// The phase that it blocks.
    pub phase: String,
    /// The command that failed; empty where it was not recorded.
    pub command: String,
    /// How it exited.
    pub exit_code: Option<i32>,
}

impl Blocker {
    /// What the phase is blocked by, in one line.
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

/// The runs of a file and what is wrong with it; or why nothing of it can be used.
pub type Imported = Result<(Vec<ForeignRun>, Vec<Diagnostic>), Box<Diagnostic>>;

/// What a person named, and all that a protocol may need to read it.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// As the person named it.
    pub file: &'a str,
    /// Its text; nothing where it is a folder.
    pub text: Option<&'a str>,
    /// Reads other files.
    pub read: &'a Reader<'a>,
    /// What applies where the plan says nothing.
    pub settings: &'a Settings,
    /// Whether the project has git: without it nothing works in worktrees.
    pub git: bool,
    /// Whether tasks get worktrees of their own, as the person or the record says.
    pub task_worktrees: Option<TaskWorktrees>,
}

impl Source<'_> {
    /// Tells whether its name ends so.
    pub fn has_extension(&self, wanted: &str) -> bool {
        self.file.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case(wanted))
    }
}

/// How sure a protocol is of a file; the surest reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// It is something else.
    No,
    /// It may be one: it is called like one, or nothing says otherwise.
    Name,
    /// It looks like one.
    Content,
}

/// A plan, and what is to be known of it before it runs.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The plan.
    pub plan: Plan,
    /// What a person should look at.
    pub warnings: Vec<Diagnostic>,
    /// What its runs are called; nothing where its file names them.
    pub name: Option<String>,
    /// Gates that are open, for each lane that waits for them.
    pub open_gates: BTreeMap<LanePath, Vec<String>>,
    /// Work of other plans that lanes depend on.
    pub needs: Vec<Need>,
    /// What a person decides before a run begins.
    pub questions: Vec<Question>,
}

impl Reading {
    /// A plan of which there is no more to be known.
    pub fn new(plan: Plan, warnings: Vec<Diagnostic>) -> Self {
        let (name, open_gates) = (None, BTreeMap::new());
        Self { plan, warnings, name, open_gates, needs: Vec::new(), questions: Vec::new() }
    }
}

/// Work of another plan that a lane depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The lane.
    pub lane: LanePath,
    /// What it depends on, as the plan names it.
    pub name: String,
}

impl Need {
    /// What is said of it.
    pub fn words(&self) -> String {
        let Self { lane, name } = self;
        format!("{lane} depends on {name}, which this document does not hold: see that it is done")
    }
}

/// Something that a plan leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// What follows without a yes.
    pub otherwise: Otherwise,
}

/// What follows where a question is not answered with yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// No run begins.
    Stop {
        /// What a person can do instead of answering.
        instead: &'static str,
        /// What is said where nobody is asked.
        unasked: Option<String>,
    },
    /// A lane runs alone, as the plan has it.
    Alone {
        /// The lane.
        lane: LanePath,
        /// What is said of that.
        said: String,
    },
}

/// Why there is no plan.
#[derive(Clone, Debug)]
pub enum Unreadable {
    /// The document is wrong.
    Problems(Vec<Diagnostic>),
    /// Something around it is.
    Refused(Refusal),
}

impl From<Vec<Diagnostic>> for Unreadable {
    fn from(problems: Vec<Diagnostic>) -> Self {
        Self::Problems(problems)
    }
}

/// A refusal: code, cause, remedies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code that `piton explain` knows.
    pub code: &'static str,
    /// Whether a precondition is missing, and not something wrong.
    pub blocked: bool,
    /// What is the matter.
    pub cause: String,
    /// What to do, one line each.
    pub remedies: Vec<String>,
}

/// What an earlier run of the same file means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// It goes on without a question.
    Resume,
    /// A person says whether it goes on, or is set aside for a new one.
    Ask,
    /// It is a run of something else, in these words.
    Other(String),
}

/// What a file says about a run that is about to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the run must not go on.
    pub stops: bool,
    /// What differs.
    pub message: String,
}

/// A table of protocols; of two that are equally sure of a file the first reads it.
pub type Table = [&'static dyn Protocol];

/// The protocols of this program.
pub const TABLE: &Table = &[&Lanes, &Plain];

/// What blocks phases of a run by the protocol that it follows.
pub fn blockers(table: &Table, state: &RunState) -> Vec<Blocker> {
    let protocol = find(table, &state.protocol.id);
    protocol.map(|protocol| protocol.blockers(state)).unwrap_or_default()
}

/// Finds the protocol that a run recorded.
pub fn find(table: &Table, id: &str) -> Option<&'static dyn Protocol> {
    table.iter().find(|protocol| protocol.id() == id).copied()
}

/// The protocol that is surest of a file or folder.
pub fn claimed(table: &Table, source: &Source<'_>) -> Option<&'static dyn Protocol> {
    let claims = table.iter().map(|protocol| (protocol.claim(source), *protocol));
    // `rev`, because of equals the last is taken and the first shall be.
    let surest = claims.rev().max_by_key(|(claim, _)| *claim);
    surest.filter(|(claim, _)| *claim > Claim::No).map(|(_, protocol)| protocol)
}

/// The protocol that runs of a plan follow: the one it names, else one that adopts it, else the one
/// that read it. An unknown name is handed back.
pub fn followed(
    table: &Table,
    reader: &'static dyn Protocol,
    plan: &Plan,
    settings: &Settings,
) -> Result<ProtocolRef, String> {
    let adopting = || table.iter().copied().find(|p| p.adopts(plan, settings));
    let protocol = match &plan.protocol {
        Some(name) => find(table, name).ok_or_else(|| name.clone())?,
        // What a protocol of its own reads follows that.
        None if reader.id() != Plain.id() => reader,
        None => adopting().unwrap_or(reader),
    };
    let (id, version) = (protocol.id().to_owned(), protocol.version());
    Ok(ProtocolRef { id, version, reader: reader.id().to_owned() })
}

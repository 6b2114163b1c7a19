//! What a phase document says: gates, lanes, tasks and the tests after the last merge.
//!
//! Values only, each with the line it was read from. Nothing is resolved beyond what the document
//! itself can tell; whether a lane has run is not in it.

/// One phase document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// The text of the first heading before the colon, such as `P1`.
    pub id: String,
    /// The text after it.
    pub title: String,
    /// Line of that heading; 0 if there is none.
    pub line: usize,
    /// The interface freeze gates.
    pub gates: Vec<Gate>,
    /// The lanes, in the order of the document.
    pub lanes: Vec<Lane>,
    /// Commands to run after all merges.
    pub test_plan: Vec<PlannedTest>,
    /// What else its verification asks for, in words: for a person.
    pub checks: Vec<String>,
    /// When the phase is done, in words.
    pub acceptance: Vec<String>,
    /// What a failed test means, where the document says so.
    pub tests: Option<TestsCount>,
    /// The lanes come from the swim lanes because there is no lane index: a person must confirm.
    pub needs_confirmation: bool,
}

impl Phase {
    /// What people must look at themselves: each with the task it belongs to, or none.
    pub fn checks(&self) -> Vec<(Option<&str>, &str)> {
        let tasks = self.lanes.iter().flat_map(|lane| &lane.tasks);
        let of_tasks = tasks.flat_map(|t| t.checks.iter().map(|c| (Some(&*t.id), &**c)));
        of_tasks.chain(self.checks.iter().map(|check| (None, &**check))).collect()
    }

    /// The gates whose boxes are ticked.
    pub fn ticked(&self) -> Vec<String> {
        self.gates.iter().filter(|gate| gate.closed).map(|gate| gate.id.clone()).collect()
    }
}

/// A gate that must be closed before lanes that depend on it start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Such as `IF-0-P1-AUTH`.
    pub id: String,
    /// What it freezes.
    pub text: String,
    /// Whether its box is ticked.
    pub closed: bool,
    /// Its line, from 1.
    pub line: usize,
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Such as `SL-1`.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Other names it has in the document.
    pub aliases: Vec<String>,
    /// What its section says about it.
    pub about: About,
    /// What a failed test means, where the lane says so.
    pub tests: Option<TestsCount>,
    /// What it waits for: as stated, from the `Blocks:` of others, and from its tasks.
    pub depends_on: Vec<Dependency>,
    /// What its own `Blocks:` names.
    pub blocks: Vec<String>,
    /// Whether it may run beside others.
    pub parallel_safe: ParallelSafe,
    /// Gates that are ticked when it completes.
    pub provides: Vec<String>,
    /// How often it is tried again; the document may leave it open.
    pub retries: Option<u32>,
    /// Its tasks, in the order of the document.
    pub tasks: Vec<Task>,
    /// Whether nothing blocks it.
    pub ready: bool,
    /// What blocks it: open gates, lanes, phases, and names that are unknown.
    pub blocked_by: Vec<String>,
    /// Its line, from 1.
    pub line: usize,
}

/// What the section of a lane says about it, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// `Scope:`
    pub scope: Vec<String>,
    /// `Owned files:`
    pub owned: Vec<String>,
    /// `Interfaces provided:`
    pub provided: Vec<String>,
    /// `Interfaces consumed:`
    pub consumed: Vec<String>,
    /// `Acceptance criteria:`
    pub acceptance: Vec<String>,
}

impl About {
    /// Adds what another section says.
    pub(super) fn add(&mut self, more: Self) {
        self.scope.extend(more.scope);
        self.owned.extend(more.owned);
        self.provided.extend(more.provided);
        self.consumed.extend(more.consumed);
        self.acceptance.extend(more.acceptance);
    }
}

/// What a failed test means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestsCount {
    /// The lane has failed.
    Gate,
    /// It is reported, and the lane goes on.
    Report,
}

impl TestsCount {
    /// Reads the word of a document or of the settings.
    pub fn read(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "gate" => Some(Self::Gate),
            "report" => Some(Self::Report),
            _ => None,
        }
    }
}

impl Lane {
    /// A lane of which only the name is known.
    pub fn new(id: String, name: String) -> Self {
        Self {
            id,
            name,
            aliases: Vec::new(),
            about: About::default(),
            tests: None,
            depends_on: Vec::new(),
            blocks: Vec::new(),
            parallel_safe: ParallelSafe::Unknown,
            provides: Vec::new(),
            retries: None,
            tasks: Vec::new(),
            ready: false,
            blocked_by: Vec::new(),
            line: 0,
        }
    }

    /// What the lane itself waits for, without what its tasks need.
    pub fn stated_dependencies(&self) -> impl Iterator<Item = &Dependency> {
        self.depends_on.iter().filter(|d| d.origin != Origin::Task)
    }
}

/// Something that must be there first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The name, without remarks in brackets.
    pub raw: String,
    /// What it names.
    pub kind: DependencyKind,
    /// How it came about.
    pub origin: Origin,
    /// The line that says so, from 1.
    pub line: usize,
}

/// What a dependency names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyKind {
    /// A lane of this phase.
    Lane,
    /// A gate.
    Gate,
    /// Another phase, or a lane of one.
    Phase,
    /// A task of this phase.
    Task,
    /// Something this document does not explain.
    Unknown,
}

/// How a dependency came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Written with the lane or task.
    Stated,
    /// Another lane says `Blocks:`.
    Blocks,
    /// A task of the lane says so.
    Task,
}

/// Whether a lane may run beside others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ParallelSafe {
    /// It may.
    Yes,
    /// It runs alone.
    No,
    /// Partly, for the reason given: a person decides.
    Mixed(String),
    /// The document does not say, or not in words that are known.
    #[default]
    Unknown,
}

impl ParallelSafe {
    /// The word in the document; `None` if it does not say.
    pub fn word(&self) -> Option<&'static str> {
        match self {
            Self::Yes => Some("yes"),
            Self::No => Some("no"),
            Self::Mixed(_) => Some("mixed"),
            Self::Unknown => None,
        }
    }
}

/// A task of a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Such as `P1-SL-DB-01`.
    pub id: String,
    /// What kind of work it is.
    pub kind: TaskKind,
    /// The document's word for that.
    pub kind_word: String,
    /// What is to be done, in words; empty for a row of a table, whose columns say it.
    pub text: String,
    /// What must be done before.
    pub depends_on: Vec<Dependency>,
    /// Files it may change.
    pub files: Vec<String>,
    /// Test files it owns, or what its tests check.
    pub tests_owned: Vec<String>,
    /// Commands that prove it.
    pub test_commands: Vec<String>,
    /// What else is to be tested, in words: for the agent, and for a person.
    pub checks: Vec<String>,
    /// Whether its commands are all there is to it, so that no agent is needed.
    pub is_evidence: bool,
    /// When it is done.
    pub acceptance: String,
    /// Further columns, by the name in the document.
    pub extra: Vec<(String, String)>,
    /// Required fields the document leaves out.
    pub missing: Vec<Field>,
    /// Its line, from 1.
    pub line: usize,
}

/// What kind of work a task is; within a lane they run in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskKind {
    /// Writes tests.
    Test,
    /// Implements.
    Impl,
    /// Writes documentation.
    Docs,
    /// Something else; the document's word is unknown.
    #[default]
    Unknown,
    /// Verifies.
    Verify,
}

impl TaskKind {
    /// The types that a document can name.
    pub const KNOWN: [Self; 4] = [Self::Test, Self::Impl, Self::Verify, Self::Docs];

    /// Reads the word of a document.
    pub fn read(word: &str) -> Self {
        match word.trim_end_matches(['.', ':']).to_lowercase().as_str() {
            "test" | "tests" | "testing" => Self::Test,
            "impl" | "implement" | "implementation" | "code" => Self::Impl,
            "docs" | "doc" | "documentation" => Self::Docs,
            "verify" | "verification" | "validate" | "validation" => Self::Verify,
            _ => Self::Unknown,
        }
    }

    /// The word in the document.
    pub fn word(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Impl => "impl",
            Self::Docs => "docs",
            Self::Verify => "verify",
            Self::Unknown => "unknown",
        }
    }
}

/// A field every task must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Task ID.
    Id,
    /// Type.
    Kind,
    /// Depends On.
    DependsOn,
    /// Files in Scope.
    Files,
    /// Tests Owned Files.
    TestsOwned,
    /// Test Command(s).
    TestCommands,
}

impl Field {
    /// All of them, in the order of the document's columns.
    pub const ALL: [Self; 6] =
        [Self::Id, Self::Kind, Self::DependsOn, Self::Files, Self::TestsOwned, Self::TestCommands];

    /// The name of its column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Id => "Task ID",
            Self::Kind => "Type",
            Self::DependsOn => "Depends On",
            Self::Files => "Files in Scope",
            Self::TestsOwned => "Tests Owned Files",
            Self::TestCommands => "Test Command(s)",
        }
    }
}

/// A command of the test execution plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTest {
    /// For the shell.
    pub command: String,
    /// Whether it is written for bash.
    pub is_bash: bool,
    /// Its line, from 1.
    pub line: usize,
}

impl PlannedTest {
    /// A command for any shell.
    pub(super) fn new(command: String, line: usize) -> Self {
        Self { command, is_bash: false, line }
    }
}

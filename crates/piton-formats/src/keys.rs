//! Every key of the plan and the settings: name, type and meaning, in one table.
//!
//! The reader, the hints for unknown keys, the JSON Schemas and the reference documentation are all
//! made from it, so that they always agree.

mod agents;
mod lanes;
mod replan;

use piton_core::budget;

pub use agents::{AGENT, PRICES, WINDOWS};
pub(crate) use lanes::INHERITED as LANE_INHERITED;
pub use lanes::{ISOLATION, LANE_AGENTS, LANES, MERGE, ON_RETRY, PULL_REQUEST, SNAPSHOTS, VIEWS};
pub use replan::REPLAN;

/// Fewest changed characters for which a known name still counts as near, however short it is.
const NEAR_DISTANCE_MIN: usize = 2;

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The name in the document.
    pub name: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// What it means, as one sentence without a full stop.
    pub doc: &'static str,
}

/// What the value of a key must be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Free text.
    Text,
    /// The id of a phase, lane or step.
    Id,
    /// Ids or paths of phases and lanes.
    Ids,
    /// A path below the project's root.
    Path,
    /// Paths below the project's root.
    Paths,
    /// Paths or globs below the project's root.
    Globs,
    /// Words, each free text.
    Words,
    /// A shell line, or a list of a program and its arguments.
    Command,
    /// A duration such as `45m`.
    Duration,
    /// A size such as `64MB`, or bytes.
    Size,
    /// Dollars.
    Money,
    /// A number that may have decimals.
    Decimal,
    /// A whole number from the first to the second bound.
    Count(u64, u64),
    /// Yes or no.
    Flag,
    /// Names and values of variables.
    Env,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A table with its own keys.
    Table(&'static Section),
    /// A list of tables with their own keys.
    Tables(&'static Section),
    /// Tables whose names the author chooses.
    Named(&'static Section),
}

impl Kind {
    /// What messages call such a value.
    pub fn expected(self) -> &'static str {
        match self {
            Self::Text | Self::Id | Self::Path => "a string",
            Self::Ids | Self::Paths | Self::Globs | Self::Words => "a list of strings",
            Self::Command => "a string or a list of strings",
            Self::Duration => "a duration in quotes",
            Self::Size => "a size: a string or a whole number",
            Self::Money => "an amount: a string or a number",
            Self::Decimal => "a number",
            Self::Count(..) => "a whole number",
            Self::Flag => "true or false",
            Self::Env => "a table of strings",
            Self::Choice(_) => "one of a few strings",
            Self::Table(_) => "a table",
            Self::Tables(_) => "a list of tables",
            Self::Named(_) => "a table of tables",
        }
    }

    /// How such a value is written, for hints.
    pub fn example(self, name: &str) -> String {
        match self {
            Self::Text | Self::Id => format!("{name} = \"text\""),
            Self::Path => format!("{name} = \"some/path\""),
            Self::Ids => format!("{name} = [\"ID\"]"),
            Self::Paths => format!("{name} = [\"some/path\"]"),
            Self::Globs => format!("{name} = [\"src/**/*.rs\"]"),
            Self::Words => format!("{name} = [\"word\"]"),
            Self::Command => format!("{name} = \"make check\" or {name} = [\"make\", \"check\"]"),
            Self::Duration => format!("{name} = \"45m\""),
            Self::Size => format!("{name} = \"64MB\""),
            Self::Money => format!("{name} = \"12.50\""),
            Self::Decimal => format!("{name} = 8.5"),
            Self::Count(..) => format!("{name} = 3"),
            Self::Flag => format!("{name} = true"),
            Self::Env => format!("{name} = {{ NAME = \"value\" }}"),
            Self::Choice(choices) => format!("{name} = \"{}\"", choices.join("\" or \"")),
            Self::Table(_) => format!("[{name}]"),
            Self::Tables(_) => format!("{name} = [{{ … }}], or [[…{name}]] before each"),
            Self::Named(_) => format!("[{name}.NAME]"),
        }
    }
}

/// A table of a document and the keys it may have.
#[derive(Debug)]
pub struct Section {
    /// What messages and the documentation call it.
    pub title: &'static str,
    /// What it is for.
    pub doc: &'static str,
    groups: &'static [&'static [Key]],
    budgets: bool,
}

impl Section {
    /// A section with these groups of keys.
    pub const fn new(
        title: &'static str,
        doc: &'static str,
        groups: &'static [&'static [Key]],
    ) -> Self {
        Self { title, doc, groups, budgets: false }
    }

    /// Its keys, in the order of the documentation.
    pub fn keys(&self) -> Vec<Key> {
        if self.budgets {
            let key = |row: &budget::Row| Key {
                name: row.name,
                kind: budget_kind(row.name),
                doc: row.limits,
            };
            return budget::TABLE.iter().map(key).collect();
        }
        self.groups.iter().flat_map(|group| group.iter().copied()).collect()
    }

    /// Finds a key.
    pub fn key(&self, name: &str) -> Option<Key> {
        self.keys().into_iter().find(|key| key.name == name)
    }
}

/// What the value of a budget must be.
fn budget_kind(name: &str) -> Kind {
    match name {
        "attempts" => Kind::Count(1, COUNT_MAX),
        "restarts" => Kind::Count(0, COUNT_MAX),
        "same_failure" => Kind::Count(2, COUNT_MAX),
        name if name.ends_with("tokens") => Kind::Count(0, TOKENS_MAX),
        name if name.ends_with("money") => Kind::Money,
        "log_bytes" | "run_log_bytes" => Kind::Size,
        // Every other budget is a length of time.
        _ => Kind::Duration,
    }
}

/// Most retries, attempts, jobs or kept runs: a number over a million is a typing error.
pub const COUNT_MAX: u64 = 1_000_000;
/// Most tokens: what a TOML integer holds.
pub const TOKENS_MAX: u64 = i64::MAX as u64;
/// Most lanes at once: each is at least one process, and processes are limited.
pub const JOBS_MAX: u64 = 1_024;
/// Longest time that runs are kept, a hundred years in days.
pub const KEEP_DAYS_MAX: u64 = 36_500;

/// The choices of `on_failure`.
pub const ON_FAILURE: &[&str] = &["stop", "continue"];
/// What a driver does when its terminal closes.
pub const ON_HANGUP: &[&str] = &["detach", "stop"];
/// What becomes of finished steps whose files were changed.
pub const ON_CHANGE: &[&str] = &["rerun", "ask"];

/// A key of a section.
pub const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, doc }
}

const ON_FAILURE_KEY: Key = key(
    "on_failure",
    Kind::Choice(ON_FAILURE),
    "what happens to the rest of the run when a step fails",
);

/// Keys that steps inherit: on a step they apply to it, elsewhere to all steps below.
pub const INHERITED: &[Key] = &[
    key("agent", Kind::Text, "the agent that prompts are given to"),
    key("retries", Kind::Count(0, COUNT_MAX), "how often a failed step is tried again (0)"),
    key("backoff", Kind::Duration, "wait before the first retry; doubles with each retry (1s)"),
    key("timeout", Kind::Duration, "longest time of one attempt (the budget `step_time`)"),
    key("idle_timeout", Kind::Duration, "longest time without output (unlimited)"),
    key("grace", Kind::Duration, "time between SIGTERM and SIGKILL (10s)"),
    key("env", Kind::Env, "environment variables to add"),
    key("dir", Kind::Path, "working directory (the project's root)"),
    key("keep", Kind::Words, "programs that may keep running after the step"),
];

/// What a step does. On a lane or phase, these keys are the short form.
pub const WORK: &[Key] = &[
    key("run", Kind::Command, "a command: a shell line, or a list of a program and its arguments"),
    key("prompt", Kind::Text, "a prompt for the agent"),
    key("prompt_file", Kind::Path, "a file with the prompt for the agent"),
    key("test", Kind::Command, "a command that must succeed after the work"),
    key("inputs", Kind::Globs, "files that the step reads; if one changes, the step runs again"),
    key("artifacts", Kind::Globs, "files that the step makes; they must exist when it succeeds"),
    key("writes", Kind::Globs, "the only files that it may change besides its artifacts (all)"),
    key(
        "scope",
        Kind::Globs,
        "the files that it is expected to change besides its artifacts; others call for a replan (all)",
    ),
    key("escalation", Kind::Text, "a gate that asks a person if it keeps failing for one reason"),
];

/// One step.
pub static STEP: Section = Section::new(
    "a step",
    "The smallest unit of work that is recorded.",
    &[&[key("id", Kind::Id, "its name, unique within the lane")], WORK, INHERITED],
);

/// One lane.
pub static LANE: Section = Section::new(
    "a lane",
    "A sequence of steps. With work of its own, it has one step named `work`.",
    &[
        &[
            key("id", Kind::Id, "its name, unique within the phase"),
            key("needs", Kind::Ids, "lanes that must be complete first: LANE or PHASE/LANE"),
            key("gate", Kind::Text, "a gate that a person must approve before it starts"),
            key("steps", Kind::Tables(&STEP), "its steps, in order"),
            key("step", Kind::Tables(&STEP), "same as `steps`, for [[phase.lane.step]]"),
        ],
        WORK,
        lanes::INHERITED,
        lanes::OWN,
        INHERITED,
    ],
);

/// One phase.
pub static PHASE: Section = Section::new(
    "a phase",
    "Lanes that run side by side. With work of its own, it has one lane named `main`.",
    &[
        &[
            key("id", Kind::Id, "its name, unique within the plan"),
            key("needs", Kind::Ids, "phases that must be complete first (the previous phase)"),
            key("gate", Kind::Text, "a gate that a person must approve before it starts"),
            key("lane", Kind::Tables(&LANE), "its lanes"),
            key("complexity", Kind::Decimal, "how complex it is, by your own measure"),
            key("tasks", Kind::Count(0, COUNT_MAX), "how many tasks it has"),
        ],
        WORK,
        lanes::INHERITED,
        INHERITED,
    ],
);

/// Values for all lanes and steps.
pub static DEFAULTS: Section = Section::new(
    "[defaults]",
    "Values for lanes and steps that have none of their own.",
    &[INHERITED, lanes::INHERITED],
);

/// Limits of the run.
pub static BUDGETS: Section =
    Section { title: "[budgets]", doc: "Limits of the whole run.", groups: &[], budgets: true };

const SHARED: &[Key] = &[
    ON_FAILURE_KEY,
    key("defaults", Kind::Table(&DEFAULTS), "values for all lanes and steps"),
    key("budgets", Kind::Table(&BUDGETS), "limits of the run"),
    key("agents", Kind::Named(&AGENT), "programs that get prompts"),
    key("replan", Kind::Table(&REPLAN), "when phases are planned again"),
];

/// The plan document.
pub static PLAN: Section = Section::new(
    "the plan",
    "What to do: phases, their lanes, their steps.",
    &[
        &[
            key("title", Kind::Text, "the title of the plan (the file name)"),
            key(
                "protocol",
                Kind::Text,
                "the protocol its runs follow (`lanes` with a lane in a worktree, else `plain`)",
            ),
            key("spec", Kind::Path, "the document that the work is measured against"),
            key(
                "on_change",
                Kind::Choice(ON_CHANGE),
                "what happens to finished steps whose files were changed from outside the run",
            ),
        ],
        SHARED,
        &[key("phase", Kind::Tables(&PHASE), "the phases, in order")],
    ],
);

/// What is kept by `piton gc`.
pub static GC: Section = Section::new(
    "[gc]",
    "What `piton gc` keeps. It always keeps the newest complete run of each plan.",
    &[&[
        key("keep_runs", Kind::Count(0, COUNT_MAX), "how many finished runs are kept (20)"),
        key(
            "keep_days",
            Kind::Count(0, KEEP_DAYS_MAX),
            "how many days a finished run is kept (30)",
        ),
    ]],
);

/// What is redacted.
pub static SECRETS: Section = Section::new(
    "[secrets]",
    "What is redacted besides variables that look like secrets.",
    &[&[
        key("names", Kind::Words, "more variables whose values are secret"),
        key("except", Kind::Words, "variables that look like secrets, but are not"),
    ]],
);

/// The settings document.
pub static SETTINGS: Section = Section::new(
    "the settings",
    "How Piton works in this project. Values in a plan take precedence.",
    &[
        &[
            key("jobs", Kind::Count(1, JOBS_MAX), "how many lanes run at once (4)"),
            key("notify", Kind::Command, "a command to run when a run waits, fails or completes"),
            key(
                "on_hangup",
                Kind::Choice(ON_HANGUP),
                "what a run does when its terminal closes: continue in the background, or stop (detach)",
            ),
        ],
        SHARED,
        &[
            key("lanes", Kind::Table(&LANES), "how lanes work"),
            key("pull_request", Kind::Table(&PULL_REQUEST), "how lanes open pull requests"),
            key("snapshots", Kind::Table(&SNAPSHOTS), "what snapshots hold"),
            key("gc", Kind::Table(&GC), "what `piton gc` keeps"),
            key("secrets", Kind::Table(&SECRETS), "what is redacted"),
            key("prices", Kind::Named(&PRICES), "what tokens cost, by model, agent or program"),
            key(
                "windows",
                Kind::Named(&WINDOWS),
                "how many tokens fit, by model, agent or program",
            ),
        ],
    ],
);

/// Every section, for searches and the documentation.
pub static SECTIONS: &[&Section] = &[
    &PLAN,
    &SETTINGS,
    &DEFAULTS,
    &BUDGETS,
    &AGENT,
    &REPLAN,
    &PHASE,
    &LANE,
    &STEP,
    &LANES,
    &PULL_REQUEST,
    &SNAPSHOTS,
    &GC,
    &SECRETS,
    &PRICES,
    &WINDOWS,
];

/// The known name that is nearest to a mistyped one, if any is near.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let limit = (wanted.chars().count() / 3).max(NEAR_DISTANCE_MIN);
    known
        .into_iter()
        .map(|candidate| {
            (strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase()), candidate)
        })
        // With as many changes as letters, any name would be near.
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

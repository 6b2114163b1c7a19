//! What shall happen: phases, their lanes, their steps; every default resolved.
//!
//! A plan here is already checked (ids unique, references known, no cycle): `piton-formats` reads
//! and refuses, this module only holds and answers. Paths are relative to the project's root.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent::{self, Agent};
use crate::budget::Budgets;
pub use crate::command::Command;
pub use crate::complexity::Complexity;
use crate::hash::Sha;
use crate::id::{GateRef, LanePath, StepPath};
use crate::lane::{LaneRules, PULL_REQUEST_WORDS, Role, TaskWorktrees};
use crate::shell;
use crate::time::Millis;

/// The lane that a phase's short form stands for.
pub const IMPLICIT_LANE: &str = "main";
/// Characters of the hash that stands for a step's definition: 128 bits.
const DEFINITION_CHARS: usize = 32;
/// The step that a lane's or phase's short form stands for.
pub const IMPLICIT_STEP: &str = "work";
/// The work of a lane that was taken over without its plan. A shell does nothing with it: what is there of
/// the lane goes on to its tests, and one of which nothing is there does not begin.
pub const UNKNOWN_WORK: &str = ": what this lane does is not known";

/// Replans of one phase: the third try of the same is a person's.
pub const REPLANS_PER_PHASE_DEFAULT: u32 = 2;
/// Replans of one run: a replan may add phases, which have replans of their own.
pub const REPLANS_PER_RUN_DEFAULT: u32 = 20;

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What people call it.
    pub title: String,
    /// The protocol that its runs follow, where it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The document the work is measured against.
    pub spec: Option<String>,
    /// What a failed step does to the rest.
    pub on_failure: OnFailure,
    /// Limits of the run.
    pub budgets: Budgets,
    /// What becomes of finished steps whose files were changed from outside the run.
    #[serde(default, skip_serializing_if = "OnChange::is_rerun")]
    pub on_change: OnChange,
    /// The phases, in the order of the document.
    pub phases: Vec<Phase>,
    /// The file in which its protocol keeps the record of a run, from the project's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// Whether tasks of its lanes got worktrees of their own: a resume reads the document alike.
    #[serde(default, skip_serializing_if = "TaskWorktrees::is_off")]
    pub task_worktrees: TaskWorktrees,
    /// When its phases are planned again, how and how often; see [`Plan::replan_rules`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replan: Option<ReplanRules>,
    /// The agents of its prompts that are programs which Piton knows, and others with settings of their
    /// own; see [`Plan::agent_of`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Agent>,
}

/// What a failed step does to the rest of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Nothing new starts; what runs may finish.
    #[default]
    Stop,
    /// What does not depend on it goes on.
    Continue,
}

/// What becomes of a finished step whose outputs or inputs were changed from outside the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnChange {
    /// It runs again.
    #[default]
    Rerun,
    /// A person decides about changed outputs; a changed input is reported.
    Ask,
}

impl OnChange {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_rerun(&self) -> bool {
        *self == Self::Rerun
    }
}

/// A stage of the run: its lanes run side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Unique within the plan.
    pub id: String,
    /// Phases named in `needs`. Skipped work satisfies these only when a person says so.
    pub needs: Vec<String>,
    /// Phases that come before by order alone (no `needs` given): they must be over.
    pub after: Vec<String>,
    /// An approval that must be given before the phase starts.
    pub gate: Option<String>,
    /// Its lanes.
    pub lanes: Vec<Lane>,
    /// How complex it is, where its author says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<Complexity>,
    /// How many tasks its author lists; 0 where that is not said.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tasks: u32,
}

/// A sequence of steps beside other lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Unique within the phase.
    pub id: String,
    /// Lanes that must be complete before, of this phase or another.
    pub needs: Vec<LanePath>,
    /// An approval that must be given before the lane starts.
    pub gate: Option<String>,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// How it works: where, and what becomes of its work.
    #[serde(default, skip_serializing_if = "LaneRules::is_default")]
    pub rules: LaneRules,
}

/// The smallest unit of work that is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Unique within the lane.
    pub id: String,
    /// What it does.
    pub work: Work,
    /// A command that must succeed after the work; its failure is a failed attempt.
    pub test: Option<Command>,
    /// Working directory; empty for the project's root.
    pub dir: String,
    /// Variables added to the environment.
    pub env: BTreeMap<String, String>,
    /// Files (paths or globs) whose bytes belong to the step's fingerprint.
    pub inputs: Vec<String>,
    /// Files (paths or globs) that must exist after success.
    pub artifacts: Vec<String>,
    /// The only files (paths or globs) that it may change, besides its artifacts; all where it is
    /// `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<Vec<String>>,
    /// The files (paths or globs) that it is expected to change, besides its artifacts; if it changes
    /// others, its phase is planned again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Vec<String>>,
    /// The gate at which a person is asked when it fails alike as often as the budget
    /// `same_failure` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<String>,
    /// Agents that take the place of its own, in this order, while that is missing or at a limit; those
    /// that the agent itself names if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// How often a failed attempt is followed by another.
    pub retries: u32,
    /// Wait before the first retry; it doubles with each further one.
    pub backoff: Millis,
    /// Longest time of one attempt.
    pub timeout: Millis,
    /// Longest time without output.
    pub idle_timeout: Option<Millis>,
    /// Time between the polite signal and the kill.
    pub grace: Millis,
    /// Program names that a step may leave running when the run ends.
    pub keep: Vec<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Role::is_work")]
    pub role: Role,
}

/// When phases of a plan are planned again, how and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplanRules {
    /// What writes the new plan: a command or a prompt, as a step that belongs to no lane. Without, a
    /// person is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Box<Step>>,
    /// Most replans of one phase.
    pub per_phase: u32,
    /// Most replans of a run.
    pub per_run: u32,
    /// A phase that is more complex is planned again; 0 for never.
    pub complexity: Complexity,
    /// A phase with more tasks is planned again; 0 for never.
    pub tasks: u32,
    /// So many test failures of a step in a row have its phase planned again; 0 for never.
    pub test_failures: u32,
    /// Whether changes outside of a step's scope have its phase planned again.
    pub scope_drift: bool,
}

impl Default for ReplanRules {
    fn default() -> Self {
        Self {
            by: None,
            per_phase: REPLANS_PER_PHASE_DEFAULT,
            per_run: REPLANS_PER_RUN_DEFAULT,
            complexity: Complexity::whole(8),
            tasks: 10,
            test_failures: 2,
            scope_drift: true,
        }
    }
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Runs a command.
    Run(Command),
    /// Gives a prompt (a template) to an agent program.
    Prompt {
        /// Name of the agent in the settings or plan.
        agent: String,
        /// The agent's program and arguments, as resolved.
        command: Command,
        /// The text, before templates are filled in.
        prompt: String,
    },
    /// Runs tests one after the other; the first that fails is the failure.
    Tests(Vec<Command>),
    /// Waits for these lanes of the same phase, each a task in a worktree of its own.
    Tasks(Vec<String>),
}

impl Work {
    /// The work as a person would read it, on one line.
    pub fn display(&self) -> String {
        match self {
            Self::Run(command) => command.display(),
            Self::Prompt { agent, prompt, .. } => {
                format!("{agent}: {}", prompt.lines().next().unwrap_or_default())
            }
            Self::Tests(tests) => {
                shell::joined(&tests.iter().map(Command::display).collect::<Vec<_>>())
            }
            Self::Tasks(lanes) => format!("wait for {}", lanes.join(", ")),
        }
    }
}

impl Plan {
    /// The hash that stands for this plan in the ledger and in approvals.
    pub fn hash(&self) -> Sha {
        Sha::of_json(self)
    }

    /// When its phases are planned again. Without rules of its own, failed tests are left to its retries.
    pub fn replan_rules(&self) -> Cow<'_, ReplanRules> {
        let quiet = || ReplanRules { test_failures: 0, ..ReplanRules::default() };
        self.replan.as_ref().map_or_else(|| Cow::Owned(quiet()), Cow::Borrowed)
    }

    /// The agent that gets the prompt of a step.
    pub fn agent_of(&self, step: &Step) -> Option<Cow<'_, Agent>> {
        let Work::Prompt { agent, .. } = &step.work else { return None };
        Some(self.agent(agent))
    }

    /// An agent by name; one that nothing is said of is a command.
    pub fn agent(&self, name: &str) -> Cow<'_, Agent> {
        let plain = || Cow::Owned(Agent::new(name, agent::COMMAND));
        self.agents.get(name).map_or_else(plain, Cow::Borrowed)
    }

    /// All steps with their paths, in the order of the document.
    pub fn steps(&self) -> impl Iterator<Item = (StepPath, &Step)> {
        self.phases.iter().flat_map(|phase| {
            phase.lanes.iter().flat_map(move |lane| {
                lane.steps.iter().map(move |s| (StepPath::new(&phase.id, &lane.id, &s.id), s))
            })
        })
    }

    /// Finds one lane.
    pub fn lane(&self, path: &LanePath) -> Option<&Lane> {
        let phase = self.phases.iter().find(|p| p.id == path.phase)?;
        phase.lanes.iter().find(|l| l.id == path.lane)
    }

    /// Finds one step.
    pub fn step(&self, path: &StepPath) -> Option<&Step> {
        let phase = self.phases.iter().find(|p| p.id == path.phase)?;
        let lane = phase.lanes.iter().find(|l| l.id == path.lane)?;
        lane.steps.iter().find(|s| s.id == path.step)
    }

    /// The step at a position of the state made from this plan.
    pub fn at(&self, (phase, lane, step): (usize, usize, usize)) -> Option<&Step> {
        self.phases.get(phase)?.lanes.get(lane)?.steps.get(step)
    }

    /// All gates with the place each guards and its name.
    pub fn gates(&self) -> Vec<(GateRef, String)> {
        let mut found = Vec::new();
        for phase in &self.phases {
            if let Some(name) = &phase.gate {
                found.push((GateRef(phase.id.clone()), name.clone()));
            }
            for lane in &phase.lanes {
                if let Some(name) = &lane.gate {
                    found.push((GateRef(format!("{}/{}", phase.id, lane.id)), name.clone()));
                }
            }
        }
        found
    }
}

impl Lane {
    /// The tests that must pass on the tree to be merged, as recorded.
    pub fn tests(&self) -> Vec<String> {
        self.rules.tests.iter().map(Command::display).collect()
    }

    /// Whether nobody knows what it does.
    pub fn is_unknown(&self) -> bool {
        let unknown =
            |work: &Work| matches!(work, Work::Run(Command::Shell(line)) if line == UNKNOWN_WORK);
        self.steps.iter().any(|step| unknown(&step.work))
    }
}

impl Step {
    /// The commands that count as tests when an attempt succeeds, as recorded.
    pub fn tests(&self) -> Vec<String> {
        match &self.work {
            Work::Tests(tests) => tests.iter().map(Command::display).collect(),
            _ => self.test.iter().map(Command::display).collect(),
        }
    }

    /// The command of a part of an attempt: its work, then its test.
    pub fn command(&self, part: usize) -> String {
        match &self.work {
            _ if self.role == Role::PullRequest => PULL_REQUEST_WORDS.to_owned(),
            Work::Tests(tests) => tests.get(part).map(Command::display).unwrap_or_default(),
            Work::Prompt { command, .. } if part == 0 => command.display(),
            work if part == 0 => work.display(),
            _ => self.test.as_ref().map(Command::display).unwrap_or_default(),
        }
    }

    /// The hash of what the step is: its work and what it reads and makes, not its limits, and not who
    /// does it: another agent, command or model does not undo what is done.
    ///
    /// Texts enter as templates, so run, attempt and failure context are placeholders here.
    pub fn definition(&self) -> Sha {
        match &self.work {
            Work::Prompt { prompt, .. } => {
                let (agent, command) = (String::new(), Command::Args(Vec::new()));
                let prompt = without_scope(prompt);
                self.defined_by(&Work::Prompt { agent, command, prompt })
            }
            work => self.defined_by(work),
        }
    }

    /// Whether a recorded definition is that of this step. Runs of the first versions recorded it with
    /// the agent.
    pub fn is_defined_by(&self, recorded: &Sha) -> bool {
        *recorded == self.definition() || *recorded == self.defined_by(&self.work)
    }

    fn defined_by(&self, work: &Work) -> Sha {
        let whole =
            Sha::of_json(&(work, &self.test, &self.dir, &self.env, &self.inputs, &self.artifacts));
        // Half of it is enough to distinguish definitions, and `status` reads one per step.
        Sha(whole.0.chars().take(DEFINITION_CHARS).collect())
    }
}

/// Where a prompt begins to say which files a step may change; a comment of templates.
pub const SCOPE_BEGIN: &str = "{# scope #}";
/// Where it ends.
pub const SCOPE_END: &str = "{# end of scope #}";

/// A prompt without what it says about the scope, which is a limit like the key `scope`.
fn without_scope(prompt: &str) -> String {
    let mut pieces = prompt.split(SCOPE_BEGIN);
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |kept, piece| {
        kept + piece.split_once(SCOPE_END).map_or(piece, |(_, after)| after)
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

//! A phase document as a plan: one phase, its lanes in worktrees, each task a step.
//!
//! A task's work is a prompt; its test commands are its evidence. The commands of a `test` task
//! prove the lane instead of the task as long as the code they test does not exist. What the document
//! does not decide (open gates, other phases, partly parallel-safe lanes) is returned for a person.

use std::collections::BTreeMap;

use piton_core::budget::Budgets;
use piton_core::id::LanePath;
use piton_core::lane::{Isolation, LaneRules, Merge, OnRetry, Role, TaskWorktrees};
use piton_core::plan::{self, Command, OnFailure, Plan, ReplanRules, Step, Work};

use super::apart::Made;
use super::ids::{plan_id, unused_id};
use super::model::{DependencyKind, Lane, ParallelSafe, Phase, Task, TaskKind, TestsCount};
use super::replans::replans;
use super::resolve::{is_closed, lanes_before};
use super::{own_tests as gates, prompt};
use piton_formats::diagnostic::{Diagnostic, code, quoted};
use piton_formats::plan::build::bare_step;
use piton_formats::plan::implicit;
use piton_formats::plan::replan::UnknownAgent;
use piton_formats::plan::{LANES_MAX, STEPS_MAX};
use piton_formats::settings::{Agent, Models, PullRequest, Settings, agents};
use piton_formats::sink::Sink;
use piton_formats::template::{escape, quote_for_shell};

/// The values that a document leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanDefaults {
    /// Name and command of the agent that does the tasks.
    pub agent: Option<(String, Command)>,
    /// The agents that do the tasks of a type.
    pub by_type: BTreeMap<String, Doers>,
    /// Types of tasks for which only agents are named that are not defined, with those names.
    pub unknown_agents: Vec<(String, String)>,
    /// The template of a task's prompt; `None` for [`super::TASK_PROMPT`].
    pub task_prompt: Option<String>,
    /// The folder of the run logs.
    pub run_logs: String,
    /// The folder of the run reports.
    pub run_reports: String,
    /// A step with the default limits and no work.
    pub step: Step,
    /// How lanes work.
    pub rules: LaneRules,
    /// Whether tasks get worktrees of their own.
    pub task_worktrees: TaskWorktrees,
    /// What makes a fresh worktree usable.
    pub setup: Option<Command>,
    /// How a pull request is opened.
    pub pull_request: PullRequest,
    /// What a failed step does to the rest.
    pub on_failure: OnFailure,
    /// Limits of the run.
    pub budgets: Budgets,
    /// The agents of the settings, and what is said of models.
    pub agents: (BTreeMap<String, Agent>, Models),
    /// When the phase is planned again.
    pub replan: Result<ReplanRules, UnknownAgent>,
}

impl PlanDefaults {
    /// What the settings say; lanes work in worktrees and are merged by the queue.
    pub fn new(settings: &Settings) -> Self {
        let defaults = &settings.defaults;
        let name = defaults.agent.as_ref();
        let defined = |n: &String| Some((n.clone(), agents::named(&settings.agents, n)?.command));
        let agent = name.and_then(defined);
        let (mut by_type, mut unknown_agents) = (BTreeMap::new(), Vec::new());
        for (kind, names) in &settings.lanes.agents {
            let mut known = names.iter().filter_map(defined);
            let Some(first) = known.next() else {
                unknown_agents.push((kind.clone(), names.join(", ")));
                continue;
            };
            let others = known.map(|(name, _)| name).collect();
            by_type.insert(kind.clone(), Doers { first, others });
        }
        let own = defaults.lane.commit_message.clone();
        let work = Work::Tests(Vec::new());
        let step = bare_step(String::new(), work, defaults, settings.budgets.step_time);
        Self {
            agent,
            by_type,
            unknown_agents,
            task_prompt: None,
            run_logs: settings.lanes.run_logs.clone(),
            run_reports: settings.lanes.run_reports.trim_end_matches('/').to_owned(),
            step: Step { dir: String::new(), ..step },
            rules: LaneRules {
                isolation: defaults.lane.isolation.unwrap_or(Isolation::Worktree),
                merge: defaults.lane.merge.unwrap_or(Merge::Queue),
                copy: defaults.lane.copy.clone().unwrap_or_default(),
                on_retry: defaults.lane.on_retry.unwrap_or(OnRetry::Keep),
                message: own.or_else(|| settings.lanes.message.clone()),
                ..LaneRules::default()
            },
            task_worktrees: settings.lanes.task_worktrees,
            setup: defaults.lane.setup.clone(),
            pull_request: settings.pull_request.clone(),
            on_failure: settings.on_failure,
            budgets: settings.budgets.clone(),
            agents: (settings.agents.clone(), settings.models.clone()),
            replan: replans(settings),
        }
    }

    /// A step that does this.
    pub(super) fn step(&self, id: String, work: Work, retries: u32) -> Step {
        Step { id, work, retries, ..self.step.clone() }
    }
}

/// The agents of a type of task.
#[derive(Clone, Debug, PartialEq)]
pub struct Doers {
    /// Name and command of the first.
    pub first: (String, Command),
    /// The names of those that go on while it is missing or at a limit, in order.
    pub others: Vec<String>,
}

/// A plan, and what a person must decide before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// What blocks lanes and is not in the plan.
    pub holds: Vec<Hold>,
    /// Lanes that are only partly parallel-safe, and why; in the plan they run alone.
    pub mixed: Vec<(String, String)>,
}

/// Something outside of the plan that blocks a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The lane, as the plan names it.
    pub lane: String,
    /// What it waits for.
    pub name: String,
    /// What kind of thing that is.
    pub kind: HoldKind,
}

/// What blocks a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldKind {
    /// A gate that is open and that no other lane closes.
    OpenGate,
    /// Another phase; whether it is complete is not in this document.
    Phase,
    /// Something this document does not explain.
    Unknown,
}

/// Makes a plan of a phase; on failure all reasons at once, each with its line in `text`.
pub fn to_plan(
    file: &str,
    text: &str,
    phase: &Phase,
    defaults: &PlanDefaults,
) -> Result<Planned, Vec<Diagnostic>> {
    let mut builder = Builder { phase, defaults, sink: Sink::new(file, text) };
    let planned = builder.build();
    if builder.sink.has_errors() {
        return Err(builder.sink.finish());
    }
    Ok(planned)
}

pub(super) struct Builder<'a> {
    pub(super) phase: &'a Phase,
    pub(super) defaults: &'a PlanDefaults,
    sink: Sink<'a>,
}

/// The step that runs tests whose failures are only reported.
const REPORTED_STEP: &str = "tests-report";
/// The lane that tests a phase after the last merge.
const VALIDATION_LANE: &str = "validation";

impl Builder<'_> {
    fn build(&mut self) -> Planned {
        self.check_document();
        let phase_id = plan_id(&self.phase.id);
        let (mut lanes, mut holds, mut mixed) = (vec![], vec![], vec![]);
        for lane in &self.phase.lanes {
            let id = plan_id(&lane.id);
            if id == VALIDATION_LANE || lanes.iter().any(|l: &plan::Lane| l.id == id) {
                let message = format!("the id {} is already in use or reserved", quoted(&id));
                self.error(code::DUPLICATE_ID, lane.line, message, "rename it");
            }
            if let ParallelSafe::Mixed(why) = &lane.parallel_safe {
                mixed.push((id.clone(), why.clone()));
            }
            holds.extend(self.holds(lane, &id));
            lanes.extend(self.lane(lane, id, &phase_id));
        }
        lanes.extend(self.validation(&phase_id, &lanes));
        let phase = plan::Phase {
            id: phase_id,
            needs: Vec::new(),
            after: Vec::new(),
            gate: None,
            lanes,
            complexity: None,
            tasks: 0,
        };
        let title = if self.phase.title.is_empty() { &self.phase.id } else { &self.phase.title };
        let plan = Plan {
            record: None,
            on_change: piton_core::plan::OnChange::default(),
            title: title.clone(),
            protocol: None,
            spec: None,
            on_failure: self.defaults.on_failure,
            budgets: self.defaults.budgets.clone(),
            phases: vec![phase],
            task_worktrees: self.task_worktrees(),
            replan: self.replan(),
            agents: BTreeMap::new(),
        };
        let agents = agents::used(&plan, &self.defaults.agents.0, &self.defaults.agents.1);
        let plan = Plan { agents, ..plan };
        Planned { plan, holds, mixed }
    }

    /// When the phase is planned again, as `[replan]` says. Without a word of it, failed tests use the
    /// retries of their lane, and files outside of a task's scope are reported alone.
    fn replan(&mut self) -> Option<plan::ReplanRules> {
        match self.defaults.replan.clone() {
            Ok(rules) => Some(rules),
            Err(UnknownAgent(name)) => {
                let message = format!("the agent {} of [replan] is not defined", quoted(&name));
                let hint = "define it as [agents.NAME] in piton.toml, or correct the name";
                self.error(code::UNKNOWN_AGENT, self.phase.line, message, hint);
                None
            }
        }
    }

    pub(super) fn error(&mut self, code: &'static str, line: usize, message: String, hint: &str) {
        let span = self.sink.line_span(line);
        self.sink.error(code, &span, message, hint);
    }

    /// Checks the document itself.
    fn check_document(&mut self) {
        if self.defaults.agent.is_none() {
            let message = "tasks need an agent, but none is defined".to_owned();
            let hint = "in piton.toml, set `agent` in [defaults] such as \"claude\"";
            self.error(code::UNKNOWN_AGENT, self.phase.line, message, hint);
        }
        for (kind, names) in &self.defaults.unknown_agents {
            let message =
                format!("no agent for tasks of type {kind} is defined: {}", quoted(names));
            let hint =
                "define one of them as [agents.NAME], or correct [lanes.agents] in piton.toml";
            self.error(code::UNKNOWN_AGENT, self.phase.line, message, hint);
        }
        self.check_task_worktrees();
        let tasks: usize = self.phase.lanes.iter().map(|lane| lane.tasks.len()).sum();
        if self.phase.lanes.len() > LANES_MAX || tasks > STEPS_MAX {
            let message = format!("the phase has more than {STEPS_MAX} tasks");
            self.error(code::TOO_LARGE, self.phase.line, message, "split it into several phases");
        }
    }

    /// A lane, and after it those that do its tasks.
    fn lane(&mut self, lane: &Lane, id: String, phase_id: &str) -> Vec<plan::Lane> {
        if lane.tasks.is_empty() {
            let message = format!("the lane {} has no tasks", quoted(&lane.id));
            let hint = "ask for a plan update that adds tasks to it";
            self.error(code::MISSING_FIELD, lane.line, message, hint);
        }
        let tasks = ordered(lane);
        // Commands alone are evidence of the lane: no agent is needed for them.
        let work: Vec<&Task> = tasks.iter().copied().filter(|task| !task.is_evidence).collect();
        let Made { mut steps, parts } = self.tasks(lane, &id, &work);
        let counts = lane.tests.or(self.phase.tests).unwrap_or(TestsCount::Gate);
        if counts == TestsCount::Report {
            steps.extend(self.reported(&tasks, &steps));
        }
        let before = lanes_before(lane, &self.phase.lanes, &self.phase.gates);
        let needs = before
            .into_iter()
            .map(|other| LanePath { phase: phase_id.to_owned(), lane: plan_id(&other.id) });
        let mut planned = plan::Lane {
            id,
            needs: needs.collect(),
            gate: None,
            steps,
            rules: self.rules(lane, &tasks, counts),
        };
        implicit::complete(&mut planned, &self.frame(lane));
        std::iter::once(planned).chain(parts).collect()
    }

    /// The step that runs the tests of a lane whose failures are only reported.
    fn reported(&self, tasks: &[&Task], before: &[Step]) -> Option<Step> {
        let tests = lane_tests(tasks);
        let lines: Vec<String> = tests.iter().map(|test| reporting(&test.display())).collect();
        let work = Work::Run(Command::Shell(lines.join("\n")));
        (!lines.is_empty()).then(|| self.defaults.step(unused_id(REPORTED_STEP, before), work, 0))
    }

    fn rules(&self, lane: &Lane, tasks: &[&Task], counts: TestsCount) -> LaneRules {
        let gates = lane.depends_on.iter().filter(|d| d.kind == DependencyKind::Gate);
        let frozen = gates.filter(|gate| !self.is_provided(lane, &gate.raw));
        LaneRules {
            alone: matches!(lane.parallel_safe, ParallelSafe::No | ParallelSafe::Mixed(_)),
            provides: lane.provides.clone(),
            frozen: frozen.map(|gate| gate.raw.clone()).collect(),
            tests: if counts == TestsCount::Gate { lane_tests(tasks) } else { Vec::new() },
            message: Some(self.message(lane, &lane.name)),
            ..self.defaults.rules.clone()
        }
    }

    /// The message for the work of a lane: that of the settings, or `feat(P1-SL-1): Name`.
    pub(super) fn message(&self, lane: &Lane, what: &str) -> String {
        let what = if what.is_empty() { &self.phase.title } else { what };
        let usual = || escape(&format!("feat({}-{}): {what}", self.phase.id, lane.id));
        self.defaults.rules.message.clone().unwrap_or_else(usual)
    }

    /// Tells whether another lane closes a gate.
    fn is_provided(&self, lane: &Lane, gate: &str) -> bool {
        let other = |l: &&Lane| l.id != lane.id && l.provides.iter().any(|g| g == gate);
        self.phase.lanes.iter().any(|l| other(&l))
    }

    fn holds(&self, lane: &Lane, id: &str) -> Vec<Hold> {
        let hold = |name: &str, kind| Hold { lane: id.to_owned(), name: name.to_owned(), kind };
        let mut found = Vec::new();
        for dependency in &lane.depends_on {
            let name = dependency.raw.as_str();
            let kind = match dependency.kind {
                DependencyKind::Gate
                    if !is_closed(&self.phase.gates, name) && !self.is_provided(lane, name) =>
                {
                    HoldKind::OpenGate
                }
                DependencyKind::Phase => HoldKind::Phase,
                DependencyKind::Unknown => HoldKind::Unknown,
                _ => continue,
            };
            found.push(hold(name, kind));
        }
        found
    }

    /// One task of a lane as a step; `before` are the steps that are there already.
    pub(super) fn step(
        &mut self,
        lane: &Lane,
        tasks: &[&Task],
        at: usize,
        before: &[Step],
    ) -> Step {
        let task = tasks[at];
        let template = self.defaults.task_prompt.as_deref().unwrap_or(prompt::TASK_PROMPT);
        let prompt = prompt::render(template, &self.defaults.run_logs, self.phase, lane, task).unwrap_or_else(|error| {
            let message =
                format!("the template of the prompt, line {}: {}", error.line, error.message);
            let names: Vec<&str> =
                prompt::TASK_PROMPT_NAMES.iter().map(|(name, _)| *name).collect();
            let hint = format!(
                "correct the file that `lanes.task_prompt` names; put conditions about attempts \
                 into {{% raw %}}; known names: {}",
                names.join(", ")
            );
            self.error(code::BAD_TEMPLATE, task.line, message, &hint);
            String::new()
        });
        let own = self.defaults.by_type.get(task.kind.word()).cloned();
        let others = own.as_ref().map(|doers| doers.others.clone()).unwrap_or_default();
        let (agent, command) = own.map_or_else(|| self.agent(), |doers| doers.first);
        let retries = lane.retries.unwrap_or(self.defaults.step.retries);
        let mut step = self.defaults.step(
            unused_id(&task.id, before),
            Work::Prompt { agent, command, prompt },
            retries,
        );
        step.fallback = others;
        if task.kind == TaskKind::Verify {
            // It looks, and changes nothing; its commands prove the lane.
            step.writes = Some(vec![format!("{}/**", self.defaults.run_reports)]);
        } else {
            step.scope = scope(task);
        }
        if task.kind != TaskKind::Verify
            && lane.tests.or(self.phase.tests) != Some(TestsCount::Report)
            && gates::is_gate(tasks, at)
        {
            step.test = joined(&task.test_commands);
        }
        step
    }

    /// The agent that does the tasks; `check_document` reports a missing one.
    pub(super) fn agent(&self) -> (String, Command) {
        let none = || (String::new(), Command::Args(Vec::new()));
        self.defaults.agent.clone().unwrap_or_else(none)
    }

    /// The lane that runs the test execution plan after the last merge.
    fn validation(&self, phase_id: &str, lanes: &[plan::Lane]) -> Option<plan::Lane> {
        if self.phase.test_plan.is_empty() {
            return None;
        }
        let path =
            |lane: &plan::Lane| LanePath { phase: phase_id.to_owned(), lane: lane.id.clone() };
        let steps = self.phase.test_plan.iter().enumerate().map(|(at, test)| {
            let command = escape(&test.command);
            let words = || ["bash".to_owned(), "-c".to_owned(), command.clone()].to_vec();
            let command =
                if test.is_bash { Command::Args(words()) } else { Command::Shell(command.clone()) };
            let work = Work::Tests(vec![command]);
            let step = self.defaults.step(format!("validate-{}", at + 1), work, 0);
            plan::Step { role: Role::Validation, ..step }
        });
        Some(plan::Lane {
            id: VALIDATION_LANE.to_owned(),
            needs: lanes.iter().filter(|l| l.rules.task.is_none()).map(path).collect(),
            gate: None,
            steps: steps.collect(),
            rules: LaneRules::default(),
        })
    }
}

/// The tasks of a lane in their order: what they depend on first, then by type, then as written.
fn ordered(lane: &Lane) -> Vec<&Task> {
    let mut left: Vec<&Task> = lane.tasks.iter().collect();
    let mut done: Vec<&Task> = Vec::new();
    while !left.is_empty() {
        let waits = |task: &Task| {
            task.depends_on.iter().any(|d| left.iter().any(|other| other.id == d.raw))
        };
        let ready = left.iter().enumerate().filter(|(_, task)| !waits(task));
        // The reader refused tasks that wait for each other.
        let Some((at, _)) = ready.min_by_key(|(at, task)| (task.kind, *at)) else { break };
        done.push(left.remove(at));
    }
    done
}

/// The commands that prove a lane: those of all its tasks, each once. A later task may break what
/// an earlier one proved, so none is left out.
fn lane_tests(tasks: &[&Task]) -> Vec<Command> {
    let mut found: Vec<Command> = Vec::new();
    for command in tasks.iter().flat_map(|task| &task.test_commands) {
        let command = Command::Shell(escape(command));
        if !found.contains(&command) {
            found.push(command);
        }
    }
    found
}

/// The files that a task may change; nothing where it does not say, or not by paths alone.
fn scope(task: &Task) -> Option<Vec<String>> {
    let named: Vec<String> = task.files.iter().chain(&task.tests_owned).cloned().collect();
    let is_path = |name: &String| !name.contains(char::is_whitespace);
    let mut all = Vec::new();
    for name in &named {
        // A test of a file is named after it: `tests/a.py::test_b`.
        let file = name.split("::").next().unwrap_or(name);
        let name = file.trim_start_matches("./").trim_end_matches('/');
        // A folder stands for what is in it.
        all.extend([name.to_owned(), format!("{name}/**")]);
    }
    (!named.is_empty() && named.iter().all(is_path)).then_some(all)
}

/// A test whose failure becomes a note of its step.
fn reporting(test: &str) -> String {
    let note = serde_json::json!({ "notes": [format!("this test failed: {test}")] });
    let note = quote_for_shell(&escape(&note.to_string()));
    format!("( {test}\n) || printf '%s\\n' {note} >> \"$PITON_OUTPUT\"")
}

/// Several commands as one for the shell; the first that fails is the failure.
fn joined(commands: &[String]) -> Option<Command> {
    let lines: Vec<String> = match commands {
        [] => return None,
        [one] => vec![escape(one)],
        // A line of its own for the bracket: a comment at the end of a command must not hide it.
        many => many.iter().map(|command| format!("( {}\n)", escape(command))).collect(),
    };
    Some(Command::Shell(lines.join(" && ")))
}

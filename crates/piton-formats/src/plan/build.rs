//! Reads the tables of a plan into a draft: short forms expanded, inherited values resolved.
//!
//! The draft keeps the place of every id and reference for the checks that follow. A wrong part is
//! reported and kept as far as possible, so that the parts below it are still checked.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use piton_core::Millis;
use piton_core::Plan;
use piton_core::lane::{LaneRules, Role, TaskWorktrees};
use piton_core::plan::{Command, IMPLICIT_LANE, IMPLICIT_STEP, Lane, Phase, Step, Work};

use super::lanes::Said;
use super::{Input, LANES_MAX, PHASES_MAX, STEPS_MAX};
use crate::diagnostic::{code, quoted};
use crate::keys;
use crate::settings::{self, Agent, Defaults, Models};
use crate::sink::{Located, Sink};
use crate::text_rules::{check_globs, check_id, check_path, read_command};
use crate::toml_reader::Node;

/// Wait before the first retry: long enough for a short hiccup, short enough to go unnoticed.
const BACKOFF_DEFAULT: Millis = Millis::from_secs(1);
/// Time between SIGTERM and SIGKILL: enough for a program to write its state.
const GRACE_DEFAULT: Millis = Millis::from_secs(10);

/// A plan with the places of its ids and references.
pub(super) struct Draft {
    plan: Plan,
    /// Its phases.
    pub(super) phases: Vec<PhaseDraft>,
    /// The agents there are.
    agents: BTreeMap<String, Agent>,
    /// What is said of models.
    models: Models,
}

/// A phase with its places.
pub(super) struct PhaseDraft {
    /// The phase, without lanes and references.
    pub(super) phase: Phase,
    /// Its id; empty if it has none.
    pub(super) id: Located<String>,
    /// Its `needs`; `None` if it has none.
    pub(super) needs: Option<Vec<Located<String>>>,
    /// Its lanes.
    pub(super) lanes: Vec<LaneDraft>,
}

/// A lane with its places.
pub(super) struct LaneDraft {
    /// The lane, without references.
    pub(super) lane: Lane,
    /// Its id; empty if it has none.
    pub(super) id: Located<String>,
    /// Its `needs`.
    pub(super) needs: Vec<Located<String>>,
    /// Ids of its steps.
    pub(super) step_ids: Vec<Located<String>>,
    /// The artifacts of its steps.
    pub(super) artifacts: Vec<Located<String>>,
    /// Its rules, as the document states them.
    pub(super) said: Said,
}

impl Draft {
    /// The plan without the places.
    pub(super) fn into_plan(self) -> Plan {
        let phases = self.phases.into_iter().map(|draft| Phase {
            lanes: draft.lanes.into_iter().map(|lane| lane.lane).collect(),
            ..draft.phase
        });
        let plan = Plan { phases: phases.collect(), ..self.plan };
        Plan { agents: settings::agents::used(&plan, &self.agents, &self.models), ..plan }
    }
}

pub(super) struct Builder<'a, 't> {
    pub(super) input: &'a Input<'a>,
    pub(super) sink: &'a mut Sink<'t>,
    pub(super) agents: BTreeMap<String, Agent>,
    /// Agents that were already reported as unknown.
    pub(super) reported_agents: BTreeSet<String>,
    /// Whether it was already reported that git is missing.
    pub(super) reported_git: bool,
    step_time: Millis,
    pub(super) has_spec: bool,
    lanes_total: usize,
    steps_total: usize,
}

/// Reads the document.
pub(super) fn build(root: &Node<'_, '_>, input: &Input<'_>, sink: &mut Sink<'_>) -> Draft {
    let settings = input.settings;
    let title = root.text("title", sink).map_or_else(|| file_stem(input.file), |title| title.value);
    let protocol = root.text("protocol", sink).map(|protocol| protocol.value);
    let has_spec = root.key_span("spec").is_some();
    let spec = root.text("spec", sink).and_then(|spec| check_path("spec", &spec, sink));
    let on_failure = settings::read_on_failure(root, sink).unwrap_or(settings.on_failure);
    let on_change = settings::read_on_change(root, sink).unwrap_or_default();
    let budgets = settings::read_budgets(root, &settings.budgets, sink);
    let mut agents = settings::agents::built_in();
    agents.extend(settings.agents.clone());
    agents.extend(settings::read_agents(root, has_spec, sink));
    let mut builder = Builder {
        input,
        sink,
        agents,
        reported_agents: BTreeSet::new(),
        reported_git: false,
        step_time: budgets.step_time,
        has_spec,
        lanes_total: 0,
        steps_total: 0,
    };
    let defaults = match root.table("defaults", builder.sink) {
        Some(node) => settings.defaults.under(builder.defaults(&node)),
        None => settings.defaults.clone(),
    };
    let mut phases = builder.phases(root, &defaults);
    builder.set_commits(&mut phases);
    let replan = builder.replan(root, &defaults);
    let plan = Plan {
        title,
        protocol,
        spec,
        on_failure,
        budgets,
        on_change,
        phases: Vec::new(),
        record: None,
        task_worktrees: TaskWorktrees::Off,
        replan,
        agents: BTreeMap::new(),
    };
    builder.check_fallbacks(root);
    let agents = builder.agents;
    Draft { plan, phases, agents, models: settings.models.clone() }
}

fn file_stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    if stem.is_empty() { "plan".to_owned() } else { stem.to_owned() }
}

impl Builder<'_, '_> {
    fn phases(&mut self, root: &Node<'_, '_>, defaults: &Defaults) -> Vec<PhaseDraft> {
        let Some(nodes) = root.tables("phase", self.sink) else {
            let hint = "add a [[phase]] with `id` and `run = \"…\"`";
            self.sink.error(code::MISSING, &(0..0), "the plan has no phase", hint);
            return Vec::new();
        };
        if let Some(node) = nodes.get(PHASES_MAX) {
            let message = format!("the plan has more than {PHASES_MAX} phases");
            self.sink.error(code::TOO_LARGE, &node.span, message, "split it into several plans");
        }
        nodes.iter().take(PHASES_MAX).map(|node| self.phase(node, defaults)).collect()
    }

    fn phase(&mut self, node: &Node<'_, '_>, defaults: &Defaults) -> PhaseDraft {
        let id = self.id(node, "phase");
        let defaults = defaults.under(self.defaults(node));
        let is_short = node.key_span("lane").is_none();
        let mut lanes: Vec<LaneDraft> = if !is_short {
            self.refuse_mixed(node, "phase", "lane");
            let nodes = node.tables("lane", self.sink).unwrap_or_default();
            nodes.iter().map_while(|lane| self.lane(lane, &defaults)).collect()
        } else if has_work(node) {
            self.short_lane(node, &defaults).into_iter().collect()
        } else {
            let hint = "add `run`, `prompt` or `prompt_file`, or lanes with [[phase.lane]]";
            // A missing id is reported separately.
            let name = quoted(&id.value);
            let phase =
                if id.value.is_empty() { "a phase".into() } else { format!("the phase {name}") };
            let message = format!("{phase} has no lane and no work");
            self.sink.error(code::MISSING, &node.span, message, hint);
            Vec::new()
        };
        self.set_rules(node, &mut lanes, is_short);
        let phase = Phase {
            id: id.value.clone(),
            needs: Vec::new(),
            after: Vec::new(),
            gate: node.text("gate", self.sink).map(|gate| gate.value),
            lanes: Vec::new(),
            complexity: node.complexity("complexity", self.sink),
            tasks: node.count32("tasks", self.sink).unwrap_or(0),
        };
        PhaseDraft { phase, id, needs: node.texts("needs", self.sink), lanes }
    }

    /// The one lane of a phase that has work of its own.
    fn short_lane(&mut self, node: &Node<'_, '_>, defaults: &Defaults) -> Option<LaneDraft> {
        self.count_lane(node)?;
        let id = Located { value: IMPLICIT_LANE.to_owned(), span: node.span.clone() };
        let mut draft = empty_lane(id, None, Vec::new(), self.said(node, defaults));
        self.short_step(node, defaults, &mut draft);
        Some(draft)
    }

    /// One lane; `None` if there are too many, which ends the reading.
    fn lane(&mut self, node: &Node<'_, '_>, defaults: &Defaults) -> Option<LaneDraft> {
        self.count_lane(node)?;
        let id = self.id(node, "lane");
        let defaults = defaults.under(self.defaults(node));
        let gate = node.text("gate", self.sink).map(|gate| gate.value);
        let needs = node.texts("needs", self.sink).unwrap_or_default();
        let mut draft = empty_lane(id, gate, needs, self.said(node, &defaults));
        let (steps, step) = (node.key_span("steps"), node.key_span("step"));
        if let (Some(_), Some(span)) = (&steps, &step) {
            let message = "a lane has both `steps` and `step`, which are the same";
            self.sink.error(code::MIXED_FORMS, span, message, "put all steps into one of the two");
        }
        if steps.is_some() || step.is_some() {
            let name = if steps.is_some() { "steps" } else { "step" };
            self.refuse_mixed(node, "lane", name);
            for step in node.tables(name, self.sink).unwrap_or_default() {
                let id = self.id(&step, "step");
                let defaults = defaults.under(self.defaults(&step));
                self.step(&step, id, &defaults, &mut draft);
            }
        } else if has_work(node) {
            self.short_step(node, &defaults, &mut draft);
        } else {
            let message = format!("the lane {} has no step and no work", quoted(&draft.id.value));
            let hint = "add `run`, `prompt` or `prompt_file`, or `steps = [{ … }]`";
            self.sink.error(code::MISSING, &node.span, message, hint);
        }
        Some(draft)
    }

    fn short_step(&mut self, node: &Node<'_, '_>, defaults: &Defaults, lane: &mut LaneDraft) {
        let id = Located { value: IMPLICIT_STEP.to_owned(), span: node.span.clone() };
        self.step(node, id, defaults, lane);
    }

    /// Reads one step into its lane; `defaults` already includes the step's own values.
    fn step(
        &mut self,
        node: &Node<'_, '_>,
        id: Located<String>,
        defaults: &Defaults,
        lane: &mut LaneDraft,
    ) {
        if !self.count_step(&node.span) {
            return;
        }
        lane.said.has_prompt |=
            ["prompt", "prompt_file"].iter().any(|name| node.key_span(name).is_some());
        let inputs = node.texts("inputs", self.sink).unwrap_or_default();
        let inputs = check_globs("inputs", inputs, self.sink);
        let artifacts = node.texts("artifacts", self.sink).unwrap_or_default();
        let artifacts = check_globs("artifacts", artifacts, self.sink);
        let writes =
            node.texts("writes", self.sink).map(|globs| check_globs("writes", globs, self.sink));
        let scope = node.texts("scope", self.sink);
        let scope = scope.map(|globs| check_globs("scope", globs, self.sink));
        let work = self.work(node, &id, defaults).unwrap_or(Work::Run(Command::Args(Vec::new())));
        let step = Step {
            test: read_command(node, "test", self.has_spec, self.sink),
            inputs: inputs.into_iter().map(|input| input.value).collect(),
            artifacts: artifacts.iter().map(|artifact| artifact.value.clone()).collect(),
            writes: writes.map(|globs| globs.into_iter().map(|glob| glob.value).collect()),
            scope: scope.map(|globs| globs.into_iter().map(|glob| glob.value).collect()),
            escalation: node.text("escalation", self.sink).map(|gate| gate.value),
            fallback: Vec::new(),
            ..self.bare_step(id.value.clone(), work, defaults)
        };
        lane.lane.steps.push(step);
        lane.step_ids.push(id);
        lane.artifacts.extend(artifacts);
    }

    /// A step with its limits, folder and variables, and nothing else.
    pub(super) fn bare_step(&self, id: String, work: Work, defaults: &Defaults) -> Step {
        bare_step(id, work, defaults, self.step_time)
    }

    /// Inherited values of a table; an unknown agent is reported where it is named.
    fn defaults(&mut self, node: &Node<'_, '_>) -> Defaults {
        let defaults = settings::read_defaults(node, self.has_spec, self.sink);
        self.check_git(node, &defaults.lane);
        if let Some(name) = &defaults.agent
            && !self.agents.contains_key(name)
        {
            let hint = self.agent_hint(name);
            let span = node.text("agent", self.sink).map_or(node.span.clone(), |agent| agent.span);
            self.sink.error(
                code::UNKNOWN_AGENT,
                &span,
                format!("unknown agent {}", quoted(name)),
                hint,
            );
            self.reported_agents.insert(name.clone());
        }
        defaults
    }

    fn id(&mut self, node: &Node<'_, '_>, what: &str) -> Located<String> {
        if let Some(id) = node.text("id", self.sink) {
            check_id(&id, self.sink);
            return id;
        }
        if node.key_span("id").is_none() {
            let message = format!("a {what} has no id");
            self.sink.error(code::MISSING, &node.span, message, "add `id = \"NAME\"`");
        }
        Located { value: String::new(), span: node.span.clone() }
    }

    /// Counts a lane; `None` if there are too many.
    fn count_lane(&mut self, node: &Node<'_, '_>) -> Option<()> {
        self.lanes_total += 1;
        if self.lanes_total == LANES_MAX + 1 {
            let message = format!("the plan has more than {LANES_MAX} lanes");
            self.sink.error(code::TOO_LARGE, &node.span, message, "split it into several plans");
        }
        (self.lanes_total <= LANES_MAX).then_some(())
    }

    /// Counts a step; false if there are too many.
    pub(super) fn count_step(&mut self, span: &Range<usize>) -> bool {
        self.steps_total += 1;
        if self.steps_total == STEPS_MAX + 1 {
            let message = format!("the plan has more than {STEPS_MAX} steps");
            self.sink.error(code::TOO_LARGE, span, message, "split it into several plans");
        }
        self.steps_total <= STEPS_MAX
    }

    /// Reports work beside lanes or steps.
    fn refuse_mixed(&mut self, node: &Node<'_, '_>, what: &str, parts: &str) {
        for key in keys::WORK {
            if let Some(span) = node.key_span(key.name) {
                let message = format!("a {what} with `{parts}` cannot also have `{}`", key.name);
                let hint = format!("move `{}` into one of its steps", key.name);
                self.sink.error(code::MIXED_FORMS, &span, message, hint);
            }
        }
    }
}

/// A step with the limits, folder and variables of `defaults`, and nothing else.
pub fn bare_step(id: String, work: Work, defaults: &Defaults, step_time: Millis) -> Step {
    Step {
        id,
        work,
        test: None,
        dir: defaults.dir.clone().unwrap_or_default(),
        env: defaults.env.clone(),
        inputs: Vec::new(),
        artifacts: Vec::new(),
        writes: None,
        scope: None,
        escalation: None,
        fallback: Vec::new(),
        retries: defaults.retries.unwrap_or(0),
        backoff: defaults.backoff.unwrap_or(BACKOFF_DEFAULT),
        timeout: defaults.timeout.unwrap_or(step_time),
        idle_timeout: defaults.idle_timeout,
        grace: defaults.grace.unwrap_or(GRACE_DEFAULT),
        keep: defaults.keep.clone().unwrap_or_default(),
        role: Role::Work,
    }
}

fn empty_lane(
    id: Located<String>,
    gate: Option<String>,
    needs: Vec<Located<String>>,
    said: Said,
) -> LaneDraft {
    let lane = Lane {
        id: id.value.clone(),
        needs: Vec::new(),
        gate,
        steps: Vec::new(),
        rules: LaneRules::default(),
    };
    LaneDraft { lane, id, needs, step_ids: Vec::new(), artifacts: Vec::new(), said }
}

fn has_work(node: &Node<'_, '_>) -> bool {
    keys::WORK.iter().any(|key| node.key_span(key.name).is_some())
}

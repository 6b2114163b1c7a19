//! What a brief says of what is to be done: the current task, what it is measured by, what comes next,
//! and where to read more.

use piton_core::plan::{Command, Lane, Plan, Step, Work};
use piton_core::state::{Progress, StepState};
use piton_core::{GateRef, LanePath, StepPath};

use super::{Fact, Input, Section, counted};

/// Most steps that are named as the next ones: what comes later will be in a later brief.
const NEXT_MAX: usize = 30;

/// The facts of these sections, the most important of each first.
pub(super) fn collect(input: &Input<'_>) -> Vec<Fact> {
    let task = input.task();
    let mut facts = Vec::new();
    if let Some(path) = &task {
        facts.extend(current(input, path));
        facts.extend(acceptance(input, path));
    }
    if !input.is_told {
        facts.extend(next(input, task.as_ref()));
    }
    facts.extend(more(input, task.as_ref()));
    facts
}

fn planned(input: &Input<'_>, section: Section, text: impl Into<String>) -> Fact {
    Fact::new(section, text, &input.state.plan_path).at(input.state.created_at)
}

fn current(input: &Input<'_>, path: &StepPath) -> Vec<Fact> {
    let state = input.state.step(path);
    let status = state.map_or("not part of the run", |step| step.status().as_str());
    let attempts = state.map_or(0, |step| step.attempts as usize);
    let place = format!("{path}: {status}, {} so far", counted(attempts, "attempt"));
    let mut facts =
        vec![Fact::new(Section::Task, place, "the run's state").at(input.state.last_at)];
    for review in state.iter().flat_map(|step| &step.reviews) {
        let lines = review.lines().join(" ");
        let text = format!("{} wants changes: {lines}", review.by);
        facts.push(Fact::new(Section::Task, text, "the review"));
    }
    let Some(step) = input.plan.and_then(|plan| plan.step(path)) else { return facts };
    match &step.work {
        Work::Prompt { prompt, .. } => {
            let lines = prompt.lines().map(str::trim).filter(|line| says_something(line));
            facts.extend(lines.map(|line| planned(input, Section::Task, line)));
        }
        work => facts.push(planned(input, Section::Task, format!("run: {}", work.display()))),
    }
    facts
}

/// Whether a line of a template says something before it is filled in.
fn says_something(line: &str) -> bool {
    let is_placeholder = line.starts_with("{{") && line.ends_with("}}");
    !line.is_empty() && !is_placeholder
}

fn acceptance(input: &Input<'_>, path: &StepPath) -> Vec<Fact> {
    let Some(plan) = input.plan else { return Vec::new() };
    let mut facts = Vec::new();
    let mut say = |text: String| facts.push(planned(input, Section::Acceptance, text));
    if let Some(step) = plan.step(path) {
        step_criteria(step).into_iter().for_each(&mut say);
    }
    if let Some(lane) = plan.lane(&path.lane()) {
        lane_criteria(lane).into_iter().for_each(&mut say);
    }
    if let Some(spec) = &plan.spec {
        say(format!("the work is measured against {spec}"));
    }
    facts
}

fn step_criteria(step: &Step) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(test) = &step.test {
        said.push(format!("`{}` must succeed", test.display()));
    }
    if !step.artifacts.is_empty() {
        said.push(format!("these files must exist: {}", step.artifacts.join(", ")));
    }
    if let Some(writes) = &step.writes {
        said.push(format!("only these files may change: {}", writes.join(", ")));
    }
    if let Some(scope) = &step.scope {
        said.push(format!("these files are expected to change: {}", scope.join(", ")));
    }
    said
}

fn lane_criteria(lane: &Lane) -> Vec<String> {
    let passes = |test: &Command| format!("`{}` must pass before the merge", test.display());
    lane.rules.tests.iter().map(passes).collect()
}

/// The steps after the current one: first those of its lane, then the others in the plan's order.
fn next(input: &Input<'_>, task: Option<&StepPath>) -> Vec<Fact> {
    let own = task.map(StepPath::lane);
    let is_ahead = |(path, step): &(StepPath, &StepState)| {
        step.progress == Progress::Pending && !step.interrupted && Some(path) != task
    };
    let mut ahead: Vec<StepPath> =
        input.state.steps().filter(is_ahead).map(|(path, _)| path).collect();
    ahead.sort_by_key(|path| Some(path.lane()) != own);
    let all = ahead.len();
    let mut gated: Option<LanePath> = None;
    let mut facts = Vec::new();
    for path in ahead.into_iter().take(NEXT_MAX) {
        let lane = path.lane();
        if gated.as_ref() != Some(&lane) {
            facts.extend(gates(input, &lane));
            gated = Some(lane);
        }
        let work = input.plan.and_then(|plan| work_of(plan, &path));
        let text = work.map_or_else(|| path.to_string(), |work| format!("{path}: {work}"));
        facts.push(planned(input, Section::Next, text));
    }
    if all > NEXT_MAX {
        let rest = format!("{} more steps come after these", all - NEXT_MAX);
        facts.push(planned(input, Section::Next, rest));
    }
    facts
}

fn work_of(plan: &Plan, path: &StepPath) -> Option<String> {
    plan.step(path).map(|step| step.work.display())
}

/// The approvals that a lane still needs.
fn gates(input: &Input<'_>, lane: &LanePath) -> Vec<Fact> {
    let state = input.state;
    let of_phase = state.phase(&lane.phase).and_then(|phase| phase.gate.as_ref());
    let of_lane = state.lane(lane).and_then(|lane| lane.gate.as_ref());
    let places = [(lane.phase.clone(), of_phase), (lane.to_string(), of_lane)];
    let open = places.into_iter().filter_map(|(place, name)| {
        let gate = GateRef(place);
        let name = name.filter(|_| !state.approved(&gate))?;
        Some(planned(input, Section::Next, format!("{gate} needs a person's approval: {name}")))
    });
    open.collect()
}

fn more(input: &Input<'_>, task: Option<&StepPath>) -> Vec<Fact> {
    let state = input.state;
    let run = state.run_id.as_ref().map_or("", |id| id.0.as_str());
    let mut facts = Vec::new();
    let mut say = |text: String| facts.push(Fact::new(Section::More, text, "Piton"));
    if let Some(path) = task {
        say(format!("`piton show {run}/{path}`: the step, its attempts and failures"));
        say(format!("`piton log {run} --step {path}`: its output"));
    }
    if let Some(spec) = &state.spec {
        say(format!("{}: the spec", spec.path));
    }
    let what =
        if input.is_told { "the checkpoint that a new session resumes from" } else { "the plan" };
    say(format!("{}: {what}", state.plan_path));
    say(format!("`piton status {run}`: where the run stands"));
    facts
}

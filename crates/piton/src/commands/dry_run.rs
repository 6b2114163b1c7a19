//! What a run would do, without doing it: waves, commands, and what is skipped and why.

use piton_core::decide::{Unmet, held_without, unmet};
use piton_core::event::BudgetExhausted;
use piton_core::evidence::Rerun;
use piton_core::lane::{Merge, PULL_REQUEST_WORDS, Role, TaskOf};
use piton_core::plan::{Command, Lane, OnFailure, Work};
use piton_core::state::{LaneState, Progress};
use piton_core::{Action, GateRef, LanePath, Limits, Plan, RunState, StepPath, Timestamp, decide};

use piton_formats::lanes::naming::task_branch;
use piton_formats::lanes::shell_quote;

use super::request::names;
use crate::cli::DriveArgs;
use crate::context::Context;
use crate::ui::{self, words};

/// What a dry run is of: a new run, or one that would go on.
#[derive(Debug, Default)]
pub struct Found<'a> {
    /// What would run again.
    pub reruns: &'a [Rerun],
    /// What a resume has to say first, for programs.
    pub resume: Option<serde_json::Value>,
}

/// Prints the waves of a plan from where a state stands.
pub fn print(context: &Context, plan: &Plan, state: &RunState, found: Found<'_>, args: &DriveArgs) {
    let Found { reruns, resume } = found;
    let finished: Vec<(StepPath, &'static str)> = state
        .steps()
        .filter_map(|(path, step)| match step.progress {
            Progress::Done => Some((path, "finished before")),
            Progress::Skipped { .. } => Some((path, "left out on a person's word")),
            _ => None,
        })
        .collect();
    let Course { waves, unmet, exhausted } = waves(plan, state, args);
    let failed = names::failed(state);
    let held = held(state);
    let gates = gates(plan, state, &waves);
    if context.json {
        let steps = |wave: &Vec<StepPath>| {
            wave.iter()
                .map(|p| {
                    let (command, argv) = (command(plan, p), argv(plan, p));
                    serde_json::json!({"step": p, "command": command, "argv": argv})
                })
                .collect::<Vec<_>>()
        };
        ui::data_json(&serde_json::json!({
            "resume": resume,
            "waves": waves.iter().map(steps).collect::<Vec<_>>(),
            "unmet": unmet.iter().map(|u| serde_json::json!({"lane": u.lane, "why": u.why})).collect::<Vec<_>>(),
            "skipped": finished.iter().map(|(p, why)| serde_json::json!({"step": p, "reason": why})).collect::<Vec<_>>(),
            "not_run": held.iter().map(|(p, why)| serde_json::json!({"step": p, "reason": why})).collect::<Vec<_>>(),
            "rerun": reruns,
            "failed": failed,
            "budget": exhausted.as_ref().map(words::budget),
            "lanes": lanes(plan).map(|(path, lane)| lane_json(context, &path, lane)).collect::<Vec<_>>(),
            "gates": gates.iter().map(|(g, n)| serde_json::json!({"gate": g, "name": n})).collect::<Vec<_>>(),
        }));
        return;
    }
    for (number, wave) in waves.iter().enumerate() {
        ui::data(&format!("wave {}", number + 1));
        for path in wave {
            let why = reruns.iter().find(|r| &r.step == path);
            let why = why.map(|r| format!("  (again: {})", r.reason)).unwrap_or_default();
            ui::data(&format!("  {path}: {}{why}", command(plan, path)));
        }
    }
    for path in &failed {
        let run = words::run_id(state);
        let next =
            format!("`piton retry {run} {path}`, `piton skip {run} {path}` or `piton abort {run}`");
        let next = ui::here::told(&next);
        ui::data(&format!("failed {path}: does not run by itself; {next}"));
    }
    if let Some(budget) = &exhausted {
        ui::data(&format!("stopped: {}: raise it in the plan", words::budget(budget)));
    }
    for Unmet { lane, why, .. } in unmet {
        ui::data(&format!("lane {lane} cannot begin: {why}"));
    }
    for (path, lane) in lanes(plan).filter(|(_, lane)| !lane.rules.isolation.is_in_place()) {
        let then = match lane.rules.merge {
            Merge::Queue => "merged in turn",
            Merge::PullRequest => "merged by pull request",
            Merge::None => "not merged",
        };
        let then =
            lane.rules.task.as_ref().map_or(then.to_owned(), |t| format!("{then} into {}", t.lane));
        let (dir, branch) = room(context, &path, lane);
        ui::data(&format!("lane {path}: worktree {dir}, branch {branch}, {then}"));
    }
    for (gate, name) in gates {
        ui::data(&format!("gate {gate}: \"{name}\" must be approved first"));
    }
    for (path, why) in held {
        ui::data(&format!("not run {path}: {why}"));
    }
    for (path, why) in finished {
        ui::data(&format!("skipped {path}: {why}"));
    }
}

/// The gates that keep something of these waves from starting.
fn gates(plan: &Plan, state: &RunState, waves: &[Vec<StepPath>]) -> Vec<(GateRef, String)> {
    let guards = |gate: &GateRef| {
        let mut steps = waves.iter().flatten();
        steps.any(|s| s.phase == gate.0 || s.lane().to_string() == gate.0)
    };
    let mut gates = plan.gates();
    gates.retain(|(gate, _)| !state.approved(gate) && guards(gate));
    gates
}

/// The steps that wait for one that was left out, and why each does not run.
fn held(state: &RunState) -> Vec<(StepPath, String)> {
    let mut found: Vec<(StepPath, String)> = Vec::new();
    for skipped in ui::words::holding(state) {
        let lanes = held_without(state, &skipped);
        for (path, step) in state.steps().filter(|(path, _)| lanes.contains(&path.lane())) {
            if !step.progress.is_over() && !found.iter().any(|(known, _)| *known == path) {
                found.push((path, format!("needs {skipped}, which was skipped without --satisfy")));
            }
        }
    }
    found
}

/// The command of a step as a shell would take it.
fn command(plan: &Plan, path: &StepPath) -> String {
    plan.step(path).map_or(String::new(), |step| match (&step.work, step.role) {
        (_, Role::PullRequest) => PULL_REQUEST_WORDS.to_owned(),
        (Work::Run(command), _) => typed(command),
        (Work::Tests(tests), _) => tests.iter().map(typed).collect::<Vec<_>>().join(" && "),
        (work, _) => work.display(),
    })
}

fn typed(command: &Command) -> String {
    match command {
        Command::Shell(line) => line.clone(),
        Command::Args(args) => args.iter().map(|a| shell_quote(a)).collect::<Vec<_>>().join(" "),
    }
}

/// The program of a step and its arguments, where no shell takes them apart.
fn argv<'a>(plan: &'a Plan, path: &StepPath) -> Option<&'a [String]> {
    match plan.step(path).map(|step| (&step.work, step.role)) {
        Some((Work::Run(Command::Args(args)), role)) if role != Role::PullRequest => Some(args),
        _ => None,
    }
}

fn lanes(plan: &Plan) -> impl Iterator<Item = (LanePath, &Lane)> {
    plan.phases.iter().flat_map(|phase| {
        phase
            .lanes
            .iter()
            .map(|lane| (LanePath { phase: phase.id.clone(), lane: lane.id.clone() }, lane))
    })
}

/// Where a lane would work: both get another name where somebody else already has this one.
fn room(context: &Context, path: &LanePath, lane: &Lane) -> (String, String) {
    let worktrees = &context.settings.lanes.worktrees;
    if let Some(TaskOf { lane, task, .. }) = &lane.rules.task {
        let dir = format!("{worktrees}/{}/{lane}/tasks/{task}", path.phase);
        return (dir, task_branch(&path.phase, lane, task));
    }
    (format!("{worktrees}/{path}"), format!("lane/{path}"))
}

fn lane_json(context: &Context, path: &LanePath, lane: &Lane) -> serde_json::Value {
    let rules = &lane.rules;
    if rules.isolation.is_in_place() {
        return serde_json::json!({"lane": path, "isolation": rules.isolation});
    }
    let (dir, branch) = room(context, path, lane);
    serde_json::json!({
        "lane": path, "isolation": rules.isolation, "worktree": dir, "branch": branch, "merge": rules.merge,
        "task_of": rules.task.as_ref().map(|t| LanePath { phase: path.phase.clone(), lane: t.lane.clone() }),
    })
}

/// What would run, and what keeps the rest from it.
struct Course {
    waves: Vec<Vec<StepPath>>,
    /// Lanes that need something that nobody does.
    unmet: Vec<Unmet>,
    /// The budget that stops the rest.
    exhausted: Option<BudgetExhausted>,
}

/// Plays the decisions forward: every step that starts succeeds, every gate is approved. What failed
/// stays so, with all that follows from it.
fn waves(plan: &Plan, state: &RunState, args: &DriveArgs) -> Course {
    let plan = &with_policy(plan, args);
    let mut state = state.clone();
    state.driven = false;
    state.exhausted = None;
    for step in state.phases.iter_mut().flat_map(|p| &mut p.lanes).flat_map(|l| &mut l.steps) {
        if !step.progress.is_over() && step.progress != Progress::Failed {
            step.progress = Progress::Pending;
        }
    }
    for phase in &mut state.phases {
        phase.gate = None;
        for lane in &mut phase.lanes {
            lane.gate = None;
            // Where a lane works, and how it is merged, makes no difference to the order.
            lane.isolation = piton_core::lane::Isolation::InPlace;
            lane.work = None;
        }
    }
    let limits = Limits {
        jobs: usize::MAX,
        draining: false,
        phase: args.phase.clone(),
        lane: args.lane.clone(),
        ..Limits::default()
    };
    let (mut waves, mut exhausted) = (Vec::new(), None);
    loop {
        let mut wave: Vec<StepPath> = Vec::new();
        for action in decide(plan, &state, &limits, Timestamp(0)) {
            match action {
                Action::Start { step, .. } => wave.push(step),
                Action::Exhausted(budget) => exhausted = Some(budget),
                _ => {}
            }
        }
        let mut goes_on = false;
        let (waiting, mut done) = apart(plan, &mut wave);
        for step in waiting {
            if state.tasks_at(&step).iter().all(|t| state.lane(t).is_some_and(LaneState::is_over)) {
                done.push(step);
            } else {
                goes_on |= fork(&mut state, &step);
            }
        }
        if wave.is_empty() && done.is_empty() && !goes_on {
            let unmet = unmet(plan, &state, &limits);
            return Course { waves, unmet, exhausted };
        }
        for phase in &mut state.phases {
            for lane in &mut phase.lanes {
                for step in &mut lane.steps {
                    let path = StepPath::new(&phase.id, &lane.id, &step.id);
                    if wave.contains(&path) || done.contains(&path) {
                        step.progress = Progress::Done;
                    }
                }
            }
        }
        if !wave.is_empty() {
            waves.push(wave);
        }
    }
}

/// The plan with the failure policy that the command line asks for.
pub fn with_policy(plan: &Plan, args: &DriveArgs) -> Plan {
    let mut plan = plan.clone();
    if args.keep_going {
        plan.on_failure = OnFailure::Continue;
    }
    plan
}

/// Takes steps out of a wave for which no process runs: those that wait for tasks, and those that
/// would only mend.
fn apart(plan: &Plan, wave: &mut Vec<StepPath>) -> (Vec<StepPath>, Vec<StepPath>) {
    let role = |path: &StepPath| plan.step(path).map(|step| step.role);
    let of = |wanted: Role| wave.iter().filter(|p| role(p) == Some(wanted)).cloned().collect();
    let found: (Vec<StepPath>, Vec<StepPath>) = (of(Role::Tasks), of(Role::Mend));
    wave.retain(|path| !found.0.contains(path) && !found.1.contains(path));
    found
}

/// Lets the tasks that a step waits for start; true where they could not before.
fn fork(state: &mut RunState, step: &StepPath) -> bool {
    let lanes = state.phases.iter_mut().filter(|p| p.id == step.phase).flat_map(|p| &mut p.lanes);
    let mut changed = false;
    for lane in lanes.filter(|l| l.id == step.lane) {
        let work = lane.work.get_or_insert_default();
        changed |= work.forked.replace(step.step.clone()).as_ref() != Some(&step.step);
    }
    changed
}

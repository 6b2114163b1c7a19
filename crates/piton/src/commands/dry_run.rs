//! What a run would do, without doing it: waves, commands, and what is skipped and why.

use piton_core::decide::{Unmet, held, unmet};
use piton_core::event::BudgetExhausted;
use piton_core::evidence::Rerun;
use piton_core::lane::{Merge, PULL_REQUEST_WORDS, Role, TaskOf};
use piton_core::plan::{Command, Lane, OnFailure, Work};
use piton_core::state::{LaneState, Progress, StepState};
use piton_core::{Action, GateRef, LanePath, Limits, Plan, RunState, StepPath, Timestamp, decide};

use piton_formats::template::quote_for_shell;
use piton_formats::template::{self, Vars};
use piton_protocols::lanes::branch;

use super::request::names;
use crate::cli::DriveArgs;
use crate::context::Context;
use crate::drive;
use crate::ui::text::sanitize;
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
    let Course { waves, unmet, held, exhausted } = waves(plan, state, args);
    let failed = names::failed(state);
    let why = |why: String| exhausted.as_ref().map_or(why, |b| format!("the {}", words::budget(b)));
    let skipped: Vec<(StepPath, String)> = finished
        .into_iter()
        .map(|(path, why)| (path, why.to_owned()))
        .chain(held.into_iter().map(|(path, held)| (path, why(held))))
        .collect();
    let gates = gates(plan, state, &waves);
    let shown = |path: &StepPath| Shown::of(context, plan, state, path);
    if context.json {
        let steps = |wave: &Vec<StepPath>| {
            let step = |p: &StepPath| {
                let Shown { command, argv, test } = shown(p);
                serde_json::json!({"step": p, "command": command, "argv": argv, "test": test})
            };
            wave.iter().map(step).collect::<Vec<_>>()
        };
        ui::data_json(&serde_json::json!({
            "resume": resume,
            "waves": waves.iter().map(steps).collect::<Vec<_>>(),
            "unmet": unmet.iter().map(|u| serde_json::json!({"lane": u.lane, "why": u.why})).collect::<Vec<_>>(),
            "skipped": skipped.iter().map(|(p, why)| serde_json::json!({"step": p, "reason": why})).collect::<Vec<_>>(),
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
            let Shown { command, test, .. } = shown(path);
            ui::data(&format!("  {path}: {}{why}", lines(&command)));
            if let Some(test) = test {
                ui::data(&format!("    then the test: {}", lines(&test)));
            }
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
        let name = sanitize(&name);
        ui::data(&format!("gate {gate}: \"{name}\" must be approved first"));
    }
    for (path, why) in skipped {
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

/// A command for the eye: harmless to a terminal, and its further lines set off from the next step. A
/// carriage return hides nothing of what stands before it.
fn lines(command: &str) -> String {
    let line = |line: &str| sanitize(&line.replace('\r', " "));
    command.trim_end().lines().map(line).collect::<Vec<_>>().join("\n    ")
}

/// What a step would run, its templates filled in as far as is known before a run.
struct Shown {
    /// As a shell would take it.
    command: String,
    /// The program and its arguments, where no shell takes them apart.
    argv: Option<Vec<String>>,
    /// What must succeed after it.
    test: Option<String>,
}

impl Shown {
    fn of(context: &Context, plan: &Plan, state: &RunState, path: &StepPath) -> Self {
        let Some(step) = plan.step(path) else {
            return Self { command: String::new(), argv: None, test: None };
        };
        let vars = vars(context, plan, state, path);
        let test = step.test.as_ref().map(|test| typed(&filled(test, &vars)));
        if step.role == Role::PullRequest {
            return Self { command: PULL_REQUEST_WORDS.to_owned(), argv: None, test };
        }
        let run = match &step.work {
            Work::Run(command) => Some(filled(command, &vars)),
            _ => None,
        };
        let command = match (&run, &step.work) {
            (Some(command), _) => typed(command),
            (None, Work::Tests(tests)) => {
                tests.iter().map(|t| typed(&filled(t, &vars))).collect::<Vec<_>>().join(" && ")
            }
            (None, Work::Prompt { agent, command, prompt }) => {
                let (agent, command) = (agent.clone(), command.clone());
                Work::Prompt { agent, command, prompt: text(prompt, &vars) }.display()
            }
            (None, work) => work.display(),
        };
        let argv = run.and_then(|command| match command {
            Command::Args(args) => Some(args),
            Command::Shell(_) => None,
        });
        Self { command, argv, test }
    }
}

/// What templates stand for; a run that is not there yet has no id.
fn vars(context: &Context, plan: &Plan, state: &RunState, path: &StepPath) -> Vars {
    let run_id = state.run_id.as_ref().map(ToString::to_string).filter(|id| !id.is_empty());
    let step = state.step(path);
    Vars {
        run_id: run_id.unwrap_or_else(|| "{{ run.id }}".to_owned()),
        phase: path.phase.clone(),
        lane: path.lane.clone(),
        step: path.step.clone(),
        attempt: step.map_or(0, |step| step.attempts) + 1,
        spec: plan.spec.clone(),
        title: plan.title.clone(),
        root: drive::root_of(context, state).to_string_lossy().into_owned(),
        failure_context: step.map(StepState::failure_text).unwrap_or_default(),
    }
}

/// A text filled in; one that can't be is shown as it is.
fn text(template: &str, vars: &Vars) -> String {
    template::render(template, vars).unwrap_or_else(|_| template.to_owned())
}

fn filled(command: &Command, vars: &Vars) -> Command {
    match command {
        Command::Shell(line) => Command::Shell(text(line, vars)),
        Command::Args(args) => Command::Args(args.iter().map(|arg| text(arg, vars)).collect()),
    }
}

fn typed(command: &Command) -> String {
    match command {
        Command::Shell(line) => line.clone(),
        Command::Args(args) => {
            args.iter().map(|a| quote_for_shell(a)).collect::<Vec<_>>().join(" ")
        }
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
    let task = lane.rules.task.as_ref();
    let dir = match task {
        Some(TaskOf { lane, task, .. }) => format!("{}/{lane}/tasks/{task}", path.phase),
        None => path.to_string(),
    };
    (format!("{worktrees}/{dir}"), branch(path, task))
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
    /// Steps that would not run, and why.
    held: Vec<(StepPath, String)>,
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
    let mut open = OpenNeeds::of(&state);
    loop {
        open.narrow(&mut state);
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
            open.put_back(&mut state);
            let unmet = unmet(plan, &state, &limits);
            let held = held(plan, &state, &limits);
            return Course { waves, unmet, held, exhausted };
        }
        for path in wave.iter().chain(&done) {
            if let Some((phase, lane, step)) = state.position(path) {
                state.phases[phase].lanes[lane].steps[step].progress = Progress::Done;
            }
        }
        if !wave.is_empty() {
            waves.push(wave);
        }
    }
}

/// What lanes need, while waves are played forward. What is done then stays done, so one need that is
/// not met keeps a lane as well as all of them do: each need is looked at once, not once for each wave.
struct OpenNeeds(Vec<Need>);

/// The needs of a lane.
struct Need {
    all: Vec<LanePath>,
    /// How many of them, from the first, were seen to be met.
    met: usize,
}

impl OpenNeeds {
    fn of(state: &RunState) -> Self {
        let need = |lane: &LaneState| Need { all: lane.needs.clone(), met: 0 };
        Self(state.phases.iter().flat_map(|phase| &phase.lanes).map(need).collect())
    }

    /// Lets each lane need the first that is not met, if there is one.
    fn narrow(&mut self, state: &mut RunState) {
        let satisfied = state.satisfied();
        for need in &mut self.0 {
            let rest = &need.all[need.met..];
            need.met += rest.iter().take_while(|path| satisfied.contains(path)).count();
        }
        self.set(state, |need| need.all.get(need.met).cloned().into_iter().collect());
    }

    /// Lets each lane need what it did.
    fn put_back(&self, state: &mut RunState) {
        self.set(state, |need| need.all.clone());
    }

    fn set(&self, state: &mut RunState, needs: impl Fn(&Need) -> Vec<LanePath>) {
        let lanes = state.phases.iter_mut().flat_map(|phase| &mut phase.lanes);
        lanes.zip(&self.0).for_each(|(lane, need)| lane.needs = needs(need));
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

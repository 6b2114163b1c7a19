//! What a run would do, without doing it: waves, commands, and what is skipped and why.

use piton_core::forecast::{Forecast, forecast};
use piton_core::lane::{PULL_REQUEST_WORDS, Role};
use piton_core::plan::{self, Command, OnFailure, Work};
use piton_core::refusal::Refusal;
use piton_core::state::{LaneState, Progress};
use piton_core::{LanePath, Limits, Plan, RunState, StepPath, unmet};
use piton_formats::template::{self, Vars, quote_for_shell};
use piton_protocols::Protocol;
use piton_protocols::protocol::{Names, Starting};
use piton_view::answers::Problem;
use piton_view::dry_run::{DryRun, Gate, Lane, MadeWorkspace, Skipped, Start, Unmet};
use piton_view::resume::Resume;
use piton_view::words;
use piton_world::read::protocol_file;

use super::request::names;
use crate::cli::DriveArgs;
use crate::context::Context;
use crate::{drive, ui};

/// Prints the waves of a plan from where a state stands; `resume` is what was said first.
pub fn print(
    context: &Context,
    plan: &Plan,
    state: &RunState,
    resume: Option<&Resume<'_>>,
    args: &DriveArgs,
    problems: &[Refusal],
) {
    let finished = state.steps().filter_map(|(step, found)| match found.progress {
        Progress::Done => Some((step, "finished before".to_owned())),
        Progress::Skipped { .. } => Some((step, "skipped by a person".to_owned())),
        _ => None,
    });
    let Forecast { waves, unmet, unreached, exhausted } = course(plan, state, args);
    let budget = exhausted.as_ref().map(words::budget);
    let why = |why: String| budget.as_ref().map_or(why, |budget| format!("the {budget}"));
    let held = unreached.into_iter().map(|(step, held)| (step, why(held)));
    let skipped = finished.chain(held).map(|(step, reason)| Skipped { step, reason }).collect();
    let gates = gates(plan, state, &waves);
    let start = |path: &StepPath| start(context, plan, state, path);
    let answer = DryRun {
        resume,
        problems: problems.iter().map(|problem| Problem::new(problem, ui::place())).collect(),
        waves: waves.iter().map(|wave| wave.iter().map(start).collect()).collect(),
        unmet: unmet
            .into_iter()
            .map(|unmet::Unmet { lane, why, .. }| Unmet { lane, why })
            .collect(),
        skipped,
        failed: names::failed(state),
        budget,
        lanes: lanes(context, drive::followed(context, state), plan),
        gates,
        run_id: piton_view::run::run_id(state),
    };
    ui::show(context.json, &answer, || answer.render(ui::place()));
}

/// The gates that keep something of these waves from starting.
fn gates(plan: &Plan, state: &RunState, waves: &[Vec<StepPath>]) -> Vec<Gate> {
    let guards = |gate: &Gate| {
        let mut steps = waves.iter().flatten();
        steps.any(|s| s.phase == gate.gate.0 || s.lane().to_string() == gate.gate.0)
    };
    let all = plan.gates().into_iter().map(|(gate, name)| Gate { gate, name });
    all.filter(|gate| !state.approved(&gate.gate) && guards(gate)).collect()
}

fn start(context: &Context, plan: &Plan, state: &RunState, path: &StepPath) -> Start {
    let mut start = Start { step: path.clone(), command: String::new(), argv: None, test: None };
    let Some(step) = plan.step(path) else { return start };
    let vars = vars(context, plan, state, path);
    start.test = step.test.as_ref().map(|test| typed(&filled(test, &vars)));
    start.command = match &step.work {
        _ if step.role == Role::PullRequest => PULL_REQUEST_WORDS.to_owned(),
        Work::Run(command) => {
            let command = filled(command, &vars);
            let line = typed(&command);
            if let Command::Args(args) = command {
                start.argv = Some(args);
            }
            line
        }
        Work::Tests(tests) => {
            tests.iter().map(|t| typed(&filled(t, &vars))).collect::<Vec<_>>().join(" && ")
        }
        Work::Prompt { agent, command, prompt } => {
            let (agent, command) = (agent.clone(), command.clone());
            Work::Prompt { agent, command, prompt: text(prompt, &vars) }.display()
        }
        work @ Work::Tasks(_) => work.display(),
    };
    start
}

/// What templates stand for; a run that is not there yet has no id.
fn vars(context: &Context, plan: &Plan, state: &RunState, path: &StepPath) -> Vars {
    let mut vars = Vars::new(plan, state, path, state.step(path).map_or(0, |s| s.attempts) + 1);
    if vars.run_id.is_empty() {
        "{{ run.id }}".clone_into(&mut vars.run_id);
    }
    let root = drive::root_of(context, state);
    vars.root = root.to_string_lossy().into_owned();
    let folder = root.join(state.lane(&path.lane()).map_or("", LaneState::dir));
    let read = |file: &str| protocol_file(&folder, file);
    let starting =
        Starting { plan, state, step: path, attempt: vars.attempt, read: &read, left: &Vec::new };
    vars.context = drive::followed(context, state).dispatch(&starting).context;
    vars
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

fn lanes(context: &Context, protocol: &dyn Protocol, plan: &Plan) -> Vec<Lane> {
    let of_phase = |phase: &plan::Phase| -> Vec<Lane> {
        let lane = |lane: &plan::Lane| {
            let path = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
            let isolation = lane.rules.isolation;
            let workspace =
                (!isolation.is_in_place()).then(|| workspace(context, protocol, &path, lane));
            Lane { lane: path, isolation, workspace }
        };
        phase.lanes.iter().map(lane).collect()
    };
    plan.phases.iter().flat_map(of_phase).collect()
}

/// Where a lane would work: both get another name where somebody else already has this one.
fn workspace(
    context: &Context,
    protocol: &dyn Protocol,
    path: &LanePath,
    lane: &plan::Lane,
) -> MadeWorkspace {
    let worktrees = &context.settings.lanes.worktrees;
    let task = lane.rules.task.as_ref();
    let Names { branch, folder } = protocol.names(path, task);
    let parent = task.map(|task| LanePath { phase: path.phase.clone(), lane: task.lane.clone() });
    let dir = match &parent {
        Some(parent) => format!("{}/{folder}", protocol.names(parent, None).folder),
        None => folder,
    };
    MadeWorkspace {
        worktree: format!("{worktrees}/{dir}"),
        branch,
        merge: lane.rules.merge,
        task_of: parent,
    }
}

/// What would run, with what the command line asks for.
fn course(plan: &Plan, state: &RunState, args: &DriveArgs) -> Forecast {
    let limits = Limits {
        jobs: usize::MAX,
        phase: args.phase.clone(),
        lane: args.lane.clone(),
        ..Limits::default()
    };
    forecast(&with_policy(plan, args), state, &limits)
}

/// The plan with the failure policy that the command line asks for.
fn with_policy(plan: &Plan, args: &DriveArgs) -> Plan {
    let mut plan = plan.clone();
    if args.keep_going {
        plan.on_failure = OnFailure::Continue;
    }
    plan
}

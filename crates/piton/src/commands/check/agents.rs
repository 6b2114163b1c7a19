//! The agents of a plan: whether their programs are there, and can work while nobody is.

use piton_agents::ready::Gap;
use piton_core::agent::Agent;
use piton_core::plan::{Command, Plan, Step, Work};
use piton_core::refusal::Refusal;
use piton_core::state::Progress;
use piton_core::{RunState, StepPath};
use piton_world::installed::{self, Place, Question};

use super::{Depth, Found, refusal, selected};
use crate::cli::DriveArgs;
use crate::context::Context;
use crate::environment::environment;
use crate::error::Result;

/// An agent that steps name, with its command where that is the plan's.
struct Named {
    agent: Agent,
    command: Command,
    /// The agents that may take its place.
    others: Vec<Agent>,
}

/// Refuses to go on with a run whose agents cannot begin: nothing is spent on attempts that must fail.
pub fn refuse_agents(
    context: &Context,
    plan: &Plan,
    state: &RunState,
    args: &DriveArgs,
) -> Result<()> {
    let dir = context.run_dir(&state.run_id.as_ref().map(|id| id.0.clone()).unwrap_or_default());
    let is_kept = piton_process::keeper_alive(&dir).is_some();
    let is_due = |path: &StepPath| match state.step(path).map(|step| step.progress) {
        // Its process may have lost its keeper, and then it is started again.
        Some(Progress::Running { .. }) => !is_kept,
        progress => {
            progress.is_none_or(|p| matches!(p, Progress::Pending | Progress::Waiting { .. }))
        }
    };
    let mut found = Found::default();
    judge(context, &named(plan, args, is_due), Depth::Quick, &mut found);
    if found.problems.is_empty() { Ok(()) } else { Err(refusal(found.problems)) }
}

/// Looks at the agents of a plan that did not begin yet.
pub fn look(context: &Context, plan: &Plan, args: &DriveArgs, depth: Depth, found: &mut Found) {
    judge(context, &named(plan, args, |_| true), depth, found);
}

/// The agents that steps name. What a step finds by its own `PATH` is not known before.
fn named(plan: &Plan, args: &DriveArgs, is_due: impl Fn(&StepPath) -> bool) -> Vec<Named> {
    let mut named: Vec<Named> = Vec::new();
    for phase in plan.phases.iter().filter(|phase| selected(args, &phase.id, &phase.lanes)) {
        for lane in &phase.lanes {
            for step in &lane.steps {
                let sets_path = step.env.iter().any(|(name, _)| name == "PATH");
                let Work::Prompt { agent, command, .. } = &step.work else { continue };
                let is_known = named.iter().any(|known| known.agent.name == *agent);
                if is_known || sets_path || !is_due(&StepPath::new(&phase.id, &lane.id, &step.id)) {
                    continue;
                }
                let agent = plan.agent(agent).into_owned();
                let others = others(plan, step, &agent);
                named.push(Named { agent, command: command.clone(), others });
            }
        }
    }
    named
}

/// The agents that may take the place of a step's own.
fn others(plan: &Plan, step: &Step, agent: &Agent) -> Vec<Agent> {
    let names = step.fallback.iter().chain(&agent.fallback);
    names.map(|name| plan.agent(name).into_owned()).collect()
}

fn judge(context: &Context, named: &[Named], depth: Depth, found: &mut Found) {
    let environment = environment();
    let place = Place {
        inherited: &environment.inherited,
        home: environment.home.as_deref(),
        root: &context.project.root,
    };
    let is_there = |agent: &Agent, command: Option<&Command>| {
        wanted(agent, command).is_none_or(|binary| installed::find(&binary, &place).is_some())
    };
    for Named { agent, command, others } in named {
        if is_there(agent, Some(command)) || others.iter().any(|other| is_there(other, None)) {
            continue;
        }
        let (name, binary) = (&agent.name, wanted(agent, Some(command)).unwrap_or_default());
        let cause = format!("the program of agent {name} is not found: {binary}");
        let refusal = Refusal::new("agent-missing", cause)
            .or(format!("install {binary}, or put it on the PATH"))
            .or(format!("name its path with `command` in [agents.{name}]"));
        found.problems.push(refusal);
    }
    let question = if depth == Depth::Thorough { Question::Version } else { Question::None };
    found.agents = installed::agents(named.iter().map(|named| &named.agent), &place, question);
    for seen in found.agents.iter().filter(|found| found.seen.path.is_some()) {
        let name = &seen.agent.name;
        let (fatal, rest): (Vec<_>, Vec<_>) = seen.gaps.iter().partition(|gap| gap.is_fatal());
        let advice = |gaps: &[&Gap]| {
            let all: Vec<String> = gaps.iter().map(|gap| gap.advice(&seen.agent)).collect();
            all.join("; ")
        };
        if !fatal.is_empty() {
            let cause = format!("agent {name} cannot work without a person");
            found.problems.push(Refusal::new("agent-not-ready", cause).or(advice(&fatal)));
        }
        if !rest.is_empty() {
            found.remarks.push(format!("agent {name}: {}", advice(&rest)));
        }
    }
}

/// The program that must be there for an agent. What a shell or a worktree finds is not known before.
fn wanted(agent: &Agent, command: Option<&Command>) -> Option<String> {
    if agent.env.contains_key("PATH") {
        return None;
    }
    if agent.is_known() {
        let usual = piton_agents::find(&agent.program).map(|program| program.binary().to_owned());
        return agent.binary.clone().or(usual);
    }
    match agent.command.as_ref().or(command)? {
        Command::Args(args) => args.first().filter(|name| is_fixed(name)).cloned(),
        Command::Shell(_) => None,
    }
}

/// Whether a name means the same program wherever a step runs.
fn is_fixed(name: &str) -> bool {
    let is_template = name.contains("{{");
    !is_template && !name.is_empty() && (name.starts_with('/') || !name.contains('/'))
}

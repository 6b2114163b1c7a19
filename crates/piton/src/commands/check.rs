//! What must hold before a plan runs: `piton check`, and the same look at `run` and `--dry-run`.
//!
//! All problems are found at once, and nothing is changed. What lanes find by themselves at the very
//! beginning is left to them, for they record it.

use piton_core::agent::Agent;
use piton_core::budget::size;
use piton_core::decide::agents::substitutes;
use piton_core::plan::{Command, Lane, Plan, Work};
use piton_core::refusal::{Refusal, Remedy};
use piton_core::{RunId, RunState};
use piton_view::answers::{Checked, Problem};
use piton_view::text::count;
use piton_world::installed::{self, Place};

use super::run::{created, see_spec};
use crate::cli::{CheckArgs, DriveArgs};
use crate::context::{Context, now};
use crate::environment::environment;
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::{How, PlanFile};
use crate::{drive, ui};

/// Below this not even the ledger and the logs of a night find room.
const FREE_BYTES_MIN: u64 = 200_000_000;

/// How closely agents are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Whether their programs are there.
    Quick,
    /// Also whether they answer, and what they lack for work without a person.
    Thorough,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// What keeps the plan from running, or from running to its end.
    pub problems: Vec<Refusal>,
    /// Of these, what lanes with worktrees find by themselves.
    of_lanes: usize,
    /// What a person should know.
    pub remarks: Vec<String>,
}

/// Checks a plan.
pub fn run(context: &Context, args: &CheckArgs) -> Result<()> {
    let plan = PlanFile::read(context, &args.plan, How { tasks: None, asks: false, reader: None })?;
    let (base, seed_dirty) = (args.base.clone(), args.seed_dirty);
    let drive = DriveArgs { base, seed_dirty, ..DriveArgs::default() };
    let found = look(context, &plan, &drive, Depth::Thorough);
    let is_ready = found.problems.is_empty();
    let answer = Checked {
        plan: &plan.path,
        ready: is_ready,
        problems: found.problems.iter().map(|p| Problem::new(p, ui::place())).collect(),
        remarks: &found.remarks,
    };
    let layout = ui::stdout();
    ui::show(context.json, &answer, || answer.render(&layout));
    if is_ready { Ok(()) } else { Err(CommandError::silent(Kind::Blocked)) }
}

/// Refuses to start a run that could not come to its end.
pub fn refuse(context: &Context, plan: &PlanFile, args: &DriveArgs) -> Result<()> {
    let found = look(context, plan, args, Depth::Quick);
    let first = plan.live.phases.iter().find(|phase| selected(args, &phase.id, &phase.lanes));
    let begins_apart = first.is_some_and(|phase| phase.lanes.iter().any(is_apart));
    let are_told = begins_apart && found.of_lanes == found.problems.len();
    if found.problems.is_empty() || are_told {
        return Ok(());
    }
    Err(refusal(found.problems))
}

/// All problems as one error.
fn refusal(mut problems: Vec<Refusal>) -> CommandError {
    if problems.len() == 1 {
        return CommandError::refused(Kind::Blocked, problems.remove(0));
    }
    let message = format!("{} keep this plan from running", count(problems.len(), "problem"));
    problems.into_iter().fold(
        CommandError::new(Kind::Blocked, "not-ready", message),
        |error, Refusal { cause, remedies, .. }| {
            let all = remedies.into_iter().reduce(|all, remedy| all.words("; or ").and(remedy));
            error.hint(Remedy::from(format!("{cause}: ")).and(all.unwrap_or_default()))
        },
    )
}

/// Looks at all that a plan needs.
pub fn look(context: &Context, plan: &PlanFile, args: &DriveArgs, depth: Depth) -> Found {
    let mut found = Found::default();
    found.problems.extend(place(context));
    found.problems.extend(disk(context));
    if let Err(error) = see_spec(context, plan) {
        let refusal = Refusal { code: error.code, cause: error.message, remedies: error.hints };
        found.problems.push(refusal);
    }
    agents(context, &plan.live, args, depth, &mut found);
    let state = new_state(context, plan);
    if plan.live.phases.iter().any(|phase| {
        let lanes = phase.lanes.iter().filter(|lane| is_apart(lane) || lane.rules.commits);
        selected(args, &phase.id, lanes)
    }) && let Some(mut workspaces) = drive::workspaces(context, &state, args)
    {
        let refused = workspaces.preflight(&state);
        found.of_lanes = refused.len();
        found.problems.extend(refused);
    }
    found
}

fn is_apart(lane: &Lane) -> bool {
    !lane.rules.isolation.is_in_place()
}

/// Whether one of the lanes of a phase is chosen.
fn selected<'a>(args: &DriveArgs, phase: &str, lanes: impl IntoIterator<Item = &'a Lane>) -> bool {
    let chosen = |lane: &Lane| args.lane.as_ref().is_none_or(|id| *id == lane.id);
    args.phase.as_deref().is_none_or(|id| id == phase) && lanes.into_iter().any(chosen)
}

/// The state of a run of a plan before anything happened.
fn new_state(context: &Context, plan: &PlanFile) -> RunState {
    let created = created(context, plan, "dry-run", None, None);
    let state = piton_core::replay([(now(), &created)]).unwrap_or_default();
    RunState { run_id: Some(RunId(String::new())), ..state }
}

/// Whether the project's folder can be written.
fn place(context: &Context) -> Option<Refusal> {
    let root = &context.project.root;
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let why = rustix::fs::access(root.as_path(), access).err()?;
    let cause = format!("cannot write to the project's folder {}: {why}", root.display());
    Some(Refusal::new("folder-read-only", cause).or("make it writable, or run as its owner"))
}

/// Whether there is room for logs and snapshots.
fn disk(context: &Context) -> Option<Refusal> {
    let state = &context.project.state_dir;
    let dir = if state.exists() { state } else { &context.project.root };
    let found = rustix::fs::statvfs(dir.as_path()).ok()?;
    room(found.f_bavail.saturating_mul(found.f_frsize))
}

fn room(free: u64) -> Option<Refusal> {
    let cause = format!("only {} are free on the disk of the project", size(free));
    let gc = Remedy::piton("gc").words(" deletes old runs");
    (free < FREE_BYTES_MIN).then(|| Refusal::new("disk-low", cause).or("free some space").or(gc))
}

/// Whether the programs of agents are there; one whose place another takes may be missing.
fn agents(context: &Context, plan: &Plan, args: &DriveArgs, depth: Depth, found: &mut Found) {
    let environment = environment();
    let place = Place {
        inherited: &environment.inherited,
        home: environment.home.as_deref(),
        root: &context.project.root,
    };
    let mut named: Vec<(String, Command, Vec<String>)> = Vec::new();
    for phase in plan.phases.iter().filter(|phase| selected(args, &phase.id, &phase.lanes)) {
        for step in phase.lanes.iter().flat_map(|lane| &lane.steps) {
            let sets_path = step.env.iter().any(|(name, _)| name == "PATH");
            let (Work::Prompt { agent, command, .. }, false) = (&step.work, sets_path) else {
                continue;
            };
            let defined = plan.agent(agent);
            let others = substitutes(step, &defined);
            if !named.iter().any(|(known, _, also)| known == agent && also == others) {
                named.push((agent.clone(), command.clone(), others.to_vec()));
            }
        }
    }
    for (name, command, others) in &named {
        let agent = plan.agent(name);
        let others = others.iter().map(|name| plan.agent(name));
        let is_there = |agent: &Agent, command: Option<&Command>| {
            wanted(agent, command).is_none_or(|binary| installed::find(&binary, &place).is_some())
        };
        if is_there(&agent, Some(command)) || others.into_iter().any(|o| is_there(&o, None)) {
            continue;
        }
        let binary = wanted(&agent, Some(command)).unwrap_or_default();
        let cause = format!("the program of agent {name} is not found: {binary}");
        let refusal = Refusal::new("agent-missing", cause)
            .or(format!("install {binary}, or put it on the PATH"))
            .or(format!("name its path with `command` in [agents.{name}]"));
        found.problems.push(refusal);
    }
    if depth == Depth::Quick {
        return;
    }
    let used: Vec<Agent> = named.iter().map(|(name, ..)| plan.agent(name).into_owned()).collect();
    for seen in installed::agents(&used, &place).iter().filter(|f| f.seen.path.is_some()) {
        let name = &seen.agent.name;
        let (fatal, rest): (Vec<_>, Vec<_>) = seen.gaps.iter().partition(|gap| gap.is_fatal());
        let advice = |gaps: &[&piton_agents::ready::Gap]| {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: a night would begin on a disk that is full an hour later.
    #[test]
    fn a_disk_without_room_is_refused() {
        assert!(room(FREE_BYTES_MIN).is_none());
        let refused = room(FREE_BYTES_MIN - 1).map(|r| r.code.into_owned());
        assert_eq!(refused.as_deref(), Some("disk-low"));
    }
}

//! What must hold before a plan runs: `piton check`, and the same look at `run` and `--dry-run`.
//!
//! All problems are found at once, and nothing is changed. What lanes find by themselves at the very
//! beginning is left to them, for they record it.

use std::path::Path;

use piton_core::budget::size;
use piton_core::plan::Lane;
use piton_core::refusal::{Refusal, Remedy};
use piton_core::{RunId, RunState};
use piton_view::answers::{Checked, CheckedPhases, Problem};
use piton_view::text::count;
use piton_world::installed;

use super::run::{created, see_spec};
use crate::cli::{CheckArgs, DriveArgs};
use crate::context::{Context, now};
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::{self, How, PlanFile};
use crate::{drive, ui};

mod agents;

pub use agents::refuse_agents;

/// Below this not even the ledger and the logs of a night find room.
const FREE_BYTES_MIN: u64 = 200_000_000;

/// How closely agents are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Whether their programs are there, and may do something without a person.
    Quick,
    /// Also whether they answer, and what else they lack for work without a person.
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
    /// The programs of agents.
    pub agents: Vec<installed::Found>,
}

/// Checks a plan, or each phase of a roadmap.
pub fn run(context: &Context, args: &CheckArgs) -> Result<()> {
    let links = plan_file::chain(context, &args.plan);
    let layout = ui::stdout();
    let is_ready = if links.is_empty() {
        let (plan, found) = read(context, &args.plan, args)?;
        let answer = checked(&plan, &found);
        ui::show(context.json, &answer, || answer.render(&layout));
        answer.ready
    } else {
        let written = links.iter().filter_map(|link| link.document.as_ref());
        let read = written.map(|document| read(context, &context.path_from_cwd(document), args));
        let read = read.collect::<Result<Vec<_>>>()?;
        let phases: Vec<_> = read.iter().map(|(plan, found)| checked(plan, found)).collect();
        let answer = CheckedPhases {
            plan: args.plan.display().to_string(),
            ready: phases.iter().all(|phase| phase.ready),
            phases,
            unwritten: links
                .iter()
                .filter(|link| link.document.is_none())
                .map(|link| link.phase.as_str())
                .collect(),
        };
        ui::show(context.json, &answer, || answer.render(&layout));
        answer.ready
    };
    if is_ready { Ok(()) } else { Err(CommandError::silent(Kind::Blocked)) }
}

fn read(context: &Context, path: &Path, args: &CheckArgs) -> Result<(PlanFile, Found)> {
    let plan = PlanFile::read(context, path, How { tasks: None, asks: false, reader: None })?;
    let (base, seed_dirty) = (args.base.clone(), args.seed_dirty);
    let drive = DriveArgs { base, seed_dirty, ..DriveArgs::default() };
    let found = look(context, &plan, &drive, Depth::Thorough);
    Ok((plan, found))
}

fn checked<'a>(plan: &'a PlanFile, found: &'a Found) -> Checked<'a> {
    Checked {
        plan: &plan.path,
        ready: found.problems.is_empty(),
        problems: found.problems.iter().map(|p| Problem::new(p, ui::place())).collect(),
        remarks: &found.remarks,
        agents: super::doctor::agents::answers(&found.agents),
    }
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
    agents::look(context, &plan.live, args, depth, &mut found);
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

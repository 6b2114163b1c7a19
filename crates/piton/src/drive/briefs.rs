//! Briefs of runs: what the ledger and the snapshots tell about them.

use std::path::Path;

use piton_agents::brief::{self, Course, Fact, Input, Section};
use piton_core::redact::Redactor;
use piton_core::state::LaneState;
use piton_core::text::short;
use piton_core::{Plan, RunState, StepPath};
use piton_engine::store::Store;
use piton_ledger::RunRow;
use piton_protocols::files::Run;
use piton_protocols::protocol::Told;
use piton_protocols::table::find;
use piton_workspace::history;
use piton_world::{Briefs, read};

use crate::context::{Context, now};
use crate::error::Result;

/// Lanes whose changed files are looked up: each costs a call of git, and a brief has no room for more.
const LANES_MAX: usize = 4;

/// Makes the briefs that a driver gives to fresh agents. What cannot be read is left out: an agent with
/// less to read is better than none.
pub fn of_driver(context: &Context, row: &RunRow, redactor: &Redactor) -> Briefs {
    let (context, row, redactor) = (context.clone(), row.clone(), redactor.clone());
    Box::new(move |plan: &Plan, state: &RunState, step: &StepPath, limit: usize| {
        let read = || course(&mut context.read_store()?, &row, u64::MAX);
        let course = read().unwrap_or_default();
        let input = Input {
            state,
            plan: Some(plan),
            course: &course,
            step: Some(step),
            more: more(&super::root_of(&context, state), state, step),
            is_told: false,
            now: now(),
            redactor: &redactor,
        };
        let agent = state.step(step).and_then(|step| step.agent.as_deref());
        let limit = agent.map_or(limit, |agent| brief::limit_for(&agent.program, limit));
        brief::brief(&input, limit).text
    })
}

/// What the events of a run tell beside its state, up to one of them.
pub fn course(store: &mut Store, row: &RunRow, last: u64) -> Result<Course> {
    let mut course = Course::default();
    store.each_event(row, 0, |seq, at, event| {
        // What a driver records meanwhile is not part of the state that is shown.
        if seq <= last {
            course.take(seq, at, event);
        }
    })?;
    Ok(course)
}

/// What the state and the snapshots tell of a step beside: operations of its agent that were cut short,
/// and changed files.
pub fn more(root: &Path, state: &RunState, step: &StepPath) -> Vec<Fact> {
    let agent = state.step(step).and_then(|step| step.agent.as_deref());
    let operations = agent.map(|agent| agent.before.as_slice()).unwrap_or_default();
    let source = format!("the agent of {step}");
    let cut = |operation: &String| {
        let text = format!("{operation} (cut short: look at what it did before you repeat it)");
        Fact::new(Section::InFlight, text, source.clone())
    };
    operations.iter().map(cut).chain(changed(root, state, step)).collect()
}

/// The files that lanes changed, up to their last snapshots: first those of the step's own lane, then
/// those of the lanes that began last.
fn changed(root: &Path, state: &RunState, step: &StepPath) -> Vec<Fact> {
    let own = step.lane();
    let mut lanes: Vec<_> = state.lanes().filter(|(_, lane)| lane.work.is_some()).collect();
    lanes.reverse();
    lanes.sort_by_key(|(path, _)| *path != own);
    lanes.iter().take(LANES_MAX).flat_map(|(_, lane)| changed_by(root, lane)).collect()
}

fn changed_by(root: &Path, lane: &LaneState) -> Vec<Fact> {
    let Some(work) = &lane.work else { return Vec::new() };
    let before = lane.steps.iter().find_map(|step| step.before.as_ref());
    let old = match (&work.base_sha, before) {
        (Some(base), _) if !lane.isolation.is_in_place() => format!("{base}^{{tree}}"),
        (_, Some(before)) => format!("{before}:tree"),
        _ => return Vec::new(),
    };
    let Some(latest) = &work.latest.snapshot else { return Vec::new() };
    // Without its repository a run can still be summed up.
    let paths = history::changed(root, &old, &format!("{latest}:tree")).unwrap_or_default();
    let source = format!("snapshot {}", short(latest));
    let name = |path: &Vec<u8>| String::from_utf8_lossy(path).into_owned();
    paths.iter().map(|path| Fact::new(Section::Changed, name(path), source.clone())).collect()
}

/// What the protocol of a run says is to be done, where its steps do not say it.
pub fn told(context: &Context, state: &RunState) -> Option<Vec<Fact>> {
    let (root, settings) = (&super::root_of(context, state), &context.settings);
    let protocol = find(context.table, &state.protocol.id)?;
    let read = |path: &str| {
        if read::is_within(root, path) {
            read::protocol_file(root, path)
        } else {
            Err(std::io::ErrorKind::PermissionDenied.into())
        }
    };
    let Told { task, acceptance, next, changed } =
        protocol.told(&Run { root, settings, state }, &read)?;
    let facts = |section: Section, lines: Vec<String>| {
        let source = state.protocol.id.clone();
        lines.into_iter().map(move |line| Fact::new(section, line, source.clone()))
    };
    let all = facts(Section::Task, task)
        .chain(facts(Section::Acceptance, acceptance))
        .chain(facts(Section::Next, next))
        .chain(facts(Section::Changed, changed));
    Some(all.collect())
}

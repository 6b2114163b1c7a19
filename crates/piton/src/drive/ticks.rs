//! Which ticked gates of a phase document count: those a person ticked, not those of a step.
//!
//! A document does not say who ticked a box. What was ticked before the first step of a run, or while
//! nobody drove it, is a person's. What came while steps were at work, or with the commit of a lane,
//! may be a step's own: it counts once a person says so. Gates that a lane provides are not looked at
//! here: who needs one waits for that lane, whatever its box says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use piton_core::event::{Event, TicksSeen};
use piton_core::lane::Stage;
use piton_core::state::LaneState;
use piton_core::{LanePath, Plan, RunState};
use piton_engine::Gates;
use piton_protocols::lanes::phase;
use piton_workspace::Git;

use crate::context::Context;
use crate::plan_file::PlanFile;

/// Checks the ticks of a run's document; `accepts` are all of them. Gives what is to be recorded of those
/// that count from now on, and the gates that lanes wait for.
pub fn check(
    root: &Path,
    (plan, file): (&Plan, Option<&PlanFile>),
    state: &RunState,
    accepts: bool,
) -> (Vec<Event>, Gates) {
    let open = match file {
        Some(file) => file.open_gates.clone(),
        // Those of a document that is gone, and that did not count before.
        None => waiting(plan, |gate| !state.ticks.contains(gate)),
    };
    let Some((ticked, document)) = file.and_then(|f| f.ticked.as_ref()) else {
        return (Vec::new(), Gates { open, ..Gates::default() });
    };
    let lanes = plan.phases.iter().flat_map(|phase| &phase.lanes);
    let frozen: BTreeSet<&String> = lanes.flat_map(|lane| &lane.rules.frozen).collect();
    let new = ticked.iter().filter(|gate| frozen.contains(gate) && !state.ticks.contains(*gate));
    let is_doubted = |gate: &&String| {
        // A driver that died could not say what was ticked before.
        let at_work = state.driven || state.doubted.contains(*gate);
        !accepts && (at_work || through_lane(root, state, gate).is_some())
    };
    let (doubted, count): (Vec<&String>, Vec<&String>) = new.partition(is_doubted);
    let mut events = Vec::new();
    if !count.is_empty() {
        let by = if accepts {
            format!("accepted by {}", Context::who())
        } else {
            "found ticked in the document".to_owned()
        };
        let gates = count.into_iter().cloned().collect();
        let seen = TicksSeen { gates, count: true, by, document: Some(document.clone()) };
        events.push(Event::TicksSeen(Box::new(seen)));
    }
    (events, Gates { open, doubted: waiting(plan, |gate| doubted.contains(&gate)) })
}

/// The gates of each lane that are meant.
fn waiting(plan: &Plan, is_meant: impl Fn(&String) -> bool) -> BTreeMap<LanePath, Vec<String>> {
    let mut all = BTreeMap::new();
    for phase in &plan.phases {
        for lane in &phase.lanes {
            let gates: Vec<String> =
                lane.rules.frozen.iter().filter(|gate| is_meant(gate)).cloned().collect();
            if !gates.is_empty() {
                let path = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
                all.insert(path, gates);
            }
        }
    }
    all
}

/// The lane whose commit has a gate ticked that was open where the lane began.
fn through_lane(root: &Path, state: &RunState, gate: &str) -> Option<LanePath> {
    let closed = |commit: &str| {
        let name = format!("{commit}:./{}", state.plan_path);
        let text = Git::at(root).args(["show", &name]).text().unwrap_or_default();
        phase::inspect("", &text).0.ticked().iter().any(|closed| closed == gate)
    };
    let brings = |lane: &LaneState| {
        let work = lane.work.as_deref().filter(|work| !work.isolation.is_in_place())?;
        let merged = work.merged.as_ref().and_then(|m| m.to.clone());
        let commit = merged.or_else(|| work.committed.as_ref().map(|c| c.commit.clone()))?;
        let began = work.record(Stage::BeforeLaneStart).and_then(|r| r.base_sha.clone());
        let began = began.or_else(|| work.base_sha.clone())?;
        (closed(&commit) && !closed(&began)).then_some(())
    };
    state.lanes().find(|(_, lane)| brings(lane).is_some()).map(|(path, _)| path)
}

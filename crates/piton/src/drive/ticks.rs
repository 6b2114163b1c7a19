//! Which ticked boxes of a protocol's files count: those a person ticked, not those of a step.
//!
//! A box closes a gate that lanes wait for, or approves the gate of a place. A file does not say who ticked a box. What was ticked before the first step of a run, or while
//! nobody drove it, is a person's. What came while steps were at work, or with the commit of a lane,
//! may be a step's own: it counts once a person says so. Gates that a lane provides are not looked at
//! here: who needs one waits for that lane, whatever its box says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use piton_core::event::{Event, TicksSeen};
use piton_core::lane::Stage;
use piton_core::request::{self, Request};
use piton_core::state::LaneState;
use piton_core::{GateRef, LanePath, Plan, RunState};
use piton_engine::Gates;
use piton_protocols::Protocol;
use piton_workspace::history;
use piton_world::read::protocol_file;

use crate::context::Context;
use crate::ui;

/// Checks the ticks of a run; `accepts` are all of them. Gives what is to be recorded of those that
/// count from now on, and the gates that lanes wait for; `open` are those that its plan's file says.
pub fn check(
    protocol: &dyn Protocol,
    root: &Path,
    (plan, open): (&Plan, Option<BTreeMap<LanePath, Vec<String>>>),
    state: &RunState,
    accepts: bool,
) -> (Vec<Event>, Gates) {
    // Of a file that is gone, those that did not count before.
    let open = open.unwrap_or_else(|| waiting(plan, |gate| !state.ticks.contains(gate)));
    let inputs = protocol.inputs((&state.plan_path, plan), &|path| protocol_file(root, path));
    let Some((ticked, document)) = inputs else {
        return (Vec::new(), Gates { open, ..Gates::default() });
    };
    let new = ticked.iter().filter(|gate| request::awaits_tick(plan, state, gate));
    let is_doubted = |gate: &&String| {
        // A driver that died could not say what was ticked before.
        let at_work = state.driven || state.doubted.contains(*gate);
        !accepts && (at_work || through_lane(protocol, root, (plan, state), gate).is_some())
    };
    let (doubted, count): (Vec<&String>, Vec<&String>) = new.partition(is_doubted);
    let mut events = Vec::new();
    let gone = gone(state, &ticked);
    if !count.is_empty() || !gone.is_empty() {
        let by = if accepts {
            format!("accepted by {}", Context::who())
        } else {
            "found ticked in the document".to_owned()
        };
        let decide = |gate: &&String| Request::Decide {
            gate: (*gate).clone(),
            approved: true,
            message: by.clone(),
        };
        // A gate that only lanes wait for has no place, and is not decided about.
        let decided = count
            .iter()
            .filter_map(|gate| request::turn(state, &decide(gate), &Context::who()).ok());
        let decided: Vec<Event> = decided.flatten().collect();
        let gates = count.into_iter().cloned().collect();
        let seen = TicksSeen { gates, count: true, by, document: Some(document), gone };
        events.push(Event::TicksSeen(Box::new(seen)));
        events.extend(decided);
    }
    let is_doubted =
        |gate: &&(GateRef, String)| doubted.iter().any(|d| request::is_called(gate, d));
    for (gate, _) in request::gates(state).iter().filter(is_doubted) {
        ui::say(format!(
            "note: {gate} was ticked while steps may have been at work, which approves nothing; see \
             that it is right, then approve it, or resume with `--accept-gates`"
        ));
    }
    (events, Gates { open, doubted: waiting(plan, |gate| doubted.contains(&gate)) })
}

/// The boxes of open questions that were ticked before and are not any more.
fn gone(state: &RunState, ticked: &[String]) -> Vec<String> {
    let all = request::gates(state);
    let is_open = |place: &GateRef| state.gates.get(place).is_none_or(|g| g.decision.is_none());
    let is_asked = |name: &str| all.iter().any(|g| request::is_called(g, name) && is_open(&g.0));
    let known: BTreeSet<&String> = state.ticks.iter().chain(&state.doubted).collect();
    let gone = known.into_iter().filter(|name| !ticked.contains(name) && is_asked(name));
    gone.cloned().collect()
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
fn through_lane(
    protocol: &dyn Protocol,
    root: &Path,
    (plan, state): (&Plan, &RunState),
    gate: &str,
) -> Option<LanePath> {
    let closed = |commit: &str| {
        let show = |path: &str| {
            let bytes = history::file(root, format!("{commit}:./{path}").as_bytes());
            Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
        };
        let ticked = protocol.inputs((&state.plan_path, plan), &show);
        ticked.is_some_and(|(boxes, _)| boxes.iter().any(|closed| closed == gate))
    };
    let brings = |lane: &LaneState| {
        let work = lane.work.as_deref().filter(|work| !work.isolation.is_in_place())?;
        let merged = work.merged().and_then(|m| m.to.clone());
        let commit = merged.or_else(|| work.committed().map(|c| c.commit.clone()))?;
        let began = work.record(Stage::BeforeLaneStart).and_then(|r| r.base_sha.clone());
        let began = began.or_else(|| work.base_sha.clone())?;
        (closed(&commit) && !closed(&began)).then_some(())
    };
    state.lanes().find(|(_, lane)| brings(lane).is_some()).map(|(path, _)| path)
}

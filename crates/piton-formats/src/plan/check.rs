//! Rules across the parts of a plan: unique ids, known references, no cycles.
//!
//! References are resolved here: a phase without `needs` comes after the previous phase.

use std::collections::{BTreeMap, BTreeSet};

use piton_core::LanePath;

use super::build::{Draft, PhaseDraft};
use super::graph::Graph;
use crate::diagnostic::{code, quoted};
use crate::keys;
use crate::sink::{Located, Sink};

/// Most lanes with the same artifact that are compared: the check is quadratic, and a few warnings
/// about the same artifact are enough.
const SHARED_LANES_MAX: usize = 200;

/// Checks the draft and fills in its references.
pub(super) fn check(draft: &mut Draft, sink: &mut Sink<'_>) {
    unique(draft.phases.iter().map(|phase| &phase.id), "phases", sink);
    for phase in &draft.phases {
        unique(phase.lanes.iter().map(|lane| &lane.id), "lanes of a phase", sink);
        for lane in &phase.lanes {
            unique(lane.step_ids.iter(), "steps of a lane", sink);
        }
    }
    resolve_phases(&mut draft.phases, sink);
    resolve_lanes(&mut draft.phases, sink);
    let graph = Graph::new(&draft.phases);
    let cycles = graph.cycles();
    for cycle in &cycles {
        let message = format!("these wait for each other: {}", cycle.path);
        let hint = "remove one `needs`; a phase without `needs` waits for the previous phase";
        sink.error(code::CYCLE, &cycle.span, message, hint);
    }
    if cycles.is_empty() {
        shared_artifacts(&draft.phases, &graph, sink);
    }
}

/// Reports ids that occur twice.
fn unique<'a>(ids: impl Iterator<Item = &'a Located<String>>, what: &str, sink: &mut Sink<'_>) {
    let mut seen: BTreeMap<&str, &Located<String>> = BTreeMap::new();
    // A missing id is empty here and was already reported.
    for id in ids.filter(|id| !id.value.is_empty()) {
        if let Some(first) = seen.insert(&id.value, id) {
            let line = sink.text()[..first.span.start].matches('\n').count() + 1;
            let message = format!("two {what} have the id {}", quoted(&id.value));
            let hint = format!("the other one is on line {line}; rename one of them");
            sink.error(code::DUPLICATE_ID, &id.span, message, hint);
        }
    }
}

fn resolve_phases(phases: &mut [PhaseDraft], sink: &mut Sink<'_>) {
    let ids: Vec<String> = phases.iter().map(|phase| phase.id.value.clone()).collect();
    let known: BTreeSet<&str> =
        ids.iter().map(String::as_str).filter(|id| !id.is_empty()).collect();
    for (index, phase) in phases.iter_mut().enumerate() {
        match &phase.needs {
            None if index > 0 => phase.phase.after.push(ids[index - 1].clone()),
            None => {}
            Some(needs) => {
                let mut seen = BTreeSet::new();
                for need in needs {
                    if !known.contains(need.value.as_str()) {
                        unknown(need, "phase", known.iter().copied(), sink);
                    } else if seen.insert(&need.value) {
                        phase.phase.needs.push(need.value.clone());
                    }
                }
            }
        }
    }
}

fn resolve_lanes(phases: &mut [PhaseDraft], sink: &mut Sink<'_>) {
    let known: BTreeSet<String> = phases
        .iter()
        .flat_map(|p| p.lanes.iter().map(move |l| format!("{}/{}", p.id.value, l.id.value)))
        .collect();
    for phase in phases {
        let siblings: Vec<String> = phase.lanes.iter().map(|lane| lane.id.value.clone()).collect();
        for lane in &mut phase.lanes {
            let mut seen = BTreeSet::new();
            for need in &lane.needs {
                let full = if need.value.contains('/') {
                    need.value.clone()
                } else {
                    format!("{}/{}", phase.id.value, need.value)
                };
                match full.parse::<LanePath>() {
                    Ok(path) if known.contains(&full) => {
                        if seen.insert(full) {
                            lane.lane.needs.push(path);
                        }
                    }
                    _ => {
                        let near = siblings.iter().chain(&known).map(String::as_str);
                        unknown(need, "lane", near, sink);
                    }
                }
            }
        }
    }
}

fn unknown<'a>(
    need: &Located<String>,
    what: &str,
    known: impl Iterator<Item = &'a str>,
    sink: &mut Sink<'_>,
) {
    let known: Vec<&str> = known.collect();
    // The most common mistake is a lane of another phase, named without the phase.
    let elsewhere = known
        .iter()
        .copied()
        .find(|id| id.split_once('/').is_some_and(|(_, lane)| lane == need.value));
    let hint = match elsewhere.or_else(|| keys::nearest(&need.value, known.iter().copied())) {
        Some(near) => format!("did you mean `{near}`?"),
        None if what == "lane" => "name a lane of this phase, or PHASE/LANE".to_owned(),
        None => "name the id of a phase of this plan".to_owned(),
    };
    let message = format!("`needs` names the unknown {what} {}", quoted(&need.value));
    sink.error(code::UNKNOWN_ID, &need.span, message, hint);
}

/// Warns if lanes that may run at the same time make the same file.
fn shared_artifacts(phases: &[PhaseDraft], graph: &Graph, sink: &mut Sink<'_>) {
    let mut makers: BTreeMap<&str, Vec<(String, &Located<String>)>> = BTreeMap::new();
    for phase in phases {
        for lane in &phase.lanes {
            let path = format!("{}/{}", phase.id.value, lane.id.value);
            for artifact in &lane.artifacts {
                let list = makers.entry(&artifact.value).or_default();
                if list.last().is_none_or(|(last, _)| *last != path) {
                    list.push((path.clone(), artifact));
                }
            }
        }
    }
    for (artifact, lanes) in makers.iter().filter(|(_, lanes)| lanes.len() > 1) {
        let lanes = &lanes[..lanes.len().min(SHARED_LANES_MAX)];
        let before: Vec<_> = lanes.iter().map(|(path, _)| graph.before(path)).collect();
        for (index, (path, place)) in lanes.iter().enumerate() {
            let beside = (0..index).find(|other| {
                !before[index].contains(lanes[*other].0.as_str())
                    && !before[*other].contains(path.as_str())
            });
            if let Some(other) = beside {
                let message = format!(
                    "the lanes {path} and {} may run at the same time and both make {}",
                    lanes[other].0,
                    quoted(artifact)
                );
                let hint = format!(
                    "let one need the other (needs = [\"{}\"]), or use two files",
                    lanes[other].0
                );
                sink.warn(code::SHARED_ARTIFACT, &place.span, message, hint);
            }
        }
    }
}

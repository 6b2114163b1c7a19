//! What happens to lanes beside their steps, in words.

use piton_core::event::{LaneBlocked, LaneMerged, LaneRebased, MergedBy};
use piton_core::lane::Stage;
use piton_core::state::LaneState;
use piton_core::text::short;
use piton_core::{Event, RunState};

use crate::place::Place;
use crate::text::sanitize;

/// An event of a lane in words; nothing for the small steps of its way.
pub fn event(event: &Event, state: &RunState, place: &Place) -> Option<String> {
    Some(match event {
        Event::LaneBegun(e) if !e.branch.is_empty() => {
            let base = e.base_sha.as_deref().map(short).unwrap_or_default();
            let sep = if e.note.is_empty() { "" } else { "; " };
            let (from, note) = (sanitize(&e.base_branch), sanitize(&e.note));
            let branch = sanitize(&e.branch);
            format!("{} started on {branch} (from {from} {base}){sep}{note}", e.lane)
        }
        Event::LaneBlocked(e) if blocks_first(e, state) => {
            format!("{} is blocked: {}", e.lane, sanitize(&e.refusal.cause))
        }
        Event::StepProven(e) if e.tree.is_empty() => format!("{} is not needed", e.step),
        Event::StepProven(e) => format!("{} already passed on the same files", e.step),
        Event::LaneCommitted(e) if !e.changed => format!("{} changed nothing", e.lane),
        Event::LaneRebased(e) if is_moved(e, state) => {
            format!("{} rebased onto {} (now {})", e.lane, short(&e.onto), short(&e.commit))
        }
        Event::LaneReopened(e) => {
            format!("{} continues at {}: {}", e.lane, e.step.step, sanitize(&e.error))
        }
        Event::MergeMissed(e) => {
            let who = if e.by_runs { ", by another run" } else { "" };
            format!("{}: base moved to {} in the meantime{who}", e.lane, short(&e.found))
        }
        Event::LaneMerged(e) => merged(e, state),
        Event::PullRequestOpened(e) => format!("{} has pull request {}", e.lane, sanitize(&e.url)),
        Event::LaneRemoved(e) if e.branch_stays => {
            format!("removed the worktree of {}; its branch is kept", e.lane)
        }
        Event::LaneKept(e) => {
            let why = place.refusal(&e.refusal);
            format!("the worktree of {} could not be removed: {why}", e.lane)
        }
        Event::LaneForked(e) => {
            format!("{} committed as {}; its tasks start from there", e.lane, short(&e.commit))
        }
        Event::LaneJoined(e) => format!("the tasks of {} are merged into their lane", e.step),
        Event::LaneImported(e) => {
            let stages = e.records.iter().max_by_key(|r| r.at).map(|r| r.stage.as_str());
            format!("{} imported at {}", e.lane, stages.unwrap_or("its start"))
        }
        Event::Rewound(e) if !e.reverted.is_empty() => {
            format!("not done: {}", sanitize(&e.reverted))
        }
        _ => return None,
    })
}

/// Whether a lane was put on another commit than it started from.
fn is_moved(e: &LaneRebased, state: &RunState) -> bool {
    let work = state.lane(&e.lane).and_then(|lane| lane.work.as_ref());
    let began = work.and_then(|work| work.record(Stage::BeforeLaneStart));
    began.is_none_or(|began| began.base_sha.as_ref() != Some(&e.onto))
}

/// Whether a lane is the first that its refusal blocks.
fn blocks_first(e: &LaneBlocked, state: &RunState) -> bool {
    let is_same = |(_, lane): &(_, &LaneState)| {
        lane.work.as_ref().is_some_and(|work| work.blocked.as_ref() == Some(&e.refusal))
    };
    state.lanes().find(is_same).is_none_or(|(first, _)| first == e.lane)
}

fn merged(e: &LaneMerged, state: &RunState) -> String {
    match (e.by, &e.to) {
        (MergedBy::Queue, Some(to)) => {
            let sep = if e.note.is_empty() { "" } else { "; " };
            let work = state.lane(&e.lane).and_then(|lane| lane.work.as_ref());
            let base = work.map_or("base".to_owned(), |work| sanitize(&work.base_branch));
            let note = sanitize(&e.note);
            format!("{} merged into {base} ({}){sep}{note}", e.lane, short(to))
        }
        (MergedBy::PullRequest, _) => {
            format!("{}: its pull request was merged: {}", e.lane, sanitize(&e.note))
        }
        _ => format!("{} is done: {}", e.lane, sanitize(&e.note)),
    }
}

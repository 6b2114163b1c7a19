//! What happens to lanes beside their steps, in words.

use piton_core::Event;
use piton_core::event::{LaneMerged, MergedBy, RewindKind};
use piton_core::text::short;

use crate::place::Place;
use crate::text::sanitize;

/// An event of a lane in words.
pub fn event(event: &Event, place: &Place) -> String {
    match event {
        Event::LaneBegun(e) if e.branch.is_empty() => format!("{} begins in place", e.lane),
        Event::LaneBegun(e) => {
            let base = e.base_sha.as_deref().map(short).unwrap_or_default();
            let sep = if e.note.is_empty() { "" } else { "; " };
            let (from, note) = (sanitize(&e.base_branch), sanitize(&e.note));
            format!("{} begins from {from} ({base}){sep}{note}", e.lane)
        }
        Event::LaneBlocked(e) => {
            let fix = sanitize(&e.fix);
            format!("{} is blocked: {}; {}", e.lane, sanitize(&e.why), place.told(&fix))
        }
        Event::LaneReady(e) if e.branch.is_empty() => format!("{} is ready", e.lane),
        Event::LaneReady(e) => {
            format!("{} works on {} in {}", e.lane, sanitize(&e.branch), sanitize(&e.dir))
        }
        Event::StepProven(e) if e.tree.is_empty() => format!("{} is not needed", e.step),
        Event::StepProven(e) => format!("{} passed on this very tree before", e.step),
        Event::LaneCommitted(e) if !e.changed => format!("{} changed nothing", e.lane),
        Event::LaneCommitted(e) => format!("{} is commit {}", e.lane, short(&e.commit)),
        Event::LaneRebased(e) => {
            format!("{} stands on {} as {}", e.lane, short(&e.onto), short(&e.commit))
        }
        Event::LaneReopened(e) => {
            format!("{} goes on at {}: {}", e.lane, e.step.step, sanitize(&e.error))
        }
        Event::MergeIntended(e) => {
            let (from, to) = (short(&e.from), short(&e.to));
            format!("{} is being merged: {} from {from} to {to}", e.lane, sanitize(&e.base_branch))
        }
        Event::MergeMissed(e) => {
            let who = if e.by_runs { ", by another run" } else { "" };
            format!("{}: base moved to {} meanwhile{who}", e.lane, short(&e.found))
        }
        Event::LaneMerged(e) => merged(e),
        Event::PullRequestOpened(e) => format!("{} has pull request {}", e.lane, sanitize(&e.url)),
        Event::LaneRemoved(e) if e.branch_stays && e.snapshot.is_none() => {
            format!("the worktree of {} stays", e.lane)
        }
        Event::LaneRemoved(e) if e.branch_stays => {
            format!("the worktree of {} is removed, its branch stays", e.lane)
        }
        Event::LaneRemoved(e) => format!("the worktree of {} is removed", e.lane),
        Event::LaneForked(e) => {
            format!("{} is commit {}; its tasks start from it", e.lane, short(&e.commit))
        }
        Event::LaneJoined(e) => format!("the tasks of {} are back in it", e.step),
        Event::LaneImported(e) => {
            let stages = e.records.iter().max_by_key(|r| r.at).map(|r| r.stage.as_str());
            format!("{} is taken over at {}", e.lane, stages.unwrap_or("its beginning"))
        }
        Event::RewindIntended(e) => {
            let what = match e.kind {
                RewindKind::Restore => "restoring files of",
                RewindKind::Undo => "undoing",
                RewindKind::Rollback => "rolling back to",
            };
            let tasks = e.leaving().map_or(String::new(), |words| format!("; {words}"));
            format!("{what} {}{tasks}", sanitize(&e.to))
        }
        Event::Rewound(e) if e.reverted.is_empty() => "files and steps are back".to_owned(),
        Event::Rewound(e) => format!("not done: {}", sanitize(&e.reverted)),
        _ => "something happened that has no words yet".to_owned(),
    }
}

fn merged(e: &LaneMerged) -> String {
    match (e.by, &e.to) {
        (MergedBy::Queue, Some(to)) => {
            let sep = if e.note.is_empty() { "" } else { "; " };
            format!("{} is merged: base is {}{sep}{}", e.lane, short(to), sanitize(&e.note))
        }
        (MergedBy::PullRequest, _) => {
            format!("{}: its pull request is merged: {}", e.lane, sanitize(&e.note))
        }
        _ => format!("{} is done: {}", e.lane, sanitize(&e.note)),
    }
}

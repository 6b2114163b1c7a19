//! What happens to lanes beside their steps, in words.

use std::fmt::Write as _;
use std::path::Path;

use piton_core::event::{LaneMerged, MergedBy, RewindKind};
use piton_core::lane::{Missed, Stage, StageStatus};
use piton_core::lane_state::LaneWork;
use piton_core::state::LaneState;
use piton_core::{Event, RunState};

use piton_core::text::short;

use super::text::sanitize;

/// An event of a lane in words.
pub fn event(event: &Event) -> String {
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
            format!("{} is blocked: {}; {}", e.lane, sanitize(&e.why), super::here::told(&fix))
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
            format!(
                "{} stands on {} as {}",
                e.lane,
                short(&e.onto),
                piton_core::text::short(&e.commit)
            )
        }
        Event::LaneReopened(e) => {
            format!("{} goes on at {}: {}", e.lane, e.step.step, sanitize(&e.error))
        }
        Event::MergeIntended(e) => {
            let (from, to) = (short(&e.from), piton_core::text::short(&e.to));
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
        Event::Rewound(e) if e.reverted.contains(piton_workspace::restore::PUT_BACK_FAILED) => {
            sanitize(&e.reverted)
        }
        Event::Rewound(e) => format!("nothing changed: {}", sanitize(&e.reverted)),
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

/// What is said of a rollback, restore or undo that a kill left half done.
pub fn cut_short(state: &RunState) -> Option<String> {
    let intent = state.rewinding.as_ref()?;
    let what = match intent.kind {
        RewindKind::Restore => "a restore of",
        RewindKind::Undo => "an undo of the",
        RewindKind::Rollback => "a rollback to",
    };
    let (to, run) = (sanitize(&intent.to), super::words::run_id(state));
    let text = format!("{what} {to} was cut short: `piton resume {run}` finishes it");
    Some(super::here::told(&text).into_owned())
}

/// How far a lane's work is on its way to base; nothing while its steps are at work, or in place.
pub fn way(lane: &LaneState) -> Option<String> {
    let work = lane.work.as_ref().filter(|w| !w.isolation.is_in_place())?;
    if let Some(merged) = &work.merged {
        return Some(match (merged.by, &merged.to) {
            (MergedBy::Queue, Some(to)) => format!("merged as {}", short(to)),
            (MergedBy::PullRequest, _) => "its pull request is merged".to_owned(),
            (MergedBy::Kept, _) => format!("stays on {}", sanitize(&work.branch)),
            (MergedBy::Nothing, _) => "nothing to merge".to_owned(),
            _ => "done".to_owned(),
        });
    }
    if work.merging.is_some() {
        return Some(format!("merging into {}", sanitize(&work.base_branch)));
    }
    if work.conflict.is_some() {
        return Some("in conflict with base".to_owned());
    }
    match (lane.current(), &work.pull_request) {
        (None, Some(url)) => Some(format!("waits for its pull request {}", sanitize(url))),
        (None, None) if work.committed.is_some() => Some("waits for its merge".to_owned()),
        _ => None,
    }
}

/// Where a lane works and which stage it reached; nothing for a lane in place.
pub fn place(work: &LaneWork, root: &str) -> Option<String> {
    if work.isolation.is_in_place() || work.branch.is_empty() {
        return None;
    }
    let dir = Path::new(&work.dir);
    let dir = dir.strip_prefix(root).unwrap_or(dir).to_string_lossy();
    let mut text = format!("branch {}", sanitize(&work.branch));
    if work.ready && !work.removed {
        let _ = write!(text, " in {}", sanitize(&dir));
    }
    if let Some(record) = work.stage().and_then(|stage| work.record(stage)) {
        let _ = write!(text, ", {} {}", record.stage, record.status.as_str());
    }
    Some(text)
}

/// What the last snapshot of a lane does not hold.
pub fn degraded(work: &LaneWork) -> Option<String> {
    Missed::words(&work.degraded).map(|list| format!("not in its checkpoints: {}", sanitize(&list)))
}

/// What a person should know of how a lane began.
pub fn beginning(work: &LaneWork) -> Option<String> {
    let record = work.record(Stage::BeforeLaneStart).filter(|r| r.status != StageStatus::Blocked);
    let notes = record.map(|record| sanitize(&record.notes));
    notes.filter(|notes| !notes.is_empty()).map(|notes| format!("began: {notes}"))
}

/// What holds a lane up, and what to do.
pub fn blocked(work: &LaneWork) -> Option<String> {
    let (why, fix) = work.blocked.as_ref()?;
    let sep = if fix.is_empty() { "" } else { "; " };
    Some(format!("blocked: {}{sep}{}", sanitize(why), sanitize(fix)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use piton_core::LanePath;
    use piton_core::lane::{Isolation, Missed};
    use piton_core::lane_event::MergeIntended;

    use super::*;

    fn lane(work: LaneWork) -> LaneState {
        let work = LaneWork {
            isolation: Isolation::Worktree,
            branch: "lane/P/a".to_owned(),
            base_branch: "main".to_owned(),
            dir: "/r/.worktrees/P/a".to_owned(),
            ..work
        };
        LaneState { work: Some(Box::new(work)), ..LaneState::default() }
    }

    fn path() -> LanePath {
        LanePath { phase: "P".to_owned(), lane: "a".to_owned() }
    }

    /// Lost: a lane between its last step and base would look as if nothing happened.
    #[test]
    fn each_part_of_the_way_to_base_has_words() {
        let said = |work: LaneWork| way(&lane(work)).unwrap_or_default();
        let merging = MergeIntended {
            lane: path(),
            base_branch: "main".to_owned(),
            from: "a".repeat(40),
            to: "b".repeat(40),
        };
        assert_eq!(said(LaneWork::default()), "");
        assert_eq!(
            said(LaneWork { merging: Some(merging), ..LaneWork::default() }),
            "merging into main"
        );
        let url = Some("https://x/1".to_owned());
        assert_eq!(
            said(LaneWork { pull_request: url.clone(), ..LaneWork::default() }),
            "waits for its pull request https://x/1"
        );
        let merged = |by, to: Option<String>| {
            let merged = LaneMerged { lane: path(), by, from: None, to, note: String::new() };
            said(LaneWork {
                merged: Some(merged),
                pull_request: url.clone(),
                ..LaneWork::default()
            })
        };
        assert_eq!(merged(MergedBy::Queue, Some("b".repeat(40))), "merged as bbbbbbbbbb");
        assert_eq!(merged(MergedBy::Kept, None), "stays on lane/P/a");
        assert_eq!(merged(MergedBy::Nothing, None), "nothing to merge");
        let in_place = LaneState { work: Some(Box::default()), ..LaneState::default() };
        assert_eq!(way(&in_place), None);
    }

    #[test]
    fn place_and_what_is_not_captured_are_named() {
        let missed = |n: u32| Missed { path: format!("{n}.bin"), why: "too large".to_owned() };
        let degraded_list = (0..5).map(missed).collect();
        let found = lane(LaneWork { ready: true, degraded: degraded_list, ..LaneWork::default() });
        let work = found.work.unwrap();
        assert_eq!(place(&work, "/r").unwrap(), "branch lane/P/a in .worktrees/P/a");
        let text = degraded(&work).unwrap();
        assert!(text.ends_with("2.bin (too large), 2 more"), "{text}");
        assert_eq!(blocked(&work), None);
    }
}

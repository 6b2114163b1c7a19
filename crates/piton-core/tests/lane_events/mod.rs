//! Events of lanes for tests of the pure core: short to write, every field spelled out once.
#![allow(dead_code, reason = "each test file uses its own part of this one")]

use piton_core::event::{
    Class, Event, LaneBegun, LaneBlocked, LaneCommitted, LaneForked, LaneJoined, LaneMerged,
    LaneReady, LaneRebased, LaneRemoved, LaneReopened, MergeIntended, MergeMissed, MergedBy,
    StepProven,
};
use piton_core::lane::{Isolation, SnapshotRef, Stage};
use piton_core::{LanePath, StepPath};

/// The test of a lane.
pub const TEST: &str = "make check";

pub fn lane_path(text: &str) -> LanePath {
    let (phase, lane) = text.split_once('/').expect("tests name lanes as PHASE/LANE");
    LanePath { phase: phase.to_owned(), lane: lane.to_owned() }
}

pub fn snapshot(tree: &str) -> SnapshotRef {
    let (commit, tree) = (format!("snapshot of {tree}"), tree.to_owned());
    SnapshotRef { commit, tree, degraded: Vec::new(), head: None }
}

pub fn begun(lane: &str, isolation: Isolation) -> Event {
    let own = isolation == Isolation::Worktree;
    Event::LaneBegun(Box::new(LaneBegun {
        lane: lane_path(lane),
        isolation,
        dir: if own { format!(".worktrees/{lane}") } else { String::new() },
        branch: if own { format!("lane/{lane}") } else { String::new() },
        base_branch: "main".to_owned(),
        base_sha: Some("base".to_owned()),
        snapshot: (!own).then(|| snapshot("start")),
        note: String::new(),
    }))
}

pub fn blocked(lane: &str, stage: Stage) -> Event {
    let refusal = piton_core::refusal::Refusal::new("wrong", "something is wrong").or("mend it");
    let (lane, base_branch) = (lane_path(lane), String::new());
    Event::LaneBlocked(LaneBlocked { lane, stage, refusal, base_branch })
}

pub fn ready(lane: &str, tree: &str) -> Event {
    Event::LaneReady(Box::new(LaneReady {
        lane: lane_path(lane),
        dir: format!(".worktrees/{lane}"),
        branch: format!("lane/{lane}"),
        head: Some("base".to_owned()),
        snapshot: Some(snapshot(tree)),
        note: String::new(),
    }))
}

pub fn committed(lane: &str, tree: &str, changed: bool) -> Event {
    let (lane, tests) = (lane_path(lane), vec![TEST.to_owned()]);
    let (commit, tree) = (format!("commit of {tree}"), tree.to_owned());
    Event::LaneCommitted(LaneCommitted { lane, commit, tree, changed, tests })
}

pub fn rebased(lane: &str, onto: &str, tree: &str) -> Event {
    let (commit, tree) = (format!("commit of {tree}"), tree.to_owned());
    Event::LaneRebased(LaneRebased { lane: lane_path(lane), onto: onto.to_owned(), commit, tree })
}

pub fn reopened(lane: &str, class: Class, retries_max: u32) -> Event {
    let conflict = class == Class::Conflict;
    Event::LaneReopened(Box::new(LaneReopened {
        lane: lane_path(lane),
        step: format!("{lane}/work").parse().expect("a step"),
        class,
        error: "it went wrong".to_owned(),
        lines: vec!["here".to_owned()],
        onto: conflict.then(|| "newer base".to_owned()),
        head: conflict.then(|| "own".to_owned()),
        retries_max,
    }))
}

pub fn intended(lane: &str, from: &str, to: &str) -> Event {
    Event::MergeIntended(MergeIntended {
        lane: lane_path(lane),
        base_branch: "main".to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
    })
}

pub fn missed(lane: &str) -> Event {
    Event::MergeMissed(MergeMissed {
        lane: lane_path(lane),
        found: "newer base".to_owned(),
        by_runs: false,
    })
}

pub fn merged(lane: &str, by: MergedBy) -> Event {
    let queue = by == MergedBy::Queue;
    Event::LaneMerged(LaneMerged {
        lane: lane_path(lane),
        by,
        from: queue.then(|| "base".to_owned()),
        to: queue.then(|| "merged".to_owned()),
        note: String::new(),
    })
}

pub fn removed(lane: &str) -> Event {
    Event::LaneRemoved(LaneRemoved {
        lane: lane_path(lane),
        snapshot: Some(snapshot("end")),
        branch_head: Some("merged".to_owned()),
        branch_stays: false,
    })
}

pub fn proven(step: &str, tree: &str) -> Event {
    Event::StepProven(StepProven {
        artifacts: Vec::new(),
        step: step.parse().expect("a step"),
        tree: tree.to_owned(),
        definition: None,
    })
}

pub fn forked(step: &str, tree: &str) -> Event {
    let step: StepPath = step.parse().expect("a step");
    let (commit, snapshot) = (format!("commit of {tree}"), Some(snapshot(tree)));
    Event::LaneForked(Box::new(LaneForked { lane: step.lane(), step, commit, snapshot }))
}

pub fn joined(step: &str, tree: &str) -> Event {
    let step: StepPath = step.parse().expect("a step");
    let (definition, snapshot) = (None, Some(snapshot(tree)));
    Event::LaneJoined(Box::new(LaneJoined { lane: step.lane(), step, definition, snapshot }))
}

//! What the commands for going back ask of a driver: rollback to a stage, undo of the last act.

use piton_core::event::{Event, Revert, RewindIntended, RewindKind};
use piton_core::lane::Stage;
use piton_core::lane_state::{Act, LaneWork, Undoable};
use piton_core::{LanePath, RunState, Timestamp};
use piton_engine::world::{Rewind, RewindTarget};

/// The windows in which attempts of a run changed files of the root after an event.
fn windows(events: &[(u64, Timestamp, Event)], after: u64) -> Vec<(String, Option<String>)> {
    let mut open = Vec::new();
    let mut found = Vec::new();
    for (_, _, event) in events.iter().filter(|(seq, _, _)| *seq > after) {
        match event {
            Event::StepStarted(e) => {
                open.extend(e.before.as_ref().map(|b| (e.step.clone(), b.commit.clone())));
            }
            Event::StepFinished(e) => {
                let at = open.iter().position(|(step, _)| *step == e.step);
                let Some((_, before)) = at.map(|at| open.remove(at)) else { continue };
                found.push((before, e.after.as_ref().map(|a| a.commit.clone())));
            }
            _ => {}
        }
    }
    found.extend(open.into_iter().map(|(_, before)| (before, None)));
    found
}

fn intent(kind: RewindKind, to: String, lanes: Vec<LanePath>) -> RewindIntended {
    RewindIntended {
        kind,
        to,
        stage: None,
        after_event: 0,
        points: Vec::new(),
        lanes,
        workspaces: Vec::new(),
        reverts: Vec::new(),
        undoes: None,
        by: "ada".to_owned(),
    }
}

fn revert(lane: &LanePath, base_branch: &str, from: &str, to: &str) -> Revert {
    Revert {
        lane: lane.clone(),
        base_branch: base_branch.to_owned(),
        merged_from: from.to_owned(),
        merged_to: to.to_owned(),
        from: String::new(),
        to: String::new(),
    }
}

/// A rollback of lanes to a stage that all of them have passed.
pub fn rollback_to(
    state: &RunState,
    events: &[(u64, Timestamp, Event)],
    lanes: &[LanePath],
    to: Stage,
) -> Option<Rewind> {
    let mut intent = intent(RewindKind::Rollback, to.to_string(), lanes.to_vec());
    intent.stage = Some(to);
    let (mut targets, mut merges) = (Vec::new(), Vec::new());
    let work = |lane| state.lane(lane).and_then(|l| l.work.as_deref());
    let works: Vec<(&LanePath, &LaneWork)> =
        lanes.iter().map(|lane| Some((lane, work(lane)?))).collect::<Option<_>>()?;
    let reached = |w: &LaneWork| w.record(to).map(|r| r.event);
    intent.after_event = works.iter().filter_map(|(_, w)| reached(w)).min()?;
    for (lane, work) in works {
        let record = work.record(to)?;
        if !work.isolation.is_in_place() {
            intent.points.push((lane.clone(), record.event));
        }
        if let Some((from, to)) = work.merged().and_then(|m| m.from.as_ref().zip(m.to.as_ref())) {
            merges.push(revert(lane, &work.base_branch, from, to));
        }
        if work.isolation.is_in_place() {
            if targets.is_empty() {
                targets.push(RewindTarget {
                    target: record.snapshot.clone()?,
                    windows: windows(events, intent.after_event),
                    ..RewindTarget::default()
                });
            }
        } else if work.has_workspace() {
            // Before anything was created there were no files: those of the fresh worktree count.
            let files = record.snapshot.clone();
            let fresh = || work.record(Stage::AfterLaneStart)?.snapshot.clone();
            targets.push(RewindTarget {
                lane: Some(lane.clone()),
                dir: work.dir.clone(),
                target: files.or_else(fresh)?,
                branch: work.branch.clone(),
                head_to: record.head_sha.clone(),
                exact: true,
                ..RewindTarget::default()
            });
        }
    }
    merges.reverse();
    Some(Rewind { intent, targets, merges })
}

/// The undoing of the last act that is not undone.
pub fn undo_last(state: &RunState) -> Option<Rewind> {
    state.undo.iter().rev().find(|act| !act.undone).map(undo_of)
}

/// The undoing of an act.
pub fn undo_of(act: &Undoable) -> Rewind {
    let lanes = act.lanes.iter().map(|(lane, _)| lane.clone()).collect();
    let mut intent = intent(RewindKind::Undo, act.title(), lanes);
    intent.undoes = Some(act.id);
    let targets = act.workspaces.iter().map(|workspace| RewindTarget {
        lane: workspace.lane.clone(),
        dir: workspace.dir.clone(),
        target: workspace.present.commit.clone(),
        beside: Some(workspace.target.clone()),
        paths: workspace.paths.clone(),
        windows: Vec::new(),
        exact: true,
        branch: workspace.branch.clone(),
        // A removal says where the branch goes when it comes back.
        head_to: if act.act == Act::Removal { &workspace.head_to } else { &workspace.head_from }
            .clone(),
        ..RewindTarget::default()
    });
    let merges = act.reverts.iter().rev().map(|r| match act.act {
        Act::Merge => revert(&r.lane, &r.base_branch, &r.merged_from, &r.merged_to),
        _ => revert(&r.lane, &r.base_branch, &r.from, &r.to),
    });
    Rewind { intent, targets: targets.collect(), merges: merges.collect() }
}

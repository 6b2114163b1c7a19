//! The run report: where a run stands, for a person to read.
//!
//! Ours is everything above the mark at its end; what people write below it stays.

use std::collections::BTreeMap;

use piton_core::lane::{Stage, StageStatus, VALIDATION_LANE};
use piton_core::state::LaneState;
use piton_core::summary::{lane_status, run_status};
use piton_core::{LanePath, Plan, RunState, Status, Timestamp};

use super::super::report::{Failure, LaneLine, MergeLine, Report, render};
use super::super::{fix, phase};
use super::Place;
use super::records::{Hints, Words};

/// Stands between our part and people's.
const MARK: &str = "<!-- What you write below this line stays. -->\n";

/// The text of a report file, with what people wrote into the one that is there.
pub fn text(there: Option<&str>, report: &Report) -> String {
    let ours = render(report);
    let theirs = match there.map(|text| text.split_once(MARK).ok_or(text)) {
        None => String::new(),
        Some(Ok((_, theirs))) => theirs.to_owned(),
        // Without a mark it is a report of ours that somebody cut, or a file that is not ours.
        Some(Err(text)) if text.starts_with("# Run report: ") => String::new(),
        Some(Err(text)) => text.to_owned(),
    };
    format!("{ours}\n{MARK}{theirs}")
}

/// Whether people wrote something into a report.
pub fn has_notes(text: &str) -> bool {
    text.split_once(MARK).is_some_and(|(_, theirs)| !theirs.is_empty())
}

/// What lanes are called in a phase document, by their ids.
pub type Names = BTreeMap<String, String>;

/// What a phase document calls its lanes.
pub fn names(document: &str) -> Names {
    let lanes = phase::inspect("", document).0.lanes.into_iter();
    lanes.map(|lane| (lane.id, lane.name)).collect()
}

/// What there is to tell of a run; `names` are those of its lanes.
pub fn report(place: &Place, plan: &Plan, state: &RunState, names: &Names) -> Report {
    let run_id = state.run_id.as_ref().map(|id| id.0.clone()).unwrap_or_default();
    let status = run_status(state, state.driven);
    let works = || state.phases.iter().flat_map(|p| &p.lanes).filter_map(|l| l.work.as_ref());
    let base = works().map(|w| w.base_branch.as_str()).find(|branch| !branch.is_empty());
    let phase = match state.phases.as_slice() {
        [only] => only.id.clone(),
        all => all.iter().map(|p| p.id.as_str()).collect::<Vec<_>>().join(", "),
    };
    let mut report = Report {
        run_id: run_id.clone(),
        phase,
        title: state.title.clone(),
        status: status.as_str().to_owned(),
        base_branch: base.unwrap_or_default().to_owned(),
        started: Some(state.created_at),
        ended: Some(state.last_at).filter(|_| !state.driven),
        ..Report::default()
    };
    for (path, lane) in state.lanes() {
        if path.lane == VALIDATION_LANE {
            let record = |stage| lane.work.as_ref().and_then(|w| w.record(stage));
            let passed = record(Stage::AfterLaneTests)
                .and_then(|r| Some((r.test_command.clone()?, r.exit_code)));
            let failed = record(Stage::AfterLaneStart)
                .filter(|r| r.status == StageStatus::Failed)
                .and_then(|r| Some((r.last_command.clone()?, r.exit_code)));
            report.validation.extend(passed.or(failed));
        }
        report.lanes.push(lane_line(state, &path, lane, names));
        report.failures.extend(failures(&path, lane));
        let closed = state.satisfies(&path);
        let gates = plan.lane(&path).map(|l| l.rules.provides.clone()).unwrap_or_default();
        report.gates.extend(gates.into_iter().map(|gate| (gate, closed)));
    }
    for task in fix::blockers(state) {
        let context = vec![task.words()];
        report.failures.push(Failure { what: task.id, context });
    }
    report.merges = merges(state);
    if !matches!(status, Status::Complete | Status::Cancelled | Status::Archived) {
        let (root, plan_path) = (&place.root, &state.plan_path);
        let hints = Hints { root, plan_path, run_id: &run_id, lane: Words::default() };
        report.next = vec![hints.command("--resume"), hints.command("--rollback")];
    }
    report
}

fn lane_line(state: &RunState, path: &LanePath, lane: &LaneState, names: &Names) -> LaneLine {
    let work = lane.work.as_ref();
    let phase = state.phase(&path.phase);
    let status = phase.map_or(Status::Pending, |phase| lane_status(state, phase, lane));
    let tests = work.and_then(|w| w.record(Stage::AfterLaneTests));
    LaneLine {
        id: if state.phases.len() > 1 { path.to_string() } else { path.lane.clone() },
        name: names.get(&path.lane).cloned().unwrap_or_default(),
        stage: work.and_then(|w| w.stage()).map(|s| s.as_str().to_owned()).unwrap_or_default(),
        status: status.as_str().to_owned(),
        head_sha: work.and_then(|w| w.committed.as_ref()).map(|c| c.commit.clone()),
        tests: tests.and_then(|r| Some((r.test_command.clone()?, r.exit_code))),
        attempts: lane.steps.iter().map(|s| s.attempts).max().unwrap_or_default(),
    }
}

/// The merges in the order they happened.
fn merges(state: &RunState) -> Vec<MergeLine> {
    let mut all: Vec<(Timestamp, MergeLine)> = Vec::new();
    for (path, lane) in state.lanes() {
        let Some(work) = &lane.work else { continue };
        let Some(merged) = &work.merged else { continue };
        let (Some(from), Some(to)) = (&merged.from, &merged.to) else { continue };
        let at = work.record(Stage::PrePr).map(|r| r.at);
        let (from, to, lane) = (from.clone(), to.clone(), path.to_string());
        all.push((at.unwrap_or_default(), MergeLine { lane, from, to, at }));
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, line)| line).collect()
}

/// What stands in a lane's way.
fn failures(path: &LanePath, lane: &LaneState) -> Vec<Failure> {
    let mut all = Vec::new();
    if let Some((why, fix)) = lane.work.as_ref().and_then(|w| w.blocked.as_ref()) {
        let texts = [why, fix].into_iter().filter(|text| !text.is_empty());
        all.push(Failure { what: path.to_string(), context: texts.cloned().collect() });
    }
    let failed = lane.steps.iter().filter(|step| step.status() == Status::Failed);
    all.extend(failed.map(|step| Failure {
        what: format!("{path}/{}", step.id),
        context: step.failure_text().lines().map(str::to_owned).collect(),
    }));
    all
}

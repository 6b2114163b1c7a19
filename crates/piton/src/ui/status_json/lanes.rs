//! What `status --json` says of a lane beside its steps: workspace, stages, way to base.

use piton_core::lane::{Isolation, Missed};
use piton_core::lane_event::LaneMerged;
use piton_core::lane_state::{LaneWork, StageRecord};
use piton_core::state::LaneState;
use serde::Serialize;

use crate::ui::time::rfc3339;

/// The keys of a lane that has, or may get, a workspace.
#[derive(Debug, Default, Serialize)]
pub(super) struct Work<'a> {
    isolation: Isolation,
    branch: Option<&'a str>,
    worktree: Option<&'a str>,
    base_branch: Option<&'a str>,
    stage: Option<&'static str>,
    stages: Vec<StageLine<'a>>,
    merging: bool,
    merged: Option<Merged<'a>>,
    pull_request: Option<&'a str>,
    blocked: Option<Blocked<'a>>,
    rolled_back: Option<&'a str>,
    degraded: &'a [Missed],
}

#[derive(Debug, Serialize)]
struct StageLine<'a> {
    stage: &'static str,
    status: &'static str,
    timestamp: String,
    notes: &'a str,
    snapshot: Option<&'a str>,
    base_sha: Option<&'a str>,
    head_sha: Option<&'a str>,
    test_command: Option<&'a str>,
    exit_code: Option<i32>,
    retry_attempt: Option<u32>,
    max_retries: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Merged<'a> {
    by: piton_core::event::MergedBy,
    from: Option<&'a str>,
    to: Option<&'a str>,
    note: &'a str,
}

#[derive(Debug, Serialize)]
struct Blocked<'a> {
    why: &'a str,
    fix: &'a str,
}

/// What there is to say of a lane.
pub(super) fn work(lane: &LaneState) -> Work<'_> {
    let Some(work) = &lane.work else {
        return Work { isolation: lane.isolation, ..Work::default() };
    };
    let own = !work.isolation.is_in_place();
    Work {
        isolation: work.isolation,
        branch: some(&work.branch),
        worktree: some(&work.dir).filter(|_| own && work.ready && !work.removed),
        base_branch: some(&work.base_branch),
        stage: work.stage().map(piton_core::lane::Stage::as_str),
        stages: stages(work),
        merging: work.merging.is_some(),
        merged: work.merged.as_ref().map(merged),
        pull_request: work.pull_request.as_deref(),
        blocked: work.blocked.as_ref().map(|(why, fix)| Blocked { why, fix }),
        rolled_back: work.rolled_back.as_deref(),
        degraded: &work.degraded,
    }
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn stages(work: &LaneWork) -> Vec<StageLine<'_>> {
    fn line(r: &StageRecord) -> StageLine<'_> {
        StageLine {
            stage: r.stage.as_str(),
            status: r.status.as_str(),
            timestamp: rfc3339(r.at),
            notes: &r.notes,
            snapshot: r.snapshot.as_deref(),
            base_sha: r.base_sha.as_deref(),
            head_sha: r.head_sha.as_deref(),
            test_command: r.test_command.as_deref(),
            exit_code: r.exit_code,
            retry_attempt: r.retry_attempt,
            max_retries: r.max_retries,
        }
    }
    work.seen().map(line).collect()
}

fn merged(merged: &LaneMerged) -> Merged<'_> {
    Merged {
        by: merged.by,
        from: merged.from.as_deref(),
        to: merged.to.as_deref(),
        note: &merged.note,
    }
}

//! `status --json`: the documented object, as borrowed types that serialise without copies.
//!
//! `status` is a cold command on runs of a thousand steps, so nothing here builds maps of values.
//! Keys may be added; those that are there stay.

mod lanes;

use piton_core::event::{Class, FileHash, ProtocolRef};
use piton_core::evidence::Rerun;
use piton_core::id::LanePath;
use piton_core::lane::TaskOf;
use piton_core::state::{LaneState, Progress, RunState, StepState, Used};
use piton_core::summary::{
    current, lane_status, may_act, phase_status, run_status, standing, step_status,
};
use piton_core::{Status, StepPath, Timestamp};
use piton_engine::Loaded;
use piton_protocols::{Blocker, TABLE, blockers};
use serde::Serialize;

use self::lanes::Work;
use super::time::rfc3339;
use crate::commands::leftovers::Leftover;
use crate::commands::moved::Moved;

/// Where a run stands, for programs.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    run_id: &'a str,
    title: &'a str,
    plan: &'a str,
    protocol: Option<&'a ProtocolRef>,
    status: Status,
    current: Option<StepPath>,
    phases: Vec<Phase<'a>>,
    waiting_for: Vec<Waiting<'a>>,
    rerun: Vec<Again<'a>>,
    parked_until: Option<String>,
    driver: Option<Driver<'a>>,
    used: &'a Used,
    checkpoints: Vec<Checkpoint<'a>>,
    created_at: String,
    updated_at: String,
    seq: u64,
    epoch: u64,
    fix_tasks: Vec<Blocker>,
    /// Where a rollback, restore or undo goes that has no outcome yet.
    rewinding: Option<&'a str>,
    /// What snapshots of all runs take here; not asked where it is not to be said.
    snapshot_bytes: Option<u64>,
    /// Branches of merged lanes that base does not contain.
    left: &'a [Leftover],
    /// Lanes whose base moved since they began.
    moved: &'a [Moved],
}

#[derive(Debug, Serialize)]
struct Phase<'a> {
    id: &'a str,
    status: Status,
    lanes: Vec<Lane<'a>>,
}

#[derive(Debug, Serialize)]
struct Lane<'a> {
    id: &'a str,
    status: Status,
    steps: Vec<Step<'a>>,
    /// Which task of which lane it does.
    task_of: Option<&'a TaskOf>,
    #[serde(flatten)]
    work: Work<'a>,
}

#[derive(Debug, Serialize)]
struct Step<'a> {
    id: &'a str,
    status: Status,
    attempts: u32,
    exit_code: Option<i32>,
    artifacts: &'a [FileHash],
}

/// What the run waits for: a person, or a pull request that is not merged yet.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Waiting<'a> {
    Gate { gate: &'a str, name: &'a str, asked_at: String },
    Request { lane: LanePath, pull_request: &'a str },
}

#[derive(Debug, Serialize)]
struct Again<'a> {
    step: StepPath,
    reason: &'a str,
}

#[derive(Debug, Serialize)]
struct Driver<'a> {
    pid: u32,
    host: &'a str,
    alive: bool,
    stopped: bool,
}

#[derive(Debug, Serialize)]
struct Checkpoint<'a> {
    name: &'a str,
    message: &'a str,
    at: String,
    head: Option<&'a str>,
}

/// Describes a run; give it to [`super::data_json`].
///
/// `rerun` names finished steps whose evidence is gone; pending ones that had finished once are
/// added from the state.
pub fn status<'a>(loaded: &'a Loaded, driver_lives: bool, rerun: &'a [Rerun]) -> Document<'a> {
    let Loaded { row, state, seq } = loaded;
    let run = run_status(state, driver_lives);
    Document {
        run_id: &row.run_id,
        title: &state.title,
        plan: &state.plan_path,
        protocol: state.run_id.as_ref().map(|_| &state.protocol),
        status: run,
        current: current(state).filter(|_| state.ended.is_none()),
        phases: phases(state, run),
        waiting_for: waiting_for(state),
        rerun: again(state, rerun),
        parked_until: parked_until(state).map(rfc3339),
        driver: row.owner.as_ref().map(|lease| Driver {
            pid: lease.owner.pid,
            host: &lease.owner.host,
            alive: driver_lives,
            stopped: lease.owner.is_stopped(),
        }),
        used: &state.used,
        checkpoints: state
            .checkpoints
            .iter()
            .map(|c| Checkpoint {
                name: &c.name,
                message: &c.message,
                at: rfc3339(c.at),
                head: c.head.as_deref(),
            })
            .collect(),
        created_at: rfc3339(state.created_at),
        updated_at: rfc3339(state.last_at),
        seq: *seq,
        epoch: state.epoch,
        fix_tasks: blockers(TABLE, state),
        rewinding: state.rewinding.as_ref().map(|intent| intent.to.as_str()),
        snapshot_bytes: None,
        left: &[],
        moved: &[],
    }
}

impl<'a> Document<'a> {
    /// The same with what merged lanes left in the repository.
    #[must_use]
    pub fn with_left(mut self, left: &'a [Leftover]) -> Self {
        self.left = left;
        self
    }

    /// The same with lanes whose base moved.
    #[must_use]
    pub fn with_moved(mut self, moved: &'a [Moved]) -> Self {
        self.moved = moved;
        self
    }

    /// The same with what snapshots take.
    #[must_use]
    pub fn with_snapshot_bytes(mut self, bytes: Option<u64>) -> Self {
        self.snapshot_bytes = bytes;
        self
    }
}

fn phases(state: &RunState, run: Status) -> Vec<Phase<'_>> {
    state
        .phases
        .iter()
        .map(|phase| Phase {
            id: &phase.id,
            status: standing(
                phase_status(state, phase),
                run,
                phase.lanes.iter().any(LaneState::is_running),
                phase.lanes.iter().any(may_act),
            ),
            lanes: phase
                .lanes
                .iter()
                .map(|lane| Lane {
                    id: &lane.id,
                    status: standing(
                        lane_status(state, phase, lane),
                        run,
                        lane.is_running(),
                        may_act(lane),
                    ),
                    steps: lane
                        .steps
                        .iter()
                        .map(|s| Step {
                            id: &s.id,
                            status: step_status(state, phase, lane, s),
                            attempts: s.attempts,
                            exit_code: s.exit_code,
                            artifacts: &s.artifacts,
                        })
                        .collect(),
                    task_of: lane.task.as_ref(),
                    work: lanes::work(lane),
                })
                .collect(),
        })
        .collect()
}

fn again<'a>(state: &'a RunState, rerun: &'a [Rerun]) -> Vec<Again<'a>> {
    let mut all: Vec<Again<'a>> =
        rerun.iter().map(|r| Again { step: r.step.clone(), reason: &r.reason }).collect();
    for phase in &state.phases {
        for lane in &phase.lanes {
            for step in &lane.steps {
                if let Some(reason) = pending_rerun(step) {
                    let step = StepPath::new(&phase.id, &lane.id, &step.id);
                    all.push(Again { step, reason });
                }
            }
        }
    }
    all
}

fn waiting_for(state: &RunState) -> Vec<Waiting<'_>> {
    if state.ended.is_some() {
        return Vec::new();
    }
    let gates = state.open_gates().map(|(gate, g)| Waiting::Gate {
        gate: &gate.0,
        name: &g.name,
        asked_at: rfc3339(g.asked_at),
    });
    let lanes = state.phases.iter().flat_map(|phase| phase.lanes.iter().map(move |l| (phase, l)));
    let requests = lanes.filter(|(_, lane)| !lane.is_over()).filter_map(|(phase, lane)| {
        let pull_request = lane.work.as_ref()?.pull_request.as_deref()?;
        let lane = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
        Some(Waiting::Request { lane, pull_request })
    });
    gates.chain(requests).collect()
}

/// Why a step that had finished is to run again.
pub fn pending_rerun(step: &StepState) -> Option<&str> {
    if step.progress == Progress::Pending { step.rerun.as_deref() } else { None }
}

/// When the first parked step goes on; none does in a run that was ended.
pub fn parked_until(state: &RunState) -> Option<Timestamp> {
    if state.ended.is_some() {
        return None;
    }
    let steps = state.phases.iter().flat_map(|p| &p.lanes).flat_map(|l| &l.steps);
    steps
        .filter_map(|s| match s.progress {
            Progress::Waiting { until, class: Class::RateLimit, .. } => Some(until),
            _ => None,
        })
        .min()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use piton_core::lane_state::LaneWork;
    use serde_json::json;

    use super::super::fixture::loaded;
    use super::*;

    #[test]
    fn the_documented_keys_are_there() {
        let mut loaded = loaded();
        loaded.state.phases[0].lanes[1].steps[0].rerun = Some("asked for".to_owned());
        let rerun =
            [Rerun { step: StepPath::new("P1", "A", "fetch"), reason: "artifact x".to_owned() }];
        let value = serde_json::to_value(status(&loaded, true, &rerun)).unwrap();
        assert_eq!(value["run_id"], "r-1");
        assert_eq!(value["plan"], "plan.toml");
        assert_eq!(value["status"], "running");
        assert_eq!(value["current"], "P1/A/build");
        assert_eq!(
            value["phases"][0]["lanes"][0]["steps"][0],
            json!({"id": "fetch", "status": "complete", "attempts": 1, "exit_code": 0,
                "artifacts": [{"path": "a.txt", "sha256": "aa"}]})
        );
        assert_eq!(
            value["waiting_for"],
            json!([{"gate": "P2", "name": "Spec approval", "asked_at": "1970-01-01T00:00:02Z"}])
        );
        assert_eq!(
            value["rerun"],
            json!([{"step": "P1/A/fetch", "reason": "artifact x"},
                   {"step": "P1/B/work", "reason": "asked for"}])
        );
        assert_eq!(
            value["driver"],
            json!({"pid": 42, "host": "box", "alive": true, "stopped": false})
        );
    }

    /// Lost, a run that waits for a pull request would name nothing that it waits for.
    #[test]
    fn a_pull_request_is_waited_for() {
        let mut loaded = loaded();
        let url = "https://forge/1".to_owned();
        let work = LaneWork { pull_request: Some(url), ..LaneWork::default() };
        loaded.state.phases[0].lanes[1].work = Some(Box::new(work));
        let value = serde_json::to_value(status(&loaded, true, &[])).unwrap();
        let wanted = json!({"lane": "P1/B", "pull_request": "https://forge/1"});
        assert_eq!(value["waiting_for"][1], wanted);
    }

    /// Lost: a program would wait for a run that was ended.
    #[test]
    fn a_run_that_was_ended_waits_for_nothing() {
        let mut loaded = loaded();
        let (since, until) = (Timestamp(5_000), Timestamp(9_000_000));
        let parked = Progress::Waiting { since, until, class: Class::RateLimit };
        loaded.state.phases[0].lanes[0].steps[1].progress = parked;
        let value = serde_json::to_value(status(&loaded, false, &[])).unwrap();
        assert_eq!(value["parked_until"], "1970-01-01T02:30:00Z");
        loaded.state.ended = Some(Status::Cancelled);
        let value = serde_json::to_value(status(&loaded, false, &[])).unwrap();
        for key in ["parked_until", "current"] {
            assert_eq!(value[key], serde_json::Value::Null, "{key}");
        }
        assert_eq!(value["waiting_for"], json!([]));
        let lane = &value["phases"][0]["lanes"][0];
        for part in [&value["phases"][0], lane, &lane["steps"][1]] {
            assert_eq!(part["status"], "cancelled", "{part}");
        }
    }

    #[test]
    fn a_dead_driver_means_interrupted() {
        let value = serde_json::to_value(status(&loaded(), false, &[])).unwrap();
        assert_eq!(value["status"], "interrupted");
        assert_eq!(value["parked_until"], serde_json::Value::Null);
    }
}

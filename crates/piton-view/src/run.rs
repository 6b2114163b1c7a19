//! What a run looks like: the one model that status, show, resume, summary, the live tree and JSON
//! are rendered from.
//!
//! Built once, from the state of a run and what was seen beside it. It borrows, for `status` is a
//! cold command on runs of a thousand steps; what only text needs is not part of its JSON. The keys
//! of that are documented: some may be added, those that are there stay.

use std::collections::HashMap;

use piton_core::agent_state::AgentState;
use piton_core::event::{Class, FileHash, ProtocolRef, RewindKind};
use piton_core::evidence::Rerun;
use piton_core::lane::TaskOf;
use piton_core::refusal::Refusal;
use piton_core::session_state::SessionState;
use piton_core::state::{GateState, LaneState, PhaseState, Progress, RunState, StepState, Used};
use piton_core::summary::{
    current, lane_status, may_act, phase_status, run_status, standing, step_status,
};
use piton_core::{GateRef, LanePath, Millis, Status, StepPath, Timestamp};
use piton_protocols::{Blocker, TABLE, blockers};
use serde::Serialize;

use crate::lane::{Way, Work, way, work};
use crate::leftover::{Leftover, Moved};
use crate::place::{At, Place};
use crate::replan::{Replan, replans};
use crate::shape::shapes;
use crate::text::sanitize;

shapes! {
    /// The driver of a run; it was last `heard_at` then.
    #[derive(Default)]
    Driver {
        pid: u32, host: String, alive: bool, stopped: bool, #[serde(skip)] heard_at: Timestamp,
    }

    /// What is known of a run beside its state.
    Seen<'a> {
        run_id: &'a str, seq: u64, driver: Option<Driver>,
        /// Finished steps whose evidence is gone.
        #[serde(skip)]
        rerun: &'a [Rerun],
        left: &'a [Leftover], moved: &'a [Moved],
        now: Timestamp, #[serde(skip)] place: &'a Place,
    }

    /// A run.
    RunView<'a> {
        run_id: &'a str, title: &'a str, plan: &'a str,
        protocol: Option<&'a ProtocolRef>, status: Status,
        current: Option<StepPath>, phases: Vec<Phase<'a>>, waiting_for: Vec<Waiting<'a>>,
        rerun: Vec<Again<'a>>, parked_until: Option<At>, driver: Option<Driver>,
        used: &'a Used, checkpoints: Vec<Checkpoint<'a>>, created_at: At, updated_at: At,
        seq: u64, epoch: u64, fix_tasks: Vec<Blocker>, rewinding: Option<&'a str>,
        left: &'a [Leftover], moved: &'a [Moved], replans: Vec<Replan<'a>>,
        /// The session that it is of.
        #[serde(skip_serializing_if = "Option::is_none")] session: Option<&'a SessionState>,
        #[serde(skip)] state: &'a RunState, #[serde(skip)] now: Timestamp,
        #[serde(skip)] place: &'a Place,
    }

    /// A phase of a run.
    Phase<'a> {
        id: &'a str, status: Status, lanes: Vec<Lane<'a>>, #[serde(skip)] driven_ms: Millis,
    }

    /// A lane of a phase.
    Lane<'a> {
        id: &'a str, status: Status, steps: Vec<Step<'a>>,
        /// Which task of which lane it does.
        task_of: Option<&'a TaskOf>,
        #[serde(flatten)] work: Work<'a>, #[serde(skip)] path: LanePath,
        /// How far its work is on its way to base; nothing while its steps are at work, or in place.
        #[serde(skip)] way: Option<Way<'a>>,
        #[serde(skip)] has_gate: bool, #[serde(skip)] is_over: bool,
        /// The step where it stands.
        #[serde(skip)] current: Option<usize>,
    }

    /// A step of a lane.
    Step<'a> {
        id: &'a str, status: Status, attempts: u32, exit_code: Option<i32>,
        artifacts: &'a [FileHash],
        /// The agent of its last attempt, where that reports on itself.
        #[serde(skip_serializing_if = "Option::is_none")] agent: Option<StepAgent<'a>>,
        /// Why it runs again although it had finished.
        #[serde(skip)] rerun: Option<&'a str>,
        #[serde(skip)] state: &'a StepState,
    }

    /// The agent of a step's last attempt; its cost is a guess unless it is known.
    StepAgent<'a> {
        name: &'a str, program: &'a str, session: Option<&'a str>, tokens: u64, money_micros: u64,
        is_cost_known: bool, context: Option<u64>, window: u64, doing: &'a str, handoffs: u32,
    }

    /// A step that runs again, and why.
    Again<'a> { step: StepPath, reason: &'a str }

    /// A checkpoint that somebody asked for.
    Checkpoint<'a> {
        name: &'a str, message: &'a str,
        /// Who; only the events tell.
        #[serde(skip_serializing_if = "Option::is_none")] by: Option<&'a str>,
        at: At, head: Option<&'a str>,
    }
}

impl<'a> Seen<'a> {
    /// What a driver itself knows: nothing beside the state.
    pub fn by_driver(state: &'a RunState, now: Timestamp, place: &'a Place) -> Self {
        let run_id = run_id(state);
        let driver = state.driven.then(|| Driver { alive: true, ..Driver::default() });
        let (rerun, left, moved) = (&[], &[], &[]);
        Self { run_id, seq: 0, driver, rerun, left, moved, now, place }
    }
}

impl std::fmt::Display for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

/// What a run waits for: a person, or a pull request that is not merged yet.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names say it: they are the keys of its JSON")]
pub enum Waiting<'a> {
    Gate { gate: &'a str, name: &'a str, asked_at: At },
    Request { lane: LanePath, pull_request: &'a str },
}

impl<'a> RunView<'a> {
    /// What a run looks like.
    pub fn new(state: &'a RunState, seen: Seen<'a>) -> Self {
        let Seen { run_id, seq, driver, rerun, left, moved, now, place } = seen;
        let status = run_status(state, driver.as_ref().is_some_and(|d| d.alive));
        let again: HashMap<_, _> = rerun.iter().map(|r| (&r.step, r.reason.as_str())).collect();
        let phases =
            state.phases.iter().map(|p| phase(state, p, (status, place), &again)).collect();
        let mut view = Self {
            run_id,
            title: &state.title,
            plan: &state.plan_path,
            protocol: state.run_id.as_ref().map(|_| &state.protocol),
            status,
            current: current(state).filter(|_| state.ended.is_none()),
            phases,
            waiting_for: Vec::new(),
            rerun: rerun
                .iter()
                .map(|r| Again { step: r.step.clone(), reason: &r.reason })
                .collect(),
            parked_until: parked_until(state),
            driver,
            used: &state.used,
            checkpoints: state.checkpoints.iter().map(checkpoint).collect(),
            created_at: At(state.created_at),
            updated_at: At(state.last_at),
            seq,
            epoch: state.epoch,
            fix_tasks: blockers(TABLE, state),
            rewinding: state.rewinding.as_ref().map(|intent| intent.to.as_str()),
            left,
            moved,
            replans: replans(state),
            session: state.session.as_deref(),
            state,
            now,
            place,
        };
        view.waiting_for = view.waits();
        let pending = view.steps().filter(|(.., step)| step.state.progress == Progress::Pending);
        let reset = pending.filter_map(|(lane, step)| Some((lane, step, step.rerun?)));
        let reset: Vec<Again<'a>> =
            reset.map(|(lane, step, reason)| Again { step: lane.step(step.id), reason }).collect();
        view.rerun.extend(reset);
        view
    }

    /// What a run looks like to its driver.
    pub fn by_driver(state: &'a RunState, now: Timestamp, place: &'a Place) -> Self {
        Self::new(state, Seen::by_driver(state, now, place))
    }

    /// All lanes, in order.
    pub fn lanes(&self) -> impl Iterator<Item = &Lane<'a>> {
        self.phases.iter().flat_map(|phase| &phase.lanes)
    }

    /// All steps, in order, with their lanes.
    pub fn steps(&self) -> impl Iterator<Item = (&Lane<'a>, &Step<'a>)> {
        self.lanes().flat_map(|lane| lane.steps.iter().map(move |step| (lane, step)))
    }

    /// Steps that failed for good.
    pub fn failed(&self) -> impl Iterator<Item = (StepPath, &'a StepState)> {
        let failed = self.steps().filter(|(_, step)| step.state.progress == Progress::Failed);
        failed.map(|(lane, step)| (lane.step(step.id), step.state))
    }

    /// Lanes that need you.
    pub fn blocked(&self) -> impl Iterator<Item = &Lane<'a>> {
        self.lanes().filter(|lane| lane.work.blocked.is_some())
    }

    /// The same, those that the same refusal blocks together.
    pub fn blocks(&self) -> Vec<(Vec<&LanePath>, &'a Refusal)> {
        let mut groups: Vec<(Vec<&LanePath>, &Refusal)> = Vec::new();
        for lane in self.lanes() {
            let Some(blocked) = &lane.work.blocked else { continue };
            match groups.iter_mut().find(|(_, refusal)| *refusal == blocked.refusal) {
                Some((lanes, _)) => lanes.push(&lane.path),
                None => groups.push((vec![&lane.path], blocked.refusal)),
            }
        }
        groups
    }

    /// How many steps are over, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        progress(self.lanes().flat_map(|lane| &lane.steps))
    }

    /// Time of a driver that lives which no event has accounted for yet.
    pub fn since_last(&self) -> Millis {
        let driven = self.state.driven && self.driver_lives();
        if driven { self.now.since(self.state.last_at) } else { Millis(0) }
    }

    /// Whether a process drives it now.
    pub fn driver_lives(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.alive)
    }

    /// How many steps were left out.
    pub fn skipped(&self) -> usize {
        let skipped = |s: &Step<'_>| matches!(s.state.progress, Progress::Skipped { .. });
        self.steps().filter(|(_, step)| skipped(step)).count()
    }

    /// The gate of a place, if it was asked about.
    pub fn gate(&self, place: &str) -> Option<&'a GateState> {
        self.state.gates.get(&GateRef(place.to_owned()))
    }

    /// What is said of a rollback, restore or undo that a kill left half done.
    pub fn cut_short(&self) -> Option<String> {
        let intent = self.state.rewinding.as_ref()?;
        let what = match intent.kind {
            RewindKind::Restore => "a restore of",
            RewindKind::Undo => "an undo of the",
            RewindKind::Rollback => "a rollback to",
        };
        let resume = self.place.piton(format_args!("resume {}", self.run_id));
        Some(format!("{what} {} was cut short: `{resume}` finishes it", sanitize(&intent.to)))
    }

    fn waits(&self) -> Vec<Waiting<'a>> {
        if self.state.ended.is_some() {
            return Vec::new();
        }
        let gates = self.state.open_decisions().map(|(gate, g)| Waiting::Gate {
            gate: &gate.0,
            name: &g.name,
            asked_at: At(g.asked_at),
        });
        let open = self.lanes().filter(|lane| !lane.is_over);
        let requests = open.filter_map(|lane| {
            let pull_request = lane.work.pull_request?;
            Some(Waiting::Request { lane: lane.path.clone(), pull_request })
        });
        gates.chain(requests).collect()
    }
}

impl<'a> Phase<'a> {
    /// How many of its steps are over, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        progress(self.lanes.iter().flat_map(|lane| &lane.steps))
    }

    /// The lanes that do the tasks of a step.
    pub fn tasks_at(&self, lane: &str, step: &str) -> impl Iterator<Item = &Lane<'a>> {
        self.lanes
            .iter()
            .filter(move |l| l.task_of.is_some_and(|t| t.lane == lane && t.step == step))
    }
}

impl Lane<'_> {
    /// The path of one of its steps.
    pub fn step(&self, id: &str) -> StepPath {
        StepPath::new(&self.path.phase, &self.path.lane, id)
    }
}

fn progress<'s, 'a: 's>(steps: impl Iterator<Item = &'s Step<'a>>) -> (usize, usize) {
    steps.fold((0, 0), |(over, all), s| (over + usize::from(s.state.progress.is_over()), all + 1))
}

/// Reasons of finished steps that run again.
type Reasons<'a> = HashMap<&'a StepPath, &'a str>;

fn phase<'a>(
    state: &'a RunState,
    phase: &'a PhaseState,
    (run, place): (Status, &Place),
    again: &Reasons<'a>,
) -> Phase<'a> {
    let runs = phase.lanes.iter().any(LaneState::is_running);
    let acts = phase.lanes.iter().any(may_act);
    Phase {
        id: &phase.id,
        status: standing(phase_status(state, phase), run, runs, acts),
        lanes: phase.lanes.iter().map(|l| lane(state, phase, l, (run, place), again)).collect(),
        driven_ms: phase.driven_ms,
    }
}

fn lane<'a>(
    state: &'a RunState,
    phase: &'a PhaseState,
    lane: &'a LaneState,
    (run, place): (Status, &Place),
    again: &Reasons<'a>,
) -> Lane<'a> {
    let status = lane_status(state, phase, lane);
    let path = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
    let reason = |s: &'a StepState| {
        let pending = s.rerun.as_deref().filter(|_| s.progress == Progress::Pending);
        // No path is made where there is nothing to be found.
        let gone = || again.get(&StepPath::new(&phase.id, &lane.id, &s.id)).copied();
        pending.or_else(|| if again.is_empty() { None } else { gone() })
    };
    let step = |s: &'a StepState| Step {
        id: &s.id,
        status: step_status(state, phase, lane, s),
        attempts: s.attempts,
        exit_code: s.exit_code,
        artifacts: &s.artifacts,
        agent: s.agent.as_deref().map(agent),
        rerun: reason(s),
        state: s,
    };
    Lane {
        id: &lane.id,
        status: standing(status, run, lane.is_running(), may_act(lane)),
        steps: lane.steps.iter().map(step).collect(),
        task_of: lane.task.as_ref(),
        work: work(lane, &state.root, place),
        path,
        way: way(lane),
        has_gate: lane.gate.is_some(),
        is_over: lane.is_over(),
        current: lane.current(),
    }
}

/// The name of a run in commands; before its first event there is none.
pub fn run_id(state: &RunState) -> &str {
    state.run_id.as_ref().map_or("RUN", |id| id.0.as_str())
}

fn checkpoint(c: &piton_core::state::Checkpoint) -> Checkpoint<'_> {
    let (at, head) = (At(c.at), c.head.as_deref());
    Checkpoint { name: &c.name, message: &c.message, by: None, at, head }
}

fn agent(agent: &AgentState) -> StepAgent<'_> {
    StepAgent {
        name: &agent.name,
        program: &agent.program,
        session: agent.session.as_deref(),
        tokens: agent.tokens.total(),
        money_micros: agent.money_micros,
        is_cost_known: agent.is_cost_known,
        context: agent.context,
        window: agent.window,
        doing: &agent.doing,
        handoffs: agent.handoffs,
    }
}

/// When the first parked step goes on; none does in a run that was ended.
fn parked_until(state: &RunState) -> Option<At> {
    if state.ended.is_some() {
        return None;
    }
    let steps = state.phases.iter().flat_map(|p| &p.lanes).flat_map(|l| &l.steps);
    let parked = steps.filter_map(|s| match s.progress {
        Progress::Waiting { until, class: Class::RateLimit, .. } => Some(until),
        _ => None,
    });
    parked.min().map(At)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use piton_core::lane_state::LaneWork;
    use serde_json::json;

    use piton_core::evidence::Stale;

    use super::*;
    use crate::fixture::{seen, state};

    fn json(state: &RunState, lives: bool, rerun: &[Rerun]) -> serde_json::Value {
        let place = Place::default();
        let view = RunView::new(state, Seen { rerun, ..seen(&place, lives) });
        serde_json::to_value(view).unwrap()
    }

    #[test]
    fn the_documented_keys_are_there() {
        let mut state = state();
        state.phases[0].lanes[1].steps[0].rerun = Some("asked for".to_owned());
        let rerun = [Rerun {
            step: StepPath::new("P1", "A", "fetch"),
            stale: Stale::ArtifactChanged,
            reason: "artifact x".to_owned(),
        }];
        let value = json(&state, true, &rerun);
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
        let mut state = state();
        let url = "https://forge/1".to_owned();
        let work = LaneWork { pull_request: Some(url), ..LaneWork::default() };
        state.phases[0].lanes[1].work = Some(Box::new(work));
        let value = json(&state, true, &[]);
        let wanted = json!({"lane": "P1/B", "pull_request": "https://forge/1"});
        assert_eq!(value["waiting_for"][1], wanted);
    }

    /// Lost: a program would wait for a run that was ended.
    #[test]
    fn a_run_that_was_ended_waits_for_nothing() {
        let mut state = state();
        let (since, until) = (Timestamp(5_000), Timestamp(9_000_000));
        let parked = Progress::Waiting { since, until, class: Class::RateLimit };
        state.phases[0].lanes[0].steps[1].progress = parked;
        let value = json(&state, false, &[]);
        assert_eq!(value["parked_until"], "1970-01-01T02:30:00Z");
        state.ended = Some(Status::Cancelled);
        let value = json(&state, false, &[]);
        for key in ["parked_until", "current"] {
            assert_eq!(value[key], serde_json::Value::Null, "{key}");
        }
        assert_eq!(value["waiting_for"], json!([]));
        let lane = &value["phases"][0]["lanes"][0];
        for part in [&value["phases"][0], lane, &lane["steps"][1]] {
            assert_eq!(part["status"], "cancelled", "{part}");
        }
    }
}

//! Runs that are told event by event, for the tests of reports.

use piton_core::event::{
    Class, DriverAttached, DriverLeft, Event, Facts, FileHash, GateAsked, GateDecided, LogRanges,
    NewPlan, Next, Outcome, PhaseChange, PhaseChanged, ProtocolRef, ReplanBegun, ReplanEnded,
    ReplanOutcome, RunCreated, Shape, ShapeLane, ShapePhase, ShapeStep, StepFinished, StepStarted,
    Trigger, Verdict,
};
use piton_core::hash::Sha;
use piton_core::lane::{Isolation, Role};
use piton_core::{GateRef, Millis, RunId, RunState, StepPath, Timestamp, apply};

use super::{Report, Trail};
use crate::place::Place;
use crate::run::{Driver, RunView, Seen};

/// A minute.
pub(super) const MINUTE: u64 = 60_000;
/// An hour.
pub(super) const HOUR: u64 = 60 * MINUTE;

/// A run that is being told.
#[derive(Default)]
pub(super) struct Story {
    pub now: Timestamp,
    state: RunState,
    trail: Trail,
    shape: Shape,
    epoch: u64,
    place: Place,
    replans: u32,
}

/// The shape of a phase with lanes, each with steps.
pub(super) fn phase(id: &str, lanes: &[(&str, &[&str])]) -> ShapePhase {
    let step = |id: &&str| ShapeStep { id: (*id).into(), role: Role::Work, escalation: None };
    let lane = |(id, steps): &(&str, &[&str])| ShapeLane {
        id: (*id).into(),
        needs: Vec::new(),
        gate: None,
        steps: steps.iter().map(step).collect(),
        isolation: Isolation::default(),
        commits: false,
        alone: false,
        task: None,
    };
    let (needs, after) = (Vec::new(), Vec::new());
    ShapePhase { id: id.into(), needs, after, gate: None, lanes: lanes.iter().map(lane).collect() }
}

impl Story {
    /// A run begins on the second of January 2026 at eight.
    pub fn new(title: &str, phases: Vec<ShapePhase>) -> Self {
        let now = Timestamp(1_767_340_800_000);
        let shape = Shape { phases };
        let mut story = Self { now, shape: shape.clone(), ..Self::default() };
        story.tell(&Event::RunCreated(Box::new(RunCreated {
            run_id: RunId("r-1".into()),
            protocol: ProtocolRef { id: "plain".into(), version: 1, reader: "plain".into() },
            plan_path: "plan.toml".into(),
            plan_hash: Sha("p".into()),
            title: title.into(),
            spec: None,
            root: "/srv/project".into(),
            linked: false,
            mark: "m".into(),
            head: None,
            previous: None,
            shape,
        })));
        story
    }

    pub fn tell(&mut self, event: &Event) {
        let applied = apply(&mut self.state, self.now, event);
        assert_eq!(applied, Ok(()), "{event:?}");
        self.trail.take(self.now, event);
    }

    pub fn pass(&mut self, ms: u64) {
        self.now = self.now.after(Millis(ms));
    }

    pub fn attach(&mut self) {
        self.attach_after(None);
    }

    /// A driver attaches; the one before fell then.
    pub fn attach_after(&mut self, driven_until: Option<Timestamp>) {
        self.epoch += 1;
        self.tell(&Event::DriverAttached(DriverAttached {
            epoch: self.epoch,
            pid: 42,
            host: "box".into(),
            head: None,
            takeover: false,
            base: None,
            retries: None,
            seed_dirty: false,
            keep_going: false,
            driven_until,
        }));
    }

    pub fn leave(&mut self, verdict: Verdict) {
        let (head, signal, driven_until) = (None, None, None);
        self.tell(&Event::DriverLeft(DriverLeft { verdict, head, signal, driven_until }));
    }

    pub fn start(&mut self, step: &str) {
        let path = path(step);
        let attempt = self.state.step(&path).map_or(1, |s| s.attempts + 1);
        self.tell(&Event::StepStarted(StepStarted::new(path, attempt, Sha("d".into()))));
    }

    pub fn end(&mut self, step: &str, outcome: Outcome, took: u64) {
        self.finish(step, outcome, took, |_| {});
    }

    pub fn finish(
        &mut self,
        step: &str,
        outcome: Outcome,
        took: u64,
        more: impl FnOnce(&mut StepFinished),
    ) {
        let path = path(step);
        let attempt = self.state.step(&path).map_or(1, |s| s.attempts);
        let mut event = StepFinished::new(path, attempt, outcome);
        event.duration_ms = Millis(took);
        more(&mut event);
        self.tell(&Event::StepFinished(Box::new(event)));
    }

    /// A step runs and succeeds.
    pub fn work(&mut self, step: &str, took: u64) {
        self.start(step);
        self.pass(took);
        let artifact = FileHash {
            path: format!("out/{}.md", step.replace('/', "-")),
            sha256: Sha(format!("{took:064x}")),
        };
        self.finish(step, Outcome::Succeeded, took, |event| {
            event.facts = Facts { tokens: took / 100, money_micros: took / 4, notes: Vec::new() };
            event.artifacts = vec![artifact];
        });
    }

    /// A step runs and fails.
    pub fn fail(&mut self, step: &str, took: u64, next: Next) {
        self.start(step);
        self.pass(took);
        let lines = ["test login ... ok", "test <b>logout</b> ... FAILED", "1 passed; 1 failed"];
        let outcome = Outcome::Failed {
            class: Class::Test,
            error: "the test ended with exit code 1".into(),
            lines: lines.map(str::to_owned).to_vec(),
            budget: None,
            signature: "s".into(),
            next,
        };
        self.end(step, outcome, took);
    }

    /// A phase is planned again; its steps stay.
    pub fn replan(&mut self, phase: &str, took: u64) {
        self.replans += 1;
        let attempt = self.replans;
        self.tell(&Event::ReplanBegun(Box::new(ReplanBegun {
            phase: phase.into(),
            trigger: Trigger::TestFailures,
            reason: format!("{phase}/main/work: the test ended with exit code 1"),
            step: None,
            signature: String::new(),
            forced_by: String::new(),
            number: 1,
            attempt,
            plan: Sha("structure-1".into()),
            secrets: Vec::new(),
        })));
        self.pass(took);
        let words = vec!["work has another prompt".to_owned()];
        let changes = vec![PhaseChange { phase: phase.into(), what: PhaseChanged::Changed, words }];
        self.tell(&Event::ReplanEnded(Box::new(ReplanEnded {
            phase: phase.into(),
            attempt,
            outcome: ReplanOutcome::Replanned(Box::new(NewPlan {
                from: Sha("p".into()),
                to: Sha("q".into()),
                title: self.state.title.clone(),
                shape: self.shape.clone(),
                structure: Sha("structure-2".into()),
                changes,
            })),
            exit_code: Some(0),
            duration_ms: Millis(took),
            logs: LogRanges::default(),
        })));
    }

    /// The next replan drops a phase.
    pub fn shape_without(&mut self, phase: &str) {
        self.shape.phases.retain(|one| one.id != phase);
    }

    pub fn ask(&mut self, gate: &str, name: &str) {
        let (gate, name) = (GateRef(gate.into()), name.into());
        self.tell(&Event::GateAsked(GateAsked { gate, name }));
    }

    pub fn approve(&mut self, gate: &str, by: &str, message: &str) {
        self.tell(&Event::GateDecided(GateDecided {
            gate: GateRef(gate.into()),
            approved: true,
            by: by.into(),
            at: None,
            message: message.into(),
            plan_hash: Sha("p".into()),
            artifacts: Vec::new(),
        }));
    }

    /// The report as it would be made now.
    pub fn report<T>(self, look: impl FnOnce(&Report<'_>) -> T) -> T {
        let driver = self.state.driven.then(|| Driver { alive: true, ..Driver::default() });
        let (rerun, left, moved, now) = (&[], &[], &[], self.now);
        let seen =
            Seen { run_id: "r-1", seq: 9, driver, rerun, left, moved, now, place: &self.place };
        let view = RunView::new(&self.state, seen);
        look(&Report::new(&view, self.trail))
    }
}

fn path(step: &str) -> StepPath {
    StepPath::try_from(step.to_owned()).unwrap_or_else(|_| panic!("{step}"))
}

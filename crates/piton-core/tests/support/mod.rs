//! A run in the making, for tests of the pure core: events in, state out.
#![expect(dead_code, reason = "each test file uses its own part of this one")]

use piton_core::event::{
    Class, DriverAttached, Event, FileHash, Next, Outcome, ProtocolRef, RunCreated, Shape,
    StepFinished, StepStarted,
};
use piton_core::hash::Sha;
use piton_core::{Illegal, Millis, Plan, RunId, RunState, StepPath, Timestamp, apply};

/// A plan with the state of its run.
pub struct Run {
    pub plan: Plan,
    pub state: RunState,
    pub at: Timestamp,
    pub events: Vec<(Timestamp, Event)>,
}

pub fn path(text: &str) -> StepPath {
    text.parse().expect("tests name steps as PHASE/LANE/STEP")
}

pub fn file(path: &str, text: &str) -> FileHash {
    FileHash { path: path.to_owned(), sha256: Sha::of(text.as_bytes()) }
}

pub fn created(plan: &Plan) -> Event {
    Event::RunCreated(Box::new(RunCreated {
        run_id: RunId("run-1".to_owned()),
        protocol: ProtocolRef::default(),
        plan_path: "plan.toml".to_owned(),
        plan_hash: plan.hash(),
        title: plan.title.clone(),
        spec: None,
        root: "/project".to_owned(),
        linked: false,
        mark: "mark".to_owned(),
        head: None,
        previous: None,
        shape: Shape::from(plan),
    }))
}

pub fn attached(epoch: u64) -> Event {
    Event::DriverAttached(DriverAttached {
        epoch,
        pid: 1,
        host: "host".to_owned(),
        head: None,
        takeover: false,
        base: None,
        retries: None,
        seed_dirty: false,
        keep_going: false,
        driven_until: None,
    })
}

pub fn started(plan: &Plan, step: &str, attempt: u32, inputs: Vec<FileHash>) -> Event {
    let step = path(step);
    let definition =
        plan.step(&step).map_or_else(|| Sha::of(b""), piton_core::plan::Step::definition);
    Event::StepStarted(StepStarted { inputs, ..StepStarted::new(step, attempt, definition) })
}

pub fn finished(step: &str, attempt: u32, outcome: Outcome, artifacts: Vec<FileHash>) -> Event {
    Event::StepFinished(Box::new(StepFinished {
        exit_code: Some(0),
        duration_ms: Millis(10),
        artifacts,
        ..StepFinished::new(path(step), attempt, outcome)
    }))
}

pub fn failed(class: Class, next: Next) -> Outcome {
    let (error, lines) = ("exit code 1".to_owned(), vec!["oh".to_owned()]);
    Outcome::Failed { class, error, lines, budget: None, signature: String::new(), next }
}

pub fn interrupted() -> Outcome {
    Outcome::Interrupted { why: "it was ended".to_owned() }
}

impl Run {
    /// A run that was created and is driven.
    pub fn new(plan: Plan) -> Self {
        let (state, at) = (RunState::default(), Timestamp(1_000_000));
        let mut run = Self { plan, state, at, events: Vec::new() };
        let first = created(&run.plan);
        run.take(first);
        run.take(attached(1));
        run
    }

    pub fn apply(&mut self, event: Event) -> Result<(), Illegal> {
        apply(&mut self.state, self.at, &event)?;
        self.events.push((self.at, event));
        Ok(())
    }

    pub fn take(&mut self, event: Event) {
        self.apply(event).expect("the event is legal here");
    }

    /// Starts the next attempt of a step and ends it.
    pub fn attempt(&mut self, step: &str, outcome: Outcome) {
        self.attempt_with(step, outcome, Vec::new(), Vec::new());
    }

    pub fn attempt_with(
        &mut self,
        step: &str,
        outcome: Outcome,
        inputs: Vec<FileHash>,
        artifacts: Vec<FileHash>,
    ) {
        let attempt = self.start(step, inputs);
        self.take(finished(step, attempt, outcome, artifacts));
    }

    /// Starts the next attempt of a step.
    pub fn start(&mut self, step: &str, inputs: Vec<FileHash>) -> u32 {
        let attempt = self.state.step(&path(step)).map_or(1, |s| s.attempts + 1);
        let event = started(&self.plan, step, attempt, inputs);
        self.take(event);
        attempt
    }

    pub fn done(&mut self, step: &str) {
        self.attempt(step, Outcome::Succeeded);
    }
}

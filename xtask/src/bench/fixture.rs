//! A run in a ledger, advanced as the driver does it but without processes.

use std::path::Path;

use piton_core::event::{
    DriverAttached, DriverLeft, Facts, LogRanges, Outcome, ProtocolRef, RunCreated, Shape,
    StepFinished, StepReset, StepStarted, Verdict,
};
use piton_core::{Event, Millis, Plan, RunId, RunState, StepPath, Timestamp, apply};
use piton_engine::Store;
use piton_engine::store::Commit;
use piton_formats::settings::Settings;
use piton_formats::{Input, read_plan};
use piton_ledger::{Acquire, NewRun, Open, Owner, RunRow, owner_liveness};

/// The run's name.
pub(super) const RUN: &str = "bench";
/// When everything happens: what is measured does not depend on the time.
const AT: Timestamp = Timestamp(1_750_000_000_000);

/// The text of a plan with one lane of so many steps that do nothing.
pub(super) fn plan_text(steps: usize) -> String {
    let mut text =
        "title = \"Bench\"\n[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"L\"\nsteps = [\n"
            .to_owned();
    for step in 1..=steps {
        text.extend(["  { id = \"s", &step.to_string(), "\", run = \"true\" },\n"]);
    }
    text.push_str("]\n");
    text
}

/// Reads the text of a plan.
pub(in crate::bench) fn read(text: &str) -> Result<Plan, String> {
    let input = Input {
        file: "plan.toml",
        text,
        settings: &Settings::default(),
        git: false,
        read: &|_| Err(std::io::ErrorKind::NotFound.into()),
    };
    read_plan(&input).map(|(plan, _)| plan).map_err(|problems| format!("{problems:?}"))
}

/// A run and the lease on it.
pub(super) struct Driven {
    store: Store,
    row: RunRow,
    epoch: u64,
    /// Sequence of the last event.
    pub(super) seq: u64,
    state: RunState,
    plan: Plan,
    steps: Vec<StepPath>,
    /// The step that runs.
    current: usize,
}

impl Driven {
    /// Creates a run of so many steps; the first one runs.
    pub(super) fn create(dir: &Path, root: &Path, steps: usize) -> Result<Self, String> {
        let plan = read(&plan_text(steps))?;
        let ledger = piton_ledger::open(dir, Open::ReadWrite).map_err(|e| e.to_string())?;
        let mut store = Store::new(ledger);
        let owner = Owner::current();
        let root = root.display().to_string();
        let new = NewRun { run_id: RUN, plan: "plan.toml", title: "Bench", root: &root, at: AT.0 };
        let row = store.create(&new, &plan, &owner).map_err(|e| e.to_string())?;
        let created = RunCreated {
            previous: None,
            run_id: RunId(RUN.to_owned()),
            protocol: ProtocolRef::default(),
            plan_path: "plan.toml".to_owned(),
            plan_hash: plan.hash(),
            title: "Bench".to_owned(),
            spec: None,
            root,
            linked: false,
            mark: "0123456789abcdef0123456789abcdef".to_owned(),
            head: None,
            shape: Shape::from(&plan),
        };
        let steps = plan.steps().map(|(path, _)| path).collect();
        let (epoch, state) = (row.epoch, RunState::default());
        let mut driven = Self { store, row, epoch, seq: 0, state, plan, steps, current: 0 };
        let attached = driven.attached(&owner);
        let first = driven.started(0);
        driven.commit(&[Event::RunCreated(Box::new(created)), attached, first], false)?;
        Ok(driven)
    }

    /// Takes the lease of the run in a ledger, whose steps are all done; the first one runs again.
    pub(super) fn attach(dir: &Path) -> Result<Self, String> {
        let ledger = piton_ledger::open(dir, Open::ReadWrite).map_err(|e| e.to_string())?;
        let mut store = Store::new(ledger);
        let owner = Owner::current();
        let loaded = store.load(RUN).map_err(|e| e.to_string())?;
        let (how, alive) = (Acquire::IfFree, &owner_liveness);
        let lease = store.ledger().acquire(loaded.row.run, &owner, AT.0, how, alive);
        let epoch = lease.map_err(|e| e.to_string())?.epoch;
        let plan = store.plan(&loaded.state).map_err(|e| e.to_string())?;
        let steps = plan.steps().map(|(path, _)| path).collect();
        let (row, seq, state) = (loaded.row, loaded.seq, loaded.state);
        let mut driven = Self { store, row, epoch, seq, state, plan, steps, current: 0 };
        let attached = driven.attached(&owner);
        let mut events = vec![attached];
        driven.push_again(&mut events, 0);
        driven.commit(&events, false)?;
        Ok(driven)
    }

    fn attached(&self, owner: &Owner) -> Event {
        let (pid, host) = (owner.pid, owner.host.clone());
        Event::DriverAttached(DriverAttached {
            epoch: self.epoch,
            pid,
            host,
            head: None,
            takeover: false,
            base: None,
            retries: None,
            seed_dirty: false,
            keep_going: false,
            driven_until: None,
        })
    }

    fn started(&self, index: usize) -> Event {
        let step = self.steps[index].clone();
        let attempt = self.state.step(&step).map_or(0, |state| state.attempts) + 1;
        let definition = self.plan.step(&step).map(piton_core::plan::Step::definition);
        let definition = definition.unwrap_or_else(|| self.plan.hash());
        Event::StepStarted(StepStarted {
            step,
            attempt,
            definition,
            inputs: Vec::new(),
            before: None,
            tests_only: false,
            secrets: Vec::new(),
            agent: None,
        })
    }

    fn finished(&self, index: usize) -> Event {
        let step = self.steps[index].clone();
        let attempt = self.state.step(&step).map_or(1, |state| state.attempts);
        Event::StepFinished(Box::new(StepFinished {
            step,
            attempt,
            outcome: Outcome::Succeeded,
            inputs: None,
            exit_code: Some(0),
            signal: None,
            duration_ms: Millis(1),
            logs: LogRanges::default(),
            artifacts: Vec::new(),
            facts: Facts::default(),
            after: None,
            tests: Vec::new(),
            changed_by_tests: false,
            command: None,
            retries_max: None,
            drifted: Vec::new(),
            outside: Vec::new(),
            changed: Vec::new(),
        }))
    }

    fn push_again(&self, events: &mut Vec<Event>, index: usize) {
        let step = self.steps[index].clone();
        events.push(Event::StepReset(StepReset { step, reason: "asked to run again".to_owned() }));
        events.push(self.started(index));
    }

    /// The driver's commit between two steps: the outcome of one, the intent of the next. When all
    /// are done the first runs again, so that history grows and the plan does not.
    pub(super) fn step(&mut self) -> Result<(), String> {
        let events = self.next();
        self.commit(&events, false)
    }

    fn next(&mut self) -> Vec<Event> {
        let mut events = vec![self.finished(self.current)];
        self.current = (self.current + 1) % self.steps.len();
        let path = &self.steps[self.current];
        if self.state.step(path).is_some_and(|step| step.successes > 0) {
            self.push_again(&mut events, self.current);
        } else {
            events.push(self.started(self.current));
        }
        events
    }

    /// Advances until the run has about so many events, with many steps in each commit.
    pub(super) fn fill(&mut self, events: u64, per_commit: usize) -> Result<(), String> {
        while self.seq < events {
            let mut batch = Vec::new();
            while batch.len() < per_commit && self.seq + (batch.len() as u64) < events {
                let next = self.next();
                self.apply(&next)?;
                batch.extend(next);
            }
            self.append(&batch, false)?;
        }
        Ok(())
    }

    /// Finishes what remains, leaves, and gives up the lease.
    pub(super) fn leave(mut self) -> Result<(), String> {
        let verdict = Verdict::Complete;
        let left =
            Event::DriverLeft(DriverLeft { verdict, head: None, signal: None, driven_until: None });
        let events = [self.finished(self.current), left];
        self.commit(&events, true)
    }

    fn commit(&mut self, events: &[Event], release: bool) -> Result<(), String> {
        self.apply(events)?;
        self.append(events, release)
    }

    fn apply(&mut self, events: &[Event]) -> Result<(), String> {
        let state = &mut self.state;
        events.iter().try_for_each(|event| apply(state, AT, event)).map_err(|e| e.to_string())
    }

    fn append(&mut self, events: &[Event], release: bool) -> Result<(), String> {
        let commit = Commit {
            row: &self.row,
            epoch: self.epoch,
            expected_seq: self.seq,
            at: AT,
            events,
            state: &self.state,
            answered: &[],
            release,
        };
        self.seq = self.store.append(&commit).map_err(|e| e.to_string())?;
        Ok(())
    }
}

//! The loop that advances a run: decide, commit, act, wait.
//!
//! One turn collects what happened, applies it, decides what follows, commits all of it at once,
//! and only then acts. A commit that is refused because another driver took over ends the loop
//! before anything is done: nothing is performed that is not durable first.

use std::collections::{BTreeMap, BTreeSet};

use piton_core::Millis;
use piton_core::event::{BudgetExhausted, Event, GateAsked, TimeSkipped, Verdict};
use piton_core::lane::SnapshotRef;
use piton_core::plan::Step;
use piton_core::redact::Redactor;
use piton_core::{
    Action, Illegal, LanePath, Limits, Plan, RunState, StepPath, Timestamp, apply, decide,
};
use piton_ledger::{HEARTBEAT_EVERY_MS, RunRow};

use crate::error::{Error, Result};
use crate::observer::{Note, Observer};
use crate::order::Order;
use crate::store::{Commit, Store};
use crate::world::{Attempt, Ended, Happening, World};

mod begin;
mod hashing;
mod held;
mod inbox;
mod lanes;
mod leave;
mod left;
mod outcome;
mod recheck;
mod recover;
mod reopen;
mod rewind;
mod tasks;
mod tested;
mod validation;
mod views;

pub use inbox::REFUSED;

/// How long the driver sleeps at most before it looks at its inbox.
const INBOX_EVERY: Millis = Millis(200);
/// How long it does not look again, however much happens: a person notices no fiftieth of a second,
/// and many short steps need not ask after each.
const INBOX_REST: Millis = Millis(20);
/// How long it sleeps at most while somebody watches a live picture: ten frames a second look smooth.
const TICK_EVERY: Millis = Millis(100);
/// How far the clock may run ahead of the time awake before that is a sleep: more than a clock that
/// is being corrected ever does.
const SLEEP_MIN: Millis = Millis::from_secs(5);
/// What a driver was told.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How many lanes, and which.
    pub limits: Limits,
    /// Retries of every step, over what the plan says.
    pub retries: Option<u32>,
    /// Keeps secrets out of what is recorded.
    pub redactor: Redactor,
    /// An abort to carry out at once instead of going on.
    pub abort: Option<piton_core::event::RunAborted>,
    /// Gates of the phase document that are open, for each lane that waits for them.
    pub open_gates: BTreeMap<LanePath, Vec<String>>,
    /// Those that are ticked, but perhaps by a step.
    pub doubted_gates: BTreeMap<LanePath, Vec<String>>,
    /// Rounds a lane may go through the merge queue because base moved; the built-in limit without.
    pub merge_rounds: Option<u32>,
    /// A rollback, restore or undo to carry out instead of going on.
    pub rewind: Option<crate::world::Rewind>,
    /// Nothing but a rollback that was cut short is to be finished.
    pub settle: bool,
    /// The status words that the person wants to be told of are sent to the notify command.
    pub notify: bool,
}

/// How a driver's work ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The verdict.
    pub verdict: Verdict,
    /// The signal that stopped it.
    pub signal: Option<i32>,
    /// The state at the end.
    pub state: RunState,
    /// Sequence of the last event.
    pub seq: u64,
    /// Why a rollback, restore or undo was not carried out. What was under way may have ended first.
    pub refused: Option<String>,
}

/// A driver at work. It holds the lease; dropping it without [`Driver::drive`] leaves a lease that
/// the next driver recognises as dead once this process is gone.
pub struct Driver<'a> {
    store: &'a mut Store,
    world: &'a mut dyn World,
    observer: &'a mut dyn Observer,
    plan: Plan,
    live: Plan,
    row: RunRow,
    epoch: u64,
    state: RunState,
    seq: u64,
    options: Options,
    at: Timestamp,
    batch: Vec<Event>,
    answered: Vec<(i64, String)>,
    /// Requests that were there when a keeper was found to have died over its steps: one of these may
    /// have killed it, and asked.
    doubted: Vec<i64>,
    orders: Vec<Order>,
    acks: Vec<Attempt>,
    /// Attempts that succeeded and whose files can't be held or read: no outcome is recorded of them.
    stuck: Vec<Attempt>,
    /// Attempts that were told to go from outside, with the time awake until which it is awaited
    /// whether this driver is told too.
    told: Vec<(Millis, Box<Ended>)>,
    /// Steps that this driver has begun since a person last asked for further attempts.
    begun: BTreeSet<StepPath>,
    /// Attempts that are over and whose files are still being hashed.
    hashing: Vec<Ended>,
    /// When it was last said how far that is, by the time awake.
    progress: BTreeMap<StepPath, Millis>,
    restarts: BTreeMap<StepPath, u32>,
    redone: BTreeMap<StepPath, u32>,
    signal: Option<i32>,
    ending: Option<&'static str>,
    abort: Option<(piton_core::event::RunAborted, Option<i64>)>,
    recheck_inputs: bool,
    /// When the inbox was last looked at, by the time awake: clocks can be set back.
    inbox_seen: Option<Millis>,
    /// The clock and the time awake at the last commit.
    last_commit: (Timestamp, Millis),
    /// The clock and the time awake when they were last compared.
    clock: (Timestamp, Millis),
    /// Snapshots of this turn, by the folder; nothing ran since they were taken.
    fresh: BTreeMap<String, SnapshotRef>,
    /// When a pull request was last looked at.
    asked_at: Option<Timestamp>,
    /// What was said of pull requests that are not merged, so that it is said once.
    unmerged: BTreeMap<LanePath, String>,
    /// What was said of work that no pull request has, likewise.
    further: BTreeMap<LanePath, String>,
    /// What a rewind said.
    refused: Option<String>,
    /// How much was done for each lane since it last started a step.
    acts: BTreeMap<LanePath, u32>,
    /// Lanes that a person edited after a driver before this one had committed them.
    edited: BTreeSet<LanePath>,
    /// Whether something was done for a lane that asks for a new decision.
    again: bool,
    behind: views::Behind,
}

impl<'a> Driver<'a> {
    /// Makes a driver for a run whose lease is held at `epoch`. `plan` is the plan as recorded, its
    /// secrets taken out; `live` is the same plan as its file says it, from which steps start.
    #[expect(clippy::too_many_arguments, reason = "each is a part of its own, needed once")]
    pub fn new(
        store: &'a mut Store,
        world: &'a mut dyn World,
        observer: &'a mut dyn Observer,
        plan: Plan,
        live: Plan,
        loaded: crate::store::Loaded,
        epoch: u64,
        options: Options,
    ) -> Self {
        let (at, awake) = (world.now(), world.awake());
        Self {
            store,
            world,
            observer,
            plan,
            live,
            row: loaded.row,
            epoch,
            state: loaded.state,
            seq: loaded.seq,
            abort: options.abort.clone().map(|a| (a, None)),
            options,
            at,
            batch: Vec::new(),
            answered: Vec::new(),
            doubted: Vec::new(),
            orders: Vec::new(),
            acks: Vec::new(),
            stuck: Vec::new(),
            told: Vec::new(),
            begun: BTreeSet::new(),
            hashing: Vec::new(),
            progress: BTreeMap::new(),
            restarts: BTreeMap::new(),
            redone: BTreeMap::new(),
            signal: None,
            ending: None,
            recheck_inputs: false,
            inbox_seen: None,
            last_commit: (at, awake),
            clock: (at, awake),
            fresh: BTreeMap::new(),
            asked_at: None,
            unmerged: BTreeMap::new(),
            further: BTreeMap::new(),
            refused: None,
            acts: BTreeMap::new(),
            edited: BTreeSet::new(),
            again: false,
            behind: views::Behind::default(),
        }
    }

    /// Records how the driver came, finds what a former driver left in flight, and goes on until
    /// nothing can move.
    pub fn drive(mut self, opening: Vec<Event>) -> Result<Ending> {
        match self.go_on(opening) {
            Ok(verdict) => self.leave(verdict),
            Err(error) => {
                if self.batch.is_empty() && !error.is_fenced() {
                    self.views();
                }
                Err(error)
            }
        }
    }

    fn go_on(&mut self, opening: Vec<Event>) -> Result<Verdict> {
        let stood = self.state.verdict.filter(|_| self.state.running().is_empty());
        for event in opening {
            self.record(event)?;
        }
        if !self.state.running().is_empty() {
            // The epoch must be durable before the keeper hears of it.
            self.commit()?;
        }
        // What is found to have ended is checkpointed at once.
        self.raise_fence()?;
        self.recover("driver")?;
        if self.options.settle {
            return Ok(Verdict::RolledBack);
        }
        if self.abort.is_some() {
            self.end_all("aborted")?;
        }
        if self.options.rewind.is_some() {
            self.options.limits.draining = true;
            self.end_all("the run stops so that work can be taken back")?;
        }
        if self.abort.is_none() && self.options.rewind.is_none() {
            self.look_at_base()?;
        }
        loop {
            if self.batch.is_empty() {
                // Lane acts take their time: what follows them happens after them.
                self.at = self.at.max(self.world.now());
            }
            self.forget_pull_requests();
            let awake = self.clock.1.0;
            if self.inbox_seen.is_none_or(|seen| awake.saturating_sub(seen.0) >= INBOX_REST.0) {
                self.take_requests()?;
            }
            self.recheck()?;
            let actions = decide(&self.plan, &self.state, &self.options.limits, self.at);
            let (verdict, wake) = self.take(actions)?;
            if let Some(verdict) = verdict {
                self.commit()?;
                // A request that came meanwhile would lie in the inbox until the next driver.
                if self.is_asked()? {
                    continue;
                }
                if let Some(rewind) = self.options.rewind.take() {
                    self.refused = self.rewind(rewind)?;
                    // Where nothing was taken back, the run stands where it stood.
                    let refused = self.refused.is_some();
                    return Ok(if refused {
                        stood.unwrap_or(verdict)
                    } else {
                        Verdict::RolledBack
                    });
                }
                return Ok(verdict);
            }
            if std::mem::take(&mut self.again) {
                continue;
            }
            self.commit()?;
            self.wait(wake)?;
        }
    }

    /// Applies an event and puts it into the next commit.
    fn record(&mut self, event: Event) -> Result<()> {
        if let Event::StepRetried(asked) = &event {
            self.begun.remove(&asked.step);
        }
        apply(&mut self.state, self.at, &event).map_err(|source| self.illegal(source))?;
        self.batch.push(event);
        Ok(())
    }

    fn illegal(&self, source: Illegal) -> Error {
        let seq = self.seq + self.batch.len() as u64 + 1;
        Error::Illegal { run_id: self.row.run_id.clone(), seq, source: Box::new(source) }
    }

    /// Makes what was recorded durable, then does what waits for that.
    fn commit(&mut self) -> Result<()> {
        if self.batch.is_empty() && !self.orders.is_empty() {
            // Orders of an intent recorded before: only the ledger knows whether we still drive.
            self.store.ledger().heartbeat(self.row.run, self.epoch, self.at.0)?;
        }
        if let ([order], false) = (self.orders.as_slice(), self.batch.is_empty()) {
            self.world.prepare(order);
        }
        let durable = self.append(false)?;
        // What is durable is acted on first and told then: a step need not wait for a terminal.
        let acted = self.act();
        self.tell(durable);
        acted
    }

    /// Does what waited for a commit.
    fn act(&mut self) -> Result<()> {
        if !self.acks.is_empty() {
            let acks = std::mem::take(&mut self.acks);
            self.world.acknowledge(&acks)?;
        }
        if !self.orders.is_empty() {
            let orders = std::mem::take(&mut self.orders);
            self.world.start(orders)?;
        }
        Ok(())
    }

    fn tell(&mut self, durable: Vec<(u64, Event)>) {
        for (seq, event) in durable {
            self.observer.event(seq, self.at, &event, &self.state);
        }
    }

    /// Makes what was recorded durable; gives the events to be told.
    fn append(&mut self, release: bool) -> Result<Vec<(u64, Event)>> {
        if self.batch.is_empty() && self.answered.is_empty() && !release {
            return Ok(Vec::new());
        }
        let answered: Vec<(i64, &str)> =
            self.answered.iter().map(|(id, text)| (*id, text.as_str())).collect();
        let before = self.seq;
        self.seq = self.store.append(&Commit {
            row: &self.row,
            epoch: self.epoch,
            expected_seq: self.seq,
            at: self.at,
            events: &self.batch,
            state: &self.state,
            answered: &answered,
            release,
        })?;
        if let Some(rooms) = self.world.rooms() {
            rooms.recorded(self.seq);
        }
        self.last_commit = self.clock;
        self.answered.clear();
        self.view(before);
        Ok((before + 1..).zip(self.batch.drain(..)).collect())
    }

    /// A step of the plan: it stands where the state has it.
    fn planned(&self, path: &StepPath) -> Option<&Step> {
        let there = self.state.position(path).and_then(|at| self.plan.at(at));
        there.filter(|step| step.id == path.step).or_else(|| self.plan.step(path))
    }

    /// Turns decisions into events and orders; returns the verdict and when to look again.
    fn take(&mut self, actions: Vec<Action>) -> Result<(Option<Verdict>, Option<Timestamp>)> {
        let (mut verdict, mut wake) = (None, None);
        for action in actions {
            match action {
                Action::Start { step, attempt } => {
                    self.acts.remove(&step.lane());
                    self.begin(&Attempt { step, number: attempt })?;
                }
                Action::Ask { gate, name } => {
                    self.record(Event::GateAsked(GateAsked { gate, name }))?;
                }
                Action::Lane { lane, act } => {
                    self.again = true;
                    self.lane_act(&lane, act)?;
                }
                Action::Exhausted(budget) => self.exhausted(budget)?,
                Action::EndAll => self.end_all("a budget of time is used up")?,
                Action::WakeAt(at) => wake = Some(at),
                Action::Leave(found) => verdict = Some(found),
            }
        }
        if verdict == Some(Verdict::Blocked) {
            self.refuse_unmet()?;
        }
        Ok((verdict, wake))
    }

    fn exhausted(&mut self, budget: BudgetExhausted) -> Result<()> {
        self.record(Event::BudgetExhausted(budget))
    }

    /// Waits for something to happen and applies it.
    fn wait(&mut self, wake: Option<Timestamp>) -> Result<()> {
        let now = self.world.now();
        let ticks = self.observer.wants_ticks();
        let mut rest = if ticks { TICK_EVERY } else { INBOX_EVERY };
        rest = self.views_if_due().map_or(rest, |due| due.min(rest));
        rest = self.told_rest().map_or(rest, |told| told.min(rest));
        let poll = now.after(rest);
        self.store.ledger().make_room(self.row.run, self.epoch);
        let happenings = self.world.wait(wake.map_or(poll, |w| w.min(poll)))?;
        self.at = self.world.now();
        self.fresh.clear();
        self.skip_sleep()?;
        if happenings.is_empty() && self.heartbeat_is_due() {
            self.store.ledger().heartbeat(self.row.run, self.epoch, self.at.0)?;
            self.last_commit = self.clock;
        }
        for happening in happenings {
            self.happened(happening)?;
        }
        self.take_told()?;
        self.take_hashed()?;
        if ticks {
            self.observer.tick(self.at, &self.state);
        }
        Ok(())
    }

    /// Whether the lease should be renewed: by the clock, which tells of a sleep, or by the time awake,
    /// which goes on where the clock was set back.
    fn heartbeat_is_due(&self) -> bool {
        let (at, awake) = self.last_commit;
        let passed = self.clock.1.0.saturating_sub(awake.0);
        self.at.since(at).0.max(passed) >= heartbeat_every()
    }

    /// Takes time that the machine slept, or that its clock jumped ahead, out of the budgets.
    fn skip_sleep(&mut self) -> Result<()> {
        let (at, awake) = (self.at, self.world.awake());
        let passed = at.since(self.clock.0).0;
        let slept = passed.saturating_sub(awake.0.saturating_sub(self.clock.1.0));
        self.clock = (at, awake);
        if slept < SLEEP_MIN.0 {
            return Ok(());
        }
        self.record(Event::TimeSkipped(TimeSkipped { ms: Millis(slept) }))
    }

    fn happened(&mut self, happening: Happening) -> Result<()> {
        match happening {
            Happening::Ended(ended) if self.may_be_told(&ended) => {
                self.wait_for_word(ended);
                Ok(())
            }
            Happening::Ended(ended) => self.ended(&ended),
            Happening::NotStarted { attempt, error, .. } => self.not_started(&attempt, &error),
            Happening::Signal(signal) => self.signalled(signal),
            Happening::Fenced => Err(Error::TakenOver),
            Happening::KeeperGone => {
                self.observer.note(&Note::KeeperReplaced);
                self.recover("keeper")?;
                if let Some(why) = self.ending {
                    self.ending = None;
                    self.end_all(why)?;
                }
                Ok(())
            }
        }
    }
}

fn heartbeat_every() -> u64 {
    HEARTBEAT_EVERY_MS.unsigned_abs()
}

//! The loop that advances a run: decide, commit, act, wait.
//!
//! One turn collects what happened, applies it, decides what follows, commits all of it at once,
//! and only then acts. A commit that is refused because another driver took over ends the loop
//! before anything is done: nothing is performed that is not durable first.

use piton_core::event::{Event, GateAsked, StepReset, TimeSkipped, Verdict};
use piton_core::plan::Step;
use piton_core::refusal::{Refusal, Remedy};
use piton_core::{Action, Millis, Plan, RunState, StepPath, Timestamp, apply, decide};

use crate::drive::{Drive, Ending, Leased, Options};
use crate::error::{Error, Result};
use crate::observer::{Note, Observer};
use crate::store::Store;
use crate::world::{Attempt, Happening, Rewind, World};

mod agents;
mod begin;
mod clock;
mod dispatch;
mod drift;
mod exits;
mod files;
mod halting;
mod inbox;
mod lanes;
mod left;
mod outcome;
mod pull_requests;
mod recover;
mod reopen;
mod replan;
mod rewind;
mod run_record;
mod spec;
mod stop;
mod tallies;
mod tasks;
mod tested;
mod unrecorded;
mod unstarted;
mod validation;
mod views;

/// How long the driver sleeps at most before it looks at its inbox.
const INBOX_EVERY: Millis = Millis(200);
/// How long it sleeps at most while somebody watches a live picture: ten frames a second look smooth.
const TICK_EVERY: Millis = Millis(100);

/// A driver at work: it holds the lease of the run.
pub struct Driver<'a> {
    world: &'a mut dyn World,
    observer: &'a mut dyn Observer,
    drive: Drive,
    options: Options,
    plan: Plan,
    state: RunState,
    run: run_record::RunRecord<'a>,
    dispatch: dispatch::Dispatch,
    clock: clock::Clock,
    stop: stop::Stop,
    unrecorded: unrecorded::Unrecorded,
    tallies: tallies::Tallies,
    files: files::Files,
    pull_requests: pull_requests::PullRequests,
    views: views::Views,
}

/// What follows from a turn's decisions.
#[derive(Default)]
struct Decided {
    /// Something was done for a lane: there is more to decide.
    again: bool,
    /// Nothing can move any more.
    verdict: Option<Verdict>,
    /// When to decide again at the latest.
    wake: Option<Timestamp>,
}

impl<'a> Driver<'a> {
    /// Drives a run until nothing can move: records how the driver came, finds what a former driver
    /// left in flight, goes on, and leaves.
    pub fn drive(
        store: &'a mut Store,
        world: &'a mut dyn World,
        observer: &'a mut dyn Observer,
        leased: Leased,
        options: Options,
    ) -> Result<Ending> {
        let Leased { loaded, epoch, plan, live, opening, drive } = leased;
        let clock = clock::Clock::new(world.now(), world.awake());
        let stop = stop::Stop::new(&drive);
        let mut driver = Self {
            world,
            observer,
            drive,
            options,
            plan,
            state: loaded.state,
            run: run_record::RunRecord::new(store, loaded.row, epoch, loaded.seq),
            dispatch: dispatch::Dispatch { live, orders: Vec::new(), acks: Vec::new() },
            clock,
            stop,
            unrecorded: unrecorded::Unrecorded::default(),
            tallies: tallies::Tallies::default(),
            files: files::Files::default(),
            pull_requests: pull_requests::PullRequests::default(),
            views: views::Views::default(),
        };
        match driver.go_on(opening) {
            Ok((verdict, refused)) => driver.leave(verdict, refused),
            Err(error) => {
                if driver.run.events.is_empty() && !error.is_fenced() {
                    driver.write_views();
                }
                Err(error)
            }
        }
    }

    /// Advances the run; gives how it stands then, and why a rewind was not carried out.
    fn go_on(&mut self, opening: Vec<Event>) -> Result<(Verdict, Option<Refusal>)> {
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
        match &self.drive {
            Drive::Run(_) => self.check_base()?,
            Drive::Abort(_) => self.end_all("aborted")?,
            Drive::Rewind(_) => {
                self.options.limits.draining = true;
                self.end_all("the run stops so that work can be taken back")?;
            }
            Drive::FinishRewind => return Ok((Verdict::RolledBack, None)),
        }
        loop {
            if self.run.events.is_empty() {
                // Lane acts take their time: what follows them happens after them.
                self.clock.at = self.clock.at.max(self.world.now());
            }
            self.forget_pull_requests();
            if self.clock.inbox_is_due() {
                self.take_requests()?;
            }
            self.recheck()?;
            self.count_day()?;
            self.end_unstopped()?;
            let actions = decide(&self.plan, &self.state, &self.options.limits, self.clock.at);
            let decided = self.take(actions)?;
            if let Some(verdict) = decided.verdict {
                self.commit()?;
                // A request that came meanwhile would lie in the inbox until the next driver.
                if self.is_asked()? {
                    continue;
                }
                let Drive::Rewind(rewind) = &self.drive else { return Ok((verdict, None)) };
                let refused = self.rewind(Rewind::clone(rewind))?;
                // Where nothing was taken back, the run stands where it stood.
                let stands = refused.as_ref().map(|_| stood.unwrap_or(verdict));
                return Ok((stands.unwrap_or(Verdict::RolledBack), refused));
            }
            if !decided.again {
                self.commit()?;
                self.wait(decided.wake)?;
            }
        }
    }

    /// From here on refs move only while this driver's epoch is the newest.
    fn raise_fence(&mut self) -> Result<()> {
        let Some(workspaces) = self.world.workspaces() else { return Ok(()) };
        workspaces.fence(self.run.epoch)?;
        workspaces.recorded(self.run.seq);
        Ok(())
    }

    /// Git took its time: what is recorded next happened now. All events of one commit have one time.
    fn acted(&mut self) {
        if self.run.events.is_empty() {
            self.clock.at = self.clock.at.max(self.world.now());
        }
    }

    /// Applies an event and puts it into the next commit.
    fn record(&mut self, event: Event) -> Result<()> {
        if let Event::StepRetried(asked) = &event {
            self.tallies.begun.remove(&asked.step);
        }
        let applied = apply(&mut self.state, self.clock.at, &event);
        applied.map_err(|source| self.run.illegal(source))?;
        self.run.events.push(event);
        Ok(())
    }

    /// Makes what was recorded durable, then does what waits for that.
    fn commit(&mut self) -> Result<()> {
        match (self.dispatch.orders.as_slice(), self.run.events.is_empty()) {
            ([], _) => {}
            // Orders of an intent recorded before: only the ledger knows whether we still drive.
            (_, true) => self.run.heartbeat(self.clock.at)?,
            ([order], false) => self.world.prepare(order),
            (_, false) => {}
        }
        let durable = self.append(false)?;
        // What is durable is acted on first and shown then: a step need not wait for a terminal.
        let sent = self.dispatch.send(self.world);
        self.show(durable);
        sent
    }

    fn show(&mut self, durable: Vec<(u64, Event)>) {
        for (seq, event) in durable {
            self.observer.event(seq, self.clock.at, &event, &self.state);
        }
    }

    /// Makes what was recorded durable; gives the events to be shown.
    fn append(&mut self, release: bool) -> Result<Vec<(u64, Event)>> {
        let appended = self.run.append(self.clock.at, &self.state, release)?;
        let Some(durable) = appended else { return Ok(Vec::new()) };
        if let Some(workspaces) = self.world.workspaces() {
            workspaces.recorded(self.run.seq);
        }
        self.clock.renew();
        self.view(&durable);
        Ok(durable)
    }

    /// A step of the plan.
    fn planned(&self, path: &StepPath) -> Option<&Step> {
        step_of(&self.plan, &self.state, path)
    }

    fn warn(&mut self, text: impl Into<Remedy>) {
        self.observer.note(&Note::Warning(text.into()));
    }

    /// Lets a step that is done run again.
    fn run_again(&mut self, step: StepPath, reason: impl Into<String>) -> Result<()> {
        self.record(Event::StepReset(StepReset { step, reason: reason.into() }))
    }

    /// A text without secrets.
    fn redact(&self, text: &str) -> String {
        self.options.redactor.redact(text).into_owned()
    }

    /// Turns decisions into events and orders.
    fn take(&mut self, actions: Vec<Action>) -> Result<Decided> {
        let mut decided = Decided::default();
        for action in actions {
            if self.holds_for_spec(&action)? {
                decided.again = true;
                continue;
            }
            match action {
                Action::Start { step, attempt } => {
                    self.tallies.acts.remove(&step.lane());
                    decided.again |= self.begin(&Attempt { step, number: attempt })?;
                }
                Action::Ask { gate, name } => {
                    self.record(Event::GateAsked(GateAsked { gate, name }))?;
                }
                Action::Lane { lane, act } => {
                    decided.again = true;
                    self.lane_act(&lane, act)?;
                }
                Action::Replan(replan) => {
                    decided.again = true;
                    self.begin_replan(*replan)?;
                }
                Action::RefuseReplan(refused) => {
                    decided.again = true;
                    self.record(Event::ReplanRefused(refused))?;
                }
                Action::Exhausted(budget) => self.record(Event::BudgetExhausted(budget))?,
                Action::StopAgent { step, attempt } => {
                    self.ask_to_stop(&Attempt { step, number: attempt })?;
                }
                Action::Warn(warned) => self.warn_budget(warned)?,
                Action::EndAll => self.end_all("a budget of time is used up")?,
                Action::WakeAt(at) => decided.wake = Some(at),
                Action::Leave(verdict) => decided.verdict = Some(verdict),
            }
        }
        if decided.verdict == Some(Verdict::Blocked) {
            self.refuse_unmet()?;
        }
        Ok(decided)
    }

    /// Waits for something to happen and applies it.
    fn wait(&mut self, wake: Option<Timestamp>) -> Result<()> {
        let now = self.world.now();
        let ticks = self.observer.wants_ticks();
        let rest = if ticks { TICK_EVERY } else { INBOX_EVERY };
        let signal = self.unrecorded.signal_wait(self.clock.awake);
        let due = self.write_views_if_due().into_iter().chain(signal);
        let poll = now.after(due.fold(rest, Millis::min));
        let happenings = self.world.wait(wake.map_or(poll, |w| w.min(poll)))?;
        self.files.fresh.clear();
        // Time that the machine slept is taken out of the budgets.
        if let Some(ms) = self.clock.advance(self.world.now(), self.world.awake()) {
            self.record(Event::TimeSkipped(TimeSkipped { ms }))?;
        }
        if happenings.is_empty() && self.clock.heartbeat_is_due() {
            self.run.heartbeat(self.clock.at)?;
            self.clock.renew();
        }
        for happening in happenings {
            self.happened(happening)?;
        }
        self.record_signalled()?;
        self.record_hashed()?;
        if ticks {
            self.observer.tick(self.clock.at, &self.state);
        }
        Ok(())
    }

    fn happened(&mut self, happening: Happening) -> Result<()> {
        match happening {
            Happening::Ended(ended) if self.may_be_sent_too(&ended) => {
                self.unrecorded.await_signal(ended, self.clock.awake);
                Ok(())
            }
            Happening::Ended(ended) => self.ended(&ended),
            Happening::NotStarted { attempt, error, no_such_program: true } => {
                self.not_found(&attempt, &error)
            }
            Happening::NotStarted { attempt, error, .. } => self.not_started(&attempt, &error),
            Happening::Said { attempt, heard } => self.said(&attempt, &heard),
            Happening::Silent { attempt, silence } => self.silent(&attempt, silence),
            Happening::Warned(words) => {
                let words = self.redact(&words);
                self.warn(words);
                Ok(())
            }
            Happening::Signal(signal) => self.signalled(signal),
            Happening::Fenced => Err(Error::TakenOver),
            Happening::KeeperGone => {
                self.observer.note(&Note::KeeperReplaced);
                self.recover("keeper")?;
                self.stop.ending.take().map_or(Ok(()), |why| self.end_all(why))
            }
        }
    }
}

/// A step of a plan: it stands where the state has it.
fn step_of<'p>(plan: &'p Plan, state: &RunState, path: &StepPath) -> Option<&'p Step> {
    let there = state.position(path).and_then(|at| plan.at(at));
    there.filter(|step| step.id == path.step).or_else(|| plan.step(path))
}

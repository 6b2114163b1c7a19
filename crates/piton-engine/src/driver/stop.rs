//! How a driver stops: what makes it (a signal, an abort, a rewind), what it records last, whom it
//! tells, and what it leaves running.

use piton_core::RunState;
use piton_core::event::{DriverLeft, Event, RunAborted, TicksSeen, Verdict};
use piton_core::refusal::Refusal;
use piton_core::request::{Reply, awaits_tick};

use super::{Drive, Driver, inbox};
use crate::drive::Ending;
use crate::error::Result;
use crate::observer::Note;
use crate::store::describe;
use crate::world::Notice;

/// `SIGINT`: the one signal that lets running steps finish first.
const SIGINT: i32 = 2;

pub(super) struct Stop {
    /// The signal that came.
    pub(super) signal: Option<i32>,
    /// Why running steps are being ended.
    pub(super) ending: Option<&'static str>,
    /// The abort to record at the end.
    pub(super) abort: Option<Abort>,
}

/// An abort, and the request in the inbox that waits for it.
pub(super) struct Abort {
    pub(super) event: RunAborted,
    pub(super) request: Option<i64>,
}

impl Stop {
    pub(super) fn new(drive: &Drive) -> Self {
        let abort = match drive {
            Drive::Abort(event) => Some(Abort { event: event.clone(), request: None }),
            Drive::Run(_) | Drive::Rewind(_) | Drive::FinishRewind => None,
        };
        Self { signal: None, ending: None, abort }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.signal.is_some() || self.ending.is_some()
    }
}

impl Driver<'_> {
    /// Whether this driver, or the next, goes on with what is under way.
    pub(super) fn goes_on(&self) -> bool {
        self.stop.abort.is_none() && !matches!(self.drive, Drive::Rewind(_))
    }

    pub(super) fn signalled(&mut self, signal: i32) -> Result<()> {
        let running = self.at_work().saturating_sub(self.unrecorded.hashing.len());
        // A Ctrl-C that only lets steps finish is outdone by the signal that ends them.
        if self.stop.ending.is_none() || self.stop.signal.is_none() {
            self.stop.signal = Some(signal);
        }
        let is_first = !std::mem::replace(&mut self.options.limits.draining, true);
        if signal == SIGINT && is_first {
            self.observer.note(&Note::Draining { running });
            return Ok(());
        }
        self.end_all("a signal ended the run")
    }

    /// How many processes are at work, as far as it is recorded.
    fn at_work(&self) -> usize {
        self.state.running().len() + usize::from(self.replan_process().is_some())
    }

    pub(super) fn end_all(&mut self, why: &'static str) -> Result<()> {
        if self.stop.ending.is_some() {
            return Ok(());
        }
        self.stop.ending = Some(why);
        let running = self.at_work();
        if running > 0 {
            self.observer.note(&Note::Ending { running });
        }
        self.options.limits.draining |= self.stop.abort.is_some();
        // What was about to start must not start after everything was ended.
        for order in std::mem::take(&mut self.dispatch.orders) {
            self.lost(&order.attempt, format!("{why} before it was started"))?;
        }
        self.world.end_all()
    }

    /// Records boxes of gates that were ticked while this driver was at work: a person may have done
    /// it, or a step, and nobody can tell.
    fn doubt_ticks(&mut self) -> Result<()> {
        let Some((ticked, document)) = self.world.ticked(&self.plan) else { return Ok(()) };
        let is_new = |gate: &String| {
            awaits_tick(&self.plan, &self.state, gate) && !self.state.doubted.contains(gate)
        };
        let gates: Vec<String> = ticked.into_iter().filter(is_new).collect();
        if gates.is_empty() {
            return Ok(());
        }
        let by = "while steps of the run were at work".to_owned();
        let (document, gone) = (Some(document), Vec::new());
        let seen = TicksSeen { gates, count: false, by, document, gone };
        self.record(Event::TicksSeen(Box::new(seen)))
    }

    /// Records how the driver goes, releases the lease, notifies the person, lets the keeper end. `refused`
    /// is why a rewind was not carried out.
    pub(super) fn leave(mut self, verdict: Verdict, refused: Option<Refusal>) -> Result<Ending> {
        let mut aborted = self.stop.abort.take();
        if verdict == Verdict::Complete {
            let late = aborted.take().and_then(|abort| abort.request);
            self.run.answers.extend(late.map(|id| (id, inbox::refused("the run is complete"))));
        }
        let verdict = if aborted.is_some() { Verdict::Aborted } else { verdict };
        if aborted.is_some() {
            self.give_up_unsaved()?;
        }
        // What waits for a commit (acknowledgements) is sent before the last one.
        self.commit()?;
        self.clock.at = self.world.now();
        let head = self.world.head();
        self.doubt_ticks()?;
        let signal = if verdict == Verdict::Interrupted { self.stop.signal } else { None };
        self.record(Event::DriverLeft(DriverLeft { verdict, head, signal, driven_until: None }))?;
        if let Some(abort) = aborted {
            let event = Event::RunAborted(abort.event);
            let answer = describe(std::slice::from_ref(&event));
            self.record(event)?;
            self.run.answers.extend(abort.request.map(|id| (id, Reply::Done(answer))));
        }
        let durable = self.append(true)?;
        self.write_views();
        self.show(durable);
        // An unchanged run is not worth a notification.
        let is_news = self.options.notify && refused.is_none();
        // The run's outcome is recorded; a notification that fails does not change it.
        if let Some(notice) = notice(&self.state, verdict).filter(|_| is_news)
            && let Err(error) = self.world.notify(&notice)
        {
            self.warn(format!("the notify command: {error}"));
        }
        let left = self.world.leave()?;
        if !left.is_empty() {
            self.observer.note(&Note::LeftoversEnded { names: left });
        }
        Ok(Ending { verdict, signal: self.stop.signal, state: self.state, refused })
    }
}

fn notice(state: &RunState, verdict: Verdict) -> Option<Notice> {
    let run = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let (status, message) = match verdict {
        Verdict::Complete => ("complete", format!("run {run} is complete")),
        Verdict::Failed => ("failed", format!("run {run} failed")),
        Verdict::Waiting => ("waiting", format!("run {run} waits for a person")),
        Verdict::Budget => ("failed", format!("run {run} was stopped by a budget")),
        Verdict::Blocked => ("waiting", format!("run {run} is blocked")),
        _ => return None,
    };
    Some(Notice { status: status.to_owned(), message })
}

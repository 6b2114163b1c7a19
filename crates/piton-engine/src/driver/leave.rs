//! How a driver goes: what it records last, whom it tells, and what it leaves running.

use piton_core::RunState;
use piton_core::event::{DriverLeft, Event, TicksSeen, Verdict};

use super::{Driver, Ending, REFUSED};
use crate::error::Result;
use crate::observer::Note;
use crate::world::Notice;

/// `SIGINT`: the one signal that lets running steps finish first.
const SIGINT: i32 = 2;

impl Driver<'_> {
    pub(super) fn signalled(&mut self, signal: i32) -> Result<()> {
        let running = self.state.running().len().saturating_sub(self.hashing.len());
        // A Ctrl-C that only lets steps finish is outdone by the signal that ends them.
        if self.ending.is_none() || self.signal.is_none() {
            self.signal = Some(signal);
        }
        if signal == SIGINT && !self.options.limits.draining {
            self.options.limits.draining = true;
            self.observer.note(&Note::Draining { running });
            return Ok(());
        }
        self.options.limits.draining = true;
        self.end_all("a signal ended the run")
    }

    pub(super) fn end_all(&mut self, why: &'static str) -> Result<()> {
        if self.ending.is_some() {
            return Ok(());
        }
        self.ending = Some(why);
        let running = self.state.running().len();
        if running > 0 {
            self.observer.note(&Note::Ending { running });
        }
        self.options.limits.draining |= self.abort.is_some();
        // What was about to start must not start after everything was ended.
        for order in std::mem::take(&mut self.orders) {
            self.lost(&order.attempt, format!("{why} before it was started"))?;
        }
        self.world.end_all()
    }

    /// Records boxes of gates that were ticked while this driver was at work: a person may have done
    /// it, or a step, and nobody can tell.
    fn doubt_ticks(&mut self) -> Result<()> {
        let lanes = || self.plan.phases.iter().flat_map(|phase| &phase.lanes);
        if lanes().all(|lane| lane.rules.frozen.is_empty()) {
            return Ok(());
        }
        let Some((ticked, document)) = self.world.ticked() else { return Ok(()) };
        let is_known = |gate: &String| {
            let RunState { ticks, doubted, .. } = &self.state;
            ticks.contains(gate) || doubted.contains(gate)
        };
        let matters = |gate: &String| lanes().any(|lane| lane.rules.frozen.contains(gate));
        let gates: Vec<String> =
            ticked.into_iter().filter(|gate| matters(gate) && !is_known(gate)).collect();
        if gates.is_empty() {
            return Ok(());
        }
        let by = "while steps of the run were at work".to_owned();
        let seen = TicksSeen { gates, count: false, by, document: Some(document) };
        self.record(Event::TicksSeen(Box::new(seen)))
    }

    /// Records how the driver goes, gives up the lease, tells the person, lets the keeper go.
    pub(super) fn leave(mut self, verdict: Verdict) -> Result<Ending> {
        let aborted = self.abort.take();
        if let (Verdict::Complete, Some((_, Some(id)))) = (verdict, &aborted) {
            self.answered.push((*id, format!("{REFUSED}the run is complete")));
        }
        let aborted = aborted.filter(|_| verdict != Verdict::Complete);
        let verdict = if aborted.is_some() { Verdict::Aborted } else { verdict };
        if aborted.is_some() {
            self.give_up_stuck()?;
        }
        // What waits for a commit (acknowledgements) is sent before the last one.
        self.commit()?;
        self.at = self.world.now();
        let head = self.world.head();
        self.doubt_ticks()?;
        let signal = if verdict == Verdict::Interrupted { self.signal } else { None };
        self.record(Event::DriverLeft(DriverLeft { verdict, head, signal, driven_until: None }))?;
        if let Some((event, request)) = aborted {
            let answer = crate::store::describe(&[Event::RunAborted(event.clone())]);
            self.record(Event::RunAborted(event))?;
            self.answered.extend(request.map(|id| (id, answer)));
        }
        let durable = self.append(true)?;
        self.views();
        self.tell(durable);
        // That a run still is what it was is no news.
        let is_news = self.options.notify && self.refused.is_none();
        let notice = notice(&self.state, verdict).filter(|_| is_news);
        if let Some(notice) = notice {
            // The run's outcome is recorded; a person who can't be told does not change it.
            if let Err(error) = self.world.notify(&notice) {
                self.observer.note(&Note::Warning(format!("the notify command: {error}")));
            }
        }
        let left = self.world.leave()?;
        if !left.is_empty() {
            self.observer.note(&Note::LeftoversEnded { names: left });
        }
        let (state, seq, refused) = (self.state, self.seq, self.refused);
        Ok(Ending { verdict, signal: self.signal, state, seq, refused })
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

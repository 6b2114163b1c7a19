//! Requests of those who do not drive: carried out at once where nobody drives, else by the inbox.
//!
//! What lies in an inbox is the driver's to answer. A driver that gives up its lease, or dies, before
//! it has seen a request leaves it there; whoever waits for the answer then answers it alone.

use piton_core::event::{DriverLeft, Event, Verdict};
use piton_core::request::{self, Reply, Request};
use piton_core::{Timestamp, apply};
use piton_formats::codec;
use piton_ledger::{Acquire, HEARTBEAT_EVERY_MS, Lease, Liveness, NewRequest, Owner, RunRow};

use super::{Commit, Loaded, Store, illegal};
use crate::error::{Error, Result};

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The events are in the ledger; what they did, in words.
    Done(String),
    /// A live driver has the request in its inbox; the id asks for the answer.
    Asked(i64),
}

/// A request with who asks and when.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// What is asked.
    pub request: &'a Request,
    /// Makes the request idempotent.
    pub key: &'a str,
    /// The person.
    pub by: &'a str,
    /// When.
    pub at: Timestamp,
    /// The process that asks.
    pub owner: &'a Owner,
    /// Whether the owner of a lease lives.
    pub alive: &'a dyn Fn(&Owner) -> Liveness,
}

impl Asked<'_> {
    /// Whether somebody drives the run, according to its row.
    fn is_driven(&self, row: &RunRow) -> bool {
        row.owner.as_ref().is_some_and(|lease| match (self.alive)(&lease.owner) {
            Liveness::Alive => true,
            Liveness::Dead => false,
            Liveness::Unknown => lease.expires_at > self.at.0,
        })
    }
}

impl Store {
    /// Carries a request out at once if nobody drives the run, else puts it into the inbox.
    pub fn ask(&mut self, run_id: &str, asked: &Asked<'_>) -> Result<Answer> {
        let loaded = self.load(run_id)?;
        let Some(lease) = self.lease_if_free(&loaded.row, asked)? else {
            return self.put_into_inbox(&loaded, asked).map(Answer::Asked);
        };
        let done = self.carry_out(run_id, &lease, asked);
        self.released(&loaded.row, &lease, asked, done).map(Answer::Done)
    }

    /// Puts a request into the inbox whoever drives the run; the id asks for the answer.
    pub fn post(&mut self, run_id: &str, asked: &Asked<'_>) -> Result<i64> {
        let loaded = self.load(run_id)?;
        self.put_into_inbox(&loaded, asked)
    }

    /// The answer to a request in the inbox. Where nobody drives the run any more, the request is
    /// carried out here; nothing while somebody does and has not answered.
    pub fn answer(&mut self, run_id: &str, id: i64, asked: &Asked<'_>) -> Result<Option<Reply>> {
        if let Some(answer) = self.ledger.answer_of(id)? {
            return Ok(Some(Reply::from_inbox(&answer)));
        }
        let row = self.ledger.run(run_id)?.ok_or_else(|| Error::NoRun(run_id.to_owned()))?;
        if asked.is_driven(&row) {
            return Ok(None);
        }
        let Some(lease) = self.lease_if_free(&row, asked)? else {
            return Ok(None);
        };
        let answered = self.answer_alone(run_id, &lease, id, asked);
        self.released(&row, &lease, asked, answered).map(Some)
    }

    fn put_into_inbox(&mut self, loaded: &Loaded, asked: &Asked<'_>) -> Result<i64> {
        // What the driver would refuse is refused here too, with the reason at hand.
        request::turn(&loaded.state, asked.request, asked.by)?;
        let body = serde_json::to_vec(asked.request).unwrap_or_default();
        let new = NewRequest {
            key: asked.key,
            at: asked.at.0,
            from: asked.by,
            tag: Request::TAG,
            version: Request::VERSION,
            body: &body,
        };
        Ok(self.ledger.request(loaded.row.run, &new)?)
    }

    fn lease_if_free(&mut self, row: &RunRow, asked: &Asked<'_>) -> Result<Option<Lease>> {
        let how = Acquire::IfFree;
        match self.acquire(row, asked.owner, asked.at, how, asked.alive) {
            Ok(lease) => Ok(Some(lease)),
            Err(Error::Ledger(piton_ledger::Error::Held { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives up a lease that a failed commit did not give up.
    fn released<T>(
        &mut self,
        row: &RunRow,
        lease: &Lease,
        asked: &Asked<'_>,
        done: Result<T>,
    ) -> Result<T> {
        if done.is_err() {
            self.ledger.release(row.run, lease.epoch, asked.at.0)?;
        }
        done
    }

    fn carry_out(&mut self, run_id: &str, lease: &Lease, asked: &Asked<'_>) -> Result<String> {
        // Between load and lease another may have appended: look again under the lease.
        let mut loaded = self.load(run_id)?;
        let events = request::turn(&loaded.state, asked.request, asked.by)?;
        let words = describe(&events);
        self.commit_alone(&mut loaded, lease, asked, &events, &[])?;
        Ok(words)
    }

    fn answer_alone(
        &mut self,
        run_id: &str,
        lease: &Lease,
        id: i64,
        asked: &Asked<'_>,
    ) -> Result<Reply> {
        let mut loaded = self.load(run_id)?;
        // A driver that came and went meanwhile has answered.
        if let Some(answer) = self.ledger.answer_of(id)? {
            self.ledger.release(loaded.row.run, lease.epoch, asked.at.0)?;
            return Ok(Reply::from_inbox(&answer));
        }
        let (events, reply) = match request::turn(&loaded.state, asked.request, asked.by) {
            Ok(events) => {
                let words = describe(&events);
                (events, Reply::Done(words))
            }
            Err(refused) => (Vec::new(), Reply::Refused(refused.into())),
        };
        self.commit_alone(&mut loaded, lease, asked, &events, &[(id, &reply.to_inbox())])?;
        Ok(reply)
    }

    /// Commits what was asked and gives up the lease with it.
    fn commit_alone(
        &mut self,
        loaded: &mut Loaded,
        lease: &Lease,
        asked: &Asked<'_>,
        events: &[Event],
        answered: &[(i64, &str)],
    ) -> Result<()> {
        let fallen = fallen(loaded, lease, asked.at);
        let all: Vec<Event> = fallen.into_iter().chain(events.iter().cloned()).collect();
        for event in &all {
            apply(&mut loaded.state, asked.at, event)
                .map_err(|source| illegal(&loaded.row.run_id, loaded.seq + 1, source))?;
        }
        self.append(&Commit {
            row: &loaded.row,
            epoch: lease.epoch,
            expected_seq: loaded.seq,
            at: asked.at,
            events: &all,
            state: &loaded.state,
            answered,
            release: true,
        })?;
        Ok(())
    }
}

/// What is recorded for a driver that fell, with the lease that was its own: its time counts, and
/// the next driver finds no trace of it.
fn fallen(loaded: &Loaded, lease: &Lease, at: Timestamp) -> Option<Event> {
    let seen = lease.former_heartbeat.filter(|_| loaded.state.driven)?;
    // It lived until the heartbeat that did not come, at most.
    let until = Timestamp(seen + HEARTBEAT_EVERY_MS).min(at);
    Some(Event::DriverLeft(DriverLeft {
        verdict: Verdict::Interrupted,
        head: loaded.state.head.clone(),
        signal: None,
        driven_until: Some(until),
    }))
}

/// Says in words what the events of a request did.
pub fn describe(events: &[Event]) -> String {
    let words: Vec<String> = events
        .iter()
        .map(|event| match event {
            Event::GateDecided(e) if e.approved => format!("approved gate {}", e.gate),
            Event::GateDecided(e) => format!("rejected gate {}", e.gate),
            Event::ChangesWanted(e) => {
                let steps: Vec<String> = e.steps.iter().map(ToString::to_string).collect();
                format!("asked for changes at gate {}; {} will run again", e.gate, steps.join(", "))
            }
            Event::ApprovalAsked(e) => format!("asked a person ({})", e.gate),
            Event::GateReopened(e) => format!("took back the approval of gate {}", e.gate),
            Event::StepReset(e) => format!("{} will run again", e.step),
            Event::StepRetried(e) => format!("{} will be tried again", e.step),
            Event::StepSkipped(e) => format!("skipped {}", e.step),
            Event::RunAborted(e) if e.cancel => "cancelled the run".to_owned(),
            Event::RunAborted(_) => "aborted the run".to_owned(),
            Event::RunArchived(_) => "archived the run".to_owned(),
            Event::ReplanWanted(e) => format!("phase {} will be replanned", e.phase),
            Event::CommandRefused(e) => format!("noted that a step tried `piton {}`", e.command),
            Event::CheckpointRecorded(e) => format!("recorded checkpoint {}", e.name),
            Event::SessionOpened(e) => format!("opened session {}", e.session),
            Event::SessionEnded(e) => format!("ended session {}", e.session),
            other => codec::tag(other).to_owned(),
        })
        .collect();
    if words.is_empty() { "nothing to do".to_owned() } else { words.join("; ") }
}

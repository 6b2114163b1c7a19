//! The run in the ledger, as the holder of its lease: what is recorded, and what the next commit adds.

use piton_core::agent_state::Day;
use piton_core::request::Reply;
use piton_core::{Event, Illegal, RunState, Timestamp};
use piton_ledger::RunRow;

use crate::error::{Error, Result};
use crate::store::{Commit, Store, illegal};

pub(super) struct RunRecord<'a> {
    pub(super) store: &'a mut Store,
    pub(super) row: RunRow,
    pub(super) epoch: u64,
    /// Sequence of the last durable event.
    pub(super) seq: u64,
    /// Events that are applied and not durable yet.
    pub(super) events: Vec<Event>,
    /// Answers to requests that become durable with them.
    pub(super) answers: Vec<(i64, Reply)>,
    /// Requests that were there when a keeper was found to have died over its steps: one of these may
    /// have killed it, and asked.
    pub(super) doubted: Vec<i64>,
}

impl<'a> RunRecord<'a> {
    pub(super) fn new(store: &'a mut Store, row: RunRow, epoch: u64, seq: u64) -> Self {
        let (events, answers, doubted) = (Vec::new(), Vec::new(), Vec::new());
        Self { store, row, epoch, seq, events, answers, doubted }
    }

    pub(super) fn id(&self) -> &str {
        &self.row.run_id
    }

    /// The error of an event that does not fit the state.
    pub(super) fn illegal(&self, source: Illegal) -> Error {
        illegal(self.id(), self.seq + self.events.len() as u64 + 1, source)
    }

    pub(super) fn requests(&mut self) -> Result<Vec<piton_ledger::Request>> {
        Ok(self.store.ledger().requests(self.row.run)?)
    }

    /// What other runs used on a day.
    pub(super) fn spent_elsewhere(&mut self, day: i64) -> Result<Day> {
        self.store.spent_elsewhere(self.row.run, day)
    }

    /// Renews the lease; fails where another driver has it.
    pub(super) fn heartbeat(&mut self, at: Timestamp) -> Result<()> {
        Ok(self.store.ledger().heartbeat(self.row.run, self.epoch, at.0)?)
    }

    /// Makes what was recorded durable; gives the events that now are, or nothing without a commit.
    pub(super) fn append(
        &mut self,
        at: Timestamp,
        state: &RunState,
        release: bool,
    ) -> Result<Option<Vec<(u64, Event)>>> {
        if self.events.is_empty() && self.answers.is_empty() && !release {
            return Ok(None);
        }
        let answers: Vec<(i64, String)> =
            self.answers.iter().map(|(id, reply)| (*id, reply.to_inbox())).collect();
        let answers: Vec<(i64, &str)> = answers.iter().map(|(id, text)| (*id, &**text)).collect();
        let first = self.seq + 1;
        self.seq = self.store.append(&Commit {
            row: &self.row,
            epoch: self.epoch,
            expected_seq: self.seq,
            at,
            events: &self.events,
            state,
            answered: &answers,
            release,
        })?;
        self.answers.clear();
        Ok(Some((first..).zip(self.events.drain(..)).collect()))
    }
}

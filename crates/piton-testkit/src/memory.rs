//! A ledger in memory, for scenarios by the hundred, with faults that a real one must not have.
//!
//! It keeps the contract of [`Ledger`] as far as the engine relies on it; the real store has its own
//! contract tests, and the engine's tests also run on it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use piton_core::event::{CheckpointRecorded, Event};
use piton_formats::codec;
use piton_ledger::{
    Acquire, Append, Error, LEASE_MS, Lease, Ledger, Liveness, Millis, NewRequest, NewRun, Owner,
    Request, Result, RunKey, RunRow, Snapshot, StoredEvent,
};

/// Mechanisms of the ledger that a test can switch off.
#[derive(Clone, Copy, Debug, Default)]
pub struct LedgerFaults {
    /// Appends of stale drivers are taken.
    pub no_fence: bool,
    /// The last append is not durable: [`MemoryLedger::power_cut`] takes it away.
    pub not_durable: bool,
    /// Events of this tag are not remembered.
    pub forgets: Option<&'static str>,
}

#[derive(Clone, Default)]
struct Run {
    row: Option<RunRow>,
    events: Vec<StoredEvent>,
    snapshot: Option<Snapshot>,
    requests: Vec<Request>,
}

#[derive(Clone, Default)]
struct Content {
    runs: Vec<Run>,
    blobs: BTreeMap<String, Vec<u8>>,
    version: u64,
    next_request: i64,
}

#[derive(Default)]
struct Shared {
    content: Content,
    before_last: Option<Content>,
    faults: LedgerFaults,
}

/// A connection to a ledger in memory; clones share it.
#[derive(Clone, Default)]
pub struct MemoryLedger {
    shared: Rc<RefCell<Shared>>,
    seen: Option<u64>,
}

impl MemoryLedger {
    /// An empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Switches mechanisms off.
    pub fn set_faults(&self, faults: LedgerFaults) {
        self.shared.borrow_mut().faults = faults;
    }

    /// The machine loses power: a ledger that is not durable loses its last append.
    pub fn power_cut(&self) {
        let mut shared = self.shared.borrow_mut();
        if shared.faults.not_durable
            && let Some(before) = shared.before_last.take()
        {
            shared.content = before;
        }
    }

    /// Makes the cached states look as if another version of `apply` had made them.
    pub fn age_snapshots(&self) {
        let mut shared = self.shared.borrow_mut();
        for snapshot in shared.content.runs.iter_mut().filter_map(|r| r.snapshot.as_mut()) {
            snapshot.apply_version += 1;
        }
    }

    fn with<T>(&self, run: RunKey, act: impl FnOnce(&mut Run) -> Result<T>) -> Result<T> {
        let mut shared = self.shared.borrow_mut();
        shared.content.version += 1;
        let index = usize::try_from(run.0 - 1).map_err(|_| Error::NoRun)?;
        act(shared.content.runs.get_mut(index).ok_or(Error::NoRun)?)
    }

    fn recalled(&self, events: Vec<StoredEvent>) -> Vec<StoredEvent> {
        let Some(tag) = self.shared.borrow().faults.forgets else {
            return events;
        };
        events
            .into_iter()
            .map(|event| if event.tag == tag { blank(&event) } else { event })
            .collect()
    }
}

/// Something harmless in the place of a forgotten event.
fn blank(event: &StoredEvent) -> StoredEvent {
    let blank = codec::encode(&Event::CheckpointRecorded(CheckpointRecorded {
        name: "forgotten".to_owned(),
        message: String::new(),
        by: String::new(),
        head: None,
        snapshots: Vec::new(),
    }));
    StoredEvent {
        tag: blank.tag.to_owned(),
        version: blank.version,
        body: blank.body,
        ..event.clone()
    }
}

fn row_of(run: &mut Run) -> Result<&mut RunRow> {
    run.row.as_mut().ok_or(Error::NoRun)
}

fn lease(owner: &Owner, epoch: u64, at: Millis) -> Lease {
    let expires_at = at + LEASE_MS;
    Lease { owner: owner.clone(), epoch, heartbeat_at: at, former_heartbeat: None, expires_at }
}

fn holds(row: &RunRow, epoch: u64) -> Result<()> {
    if row.epoch != epoch {
        return Err(Error::Fenced { ours: epoch, current: row.epoch });
    }
    if row.owner.is_none() { Err(Error::NotHeld) } else { Ok(()) }
}

impl Ledger for MemoryLedger {
    fn create_run(&mut self, new: &NewRun<'_>, owner: &Owner) -> Result<RunRow> {
        if self.run(new.run_id)?.is_some() {
            return Err(Error::RunExists { run_id: new.run_id.to_owned() });
        }
        let mut shared = self.shared.borrow_mut();
        let key = i64::try_from(shared.content.runs.len()).unwrap_or(i64::MAX) + 1;
        let row = RunRow {
            run: RunKey(key),
            run_id: new.run_id.to_owned(),
            plan: new.plan.to_owned(),
            title: new.title.to_owned(),
            root: new.root.to_owned(),
            status: "pending".to_owned(),
            epoch: 1,
            seq: 0,
            created_at: new.at,
            updated_at: new.at,
            owner: Some(lease(owner, 1, new.at)),
        };
        shared.content.runs.push(Run { row: Some(row.clone()), ..Run::default() });
        Ok(row)
    }

    fn runs(&mut self) -> Result<Vec<RunRow>> {
        let shared = self.shared.borrow();
        Ok(shared.content.runs.iter().rev().filter_map(|r| r.row.clone()).collect())
    }

    fn run(&mut self, run_id: &str) -> Result<Option<RunRow>> {
        Ok(self.runs()?.into_iter().find(|r| r.run_id == run_id))
    }

    fn acquire(
        &mut self,
        run: RunKey,
        owner: &Owner,
        at: Millis,
        how: Acquire,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<Lease> {
        self.with(run, |run| {
            let row = row_of(run)?;
            if let (Acquire::IfFree, Some(held)) = (how, &row.owner) {
                let free = match alive(&held.owner) {
                    Liveness::Alive => false,
                    Liveness::Dead => true,
                    Liveness::Unknown => held.expires_at <= at,
                };
                if !free {
                    return Err(Error::Held { owner: held.owner.clone() });
                }
            }
            row.epoch += 1;
            let lease = lease(owner, row.epoch, at);
            row.owner = Some(lease.clone());
            Ok(lease)
        })
    }

    fn raise(&mut self, run: RunKey, epoch: u64, to: u64) -> Result<()> {
        self.with(run, |run| {
            let row = row_of(run)?;
            holds(row, epoch)?;
            row.epoch = to;
            if let Some(lease) = &mut row.owner {
                lease.epoch = to;
            }
            Ok(())
        })
    }

    fn heartbeat(&mut self, run: RunKey, epoch: u64, at: Millis) -> Result<()> {
        if self.shared.borrow().faults.no_fence {
            return Ok(());
        }
        self.with(run, |run| {
            let row = row_of(run)?;
            holds(row, epoch)?;
            row.updated_at = at;
            Ok(())
        })
    }

    fn release(&mut self, run: RunKey, epoch: u64, _at: Millis) -> Result<()> {
        self.with(run, |run| {
            let row = row_of(run)?;
            holds(row, epoch)?;
            row.owner = None;
            Ok(())
        })
    }

    fn append(&mut self, append: &Append<'_>) -> Result<u64> {
        let faults = self.shared.borrow().faults;
        let before = faults.not_durable.then(|| self.shared.borrow().content.clone());
        let seq = self.with(append.run, |run| {
            let row = run.row.as_mut().ok_or(Error::NoRun)?;
            if !faults.no_fence {
                holds(row, append.epoch)?;
                if row.seq != append.expected_seq {
                    let (expected, found) = (append.expected_seq, row.seq);
                    return Err(Error::Conflict { expected, found });
                }
            }
            for event in append.events {
                row.seq += 1;
                run.events.push(StoredEvent {
                    seq: row.seq,
                    at: event.at,
                    tag: event.tag.to_owned(),
                    version: event.version,
                    body: event.body.to_vec(),
                });
            }
            row.updated_at = append.at;
            if let Some(status) = append.status {
                status.clone_into(&mut row.status);
            }
            if append.release {
                row.owner = None;
            }
            let seq = row.seq;
            if let Some((apply_version, body)) = append.snapshot {
                run.snapshot = Some(Snapshot { seq, apply_version, body: body.to_vec() });
            }
            for (id, answer) in append.answered {
                let asked = run.requests.iter_mut().find(|r| r.id == *id);
                asked.ok_or(Error::UnknownRequest { id: *id })?.answered =
                    Some((*answer).to_owned());
            }
            Ok(seq)
        })?;
        self.shared.borrow_mut().before_last = before;
        Ok(seq)
    }

    fn events(&mut self, run: RunKey, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>> {
        let events: Vec<StoredEvent> = self.with(run, |run| {
            let after = run.events.iter().filter(|e| e.seq > after_seq);
            Ok(after.take(limit).cloned().collect())
        })?;
        Ok(self.recalled(events))
    }

    fn snapshot(&mut self, run: RunKey) -> Result<Option<Snapshot>> {
        if self.shared.borrow().faults.forgets.is_some() {
            return Ok(None);
        }
        self.with(run, |run| Ok(run.snapshot.clone()))
    }

    fn load(&mut self, run: RunKey) -> Result<(Option<Snapshot>, Vec<StoredEvent>)> {
        let snapshot = self.snapshot(run)?;
        let after = snapshot.as_ref().map_or(0, |s| s.seq);
        Ok((snapshot, self.events(run, after, usize::MAX)?))
    }

    fn put_blob(&mut self, hash: &str, body: &[u8]) -> Result<()> {
        let mut shared = self.shared.borrow_mut();
        shared.content.blobs.entry(hash.to_owned()).or_insert_with(|| body.to_vec());
        Ok(())
    }

    fn blob(&mut self, hash: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.shared.borrow().content.blobs.get(hash).cloned())
    }

    /// The engine never sweeps: nothing goes.
    fn sweep_blobs(
        &mut self,
        _keep: &[&str],
        _seen: &[(RunKey, u64)],
        _at: Millis,
        _alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<u64> {
        Ok(0)
    }

    fn request(&mut self, run: RunKey, new: &NewRequest<'_>) -> Result<i64> {
        let id = {
            let mut shared = self.shared.borrow_mut();
            shared.content.next_request += 1;
            shared.content.next_request
        };
        self.with(run, |run| {
            if let Some(known) = run.requests.iter().find(|r| r.key == new.key) {
                return Ok(known.id);
            }
            run.requests.push(Request {
                id,
                key: new.key.to_owned(),
                at: new.at,
                from: new.from.to_owned(),
                tag: new.tag.to_owned(),
                version: new.version,
                body: new.body.to_vec(),
                answered: None,
            });
            Ok(id)
        })
    }

    fn requests(&mut self, run: RunKey) -> Result<Vec<Request>> {
        self.with(run, |run| {
            Ok(run.requests.iter().filter(|r| r.answered.is_none()).cloned().collect())
        })
    }

    fn answer_of(&mut self, request_id: i64) -> Result<Option<String>> {
        let shared = self.shared.borrow();
        let mut all = shared.content.runs.iter().flat_map(|r| &r.requests);
        let found = all.find(|r| r.id == request_id);
        Ok(found.ok_or(Error::UnknownRequest { id: request_id })?.answered.clone())
    }

    fn changed(&mut self) -> Result<bool> {
        let version = Some(self.shared.borrow().content.version);
        Ok(std::mem::replace(&mut self.seen, version) != version)
    }

    fn delete_run(
        &mut self,
        run: RunKey,
        at: Millis,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<()> {
        self.with(run, |run| {
            let held = run.row.as_ref().and_then(|row| row.owner.as_ref());
            if let Some(lease) = held {
                let lives = match alive(&lease.owner) {
                    Liveness::Alive => true,
                    Liveness::Dead => false,
                    Liveness::Unknown => lease.expires_at > at,
                };
                if lives {
                    return Err(Error::Held { owner: lease.owner.clone() });
                }
            }
            *run = Run::default();
            Ok(())
        })
    }
}

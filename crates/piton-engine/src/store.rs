//! Runs in the ledger as states and events: loading and appending; asking is below.
//!
//! The ledger holds bytes; here they get their meaning. Loading starts from the cached state, if
//! this version of `apply` made it, and adds the events after it, so it does not grow with history.

use piton_core::agent_state::{Day, Spent};
use piton_core::event::Event;
use piton_core::hash::Sha;
use piton_core::summary::run_status;
use piton_core::{APPLY_VERSION, Plan, RunState, Timestamp, apply};
use piton_formats::codec;
use piton_ledger::{
    Acquire, Append, Lease, Ledger, Liveness, NewEvent, NewRun, Owner, RunKey, RunRow,
};

use crate::error::{Error, Result};

mod asking;

pub use asking::{Answer, Asked, describe};

/// Events between two cached states: loading decodes at most about so many.
const SNAPSHOT_EVERY: u64 = 256;
/// A cached state of a large plan is written less often: one event per so many steps.
const STEPS_PER_SNAPSHOT_EVENT: u64 = 4;
/// Events that are read before a takeover: a program must not append to what it can't read.
/// A few milliseconds; `piton doctor` reads them all.
const EVENTS_READ: u64 = 1024;
/// Events read in one query when a history is replayed.
const PAGE: usize = 4096;

/// A run as loaded.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its row.
    pub row: RunRow,
    /// Its state.
    pub state: RunState,
    /// Sequence of its last event.
    pub seq: u64,
}

/// The ledger with meaning.
pub struct Store {
    ledger: Box<dyn Ledger>,
    last_snapshot_seq: u64,
}

impl Store {
    /// Puts meaning onto a ledger.
    pub fn new(ledger: Box<dyn Ledger>) -> Self {
        Self { ledger, last_snapshot_seq: 0 }
    }

    /// The ledger below.
    pub fn ledger(&mut self) -> &mut dyn Ledger {
        self.ledger.as_mut()
    }

    /// All runs, the newest first.
    pub fn runs(&mut self) -> Result<Vec<RunRow>> {
        Ok(self.ledger.runs()?)
    }

    /// Loads a run by its id.
    pub fn load(&mut self, run_id: &str) -> Result<Loaded> {
        let row = self.ledger.run(run_id)?.ok_or_else(|| Error::NoRun(run_id.to_owned()))?;
        self.load_row(row)
    }

    /// Loads a run whose row is known.
    pub fn load_row(&mut self, row: RunRow) -> Result<Loaded> {
        let (snapshot, tail) = self.ledger.load(row.run)?;
        let has_cache = snapshot.is_some();
        let cached = snapshot
            .filter(|s| s.apply_version == APPLY_VERSION)
            // Checked for UTF-8 once, not again for each of its thousands of strings.
            .and_then(|s| Some((s.seq, serde_json::from_str(str::from_utf8(&s.body).ok()?).ok()?)));
        let from_start = has_cache && cached.is_none();
        let (mut seq, mut state) = cached.unwrap_or_default();
        self.last_snapshot_seq = seq;
        if from_start {
            // The cache was made by another version: replay all there is.
            loop {
                let page = self.ledger.events(row.run, seq, PAGE)?;
                if page.is_empty() {
                    break;
                }
                seq = replay(&row.run_id, &mut state, seq, &page)?;
            }
        } else {
            seq = replay(&row.run_id, &mut state, seq, &tail)?;
        }
        if seq == 0 {
            state = unbegun(&row);
        }
        Ok(Loaded { row, state, seq })
    }

    /// What other runs used on a day. A run that cannot be read, as one of a newer Piton, counts nothing.
    pub fn spent_elsewhere(&mut self, own: RunKey, day: i64) -> Result<Day> {
        let own_snapshot = self.last_snapshot_seq;
        let mut spent = Spent::default();
        let is_of_day = |row: &RunRow| Day::number_at(Timestamp(row.updated_at)) >= day;
        for row in self.runs()?.into_iter().filter(|row| row.run != own && is_of_day(row)) {
            if let Ok(loaded) = self.load_row(row)
                && loaded.state.used.day.number == day
            {
                spent.exchange(Spent::default(), loaded.state.used.day.spent);
            }
        }
        self.last_snapshot_seq = own_snapshot;
        Ok(Day { number: day, spent })
    }

    /// Takes the lease of a run whose last events can be read. Loading alone would not see them: the
    /// cached state stands for them.
    pub fn acquire(
        &mut self,
        row: &RunRow,
        owner: &Owner,
        at: Timestamp,
        how: Acquire,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<Lease> {
        self.events(row, row.seq.saturating_sub(EVENTS_READ))?;
        Ok(self.ledger.acquire(row.run, owner, at.0, how, alive)?)
    }

    /// Reads events after a sequence number.
    pub fn events(&mut self, row: &RunRow, after: u64) -> Result<Vec<(u64, Timestamp, Event)>> {
        let stored = self.ledger.events(row.run, after, PAGE)?;
        stored.iter().map(|e| decode(&row.run_id, e)).collect()
    }

    /// Calls `each` with every event after a sequence number; returns the last one seen.
    pub fn each_event(
        &mut self,
        row: &RunRow,
        mut after: u64,
        mut each: impl FnMut(u64, Timestamp, &Event),
    ) -> Result<u64> {
        loop {
            let page = self.events(row, after)?;
            let Some((last, ..)) = page.last() else { return Ok(after) };
            after = *last;
            for (seq, at, event) in &page {
                each(*seq, *at, event);
            }
        }
    }

    /// Reads all events of a run, from its first.
    pub fn history(&mut self, row: &RunRow) -> Result<Vec<(u64, Timestamp, Event)>> {
        let mut all = Vec::new();
        self.each_event(row, 0, |seq, at, event| all.push((seq, at, event.clone())))?;
        Ok(all)
    }

    /// Creates a run, keeps its plan, and returns it with a lease at epoch 1.
    pub fn create(&mut self, new: &NewRun<'_>, plan: &Plan, owner: &Owner) -> Result<RunRow> {
        // Before, so that no run is ever without; and again under the lease, because a plan that
        // no event names yet may have been swept away in between. A plan that is there costs a read.
        let (hash, body) = kept(plan);
        self.ledger.put_blob(&hash, &body)?;
        let row = self.ledger.create_run(new, owner)?;
        self.ledger.put_blob(&hash, &body)?;
        Ok(row)
    }

    /// Deletes the plans that no run refers to any more, unless a run is driven or can't be read;
    /// says how many there were.
    pub fn sweep_plans(
        &mut self,
        at: Timestamp,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<u64> {
        let (mut used, mut seen) = (Vec::new(), Vec::new());
        for row in self.runs()? {
            let loaded = self.load_row(row)?;
            seen.push((loaded.row.run, loaded.seq));
            let before = loaded.state.undo.iter().filter_map(|act| act.plan.as_ref());
            used.extend(before.map(|plan| plan.hash.0.clone()));
            used.extend(loaded.state.plan_hash.map(|hash| hash.0));
        }
        let used: Vec<&str> = used.iter().map(String::as_str).collect();
        Ok(self.ledger.sweep_blobs(&used, &seen, at.0, alive)?)
    }

    /// Keeps a plan under its hash.
    pub fn keep_plan(&mut self, plan: &Plan) -> Result<()> {
        let (hash, body) = kept(plan);
        Ok(self.ledger.put_blob(&hash, &body)?)
    }

    /// The plan a run was last driven with.
    pub fn plan(&mut self, state: &RunState) -> Result<Plan> {
        let run_id = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
        let hash = state.plan_hash.clone().ok_or_else(|| Error::NoPlan(run_id.clone()))?;
        let body = self.ledger.blob(&hash.0)?.filter(|body| Sha::of(body) == hash);
        let body = body.ok_or_else(|| Error::NoPlan(run_id.clone()))?;
        codec::decode_plan(&body)
            .map_err(|source| Error::Codec { place: format!("run {run_id}"), source })
    }

    /// Appends events that were already applied to `state`, in one commit.
    pub fn append(&mut self, commit: &Commit<'_>) -> Result<u64> {
        let encoded: Vec<codec::Encoded> = commit.events.iter().map(codec::encode).collect();
        let events: Vec<NewEvent<'_>> = encoded
            .iter()
            .map(|e| NewEvent { at: commit.at.0, tag: e.tag, version: e.version, body: &e.body })
            .collect();
        let next = commit.expected_seq + events.len() as u64;
        let state = commit.state;
        let body = (commit.release || self.snapshot_due(next, state))
            .then(|| serde_json::to_vec(state).unwrap_or_default())
            .filter(|body| !body.is_empty());
        let status = commit.release.then(|| run_status(state, false).as_str());
        let seq = self.ledger.append(&Append {
            run: commit.row.run,
            epoch: commit.epoch,
            expected_seq: commit.expected_seq,
            at: commit.at.0,
            events: &events,
            status,
            snapshot: body.as_deref().map(|b| (APPLY_VERSION, b)),
            answered: commit.answered,
            release: commit.release,
        })?;
        if body.is_some() {
            self.last_snapshot_seq = seq;
        }
        Ok(seq)
    }

    fn snapshot_due(&self, next: u64, state: &RunState) -> bool {
        let steps: usize = state.phases.iter().flat_map(|p| &p.lanes).map(|l| l.steps.len()).sum();
        let every = SNAPSHOT_EVERY.max(steps as u64 / STEPS_PER_SNAPSHOT_EVENT);
        next >= self.last_snapshot_seq + every
    }
}

/// One commit: events that follow each other, and the state after them.
pub struct Commit<'a> {
    /// The run.
    pub row: &'a RunRow,
    /// The epoch of the lease.
    pub epoch: u64,
    /// The sequence the events follow.
    pub expected_seq: u64,
    /// When.
    pub at: Timestamp,
    /// The events.
    pub events: &'a [Event],
    /// The state after them.
    pub state: &'a RunState,
    /// Requests answered by them.
    pub answered: &'a [(i64, &'a str)],
    /// Whether the lease is given up with them.
    pub release: bool,
}

/// A plan as it is kept: under which name, and its bytes.
fn kept(plan: &Plan) -> (String, Vec<u8>) {
    let body = serde_json::to_vec(plan).unwrap_or_default();
    // The plan's hash is that of these bytes.
    (Sha::of(&body).0, body)
}

/// A run whose creator died before its first event, according to its row. It has no id of its own
/// yet: the event that creates it still fits.
fn unbegun(row: &RunRow) -> RunState {
    RunState {
        title: row.title.clone(),
        plan_path: row.plan.clone(),
        root: row.root.clone(),
        created_at: Timestamp(row.created_at),
        last_at: Timestamp(row.updated_at),
        ..RunState::default()
    }
}

fn replay(
    run_id: &str,
    state: &mut RunState,
    mut last: u64,
    stored: &[piton_ledger::StoredEvent],
) -> Result<u64> {
    for stored in stored {
        let (seq, at, event) = decode(run_id, stored)?;
        if seq != last + 1 {
            return Err(Error::Gap { run_id: run_id.to_owned(), seq: last + 1 });
        }
        apply(state, at, &event).map_err(|source| illegal(run_id, seq, source))?;
        last = seq;
    }
    Ok(last)
}

pub(crate) fn illegal(run_id: &str, seq: u64, source: piton_core::Illegal) -> Error {
    Error::Illegal { run_id: run_id.to_owned(), seq, source: Box::new(source) }
}

fn decode(run_id: &str, e: &piton_ledger::StoredEvent) -> Result<(u64, Timestamp, Event)> {
    let event = codec::decode(&e.tag, e.version, &e.body).map_err(|source| Error::Codec {
        place: format!("run {run_id}, event {}", e.seq),
        source,
    })?;
    Ok((e.seq, Timestamp(e.at), event))
}

//! What outlives a driver: clock, keeper with its journal, files.
//!
//! The simulated keeper has no safety of its own against starting an attempt twice: it does what a
//! driver of the highest epoch says and writes it down, so that a mistake of the engine is seen. It
//! knows nothing of logs, process trees and strays.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use piton_core::event::LogRanges;
use piton_core::{Millis, Timestamp};
use piton_engine::order::Order;
use piton_engine::world::{Attempt, Cause, Ended, Found, Happening, Notice};

use crate::repo::{SimRepo, place};
use crate::script::{Behaviour, Script};

mod agents;
mod files;
mod repository;

pub(crate) use agents::Listened;
use files::SimFile;

/// Waits after which a run is taken to never end; scenarios need some hundreds.
const WAITS_MAX: u32 = 20_000;
/// `SIGTERM`, by which the keeper ends a step.
const SIGTERM: i32 = 15;

/// Something that was done to the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A process was started.
    Started {
        /// For which attempt.
        attempt: Attempt,
        /// By the driver of which epoch.
        epoch: u64,
    },
    /// It ended by itself.
    Completed {
        /// Which attempt.
        attempt: Attempt,
        /// Its exit code.
        code: i32,
    },
    /// It was ended by a driver, or fell with its keeper or machine.
    Killed {
        /// Which attempt.
        attempt: Attempt,
    },
    /// The person was notified.
    Notified(Notice),
}

/// Mechanisms of keeper and disk that a test can switch off.
#[expect(clippy::struct_excessive_bools, reason = "each is a mechanism of its own")]
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    /// The keeper refuses drivers of lower epochs.
    pub keeper_fence: bool,
    /// Refs move only for the driver of the newest epoch.
    pub ref_fence: bool,
    /// The keeper keeps an exit until its record is acknowledged.
    pub keep_exits: bool,
    /// Sealing makes artifacts durable.
    pub seal_syncs: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self { keeper_fence: true, ref_fence: true, keep_exits: true, seal_syncs: true }
    }
}

/// A driver of a lower epoch than the keeper's came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

#[derive(Clone, Debug)]
enum Entry {
    Running {
        behaviour: Box<Behaviour>,
        workspace: String,
        since: Timestamp,
        ends_at: Timestamp,
        cause: Cause,
    },
    Ended {
        ended: Box<Ended>,
        reported: u64,
    },
    CouldNotStart {
        error: String,
    },
    Fallen,
    Acknowledged,
}

/// The machine that drivers come and go on.
#[derive(Clone, Debug)]
pub struct SimMachine {
    /// The time.
    pub now: Timestamp,
    /// The commit that is checked out.
    pub head: Option<String>,
    /// What the steps do.
    pub script: Script,
    /// Mechanisms that are on.
    pub switches: Switches,
    /// When the machine sleeps next, and for how long.
    sleep: Option<(Timestamp, Millis)>,
    /// How long it has slept.
    pub(crate) asleep: Millis,
    /// Files that are there and can't be read.
    pub unreadable: BTreeSet<String>,
    /// Files that take long to hash, and how long.
    pub large: BTreeMap<String, Millis>,
    /// Everything done so far.
    pub log: Vec<Effect>,
    /// The plans that the file of the plan may hold, by its text.
    pub plans: crate::replans::Texts,
    /// The repository, where there is one.
    pub repo: Option<SimRepo>,
    files: BTreeMap<String, SimFile>,
    epoch: u64,
    keeper: bool,
    journal: Option<BTreeMap<Attempt, Entry>>,
    signals: VecDeque<(Timestamp, i32)>,
    waits: u32,
    /// Attempts whose agents were asked to stop.
    stopped: BTreeSet<Attempt>,
}

impl SimMachine {
    /// A machine with nothing on it.
    pub fn new(script: Script) -> Self {
        Self {
            now: Timestamp(1_700_000_000_000),
            head: Some("c0ffee00c0ffee00".to_owned()),
            script,
            switches: Switches::default(),
            sleep: None,
            asleep: Millis(0),
            unreadable: BTreeSet::new(),
            large: BTreeMap::new(),
            log: Vec::new(),
            plans: crate::replans::Texts::new(),
            repo: None,
            files: BTreeMap::new(),
            epoch: 0,
            keeper: false,
            journal: None,
            signals: VecDeque::new(),
            waits: 0,
            stopped: BTreeSet::new(),
        }
    }

    /// A signal for the driver, at a time.
    pub fn signal_at(&mut self, at: Timestamp, signal: i32) {
        self.signals.push_back((at, signal));
    }

    fn fall_asleep(&mut self) {
        let Some((_, length)) = self.sleep.take_if(|(at, _)| *at <= self.now) else { return };
        self.now = self.now.after(length);
        self.asleep.0 += length.0;
        for entry in self.journal.iter_mut().flat_map(|journal| journal.values_mut()) {
            if let Entry::Running { ends_at, .. } = entry {
                *ends_at = ends_at.after(length);
            }
        }
    }

    /// Lets the machine sleep at a time, with all that runs on it.
    pub fn sleep_at(&mut self, at: Timestamp, length: Millis) {
        self.sleep = Some((at, length));
    }

    /// Lets time pass without a driver.
    pub fn pass(&mut self, length: Millis) {
        self.now = self.now.after(length);
        self.end_due();
    }

    /// The keeper dies with all it holds; its journal stays.
    pub fn crash_keeper(&mut self) {
        if !std::mem::take(&mut self.keeper) {
            return;
        }
        let running = self.running();
        for attempt in running {
            self.log.push(Effect::Killed { attempt: attempt.clone() });
            self.set(attempt, Entry::Fallen);
        }
    }

    /// The machine loses power: what is not durable is gone, and so is every process.
    pub fn power_cut(&mut self) {
        self.crash_keeper();
        self.journal = None;
        self.signals.clear();
        for file in self.files.values_mut() {
            file.bytes.clone_from(&file.durable);
        }
    }

    /// The attempts at work.
    pub fn running(&self) -> Vec<Attempt> {
        let entries = self.journal.iter().flatten();
        entries
            .filter(|(_, entry)| matches!(entry, Entry::Running { .. }))
            .map(|(attempt, _)| attempt.clone())
            .collect()
    }

    /// Whether a keeper is there.
    pub fn keeper_lives(&self) -> bool {
        self.keeper
    }

    fn set(&mut self, attempt: Attempt, entry: Entry) {
        self.journal.get_or_insert_default().insert(attempt, entry);
    }

    pub(crate) fn fence(&mut self, epoch: u64) -> Result<(), Stale> {
        if self.switches.keeper_fence && epoch < self.epoch {
            return Err(Stale);
        }
        self.epoch = self.epoch.max(epoch);
        Ok(())
    }

    pub(crate) fn attach(
        &mut self,
        epoch: u64,
        in_flight: &[Attempt],
    ) -> Result<Vec<(Attempt, Found)>, Stale> {
        self.fence(epoch)?;
        self.end_due();
        Ok(in_flight.iter().map(|a| (a.clone(), self.found(epoch, a))).collect())
    }

    fn found(&mut self, epoch: u64, attempt: &Attempt) -> Found {
        let Some(journal) = &mut self.journal else {
            return Found::Lost("the machine was restarted, or its keeper never was".to_owned());
        };
        match journal.get_mut(attempt) {
            None | Some(Entry::CouldNotStart { .. }) => Found::NotStarted,
            Some(Entry::Running { .. }) => Found::Running,
            Some(Entry::Ended { ended, reported }) => {
                *reported = epoch;
                Found::Ended(ended.clone())
            }
            Some(Entry::Fallen) => Found::Lost("its keeper died".to_owned()),
            Some(Entry::Acknowledged) => {
                Found::Lost("its outcome was acknowledged, but is not recorded".to_owned())
            }
        }
    }

    pub(crate) fn start(&mut self, epoch: u64, order: &Order) -> Result<(), Stale> {
        self.fence(epoch)?;
        if !self.keeper {
            // A new keeper begins a new journal: what the old one kept must be recorded by now.
            self.keeper = true;
            self.journal = Some(BTreeMap::new());
        }
        let attempt = order.attempt.clone();
        // The record of what is acknowledged is of no use once the step starts anew.
        if let Some(journal) = &mut self.journal {
            journal.retain(|known, entry| {
                known.step != attempt.step || !matches!(entry, Entry::Acknowledged)
            });
        }
        let behaviour = self.script.of(&attempt.step, attempt.number);
        if let Some(error) = &behaviour.cannot_start {
            let entry = Entry::CouldNotStart { error: error.clone() };
            self.set(attempt, entry);
            return Ok(());
        }
        self.log.push(Effect::Started { attempt: attempt.clone(), epoch });
        let limit = Millis(order.timeout_ms);
        let (length, cause) = if behaviour.duration > limit {
            (limit, Cause::Timeout)
        } else {
            (behaviour.duration, Cause::Exited)
        };
        let (since, ends_at, workspace) =
            (self.now, self.now.after(length), order.workspace.clone());
        self.write(&workspace, &behaviour.begins, attempt.number, self.now);
        let behaviour = Box::new(behaviour);
        self.set(attempt, Entry::Running { behaviour, workspace, since, ends_at, cause });
        Ok(())
    }

    pub(crate) fn acknowledge(&mut self, epoch: u64, attempts: &[Attempt]) -> Result<(), Stale> {
        self.fence(epoch)?;
        // A keeper that is gone hears nothing.
        for attempt in attempts.iter().filter(|_| self.keeper) {
            let journal = self.journal.get_or_insert_default();
            journal.insert(attempt.clone(), Entry::Acknowledged);
        }
        Ok(())
    }

    pub(crate) fn end_all(&mut self, epoch: u64) -> Result<(), Stale> {
        self.fence(epoch)?;
        for attempt in self.running() {
            self.end(&attempt, self.now, Cause::Ended);
        }
        Ok(())
    }

    pub(crate) fn end_one(&mut self, epoch: u64, attempt: &Attempt) -> Result<(), Stale> {
        self.fence(epoch)?;
        self.end(attempt, self.now, Cause::Ended);
        Ok(())
    }

    pub(crate) fn leave(&mut self, epoch: u64) -> Result<(), Stale> {
        self.fence(epoch)?;
        self.crash_keeper();
        Ok(())
    }

    /// Ends what has run its time.
    fn end_due(&mut self) {
        let entries = self.journal.iter().flatten();
        let mut over: Vec<(Timestamp, Attempt, Cause)> = entries
            .filter_map(|(attempt, entry)| match entry {
                Entry::Running { ends_at, cause, .. } if *ends_at <= self.now => {
                    Some((*ends_at, attempt.clone(), *cause))
                }
                _ => None,
            })
            .collect();
        over.sort_by_key(|(at, _, _)| *at);
        for (at, attempt, cause) in over {
            self.end(&attempt, at, cause);
        }
    }

    fn end(&mut self, attempt: &Attempt, at: Timestamp, cause: Cause) {
        let Some(Entry::Running { mut behaviour, workspace, since, .. }) =
            self.journal.as_ref().and_then(|j| j.get(attempt)).cloned()
        else {
            return;
        };
        let exited = cause == Cause::Exited;
        if exited {
            let found = SimRepo::tree_id(&self.tree(&workspace));
            self.write(&workspace, &behaviour.writes, attempt.number, at);
            if let Some((path, text)) = &behaviour.breaks_on
                && self.text(&place(&workspace, path)).is_some_and(|found| found.contains(text))
            {
                behaviour.code = 1;
            }
            let left = SimRepo::tree_id(&self.tree(&workspace));
            if let (0, Some(repo)) = (behaviour.code, &mut self.repo) {
                repo.passed.push((attempt.clone(), found, left));
            }
            let (attempt, code) = (attempt.clone(), behaviour.code);
            self.log.push(Effect::Completed { attempt, code });
        } else {
            self.log.push(Effect::Killed { attempt: attempt.clone() });
        }
        let ended = Ended {
            attempt: attempt.clone(),
            part: behaviour.part,
            part_began: Some(0),
            code: (exited && behaviour.signal.is_none()).then_some(behaviour.code),
            signal: if exited { behaviour.signal } else { Some(SIGTERM) },
            cause,
            error: None,
            at,
            duration: at.since(since),
            logs: LogRanges { stdout: (0, behaviour.log_bytes), ..LogRanges::default() },
        };
        self.set(attempt.clone(), Entry::Ended { ended: Box::new(ended), reported: 0 });
    }

    /// Waits until something happens; time jumps there.
    pub(crate) fn wait(&mut self, epoch: u64, until: Timestamp) -> Option<Vec<Happening>> {
        self.waits += 1;
        if self.waits > WAITS_MAX {
            return None;
        }
        if self.switches.keeper_fence && self.keeper && epoch < self.epoch {
            return Some(vec![Happening::Fenced]);
        }
        let next = self.news(epoch);
        if !next.is_empty() {
            return Some(next);
        }
        let ends = self.journal.iter().flatten().filter_map(|(_, entry)| match entry {
            Entry::Running { ends_at, .. } => Some(*ends_at),
            _ => None,
        });
        let wake = ends.chain(self.signals.iter().map(|(at, _)| *at)).min();
        let wake = wake.map_or(until, |w| w.min(until));
        self.now = self.now.max(wake);
        self.fall_asleep();
        self.end_due();
        Some(self.news(epoch))
    }

    fn news(&mut self, epoch: u64) -> Vec<Happening> {
        let mut news = Vec::new();
        let keep = self.switches.keep_exits;
        let mut forgotten = Vec::new();
        for (attempt, entry) in self.journal.iter_mut().flatten() {
            match entry {
                Entry::Ended { ended, reported } if *reported != epoch => {
                    *reported = epoch;
                    news.push(Happening::Ended(ended.clone()));
                    forgotten.extend((!keep).then(|| attempt.clone()));
                }
                Entry::CouldNotStart { error } => {
                    let (attempt, error) = (attempt.clone(), error.clone());
                    forgotten.push(attempt.clone());
                    news.push(Happening::NotStarted { attempt, error, no_such_program: true });
                }
                _ => {}
            }
        }
        for attempt in forgotten {
            self.set(attempt, Entry::Acknowledged);
        }
        while self.signals.front().is_some_and(|(at, _)| *at <= self.now) {
            news.extend(self.signals.pop_front().map(|(_, s)| Happening::Signal(s)));
        }
        news
    }
}

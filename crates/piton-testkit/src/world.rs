//! One driver's view of a [`SimMachine`].
//!
//! Actions pass the driver's [`CrashPoint`] one by one (each start of a batch is its own action);
//! observations only fail once the driver fell.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use piton_core::event::{Facts, FileHash};
use piton_core::evidence::Files;
use piton_core::redact::{Lines, Redactor};
use piton_core::{Millis, StepPath, Timestamp};
use piton_engine::order::Order;
use piton_engine::world::{
    Attached, Attempt, Ended, Happening, Hashing, Judged, Notice, Plans, Reported, SealError,
    Views, Workspaces,
};
use piton_engine::{Error, Result, World};

use crate::crash::{CrashPoint, Fallen, fell};
use crate::machine::{Effect, Listened, SimMachine, Stale};
use crate::replans::SimPlans;
use crate::repo::place;
use crate::script::Behaviour;
use crate::workspaces::SimWorkspaces;

/// A driver's world.
pub struct SimWorld {
    machine: Rc<RefCell<SimMachine>>,
    crash: CrashPoint,
    epoch: u64,
    connected: bool,
    workspaces: SimWorkspaces,
    plans: SimPlans,
    /// When files that take long will be hashed.
    hashing: BTreeMap<(String, Vec<String>), Timestamp>,
    /// What this driver has heard of agents.
    listened: Listened,
}

impl SimWorld {
    /// The world of a new driver on a machine.
    pub fn new(machine: &Rc<RefCell<SimMachine>>, crash: &CrashPoint) -> Self {
        let workspaces = SimWorkspaces::new(machine, crash);
        Self {
            machine: Rc::clone(machine),
            crash: crash.clone(),
            epoch: 0,
            connected: false,
            workspaces,
            plans: SimPlans::new(machine, crash),
            hashing: BTreeMap::new(),
            listened: Listened::new(),
        }
    }

    fn act<T>(
        &self,
        name: &str,
        act: impl FnOnce(&mut SimMachine) -> Result<T, Stale>,
    ) -> Result<T> {
        let done = self.crash.around(name, || act(&mut self.machine.borrow_mut()));
        done.map_err(fell)?.map_err(|Stale| Error::TakenOver)
    }

    fn behaviour(&self, step: &StepPath, attempt: u32) -> Behaviour {
        self.machine.borrow().script.of(step, attempt)
    }
}

impl World for SimWorld {
    fn now(&mut self) -> Timestamp {
        self.machine.borrow().now
    }

    fn awake(&mut self) -> Millis {
        let machine = self.machine.borrow();
        Millis(machine.now.0.unsigned_abs().saturating_sub(machine.asleep.0))
    }

    fn files(&mut self, paths: &[String]) -> Result<Files> {
        self.crash.check().map_err(fell)?;
        let machine = self.machine.borrow();
        Ok(paths.iter().map(|path| (path.clone(), machine.hash(path))).collect())
    }

    fn changed_after(&mut self, dir: &str, path: &str, at: Timestamp) -> bool {
        self.machine.borrow().changed_after(&place(dir, path), at)
    }

    fn paths(&mut self, dir: &str, patterns: &[String]) -> Result<Vec<String>> {
        self.crash.check().map_err(fell)?;
        let machine = self.machine.borrow();
        let found = patterns.iter().flat_map(|pattern| machine.matching(dir, pattern));
        Ok(found.map(|file| file.path).collect())
    }

    fn hashed(&mut self, dir: &str, patterns: &[String]) -> Option<Hashing> {
        let machine = self.machine.borrow();
        let files = patterns.iter().flat_map(|pattern| machine.matching(dir, pattern));
        let long = files.filter_map(|file| machine.large.get(&file.path)).max()?;
        let key = (dir.to_owned(), patterns.to_vec());
        let until = *self.hashing.entry(key.clone()).or_insert(machine.now.after(*long));
        if until <= machine.now {
            self.hashing.remove(&key);
            return None;
        }
        Some(Hashing { done: 0, of: 1 })
    }

    fn inputs(&mut self, dir: &str, patterns: &[String]) -> Result<Vec<FileHash>> {
        self.crash.check().map_err(fell)?;
        let machine = self.machine.borrow();
        let seen: Vec<FileHash> =
            patterns.iter().flat_map(|pattern| machine.matching(dir, pattern)).collect();
        match seen.iter().find(|file| machine.unreadable.contains(&file.path)) {
            Some(file) => Err(Error::world(format!("{}: permission denied", file.path))),
            None => Ok(seen),
        }
    }

    fn head(&mut self) -> Option<String> {
        self.machine.borrow().head.clone()
    }

    fn tail(&mut self, ended: &Ended, lines: usize, redactor: &Redactor) -> Vec<String> {
        let output = self.behaviour(&ended.attempt.step, ended.attempt.number).output;
        let from = output.len().saturating_sub(lines);
        let mut stream = Lines::default();
        let clean = output.iter().map(|line| stream.next(redactor, line, false).into_owned());
        clean.skip(from).collect()
    }

    fn answer(&mut self, ended: &Ended, redactor: &Redactor) -> Option<String> {
        let lines = self.tail(ended, usize::MAX, redactor);
        lines.into_iter().rev().find(|line| !line.trim().is_empty())
    }

    fn reported(&mut self, attempt: &Attempt) -> Reported {
        let behaviour = self.behaviour(&attempt.step, attempt.number);
        let facts = Facts {
            tokens: behaviour.tokens,
            money_micros: behaviour.money_micros,
            notes: Vec::new(),
        };
        Reported { facts, ..Reported::default() }
    }

    fn attach(&mut self, epoch: u64, _mark: &str, in_flight: &[Attempt]) -> Result<Attached> {
        self.epoch = epoch;
        let found = self.act("attach", |machine| machine.attach(epoch, in_flight))?;
        self.connected = self.machine.borrow().keeper_lives();
        Ok(Attached { found, ..Attached::default() })
    }

    fn start(&mut self, orders: Vec<Order>) -> Result<()> {
        for order in orders {
            let name = format!("start {}", order.attempt);
            let (connected, epoch) = (self.connected, self.epoch);
            self.act(&name, |machine| {
                if connected && !machine.keeper_lives() {
                    // The connection broke: nothing arrives, and the next wait says so.
                    return Ok(());
                }
                machine.start(epoch, &order)
            })?;
            self.connected = true;
        }
        Ok(())
    }

    fn judged(&mut self, ended: &Ended) -> Option<Judged> {
        self.machine.borrow().judged(ended)
    }

    fn stop_agent(&mut self, attempt: &Attempt) -> Result<()> {
        self.act("stop agent", |machine| machine.stop_agent(self.epoch, attempt))
    }

    fn acknowledge(&mut self, attempts: &[Attempt]) -> Result<()> {
        self.act("acknowledge", |machine| machine.acknowledge(self.epoch, attempts))
    }

    fn end(&mut self, attempt: &Attempt) -> Result<()> {
        self.act("end", |machine| machine.end_one(self.epoch, attempt))
    }

    fn end_all(&mut self) -> Result<()> {
        self.act("end all", |machine| machine.end_all(self.epoch))
    }

    fn seal(&mut self, dir: &str, patterns: &[String]) -> Result<Vec<FileHash>, SealError> {
        let sealed = self.crash.around("seal", || self.machine.borrow_mut().seal(dir, patterns));
        sealed.map_err(|Fallen| SealError::Failed("crash".to_owned()))?
    }

    fn notify(&mut self, notice: &Notice) -> Result<()> {
        self.act("notify", |machine| {
            machine.fence(self.epoch)?;
            machine.log.push(Effect::Notified(notice.clone()));
            Ok(())
        })
    }

    fn leave(&mut self) -> Result<Vec<String>> {
        self.act("leave", |machine| machine.leave(self.epoch))?;
        Ok(Vec::new())
    }

    fn workspaces(&mut self) -> Option<&mut dyn Workspaces> {
        let there = self.machine.borrow().repo.is_some();
        if there { Some(&mut self.workspaces) } else { None }
    }

    fn plans(&mut self) -> Option<&mut dyn Plans> {
        let there = !self.machine.borrow().plans.is_empty();
        if there { Some(&mut self.plans) } else { None }
    }

    fn views(&mut self) -> Option<&mut dyn Views> {
        let there = self.machine.borrow().repo.is_some();
        if there { Some(&mut self.workspaces) } else { None }
    }

    fn wait(&mut self, until: Timestamp) -> Result<Vec<Happening>> {
        self.crash.check().map_err(fell)?;
        if self.connected && !self.machine.borrow().keeper_lives() {
            self.connected = false;
            return Ok(vec![Happening::KeeperGone]);
        }
        let word = self.machine.borrow().next_word(&self.listened);
        let until = word.map_or(until, |word| word.min(until));
        let news = self.machine.borrow_mut().wait(self.epoch, until);
        let mut heard = self.machine.borrow().listen(&mut self.listened);
        heard.extend(news.ok_or_else(|| Error::world("the run does not end"))?);
        Ok(heard)
    }
}

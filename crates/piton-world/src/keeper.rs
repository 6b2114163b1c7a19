//! The driver's side of the keeper: attach, start, follow, let go.
//!
//! A new keeper is started only with the first order of a driver, never while attaching: it begins
//! a new journal, and the old one must be recorded in the ledger before that.

mod ended;
mod notify;
mod starting;
mod stillness;

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use piton_engine::world::{Attached, Attempt, Cause, Found, Happening};
use piton_engine::{Error, Result};
use piton_process::journal::{Fact, Journal};
use piton_process::protocol::{Event, Request, State};
use piton_process::{Keeper, Tether, cgroup, strays};

use self::ended::{ended_of, was_asked_to_end};
use self::stillness::{Stillness, stopped};
use super::run_lock::RunLock;
use super::{Inherited, Running, Signals, failed, scratch};
use crate::refusals;

/// Longest wait for the keeper's last word; it ends what steps left behind before it speaks.
const LEAVE_WAIT: Duration = Duration::from_secs(30);
/// Longest wait for the answer to a probe.
const PROBE_WAIT: Duration = Duration::from_secs(20);
/// The longest wait between two looks for a signal.
const SLICE: Duration = Duration::from_millis(100);
/// `SIGINT`, where a signal came and which one it was is reported elsewhere.
const SIGINT: i32 = 2;
/// Keepers that may die while attaching before that is an error of its own.
const ATTACH_TRIES: u32 = 3;
/// The file that is locked while a keeper is started.
const STARTING_FILE: &str = "starting";
/// The epoch of the driver that creates a run.
const FIRST_EPOCH: u64 = 1;

/// Says whether a signal came: the driver then waits for the keeper no longer.
pub type Stop<'a> = &'a mut dyn FnMut() -> bool;

/// The connection to a run's keeper, if there is one.
pub struct Connection {
    dir: PathBuf,
    /// Held while a keeper is started: a driver that is stopped in the midst of that, after it was
    /// found to be the last, would go on with it when another has the run.
    starting: RunLock,
    keeper: Option<Keeper>,
    epoch: u64,
    mark: String,
    queue: Vec<Request>,
    scratch: Option<PathBuf>,
    /// The scratch folders of former drivers.
    former: Vec<PathBuf>,
    lost: bool,
    stash: Vec<Event>,
    /// Attempts that were started and have not ended, as far as this driver knows.
    in_flight: usize,
    /// The attempt that the keeper has made ready.
    prepared: Option<Attempt>,
    /// Whether all steps are to end.
    ending: bool,
    stillness: Stillness,
    /// Keeps this driver where its keeper is while short steps follow each other.
    tether: Tether,
    /// Programs that steps may leave running.
    pub keep: Vec<String>,
    inherited: Inherited,
}

impl Connection {
    pub fn new(dir: PathBuf, inherited: Inherited) -> Self {
        Self {
            starting: RunLock::new(dir.join(STARTING_FILE), FIRST_EPOCH),
            dir,
            keeper: None,
            epoch: 0,
            mark: String::new(),
            queue: Vec::new(),
            scratch: None,
            former: Vec::new(),
            lost: false,
            stash: Vec::new(),
            in_flight: 0,
            prepared: None,
            ending: false,
            stillness: Stillness::default(),
            tether: Tether::default(),
            keep: Vec::new(),
            inherited,
        }
    }

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.keeper.as_ref().map(Keeper::fd)
    }

    /// The mark of the run's processes; empty before the driver attached.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Finds what became of attempts, ends what nobody holds.
    pub fn attach(
        &mut self,
        epoch: u64,
        mark: &str,
        in_flight: &[Attempt],
        running: &Running,
        stop: Stop<'_>,
    ) -> Result<Attached> {
        // Nothing of a run can live before its first driver came; that no keeper ever was alone does
        // not say that, for somebody may have deleted the folder.
        let unkept = !piton_process::had_keeper(&self.dir);
        let fresh = epoch == FIRST_EPOCH && in_flight.is_empty() && unkept;
        scratch::make_private(&self.dir).map_err(failed)?;
        self.starting.take_over(epoch)?;
        self.epoch = epoch;
        self.former = scratch::folders(&self.dir).into_iter().map(|(_, folder)| folder).collect();
        mark.clone_into(&mut self.mark);
        self.lost = false;
        self.queue.clear();
        self.stash.clear();
        self.prepared = None;
        self.ending = false;
        for _ in 0..ATTACH_TRIES {
            if let Some(attached) = self.attach_once(fresh, in_flight, running, stop)? {
                let runs = |(_, found): &&(_, Found)| matches!(found, Found::Running);
                self.in_flight = attached.found.iter().filter(runs).count();
                return Ok(attached);
            }
        }
        Err(Error::World(refusals::keepers_die()))
    }

    /// Asks the keeper or reads its journal once; nothing if the keeper died in the meantime.
    fn attach_once(
        &mut self,
        fresh: bool,
        in_flight: &[Attempt],
        running: &Running,
        stop: Stop<'_>,
    ) -> Result<Option<Attached>> {
        let epoch = self.epoch;
        self.keeper =
            Keeper::connect_unless(&self.dir, epoch, &self.inherited.for_children(), stop)
                .map_err(taken_or_failed)?;
        let mut attached = Attached::default();
        if self.keeper.is_some() {
            if !self.probe(in_flight, &mut attached, running, stop)? {
                return Ok(None);
            }
        } else {
            let facts = Journal::read(&self.dir).map_err(failed)?;
            let ended = strays::end_recorded(&facts);
            attached.strays.extend(ended.iter().map(|pid| format!("process {pid}")));
            for attempt in in_flight {
                let found = match facts.fact(&attempt.to_string()) {
                    Fact::NotStarted => Found::NotStarted,
                    Fact::Finished(exit) => {
                        let mut ended = ended_of(attempt, &exit);
                        if was_asked_to_end(&ended) {
                            ended.cause = Cause::Ended;
                        }
                        Found::Ended(Box::new(ended))
                    }
                    Fact::Lost => {
                        Found::Lost("the machine was restarted, or its keeper never was".to_owned())
                    }
                    Fact::Maybe | Fact::Started { .. } => {
                        attached.keeper_died = true;
                        Found::Lost("its keeper died".to_owned())
                    }
                };
                attached.found.push((attempt.clone(), found));
            }
        }
        if !fresh {
            self.end_strays(&mut attached)?;
            cgroup::tidy(&self.dir);
        }
        Ok(Some(attached))
    }

    /// Ends what earlier attempts of a step left running: it may hold the session that the next one
    /// continues, or write the same files.
    pub(crate) fn end_left_before(&self, attempt: &Attempt) -> Result<()> {
        let is_earlier = |stray: &strays::Stray| {
            let key = stray.key.as_deref().and_then(|key| key.parse::<Attempt>().ok());
            key.is_some_and(|left| left.step == attempt.step && left.number < attempt.number)
        };
        let mut left = strays::find(&self.mark, None, &self.keep);
        left.retain(is_earlier);
        let stubborn = strays::end(&left);
        let names: Vec<String> =
            stubborn.iter().map(|s| format!("{} ({})", s.name, s.pid)).collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(Error::World(refusals::processes_left(&names.join(", "))))
    }

    fn end_strays(&self, attached: &mut Attached) -> Result<()> {
        let keeper = self.keeper.as_ref().map(|k| k.welcome().pid);
        let found = strays::sweep(&self.mark, keeper, &self.keep).map_err(|stubborn| {
            let names: Vec<String> =
                stubborn.iter().map(|s| format!("{} ({})", s.name, s.pid)).collect();
            Error::World(refusals::processes_left(&names.join(", ")))
        })?;
        attached.strays.extend(found.iter().map(|s| format!("{} ({})", s.name, s.pid)));
        Ok(())
    }

    fn probe(
        &mut self,
        in_flight: &[Attempt],
        attached: &mut Attached,
        running: &Running,
        stop: Stop<'_>,
    ) -> Result<bool> {
        let Some(keeper) = &mut self.keeper else {
            return Ok(false);
        };
        let welcome = keeper.welcome().clone();
        for child in &welcome.children {
            if let Ok(attempt) = child.key.parse::<Attempt>() {
                let starts = (child.stdout_start, child.stderr_start);
                running.borrow_mut().insert(attempt.step, starts);
            }
        }
        let is_known = |key: &str| in_flight.iter().any(|a| a.to_string() == key);
        for child in welcome.children.iter().filter(|child| !is_known(&child.key)) {
            // Of a step that the plan has no more: it must not go on beside what took its place.
            self.queue.push(Request::End { key: child.key.clone() });
        }
        for exit in &welcome.finished {
            // Recorded by the former driver, which died before it could say so.
            if !is_known(&exit.key) {
                self.queue.push(Request::Ack { key: exit.key.clone() });
            }
        }
        for attempt in in_flight {
            let key = attempt.to_string();
            let found = if welcome.children.iter().any(|c| c.key == key) {
                Found::Running
            } else if let Some(exit) = welcome.finished.iter().find(|e| e.key == key) {
                Found::Ended(Box::new(ended_of(attempt, exit)))
            } else {
                let Some(state) = ask(keeper, &key, &mut self.stash, stop)? else {
                    return Ok(false);
                };
                match state {
                    State::Running => Found::Running,
                    State::Finished(exit) => Found::Ended(Box::new(ended_of(attempt, &exit))),
                    State::NotStarted => Found::NotStarted,
                    State::Acknowledged => {
                        Found::Lost("its outcome was acknowledged, but is not recorded".to_owned())
                    }
                }
            };
            attached.found.push((attempt.clone(), found));
        }
        Ok(true)
    }

    /// Sends what waits; a keeper that is gone is noticed by the next [`Connection::receive`].
    pub fn flush(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        if let Some(keeper) = &mut self.keeper {
            self.lost |= keeper.send(&self.queue).is_err();
        }
        self.queue.clear();
    }

    pub fn acknowledge(&mut self, attempts: &[Attempt]) {
        self.queue.extend(attempts.iter().map(|a| Request::Ack { key: a.to_string() }));
    }

    pub fn end_all(&mut self) {
        self.queue.push(Request::EndAll);
        self.flush();
        self.ending = true;
    }

    /// Ends one attempt.
    pub fn end(&mut self, attempt: &Attempt) {
        self.queue.push(Request::End { key: attempt.to_string() });
        self.flush();
    }

    /// Sends `SIGINT` to the program of an attempt.
    pub fn interrupt(&mut self, attempt: &Attempt) {
        self.queue.push(Request::Interrupt { key: attempt.to_string() });
        self.flush();
    }

    /// Lets the driver run wherever there is room: it has much to do, or nothing.
    pub fn let_go(&mut self) {
        self.tether.let_go();
    }

    /// Tells the keeper to go; returns what it had to end. A signal ends the waiting, not the going.
    /// What steps wrote stays where some of it is `unread`.
    pub fn leave(&mut self, mut signals: Option<&mut Signals>, unread: bool) -> Vec<String> {
        let mut names = Vec::new();
        self.flush();
        if let Some(mut keeper) = self.keeper.take() {
            let deadline = Instant::now() + LEAVE_WAIT;
            let mut told = keeper.send(&[Request::Shutdown]).is_ok();
            let mut answered = false;
            while told && Instant::now() < deadline {
                let Ok(events) = keeper.receive(Some(SLICE)) else { break };
                told = signals.as_mut().is_none_or(|signals| signals.take().is_empty());
                for event in events {
                    match event {
                        Event::Leftovers(list) => {
                            names.extend(list.iter().map(|l| format!("{} ({})", l.name, l.pid)));
                            (told, answered) = (false, true);
                        }
                        Event::Gone | Event::Refused { .. } => told = false,
                        _ => {}
                    }
                }
            }
            if answered {
                keeper.farewell(&self.dir);
            }
        }
        // Nothing ran any more when the lease was given up. Another driver may hold it by now: its
        // folder is another one, and stays.
        let folders = if unread { Vec::new() } else { scratch::folders(&self.dir) };
        for (epoch, scratch) in folders {
            if epoch <= self.epoch {
                let _ = std::fs::remove_dir_all(scratch);
                let _ = std::fs::remove_file(self.dir.join(scratch::pointer(epoch)));
            }
        }
        names
    }

    /// What arrived since the last look.
    pub fn receive(&mut self, running: &Running) -> Result<Vec<Happening>> {
        let Some(keeper) = &mut self.keeper else {
            return Ok(Vec::new());
        };
        let mut events = std::mem::take(&mut self.stash);
        events.extend(keeper.receive(Some(Duration::ZERO)).map_err(failed)?);
        if events.is_empty() && (self.in_flight > 0 || self.ending) {
            self.stillness.refuse(keeper.welcome().pid)?;
        }
        let mut happened = Vec::new();
        let mut gone = self.lost;
        for event in events {
            match event {
                Event::Started(started) => {
                    if let Ok(attempt) = started.key.parse::<Attempt>() {
                        let starts = (started.stdout_start, started.stderr_start);
                        running.borrow_mut().insert(attempt.step, starts);
                    }
                }
                Event::NotStarted(not) => {
                    self.in_flight = self.in_flight.saturating_sub(1);
                    if let Ok(attempt) = not.key.parse() {
                        happened.push(Happening::NotStarted {
                            attempt,
                            error: not.error,
                            no_such_program: not.command_not_found,
                        });
                    }
                }
                Event::Exited(exit) => {
                    self.in_flight = self.in_flight.saturating_sub(1);
                    if let Ok(attempt) = exit.key.parse::<Attempt>() {
                        happened.push(Happening::Ended(Box::new(ended_of(&attempt, &exit))));
                    }
                }
                Event::Refused { .. } => return Ok(vec![Happening::Fenced]),
                Event::Gone => gone = true,
                Event::Known { .. } | Event::Leftovers(_) => {}
            }
        }
        if gone {
            happened.push(Happening::KeeperGone);
        }
        Ok(happened)
    }

    /// The folder steps of this driver may write to, made on first use: outside of the repository's
    /// own folder, because sandboxes of agents forbid that one.
    fn scratch(&mut self) -> Result<PathBuf> {
        if let Some(known) = self.scratch.clone().filter(|known| known.is_dir()) {
            return Ok(known);
        }
        let scratch = scratch::make(&self.inherited.temp_dir, &self.dir, &self.mark, self.epoch)
            .map_err(failed)?;
        self.scratch = Some(scratch.clone());
        Ok(scratch)
    }

    /// The folder of an attempt, below that of the driver that started it.
    pub fn folder_of(&self, attempt: &Attempt) -> Option<PathBuf> {
        let folders = self.scratch.iter().chain(&self.former);
        let mut folders = folders.map(|folder| scratch::attempt_folder(folder, attempt));
        folders.find(|folder| folder.is_dir())
    }

    /// What an attempt wrote as facts: in the folder of the driver that started it.
    pub fn output_of(&self, attempt: &Attempt) -> Option<PathBuf> {
        let folders = self.scratch.iter().chain(&self.former);
        let mut files = folders.map(|folder| scratch::output_file(folder, attempt));
        files.find(|file| file.symlink_metadata().is_ok())
    }
}

fn taken_or_failed(error: piton_process::Error) -> Error {
    match error {
        piton_process::Error::Silent { pid, .. } if piton_ledger::is_stopped(pid) => stopped(pid),
        piton_process::Error::Refused { .. } => Error::TakenOver,
        piton_process::Error::GivenUp => Error::Interrupted(SIGINT),
        other @ piton_process::Error::OtherVersion { .. } => Error::OtherVersion(other.to_string()),
        other => failed(other),
    }
}

/// Asks what became of one attempt; nothing when the keeper died. What else it says is stashed.
fn ask(
    keeper: &mut Keeper,
    key: &str,
    stash: &mut Vec<Event>,
    stop: Stop<'_>,
) -> Result<Option<State>> {
    if keeper.send(&[Request::Probe { key: key.to_owned() }]).is_err() {
        return Ok(None);
    }
    let deadline = Instant::now() + PROBE_WAIT;
    let mut answer = None;
    while answer.is_none() && Instant::now() < deadline {
        if stop() {
            return Err(Error::Interrupted(SIGINT));
        }
        for event in keeper.receive(Some(SLICE)).map_err(failed)? {
            match event {
                Event::Known { key: known, state } if known == key => answer = Some(state),
                Event::Refused { .. } => return Err(Error::TakenOver),
                Event::Gone => return Ok(None),
                other => stash.push(other),
            }
        }
    }
    answer.map(Some).ok_or_else(|| Error::World(refusals::keeper_silent()))
}

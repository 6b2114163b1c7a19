//! A run from its creation to its end over any number of drivers, on a simulated machine.
//!
//! It does what the program's commands do around the engine: take the lease, load, compare, drive,
//! and ask the person. Clones share machine, ledger and records, so that one driver's fall or pause
//! can bring another one in.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use piton_core::event::{
    DriverAttached, Event, FileHash, ProtocolRef, RunAborted, RunCreated, Shape, Verdict,
};
use piton_core::request::{Reply, Request};
use piton_core::{Limits, Millis, Plan, RunId, RunState, Timestamp};
use piton_engine::resume::{Accepts, Check, check};
use piton_engine::store::{Answer, Asked, Loaded};
use piton_engine::world::{Attempt, Rewind};
use piton_engine::{
    Drive, Driver, Ending, Error, Gates, Leased, Note, Observer, Options, Store, World,
};
use piton_ledger::{Acquire, Liveness, NewRun, Owner};
use tempfile::TempDir;

use crate::crash::CrashPoint;
use crate::ledger::{CrashingLedger, LedgerFaults, power_cut};
use crate::machine::SimMachine;
use crate::replans::PLAN_FILE;
use crate::script::Script;
use crate::world::SimWorld;

/// Drivers and decisions after which a scenario counts as stuck; the longest need four.
const ROUNDS_MAX: usize = 20;
/// The one run of a rig.
const RUN_ID: &str = "run-1";

/// What was noted to observers.
pub type Notes = Rc<RefCell<Vec<Note>>>;

/// Why a driver did not come to an ending.
#[derive(Debug)]
pub enum Stop {
    /// It failed, or fell.
    Failed(Error),
    /// The world differs from the record in a way that stops.
    Blocked(Box<Check>),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<piton_ledger::Error> for Stop {
    fn from(error: piton_ledger::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// A folder for a ledger; in memory where the system has a place for that: a sync costs nothing there.
fn folder() -> TempDir {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    dir.expect("a folder for the ledger")
}

/// A run on a simulated machine.
#[derive(Clone)]
pub struct Rig {
    /// The machine.
    pub machine: Rc<RefCell<SimMachine>>,
    /// The plan as its file says it.
    pub plan: Plan,
    /// The settings of drivers.
    pub options: Options,
    /// Gates of the phase document that keep lanes from beginning.
    pub gates: Gates,
    /// Whether the world is compared with the record before a driver goes on.
    pub compares: bool,
    /// What the person accepts on the command line: plan, spec.
    pub accepts: (bool, bool),
    /// Whether the person accepts outputs that were changed from outside.
    pub accepts_outputs: bool,
    /// What drivers noted.
    pub notes: Notes,
    /// What was acknowledged to observers.
    pub acknowledged: Rc<RefCell<Vec<(u64, Event)>>>,
    /// Attempts that were in flight when keeper or machine fell.
    pub lost: Rc<RefCell<BTreeSet<Attempt>>>,
    /// The folder of the ledger.
    dir: Rc<TempDir>,
    /// Mechanisms of the ledger that are off.
    pub faults: Rc<Cell<LedgerFaults>>,
    owners: Rc<Cell<u32>>,
}

impl Rig {
    /// A run of a plan on a new machine.
    pub fn new(plan: Plan, script: Script) -> Self {
        Self {
            machine: Rc::new(RefCell::new(SimMachine::new(script))),
            plan,
            options: Options {
                limits: Limits { jobs: 2, ..Limits::default() },
                notify: true,
                ..Options::default()
            },
            gates: Gates::default(),
            compares: true,
            accepts: (false, false),
            accepts_outputs: false,
            notes: Notes::default(),
            acknowledged: Rc::default(),
            lost: Rc::default(),
            dir: Rc::new(folder()),
            faults: Rc::default(),
            owners: Rc::default(),
        }
    }

    /// Opens the ledger for somebody who falls at a point.
    pub fn store(&self, crash: &CrashPoint) -> Result<Store, Error> {
        let ledger = CrashingLedger::open(self.dir.path(), crash, self.faults.get())?;
        Ok(Store::new(Box::new(ledger)))
    }

    fn owner(&self) -> Owner {
        self.owners.set(self.owners.get() + 1);
        Owner {
            host: "sim".to_owned(),
            pid: self.owners.get(),
            process_start: 1,
            boot_id: "boot".to_owned(),
            pid_namespace: 0,
        }
    }

    fn created(&self) -> Event {
        let machine = self.machine.borrow();
        let spec =
            self.plan.spec.as_ref().and_then(|path| {
                Some(FileHash { path: path.clone(), sha256: machine.hash(path)? })
            });
        Event::RunCreated(Box::new(RunCreated {
            previous: None,
            run_id: RunId(RUN_ID.to_owned()),
            protocol: ProtocolRef::default(),
            plan_path: "plan.toml".to_owned(),
            plan_hash: self.plan.hash(),
            title: self.plan.title.clone(),
            spec,
            root: "/project".to_owned(),
            linked: false,
            mark: "mark".to_owned(),
            head: machine.head.clone(),
            shape: Shape::from(&self.plan),
        }))
    }

    /// Takes the lease of the run, creating it first where it is not there.
    fn take(&self, store: &mut Store, how: Acquire) -> Result<(Loaded, u64), Stop> {
        let (owner, at) = (self.owner(), self.machine.borrow().now);
        let Some(row) = store.ledger().run(RUN_ID)? else {
            let new = NewRun {
                run_id: RUN_ID,
                plan: "plan.toml",
                title: &self.plan.title,
                root: "/project",
                at: at.0,
            };
            let row = store.create(&new, &self.plan, &owner)?;
            return Ok((Loaded { row, state: RunState::default(), seq: 0 }, 1));
        };
        let lease = store.ledger().acquire(row.run, &owner, at.0, how, &|_| Liveness::Dead)?;
        Ok((store.load(RUN_ID)?, lease.epoch))
    }

    /// Compares the world with the record.
    pub fn compare(&self, store: &mut Store, world: &mut dyn World) -> Result<Check, Error> {
        let state = store.load(RUN_ID)?.state;
        let recorded = store.plan(&state)?;
        let accepts = Accepts {
            plan: self.accepts.0,
            spec: self.accepts.1,
            outputs: self.accepts_outputs,
            by: "ada",
        };
        let now = self.plan_now(&state, &recorded);
        check(&state, &recorded, Some(&now), accepts, world)
    }

    /// The plan as its file says it; while a replan writes it, the plan on record.
    fn plan_now(&self, state: &RunState, recorded: &Plan) -> Plan {
        let machine = self.machine.borrow();
        if state.replans.process().is_some() {
            return recorded.clone();
        }
        let text = machine.text(PLAN_FILE).unwrap_or_default();
        machine.plans.get(&text).unwrap_or(&self.plan).clone()
    }

    /// Lets one driver go on until it leaves, fails or falls.
    pub fn drive(&self, crash: &CrashPoint, how: Acquire) -> Result<Ending, Stop> {
        self.drive_as(Drive::Run(self.gates.clone()), crash, how)
    }

    fn drive_as(&self, drive: Drive, crash: &CrashPoint, how: Acquire) -> Result<Ending, Stop> {
        let mut store = self.store(crash)?;
        let mut world = SimWorld::new(&self.machine, crash);
        let (loaded, epoch) = self.take(&mut store, how)?;
        let attached = Event::DriverAttached(DriverAttached {
            epoch,
            pid: self.owners.get(),
            host: "sim".to_owned(),
            head: world.head(),
            takeover: how == Acquire::Takeover,
            base: None,
            retries: None,
            seed_dirty: false,
            keep_going: false,
            driven_until: None,
        });
        let mut plan = self.plan.clone();
        let opening = if loaded.seq == 0 {
            vec![self.created(), attached]
        } else if self.compares {
            let check = self.compare(&mut store, &mut world)?;
            if check.stops() {
                let at = self.machine.borrow().now;
                store.ledger().release(loaded.row.run, epoch, at.0)?;
                return Err(Stop::Blocked(Box::new(check)));
            }
            plan = check.plan;
            store.keep_plan(&plan)?;
            std::iter::once(attached).chain(check.events).collect()
        } else {
            vec![attached]
        };
        let mut watcher = Watcher(Rc::clone(&self.acknowledged), Rc::clone(&self.notes));
        let (live, options) = (plan.clone(), self.options.clone());
        let leased = Leased { loaded, epoch, plan, live, opening, drive };
        Ok(Driver::drive(&mut store, &mut world, &mut watcher, leased, options)?)
    }

    /// Drives without a fall; for tests of how it ends.
    pub fn run(&self) -> Result<Ending, Stop> {
        self.drive(&CrashPoint::never(), Acquire::IfFree)
    }

    /// Drives a run that is to be aborted, as `piton abort` does when nobody drives it.
    pub fn abort(&self) -> Result<Ending, Stop> {
        let (by, message) = ("ada".to_owned(), String::new());
        let event = RunAborted { by, message, cancel: false };
        let drive = Drive::Abort(event);
        self.drive_as(drive, &CrashPoint::never(), Acquire::IfFree)
    }

    /// Drives a run whose files and steps are to be taken back, as `piton rollback` does.
    pub fn rewind(&self, crash: &CrashPoint, rewind: Rewind) -> Result<Ending, Stop> {
        self.drive_as(Drive::Rewind(Box::new(rewind)), crash, Acquire::IfFree)
    }

    /// Drives only so far that what a former driver had begun is finished.
    pub fn finish(&self) -> Result<Ending, Stop> {
        let mut rig = self.clone();
        rig.options.limits.draining = true;
        rig.run()
    }

    /// Asks something of the run, as another process does.
    pub fn ask(&self, request: &Request, lives: Liveness) -> Result<Answer, Error> {
        self.ask_falling(&CrashPoint::never(), request, lives)
    }

    /// Waits for the answer to a request in the inbox, for one look.
    pub fn answer(
        &self,
        id: i64,
        request: &Request,
        lives: Liveness,
    ) -> Result<Option<Reply>, Error> {
        let (owner, at) = (self.owner(), self.machine.borrow().now);
        let alive = |_: &Owner| lives;
        let asked = Asked { request, key: "", by: "ada", at, owner: &owner, alive: &alive };
        self.store(&CrashPoint::never())?.answer(RUN_ID, id, &asked)
    }

    fn ask_falling(
        &self,
        crash: &CrashPoint,
        request: &Request,
        lives: Liveness,
    ) -> Result<Answer, Error> {
        let owner = self.owner();
        let asked = Asked {
            request,
            // As a command does that looked at the run before the first driver came.
            key: &request.key(RUN_ID, 0),
            by: "ada",
            at: self.machine.borrow().now,
            owner: &owner,
            alive: &|_| lives,
        };
        self.store(crash)?.ask(RUN_ID, &asked)
    }

    fn approve(&self, crash: &CrashPoint, state: &RunState) -> Result<(), Error> {
        for (gate, _) in state.open_gates() {
            let request =
                Request::Decide { gate: gate.0.clone(), approved: true, message: String::new() };
            self.ask_falling(crash, &request, Liveness::Dead)?;
        }
        Ok(())
    }

    /// Drives, approves gates and starts over after a fall, until nothing moves any more.
    ///
    /// `fall` is what else falls with the driver; `gap` is how long nobody is there after it.
    pub fn complete(
        &self,
        crash: CrashPoint,
        fall: &dyn Fn(&Self),
        gap: Millis,
    ) -> Result<Ending, Stop> {
        let mut crash = crash;
        for _ in 0..ROUNDS_MAX {
            let ended = self.drive(&crash, Acquire::IfFree).and_then(|ending| {
                if ending.verdict == Verdict::Waiting {
                    self.approve(&crash, &ending.state)?;
                    return Ok(None);
                }
                Ok(Some(ending))
            });
            match ended {
                Ok(Some(ending)) if !crash.fallen() => return Ok(ending),
                Err(stop) if !crash.fallen() => return Err(stop),
                _ if crash.fallen() => {
                    fall(self);
                    self.machine.borrow_mut().pass(gap);
                    crash = CrashPoint::never();
                }
                _ => {}
            }
        }
        Err(Stop::Failed(Error::world("the scenario is stuck")))
    }

    /// The keeper dies with what it holds.
    pub fn crash_keeper(&self) {
        self.lose();
        self.machine.borrow_mut().crash_keeper();
    }

    /// The machine loses power.
    pub fn power_cut(&self) {
        self.lose();
        self.machine.borrow_mut().power_cut();
        power_cut(self.dir.path(), self.faults.get());
    }

    /// Notes what is in flight by the ledger: that may run again.
    fn lose(&self) {
        let state = self.load().map(|l| l.state).unwrap_or_default();
        let running = state.running().into_iter().chain(state.replans.process());
        let running = running.map(|(step, number)| Attempt { step, number });
        self.lost.borrow_mut().extend(running);
    }

    /// Loads the run as a command does.
    pub fn load(&self) -> Result<Loaded, Error> {
        self.store(&CrashPoint::never())?.load(RUN_ID)
    }

    /// All events of the run.
    pub fn events(&self) -> Result<Vec<(u64, Timestamp, Event)>, Error> {
        let mut store = self.store(&CrashPoint::never())?;
        let Some(row) = store.ledger().run(RUN_ID)? else {
            return Ok(Vec::new());
        };
        store.events(&row, 0)
    }
}

struct Watcher(Rc<RefCell<Vec<(u64, Event)>>>, Notes);

impl Observer for Watcher {
    fn event(&mut self, seq: u64, _: Timestamp, event: &Event, _: &RunState) {
        self.0.borrow_mut().push((seq, event.clone()));
    }

    fn note(&mut self, note: &Note) {
        self.1.borrow_mut().push(note.clone());
    }
}

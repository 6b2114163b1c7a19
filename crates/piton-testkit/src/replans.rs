//! The files of a plan on the simulated machine: one file, whose text names a plan.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use piton_core::{Plan, RunState};
use piton_engine::Result;
use piton_engine::world::{NotAPlan, PlanRead, Plans, Version};

use crate::crash::{CrashPoint, fell};
use crate::machine::SimMachine;

/// The file of the plan.
pub const PLAN_FILE: &str = "plan.toml";

/// The plans that the file may hold, by its text.
pub type Texts = BTreeMap<String, Plan>;

/// One driver's view of the files of a plan.
pub(crate) struct SimPlans {
    machine: Rc<RefCell<SimMachine>>,
    crash: CrashPoint,
}

fn place(attempt: u32, version: Version) -> String {
    format!("ignored/replans/{attempt}/{version:?}")
}

impl SimPlans {
    pub(crate) fn new(machine: &Rc<RefCell<SimMachine>>, crash: &CrashPoint) -> Self {
        Self { machine: Rc::clone(machine), crash: crash.clone() }
    }

    fn act(&self, name: &str, act: impl FnOnce(&mut SimMachine)) -> Result<()> {
        self.crash.around(name, || act(&mut self.machine.borrow_mut())).map_err(fell)
    }
}

impl Plans for SimPlans {
    fn keep(&mut self, _: &RunState, _: &Plan, attempt: u32) -> Result<()> {
        self.act("keep plan", |machine| {
            let text = machine.text(PLAN_FILE).unwrap_or_default();
            machine.put(&place(attempt, Version::Before), &text);
        })
    }

    fn left(&mut self, _: &RunState, attempt: u32, _: &Plan) -> Result<Result<PlanRead, NotAPlan>> {
        let place = place(attempt, Version::After);
        self.act("keep replan", |machine| {
            let text = machine.text(PLAN_FILE).unwrap_or_default();
            if machine.text(&place).is_none() {
                machine.put(&place, &text);
            }
        })?;
        let machine = self.machine.borrow();
        let text = machine.text(&place).unwrap_or_default();
        let plan = machine.plans.get(&text).cloned();
        let read = |plan: Plan| PlanRead { recorded: plan.clone(), live: plan, redactor: None };
        Ok(plan.map(read).ok_or_else(|| NotAPlan(format!("`{text}` is not a plan"))))
    }

    fn put(&mut self, _: &RunState, attempt: u32, version: Version) -> Result<()> {
        self.act("put plan", |machine| {
            let text = machine.text(&place(attempt, version)).unwrap_or_default();
            machine.put(PLAN_FILE, &text);
        })
    }
}

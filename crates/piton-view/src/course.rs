//! What a run met on its way, over all its drivers: one line for whoever was not there.
//!
//! It counts recorded events. What is still open is told by others.

use std::collections::BTreeSet;

use piton_core::event::{Class, Event, Next, Outcome};
use piton_core::{Millis, StepPath, Timestamp};

use crate::text::count;

/// What a run met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    limits: usize,
    limits_ms: Millis,
    outages: usize,
    outages_ms: Millis,
    /// Steps that last failed for want of a network: what follows is the same outage.
    cut_off: BTreeSet<StepPath>,
    tests_failed: usize,
    conflicts: usize,
    drivers_lost: usize,
    is_driven: bool,
    /// Terminals that closed under a driver; no event tells of them.
    pub terminals_closed: usize,
    gates_approved: usize,
}

impl Course {
    /// Takes an event of the run, in order.
    pub fn take(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::DriverAttached(_) => {
                self.drivers_lost += usize::from(std::mem::replace(&mut self.is_driven, true));
            }
            Event::DriverLeft(_) => self.is_driven = false,
            Event::LaneReopened(e) if e.class == Class::Conflict => self.conflicts += 1,
            Event::LaneReopened(e) if e.class == Class::Test => self.tests_failed += 1,
            Event::GateDecided(e) => self.gates_approved += usize::from(e.approved),
            Event::StepFinished(e) => self.finished(at, &e.step, &e.outcome),
            _ => {}
        }
    }

    fn finished(&mut self, at: Timestamp, step: &StepPath, outcome: &Outcome) {
        let was_cut_off = self.cut_off.remove(step);
        let Outcome::Failed { class, next, .. } = outcome else { return };
        match (class, next) {
            (Class::RateLimit, Next::Wait { until }) => {
                self.limits += 1;
                self.limits_ms.0 += until.since(at).0;
            }
            (Class::Network, Next::Wait { until }) => {
                self.outages += usize::from(!was_cut_off);
                self.outages_ms.0 += until.since(at).0;
                self.cut_off.insert(step.clone());
            }
            (Class::Test, Next::Retry { .. }) => self.tests_failed += 1,
            _ => {}
        }
    }

    /// What a person who was not there should know; nothing where nothing kept the run up.
    pub fn words(&self) -> Option<String> {
        let kept_up = self.limits + self.outages + self.conflicts + self.drivers_lost;
        if kept_up + self.terminals_closed == 0 {
            return None;
        }
        let waited = |ms: Millis| format!(" (waited {ms})");
        let parts = [
            (self.limits, "usage limit", waited(self.limits_ms)),
            (self.outages, "network outage", waited(self.outages_ms)),
            (self.tests_failed, "failed test", " retried".to_owned()),
            (self.conflicts, "conflict", String::new()),
            (self.drivers_lost, "lost driver", " replaced".to_owned()),
            (self.terminals_closed, "closed terminal", String::new()),
            (self.gates_approved, "gate", " approved".to_owned()),
        ];
        let told = parts.into_iter().filter(|(number, ..)| *number > 0);
        let told: Vec<String> =
            told.map(|(number, what, more)| format!("{}{more}", count(number, what))).collect();
        Some(format!("met: {}", told.join(", ")))
    }
}

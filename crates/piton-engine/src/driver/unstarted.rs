//! Attempts that could not be started, or were lost with their keeper.

use piton_core::event::{Class, Next, Outcome};
use piton_core::plan::Step;

use super::Driver;
use super::outcome::Remainder;
use super::replan::is_replan;
use crate::error::Result;
use crate::world::Attempt;

impl Driver<'_> {
    /// Records that an attempt could not be started.
    pub(super) fn not_started(&mut self, attempt: &Attempt, error: &str) -> Result<()> {
        if is_replan(attempt) {
            return self.replan_failed(error, None);
        }
        if !self.is_running(attempt) {
            return Ok(());
        }
        self.finish_unstarted(attempt, error, Next::Fail)
    }

    /// Records that the program of an attempt does not exist; if it is an agent's, another may go on.
    pub(super) fn not_found(&mut self, attempt: &Attempt, error: &str) -> Result<()> {
        if is_replan(attempt) || !self.is_running(attempt) {
            return self.not_started(attempt, error);
        }
        let next = self.agent_missing(attempt)?;
        self.finish_unstarted(attempt, error, next)
    }

    fn finish_unstarted(&mut self, attempt: &Attempt, error: &str, next: Next) -> Result<()> {
        let error = self.redact(error);
        let outcome = Outcome::Failed {
            class: Class::Input,
            error,
            lines: Vec::new(),
            budget: None,
            signature: String::new(),
            next,
        };
        self.finish(attempt, outcome, Remainder::default())
    }

    /// Records that an attempt was lost with its keeper.
    pub(super) fn lost(&mut self, attempt: &Attempt, why: String) -> Result<()> {
        if is_replan(attempt) {
            return self.replan_lost(&why);
        }
        if !self.is_running(attempt) {
            return Ok(());
        }
        self.said_before_lost(attempt)?;
        let outcome = self.interrupted(attempt, why);
        // Its artifacts were not judged while it was in flight. Its inputs were.
        let step = self.planned(&attempt.step).cloned();
        let step = step.map(|step| Step { inputs: Vec::new(), ..step });
        let inputs = step.and_then(|step| self.left_changed(&step, attempt));
        self.finish(attempt, outcome, Remainder { inputs, ..Remainder::default() })
    }
}

//! What a former driver left in flight, found again; and the orders that start attempts.

use piton_core::LanePath;

use super::Driver;
use crate::error::Result;
use crate::observer::Note;
use crate::order::order;
use crate::world::{Attempt, Found};

impl Driver<'_> {
    /// Finds what became of attempts that have no outcome.
    pub(super) fn recover(&mut self) -> Result<()> {
        let in_flight: Vec<Attempt> = self
            .state
            .running()
            .into_iter()
            .map(|(step, number)| Attempt { step, number })
            .collect();
        let attached = self.world.attach(self.epoch, &self.state.mark, &in_flight)?;
        if !attached.strays.is_empty() {
            self.observer.note(&Note::StraysEnded { names: attached.strays });
        }
        if self.batch.is_empty() {
            // Events of one commit happen at one time: a replay must see what was applied here.
            self.at = self.world.now();
        }
        let busy: Vec<LanePath> = attached
            .found
            .iter()
            .filter(|(_, found)| *found == Found::Running)
            .map(|(attempt, _)| attempt.step.lane())
            .collect();
        self.recover_rooms(&busy)?;
        for (attempt, found) in attached.found {
            let word = match &found {
                Found::Running => "running",
                Found::Ended(_) => "finished",
                Found::NotStarted => "not started",
                Found::Lost(_) => "lost",
            };
            self.observer.note(&Note::Recovered {
                step: attempt.step.clone(),
                attempt: attempt.number,
                found: word,
            });
            match found {
                Found::Running => {}
                Found::Ended(ended) => self.ended(&ended)?,
                Found::NotStarted => self.order_again(&attempt)?,
                Found::Lost(why) => self.lost(&attempt, why)?,
            }
        }
        Ok(())
    }

    fn recover_rooms(&mut self, busy: &[LanePath]) -> Result<()> {
        let at = self.at;
        let Some(rooms) = self.world.rooms() else { return Ok(()) };
        for warning in rooms.recover(&self.state, busy, at)? {
            self.observer.note(&Note::Warning(warning));
        }
        Ok(())
    }

    /// Starts an attempt whose intent is recorded and whose process never existed.
    fn order_again(&mut self, attempt: &Attempt) -> Result<()> {
        if self.ending.is_some() || self.options.limits.draining || self.abort.is_some() {
            return self.lost(attempt, "its driver stopped before it was started".to_owned());
        }
        self.place_order(attempt)
    }

    pub(super) fn place_order(&mut self, attempt: &Attempt) -> Result<()> {
        let there = self.state.position(&attempt.step).and_then(|at| self.live.at(at));
        let there = there.filter(|step| step.id == attempt.step.step);
        let Some(step) = there.or_else(|| self.live.step(&attempt.step)) else {
            return self.lost(attempt, "it is no longer in the plan".to_owned());
        };
        match order(&self.live, &self.state, step, attempt) {
            Ok(order) => {
                self.orders.push(order);
                Ok(())
            }
            Err(error) => self.not_started(attempt, &error.to_string()),
        }
    }
}

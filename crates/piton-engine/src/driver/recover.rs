//! What a former driver left in flight, found again; and the orders that start attempts.

use piton_core::event::{Event, StepReset};
use piton_core::lane::{Role, SETUP_STEP};
use piton_core::state::Progress;
use piton_core::{LanePath, StepPath};

use super::Driver;
use crate::error::Result;
use crate::observer::Note;
use crate::order::order;
use crate::world::{Attempt, Found};

impl Driver<'_> {
    /// Finds what became of attempts that have no outcome, and who fell that had them in hand.
    pub(super) fn recover(&mut self, fallen: &'static str) -> Result<()> {
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
        if attached.keeper_died {
            let open = self.store.ledger().requests(self.row.run)?;
            self.doubted.extend(open.into_iter().map(|asked| asked.id));
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
        let remade = self.recover_rooms(&busy)?;
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
                fallen,
            });
            match found {
                Found::Running => {}
                // What it did went with the folder.
                Found::Ended(_) if remade.contains(&attempt.step.lane()) => {
                    self.lost(&attempt, "the worktree it worked in was deleted".to_owned())?;
                }
                Found::Ended(ended) => self.ended(&ended)?,
                Found::NotStarted => self.order_again(&attempt)?,
                Found::Lost(why) => self.lost(&attempt, why)?,
            }
        }
        Ok(())
    }

    /// Puts worktrees right; says which had to be made again.
    fn recover_rooms(&mut self, busy: &[LanePath]) -> Result<Vec<LanePath>> {
        let at = self.at;
        let Some(rooms) = self.world.rooms() else { return Ok(Vec::new()) };
        let mended = rooms.recover(&self.plan, &self.state, busy, at)?;
        for warning in mended.notes {
            self.observer.note(&Note::Warning(warning));
        }
        for lane in &mended.remade {
            self.set_up_again(lane)?;
        }
        self.finish_rewind()?;
        // Before anything is snapshotted or runs: it would be taken for the lane's work.
        self.put_torn_back(busy)?;
        Ok(mended.remade)
    }

    /// Lets the setup of a lane run again: its worktree is a fresh one.
    pub(super) fn set_up_again(&mut self, lane: &LanePath) -> Result<()> {
        let step = StepPath::new(&lane.phase, &lane.lane, SETUP_STEP);
        let is_ours = self.planned(&step).is_some_and(|s| s.role == Role::Setup);
        let is_done = self.state.step(&step).is_some_and(|s| s.progress == Progress::Done);
        if !is_ours || !is_done {
            return Ok(());
        }
        let reason = "its worktree was gone and is made again".to_owned();
        self.record(Event::StepReset(StepReset { step, reason }))
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

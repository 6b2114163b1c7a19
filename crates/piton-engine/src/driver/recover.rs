//! What a former driver left in flight, found again; and the orders that start attempts.

use piton_core::lane::Role;
use piton_core::state::Progress;
use piton_core::{LanePath, StepPath};

use super::Driver;
use super::replan::is_replan;
use crate::error::Result;
use crate::observer::Note;
use crate::world::{Attempt, Found, Repaired};

impl Driver<'_> {
    /// Finds what became of attempts that have no outcome, and who fell that had them in hand.
    pub(super) fn recover(&mut self, fallen: &'static str) -> Result<()> {
        let running = self.state.running().into_iter();
        let running = running.map(|(step, number)| Attempt { step, number });
        let in_flight: Vec<_> = running.chain(self.replan_process()).collect();
        self.follow_agents(&in_flight);
        let attached = self.world.attach(self.run.epoch, &self.state.mark, &in_flight)?;
        if !attached.strays.is_empty() {
            self.observer.note(&Note::StraysEnded { names: attached.strays });
        }
        if attached.keeper_died {
            let open = self.run.requests()?;
            self.run.doubted.extend(open.into_iter().map(|asked| asked.id));
        }
        if self.run.events.is_empty() {
            // Events of one commit happen at one time: a replay must see what was applied here.
            self.clock.at = self.world.now();
        }
        let running = attached.found.iter().filter(|(_, found)| *found == Found::Running);
        let busy: Vec<LanePath> = running.map(|(attempt, _)| attempt.step.lane()).collect();
        let recreated = self.recover_workspaces(&busy)?;
        for (attempt, found) in attached.found {
            let word = match &found {
                Found::Running => "running",
                Found::Ended(_) => "finished",
                Found::NotStarted => "not started",
                Found::Lost(_) => "lost",
            };
            let (step, number) = (attempt.step.clone(), attempt.number);
            self.observer.note(&Note::Recovered { step, attempt: number, found: word, fallen });
            match found {
                Found::Running => {}
                // What it did went with the folder.
                Found::Ended(_) if recreated.contains(&attempt.step.lane()) => {
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
    fn recover_workspaces(&mut self, busy: &[LanePath]) -> Result<Vec<LanePath>> {
        let repaired = match self.world.workspaces() {
            Some(workspaces) => workspaces.recover(&self.plan, &self.state, busy, self.clock.at)?,
            None => Repaired::default(),
        };
        for note in repaired.notes {
            self.warn(note);
        }
        repaired.recreated.iter().try_for_each(|lane| self.set_up_again(lane))?;
        self.finish_rewind()?;
        // Before anything is snapshotted or runs: it would be taken for the lane's work.
        self.put_torn_back(busy)?;
        Ok(repaired.recreated)
    }

    /// Lets the setup of a lane run again: its worktree is a fresh one.
    pub(super) fn set_up_again(&mut self, lane: &LanePath) -> Result<()> {
        let setup = self.state.lane(lane).and_then(|lane| lane.step_for(Role::Setup));
        let Some(step) = setup.filter(|s| s.progress == Progress::Done) else { return Ok(()) };
        let step = StepPath::new(&lane.phase, &lane.lane, &step.id);
        self.run_again(step, "its worktree was gone and is made again")
    }

    /// Starts an attempt whose intent is recorded and whose process never existed.
    fn order_again(&mut self, attempt: &Attempt) -> Result<()> {
        let is_stopping = self.stop.ending.is_some() || self.stop.abort.is_some();
        if is_stopping || self.options.limits.draining {
            return self.lost(attempt, "its driver stopped before it was started".to_owned());
        }
        if is_replan(attempt) { self.order_replan() } else { self.place_order(attempt) }
    }

    pub(super) fn place_order(&mut self, attempt: &Attempt) -> Result<()> {
        match self.dispatch.order(&self.state, attempt, self.world, &self.options.redactor) {
            None => self.lost(attempt, "it is no longer in the plan".to_owned()),
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => self.not_started(attempt, &error.to_string()),
        }
    }
}

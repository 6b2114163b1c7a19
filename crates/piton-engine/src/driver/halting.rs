//! Agents that are asked to stop between two operations, and ended if they go on.
//!
//! A program may have no hook to be stopped by, or pass over it. One more answer of its model is let
//! through: it was on its way when the program was asked.

use piton_core::agent::{Heard, Level, STOP_GRACE};
use piton_core::event::Outcome;
use piton_core::{Millis, decide::agents};

use super::Driver;
use crate::error::Result;
use crate::world::Attempt;

/// Rounds of answers and operations that may follow: the one under way.
const UNDER_WAY: u32 = 1;
/// What is said of an agent that was ended because it went on.
const WENT_ON: &str = "it was asked to stop and went on, so it was ended";

/// An agent that was asked to stop.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// The time awake at which it was asked.
    since: Millis,
    /// The requests it may have made by the time it has stopped.
    requests_max: u32,
    /// The operations that were under way at the last look.
    in_flight: Vec<String>,
    /// Rounds of operations that began since.
    rounds: u32,
    /// Whether it is ended.
    is_ended: bool,
}

impl Driver<'_> {
    /// Has the agent of an attempt stop after the operation under way. One that cannot be asked, and has
    /// none under way, is ended at once.
    pub(super) fn ask_to_stop(&mut self, attempt: &Attempt) -> Result<()> {
        self.world.stop_agent(attempt)?;
        if self.tallies.asked.contains_key(attempt) {
            return Ok(());
        }
        let known = self.state.step(&attempt.step).and_then(|step| step.agent.as_deref());
        let known = known.filter(|agent| agent.attempt == attempt.number);
        let in_flight = known.map(|agent| agent.in_flight.clone()).unwrap_or_default();
        // Subagents have requests of their own on their way, one for each operation.
        let on_their_way = u32::try_from(in_flight.len()).unwrap_or(u32::MAX).max(UNDER_WAY);
        let requests = known.map_or(0, |agent| agent.requests);
        let requests_max = requests.saturating_add(on_their_way);
        let can_be_asked = self.agent_at(attempt).is_some_and(|agent| agent.is_known());
        let since = self.clock.awake;
        let asked = Asked { since, requests_max, in_flight, ..Asked::default() };
        self.tallies.asked.insert(attempt.clone(), asked);
        if can_be_asked { Ok(()) } else { self.cut_off(attempt) }
    }

    /// Ends an agent that was asked to stop and says that it went on.
    pub(super) fn watch_stop(&mut self, attempt: &Attempt, heard: &Heard) -> Result<()> {
        let Some(asked) = self.tallies.asked.get_mut(attempt) else { return Ok(()) };
        let is_new = |operation: &String| !asked.in_flight.contains(operation);
        let begins = asked.in_flight.is_empty() && heard.in_flight.iter().any(is_new);
        asked.rounds += u32::from(begins);
        asked.in_flight.clone_from(&heard.in_flight);
        let goes_on = heard.totals.requests > asked.requests_max || asked.rounds > UNDER_WAY;
        if goes_on { self.cut_off(attempt) } else { Ok(()) }
    }

    /// Ends the agents that were asked to stop so long ago that nobody waits for them any longer.
    pub(super) fn end_unstopped(&mut self) -> Result<()> {
        let is_late = |asked: &Asked| self.clock.passed(asked.since) >= STOP_GRACE;
        let late = self.tallies.asked.iter().filter(|(_, asked)| !asked.is_ended && is_late(asked));
        let late: Vec<Attempt> = late.map(|(attempt, _)| attempt.clone()).collect();
        late.iter().try_for_each(|attempt| self.cut_off(attempt))
    }

    fn cut_off(&mut self, attempt: &Attempt) -> Result<()> {
        let Some(asked) = self.tallies.asked.get_mut(attempt) else { return Ok(()) };
        if std::mem::replace(&mut asked.is_ended, true) || !self.is_running(attempt) {
            return Ok(());
        }
        self.world.end(attempt)
    }

    /// What follows if an agent was ended because it went on: its session goes on later, unless its
    /// window is nearly full. Nothing if it ended in another way.
    pub(super) fn was_cut_off(
        &mut self,
        attempt: &Attempt,
        (level, is_ended_by_us): (Level, bool),
    ) -> Result<Option<Outcome>> {
        let asked = self.tallies.asked.remove(attempt);
        if !asked.is_some_and(|asked| asked.is_ended && is_ended_by_us) {
            return Ok(None);
        }
        if let (Level::Critical, Some(agent)) = (level, self.agent_at(attempt)) {
            return self.hand_off(&agent, attempt, agents::NEARLY_FULL).map(Some);
        }
        let why = WENT_ON.to_owned();
        Ok(Some(match self.state.exhausted {
            Some(_) => Outcome::Interrupted { why },
            None => self.interrupted(attempt, why),
        }))
    }
}

//! What the keeper is sent once a commit is durable: attempts to start, and outcomes that are recorded.

use piton_core::redact::Redactor;
use piton_core::{Plan, RunState};
use piton_formats::template;

use crate::error::Result;
use crate::order::{self, Order};
use crate::prompt::{self, BRIEF_TOKENS_MAX};
use crate::world::{Attempt, World};

pub(super) struct Dispatch {
    /// The plan as its file says it, from which attempts start.
    pub(super) live: Plan,
    pub(super) orders: Vec<Order>,
    pub(super) acks: Vec<Attempt>,
}

impl Dispatch {
    /// Puts the start of an attempt into what follows the next commit, if its step is in the plan.
    pub(super) fn order(
        &mut self,
        state: &RunState,
        attempt: &Attempt,
        world: &mut dyn World,
        redactor: &Redactor,
    ) -> Option<Result<(), template::Error>> {
        let step = super::step_of(&self.live, state, &attempt.step)?;
        let mut given = world.dispatch(&self.live, state, attempt);
        if state.step(&attempt.step).is_some_and(prompt::is_briefed) {
            let brief = world.brief(&self.live, state, &attempt.step, BRIEF_TOKENS_MAX);
            let after = prompt::handed_on(&brief);
            let parts = [std::mem::take(&mut given.after_prompt), after];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            given.after_prompt = parts.join("\n\n");
        }
        let order = order::order((&self.live, state), step, attempt, given);
        Some(order.map(|order| {
            let kept_prompt =
                order.prompt.as_deref().map(|text| redactor.redact(text).into_owned());
            self.orders.push(Order { kept_prompt, ..order });
        }))
    }

    /// Sends what waited for a commit.
    pub(super) fn send(&mut self, world: &mut dyn World) -> Result<()> {
        if !self.acks.is_empty() {
            world.acknowledge(&std::mem::take(&mut self.acks))?;
        }
        if !self.orders.is_empty() {
            world.start(std::mem::take(&mut self.orders))?;
        }
        Ok(())
    }
}

//! The texts of a plan's agents that may hold a secret.

use piton_core::Plan;

/// Variables, arguments and commands of all agents, always in the same order.
pub(super) fn texts(plan: &mut Plan) -> impl Iterator<Item = &mut String> {
    plan.agents.values_mut().flat_map(|agent| {
        let command = agent.command.iter_mut().flat_map(super::command_texts);
        agent.env.values_mut().chain(&mut agent.args).chain(command)
    })
}

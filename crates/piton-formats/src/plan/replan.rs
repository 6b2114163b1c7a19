//! The rules of replans: `[replan]` with its agent resolved and every default filled in.

use std::collections::BTreeMap;

use piton_core::Millis;
use piton_core::plan::{ReplanRules, Step, Work};

use super::build::{Builder, bare_step};
use crate::diagnostic::{code, quoted};
use crate::settings::agents::named;
use crate::settings::{Agent, Defaults, Replan};
use crate::toml_reader::Node;

/// Longest time of a replan: an agent that reads a project and writes a plan needs minutes.
const TIMEOUT_DEFAULT: Millis = Millis::from_secs(3600);
/// The step of a replan, in logs and in the environment.
const STEP: &str = "replan";
/// What an agent is told if nobody says what else.
pub const PROMPT: &str = "\
Phase {{ phase.id }} of the plan in {{ context.plan }} must be planned again.

Reason: {{ context.reason }}

{{ failure_context }}
Edit the plan file so that the work can succeed. Split phases that are too large, correct commands and \
tests that cannot pass, and add what is missing. Leave finished phases and steps as they are. Do not do \
the work itself.
";

impl Builder<'_, '_> {
    /// `[replan]` of the plan over that of the settings; nothing where neither has one.
    pub(super) fn replan(
        &mut self,
        root: &Node<'_, '_>,
        defaults: &Defaults,
    ) -> Option<ReplanRules> {
        let own = Replan::read(root, self.has_spec, self.sink);
        let said = match (&self.input.settings.replan, own) {
            (None, own) => own?,
            (Some(settings), own) => settings.under(own.unwrap_or_default()),
        };
        match rules(&said, &self.agents, defaults) {
            Ok(rules) => Some(rules),
            Err(UnknownAgent(agent)) => {
                let span = root.key_span("replan").unwrap_or(0..0);
                let hint = self.agent_hint(&agent);
                let message = format!("the agent {} of [replan] is not defined", quoted(&agent));
                self.sink.error(code::UNKNOWN_AGENT, &span, message, hint);
                None
            }
        }
    }
}

/// The agent of `[replan]` is not defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAgent(pub String);

/// The rules that `[replan]` stands for; the name of its agent where that is not defined.
pub fn rules(
    said: &Replan,
    agents: &BTreeMap<String, Agent>,
    defaults: &Defaults,
) -> Result<ReplanRules, UnknownAgent> {
    let usual = ReplanRules::default();
    Ok(ReplanRules {
        by: work(said, agents, defaults)?.map(|work| {
            // It works at the root of the project, whatever the steps do.
            let defaults = Defaults { dir: None, timeout: None, ..defaults.clone() };
            let timeout = said.timeout.unwrap_or(TIMEOUT_DEFAULT);
            let step = bare_step(STEP.to_owned(), work, &defaults, timeout);
            Box::new(Step { retries: 0, ..step })
        }),
        per_phase: said.per_phase.unwrap_or(usual.per_phase),
        per_run: said.per_run.unwrap_or(usual.per_run),
        complexity: said.complexity.unwrap_or(usual.complexity),
        tasks: said.tasks.unwrap_or(usual.tasks),
        test_failures: said.test_failures.unwrap_or(usual.test_failures),
        scope_drift: said.scope_drift.unwrap_or(usual.scope_drift),
    })
}

fn work(
    said: &Replan,
    agents: &BTreeMap<String, Agent>,
    defaults: &Defaults,
) -> Result<Option<Work>, UnknownAgent> {
    if let Some(run) = &said.run {
        return Ok(Some(Work::Run(run.clone())));
    }
    let usual = defaults.agent.as_ref().filter(|_| said.prompt.is_some());
    let Some(name) = said.agent.as_ref().or(usual) else { return Ok(None) };
    let Some(agent) = named(agents, name) else { return Err(UnknownAgent(name.clone())) };
    let prompt = said.prompt.clone().unwrap_or_else(|| PROMPT.to_owned());
    let (agent, command) = (name.clone(), agent.command);
    Ok(Some(Work::Prompt { agent, command, prompt }))
}

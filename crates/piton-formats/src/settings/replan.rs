//! `[replan]` of plan and settings: when phases are planned again, how and how often.

use piton_core::Millis;
use piton_core::complexity::Complexity;
use piton_core::plan::Command;

use crate::diagnostic::code;
use crate::sink::Sink;
use crate::text_rules::{check_template, read_command};
use crate::toml_reader::Node;

/// `[replan]` as it is written; `None` leaves the decision to the next wider place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replan {
    /// The command that writes the new plan.
    pub run: Option<Command>,
    /// The agent that does.
    pub agent: Option<String>,
    /// What it is told.
    pub prompt: Option<String>,
    /// Longest time.
    pub timeout: Option<Millis>,
    /// Most replans of a phase.
    pub per_phase: Option<u32>,
    /// Most replans of a run.
    pub per_run: Option<u32>,
    /// The complexity above which a phase is planned again.
    pub complexity: Option<Complexity>,
    /// The number of tasks above which it is.
    pub tasks: Option<u32>,
    /// Test failures in a row after which it is.
    pub test_failures: Option<u32>,
    /// Whether changes outside of a scope have it planned again.
    pub scope_drift: Option<bool>,
}

impl Replan {
    /// Reads the table, if it is there.
    pub(crate) fn read(root: &Node<'_, '_>, has_spec: bool, sink: &mut Sink<'_>) -> Option<Self> {
        let node = root.table("replan", sink)?;
        let prompt = node.text("prompt", sink);
        if let Some(prompt) = &prompt {
            check_template(&prompt.value, &prompt.span, has_spec, sink);
        }
        if let (Some(_), Some(span)) = (node.key_span("run"), node.key_span("agent")) {
            let message = "[replan] has both `run` and `agent`";
            sink.error(code::TWO_WORKS, &span, message, "keep one of them");
        }
        Some(Self {
            run: read_command(&node, "run", has_spec, sink),
            agent: node.text("agent", sink).map(|agent| agent.value),
            prompt: prompt.map(|prompt| prompt.value),
            timeout: node.duration_above_zero("timeout", sink),
            per_phase: node.count32("per_phase", sink),
            per_run: node.count32("per_run", sink),
            complexity: node.complexity("complexity", sink),
            tasks: node.count32("tasks", sink),
            test_failures: node.count32("test_failures", sink),
            scope_drift: node.flag("scope_drift", sink),
        })
    }

    /// The values of `narrower`, and these where it has none. A command replaces an agent, and the
    /// other way round.
    #[must_use]
    pub(crate) fn under(&self, narrower: Self) -> Self {
        let wider = if narrower.run.is_some() || narrower.agent.is_some() {
            (None, None)
        } else {
            (self.run.clone(), self.agent.clone())
        };
        Self {
            run: narrower.run.or(wider.0),
            agent: narrower.agent.or(wider.1),
            prompt: narrower.prompt.or_else(|| self.prompt.clone()),
            timeout: narrower.timeout.or(self.timeout),
            per_phase: narrower.per_phase.or(self.per_phase),
            per_run: narrower.per_run.or(self.per_run),
            complexity: narrower.complexity.or(self.complexity),
            tasks: narrower.tasks.or(self.tasks),
            test_failures: narrower.test_failures.or(self.test_failures),
            scope_drift: narrower.scope_drift.or(self.scope_drift),
        }
    }
}

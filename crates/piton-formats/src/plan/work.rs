//! What a step does: a command, or a prompt for an agent.
//!
//! The caller reads prompt files. Agents are resolved to their commands here, so that a run does
//! not depend on settings that change later.

use piton_core::plan::{Command, Work};

use super::PROMPT_BYTES_MAX;
use super::build::Builder;
use crate::diagnostic::{code, quoted};
use crate::keys;
use crate::settings::Defaults;
use crate::sink::Located;
use crate::text_rules::{check_path, check_template, read_command};
use crate::toml_reader::Node;

impl Builder<'_, '_> {
    /// The work of a step: exactly one kind.
    pub(super) fn work(
        &mut self,
        node: &Node<'_, '_>,
        id: &Located<String>,
        defaults: &Defaults,
    ) -> Option<Work> {
        let given: Vec<&str> = ["run", "prompt", "prompt_file"]
            .into_iter()
            .filter(|n| node.key_span(n).is_some())
            .collect();
        let [first, rest @ ..] = given.as_slice() else {
            let message = format!("the step {} has no work", quoted(&id.value));
            self.sink.error(
                code::MISSING,
                &node.span,
                message,
                "add `run`, `prompt` or `prompt_file`",
            );
            return None;
        };
        for second in rest {
            let message = format!("a step has both `{first}` and `{second}`");
            let span = node.key_span(second).unwrap_or(node.span.clone());
            self.sink.error(code::TWO_WORKS, &span, message, "keep one of them, or make two steps");
        }
        if *first == "run" {
            if let Some(span) = node.key_span("agent")
                && rest.is_empty()
            {
                let message = "`agent` has no effect on a step that runs a command";
                self.sink.warn(code::UNUSED, &span, message, "remove `agent`, or use `prompt`");
            }
            return read_command(node, "run", self.has_spec, self.sink).map(Work::Run);
        }
        let prompt = if *first == "prompt" { self.prompt(node) } else { self.prompt_file(node) };
        let (agent, command) = self.agent(node, first, defaults)?;
        Some(Work::Prompt { agent, command, prompt: prompt? })
    }

    fn prompt(&mut self, node: &Node<'_, '_>) -> Option<String> {
        let prompt = node.text("prompt", self.sink)?;
        check_template(&prompt.value, &prompt.span, self.has_spec, self.sink);
        Some(prompt.value)
    }

    fn prompt_file(&mut self, node: &Node<'_, '_>) -> Option<String> {
        let located = node.text("prompt_file", self.sink)?;
        let path = check_path("prompt_file", &located, self.sink)?;
        let mut refuse = |why: String| {
            let hint =
                "create the file or correct the path, which is relative to the project's root";
            let message = format!("the prompt file {} {why}", quoted(&path));
            self.sink.error(code::UNREADABLE_PROMPT, &located.span, message, hint);
        };
        let text = match (self.input.read)(&path) {
            Ok(text) => text,
            Err(error) => {
                refuse(format!("cannot be read: {error}"));
                return None;
            }
        };
        if text.len() > PROMPT_BYTES_MAX || text.trim().is_empty() {
            let large = format!("is larger than {PROMPT_BYTES_MAX} bytes");
            refuse(if text.trim().is_empty() { "is empty".to_owned() } else { large });
            return None;
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
        for problem in crate::template::check(&text) {
            let message =
                format!("{path}:{}:{}: {}", problem.line, problem.column, problem.message);
            self.sink.error(
                code::BAD_TEMPLATE,
                &located.span,
                message,
                problem.hint.unwrap_or_default(),
            );
        }
        Some(text)
    }

    /// The agent of a prompt, by name and command.
    fn agent(
        &mut self,
        node: &Node<'_, '_>,
        work: &str,
        defaults: &Defaults,
    ) -> Option<(String, Command)> {
        let span = node.key_span(work).unwrap_or(node.span.clone());
        let Some(name) = &defaults.agent else {
            let hint = "add `agent = \"NAME\"` to the step or to [defaults], such as \"claude\"";
            self.sink.error(code::UNKNOWN_AGENT, &span, "a prompt has no agent", hint);
            return None;
        };
        if let Some(agent) = self.agents.get(name) {
            return Some((name.clone(), agent.command.clone()));
        }
        if !self.reported_agents.contains(name) {
            let hint = self.agent_hint(name);
            let message = format!("the agent {} in the settings is not defined", quoted(name));
            self.sink.error(code::UNKNOWN_AGENT, &span, message, hint);
        }
        None
    }

    /// Reports agents that would take the place of another, and are not defined.
    pub(super) fn check_fallbacks(&mut self, root: &Node<'_, '_>) {
        let span = root.key_span("agents").unwrap_or(0..0);
        let all = self.agents.values().flat_map(|agent| &agent.rules.fallback);
        let unknown: Vec<String> =
            all.filter(|name| !self.agents.contains_key(*name)).cloned().collect();
        for name in unknown {
            let hint = self.agent_hint(&name);
            let message = format!("the agent {} in `fallback` is not defined", quoted(&name));
            self.sink.error(code::UNKNOWN_AGENT, &span, message, hint);
        }
    }

    pub(super) fn agent_hint(&self, name: &str) -> String {
        match keys::nearest(name, self.agents.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "add [agents.{name}] with command = [\"program\"] to the plan or the settings"
            ),
        }
    }
}

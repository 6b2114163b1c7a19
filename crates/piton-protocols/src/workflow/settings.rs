//! The settings of workflows: `[workflow]` in `piton.toml`.
//!
//! Everything has a default, so that a project that has an agent can run its plans.

use std::collections::BTreeMap;

use piton_formats::keys::{INHERITED, Kind, Section, WORK, key};
use serde::Deserialize;
use serde_json::Value;

use super::phase_id::PhaseId;

/// The folder of checkpoints.
const CHECKPOINTS: &str = ".claude/data/checkpoints";

/// One phase.
pub static PHASE: Section = Section::new(
    "[workflow.phase.ID]",
    "A phase that is different from what its plan and `[workflow]` say.",
    &[WORK, INHERITED],
);

/// The section of the protocol.
pub static WORKFLOW: Section = Section::new(
    "[workflow]",
    "How the phases of an implementation plan and the tasks of a task list are run.",
    &[
        &[
            key("checkpoints", Kind::Path, "the folder of checkpoints (.claude/data/checkpoints)"),
            key("prompt", Kind::Text, "a template for the prompt of a phase (built in)"),
            key("prompt_file", Kind::Path, "a file with that template"),
            key("task_prompt", Kind::Text, "a template for the prompt of a task (built in)"),
            key("test", Kind::Command, "tests a phase or task for which the plan names no test"),
            key("phase", Kind::Named(&PHASE), "phases that are different"),
        ],
        INHERITED,
    ],
);

/// The keys of `[workflow]` that are not keys of a step.
const OWN_KEYS: [&str; 5] = ["checkpoints", "prompt", "prompt_file", "task_prompt", "phase"];

/// The settings as they are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Settings {
    all: BTreeMap<String, Value>,
}

impl Settings {
    /// The settings of a project; without a section they are the defaults.
    pub(super) fn of(settings: &piton_formats::settings::Settings) -> Self {
        let section = settings.protocols.get(super::ID).cloned().unwrap_or_default();
        serde_json::from_value(section).unwrap_or_default()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.all.get(name)?.as_str()
    }

    /// The folder of checkpoints.
    pub(super) fn checkpoints(&self) -> &str {
        self.text("checkpoints").unwrap_or(CHECKPOINTS).trim_end_matches('/')
    }

    /// The template of a phase's prompt, and the file that has it.
    pub(super) fn prompt(&self) -> (Option<&str>, Option<&str>) {
        (self.text("prompt"), self.text("prompt_file"))
    }

    /// The template of a task's prompt.
    pub(super) fn task_prompt(&self) -> Option<&str> {
        self.text("task_prompt")
    }

    /// The phases that are different.
    pub(super) fn phases(&self) -> impl Iterator<Item = (PhaseId, &Value)> {
        let phases = self.all.get("phase").and_then(Value::as_object).into_iter().flatten();
        phases.filter_map(|(id, keys)| Some((PhaseId::read(id)?, keys)))
    }

    /// The keys of every step.
    pub(super) fn step(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.all.iter().filter(|(name, _)| !OWN_KEYS.contains(&name.as_str()))
    }
}

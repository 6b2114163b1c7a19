//! The settings of pipelines: `[pipeline]` in `piton.toml`.
//!
//! Everything has a default from the protocol, so that a project without settings can run a feature.

use std::collections::BTreeMap;

use piton_formats::keys::{COUNT_MAX, INHERITED, Key, Kind, Section, WORK, key};
use serde::Deserialize;
use serde_json::Value;

use super::stages::{self, STAGES};

/// Keys of a stage besides those of a step.
const STAGE_KEYS: &[Key] = &[
    key(
        "outputs",
        Kind::Words,
        "files that it makes, in the folder of the feature (those of the built-in stage)",
    ),
    key(
        "checkpoint",
        Kind::Text,
        "the box that a person ticks after it; \"none\" for no box (that of the built-in stage)",
    ),
    key(
        "read_only",
        Kind::Flag,
        "whether it may change nothing but its outputs (as the built-in stage)",
    ),
];

/// One stage.
pub static STAGE: Section = Section::new(
    "[pipeline.stage.NAME]",
    "A stage of a pipeline: what it is, and what is different from the built-in one.",
    &[STAGE_KEYS, WORK, INHERITED],
);

/// The section of the protocol.
pub static PIPELINE: Section = Section::new(
    "[pipeline]",
    "How features go through the stages of a pipeline.",
    &[&[
        key("agent", Kind::Text, "the agent of all stages (`defaults.agent`)"),
        key("stages", Kind::Words, "the stages, in order (the ten of the protocol)"),
        key("spec", Kind::Path, "the spec in the folder of a feature (feature.spec.md)"),
        key("state", Kind::Path, "the state file in the folder of a feature (.pipeline-state.md)"),
        key("features", Kind::Path, "the folder of all features (specs)"),
        key("same_failure", Kind::Count(2, COUNT_MAX), "the budget of that name (3)"),
        key("stage", Kind::Named(&STAGE), "stages that are different"),
    ]],
);

/// The settings as they are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    pub(super) agent: Option<String>,
    pub(super) stages: Option<Vec<String>>,
    pub(super) spec: Option<String>,
    pub(super) state: Option<String>,
    pub(super) features: Option<String>,
    pub(super) same_failure: Option<u32>,
    pub(super) stage: BTreeMap<String, BTreeMap<String, Value>>,
}

impl Settings {
    /// The settings of a project; without a section they are the defaults.
    pub(super) fn of(settings: &piton_formats::settings::Settings) -> Self {
        let section = settings.protocols.get(super::ID).cloned().unwrap_or_default();
        serde_json::from_value(section).unwrap_or_default()
    }

    /// The names of the stages, in order.
    pub(super) fn stages(&self) -> Vec<String> {
        let usual = || STAGES.iter().filter(|s| s.is_usual).map(|s| s.name.to_owned()).collect();
        self.stages.clone().unwrap_or_else(usual)
    }

    /// The spec in the folder of a feature.
    pub(super) fn spec(&self) -> &str {
        self.spec.as_deref().unwrap_or(stages::SPEC)
    }

    /// The folder of all features.
    pub(super) fn features(&self) -> &str {
        self.features.as_deref().unwrap_or("specs")
    }
}

//! The settings of sessions: `[session]` in `piton.toml`.

use std::collections::BTreeMap;

use piton_formats::keys::{Kind, Section, key};
use serde::Deserialize;
use serde_json::Value;

/// Tokens that fit into a conversation, if nobody says how many do.
pub const WINDOW_TOKENS: u64 = 200_000;

/// The section of the protocol.
pub static SESSION: Section = Section::new(
    "[session]",
    "Where the memory bank of agents' sessions is.",
    &[&[
        key("root", Kind::Path, "the folder of the memory bank (found by its files)"),
        key("protocol", Kind::Path, "the file whose front matter configures the protocol"),
        key("phase", Kind::Text, "the phase in checkpoints (from the type of the task)"),
        key(
            "window",
            Kind::Count(1_000, 100_000_000),
            "tokens that fit into a conversation (200000)",
        ),
    ]],
);

/// The settings as they are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Settings {
    all: BTreeMap<String, Value>,
}

impl Settings {
    /// The settings of a project; without a section they are the defaults.
    pub fn of(settings: &piton_formats::settings::Settings) -> Self {
        let section = settings.protocols.get(super::ID).cloned().unwrap_or_default();
        serde_json::from_value(section).unwrap_or_default()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.all.get(name)?.as_str()
    }

    /// The folder of the memory bank.
    pub fn root(&self) -> Option<&str> {
        self.text("root").map(|root| root.trim_end_matches('/'))
    }

    /// The file of the protocol.
    pub fn protocol(&self) -> Option<&str> {
        self.text("protocol")
    }

    /// The phase in checkpoints.
    pub fn phase(&self) -> Option<&str> {
        self.text("phase")
    }

    /// Tokens that fit into a conversation.
    pub fn window(&self) -> u64 {
        self.named_window().unwrap_or(WINDOW_TOKENS)
    }

    /// The same, if somebody says how many.
    pub fn named_window(&self) -> Option<u64> {
        self.all.get("window").and_then(Value::as_u64)
    }
}

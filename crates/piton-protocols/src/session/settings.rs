//! The settings of sessions: `[session]` in `piton.toml`.

use std::collections::BTreeMap;

use piton_core::agent::Window;
use piton_core::complexity::Complexity;
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
        key("warning", Kind::Decimal, "percent of them from which on a checkpoint is made (75)"),
        key("critical", Kind::Decimal, "percent from which on the agent stops (90)"),
        key("halt", Kind::Decimal, "percent from which on nothing more is begun (97.5)"),
    ]],
);

/// A share of a window in percent, as it is stored.
pub(super) fn per_mille(percent: &Value) -> Option<u32> {
    let hundredths = percent.to_string().parse::<Complexity>().ok()?;
    Some(hundredths.0 / 10)
}

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

    /// What is said of the window of a conversation.
    pub fn window(&self) -> Window {
        let share = |name: &str| self.all.get(name).and_then(per_mille);
        Window {
            tokens: self.all.get("window").and_then(Value::as_u64),
            warning: share("warning"),
            critical: share("critical"),
            halt: share("halt"),
        }
    }
}

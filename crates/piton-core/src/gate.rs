//! The state of a gate: what a person was asked, and what they decided.

use serde::{Deserialize, Serialize};

use crate::id::GateRef;
use crate::time::Timestamp;

/// The state of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateState {
    /// What is asked for.
    pub name: String,
    /// When it was first asked.
    pub asked_at: Timestamp,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// The last review at a gate that asked for changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reviewed {
    /// How often changes were wanted, from 1.
    pub round: u32,
    /// Who wanted them.
    pub by: String,
    /// The snapshot that was reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// The last approval of a run, of whatever gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approved {
    /// The gate.
    pub gate: GateRef,
    /// What was asked there.
    pub name: String,
    /// Who approved it.
    pub by: String,
    /// The newest snapshot at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// A person's decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Yes or no.
    pub approved: bool,
    /// Who.
    pub by: String,
    /// What they said.
    pub message: String,
    /// When.
    pub at: Timestamp,
}

//! Where the replans of a run stand: how many each phase has had, what asks for another, and which
//! plans the run had.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hash::Sha;
use crate::id::{GateRef, StepPath};
use crate::replan_event::{NoReplan, ReplanBegun, Trigger};
use crate::time::Timestamp;

/// In the place of a lane: what belongs to the replans of a phase. No lane can have that id.
pub const REPLAN_LANE: &str = "@replan";
/// Past replans that are kept of a phase; the ledger has all.
pub const HISTORY_KEPT_MAX: usize = 20;

/// Where the replans of a run stand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Replans {
    /// By phase; those that were never planned again and never asked for it are left out.
    pub phases: BTreeMap<String, PhaseReplans>,
    /// The one that is under way.
    pub under_way: Option<Box<UnderWay>>,
    /// The structures of plans that the run had, the oldest first.
    pub seen: Vec<SeenPlan>,
    /// How many there were in all.
    pub total: u32,
    /// The number of the last process.
    pub attempts: u32,
}

/// Where the replans of a phase stand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseReplans {
    /// How many it has had.
    pub count: u32,
    /// The last of them, the oldest first.
    pub history: Vec<PastReplan>,
    /// What asks for another one.
    pub due: Option<Due>,
    /// Why a person is asked, by what asked for a replan.
    pub questions: BTreeMap<Trigger, NoReplan>,
}

/// A replan that began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastReplan {
    /// When.
    pub at: Timestamp,
    /// What asked for it; unknown where another tool did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// Why, in one line; as the other tool wrote it.
    pub reason: String,
    /// Its number in the phase.
    pub number: u32,
    /// What the failure has in common with others of the same mistake.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature: String,
    /// The person who forced it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub forced_by: String,
    /// What came of it.
    pub result: ReplanResult,
    /// What it changed, or why it did not, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

/// What came of a past replan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplanResult {
    /// It is under way, or was interrupted.
    UnderWay,
    /// Another plan took effect.
    Replanned,
    /// It left the structure of the plan as it was.
    Unchanged,
    /// It failed.
    Failed,
    /// It went back to an earlier plan.
    Looped,
    /// A person took it back.
    Undone,
    /// Another tool did it.
    Imported,
}

impl ReplanResult {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnderWay => "under way",
            Self::Replanned => "replanned",
            Self::Unchanged => "unchanged",
            Self::Failed => "failed",
            Self::Looped => "looped",
            Self::Undone => "undone",
            Self::Imported => "imported",
        }
    }
}

/// What asks for a replan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Due {
    /// What it is.
    pub trigger: Trigger,
    /// Why, in one line.
    pub reason: String,
    /// The step that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepPath>,
    /// What the failure has in common with others of the same mistake.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature: String,
    /// The person who wants it whatever the limits say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub forced_by: String,
}

/// A replan that began and has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnderWay {
    /// Its intent.
    pub begun: ReplanBegun,
    /// When.
    pub since: Timestamp,
    /// Whether its process was cut short: it begins again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// A plan that the run had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenPlan {
    /// The hash of its structure.
    pub structure: Sha,
    /// Which plan that was, in words.
    pub words: String,
}

/// The gate at which a person is asked instead of a replan of a phase.
pub fn gate(phase: &str, trigger: Trigger) -> GateRef {
    GateRef(format!("{phase}/{REPLAN_LANE}/{trigger}"))
}

impl Replans {
    /// Whether there was none, and nothing asks for one.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How many replans a phase has had.
    pub fn count(&self, phase: &str) -> u32 {
        self.phases.get(phase).map_or(0, |p| p.count)
    }

    /// The past replans of all phases that are kept, the oldest first.
    pub fn history(&self) -> Vec<(&str, &PastReplan)> {
        let mut all: Vec<(&str, &PastReplan)> = self
            .phases
            .iter()
            .flat_map(|(id, phase)| phase.history.iter().map(move |past| (id.as_str(), past)))
            .collect();
        all.sort_by_key(|(_, past)| past.at);
        all
    }

    /// The process of the one that is under way and was not seen to end.
    pub fn process(&self) -> Option<(StepPath, u32)> {
        let under_way = self.under_way.as_ref().filter(|u| !u.interrupted)?;
        let begun = &under_way.begun;
        Some((StepPath::new(&begun.phase, REPLAN_LANE, "replan"), begun.attempt))
    }
}

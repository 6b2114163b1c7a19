//! What people decided about a run, in words and for programs.

use std::fmt;

use piton_core::Millis;
use serde::Serialize;

use crate::place::At;
use crate::shape::shapes;

shapes! {
    /// Something that a person decided.
    Decision {
        at: At, by: String, kind: Kind,
        /// What it is about.
        of: String,
        message: String,
        /// How long they had been asked.
        waited_ms: Option<Millis>,
    }
}

/// What kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words of each say it")]
pub enum Kind {
    Approved,
    Rejected,
    ChangesWanted,
    ApprovalTakenBack,
    Retried,
    Skipped,
    ReplanWanted,
    PlanAccepted,
    SpecAccepted,
    OutputsAccepted,
    Ticked,
    Checkpoint,
    RolledBack,
    Restored,
    Undone,
    Aborted,
    Cancelled,
    Archived,
    Refused,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::ChangesWanted => "asked for changes",
            Self::ApprovalTakenBack => "took back the approval",
            Self::Retried => "retried",
            Self::Skipped => "skipped",
            Self::ReplanWanted => "asked for a replan of",
            Self::PlanAccepted => "accepted the changed plan",
            Self::SpecAccepted => "accepted the changed spec",
            Self::OutputsAccepted => "accepted changed outputs",
            Self::Ticked => "ticked",
            Self::Checkpoint => "recorded a checkpoint",
            Self::RolledBack => "rolled back to",
            Self::Restored => "restored",
            Self::Undone => "undid",
            Self::Aborted => "aborted the run",
            Self::Cancelled => "cancelled the run",
            Self::Archived => "archived the run",
            Self::Refused => "was refused",
        })
    }
}

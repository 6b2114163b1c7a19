//! The words for where something stands, the same for runs, phases, lanes and steps.

use serde::{Deserialize, Serialize};

/// Where a run, phase, lane or step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not begun.
    Pending,
    /// At work.
    Running,
    /// Failed, and about to be tried again.
    Retrying,
    /// Waiting for a person, or for others to go first.
    Waiting,
    /// Waiting for a known time, such as the reset of a rate limit.
    Parked,
    /// Failed, with no attempt left.
    Failed,
    /// Blocked by something that a person must change.
    Blocked,
    /// Finished with its evidence recorded.
    Complete,
    /// Left out on a person's word.
    Skipped,
    /// Cut short: its driver is gone before the end, or its attempt was ended.
    Interrupted,
    /// Taken back to an earlier checkpoint.
    RolledBack,
    /// Ended by a person; may be resumed.
    Aborted,
    /// Ended by a person for good.
    Cancelled,
    /// Set aside for a fresh run; still listed.
    Archived,
}

impl Status {
    /// The word in views and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Waiting => "waiting",
            Self::Parked => "parked",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Complete => "complete",
            Self::Skipped => "skipped",
            Self::Interrupted => "interrupted",
            Self::RolledBack => "rolled_back",
            Self::Aborted => "aborted",
            Self::Cancelled => "cancelled",
            Self::Archived => "archived",
        }
    }

    /// Whether a run with this status is over for good.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Complete | Self::Cancelled | Self::Archived)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

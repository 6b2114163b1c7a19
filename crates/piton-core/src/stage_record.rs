//! The checkpoint of a lane at one of its stages: what a rollback goes back to, and what views show.

use serde::{Deserialize, Serialize};

use crate::lane::{Stage, StageStatus};
use crate::time::Timestamp;

/// A checkpoint of a lane at one of its stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Which stage.
    pub stage: Stage,
    /// Where it stands.
    pub status: StageStatus,
    /// When it was recorded.
    pub at: Timestamp,
    /// The number of the event that recorded it, counted from the first of the run.
    pub event: u64,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// The files at that point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The commit of base at that point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_sha: Option<String>,
    /// The lane's own commit at that point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_sha: Option<String>,
    /// The branch its work goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_branch: Option<String>,
    /// The test that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_command: Option<String>,
    /// How it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The last command that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_command: Option<String>,
    /// Number of the retry, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_attempt: Option<u32>,
    /// Retries there may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// What went wrong so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_context: Vec<String>,
    /// Whether nobody recorded it: a lane that was taken over needs it for its way back, and no view
    /// shows it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

impl StageRecord {
    /// A record with nothing in it but when it was made.
    pub fn blank(stage: Stage, status: StageStatus, at: Timestamp, event: u64) -> Self {
        Self {
            stage,
            status,
            at,
            event,
            notes: String::new(),
            snapshot: None,
            base_sha: None,
            head_sha: None,
            target_branch: None,
            test_command: None,
            exit_code: None,
            last_command: None,
            retry_attempt: None,
            max_retries: None,
            failure_context: Vec::new(),
            assumed: false,
        }
    }
}

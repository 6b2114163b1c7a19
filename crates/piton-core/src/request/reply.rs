//! The answer to a request, and how the inbox keeps it.

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It was carried out, in words.
    Done(String),
    /// It was not.
    Refused(Refusal),
}

impl Reply {
    /// A reply from the inbox; text that is not one says what was done.
    pub fn from_inbox(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| Self::Done(text.to_owned()))
    }

    /// The reply as the inbox keeps it.
    pub fn to_inbox(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<Result<String, Refusal>> for Reply {
    fn from(done: Result<String, Refusal>) -> Self {
        done.map_or_else(Self::Refused, Self::Done)
    }
}

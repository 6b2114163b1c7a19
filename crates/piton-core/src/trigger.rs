//! What asks for another plan, with its frozen word.

use serde::{Deserialize, Serialize};

/// What asks for another plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Trigger {
    /// The phase is more complex than the plan allows.
    #[serde(rename = "complexity_exceeded")]
    Complexity,
    /// The phase lists more tasks than the plan allows.
    #[serde(rename = "too_many_tasks")]
    Tasks,
    /// The test of a step failed too often in a row.
    #[serde(rename = "test_failures")]
    TestFailures,
    /// A step changed files outside of its scope.
    #[serde(rename = "scope_drift")]
    ScopeDrift,
    /// A step or a person asked for it.
    #[serde(rename = "requested")]
    Requested,
}

impl Trigger {
    /// Every trigger.
    pub const ALL: [Self; 5] =
        [Self::Complexity, Self::Tasks, Self::TestFailures, Self::ScopeDrift, Self::Requested];

    /// Its frozen word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complexity => "complexity_exceeded",
            Self::Tasks => "too_many_tasks",
            Self::TestFailures => "test_failures",
            Self::ScopeDrift => "scope_drift",
            Self::Requested => "requested",
        }
    }

    /// The trigger of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|trigger| trigger.as_str() == word)
    }
}

impl std::fmt::Display for Trigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_triggers_are_frozen() {
        for trigger in Trigger::ALL {
            assert_eq!(Trigger::from_word(trigger.as_str()), Some(trigger));
            let json = serde_json::to_string(&trigger).unwrap_or_default();
            assert_eq!(json, format!("\"{trigger}\""));
        }
    }
}

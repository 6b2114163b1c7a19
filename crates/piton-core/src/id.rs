//! Names of things: run ids, and paths of phase, lane and step.

use serde::{Deserialize, Serialize};

/// Longest id of a phase, lane or step: ids become file names and environment values.
pub const ID_BYTES_MAX: usize = 64;

/// The stable name of one run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

/// Names a lane: `PHASE/LANE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct LanePath {
    /// Id of the phase.
    pub phase: String,
    /// Id of the lane.
    pub lane: String,
}

/// Names a step: `PHASE/LANE/STEP`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct StepPath {
    /// Id of the phase.
    pub phase: String,
    /// Id of the lane.
    pub lane: String,
    /// Id of the step.
    pub step: String,
}

/// Names a gate by the place it guards: `PHASE` or `PHASE/LANE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GateRef(pub String);

/// A text that is not the path it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a path of the form {1}")]
pub struct BadPath(pub String, pub &'static str);

/// Whether a text may be the id of a phase, lane or step: it must be valid as the name of a file and
/// as part of the name of a branch.
pub fn is_valid_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    // Git refuses these in the name of a branch.
    let branch =
        !text.contains("..") && !text.ends_with('.') && text.strip_suffix(".lock").is_none();
    first
        && branch
        && text.len() <= ID_BYTES_MAX
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

impl StepPath {
    /// Makes a path from its three ids.
    pub fn new(phase: &str, lane: &str, step: &str) -> Self {
        Self { phase: phase.to_owned(), lane: lane.to_owned(), step: step.to_owned() }
    }

    /// The lane this step belongs to.
    pub fn lane(&self) -> LanePath {
        LanePath { phase: self.phase.clone(), lane: self.lane.clone() }
    }
}

macro_rules! text_form {
    ($type:ty, $form:literal, $($field:ident),+) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&[$(self.$field.as_str()),+].join("/"))
            }
        }
        impl From<$type> for String {
            fn from(path: $type) -> Self {
                path.to_string()
            }
        }
        impl std::str::FromStr for $type {
            type Err = BadPath;
            fn from_str(text: &str) -> Result<Self, BadPath> {
                let mut parts = text.split('/');
                let bad = || BadPath(text.to_owned(), $form);
                $(let $field = parts.next().filter(|p| !p.is_empty()).ok_or_else(bad)?.to_owned();)+
                if parts.next().is_some() {
                    return Err(bad());
                }
                Ok(Self { $($field),+ })
            }
        }
        impl TryFrom<String> for $type {
            type Error = BadPath;
            fn try_from(text: String) -> Result<Self, BadPath> {
                text.parse()
            }
        }
    };
}
text_form!(LanePath, "PHASE/LANE", phase, lane);
text_form!(StepPath, "PHASE/LANE/STEP", phase, lane, step);

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the names of questions begin with; no id of a plan may have the colon.
const QUESTION: &str = "ask:";

impl GateRef {
    /// The name of a question of an agent.
    pub fn question(number: usize) -> Self {
        Self(format!("{QUESTION}{number}"))
    }

    /// Whether it is a question of an agent, and no gate of a plan.
    pub fn is_question(&self) -> bool {
        self.0.starts_with(QUESTION)
    }
}

impl std::fmt::Display for GateRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_their_text_form() {
        let path = StepPath::new("P1", "SL-A", "build");
        assert_eq!(path.to_string().parse(), Ok(path.clone()));
        assert!("P1/A".parse::<StepPath>().is_err());
        assert!("P1/A/b/c".parse::<StepPath>().is_err());
        assert!("P1//b".parse::<StepPath>().is_err());
    }

    #[test]
    fn ids_are_safe_as_names_of_files_and_branches() {
        assert!(is_valid_id("SL-1.a_b") && is_valid_id("lock") && is_valid_id("a.locks"));
        for bad in ["", "a/b", "..", ".x", "a b", "é", "-x", "a..b", "a.", "a.lock"] {
            assert!(!is_valid_id(bad), "{bad}");
        }
    }
}

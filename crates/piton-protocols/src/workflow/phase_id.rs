//! The id of a phase, as plans and checkpoints write it: `3`, `2A`, `"3"`, `phase_3`.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

/// The id of a phase, without the word "phase". Ordered by number, then by text: 2, 2A, 2B, 10.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PhaseId(String);

impl PhaseId {
    /// Reads an id; `phase_3`, `Phase 3` and `3` are the same. `None` if nothing is left.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim().trim_matches(['"', '\'', '`', '*']).trim();
        let bare = match text.get(..5) {
            Some(word) if word.eq_ignore_ascii_case("phase") => {
                let rest = &text[5..];
                let id = rest.trim_start_matches([' ', '_', '-']);
                if rest.is_empty()
                    || id.len() < rest.len()
                    || id.starts_with(|c: char| c.is_ascii_digit())
                {
                    id
                } else {
                    text
                }
            }
            _ => text,
        };
        let bare = bare.trim();
        (!bare.is_empty()).then(|| Self(bare.to_owned()))
    }

    /// Reads an id from JSON: a number or a text.
    pub fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::read(text),
            Value::Number(number) => Self::read(&number.to_string()),
            _ => None,
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as a number, if it is one.
    pub fn number(&self) -> Option<u64> {
        // `01` is not the number 1: it would not be written back as it was.
        let is_plain = self.0 == "0" || !self.0.starts_with(['0', '+']);
        self.0.parse().ok().filter(|_| is_plain)
    }

    /// The id in JSON: a number where it is one, else a text.
    pub fn to_json(&self) -> Value {
        self.number().map_or_else(|| Value::from(self.0.as_str()), Value::from)
    }

    /// Tells whether both name the same phase: `2a` and `2A` do.
    pub fn is(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }

    /// The text that is the same for all ids of one phase.
    pub fn key(&self) -> String {
        self.0.to_ascii_uppercase()
    }

    fn leading(&self) -> u64 {
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        self.0[..digits].parse().unwrap_or(u64::MAX)
    }
}

impl Ord for PhaseId {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.leading(), &self.0).cmp(&(other.leading(), &other.0))
    }
}

impl PartialOrd for PhaseId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<u64> for PhaseId {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

impl fmt::Display for PhaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_an_id_are_one() {
        let three = Some(PhaseId::from(3));
        for text in ["3", " phase_3", "Phase 3", "phase-3", "phase3", "`3`"] {
            assert_eq!(PhaseId::read(text), three, "{text}");
        }
        assert_eq!(PhaseId::from_json(&Value::from(3)), three);
        assert_eq!(PhaseId::read("phases").map(|id| id.to_string()).as_deref(), Some("phases"));
        assert_eq!((PhaseId::read("phase "), PhaseId::read("phase_")), (None, None));
        assert_eq!(PhaseId::read("é phase"), Some(PhaseId("é phase".to_owned())));
    }

    #[test]
    fn ids_are_in_the_order_of_their_numbers() {
        let mut ids: Vec<PhaseId> =
            ["10", "2B", "x", "2", "2A", "1"].iter().filter_map(|id| PhaseId::read(id)).collect();
        ids.sort();
        let texts: Vec<&str> = ids.iter().map(PhaseId::as_str).collect();
        assert_eq!(texts, ["1", "2", "2A", "2B", "10", "x"]);
        assert_eq!(PhaseId::from(7).to_json(), Value::from(7));
        assert_eq!(PhaseId("07".to_owned()).to_json(), Value::from("07"));
    }
}

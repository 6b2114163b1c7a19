//! Names of a document as ids of a plan.

use piton_core::id::{ID_BYTES_MAX, is_valid_id};
use piton_core::plan::Step;
use piton_formats::plan::implicit::RESERVED;

/// A name of the document, or of records about it, as an id of the plan.
pub fn plan_id(name: &str) -> String {
    if is_valid_id(name) {
        return name.to_owned();
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let made: String = name.chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    let made = made.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let mut made: String = made.chars().take(ID_BYTES_MAX).collect();
    while made.contains("..") {
        made = made.replace("..", ".");
    }
    let made = made.trim_end_matches(['-', '.']);
    // Git refuses it in a branch name.
    let made = made.strip_suffix(".lock").map_or(made.to_owned(), |stem| format!("{stem}-lock"));
    if made.is_empty() { "x".to_owned() } else { made }
}

/// The same for a step, beside those that are there and those Piton adds.
pub(super) fn unused_id(name: &str, steps: &[Step]) -> String {
    let made = plan_id(name);
    let taken = |id: &str| RESERVED.contains(&id) || steps.iter().any(|step| step.id == id);
    if !taken(&made) {
        return made;
    }
    let numbered = |n: usize| {
        let tail = format!("-{n}");
        let head: String = made.chars().take(ID_BYTES_MAX - tail.len()).collect();
        format!("{head}{tail}")
    };
    // One more number than there are ids: one of them is free.
    let numbers = 2..steps.len() + RESERVED.len() + 3;
    numbers.map(numbered).find(|id| !taken(id)).unwrap_or(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_becomes_an_id() {
        for (name, id) in [
            ("P1", "P1"),
            ("Phase P1", "Phase-P1"),
            ("P1..2", "P1.2"),
            ("a....b.", "a.b"),
            ("P1.lock", "P1-lock"),
            ("…", "x"),
        ] {
            assert_eq!(plan_id(name), id);
            assert!(is_valid_id(id), "{id}");
        }
    }
}

//! What two failures have in common: the same mistake, whatever its times, numbers and paths.
//!
//! Two attempts seldom fail with the same text: durations, ids, line numbers and folders differ. So
//! failures are compared by words, without what changes from one attempt to the next.

use crate::event::Class;
use crate::hash::Sha;

/// Characters of a signature: 64 bits distinguish the failures of one step.
const CHARS: usize = 16;

/// The signature of a failure, from its class, its error and the last lines of its output.
pub fn signature(class: Class, error: &str, lines: &[String]) -> String {
    let lines = lines.iter().map(|line| normal(line)).filter(|line| !line.is_empty());
    // Tests that run side by side report in any order.
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines.dedup();
    let Sha(hash) = Sha::of_json(&(class, normal(error), lines));
    hash.chars().take(CHARS).collect()
}

/// A line without what differs between attempts.
fn normal(line: &str) -> String {
    let words = line.split_whitespace().map(word).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// A word with its numbers replaced; of a path the last part, for folders of attempts differ.
fn word(word: &str) -> String {
    let lower = word.to_lowercase();
    let name = match lower.rsplit_once('/') {
        Some((folder, name)) if !folder.is_empty() || lower.starts_with('/') => name,
        _ => &lower,
    };
    let is_hex = name.len() >= 7
        && name.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
        && name.contains(|c: char| c.is_ascii_digit());
    if is_hex {
        return "#".to_owned();
    }
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            // `1.25s` is one number.
            '0'..='9' | '.' | ',' | ':' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            _ => text.push(c),
        }
    }
    // A unit behind a number says only how long or how much.
    match text.strip_prefix('#') {
        Some("ms" | "s" | "m" | "h" | "us" | "ns" | "kb" | "mb" | "gb" | "%") => "#".to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> String {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        signature(Class::Test, "exit code 1", &lines)
    }

    /// Lost: a loop that fails alike each time goes on until its budget is gone.
    #[test]
    fn times_numbers_and_folders_do_not_make_another_failure() {
        let first = of(&[
            "2026-02-22T16:20:00Z FAIL tests/csv.rs:41 escapes quotes (0.31s)",
            "thread 'main' (4711) panicked at /tmp/.tmpA1b2/src/csv.rs:9:5",
            "2 failed, 31 passed in 4 ms",
        ]);
        let second = of(&[
            "2026-02-22T16:25:13Z FAIL tests/csv.rs:44 escapes quotes (1.02s)",
            "thread 'main' (99) panicked at /tmp/.tmpZ9/src/csv.rs:12:5",
            "3 failed, 30 passed in 311 ms",
        ]);
        assert_eq!(first, second);
    }

    #[test]
    fn another_test_class_or_error_is_another_failure() {
        let one = of(&["FAIL escapes quotes"]);
        assert_ne!(one, of(&["FAIL escapes commas"]));
        let lines = ["FAIL escapes quotes".to_owned()];
        assert_ne!(one, signature(Class::Command, "exit code 1", &lines));
        assert_ne!(one, signature(Class::Test, "it was silent", &lines));
    }

    #[test]
    fn the_order_of_lines_does_not_matter() {
        assert_eq!(of(&["a fails", "b fails"]), of(&["b fails", "a fails", "a fails"]));
    }
}

//! What a phase depends on, as its line says it: `[1, 2]`, `depends_on: [phase_1]`, `2A, 2B`,
//! `Phases 1-3`, `None`.

use piton_formats::markdown::inline::{is_none, without_brackets};

use super::heading::is_roman;
use crate::workflow::phase_id::PhaseId;

/// Longest range of phases; a longer one is a typing error.
const RANGE_MAX: u64 = 1000;
/// Words that may follow an id.
const FILLERS: [&str; 7] = ["complete", "completed", "completion", "done", "only", "first", "must"];

/// The phases that a value names, and the rest of it that names no phase.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub phases: Vec<PhaseId>,
    pub outside: Vec<String>,
}

/// Reads the value of a line such as `**Dependencies**: [1]`.
pub(super) fn read(value: &str) -> Named {
    let mut named = Named::default();
    let value = value.trim().trim_matches('*').trim();
    let lower = value.to_ascii_lowercase();
    let value = match lower.find("depends_on:") {
        Some(at) => &value[at + "depends_on:".len()..],
        None => value,
    };
    let value = value.trim();
    let list = match value.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((list, _)) => list.to_owned(),
        None => without_brackets(value),
    };
    if is_none(&list) {
        return named;
    }
    let list = list.replace(" and ", ",").replace(" & ", ",");
    for part in list.split([',', ';', '+']).map(str::trim).filter(|part| !part.is_empty()) {
        match phases(part) {
            Some(phases) => named.phases.extend(phases),
            None if is_none(part) => {}
            None => named.outside.push(part.to_owned()),
        }
    }
    named
}

/// The phases that one part of the list names.
fn phases(part: &str) -> Option<Vec<PhaseId>> {
    let part = part.trim().trim_matches(['"', '\'', '`', '*', '.']).trim();
    let lower = part.to_ascii_lowercase();
    let prefix = ["phases ", "phase_", "phase-", "phase "].iter().find(|p| lower.starts_with(**p));
    let bare = part[prefix.map_or(0, |prefix| prefix.len())..].trim_start();
    let end = bare.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(bare.len());
    let token = bare[..end].split("..").next().unwrap_or_default().trim_end_matches('.');
    let rest = bare[token.len()..].trim_start_matches('.').trim();
    let digits = token.bytes().take_while(u8::is_ascii_digit).count();
    let letters = token[digits..].bytes().filter(u8::is_ascii_alphabetic).count();
    let is_word = token.len() == 1 && prefix.is_some() || is_roman(token);
    let is_id = digits > 0 && letters <= 1 || digits == 0 && is_word;
    let id = PhaseId::read(token).filter(|_| is_id)?;
    if let Some(last) =
        ["-", "–", "to ", "through "].iter().find_map(|mark| rest.strip_prefix(mark))
    {
        return range(&id, last);
    }
    if bare[token.len()..].starts_with("..") {
        return range(&id, rest);
    }
    let follows = rest.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let is_filler = FILLERS.contains(&follows.trim_matches(|c: char| !c.is_alphanumeric()));
    let is_mark = !rest.starts_with(char::is_alphanumeric);
    (rest.is_empty() || prefix.is_some() || is_filler || is_mark).then(|| vec![id])
}

/// The phases from one number to another.
fn range(first: &PhaseId, last: &str) -> Option<Vec<PhaseId>> {
    let digits = last.trim_start().trim_start_matches("phase").trim_start_matches([' ', '_']);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (from, to) = (first.number()?, digits[..end].parse::<u64>().ok()?);
    (from <= to && to - from < RANGE_MAX).then(|| (from..=to).map(PhaseId::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(value: &str) -> (Vec<String>, Vec<String>) {
        let Named { phases, outside } = read(value);
        (phases.iter().map(ToString::to_string).collect(), outside)
    }

    #[test]
    fn phases_are_named_in_many_ways() {
        for (value, wanted) in [
            ("[1]", "1"),
            ("[1, 2]", "1 2"),
            ("[]", ""),
            ("None", ""),
            ("none (first phase)", ""),
            ("--", ""),
            ("depends_on: [phase_1, phase_2]", "1 2"),
            ("[\"phase_1\"]", "1"),
            ("2A, 2B", "2A 2B"),
            ("1.", "1"),
            ("1 (needs the schema, and more)", "1"),
            ("Phase 1, Phase 2A", "1 2A"),
            ("Phases 1 and 2", "1 2"),
            ("Phase 3 complete", "3"),
            ("Phases 1-3", "1 2 3"),
            ("1..3", "1 2 3"),
            ("3.1, 3.2", "3.1 3.2"),
            ("[1, 2] (both)", "1 2"),
        ] {
            assert_eq!(ids(value).0.join(" "), wanted, "{value}");
            assert_eq!(ids(value).1, [""; 0], "{value}");
        }
    }

    #[test]
    fn what_is_not_a_phase_is_kept_as_it_is() {
        for value in ["Task 7", "the API key", "3rd party library", "2 weeks"] {
            assert_eq!(ids(value), (vec![], vec![value.to_owned()]), "{value}");
        }
        assert_eq!(ids("1, Task 7"), (vec!["1".to_owned()], vec!["Task 7".to_owned()]));
    }
}

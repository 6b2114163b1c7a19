//! Attributes of a lane in brackets behind its name: `SL-1 — Impl (Depends on: SL-0; Parallel-safe: no)`.
//!
//! Brackets without a known key are part of the name. A name that still says what its lane waits for is
//! an error: the lane would start before it.

use super::draft::{Draft, Key, attribute};
use super::names::{id_at_start, is_gate_id, is_lane_id, is_phase_id};
use piton_formats::diagnostic::{code, quoted};
use piton_formats::markdown::Line;
use piton_formats::markdown::inline::{plain, split_outside};
use piton_formats::sink::Sink;

/// Begins a lane with what its name says of it.
pub(super) fn lane(id: String, name: &str, line: &Line<'_>, sink: &mut Sink<'_>) -> Draft {
    let (name, attributes) = taken_apart(name);
    let mut lane = Draft::new(id, name, line);
    for (key, value) in attributes {
        lane.set(key, &value, line, sink);
    }
    lane
}

/// Reports names that say what their lane waits for, in words that are not read.
pub(super) fn check(lanes: &[Draft], sink: &mut Sink<'_>) {
    for draft in lanes {
        let lower = draft.lane.name.to_lowercase();
        let named = ["depends on", "blocks"].into_iter().find(|word| {
            lower.match_indices(word).any(|(at, _)| {
                let rest = draft.lane.name.get(at + word.len()..).unwrap_or_default();
                names_one(rest.trim_start_matches([':', ' ']))
            })
        });
        if let Some(word) = named {
            let id = quoted(&draft.lane.id);
            let message =
                format!("the name of the lane {id} says what it {word}, which is not read");
            let key = if word == "blocks" { "Blocks" } else { "Depends on" };
            let hint = format!("write it as `; {key}: …`, or as `- {key}: …` below the lane");
            sink.error(code::BAD_VALUE, &draft.span, message, hint);
        }
    }
}

/// Whether a text begins with the id of a lane, a gate or a phase.
fn names_one(text: &str) -> bool {
    id_at_start(text).is_some_and(|id| is_lane_id(id) || is_gate_id(id) || is_phase_id(id))
}

/// A name without the brackets that hold attributes, and those.
fn taken_apart(name: &str) -> (String, Vec<(Key, String)>) {
    let (mut kept, mut found) = (String::new(), Vec::new());
    let mut rest = name;
    while let Some((open, close)) = brackets(rest) {
        let (remarks, attributes) = pieces(&rest[open + 1..close]);
        kept.push_str(&rest[..open]);
        if attributes.is_empty() {
            kept.push_str(&rest[open..=close]);
        } else if !remarks.is_empty() {
            kept.extend(["(", &remarks, ")"]);
        }
        found.extend(attributes);
        rest = &rest[close + 1..];
    }
    kept.push_str(rest);
    (kept.trim().to_owned(), found)
}

/// Where the first brackets open and close.
fn brackets(text: &str) -> Option<(usize, usize)> {
    let open = text.find('(')?;
    let mut depth = 0_u32;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((open, at));
        }
    }
    None
}

/// The attributes within brackets, and what stands before them.
fn pieces(inner: &str) -> (String, Vec<(Key, String)>) {
    let (mut remarks, mut found): (Vec<&str>, Vec<(Key, String)>) = (Vec::new(), Vec::new());
    for piece in split_outside(inner, b";,") {
        match (piece_as_attribute(piece), found.last_mut()) {
            (Some(attribute), _) => found.push(attribute),
            (None, Some((_, value))) => *value = format!("{value}, {piece}"),
            (None, None) => remarks.push(piece),
        }
    }
    (remarks.join("; "), found)
}

fn piece_as_attribute(piece: &str) -> Option<(Key, String)> {
    if let Some((key, value)) = attribute(piece).filter(|(key, _)| *key != Key::Other) {
        return Some((key, value.to_owned()));
    }
    let plain = plain(piece);
    let after = |words: &str| {
        let (head, rest) = plain.split_at_checked(words.len())?;
        let rest = rest.strip_prefix(' ')?.trim();
        head.eq_ignore_ascii_case(words).then(|| rest.to_owned())
    };
    if let Some(value) = after("depends on") {
        return Some((Key::DependsOn, value));
    }
    if let Some(value) = after("blocks").filter(|value| names_one(value)) {
        return Some((Key::Blocks, value));
    }
    match plain.to_lowercase().replace('-', " ").as_str() {
        "parallel safe" => Some((Key::ParallelSafe, "yes".to_owned())),
        "not parallel safe" => Some((Key::ParallelSafe, "no".to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_hold_attributes_or_a_part_of_the_name() {
        let read = |name: &str| {
            let (name, found) = taken_apart(name);
            let values: Vec<String> = found.into_iter().map(|(_, value)| value).collect();
            (name, values.join(" | "))
        };
        for (text, name, values) in [
            ("Impl (Depends on: SL-0; Parallel-safe: no)", "Impl", "SL-0 | no"),
            ("Impl (depends on SL-0, SL-1)", "Impl", "SL-0, SL-1"),
            ("Impl (core; blocks SL-3)", "Impl (core)", "SL-3"),
            ("Impl (parallel-safe, depends on: IF-0-P1-A) of it", "Impl  of it", "yes | IF-0-P1-A"),
            ("Render (code; blocks) of text", "Render (code; blocks) of text", ""),
            ("Impl (open", "Impl (open", ""),
            ("Impl (Parallel-safe: mixed (the lock file))", "Impl", "mixed (the lock file)"),
        ] {
            assert_eq!(read(text), (name.to_owned(), values.to_owned()), "{text}");
        }
    }
}

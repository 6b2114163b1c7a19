//! What a step wrote to `PITON_OUTPUT`: JSON objects, one or many.
//!
//! Known keys: `artifacts` (paths), `notes` (text), `tokens` (a number, or an object of numbers
//! that are added up), `cost_usd` (a number). The file is the step's word about itself; a broken
//! one is reported and never fails the step.

use std::path::Path;

use piton_core::event::Facts;
use piton_engine::world::Reported;
use serde_json::Value;

/// Largest file that is read: facts, not logs.
const BYTES_MAX: u64 = 1 << 20;
/// Most notes that are kept of one attempt.
const NOTES_MAX: usize = 20;

/// Reads the file; it stays until what it says is recorded.
pub fn read(path: &Path) -> Reported {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Reported::default();
    };
    let problem = |text: String| Reported { problem: Some(text), ..Reported::default() };
    if !metadata.is_file() {
        return problem("PITON_OUTPUT is no ordinary file and was not read".to_owned());
    }
    if metadata.len() > BYTES_MAX {
        return problem(format!("PITON_OUTPUT holds more than {BYTES_MAX} bytes and was not read"));
    }
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return problem(format!("PITON_OUTPUT could not be read: {error}")),
    };
    parse(&text)
}

fn parse(text: &str) -> Reported {
    let mut reported = Reported::default();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value {
            Ok(Value::Object(map)) => {
                for (key, value) in &map {
                    add(&mut reported, key, value);
                }
            }
            Ok(_) => reported.problem = Some("PITON_OUTPUT holds JSON that is no object".into()),
            Err(error) => {
                reported.problem = Some(format!("PITON_OUTPUT is not JSON: {error}"));
                break;
            }
        }
    }
    reported
}

fn add(reported: &mut Reported, key: &str, value: &Value) {
    let facts: &mut Facts = &mut reported.facts;
    match key {
        "artifacts" | "artifact" => {
            for path in texts(value) {
                if is_below(&path) {
                    reported.artifacts.push(path);
                } else {
                    reported.problem = Some(format!("artifact {path} is not below the project"));
                }
            }
        }
        "notes" | "note" => {
            let room = NOTES_MAX.saturating_sub(facts.notes.len());
            facts.notes.extend(texts(value).into_iter().take(room));
        }
        "tokens" => facts.tokens = facts.tokens.saturating_add(tokens(value)),
        "cost_usd" | "money" => {
            let dollars = value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            let micros = (dollars * 1e6).round().clamp(0.0, 1e18) as u64;
            facts.money_micros = facts.money_micros.saturating_add(micros);
        }
        _ => {}
    }
}

fn tokens(value: &Value) -> u64 {
    match value {
        Value::Object(map) => map.values().map(tokens).fold(0, u64::saturating_add),
        other => other.as_u64().unwrap_or(0),
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

fn is_below(path: &str) -> bool {
    use std::path::Component;
    let inside = |c: Component<'_>| matches!(c, Component::Normal(_) | Component::CurDir);
    !path.is_empty() && Path::new(path).components().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_add_up() {
        let said = parse(
            "{\"tokens\": {\"input\": 10, \"output\": 5}, \"cost_usd\": 0.25}\n{\"tokens\": 1, \
             \"artifacts\": \"a.txt\", \"notes\": [\"one\", \"two\"]}",
        );
        assert_eq!(said.facts.tokens, 16);
        assert_eq!(said.facts.money_micros, 250_000);
        assert_eq!(said.facts.notes, ["one", "two"]);
        assert_eq!(said.artifacts, ["a.txt"]);
        assert_eq!(said.problem, None);
    }

    /// Lost: a step that puts a device or a pipe there would hang its driver.
    #[test]
    fn what_is_no_file_is_not_read() {
        assert!(read(Path::new("/dev/zero")).problem.is_some());
    }

    #[test]
    fn a_broken_file_is_reported_and_what_came_before_counts() {
        let said = parse("{\"tokens\": 3} oops");
        assert_eq!(said.facts.tokens, 3);
        assert!(said.problem.is_some());
    }

    #[test]
    fn artifacts_outside_of_the_project_are_refused() {
        assert!(parse("{\"artifacts\": [\"../x\", \"/etc/passwd\"]}").artifacts.is_empty());
    }
}

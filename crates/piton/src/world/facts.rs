//! What a step wrote to `PITON_OUTPUT`: JSON objects, one or many.
//!
//! Known keys: `artifacts` (paths), `notes` (text), `tokens` (a number, or an object of numbers
//! that are added up), `cost_usd` (a number). The file is the step's word about itself; a broken
//! one is reported and never fails the step.

use std::io::Read as _;
use std::path::Path;

use piton_core::event::Facts;
use piton_engine::world::Reported;
use serde_json::Value;

/// Most that is read of the file: facts, not logs.
const BYTES_MAX: u64 = 1 << 20;
/// Most notes that are kept of one attempt.
const NOTES_MAX: usize = 20;
/// Most tokens that one number may say: a hundred times the most that a day of agents uses. What is
/// above is a mistake, and would end the run by its budget.
const TOKENS_MAX: u64 = 1_000_000_000_000;
/// Most dollars that one number may say, for the same reason.
const DOLLARS_MAX: f64 = 1_000_000.0;
/// Problems that are named; a step can make as many as it likes.
const PROBLEMS_MAX: usize = 5;
/// Characters of a value that is quoted in a problem.
const QUOTED_CHARS: usize = 60;

/// Reads the file; it stays until what it says is recorded.
pub fn read(path: &Path) -> Reported {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Reported::default();
    };
    let problem = |text: String| Reported { problem: Some(text), ..Reported::default() };
    if !metadata.is_file() {
        return problem("PITON_OUTPUT is no ordinary file and was not read".to_owned());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path);
    if let Err(error) = file.and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes)) {
        return problem(format!("PITON_OUTPUT could not be read: {error}"));
    }
    parse(&bytes, metadata.len() > BYTES_MAX)
}

/// What the objects say; `cut` if the file goes on.
fn parse(bytes: &[u8], cut: bool) -> Reported {
    let mut said = Said::default();
    for value in serde_json::Deserializer::from_slice(bytes).into_iter::<Value>() {
        match value {
            Ok(Value::Object(map)) => map.iter().for_each(|(key, value)| said.add(key, value)),
            Ok(_) => said.problem("PITON_OUTPUT holds JSON that is no object".to_owned()),
            // The object that begins before the end is not whole.
            Err(error) if cut && error.is_eof() => break,
            Err(error) => {
                said.problem(format!("PITON_OUTPUT is not JSON: {error}"));
                break;
            }
        }
    }
    if cut {
        said.problem(format!(
            "PITON_OUTPUT holds more than {BYTES_MAX} bytes; what follows them was not read"
        ));
    }
    said.done()
}

/// What was said so far, and what was wrong with it.
#[derive(Default)]
struct Said {
    reported: Reported,
    problems: Vec<String>,
}

impl Said {
    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    fn done(mut self) -> Reported {
        let more = self.problems.len().saturating_sub(PROBLEMS_MAX);
        self.problems.truncate(PROBLEMS_MAX);
        if more > 0 {
            self.problems.push(format!("and {more} more"));
        }
        self.reported.problem = (!self.problems.is_empty()).then(|| self.problems.join("; "));
        self.reported
    }

    fn add(&mut self, key: &str, value: &Value) {
        match key {
            "artifacts" | "artifact" => {
                for path in self.texts(key, value) {
                    self.artifact(path);
                }
            }
            "notes" | "note" => {
                let notes = self.texts(key, value);
                let facts: &mut Facts = &mut self.reported.facts;
                let room = NOTES_MAX.saturating_sub(facts.notes.len());
                facts.notes.extend(notes.into_iter().take(room));
            }
            "tokens" => self.tokens(value),
            "cost_usd" | "money" => {
                let dollars = value.as_f64().or_else(|| value.as_str()?.parse().ok());
                let Some(dollars) = dollars.filter(|d| (0.0..=DOLLARS_MAX).contains(d)) else {
                    let problem = format!("PITON_OUTPUT: {key} {} is no amount", quoted(value));
                    return self.problem(format!("{problem} of dollars and was not counted"));
                };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "in range"
                )]
                let micros = (dollars * 1e6).round() as u64;
                let facts = &mut self.reported.facts;
                facts.money_micros = facts.money_micros.saturating_add(micros);
            }
            _ => {}
        }
    }

    fn artifact(&mut self, path: String) {
        if is_below(&path) {
            self.reported.artifacts.push(path);
        } else {
            let quoted = quoted(&Value::String(path.clone()));
            let why = if Path::new(&path).is_absolute() {
                "is an absolute path; name it as seen from the project's root"
            } else {
                "is not below the project's root"
            };
            self.problem(format!("PITON_OUTPUT: artifact {quoted} {why}; it was not recorded"));
        }
    }

    fn tokens(&mut self, value: &Value) {
        if let Value::Object(map) = value {
            return map.values().for_each(|value| self.tokens(value));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, positive"
        )]
        let whole = || value.as_f64().filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as u64);
        match value.as_u64().or_else(whole).filter(|count| *count <= TOKENS_MAX) {
            Some(count) => {
                let facts = &mut self.reported.facts;
                facts.tokens = facts.tokens.saturating_add(count);
            }
            None => self.problem(format!(
                "PITON_OUTPUT: {} is no number of tokens and was not counted",
                quoted(value)
            )),
        }
    }

    /// The texts of a value; what is none is a problem.
    fn texts(&mut self, key: &str, value: &Value) -> Vec<String> {
        let items = match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut texts = Vec::new();
        for item in items {
            match item.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.problem(format!("PITON_OUTPUT: {key}: {} is no text", quoted(item))),
            }
        }
        texts
    }
}

/// A value as it is shown.
fn quoted(value: &Value) -> String {
    let text = value.to_string();
    let cut = text.chars().count() > QUOTED_CHARS;
    let mut shown: String = text.chars().take(QUOTED_CHARS).collect();
    if cut {
        shown.push('…');
    }
    shown
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
            b"{\"tokens\": {\"input\": 10, \"output\": 5}, \"cost_usd\": 0.25}\n{\"tokens\": 1, \
             \"artifacts\": \"a.txt\", \"notes\": [\"one\", \"two\"]}",
            false,
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
        let said = parse(b"{\"tokens\": 3} oops", false);
        assert_eq!(said.facts.tokens, 3);
        assert!(said.problem.is_some());
    }

    #[test]
    fn artifacts_outside_of_the_project_are_refused() {
        let said = parse(b"{\"artifacts\": [\"../x\", \"/etc/passwd\", \"a.txt\"]}", false);
        assert_eq!(said.artifacts, ["a.txt"]);
        let problem = said.problem.unwrap_or_default();
        assert!(problem.contains("\"../x\" is not below"), "{problem}");
        assert!(problem.contains("\"/etc/passwd\" is an absolute path"), "{problem}");
    }

    /// Lost: a budget would count what nobody used, or nobody would know that it was not counted.
    #[test]
    fn numbers_that_can_not_be_are_named_and_the_others_count() {
        let said = parse(
            b"{\"tokens\": {\"input\": -5, \"output\": 7, \"all\": 1e30}, \"cost_usd\": -0.5}\n\
              {\"tokens\": 2.0, \"cost_usd\": 0.5, \"notes\": [4, \"kept\"]} {\"tokens\": \"many\"}",
            false,
        );
        assert_eq!((said.facts.tokens, said.facts.money_micros), (9, 500_000));
        assert_eq!(said.facts.notes, ["kept"]);
        let problem = said.problem.unwrap_or_default();
        for word in ["-5 is no", "1e+30 is no", "-0.5 is no amount", "4 is no text", "\"many\""] {
            assert!(problem.contains(word), "{word}: {problem}");
        }
    }

    /// Lost: one note too many would lose the tokens that were said before it.
    #[test]
    fn of_too_much_the_beginning_counts() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("output");
        let note = "x".repeat(usize::try_from(BYTES_MAX).unwrap_or_default());
        std::fs::write(&path, format!("{{\"tokens\": 3}}\n{{\"notes\": \"{note}\"}}"))?;
        let said = read(&path);
        assert_eq!((said.facts.tokens, said.facts.notes.len()), (3, 0));
        assert!(said.problem.unwrap_or_default().contains("more than 1048576 bytes"));
        Ok(())
    }
}

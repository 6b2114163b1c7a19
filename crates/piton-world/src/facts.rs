//! What a step wrote to `PITON_OUTPUT`: JSON objects, one or many.
//!
//! Known keys: `artifacts` (paths), `notes` (text), `tokens` (a number, or an object of numbers
//! that are added up), `cost_usd` (a number), `trying` (the command that it runs next), `complexity` (of its phase). The file is the step's word about itself; a broken
//! one is reported and never fails the step.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use piton_core::event::Facts;
use piton_engine::world::Reported;
use rustix::io::Errno;
use serde_json::Value;

/// The most bytes that are read of the file: it has facts, not logs.
const BYTES_MAX: u64 = 1 << 20;
/// The most notes that are kept of one attempt.
const NOTES_MAX: usize = 20;
/// The most tokens that one number may be: a hundred times what agents use in a day. A larger number is
/// a mistake, and would end the run by its budget.
const TOKENS_MAX: u64 = 1_000_000_000_000;
/// The most dollars that one number may be, for the same reason.
const DOLLARS_MAX: f64 = 1_000_000.0;
/// The most problems that are named.
const PROBLEMS_MAX: usize = 5;
/// Faults after which the rest is not read: a file with more is not a list of facts.
const FAULTS_MAX: usize = 1000;
/// Characters of a value that is quoted in a problem.
const QUOTED_CHARS: usize = 60;

/// Reads the file; it is kept until what it says is recorded.
pub fn read(file: io::Result<File>) -> Reported {
    let problem = |text: String| Reported { problem: Some(text), ..Reported::default() };
    let read = |file: &File| -> io::Result<_> {
        let about = file.metadata()?;
        let mut bytes = Vec::new();
        if about.is_file() {
            file.take(BYTES_MAX).read_to_end(&mut bytes)?;
        }
        Ok((about, bytes))
    };
    match file.and_then(|file| read(&file)) {
        Ok((about, bytes)) if about.is_file() => parse(&bytes, about.len() > BYTES_MAX),
        Ok(_) => problem("PITON_OUTPUT is not an ordinary file and was not read".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Reported::default(),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            problem("PITON_OUTPUT is a link and was not read; write the file itself".to_owned())
        }
        Err(error) => problem(format!("PITON_OUTPUT could not be read: {error}")),
    }
}

/// What the objects say; `cut` if the file is longer.
///
/// A line that can't be read is skipped, and what follows counts.
fn parse(bytes: &[u8], cut: bool) -> Reported {
    let mut said = Said::default();
    let (mut from, mut faults) = (0, 0);
    while faults < FAULTS_MAX {
        let rest = &bytes[from..];
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
        let Some(error) = values.find_map(|value| said.value(value).err()) else { break };
        // An object that is cut off is incomplete.
        if cut && error.is_eof() {
            break;
        }
        faults += 1;
        let begins = from + values.byte_offset();
        let line = bytes[..begins].split(|b| *b == b'\n').count();
        said.problem(format!("PITON_OUTPUT is not JSON in line {line}"));
        let Some(end) = bytes[begins..].iter().position(|b| *b == b'\n') else { break };
        from = begins + end;
    }
    if faults == FAULTS_MAX {
        said.problem(format!("the rest was not read after {FAULTS_MAX} such faults"));
    }
    if cut {
        said.problem(format!(
            "PITON_OUTPUT has more than {BYTES_MAX} bytes; the rest was not read"
        ));
    }
    said.done()
}

/// What the step reported so far, and what was wrong with it.
#[derive(Default)]
struct Said {
    reported: Reported,
    problems: Vec<String>,
}

impl Said {
    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    /// Adds what a value says; an error is handed back.
    fn value(&mut self, value: serde_json::Result<Value>) -> serde_json::Result<()> {
        match value? {
            Value::Object(map) => map.iter().for_each(|(key, value)| self.add(key, value)),
            _ => self.problem("PITON_OUTPUT has JSON that is not an object".to_owned()),
        }
        Ok(())
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
                let left = NOTES_MAX.saturating_sub(facts.notes.len());
                facts.notes.extend(notes.into_iter().take(left));
            }
            "trying" => self.reported.trying = self.texts(key, value).pop(),
            "tokens" => self.tokens(value),
            "complexity" => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let Ok(found) = text.parse() else {
                    let what = quoted(value);
                    return self.problem(format!("PITON_OUTPUT: {what} is not a complexity"));
                };
                self.reported.complexity = Some(found);
            }
            "cost_usd" | "money" => {
                let dollars = value.as_f64().or_else(|| value.as_str()?.parse().ok());
                let Some(dollars) = dollars.filter(|d| (0.0..=DOLLARS_MAX).contains(d)) else {
                    let problem = format!("PITON_OUTPUT: {key} {} is not an amount", quoted(value));
                    return self.problem(format!("{problem} of dollars and was not counted"));
                };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "in range"
                )]
                let micros = (dollars * 1e6).round() as u64;
                self.reported.has_cost = true;
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
            let why = "is not a path below the project's root";
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
                "PITON_OUTPUT: {} is not a number of tokens and was not counted",
                quoted(value)
            )),
        }
    }

    /// The texts of a value; anything else is a problem.
    fn texts(&mut self, key: &str, value: &Value) -> Vec<String> {
        let items = match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut texts = Vec::new();
        for item in items {
            match item.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.problem(format!("PITON_OUTPUT: {key}: {} is not text", quoted(item))),
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
        assert!(read(File::open("/dev/zero")).problem.is_some());
    }

    /// Lost: one line that is not JSON, and all that an agent used after it would cost nothing.
    #[test]
    fn a_bad_line_costs_only_itself() {
        for (text, tokens, lines) in [
            ("{\"tokens\":7}\nnot json\n{\"tokens\":5}\n", 12, &[2][..]),
            ("not json\n\n{\"tokens\":7}\n{\"tokens\":5}", 12, &[1]),
            ("{\"tokens\":7\n{\"tokens\":5}\n", 5, &[1]),
            ("[\"open\",\n{\"tokens\":5}\n", 5, &[1]),
            ("{\"tokens\":7} oops\n{\"tokens\":5}{\"tokens\":1}", 13, &[1]),
            ("{\n  \"tokens\":\n  7\n}\n\noops\n{\n\"tokens\": 5}", 12, &[6]),
            ("\u{fffd}\n{\"tokens\":5}\noops", 5, &[1, 3]),
        ] {
            let said = parse(text.as_bytes(), false);
            assert_eq!(said.facts.tokens, tokens, "{text}");
            let problem = said.problem.unwrap_or_default();
            let named = |line| problem.contains(&format!("is not JSON in line {line}"));
            assert!(lines.iter().all(named), "{problem}");
            assert_eq!(problem.matches("PITON_OUTPUT").count(), lines.len(), "{problem}");
        }
        let said = parse("[\n".repeat(200_000).as_bytes(), false);
        assert!(said.problem.is_some_and(|p| p.contains("more")), "it ends");
    }

    #[test]
    fn artifacts_outside_of_the_project_are_refused() {
        let said = parse(b"{\"artifacts\": [\"../x\", \"/etc/passwd\", \"a.txt\"]}", false);
        assert_eq!(said.artifacts, ["a.txt"]);
        let problem = said.problem.unwrap_or_default();
        assert!(problem.contains("\"../x\" is not a path below"), "{problem}");
        assert!(problem.contains("\"/etc/passwd\" is not a path below"), "{problem}");
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
        for word in
            ["-5 is not", "1e+30 is not", "-0.5 is not an amount", "4 is not text", "\"many\""]
        {
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
        let said = read(File::open(&path));
        assert_eq!((said.facts.tokens, said.facts.notes.len()), (3, 0));
        assert!(said.problem.unwrap_or_default().contains("more than 1048576 bytes"));
        Ok(())
    }
}

//! A step in full: what it is, and every attempt with its outcome.

use std::fmt::Write as _;

use piton_core::event::{Event, FileHash, LogRanges, Next, Outcome, StepFinished};
use piton_core::plan::Step;
use piton_core::redact::Redactor;
use piton_core::state::StepState;
use piton_core::summary::step_status;
use piton_core::{StepPath, Timestamp};
use piton_engine::{Loaded, Store};
use serde::Serialize;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui::{self, text, time};

/// One thing that happened to the step.
#[derive(Debug, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum Happened {
    Attempt(Box<Attempt>),
    Reset { at: String, reason: String },
    Retried { at: String, by: String },
    Skipped { at: String, by: String, satisfy: bool },
}

/// One attempt.
#[derive(Debug, Default, Serialize)]
struct Attempt {
    #[serde(rename = "attempt")]
    number: u32,
    started_at: String,
    finished_at: Option<String>,
    outcome: &'static str,
    class: Option<piton_core::event::Class>,
    error: Option<String>,
    lines: Vec<String>,
    next_at: Option<String>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    duration_ms: Option<u64>,
    logs: Option<LogRanges>,
    artifacts: Vec<FileHash>,
    tokens: u64,
    cost_usd: f64,
    notes: Vec<String>,
}

/// Shows a step.
pub fn show(context: &Context, store: &mut Store, loaded: &Loaded, path: &StepPath) -> Result<()> {
    let Some(state) = loaded.state.step(path) else {
        return Err(CommandError::usage("no-step", format!("there is no step {path} in this run"))
            .hint(format!("`piton status {}` shows its steps", loaded.row.run_id)));
    };
    let phase = loaded.state.phase(&path.phase);
    let status = phase
        .zip(loaded.state.lane(&path.lane()))
        .map_or(state.status(), |(phase, lane)| step_status(&loaded.state, phase, lane, state));
    let happened = happened(store, loaded, path)?;
    let plan = store.plan(&loaded.state).ok();
    let step = plan.as_ref().and_then(|p| p.step(path));
    if context.json {
        ui::data_json(&json!({
            "run_id": loaded.row.run_id,
            "step": path,
            "status": status,
            "attempts": state.attempts,
            "exit_code": state.exit_code,
            "definition": step.map(|s| redacted(context, s)),
            "definition_hash": state.definition,
            "inputs": state.inputs,
            "artifacts": state.artifacts,
            "failure_context": state.failure_context,
            "rerun": state.rerun,
            "history": happened,
        }));
        return Ok(());
    }
    let mut out = format!("{} {path}: {status}\n", loaded.row.run_id);
    if let Some(step) = step {
        definition(&mut out, context, step);
    }
    files(&mut out, "input", &state.inputs);
    files(&mut out, "artifact", &state.artifacts);
    if let Some(reason) = &state.rerun {
        let _ = writeln!(out, "runs again: {}", text::sanitize(reason));
    }
    for one in &happened {
        tell(&mut out, one);
    }
    failures(&mut out, state);
    let log = format!("piton log {} --step {path}", loaded.row.run_id);
    let _ = writeln!(out, "\noutput: {}", ui::here::told(&log));
    ui::data(out.trim_end());
    Ok(())
}

fn happened(store: &mut Store, loaded: &Loaded, path: &StepPath) -> Result<Vec<Happened>> {
    let mut all: Vec<Happened> = Vec::new();
    store.each_event(&loaded.row, 0, |_, at, event| {
        if event.step() == Some(path) {
            take(&mut all, at, event);
        }
    })?;
    Ok(all)
}

fn take(all: &mut Vec<Happened>, at: Timestamp, event: &Event) {
    let at = time::rfc3339(at);
    match event {
        Event::StepStarted(e) => all.push(Happened::Attempt(Box::new(Attempt {
            number: e.attempt,
            started_at: at,
            outcome: "running",
            ..Attempt::default()
        }))),
        Event::StepFinished(e) => {
            let open = all.iter_mut().rev().find_map(|h| match h {
                Happened::Attempt(a) if a.number == e.attempt => Some(a),
                _ => None,
            });
            if let Some(attempt) = open {
                finish(attempt, at, e);
            }
        }
        Event::StepReset(e) => all.push(Happened::Reset { at, reason: e.reason.clone() }),
        Event::StepRetried(e) => all.push(Happened::Retried { at, by: e.by.clone() }),
        Event::StepSkipped(e) => {
            all.push(Happened::Skipped { at, by: e.by.clone(), satisfy: e.satisfy });
        }
        _ => {}
    }
}

fn finish(attempt: &mut Attempt, at: String, e: &StepFinished) {
    attempt.finished_at = Some(at);
    attempt.exit_code = e.exit_code;
    attempt.signal = e.signal;
    attempt.duration_ms = Some(e.duration_ms.0);
    attempt.logs = Some(e.logs);
    attempt.artifacts.clone_from(&e.artifacts);
    attempt.tokens = e.facts.tokens;
    #[expect(clippy::cast_precision_loss, reason = "millionths of a dollar, for people")]
    let dollars = e.facts.money_micros as f64 / 1e6;
    attempt.cost_usd = dollars;
    attempt.notes.clone_from(&e.facts.notes);
    attempt.outcome = match &e.outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed { class, error, lines, next } => {
            attempt.class = Some(*class);
            attempt.error = Some(error.clone());
            attempt.lines.clone_from(lines);
            attempt.next_at = match next {
                Next::Retry { at } | Next::Wait { until: at } => Some(time::rfc3339(*at)),
                Next::Fail => None,
            };
            "failed"
        }
        Outcome::Interrupted { why } => {
            attempt.error = Some(why.clone());
            "interrupted"
        }
    };
}

/// The step as JSON; commands may hold secrets that the environment knows.
fn redacted(context: &Context, step: &Step) -> Value {
    let mut value = serde_json::to_value(step).unwrap_or_default();
    redact_texts(&mut value, &context.redactor);
    value
}

/// Text by text: in JSON a secret may be written in another way, and a key end with the document.
fn redact_texts(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.redact(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| redact_texts(item, redactor)),
        Value::Object(map) => map.values_mut().for_each(|item| redact_texts(item, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn definition(out: &mut String, context: &Context, step: &Step) {
    let redact = |text: &str| text::sanitize_lines(&context.redactor.redact(text));
    let _ = writeln!(out, "runs      {}", redact(&step.work.display()));
    if let Some(test) = &step.test {
        let _ = writeln!(out, "test      {}", redact(&test.display()));
    }
    if !step.dir.is_empty() {
        let _ = writeln!(out, "in        {}", text::sanitize(&step.dir));
    }
    let _ = write!(out, "limits    {}, timeout {}", retries(step.retries), step.timeout);
    let _ = match step.idle_timeout {
        Some(idle) => writeln!(out, ", idle timeout {idle}"),
        None => writeln!(out),
    };
}

fn retries(retries: u32) -> String {
    if retries == 1 { "1 retry".to_owned() } else { format!("{retries} retries") }
}

fn files(out: &mut String, kind: &str, files: &[FileHash]) {
    for file in files {
        let _ = writeln!(out, "{kind:9} {} {}", file.sha256.short(), text::sanitize(&file.path));
    }
}

fn tell(out: &mut String, happened: &Happened) {
    let _ = match happened {
        Happened::Reset { at, reason } => {
            writeln!(out, "\n{at} to run again: {}", text::sanitize(reason))
        }
        Happened::Retried { at, by } => {
            writeln!(out, "\n{at} given further attempts by {}", text::sanitize(by))
        }
        Happened::Skipped { at, by, satisfy } => {
            let counts = if *satisfy { ", counts as done" } else { "" };
            writeln!(out, "\n{at} skipped by {}{counts}", text::sanitize(by))
        }
        Happened::Attempt(attempt) => {
            tell_attempt(out, attempt);
            Ok(())
        }
    };
}

fn tell_attempt(out: &mut String, a: &Attempt) {
    let _ = write!(out, "\nattempt {}: {}", a.number, a.outcome);
    if let Some(code) = a.exit_code {
        let _ = write!(out, ", exit {code}");
    }
    if let Some(signal) = a.signal {
        let _ = write!(out, ", signal {signal}");
    }
    if let Some(ms) = a.duration_ms {
        let _ = write!(out, ", {}", piton_core::Millis(ms));
    }
    let _ = write!(out, "\n  started {}", a.started_at);
    if let Some(at) = &a.finished_at {
        let _ = write!(out, ", finished {at}");
    }
    out.push('\n');
    if let Some(error) = &a.error {
        let class = a.class.and_then(|c| serde_json::to_value(c).ok());
        let class =
            class.as_ref().and_then(|c| c.as_str()).map_or(String::new(), |c| format!(" ({c})"));
        let _ = writeln!(out, "  {}{class}", text::sanitize(error));
    }
    for line in &a.lines {
        let _ = writeln!(out, "  | {}", text::sanitize(line));
    }
    if let Some(next) = &a.next_at {
        let _ = writeln!(out, "  next attempt not before {next}");
    }
    if let Some(logs) = a.logs.filter(|l| !l.is_empty()) {
        let (o, e) = (logs.stdout, logs.stderr);
        let _ = writeln!(out, "  output bytes {}-{}, errors {}-{}", o.0, o.1, e.0, e.1);
    }
    for note in &a.notes {
        let _ = writeln!(out, "  note: {}", text::sanitize(note));
    }
    if a.tokens > 0 {
        let _ = writeln!(out, "  {} tokens", a.tokens);
    }
    if a.cost_usd > 0.0 {
        let _ = writeln!(out, "  {:.2} dollars", a.cost_usd);
    }
}

fn failures(out: &mut String, state: &StepState) {
    if !state.failure_context.is_empty() {
        out.push_str("\nthe next attempt is told\n");
        for line in state.failure_text().lines() {
            let _ = writeln!(out, "  {}", text::sanitize(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use piton_core::Millis;
    use piton_core::event::{Class, Facts, StepRetried, StepStarted};
    use piton_core::hash::Sha;

    use super::*;

    #[test]
    fn each_attempt_is_told_with_its_outcome() {
        let step = StepPath::new("P1", "A", "build");
        let mut all = Vec::new();
        let definition = Sha::of(b"");
        let started = StepStarted {
            step: step.clone(),
            attempt: 1,
            definition,
            inputs: Vec::new(),
            before: None,
            tests_only: false,
            secrets: Vec::new(),
        };
        let outcome = Outcome::Failed {
            class: Class::Test,
            error: "exit 1".to_owned(),
            lines: vec!["\u{1b}[31mboom".to_owned()],
            next: Next::Fail,
        };
        let finished = StepFinished {
            step: step.clone(),
            attempt: 1,
            outcome,
            exit_code: Some(1),
            signal: None,
            duration_ms: Millis(4200),
            logs: LogRanges::default(),
            artifacts: Vec::new(),
            inputs: None,
            facts: Facts::default(),
            after: None,
            tests: Vec::new(),
            stirred: false,
            command: None,
            retries_max: None,
        };
        take(&mut all, Timestamp(0), &Event::StepStarted(started));
        take(&mut all, Timestamp(4200), &Event::StepFinished(Box::new(finished)));
        let retried = StepRetried { step, by: "ann".to_owned() };
        take(&mut all, Timestamp(5000), &Event::StepRetried(retried));
        let mut out = String::new();
        for one in &all {
            tell(&mut out, one);
        }
        assert!(out.contains("attempt 1: failed, exit 1, 4.2s\n"), "{out}");
        assert!(out.contains("  exit 1 (test)\n  | boom\n"), "{out}");
        assert!(out.contains("further attempts by ann"), "{out}");
    }
}

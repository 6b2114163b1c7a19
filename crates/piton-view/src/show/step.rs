//! A step in full: what it is, and every attempt with its outcome.

use std::fmt::Write as _;

use piton_core::event::{Class, Event, FileHash, LogRanges, Next, Outcome, StepFinished};
use piton_core::hash::Sha;
use piton_core::plan;
use piton_core::redact::Redactor;
use piton_core::state::FailedAttempt;
use piton_core::{Millis, Status, StepPath, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::place::{At, Place};
use crate::run::{Lane, RunView, Step};
use crate::shape::shapes;
use crate::text::{sanitize, sanitize_lines};
use crate::words;

/// One thing that happened to the step.
#[derive(Debug, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Happened {
    Attempt(Box<Attempt>),
    Reset { at: At, reason: String },
    Retried { at: At, by: String },
    Skipped { at: At, by: String, satisfy: bool },
}

shapes! {
    /// One attempt.
    #[derive(Default)]
    Attempt {
        #[serde(rename = "attempt")] number: u32, started_at: At, finished_at: Option<At>,
        outcome: &'static str, class: Option<Class>, error: Option<String>, lines: Vec<String>,
        next_at: Option<At>, exit_code: Option<i32>, signal: Option<i32>,
        duration_ms: Option<Millis>, logs: Option<LogRanges>, artifacts: Vec<FileHash>,
        tokens: u64, cost_usd: f64, notes: Vec<String>,
    }

    /// A step in full: what it is, and every attempt with its outcome.
    StepView<'a> {
        run_id: &'a str, step: &'a StepPath, status: Status, attempts: u32,
        exit_code: Option<i32>, definition: Option<Value>, definition_hash: Option<&'a Sha>,
        inputs: &'a [FileHash], artifacts: &'a [FileHash],
        failure_context: &'a [FailedAttempt], rerun: Option<&'a str>, history: &'a [Happened],
        #[serde(skip)] words: String, #[serde(skip)] failures: String,
        #[serde(skip)] place: &'a Place,
    }
}

impl<'a> StepView<'a> {
    /// A step of a run; what its plan says of it may hold secrets that the environment knows.
    pub fn new(
        view: &RunView<'a>,
        path: &'a StepPath,
        definition: Option<&plan::Step>,
        redactor: &Redactor,
        history: &'a [Happened],
    ) -> Option<Self> {
        let is_it = |(lane, step): &(&Lane<'_>, &Step<'_>)| lane.step(step.id) == *path;
        let (_, Step { status, state, .. }) = view.steps().find(is_it)?;
        Some(Self {
            run_id: view.run_id,
            step: path,
            status: *status,
            attempts: state.attempts,
            exit_code: state.exit_code,
            definition: definition.map(|step| redacted(step, redactor)),
            definition_hash: state.definition.as_ref(),
            inputs: &state.inputs,
            artifacts: &state.artifacts,
            failure_context: &state.failure_context,
            rerun: state.rerun.as_deref(),
            history,
            words: definition.map(|step| defined(step, redactor)).unwrap_or_default(),
            failures: state.failure_text(),
            place: view.place,
        })
    }

    /// For people.
    pub fn render(&self) -> String {
        let (run, path) = (self.run_id, self.step);
        let mut out = format!("{run} {path}: {}\n{}", self.status, self.words);
        for (kind, files) in [("input", self.inputs), ("artifact", self.artifacts)] {
            for FileHash { path, sha256 } in files {
                let _ = writeln!(out, "{kind:9} {} {}", sha256.short(), sanitize(path));
            }
        }
        if let Some(reason) = self.rerun {
            let _ = writeln!(out, "runs again: {}", sanitize(reason));
        }
        self.history.iter().for_each(|one| one.tell(&mut out));
        if !self.failure_context.is_empty() {
            out.push_str("\ncontext for the next attempt\n");
            for line in self.failures.lines() {
                let _ = writeln!(out, "  {}", sanitize(line));
            }
        }
        let log = self.place.piton(format_args!("log {run} --step {path}"));
        let _ = writeln!(out, "\noutput: {log}");
        out
    }
}

/// Takes an event of a step, in order.
pub fn take(all: &mut Vec<Happened>, at: Timestamp, event: &Event) {
    let at = At(at);
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

fn finish(attempt: &mut Attempt, at: At, e: &StepFinished) {
    attempt.finished_at = Some(at);
    attempt.exit_code = e.exit_code;
    attempt.signal = e.signal;
    attempt.duration_ms = Some(e.duration_ms);
    attempt.logs = Some(e.logs);
    attempt.artifacts.clone_from(&e.artifacts);
    attempt.tokens = e.facts.tokens;
    #[expect(clippy::cast_precision_loss, reason = "millionths of a dollar, for people")]
    let dollars = e.facts.money_micros as f64 / 1e6;
    attempt.cost_usd = dollars;
    attempt.notes.clone_from(&e.facts.notes);
    attempt.outcome = match &e.outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed { class, error, lines, next, .. } => {
            attempt.class = Some(*class);
            attempt.error = Some(error.clone());
            attempt.lines.clone_from(lines);
            attempt.next_at = match next {
                Next::Retry { at } | Next::Wait { until: at } => Some(At(*at)),
                Next::Fail | Next::Escalate | Next::Replan { .. } => None,
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
fn redacted(step: &plan::Step, redactor: &Redactor) -> Value {
    let mut value = serde_json::to_value(step).unwrap_or_default();
    redact_texts(&mut value, redactor);
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

fn defined(step: &plan::Step, redactor: &Redactor) -> String {
    let redact = |text: &str| sanitize_lines(&redactor.redact(text));
    let mut out = format!("runs      {}\n", redact(&step.work.display()));
    if let Some(test) = &step.test {
        let _ = writeln!(out, "test      {}", redact(&test.display()));
    }
    if !step.dir.is_empty() {
        let _ = writeln!(out, "in        {}", sanitize(&step.dir));
    }
    let retries = match step.retries {
        0 => "no retries".to_owned(),
        1 => "1 retry".to_owned(),
        more => format!("{more} retries"),
    };
    let _ = write!(out, "limits    {retries}, timeout {}", step.timeout);
    if let Some(idle) = step.idle_timeout {
        let _ = write!(out, ", idle timeout {idle}");
    }
    out.push('\n');
    out
}

impl Happened {
    fn tell(&self, out: &mut String) {
        let _ = match self {
            Self::Reset { at, reason } => {
                writeln!(out, "\n{at} to run again: {}", sanitize(reason))
            }
            Self::Retried { at, by } => {
                writeln!(out, "\n{at} given further attempts by {}", sanitize(by))
            }
            Self::Skipped { at, by, satisfy } => {
                let counts = if *satisfy { ", counts as done" } else { "" };
                writeln!(out, "\n{at} skipped by {}{counts}", sanitize(by))
            }
            Self::Attempt(attempt) => {
                attempt.tell(out);
                Ok(())
            }
        };
    }
}

impl Attempt {
    fn tell(&self, out: &mut String) {
        let _ = write!(out, "\nattempt {}: {}", self.number, self.outcome);
        if let Some(code) = self.exit_code {
            let _ = write!(out, ", exit {code}");
        }
        if let Some(signal) = self.signal {
            let _ = write!(out, ", signal {signal}");
        }
        if let Some(took) = self.duration_ms {
            let _ = write!(out, ", {took}");
        }
        let _ = write!(out, "\n  started {}", self.started_at);
        if let Some(at) = self.finished_at {
            let _ = write!(out, ", finished {at}");
        }
        out.push('\n');
        if let Some(error) = &self.error {
            let error = self.class.map_or(sanitize(error), |class| words::failure(class, error));
            let _ = writeln!(out, "  {error}");
        }
        for line in &self.lines {
            let _ = writeln!(out, "  | {}", sanitize(line));
        }
        if let Some(next) = self.next_at {
            let _ = writeln!(out, "  next attempt not before {next}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "  note: {}", sanitize(note));
        }
        if self.tokens > 0 {
            let _ = writeln!(out, "  {} tokens", self.tokens);
        }
        if self.cost_usd > 0.0 {
            let _ = writeln!(out, "  {:.2} dollars", self.cost_usd);
        }
    }
}

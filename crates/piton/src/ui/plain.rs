//! One plain line per event on stderr, for logs and for terminals that can't be drawn on.
//!
//! Each line is one write, so lines of several processes do not mix; a reader that went away is no
//! reason to stop a run.

use std::io::Write;

use piton_core::event::Outcome;
use piton_core::{Event, RunState, Timestamp};
use piton_engine::{Note, Observer};

use super::{text, time, words};

/// Writes a line per event.
pub struct Plain {
    out: Box<dyn Write>,
    clock: fn(Timestamp) -> String,
}

impl Default for Plain {
    fn default() -> Self {
        Self::new()
    }
}

impl Plain {
    /// Writes to stderr, with the local time of day.
    pub fn new() -> Self {
        Self::to(Box::new(std::io::stderr()), time::clock)
    }

    /// Writes elsewhere, with another clock.
    pub fn to(out: Box<dyn Write>, clock: fn(Timestamp) -> String) -> Self {
        Self { out, clock }
    }

    fn write(&mut self, lines: &str) {
        let _ = self.out.write_all(lines.as_bytes());
    }
}

impl Observer for Plain {
    fn event(&mut self, _seq: u64, at: Timestamp, event: &Event, state: &RunState) {
        let mut lines = format!("{} {}\n", (self.clock)(at), words::event(at, event, state));
        for line in output_of(event) {
            lines.push_str("         | ");
            lines.push_str(&text::sanitize(line));
            lines.push('\n');
        }
        self.write(&lines);
    }

    fn note(&mut self, note: &Note) {
        self.write(&format!("{}\n", words::note(note)));
    }
}

/// The last lines of output that belong to a failure.
pub fn output_of(event: &Event) -> &[String] {
    match event {
        Event::StepFinished(e) => match &e.outcome {
            Outcome::Failed { lines, .. } => lines,
            _ => &[],
        },
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use piton_core::event::{Class, GateAsked, Next, StepFinished, StepReset, StepStarted};
    use piton_core::hash::Sha;
    use piton_core::{GateRef, Millis, StepPath};

    use super::super::fixture::{Shared, state};
    use super::*;

    fn lines(event: &Event) -> String {
        let out = Shared::default();
        let mut plain = Plain::to(Box::new(out.clone()), |_| "12:03:04".to_owned());
        plain.event(7, Timestamp(1000), event, &state());
        out.text()
    }

    fn finished(outcome: Outcome) -> Event {
        Event::StepFinished(Box::new(StepFinished {
            step: StepPath::new("P1", "A", "build"),
            attempt: 1,
            outcome,
            exit_code: Some(1),
            signal: None,
            duration_ms: Millis(3200),
            logs: piton_core::event::LogRanges::default(),
            artifacts: Vec::new(),
            inputs: None,
            facts: piton_core::event::Facts::default(),
            after: None,
            tests: Vec::new(),
            stirred: false,
            command: None,
            retries_max: None,
        }))
    }

    #[test]
    fn a_start_names_the_attempt_from_the_second_on() {
        let start = |attempt| {
            Event::StepStarted(StepStarted {
                step: StepPath::new("P1", "A", "build"),
                attempt,
                definition: Sha("d".to_owned()),
                inputs: Vec::new(),
                before: None,
                tests_only: false,
                secrets: Vec::new(),
            })
        };
        assert_eq!(lines(&start(1)), "12:03:04 P1/A/build started\n");
        assert_eq!(lines(&start(2)), "12:03:04 P1/A/build started (attempt 2)\n");
    }

    #[test]
    fn success_and_failure_say_how() {
        assert_eq!(lines(&finished(Outcome::Succeeded)), "12:03:04 P1/A/build finished in 3.2s\n");
        let failed = |next| {
            lines(&finished(Outcome::Failed {
                class: Class::Command,
                error: "no \u{1b}[31mrule".to_owned(),
                lines: vec!["make: ***\u{7} no rule".to_owned()],
                next,
            }))
        };
        assert_eq!(
            failed(Next::Fail),
            "12:03:04 P1/A/build failed: exit 1: no rule\n         | make: *** no rule\n"
        );
        let retry = failed(Next::Retry { at: Timestamp(3000) });
        assert!(retry.contains("no rule; retry at ") && retry.contains("(in 2.0s)"), "{retry}");
        assert!(failed(Next::Retry { at: Timestamp(0) }).contains("; retry at once\n"));
    }

    #[test]
    fn a_gate_names_its_command() {
        let gate = Event::GateAsked(GateAsked {
            gate: GateRef("P1".to_owned()),
            name: "Spec approval".to_owned(),
        });
        assert_eq!(
            lines(&gate),
            "12:03:04 gate \"Spec approval\" (P1) waits for a person: piton approve r-1 P1\n"
        );
    }

    #[test]
    fn why_something_runs_again_is_said() {
        let reset = Event::StepReset(StepReset {
            step: StepPath::new("P1", "A", "build"),
            reason: "artifact a.txt is missing".to_owned(),
        });
        assert_eq!(
            lines(&reset),
            "12:03:04 P1/A/build is to run again: artifact a.txt is missing\n"
        );
    }
}

//! How the end of an attempt changes its step: counters, failures for the next attempt to read, what
//! it made.

use crate::event::{Class, Next, Outcome, StepFinished};
use crate::state::{FAILURES_KEPT_MAX, FailedAttempt, Progress, Recorded, RunState, StepState};
use crate::time::Timestamp;

/// Makes a step pending with all its retries; its failures stay for the next attempt to read.
pub(super) fn grant(step: &mut StepState) {
    step.progress = Progress::Pending;
    step.failures = 0;
    step.retried = 0;
    step.network_waits = 0;
    step.rate_limit_waits = 0;
    step.network_waited_ms.0 = 0;
    step.rate_limit_waited_ms.0 = 0;
}

/// What the end of an attempt means for its step, and what it used.
pub(super) fn finish(state: &mut RunState, at: Timestamp, event: &StepFinished) {
    state.used.tokens = state.used.tokens.saturating_add(event.facts.tokens);
    state.used.money_micros = state.used.money_micros.saturating_add(event.facts.money_micros);
    state.used.log_bytes = state.used.log_bytes.saturating_add(event.logs.bytes());
    let number = state.events;
    let Some(step) = state.step_mut(&event.step) else {
        return;
    };
    step.exit_code = event.exit_code;
    step.duration_ms = event.duration_ms;
    step.logs = event.logs;
    match &event.outcome {
        Outcome::Succeeded => {
            // A lane may find later that this was not good enough: its retries are spent all the same.
            let retried = step.retried;
            grant(step);
            step.retried = retried;
            step.progress = Progress::Done;
            step.successes += 1;
            step.done_event = number;
            (step.before, step.before_head) = (None, None);
            step.rerun = None;
            step.failure_context.clear();
            step.artifacts.clone_from(&event.artifacts);
            if let Some(inputs) = &event.inputs {
                step.inputs.clone_from(inputs);
            }
            for file in &event.artifacts {
                let recorded = Recorded { sha256: file.sha256.clone(), by: event.step.clone() };
                state.recorded.insert(state.place_of(&event.step, &file.path), recorded);
            }
        }
        Outcome::Failed { class, error, lines, next } => {
            if step.failure_context.len() == FAILURES_KEPT_MAX {
                step.failure_context.remove(0);
            }
            step.failure_context.push(FailedAttempt {
                attempt: event.attempt,
                class: *class,
                error: error.clone(),
                lines: lines.clone(),
            });
            step.progress = match *next {
                Next::Fail | Next::Unknown => {
                    step.failures += 1;
                    Progress::Failed
                }
                Next::Retry { at: until } => {
                    step.failures += 1;
                    step.retried += 1;
                    Progress::Waiting { since: at, until, class: *class }
                }
                Next::Wait { until } => {
                    let wait = until.since(at).0;
                    if *class == Class::RateLimit {
                        step.rate_limit_waits += 1;
                        step.rate_limit_waited_ms.0 += wait;
                    } else {
                        step.network_waits += 1;
                        step.network_waited_ms.0 += wait;
                    }
                    Progress::Waiting { since: at, until, class: *class }
                }
            };
        }
        Outcome::Interrupted { .. } | Outcome::Unknown => {
            step.interruptions += 1;
            step.progress = Progress::Pending;
        }
    }
}

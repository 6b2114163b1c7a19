//! Failures: their class, read from the output of the attempt, and what happens next.

use std::fmt;

use crate::budget::Budgets;
use crate::event::{Class, Next};
use crate::plan::Step;
use crate::state::StepState;
use crate::time::{Millis, Timestamp};

mod reset;
mod signature;
mod signs;

pub use signature::signature;

/// Lines of output that are read: the cause is near the end.
pub const LINES_READ: usize = 20;
/// Lines of output passed on to the next attempt.
pub const LINES_PASSED_ON: usize = 5;
/// First wait for the network; it doubles up to [`NETWORK_WAIT_MAX`].
const NETWORK_WAIT_FIRST: Millis = Millis::from_secs(2);
/// Longest single wait for the network: short enough to continue soon after it is back.
const NETWORK_WAIT_MAX: Millis = Millis::from_secs(120);
/// First wait for a rate limit that names no reset; it doubles up to [`RATE_WAIT_MAX`].
const RATE_WAIT_FIRST: Millis = Millis::from_secs(30);
/// Longest single wait for a rate limit without a known reset.
const RATE_WAIT_MAX: Millis = Millis::from_secs(1800);
/// Shortest wait if the named reset time did not help; it doubles up to [`RATE_WAIT_MAX`].
const AGAIN_WAIT_FIRST: Millis = Millis::from_secs(2);
/// Longest backoff between retries: a run should not be idle for hours.
const BACKOFF_MAX: Millis = Millis::from_secs(3600);

/// What is known about a failed attempt.
#[derive(Clone, Copy, Debug)]
pub struct Remains<'a> {
    /// Whether the part that failed was the step's test.
    pub in_test: bool,
    /// Whether the step is a prompt to an agent.
    pub is_agent: bool,
    /// Whether the lines are what a program says of its own failure, and nothing else.
    pub is_told: bool,
    /// The last lines of its output.
    pub lines: &'a [String],
    /// The offset of this machine's clock from UTC: output may name a time of day.
    pub offset_secs: i32,
}

/// A classified failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified {
    /// The class.
    pub class: Class,
    /// When a rate limit ends, if the output says so.
    pub reset: Option<Timestamp>,
}

/// Reads the class of a failure from the end of its output.
///
/// A failing test is always of class `Test`: what it prints is about the code.
pub fn classify(remains: Remains<'_>, now: Timestamp) -> Classified {
    if remains.in_test {
        return Classified { class: Class::Test, reset: None };
    }
    let from = remains.lines.len().saturating_sub(LINES_READ);
    let text = signs::said(&remains.lines[from..]);
    if let Some(class) = signs::class(&text) {
        let limited = class == Class::RateLimit;
        let ends = || reset::find(&text.to_lowercase(), now, remains.offset_secs);
        return Classified { class, reset: limited.then(ends).flatten() };
    }
    if !remains.is_agent {
        return Classified { class: Class::Command, reset: None };
    }
    // What an agent says at its end is about itself: an unknown limit parks if it says when it ends.
    if signs::is_overloaded(&text) {
        return Classified { class: Class::Network, reset: None };
    }
    let lower = text.to_lowercase();
    let reset = match () {
        () if signs::names_a_reset(&text) || remains.is_told && signs::names_another_try(&text) => {
            reset::find(&lower, now, remains.offset_secs)
        }
        () if remains.is_told && signs::speaks_of_a_reset(&text) => {
            reset::point(&lower, now, remains.offset_secs)
        }
        () => None,
    };
    let class = if reset.is_some() { Class::RateLimit } else { Class::Agent };
    Classified { class, reset }
}

/// The budget that bounds the attempts of a step.
pub const ATTEMPTS: &str = "attempts";

/// Whether a failed step has no attempts left, even if a person asks for one. A step that was
/// interrupted, or that succeeded and runs again, did not fail.
pub fn is_spent(budgets: &Budgets, state: &StepState) -> bool {
    let failed = !state.failure_context.is_empty() && !state.interrupted && state.rerun.is_none();
    failed && state.attempts >= budgets.attempts
}

/// Whether a step failed because it had no attempts left.
pub fn is_ended_by_attempts(state: &StepState) -> bool {
    let last = state.failure_context.last();
    last.and_then(|failed| failed.budget.as_deref()) == Some(ATTEMPTS)
}

/// Decides whether a person is asked instead of another attempt: the step has a gate for that, nobody
/// let it go on there before, and it failed for the same reason as often as it may.
pub fn escalates(
    step: &Step,
    budgets: &Budgets,
    state: &StepState,
    is_approved: bool,
    signature: &str,
    next: Next,
) -> bool {
    let counts = matches!(next, Next::Retry { .. } | Next::Fail) && !state.tests_only;
    let alike = state.failed_alike(signature) + 1;
    counts && step.escalation.is_some() && !is_approved && alike >= budgets.same_failure
}

/// Decides what follows a failed attempt, within the step's retries and the budgets.
pub fn next(
    step: &Step,
    budgets: &Budgets,
    state: &StepState,
    failure: Classified,
    now: Timestamp,
) -> Next {
    if state.attempts >= budgets.attempts {
        return Next::Fail;
    }
    if failure.class == Class::Input {
        return Next::Fail;
    }
    if state.tests_only {
        return Next::Retry { at: now };
    }
    if let Some(waiting) = waiting(budgets, state, failure, now) {
        // Wait for a failure that passes by itself. Retrying at once after waiting in vain would
        // only use up retries meant for other failures.
        let fits = waiting.fits();
        return if fits { Next::Wait { until: now.after(waiting.wait) } } else { Next::Fail };
    }
    if state.failures < step.retries {
        let wait = doubled(step.backoff, state.failures, BACKOFF_MAX).unwrap_or(BACKOFF_MAX);
        return Next::Retry { at: now.after(wait) };
    }
    Next::Fail
}

/// How long a failure must be waited for, and how long it may be.
struct Waiting {
    wait: Millis,
    waited: Millis,
    limit: Millis,
    /// The budget that sets the limit.
    name: &'static str,
}

impl Waiting {
    fn fits(&self) -> bool {
        self.waited.0.saturating_add(self.wait.0) <= self.limit.0
    }
}

/// The wait for a failure that passes by itself.
fn waiting(
    budgets: &Budgets,
    state: &StepState,
    failure: Classified,
    now: Timestamp,
) -> Option<Waiting> {
    let (wait, waited, limit, name) = match failure.class {
        Class::Network => {
            let wait = doubled(NETWORK_WAIT_FIRST, state.network_waits, NETWORK_WAIT_MAX);
            (wait?, state.network_waited_ms, budgets.network_wait, "network_wait")
        }
        Class::RateLimit => {
            let wait = match failure.reset {
                // A reset in the past (a wrong clock) must not become a busy loop.
                Some(reset) => {
                    let again = state.rate_limit_waits.checked_sub(1);
                    let least = again.and_then(|t| doubled(AGAIN_WAIT_FIRST, t, RATE_WAIT_MAX));
                    Some(reset.since(now).max(least.unwrap_or_default()))
                }
                None => doubled(RATE_WAIT_FIRST, state.rate_limit_waits, RATE_WAIT_MAX),
            };
            (wait?, state.rate_limit_waited_ms, budgets.rate_limit_wait, "rate_limit_wait")
        }
        _ => return None,
    };
    // With a limit of 0, it is a failure like any other.
    (limit.0 > 0).then_some(Waiting { wait, waited, limit, name })
}

/// How long an agent is not started again that ended before its model answered; `restarts` is how often
/// that was.
pub fn restart_wait(restarts: u32) -> Millis {
    let times = restarts.saturating_sub(1);
    doubled(NETWORK_WAIT_FIRST, times, NETWORK_WAIT_MAX).unwrap_or(NETWORK_WAIT_MAX)
}

/// What prevents another attempt of a failed step: a budget that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// It had as many attempts as it may have.
    Attempts(u32),
    /// The wait until its failure passes is longer than it may be.
    Wait {
        /// The budget that bounds the wait.
        budget: &'static str,
        /// How long the next wait would be.
        wait: Millis,
        /// Whether that is until the rate limit resets.
        until_reset: bool,
        /// How long it waited before.
        waited: Millis,
        /// How long it may wait.
        limit: Millis,
    },
}

impl EndedBy {
    /// The name of the budget.
    pub fn budget(self) -> &'static str {
        match self {
            Self::Attempts(_) => ATTEMPTS,
            Self::Wait { budget, .. } => budget,
        }
    }
}

impl fmt::Display for EndedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Attempts(most) => write!(f, "the budget {ATTEMPTS} is used up ({most})"),
            Self::Wait { budget, wait, until_reset, waited, limit } => {
                let what =
                    if until_reset { "the rate limit resets" } else { "the next attempt would be" };
                write!(f, "{what} in {wait}, but the budget {budget} is {limit}")?;
                if waited.0 > 0 { write!(f, ", of which {waited} is used") } else { Ok(()) }
            }
        }
    }
}

/// The budget that prevents another attempt of a failed step, or a wait until its failure passes.
pub fn ended_by(
    budgets: &Budgets,
    state: &StepState,
    failure: Classified,
    now: Timestamp,
) -> Option<EndedBy> {
    if state.attempts >= budgets.attempts {
        return Some(EndedBy::Attempts(budgets.attempts));
    }
    let waiting = waiting(budgets, state, failure, now);
    let Waiting { wait, waited, limit, name } = waiting.filter(|waiting| !waiting.fits())?;
    // A reset that did not help before is only part of the wait.
    let until_reset = failure.reset.is_some_and(|reset| reset.since(now) >= wait);
    Some(EndedBy::Wait { budget: name, wait, until_reset, waited, limit })
}

fn doubled(first: Millis, times: u32, max: Millis) -> Option<Millis> {
    let factor = 1u64.checked_shl(times.min(32))?;
    Some(Millis(first.0.saturating_mul(factor).min(max.0)))
}

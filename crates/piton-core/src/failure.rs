//! Failures: their class, read from what the attempt left, and what follows from it.

use crate::budget::Budgets;
use crate::event::{Class, Next};
use crate::plan::Step;
use crate::state::StepState;
use crate::time::{Millis, Timestamp};

mod reset;
mod signs;

/// Lines of output that are looked at: a cause stands near the end.
pub const LINES_LOOKED_AT: usize = 20;
/// Lines of output passed on to the next attempt.
pub const LINES_TOLD: usize = 5;
/// First wait for the network; it doubles up to [`NETWORK_WAIT_MAX`].
const NETWORK_WAIT_FIRST: Millis = Millis::from_secs(2);
/// Longest single wait for the network: short enough to go on soon after it is back.
const NETWORK_WAIT_MAX: Millis = Millis::from_secs(120);
/// First wait for a rate limit that names no reset; it doubles up to [`RATE_WAIT_MAX`].
const RATE_WAIT_FIRST: Millis = Millis::from_secs(30);
/// Longest single wait for a rate limit without a known reset.
const RATE_WAIT_MAX: Millis = Millis::from_secs(1800);
/// Least wait when the reset that was named did not help; it doubles up to [`RATE_WAIT_MAX`].
const AGAIN_WAIT_FIRST: Millis = Millis::from_secs(2);
/// Longest backoff between retries: a person who looks in should not find it idle for hours.
const BACKOFF_MAX: Millis = Millis::from_secs(3600);

/// What an attempt left behind, as far as its failure is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Remains<'a> {
    /// Whether the part that failed was the step's test.
    pub in_test: bool,
    /// Whether the step is a prompt to an agent.
    pub is_agent: bool,
    /// The last lines of its output.
    pub lines: &'a [String],
    /// What the clock of this machine is ahead of UTC: output may name a time of the day.
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
/// A failing test is a failing test whatever it prints: its output is about the code.
pub fn classify(remains: Remains<'_>, now: Timestamp) -> Classified {
    if remains.in_test {
        return Classified { class: Class::Test, reset: None };
    }
    let from = remains.lines.len().saturating_sub(LINES_LOOKED_AT);
    let text = signs::said(&remains.lines[from..]);
    if let Some(class) = signs::class(&text) {
        let limited = class == Class::RateLimit;
        let ends = || reset::find(&text.to_lowercase(), now, remains.offset_secs);
        return Classified { class, reset: limited.then(ends).flatten() };
    }
    let class = if remains.is_agent { Class::Agent } else { Class::Command };
    Classified { class, reset: None }
}

/// The budget that bounds the attempts of a step.
pub const ATTEMPTS: &str = "attempts";

/// Whether a step that failed may not be tried again, be it that a person asks for it. What was cut
/// short, and what had succeeded and is to run again, did not fail.
pub fn is_spent(budgets: &Budgets, state: &StepState) -> bool {
    let failed = !state.failure_context.is_empty() && !state.interrupted && state.rerun.is_none();
    failed && state.attempts >= budgets.attempts
}

/// Whether a step failed for want of attempts, by the words of [`ended_by`].
pub fn is_ended_by_attempts(state: &StepState) -> bool {
    let words = format!("the budget {ATTEMPTS} is used up");
    state.failure_context.last().is_some_and(|failed| failed.error.contains(&words))
}

/// Says what follows a failed attempt, within the step's retries and the budgets.
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
        // What passes by itself is waited for; trying at once what was waited for in vain would only
        // use up what is meant for other failures.
        let fits = waiting.fits();
        return if fits { Next::Wait { until: now.after(waiting.wait) } } else { Next::Fail };
    }
    if state.failures < step.retries {
        let wait = doubled(step.backoff, state.failures, BACKOFF_MAX).unwrap_or(BACKOFF_MAX);
        return Next::Retry { at: now.after(wait) };
    }
    Next::Fail
}

/// A wait that a failure asks for, and what may be waited.
struct Waiting {
    wait: Millis,
    waited: Millis,
    limit: Millis,
    /// The budget that the limit is.
    name: &'static str,
}

impl Waiting {
    fn fits(&self) -> bool {
        self.waited.0.saturating_add(self.wait.0) <= self.limit.0
    }
}

/// How long a failure that passes by itself would have to be waited for.
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
                // A reset that has passed (a clock that is off) must not become a busy loop.
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
    // Nothing may be waited for: it is a failure like any other.
    (limit.0 > 0).then_some(Waiting { wait, waited, limit, name })
}

/// Says which budget keeps a failed step from being tried again, by itself or by a person, or from
/// waiting until its failure passes; nothing if none does.
pub fn ended_by(
    budgets: &Budgets,
    state: &StepState,
    failure: Classified,
    now: Timestamp,
) -> Option<String> {
    if state.attempts >= budgets.attempts {
        return Some(format!("the budget {ATTEMPTS} is used up ({})", budgets.attempts));
    }
    let waiting = waiting(budgets, state, failure, now);
    let Waiting { wait, waited, limit, name } = waiting.filter(|waiting| !waiting.fits())?;
    let used = if waited.0 > 0 { format!(", of which {waited} are used") } else { String::new() };
    let what = match failure.reset {
        Some(reset) if reset.since(now) >= wait => "the reset that it names is",
        // One that did not help before is not all that is waited for.
        _ => "the next try would be",
    };
    Some(format!("{what} {wait} away, and the budget {name} is {limit}{used}"))
}

fn doubled(first: Millis, times: u32, max: Millis) -> Option<Millis> {
    let factor = 1u64.checked_shl(times.min(32))?;
    Some(Millis(first.0.saturating_mul(factor).min(max.0)))
}

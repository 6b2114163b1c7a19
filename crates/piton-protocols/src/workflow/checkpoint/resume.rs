//! Whether a workflow may resume without a question, and if not, the first reason.

use std::fmt;

use piton_core::Timestamp;

use super::model::{Checkpoint, Status};

/// Oldest checkpoint that resumes by itself.
pub const AGE_MAX_DAYS: i64 = 7;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// How far the clocks of two machines may be apart, time zones that were left out included.
const AHEAD_MAX_MS: i64 = DAY_MS;

/// Whether a workflow may resume without a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AutoResume {
    /// It may.
    Safe,
    /// A person is asked, for this reason.
    Ask(Reason),
}

/// Why a person is asked; the first that applies, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The tests failed.
    TestsFailing,
    /// The last phase ended with this error.
    LastError(String),
    /// The status is this one, or the file has none.
    NotInProgress(Option<String>),
    /// The checkpoint is this many days old.
    TooOld(i64),
    /// The checkpoint is of a later time than now.
    InFuture,
    /// The file has no time.
    AgeUnknown,
    /// The plan was changed after the checkpoint was written.
    PlanChanged,
    /// There is no plan to compare with.
    PlanMissing,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TestsFailing => f.write_str("Tests failing"),
            Self::LastError(error) => {
                write!(f, "Last error: {}", error.lines().next().unwrap_or_default())
            }
            Self::NotInProgress(Some(status)) => write!(f, "Status is {status}, not in_progress"),
            Self::NotInProgress(None) => f.write_str("Status unknown"),
            Self::TooOld(AGE_MAX_DAYS) => {
                write!(f, "Checkpoint is more than {AGE_MAX_DAYS} days old")
            }
            Self::TooOld(days) => {
                write!(f, "Checkpoint is {days} days old (at most {AGE_MAX_DAYS})")
            }
            Self::InFuture => f.write_str("Checkpoint is dated in the future"),
            Self::AgeUnknown => f.write_str("Checkpoint age unknown"),
            Self::PlanChanged => f.write_str("Plan changed since the checkpoint"),
            Self::PlanMissing => f.write_str("Plan not found"),
        }
    }
}

/// Tells whether a checkpoint may be resumed without a question; `plan_mtime` is `None` if the plan
/// cannot be found.
///
/// A file that does not mention tests or errors had none: forms before 1.2 have no such fields. A plan
/// whose time was not recorded is unchanged if it is not newer than the checkpoint.
pub fn auto_resume(
    found: &Checkpoint,
    now: Timestamp,
    plan_mtime: Option<Timestamp>,
) -> AutoResume {
    reason(found, now, plan_mtime).map_or(AutoResume::Safe, AutoResume::Ask)
}

/// Why a person is asked about something of this age.
pub fn age(written: Timestamp, now: Timestamp) -> Option<Reason> {
    let age_ms = now.0.saturating_sub(written.0);
    if age_ms > AGE_MAX_DAYS * DAY_MS {
        return Some(Reason::TooOld(age_ms / DAY_MS));
    }
    (age_ms < -AHEAD_MAX_MS).then_some(Reason::InFuture)
}

fn reason(found: &Checkpoint, now: Timestamp, plan_mtime: Option<Timestamp>) -> Option<Reason> {
    let health = &found.health;
    if health.tests_passing == Some(false) {
        return Some(Reason::TestsFailing);
    }
    if let Some(error) = &health.last_error {
        return Some(Reason::LastError(error.clone()));
    }
    if health.status != Some(Status::InProgress) {
        let status = health.status.as_ref().map(|status| status.as_str().to_owned());
        return Some(Reason::NotInProgress(status));
    }
    let Some(written) = found.times.written() else { return Some(Reason::AgeUnknown) };
    if let Some(reason) = age(written, now) {
        return Some(reason);
    }
    let Some(modified) = plan_mtime else { return Some(Reason::PlanMissing) };
    // Recorded times have whole seconds.
    let second = |at: Timestamp| at.0.div_euclid(1000);
    let is_same = match found.times.plan_modified {
        Some(recorded) => second(recorded) == second(modified),
        None => second(modified) <= second(written),
    };
    (!is_same).then_some(Reason::PlanChanged)
}

//! Limits with a name, a default and an action, so that every loop ends.
//!
//! The code, `piton schema` and the docs are made from one table, [`TABLE`].

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// The limits of a run. `None` never occurs: each has a default in [`TABLE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Attempts of one step in all, retries and waits for the network included.
    pub attempts: u32,
    /// Time a run is driven, over all its drivers.
    pub run_time: Millis,
    /// Time a phase is driven.
    pub phase_time: Millis,
    /// Time of one attempt of a step without `timeout`.
    pub step_time: Millis,
    /// Tokens reported by steps.
    pub tokens: u64,
    /// Money reported by steps, in millionths of a dollar.
    pub money_micros: u64,
    /// Bytes of log of one attempt, per stream; the middle is dropped.
    pub log_bytes: u64,
    /// Bytes of log of a run.
    pub run_log_bytes: u64,
    /// How long one step waits for the network, in all.
    pub network_wait: Millis,
    /// How long one step waits for rate limits, in all.
    pub rate_limit_wait: Millis,
    /// Restarts of one step that was killed from outside or lost with its keeper, per driver.
    pub restarts: u32,
    /// Failures of one step with the same signature before a person is asked.
    pub same_failure: u32,
    /// Tokens and money of one step, over all its attempts.
    #[serde(skip_serializing_if = "Spend::is_default")]
    pub step: Spend,
    /// The same of one lane.
    #[serde(skip_serializing_if = "Spend::is_default")]
    pub lane: Spend,
    /// The same of one phase.
    #[serde(skip_serializing_if = "Spend::is_default")]
    pub phase: Spend,
    /// The same of one day, UTC, over all runs of the project.
    #[serde(skip_serializing_if = "Spend::is_default")]
    pub day: Spend,
}

/// What may be used of tokens and money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spend {
    /// Tokens.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub money_micros: u64,
}

impl Default for Spend {
    /// As much as a run may use.
    fn default() -> Self {
        Self { tokens: TOKENS_DEFAULT, money_micros: MONEY_MICROS_DEFAULT }
    }
}

impl Spend {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Tokens of a run: weeks of several agents.
const TOKENS_DEFAULT: u64 = 1_000_000_000;
/// Money of a run: a mistake that a person survives.
const MONEY_MICROS_DEFAULT: u64 = 1_000_000_000;

/// One row of the table of budgets.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name in plan and settings.
    pub name: &'static str,
    /// The default, as written in a plan.
    pub default: &'static str,
    /// What it limits.
    pub limits: &'static str,
    /// What happens when it is used up.
    pub action: &'static str,
}

const fn row(
    name: &'static str,
    default: &'static str,
    limits: &'static str,
    action: &'static str,
) -> Row {
    Row { name, default, limits, action }
}

/// What happens when tokens or money are used up.
const SPENT: &str =
    "agents stop after the operation under way, nothing new starts, and the run stops (exit 6)";

/// Every budget: name, default, what it limits and what happens when it is used up.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row("attempts", "20", "attempts of one step", "the step fails (exit 1); if a person retries it, it waits until the limit is raised (exit 6)"),
    row("run_time", "72h", "time that a run is driven", "running steps are ended and the run stops (exit 6)"),
    row("phase_time", "48h", "time that a phase is driven", "running steps are ended and the run stops (exit 6)"),
    row("step_time", "6h", "time of one attempt, if the step has no `timeout`", "the attempt is ended and counts as failed"),
    row("tokens", "1000000000", "tokens that a run uses", SPENT),
    row("money", "1000.00", "dollars that a run costs", SPENT),
    row("step_tokens", "1000000000", "tokens that one step uses, over all its attempts", SPENT),
    row("step_money", "1000.00", "dollars that one step costs, over all its attempts", SPENT),
    row("lane_tokens", "1000000000", "tokens that one lane uses", SPENT),
    row("lane_money", "1000.00", "dollars that one lane costs", SPENT),
    row("phase_tokens", "1000000000", "tokens that one phase uses", SPENT),
    row("phase_money", "1000.00", "dollars that one phase costs", SPENT),
    row("day_tokens", "1000000000", "tokens that all runs of the project use on one day of UTC", SPENT),
    row("day_money", "1000.00", "dollars that all runs of the project cost on one day of UTC", SPENT),
    row("log_bytes", "64MB", "log size of one attempt, per stream", "the middle of the log is dropped"),
    row("run_log_bytes", "4GB", "log size of a run", "no new steps start and the run stops (exit 6)"),
    row("network_wait", "15m", "time that one step waits for the network", "the step fails (exit 1); with 0, it is retried like any failure"),
    row("rate_limit_wait", "192h", "time that one step waits for rate limits", "the step fails (exit 1); with 0, it is retried like any failure"),
    row("same_failure", "3", "failures of a step for the same reason, if it has an `escalation`", "a person is asked (exit 3)"),
    row("restarts", "10", "restarts of a step that was killed or lost, per driver", "the step fails (exit 1)"),
];

/// An amount of a budget for people: `$0.20`, `1m 30s`, `64.0 MB`, or the plain number.
pub fn amount(name: &str, value: u64) -> String {
    match name {
        name if name.ends_with("money") || name == "money_micros" => dollars(value),
        "run_time" | "phase_time" | "step_time" | "network_wait" | "rate_limit_wait" => {
            Millis(value).to_string()
        }
        "log_bytes" | "run_log_bytes" => size(value),
        _ => value.to_string(),
    }
}

/// Dollars with cents, and with more decimals only if needed.
pub fn dollars(micros: u64) -> String {
    let text = format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let cents = text.len() - 4;
    let rest = text[cents..].trim_end_matches('0');
    format!("{}{rest}", &text[..cents])
}

/// A number of bytes for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    for (unit, one) in UNITS {
        if bytes >= one {
            return format!("{}.{} {unit}", bytes / one, bytes % one * 10 / one);
        }
    }
    format!("{bytes} bytes")
}

impl Default for Budgets {
    fn default() -> Self {
        const HOUR: u64 = 3_600;
        Self {
            attempts: 20,
            run_time: Millis::from_secs(72 * HOUR),
            phase_time: Millis::from_secs(48 * HOUR),
            step_time: Millis::from_secs(6 * HOUR),
            tokens: TOKENS_DEFAULT,
            money_micros: MONEY_MICROS_DEFAULT,
            log_bytes: 64_000_000,
            run_log_bytes: 4_000_000_000,
            network_wait: Millis::from_secs(15 * 60),
            // A limit of a week ends within it.
            rate_limit_wait: Millis::from_secs(8 * 24 * HOUR),
            restarts: 10,
            same_failure: 3,
            step: Spend::default(),
            lane: Spend::default(),
            phase: Spend::default(),
            day: Spend::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_say_them() {
        assert_eq!(amount("money", 200_000), "$0.20");
        assert_eq!(amount("day_money", 200_000), "$0.20");
        assert_eq!(amount("money_micros", 1_005_000), "$1.005");
        assert_eq!(amount("run_time", 90_000), "1m 30s");
        assert_eq!(amount("run_log_bytes", 4_000_000_000), "4.0 GB");
        assert_eq!(amount("tokens", 12), "12");
    }
}

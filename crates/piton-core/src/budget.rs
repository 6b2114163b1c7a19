//! Limits with a name, a default and an action, so that every loop ends.
//!
//! The code, `piton schema` and the docs are made from one table, [`TABLE`].

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// The limits of a run. `None` never occurs: each has a default in [`TABLE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

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

/// Every budget: name, default, what it limits and what happens when it is used up.
pub const TABLE: &[Row] = &[
    Row {
        name: "attempts",
        default: "20",
        limits: "attempts of one step",
        action: "the step fails (exit 1); if a person retries it, it waits until the limit is raised (exit 6)",
    },
    Row {
        name: "run_time",
        default: "72h",
        limits: "time that a run is driven",
        action: "running steps are ended and the run stops (exit 6)",
    },
    Row {
        name: "phase_time",
        default: "48h",
        limits: "time that a phase is driven",
        action: "running steps are ended and the run stops (exit 6)",
    },
    Row {
        name: "step_time",
        default: "6h",
        limits: "time of one attempt, if the step has no `timeout`",
        action: "the attempt is ended and counts as failed",
    },
    Row {
        name: "tokens",
        default: "1000000000",
        limits: "tokens that steps report",
        action: "no new steps start and the run stops (exit 6)",
    },
    Row {
        name: "money",
        default: "1000.00",
        limits: "dollars that steps report",
        action: "no new steps start and the run stops (exit 6)",
    },
    Row {
        name: "log_bytes",
        default: "64MB",
        limits: "log size of one attempt, per stream",
        action: "the middle of the log is dropped",
    },
    Row {
        name: "run_log_bytes",
        default: "4GB",
        limits: "log size of a run",
        action: "no new steps start and the run stops (exit 6)",
    },
    Row {
        name: "network_wait",
        default: "15m",
        limits: "time that one step waits for the network",
        action: "the step fails (exit 1); with 0, it is retried like any failure",
    },
    Row {
        name: "rate_limit_wait",
        default: "6h",
        limits: "time that one step waits for rate limits",
        action: "the step fails (exit 1); with 0, it is retried like any failure",
    },
    Row {
        name: "restarts",
        default: "10",
        limits: "restarts of a step that was killed or lost, per driver",
        action: "the step fails (exit 1)",
    },
];

/// An amount of a budget for people: `$0.20`, `1m 30s`, `64.0 MB`, or the plain number.
pub fn amount(name: &str, value: u64) -> String {
    match name {
        "money" | "money_micros" => dollars(value),
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
            tokens: 1_000_000_000,
            money_micros: 1_000_000_000,
            log_bytes: 64_000_000,
            run_log_bytes: 4_000_000_000,
            network_wait: Millis::from_secs(15 * 60),
            rate_limit_wait: Millis::from_secs(6 * HOUR),
            restarts: 10,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_say_them() {
        assert_eq!(amount("money", 200_000), "$0.20");
        assert_eq!(amount("money_micros", 1_005_000), "$1.005");
        assert_eq!(amount("run_time", 90_000), "1m 30s");
        assert_eq!(amount("run_log_bytes", 4_000_000_000), "4.0 GB");
        assert_eq!(amount("tokens", 12), "12");
    }
}

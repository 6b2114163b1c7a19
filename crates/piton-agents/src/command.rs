//! Any other program: it is judged by its exit code, and may report on itself.
//!
//! A line `piton: {…}` on standard output is a report: `session`, `doing`, `context`, `window`, `tokens`
//! (`input`, `cached`, `output`, all so far), `cost_usd` (so far), `limit_until` (Unix seconds). Unknown
//! keys are passed over. All other lines are for people.

use std::borrow::Cow;

use piton_core::Timestamp;
use serde::Deserialize;

use crate::program::{Ask, Halt, Invocation, Program};
use crate::stream::{Clock, Reader, Said, Tokens, Totals, doing, micros};
use crate::verdict::{Exit, Verdict, from_words};

/// How a report begins.
pub const REPORT: &str = "piton: ";

/// A program of the user's own.
#[derive(Debug)]
pub struct Command;

impl Program for Command {
    fn id(&self) -> &'static str {
        "command"
    }

    fn binary(&self) -> &'static str {
        ""
    }

    /// The user's command is taken as it is.
    fn start(&self, ask: &Ask<'_>) -> Invocation {
        Invocation::new(ask, "")
    }

    fn resume(&self, _: &str, _: &Ask<'_>) -> Option<Invocation> {
        None
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(Stream::default())
    }

    fn halt(&self) -> Halt {
        Halt::None
    }

    fn window(&self) -> u64 {
        200_000
    }
}

#[derive(Debug, Deserialize)]
struct Report<'a> {
    #[serde(default, borrow)]
    session: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    doing: Option<Cow<'a, str>>,
    #[serde(default)]
    context: Option<u64>,
    #[serde(default)]
    window: Option<u64>,
    #[serde(default)]
    tokens: Option<Counted>,
    #[serde(default)]
    cost_usd: Option<f64>,
    /// Seconds since the Unix epoch.
    #[serde(default)]
    limit_until: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Counted {
    input: u64,
    cached: u64,
    output: u64,
}

#[derive(Debug, Default)]
struct Stream {
    totals: Totals,
    limit: Option<Timestamp>,
}

impl Reader for Stream {
    fn line(&mut self, line: &str) -> Vec<Said> {
        let Some(report) = line.strip_prefix(REPORT) else { return Vec::new() };
        let Ok(report) = serde_json::from_str::<Report<'_>>(report) else { return Vec::new() };
        let mut said = Vec::new();
        said.extend(report.session.map(|id| Said::Session(id.into_owned())));
        said.extend(report.doing.and_then(|line| doing(&[&line])));
        self.totals.window = report.window.or(self.totals.window);
        if let Some(context) = report.context {
            self.totals.context = Some(context);
            said.push(Said::Context(context));
        }
        if let Some(Counted { input, cached, output }) = report.tokens {
            self.totals.tokens = Tokens { input, cached, output };
        }
        self.totals.cost_micros = report.cost_usd.and_then(micros).or(self.totals.cost_micros);
        if let Some(secs) = report.limit_until {
            let until = Some(Timestamp(secs.saturating_mul(1000)));
            self.limit = until;
            said.push(Said::Limit { is_reached: true, until });
        }
        said
    }

    fn totals(&self) -> Totals {
        self.totals.clone()
    }

    fn verdict(&self, exit: Exit, errors: &[String], clock: Clock) -> Verdict {
        match exit.code {
            Some(0) => Verdict::Succeeded,
            None => Verdict::Interrupted("a signal ended it".to_owned()),
            Some(_) => match from_words(&errors.join("\n"), clock) {
                Verdict::Failed(said) | Verdict::Limited { said, until: None }
                    if self.limit.is_some() =>
                {
                    Verdict::Limited { until: self.limit, said }
                }
                other => other,
            },
        }
    }
}

//! Agents: which program gets a prompt, what it may use, what it reports, and how its attempt went.
//!
//! Values only. How a program is called and what its stream means is told by `piton-agents`; what
//! follows from that is decided in [`crate::decide::agents`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::hash::Sha;
use crate::time::{Millis, Timestamp};

/// The programs that are known by name; the last one stands for any other.
pub const PROGRAMS: &[&str] = &["claude", "codex", "gemini", "opencode", COMMAND];
/// A program of the user's own.
pub const COMMAND: &str = "command";

/// The variable with the path of the file that stops an agent. Once that file exists, the program ends
/// after the operation under way.
pub const STOP_FILE: &str = "PITON_STOP_FILE";

/// Hand-offs of one step: ten windows of 200,000 tokens are more than a step should need; one that
/// does is better split.
pub const HANDOFFS_DEFAULT: u32 = 10;

/// Requests of one attempt: a window of a million tokens takes about as many, and a program that asks the
/// same again and again reaches it within minutes.
pub const REQUESTS_DEFAULT: u32 = 1000;

/// How long an agent may show no sign of life: longer than a model thinks about one answer, short enough
/// that a night is not lost to a request that nobody answers.
pub const SILENCE_DEFAULT: Millis = Millis(20 * 60 * 1000);

/// How long an agent may go on with the operation under way once it was asked to stop: longer than most
/// builds and test suites, short enough that what is used meanwhile is little.
pub const STOP_GRACE: Millis = Millis(15 * 60 * 1000);

/// Prices of a model that nobody named: those of a large one, so that the budget of money stops too
/// early rather than too late.
pub const PRICES_DEFAULT: Prices = Prices { input: 5_000_000, cached: 500_000, output: 25_000_000 };

/// One million: prices are per so many tokens.
const MILLION: u64 = 1_000_000;
/// A whole, in thousandths.
const WHOLE: u64 = 1_000;

/// An agent of a plan, with every setting resolved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Its name in the plan.
    pub name: String,
    /// The program it is, one of [`PROGRAMS`].
    pub program: String,
    /// The command, if it is one that takes the place of another agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// The executable, if it is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
    /// The model; the program's own choice without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it may do without asking.
    #[serde(default)]
    pub permissions: Permissions,
    /// Tools that are allowed besides, as the program names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Further arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables added to its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// A file with MCP servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<String>,
    /// The window of its model, in tokens, if the program does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// How full its window may be.
    #[serde(default)]
    pub thresholds: Thresholds,
    /// How often a step may be handed to a fresh agent because the window is full.
    #[serde(default = "handoffs")]
    pub handoffs: u32,
    /// Requests that one attempt may make; no limit with none.
    #[serde(default = "requests", skip_serializing_if = "is_usual_requests")]
    pub requests: u32,
    /// How long it may show no sign of life before it is ended; nothing for ever.
    #[serde(default = "silence", skip_serializing_if = "is_usual_silence")]
    pub silence: Millis,
    /// What follows if its account is at a limit.
    #[serde(default)]
    pub on_limit: OnLimit,
    /// A limit that ends within this time is waited for, and nobody takes its place.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub limit_wait: Millis,
    /// The agents that take its place then, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// What its model costs, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

fn handoffs() -> u32 {
    HANDOFFS_DEFAULT
}

fn requests() -> u32 {
    REQUESTS_DEFAULT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_usual_requests(requests: &u32) -> bool {
    *requests == REQUESTS_DEFAULT
}

fn silence() -> Millis {
    SILENCE_DEFAULT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_usual_silence(silence: &Millis) -> bool {
    *silence == SILENCE_DEFAULT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_no_time(time: &Millis) -> bool {
    time.0 == 0
}

impl Agent {
    /// An agent of a program, with the defaults of everything else.
    pub fn new(name: &str, program: &str) -> Self {
        let (name, program) = (name.to_owned(), program.to_owned());
        let (handoffs, requests, silence) = (HANDOFFS_DEFAULT, REQUESTS_DEFAULT, SILENCE_DEFAULT);
        Self { name, program, handoffs, requests, silence, ..Self::default() }
    }

    /// Whether it is a program that Piton knows: it has sessions, and its own words for how it went.
    pub fn is_known(&self) -> bool {
        self.program != COMMAND
    }
}

/// What an agent may do without asking a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permissions {
    /// What the program's own settings say: nothing is added.
    Own,
    /// Change files of the project and run commands in its sandbox.
    #[default]
    Edits,
    /// Everything.
    All,
}

/// What follows if an agent's account is at a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// The lane waits until the limit ends.
    #[default]
    Park,
    /// The next agent of `fallback` that is not at a limit goes on; if there is none, the lane waits.
    Fallback,
    /// The step fails.
    Stop,
}

/// What one place of the settings says of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Tokens that fit.
    pub tokens: Option<u64>,
    /// See [`Thresholds::warning`].
    pub warning: Option<u32>,
    /// See [`Thresholds::critical`].
    pub critical: Option<u32>,
    /// See [`Thresholds::halt`].
    pub halt: Option<u32>,
}

impl Window {
    /// The same, and what a more general place says of the rest.
    #[must_use]
    pub fn or(self, general: Self) -> Self {
        Self {
            tokens: self.tokens.or(general.tokens),
            warning: self.warning.or(general.warning),
            critical: self.critical.or(general.critical),
            halt: self.halt.or(general.halt),
        }
    }

    /// How full it may be, where nobody says it as usual.
    pub fn thresholds(self) -> Thresholds {
        let usual = Thresholds::default();
        Thresholds {
            warning: self.warning.unwrap_or(usual.warning),
            critical: self.critical.unwrap_or(usual.critical),
            halt: self.halt.unwrap_or(usual.halt),
        }
    }
}

/// How full a window may be, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// From here on the work is checkpointed, and prompts are kept short.
    pub warning: u32,
    /// From here on the agent stops after the operation under way, and a fresh one goes on.
    pub critical: u32,
    /// From here on it is ended.
    pub halt: u32,
}

impl Thresholds {
    /// Whether each is at most the next, and the last at most the whole.
    pub fn rise(self) -> bool {
        self.warning <= self.critical && self.critical <= self.halt && u64::from(self.halt) <= WHOLE
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { warning: 750, critical: 900, halt: 975 }
    }
}

/// How full the window of an agent is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// There is space.
    #[default]
    Fine,
    /// See [`Thresholds::warning`].
    Warning,
    /// See [`Thresholds::critical`].
    Critical,
    /// See [`Thresholds::halt`].
    Halt,
}

impl Level {
    /// Whether there is space.
    pub fn is_fine(&self) -> bool {
        *self == Self::Fine
    }
}

/// How full a window is.
pub fn level(thresholds: Thresholds, context: Option<u64>, window: u64) -> Level {
    let Some(used) = context.filter(|_| window > 0) else { return Level::Fine };
    let reached = |share: u32| used.saturating_mul(WHOLE) >= window.saturating_mul(share.into());
    match () {
        () if reached(thresholds.halt) => Level::Halt,
        () if reached(thresholds.critical) => Level::Critical,
        () if reached(thresholds.warning) => Level::Warning,
        () => Level::Fine,
    }
}

/// Prices of a model, in millionths of a dollar for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Of tokens that are sent and not found in a cache.
    pub input: u64,
    /// Of tokens that are read from a cache.
    pub cached: u64,
    /// Of tokens that are received.
    pub output: u64,
}

impl Prices {
    /// What tokens cost, in millionths of a dollar.
    pub fn of(self, tokens: Tokens) -> u64 {
        let one = |count: u64, price: u64| u128::from(count) * u128::from(price);
        let sum = one(tokens.input, self.input)
            + one(tokens.cached, self.cached)
            + one(tokens.output, self.output);
        u64::try_from(sum.div_ceil(u128::from(MILLION))).unwrap_or(u64::MAX)
    }
}

/// What an attempt cost: the program's own number, else by the prices, else by [`PRICES_DEFAULT`].
pub fn cost(totals: &Totals, prices: Option<Prices>) -> Cost {
    let by_prices = || prices.unwrap_or(PRICES_DEFAULT).of(totals.tokens);
    let micros = totals.cost_micros.unwrap_or_else(by_prices);
    Cost { micros, is_known: totals.cost_micros.is_some() || prices.is_some() }
}

/// What an attempt cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Millionths of a dollar, as it counts for budgets.
    pub micros: u64,
    /// Whether that is more than a guess.
    pub is_known: bool,
}

/// Tokens by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Sent, and not found in a cache.
    pub input: u64,
    /// Sent, and read from a cache.
    pub cached: u64,
    /// Received.
    pub output: u64,
}

impl Tokens {
    /// All of them.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.cached).saturating_add(self.output)
    }

    /// The tokens beyond those of an earlier count; a count that went back adds nothing.
    #[must_use]
    pub fn beyond(self, earlier: Self) -> Self {
        Self {
            input: self.input.saturating_sub(earlier.input),
            cached: self.cached.saturating_sub(earlier.cached),
            output: self.output.saturating_sub(earlier.output),
        }
    }
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.cached = self.cached.saturating_add(more.cached);
        self.output = self.output.saturating_add(more.output);
    }
}

/// What a process used, and where its context stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tokens, all requests together, those of subagents included.
    pub tokens: Tokens,
    /// What they cost, in millionths of a dollar, if the program says so.
    pub cost_micros: Option<u64>,
    /// Tokens in the context at the last request of the agent itself.
    pub context: Option<u64>,
    /// The size of the model's window, if the program says so.
    pub window: Option<u64>,
    /// The number of requests that were answered.
    pub requests: u32,
}

/// What an agent has said of itself since its process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The id of its session.
    pub session: Option<String>,
    /// What it used.
    pub totals: Totals,
    /// The window of its model: the program's own word, else the settings, else the program's usual.
    pub window: u64,
    /// What it does, in one line.
    pub doing: String,
    /// The operations that began and have not ended.
    pub in_flight: Vec<String>,
    /// When the limit of its account ends, if it has said so.
    pub limited_until: Option<Timestamp>,
}

/// How an attempt of an agent went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did what it was asked.
    Succeeded,
    /// It stopped between two operations because we asked for it.
    Stopped,
    /// Its account has reached a limit; `until` is when that ends.
    Limited {
        /// When it ends, if that is known.
        until: Option<Timestamp>,
        /// What the program said.
        said: String,
    },
    /// The service is overloaded, or the network is gone: it passes by itself.
    Unavailable(String),
    /// The account, its credit or the model is refused: another attempt would be too.
    Refused(String),
    /// The context is full.
    Full(String),
    /// It was not allowed to do what it wanted, or a server that it needs is gone.
    Denied(String),
    /// A budget or a number of turns that the program itself was given is used up.
    Spent(String),
    /// It failed in another way.
    Failed(String),
    /// It ended without saying that it was done.
    Interrupted(String),
}

/// The id of the session that an attempt begins, in the form of a random UUID. It depends on the mark
/// of the run, which is random, and on the attempt: whoever starts that again means the same session.
pub fn session_id(mark: &str, attempt: &str) -> String {
    let hash = Sha::of_json(&("session", mark, attempt)).0;
    let hex: Vec<char> = hash.chars().filter(char::is_ascii_hexdigit).take(32).collect();
    let part = |from: usize, to: usize| -> String { hex.iter().take(to).skip(from).collect() };
    // The digits that say which kind of UUID it is.
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: an agent is stopped too early, too late or never.
    #[test]
    fn levels_begin_at_their_shares() {
        let of = |used| level(Thresholds::default(), Some(used), 200_000);
        let table = [
            (0, Level::Fine),
            (149_999, Level::Fine),
            (150_000, Level::Warning),
            (179_999, Level::Warning),
            (180_000, Level::Critical),
            (194_999, Level::Critical),
            (195_000, Level::Halt),
            (u64::MAX, Level::Halt),
        ];
        for (used, wanted) in table {
            assert_eq!(of(used), wanted, "{used}");
        }
        assert_eq!(level(Thresholds::default(), None, 200_000), Level::Fine);
        assert_eq!(level(Thresholds::default(), Some(9), 0), Level::Fine);
    }

    /// Lost: tokens without a price count as nothing, and no budget of money ever stops them.
    #[test]
    fn what_nobody_prices_costs_something() {
        let tokens = Tokens { input: 1_000_000, cached: 2_000_000, output: 100_000 };
        let totals = Totals { tokens, ..Totals::default() };
        let told = Totals { cost_micros: Some(7), ..totals.clone() };
        let cheap = Prices { input: 1, cached: 1, output: 1 };
        assert_eq!(cost(&told, Some(cheap)), Cost { micros: 7, is_known: true });
        assert_eq!(cost(&totals, Some(cheap)), Cost { micros: 4, is_known: true });
        assert_eq!(cost(&totals, None), Cost { micros: 8_500_000, is_known: false });
        let one = Totals { tokens: Tokens { input: 1, ..Tokens::default() }, ..Totals::default() };
        assert!(cost(&one, None).micros > 0);
    }

    /// Lost: a program refuses the id of a new session, or two attempts share one.
    #[test]
    fn sessions_have_ids_of_their_own() {
        let id = session_id("mark", "P/l/s#1");
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
        assert_eq!(id.chars().nth(14), Some('4'));
        assert_eq!(id, session_id("mark", "P/l/s#1"));
        assert_ne!(id, session_id("mark", "P/l/s#2"));
        assert_ne!(id, session_id("other", "P/l/s#1"));
    }
}

//! What simulated steps do, attempt by attempt.

use std::collections::BTreeMap;

use piton_core::agent::{self, Heard};
use piton_core::{Millis, StepPath};

/// How long an attempt takes by default: longer than the time between two reads of the inbox.
const DURATION: Millis = Millis(300);

/// What one attempt does.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// Its exit code.
    pub code: i32,
    /// The signal that ends it instead.
    pub signal: Option<i32>,
    /// Which of its commands fails: 0 the work, 1 the test.
    pub part: usize,
    /// How long it takes.
    pub duration: Millis,
    /// What it prints.
    pub output: Vec<String>,
    /// Files it writes when it ends by itself; `{attempt}` stands for its number.
    pub writes: Vec<(String, String)>,
    /// Files it writes as soon as it starts.
    pub begins: Vec<(String, String)>,
    /// A file and a text in it that make it fail.
    pub breaks_on: Option<(String, String)>,
    /// Tokens it reports.
    pub tokens: u64,
    /// Money it reports.
    pub money_micros: u64,
    /// Bytes of log it leaves.
    pub log_bytes: u64,
    /// Why it cannot be started at all.
    pub cannot_start: Option<String>,
    /// What its agent has said by then, so long after it began.
    pub says: Vec<(Millis, Heard)>,
    /// How its agent went, by its own signs.
    pub verdict: Option<agent::Verdict>,
    /// Whether its agent goes on when it is asked to stop.
    pub is_deaf: bool,
}

impl Behaviour {
    /// Succeeds.
    pub fn ok() -> Self {
        Self {
            code: 0,
            signal: None,
            part: 0,
            duration: DURATION,
            output: Vec::new(),
            writes: Vec::new(),
            begins: Vec::new(),
            breaks_on: None,
            tokens: 0,
            money_micros: 0,
            log_bytes: 0,
            cannot_start: None,
            says: Vec::new(),
            verdict: None,
            is_deaf: false,
        }
    }

    /// Fails with an exit code.
    pub fn fails(code: i32) -> Self {
        Self { code, ..Self::ok() }
    }

    /// Takes so long.
    #[must_use]
    pub fn lasting(mut self, duration: Millis) -> Self {
        self.duration = duration;
        self
    }

    /// Prints a line.
    #[must_use]
    pub fn saying(mut self, line: &str) -> Self {
        self.output.push(line.to_owned());
        self
    }

    /// Writes a file.
    #[must_use]
    pub fn writing(mut self, path: &str, text: &str) -> Self {
        self.writes.push((path.to_owned(), text.to_owned()));
        self
    }

    /// Writes a file as soon as it starts.
    #[must_use]
    pub fn beginning(mut self, path: &str, text: &str) -> Self {
        self.begins.push((path.to_owned(), text.to_owned()));
        self
    }

    /// Fails where a file has a text in it.
    #[must_use]
    pub fn breaking_on(mut self, path: &str, text: &str) -> Self {
        self.breaks_on = Some((path.to_owned(), text.to_owned()));
        self
    }
}

/// The behaviour of every step; a step that is not named succeeds.
#[derive(Clone, Debug, Default)]
pub struct Script(BTreeMap<StepPath, Vec<Behaviour>>);

impl Script {
    /// Says what the attempts of a step do; the last goes for all further ones.
    #[must_use]
    pub fn with(mut self, step: &str, attempts: Vec<Behaviour>) -> Self {
        let path = step.parse().expect("tests name steps as PHASE/LANE/STEP");
        self.0.insert(path, attempts);
        self
    }

    /// What an attempt does.
    pub fn of(&self, step: &StepPath, attempt: u32) -> Behaviour {
        let index = attempt.saturating_sub(1) as usize;
        self.0
            .get(step)
            .and_then(|all| all.get(index).or_else(|| all.last()))
            .cloned()
            .unwrap_or_else(Behaviour::ok)
    }
}

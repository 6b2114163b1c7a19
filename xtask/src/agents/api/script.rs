//! What the model answers: a list of answers in their order, and one for everything after them.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

/// The answers of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    answers: VecDeque<Answer>,
    otherwise: Answer,
}

impl Script {
    /// These answers in their order, and the last of them again for every later request.
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut answers: VecDeque<Answer> = answers.into_iter().collect();
        let otherwise = answers.pop_back().unwrap_or_default();
        Self { answers, otherwise }
    }

    /// The answer to a request. One that offers no tools is for a title or the like, unless all fail:
    /// it gets a text, and the script does not move on.
    pub(crate) fn next(&mut self, body: &Value) -> Answer {
        let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let fails = self.answers.is_empty() && self.otherwise.failure.is_some();
        if !has_tools && !fails {
            return Answer::text("A title");
        }
        self.answers.pop_front().unwrap_or_else(|| self.otherwise.clone())
    }
}

/// One answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// What the model says.
    pub(crate) text: String,
    /// The tools it calls.
    pub(crate) calls: Vec<Call>,
    /// Tokens of the request that were not cached.
    pub(crate) input: u64,
    /// Tokens of the request that were cached.
    pub(crate) cached: u64,
    /// Tokens of the answer.
    pub(crate) output: u64,
    /// Headers besides those of every answer.
    pub(crate) headers: Vec<(String, String)>,
    /// The answer is an error.
    pub(crate) failure: Option<Failure>,
    /// How long the model thinks.
    pub(crate) delay: Duration,
    /// Whether the connection breaks in the middle of the answer.
    pub(crate) is_cut: bool,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            text: String::new(),
            calls: Vec::new(),
            input: 200,
            cached: 11_000,
            output: 30,
            headers: Vec::new(),
            failure: None,
            delay: Duration::ZERO,
            is_cut: false,
        }
    }
}

impl Answer {
    /// A text that ends the turn.
    pub(crate) fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// A call of a tool.
    pub(crate) fn call(name: &str, input: Value) -> Self {
        Self { calls: vec![Call { name: name.to_owned(), input }], ..Self::text("Going on.") }
    }

    /// An error, in the form of whoever asks.
    pub(crate) fn error(status: u16, kind: &str, message: &str) -> Self {
        let (kind, message) = (kind.to_owned(), message.to_owned());
        let failure = Failure { status, kind, message, body: None };
        Self { failure: Some(failure), ..Self::default() }
    }

    /// An error with a body of its own.
    pub(crate) fn refusal(status: u16, body: Value) -> Self {
        let (kind, message) = (String::new(), String::new());
        let failure = Failure { status, kind, message, body: Some(body) };
        Self { failure: Some(failure), ..Self::default() }
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The connection breaks in the middle of it.
    #[must_use]
    pub(crate) fn cut(mut self) -> Self {
        self.is_cut = true;
        self
    }

    /// It comes late.
    #[must_use]
    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The tool, as the program names it.
    pub(crate) name: String,
    /// What it is called with.
    pub(crate) input: Value,
}

/// An error of the API.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The status of HTTP.
    pub(crate) status: u16,
    /// The kind, in the words of the service.
    pub(crate) kind: String,
    /// What it says.
    pub(crate) message: String,
    /// The body, where the usual form is not enough.
    pub(crate) body: Option<Value>,
}

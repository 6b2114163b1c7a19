//! How an attempt of an agent went: the exit code, what the stream said, and whether it was finished.

use piton_core::Timestamp;
pub use piton_core::agent::Verdict;
use piton_core::event::Class;
use piton_core::failure::{self, Remains};

/// The time, for programs that name a time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Now.
    pub now: Timestamp,
    /// How far this machine's clock is ahead of UTC, in seconds.
    pub offset_secs: i32,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Whether we asked it to stop after the operation under way.
    pub is_asked: bool,
}

impl Exit {
    /// Whether the code is that of a success.
    pub fn is_zero(self) -> bool {
        self.code == Some(0)
    }
}

/// What the words of a failure mean, where nothing but words tells.
pub(crate) fn from_words(said: &str, clock: Clock) -> Verdict {
    let text = said.to_owned();
    let lower = said.to_lowercase();
    let says = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
    if says(FULL) {
        return Verdict::Full(text);
    }
    if says(REFUSED) {
        return Verdict::Refused(text);
    }
    let lines: Vec<String> = said.lines().map(str::to_owned).collect();
    let (lines, offset_secs) = (&lines, clock.offset_secs);
    let remains = Remains { in_test: false, is_agent: true, is_told: true, lines, offset_secs };
    let classified = failure::classify(remains, clock.now);
    match classified.class {
        Class::RateLimit => Verdict::Limited { until: classified.reset, said: text },
        Class::Network => Verdict::Unavailable(text),
        _ => Verdict::Failed(text),
    }
}

/// What a status of HTTP means, with the words that came with it.
pub(crate) fn from_status(status: u16, said: &str, clock: Clock) -> Verdict {
    let text = || said.to_owned();
    match status {
        401..=404 => Verdict::Refused(text()),
        408 | 500..=599 => match from_words(said, clock) {
            limited @ Verdict::Limited { until: Some(_), .. } => limited,
            _ => Verdict::Unavailable(text()),
        },
        429 => match from_words(said, clock) {
            Verdict::Limited { until, said } => Verdict::Limited { until, said },
            _ => Verdict::Limited { until: None, said: text() },
        },
        _ => from_words(said, clock),
    }
}

/// A hook stopped a program, and we did not ask for it: it would again.
pub(crate) fn stopped_by_own_hook(said: &str) -> Verdict {
    let why = if said.is_empty() { "it gave no reason" } else { said };
    Verdict::Failed(format!("a hook of its own stopped it: {why}"))
}

/// What it means that a program was not allowed to do something, if it was not.
pub(crate) fn denied(operations: &[String]) -> Option<Verdict> {
    let words = || format!("it was not allowed to use {}", operations.join(", "));
    (!operations.is_empty()).then(|| Verdict::Denied(words()))
}

/// What it means that MCP servers did not start, if some did not.
pub(crate) fn without_servers(names: &[String]) -> Option<Verdict> {
    let words = || format!("MCP server {} did not start", names.join(", "));
    (!names.is_empty()).then(|| Verdict::Denied(words()))
}

/// The context is full, in the words of programs and services.
const FULL: &[&str] = &[
    "prompt is too long",
    "context window",
    "maximum context length",
    "context_length_exceeded",
    "exceeds the maximum number of tokens",
    "input is too long",
];

/// Nothing that passes by itself: account, credit, model.
const REFUSED: &[&str] = &[
    "invalid api key",
    "api key not valid",
    "api key expired",
    "authentication",
    "unauthorized",
    "not logged in",
    "please run /login",
    "credit balance is too low",
    "insufficient_quota",
    "billing",
    "model not found",
    "model_not_found",
    "modelnotfound",
    "model is not supported",
    "issue with the selected model",
    "has disabled claude",
    "does not exist or you do not have access",
    "permission_error",
    "cannot be used with root",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: a night is spent on a key that nobody accepts, or ends at an overload of a minute.
    #[test]
    fn words_tell_what_passes_from_what_does_not() {
        // 2026-11-17 08:00:00 UTC.
        let clock = Clock { now: Timestamp(1_794_902_400_000), offset_secs: 3600 };
        let hour = |h: i64| Timestamp(1_794_873_600_000 + h * 3_600_000);
        let minute = |m: i64| Timestamp(1_794_873_600_000 + m * 60_000);
        let limited = |said: &str, until: Option<Timestamp>| {
            assert_eq!(
                from_words(said, clock),
                Verdict::Limited { until, said: said.to_owned() },
                "{said}"
            );
        };
        limited("You've hit your 5-hour limit · resets 10am (UTC)", Some(hour(10)));
        limited("You've hit your session limit · resets 9am (UTC)", Some(hour(9)));
        limited("You’ve hit your usage limit. … or try again at 10:00 AM.", Some(hour(9)));
        limited("Limit reached · resets 10am", Some(hour(9)));
        limited("exceeded retry limit, last status: 429 Too Many Requests", None);
        for said in ["API Error: 529 Overloaded.", "We’re currently experiencing high demand"] {
            assert!(!matches!(from_words(said, clock), Verdict::Failed(_)), "{said}");
        }
        limited("Your workspace is out of credits. Try again at 10:06 AM.", Some(minute(546)));
        limited("Fast mode is exhausted · resets 9am (UTC)", Some(hour(9)));
        limited("Resets at 9am (UTC): your allowance is used up", Some(hour(9)));
        limited("You have hit your monthly cap. It refreshes at 9am (UTC)", Some(hour(9)));
        limited("Out of Sonnet quota · available again at 9am (UTC)", Some(hour(9)));
        limited("Your plan renews tomorrow at 9am (UTC)", Some(hour(33)));
        for said in ["Request timed out.", "API Error: Stream idle timeout - partial response"] {
            assert_eq!(from_words(said, clock), Verdict::Unavailable(said.to_owned()));
        }
        for said in [
            "I reset the branch and stopped after 3 tries",
            "the cache is refreshed, then it fails",
            "connection pool reset 30 s ago",
        ] {
            assert_eq!(from_words(said, clock), Verdict::Failed(said.to_owned()));
        }
        for said in [
            "Invalid API key · Fix external API key",
            "Your credit balance is too low",
            "API key not valid. Please pass a valid API key.",
            "The 'x' model is not supported when using Codex with a ChatGPT account.",
            "There is an issue with the selected model (x). It may not exist.",
            "Your organization has disabled Claude subscription access for Claude Code",
        ] {
            assert_eq!(from_words(said, clock), Verdict::Refused(said.to_owned()));
        }
        let full = "This model's maximum context length is 200000 tokens.";
        assert_eq!(from_words(full, clock), Verdict::Full(full.to_owned()));
        assert_eq!(from_words("it broke", clock), Verdict::Failed("it broke".to_owned()));
        assert_eq!(from_status(500, "oops", clock), Verdict::Unavailable("oops".to_owned()));
        assert_eq!(from_status(401, "no", clock), Verdict::Refused("no".to_owned()));
    }
}

//! The signs of a rate limit and of a network that is not there, in the output of a failed attempt.
//!
//! Code mentions such things too. The name of a test, a function, a module or a file says nothing about
//! this attempt. So reports of tests are left out, and a sign of one word counts only where it is not
//! part of a name.

use std::ops::Range;

use regex::Regex;

use crate::event::Class;
use crate::pattern::pattern;

/// What programs say of a network that is not there, in words, and where that was seen.
const NETWORK: &[(&str, &str)] = &[
    ("could not resolve host", "curl, git over HTTPS; ssh, with `hostname`"),
    ("could not resolve proxy", "curl, git over HTTPS"),
    ("failed to connect to ", "curl, git over HTTPS"),
    ("couldn't connect to server", "curl, git over HTTPS"),
    ("could not connect to server", "git over HTTPS since 2.43"),
    ("operation timed out", "curl, git over HTTPS"),
    ("empty reply from server", "curl, git over HTTPS"),
    ("ssl_error_syscall", "curl with OpenSSL, git over HTTPS"),
    ("gnutls_handshake() failed", "curl with GnuTLS, git over HTTPS"),
    ("the tls connection was non-properly terminated", "curl with GnuTLS, git over HTTPS"),
    ("unexpected disconnect while reading", "git, in the middle of a transfer"),
    ("remote end hung up unexpectedly", "git, in the middle of a transfer"),
    ("error connecting to ", "gh"),
    ("check your internet connection", "gh"),
    ("no such host", "programs in Go: gh, docker"),
    ("server misbehaving", "programs in Go: gh"),
    ("i/o timeout", "programs in Go: gh"),
    ("tls handshake timeout", "programs in Go: gh"),
    ("client.timeout exceeded while awaiting headers", "programs in Go: gh"),
    ("kex_exchange_identification: ", "ssh, git over SSH"),
    ("connection closed by remote host", "ssh, git over SSH"),
    ("temporary failure in name resolution", "the C library: ssh, Python"),
    ("name or service not known", "the C library: ssh, Python"),
    ("nodename nor servname provided", "the C library of macOS"),
    ("network is unreachable", "the system: ENETUNREACH"),
    ("network is down", "the system: ENETDOWN"),
    ("no route to host", "the system: EHOSTUNREACH"),
    ("host is unreachable", "the system: EHOSTUNREACH"),
    ("host is down", "the system: EHOSTDOWN"),
    ("connection timed out", "the system: ETIMEDOUT"),
    ("connection reset by peer", "the system: ECONNRESET"),
    ("connection refused", "the system: ECONNREFUSED"),
    ("connection was reset", "curl on Windows, browsers"),
    ("connection aborted", "Python: urllib3, requests"),
    ("failed to establish a new connection", "Python: urllib3, requests"),
    ("temporary failure resolving", "apt"),
    ("unable to resolve host", "wget"),
    ("spurious network error", "cargo"),
    ("network error", "npm, agents"),
    ("socket hang up", "Node.js: npm, agents"),
    ("fetch failed", "Node.js: npm, agents"),
    ("api error: connection error", "Claude Code"),
    ("502 bad gateway", "HTTP in words"),
    ("503 service unavailable", "HTTP in words"),
    ("504 gateway time", "HTTP in words"),
];

/// What programs say of a limit, in words, and where that was seen.
const RATE_LIMIT: &[(&str, &str)] = &[
    ("rate limit", "services and their libraries"),
    ("too many requests", "HTTP 429 in words"),
    ("usage limit reached", "Claude Code before 2.1"),
    ("-hour limit reached", "Claude Code before 2.1"),
    ("weekly limit reached", "Claude Code before 2.1"),
    ("limit reached · resets", "Claude Code"),
    ("limit reached ∙ resets", "Claude Code"),
    ("hit your limit", "Claude Code"),
    ("hit your session limit", "Claude Code"),
    ("hit your 5-hour limit", "Claude Code 2.1"),
    ("hit your weekly limit", "Claude Code 2.1"),
    ("hit your opus limit", "Claude Code 2.1"),
    ("hit your sonnet limit", "Claude Code 2.1"),
    ("extra usage limit", "Claude Code with extra usage"),
    ("out of extra usage", "Claude Code with extra usage"),
    ("hit your usage limit", "Codex"),
    ("exceeded retry limit, last status: 429", "Codex"),
    ("quota exceeded", "services of Google"),
    ("exhausted your daily quota", "Gemini CLI"),
    ("exhausted your capacity", "Gemini CLI"),
];

/// What agents say of a service that has too much to do, and where that was seen. It passes by itself,
/// as the network does.
const OVERLOADED: &[(&str, &str)] = &[
    ("api error: 500", "Claude Code"),
    ("request timed out", "Claude Code, libraries of services"),
    ("stream idle timeout", "Claude Code"),
    ("unable to connect to api", "Claude Code"),
    ("internal server error", "HTTP 500 in words"),
    ("overloaded", "HTTP 529 in words"),
    ("experiencing high demand", "Codex"),
    ("model is overloaded", "Gemini CLI"),
];

/// The same as one word: a code, or the type of an error. The whole word must be one of these.
const RATE_LIMIT_WORD: &str = r"^(?:(?i:rate_?limit(?:ed|s)?(?:_?(?:error|exceeded|exception|reached|hit|type|reset(?:_?at)?))*|resource_exhausted|overloaded_error)|(?:[A-Z0-9]+_)+RATE_?LIMIT(?:ED|_ERROR|_EXCEEDED|_REACHED)|[A-Z][A-Za-z]*RateLimit(?:ed|Exceeded)?(?:Error|Exception)|userRateLimitExceeded)$";
const NETWORK_WORD: &str =
    "^(?i:enotfound|econnreset|econnrefused|enetunreach|ehostunreach|etimedout|eai_again)$";

/// The lines as one text, without what only names tests.
pub(super) fn said(lines: &[String]) -> String {
    let mut text = String::new();
    let mut in_list = false;
    for line in lines {
        // The names of failed tests follow, one in each line.
        in_list = line.trim() == "failures:" || in_list && is_name(line.trim());
        if !in_list {
            text.push_str(&without_name(line));
            text.push('\n');
        }
    }
    text.pop();
    text
}

fn is_name(line: &str) -> bool {
    line.chars().all(|c| c.is_alphanumeric() || "_:".contains(c))
}

/// A line without the name of the test that it reports on.
fn without_name(line: &str) -> std::borrow::Cow<'_, str> {
    // Cargo's test runners, those of Go, Python and JavaScript, and TAP.
    let report = r"^\s*(?:---- .* stdout ----|(?:FAIL|PASS)\s+(?:\[|\S+\.[a-z]+\b)|=== (?:RUN|PAUSE|CONT) |--- (?:FAIL|PASS|SKIP): |(?:FAIL|ERROR): \S+ \(\S+\)|_{3,} .* _{3,}$|(?:not )?ok \d+\b|[✓✔√] |[✕×✗✘✖] .*\(?\d+(?:\.\d+)? ?m?s\)?$|● .* › )";
    if pattern!(report).is_some_and(|report| report.is_match(line)) {
        return "".into();
    }
    // What a test expected of a text says nothing about this attempt.
    let expected = r"^\s*(?:\w*Error: )?expected .* to (?:(?:not|deeply|strictly) )*(?:equal|eql|be|contain|include|match|have|throw)\b";
    if pattern!(expected).is_some_and(|expected| expected.is_match(line)) {
        return "".into();
    }
    let name = r"^\s*(?:test \S.*? \.\.\.|thread '[^']*'|(?:FAILED|ERROR|PASSED) \S+::\S+)";
    pattern!(name).map_or(line.into(), |name| name.replace(line, ""))
}

/// The class that a text speaks of, if any. A limit says more than a network: it may name when it ends.
pub(super) fn class(text: &str) -> Option<Class> {
    let lower = text.to_lowercase();
    let status = status(&lower);
    let spoken = |signs: &[(&str, &str)]| signs.iter().any(|(sign, _)| speaks(&lower, sign));
    let word = |known: Option<&Regex>| known.is_some_and(|known| has_word(text, known));
    if status == Some(Class::RateLimit) || spoken(RATE_LIMIT) || word(pattern!(RATE_LIMIT_WORD)) {
        return Some(Class::RateLimit);
    }
    let is_network =
        status == Some(Class::Network) || spoken(NETWORK) || word(pattern!(NETWORK_WORD));
    is_network.then_some(Class::Network)
}

/// Whether an agent says that its service has too much to do.
pub(super) fn is_overloaded(text: &str) -> bool {
    let lower = text.to_lowercase();
    OVERLOADED.iter().any(|(sign, _)| speaks(&lower, sign))
}

/// Whether an agent says when a limit resets. Limits get new names; what they have in common is that.
pub(super) fn names_a_reset(text: &str) -> bool {
    let limit =
        r"\b(?:limits?|quotas?|allowance|credits?|usage|caps?|budget|requests|messages|tokens)\b";
    let reset = r"\breset(?:s|ting)?\b";
    let sign = format!(r"(?i){limit}[^\n]{{0,80}}{reset}|{reset}[^\n]{{0,80}}{limit}");
    pattern!(&sign).is_some_and(|sign| sign.is_match(text))
}

/// Whether a failure says that there is another try, if only later.
pub(super) fn names_another_try(text: &str) -> bool {
    let sign = r"(?i)\b(?:available|try|trying) again\b";
    pattern!(sign).is_some_and(|sign| sign.is_match(text))
}

/// Whether a failure says that something resets. With a point in time that is a limit; a length alone may
/// be that of anything.
pub(super) fn speaks_of_a_reset(text: &str) -> bool {
    let sign = r"(?i)\b(?:reset|refresh|renew)(?:s|es|ed|ing)?\b";
    pattern!(sign).is_some_and(|sign| sign.is_match(text))
}

/// Whether a text has a sign that does not begin in the middle of a word.
fn speaks(text: &str, sign: &str) -> bool {
    let begins = |at: usize| !sign.starts_with(is_part) || !text[..at].ends_with(is_part);
    text.match_indices(sign).any(|(at, _)| begins(at))
}

/// The status of an answer that stands for something that passes by itself: `HTTP/2 429`, `"status":
/// 429`, `returned error: 503`.
fn status(text: &str) -> Option<Class> {
    let word = r"\b(?:http(?:/\d(?:\.\d)?)?|error|(?:http[ _-]?)?(?:status)?[ _-]?code|status)";
    let made = pattern!(&format!(r#"{word}["']?[:=]?[ ("']{{0,2}}(429|529|502|503|504)\b"#));
    let codes = made?.captures_iter(text).map(|found| match &found[1] {
        "429" | "529" => Class::RateLimit,
        _ => Class::Network,
    });
    codes.min_by_key(|class| *class != Class::RateLimit)
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a text has a known word that is not a name.
fn has_word(text: &str, known: &Regex) -> bool {
    let words = pattern!(r"\w+").into_iter().flat_map(|word| word.find_iter(text));
    words.into_iter().any(|word| known.is_match(word.as_str()) && !is_name_at(text, word.range()))
}

/// Whether a word is the name of a file, a module or a function there.
fn is_name_at(text: &str, at: Range<usize>) -> bool {
    let (word, before, after) = (&text[at.clone()], &text[..at.start], &text[at.end..]);
    let is_file = after.strip_prefix('.').is_some_and(|rest| rest.starts_with(is_part));
    if is_file || after.starts_with(['/', '\\']) {
        return true;
    }
    // Types and constants are printed like this in errors, with their module.
    if word.contains(char::is_uppercase) {
        return false;
    }
    let header = ["-reset", "-limit", "-remaining", "-policy", "-used", "-resource"];
    let in_dashes = before.ends_with('-') && !before.to_lowercase().ends_with("x-")
        || after.starts_with('-') && !header.iter().any(|end| after.starts_with(end));
    let is_quoted = before.ends_with('\'') && word == "rate_limit";
    let is_inside = before.ends_with("::") || before.ends_with(['.', '/', '\\', '`']);
    let is_called = after.starts_with('(') || after.starts_with("::");
    is_inside || is_called || is_quoted || in_dashes
}

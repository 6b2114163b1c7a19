//! What every adapter must show with the real program.
//!
//! A case makes its stage, plays, and says in a few words what was seen. Programs differ in what they
//! tell; where they do, the case says which.

use std::fs;
use std::time::Duration;

use piton_agents::{Permissions, Verdict};
use serde_json::json;

use super::Broken;
use super::api::{Answer, Script};
use super::attempt::{self, Ending};
use super::runs;
use super::sessions;
use super::stage::{PROMPT, SESSION, Stage, ensure, judged};

/// A case.
pub(super) struct Case {
    /// Its name in the table.
    pub(super) name: &'static str,
    /// The programs it is for; all where there is none.
    pub(super) only: &'static [&'static str],
    /// Plays it.
    pub(super) play: fn(&mut Stage<'_>) -> Result<String, Broken>,
}

/// All of them.
pub(super) const CASES: &[Case] = &[
    Case { name: "edits", only: &[], play: edits },
    Case { name: "killed", only: &[], play: killed },
    Case { name: "cut stream", only: &[], play: cut },
    Case { name: "limit", only: &[], play: limit },
    Case { name: "refused", only: &[], play: refused },
    Case { name: "full", only: &[], play: full },
    Case { name: "unavailable", only: &[], play: unavailable },
    Case { name: "denied", only: &["claude", "opencode"], play: denied },
    Case { name: "unrestricted", only: &[], play: unrestricted },
    Case { name: "stopped", only: &[], play: stopped },
    Case { name: "run", only: &[], play: runs::edits },
    Case { name: "run-driver", only: &[], play: runs::driver_killed },
    Case { name: "run-killed", only: &[], play: runs::all_killed },
    Case { name: "run-limit", only: &[], play: runs::limit },
    Case { name: "run-test", only: &[], play: runs::failing_test },
    Case { name: "run-budget", only: &[], play: runs::budget },
    Case { name: "run-handoff", only: &[], play: runs::handoff },
    Case { name: "run-mcp", only: &[], play: runs::mcp },
    Case { name: "run-no-server", only: &[], play: runs::dead_server },
    Case { name: "run-wrapper", only: &["codex"], play: runs::wrapper_killed },
    Case { name: "session", only: &[], play: sessions::goes_on },
    Case { name: "session-stop", only: &[], play: sessions::stops },
    Case { name: "session-end", only: &[], play: sessions::ends },
    Case { name: "session-compact", only: COMPACTING, play: sessions::compacts },
    Case { name: "session-init", only: &[], play: sessions::init },
    Case { name: "session-mcp", only: &[], play: sessions::mcp },
    Case { name: "plugin", only: &["claude"], play: sessions::plugin },
];

/// Those that tell a hook before they compact a conversation.
const COMPACTING: &[&str] = &["claude", "codex", "opencode"];

/// The tokens of two requests, as [`Answer`] counts them.
const TWO_REQUESTS: u64 = 2 * 11_230;

/// What the agent writes.
pub(super) const DONE: &str = "quartz";

/// Writes the file and ends the turn.
pub(super) fn writes(stage: &Stage<'_>) -> Script {
    let write = (stage.subject.write)(&stage.file("done.txt"), DONE);
    Script::new([write, Answer::text("It is written.")])
}

pub(super) fn is_written(stage: &Stage<'_>) -> Result<(), Broken> {
    let found = fs::read_to_string(stage.file("done.txt")).unwrap_or_default();
    ensure(found == DONE, || format!("done.txt holds {found:?}"))
}

/// Whether the prompt reached the model with the last request.
fn has_prompt(stage: &Stage<'_>, prompt: &str) -> Result<(), Broken> {
    let asked = stage.api.asked();
    let last = asked.last().map(|asked| asked.body.to_string()).unwrap_or_default();
    ensure(last.contains(prompt), || format!("the last request does not hold {prompt:?}"))
}

/// A whole run: it edits a file, names its session and counts its tokens.
fn edits(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.api.follow(writes(stage));
    let attempt = stage.start(Ending::Itself)?;
    judged(&attempt, "Succeeded", |verdict| *verdict == Verdict::Succeeded)?;
    is_written(stage)?;
    has_prompt(stage, PROMPT)?;
    let totals = &attempt.totals;
    let session = attempt.session.as_deref().ok_or("it named no session")?;
    // Two of them take the id that we choose.
    let takes_id = ["claude", "gemini"].contains(&stage.subject.id);
    ensure(!takes_id || session == SESSION, || format!("its session is {session}"))?;
    ensure(totals.tokens.total() == TWO_REQUESTS, || format!("{totals:?}"))?;
    ensure(totals.context == Some(11_200), || format!("context: {totals:?}"))?;
    ensure(attempt.in_flight.is_empty(), || format!("in flight: {:?}", attempt.in_flight))?;
    ensure(!attempt.said.is_empty(), || "it said nothing".to_owned())?;
    Ok(format!("{} tokens", totals.tokens.total()))
}

/// Everything is killed in the middle of a command; the same session goes on.
fn killed(stage: &mut Stage<'_>) -> Result<String, Broken> {
    let begun = stage.file("begun");
    let command = format!("echo x > '{}'; sleep 600", begun.display());
    stage.api.follow(Script::new([(stage.subject.shell)(&command), Answer::text("unseen")]));
    // opencode tells of tools when they have ended. The others tell at once, but the operation may be
    // faster than the line about it.
    let tells = stage.subject.id != "opencode";
    let is_due = |is_at_work: bool| begun.exists() && (is_at_work || !tells);
    let attempt = stage.start(Ending::Killed(&is_due))?;
    judged(&attempt, "Interrupted", |v| matches!(v, Verdict::Interrupted(_)))?;
    let strays = attempt::of(&stage.place.home);
    ensure(strays.is_empty(), || format!("processes live on: {strays:?}"))?;
    let session = attempt.session.as_deref().ok_or("it named no session before it was killed")?;
    ensure(attempt.in_flight.is_empty() != tells, || format!("{:?}", attempt.in_flight))?;
    let lost = attempt.totals.tokens.total();
    ensure((lost > 0) == tells, || format!("the killed attempt used {lost} tokens"))?;
    goes_on(stage, session)?;
    Ok(format!("in flight: {}, tokens: {lost}", attempt.in_flight.len()))
}

/// The session goes on where it was, with its history, and counts nothing twice.
fn goes_on(stage: &Stage<'_>, session: &str) -> Result<(), Broken> {
    stage.api.follow(writes(stage));
    let prompt = "Go on: the marker is now BASALT-9.";
    let resumed = stage.resume(session, prompt)?;
    judged(&resumed, "Succeeded", |verdict| *verdict == Verdict::Succeeded)?;
    is_written(stage)?;
    has_prompt(stage, PROMPT)?;
    has_prompt(stage, prompt)?;
    let same = resumed.session.as_deref() == Some(session);
    ensure(same, || format!("it goes on as {:?}, not as {session}", resumed.session))?;
    let used = resumed.totals.tokens.total();
    ensure(used == TWO_REQUESTS, || format!("two requests used {used} tokens"))
}

/// A connection that breaks in the middle of an answer is not the end.
fn cut(stage: &mut Stage<'_>) -> Result<String, Broken> {
    let write = (stage.subject.write)(&stage.file("done.txt"), DONE);
    stage.api.follow(Script::new([write.clone().cut(), write, Answer::text("It is written.")]));
    let attempt = stage.start(Ending::Itself)?;
    judged(&attempt, "Succeeded", |verdict| *verdict == Verdict::Succeeded)?;
    is_written(stage)?;
    Ok(format!("{} requests", stage.api.asked().len()))
}

/// The answer of an account at its limit, which ends at a time in seconds.
pub(super) fn limited(stage: &mut Stage<'_>, reset: i64) -> Answer {
    let time = reset.to_string();
    match stage.subject.id {
        "claude" => {
            // Limits with a time are those of a subscription.
            stage.env("ANTHROPIC_API_KEY", None);
            stage.env("CLAUDE_CODE_OAUTH_TOKEN", Some("scripted"));
            Answer::error(429, "rate_limit_error", "This would exceed your account's rate limit.")
                .header("anthropic-ratelimit-unified-status", "rejected")
                .header("anthropic-ratelimit-unified-reset", &time)
                .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
                .header("anthropic-ratelimit-unified-5h-status", "rejected")
                .header("anthropic-ratelimit-unified-5h-utilization", "1.0")
                .header("anthropic-ratelimit-unified-5h-reset", &time)
                .header("retry-after", "3600")
                .header("x-should-retry", "false")
        }
        "codex" => {
            let error = json!({"type": "usage_limit_reached", "plan_type": "plus",
                "message": "The usage limit has been reached", "resets_at": reset});
            Answer::refusal(429, json!({"error": error}))
                .header("x-codex-primary-used-percent", "100.0")
                .header("x-codex-primary-window-minutes", "300")
                .header("x-codex-primary-reset-at", &time)
        }
        "gemini" => {
            let violation = json!({
                "quotaMetric": "generativelanguage.googleapis.com/generate_requests_per_model_per_day",
                "quotaId": "GenerateRequestsPerDayPerProjectPerModel"});
            let details = json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [violation]}]);
            let error = json!({"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details,
                "message": "You exceeded your current quota."});
            Answer::refusal(429, json!({"error": error}))
        }
        _ => Answer::error(429, "rate_limit_exceeded", "Rate limit reached for requests.")
            .header("retry-after-ms", "10"),
    }
}

/// An account at its limit: the verdict has the time at which that ends, where the program says it.
fn limit(stage: &mut Stage<'_>) -> Result<String, Broken> {
    let reset = attempt::now().0 / 1000 + 3600;
    let answer = limited(stage, reset);
    stage.api.follow(Script::new([answer]));
    let attempt = stage.start(Ending::Itself)?;
    let says_time = ["claude", "codex"].contains(&stage.subject.id);
    let wanted = says_time.then_some(piton_core::Timestamp(reset * 1000));
    judged(
        &attempt,
        &format!("Limited until {wanted:?}"),
        |verdict| matches!(verdict, Verdict::Limited { until, .. } if *until == wanted),
    )?;
    Ok(if says_time { "with its end" } else { "without its end" }.to_owned())
}

/// A key that is refused: the program's own words are kept.
fn refused(stage: &mut Stage<'_>) -> Result<String, Broken> {
    let answer = Answer::error(401, "authentication_error", "invalid x-api-key");
    stage.api.follow(Script::new([answer]));
    let attempt = stage.start(Ending::Itself)?;
    judged(&attempt, "Refused", |verdict| matches!(verdict, Verdict::Refused(_)))?;
    said(&attempt.verdict)
}

/// A conversation that no longer fits.
fn full(stage: &mut Stage<'_>) -> Result<String, Broken> {
    let answer = match stage.subject.id {
        "gemini" => Answer::error(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        "claude" => Answer::error(
            400,
            "invalid_request_error",
            "prompt is too long: 205000 tokens > 200000 maximum",
        ),
        _ => Answer::error(
            400,
            "context_length_exceeded",
            "This model's maximum context length is 200000 tokens. Your messages have 205000.",
        ),
    };
    stage.api.follow(Script::new([answer]));
    let attempt = stage.start(Ending::Itself)?;
    judged(&attempt, "Full", |verdict| matches!(verdict, Verdict::Full(_)))?;
    said(&attempt.verdict)
}

/// A service that is overloaded.
fn unavailable(stage: &mut Stage<'_>) -> Result<String, Broken> {
    let status = if stage.subject.id == "claude" { 529 } else { 500 };
    let answer = Answer::error(status, "overloaded_error", "Overloaded");
    stage.api.follow(Script::new([answer.header("retry-after-ms", "10")]));
    let attempt = stage.start(Ending::Itself)?;
    judged(&attempt, "Unavailable", |v| matches!(v, Verdict::Unavailable(_)))?;
    said(&attempt.verdict)
}

/// A tool that the agent may not use: the program ends with 0 all the same.
fn denied(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.ask.permissions = Permissions::Own;
    // Without a person, what it would ask is rejected.
    let asks = stage.subject.id == "opencode";
    stage.env("OPENCODE_PERMISSION", asks.then_some(r#"{"bash":"ask"}"#));
    let shell = (stage.subject.shell)("python3 -c 'open(\"/zz\", \"w\")'");
    stage.api.follow(Script::new([shell, Answer::text("It was denied.")]));
    let attempt = stage.start(Ending::Itself)?;
    judged(&attempt, "Denied", |verdict| matches!(verdict, Verdict::Denied(_)))?;
    said(&attempt.verdict)
}

/// Everything is allowed: a command runs.
fn unrestricted(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.ask.permissions = Permissions::All;
    // Claude Code refuses this to root, whom everybody is in these namespaces.
    stage.env("IS_SANDBOX", (stage.subject.id == "claude").then_some("1"));
    let command = format!("printf {DONE} > '{}'", stage.file("done.txt").display());
    let shell = (stage.subject.shell)(&command);
    stage.api.follow(Script::new([shell, Answer::text("It is written.")]));
    let attempt = stage.start(Ending::Itself)?;
    judged(&attempt, "Succeeded", |verdict| *verdict == Verdict::Succeeded)?;
    is_written(stage)?;
    Ok(String::new())
}

/// It is asked to stop: the operation under way ends, no other begins, and the session can go on.
fn stopped(stage: &mut Stage<'_>) -> Result<String, Broken> {
    let by_hook = stage.stop_by_hook()?;
    let write = |name: &str| {
        let command = format!("printf {DONE} > '{}'", stage.file(name).display());
        (stage.subject.shell)(&command)
    };
    // An interrupt needs a moment between operations: this model thinks for long.
    let second = write("second").after(if by_hook { Duration::ZERO } else { THINKS });
    stage.api.follow(Script::new([write("first"), second, Answer::text("unseen")]));
    let ending = if by_hook { Ending::Asked } else { Ending::Interrupted };
    if by_hook {
        fs::write(stage.stop_file(), "")?;
    }
    let attempt = stage.start(ending)?;
    judged(&attempt, "Stopped", |verdict| *verdict == Verdict::Stopped)?;
    let (first, second) = (stage.file("first").exists(), stage.file("second").exists());
    ensure(first && !second, || format!("first: {first}, second: {second}"))?;
    let session = attempt.session.as_deref().ok_or("it named no session")?;
    if by_hook {
        fs::remove_file(stage.stop_file())?;
    }
    goes_on(stage, session)?;
    Ok(if by_hook { "by a hook" } else { "by an interrupt" }.to_owned())
}

/// Longer than any program needs to end after an interrupt.
const THINKS: Duration = Duration::from_secs(60);

/// The words of a verdict, for the table; a verdict without words fails its case.
fn said(verdict: &Verdict) -> Result<String, Broken> {
    let words = match verdict {
        Verdict::Refused(said)
        | Verdict::Unavailable(said)
        | Verdict::Full(said)
        | Verdict::Denied(said) => said.as_str(),
        _ => "",
    };
    let line: String = words.lines().next().unwrap_or_default().chars().take(60).collect();
    ensure(!line.trim().is_empty(), || "it says nothing".to_owned())?;
    Ok(line)
}

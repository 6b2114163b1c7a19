//! What every program must show when Piton drives it: `piton run` from the plan to the end, killed,
//! limited, out of budget, out of context.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Broken;
use super::api::{Answer, Script};
use super::attempt;
use super::cases::{DONE, is_written, limited, writes};
use super::drive::{Plan, appears, exits};
use super::stage::{PROMPT, Stage, ensure};

/// So long an operation takes that something happens to: the driver looks several times a second.
const SLOW: &str = "sleep 3";
/// So long the model thinks where a program is interrupted between operations.
const THINKS: Duration = Duration::from_secs(20);
/// How long after its beginning a limit ends: long enough to be waited for.
const LIMIT_SECS: i64 = 12;

/// How long it may take until Piton has heard of an operation, on a busy machine.
const HEARD_WITHIN: Duration = Duration::from_secs(60);

/// A plan that is done when the file is written.
const ARTIFACT: &str = "artifacts = [\"done.txt\"]";

/// The second request is told what a brief says.
const BRIEF: &str = "worked on this step before you";

/// A complete run: the prompt reaches the model, the file is written, nothing lives on.
pub(super) fn edits(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.plan(&Plan { step: ARTIFACT, ..Plan::default() })?;
    stage.api.follow(writes(stage));
    let ran = stage.piton(&["run", "plan.toml"])?;
    exits(&ran, 0)?;
    is_written(stage)?;
    let requests = stage.requests();
    ensure(requests.iter().all(|body| body.contains(PROMPT)), || "no prompt".to_owned())?;
    stage.is_still()?;
    let (_, status) = stage.piton(&["status", "--json"])?;
    ensure(status.contains("22460"), || format!("its tokens are not counted: {status}"))?;
    Ok(format!("{} requests", requests.len()))
}

/// The driver is killed in mid-turn: the agent goes on, and its result is taken.
pub(super) fn driver_killed(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.plan(&Plan { step: ARTIFACT, ..Plan::default() })?;
    let (begun, go) = (stage.file("begun"), stage.file("go"));
    let command = format!(
        "echo x > '{}'; while [ ! -e '{}' ]; do sleep 0.1; done; printf {DONE} > '{}'",
        begun.display(),
        go.display(),
        stage.file("done.txt").display()
    );
    let shell = (stage.subject.shell)(&command);
    stage.api.follow(Script::new([shell, Answer::text("It is written.")]));
    let mut run = stage.begin(&["run", "plan.toml"])?;
    run.until("the operation", appears(&begun))?;
    run.kill()?;
    fs::write(&go, "")?;
    let resumed = stage.piton(&["resume", "--yes"])?;
    exits(&resumed, 0)?;
    is_written(stage)?;
    ensure(!resumed.1.contains("attempt 2"), || format!("it ran again:\n{}", resumed.1))?;
    let requests = stage.requests().len();
    ensure(requests == 2, || format!("{requests} requests instead of 2"))?;
    stage.is_still()?;
    Ok(format!("{requests} requests"))
}

/// Everything is killed in mid-turn: the same session goes on, and is told what was under way.
pub(super) fn all_killed(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.plan(&Plan { step: ARTIFACT, ..Plan::default() })?;
    let begun = stage.file("begun");
    let command = format!("echo x > '{}'; sleep 600", begun.display());
    stage.api.follow(Script::new([(stage.subject.shell)(&command), Answer::text("unseen")]));
    let mut run = stage.begin(&["run", "plan.toml"])?;
    run.until("the operation", appears(&begun))?;
    heard(stage)?;
    attempt::kill_all(&stage.place.home)?;
    drop(run);
    stage.api.follow(writes(stage));
    let resumed = stage.piton(&["resume", "--yes"])?;
    exits(&resumed, 0)?;
    is_written(stage)?;
    let last = stage.requests().pop().unwrap_or_default();
    ensure(last.contains(PROMPT), || "the request has no prompt".to_owned())?;
    let continues = resumed.1.contains("continues session");
    ensure(continues, || format!("another session:\n{}", resumed.1))?;
    // opencode tells of operations when they have ended.
    let told = if stage.subject.id == "opencode" { "Go on where you stopped" } else { "sleep 600" };
    ensure(last.contains(told), || format!("the request does not hold {told:?}"))?;
    stage.is_still()?;
    Ok("in the same session".to_owned())
}

/// Waits until Piton has heard what the agent does; of opencode, which says that later, its session.
fn heard(stage: &Stage<'_>) -> Result<(), Broken> {
    let sign = if stage.subject.id == "opencode" { "\"session\":\"" } else { "begun" };
    let begun = Instant::now();
    loop {
        let (_, status) = stage.piton(&["status", "--json"])?;
        if status.contains(sign) {
            return Ok(());
        }
        ensure(begun.elapsed() < HEARD_WITHIN, || format!("it is not heard: {status}"))?;
    }
}

/// The program from npm is a wrapper. It alone is killed, and what it wraps lives on and holds the
/// session: that is ended, and the session continues.
pub(super) fn wrapper_killed(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.plan(&Plan { step: ARTIFACT, ..Plan::default() })?;
    let begun = stage.file("begun");
    let command = format!("echo x > '{}'; sleep 600", begun.display());
    stage.api.follow(Script::new([(stage.subject.shell)(&command), Answer::text("unseen")]));
    let mut run = stage.begin(&["run", "plan.toml"])?;
    run.until("the operation", appears(&begun))?;
    heard(stage)?;
    stage.api.follow(writes(stage));
    let wrappers = attempt::named(&stage.place.home, "node");
    ensure(wrappers.len() == 1, || format!("{} wrappers", wrappers.len()))?;
    wrappers.into_iter().for_each(attempt::kill);
    let ran = run.end()?;
    exits(&ran, 0)?;
    is_written(stage)?;
    ensure(ran.1.contains("continues session"), || format!("another session:\n{}", ran.1))?;
    ensure(!ran.1.contains("active writer"), || format!("it was held:\n{}", ran.1))?;
    stage.is_still()?;
    Ok("in the same session".to_owned())
}

/// A server with one tool, which writes its argument to the file that a variable names.
const SERVER: &str = include_str!("server.js");

/// The settings name an MCP server: it is started, and its tool is used without asking.
pub(super) fn mcp(stage: &mut Stage<'_>) -> Result<String, Broken> {
    let (server, file) = (stage.file("server.js"), stage.file("done.txt"));
    fs::write(&server, SERVER)?;
    let notes = json!({"command": "node", "args": [server], "env": {"NOTES_FILE": file}});
    plan_with_server(stage, notes)?;
    let call = (stage.subject.mcp)("notes", "write", json!({"text": DONE}));
    stage.api.follow(Script::new([call, Answer::text("It is written.")]));
    exits(&stage.piton(&["run", "plan.toml"])?, 0)?;
    is_written(stage)?;
    stage.is_still()?;
    Ok("its tool was used".to_owned())
}

/// An MCP server does not start: the step fails, although the program does its work without it.
pub(super) fn dead_server(stage: &mut Stage<'_>) -> Result<String, Broken> {
    plan_with_server(stage, json!({"command": stage.file("no-server"), "args": []}))?;
    stage.api.follow(writes(stage));
    let ran = stage.piton(&["run", "plan.toml"])?;
    exits(&ran, 1)?;
    ensure(ran.1.contains("MCP server"), || format!("it does not say why:\n{}", ran.1))?;
    stage.is_still()?;
    Ok(format!("after {} requests", stage.requests().len()))
}

/// A plan whose agent has an MCP server.
fn plan_with_server(stage: &mut Stage<'_>, mut server: Value) -> Result<(), Broken> {
    server["trust"] = true.into();
    let settings = json!({"mcpServers": {"notes": server}});
    // Gemini CLI reads them from its own settings alone.
    let is_own = stage.subject.id == "gemini";
    let named = if is_own { ".gemini/settings.json" } else { "servers.json" };
    fs::create_dir_all(stage.file(".gemini"))?;
    fs::write(stage.file(named), settings.to_string())?;
    let agent = if is_own { "" } else { "mcp = \"servers.json\"" };
    stage.plan(&Plan { step: ARTIFACT, agent, ..Plan::default() })
}

/// An account at its limit: the lane is parked until that ends, and goes on by itself.
pub(super) fn limit(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.plan(&Plan { step: ARTIFACT, ..Plan::default() })?;
    let reset = attempt::now().0 / 1000 + LIMIT_SECS;
    let answer = limited(stage, reset);
    stage.api.follow(Script::new([answer]));
    let mut run = stage.begin(&["run", "plan.toml"])?;
    run.until("the limit", |said| said.contains("rate limit"))?;
    stage.api.follow(writes(stage));
    let ran = run.end()?;
    exits(&ran, 0)?;
    is_written(stage)?;
    let says_time = ["claude", "codex"].contains(&stage.subject.id);
    let waited = attempt::now().0 / 1000 >= reset;
    ensure(waited || !says_time, || format!("it did not wait:\n{}", ran.1))?;
    stage.is_still()?;
    Ok(if says_time { "until its end" } else { "for the default time" }.to_owned())
}

/// A test fails: the second attempt is told why.
pub(super) fn failing_test(stage: &mut Stage<'_>) -> Result<String, Broken> {
    let test = format!(
        "{ARTIFACT}\nretries = 1\nbackoff = \"0s\"\n\
         test = \"grep -q {DONE} done.txt || {{ echo 'the marker TOPAZ-3 is missing'; exit 1; }}\""
    );
    stage.plan(&Plan { step: &test, ..Plan::default() })?;
    // By the shell: some programs write over a file only if they have read it.
    let file = stage.file("done.txt");
    let write =
        |text: &str| (stage.subject.shell)(&format!("printf {text} > '{}'", file.display()));
    let done = || Answer::text("It is written.");
    stage.api.follow(Script::new([write("wrong"), done(), write(DONE), done()]));
    let ran = stage.piton(&["run", "plan.toml"])?;
    exits(&ran, 0)?;
    is_written(stage)?;
    let requests = stage.requests();
    let told = requests.get(2).is_some_and(|body| body.contains("TOPAZ-3"));
    ensure(told, || "the second attempt is not told why the first failed".to_owned())?;
    let knew = requests.first().is_some_and(|body| body.contains("TOPAZ-3"));
    ensure(!knew, || "the first attempt knew it".to_owned())?;
    stage.is_still()?;
    Ok(format!("{} requests", requests.len()))
}

/// A command that writes a file, slowly.
fn slow(stage: &Stage<'_>, name: &str) -> Answer {
    let file = stage.file(name);
    (stage.subject.shell)(&format!("{SLOW}; printf {DONE} > '{}'", file.display()))
}

/// Answers of a model that thinks, where the program is stopped by an interrupt.
fn thinks(stage: &Stage<'_>, answer: Answer) -> Answer {
    if stage.subject.id == "codex" { answer.after(THINKS) } else { answer }
}

/// A budget is used up: the agent stops between operations, and goes on when the budget is raised.
pub(super) fn budget(stage: &mut Stage<'_>) -> Result<String, Broken> {
    let few = Plan { step: ARTIFACT, budgets: "step_tokens = 15000", ..Plan::default() };
    stage.plan(&few)?;
    let (first, second) = (slow(stage, "first"), slow(stage, "second"));
    let (third, fourth) = (thinks(stage, slow(stage, "third")), slow(stage, "fourth"));
    stage.api.follow(Script::new([first, second, third, fourth, Answer::text("unseen")]));
    let ran = stage.piton(&["run", "plan.toml"])?;
    exits(&ran, 6)?;
    let there = ["first", "second", "third", "fourth"].map(|name| stage.file(name).exists());
    // opencode tells what a request used when its operations have ended.
    let late = stage.subject.id == "opencode";
    let wanted = [true, true, late, false];
    ensure(there == wanted, || format!("files: {there:?}; it said:\n{}", ran.1))?;
    ensure(ran.1.contains("budget step_tokens"), || format!("it said:\n{}", ran.1))?;
    stage.is_still()?;
    stage.plan(&Plan { step: ARTIFACT, budgets: "step_tokens = 1000000", ..Plan::default() })?;
    stage.api.follow(writes(stage));
    let resumed = stage.piton(&["resume", "--yes"])?;
    exits(&resumed, 0)?;
    is_written(stage)?;
    let continues = resumed.1.contains("continues session");
    ensure(continues, || format!("another session:\n{}", resumed.1))?;
    stage.is_still()?;
    Ok(format!("stopped after operation {}", if late { 3 } else { 2 }))
}

/// A window that is 90 % full: a fresh agent goes on with a brief, and the first one's work is kept.
pub(super) fn handoff(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.plan(&Plan { step: ARTIFACT, agent: "window = 200000", ..Plan::default() })?;
    let first = slow(stage, "first");
    let full = Answer { cached: 183_000, ..slow(stage, "second") };
    let third = thinks(stage, slow(stage, "third"));
    stage.api.follow(Script::new([first, full, third, Answer::text("unseen")]));
    let mut run = stage.begin(&["run", "plan.toml"])?;
    // The next agent needs a second to begin.
    run.until("the hand-off", |said| said.contains("handed off"))?;
    stage.api.follow(writes(stage));
    let ran = run.end()?;
    exits(&ran, 0)?;
    is_written(stage)?;
    let kept = ["first", "second"].map(|name| stage.file(name).exists());
    ensure(kept == [true, true], || format!("the first agent's work: {kept:?}"))?;
    let requests = stage.requests();
    let brief = requests.iter().position(|body| body.contains(BRIEF));
    // One that is interrupted, or tells its tokens late, may have asked once more.
    ensure(matches!(brief, Some(2 | 3)), || format!("the brief is in request {brief:?}"))?;
    stage.is_still()?;
    Ok(format!("brief in request {}", brief.unwrap_or_default() + 1))
}

//! `piton mcp` and the MCP inspector, a client that is not ours; and the current revision of the
//! protocol, which the inspector does not speak yet.
//!
//! The inspector begins with `initialize`. So the revision of 2026-07-28 is played by lines of our own.
//! Both ways list all tools and call each one, and a tool that is listed and not called is a failure.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::install::Cache;
use super::stage::ensure;
use super::{AgentsArgs, Broken, Outcome, Row};
use crate::shell::capture;

/// Its name in the table, and for `--only`.
pub(super) const ID: &str = "inspector";
/// Its package.
const PACKAGE: &str = "@modelcontextprotocol/inspector";
/// The version that this was written for.
const VERSION: &str = "2.12.0";
/// Its executable.
const PROGRAM: &str = "mcp-inspector";

/// The two cases.
const CASES: [(&str, Play); 2] = [("mcp", inspected), ("mcp-current", spoken)];

/// Plays a case with the inspector, if it needs that, and Piton.
type Play = fn(&Cache, &Path) -> Result<String, Broken>;

/// A task board with one task.
const BOARD: &str = "backlog:\n  - id: T001\n    title: Sign in\n    type: development\n    pri: H\n\
                     inProgress: []\nblocked: []\ndone: []\n";
/// A run that waits for a person.
const PLAN: &str = "[[phase]]\nid = \"P1\"\ngate = \"Go\"\nrun = \"true\"\n";

/// Whether it is asked for.
pub(super) fn is_chosen(args: &AgentsArgs) -> bool {
    let is_named = args.case.is_empty() && !args.sample
        || CASES.iter().any(|(name, _)| args.case.contains(&(*name).to_owned()));
    let is_program = args.only.is_empty() || args.only.iter().any(|only| only == ID);
    is_named && is_program
}

/// Installs it, unless it is there.
pub(super) fn install() -> Result<(), Broken> {
    Cache::new()?.ensure_package(ID, PACKAGE, VERSION)
}

/// Plays the cases.
pub(super) fn rows(args: &AgentsArgs, ready: &Result<Cache, Broken>) -> Vec<Row> {
    let is_named = |name: &str| args.case.is_empty() || args.case.iter().any(|case| case == name);
    let piton = args.piton.clone().unwrap_or_else(|| PathBuf::from("piton"));
    let row = |(case, play): &(&'static str, Play)| {
        let begun = Instant::now();
        let outcome = match ready {
            Err(Broken(why)) => Outcome::Skipped(why.clone()),
            Ok(cache) if *case == "mcp" && !program(cache).exists() => {
                Outcome::Skipped("the inspector is not installed".to_owned())
            }
            Ok(cache) => match play(cache, &piton) {
                Ok(remark) => Outcome::Passed(remark),
                Err(Broken(why)) => Outcome::Failed(why),
            },
        };
        Row { program: ID, case, outcome, took: begun.elapsed() }
    };
    CASES.iter().filter(|(name, _)| is_named(name)).map(row).collect()
}

fn program(cache: &Cache) -> PathBuf {
    cache.package_bin(ID, VERSION).join(PROGRAM)
}

/// The project in its folder, beside a home.
fn root(folder: &TempDir) -> PathBuf {
    folder.path().join("project")
}

/// A project with a memory bank and a run that waits.
fn project(piton: &Path) -> Result<TempDir, Broken> {
    let folder = tempfile::Builder::new().prefix("piton-inspector-").tempdir()?;
    let root = &root(&folder);
    fs::create_dir_all(root.join("work"))?;
    fs::create_dir(folder.path().join("home"))?;
    fs::write(root.join("work/backlog.yaml"), BOARD)?;
    fs::write(root.join("projectConfig.md"), "---\nSTACK_ID: x\n---\n")?;
    fs::write(root.join("plan.toml"), PLAN)?;
    for words in [
        &["init", "-q", "-b", "main"][..],
        &["add", "-A"],
        &["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "-m", "one"],
    ] {
        let (is_done, said) = capture(Command::new("git").args(words).current_dir(root));
        ensure(is_done, || format!("git {words:?}: {said}"))?;
    }
    let mut run = Command::new(piton);
    run.args(["run", "plan.toml", "--run-id", "r", "--yes"]).current_dir(root);
    let said = run.output()?;
    ensure(said.status.code() == Some(3), || format!("the run does not wait: {said:?}"))?;
    Ok(folder)
}

/// The calls, in an order in which they can be made.
fn calls() -> Vec<(&'static str, Value)> {
    let session = "s";
    vec![
        ("task_start", json!({ "task": "T001", "session": session })),
        ("phase_start", json!({ "phase": "development", "session": session })),
        ("record_artifact", json!({ "path": "projectConfig.md", "session": session })),
        ("report_tokens", json!({ "used": 1000, "session": session })),
        ("checkpoint", json!({ "message": "half way", "session": session })),
        ("list", json!({ "what": "runs" })),
        ("list", json!({ "what": "checkpoints" })),
        ("brief", json!({ "run": "r" })),
        ("diff", json!({ "from": "session-1" })),
        ("ask_approval", json!({ "question": "Go on?", "session": session })),
        ("approval", json!({ "session": session })),
        ("request_replan", json!({ "run": "r", "phase": "P1", "reason": "too large" })),
        ("resume", json!({ "session": session })),
        ("task_finish", json!({ "task": "T001", "session": session })),
        ("phase_finish", json!({ "phase": "development", "session": session })),
    ]
}

/// Plays through everything that a client can ask; `ask` gives the result of a method.
fn play(mut ask: impl FnMut(&str, Value) -> Result<Value, Broken>) -> Result<String, Broken> {
    let listed = ask("tools/list", json!({}))?;
    let names = |value: &Value| -> Vec<String> {
        let all = value["tools"].as_array().into_iter().flatten();
        all.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
    };
    let names = names(&listed);
    let calls = calls();
    let missed: Vec<&String> =
        names.iter().filter(|name| !calls.iter().any(|(called, _)| called == name)).collect();
    ensure(!names.is_empty() && missed.is_empty(), || {
        format!("not called: {missed:?} of {names:?}")
    })?;
    for (tool, arguments) in &calls {
        let result = ask("tools/call", json!({ "name": tool, "arguments": arguments }))?;
        let is_fine = result["isError"] != true && result["structuredContent"].is_object();
        ensure(is_fine, || format!("{tool}: {result}"))?;
    }
    let resources = ask("resources/list", json!({}))?;
    let uris: Vec<&str> = resources["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["uri"].as_str())
        .collect();
    ensure(uris.len() >= 4, || format!("resources: {resources}"))?;
    for uri in &uris {
        let read = ask("resources/read", json!({ "uri": uri }))?;
        let text = read["contents"][0]["text"].as_str().unwrap_or_default();
        ensure(!text.is_empty(), || format!("{uri}: {read}"))?;
    }
    let templates = ask("resources/templates/list", json!({}))?;
    ensure(templates["resourceTemplates"].as_array().is_some_and(|all| all.len() == 4), || {
        templates.to_string()
    })?;
    Ok(format!("{} tools, {} calls, {} resources", names.len(), calls.len(), uris.len()))
}

/// The inspector: a process for each request, as its command line works.
fn inspected(cache: &Cache, piton: &Path) -> Result<String, Broken> {
    let folder = project(piton)?;
    play(|method, params| {
        let mut command = Command::new(program(cache));
        command
            .current_dir(root(&folder))
            .arg("--cli")
            .arg(piton)
            .arg("mcp")
            .args(["--method", method]);
        if let Some(name) = params["name"].as_str() {
            command.args(["--tool-name", name]);
        }
        for (key, value) in params["arguments"].as_object().unwrap_or(&Map::new()) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            command.args(["--tool-arg", &format!("{key}={value}")]);
        }
        if let Some(uri) = params["uri"].as_str() {
            command.args(["--uri", uri]);
        }
        let output =
            command.env("HOME", folder.path().join("home")).stdin(Stdio::null()).output()?;
        let (said, failed) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&said)
            .map_err(|error| Broken(format!("{method} {params}: {error}: {said}{failed}")))
    })
}

/// The current revision: one connection without a handshake, each request complete in itself.
fn spoken(_cache: &Cache, piton: &Path) -> Result<String, Broken> {
    let folder = project(piton)?;
    let mut server = Command::new(piton)
        .arg("mcp")
        .current_dir(root(&folder))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = server.stdin.take().ok_or("no input")?;
    let mut output = BufReader::new(server.stdout.take().ok_or("no output")?);
    let mut id = 0;
    let played = play(|method, mut params| {
        id += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "xtask", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(input, "{line}")?;
        let mut said = String::new();
        output.read_line(&mut said)?;
        let answer: Value = serde_json::from_str(&said)?;
        ensure(answer["result"]["resultType"] == "complete", || format!("{method}: {answer}"))?;
        Ok(answer["result"].clone())
    });
    drop(input);
    let code = server.wait()?.code();
    ensure(code == Some(0), || format!("the server ended with {code:?}"))?;
    played
}

//! What every program must show when Piton is inside it: with the hooks that `piton init` wrote, or with
//! the plugin, sessions are saved, stopped, and continued by the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use piton_agents::{Permissions, Verdict};
use serde_json::{Value, json};

use super::Broken;
use super::api::{Answer, Script};
use super::attempt::{Attempt, Ending};
use super::drive::exits;
use super::stage::{Stage, ensure, judged};
use crate::shell::{capture, root};

/// The id of the session after the first.
const NEXT_SESSION: &str = "8d2c4b63-1d5f-4e8b-8e6f-3a9d2c8b0f21";
/// A checkpoint is there, and the next session begins with this.
const BRIEF: &str = "# Resume from the checkpoint of";
/// The text that a session ends with whose context is full.
const INTERRUPTED: &str = "Session interrupted at T001-1";
/// The checkpoint that the next session resumes from.
const LATEST: &str = "checkpoints/latest.json";

/// Longer than any program needs to end after an interrupt.
const THINKS: Duration = Duration::from_secs(60);

/// A memory bank: two tasks, one of them long.
const BANK: &[(&str, &str)] = &[
    ("projectConfig.md", "---\nSTACK_ID: \"fastapi\"\n---\n# Project\n"),
    ("progress.md", "---\nlog: []\n---\n# Progress\n"),
    (
        "work/backlog.yaml",
        "# The board\nbacklog:\n  - id: \"T001\"\n    title: \"Sign in\"   # first\n    \
         type: \"development\"\n    pri: \"H\"\n    est: \"2h\"\n    \
         acceptanceCriteria: \"Form|Token\"\n  - id: \"T002\"\n    title: \"Sign out\"\n    \
         type: \"development\"\n    pri: \"M\"\ninProgress: []\ndone: []\n",
    ),
];

/// How Piton gets into a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the plugin of this repository, where the program takes one.
    Plugin,
    /// By `piton init`.
    Init,
}

impl Stage<'_> {
    /// A repository with a memory bank, and Piton where programs look for it.
    fn bank(&mut self) -> Result<(), Broken> {
        for (name, text) in BANK {
            let file = self.file(name);
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(file, text)?;
        }
        self.repository()?;
        let bin = self.place.home.join("bin");
        fs::create_dir_all(&bin)?;
        symlink(self.piton.canonicalize()?, bin.join("piton"))?;
        let path = format!("{}:{}", bin.display(), self.variable("PATH"));
        self.env("PATH", Some(&path));
        Ok(())
    }

    /// Brings Piton into the program.
    fn settle_in(&mut self, way: Way) -> Result<(), Broken> {
        // Nobody is there to trust the hooks.
        if self.subject.id == "codex" {
            self.args.push("--dangerously-bypass-hook-trust".to_owned());
        }
        if way == Way::Plugin && self.subject.id == "claude" {
            let plugin = root().join("plugin").display().to_string();
            self.args.extend(["--plugin-dir".to_owned(), plugin]);
            return Ok(());
        }
        exits(&self.piton(&["init", self.subject.id, "--yes"])?, 0)
    }

    /// A command of `piton session`, which must succeed.
    fn session(&self, line: &str) -> Result<String, Broken> {
        let words: Vec<&str> = ["session"].into_iter().chain(line.split(' ')).collect();
        let ran = self.piton(&words)?;
        exits(&ran, 0)?;
        Ok(ran.1)
    }

    /// The checkpoint in its file.
    fn latest(&self) -> Result<Value, Broken> {
        let text = fs::read_to_string(self.file(LATEST)).map_err(|e| format!("{LATEST}: {e}"))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// A command that leaves a file, in an answer to a request that fills the window so far.
    fn touches(&self, name: &str, percent: u64) -> Answer {
        let command = format!("touch '{}'", self.file(name).display());
        self.full((self.subject.shell)(&command), percent)
    }

    /// The same answer to a request that fills the window so far.
    fn full(&self, answer: Answer, percent: u64) -> Answer {
        // A little more, because programs and thresholds round.
        Answer { cached: self.window() * percent / 100 + 1000, input: 10, ..answer }
    }

    /// No hook failed.
    fn hooks_are_well(&self) -> Result<(), Broken> {
        let log = fs::read_to_string(self.file(".git/piton/hooks.log")).unwrap_or_default();
        ensure(log.is_empty(), || format!("hooks failed:\n{log}"))
    }

    fn next_session(&mut self) {
        self.ask.session = NEXT_SESSION;
    }
}

/// The first request that holds a text.
fn request_with(stage: &Stage<'_>, text: &str) -> Option<usize> {
    stage.requests().iter().position(|body| body.contains(text))
}

fn succeeded(attempt: &Attempt) -> Result<(), Broken> {
    judged(attempt, "Succeeded", |verdict| *verdict == Verdict::Succeeded)
}

/// A new session reads the brief in its first request, goes on with the task, and finishes it.
pub(super) fn goes_on(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.bank()?;
    stage.settle_in(Way::Plugin)?;
    stage.session("task start T001 --session before")?;
    stage.session("checkpoint --session before --tokens 152000/200000")?;
    // Codex lets no command write to `.git`.
    let is_boxed = stage.subject.id == "codex";
    let finish = (stage.subject.shell)("piton session task finish T001");
    let works = stage.touches("worked", 10);
    let script = if is_boxed { vec![works] } else { vec![works, finish] };
    stage.api.follow(Script::new(script.into_iter().chain([Answer::text("It is done.")])));
    succeeded(&stage.start(Ending::Itself)?)?;
    ensure(stage.file("worked").exists(), || "the task was not continued".to_owned())?;
    let brief = request_with(stage, BRIEF);
    ensure(brief == Some(0), || format!("the brief is in request {brief:?}"))?;
    stage.hooks_are_well()?;
    if is_boxed {
        stage.session("task finish T001")?;
    }
    let board = stage.piton(&["inspect", "work/backlog.yaml", "--json"])?.1;
    let board: Value = serde_json::from_str(&board)?;
    ensure(board["data"]["done"] == json!(["T001"]), || format!("the board: {board}"))?;
    let latest = stage.latest();
    let is_active = latest.is_ok_and(|latest| latest["timestamp"] != "");
    ensure(!is_active, || "the checkpoint of a finished task is there".to_owned())?;
    let (_, runs) = stage.piton(&["runs", "--json"])?;
    let count = runs.matches("\"run_id\"").count();
    ensure(count == 1, || format!("one run was expected:\n{runs}"))?;
    Ok("brief in request 1".to_owned())
}

/// A window that fills: a checkpoint and a warning at 75 %, a stop at 90 %, and the next session goes on.
pub(super) fn stops(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.bank()?;
    stage.settle_in(Way::Plugin)?;
    stage.session("task start T001")?;
    let steps = [("1", 10), ("2", 70), ("3", 76), ("4", 78), ("5", 91), ("6", 92)];
    let answers = steps.map(|(name, percent)| stage.touches(name, percent));
    stage.api.follow(Script::new(answers.into_iter().chain([Answer::text("I stop.")])));
    let ending = if stage.subject.id == "codex" { Ending::Itself } else { Ending::Asked };
    let attempt = stage.start(ending)?;
    let there = steps.map(|(name, _)| stage.file(name).exists());
    ensure(there == [true, true, true, true, true, false], || format!("files: {there:?}"))?;
    match ending {
        Ending::Itself => succeeded(&attempt)?,
        _ => judged(&attempt, "Stopped", |verdict| *verdict == Verdict::Stopped)?,
    }
    stage.hooks_are_well()?;
    let warned = request_with(stage, "Work in minimal mode");
    // opencode says how full a request was when its operations have ended.
    let wanted = if stage.subject.id == "opencode" { 4 } else { 3 };
    ensure(warned == Some(wanted), || format!("the warning is in request {warned:?}"))?;
    let latest = stage.latest()?;
    ensure(latest["reason"] == "token_critical", || format!("latest.json: {latest}"))?;
    let instructions = latest["resumeInstructions"].as_str().unwrap_or_default();
    ensure(instructions.starts_with(INTERRUPTED), || format!("latest.json: {latest}"))?;
    let files = fs::read_dir(stage.file("checkpoints"))?.flatten();
    let names: Vec<String> =
        files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    let has = |begins: &str| names.iter().any(|name| name.starts_with(begins));
    ensure(has("emergency-") && has("checkpoint-"), || format!("checkpoints: {names:?}"))?;
    let told = told_at_the_end(stage)?;
    // The next session goes on with the first part of the task.
    let before = stage.requests().len();
    stage.next_session();
    stage.api.follow(Script::new([stage.touches("fifth", 10), Answer::text("It goes on.")]));
    succeeded(&stage.start(Ending::Itself)?)?;
    let brief = stage.requests().get(before).is_some_and(|body| body.contains("T001-1: Form"));
    ensure(brief, || "the next session has no brief".to_owned())?;
    ensure(stage.file("fifth").exists(), || "the next session did nothing".to_owned())?;
    stage.hooks_are_well()?;
    Ok(told.to_owned())
}

/// How the text of the stop reached a person or the agent.
fn told_at_the_end(stage: &Stage<'_>) -> Result<&'static str, Broken> {
    let stdout = fs::read_to_string(stage.place.home.join("stdout")).unwrap_or_default();
    let mut records = String::new();
    let folders = [".claude", ".gemini", ".local/share/opencode"];
    let mut open: Vec<PathBuf> = folders.map(|name| stage.place.home.join(name)).to_vec();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
        } else {
            // One of them keeps a database.
            let bytes = fs::read(&path).unwrap_or_default();
            records.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    if request_with(stage, INTERRUPTED).is_some() {
        Ok("text in the request")
    } else if stdout.contains(INTERRUPTED) {
        Ok("text in its output")
    } else if records.contains(INTERRUPTED) {
        Ok("text in its record")
    } else {
        Err(Broken::from("the text of the stop is nowhere"))
    }
}

/// Work in progress is saved when the agent ends its turn.
pub(super) fn ends(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.bank()?;
    stage.settle_in(Way::Plugin)?;
    stage.session("task start T002")?;
    stage.api.follow(Script::new([stage.touches("first", 10), Answer::text("More tomorrow.")]));
    let attempt = stage.start(Ending::Itself)?;
    succeeded(&attempt)?;
    stage.hooks_are_well()?;
    let latest = stage.latest()?;
    let saved = (latest["reason"].as_str(), latest["state"]["inProgress"].as_str());
    ensure(saved == (Some("session_end"), Some("T002")), || format!("latest.json: {latest}"))?;
    let (owner, session) = (latest["piton"]["session"].as_str(), attempt.session.as_deref());
    ensure(owner == session, || format!("it is that of {owner:?}, not of {session:?}"))?;
    // The other two save nothing when they are interrupted.
    if !["claude", "codex"].contains(&stage.subject.id) {
        return Ok("at the end of a turn".to_owned());
    }
    fs::remove_file(stage.file(LATEST))?;
    stage.next_session();
    let thinks = Answer::text("unseen").after(THINKS);
    stage.api.follow(Script::new([stage.touches("second", 10), thinks]));
    stage.start(Ending::Interrupted)?;
    let latest = stage.latest()?;
    ensure(latest["state"]["inProgress"] == "T002", || format!("latest.json: {latest}"))?;
    stage.hooks_are_well()?;
    Ok("at the end of a turn, and when interrupted".to_owned())
}

/// A conversation that is compacted: saved before, and told of its task again after.
pub(super) fn compacts(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.bank()?;
    stage.settle_in(Way::Plugin)?;
    stage.session("task start T002")?;
    // Below the threshold of a warning, so that the checkpoint can only be that of the compaction.
    let percent = match stage.subject.id {
        "claude" => {
            stage.args.extend(["--autocompact", "100k"].map(str::to_owned));
            60
        }
        "codex" => {
            let limit = "model_auto_compact_token_limit=100000";
            stage.args.extend(["-c", limit].map(str::to_owned));
            60
        }
        _ => {
            // It compacts when the longest answer would not fit any more.
            let config = stage.place.home.join(".config/opencode/opencode.json");
            let text = fs::read_to_string(&config)?;
            fs::write(config, text.replace("\"output\":8000", "\"output\":32000"))?;
            86
        }
    };
    let (first, second) = (stage.touches("first", 10), stage.touches("second", percent));
    let summary = Answer::text("A summary.");
    let script = match stage.subject.id {
        // The request for its summary offers tools as all do.
        "claude" | "codex" => vec![first, second, summary],
        _ => vec![first, second],
    };
    let rest = [stage.touches("third", 10), Answer::text("It is done.")];
    stage.api.follow(Script::new(script.into_iter().chain(rest)));
    succeeded(&stage.start(Ending::Itself)?)?;
    stage.hooks_are_well()?;
    let (_, shown) = stage.piton(&["show", "--json"])?;
    ensure(shown.contains("before compaction"), || format!("no checkpoint:\n{shown}"))?;
    let brief = request_with(stage, BRIEF);
    ensure(brief.is_some(), || "no request has the brief".to_owned())?;
    Ok(format!("brief in request {}", brief.unwrap_or_default() + 1))
}

/// Files and folders by their paths.
type Tree = BTreeMap<PathBuf, Vec<u8>>;

/// All of them below some folders, but for those of git.
fn tree(dirs: &[PathBuf]) -> Tree {
    let mut all = BTreeMap::new();
    let mut open = dirs.to_vec();
    while let Some(path) = open.pop() {
        let is_link = path.is_symlink();
        if path.is_dir() && !is_link {
            all.insert(path.join(""), Vec::new());
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            open.extend(entries.map(|entry| entry.path()).filter(|path| !path.ends_with(".git")));
        } else if !is_link {
            all.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
    all
}

/// Settings of a person, with their own order, indentation and remarks.
fn own_settings(stage: &Stage<'_>) -> Result<(), Broken> {
    let home = &stage.place.home;
    let write = |file: PathBuf, text: &str| {
        file.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(file, text)
    };
    match stage.subject.id {
        "claude" => {
            let mine = "touch \\\"$CLAUDE_PROJECT_DIR/mine\\\"";
            let hook = format!("{{\"hooks\": [{{\"type\":\"command\", \"command\":\"{mine}\"}}]}}");
            let text = format!(
                "{{\n\t\"zebra\" : 1,\n\t\"hooks\": {{\"Stop\": [{hook}]}},\n\t\"env\": {{}}\n}}"
            );
            write(stage.file(".claude/settings.json"), &text)?;
            write(stage.file(".mcp.json"), "{ \"mcpServers\": {} }")?;
        }
        "codex" => {
            let config = home.join(".codex/config.toml");
            let text = fs::read_to_string(&config)?;
            write(config, &format!("# mine\n{text}\n[tui]   # no sounds\nnotifications = false"))?;
            let hook = "{\"hooks\": [{\"type\":\"command\", \"command\":\"touch mine\"}]}";
            let text = format!("{{\"hooks\": {{\"Stop\": [{hook}]}}}}\n");
            write(stage.file(".codex/hooks.json"), &text)?;
        }
        "gemini" => write(stage.file(".gemini/settings.json"), "{\n    // mine\n}\n")?,
        _ => {
            let text = "{\n\t// mine\n\t\"autoupdate\": false, /* not now */\n\t\"mcp\": {},\n}\n";
            write(stage.file("opencode.json"), text)?;
        }
    }
    Ok(())
}

/// What `init` writes works beside settings of a person, and is taken back byte for byte.
pub(super) fn init(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.bank()?;
    own_settings(stage)?;
    let folders = [".claude", ".codex", ".gemini", ".config"];
    let mut places: Vec<PathBuf> = folders.map(|name| stage.place.home.join(name)).to_vec();
    places.push(stage.place.work.clone());
    let before = tree(&places);
    stage.settle_in(Way::Init)?;
    let written = tree(&places);
    ensure(written != before, || "it changed nothing".to_owned())?;
    exits(&stage.piton(&["init", stage.subject.id, "--yes"])?, 0)?;
    ensure(tree(&places) == written, || "a second time changed something".to_owned())?;
    exits(&stage.piton(&["init", "--undo", "--yes"])?, 0)?;
    let wrong = differences(&tree(&places), &before);
    ensure(wrong.is_empty(), || format!("not as they were: {wrong:?}"))?;

    exits(&stage.piton(&["init", stage.subject.id, "--yes"])?, 0)?;
    stage.session("task start T002 --session before")?;
    stage.session("checkpoint --session before")?;
    stage.api.follow(Script::new([stage.touches("first", 10), Answer::text("It is done.")]));
    succeeded(&stage.start(Ending::Itself)?)?;
    let brief = request_with(stage, BRIEF);
    ensure(brief == Some(0), || format!("the brief is in request {brief:?}"))?;
    // Claude Code and Codex tell the model which skills there are.
    let tells = ["claude", "codex"].contains(&stage.subject.id);
    let skill = request_with(stage, "Create checkpoint, save progress");
    ensure(!tells || skill == Some(0), || format!("the skill is in request {skill:?}"))?;
    ensure(!tells || stage.file("mine").exists(), || "the own hook was not called".to_owned())?;
    stage.hooks_are_well()?;
    let ran = tree(&places);
    exits(&stage.piton(&["init", "--undo", "--yes"])?, 0)?;
    let after = tree(&places);
    // What the program itself wrote meanwhile stays: Codex notes which projects are trusted.
    let ours = differences(&written, &before);
    for path in &ours {
        let is_exact = after.get(path) == before.get(path);
        let text = String::from_utf8_lossy(after.get(path).map_or(&[][..], |bytes| bytes));
        let is_out = !text.contains("piton hook") && !text.contains("mcp_servers.piton");
        let is_touched = ran.get(path) != written.get(path) || path.is_dir();
        ensure(is_exact || is_touched && is_out, || format!("{} is left: {text}", path.display()))?;
    }
    Ok(format!("{} files and folders, byte for byte", ours.len()))
}

/// The paths at which two trees differ.
fn differences(one: &Tree, other: &Tree) -> Vec<PathBuf> {
    let paths: BTreeSet<&PathBuf> = one.keys().chain(other.keys()).collect();
    paths.into_iter().filter(|path| one.get(*path) != other.get(*path)).cloned().collect()
}

/// The plugin is valid, and works once it is installed from the marketplace of this repository.
pub(super) fn plugin(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.bank()?;
    let (here, plugin) =
        (root().display().to_string(), root().join("plugin").display().to_string());
    for words in [
        ["validate", &plugin].as_slice(),
        &["validate", &here],
        &["marketplace", "add", &here],
        &["install", "piton@piton"],
    ] {
        let mut claude = Command::new("claude");
        claude.arg("plugin").args(words).current_dir(&stage.place.work);
        claude.env_clear().envs(stage.place.env.iter().map(|(name, value)| (name, value)));
        let (is_done, said) = capture(&mut claude);
        ensure(is_done, || format!("claude plugin {}: {said}", words.join(" ")))?;
    }
    stage.session("task start T002 --session before")?;
    stage.session("checkpoint --session before")?;
    stage.api.follow(Script::new([Answer::text("I see.")]));
    succeeded(&stage.start(Ending::Itself)?)?;
    let brief = request_with(stage, BRIEF);
    ensure(brief == Some(0), || format!("the brief is in request {brief:?}"))?;
    stage.hooks_are_well()?;
    Ok("valid, and installed from its marketplace".to_owned())
}

/// The agent records a checkpoint by a tool.
pub(super) fn mcp(stage: &mut Stage<'_>) -> Result<String, Broken> {
    stage.bank()?;
    stage.settle_in(Way::Plugin)?;
    // A tool of a server is offered, or found by a search, where nobody has to be asked.
    stage.ask.permissions = Permissions::All;
    let is_plugin = stage.subject.id == "claude";
    stage.env("IS_SANDBOX", is_plugin.then_some("1"));
    let server = if is_plugin { "plugin_piton_piton" } else { "piton" };
    // A task of another session: the end of the turn saves nothing, and this is the last run.
    stage.session("task start T002 --session before")?;
    let input = json!({"message": "before the long way"});
    let call = (stage.subject.mcp)(server, "checkpoint", input);
    stage.api.follow(Script::new([call, Answer::text("It is saved.")]));
    succeeded(&stage.start(Ending::Itself)?)?;
    let (_, shown) = stage.piton(&["show", "--json"])?;
    ensure(shown.contains("before the long way"), || format!("no checkpoint:\n{shown}"))?;
    stage.hooks_are_well()?;
    Ok("its tool was used".to_owned())
}

//! (n) A hook between two operations of an agent, cold, against the spawn of a program that does nothing.
//!
//! Mostly nothing is due then, and every operation waits for it. The record of the conversation has the
//! size of a real one, and each call finds other tokens in it, so that the note is written again. It is
//! measured alone, and with a driver at work in the same repository.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::measure::{in_turn, quiet, repository, time_command};
use super::table::{Outcome, Row};
use super::{Bench, Measured};

/// Rounds; each is two short processes.
const ROUNDS: usize = 200;
/// Most times that a spawn of `/bin/true` takes.
const LIMIT: f64 = 5.0;
/// Operations in the record of the conversation.
const OPERATIONS: usize = 400;
/// Time for a driver to get to work.
const DRIVER_WAIT: Duration = Duration::from_secs(20);
/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// What the driver works on while hooks are measured.
const PLAN: &str = "title = \"Beside\"\n[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"L\"\n\
    isolation = \"in-place\"\nsteps = [{ id = \"s\", run = \"echo > ../at-work; sleep 3600\" }]\n";

/// Measures it alone and beside a driver.
pub(super) fn measure(bench: &Bench) -> Measured {
    let dir = bench.folder("hooks")?.join("repo");
    fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
    let scene = Scene::new(&bench.piton, &dir)?;
    let alone = row(bench, &scene, "a hook between operations")?;
    let driver = Beside::start(&bench.piton, &dir)?;
    let beside = row(bench, &scene, "the same with a driver at work");
    drop(driver);
    Ok(vec![alone, beside?])
}

fn row(bench: &Bench, scene: &Scene, what: &str) -> Result<Row, String> {
    let mut number = 0;
    let floor = || time_command(&mut quiet(Path::new("/bin/true"), &[], &scene.dir));
    let ours = || {
        number += 1;
        scene.call(number % 2)
    };
    let (floor, ours) = in_turn(bench.rounds(ROUNDS), floor, ours)?;
    Ok(Row {
        id: "n",
        what: what.to_owned(),
        floor_name: "/bin/true",
        result: Outcome::Measured { floor, ours, unit: "ms" },
        limit: Some(LIMIT),
        remark: String::new(),
    })
}

/// A memory bank with a session that is at work.
struct Scene {
    piton: PathBuf,
    dir: PathBuf,
    /// What the agent says, with one record and with the other.
    calls: [PathBuf; 2],
}

impl Scene {
    fn new(piton: &Path, dir: &Path) -> Result<Self, String> {
        let write = |path: &Path, text: &str| {
            let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
            folder.and_then(|()| fs::write(path, text)).map_err(|e| e.to_string())
        };
        repository(dir)?;
        write(&dir.join("projectConfig.md"), "---\nSTACK_ID: fastapi\n---\n")?;
        write(
            &dir.join("work/backlog.yaml"),
            "backlog: []\ninProgress:\n  - id: T001\ndone: []\n",
        )?;
        write(&dir.join("plan.toml"), PLAN)?;
        let outside = dir.parent().ok_or("the repository has a folder around it")?;
        let call = |number: u64| -> Result<PathBuf, String> {
            let record = outside.join(format!("record-{number}.jsonl"));
            write(&record, &conversation(50_000 + number))?;
            let call = json!({"session_id": "bench", "hook_event_name": "PostToolBatch", "cwd": dir, "transcript_path": record, "tool_response": "x".repeat(2_000)});
            let path = outside.join(format!("call-{number}.json"));
            write(&path, &call.to_string()).map(|()| path)
        };
        let calls = [call(0)?, call(1)?];
        let scene = Self { piton: piton.to_owned(), dir: dir.to_owned(), calls };
        // The first call of a session makes its note.
        scene.call(0)?;
        Ok(scene)
    }

    fn call(&self, number: usize) -> Result<f64, String> {
        let input = File::open(&self.calls[number]).map_err(|e| e.to_string())?;
        time_command(quiet(&self.piton, &["hook", "claude"], &self.dir).stdin(input))
    }
}

/// The record of a conversation whose last request used so many tokens.
fn conversation(tokens: u64) -> String {
    let line = |tokens: u64| {
        let usage =
            json!({"input_tokens": 4, "cache_read_input_tokens": tokens, "output_tokens": 7});
        let said = json!({"type": "assistant", "message": {"role": "assistant", "usage": usage}});
        let result =
            json!({"type": "user", "message": {"content": "    let found = 1;\n".repeat(40)}});
        format!("{said}\n{result}\n")
    };
    (0..OPERATIONS).map(|_| line(tokens)).collect()
}

/// A driver at work, until it is dropped.
struct Beside {
    piton: PathBuf,
    dir: PathBuf,
    driver: Child,
}

impl Beside {
    fn start(piton: &Path, dir: &Path) -> Result<Self, String> {
        let words = ["run", "plan.toml", "--run-id", "beside"];
        let driver = quiet(piton, &words, dir).spawn().map_err(|e| e.to_string())?;
        let beside = Self { piton: piton.to_owned(), dir: dir.to_owned(), driver };
        let (sign, deadline) = (dir.join("../at-work"), Instant::now() + DRIVER_WAIT);
        while !sign.exists() {
            if Instant::now() > deadline {
                return Err("the driver did not get to work".to_owned());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(beside)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It ends its steps; a driver that does not is killed.
        let mut abort = Command::new(&self.piton);
        abort.args(["abort", "beside", "--yes"]).current_dir(&self.dir);
        let _ = abort.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

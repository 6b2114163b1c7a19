//! A repository with a memory bank.

use std::fs;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::common::{Output, PITON, Project};

/// The checkpoint that the next session resumes from.
pub const LATEST: &str = "checkpoints/latest.json";
/// The board.
pub const BOARD: &str = "work/backlog.yaml";
/// The collected changes.
pub const DELTA: &str = "progress-delta.json";

/// Three tasks, with remarks.
const TASKS: &str = "\
# The board
backlog:
  - id: \"T001\"
    title: \"Sign in\"   # first
    type: \"development\"
    pri: \"H\"
    est: \"2h\"
    acceptanceCriteria: \"Form|Token\"

  - id: \"T002\"
    title: 'Sign out'
    type: \"testing\"
    pri: \"M\"
    deps: [\"T001\"]

  - id: T003
    title: Remember me
    type: setup
    pri: L

inProgress: []   # one at a time
blocked: []
done: []

# Control
updatedBy: \"@agent\"
";

/// A project with a memory bank.
pub struct Scene {
    /// The project.
    pub project: Project,
    clock: Mutex<Option<String>>,
}

impl Scene {
    /// A memory bank in a repository.
    pub fn new() -> Self {
        let project = Project::new();
        project.write("projectConfig.md", "---\nSTACK_ID: \"fastapi\"\n---\n# Project\n");
        project.write(
            "activeContext.md",
            "---\ncurrentObjective:\n  summary: \"Authentication\"\n---\n",
        );
        project.write(BOARD, TASKS);
        project.write(DELTA, "{\n  \"changes\": [],\n  \"usage\": { \"flushThreshold\": 10 }\n}\n");
        project
            .write("progress.md", "---\nmetrics:\n  done: 0 # tasks\nlog: []\n---\n# Progress\n");
        project.commit();
        Self::of(project)
    }

    /// A project as it is.
    pub fn of(project: Project) -> Self {
        Self { project, clock: Mutex::new(None) }
    }

    /// Stops the clock of all commands that follow at this time.
    pub fn at(&self, time: &str) -> &Self {
        *self.clock.lock().expect("no test panicked") = Some(time.to_owned());
        self
    }

    /// Runs the program at the time of the scene.
    #[track_caller]
    pub fn piton(&self, line: &str) -> Output {
        let mut command = self.project.command(PITON);
        command.args(line.split_whitespace());
        command.envs(
            self.clock.lock().expect("no test panicked").iter().map(|time| ("PITON_CLOCK", time)),
        );
        self.project.finish(&mut command)
    }

    /// Runs `piton session`.
    #[track_caller]
    pub fn session(&self, line: &str) -> Output {
        self.piton(&format!("session {line}"))
    }

    /// The answer of `piton session` as JSON.
    #[track_caller]
    pub fn answer(&self, line: &str) -> Value {
        let output = self.session(&format!("{line} --json")).exits(0);
        serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", output.stdout))
    }

    /// The checkpoint in its file.
    #[track_caller]
    pub fn latest(&self) -> Value {
        serde_json::from_str(&self.project.read(LATEST)).expect("latest.json is JSON")
    }

    /// What `piton inspect` says of the board.
    #[track_caller]
    pub fn board(&self) -> Value {
        let output = self.project.piton(&["inspect", BOARD, "--json"]).exits(0);
        let found: Value = serde_json::from_str(&output.stdout).expect("JSON");
        found["data"].clone()
    }

    /// Collects a change, as an agent does.
    pub fn collect(&self, change: &Value) {
        let mut delta: Value = serde_json::from_str(&self.project.read(DELTA)).expect("JSON");
        delta["changes"].as_array_mut().expect("a list").push(change.clone());
        self.project.write(DELTA, &delta.to_string());
    }

    /// Collects the move of a task.
    pub fn collect_move(&self, task: &str, from: &str, to: &str) {
        self.collect(&json!({
            "timestamp": "2025-10-30T10:15:00Z", "file": "taskBoard", "operation": "move",
            "taskId": task, "from": from, "to": to,
        }));
    }

    /// How many changes are collected.
    pub fn collected(&self) -> usize {
        let delta: Value = serde_json::from_str(&self.project.read(DELTA)).expect("JSON");
        delta["changes"].as_array().map_or(0, Vec::len)
    }

    /// The names in the folder of checkpoints that begin with a word.
    pub fn files(&self, folder: &str, begins: &str) -> Vec<String> {
        let entries =
            fs::read_dir(self.project.root().join(folder)).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(begins)).collect()
    }
}

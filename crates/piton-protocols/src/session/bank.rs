//! The memory bank: where it is, which files it has, and what they say.

use piton_formats::Diagnostic;
use piton_formats::yaml::{Document, Problem};
use serde_json::Value;

use super::board::Board;
use super::config::Config;
use super::settings::Settings;
use super::{CHECKPOINTS, LATEST};
use crate::protocol::Reader;

/// The names of each file, the usual one first.
const BOARDS: &[&str] = &["work/backlog.yaml", "backlog.yaml", "taskBoard.md", "work/taskBoard.md"];
const PROJECTS: &[&str] = &["projectConfig.md", "core/project.yaml", "core/projectConfig.md"];
const CONTEXTS: &[&str] = &["activeContext.md", "work/activeContext.md", "core/activeContext.md"];
const DELTAS: &[&str] =
    &["progress-delta.json", "checkpoints/progress-delta.json", "work/progress-delta.json"];
const PROGRESS: &[&str] = &["progress.md", "work/progress.md", "core/progress.md"];
const PROTOCOLS: &[&str] = &[
    "recovery-protocol.md",
    "session-protocol.md",
    "checkpoint-protocol.md",
    "core/recovery-protocol.md",
    "checkpoints/recovery-protocol.md",
    "automation/recovery-protocol.md",
];
/// Files that a fresh agent reads besides.
const STRATEGIES: &[&str] = &["context-strategy.md", "core/context-strategy.md"];
const MONITORING: &[&str] = &["token-monitoring.md", "core/token-monitoring.md"];

/// A file of the bank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path from the project's root.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The files of a memory bank that are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bank {
    /// Its folder, from the project's root; empty for the root itself.
    pub root: String,
    /// The front matter that configures the protocol.
    pub protocol: Option<File>,
    /// The task board.
    pub board: Option<File>,
    /// The project's settings, with its stack.
    pub project: Option<File>,
    /// The objective.
    pub context: Option<File>,
    /// Changes that are not written yet.
    pub delta: Option<File>,
    /// The progress, with its log.
    pub progress: Option<File>,
    /// The checkpoint that the next session goes on from.
    pub latest: Option<File>,
    /// How context is loaded.
    pub strategy: Option<File>,
    /// How tokens are watched.
    pub monitoring: Option<File>,
}

/// A path within the bank, from the project's root.
pub fn within(root: &str, path: &str) -> String {
    if root.is_empty() { path.to_owned() } else { format!("{root}/{path}") }
}

/// The folder of the bank of a run, by the path that the run recorded as its plan.
pub fn root_of(plan_path: &str) -> String {
    plan_path.strip_suffix(LATEST).unwrap_or_default().trim_end_matches('/').to_owned()
}

/// Finds the bank: where the settings say, else the nearest folder above `here` that has its files,
/// else one right below the project's root, else the root. Paths are from the project's root.
pub fn find(here: &str, settings: &Settings, list: &dyn Fn(&str) -> Vec<String>) -> String {
    if let Some(root) = settings.root() {
        return root.to_owned();
    }
    let is_bank = |dir: &str| {
        let names = list(dir);
        names.iter().any(|name| name == "projectConfig.md")
            || (names.iter().any(|name| name == CHECKPOINTS)
                && list(&within(dir, CHECKPOINTS)).iter().any(|name| name == "latest.json"))
    };
    let mut dir = here.trim_matches('/');
    loop {
        if is_bank(dir) {
            return dir.to_owned();
        }
        if dir.is_empty() {
            break;
        }
        dir = dir.rsplit_once('/').map_or("", |(above, _)| above);
    }
    let mut below = list("");
    below.sort();
    below.into_iter().find(|name| is_bank(name)).unwrap_or_default()
}

impl Bank {
    /// Reads the files that are there.
    pub fn read(root: &str, settings: &Settings, read: &Reader<'_>) -> Self {
        let first = |names: &[&str]| {
            names.iter().find_map(|name| {
                let path = within(root, name);
                let text = read(&path).ok()?;
                Some(File { path, text })
            })
        };
        let named = settings
            .protocol()
            .and_then(|path| Some(File { path: path.to_owned(), text: read(path).ok()? }));
        Self {
            root: root.to_owned(),
            protocol: named.or_else(|| first(PROTOCOLS)),
            board: first(BOARDS),
            project: first(PROJECTS),
            context: first(CONTEXTS),
            delta: first(DELTAS),
            progress: first(PROGRESS),
            latest: first(&[LATEST]),
            strategy: first(STRATEGIES),
            monitoring: first(MONITORING),
        }
    }

    /// Tells whether there is anything of a bank.
    pub fn is_there(&self) -> bool {
        [&self.board, &self.project, &self.latest, &self.protocol].iter().any(|f| f.is_some())
    }

    /// A path within it, from the project's root.
    pub fn path(&self, path: &str) -> String {
        within(&self.root, path)
    }

    /// The switches of the protocol, and what is wrong with them.
    pub fn config(&self) -> Result<(Config, Vec<Diagnostic>), Problem> {
        let Some(file) = &self.protocol else { return Ok((Config::default(), Vec::new())) };
        Config::read(&file.path, &file.text)
    }

    /// The task board; empty if there is none.
    pub fn board(&self) -> Result<Board, Problem> {
        match &self.board {
            Some(file) => Board::read(&file.path, &file.text).map(|(board, _)| board),
            None => Board::read("", "").map(|(board, _)| board),
        }
    }

    /// The stack of the project; empty if none is named.
    pub fn stack_id(&self) -> Result<String, Problem> {
        let Some(file) = &self.project else { return Ok(String::new()) };
        Ok(stack_id(&Document::new(&file.path, &file.text)?))
    }

    /// The current objective.
    pub fn objective(&self) -> Result<String, Problem> {
        let Some(file) = &self.context else { return Ok(String::new()) };
        Ok(objective(&Document::new(&file.path, &file.text)?))
    }

    /// The file that a change names, by the word it uses; `None` if it is not a file of the bank.
    pub fn target(&self, word: &str) -> Option<String> {
        let name = word.rsplit('/').next().unwrap_or(word);
        let stem = name.split('.').next().unwrap_or(name);
        let usual = |file: &Option<File>, names: &[&str]| {
            file.as_ref().map_or_else(|| self.path(names[0]), |file| file.path.clone())
        };
        match stem {
            "taskBoard" | "backlog" | "board" => Some(usual(&self.board, BOARDS)),
            "progress" => Some(usual(&self.progress, PROGRESS)),
            "activeContext" => Some(usual(&self.context, CONTEXTS)),
            "deliverables" => Some(self.path("deliverables.md")),
            _ => None,
        }
    }

    /// Where failed resumes are logged.
    pub fn progress_path(&self) -> String {
        self.target("progress").unwrap_or_default()
    }

    /// The file of changes that are not written yet.
    pub fn delta_path(&self) -> String {
        self.delta.as_ref().map_or_else(|| self.path(DELTAS[0]), |file| file.path.clone())
    }
}

/// The stack in the front matter of a project's settings.
pub fn stack_id(document: &Document) -> String {
    let id = document.get(&["STACK_ID"]).or_else(|| document.get(&["stack", "id"]));
    id.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The objective in an active context.
pub fn objective(document: &Document) -> String {
    let summary = document.get(&["currentObjective", "summary"]);
    let summary = summary.or_else(|| document.get(&["currentObjective"]));
    summary.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

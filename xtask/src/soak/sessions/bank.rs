//! The memory bank that the agent works on, and what its files must be at every moment.

use piton_formats::yaml::Document;
use serde_json::Value;

use super::super::Broken;

/// The board.
pub(super) const BOARD: &str = "work/backlog.yaml";
/// The checkpoint that the next session resumes from.
pub(super) const LATEST: &str = "checkpoints/latest.json";
/// The collected changes.
pub(super) const DELTA: &str = "progress-delta.json";
/// The progress.
pub(super) const PROGRESS: &str = "progress.md";
/// Tasks of the board.
pub(super) const TASKS: usize = 12;
/// The columns of the board.
pub(super) const COLUMNS: [&str; 4] = ["backlog", "inProgress", "blocked", "done"];
/// What people wrote into the progress, around what changes.
const PROGRESS_REMARKS: [&str; 2] = ["# what happened", "Written by people."];

/// The id of a task.
pub(super) fn task(number: usize) -> String {
    format!("T{number:03}")
}

/// The files of the repository.
pub(super) fn files() -> Vec<(&'static str, String)> {
    let task = |number: usize| {
        let id = task(number);
        format!(
            "  # remark {id}\n  - id: {id}\n    title: \"Task {number}\"   # title {id}\n    est: 10m\n"
        )
    };
    let tasks: String = (1..=TASKS).map(task).collect();
    let steps: Vec<String> = (1..=30)
        .map(|n| {
            format!(
                "  {{ id = \"s{n}\", run = \"sleep 0.1; echo $PITON_STEP_KEY >> ../lines\" }},\n"
            )
        })
        .collect();
    let plan = format!(
        "title = \"Beside\"\n[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"L\"\nisolation = \"in-place\"\nsteps = [\n{}]\n",
        steps.concat()
    );
    let progress = format!("---\nlog: [] {}\n---\n{}\n", PROGRESS_REMARKS[0], PROGRESS_REMARKS[1]);
    vec![
        ("projectConfig.md", "---\nSTACK_ID: fastapi\n---\n".to_owned()),
        (
            BOARD,
            // Columns are missing, as on boards that people begin with.
            format!("# Board\nbacklog:\n{tasks}inProgress: []\n# end\n"),
        ),
        (DELTA, "{\n  \"changes\": [],\n  \"usage\": { \"flushThreshold\": 10 }\n}\n".to_owned()),
        (PROGRESS, progress),
        ("plan.toml", plan),
    ]
}

/// Tells what a checkpoint lacks.
pub(in super::super) fn is_checkpoint(text: &str) -> Result<(), Broken> {
    let found: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let fields =
        ["version", "timestamp", "reason", "state", "context", "nextSteps", "deltaChanges"];
    let missing: Vec<&str> = fields.into_iter().filter(|name| found.get(name).is_none()).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("it lacks {missing:?}")) }
}

/// Tells what is wrong with a board: every task is on it once, with the remarks about it.
pub(in super::super) fn is_board(text: &str) -> Result<(), Broken> {
    let document = Document::new(BOARD, text).map_err(|problem| problem.message)?;
    let mut ids: Vec<String> =
        COLUMNS.iter().flat_map(|column| column_of(&document, column)).collect();
    ids.sort_unstable();
    let wanted: Vec<String> = (1..=TASKS).map(task).collect();
    if ids != wanted {
        return Err(format!("it has the tasks {ids:?}"));
    }
    let has = |words: String| text.matches(&words).count() == 1;
    let kept = |id: &String| has(format!("# remark {id}\n")) && has(format!("   # title {id}\n"));
    let is_framed = text.starts_with("# Board\n") && text.contains("# end\n");
    if is_framed && wanted.iter().all(kept) { Ok(()) } else { Err("a remark is gone".to_owned()) }
}

/// The ids of a column.
pub(super) fn column_of(document: &Document, column: &str) -> Vec<String> {
    let tasks = document.get(&[column]).unwrap_or_default();
    let ids = tasks.as_array().into_iter().flatten().filter_map(|task| task.get("id")?.as_str());
    ids.map(str::to_owned).collect()
}

/// The entries of the log in the progress; an error if what people wrote is gone.
pub(super) fn log_of(text: &str) -> Result<Vec<String>, Broken> {
    if let Some(gone) = PROGRESS_REMARKS.iter().find(|remark| !text.contains(**remark)) {
        return Err(format!("the progress has lost `{gone}`"));
    }
    let document = Document::new(PROGRESS, text).map_err(|problem| problem.message)?;
    let log = document.get(&["log"]).unwrap_or_default();
    let entries = log.as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(entries.map(str::to_owned).collect())
}

//! What somebody sees who reads only `checkpoints.json`, after every kill: no worktree without its
//! `before_lane_start`, no merged lane without its `pre_pr`, no tests without how they ended.
//!
//! It does not ask Piton, and looks at nothing but that file, the folder of worktrees and git.

use std::fs;

use serde_json::Value;

use super::super::Broken;
use super::super::scratch::Scratch;
use super::project::CHECKPOINTS;

/// The phase of the project.
const PHASE: &str = "P";

/// Checks what the file says of lanes that have a worktree, are in base, or were tested.
pub(super) fn holds(scratch: &Scratch) -> Result<(), Broken> {
    let text = fs::read_to_string(scratch.base().join(CHECKPOINTS)).unwrap_or_default();
    let records: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
    let has = |lane: &str, stage: &str| {
        records.iter().any(|record| record["lane"] == lane && record["stage"] == stage)
    };
    for lane in worktrees(scratch) {
        if !has(&lane, "before_lane_start") {
            return Err(format!("{lane} has a worktree and no before_lane_start:\n{text}"));
        }
    }
    for lane in merged(scratch)? {
        if !has(&lane, "pre_pr") {
            return Err(format!("{lane} is in base and has no pre_pr:\n{text}"));
        }
    }
    let tested = records.iter().filter(|record| record["stage"] == "after_lane_tests");
    let ended = |record: &Value| record["test_command"].is_string() && record["exit_code"].is_i64();
    match tested.into_iter().find(|record| !ended(record)) {
        Some(record) => Err(format!("tests without how they ended: {record}")),
        None => Ok(()),
    }
}

/// The lanes that have a worktree with files in it.
fn worktrees(scratch: &Scratch) -> Vec<String> {
    let folder = scratch.base().join("repo/.worktrees").join(PHASE);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let lanes = entries.filter(|entry| entry.path().join(".git").exists());
    lanes.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The lanes whose commits base has, by their subjects.
fn merged(scratch: &Scratch) -> Result<Vec<String>, Broken> {
    let subjects = scratch.git(&["log", "--format=%s", "main"])?;
    let begin = format!("feat({PHASE}-");
    let lane = |line: &str| Some(line.strip_prefix(&begin)?.split_once(')')?.0.to_owned());
    Ok(subjects.lines().filter_map(lane).collect())
}

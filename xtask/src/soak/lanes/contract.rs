//! What somebody sees who reads only `checkpoints.json`, after every kill: no worktree without its
//! `before_lane_start`, no merged lane without its `pre_pr`, no tests without a run of them.
//!
//! It does not ask Piton, and looks at nothing but that file, the folder of worktrees, git and what the
//! tests themselves wrote down.

use std::fs;

use serde_json::Value;

use super::super::Broken;
use super::super::scratch::Scratch;
use super::project::CHECKPOINTS;

/// Where the tests write down their lane and how they ended, outside of the repository.
pub(super) const TESTED: &str = "tested";
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
    let ran = fs::read_to_string(scratch.outside().join(TESTED)).unwrap_or_default();
    let tested = records.iter().filter(|record| record["stage"] == "after_lane_tests");
    for record in tested {
        let (command, code) = (record["test_command"].as_str(), record["exit_code"].as_i64());
        let (Some(_), Some(code)) = (command, code) else {
            return Err(format!("tests without how they ended: {record}"));
        };
        let lane = record["lane"].as_str().unwrap_or_default();
        let lane = lane.rsplit_once('-').map_or(lane, |(_, name)| name);
        if lane.len() == 1 && !ran.lines().any(|line| line == format!("{lane} {code}")) {
            return Err(format!("tests without a run of them: {record}\nruns:\n{ran}"));
        }
    }
    Ok(())
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

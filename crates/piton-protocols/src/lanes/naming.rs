//! The names of the protocol: run ids, branches, worktrees, and where its files lie.
//!
//! Only the names of the contract; what to do when one is taken is decided where it is seen.

use piton_core::Timestamp;

use super::time::stamp;

/// Stands for "no lane" and "no task" in records.
pub const NONE: &str = "-";
/// Where checkpoints are recorded unless the settings name another file.
pub const CHECKPOINTS_PATH: &str = ".claude/ai-dev-kit/run-logs/checkpoints.json";
/// The folder of run logs.
pub const RUN_LOGS_DIR: &str = ".claude/run-logs";
/// The folder of run reports.
pub const RUN_REPORTS_DIR: &str = ".claude/run-reports";
/// The folder of worktrees.
pub const WORKTREES_DIR: &str = ".worktrees";

/// The id of a run of one lane (`P1-SL-1-20251227-103000`) or of a whole phase.
pub fn run_id(phase: &str, lane: Option<&str>, at: Timestamp) -> String {
    match lane {
        Some(lane) => format!("{phase}-{lane}-{}", stamp(at)),
        None => format!("{phase}-{}", stamp(at)),
    }
}

/// The branch of a lane.
pub fn lane_branch(phase: &str, lane: &str) -> String {
    format!("lane/{phase}/{lane}")
}

/// The branch of a task.
pub fn task_branch(phase: &str, lane: &str, task: &str) -> String {
    format!("lane-task/{phase}/{lane}/{task}")
}

/// The worktree of a lane, or of one of its tasks, from the repository's root.
pub fn worktree(phase: &str, lane: &str, task: Option<&str>) -> String {
    match task {
        Some(task) => format!("{WORKTREES_DIR}/{phase}/{lane}/tasks/{task}"),
        None => format!("{WORKTREES_DIR}/{phase}/{lane}"),
    }
}

/// The run log of a run, from the repository's root.
pub fn run_log(run_id: &str) -> String {
    format!("{RUN_LOGS_DIR}/{run_id}.jsonl")
}

/// The report of a run, from the repository's root.
pub fn run_report(run_id: &str) -> String {
    format!("{RUN_REPORTS_DIR}/{run_id}.md")
}

/// The task that mends what the validation across lanes found.
pub fn fix_task(phase: &str) -> String {
    format!("FIX-{phase}-001")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_contract() {
        let at = Timestamp(1_766_831_400_000);
        assert_eq!(run_id("P1", Some("SL-DB"), at), "P1-SL-DB-20251227-103000");
        assert_eq!(run_id("P1", None, at), "P1-20251227-103000");
        assert_eq!(lane_branch("P1", "SL-DB"), "lane/P1/SL-DB");
        assert_eq!(task_branch("P1", "SL-DB", "T1"), "lane-task/P1/SL-DB/T1");
        assert_eq!(worktree("P1", "SL-DB", None), ".worktrees/P1/SL-DB");
        assert_eq!(worktree("P1", "SL-DB", Some("T1")), ".worktrees/P1/SL-DB/tasks/T1");
        assert_eq!(run_log("r"), ".claude/run-logs/r.jsonl");
        assert_eq!(fix_task("P1"), "FIX-P1-001");
    }
}

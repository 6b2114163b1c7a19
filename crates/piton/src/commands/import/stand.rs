//! How far the records of a lane say it came. Pure: what is in the repository is looked at elsewhere.

use piton_core::event::Class;
use piton_core::lane::{Stage, StageStatus};
use piton_core::lane_state::StageRecord;
use piton_core::state::FailedAttempt;

/// How far a lane came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// Nothing was made yet.
    Fresh,
    /// Its worktree was made; which of its tasks are done is not on record.
    Working,
    /// Its work was done and tested, or about to be merged.
    Worked,
    /// It was merged.
    Merged,
}

/// How far the records say a lane came: the newest that advances, and was not taken back. Of equal
/// times the later in the file counts.
pub fn stand(records: &[StageRecord]) -> Stand {
    let advances =
        |r: &&StageRecord| r.stage != Stage::RetryAttempt && r.status != StageStatus::RolledBack;
    let newest = records.iter().filter(advances).max_by_key(|r| r.at);
    match newest.map(|r| (r.stage, r.status)) {
        None | Some((Stage::BeforeLaneStart | Stage::RetryAttempt, _)) => Stand::Fresh,
        Some((Stage::AfterLaneStart, _)) => Stand::Working,
        Some((Stage::PrePr, StageStatus::Complete)) => Stand::Merged,
        Some((Stage::AfterLaneTests | Stage::PrePr, _)) => Stand::Worked,
    }
}

/// What went wrong before, as the next attempt is told of it: that of the newest record that says.
pub fn failures(records: &[StageRecord]) -> Vec<FailedAttempt> {
    let told = records.iter().filter(|r| !r.failure_context.is_empty());
    let Some(record) = told.max_by_key(|r| r.at) else { return Vec::new() };
    vec![FailedAttempt {
        attempt: record.retry_attempt.unwrap_or(1),
        class: Class::Command,
        error: record.failure_context[0].clone(),
        lines: record.failure_context[1..].to_vec(),
    }]
}

#[cfg(test)]
mod tests {
    use piton_core::Timestamp;

    use super::*;

    fn record(stage: Stage, status: StageStatus, at: i64) -> StageRecord {
        StageRecord {
            stage,
            status,
            at: Timestamp(at),
            event: 0,
            notes: String::new(),
            snapshot: None,
            base_sha: None,
            head_sha: None,
            target_branch: None,
            test_command: None,
            exit_code: None,
            last_command: None,
            retry_attempt: None,
            max_retries: None,
            failure_context: Vec::new(),
        }
    }

    /// Lost: finished work would be done again, or unfinished work would be merged.
    #[test]
    fn the_newest_record_that_advances_tells_how_far_it_came() {
        use Stage::{AfterLaneStart, AfterLaneTests, BeforeLaneStart, PrePr, RetryAttempt};
        use StageStatus::{Complete, Failed, InProgress, Ready, Retrying, RolledBack};
        let start = record(BeforeLaneStart, Ready, 1);
        let ready = record(AfterLaneStart, InProgress, 2);
        let retry = record(RetryAttempt, Retrying, 9);
        let tested = |status| record(AfterLaneTests, status, 3);
        let pre_pr = |status| record(PrePr, status, 4);
        assert_eq!(stand(&[]), Stand::Fresh);
        assert_eq!(stand(std::slice::from_ref(&start)), Stand::Fresh);
        assert_eq!(stand(&[retry.clone(), start.clone()]), Stand::Fresh);
        assert_eq!(stand(&[start.clone(), ready.clone(), retry]), Stand::Working);
        assert_eq!(stand(&[ready.clone(), tested(Complete)]), Stand::Worked);
        assert_eq!(stand(&[ready.clone(), tested(Failed)]), Stand::Worked);
        assert_eq!(stand(&[tested(Complete), pre_pr(InProgress)]), Stand::Worked);
        assert_eq!(stand(&[pre_pr(Complete), tested(Complete), ready.clone()]), Stand::Merged);
        let back = [start, record(AfterLaneStart, RolledBack, 2), tested(RolledBack)];
        assert_eq!(stand(&back), Stand::Fresh);
        let tie = [record(AfterLaneTests, Complete, 2), ready];
        assert_eq!(stand(&tie), Stand::Working, "of equal times the later in the file");
    }

    #[test]
    fn the_next_attempt_is_told_what_went_wrong() {
        let mut retry = record(Stage::RetryAttempt, StageStatus::Retrying, 9);
        retry.retry_attempt = Some(2);
        retry.failure_context = vec!["Attempt 1: no".to_owned(), "line".to_owned()];
        let found = failures(&[record(Stage::PrePr, StageStatus::Failed, 10), retry]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].attempt, found[0].error.as_str()), (2, "Attempt 1: no"));
        assert_eq!(found[0].lines, ["line"]);
        assert_eq!(failures(&[]), []);
    }
}

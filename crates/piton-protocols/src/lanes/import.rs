//! The runs that another tool recorded in `checkpoints.json`, and how far their lanes came.

use piton_core::LanePath;
use piton_core::event::Class;
use piton_core::lane::{Stage, StageStatus};
use piton_core::lane_state::StageRecord;
use piton_core::state::{FAILURES_KEPT_MAX, FailedAttempt};

use super::NONE;
use super::checkpoints::{self, Record};
use super::phase::plan_id;
use crate::import::{ForeignLane, ForeignRun, Retries, Stand};
use crate::protocol::Imported;

/// Shortest name of a commit in notes: shorter ones may be words.
const NOTED_SHA_CHARS_MIN: usize = 7;
/// Longest one: that of SHA-256.
const NOTED_SHA_CHARS_MAX: usize = 64;

/// The runs of `checkpoints.json`, and what is wrong with it.
pub fn runs(file: &str, text: &str) -> Imported {
    checkpoints::read(file, text)?;
    let (records, problems) = checkpoints::inspect(file, text);
    let mut all: Vec<(String, Vec<Record>)> = Vec::new();
    for record in records.into_iter().filter(|record| record.missing().is_empty()) {
        match all.iter_mut().find(|(id, _)| *id == record.run_id) {
            Some((_, of_run)) => of_run.push(record),
            None => all.push((record.run_id.clone(), vec![record])),
        }
    }
    Ok((all.into_iter().map(|(id, records)| run(id, &records)).collect(), problems))
}

fn run(id: String, records: &[Record]) -> ForeignRun {
    let mut found = ForeignRun { id, ..ForeignRun::default() };
    let add = |all: &mut Vec<String>, one: String| {
        if !all.contains(&one) {
            all.push(one);
        }
    };
    let mut lanes: Vec<(LanePath, Vec<&Record>)> = Vec::new();
    for record in records {
        let of = |name: &str| record.text(name).filter(|text| !text.trim().is_empty());
        if let Some(branch) = of("base_branch").or_else(|| of("target_branch")) {
            add(&mut found.bases, branch.trim().trim_start_matches("refs/heads/").to_owned());
        }
        add(&mut found.phases, plan_id(&record.phase));
        if record.lane == NONE {
            add(&mut found.others, format!("{} as a whole", record.phase));
            continue;
        }
        // Other tools use names that are not valid in a plan.
        let path = LanePath { phase: plan_id(&record.phase), lane: plan_id(&record.lane) };
        match lanes.iter_mut().find(|(of, _)| *of == path) {
            Some((_, own)) => own.push(record),
            None => lanes.push((path, vec![record])),
        }
    }
    found.lanes = lanes.into_iter().map(|(path, own)| lane(path, &own)).collect();
    found
}

fn lane(path: LanePath, own: &[&Record]) -> ForeignLane {
    let records: Vec<StageRecord> = own.iter().filter_map(|record| recorded(record)).collect();
    ForeignLane {
        path,
        stand: stand(&records),
        has_unknown: records.len() < own.len(),
        dir: own.iter().rev().find_map(|r| r.text("worktree_path")).filter(|d| !d.is_empty()),
        pull_request: records.iter().find_map(|r| url_in(&r.notes)),
        failures: failures(&records),
        retries: retries(&records),
        records,
    }
}

/// A record of the file as one of the ledger; `None` if its stage or status is unknown.
fn recorded(record: &Record) -> Option<StageRecord> {
    const STATUSES: [StageStatus; 7] = [
        StageStatus::Ready,
        StageStatus::InProgress,
        StageStatus::Failed,
        StageStatus::Blocked,
        StageStatus::Complete,
        StageStatus::RolledBack,
        StageStatus::Retrying,
    ];
    let stage = Stage::ALL.into_iter().find(|s| s.as_str() == record.stage.as_str())?;
    let status = STATUSES.into_iter().find(|s| s.as_str() == record.status.as_str())?;
    let text = |name: &str| record.text(name).filter(|text| !text.is_empty());
    Some(StageRecord {
        notes: text("notes").unwrap_or_default(),
        base_sha: text("base_sha"),
        head_sha: text("head_sha").or_else(|| head_in(&text("notes")?)),
        target_branch: text("target_branch").or_else(|| text("base_branch")),
        test_command: text("test_command"),
        exit_code: record.number("exit_code").and_then(|n| i32::try_from(n).ok()),
        last_command: text("last_command"),
        retry_attempt: record.retry_attempt(),
        max_retries: record.max_retries(),
        failure_context: record.failure_context(),
        ..StageRecord::blank(stage, status, record.at.unwrap_or_default(), 0)
    })
}

/// The first address in a text.
fn url_in(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| c.is_whitespace() || "<>()\"'".contains(c));
    let found = words.find(|w| w.starts_with("https://") || w.starts_with("http://"))?;
    Some(found.trim_end_matches([',', '.', ';']).to_owned())
}

/// How far a lane came: by the newest record that advances it and was not rolled back. Of equal
/// times, the later one in the file counts.
fn stand(records: &[StageRecord]) -> Stand {
    let advances =
        |r: &&StageRecord| r.stage != Stage::RetryAttempt && r.status != StageStatus::RolledBack;
    let newest = records.iter().filter(advances).max_by_key(|r| r.at);
    match newest.map(|r| (r.stage, r.status)) {
        None | Some((Stage::BeforeLaneStart | Stage::RetryAttempt, _)) => Stand::Fresh,
        Some((Stage::PrePr, StageStatus::Complete)) => Stand::Merged,
        Some((Stage::AfterLaneTests, StageStatus::Complete) | (Stage::PrePr, _)) => Stand::Worked,
        // Failed or unfinished tests may be those of one task, with other tasks still to come.
        Some((Stage::AfterLaneStart | Stage::AfterLaneTests, _)) => Stand::Working,
    }
}

/// The commit that notes call the head: `head 1a2b3c4`, `head_sha=1a2b3c4`.
fn head_in(notes: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: Vec<&str> = notes.split(|c| !is_part(c)).filter(|w| !w.is_empty()).collect();
    let is_sha = |w: &str| {
        (NOTED_SHA_CHARS_MIN..=NOTED_SHA_CHARS_MAX).contains(&w.len())
            && w.chars().all(|c| c.is_ascii_hexdigit())
    };
    let named = |name: &str| ["head", "head_sha"].iter().any(|n| name.eq_ignore_ascii_case(n));
    let found = words.windows(2).find(|pair| named(pair[0]) && is_sha(pair[1]))?;
    Some(found[1].to_owned())
}

/// The recorded retries. Those of a lane that failed for good or was rolled back no longer count: a
/// resume grants new ones.
fn retries(records: &[StageRecord]) -> Retries {
    let newest = |records: &mut dyn Iterator<Item = &StageRecord>| {
        records.max_by_key(|r| r.at).and_then(|r| r.max_retries)
    };
    let most = newest(&mut records.iter().filter(|r| r.max_retries.is_some()));
    let retry = records.iter().filter(|r| r.stage == Stage::RetryAttempt).max_by_key(|r| r.at);
    let counts = retry.filter(|r| {
        let over = matches!(r.status, StageStatus::Failed | StageStatus::RolledBack);
        let failed = |f: &&StageRecord| f.status == StageStatus::Failed && f.at > r.at;
        !over && !records.iter().any(|f| failed(&f))
    });
    Retries { begun: counts.and_then(|r| r.retry_attempt), most }
}

/// The failed attempts, by the newest record that has some.
///
/// `Attempt N: error` begins an attempt; the lines after it are its output.
fn failures(records: &[StageRecord]) -> Vec<FailedAttempt> {
    let failed = records.iter().filter(|r| !r.failure_context.is_empty());
    let Some(record) = failed.max_by_key(|r| r.at) else { return Vec::new() };
    let mut all: Vec<FailedAttempt> = Vec::new();
    for line in &record.failure_context {
        let begins = attempt_of(line);
        match (begins, all.last_mut()) {
            (None, Some(last)) => last.lines.push(line.clone()),
            (begins, _) => {
                let (attempt, error) = begins.unwrap_or((1, line));
                let (class, error) = (Class::Command, error.to_owned());
                all.push(FailedAttempt {
                    attempt,
                    class,
                    error,
                    lines: Vec::new(),
                    budget: None,
                    command: None,
                    exit_code: None,
                });
            }
        }
    }
    let more = all.len().saturating_sub(FAILURES_KEPT_MAX);
    all.split_off(more)
}

/// The number and the error of a line `Attempt N: error`.
fn attempt_of(line: &str) -> Option<(u32, &str)> {
    let (number, error) = line.strip_prefix("Attempt ")?.split_once(':')?;
    Some((number.trim().parse().ok()?, error.trim_start()))
}

#[cfg(test)]
mod tests {
    use piton_core::Timestamp;

    use super::*;

    fn record(stage: Stage, status: StageStatus, at: i64) -> StageRecord {
        StageRecord::blank(stage, status, Timestamp(at), 0)
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
        assert_eq!(stand(&[ready.clone(), tested(Failed)]), Stand::Working, "of whichever task");
        assert_eq!(stand(&[tested(Complete), pre_pr(InProgress)]), Stand::Worked);
        assert_eq!(stand(&[pre_pr(Complete), tested(Complete), ready.clone()]), Stand::Merged);
        let back = [start, record(AfterLaneStart, RolledBack, 2), tested(RolledBack)];
        assert_eq!(stand(&back), Stand::Fresh);
        let tie = [record(AfterLaneTests, Complete, 2), ready];
        assert_eq!(stand(&tie), Stand::Working, "of equal times the later in the file");
    }

    /// Lost: the next attempt would read `Attempt 2: Attempt 1:`, and what came after it as output.
    #[test]
    fn failed_attempts_become_the_failure_context() {
        let mut retry = record(Stage::RetryAttempt, StageStatus::Retrying, 9);
        retry.retry_attempt = Some(2);
        let context = ["Attempt 1: no", "line", "Attempt 2: again: no", "more"];
        retry.failure_context = context.map(str::to_owned).to_vec();
        let found = failures(&[record(Stage::PrePr, StageStatus::Failed, 10), retry]);
        let shown = |f: &FailedAttempt| (f.attempt, f.error.clone(), f.lines.join(","));
        let wanted = [(1, "no", "line"), (2, "again: no", "more")];
        let wanted = wanted.map(|(n, error, lines)| (n, error.to_owned(), lines.to_owned()));
        assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), wanted);
        let mut plain = record(Stage::RetryAttempt, StageStatus::Retrying, 9);
        plain.failure_context = vec!["it broke".to_owned(), "line".to_owned()];
        assert_eq!(shown(&failures(&[plain])[0]), (1, "it broke".to_owned(), "line".to_owned()));
        assert_eq!(failures(&[]), []);
    }

    /// Lost: the commit of a lane would count as unknown although its record tells it.
    #[test]
    fn notes_may_tell_the_head() {
        let found = |notes: &str| head_in(notes).unwrap_or_default();
        assert_eq!(found("ready to merge; head 1a2b3c4d5e6f -> main"), "1a2b3c4d5e6f");
        assert_eq!(found("head_sha=1A2B3C4, base_sha=0a0b0c0"), "1A2B3C4");
        assert_eq!(found("ahead of main, heads deadbeef, head feed"), "");
    }

    /// Lost: a lane would be tried more or less often than it may.
    #[test]
    fn retries_count_while_they_are_under_way() {
        let retry = |status, at| {
            let (retry_attempt, max_retries) = (Some(2), Some(3));
            let record = record(Stage::RetryAttempt, status, at);
            StageRecord { retry_attempt, max_retries, ..record }
        };
        let begun = |records: &[StageRecord]| retries(records).begun;
        assert_eq!(begun(&[retry(StageStatus::Retrying, 9)]), Some(2));
        assert_eq!(begun(&[retry(StageStatus::Failed, 9)]), None, "a resume grants new ones");
        let failed = record(Stage::AfterLaneTests, StageStatus::Failed, 10);
        assert_eq!(begun(&[retry(StageStatus::Retrying, 9), failed]), None);
        let before = record(Stage::AfterLaneTests, StageStatus::Failed, 8);
        let both = retries(&[before, retry(StageStatus::Retrying, 9)]);
        assert_eq!(both, Retries { begun: Some(2), most: Some(3) });
        assert_eq!(retries(&[]), Retries::default());
    }
}

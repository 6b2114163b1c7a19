//! What a lane looks like beside its steps: workspace, stages, way to base.
//!
//! Nothing else that shows a run looks at the state of a lane's work.

use std::fmt;
use std::path::Path;

use piton_core::event::MergedBy;
use piton_core::lane::{Isolation, Missed, Stage, StageStatus};
use piton_core::lane_state::{LaneWork, StageRecord};
use piton_core::refusal::Refusal;
use piton_core::state::LaneState;
use piton_core::text::short;

use crate::place::{At, Place};
use crate::shape::shapes;
use crate::text::sanitize;

shapes! {
    /// The workspace of a lane that has, or may get, one.
    #[derive(Default)]
    Work<'a> {
        isolation: Isolation, branch: Option<&'a str>, worktree: Option<&'a str>,
        base_branch: Option<&'a str>, stage: Option<&'static str>, stages: Vec<StageLine<'a>>,
        merging: bool, merged: Option<Merged<'a>>, pull_request: Option<&'a str>,
        blocked: Option<Blocked<'a>>, rolled_back: Option<&'a str>, degraded: &'a [Missed],
        /// Where it works and which stage it reached, in words; nothing for a lane in place.
        #[serde(skip)] place: Option<String>,
        /// What a person should know of how it began.
        #[serde(skip)] began: Option<&'a str>,
    }

    /// A stage that a lane passed.
    StageLine<'a> {
        stage: &'static str, status: &'static str, timestamp: At, notes: &'a str,
        snapshot: Option<&'a str>, base_sha: Option<&'a str>, head_sha: Option<&'a str>,
        test_command: Option<&'a str>, exit_code: Option<i32>, retry_attempt: Option<u32>,
        max_retries: Option<u32>,
    }

    /// Why a lane can't go on, and what to do.
    Blocked<'a> {
        code: &'a str, cause: &'a str, remedies: Vec<String>, #[serde(skip)] refusal: &'a Refusal,
    }

    /// How the work of a lane reached base.
    Merged<'a> { by: MergedBy, from: Option<&'a str>, to: Option<&'a str>, note: &'a str }

}

impl<'a> Blocked<'a> {
    fn new(refusal: &'a Refusal, place: &Place) -> Self {
        let remedies = refusal.remedies.iter().map(|remedy| place.remedy(remedy)).collect();
        Self { code: &refusal.code, cause: &refusal.cause, remedies, refusal }
    }
}

impl Work<'_> {
    /// What the last snapshot of the lane does not hold.
    pub fn missed(&self) -> Option<String> {
        let list = Missed::words(self.degraded)?;
        Some(format!("not in its checkpoints: {}", sanitize(&list)))
    }
}

/// How far the work of a lane is on its way to base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of each say it")]
pub enum Way<'a> {
    MergedAs(&'a str),
    PullRequestMerged,
    Kept(&'a str),
    Nothing,
    Done,
    Merging(&'a str),
    Conflict,
    PullRequest(&'a str),
    InLine,
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MergedAs(commit) => write!(f, "merged as {}", short(commit)),
            Self::PullRequestMerged => f.write_str("pull request merged"),
            Self::Kept(branch) => write!(f, "kept on {}", sanitize(branch)),
            Self::Nothing => f.write_str("nothing to merge"),
            Self::Done => f.write_str("done"),
            Self::Merging(base) => write!(f, "merging into {}", sanitize(base)),
            Self::Conflict => f.write_str("in conflict with base"),
            Self::PullRequest(url) => write!(f, "waiting for its pull request {}", sanitize(url)),
            Self::InLine => f.write_str("waiting to be merged"),
        }
    }
}

/// How far a lane is; nothing while its steps are at work, or in place.
pub(crate) fn way(lane: &LaneState) -> Option<Way<'_>> {
    let work = lane.work.as_ref().filter(|w| !w.isolation.is_in_place())?;
    if let Some(merged) = work.merged() {
        return Some(match (merged.by, &merged.to) {
            (MergedBy::Queue, Some(to)) => Way::MergedAs(to),
            (MergedBy::PullRequest, _) => Way::PullRequestMerged,
            (MergedBy::Kept, _) => Way::Kept(&work.branch),
            (MergedBy::Nothing, _) => Way::Nothing,
            _ => Way::Done,
        });
    }
    if work.merging().is_some() {
        return Some(Way::Merging(&work.base_branch));
    }
    if work.conflict().is_some() {
        return Some(Way::Conflict);
    }
    match (lane.current(), &work.pull_request) {
        (None, Some(url)) => Some(Way::PullRequest(url)),
        (None, None) if work.committed().is_some() => Some(Way::InLine),
        _ => None,
    }
}

/// The workspace of a lane, in a project below `root`.
pub(crate) fn work<'a>(lane: &'a LaneState, root: &str, typed: &Place) -> Work<'a> {
    let Some(work) = &lane.work else {
        return Work { isolation: lane.isolation, ..Work::default() };
    };
    let own = !work.isolation.is_in_place();
    let begun = work.record(Stage::BeforeLaneStart).filter(|r| r.status != StageStatus::Blocked);
    Work {
        isolation: work.isolation,
        branch: some(&work.branch),
        worktree: some(&work.dir).filter(|_| own && work.has_workspace()),
        base_branch: some(&work.base_branch),
        stage: work.stage().map(Stage::as_str),
        stages: work.seen().map(stage).collect(),
        merging: work.merging().is_some(),
        merged: work.merged().map(|merged| Merged {
            by: merged.by,
            from: merged.from.as_deref(),
            to: merged.to.as_deref(),
            note: &merged.note,
        }),
        pull_request: work.pull_request.as_deref(),
        blocked: work.blocked.as_ref().map(|refusal| Blocked::new(refusal, typed)),
        rolled_back: work.rolled_back.as_deref(),
        degraded: &work.latest.degraded,
        place: place(work, root),
        began: begun.and_then(|record| some(&record.notes)),
    }
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn stage(r: &StageRecord) -> StageLine<'_> {
    StageLine {
        stage: r.stage.as_str(),
        status: r.status.as_str(),
        timestamp: At(r.at),
        notes: &r.notes,
        snapshot: r.snapshot.as_deref(),
        base_sha: r.base_sha.as_deref(),
        head_sha: r.head_sha.as_deref(),
        test_command: r.test_command.as_deref(),
        exit_code: r.exit_code,
        retry_attempt: r.retry_attempt,
        max_retries: r.max_retries,
    }
}

fn standing(work: &LaneWork) -> Option<(Stage, StageStatus)> {
    let record = work.record(work.stage()?)?;
    Some((record.stage, record.status))
}

fn place(work: &LaneWork, root: &str) -> Option<String> {
    if work.isolation.is_in_place() || work.branch.is_empty() {
        return None;
    }
    let dir = Path::new(&work.dir);
    let dir = dir.strip_prefix(root).unwrap_or(dir).to_string_lossy();
    let at = if work.has_workspace() { format!(" in {}", sanitize(&dir)) } else { String::new() };
    let stage = standing(work).map(|(stage, status)| format!(", {stage} {}", status.as_str()));
    let stage = stage.unwrap_or_default();
    Some(format!("branch {}{at}{stage}", sanitize(&work.branch)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use piton_core::LanePath;
    use piton_core::lane_event::{LaneMerged, MergeIntended};
    use piton_core::lane_state::{Committed, Landed, LaneProgress, Latest};

    use super::*;

    fn lane(work: LaneWork) -> LaneState {
        let work = LaneWork {
            isolation: Isolation::Worktree,
            branch: "lane/P/a".to_owned(),
            base_branch: "main".to_owned(),
            dir: "/r/.worktrees/P/a".to_owned(),
            ..work
        };
        LaneState { work: Some(Box::new(work)), ..LaneState::default() }
    }

    fn path() -> LanePath {
        LanePath { phase: "P".to_owned(), lane: "a".to_owned() }
    }

    /// Lost: a lane between its last step and base would look as if nothing happened.
    #[test]
    fn each_part_of_the_way_to_base_has_words() {
        let said = |work: LaneWork| way(&lane(work)).map(|w| w.to_string()).unwrap_or_default();
        let merging = MergeIntended {
            lane: path(),
            base_branch: "main".to_owned(),
            from: "a".repeat(40),
            to: "b".repeat(40),
        };
        assert_eq!(said(LaneWork::default()), "");
        let committed = Committed { commit: "b".repeat(40), tree: "t".repeat(40), changed: true };
        let on_its_way = LaneProgress::Merging { committed, intent: merging };
        let at = |progress| LaneWork { progress, ..LaneWork::default() };
        assert_eq!(said(at(on_its_way)), "merging into main");
        let url = Some("https://x/1".to_owned());
        assert_eq!(
            said(LaneWork { pull_request: url.clone(), ..LaneWork::default() }),
            "waiting for its pull request https://x/1"
        );
        let merged = |by, to: Option<String>| {
            let merged = LaneMerged { lane: path(), by, from: None, to, note: String::new() };
            let progress = LaneProgress::Merged(Landed { merged, committed: None });
            said(LaneWork { pull_request: url.clone(), ..at(progress) })
        };
        assert_eq!(merged(MergedBy::Queue, Some("b".repeat(40))), "merged as bbbbbbbbbb");
        assert_eq!(merged(MergedBy::Kept, None), "kept on lane/P/a");
        assert_eq!(merged(MergedBy::Nothing, None), "nothing to merge");
        let in_place = LaneState { work: Some(Box::default()), ..LaneState::default() };
        assert_eq!(way(&in_place), None);
    }

    #[test]
    fn place_and_what_is_not_captured_are_named() {
        let missed = |n: u32| Missed { path: format!("{n}.bin"), why: "too large".to_owned() };
        let degraded = (0..5).map(missed).collect();
        let latest = Latest { degraded, ..Latest::default() };
        let progress = LaneProgress::Working { conflict: None };
        let found = lane(LaneWork { progress, latest, ..LaneWork::default() });
        let work = work(&found, "/r", &Place::default());
        assert_eq!(work.place.as_deref().unwrap(), "branch lane/P/a in .worktrees/P/a");
        let text = work.missed().unwrap();
        assert!(text.ends_with("2.bin (too large), 2 more"), "{text}");
        assert!(work.blocked.is_none());
    }
}

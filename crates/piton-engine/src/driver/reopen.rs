//! Lanes whose work goes on although its steps had finished: a conflict with base, or a test that
//! failed; and where no retry is left, what a person can do.

use piton_core::decide::worker;
use piton_core::event::{Class, Event, LaneReopened};
use piton_core::lane::Stage;
use piton_core::plan::{Lane, Step};
use piton_core::{LanePath, StepPath, shell};

use super::Driver;
use crate::error::Result;
use crate::world::Refusal;

/// Files of a conflict that are told to the next attempt; more would drown the rest.
const CONFLICTS_TOLD_MAX: usize = 50;

impl Driver<'_> {
    /// Lets a lane's work go on with what went wrong, within the retries of the step that does it.
    pub(super) fn reopen(
        &mut self,
        path: &LanePath,
        lane: &Lane,
        class: Class,
        error: String,
        lines: Vec<String>,
    ) -> Result<()> {
        let fix = |dir: &str| format!("settle it in {dir}, then");
        self.reopen_or(path, lane, (class, error, lines), None, fix)
    }

    /// The same after a conflict of two commits: of base, and the lane's own.
    pub(super) fn reopen_conflict(
        &mut self,
        path: &LanePath,
        lane: &Lane,
        files: Vec<String>,
        commits: (String, String),
    ) -> Result<()> {
        let error = format!("conflict with base in {}", files.join(", "));
        let sides = self.rooms()?.sides(&commits.0, &commits.1);
        let lines = if sides.is_empty() { files } else { sides };
        let lines = lines.into_iter().take(CONFLICTS_TOLD_MAX).collect();
        let base = self.work(path).base_branch;
        let fix = |dir: &str| {
            let begin = shell::git(Some(dir), &["rebase", &base]);
            let end = shell::git(Some(dir), &["rebase", "--continue"]);
            format!("`{begin}` puts both sides there: settle them, `{end}`, then")
        };
        self.reopen_or(path, lane, (Class::Conflict, error, lines), Some(commits), fix)
    }

    /// The same where an attempt left a conflict as it was.
    pub(super) fn reopen_unsettled(
        &mut self,
        path: &LanePath,
        lane: &Lane,
        files: &[String],
    ) -> Result<()> {
        let error = format!("the conflict is not settled in {}", files.join(", "));
        let both = self.work(path).unsettled;
        let lines = match both {
            Some((onto, head)) => self.rooms()?.sides(&onto, &head),
            None => Vec::new(),
        };
        let lines = lines.into_iter().take(CONFLICTS_TOLD_MAX).collect();
        self.reopen(path, lane, Class::Conflict, error, lines)
    }

    fn reopen_or(
        &mut self,
        path: &LanePath,
        lane: &Lane,
        (class, error, lines): (Class, String, Vec<String>),
        conflict: Option<(String, String)>,
        fix: impl FnOnce(&str) -> String,
    ) -> Result<()> {
        if let Some((step, retries_max)) = self.reopens(path, lane) {
            let (onto, head) = conflict.unzip();
            let lane = path.clone();
            let event = LaneReopened { lane, step, class, error, lines, onto, head, retries_max };
            return self.record(Event::LaneReopened(Box::new(event)));
        }
        let (fix, run) = (fix(&self.work(path).dir), self.run.id());
        let fix = format!("no retry is left: {fix} `piton resume {run}`");
        self.block(path, Stage::PrePr, Refusal { why: error, fix })
    }

    /// The step that would work again on a lane, with its retries, if one is left.
    pub(super) fn reopens(&self, path: &LanePath, lane: &Lane) -> Option<(StepPath, u32)> {
        let step = &lane.steps[worker(lane)?];
        let retries = self.retries_in(path, step);
        let step = StepPath::new(&path.phase, &path.lane, &step.id);
        let reopened = self.state.lane(path)?.work.as_ref()?.reopened.count;
        // What it failed before it succeeded counts too: retries are those of the work as a whole.
        let spent = reopened + self.state.step(&step).map_or(0, |s| s.retried);
        (spent < retries).then_some((step, retries))
    }

    /// The retries of a step: as asked for, else as the plan says; where that names none, those of
    /// the tool that its lane was taken over from.
    pub(super) fn retries_in(&self, lane: &LanePath, step: &Step) -> u32 {
        let theirs = || self.state.lane(lane)?.work.as_ref()?.retries;
        let planned = || if step.retries == 0 { theirs().unwrap_or(0) } else { step.retries };
        self.options.retries.unwrap_or_else(planned)
    }

    /// The retries of a step, without those that were spent before its last success or on going on
    /// after it: together they are not more than the plan says.
    pub(super) fn retries_left(&self, path: &StepPath, step: &Step) -> u32 {
        let lane = path.lane();
        let retries = self.retries_in(&lane, step);
        let work = self.state.lane(&lane).and_then(|l| l.work.as_ref());
        let (Some(work), Some(state)) = (work, self.state.step(path)) else { return retries };
        let planned = self.plan.lane(&lane);
        let is_worker = planned.and_then(worker_id).is_some_and(|id| id == path.step);
        let reopened = if is_worker { work.reopened.count } else { 0 };
        retries.saturating_sub(reopened + state.retried.saturating_sub(state.failures))
    }
}

/// The step that would work again on a lane.
fn worker_id(lane: &Lane) -> Option<&str> {
    worker(lane).map(|at| lane.steps[at].id.as_str())
}

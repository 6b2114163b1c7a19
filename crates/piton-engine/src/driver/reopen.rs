//! Lanes whose work goes on although its steps had finished: a conflict with base, or a test that
//! failed; and where no retry is left, what a person can do.

use piton_core::LanePath;
use piton_core::decide::reopening;
use piton_core::event::{Class, Event, LaneReopened};
use piton_core::lane::Stage;
use piton_core::lane_state::Conflict;
use piton_core::refusals;

use super::Driver;
use crate::error::Result;

/// Lines about a conflict that the next attempt gets; more would bury the rest.
const CONFLICT_LINES_MAX: usize = 50;

impl Driver<'_> {
    /// Lets a lane's work go on with what went wrong, within the retries of the step that does it.
    pub(super) fn reopen(
        &mut self,
        path: &LanePath,
        (class, error, lines): (Class, String, Vec<String>),
        conflict: Option<Conflict>,
    ) -> Result<()> {
        let asked = self.options.retries;
        if let Some((step, retries_max)) = reopening(&self.plan, &self.state, path, asked) {
            let (onto, head) = conflict.map(|both| (both.onto, both.head)).unzip();
            let lane = path.clone();
            let event = LaneReopened { lane, step, class, error, lines, onto, head, retries_max };
            return self.record(Event::LaneReopened(Box::new(event)));
        }
        let work = self.work(path);
        let refusal = match conflict {
            Some(_) => refusals::conflict(error, &work.dir, &work.base_branch),
            None => refusals::retries_spent(error, &work.dir),
        };
        self.block(path, Stage::PrePr, refusal)
    }

    /// The same after a conflict of two commits.
    pub(super) fn reopen_conflict(
        &mut self,
        path: &LanePath,
        files: Vec<String>,
        conflict: Conflict,
    ) -> Result<()> {
        let error = format!("conflict with base in {}", files.join(", "));
        let sides = self.sides(&conflict)?;
        let lines = if sides.is_empty() { files } else { sides };
        let lines = lines.into_iter().take(CONFLICT_LINES_MAX).collect();
        self.reopen(path, (Class::Conflict, error, lines), Some(conflict))
    }

    /// The same where an attempt left a conflict as it was.
    pub(super) fn reopen_unresolved(&mut self, path: &LanePath, files: &[String]) -> Result<()> {
        let error = format!("the conflict is not resolved in {}", files.join(", "));
        let lines = match self.work(path).resolving() {
            Some(conflict) => self.sides(conflict)?,
            None => Vec::new(),
        };
        self.reopen(path, (Class::Conflict, error, lines), None)
    }

    fn sides(&mut self, conflict: &Conflict) -> Result<Vec<String>> {
        let sides = self.workspaces()?.sides(&conflict.onto, &conflict.head);
        Ok(sides.into_iter().take(CONFLICT_LINES_MAX).collect())
    }
}

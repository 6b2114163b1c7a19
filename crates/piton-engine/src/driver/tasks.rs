//! Tasks in worktrees of their own, from the lane they are a part of: what it did is committed for
//! them to start from, and when all are back in it, it goes on.

use piton_core::event::{Event, LaneForked, LaneJoined};
use piton_core::lane::Stage;
use piton_core::plan::{Lane, Step};
use piton_core::{LanePath, StepPath};

use super::Driver;
use super::tested::MESSAGE;
use crate::error::Result;
use crate::world::Commit;

impl Driver<'_> {
    /// The step that a lane is at.
    pub(super) fn current(&self, path: &LanePath) -> Option<StepPath> {
        let lane = self.state.lane(path)?;
        Some(StepPath::new(&path.phase, &path.lane, &lane.steps[lane.current()?].id))
    }

    /// Commits what a lane did so far: its tasks start from there.
    pub(super) fn fork(&mut self, path: &LanePath, lane: &Lane) -> Result<()> {
        let Some(step) = self.current(path) else { return Ok(()) };
        self.commit_before_files()?;
        let snapshot = match self.snapshot(path, "before its tasks start") {
            Ok(snapshot) => snapshot,
            Err(why) => return self.block_unsaved(path, Stage::AfterLaneStart, why),
        };
        let taken = snapshot.clone().unwrap_or_default();
        let work = self.work(path);
        let message = self.message(path, lane.rules.message.as_deref().unwrap_or(MESSAGE));
        match self.workspaces()?.commit(path, &work, &taken, &message)? {
            Commit::Done { commit, .. } => {
                let lane = path.clone();
                let event = LaneForked { lane, step, commit, snapshot };
                self.record(Event::LaneForked(Box::new(event)))
            }
            Commit::Unresolved(files) => self.reopen_unresolved(path, &files),
            Commit::Refused(refusal) => self.block(path, Stage::AfterLaneStart, refusal),
        }
    }

    /// Records that a lane's tasks are back in it, with the files it has now.
    pub(super) fn join(&mut self, path: &LanePath) -> Result<()> {
        let Some(step) = self.current(path) else { return Ok(()) };
        self.commit_before_files()?;
        let snapshot = match self.snapshot(path, "with its tasks") {
            Ok(snapshot) => snapshot,
            Err(why) => return self.block_unsaved(path, Stage::AfterLaneStart, why),
        };
        let definition = self.planned(&step).map(Step::definition);
        let event = LaneJoined { lane: path.clone(), step, definition, snapshot };
        self.record(Event::LaneJoined(Box::new(event)))
    }

    /// Removes what tasks did that start over, before anybody else looks at their lane.
    pub(super) fn clear_dropped(&mut self) -> Result<()> {
        let dropped =
            |l: &piton_core::state::LaneState| l.work.as_ref().is_some_and(|w| w.is_dropped());
        let lanes = self.state.lanes().filter(|(_, lane)| dropped(lane));
        let lanes: Vec<LanePath> = lanes.map(|(path, _)| path).collect();
        lanes.iter().try_for_each(|path| self.remove(path))?;
        self.commit()
    }
}

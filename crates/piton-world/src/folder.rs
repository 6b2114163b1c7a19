//! Lanes in a folder without snapshots: they begin and end in place, and are recorded, so that a run
//! has its views. Nothing can be taken back there, and nothing works in a worktree.
//!
//! Used only where views are asked for: without them no lane needs a record.

use std::path::{Path, PathBuf};

use piton_core::event::{LaneBegun, MergeIntended, Revert, RewindIntended, RewindKind, RewindRoom};
use piton_core::lane::{Isolation, LaneRules, SnapshotRef};
use piton_core::lane_state::LaneWork;
use piton_core::{Event, LanePath, Plan, RunState, Timestamp};
use piton_engine::world::{
    Begin, Commit, Mended, Merging, Rebase, Refusal, Removed, Room, RoomTarget, Rooms,
};
use piton_engine::{Error, Result};

use super::hands::Hands;
use super::views::{Viewed, Views};

/// What is said of everything that needs snapshots.
const NEEDS_GIT: &str = "there are no snapshots here: they need a git repository";

/// The lanes of one run in a folder.
pub struct FolderRooms {
    root: PathBuf,
    views: Views,
    hands: Hands,
}

impl FolderRooms {
    /// Makes the lanes of a run; `hands` is the file that its drivers lock while they act.
    pub fn new(root: &Path, hands: &Path, views: Views) -> Self {
        Self { root: root.to_owned(), views, hands: Hands::new(hands.to_owned(), 1) }
    }

    /// Lets a driver act, and none that came before it.
    pub fn take_over(&mut self, epoch: u64) -> Result<()> {
        self.hands.take_over(epoch)
    }
}

impl Viewed for FolderRooms {
    fn rebuild_log(&mut self, run_id: &str, all: Vec<(u64, Timestamp, Event)>) -> Result<()> {
        let _held = self.hands.hold()?;
        self.views.rebuild_log(run_id, all.into_iter()).map_err(|e| Error::World(e.to_string()))
    }
}

fn refusal() -> Refusal {
    let fix = "`git init`, or let the lane work in place (`isolation = \"in-place\"`)".to_owned();
    Refusal { why: "lanes in worktrees need a git repository".to_owned(), fix }
}

fn missing<T>() -> Result<T> {
    Err(Error::World(NEEDS_GIT.to_owned()))
}

impl Rooms for FolderRooms {
    fn fence(&mut self, epoch: u64) -> Result<()> {
        self.hands.take_over(epoch)
    }

    fn recover(&mut self, _: &Plan, _: &RunState, _: &[LanePath], _: Timestamp) -> Result<Mended> {
        Ok(Mended::default())
    }

    fn begin(&mut self, lane: &LanePath, rules: &LaneRules, _: &RunState) -> Result<Begin> {
        if !rules.isolation.is_in_place() {
            return Ok(Begin::Refused(refusal()));
        }
        Ok(Begin::Ready(Box::new(LaneBegun {
            lane: lane.clone(),
            isolation: Isolation::InPlace,
            dir: self.root.display().to_string(),
            branch: String::new(),
            base_branch: String::new(),
            base_sha: None,
            snapshot: None,
            note: String::new(),
        })))
    }

    fn make_room(&mut self, _: &LanePath, _: &LaneRules, _: &LaneWork) -> Result<Room> {
        Ok(Room::Refused(refusal()))
    }

    fn takes_snapshots(&self) -> bool {
        false
    }

    fn snapshot(
        &mut self,
        _: Option<&LanePath>,
        _: &str,
        _: &str,
        _: Timestamp,
    ) -> Result<SnapshotRef, String> {
        Err(NEEDS_GIT.to_owned())
    }

    fn reset(
        &mut self,
        _: &LanePath,
        _: &str,
        _: &str,
        _: (Option<&str>, Option<&str>),
        _: Timestamp,
    ) -> Result<Option<String>, String> {
        Err(NEEDS_GIT.to_owned())
    }

    fn changed_since(&mut self, _: &str, _: i64) -> bool {
        true
    }

    fn commit(&mut self, _: &LanePath, _: &LaneWork, _: &SnapshotRef, _: &str) -> Result<Commit> {
        Ok(Commit::Refused(refusal()))
    }

    fn rebase(&mut self, _: &LanePath, _: &LaneWork) -> Result<Rebase> {
        Ok(Rebase::Refused(refusal()))
    }

    fn may_merge(&mut self, _: &MergeIntended) -> Result<Option<Refusal>> {
        Ok(Some(refusal()))
    }

    fn merge(&mut self, _: &MergeIntended) -> Result<Merging> {
        Ok(Merging::Refused(refusal()))
    }

    fn is_merged(&mut self, _: &LanePath, _: &LaneWork) -> Result<Option<String>> {
        Ok(None)
    }

    fn remove(
        &mut self,
        _: &LanePath,
        _: &LaneWork,
        _: &[String],
        _: Timestamp,
    ) -> Result<Removed> {
        missing()
    }

    fn plan_rewind(&mut self, _: &RoomTarget, _: Timestamp) -> Result<RewindRoom, String> {
        Err(NEEDS_GIT.to_owned())
    }

    fn plan_revert(&mut self, _: &Revert, _: RewindKind) -> Result<Revert, String> {
        Err(NEEDS_GIT.to_owned())
    }

    fn rewind(&mut self, _: &RewindIntended) -> Result<(), String> {
        Err(NEEDS_GIT.to_owned())
    }

    fn views(&mut self, plan: &Plan, state: &RunState) -> Result<Vec<String>> {
        let _held = self.hands.hold()?;
        self.views.write(plan, state).map_err(|e| Error::World(e.to_string()))?;
        Ok(self.views.take_warnings())
    }

    fn log(&mut self, run_id: &str, events: &[(u64, Timestamp, &Event)]) -> bool {
        self.views.log(run_id, events)
    }

    fn logged(&self, lane: &LanePath) -> Vec<String> {
        self.views.logged(lane)
    }
}

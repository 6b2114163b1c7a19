//! Whether a lane's work may be committed and merged as it is: only what its tests passed on is.

use crate::id::LanePath;
use crate::lane::{Merge, Role, SnapshotRef};
use crate::lane_state::{LaneProgress, LaneWork, MERGE_ROUNDS_MAX};
use crate::plan::Lane;
use crate::refusal::Refusal;
use crate::refusals;
use crate::state::LaneState;

/// Runs of a lane's tests in a row that leave other files than they ran on, before what they ran on is
/// taken instead: the first may write what belongs to the work, such as a lock file.
const CHANGED_TWICE: u32 = 2;
/// The same before a lane waits for a person: something else changes its files all the time.
const CHANGED_MAX: u32 = 5;

/// What comes before a lane's commit.
#[derive(Clone, Debug, PartialEq)]
pub enum BeforeCommit<'a> {
    /// Nothing: it is committed.
    Nothing,
    /// What its tests changed is taken out; these are the files they ran on.
    TakeOut(&'a SnapshotRef),
    /// Its tests run on what is there, for this reason.
    Test(&'static str),
    /// A person has to do something.
    Refuse(Refusal),
}

/// What comes before a lane is committed that has a tree; `taken_out` says that what its tests changed
/// is taken out already, as far as it can be.
pub fn before_commit<'a>(
    path: &LanePath,
    state: &LaneState,
    work: &'a LaneWork,
    lane: &Lane,
    tree: &str,
    taken_out: bool,
) -> BeforeCommit<'a> {
    if state.tests_are_skipped() || !must_test(lane, work, tree) {
        return BeforeCommit::Nothing;
    }
    let changed = work.tests.changed_files;
    match work.tested_before().filter(|_| changed >= CHANGED_TWICE && !taken_out) {
        Some(found) => BeforeCommit::TakeOut(found),
        None if changed >= CHANGED_MAX => {
            BeforeCommit::Refuse(refusals::tests_change_files(path, CHANGED_MAX))
        }
        None if changed > 0 => BeforeCommit::Test("its tests changed files"),
        None => BeforeCommit::Test("files changed after the tests had run"),
    }
}

/// Whether a lane's tests have to run on a tree before that is merged.
pub fn must_test(lane: &Lane, work: &LaneWork, tree: &str) -> bool {
    let has_tests = lane.steps.iter().any(|s| s.role == Role::Tests);
    has_tests && !work.tests.prove(&lane.tests(), tree)
}

/// Why a lane that base outran too often goes no further by itself.
pub fn over_rounds(work: &LaneWork, rounds_max: Option<u32>) -> Option<Refusal> {
    let rounds_max = rounds_max.unwrap_or(MERGE_ROUNDS_MAX);
    (work.rounds > rounds_max).then(|| refusals::base_keeps_moving(rounds_max))
}

/// The commit of base that a lane's tests ran on, if they shall run again and base may have moved
/// since: what they failed on may be fixed there.
pub fn tested_onto<'a>(lane: &Lane, work: &'a LaneWork) -> Option<&'a String> {
    match &work.progress {
        LaneProgress::Rebased { onto, .. } => Some(onto),
        // One that stayed on its branch because its tests were left out was not rebased yet.
        LaneProgress::Committed(_) if lane.rules.merge == Merge::Queue => work.base_sha.as_ref(),
        _ => None,
    }
}

//! Runs that other tools recorded in files of their protocols, for `piton import`.
//!
//! Only what their records say: the program itself checks the repository.

use piton_core::LanePath;
use piton_core::lane_state::StageRecord;
use piton_core::state::FailedAttempt;

/// A run that another tool recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignRun {
    /// Its id, as the tool has it.
    pub id: String,
    /// The branches that its work is merged into: at most one in a valid file.
    pub bases: Vec<String>,
    /// Its phases, as a plan names them.
    pub phases: Vec<String>,
    /// Its lanes, in the file's order.
    pub lanes: Vec<ForeignLane>,
    /// What its records without a lane are about.
    pub others: Vec<String>,
}

/// A lane of such a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignLane {
    /// The lane, as a plan names it.
    pub path: LanePath,
    /// How far it came, by its records.
    pub stand: Stand,
    /// The records whose stage and status are known.
    pub records: Vec<StageRecord>,
    /// Whether it has other records.
    pub has_unknown: bool,
    /// Where it worked.
    pub dir: Option<String>,
    /// Its pull request.
    pub pull_request: Option<String>,
    /// The failed attempts, for the failure context of the next one.
    pub failures: Vec<FailedAttempt>,
    /// Its retries.
    pub retries: Retries,
}

/// How far a lane came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// It has not started.
    Fresh,
    /// Its worktree exists; which of its tasks are done is not recorded.
    Working,
    /// Its work was done and tested, or about to be merged.
    Worked,
    /// It was merged.
    Merged,
}

/// Retries as another tool counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// How many have started and still count.
    pub begun: Option<u32>,
    /// How many there may be.
    pub most: Option<u32>,
}

//! The steps of a lane that no document names: setup, tests on the tree to be merged, pull request.
//!
//! A lane in place has none of them: it shares the project's folder and merges nothing.

use piton_core::lane::{Merge, PULL_REQUEST_STEP, Role, SETUP_STEP, TESTS_STEP};
use piton_core::plan::{Command, Lane, Step, Work};

/// Ids that steps of a document cannot have.
pub const RESERVED: [&str; 3] = [SETUP_STEP, TESTS_STEP, PULL_REQUEST_STEP];

/// The commands of the steps that no document names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commands {
    /// Makes a fresh worktree usable.
    pub setup: Option<Command>,
    /// Opens the pull request of a lane.
    pub pull_request: Option<Command>,
}

/// Adds to a lane in a worktree of its own the steps around its work; `like` gives their limits.
pub fn add(lane: &mut Lane, commands: &Commands, like: &Step) {
    if lane.rules.isolation.is_in_place() {
        return;
    }
    let step = |id: &str, work: Work, role: Role| Step {
        id: id.to_owned(),
        work,
        test: None,
        inputs: Vec::new(),
        artifacts: Vec::new(),
        role,
        ..like.clone()
    };
    if let Some(setup) = &commands.setup {
        lane.steps.insert(0, step(SETUP_STEP, Work::Run(setup.clone()), Role::Setup));
    }
    if !lane.rules.tests.is_empty() {
        let work = Work::Tests(lane.rules.tests.clone());
        lane.steps.push(step(TESTS_STEP, work, Role::Tests));
    }
    if let (Merge::PullRequest, Some(open)) = (lane.rules.merge, &commands.pull_request) {
        let work = Work::Run(open.clone());
        lane.steps.push(step(PULL_REQUEST_STEP, work, Role::PullRequest));
    }
}

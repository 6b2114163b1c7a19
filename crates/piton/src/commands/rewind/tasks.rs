//! What a rewind of a lane does to tasks in worktrees of their own: those go, or come back, and are
//! told by themselves and not as files of their lane, in whose folder they lie.

use std::path::Path;

use piton_core::{LanePath, RunState};
use piton_engine::world::{Rewind, RewindTarget};
use piton_world::workspaces::Preview;

/// The lanes whose steps run again, with the tasks among them that ran.
pub fn run_again(state: &RunState, rewind: &Rewind) -> Vec<LanePath> {
    let reverted: Vec<LanePath> = rewind.merges.iter().map(|merge| merge.lane.clone()).collect();
    let mut all = rewind.intent.lanes.clone();
    let ran = |path: &LanePath| {
        state.lane(path).is_some_and(|lane| lane.steps.iter().any(|step| step.attempts > 0))
    };
    all.extend(state.tasks_behind(&rewind.intent, &reverted).into_iter().filter(ran));
    all
}

/// Leaves out of what happens in a lane's worktree what is told of its tasks: their worktrees lie in
/// it, and the folders that hold nothing else.
pub fn separate_tasks(preview: &mut Preview, target: &RewindTarget, all: &[RewindTarget]) {
    let top = Path::new(&target.dir);
    let own = |other: &RewindTarget| {
        let below = Path::new(&other.dir).strip_prefix(top).ok()?;
        let below = below.as_os_str().as_encoded_bytes().to_vec();
        (target.lane.is_some() && !below.is_empty()).then_some(below)
    };
    let tasks: Vec<Vec<u8>> = all.iter().filter_map(own).collect();
    let holds = |path: &[u8]| {
        let rest = |task: &Vec<u8>| task.strip_prefix(path).map(<[u8]>::to_vec);
        tasks.iter().filter_map(rest).any(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    preview.changes.retain(|change| !holds(&change.path));
    preview.kept.retain(|kept| !holds(&kept.path));
    preview.missed.retain(|missed| !holds(&missed.path));
    preview.gone.retain(|missed| !holds(&missed.path));
}

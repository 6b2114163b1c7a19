//! Lanes whose base is not what they began with any more: for `status` to tell.

use std::collections::BTreeMap;
use std::path::Path;

use piton_core::lane_state::base_moved;
use piton_core::{LanePath, RunState};
use piton_workspace::refs;
use serde::Serialize;

use crate::ui::text::sanitize;

/// A lane whose base moved while it is under way.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// The lane.
    pub lane: LanePath,
    /// The branch its work goes to.
    pub base: String,
    /// The commit of it that the lane works on.
    pub from: String,
    /// Where it stands.
    pub to: String,
}

impl Moved {
    /// What moved, in words.
    pub fn words(&self) -> String {
        let moved = base_moved(&self.base, &self.from, &self.to).unwrap_or_default();
        format!("{}: {}", self.lane, sanitize(&moved))
    }
}

/// Those of a run. Tasks are not among them: their lane moves with each that is done.
pub fn of_run(root: &Path, state: &RunState) -> Vec<Moved> {
    let mut tips: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for (lane, about) in state.lanes().filter(|(_, lane)| lane.task.is_none()) {
        let Some(work) = about.work.as_deref() else { continue };
        let at_work = work.merged.is_none() || about.current().is_some();
        let under_way = work.ready && !work.removed && at_work;
        let (true, false, Some(from)) = (under_way, work.isolation.is_in_place(), &work.base_sha)
        else {
            continue;
        };
        let base = work.base_branch.as_str();
        let tip =
            tips.entry(base).or_insert_with(|| refs::value(root, &format!("refs/heads/{base}")));
        if let Some(to) = tip.clone().filter(|to| to != from) {
            found.push(Moved { lane, base: base.to_owned(), from: from.clone(), to });
        }
    }
    found
}

//! Lanes whose base is not what they began with any more: for `status` to tell.

use std::collections::BTreeMap;
use std::path::Path;

use piton_core::RunState;
use piton_view::Moved;
use piton_workspace::refs;

/// Those of a run. Tasks are not among them: their lane moves with each that is done.
pub fn in_run(root: &Path, state: &RunState) -> Vec<Moved> {
    let mut tips: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for (lane, about) in state.lanes().filter(|(_, lane)| lane.task.is_none()) {
        let Some(work) = about.work.as_deref() else { continue };
        let at_work = work.merged().is_none() || about.current().is_some();
        let under_way = work.has_workspace() && at_work;
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

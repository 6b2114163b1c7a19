//! HEAD of the project's own folder, which a rollback in place leaves where it is: steps that commit
//! there move it, and their commits are the user's to take back.

use piton_core::Event;
use piton_engine::Store;
use piton_engine::store::Loaded;
use piton_engine::world::Rewind;
use piton_view::rewind::HeadLeft;
use piton_workspace::{Git, merge};

use crate::context::Context;
use crate::error::Result;

/// Looks whether HEAD moved since the checkpoint to which the project's folder goes back.
pub fn head_left(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    rewind: &Rewind,
) -> Result<Option<HeadLeft>> {
    let (project, now) = (&context.project, context.project.head());
    let (Some(stays), true) = (now, rewind.targets.iter().any(|t| t.lane.is_none())) else {
        return Ok(None);
    };
    let (then, branch) = seen_before(store, loaded, rewind.intent.after_event)?;
    let Some(was) = then.filter(|then| *then != stays) else { return Ok(None) };
    let grew = branch == project.branch()
        && merge::is_ancestor(&project.root, &was, &stays).unwrap_or(false);
    let resets = grew && !merged_between(context, store, &was, &stays)?;
    Ok(Some(HeadLeft { was, stays, resets }))
}

/// Whether a lane of any run was merged between two commits.
fn merged_between(context: &Context, store: &mut Store, from: &str, to: &str) -> Result<bool> {
    let range = format!("{from}..{to}");
    let listed = Git::at(&context.project.root).args(["rev-list", &range]).text();
    let Ok(between) = listed else { return Ok(true) };
    let is_between = |commit: &String| between.lines().any(|found| found == commit);
    for row in store.runs()? {
        // Of a run that can't be read nobody knows.
        let Ok(loaded) = store.load_row(row) else { return Ok(true) };
        let works = loaded.state.lanes().filter_map(|(_, lane)| lane.work.as_ref());
        let mut merged = works.filter_map(|work| work.merged.as_ref()?.to.as_ref());
        if merged.any(is_between) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The commit that was last seen checked out before an event, and the branch it was on.
fn seen_before(
    store: &mut Store,
    loaded: &Loaded,
    event: u64,
) -> Result<(Option<String>, Option<String>)> {
    let (mut seen, mut branch) = (None, None);
    store.each_event(&loaded.row, 0, |seq, _, found| {
        let head = match found {
            _ if seq > event => return,
            Event::RunCreated(e) => &e.head,
            Event::DriverAttached(e) => &e.head,
            Event::DriverLeft(e) => &e.head,
            Event::CheckpointRecorded(e) => &e.head,
            Event::LaneBegun(e) if e.isolation.is_in_place() => {
                branch = Some(e.base_branch.clone()).filter(|name| !name.is_empty());
                &e.base_sha
            }
            _ => return,
        };
        seen = head.clone().or(seen.take());
    })?;
    Ok((seen, branch))
}

//! Snapshots that commands take to look at the present, beside the chains of a driver.
//!
//! They hold no lease: their refs live apart, below `readers/`, and the driver's chains stay its own.

use piton_core::LanePath;
use piton_core::lane::SnapshotRef;
use piton_core::remedy;
use piton_engine::store::Loaded;
use piton_engine::world::RewindTarget;

use crate::cli::DriveArgs;
use crate::context::{Context, now};
use crate::drive;
use crate::error::{CommandError, Result};
use piton_world::workspaces::GitWorkspaces;

/// The files of a workspace as they are now.
pub fn now_of(context: &Context, loaded: &Loaded, lane: Option<&LanePath>) -> Result<String> {
    taken(context, loaded, lane, None).map(|s| s.commit)
}

/// Whether the worktree of a lane is there.
pub fn is_there(loaded: &Loaded, lane: &LanePath) -> bool {
    let work = loaded.state.lane(lane).and_then(|l| l.work.as_ref());
    work.is_some_and(|w| !w.is_removed() && std::path::Path::new(&w.dir).is_dir())
}

/// The same, with all that is recorded of it; `to` is what it shall become.
fn taken(
    context: &Context,
    loaded: &Loaded,
    lane: Option<&LanePath>,
    to: Option<&str>,
) -> Result<SnapshotRef> {
    let work = lane.and_then(|l| loaded.state.lane(l)).and_then(|l| l.work.as_ref());
    let dir = work.map(|w| w.dir.clone()).unwrap_or_default();
    let taken = workspaces(context, loaded)?.snapshot_for_reader(lane, &dir, to, now());
    taken.map_err(|why| {
        let (error, run) = (CommandError::from(why), &loaded.row.run_id);
        if dir.is_empty() {
            return error;
        }
        error.hint(
            remedy![Piton "resume {run}", Words " repairs the worktree, or says what is missing"],
        )
    })
}

/// The workspaces of a run, for whoever does not drive it.
pub fn workspaces(context: &Context, loaded: &Loaded) -> Result<GitWorkspaces> {
    let workspaces = drive::workspaces(context, &loaded.state, &DriveArgs::default());
    workspaces.ok_or_else(|| without_snapshots(context, loaded))
}

/// Refuses to look for files of a run that has none on record.
pub fn refuse_without_snapshots(context: &Context, loaded: &Loaded) -> Result<()> {
    let is_off = drive::switched_off(context, &loaded.state);
    let has_none = context.project.git_dir.is_none() || is_off;
    if has_none { Err(without_snapshots(context, loaded)) } else { Ok(()) }
}

fn without_snapshots(context: &Context, loaded: &Loaded) -> CommandError {
    if context.project.git_dir.is_some() && drive::switched_off(context, &loaded.state) {
        return CommandError::usage("no-checkpoint", "snapshots are disabled here")
            .hint("set `snapshots.enabled = true` in piton.toml");
    }
    CommandError::usage("no-repository", "this project is not a git repository")
        .hint("snapshots need one: run `git init`")
}

/// The present of each work tree that shall go back; nothing for one that is gone.
pub fn present(
    context: &Context,
    loaded: &Loaded,
    targets: &[RewindTarget],
) -> Result<Vec<Option<String>>> {
    let mut all = Vec::new();
    for target in targets {
        // What is at the place of a task that has no worktree is somebody else's.
        let lane = target.lane.as_ref().and_then(|path| loaded.state.lane(path));
        let comes = lane.is_some_and(|lane| {
            lane.task.is_some() && !lane.work.as_ref().is_some_and(|work| work.has_worktree())
        });
        let there = !comes && context.project.root.join(&target.dir).is_dir();
        // What goes becomes nothing else.
        let to = target.goes.is_none().then_some(&*target.target);
        let snapshot = || taken(context, loaded, target.lane.as_ref(), to);
        all.push(if there { Some(snapshot()?.commit) } else { None });
    }
    Ok(all)
}

/// The files of every workspace of a run: the root, and each worktree of a lane.
pub fn all(context: &Context, loaded: &Loaded) -> Result<Vec<(Option<LanePath>, SnapshotRef)>> {
    if context.project.git_dir.is_none() || drive::switched_off(context, &loaded.state) {
        return Ok(Vec::new());
    }
    let mut found = vec![(None, taken(context, loaded, None, None)?)];
    for (path, lane) in loaded.state.lanes() {
        let there =
            lane.work.as_ref().is_some_and(|w| w.has_workspace() && !w.isolation.is_in_place());
        if there && is_there(loaded, &path) {
            let snapshot = taken(context, loaded, Some(&path), None)?;
            found.push((Some(path), snapshot));
        }
    }
    Ok(found)
}

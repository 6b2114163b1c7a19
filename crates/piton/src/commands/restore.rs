//! `piton restore`: brings files of a checkpoint back, here or into another folder; steps stay.

use piton_core::event::RewindKind;
use piton_engine::world::{Rewind, RoomTarget};
use piton_workspace::restore;

use super::rewind::{self, Point};
use crate::cli::RestoreArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;

/// Restores files.
pub fn run(context: &Context, args: &RestoreArgs) -> Result<()> {
    let mut store = super::request::open(context)?;
    let row = Context::pick(&mut store, args.run.as_deref(), |_| true, "run")?;
    let loaded = store.load_row(row)?;
    let elsewhere = context.of_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    let all = rewind::points(&mut store, &loaded)?;
    let (name, lane) = (args.checkpoint.as_str(), args.lane.as_deref());
    let point = rewind::one(&all, &loaded.state, name, lane, None)?;
    let paths = args.paths.iter().map(|p| from_top(p)).collect::<Result<Vec<String>>>()?;
    if let Some(dir) = &args.to {
        let to = context.cwd.join(dir);
        let paths: Vec<_> = paths.iter().map(std::path::PathBuf::from).collect();
        let written = restore::export(&context.project.root, &point.commit, &paths, &to)
            .map_err(|e| CommandError::failed("not-restored", e.to_string()))?;
        if let (0, Some(path)) = (written, paths.first().filter(|_| !to_has(&to, &paths))) {
            return Err(nowhere(&point, &path.display().to_string()));
        }
        if context.json {
            let dir = to.display().to_string();
            ui::data_json(&serde_json::json!({"checkpoint": point.name, "to": dir}));
        } else {
            ui::say(&format!("{} is in {}", point.name, to.display()));
        }
        return Ok(());
    }
    super::request::refuse_inside(context, &mut store, &loaded)?;
    let loaded = if args.dry_run {
        loaded
    } else {
        rewind::settle(context, &mut store, loaded, args.takeover)?
    };
    let work = point.lane.as_ref().and_then(|l| loaded.state.lane(l)).and_then(|l| l.work.as_ref());
    if let (Some(lane), Some(work)) = (&point.lane, work)
        && !std::path::Path::new(&work.dir).is_dir()
    {
        let message = format!("the worktree of {lane} is gone");
        return Err(CommandError::usage("no-checkpoint", message)
            .hint("`--to DIR` puts the files into a folder of their own"));
    }
    let target = RoomTarget {
        lane: point.lane.clone(),
        dir: work.map(|w| w.dir.clone()).unwrap_or_default(),
        target: point.commit.clone(),
        paths,
        exact: args.exact,
        ..RoomTarget::default()
    };
    let intent = rewind::intent(RewindKind::Restore, &point.name, Vec::new());
    let made = Rewind { intent, targets: vec![target], merges: Vec::new() };
    let planned = rewind::Planned::of(context, &loaded, &made)?;
    let target = &made.targets[0];
    if let Some(path) = target.paths.iter().find(|path| !planned.touches(path)) {
        let there = context.project.root.join(&target.dir).join(path).symlink_metadata().is_ok();
        if !there && !is_in(context, &point, path) {
            return Err(nowhere(&point, path));
        }
    }
    if !planned.tell(context, args.dry_run)? {
        if !planned.something {
            ui::say(&format!("nothing to restore: all that is meant is as {} has it", point.name));
        }
        return Ok(());
    }
    rewind::confirm(context, &format!("Restore {}?", point.name))?;
    let run_id = loaded.row.run_id.clone();
    rewind::drive(context, &mut store, &run_id, made, args.takeover)?;
    if context.json {
        ui::data_json(&serde_json::json!({"run_id": run_id, "restored": point.name}));
    } else {
        ui::say(&format!("restored {}; take it back with: piton undo {run_id}", point.name));
    }
    Ok(())
}

/// Whether a checkpoint holds a path, or files below it.
fn is_in(context: &Context, point: &Point, path: &str) -> bool {
    let name = format!("{}:tree/{path}", point.commit);
    path.is_empty() || piton_workspace::refs::value(&context.project.root, &name).is_some()
}

/// Whether anything of some paths is in a folder: an empty one has no files to be counted.
fn to_has(to: &std::path::Path, paths: &[std::path::PathBuf]) -> bool {
    paths.iter().any(|path| to.join(path).symlink_metadata().is_ok())
}

fn nowhere(point: &Point, path: &str) -> CommandError {
    let message = format!("{} has no `{path}`, and it is not here either", point.name);
    CommandError::usage("no-checkpoint", message)
        .hint(format!("`piton diff {}` shows what differs", point.name))
}

/// A path from the top of the work tree, as snapshots have it.
fn from_top(path: &str) -> Result<String> {
    use std::path::{Component, Path};
    let mut plain = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => plain.push(name.to_string_lossy().into_owned()),
            _ => {
                let message = format!("`{path}` is not a path from the top of the work tree");
                return Err(CommandError::usage("no-checkpoint", message)
                    .hint("write it as `git ls-files --full-name` does"));
            }
        }
    }
    Ok(plain.join("/"))
}

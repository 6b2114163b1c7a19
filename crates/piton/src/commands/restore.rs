//! `piton restore`: brings files of a checkpoint back, here or into another folder; steps stay.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use piton_core::event::RewindKind;
use piton_core::remedy;
use piton_core::text::first_few;
use piton_engine::world::{Rewind, RewindTarget};
use piton_view::answers::{Exported, Restored};
use piton_view::show::Point;
use piton_view::text::sanitize;
use piton_workspace::restore;

use super::rewind;
use crate::cli::RestoreArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;
use piton_world::workspaces::names;

/// Most files that are named; the rest are counted.
const FILES_NAMED_MAX: usize = 5;

/// Restores files.
pub fn run(context: &Context, args: &RestoreArgs) -> Result<()> {
    let mut store = super::request::open(context)?;
    let row = Context::pick(&mut store, args.run.as_deref(), |_| true, "run")?;
    let loaded = store.load_row(row)?;
    let elsewhere = context.for_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    super::request::refuse_moved(context, &loaded)?;
    if args.to.is_none() {
        super::request::refuse_deciding(context, &loaded)?;
    }
    super::current_files::refuse_without_snapshots(context, &loaded)?;
    let all = rewind::points(&mut store, &loaded)?;
    let (name, lane) = (args.checkpoint.as_str(), args.lane.as_deref());
    let point = rewind::one(&all, &loaded.state, name, lane, None)?;
    let mut paths = args.paths.iter().map(|p| from_top(p)).collect::<Result<Vec<PathBuf>>>()?;
    if paths.iter().any(|path| path.as_os_str().is_empty()) {
        // The top of the work tree is all of it.
        paths.clear();
    }
    if let Some(dir) = &args.to {
        return export(context, &point, &paths, &context.cwd.join(dir), args.dry_run);
    }
    let loaded = rewind::finish(context, &mut store, loaded, args.takeover, args.dry_run)?;
    let work = point.lane.as_ref().and_then(|l| loaded.state.lane(l)).and_then(|l| l.work.as_ref());
    if let (Some(lane), Some(work)) = (&point.lane, work)
        && !std::path::Path::new(&work.dir).is_dir()
    {
        let message = format!("the worktree of {lane} is gone");
        return Err(CommandError::usage("no-checkpoint", message)
            .hint("`--to DIR` writes the files to another folder"));
    }
    let target = RewindTarget {
        lane: point.lane.clone(),
        dir: work.map(|w| w.dir.clone()).unwrap_or_default(),
        target: point.commit.clone(),
        paths: paths.iter().map(|path| names::text(path.as_os_str().as_bytes())).collect(),
        exact: args.exact,
        ..RewindTarget::default()
    };
    let intent = rewind::intent(RewindKind::Restore, &point.name, Vec::new());
    let made = Rewind { intent, targets: vec![target], merges: Vec::new() };
    let planned = rewind::Planned::new(context, &loaded, &made)?;
    let top = context.project.root.join(&made.targets[0].dir);
    let untouched = |path: &&PathBuf| !planned.touches(path.as_os_str().as_bytes());
    if let Some(path) = paths.iter().find(untouched) {
        let there = top.join(path).symlink_metadata().is_ok();
        if !there && !is_in(context, &point, path) {
            return Err(nowhere(&point, path));
        }
    }
    if !planned.tell(context, args.dry_run)? {
        if !planned.plan.something_to_do && planned.keeps() {
            ui::say("nothing to restore: what differs is kept as it is");
        } else if !planned.plan.something_to_do {
            ui::say(format!("nothing to restore: the files are as in {}", point.name));
        }
        return Ok(());
    }
    rewind::confirm(context, &format!("Restore {}?", point.name))?;
    let run_id = loaded.row.run_id.clone();
    rewind::drive(context, &mut store, &run_id, made, args.takeover)?;
    let paths = planned.paths();
    let files = first_few(paths.iter().cloned(), FILES_NAMED_MAX).unwrap_or_default();
    ui::report(context.json, &Restored { run_id: &run_id, restored: &point.name, paths, files });
    Ok(())
}

/// Puts files into a folder of their own.
fn export(
    context: &Context,
    point: &Point,
    paths: &[PathBuf],
    to: &Path,
    dry_run: bool,
) -> Result<()> {
    let failed = |e: restore::Error| CommandError::failed("not-restored", e.to_string());
    let root = &context.project.root;
    let files = restore::exported(root, &point.commit, paths).map_err(failed)?;
    if !dry_run {
        restore::export(root, &point.commit, paths, to).map_err(failed)?;
    }
    let has = |path: &PathBuf| to.join(path).symlink_metadata().is_ok();
    // An empty folder has no files to be counted.
    let none = files.is_empty() && !paths.iter().any(has);
    if let (true, Some(path)) = (none, paths.first()) {
        return Err(nowhere(point, path));
    }
    let (checkpoint, to, files) = (&*point.name, to.display().to_string(), files.len());
    ui::report(context.json, &Exported { checkpoint, to, files, dry_run });
    Ok(())
}

/// Whether a checkpoint holds a path, or files below it.
fn is_in(context: &Context, point: &Point, path: &Path) -> bool {
    let found = restore::exported(&context.project.root, &point.commit, &[path.to_owned()]);
    found.is_ok_and(|files| !files.is_empty())
}

fn nowhere(point: &Point, path: &Path) -> CommandError {
    let path = sanitize(&path.to_string_lossy());
    let name = &point.name;
    let message = format!("`{path}` is neither in {name} nor here");
    CommandError::usage("no-checkpoint", message)
        .hint(remedy![Piton "diff {name}", Words " shows what differs"])
}

/// A path from the top of the work tree, as snapshots have it.
fn from_top(path: &OsStr) -> Result<PathBuf> {
    let mut plain = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => plain.push(name),
            _ => {
                let path = sanitize(&path.to_string_lossy());
                let message = format!("`{path}` is not a path from the top of the work tree");
                return Err(CommandError::usage("no-checkpoint", message)
                    .hint("write it like `git ls-files --full-name`"));
            }
        }
    }
    Ok(plain)
}

//! `piton restore`: brings files of a checkpoint back, here or into another folder; steps stay.

use piton_core::event::RewindKind;
use piton_engine::world::{Rewind, RoomTarget};
use piton_workspace::restore;

use super::rewind;
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
    let found = rewind::named(&all, &loaded.state, &args.checkpoint, args.lane.as_deref());
    let point = match found.as_slice() {
        [one] => one.clone(),
        [] => {
            let message = format!("there is no checkpoint `{}`", args.checkpoint);
            return Err(CommandError::usage("no-checkpoint", message)
                .hint("`piton show RUN` lists the checkpoints of a run"));
        }
        many => {
            let names: Vec<String> = many.iter().map(|p| p.name.clone()).collect();
            let message = format!("`{}` could be any of: {}", args.checkpoint, names.join(", "));
            return Err(CommandError::usage("no-checkpoint", message).hint("name its `--lane`"));
        }
    };
    let paths = args.paths.iter().map(|p| from_top(p)).collect::<Result<Vec<String>>>()?;
    if let Some(dir) = &args.to {
        let to = context.cwd.join(dir);
        let paths: Vec<_> = paths.iter().map(std::path::PathBuf::from).collect();
        restore::export(&context.project.root, &point.commit, &paths, &to)
            .map_err(|e| CommandError::failed("not-restored", e.to_string()))?;
        ui::say(&format!("{} is in {}", point.name, to.display()));
        return Ok(());
    }
    super::request::refuse_inside(context, &mut store, &loaded)?;
    let loaded = if args.dry_run {
        loaded
    } else {
        rewind::settle(context, &mut store, loaded, args.takeover)?
    };
    let work = point.lane.as_ref().and_then(|l| loaded.state.lane(l)).and_then(|l| l.work.as_ref());
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
    let present = super::look::present(context, &loaded, &made.targets)?;
    let something = rewind::print_plan(context, &loaded, &made, &present)?;
    if !something {
        ui::say(&format!("nothing to restore: all that is meant is as {} has it", point.name));
    }
    if !something || args.dry_run {
        return Ok(());
    }
    rewind::confirm(context, &format!("Restore {}?", point.name))?;
    let run_id = loaded.row.run_id.clone();
    rewind::drive(context, &mut store, &run_id, made, args.takeover)?;
    ui::say(&format!("restored {}; take it back with: piton undo {run_id}", point.name));
    Ok(())
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

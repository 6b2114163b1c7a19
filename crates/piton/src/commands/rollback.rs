//! `piton rollback`: takes lanes back to a checkpoint; what is there now can be brought back.

use piton_core::LanePath;
use piton_core::RunState;
use piton_core::event::{MergedBy, Revert, RewindKind};
use piton_core::lane::Stage;
use piton_engine::Store;
use piton_engine::store::Loaded;
use piton_engine::world::{Rewind, RoomTarget};

use super::rewind::{self, Point};
use crate::cli::RollbackArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;

/// Rolls back.
pub fn run(context: &Context, args: &RollbackArgs) -> Result<()> {
    let mut store = super::request::open(context)?;
    let any = |r: &piton_ledger::RunRow| !matches!(r.status.as_str(), "archived" | "cancelled");
    let row = Context::pick(&mut store, args.run.as_deref(), any, "run")?;
    let loaded = store.load_row(row)?;
    let elsewhere = context.of_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    super::request::refuse_inside(context, &mut store, &loaded)?;
    let loaded = if args.dry_run {
        loaded
    } else {
        rewind::settle(context, &mut store, loaded, args.takeover)?
    };
    // Without snapshots there is nothing to go back to: it says why.
    super::look::rooms(context, &loaded)?;
    let made = plan(&mut store, &loaded, args)?;
    let present = super::look::present(context, &loaded, &made.targets)?;
    let something = rewind::print_plan(context, &loaded, &made, &present)?;
    if !something {
        ui::say("nothing to roll back");
        return Ok(());
    }
    if args.dry_run {
        return Ok(());
    }
    let question = format!("Roll back to {}?", made.intent.to);
    rewind::confirm(context, &question)?;
    let run_id = loaded.row.run_id.clone();
    let ending = rewind::drive(context, &mut store, &run_id, made, args.takeover)?;
    prompt(context, &run_id, &ending.state);
    Ok(())
}

/// What the recovery contract wants to be said after a rollback.
fn prompt(context: &Context, run_id: &str, state: &RunState) {
    let last = state.undo.last();
    let rooms = last.map(|u| u.rooms.as_slice()).unwrap_or_default();
    let kept: Vec<&String> = rooms.iter().flat_map(|r| &r.keep).collect();
    if context.json {
        ui::data_json(&serde_json::json!({
            "run_id": run_id,
            "rolled_back": last.map(|u| u.words.clone()),
            "kept": kept,
            "resume_hint": format!("piton resume {run_id}"),
            "rollback_hint": format!("piton rollback {run_id}"),
            "undo_hint": format!("piton undo {run_id}"),
        }));
        return;
    }
    for (path, lane) in state.lanes() {
        let Some(work) = &lane.work else { continue };
        if let Some(to) = &work.rolled_back {
            ui::say(&format!("{path}: rolled back to {to}"));
            let stage = work.stage().map_or("none", Stage::as_str);
            ui::say(&format!("  current stage:   {stage}"));
            let checkpoint = work.snapshot.as_deref().map(ui::lane_words::short);
            ui::say(&format!("  checkpoint:      {}", checkpoint.unwrap_or_default()));
            let file = context.project.root.join(&context.settings.lanes.checkpoints);
            if file.exists() {
                ui::say(&format!("  checkpoint path: {}", file.display()));
            }
        }
    }
    crate::session::say_lanes(context, state, crate::world::views::Told::RolledBack);
    for path in kept {
        let path = ui::text::sanitize(path);
        ui::say(&format!("  stays:           {path} (not made by this run; --exact removes it)"));
    }
    ui::say(&format!("  next:            piton resume {run_id}"));
    ui::say(&format!("  to the start:    piton rollback {run_id} --to before_lane_start"));
    ui::say(&format!("  take it back:    piton undo {run_id}"));
}

/// The lanes that are meant and have begun.
fn selected(state: &RunState, args: &RollbackArgs) -> Result<Vec<LanePath>> {
    let fits = |path: &LanePath| {
        args.phase.as_ref().is_none_or(|p| *p == path.phase)
            && args.lane.as_ref().is_none_or(|l| *l == path.lane || *l == path.to_string())
    };
    if let Some((path, _)) =
        state.lanes().find(|(path, lane)| lane.task.is_some() && args.lane.is_some() && fits(path))
    {
        let whole = state.whole_of(&path);
        let message = format!("{path} is a task, and goes back with its lane {whole}");
        return Err(CommandError::usage("no-lane", message)
            .hint(format!("`--lane {whole}`; `piton retry` lets a task run again")));
    }
    let lanes: Vec<LanePath> = state
        .lanes()
        .filter(|(path, lane)| fits(path) && lane.work.is_some() && lane.task.is_none())
        .map(|(path, _)| path)
        .collect();
    if lanes.is_empty() {
        return Err(CommandError::usage("no-lane", "no lane that has begun is meant")
            .hint("`piton status` shows the lanes; `--lane` and `--phase` choose among them"));
    }
    let shared = rewind::in_place(state);
    let left_out: Vec<String> =
        shared.iter().filter(|p| !lanes.contains(p)).map(ToString::to_string).collect();
    if lanes.iter().any(|p| shared.contains(p)) && !left_out.is_empty() {
        let message = format!("{} work in the same folder", left_out.join(", "));
        return Err(CommandError::usage("shared-folder", message)
            .hint("lanes that share a folder go back only together: leave out --lane"));
    }
    Ok(lanes)
}

fn plan(store: &mut Store, loaded: &Loaded, args: &RollbackArgs) -> Result<Rewind> {
    let state = &loaded.state;
    let lanes = selected(state, args)?;
    let to = args.to.as_deref().unwrap_or(Stage::BeforeLaneStart.as_str());
    let stage = Stage::ALL.into_iter().find(|s| s.as_str() == to);
    let all = rewind::points(store, loaded)?;
    let mut intent = rewind::intent(RewindKind::Rollback, to, lanes.clone());
    intent.stage = stage;
    let (mut targets, mut merges) = (Vec::new(), Vec::new());
    let mut since = u64::MAX;
    let root = root_point(&all, state, &lanes, to, stage);
    let moved = rewind::moved(store, loaded)?;
    for path in &lanes {
        let Some(work) = state.lane(path).and_then(|l| l.work.as_deref()) else { continue };
        if work.isolation.is_in_place() {
            continue;
        }
        if let Some(merged) = work.merged.as_ref().filter(|m| m.by == MergedBy::Queue) {
            merges.extend(merged.from.clone().zip(merged.to.clone()).map(|(from, to)| Revert {
                lane: path.clone(),
                base_branch: work.base_branch.clone(),
                merged_from: from,
                merged_to: to,
                from: String::new(),
                to: String::new(),
            }));
        }
        let (event, target) = lane_target(&all, &moved, state, path, to, stage)?;
        since = since.min(event);
        intent.points.push((path.clone(), event));
        if !work.removed {
            targets.extend(target);
        }
    }
    if lanes.iter().any(|p| rewind::in_place(state).contains(p)) {
        let point = root.ok_or_else(|| no_point(to))?;
        since = since.min(point.event);
        let shared = rewind::in_place(state).into_iter();
        intent.points.extend(shared.map(|path| (path, point.event)));
        let windows = rewind::windows(store, loaded, point.event)?;
        targets.push(RoomTarget {
            windows,
            exact: args.exact,
            ..rewind::root_target(&point.commit)
        });
    }
    let order = rewind::merges(store, loaded)?;
    merges.sort_by_key(|m: &Revert| order.iter().position(|l| *l == m.lane));
    intent.after_event = since;
    Ok(Rewind { intent, targets, merges })
}

fn no_point(to: &str) -> CommandError {
    CommandError::usage("no-checkpoint", format!("there is no checkpoint `{to}` to go back to"))
        .hint("`piton show RUN` lists the checkpoints of a run")
}

/// The point of the project's root: the earliest of that stage among the lanes, so that none is left
/// half way.
fn root_point(
    all: &[Point],
    state: &RunState,
    lanes: &[LanePath],
    to: &str,
    stage: Option<Stage>,
) -> Option<Point> {
    let Some(stage) = stage else {
        return rewind::named(all, state, to, None).into_iter().find(|p| p.lane.is_none());
    };
    let records = lanes.iter().filter_map(|path| {
        let work = state.lane(path)?.work.as_deref()?;
        let record = work.record(stage).filter(|_| work.isolation.is_in_place())?;
        Some((record.event, record.at, record.snapshot.clone()?))
    });
    let (event, at, commit) = records.min_by_key(|(event, ..)| *event)?;
    let (name, degraded) = (stage.as_str().to_owned(), Vec::new());
    Some(Point { lane: None, commit, event, name, stage: Some(stage), at, degraded })
}

/// Where the worktree of a lane goes back to.
fn lane_target(
    all: &[Point],
    moved: &[(LanePath, u64)],
    state: &RunState,
    path: &LanePath,
    to: &str,
    stage: Option<Stage>,
) -> Result<(u64, Option<RoomTarget>)> {
    let work = state.lane(path).and_then(|l| l.work.as_deref()).ok_or_else(|| no_point(to))?;
    let target = |commit: &str, head: Option<String>| RoomTarget {
        lane: Some(path.clone()),
        dir: work.dir.clone(),
        target: commit.to_owned(),
        branch: work.branch.clone(),
        head_to: head,
        exact: true,
        ..RoomTarget::default()
    };
    let Some(stage) = stage else {
        let found = rewind::named(all, state, to, Some(&path.to_string()));
        let point = found.into_iter().find(|p| p.lane.as_ref() == Some(path));
        let point = point.ok_or_else(|| no_point(to).hint(format!("{path} has none: `--lane`")))?;
        if moved.iter().any(|(lane, event)| lane == path && *event > point.event) {
            let message = format!("{path} stands on a newer base than `{to}`");
            return Err(CommandError::usage("no-checkpoint", message)
                .hint("go back to a stage, or bring files back with `piton restore`"));
        }
        return Ok((point.event, Some(target(&point.commit, None))));
    };
    let record = work.record(stage).ok_or_else(|| no_point(to))?;
    // A fresh worktree has the files of the point before it was made. Where the lane was put on a
    // newer base since, both its files and its branch go back to the one it started from.
    let began = work.record(Stage::BeforeLaneStart);
    let ready = work.record(Stage::AfterLaneStart);
    let starts = matches!(stage, Stage::BeforeLaneStart | Stage::AfterLaneStart);
    let (commit, head) = if starts {
        let fresh = ready.and_then(|r| r.snapshot.clone());
        let head = ready.and_then(|r| r.base_sha.clone());
        let base = || began.and_then(|r| r.base_sha.clone());
        let since = began.map_or(0, |r| r.event);
        (fresh.or_else(|| first_ready(all, path, since)), head.or_else(base))
    } else {
        (record.snapshot.clone(), record.head_sha.clone())
    };
    let event = match stage {
        Stage::AfterLaneStart => began.map_or(record.event, |r| r.event + 1),
        _ => record.event,
    };
    Ok((event, commit.map(|commit| target(&commit, head))))
}

/// The first snapshot of a lane's worktree since it last began.
fn first_ready(all: &[Point], path: &LanePath, since: u64) -> Option<String> {
    let own = all.iter().filter(|p| p.lane.as_ref() == Some(path) && p.event > since);
    own.filter(|p| p.stage == Some(Stage::AfterLaneStart)).map(|p| p.commit.clone()).next()
}

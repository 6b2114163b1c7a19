//! `piton rollback`: takes lanes back to a checkpoint; what is there now can be brought back.

use std::path::Path;

use piton_core::LanePath;
use piton_core::RunState;
use piton_core::event::{MergedBy, Revert, RewindKind};
use piton_core::lane::{Stage, StageStatus};
use piton_core::lane_state::{Act, LaneWork, StageRecord, Undoable};
use piton_core::remedy;
use piton_core::text::first_few;
use piton_engine::store::Loaded;
use piton_engine::world::{Rewind, RewindTarget};
use piton_engine::{Ending, Store};
use piton_protocols::files::Occasion;
use piton_view::answers::RolledBack;
use piton_view::show::Point;
use piton_workspace::worktree::Identity;
use piton_workspace::{checks, merge};

use super::rewind;
use crate::cli::RollbackArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;
use piton_view::text::sanitize;
use piton_world::workspaces::names;

/// Most lanes that are named; the rest are counted.
const LANES_NAMED_MAX: usize = 5;

/// Rolls back.
pub fn run(context: &Context, args: &RollbackArgs) -> Result<()> {
    let mut store = super::request::open(context)?;
    let loaded = rewind::pick(&mut store, args.run.as_deref())?;
    let elsewhere = context.for_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    super::request::refuse_moved(context, &loaded)?;
    super::request::refuse_deciding(context, &loaded)?;
    rewind::refuse_over(context, &loaded)?;
    let loaded = rewind::finish(context, &mut store, loaded, args.takeover, args.dry_run)?;
    // Without snapshots there is nothing to go back to: it says why.
    super::current_files::workspaces(context, &loaded)?;
    let made = plan(&mut store, &loaded, args)?;
    let mut planned = rewind::Planned::new(context, &loaded, &made)?;
    let asked = args.to.as_deref().is_some_and(|to| !to.ends_with(Stage::BeforeLaneStart.as_str()));
    planned.plan.to_the_start = asked;
    planned.plan.driven_by = Context::driver_here(&loaded.row).map(ToString::to_string);
    if !planned.tell(context, args.dry_run)? {
        if !planned.plan.something_to_do {
            ui::say("nothing to roll back");
        }
        return Ok(());
    }
    let question = format!("Roll back to {}?", made.intent.to);
    rewind::confirm(context, &question)?;
    let run_id = loaded.row.run_id.clone();
    // Whoever wants the work taken back wants it to stop. What nobody here can look at, and end, is
    // only taken over when that is said.
    let takeover = args.takeover || planned.plan.driven_by.is_some();
    let ending = rewind::drive(context, &mut store, &run_id, made, takeover)?;
    report(context, &run_id, &ending, &planned);
    Ok(())
}

/// What came of it and how to continue.
fn report(context: &Context, run_id: &str, ending: &Ending, planned: &rewind::Planned) {
    let state = &ending.state;
    let last = state.undo.last();
    if context.json {
        let workspaces = last.map(|u| u.workspaces.as_slice()).unwrap_or_default();
        let kept = workspaces.iter().flat_map(|r| &r.keep).map(|k| names::shown(k));
        let hint = |command: &str| ui::place().piton(format_args!("{command} {run_id}"));
        ui::data_json(&RolledBack {
            run_id,
            rolled_back: last.map(Undoable::title),
            kept: kept.chain(planned.stays()).collect(),
            approvals_taken_back: &planned.plan.approvals_taken_back,
            resume_hint: hint("resume"),
            rollback_hint: hint("rollback"),
            undo_hint: hint("undo"),
        });
        return;
    }
    let lanes = last.map(|act| act.lanes.as_slice()).unwrap_or_default();
    let lanes = first_few(lanes.iter().map(|(lane, _)| lane.to_string()), LANES_NAMED_MAX);
    ui::say(format!("rolled back {} to {}", lanes.unwrap_or_default(), planned.plan.to));
    crate::drive::say_words(context, state, Occasion::RolledBack);
    rewind::say_next(state, "undo");
}

/// What `--to` names.
struct Aim {
    /// In words that hold for each lane.
    to: String,
    /// The stage, if it is one.
    stage: Option<Stage>,
    /// The lane, if it names one.
    lane: Option<LanePath>,
    /// Whether it is of the folder that lanes share.
    shared: bool,
    /// The points, if it is no stage.
    points: Vec<Point>,
}

impl Aim {
    /// Where lanes begin.
    fn start() -> Self {
        let stage = Stage::BeforeLaneStart;
        Self {
            to: stage.as_str().to_owned(),
            stage: Some(stage),
            lane: None,
            shared: false,
            points: Vec::new(),
        }
    }

    fn new(all: &[Point], state: &RunState, args: &RollbackArgs) -> Result<Self> {
        let to = args.to.as_deref().unwrap_or(Stage::BeforeLaneStart.as_str());
        let whole = |stage| Self {
            to: to.to_owned(),
            stage,
            lane: None,
            shared: false,
            points: Vec::new(),
        };
        if let Some(stage) = rewind::stage_of(to) {
            return Ok(whole(Some(stage)));
        }
        if let Some((wanted, stage)) = rewind::lane_and_stage(to) {
            let lane = Self::lane_named(all, state, args, wanted)?;
            return Ok(Self {
                to: stage.as_str().to_owned(),
                shared: rewind::in_place(state).contains(&lane),
                lane: Some(lane),
                ..whole(Some(stage))
            });
        }
        let points = rewind::named(all, state, to, args.lane.as_deref());
        let Some(first) = points.first() else {
            return Err(rewind::none(all, state, to, args.lane.as_deref()));
        };
        // What is of one workspace chooses it.
        let alone = points.iter().all(|p| p.lane == first.lane);
        let shared = alone && first.lane.is_none();
        let lane = first.lane.clone().filter(|_| alone);
        Ok(Self { lane, shared, points, ..whole(None) })
    }

    /// The lane of `LANE@STAGE`.
    fn lane_named(
        all: &[Point],
        state: &RunState,
        args: &RollbackArgs,
        wanted: &str,
    ) -> Result<LanePath> {
        let lanes: Vec<LanePath> = state
            .lanes()
            .filter(|(path, lane)| lane.task.is_none() && fits(args, path))
            .map(|(path, _)| path)
            .filter(|path| rewind::is_lane(path, wanted))
            .collect();
        match lanes.as_slice() {
            [one] => Ok(one.clone()),
            [] => {
                let to = args.to.as_deref().unwrap_or_default();
                Err(rewind::none(all, state, to, args.lane.as_deref()))
            }
            many => {
                let names: Vec<String> = many.iter().map(ToString::to_string).collect();
                let message = format!("`{wanted}` could mean: {}", names.join(", "));
                Err(CommandError::usage("no-checkpoint", message).hint("write its phase too"))
            }
        }
    }
}

/// Whether a lane is among those that the command line chooses.
fn fits(args: &RollbackArgs, path: &LanePath) -> bool {
    args.phase.as_ref().is_none_or(|p| *p == path.phase)
        && args.lane.as_ref().is_none_or(|l| rewind::is_lane(path, l))
}

/// The lanes that are meant and have begun.
fn selected(state: &RunState, args: &RollbackArgs, aim: &Aim) -> Result<Vec<LanePath>> {
    let fits = |path: &LanePath| fits(args, path);
    if let Some((path, _)) =
        state.lanes().find(|(path, lane)| lane.task.is_some() && args.lane.is_some() && fits(path))
    {
        let whole = state.parent_of(&path);
        let message = format!("{path} is a task; it is rolled back with its lane {whole}");
        return Err(CommandError::usage("no-lane", message)
            .hint(remedy![Words "`--lane {whole}`; ", Piton "retry", Words " runs a task again"]));
    }
    let shared = rewind::in_place(state);
    let meant = |path: &LanePath| match &aim.lane {
        _ if aim.shared => shared.contains(path),
        Some(lane) => lane == path,
        None => true,
    };
    let lanes: Vec<LanePath> = state
        .lanes()
        .filter(|(path, lane)| fits(path) && lane.work.is_some() && lane.task.is_none())
        .map(|(path, _)| path)
        .filter(meant)
        .collect();
    if let (Some(lane), false) = (&args.lane, state.lanes().any(|(path, _)| fits(&path))) {
        let known: Vec<String> = state.lanes().map(|(path, _)| path.to_string()).collect();
        return Err(CommandError::usage("no-lane", format!("there is no lane `{lane}`"))
            .hint(format!("the lanes are: {}", known.join(", "))));
    }
    if lanes.is_empty() {
        return Err(CommandError::usage("no-lane", "no selected lane has started")
            .hint(remedy![Piton "status", Words " shows the lanes; `--lane` and `--phase` choose among them"]));
    }
    let left_out: Vec<String> =
        shared.iter().filter(|p| !lanes.contains(p)).map(ToString::to_string).collect();
    if lanes.iter().any(|p| shared.contains(p)) && !left_out.is_empty() {
        let message = format!("{} work in the same folder", left_out.join(", "));
        let (first, start) = (&lanes[0], Stage::BeforeLaneStart.as_str());
        return Err(CommandError::usage("shared-folder", message)
            .hint(
                "lanes that share a folder are rolled back together: leave out --lane and --phase",
            )
            .hint(format!(
                "`--to {first}@{start}` takes all of them back to where {first} began"
            )));
    }
    Ok(lanes)
}

fn plan(store: &mut Store, loaded: &Loaded, args: &RollbackArgs) -> Result<Rewind> {
    let state = &loaded.state;
    let all = rewind::points(store, loaded)?;
    let mut aim = Aim::new(&all, state, args)?;
    let lanes = selected(state, args, &aim)?;
    let start = Aim::start();
    if lanes.iter().all(|path| merge_of(state, path).is_some()) {
        aim = Aim::start();
    }
    refuse_behind(state, &lanes, &aim)?;
    refuse_merged_elsewhere(state, &lanes)?;
    let mut intent = rewind::intent(RewindKind::Rollback, &aim.to, lanes.clone());
    intent.stage = aim.stage;
    let (mut targets, mut merges) = (Vec::new(), Vec::new());
    let mut since = u64::MAX;
    let moved = rewind::moved(store, loaded)?;
    for path in &lanes {
        let Some(work) = state.lane(path).and_then(|l| l.work.as_deref()) else { continue };
        let merge = merge_of(state, path);
        if work.isolation.is_in_place() {
            merges.extend(merge);
            continue;
        }
        let aim = if merge.is_some() { &start } else { &aim };
        merges.extend(merge);
        let (event, target) = lane_target(&all, &moved, state, path, aim)?;
        since = since.min(event);
        intent.points.push((path.clone(), event));
        if !work.is_removed() {
            targets.extend(target);
        }
    }
    if lanes.iter().any(|p| rewind::in_place(state).contains(p)) {
        let root = root_point(&all, state, &lanes, &aim);
        let point = root.ok_or_else(|| rewind::none(&all, state, &aim.to, None))?;
        since = since.min(point.event);
        let shared = rewind::in_place(state).into_iter();
        intent.points.extend(shared.map(|path| (path, point.event)));
        let windows = rewind::windows(store, loaded, point.event)?;
        targets.push(RewindTarget {
            target: point.commit,
            windows,
            exact: args.exact,
            ..RewindTarget::default()
        });
    }
    let order = rewind::merges(store, loaded)?;
    merges.sort_by_key(|m: &Revert| order.iter().position(|l| *l == m.lane));
    intent.after_event = since;
    Ok(Rewind { intent, targets, merges })
}

/// Refuses a point that a lane was taken back behind: it would begin with other files than that, and the
/// way there is an undo.
fn refuse_behind(state: &RunState, lanes: &[LanePath], aim: &Aim) -> Result<()> {
    let meant = lanes.iter().filter(|path| aim.lane.as_ref().is_none_or(|lane| lane == *path));
    for path in meant.filter(|path| merge_of(state, path).is_none()) {
        let Some(work) = state.lane(path).and_then(|l| l.work.as_deref()) else { continue };
        // The folder that lanes share has one past for all of them.
        let is_behind = match aim.stage {
            _ if work.isolation.is_in_place() => false,
            Some(stage) => work.record(stage).is_some_and(|r| r.status == StageStatus::RolledBack),
            None => work.begins_again(),
        };
        if !is_behind {
            continue;
        }
        let (to, stands) = (&aim.to, work.stage().map_or("no stage", Stage::as_str));
        let message = format!("{path} was already rolled back behind `{to}`, to {stands}");
        let error = CommandError::usage("no-checkpoint", message);
        let run = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
        let error = error.hint(remedy![Piton "resume {run}", Words " continues from there"]);
        let own = |act: &&Undoable| !act.undone && act.lanes.iter().any(|(lane, _)| lane == path);
        return Err(match state.undo.iter().rev().find(own) {
            Some(Undoable { act: Act::Rollback, id, .. }) => error.hint(remedy![
                Piton "undo {run} --act {id}",
                Words " brings back what that rollback took"
            ]),
            _ => error,
        });
    }
    Ok(())
}

/// Refuses to take a lane back that others merged through its pull request, where base has that: it is
/// theirs to take back, and only then is the lane where a rollback would say it is.
fn refuse_merged_elsewhere(state: &RunState, lanes: &[LanePath]) -> Result<()> {
    for path in lanes {
        let work = state.lane(path).and_then(|l| l.work.as_deref());
        let merged = |work: &&LaneWork| {
            work.merged().is_some_and(|merged| merged.by == MergedBy::PullRequest)
        };
        let Some(work) = work.filter(merged) else { continue };
        let request = sanitize(work.pull_request.as_deref().unwrap_or("its pull request"));
        let (message, base) = (format!("{path} was merged through {request}"), &work.base_branch);
        if !is_in_base(Path::new(&state.root), work) {
            let base = sanitize(base);
            ui::say(format!("warning: {message}; {base} does not have it here and is not changed"));
            continue;
        }
        let there = format!("revert it where it was merged, or in {} by hand", sanitize(base));
        return Err(CommandError::usage("not-rewound", message)
            .hint(format!("{there} (`git revert COMMIT`)"))
            .hint("`--lane` rolls back other lanes without it"));
    }
    Ok(())
}

/// Whether base has anything of what a lane did, by whatever commit: else a revert of it does nothing.
fn is_in_base(root: &Path, work: &LaneWork) -> bool {
    let (Some(start), Some(done)) = (&work.base_sha, work.committed()) else { return false };
    let Some(base) = checks::find_base(root, &work.base_branch) else { return false };
    let range = (start.as_str(), done.commit.as_str());
    let tried = merge::revert(root, &base.commit, range, "look", &Identity::Configured, 0);
    !matches!(tried, Ok(merge::Revert::Nothing))
}

/// The merge of a lane that has to be taken back from base: the lane then starts over.
fn merge_of(state: &RunState, path: &LanePath) -> Option<Revert> {
    let work = state.lane(path)?.work.as_deref()?;
    let merged = work.merged().filter(|m| m.by == MergedBy::Queue)?;
    Some(Revert {
        lane: path.clone(),
        base_branch: work.base_branch.clone(),
        merged_from: merged.from.clone()?,
        merged_to: merged.to.clone()?,
        from: String::new(),
        to: String::new(),
    })
}

/// The point of the project's root: the earliest of that stage among the lanes, so that none is left
/// half way.
fn root_point(all: &[Point], state: &RunState, lanes: &[LanePath], aim: &Aim) -> Option<Point> {
    let Some(stage) = aim.stage else {
        return aim.points.iter().find(|p| p.lane.is_none()).cloned();
    };
    let meant = lanes.iter().filter(|path| aim.lane.as_ref().is_none_or(|l| l == *path));
    let points = meant.filter_map(|path| {
        let lane = state.lane(path).filter(|l| l.isolation.is_in_place())?;
        rewind::of_stage(all, path, lane, stage)
    });
    points.min_by_key(|p| p.event)
}

/// Where the worktree of a lane goes back to.
fn lane_target(
    all: &[Point],
    moved: &[(LanePath, u64)],
    state: &RunState,
    path: &LanePath,
    aim: &Aim,
) -> Result<(u64, Option<RewindTarget>)> {
    let none = || {
        let lane = path.to_string();
        rewind::none(all, state, &aim.to, Some(&lane))
            .hint("`--lane` and `--phase` select the lanes to roll back")
    };
    let lane = state.lane(path).ok_or_else(none)?;
    let work = lane.work.as_deref().ok_or_else(none)?;
    let target = |commit: &str, head: Option<String>| RewindTarget {
        lane: Some(path.clone()),
        dir: work.dir.clone(),
        target: commit.to_owned(),
        branch: work.branch.clone(),
        head_to: head,
        exact: true,
        ..RewindTarget::default()
    };
    let Some(stage) = aim.stage else {
        let point = aim.points.iter().find(|p| p.lane.as_ref() == Some(path)).ok_or_else(none)?;
        if moved.iter().any(|(lane, event)| lane == path && *event > point.event) {
            let message = format!("{path} was rebased after `{}`", aim.to);
            return Err(CommandError::usage("no-checkpoint", message).hint(
                remedy![Words "roll back to a stage, or restore files with ", Piton "restore"],
            ));
        }
        return Ok((point.event, Some(target(&point.commit, point.head.clone()))));
    };
    let began = work.record(Stage::BeforeLaneStart);
    // Records of the time before it began anew tell of other files: it has none yet.
    let is_of_now = |r: &&StageRecord| began.is_none_or(|began| r.event >= began.event);
    let ready = work.record(Stage::AfterLaneStart).filter(is_of_now);
    let is_there = stage != Stage::AfterLaneStart || ready.is_some();
    let record = work.record(stage).filter(|_| is_there).ok_or_else(none)?;
    let point = rewind::of_stage(all, path, lane, stage).filter(|p| p.event >= record.event);
    // Where the lane was put on a newer base since it began, both its files and its branch go back
    // to the one it started from.
    let starts = matches!(stage, Stage::BeforeLaneStart | Stage::AfterLaneStart);
    let (commit, head) = if starts {
        let fresh = ready.and_then(|r| r.snapshot.clone());
        let head = ready.and_then(|r| r.base_sha.clone());
        let base = || began.and_then(|r| r.base_sha.clone());
        (fresh.or_else(|| point.map(|p| p.commit)), head.or_else(base))
    } else {
        (record.snapshot.clone(), point.and_then(|p| p.head))
    };
    let event = match stage {
        Stage::AfterLaneStart => began.map_or(record.event, |r| r.event + 1),
        _ => record.event,
    };
    // What a fresh worktree has of files that no snapshot holds is what the commit has.
    let large = head.clone().filter(|_| starts);
    Ok((event, commit.map(|commit| RewindTarget { large, ..target(&commit, head) })))
}

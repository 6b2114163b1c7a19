//! The checkpoints of a run that hold files, and the names they go by.
//!
//! A name that could mean several is never guessed at: all it could mean are told.

use piton_core::event::Event;
use piton_core::lane::{SnapshotRef, Stage};
use piton_core::lane_state::{Act, StageRecord};
use piton_core::state::LaneState;
use piton_core::{LanePath, RunState, Timestamp, remedy};
use piton_engine::Store;
use piton_engine::store::Loaded;
use piton_view::At;
use piton_view::show::Point;

use crate::error::{CommandError, Result};

/// What the workspace of the project is called before an `@`.
const PROJECT: &str = "project";
/// Fewest characters of a commit's name that count as one.
const COMMIT_CHARS_MIN: usize = 7;
/// Checkpoints that are named where one is not known, the newest; more would drown the answer.
const NAMES_TOLD_MAX: usize = 8;

/// All points of a run, the oldest first.
pub fn points(store: &mut Store, loaded: &Loaded) -> Result<Vec<Point>> {
    let mut found = Vec::new();
    store.each_event(&loaded.row, 0, |seq, at, event| {
        of_event(&loaded.state, (seq, at), event, &mut found);
    })?;
    Ok(found)
}

fn of_event(state: &RunState, (seq, at): (u64, Timestamp), event: &Event, found: &mut Vec<Point>) {
    let workspace = |lane: &LanePath| {
        let own = state.lane(lane).is_some_and(|l| !l.isolation.is_in_place());
        own.then(|| lane.clone())
    };
    let mut add = |lane: Option<LanePath>, s: &SnapshotRef, name, stage| {
        let (commit, head, degraded) = (s.commit.clone(), s.head.clone(), s.degraded.clone());
        found.push(Point { lane, commit, head, event: seq, name, stage, at: At(at), degraded });
    };
    match event {
        Event::LaneBegun(e) => {
            if let Some(s) = &e.snapshot {
                let name = format!("{}@{}", e.lane, Stage::BeforeLaneStart);
                add(workspace(&e.lane), s, name, Some(Stage::BeforeLaneStart));
            }
        }
        Event::LaneReady(e) => {
            if let Some(s) = &e.snapshot {
                let name = format!("{}@{}", e.lane, Stage::AfterLaneStart);
                add(workspace(&e.lane), s, name, Some(Stage::AfterLaneStart));
            }
        }
        Event::StepStarted(e) => {
            if let Some(s) = &e.before {
                add(workspace(&e.step.lane()), s, format!("{}#{}.before", e.step, e.attempt), None);
            }
        }
        Event::StepFinished(e) => {
            if let Some(s) = &e.after {
                add(workspace(&e.step.lane()), s, format!("{}#{}", e.step, e.attempt), None);
            }
        }
        Event::CheckpointRecorded(e) => {
            for (lane, s) in &e.snapshots {
                add(lane.clone(), s, e.name.clone(), None);
            }
        }
        Event::RewindIntended(e) => {
            for r in &e.workspaces {
                let name = format!("before-{}-{seq}", Act::from(e.kind).as_str());
                add(r.lane.clone(), &r.present, name, None);
            }
        }
        Event::LaneRemoved(e) => {
            if let Some(s) = &e.snapshot {
                add(workspace(&e.lane), s, format!("{}@removed", e.lane), None);
            }
        }
        _ => {}
    }
}

/// Whether a lane goes by a name: its id, or its phase and id.
pub fn is_lane(path: &LanePath, name: &str) -> bool {
    path.lane == name || path.to_string() == name
}

/// The stage that a word names.
pub fn stage_of(name: &str) -> Option<Stage> {
    Stage::ALL.into_iter().find(|s| s.as_str() == name)
}

/// The lane and the stage of `LANE@STAGE`.
pub fn lane_and_stage(name: &str) -> Option<(&str, Stage)> {
    name.rsplit_once('@').and_then(|(lane, stage)| Some((lane, stage_of(stage)?)))
}

/// The points a name stands for: a stage, `PHASE/LANE@STAGE`, an attempt, a manual checkpoint (also
/// that of one workspace, `PHASE/LANE@manual-1` or `project@manual-1`), or the beginning of a commit's
/// name.
pub fn named(all: &[Point], state: &RunState, name: &str, lane: Option<&str>) -> Vec<Point> {
    let fits = |path: &LanePath| lane.is_none_or(|l| is_lane(path, l));
    if let Some((wanted, stage)) = lane_and_stage(name) {
        return at_stage(all, state, stage, |path| is_lane(path, wanted) && fits(path));
    }
    if let Some(stage) = stage_of(name) {
        return at_stage(all, state, stage, fits);
    }
    if let Some((place, rest)) = name.rsplit_once('@')
        && !all.iter().any(|point| point.name == name)
    {
        let mut found = named(all, state, rest, None);
        found.retain(|point| match &point.lane {
            Some(lane) => is_lane(lane, place),
            None => place == PROJECT,
        });
        return found;
    }
    let is_commit = name.len() >= COMMIT_CHARS_MIN && name.bytes().all(|b| b.is_ascii_hexdigit());
    let mut found: Vec<Point> = Vec::new();
    for point in all.iter().filter(|p| p.lane.as_ref().is_none_or(fits)) {
        let without_phase = || point.name.split_once('/').is_some_and(|(_, rest)| rest == name);
        if point.name == name || (name.contains('/') && without_phase()) {
            // The newest of each workspace: an attempt that was taken back may have the same name.
            found.retain(|p| p.lane != point.lane || p.name != point.name);
            found.push(point.clone());
        } else if is_commit && point.commit.starts_with(name) {
            found.retain(|p| p.lane != point.lane || p.commit != point.commit);
            found.push(point.clone());
        }
    }
    let lanes: Vec<LanePath> = found.iter().filter_map(|p| p.lane.clone()).collect();
    // A lane stands for its tasks, unless one of them is named.
    let is_told_by_its_lane = |path: &LanePath| {
        let whole = state.parent_of(path);
        whole != *path && lanes.contains(&whole)
    };
    found.retain(|p| !p.lane.as_ref().is_some_and(is_told_by_its_lane));
    found
}

/// The points of a stage, of each lane that is meant; those of lanes that share a folder and found
/// the same files there are one.
fn at_stage(
    all: &[Point],
    state: &RunState,
    stage: Stage,
    meant: impl Fn(&LanePath) -> bool,
) -> Vec<Point> {
    let mut found: Vec<Point> = Vec::new();
    let lanes = state.lanes().filter(|(path, lane)| lane.task.is_none() && meant(path));
    for (path, lane) in lanes {
        let Some(point) = of_stage(all, &path, lane, stage) else { continue };
        let same = |p: &Point| p.lane.is_none() && point.lane.is_none() && p.commit == point.commit;
        if !found.iter().any(same) {
            found.push(point);
        }
    }
    found
}

/// The point of one lane at a stage.
pub fn of_stage(all: &[Point], path: &LanePath, lane: &LaneState, stage: Stage) -> Option<Point> {
    let workspace = (!lane.isolation.is_in_place()).then(|| path.clone());
    let record = lane.work.as_ref().and_then(|w| w.record(stage));
    let own = || all.iter().filter(|p| p.lane == workspace);
    if let Some((record, commit)) = record.and_then(|r| Some((r, r.snapshot.clone()?))) {
        let mut known = own().filter(|p| p.commit == commit && p.event <= record.event);
        let known = known.next_back().or_else(|| own().find(|p| p.commit == commit));
        return Some(Point {
            lane: workspace,
            // Its own commit at that point, if it was committed; else where its branch stood.
            head: record.head_sha.clone().or_else(|| known.and_then(|p| p.head.clone())),
            degraded: known.map(|p| p.degraded.clone()).unwrap_or_default(),
            commit,
            event: record.event,
            name: format!("{path}@{stage}"),
            stage: Some(stage),
            at: At(record.at),
        });
    }
    let name = format!("{path}@{stage}");
    if let Some(point) = all.iter().rfind(|p| p.name == name) {
        return Some(point.clone());
    }
    // A fresh worktree has the files of the point before it was made.
    let record = record.filter(|_| stage == Stage::BeforeLaneStart && workspace.is_some())?;
    let point = first_ready(all, path, record)?;
    let (event, at) = (record.event, At(record.at));
    Some(Point { event, at, name, stage: Some(stage), ..point.clone() })
}

/// The first snapshot of a lane's worktree since it last began.
fn first_ready<'a>(all: &'a [Point], path: &LanePath, began: &StageRecord) -> Option<&'a Point> {
    let own = |p: &&Point| p.lane.as_ref() == Some(path) && p.event > began.event;
    all.iter().filter(own).find(|p| p.stage == Some(Stage::AfterLaneStart))
}

/// The one point that a name stands for; `near` decides between those of several workspaces.
pub fn one(
    all: &[Point],
    state: &RunState,
    name: &str,
    lane: Option<&str>,
    near: Option<&Option<LanePath>>,
) -> Result<Point> {
    let mut found = named(all, state, name, lane);
    if lane.is_some() && found.iter().any(|p| p.lane.is_some()) {
        found.retain(|p| p.lane.is_some());
    }
    if found.len() > 1
        && let Some(near) = near
        && found.iter().any(|p| p.lane == *near)
    {
        found.retain(|p| p.lane == *near);
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(none(all, state, name, lane)),
        many => Err(CommandError::usage(
            "no-checkpoint",
            format!("`{name}` could mean: {}", candidates(many).join(", ")),
        )
        .hint("write one of these, or name its `--lane`")),
    }
}

/// What the points that a name could mean are called, each so that it is the only one.
fn candidates(points: &[Point]) -> Vec<String> {
    let called = |point: &Point| {
        let alone = points.iter().filter(|p| p.name == point.name).count() == 1;
        match &point.lane {
            _ if alone => point.name.clone(),
            Some(lane) => format!("{lane}@{}", point.name),
            None => format!("{PROJECT}@{}", point.name),
        }
    };
    points.iter().map(called).collect()
}

/// The refusal of a name that nothing goes by: it names the newest of what there is.
pub fn none(all: &[Point], state: &RunState, name: &str, lane: Option<&str>) -> CommandError {
    if let Some(lane) =
        lane.filter(|_| stage_of(name).is_none() && !named(all, state, name, None).is_empty())
    {
        let message = format!("`{name}` is not a checkpoint of lane {lane}");
        return CommandError::usage("no-checkpoint", message)
            .hint("leave out `--lane`, or name a checkpoint of that lane");
    }
    let wanted = lane_and_stage(name).map(|(wanted, _)| wanted).or(lane);
    let lanes: Vec<LanePath> =
        state.lanes().filter(|(_, l)| l.task.is_none()).map(|(path, _)| path).collect();
    let is_meant = |path: &LanePath| wanted.is_none_or(|wanted| is_lane(path, wanted));
    if let Some(wanted) = wanted.filter(|_| !lanes.iter().any(is_meant)) {
        let known: Vec<String> = lanes.iter().map(ToString::to_string).collect();
        return CommandError::usage("no-checkpoint", format!("there is no lane `{wanted}`"))
            .hint(format!("the lanes are: {}", known.join(", ")));
    }
    let of = wanted.map(|wanted| format!(" of {wanted}")).unwrap_or_default();
    let stage = lane_and_stage(name).map_or(name, |(_, stage)| stage.as_str());
    let message = format!("there is no checkpoint `{stage}`{of}");
    let error = CommandError::usage("no-checkpoint", message);
    let mut names: Vec<&str> = Vec::new();
    for point in all.iter().rev().filter(|p| p.lane.as_ref().is_none_or(is_meant)) {
        if names.len() < NAMES_TOLD_MAX && !names.contains(&&*point.name) {
            names.push(&point.name);
        }
    }
    if names.is_empty() {
        return error.hint("the run has no checkpoint yet");
    }
    error
        .hint(format!("the newest are {}", names.join(", ")))
        .hint(remedy![Piton "show RUN", Words " lists the checkpoints of a run"])
}

//! What rollback, restore and undo share: finding checkpoints, saying what will change, asking, and
//! driving the run just far enough to carry it out.

use piton_core::event::{Event, RewindIntended, RewindKind};
use piton_core::lane::Stage;
use piton_core::{LanePath, RunState};
use piton_engine::store::Loaded;
use piton_engine::world::{Rewind, RoomTarget};
use piton_engine::{Ending, Store};
use piton_workspace::restore;

use super::resume::acquire;
use crate::cli::DriveArgs;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::session::{self, Session};
use crate::ui;

/// Paths of each kind that are named before a question; the rest is counted.
const PATHS_NAMED_MAX: usize = 20;
/// Fewest characters of a commit's name that count as one.
const COMMIT_CHARS_MIN: usize = 7;

/// A point of a workspace that can be gone back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The lane; none for the project's root.
    pub lane: Option<LanePath>,
    /// The snapshot.
    pub commit: String,
    /// The number of its event.
    pub event: u64,
    /// Its name.
    pub name: String,
    /// The stage, where it is one.
    pub stage: Option<Stage>,
    /// What is not in it.
    pub degraded: usize,
}

/// The lanes of a run that share the project's root and have begun.
pub fn in_place(state: &RunState) -> Vec<LanePath> {
    let began = state.lanes().filter(|(_, l)| l.work.is_some() && l.isolation.is_in_place());
    began.map(|(path, _)| path).collect()
}

/// All points of a run, the oldest first.
pub fn points(store: &mut Store, loaded: &Loaded) -> Result<Vec<Point>> {
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let page = store.events(&loaded.row, after)?;
        let Some((last, ..)) = page.last() else { return Ok(found) };
        after = *last;
        for (seq, _, event) in &page {
            of_event(&loaded.state, *seq, event, &mut found);
        }
    }
}

fn of_event(state: &RunState, seq: u64, event: &Event, found: &mut Vec<Point>) {
    let room = |lane: &LanePath| {
        let own = state.lane(lane).is_some_and(|l| !l.isolation.is_in_place());
        own.then(|| lane.clone())
    };
    let mut add = |lane: Option<LanePath>, s: &piton_core::lane::SnapshotRef, name, stage| {
        let (commit, degraded) = (s.commit.clone(), s.degraded.len());
        found.push(Point { lane, commit, event: seq, name, stage, degraded });
    };
    match event {
        Event::LaneBegun(e) => {
            if let Some(s) = &e.snapshot {
                let name = format!("{}@{}", e.lane, Stage::BeforeLaneStart);
                add(room(&e.lane), s, name, Some(Stage::BeforeLaneStart));
            }
        }
        Event::LaneReady(e) => {
            if let Some(s) = &e.snapshot {
                let name = format!("{}@{}", e.lane, Stage::AfterLaneStart);
                add(room(&e.lane), s, name, Some(Stage::AfterLaneStart));
            }
        }
        Event::StepStarted(e) => {
            if let Some(s) = &e.before {
                add(room(&e.step.lane()), s, format!("{}#{}.before", e.step, e.attempt), None);
            }
        }
        Event::StepFinished(e) => {
            if let Some(s) = &e.after {
                add(room(&e.step.lane()), s, format!("{}#{}", e.step, e.attempt), None);
            }
        }
        Event::CheckpointRecorded(e) => {
            for (lane, s) in &e.snapshots {
                add(lane.clone(), s, e.name.clone(), None);
            }
        }
        Event::RewindIntended(e) => {
            for r in &e.rooms {
                let name = format!("before-{}-{seq}", word(e.kind));
                add(r.lane.clone(), &r.present, name, None);
            }
        }
        Event::LaneRemoved(e) => {
            if let Some(s) = &e.snapshot {
                add(room(&e.lane), s, format!("{}@removed", e.lane), None);
            }
        }
        _ => {}
    }
}

fn word(kind: RewindKind) -> &'static str {
    match kind {
        RewindKind::Restore => "restore",
        RewindKind::Undo => "undo",
        RewindKind::Rollback | RewindKind::Unknown => "rollback",
    }
}

/// The points a name stands for: a stage, `PHASE/LANE@STAGE`, an attempt, a manual checkpoint, or
/// the beginning of a commit's name. The newest of each workspace.
pub fn named(all: &[Point], state: &RunState, name: &str, lane: Option<&str>) -> Vec<Point> {
    let fits_lane = |p: &Point| match (lane, &p.lane) {
        (Some(wanted), Some(path)) => path.lane == wanted || path.to_string() == wanted,
        _ => true,
    };
    let is_commit = name.len() >= COMMIT_CHARS_MIN && name.bytes().all(|b| b.is_ascii_hexdigit());
    let stage = Stage::ALL.into_iter().find(|s| s.as_str() == name);
    let at_stage = |p: &Point| match stage {
        None => false,
        Some(stage) if p.stage == Some(stage) => true,
        Some(stage) => {
            let work = p.lane.as_ref().and_then(|l| state.lane(l)).and_then(|l| l.work.as_ref());
            let record = work.and_then(|w| w.record(stage));
            record.is_some_and(|r| r.snapshot.as_deref() == Some(p.commit.as_str()))
        }
    };
    let mut found: Vec<Point> = Vec::new();
    for point in all.iter().filter(|p| fits_lane(p)) {
        let short = point.lane.as_ref().map(|l| point.name.replacen(&l.to_string(), &l.lane, 1));
        let hit = point.name == name
            || short.as_deref() == Some(name)
            || at_stage(point)
            || (is_commit && point.commit.starts_with(name));
        if hit {
            found.retain(|p| p.lane != point.lane);
            found.push(point.clone());
        }
    }
    found
}

/// The files an attempt in the project's root found and left, for all since an event.
pub fn windows(
    store: &mut Store,
    loaded: &Loaded,
    since: u64,
) -> Result<Vec<(String, Option<String>)>> {
    let mut open: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    let mut all = Vec::new();
    let mut after = 0;
    loop {
        let page = store.events(&loaded.row, after)?;
        let Some((last, ..)) = page.last() else { break };
        after = *last;
        for (seq, _, event) in &page {
            match event {
                Event::StepStarted(e) => {
                    let before = e.before.as_ref().map(|b| b.commit.clone());
                    open.extend(before.map(|b| (e.step.to_string(), b)));
                }
                Event::StepFinished(e) => {
                    let before = open.remove(&e.step.to_string());
                    if let (Some(before), true) = (before, *seq > since) {
                        all.push((before, e.after.as_ref().map(|a| a.commit.clone())));
                    }
                }
                _ => {}
            }
        }
    }
    all.extend(open.into_values().map(|before| (before, None)));
    Ok(all)
}

/// Prints what a rewind would change in each work tree; true when there is something.
pub fn print_plan(context: &Context, rewind: &Rewind, present: &[Option<String>]) -> Result<bool> {
    let mut any = !rewind.merges.is_empty() || !rewind.intent.lanes.is_empty();
    for (target, present) in rewind.targets.iter().zip(present) {
        let name = target.lane.as_ref().map_or("the project".to_owned(), ToString::to_string);
        let Some(present) = present else {
            ui::say(&format!("{name}: its worktree comes back"));
            any = true;
            continue;
        };
        let changes = restore::diff(&context.project.root, present, &target.target);
        let changes = changes.map_err(|e| CommandError::failed("snapshot", e.to_string()))?;
        any |= !changes.is_empty();
        ui::say(&format!("{name}: {} files change", changes.len()));
        for change in changes.iter().take(PATHS_NAMED_MAX) {
            let verb = match change.kind {
                restore::ChangeKind::Added => "restore",
                restore::ChangeKind::Deleted => "delete ",
                _ => "change ",
            };
            let path = String::from_utf8_lossy(&change.path);
            ui::say(&format!("  {verb} {}", ui::text::sanitize(&path)));
        }
        if changes.len() > PATHS_NAMED_MAX {
            ui::say(&format!("  and {} more", changes.len() - PATHS_NAMED_MAX));
        }
        if let Some(to) = &target.head_to {
            let now = piton_workspace::refs::value(
                &context.project.root,
                &format!("refs/heads/{}", target.branch),
            );
            let from = now.as_deref().map(ui::lane_words::short).unwrap_or_default();
            let to = ui::lane_words::short(to);
            ui::say(&format!("  branch  {} from {from} to {to}", target.branch));
        }
    }
    for merge in &rewind.merges {
        let (lane, base) = (&merge.lane, &merge.base_branch);
        ui::say(&format!("{lane}: a commit on {base} takes back what it merged"));
    }
    for lane in &rewind.intent.lanes {
        ui::say(&format!("{lane}: its steps after that point run again"));
    }
    Ok(any)
}

/// Asks whether to go on; without a terminal only `--yes` does.
pub fn confirm(context: &Context, question: &str) -> Result<()> {
    if context.yes {
        return Ok(());
    }
    if !context.interactive || context.json {
        let message = "nothing was changed: nobody is here to be asked";
        return Err(CommandError::new(Kind::Waiting, "not-confirmed", message)
            .hint("look at the plan with `--dry-run`, then say `--yes`"));
    }
    match ui::ask(question, &[('y', "yes"), ('n', "no")], Some('n'), &mut || false) {
        Some('y') => Ok(()),
        Some(_) => Err(CommandError::new(Kind::Waiting, "not-confirmed", "nothing was changed")),
        None => Err(CommandError::new(Kind::Interrupted(2), "interrupted", "no answer")),
    }
}

/// Drives a run that nobody drives just far enough to carry a rewind out.
pub fn drive(
    context: &Context,
    store: &mut Store,
    run_id: &str,
    rewind: Rewind,
    takeover: bool,
) -> Result<Ending> {
    let row = store.load(run_id)?.row;
    let lease = acquire(store, &row, takeover)?;
    let loaded = store.load(run_id)?;
    let plan = store.plan(&loaded.state)?;
    let opening = vec![session::attached(context, &lease, takeover)];
    let live = plan.clone();
    let session = Session { rewind: Some(rewind), ..Session::new(loaded, plan, live, opening) };
    let ending = session::drive(context, store, session, lease.epoch, &DriveArgs::default())?;
    match &ending.refused {
        None => Ok(ending),
        Some(why) => {
            Err(CommandError::failed("not-rewound", format!("nothing was changed: {why}"))
                .hint("everything is as before; put that right and try again"))
        }
    }
}

/// An intent that is still to be filled in.
pub fn intent(kind: RewindKind, to: &str, lanes: Vec<LanePath>) -> RewindIntended {
    RewindIntended {
        kind,
        to: to.to_owned(),
        stage: None,
        after_event: 0,
        lanes,
        rooms: Vec::new(),
        reverts: Vec::new(),
        undoes: None,
        by: Context::who(),
    }
}

/// The target that is the project's root.
pub fn root_target(commit: &str) -> RoomTarget {
    RoomTarget { target: commit.to_owned(), ..RoomTarget::default() }
}

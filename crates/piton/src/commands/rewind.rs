//! What rollback, restore and undo share: finding checkpoints, saying what will change, asking, and
//! driving the run just far enough to carry it out.

use piton_core::event::{Event, RewindIntended, RewindKind};
use piton_core::lane::{Missed, Stage};
use piton_core::lane_state::StageRecord;
use piton_core::state::LaneState;
use piton_core::{LanePath, RunState, Timestamp};
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
    /// When it was recorded.
    pub at: Timestamp,
    /// What is not in it.
    pub degraded: Vec<Missed>,
}

/// The lanes of a run that share the project's root and have begun.
pub fn in_place(state: &RunState) -> Vec<LanePath> {
    let began = state.lanes().filter(|(_, l)| l.work.is_some() && l.isolation.is_in_place());
    began.map(|(path, _)| path).collect()
}

/// The lanes whose work was merged, the last merge first: so they can be taken back one by one.
pub fn merges(store: &mut Store, loaded: &Loaded) -> Result<Vec<LanePath>> {
    let mut lanes = Vec::new();
    super::show::history::each(store, &loaded.row, |_, _, event| {
        if let Event::LaneMerged(e) = event {
            lanes.retain(|l| *l != e.lane);
            lanes.insert(0, e.lane.clone());
        }
    })?;
    Ok(lanes)
}

/// When lanes were put on a newer base.
pub fn moved(store: &mut Store, loaded: &Loaded) -> Result<Vec<(LanePath, u64)>> {
    let mut all = Vec::new();
    let mut bases = std::collections::BTreeMap::new();
    super::show::history::each(store, &loaded.row, |seq, _, event| {
        let (lane, base) = match event {
            Event::LaneBegun(e) => (&e.lane, e.base_sha.clone()),
            Event::LaneRebased(e) => (&e.lane, Some(e.onto.clone())),
            Event::LaneReopened(e) if e.onto.is_some() => (&e.lane, e.onto.clone()),
            _ => return,
        };
        let before = bases.insert(lane.clone(), base.clone());
        if before.is_some_and(|before| before != base) {
            all.push((lane.clone(), seq));
        }
    })?;
    Ok(all)
}

/// All points of a run, the oldest first.
pub fn points(store: &mut Store, loaded: &Loaded) -> Result<Vec<Point>> {
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let page = store.events(&loaded.row, after)?;
        let Some((last, ..)) = page.last() else { return Ok(found) };
        after = *last;
        for (seq, at, event) in &page {
            of_event(&loaded.state, (*seq, *at), event, &mut found);
        }
    }
}

fn of_event(state: &RunState, (seq, at): (u64, Timestamp), event: &Event, found: &mut Vec<Point>) {
    let room = |lane: &LanePath| {
        let own = state.lane(lane).is_some_and(|l| !l.isolation.is_in_place());
        own.then(|| lane.clone())
    };
    let mut add = |lane: Option<LanePath>, s: &piton_core::lane::SnapshotRef, name, stage| {
        let (commit, degraded) = (s.commit.clone(), s.degraded.clone());
        found.push(Point { lane, commit, event: seq, name, stage, at, degraded });
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
    let stage_of = |name: &str| Stage::ALL.into_iter().find(|s| s.as_str() == name);
    let of_lane = name.rsplit_once('@').and_then(|(l, s)| Some((l, stage_of(s)?)));
    let (lane, stage) = match of_lane {
        Some((lane, stage)) => (Some(lane), Some(stage)),
        None => (lane, stage_of(name)),
    };
    let is = |path: &LanePath, wanted: &str| path.lane == wanted || path.to_string() == wanted;
    let fits_lane = |p: &Point| match (lane, &p.lane) {
        (Some(wanted), Some(path)) => is(path, wanted),
        _ => true,
    };
    let is_commit = name.len() >= COMMIT_CHARS_MIN && name.bytes().all(|b| b.is_ascii_hexdigit());
    // A point of the root is of each lane that works there.
    let at_stage = |p: &Point| {
        let own = |path: &LanePath, l: &LaneState| match &p.lane {
            Some(lane) => path == lane,
            None => l.isolation.is_in_place() && lane.is_none_or(|wanted| is(path, wanted)),
        };
        let mut works = state.lanes().filter(|(path, l)| own(path, l));
        stage.is_some_and(|stage| {
            let is_record = |r: &StageRecord| r.snapshot.as_deref() == Some(p.commit.as_str());
            let recorded = |l: &LaneState| l.work.as_ref()?.record(stage).map(is_record);
            (p.stage == Some(stage) && (p.lane.is_some() || of_lane.is_none()))
                || works.any(|(_, l)| recorded(l) == Some(true))
        })
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
    let shared = in_place(&loaded.state);
    let mut open: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    let mut all = Vec::new();
    let mut after = 0;
    loop {
        let page = store.events(&loaded.row, after)?;
        let Some((last, ..)) = page.last() else { break };
        after = *last;
        for (seq, _, event) in &page {
            match event {
                Event::StepStarted(e) if shared.contains(&e.step.lane()) => {
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
pub fn print_plan(
    context: &Context,
    loaded: &Loaded,
    rewind: &Rewind,
    present: &[Option<String>],
) -> Result<bool> {
    let stands = |lane: &LanePath| {
        let work = loaded.state.lane(lane).and_then(|l| l.work.as_ref());
        // Until it goes on, a lane knows where it was last taken back to.
        work.and_then(|w| w.rolled_back.as_ref()) == Some(&rewind.intent.to)
    };
    let mut any = !rewind.merges.is_empty()
        || rewind.intent.undoes.is_some()
        || !rewind.intent.lanes.iter().all(stands);
    for (target, present) in rewind.targets.iter().zip(present) {
        let name = target.lane.as_ref().map_or("the project".to_owned(), ToString::to_string);
        let Some(present) = present else {
            ui::say(&format!("{name}: its worktree comes back"));
            any = true;
            continue;
        };
        any |= print_room(context, loaded, target, &name, present)?;
    }
    for merge in &rewind.merges {
        let (lane, base) = (&merge.lane, &merge.base_branch);
        let what = match rewind.intent.kind {
            RewindKind::Undo => "undoes what was done to it there",
            _ => "takes back what it merged",
        };
        ui::say(&format!("{lane}: a commit on {base} {what}"));
    }
    for lane in &rewind.intent.lanes {
        ui::say(&format!("{lane}: its steps after that point run again"));
    }
    Ok(any)
}

/// Prints what changes in one work tree; true when something does.
fn print_room(
    context: &Context,
    loaded: &Loaded,
    target: &RoomTarget,
    name: &str,
    present: &str,
) -> Result<bool> {
    let failed = |why: String| CommandError::failed("snapshot", why);
    let rooms = super::look::rooms(context, loaded)?;
    let preview = rooms.preview(target, present).map_err(failed)?;
    let changes = preview.changes;
    ui::say(&format!("{name}: {} files change", changes.len()));
    for change in changes.iter().take(PATHS_NAMED_MAX) {
        let verb = match change.kind {
            restore::ChangeKind::Added => "restore",
            restore::ChangeKind::Deleted => "delete ",
            _ => "change ",
        };
        ui::say(&format!("  {verb} {}", shown(&change.path)));
    }
    more(changes.len());
    for kept in preview.kept.iter().take(PATHS_NAMED_MAX) {
        ui::say(&format!("  stays   {} ({})", shown(&kept.path), kept.why));
    }
    more(preview.kept.len());
    for missed in preview.missed.iter().take(PATHS_NAMED_MAX) {
        let (path, why) = (shown(&missed.path), missed.why);
        ui::say(&format!("  stays   {path} (not in the checkpoint: {why})"));
    }
    more(preview.missed.len());
    let Some(to) = &target.head_to else { return Ok(!changes.is_empty()) };
    let branch = format!("refs/heads/{}", target.branch);
    let now = piton_workspace::refs::value(&context.project.root, &branch);
    let from = now.as_deref().map(ui::lane_words::short).unwrap_or_default();
    let words = ui::lane_words::short(to);
    ui::say(&format!("  branch  {} from {from} to {words}", target.branch));
    Ok(!changes.is_empty() || now.as_deref() != Some(to))
}

fn shown(path: &[u8]) -> String {
    ui::text::sanitize(&String::from_utf8_lossy(path))
}

fn more(count: usize) {
    if count > PATHS_NAMED_MAX {
        ui::say(&format!("  and {} more", count - PATHS_NAMED_MAX));
    }
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

/// Finishes, or takes back, what a rollback that was killed had begun: what follows is planned on
/// files and steps as they then are.
pub fn settle(
    context: &Context,
    store: &mut Store,
    loaded: Loaded,
    takeover: bool,
) -> Result<Loaded> {
    if loaded.state.rewinding.is_none() {
        return Ok(loaded);
    }
    let run_id = loaded.row.run_id.clone();
    let lease = acquire(store, &loaded.row, takeover)?;
    let loaded = store.load(&run_id)?;
    let plan = store.plan(&loaded.state)?;
    let opening = vec![session::attached(context, &lease, takeover)];
    let session = Session { settle: true, ..Session::new(loaded, plan.clone(), plan, opening) };
    session::drive(context, store, session, lease.epoch, &DriveArgs::default())?;
    Ok(store.load(&run_id)?)
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
        points: Vec::new(),
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

//! What rollback, restore and undo share: finding checkpoints, saying what will change, asking, and
//! driving the run just far enough to carry it out.

mod head;
mod plan;
mod points;
mod tasks;

use piton_core::event::{Event, LaneMerged, MergedBy, RewindIntended, RewindKind};
use piton_core::{LanePath, RunState, Status};
use piton_engine::store::Loaded;
use piton_engine::world::{Rewind, RoomTarget};
use piton_engine::{Drive, Ending, Store};

pub use head::head_left;
pub use plan::Planned;
pub use points::{is_lane, lane_and_stage, named, none, of_stage, one, points, stage_of};

use super::resume::acquire;
use crate::context::Context;
use crate::drive;
use crate::error::{CommandError, Kind, Result};
use crate::ui;

/// The lanes of a run that share the project's root and have begun.
pub fn in_place(state: &RunState) -> Vec<LanePath> {
    let began = state.lanes().filter(|(_, l)| l.work.is_some() && l.isolation.is_in_place());
    began.map(|(path, _)| path).collect()
}

/// The lanes whose work was merged, the last merge first: so they can be taken back one by one.
pub fn merges(store: &mut Store, loaded: &Loaded) -> Result<Vec<LanePath>> {
    let mut lanes = Vec::new();
    store.each_event(&loaded.row, 0, |_, _, event| {
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
    store.each_event(&loaded.row, 0, |seq, _, event| {
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

/// The files an attempt in the project's root found and left, for all since an event.
pub fn windows(
    store: &mut Store,
    loaded: &Loaded,
    since: u64,
) -> Result<Vec<(String, Option<String>)>> {
    let shared = in_place(&loaded.state);
    let mut open: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    let mut all = Vec::new();
    store.each_event(&loaded.row, 0, |seq, _, event| match event {
        Event::StepStarted(e) if shared.contains(&e.step.lane()) => {
            let before = e.before.as_ref().map(|b| b.commit.clone());
            open.extend(before.map(|b| (e.step.to_string(), b)));
        }
        Event::StepFinished(e) => {
            let before = open.remove(&e.step.to_string());
            if let (Some(before), true) = (before, seq > since) {
                all.push((before, e.after.as_ref().map(|a| a.commit.clone())));
            }
        }
        _ => {}
    })?;
    all.extend(open.into_values().map(|before| (before, None)));
    Ok(all)
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
pub fn finish(
    context: &Context,
    store: &mut Store,
    loaded: Loaded,
    takeover: bool,
) -> Result<Loaded> {
    if loaded.state.rewinding.is_none() {
        return Ok(loaded);
    }
    let run_id = loaded.row.run_id.clone();
    let lease = acquire(context, store, &loaded.row, takeover)?;
    let loaded = store.load(&run_id)?;
    let plan = store.plan(&loaded.state)?;
    let how = Drive::FinishRewind;
    drive::drive_without_steps(context, store, loaded, plan, (&lease, takeover), how)?;
    Ok(store.load(&run_id)?)
}

/// The same for a command that only asks something of a run, from wherever it is given.
pub fn finish_wherever(context: &Context, store: &mut Store, loaded: Loaded) -> Result<Loaded> {
    if loaded.state.rewinding.is_none() {
        return Ok(loaded);
    }
    let elsewhere = context.of_run(&loaded.state.root)?;
    let there = elsewhere.as_ref().unwrap_or(context);
    super::request::refuse_moved(there, &loaded)?;
    finish(there, store, loaded, false)
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
    let lease = acquire(context, store, &row, takeover).map_err(|error| driven(error, run_id))?;
    let loaded = store.load(run_id)?;
    let plan = store.plan(&loaded.state)?;
    let (before, how) = (loaded.state.clone(), Drive::Rewind(Box::new(rewind)));
    let ending = drive::drive_without_steps(context, store, loaded, plan, (&lease, takeover), how)?;
    match &ending.refused {
        None => Ok(ending),
        Some(why) => Err(not_rewound(why, &meanwhile(&before, &ending.state))),
    }
}

/// What a driver did on the way to an act that it then did not carry out.
fn meanwhile(before: &RunState, after: &RunState) -> Vec<String> {
    let base_of = |state: &RunState, path: &LanePath| {
        let work = state.lane(path)?.work.as_ref()?;
        let moved = |m: &&LaneMerged| m.by == MergedBy::Queue && m.to.is_some();
        work.merged.as_ref().filter(moved).map(|_| work.base_branch.clone())
    };
    let mut all = Vec::new();
    for (path, _) in after.lanes() {
        if let (None, Some(base)) = (base_of(before, &path), base_of(after, &path)) {
            all.push(format!("{path} was merged into {base}"));
        }
    }
    let running = after.running();
    let ended = before.running().into_iter().filter(|step| !running.contains(step));
    all.extend(ended.map(|(step, attempt)| format!("attempt {attempt} of {step} ended")));
    all
}

/// The failure of an act that is all or nothing; if not even that could be, it does not say so. What
/// happened meanwhile is told.
pub fn not_rewound(why: &str, meanwhile: &[String]) -> CommandError {
    if why.contains(piton_workspace::restore::PUT_BACK_FAILED) {
        return CommandError::failed("not-rewound", why.to_owned())
            .hint("put that right and try again: what was begun is taken back first");
    }
    if !meanwhile.is_empty() {
        return CommandError::failed("not-rewound", format!("nothing was taken back: {why}"))
            .hint(format!("this did happen: {}", meanwhile.join("; ")))
            .hint("all else is as before; look at `--dry-run`, then try again");
    }
    CommandError::failed("not-rewound", format!("nothing was changed: {why}"))
        .hint("everything is as before; put that right and try again")
}

/// The refusal to act on a run that somebody drives: it says how this very act takes it.
fn driven(mut error: CommandError, run_id: &str) -> CommandError {
    for hint in &mut error.hints {
        let taken = "this command and `--takeover`, which ends what it runs first";
        *hint = hint.replace(&format!("`piton resume {run_id} --takeover`"), taken);
    }
    error
}

/// Refuses to change a run that a person ended for good.
pub fn refuse_over(context: &Context, loaded: &Loaded) -> Result<()> {
    let Some(status) = loaded.state.ended.filter(|s| s.is_final()) else { return Ok(()) };
    let run = &loaded.row.run_id;
    let error =
        CommandError::usage("run-over", format!("run {run} is {status} and can't be changed"));
    if status == Status::Archived {
        return Err(error.hint(format!("bring it back first: piton resume {run}")));
    }
    let plan = context.plan_argument(&loaded.state.plan_path);
    Err(error
        .hint(format!("start anew: piton run {plan} --fresh"))
        .hint("`piton restore CHECKPOINT --to DIR` brings files of it to a folder"))
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

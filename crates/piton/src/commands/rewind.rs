//! What rollback, restore and undo share: finding checkpoints, saying what will change, asking, and
//! driving the run just far enough to carry it out.

mod plan;
mod points;
mod tasks;

use piton_core::event::{Event, RewindIntended, RewindKind, Verdict};
use piton_core::refusal::{Refusal, Remedy};
use piton_core::{LanePath, RunState, Status, remedy};
use piton_engine::store::Loaded;
use piton_engine::world::Rewind;
use piton_engine::{Drive, Ending, Store};
use piton_view::RunView;

pub use plan::Planned;
pub use points::{is_lane, lane_and_stage, named, none, of_stage, one, points, stage_of};

use super::request::is_given_up;
use super::resume::acquire;
use crate::context::{Context, now};
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

/// The run that is meant: the one named, or the newest that was not ended for good.
pub fn pick(store: &mut Store, named: Option<&str>) -> Result<Loaded> {
    let row = Context::pick(store, named, |row| !is_given_up(row), "run")?;
    Ok(store.load_row(row)?)
}

/// Asks whether to continue; without a terminal only `--yes` does.
pub fn confirm(context: &Context, question: &str) -> Result<()> {
    if context.yes {
        return Ok(());
    }
    if !context.interactive || context.json {
        let message = "nothing was changed: there is no terminal to ask on";
        return Err(CommandError::new(Kind::Waiting, "not-confirmed", message)
            .hint("look at the plan with `--dry-run`, then add `--yes`"));
    }
    match ui::confirms(question) {
        Some(true) => Ok(()),
        Some(false) => {
            ui::say("nothing was changed");
            Err(CommandError::silent(Kind::Failed))
        }
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
    dry_run: bool,
) -> Result<Loaded> {
    if loaded.state.rewinding.is_none() || dry_run {
        return Ok(loaded);
    }
    let run_id = loaded.row.run_id.clone();
    let lease = acquire(context, store, &loaded.row, takeover, by_this_command)?;
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
    let elsewhere = context.for_run(&loaded.state.root)?;
    let there = elsewhere.as_ref().unwrap_or(context);
    super::request::refuse_moved(there, &loaded)?;
    finish(there, store, loaded, false, false)
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
    let lease = acquire(context, store, &row, takeover, by_this_command)?;
    let loaded = store.load(run_id)?;
    let plan = store.plan(&loaded.state)?;
    let how = Drive::Rewind(Box::new(rewind));
    let ending = drive::drive_without_steps(context, store, loaded, plan, (&lease, takeover), how)?;
    match &ending.refused {
        None => Ok(ending),
        Some(why) => Err(not_rewound(why)),
    }
}

/// Says what to type after a rollback or an undo.
pub fn say_next(state: &RunState, back: &str) {
    let view = RunView::by_driver(state, now(), ui::place());
    for (label, next) in ["next", back].iter().zip(view.next_typed(Verdict::RolledBack)) {
        ui::say_as_is(&format!("{label}: {next}"));
    }
}

/// The failure of an act that is all or nothing; if not even that could be, it does not say so.
pub fn not_rewound(why: &Refusal) -> CommandError {
    let cause = &why.cause;
    let (message, hint) = match &*why.code {
        piton_workspace::refusals::HALF_DONE => {
            (cause.clone(), "fix this and run the command again: what was begun is undone first")
        }
        // Something else may have changed: the driver finishes a merge first.
        "base-moved" => {
            (format!("nothing was rolled back: {cause}"), "fix this, then run the command again")
        }
        _ => (format!("nothing was changed: {cause}"), "fix this, then run the command again"),
    };
    let error = CommandError::failed("not-rewound", message);
    CommandError { hints: why.remedies.clone(), ..error }.hint(hint)
}

/// How the commands that take work back take a run over.
fn by_this_command(_run: &str) -> Remedy {
    remedy![Words "this command and ", Option "--takeover", Words ", which first ends what it runs"]
}

/// Refuses to change a run that a person ended for good.
pub fn refuse_over(context: &Context, loaded: &Loaded) -> Result<()> {
    let Some(status) = loaded.state.ended.filter(|s| s.is_final()) else { return Ok(()) };
    let run = &loaded.row.run_id;
    let error =
        CommandError::usage("run-over", format!("run {run} is {status} and cannot be changed"));
    if status == Status::Archived {
        return Err(error.hint(remedy![Words "bring it back first with ", Piton "resume {run}"]));
    }
    let plan = context.plan_argument(&loaded.state.plan_path);
    Err(error
        .hint(remedy![Words "start a new run with ", Piton "run {plan} --fresh"])
        .hint(remedy![Piton "restore CHECKPOINT --to DIR", Words " writes its files to a folder"]))
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
        workspaces: Vec::new(),
        reverts: Vec::new(),
        undoes: None,
        by: Context::who(),
    }
}

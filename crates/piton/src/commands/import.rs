//! `piton import`: a run that another tool recorded in a file of its protocol becomes one of ours.
//!
//! The file is read, never written here; once the run goes on, its records are kept up like our own,
//! and fields of others stay in them. What the records do not tell is said, not guessed.

mod lane;
mod plan;

use std::path::Path;

use piton_core::id::is_valid_id;
use piton_core::shell::git;
use piton_core::{Event, LanePath, RunState, Status, apply, remedy};
use piton_engine::Store;
use piton_engine::store::Commit;
use piton_engine::world::Workspaces as _;
use piton_ledger::{Lease, NewRun, RunRow};
use piton_protocols::Protocol;
use piton_protocols::import::{ForeignLane, ForeignRun};
use piton_view::answers::{Imported, Taken};
use piton_view::text::sanitize;
use piton_workspace::Project;
use piton_workspace::refs::{self, Fence};

use super::inspect::FILE_BYTES_MAX;
use super::request::is_given_up;
use crate::cli::{DriveArgs, ImportArgs};
use crate::context::{Context, now};
use crate::drive;
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::PlanFile;
use crate::ui;
use piton_world::read;

/// Most runs of one id that may be taken over.
const SAME_ID_MAX: u32 = 100;
/// Runs that are named where none is left to be taken over: more would drown the rest.
const KNOWN_TOLD_MAX: usize = 3;

/// Takes a run over.
pub fn run(context: &Context, args: &ImportArgs) -> Result<()> {
    if context.project.git_dir.is_none() {
        return Err(CommandError::usage("no-repository", "this is not a git repository")
            .hint("run it in the repository of the lanes"));
    }
    let (protocol, runs) = read(context, &args.file)?;
    let mut store = context.write_store()?;
    let wanted = choose(&mut store, runs, args)?;
    refuse_known(&mut store, args, &wanted.id)?;
    let base = base_of(context, args, &wanted)?;
    let run_id = free_id(&mut store, &wanted.id)?;
    let plan = plan::find(context, args, protocol, &wanted)?;
    let (row, lease) = create(context, &mut store, &plan, &run_id)?;
    let remarks = Vec::from_iter(left_out(&wanted, &plan));
    let taken = take_over(context, &mut store, &plan, (&row, &lease), (wanted.lanes, base));
    let taken = match taken {
        Ok(taken) => taken,
        Err(error) => {
            // A run without events is none; what was marked in the repository goes with `gc`.
            store.ledger().release(row.run, lease.epoch, now().0)?;
            super::abort::forget_unbegun(&mut store, &run_id)?;
            return Err(error);
        }
    };
    report(context, (&run_id, &plan), &taken, &remarks);
    Ok(())
}

/// The runs of the file, by the protocol that knows it; what is wrong with records is said.
fn read(context: &Context, file: &Path) -> Result<(&'static dyn Protocol, Vec<ForeignRun>)> {
    let name = file.display().to_string();
    let unreadable = |why: &str| {
        CommandError::usage("unreadable-file", format!("{name}: {why}"))
            .hint("name a file with records, such as checkpoints.json")
    };
    let full = context.cwd.join(file);
    let text = read::text(&full, FILE_BYTES_MAX).map_err(|error| unreadable(&error.to_string()))?;
    let mut found = context.table.iter().filter_map(|p| Some((*p, p.import(&name, &text)?)));
    match found.next() {
        None => Err(unreadable("it is not a file with records of runs")),
        Some((protocol, Ok((runs, problems)))) => {
            ui::diagnostics(&problems, &text, &context.redactor);
            Ok((protocol, runs))
        }
        Some((_, Err(problem))) => {
            Err(ui::document_error(&[*problem], &text, context.json, &context.redactor))
        }
    }
}

/// The run that is meant: the one named, or the only one that is not known here.
fn choose(store: &mut Store, runs: Vec<ForeignRun>, args: &ImportArgs) -> Result<ForeignRun> {
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    let mut unknown = Vec::new();
    for id in &ids {
        if known_as(store, id)?.is_none() {
            unknown.push(*id);
        }
    }
    let wanted = match (&args.run_id, unknown.as_slice(), ids.as_slice()) {
        (Some(named), ..) if ids.contains(&named.as_str()) => named.clone(),
        (Some(named), ..) => {
            let message = format!("{} has no records of run `{named}`", args.file.display());
            return Err(CommandError::usage("no-run", message)
                .hint(format!("it has: {}", sanitize(&ids.join(", ")))));
        }
        (None, [one], _) | (None, [], [one]) => (*one).to_owned(),
        (None, [], []) => return Err(no_run(args, "has no run")),
        (None, [], _) => {
            let mut error = no_run(args, "has only runs that were already imported");
            for id in ids.iter().take(KNOWN_TOLD_MAX) {
                let name = known_as(store, id)?.map(|row| row.run_id).unwrap_or_default();
                error = error.hint(remedy![Words "continue with ", Piton "resume {name}"]);
            }
            return Err(error);
        }
        (None, many, _) => {
            return Err(CommandError::usage("no-run", "the file has several runs")
                .hint(format!("name one with `--run-id`: {}", sanitize(&many.join(", ")))));
        }
    };
    Ok(runs.into_iter().find(|run| run.id == wanted).unwrap_or_default())
}

fn no_run(args: &ImportArgs, why: &str) -> CommandError {
    CommandError::usage("no-run", format!("{} {why}", args.file.display()))
}

/// The run here that has the records of a run of the file already, unless it was given up.
fn known_as(store: &mut Store, id: &str) -> Result<Option<RunRow>> {
    let Some(safe) = safe_id(id) else { return Ok(None) };
    for number in 1..=SAME_ID_MAX {
        match store.ledger().run(&numbered(&safe, number))? {
            Some(row) if is_given_up(&row) => {}
            found => return Ok(found),
        }
    }
    Ok(None)
}

/// The name of a run as one that can be used here.
fn safe_id(id: &str) -> Option<String> {
    let fit = || crate::plan_file::fit_for_id(id);
    (!id.is_empty()).then(|| if is_valid_id(id) { id.to_owned() } else { fit() })
}

fn numbered(id: &str, number: u32) -> String {
    if number == 1 { id.to_owned() } else { format!("{id}-{number}") }
}

/// Refuses a run that is here already: its lanes can't be those of two runs.
fn refuse_known(store: &mut Store, args: &ImportArgs, wanted: &str) -> Result<()> {
    let Some(row) = known_as(store, wanted)? else { return Ok(()) };
    let (run, file) = (&row.run_id, args.file.display());
    let message = format!("run {} of {file} was already imported as {run}", sanitize(wanted));
    let error = CommandError::usage("run-exists", message);
    let error = if row.status == Status::Complete.as_str() {
        error.hint(remedy![Words "it is complete; see ", Piton "status {run}"])
    } else {
        error.hint(remedy![Words "continue with it: ", Piton "resume {run}"])
    };
    Err(error.hint(
        remedy![Words "to import it again, first cancel it with ", Piton "abort {run} --cancel"],
    ))
}

/// The branch that the work of the run goes to, as its records say; nothing where they do not.
fn base_of(context: &Context, args: &ImportArgs, run: &ForeignRun) -> Result<Option<String>> {
    let file = args.file.display();
    let branch = match run.bases.as_slice() {
        [] => return Ok(None),
        [one] => one,
        many => {
            let message = format!("the records have several base branches: {}", many.join(", "));
            return Err(CommandError::usage("base-branch", sanitize(&message))
                .hint(format!("a run has one base branch: correct `base_branch` in {file}")));
        }
    };
    if refs::value(&context.project.root, &format!("refs/heads/{branch}")).is_none() {
        // A name that begins like an option is one only to programs.
        let make = sanitize(&git(None, &["branch", "--", branch, "COMMIT"]));
        let branch = sanitize(branch);
        let message = format!("there is no branch {branch}, which the records name as base");
        return Err(CommandError::new(Kind::Blocked, "base-branch", message)
            .hint(format!("run `git fetch`, then `{make}`"))
            .hint(format!("or correct `base_branch` in {file}")));
    }
    Ok(Some(branch.clone()))
}

/// The id as in the file, with a number where a run of that name was given up here.
fn free_id(store: &mut Store, wanted: &str) -> Result<String> {
    let safe = safe_id(wanted).unwrap_or_else(|| "run".to_owned());
    if safe != wanted {
        let name = sanitize(wanted);
        ui::say(format!("warning: `{name}` is not a valid run id; the run is called {safe} here"));
    }
    for number in 1..=SAME_ID_MAX {
        let id = numbered(&safe, number);
        if store.ledger().run(&id)?.is_none() {
            return Ok(id);
        }
    }
    Err(CommandError::usage("run-exists", format!("too many runs are called {safe}"))
        .hint(remedy![Piton "gc", Words " deletes finished runs"]))
}

fn create(
    context: &Context,
    store: &mut Store,
    plan: &PlanFile,
    run_id: &str,
) -> Result<(RunRow, Lease)> {
    let root = context.project.root.to_string_lossy().into_owned();
    let title = &plan.recorded.title;
    let new = NewRun { run_id, plan: &plan.path, title, root: &root, at: now().0 };
    let row = store.create(&new, &plan.recorded, &Context::owner())?;
    let lease = row.owner.clone();
    let lease =
        lease.ok_or_else(|| CommandError::failed("ledger", "a new run came without its lease"))?;
    // The run may have been driven from a ledger that is lost: the repository knows how often.
    let lease = drive::epoch::lift(context, store, &row, lease)?;
    Ok((row, lease))
}

/// Records everything that is known, in one commit.
fn take_over(
    context: &Context,
    store: &mut Store,
    plan: &PlanFile,
    (row, lease): (&RunRow, &Lease),
    (mut lanes, base): (Vec<ForeignLane>, Option<String>),
) -> Result<Vec<Taken>> {
    let failed = |why: String| CommandError::failed("world", why);
    let mut log = Log { state: RunState::default(), events: Vec::new() };
    log.add(super::run::created(context, plan, &row.run_id, None, None))?;
    let args = DriveArgs::default();
    let mut workspaces = drive::workspaces(context, &log.state, &args)
        .ok_or_else(|| failed("there is no git repository".to_owned()))?;
    workspaces.fence(lease.epoch)?;
    let root = drive::root_of(context, &log.state);
    let fence = Fence::raise(&root, &row.run_id, lease.epoch).map_err(|e| failed(e.to_string()))?;
    let current = || Project::discover(&root).ok()?.branch();
    let base = base.or_else(current).unwrap_or_default();
    let mut taken = Vec::new();
    let paths: Vec<LanePath> = log.state.lanes().map(|(path, _)| path).collect();
    for path in &paths {
        let Some(at) = lanes.iter().position(|lane| lane.path == *path) else { continue };
        let Some(planned) = plan.recorded.lane(path) else { continue };
        let mut found = lane::Import {
            root: &root,
            scratch: &context.project.state_dir,
            run_id: &row.run_id,
            path,
            planned,
            base: &base,
            foreign: lanes.swap_remove(at),
            workspaces: &mut workspaces,
            fence: &fence,
            unknown: Vec::new(),
        };
        let (events, goes_on) = found.events()?;
        let unknown = found.unknown;
        events.into_iter().try_for_each(|event| log.add(event))?;
        let work = log.state.lane(path).and_then(|l| l.work.as_ref());
        let stage = work.and_then(|w| w.stage()).map(piton_core::lane::Stage::as_str);
        taken.push(Taken { lane: path.clone(), stage, goes_on, unknown });
    }
    store.append(&Commit {
        row,
        epoch: lease.epoch,
        expected_seq: 0,
        at: now(),
        events: &log.events,
        state: &log.state,
        answered: &[],
        release: true,
    })?;
    Ok(taken)
}

/// The events so far, and the state after them.
struct Log {
    state: RunState,
    events: Vec<Event>,
}

impl Log {
    fn add(&mut self, event: Event) -> Result<()> {
        apply(&mut self.state, now(), &event)?;
        self.events.push(event);
        Ok(())
    }
}

/// Says which records of the run are of no lane of the plan.
fn left_out(run: &ForeignRun, plan: &PlanFile) -> Option<String> {
    let lanes = run.lanes.iter().filter(|lane| plan.recorded.lane(&lane.path).is_none());
    let names: Vec<String> = lanes.map(|lane| lane.path.to_string()).collect();
    let names = [names, run.others.clone()].concat().join(", ");
    (!names.is_empty())
        .then(|| format!("not in the plan, so only the file keeps their records: {names}"))
}

fn report(
    context: &Context,
    (run_id, plan): (&str, &PlanFile),
    taken: &[Taken],
    remarks: &[String],
) {
    let imported = Imported { run_id, plan: &plan.path, lanes: taken, remarks };
    ui::show(context.json, &imported, || imported.to_string());
    if context.json {
        return;
    }
    for remark in remarks {
        ui::say(format!("note: {}", sanitize(remark)));
    }
    let piton = |command: String| ui::place().piton(command);
    ui::say_as_is(&format!("next: {}", piton(format!("resume {run_id}"))));
    ui::say_as_is(&format!("  or: {}", piton(format!("rollback {run_id} --dry-run"))));
}

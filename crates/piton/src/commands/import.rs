//! `piton import`: a run that another tool recorded in `checkpoints.json` becomes one of ours.
//!
//! The file is read, never written here; once the run goes on, its records are kept up like our own,
//! and fields of others stay in them. What the records do not tell is said, not guessed.

mod lane;
mod plan;
mod stand;

use std::path::Path;

use piton_core::id::is_valid_id;
use piton_core::lane_state::StageRecord;
use piton_core::shell::git;
use piton_core::{Event, LanePath, RunState, Status, apply};
use piton_engine::Store;
use piton_engine::store::Commit;
use piton_engine::world::Rooms as _;
use piton_formats::template::quote_for_shell;
use piton_ledger::{Lease, NewRun, RunRow};
use piton_protocols::lanes::checkpoints::{self, CHECKPOINTS_BYTES_MAX, Record};
use piton_protocols::lanes::naming;
use piton_workspace::Git;
use piton_workspace::refs::{self, Fence};
use serde::Serialize;

use crate::cli::{DriveArgs, ImportArgs};
use crate::context::{Context, now};
use crate::drive;
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::PlanFile;
use crate::ui::{self, text::sanitize};
use piton_world::read;

/// Most runs of one id that may be taken over.
const SAME_ID_MAX: u32 = 100;
/// Runs that are named where none is left to be taken over: more would drown the rest.
const KNOWN_TOLD_MAX: usize = 3;

/// A lane that was taken over, as told.
#[derive(Debug, Serialize)]
struct Taken {
    lane: LanePath,
    stage: Option<&'static str>,
    goes_on: String,
    unknown: Vec<String>,
}

/// What is taken over.
struct Source<'s> {
    records: &'s [Record],
    /// The branch that the work goes to, where the records say it.
    base: Option<String>,
}

/// Takes a run over.
pub fn run(context: &Context, args: &ImportArgs) -> Result<()> {
    if context.project.git_dir.is_none() {
        return Err(CommandError::usage("no-repository", "there is no git repository here")
            .hint("call it where the lanes of the run were made"));
    }
    let records = read(context, &args.file)?;
    let mut store = context.write_store()?;
    let wanted = choose(&mut store, &records, args)?;
    refuse_known(&mut store, args, &wanted)?;
    let records: Vec<Record> = records.into_iter().filter(|r| r.run_id == wanted).collect();
    let base = base_of(context, args, &records)?;
    let run_id = free_id(&mut store, &wanted)?;
    let (plan, mut remarks) = plan::find(context, args, &run_id, &records)?;
    let (row, lease) = create(context, &mut store, &plan, &run_id)?;
    let from = Source { records: &records, base };
    let taken = take_over(context, &mut store, &plan, (&row, &lease), &from, &mut remarks);
    let taken = match taken {
        Ok(taken) => taken,
        Err(error) => {
            // A run without events is none; what was marked in the repository goes with `gc`.
            store.ledger().release(row.run, lease.epoch, now().0)?;
            super::abort::forget_unbegun(&mut store, &run_id)?;
            return Err(error);
        }
    };
    report(context, args, (&run_id, &plan), &taken, &remarks);
    Ok(())
}

/// The records of the file that can be used; what is wrong with others is said.
fn read(context: &Context, file: &Path) -> Result<Vec<Record>> {
    let name = file.display().to_string();
    let unreadable = |why: String| {
        CommandError::usage("unreadable-file", format!("{name}: {why}"))
            .hint(format!("name the file of the records, such as {}", naming::CHECKPOINTS_PATH))
    };
    let full = context.cwd.join(file);
    let text = read::text(&full, CHECKPOINTS_BYTES_MAX).map_err(|e| unreadable(e.to_string()))?;
    if let Err(problem) = checkpoints::read(&name, &text) {
        return Err(super::document_error(&[*problem], &text, context.json, &context.redactor));
    }
    let (mut records, problems) = checkpoints::inspect(&name, &text);
    ui::diagnostics(&problems, &text, &context.redactor);
    records.retain(|record| record.missing().is_empty());
    Ok(records)
}

/// The run that is meant: the one named, or the only one that is not known here.
fn choose(store: &mut Store, records: &[Record], args: &ImportArgs) -> Result<String> {
    let mut ids: Vec<&str> = Vec::new();
    for record in records {
        if !ids.contains(&record.run_id.as_str()) {
            ids.push(&record.run_id);
        }
    }
    if let Some(named) = &args.run_id {
        if ids.contains(&named.as_str()) {
            return Ok(named.clone());
        }
        let message = format!("{} has no records of run `{named}`", args.file.display());
        return Err(CommandError::usage("no-run", message)
            .hint(format!("it has: {}", sanitize(&ids.join(", ")))));
    }
    let mut unknown = Vec::new();
    for id in &ids {
        if known_as(store, id)?.is_none() {
            unknown.push(*id);
        }
    }
    match (unknown.as_slice(), ids.as_slice()) {
        ([one], _) | ([], [one]) => Ok((*one).to_owned()),
        ([], []) => Err(no_run(args, "has no run")),
        ([], _) => {
            let mut error = no_run(args, "has no run that is not here already");
            for id in ids.iter().take(KNOWN_TOLD_MAX) {
                let name = known_as(store, id)?.map(|row| row.run_id).unwrap_or_default();
                error = error.hint(format!("go on with `piton resume {name}`"));
            }
            Err(error)
        }
        (many, _) => Err(CommandError::usage("no-run", "the file has several runs")
            .hint(format!("name one with `--run-id`: {}", sanitize(&many.join(", "))))),
    }
}

fn no_run(args: &ImportArgs, why: &str) -> CommandError {
    CommandError::usage("no-run", format!("{} {why}", args.file.display()))
}

/// The run here that has the records of a run of the file already, unless it was given up.
fn known_as(store: &mut Store, id: &str) -> Result<Option<RunRow>> {
    let gone = |row: &RunRow| {
        [Status::Cancelled, Status::Archived].iter().any(|s| s.as_str() == row.status)
    };
    let Some(safe) = safe_id(id) else { return Ok(None) };
    for number in 1..=SAME_ID_MAX {
        match store.ledger().run(&numbered(&safe, number))? {
            Some(row) if gone(&row) => {}
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
    let message = format!("run {} of {file} is here already as {run}", sanitize(wanted));
    let error = CommandError::usage("run-exists", message);
    let error = if row.status == Status::Complete.as_str() {
        error.hint(format!("it is complete: see `piton status {run}`"))
    } else {
        error.hint(format!("go on with it: `piton resume {run}`"))
    };
    Err(error.hint(format!("to import it anew give it up first: `piton abort {run} --cancel`")))
}

/// The branch that the work of the run goes to, as its records say; nothing where they do not.
fn base_of(context: &Context, args: &ImportArgs, records: &[Record]) -> Result<Option<String>> {
    let of = |r: &Record, name: &str| r.text(name).filter(|text| !text.trim().is_empty());
    let named = records.iter().filter_map(|r| {
        let branch = of(r, "base_branch").or_else(|| of(r, "target_branch"))?;
        Some(branch.trim().trim_start_matches("refs/heads/").to_owned())
    });
    let mut all: Vec<String> = Vec::new();
    for branch in named {
        if !all.contains(&branch) {
            all.push(branch);
        }
    }
    let file = args.file.display();
    let (branch, more) = match all.as_slice() {
        [] => return Ok(None),
        [one, more @ ..] => (one, more),
    };
    if !more.is_empty() {
        let message = format!("the records have several base branches: {}", all.join(", "));
        return Err(CommandError::usage("base-branch", sanitize(&message))
            .hint(format!("a run has one: correct `base_branch` in {file}")));
    }
    if refs::value(&context.project.root, &format!("refs/heads/{branch}")).is_none() {
        // A name that begins like an option is one only to programs.
        let make = sanitize(&git(None, &["branch", "--", branch, "COMMIT"]));
        let branch = sanitize(branch);
        let message = format!("there is no branch {branch}, which the records call their base");
        return Err(CommandError::new(Kind::Blocked, "base-branch", message)
            .hint(format!("bring it here: `git fetch`, then `{make}`"))
            .hint(format!("or correct `base_branch` in {file}")));
    }
    Ok(Some(branch.clone()))
}

/// The id as in the file, with a number where a run of that name was given up here.
fn free_id(store: &mut Store, wanted: &str) -> Result<String> {
    let safe = safe_id(wanted).unwrap_or_else(|| "run".to_owned());
    if safe != wanted {
        let name = sanitize(wanted);
        ui::say(&format!("warning: `{name}` can't be the name of a run; it is {safe} here"));
    }
    for number in 1..=SAME_ID_MAX {
        let id = numbered(&safe, number);
        if store.ledger().run(&id)?.is_none() {
            return Ok(id);
        }
    }
    Err(CommandError::usage("run-exists", format!("there are too many runs called {safe}"))
        .hint("`piton gc` deletes finished ones"))
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
    Source { records, base }: &Source<'_>,
    remarks: &mut Vec<String>,
) -> Result<Vec<Taken>> {
    let failed = |why: String| CommandError::failed("world", why);
    let mut log = Log { state: RunState::default(), events: Vec::new() };
    log.add(super::run::created(context, plan, &row.run_id, None))?;
    let args = DriveArgs::default();
    let mut rooms = drive::rooms(context, &log.state, &args)
        .ok_or_else(|| failed("there is no git repository".to_owned()))?;
    rooms.fence(lease.epoch)?;
    let root = drive::root_of(context, &log.state);
    let fence = Fence::raise(&root, &row.run_id, lease.epoch).map_err(|e| failed(e.to_string()))?;
    let current = || Git::at(&root).args(["symbolic-ref", "-q", "--short", "HEAD"]).text().ok();
    let base = base.clone().or_else(current).unwrap_or_default();
    let mut taken = Vec::new();
    let lanes: Vec<LanePath> = log.state.lanes().map(|(path, _)| path).collect();
    for path in &lanes {
        let of_lane = |r: &&Record| r.lane != naming::NONE && plan::lane_of(r) == *path;
        let own: Vec<&Record> = records.iter().filter(of_lane).collect();
        let Some(planned) = plan.recorded.lane(path).filter(|_| !own.is_empty()) else { continue };
        let mut found = lane::Import {
            root: &root,
            scratch: &context.project.state_dir,
            worktrees: &context.settings.lanes.worktrees,
            run_id: &row.run_id,
            path,
            planned,
            base: &base,
            records: &own,
            rooms: &mut rooms,
            fence: &fence,
            unknown: Vec::new(),
        };
        let (events, goes_on) = found.events().map_err(failed)?;
        let unknown = found.unknown;
        events.into_iter().try_for_each(|event| log.add(event))?;
        let work = log.state.lane(path).and_then(|l| l.work.as_ref());
        let stage = work.and_then(|w| w.stage()).map(piton_core::lane::Stage::as_str);
        taken.push(Taken { lane: path.clone(), stage, goes_on, unknown });
    }
    left_out(records, &lanes, remarks);
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
        apply(&mut self.state, now(), &event)
            .map_err(|e| CommandError::failed("ledger-content", e.to_string()))?;
        self.events.push(event);
        Ok(())
    }
}

/// Says which records of the run are of no lane of the plan.
fn left_out(records: &[Record], lanes: &[LanePath], remarks: &mut Vec<String>) {
    let known = |r: &Record| r.lane != naming::NONE && lanes.contains(&plan::lane_of(r));
    let mut names: Vec<String> = Vec::new();
    for record in records.iter().filter(|r| !known(r)) {
        let name = match record.lane.as_str() {
            naming::NONE => format!("{} as a whole", record.phase),
            lane => format!("{}/{lane}", record.phase),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        let names = names.join(", ");
        remarks.push(format!("not in the plan, so their records only stay in the file: {names}"));
    }
}

fn report(
    context: &Context,
    args: &ImportArgs,
    (run_id, plan): (&str, &PlanFile),
    taken: &[Taken],
    remarks: &[String],
) {
    if context.json {
        ui::data_json(&serde_json::json!({
            "run_id": run_id, "plan": plan.path, "lanes": taken, "remarks": remarks,
        }));
        return;
    }
    ui::data(&format!("imported {run_id} (plan {})", sanitize(&plan.path)));
    for lane in taken {
        let stage = lane.stage.unwrap_or("not begun");
        ui::data(&format!("  {}: {stage}; {}", lane.lane, lane.goes_on));
        for unknown in &lane.unknown {
            ui::data(&format!("    not known: {}", sanitize(unknown)));
        }
    }
    for remark in remarks {
        ui::say(&format!("note: {}", sanitize(remark)));
    }
    let is_stuck = |lane: &&Taken| lane.goes_on == lane::STUCK;
    let stuck = taken.iter().filter(is_stuck).count();
    let file = quote_for_shell(&args.file.display().to_string());
    let anew = format!("piton abort {run_id} --cancel && piton import {file} --plan PLAN");
    let resume = format!("piton resume {run_id}");
    let next = match stuck {
        0 => vec![resume, format!("piton rollback {run_id} --dry-run")],
        all if all == taken.len() => vec![anew],
        _ => vec![resume, anew],
    };
    for (index, command) in next.iter().enumerate() {
        let word = if index == 0 { "next" } else { "  or" };
        ui::say(&format!("{word}: {command}"));
    }
}

/// A record of the file as one of the ledger; nothing where it says what this version does not know.
fn recorded(record: &Record) -> Option<StageRecord> {
    use piton_core::lane::{Stage, StageStatus};
    const STATUSES: [StageStatus; 7] = [
        StageStatus::Ready,
        StageStatus::InProgress,
        StageStatus::Failed,
        StageStatus::Blocked,
        StageStatus::Complete,
        StageStatus::RolledBack,
        StageStatus::Retrying,
    ];
    let stage = Stage::ALL.into_iter().find(|s| s.as_str() == record.stage.as_str())?;
    let status = STATUSES.into_iter().find(|s| s.as_str() == record.status.as_str())?;
    let text = |name: &str| record.text(name).filter(|text| !text.is_empty());
    Some(StageRecord {
        notes: text("notes").unwrap_or_default(),
        base_sha: text("base_sha"),
        head_sha: text("head_sha").or_else(|| stand::head_in(&text("notes")?)),
        target_branch: text("target_branch").or_else(|| text("base_branch")),
        test_command: text("test_command"),
        exit_code: record.number("exit_code").and_then(|n| i32::try_from(n).ok()),
        last_command: text("last_command"),
        retry_attempt: record.retry_attempt(),
        max_retries: record.max_retries(),
        failure_context: record.failure_context(),
        ..StageRecord::blank(stage, status, record.at.unwrap_or_default(), 0)
    })
}

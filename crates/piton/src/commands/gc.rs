//! `piton gc`: deletes finished runs that the policy does not keep. This is final.
//!
//! First a plan that is printed, then its execution. Never touched are runs that may go on, runs that
//! are driven or still have a keeper, and the newest complete run of each plan: the last good one.
//! What runs leave in the repository is found in [`repository`].

mod repository;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_core::id::is_valid_id;
use piton_core::summary::run_status;
use piton_core::{Status, Timestamp};
use piton_engine::Store;
use piton_ledger::{RunRow, owner_liveness};
use piton_process::cgroup;
use serde::Serialize;

use super::log::size;
use super::{leftovers, request};
use crate::cli::GcArgs;
use crate::context::{Context, now};
use crate::error::{CommandError, Kind, Result};
use crate::ui;
use piton_workspace::refs::Ref;
use repository::{Chaff, Left, Tree};
pub use repository::{is_clean, is_named, refs, starting_with};

/// A day in milliseconds.
const DAY_MS: i64 = 86_400_000;
/// A folder without a run may belong to a run that is being created; after an hour it does not.
const FOLDER_AGE_MIN: Duration = Duration::from_secs(3600);

/// The file in the state folder that names the runs that were deleted. It does not outlive its ledger:
/// see `doctor --new-ledger`.
pub const DELETED: &str = "deleted-runs";

/// What is kept.
#[derive(Clone, Copy, Debug)]
struct Policy {
    runs: usize,
    days: i64,
}

/// What the choice needs to know of a run.
#[derive(Clone, Debug)]
struct Candidate {
    row: RunRow,
    status: Status,
    /// Whether a driver or keeper of it lives.
    lives: bool,
}

/// What will go.
#[derive(Debug, Default, Serialize)]
struct Doomed {
    runs: Vec<DoomedRun>,
    /// Folders whose run is gone already.
    folders: Vec<PathBuf>,
    /// What runs that are gone left in the repository.
    #[serde(flatten)]
    left: Left,
}

impl Doomed {
    fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.folders.is_empty() && self.left.is_empty()
    }

    /// Spares what is left of runs that the ledger does not know and that no `gc` deleted: they may be
    /// in another ledger, one that was lost or that this is an older copy of.
    fn keep_unknown(&mut self, known: &BTreeSet<String>) {
        let folders = self.folders.len();
        self.folders.retain(|dir| {
            dir.file_name().and_then(|name| name.to_str()).is_some_and(|name| known.contains(name))
        });
        let (snapshots, worktrees) = self.left.keep_unknown(known);
        let count = ui::text::count;
        let kinds = [
            (folders - self.folders.len(), "folder", ""),
            (snapshots, "run", "the snapshots of "),
            (worktrees, "worktree", ""),
        ];
        let kept: Vec<String> = kinds
            .iter()
            .filter(|(number, ..)| *number > 0)
            .map(|(number, what, of)| format!("{of}{}", count(*number, what)))
            .collect();
        if !kept.is_empty() {
            ui::say(&format!(
                "kept, because the ledger does not know their runs: {}; `piton gc --unknown` \
                 deletes them",
                kept.join(", ")
            ));
        }
    }
}

/// A run that will go.
#[derive(Debug, Serialize)]
struct DoomedRun {
    run_id: String,
    status: String,
    plan: String,
    updated_at: String,
    bytes: u64,
    /// What its snapshots take beyond everything else.
    snapshot_bytes: u64,
    #[serde(skip)]
    row: RunRow,
    #[serde(skip)]
    refs: Vec<Ref>,
}

/// Deletes what the policy does not keep.
pub fn run(context: &Context, args: &GcArgs) -> Result<()> {
    let mut store = if args.dry_run { context.read_store()? } else { request::open(context)? };
    let policy = policy(context, args);
    let refs = repository::refs(context);
    let candidates = candidates(context, &mut store)?;
    if !args.dry_run {
        // Those that were still in use when their run ended: by a daemon that was to be kept, say.
        let over = candidates.iter().filter(|run| !run.lives);
        over.for_each(|run| cgroup::tidy(&context.run_dir(&run.row.run_id)));
    }
    let chosen = choose(&candidates, policy, now());
    let ids: BTreeSet<&str> = chosen.iter().map(|c| c.row.run_id.as_str()).collect();
    let mut doomed = Doomed {
        left: repository::left(context, &refs, &candidates, &ids),
        runs: chosen.into_iter().map(|c| doomed_run(context, &refs, c)).collect(),
        folders: orphans(context, &candidates),
    };
    if !args.unknown {
        let ids = candidates.iter().map(|c| c.row.run_id.clone());
        doomed.keep_unknown(&ids.chain(deleted(context)).collect());
    }
    repository::measure(context, &refs, &mut doomed);
    let mut chaff = repository::chaff(context, &mut store, &refs, &candidates);
    chaff.branches = leftovers::find(context, &mut store, &refs);
    if !context.json {
        print(&doomed, &chaff, candidates.len());
    }
    if args.dry_run {
        return report(context, &doomed, &chaff, true);
    }
    // Base contains them, so nothing is lost; before their run goes, which knows whose they are.
    leftovers::remove(context, &chaff.branches);
    if doomed.is_empty() {
        sweep_plans(&mut store);
        chaff.delete(context);
        return report(context, &doomed, &chaff, false);
    }
    if !context.yes && !confirmed(context, args)? {
        ui::say("nothing was deleted");
        return Ok(());
    }
    let done = execute(context, &mut store, doomed)?;
    sweep_plans(&mut store);
    chaff.delete(context);
    report(context, &done, &chaff, false)
}

/// Deletes recorded plans that no run refers to; what can't go now goes with the next gc.
fn sweep_plans(store: &mut Store) {
    if let Err(error) = store.sweep_plans(now(), &owner_liveness) {
        ui::say(&format!("warning: plans without a run are kept: {error}"));
    }
}

/// A policy given on the command line stands alone; else both settings hold.
fn policy(context: &Context, args: &GcArgs) -> Policy {
    let settings = context.settings.gc;
    let (runs, days) = match (args.keep_runs, args.keep_days) {
        (None, None) => (settings.keep_runs, settings.keep_days),
        (runs, days) => (runs.unwrap_or(0), days.unwrap_or(0)),
    };
    Policy { runs: runs as usize, days: i64::from(days) }
}

fn candidates(context: &Context, store: &mut Store) -> Result<Vec<Candidate>> {
    let mut found = Vec::new();
    for row in store.runs()? {
        let driven = Context::driver_lives(&row);
        let lives = driven || piton_process::keeper_alive(&context.run_dir(&row.run_id)).is_some();
        match store.load_row(row.clone()) {
            Ok(loaded) => {
                let status = run_status(&loaded.state, driven);
                found.push(Candidate { row, status, lives });
            }
            // What cannot be read is not deleted either, and its folder stays with it.
            Err(error) => {
                ui::say(&format!("warning: run {} is kept: {error}", row.run_id));
                found.push(Candidate { row, status: Status::Blocked, lives });
            }
        }
    }
    Ok(found)
}

/// Picks the runs to delete; `runs` are the newest first.
fn choose(runs: &[Candidate], policy: Policy, now: Timestamp) -> Vec<&Candidate> {
    let mut last_good = BTreeSet::new();
    let mut finished = 0;
    let mut doomed = Vec::new();
    for run in runs {
        if !run.status.is_final() {
            continue;
        }
        finished += 1;
        let good = run.status == Status::Complete && last_good.insert(run.row.plan.as_str());
        let young = now.0.saturating_sub(run.row.updated_at) < policy.days.saturating_mul(DAY_MS);
        if !good && !run.lives && !young && finished > policy.runs {
            doomed.push(run);
        }
    }
    doomed
}

fn doomed_run(context: &Context, refs: &[Ref], run: &Candidate) -> DoomedRun {
    let run_id = &run.row.run_id;
    DoomedRun {
        snapshot_bytes: 0,
        refs: repository::of_run(refs, run_id),
        run_id: run.row.run_id.clone(),
        status: run.status.to_string(),
        plan: run.row.plan.clone(),
        updated_at: ui::time::rfc3339(Timestamp(run.row.updated_at)),
        bytes: bytes_in(&context.run_dir(&run.row.run_id)),
        row: run.row.clone(),
    }
}

fn bytes_in(dir: &Path) -> u64 {
    let files = walkdir::WalkDir::new(dir).into_iter().filter_map(Result::ok);
    files.filter_map(|f| f.metadata().ok()).filter(fs::Metadata::is_file).map(|m| m.len()).sum()
}

/// Folders of runs that the ledger does not know (any more).
pub fn folders_without_run(context: &Context, known: &BTreeSet<&str>) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(context.project.state_dir.join("runs")) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
        .filter(|e| e.file_name().to_str().is_some_and(|name| !known.contains(name)))
        .map(|e| e.path())
        .collect();
    found.sort();
    found
}

fn orphans(context: &Context, runs: &[Candidate]) -> Vec<PathBuf> {
    let known: BTreeSet<&str> = runs.iter().map(|c| c.row.run_id.as_str()).collect();
    let old = |dir: &PathBuf| {
        let changed = dir.metadata().and_then(|m| m.modified()).ok();
        changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age >= FOLDER_AGE_MIN)
    };
    let mut found = folders_without_run(context, &known);
    found.retain(|dir| old(dir) && piton_process::keeper_alive(dir).is_none());
    found
}

fn print(doomed: &Doomed, chaff: &Chaff, all: usize) {
    for run in &doomed.runs {
        let plan = ui::text::sanitize(&run.plan);
        let DoomedRun { run_id, status, updated_at, bytes, snapshot_bytes, .. } = run;
        let snapshots = match snapshot_bytes {
            0 => String::new(),
            bytes => format!(", {} of snapshots", size(*bytes)),
        };
        ui::data(&format!(
            "delete run {run_id} ({status}, {updated_at}, {plan}): {}{snapshots}",
            size(*bytes)
        ));
    }
    for folder in &doomed.folders {
        ui::data(&format!("delete folder {} (its run is gone)", folder.display()));
    }
    doomed.left.print();
    if chaff.count() > 0 {
        let bytes = size(chaff.bytes());
        ui::data(&format!("delete {} of old looks, caches and trash: {bytes}", chaff.count()));
    }
    for left in &chaff.branches {
        let (branch, base) = (ui::text::sanitize(&left.branch), ui::text::sanitize(&left.base));
        if left.contained && left.holds.is_none() {
            ui::data(&format!("delete branch {branch} ({base} contains it)"));
        } else if let (true, Some(tree)) = (left.goes(), &left.worktree) {
            let tree = tree.display();
            ui::data(&format!("delete worktree {tree} (it is merged; {branch} stays)"));
        } else {
            ui::say(&format!("{}; {}", left.words(), left.next()));
        }
    }
    let kept = all - doomed.runs.len();
    ui::say(&format!("{} kept, {} to delete", ui::text::count(kept, "run"), doomed.runs.len()));
}

fn confirmed(context: &Context, args: &GcArgs) -> Result<bool> {
    if !context.interactive {
        let message = "deleting is final and nobody can be asked here; nothing was deleted";
        let same = typed(args);
        return Err(CommandError::new(Kind::Waiting, "needs-yes", message)
            .hint(format!("`{same} --yes` deletes, `{same} --dry-run` only shows")));
    }
    let choices = [('y', "delete"), ('n', "keep all")];
    let question = "Delete these? This is final.";
    Ok(ui::ask(question, &choices, Some('n'), &mut || false) == Some('y'))
}

/// The command as it was given, without what answers its question.
fn typed(args: &GcArgs) -> String {
    let mut line = "piton gc".to_owned();
    for (option, value) in [("--keep-runs", args.keep_runs), ("--keep-days", args.keep_days)] {
        if let Some(value) = value {
            let _ = write!(line, " {option} {value}");
        }
    }
    line
}

fn execute(context: &Context, store: &mut Store, mut doomed: Doomed) -> Result<Doomed> {
    let mut done = Doomed::default();
    for run in std::mem::take(&mut doomed.runs) {
        // Since the plan was made somebody may have taken the run up again.
        let same = store.ledger().run(&run.run_id)?.is_some_and(|row| row.seq == run.row.seq);
        if !same {
            ui::say(&format!("run {} has changed meanwhile and is kept", run.run_id));
            continue;
        }
        // First: what a `gc` that is killed leaves of it is known to be nobody's.
        note_deleted(context, &run.run_id)?;
        let deleted = store.ledger().delete_run(run.row.run, now().0, &owner_liveness);
        if let Err(piton_ledger::Error::Held { owner }) = &deleted {
            ui::say(&format!("run {} is driven by {owner} now and is kept", run.run_id));
            continue;
        }
        deleted?;
        done.runs.push(run);
    }
    // The ledger goes first: a folder or refs without a run are harmless and go with the next gc.
    let refs: Vec<&[Ref]> = done.runs.iter().map(|run| run.refs.as_slice()).collect();
    repository::delete_refs(context, &refs);
    for run in &done.runs {
        remove(&context.run_dir(&run.run_id))?;
    }
    for folder in std::mem::take(&mut doomed.folders) {
        remove(&folder)?;
        done.folders.push(folder);
    }
    let gone = |tree: &Tree| {
        // The run of a worktree may have been kept after all.
        store.ledger().run(tree.run_id()).is_ok_and(|row| row.is_none())
    };
    doomed.left.worktrees.retain(gone);
    done.left = repository::execute(context, doomed.left);
    Ok(done)
}

/// The runs that were deleted here, for what is left of them.
fn deleted(context: &Context) -> Vec<String> {
    let text = fs::read_to_string(context.project.state_dir.join(DELETED)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Writes down that a run was deleted.
fn note_deleted(context: &Context, run_id: &str) -> Result<()> {
    let path = context.project.state_dir.join(DELETED);
    let file = fs::OpenOptions::new().create(true).append(true).open(&path);
    file.and_then(|mut file| writeln!(file, "{run_id}")).map_err(|e| {
        CommandError::failed("gc", format!("cannot write {}: {e}", path.display()))
            .hint("see that the folder is yours and has space left")
    })
}

fn remove(dir: &Path) -> Result<()> {
    // A name that is no id could lead out of the folder of runs.
    if !dir.file_name().and_then(|n| n.to_str()).is_some_and(is_valid_id) {
        return Ok(());
    }
    // With the folder goes the last trace of them; daemons in them stay.
    cgroup::disband(dir);
    match fs::remove_dir_all(dir) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(CommandError::failed("gc", format!("cannot delete {}: {e}", dir.display()))
            .hint("see who uses or owns it, then call `piton gc` again")),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "ends the command")]
fn report(context: &Context, done: &Doomed, chaff: &Chaff, dry_run: bool) -> Result<()> {
    if context.json {
        let (runs, folders, left) = (&done.runs, &done.folders, &done.left);
        ui::data_json(&serde_json::json!({
            "dry_run": dry_run, "runs": runs, "folders": folders,
            "snapshots": left.snapshots, "worktrees": left.worktrees,
            "chaff": { "count": chaff.count(), "bytes": chaff.bytes() },
            "branches": chaff.branches,
        }));
    } else if !dry_run && !done.is_empty() {
        let bytes = done.runs.iter().map(|r| r.bytes).sum();
        let runs = ui::text::count(done.runs.len(), "run");
        ui::say(&format!("deleted {runs}, {} of logs", size(bytes)));
        let orphans = done.left.snapshots.iter().map(|o| o.bytes);
        let freed: u64 = done.runs.iter().map(|r| r.snapshot_bytes).chain(orphans).sum();
        if freed > 0 {
            let freed = size(freed);
            ui::say(&format!("git gives {freed} of snapshots back with its next `git gc`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use piton_ledger::RunKey;

    use super::*;

    fn run(id: &str, status: Status, plan: &str, age_days: i64) -> Candidate {
        let row = RunRow {
            run: RunKey(1),
            run_id: id.to_owned(),
            plan: plan.to_owned(),
            title: String::new(),
            root: String::new(),
            status: status.to_string(),
            epoch: 1,
            seq: 1,
            created_at: 0,
            updated_at: (100 - age_days) * DAY_MS,
            owner: None,
        };
        Candidate { row, status, lives: false }
    }

    fn chosen(runs: &[Candidate], keep_runs: usize, days: i64) -> Vec<&str> {
        let policy = Policy { runs: keep_runs, days };
        let doomed = choose(runs, policy, Timestamp(100 * DAY_MS));
        doomed.iter().map(|c| c.row.run_id.as_str()).collect()
    }

    #[test]
    fn what_may_go_on_and_the_last_good_run_of_a_plan_stay() {
        let mut runs = vec![
            run("a", Status::Failed, "p", 90),
            run("b", Status::Complete, "p", 91),
            run("c", Status::Complete, "p", 92),
            run("d", Status::Complete, "q", 93),
            run("e", Status::Cancelled, "q", 94),
            run("f", Status::Interrupted, "q", 95),
        ];
        assert_eq!(chosen(&runs, 0, 0), ["c", "e"]);
        runs[2].lives = true;
        assert_eq!(chosen(&runs, 0, 0), ["e"]);
    }

    #[test]
    fn number_and_age_both_keep() {
        let runs: Vec<Candidate> =
            (0..5).map(|n| run(&n.to_string(), Status::Archived, "p", n * 10)).collect();
        assert_eq!(chosen(&runs, 2, 0), ["2", "3", "4"]);
        assert_eq!(chosen(&runs, 0, 25), ["3", "4"]);
        assert_eq!(chosen(&runs, 4, 25), ["4"]);
    }
}

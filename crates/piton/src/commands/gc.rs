//! `piton gc`: deletes finished runs that the policy does not keep. This is final.
//!
//! First a plan that is printed, then its execution. Never touched are runs that may go on, runs that
//! are driven or still have a keeper, and the newest complete run of each plan: the last good one.
//! What runs leave in the repository is found in [`repository`].

mod repository;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use piton_core::id::is_valid_id;
use piton_core::summary::run_status;
use piton_core::{Status, Timestamp, remedy};
use piton_engine::Store;
use piton_ledger::{RunRow, owner_liveness};
use piton_process::cgroup;
use piton_view::At;
use piton_view::gc::{Chaff, Gone, Run};
use piton_view::text::count;
use piton_workspace::refs::{self, Ref};

use super::{leftovers, request, rewind};
use crate::cli::GcArgs;
use crate::context::{Context, now};
use crate::error::{CommandError, Result};
use crate::ui;
pub use repository::{is_clean, standing, starting_with};

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

/// What will go, and what it takes to delete it.
#[derive(Debug, Default)]
struct Doomed {
    gone: Gone,
    /// The rows of its runs.
    rows: Vec<RunRow>,
    /// The refs of its runs, then those of its snapshots without a run.
    refs: Vec<Vec<Ref>>,
}

impl Doomed {
    /// Spares what is left of runs that the ledger does not know and that no `gc` deleted: they may be
    /// in another ledger, one that was lost or that this is an older copy of.
    fn keep_unknown(&mut self, known: &BTreeSet<String>) {
        let Gone { runs, folders, snapshots, worktrees, .. } = &mut self.gone;
        let before = [folders.len(), snapshots.len(), worktrees.len()];
        folders.retain(|dir| {
            dir.file_name().and_then(|name| name.to_str()).is_some_and(|name| known.contains(name))
        });
        let names: BTreeSet<String> = known.iter().map(|run_id| refs::component(run_id)).collect();
        let mut orphans = self.refs.split_off(runs.len()).into_iter();
        snapshots.retain(|orphan| {
            let (is_known, refs) = (names.contains(&orphan.run_id), orphans.next());
            self.refs.extend(refs.filter(|_| is_known));
            is_known
        });
        worktrees.retain(|tree| known.contains(&tree.run_id));
        let after = [folders.len(), snapshots.len(), worktrees.len()];
        let what = [("folder", ""), ("run", "the snapshots of "), ("worktree", "")];
        let kept = before.iter().zip(after).map(|(before, after)| before - after).zip(what);
        let kept: Vec<String> = kept
            .filter(|(number, _)| *number > 0)
            .map(|(number, (what, of))| format!("{of}{}", count(number, what)))
            .collect();
        if !kept.is_empty() {
            let kept = kept.join(", ");
            ui::say(remedy![
                Words "kept, because their runs are not in the ledger: {kept}; ",
                Piton "gc --unknown",
                Words " deletes them",
            ]);
        }
    }
}

/// Deletes what the policy does not keep.
pub fn run(context: &Context, args: &GcArgs) -> Result<()> {
    if !args.dry_run {
        request::refuse_any_step(context)?;
    }
    let mut store = if args.dry_run { context.read_store()? } else { request::open(context)? };
    let policy = policy(context, args);
    let refs = repository::standing(context);
    let candidates = candidates(context, &mut store)?;
    if !args.dry_run {
        // Those that were still in use when their run ended: by a daemon that was to be kept, say.
        let over = candidates.iter().filter(|run| !run.lives);
        over.for_each(|run| cgroup::tidy(&context.run_dir(&run.row.run_id)));
    }
    let chosen = choose(&candidates, policy, now());
    let ids: BTreeSet<&str> = chosen.iter().map(|c| c.row.run_id.as_str()).collect();
    let (snapshots, orphaned) = repository::orphans(context, &refs, &candidates);
    let of_runs = chosen.iter().map(|c| repository::of_run(&refs, &c.row.run_id));
    let mut doomed = Doomed {
        refs: of_runs.chain(orphaned).collect(),
        rows: chosen.iter().map(|c| c.row.clone()).collect(),
        gone: Gone {
            dry_run: args.dry_run,
            runs: chosen.iter().map(|c| doomed_run(context, c)).collect(),
            folders: orphans(context, &candidates),
            snapshots,
            worktrees: repository::trees(context, &candidates, &ids),
            ..Gone::default()
        },
    };
    if !args.unknown {
        let ids = candidates.iter().map(|c| c.row.run_id.clone());
        doomed.keep_unknown(&ids.chain(deleted(context)).collect());
    }
    repository::measure(context, &refs, &doomed.refs, &mut doomed.gone);
    let chaff = repository::chaff(context, &mut store, &refs, &candidates);
    doomed.gone.chaff = Chaff { count: chaff.count(), bytes: chaff.bytes() };
    doomed.gone.branches = leftovers::find(context, &mut store, &refs);
    if !context.json {
        print(&doomed.gone, candidates.len());
    }
    if args.dry_run {
        report(context, &doomed.gone);
        return Ok(());
    }
    // Base contains them, so nothing is lost; before their run goes, which knows whose they are.
    leftovers::remove(context, &doomed.gone.branches);
    if !doomed.gone.is_empty() {
        rewind::confirm(context, "Delete these for good?")?;
        execute(context, &mut store, &mut doomed)?;
    }
    sweep_plans(&mut store);
    chaff.delete(context);
    super::session::clean_up(context)?;
    report(context, &doomed.gone);
    Ok(())
}

/// Deletes recorded plans that no run refers to; what can't go now goes with the next gc.
fn sweep_plans(store: &mut Store) {
    if let Err(error) = store.sweep_plans(now(), &owner_liveness) {
        ui::say(format!("warning: plans without a run were not deleted: {error}"));
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
                ui::say(format!("warning: run {} is kept: {error}", row.run_id));
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

fn doomed_run(context: &Context, run: &Candidate) -> Run {
    Run {
        run_id: run.row.run_id.clone(),
        status: run.status,
        plan: run.row.plan.clone(),
        updated_at: At(Timestamp(run.row.updated_at)),
        bytes: bytes_in(&context.run_dir(&run.row.run_id)),
        snapshot_bytes: 0,
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

fn print(gone: &Gone, all: usize) {
    let (goes, stays) = gone.plan(ui::place());
    if !goes.is_empty() {
        ui::data(goes.trim_end());
    }
    let kept = count(all - gone.runs.len(), "run");
    let deletes = match gone.runs.len() {
        0 => "no run to delete".to_owned(),
        runs => format!("{} to delete", count(runs, "run")),
    };
    ui::say_as_is(&format!("{stays}{deletes}, {kept} kept"));
}

/// Deletes; what is left of the plan is what went.
fn execute(context: &Context, store: &mut Store, doomed: &mut Doomed) -> Result<()> {
    let Doomed { gone: all, rows, refs } = doomed;
    let orphans = refs.split_off(rows.len());
    let (mut runs, mut gone) = (Vec::new(), Vec::new());
    for ((run, row), refs) in all.runs.drain(..).zip(rows.drain(..)).zip(refs.drain(..)) {
        // Since the plan was made somebody may have taken the run up again.
        let same = store.ledger().run(&run.run_id)?.is_some_and(|now| now.seq == row.seq);
        if !same {
            ui::say(format!("run {} has changed in the meantime and is kept", run.run_id));
            continue;
        }
        // First: what a `gc` that is killed leaves of it is known to be nobody's.
        note_deleted(context, &run.run_id)?;
        let deleted = store.ledger().delete_run(row.run, now().0, &owner_liveness);
        if let Err(piton_ledger::Error::Held { owner }) = &deleted {
            ui::say(format!("run {} is now driven by {owner} and is kept", run.run_id));
            continue;
        }
        deleted?;
        runs.push(run);
        gone.push(refs);
    }
    // The ledger goes first: a folder or refs without a run are harmless and go with the next gc.
    repository::delete_refs(context, &gone);
    for run in &runs {
        remove(&context.run_dir(&run.run_id))?;
    }
    for folder in &all.folders {
        remove(folder)?;
    }
    // The run of a worktree may have been kept after all.
    all.worktrees.retain(|tree| {
        store.ledger().run(&tree.run_id).is_ok_and(|row| row.is_none())
            && repository::remove_tree(context, tree)
    });
    repository::delete_refs(context, &orphans);
    all.runs = runs;
    Ok(())
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
            .hint("check that you own the folder and that the disk has space")
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
            .hint(
                remedy![Words "check who uses or owns it, then run ", Piton "gc", Words " again"],
            )),
    }
}

fn report(context: &Context, gone: &Gone) {
    if context.json {
        ui::data_json(gone);
    } else if !gone.dry_run && !gone.is_empty() {
        ui::say(gone.done());
    }
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

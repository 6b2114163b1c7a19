//! The looks that `piton doctor` takes; each gives findings and changes nothing.

use std::collections::BTreeSet;

use piton_core::budget::size;
use piton_core::refusal::Remedy;
use piton_core::shell::quoted;
use piton_core::summary::run_status;
use piton_core::{RunState, apply, remedy};
use piton_engine::{Loaded, Store};
use piton_ledger::{Liveness, RunRow, owner_liveness};
use piton_process::cgroup;
use piton_process::strays::{self, Stray};
use piton_view::answers::Finding;
use piton_view::text::count;
use piton_workspace::checks;
use piton_world::kept;

use crate::commands::gc::{self, folders_without_run};
use crate::commands::leftovers;
use crate::context::Context;
use crate::drive::epoch;
use crate::error::CommandError;
use crate::ui;

/// Below this a long run may not even write its ledger and logs.
const FREE_BYTES_MIN: u64 = 1_000_000_000;
/// A nearly full disk is worth a word before it is too late: below this share of it …
const FREE_PERCENT_MIN: u64 = 5;
/// … unless that is still plenty.
const FREE_BYTES_PLENTY: u64 = 10_000_000_000;
/// Most runs whose strays are looked for: each look reads every process's environment, and an older
/// run that left something is past caring.
const STRAY_RUNS_MAX: usize = 100;

/// Checks the ledger itself; the flag says whether it may be read any further. That it is sound is for
/// the caller to say, who knows its runs too.
pub fn ledger(context: &Context) -> (Vec<Finding>, bool) {
    let dir = &context.project.state_dir;
    match piton_ledger::check(dir) {
        Err(piton_ledger::Error::NoLedger { .. }) => {
            if let Some(lost) = context.lost_ledger() {
                return (vec![from_error(&lost)], false);
            }
            let what = format!("no ledger in {} yet", dir.display());
            (
                vec![Finding::ok(what).next(remedy![Words "start a run with ", Piton "run PLAN"])],
                true,
            )
        }
        Err(error) => (vec![Finding::error(error.to_string())], false),
        Ok(found) => {
            let is_sound = found.is_empty();
            let broken =
                |f: piton_ledger::Finding| Finding::error(f.what).next(about_ledger(f.kind));
            (found.into_iter().map(broken).collect(), is_sound)
        }
    }
}

/// What to do about a ledger.
fn about_ledger(kind: piton_ledger::Kind) -> Remedy {
    match kind {
        piton_ledger::Kind::Damaged => remedy![
            Words "copy the ledger's folder away, then restore the last backup, or start a new \
                   ledger with ",
            Piton "doctor --new-ledger",
        ],
        piton_ledger::Kind::Newer => "use the Piton that wrote it, or a newer one".into(),
        piton_ledger::Kind::Behind => remedy![
            Words "copy the ledger's folder away, then restore the last backup and run ",
            Piton "doctor --restored",
            Words ", which also accepts the ledger as it is; without a backup, run ",
            Piton "doctor --new-ledger",
        ],
    }
}

/// An error of a command, as something that was found.
fn from_error(error: &CommandError) -> Finding {
    let hints = error.hints.iter().cloned().reduce(|all, hint| all.words("; ").and(hint));
    Finding::error(error.message.clone()).next(hints.unwrap_or_default())
}

/// Checks every run: its history, driver, keeper, strays and folder; says whether all of them can be
/// read.
pub fn runs(context: &Context, findings: &mut Vec<Finding>) -> bool {
    // Without a ledger there are no runs; that was said already.
    let Ok(mut store) = context.read_store() else {
        return true;
    };
    let rows = match store.runs() {
        Ok(rows) => rows,
        Err(error) => {
            findings.push(Finding::error(error.to_string()));
            return false;
        }
    };
    let mut readable = true;
    match epoch::behind(context, &mut store) {
        Ok(behind) => {
            readable &= behind.is_empty();
            findings.extend(behind.into_iter().map(|(_, error)| from_error(&error)));
        }
        Err(error) => findings.push(from_error(&error)),
    }
    for (index, row) in rows.iter().enumerate() {
        match store.load_row(row.clone()) {
            Ok(loaded) => {
                if let Some((finding, whole)) = same_as_history(&mut store, &loaded) {
                    findings.push(finding);
                    readable &= whole;
                }
                findings.extend(recorded_plan(context, &mut store, &loaded));
                findings.extend(driver(&loaded));
                findings.extend(cut_short(&loaded));
                findings.extend(processes(context, &mut store, &loaded, index < STRAY_RUNS_MAX));
            }
            Err(error) => {
                readable = false;
                findings.push(
                    Finding::error(error.to_string())
                        .next("use the newest Piton that drove this run, and keep a backup"),
                );
            }
        }
    }
    findings.push(Finding::ok(piton_view::text::count(rows.len(), "run")));
    let refs = gc::standing(context);
    for left in leftovers::find(context, &mut store, &refs) {
        let what = format!("run {}: {}", left.run_id, left.words());
        findings.push(Finding::ok(what).next(left.next(ui::place())));
    }
    let known: BTreeSet<&str> = rows.iter().map(|r| r.run_id.as_str()).collect();
    for folder in folders_without_run(context, &known) {
        let what = format!("{} does not belong to a run", folder.display());
        let next = remedy![
            Piton "gc --unknown",
            Words " removes it once it is an hour old; it may belong to a lost ledger",
        ];
        findings.push(Finding::ok(what).next(next));
    }
    readable
}

/// The cached state must be what the events add up to; the flag says whether they could be read.
fn same_as_history(store: &mut Store, loaded: &Loaded) -> Option<(Finding, bool)> {
    let run = &loaded.row.run_id;
    let mut state = RunState::default();
    let mut seen = 0;
    let mut illegal = None;
    let replayed = store.each_event(&loaded.row, 0, |seq, at, event| {
        // A driver at work may be ahead of what was loaded.
        if seq <= loaded.seq && illegal.is_none() {
            illegal = apply(&mut state, at, event).err().map(|e| format!("event {seq}: {e}"));
            seen = seq;
        }
    });
    let replayed = replayed.map_err(CommandError::from);
    let whole = replayed.is_ok();
    let mut next = remedy![
        Words "copy the ledger with ",
        Piton "doctor --backup FILE",
        Words ": this is a bug in Piton; please report it",
    ];
    let problem = match (replayed, illegal) {
        (Err(error), _) => {
            next = next_after(&error);
            // It names the run, as this finding does.
            let named = format!("run {run}, ");
            error.message.strip_prefix(&named).map_or(error.message.clone(), str::to_owned)
        }
        (_, Some(illegal)) => illegal,
        _ if seen != loaded.seq => format!("its history ends at event {seen} of {}", loaded.seq),
        // What never began has no history that its row could differ from.
        _ if loaded.seq > 0 && state != loaded.state => {
            let fields = piton_view::json::differing(&state, &loaded.state).join(", ");
            format!("its cached state differs from its history ({fields})")
        }
        _ => return None,
    };
    Some((Finding::error(format!("run {run}: {problem}")).next(next), whole))
}

/// What to do about something in the ledger that can't be read.
fn next_after(error: &CommandError) -> Remedy {
    if error.code == "ledger-newer" {
        return "use the newer Piton that wrote it".into();
    }
    "copy the ledger's folder away, then restore the last backup".into()
}

/// A run that may continue needs its recorded plan.
fn recorded_plan(context: &Context, store: &mut Store, loaded: &Loaded) -> Option<Finding> {
    let error = CommandError::from(store.plan(&loaded.state).err().filter(|_| loaded.seq > 0)?);
    if error.code == "ledger-newer" {
        return Some(from_error(&error).next(next_after(&error)));
    }
    let plan = context.plan_argument(&loaded.state.plan_path);
    Some(from_error(&error).next(remedy![
        Words "restore a backup of the ledger, or start over with ",
        Piton "run {plan} --fresh"
    ]))
}

/// Whether files of a run are half way between two checkpoints.
fn cut_short(loaded: &Loaded) -> Option<Finding> {
    let view = Context::view(loaded);
    let (run, words) = (view.run_id, view.cut_short().filter(|_| !view.driver_lives())?);
    Some(Finding::warning(format!("run {run}: {words}")).next(remedy![Piton "resume {run}"]))
}

/// Whether somebody drives the run, and whether that somebody lives.
fn driver(loaded: &Loaded) -> Option<Finding> {
    let RunRow { run_id, owner, .. } = &loaded.row;
    let owner = &owner.as_ref()?.owner;
    Some(match owner_liveness(owner) {
        Liveness::Alive if owner.is_stopped() => {
            Finding::warning(format!("run {run_id} is driven by {owner}, which is stopped"))
                .next(CommandError::wake(owner, run_id))
        }
        Liveness::Alive => Finding::ok(format!("run {run_id} is driven by {owner}")),
        Liveness::Unknown if Context::driver_lives(&loaded.row) => Finding::ok(format!(
            "run {run_id} is driven by {owner}, which cannot be checked from here"
        )),
        Liveness::Dead | Liveness::Unknown => {
            let status = run_status(&loaded.state, false);
            Finding::ok(format!("run {run_id} is {status}: its driver ({owner}) is gone"))
                .next(remedy![Piton "resume {run_id}"])
        }
    })
}

/// What still lives of a run that nobody drives.
fn processes(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    look_for_strays: bool,
) -> Vec<Finding> {
    if Context::driver_lives(&loaded.row) {
        return Vec::new();
    }
    let run = &loaded.row.run_id;
    let keeper = piton_process::keeper_alive(&context.run_dir(run));
    let mut findings = Vec::new();
    if let Some(pid) = keeper {
        let what = format!("run {run} has a keeper (process {pid}) and no driver");
        findings.push(if run_status(&loaded.state, false).is_final() {
            Finding::warning(what).next(remedy![Words "if it stays, end it with ", Shell "kill {pid}"])
        } else {
            Finding::ok(what).next(
                remedy![Words "its steps still run; ", Piton "resume {run}", Words " takes them over"],
            )
        });
    }
    if look_for_strays && !loaded.state.mark.is_empty() {
        let keep = store.plan(&loaded.state).map(|plan| kept(&plan)).unwrap_or_default();
        for Stray { pid, name, key, .. } in strays::find(&loaded.state.mark, keeper, &keep) {
            let key = key.map_or(String::new(), |k| format!(", started by {k}"));
            let what = format!("run {run} left process {pid} ({name}{key})");
            findings.push(Finding::warning(what).next(
                remedy![Piton "resume {run}", Words " ends it; so does ", Shell "kill {pid}"],
            ));
        }
    }
    findings
}

/// Whether runs have a cgroup: as the newest keeper found it, else as it looks from here.
pub fn cgroups(context: &Context) -> Finding {
    let rows = context.read_store().and_then(|mut store| Ok(store.runs()?)).unwrap_or_default();
    let newest = rows.iter().find_map(|row| cgroup::used(&context.run_dir(&row.run_id)));
    Finding::ok(match newest.unwrap_or_else(cgroup::available) {
        Ok(()) => "cgroups: used".to_owned(),
        Err(reason) => format!(
            "cgroups: not used: {reason}; without them, a process that hides may outlive a killed \
             keeper"
        ),
    })
}

/// Free space where the state lives.
pub fn disk(context: &Context) -> Finding {
    let state = &context.project.state_dir;
    let dir = if state.exists() { state } else { &context.project.root };
    match rustix::fs::statvfs(dir.as_path()) {
        Ok(found) => space(
            found.f_bavail.saturating_mul(found.f_frsize),
            found.f_blocks.saturating_mul(found.f_frsize),
        ),
        Err(error) => Finding::warning(format!("free space cannot be read: {error}"))
            .next(format!("check that {} exists and that you can read it", dir.display())),
    }
}

fn space(free: u64, all: u64) -> Finding {
    let percent = free.saturating_mul(100).checked_div(all).unwrap_or(100);
    let what = format!("{} free ({percent} %)", size(free));
    let little = free < FREE_BYTES_MIN || (percent < FREE_PERCENT_MIN && free < FREE_BYTES_PLENTY);
    if little {
        Finding::warning(what)
            .next(remedy![Words "free some space; ", Piton "gc", Words " deletes old runs"])
    } else {
        Finding::ok(what)
    }
}

/// Whether the state can be written, and lies where git can't reach it.
pub fn place(context: &Context) -> Vec<Finding> {
    let project = &context.project;
    let state = &project.state_dir;
    let mut findings = Vec::new();
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    if let Err(why) = rustix::fs::access(project.root.as_path(), access) {
        let what =
            format!("cannot write to the project's folder {}: {why}", project.root.display());
        let next = "make it writable; agents and Piton cannot change files there";
        findings.push(Finding::error(what).next(next));
    }
    if let Some((path, why)) = piton_ledger::unwritable(state) {
        let what = format!("cannot write to {}: {why}", path.display());
        let next = "make it writable; until then runs can be shown but not continued";
        findings.push(Finding::warning(what).next(next));
    }
    if let (true, Some(common)) = (project.keeps_state_in_tree(), &project.common_dir) {
        let (from, to) = (state.display(), common.join("piton"));
        let what = format!("the state is in {from}, from before this was a git repository");
        findings.push(Finding::warning(what).next(format!(
            "`git clean -fdx` would delete it; while no run is driven, `mv {} {}`",
            quoted(&state.to_string_lossy()),
            quoted(&to.to_string_lossy())
        )));
    }
    findings
}

/// Whether git is there and can read the project.
pub fn git(context: &Context) -> Finding {
    let project = &context.project;
    let version = match piton_workspace::git::version() {
        Ok(version) => version,
        Err(error) if project.git_dir.is_none() => {
            return Finding::ok(format!(
                "not a git repository, and git is not available ({})",
                error.message
            ));
        }
        Err(error) => {
            return Finding::error(error.message).next("install git, or put it on the PATH");
        }
    };
    if project.git_dir.is_none() {
        return Finding::ok(format!("{version}; not a git repository"));
    }
    match checks::is_work_tree(&project.root) {
        Ok(_) => Finding::ok(format!("{version}, repository {}", project.root.display())),
        Err(error) => Finding::error(format!("git cannot read the repository: {}", error.message))
            .next("do what git says, then run it again"),
    }
}

/// What went wrong in hooks of agent programs, which must not notice it themselves.
pub fn hooks(context: &Context) -> Option<Finding> {
    let (path, number, last) = crate::commands::hook::failures(&context.project.state_dir)?;
    let what = format!("{} in hooks of agents: {last}", count(number, "failure"));
    Some(Finding::warning(what).next(format!("read {}, then delete it", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use piton_view::answers::Health;

    #[test]
    fn little_space_is_told_and_a_large_disk_is_not_scolded() {
        const GB: u64 = 1_000_000_000;
        assert_eq!(space(GB / 2, 2 * GB).severity, Health::Warning);
        assert_eq!(space(4 * GB, 100 * GB).severity, Health::Warning);
        assert_eq!(space(40 * GB, 2000 * GB).severity, Health::Ok);
        assert_eq!(space(0, 0).severity, Health::Warning);
    }
}

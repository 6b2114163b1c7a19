//! The creation of a run: its name, its row in the ledger and its first event.

use std::fmt::Write as _;
use std::io::Read as _;

use piton_core::RunId;
use piton_core::event::{Event, FileHash, RunCreated, Shape};
use piton_engine::Store;
use piton_ledger::{Lease, NewRun, RunKey, RunRow};

use super::phases::earlier_run;
use super::{aside, driven};
use crate::cli::RunArgs;
use crate::commands::request::unfinished;
use crate::context::{Context, now};
use crate::drive;
use crate::error::{CommandError, Result};
use crate::plan_file::PlanFile;

/// Most runs of one plan that may be started within a second.
const SAME_SECOND_MAX: u32 = 1000;

/// The event that creates a run.
pub fn created(
    context: &Context,
    plan: &PlanFile,
    run_id: &str,
    spec: Option<FileHash>,
    previous: Option<String>,
) -> Event {
    Event::RunCreated(Box::new(RunCreated {
        previous,
        run_id: RunId(run_id.to_owned()),
        protocol: plan.protocol.clone(),
        plan_path: plan.path.clone(),
        plan_hash: plan.recorded.hash(),
        title: plan.recorded.title.clone(),
        spec,
        root: context.project.root.to_string_lossy().into_owned(),
        linked: context.project.is_linked(),
        mark: random_word(),
        head: context.project.head(),
        shape: Shape::from(&plan.recorded),
    }))
}

/// 128 random bits from the system, in hexadecimal.
pub fn random_word() -> String {
    let mut bytes = [0u8; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes));
    if read.is_err() {
        // Without the device the process and the time still make it unlike any other run here.
        bytes[..8].copy_from_slice(&now().0.to_le_bytes());
        bytes[8..12].copy_from_slice(&std::process::id().to_le_bytes());
    }
    bytes.iter().fold(String::new(), |mut word, b| {
        let _ = write!(word, "{b:02x}");
        word
    })
}

/// Creates the run unless somebody began one of the same plan since we looked: of two who start a
/// plan at the same moment, one runs it and the other is told. The run that it takes the place of is
/// set aside only when nothing refuses the new one any more.
pub fn alone(
    context: &Context,
    store: &mut Store,
    plan: &PlanFile,
    args: &RunArgs,
    newest: Option<RunKey>,
    aside: Option<&RunRow>,
) -> Result<(RunRow, Lease)> {
    let path = context.project.state_dir.join("start.lock");
    let failed = |e: std::io::Error| {
        CommandError::failed("world", format!("{}: {e}", path.display()))
            .hint("check that you own the folder and that the disk has space")
    };
    let lock = std::fs::File::create(&path).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut since = store.runs()?;
    since.retain(|r| newest.is_none_or(|n| r.run > n) && unfinished(r));
    if let Some(row) = earlier_run(context, store, since, plan) {
        return Err(driven(&row));
    }
    if let Some(row) = aside {
        aside::check(context, store, plan, args, row)?;
        aside::archive(context, store, row)?;
    }
    create(context, store, plan, args)
}

fn create(
    context: &Context,
    store: &mut Store,
    plan: &PlanFile,
    args: &RunArgs,
) -> Result<(RunRow, Lease)> {
    let named = args.run_id.as_deref();
    named.map_or(Ok(()), check_name)?;
    let made = || {
        let name = plan.name(args.drive.lane.as_deref());
        format!("{name}-{}", piton_protocols::time::stamp(now()))
    };
    let base = named.map_or_else(made, str::to_owned);
    let owner = Context::owner();
    let root = context.project.root.to_string_lossy().into_owned();
    for count in 1..=SAME_SECOND_MAX {
        let run_id = if count == 1 { base.clone() } else { format!("{base}-{count}") };
        let new = NewRun {
            run_id: &run_id,
            plan: &plan.path,
            title: &plan.recorded.title,
            root: &root,
            at: now().0,
        };
        match store.create(&new, &plan.recorded, &owner) {
            Ok(row) => {
                let lease = row.owner.clone().ok_or_else(|| {
                    CommandError::failed("ledger", "a new run came without its lease")
                })?;
                let lease = drive::epoch::lift(context, store, &row, lease)?;
                return Ok((row, lease));
            }
            Err(piton_engine::Error::Ledger(piton_ledger::Error::RunExists { .. }))
                if named.is_none() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(CommandError::failed("run-exists", "too many runs of this plan were started this second"))
}

/// Refuses a name that no run may have.
pub fn check_name(name: &str) -> Result<()> {
    if piton_core::id::is_valid_id(name) {
        return Ok(());
    }
    let problem = format!("`{name}` is not a valid run id");
    Err(CommandError::usage("run-id", problem).hint(
        "use letters (a to z), digits, dots, dashes and underscores, at most 64, starting \
         with a letter or digit; no `..`, and no `.` or `.lock` at the end",
    ))
}

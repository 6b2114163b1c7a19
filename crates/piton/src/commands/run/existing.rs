//! What the files beside a plan tell of a run that the ledger does not know: a run of another tool is
//! taken over in the middle, one that is over gives its place to a new one.

use piton_core::event::FileHash;
use piton_core::{Event, Plan, RunState, Timestamp};
use piton_engine::Store;
use piton_engine::store::Commit;
use piton_ledger::{Lease, RunRow};
use piton_protocols::protocol::{Existing, Midway, Unclear, Upgrade};
use piton_protocols::time::stamp;
use piton_world::views::{create, rename};

use super::offer;
use crate::cli::RunArgs;
use crate::context::{Context, now};
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::PlanFile;
use crate::ui;

/// What a new run begins with.
#[derive(Default)]
pub struct Known {
    /// The spec as another tool recorded it.
    pub spec: Option<FileHash>,
    /// What another tool did of it.
    pub events: Vec<Event>,
    /// The record of the run that it starts over.
    pub previous: Option<String>,
    /// The files that get other names first.
    renames: Vec<(String, String)>,
    /// The record that gets the name and form that the run writes.
    upgrade: Option<Upgrade>,
}

/// Looks at the files of a plan; a run that is about to be set aside takes its own with it.
pub fn look(
    context: &Context,
    store: &mut Store,
    plan: &PlanFile,
    args: &RunArgs,
    aside: Option<&RunRow>,
) -> Result<Known> {
    if aside.is_some() {
        return Ok(Known::default());
    }
    let at = now();
    let existing = plan.existing(context, at);
    let renames = renames(plan, &existing, at);
    match existing {
        Existing::Nothing => Ok(Known::default()),
        _ if args.fresh => Ok(Known { renames, ..Known::default() }),
        Existing::Over { previous, said } => {
            ui::say(said);
            Ok(Known { previous, renames, ..Known::default() })
        }
        Existing::Unclear(unclear) => match asked(context, &unclear)? {
            Answer::Resume => Ok(unclear.resume.map(|m| taken_over(plan, m)).unwrap_or_default()),
            Answer::Fresh => Ok(Known { renames, ..Known::default() }),
        },
        Existing::Midway(midway) => {
            let offer = midway.offer.as_ref();
            if args.resume {
                offer.into_iter().for_each(offer::say);
            } else if let Some(offer) = offer
                && !offer::resumes(context, store, plan, offer, None)?
            {
                return Ok(Known { renames, ..Known::default() });
            }
            Ok(taken_over(plan, midway))
        }
    }
}

/// The names that the record of a plan and its other files get when a new run takes their place.
fn renames(plan: &PlanFile, existing: &Existing, at: Timestamp) -> Vec<(String, String)> {
    let other = match existing {
        Existing::Midway(midway) => midway.offer.as_ref().map(|offer| &offer.record),
        Existing::Unclear(unclear) => unclear.record.as_ref(),
        Existing::Nothing | Existing::Over { .. } => None,
    };
    let mut renames = plan.reader.aside(&plan.live, at);
    // A record may have another name than the one that a new run gives it.
    if let Some(path) = other.filter(|path| plan.live.record.as_ref() != Some(path)) {
        let named = Plan { record: Some(path.clone()), ..plan.live.clone() };
        renames.extend(plan.reader.aside(&named, at).into_iter().filter(|(from, _)| from == path));
    }
    renames
}

/// What a person wants done about files whose meaning is unclear.
enum Answer {
    Resume,
    Fresh,
}

/// Asks what files mean that nobody can tell the meaning of; refuses where nobody can be asked.
fn asked(context: &Context, unclear: &Unclear) -> Result<Answer> {
    // Whoever answers everything beforehand has not seen this.
    if !context.can_ask() || context.yes {
        return Err(CommandError::refused(Kind::Waiting, unclear.refusal.clone()));
    }
    ui::say(&unclear.refusal.cause);
    let resume = unclear.resume.as_ref().map(|_| "resume");
    if resume.is_some() {
        ui::say("  resume: continues the run that the file describes");
    }
    ui::say("  fresh: renames the file and starts a new run");
    let choices: Vec<&str> = resume.into_iter().chain(["fresh", "leave"]).collect();
    let nothing = "nothing was changed";
    match ui::ask("What now?", &choices, 'l', &mut || false) {
        Some('r') => Ok(Answer::Resume),
        Some('f') => Ok(Answer::Fresh),
        Some(_) => Err(offer::cancelled()),
        None => Err(CommandError::new(Kind::Interrupted(2), "interrupted", nothing)),
    }
}

/// A new run that begins where another tool came to.
pub fn taken_over(plan: &PlanFile, midway: Midway) -> Known {
    let Midway { events, spec, said, upgrade, .. } = midway;
    said.into_iter().for_each(ui::say);
    let path = plan.recorded.spec.clone();
    let spec = path.zip(spec).map(|(path, sha256)| FileHash { path, sha256 });
    Known { spec, events, upgrade, ..Known::default() }
}

/// What a new run of a plan would begin with.
pub fn events(context: &Context, plan: &PlanFile) -> Vec<Event> {
    match plan.existing(context, now()) {
        Existing::Midway(midway) => midway.events,
        _ => Vec::new(),
    }
}

/// Whether files beside a plan tell of a run that can be taken over.
pub fn is_record(context: &Context, plan: &PlanFile) -> bool {
    matches!(plan.existing(context, now()), Existing::Midway(_) | Existing::Unclear(_))
}

/// Gives files that a new run takes the place of their other names.
pub fn set_aside(context: &Context, plan: &PlanFile, mut known: Known) -> Result<Known> {
    for (from, to) in std::mem::take(&mut known.renames) {
        rename(&context.project.root, &from, &to).map_err(|error| {
            CommandError::failed("world", format!("{from} could not be renamed: {error}"))
                .hint(format!("rename it yourself, then run {} again", plan.path))
        })?;
    }
    if let Some(upgrade) = known.upgrade.take() {
        upgraded(context, &upgrade).map_err(|error| {
            CommandError::failed(
                "world",
                format!("{} could not be upgraded: {error}", upgrade.from),
            )
            .hint("check that you own the file and that the disk has space")
        })?;
    }
    Ok(known)
}

/// Writes a record in its new form, and only then gives the old file another name.
fn upgraded(context: &Context, upgrade: &Upgrade) -> std::io::Result<()> {
    let root = &context.project.root;
    let new = format!("{}.new", upgrade.to);
    match std::fs::remove_file(root.join(&new)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => create(root, &new, &upgrade.text)?,
    }
    rename(root, &new, &upgrade.to)?;
    let backup = if root.join(&upgrade.backup).exists() {
        format!("{}.{}", upgrade.backup, stamp(now()))
    } else {
        upgrade.backup.clone()
    };
    rename(root, &upgrade.from, &backup)
}

/// Records what a run begins with; with `release`, somebody else drives it then.
pub fn record(
    store: &mut Store,
    row: &RunRow,
    lease: &Lease,
    events: &[Event],
    release: bool,
) -> Result<()> {
    let (mut state, at) = (RunState::default(), now());
    for event in events {
        piton_core::apply(&mut state, at, event)?;
    }
    store.append(&Commit {
        row,
        epoch: lease.epoch,
        expected_seq: 0,
        at,
        events,
        state: &state,
        answered: &[],
        release,
    })?;
    Ok(())
}

//! Carries out a plan, or leaves everything as it was.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use super::apply::{Apply, Failed, about, is_in, sizes};
use super::atomic::clear_left_in;
use super::error::Error;
use super::{Plan, State, Step};
use crate::files::{os_path, sync};
use crate::objects::Oid;

/// Carries out a plan: verified and synced when it returns; on any failure all is as before.
pub fn execute(dir: &Path, plan: &Plan) -> Result<(), Error> {
    let both = plan.steps.iter().flat_map(|s| [s.from.oid(), s.to.oid()]).flatten();
    let oids: Vec<Oid> = both.collect::<BTreeSet<Oid>>().into_iter().collect();
    let sizes = sizes_of_all(dir, &oids)?;
    let moved = plan.steps.iter().find(|s| !is_still(dir, s));
    if let Some(step) = moved {
        return Err(Error::Moved { path: os_path(&step.path).to_owned() });
    }
    clear_left_in(dir, &plan.steps);
    let done = Apply::new(dir, dir, &sizes).run(&plan.steps);
    let done = done.and_then(|()| verify(dir, &plan.steps));
    let synced = |()| {
        let failed = |source| Failed::Io { path: dir.to_owned(), source };
        sync::file_system(dir).map_err(failed)
    };
    let done = done.and_then(synced);
    if let Err(why) = done {
        let back: Vec<Step> = plan.steps.iter().map(swapped).collect();
        let off: Vec<Step> = back.iter().filter(|s| !is_in(dir, &s.path, s.to)).cloned().collect();
        let undone = Apply::new(dir, dir, &sizes).stubborn().run(&off);
        return Err(match undone.and_then(|()| verify(dir, &back)) {
            Ok(()) => Error::PutBack { why },
            Err(and) => {
                Error::Half { why: why.into(), and: and.into(), present: plan.present.clone() }
            }
        });
    }
    Ok(())
}

/// The sizes of objects, none of which may be missing.
pub(super) fn sizes_of_all(dir: &Path, oids: &[Oid]) -> Result<HashMap<Oid, u64>, Error> {
    let sizes = sizes(dir, oids)?;
    let missing: Vec<&Oid> = oids.iter().filter(|oid| !sizes.contains_key(oid)).collect();
    match missing.first() {
        Some(first) => Err(Error::Missing { missing: missing.len(), first: first.to_string() }),
        None => Ok(sizes),
    }
}

/// Whether a path is as the snapshot of the present has it; a folder may have come by itself.
fn is_still(dir: &Path, step: &Step) -> bool {
    let is_dir = || about(dir, &step.path).is_some_and(|about| about.is_dir());
    let folder = matches!(step.to, State::Folder { .. }) && is_dir();
    (step.from == State::Absent && folder) || is_in(dir, &step.path, step.from)
}

fn swapped(step: &Step) -> Step {
    Step { path: step.path.clone(), from: step.to, to: step.from }
}

/// Looks at every path again.
fn verify(dir: &Path, steps: &[Step]) -> Result<(), Failed> {
    for step in steps {
        let folder = matches!(step.from, State::Folder { .. }) && step.to == State::Absent;
        // A folder stays while ignored files are in it.
        let stays = folder && about(dir, &step.path).is_some_and(|about| about.is_dir());
        if !stays && !is_in(dir, &step.path, step.to) {
            return Err(Failed::Differs(os_path(&step.path).to_owned()));
        }
    }
    Ok(())
}

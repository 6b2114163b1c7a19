//! Files whose being ignored changed since a snapshot.
//!
//! What a snapshot holds is restored exactly, also if it is ignored by now: so the snapshot of the
//! present, from which the way back leads, holds such files too. What the rules of a snapshot
//! ignored was never in it: it stays, as all ignored files do, although nothing ignores it now. Where
//! a work tree belongs to a lane alone, what stands in the place of something that a snapshot holds
//! goes, whatever it is: it is in the snapshot of the present too.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use super::apply::about;
use super::{State, Step, state};
use crate::files::{join, os_path, parent};
use crate::git::Git;
use crate::refs::Fence;
use crate::snapshot::rules::Ignores;
use crate::snapshot::settings::{self, Settings};
use crate::snapshot::{Error, Meta, Rules, Snapshot, Taker};

/// The name of the files with rules.
const RULES: &[u8] = b".gitignore";

/// Takes the snapshot of the present that the way to a target begins at: all that is not ignored,
/// and the files that the target has and that are ignored by now; in a work tree of a lane's own also
/// what is where the target has something else.
pub fn present(
    taker: &mut Taker,
    rules: &Rules,
    chain: &str,
    fence: &Fence,
    meta: &Meta<'_>,
    (target, own): (&str, bool),
) -> Result<Snapshot, Error> {
    let plain = taker.take(rules, chain, fence, meta)?;
    let dir = taker.workspace().dir.clone();
    let steps = state::compare(&dir, &plain.commit, target)?;
    let hidden = |step: &&Step| {
        step.from == State::Absent
            && step.to.oid().is_some()
            && !rules.excludes(&step.path)
            && about(&dir, &step.path).is_some_and(|about| !about.is_dir())
    };
    let mut also: BTreeSet<Vec<u8>> = steps.iter().filter(hidden).map(|s| s.path.clone()).collect();
    if own {
        let goes = steps.iter().filter(|step| !rules.excludes(&step.path));
        goes.for_each(|step| in_the_place(&dir, step, &mut also));
    }
    if also.is_empty() {
        return Ok(plain);
    }
    let rules = Rules { also, ..rules.clone() };
    taker.take(&rules, chain, fence, meta)
}

/// Adds what is where a target has something of another kind.
fn in_the_place(dir: &Path, step: &Step, found: &mut BTreeSet<Vec<u8>>) {
    let Some(there) = about(dir, &step.path) else { return };
    match step.to {
        State::File { .. } | State::Link { .. } if there.is_dir() => {
            all_below(dir, &step.path, found);
        }
        State::Folder { .. } if !there.is_dir() => {
            found.insert(step.path.clone());
        }
        _ => {}
    }
}

/// Adds all that is in a folder, and the folder itself if that is nothing: its name ends in a slash.
fn all_below(dir: &Path, folder: &[u8], found: &mut BTreeSet<Vec<u8>>) {
    found.insert(join(folder, b""));
    let listed = std::fs::read_dir(dir.join(os_path(folder)));
    for entry in listed.into_iter().flatten().flatten() {
        let path = join(folder, entry.file_name().as_bytes());
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            all_below(dir, &path, found);
        } else {
            found.insert(path);
        }
    }
}

/// The paths that would be deleted, but that the target's own rules ignore.
pub(super) fn ignored_then(
    dir: &Path,
    target: &state::Version<'_>,
    steps: &[Step],
    beside: Option<&str>,
) -> Result<BTreeSet<Vec<u8>>, Error> {
    let is_rules = |path: &[u8]| path == RULES || path.ends_with(b"/.gitignore");
    let mut nothing = BTreeSet::new();
    if !steps.iter().any(|step| is_rules(&step.path)) {
        // The rules are the same as now, and by those it is not ignored.
        return Ok(nothing);
    }
    let mut files = target.files()?;
    files.retain(|path, _| is_rules(path));
    let mut then = Then { dir, steps, given: BTreeMap::new(), known: BTreeMap::new(), top: None };
    for (path, (_, oid)) in files {
        let bytes = Git::at(dir).args(["cat-file", "blob", &oid.to_string()]).bytes()?;
        then.given.insert(path, bytes);
    }
    let settings = Settings::load(&settings::open(dir)?, 0)?;
    then.top = Ignores::everywhere(&settings.ignores);
    let known = match beside {
        Some(beside) => state::Version::open(dir, beside)?.files()?,
        None => BTreeMap::new(),
    };
    let goes = |step: &&Step| step.to == State::Absent && !known.contains_key(&step.path);
    for step in steps.iter().filter(goes) {
        let is_dir = matches!(step.from, State::Folder { .. });
        if then.ignores(&step.path, is_dir) {
            nothing.insert(step.path.clone());
        }
    }
    Ok(nothing)
}

/// The rules as they will be once the target is there.
struct Then<'a> {
    dir: &'a Path,
    steps: &'a [Step],
    /// The files with rules that the target has.
    given: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The rules of folders, as far as they were asked for.
    known: BTreeMap<Vec<u8>, Option<Arc<Ignores>>>,
    top: Option<Arc<Ignores>>,
}

impl Then<'_> {
    fn ignores(&mut self, path: &[u8], is_dir: bool) -> bool {
        let folder = parent(path).unwrap_or_default().to_vec();
        if !folder.is_empty() && self.ignores(&folder, true) {
            return true;
        }
        self.within(&folder).is_some_and(|rules| rules.ignores(path, is_dir))
    }

    fn within(&mut self, folder: &[u8]) -> Option<Arc<Ignores>> {
        if let Some(known) = self.known.get(folder) {
            return known.clone();
        }
        let above = match parent(folder) {
            Some(above) if !folder.is_empty() => self.within(above),
            _ => self.top.clone(),
        };
        let file = join(folder, RULES);
        let goes = self.steps.iter().any(|s| s.path == file && s.to == State::Absent);
        let rules = match self.given.get(&file) {
            Some(bytes) => Some(Ignores::given(above, folder, bytes)),
            None if goes || !self.dir.join(os_path(&file)).is_file() => above,
            // One that is itself ignored is in no snapshot, and stays.
            None => Some(Ignores::within(above, self.dir, folder)),
        };
        self.known.insert(folder.to_vec(), rules.clone());
        rules
    }
}

//! Puts a work tree back to a snapshot, and says how versions differ.
//!
//! A restore is first a [`Plan`], which can be shown, and then its execution: objects are checked
//! before anything changes, only paths that differ are touched, the result is verified, and if
//! anything fails everything is put back. The caller takes the snapshot of the present that the
//! plan starts from; so a restore can itself be undone. Ignored files are never touched, except where
//! a lane's own work tree has them in the place of what comes back. HEAD, the index and branches are
//! not this module's business.

mod apply;
mod atomic;
mod error;
mod execute;
mod export;
mod ignored;
mod state;
mod torn_writes;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

pub use apply::Failed;
pub use error::Error;
pub use execute::execute;
pub use export::{export, exported};
pub use ignored::present;
pub(crate) use state::{State, Step};
pub use torn_writes::torn_writes;

use crate::files::{is_below, join, os_path, parent};
use crate::index::Index;
use crate::snapshot::settings::{self, Settings};
use crate::snapshot::{self, Rules, Snapshot, Why, Workspace};

/// How a path differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Only in the second.
    Added,
    /// Other bytes.
    Modified,
    /// Only in the first.
    Deleted,
    /// The same bytes with other permissions.
    Mode,
    /// A file in one, a link, a folder or a submodule in the other.
    Type,
}

/// A path that differs between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its path from the top of the work tree.
    pub path: Vec<u8>,
    /// How.
    pub kind: ChangeKind,
    /// Whether it is a folder, in either.
    pub folder: bool,
}

impl Change {
    fn new(step: &Step) -> Self {
        let kind = match (step.from, step.to) {
            (State::Absent, _) => ChangeKind::Added,
            (_, State::Absent) => ChangeKind::Deleted,
            (from, to) if !from.same_type(to) => ChangeKind::Type,
            (State::Folder { .. }, _) => ChangeKind::Mode,
            (State::File { oid, .. }, State::File { oid: other, .. }) if oid == other => {
                ChangeKind::Mode
            }
            _ => ChangeKind::Modified,
        };
        let is_folder = |state: State| matches!(state, State::Folder { .. });
        Self { path: step.path.clone(), kind, folder: is_folder(step.from) || is_folder(step.to) }
    }
}

/// How two versions differ; each is a snapshot or a plain commit. Sorted by path.
pub fn diff(dir: &Path, a: &str, b: &str) -> Result<Vec<Change>, snapshot::Error> {
    let steps = state::compare(dir, a, b)?;
    let added = |step: &Step| step.from == State::Absent || step.to == State::Absent;
    // Folders that come and go with their files are no news.
    let news = steps.iter().enumerate().filter(|(at, step)| {
        let folder =
            matches!((step.from, step.to), (State::Folder { .. }, _) | (_, State::Folder { .. }));
        let inner = steps.get(at + 1).is_some_and(|next| is_below(&next.path, &step.path));
        !(folder && added(step) && inner)
    });
    Ok(news.map(|(_, step)| Change::new(step)).collect())
}

/// What of a work tree is put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Files and folders from the top of the work tree; all, if there are none.
    pub paths: Vec<PathBuf>,
    /// Paths that the target does not have, and that stay nevertheless.
    pub keep: BTreeSet<Vec<u8>>,
    /// The snapshot that was gone to from the target, which [`present`] took: what that one has and
    /// the target has not was not there, even if it is ignored.
    pub beside: Option<String>,
    /// Whether it belongs to a lane alone: what is in the place of something that the target has
    /// goes, as far as [`present`] took it.
    pub own: bool,
}

impl Scope {
    fn holds(&self, step: &Step) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        self.paths.is_empty()
            || self.paths.iter().any(|scope| {
                let scope = scope.as_os_str().as_bytes();
                let scope = scope.strip_suffix(b"/").unwrap_or(scope);
                let is_folder = |state: State| matches!(state, State::Folder { .. });
                let turns = is_folder(step.to) != is_folder(step.from);
                // On the way back it is not a folder any more if the way there made it one.
                let is_made = is_folder(step.to) || self.beside.is_some();
                let leads_there = turns && is_made && is_below(scope, &step.path);
                scope == step.path || is_below(&step.path, scope) || leads_there
            })
    }
}

/// Why a path that differs stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptWhy {
    /// The caller asked for it.
    Foreign,
    /// One of the two snapshots does not have its content.
    NotCaptured(Why),
    /// Something that no snapshot holds (it is ignored) is where it would go.
    InTheWay,
    /// The rules of the target ignore it, so the target never had it.
    IgnoredThen,
    /// A submodule's files are its own.
    Submodule,
    /// A sparse checkout leaves it out.
    Sparse,
}

impl fmt::Display for KeptWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("it appeared outside the run"),
            Self::NotCaptured(why) => write!(f, "not in the snapshot: {why}"),
            Self::InTheWay => f.write_str("an ignored file is in its place: move it away first"),
            Self::IgnoredThen => f.write_str("the checkpoint's own rules ignore it"),
            Self::Submodule => f.write_str("a submodule: use git in it"),
            Self::Sparse => f.write_str("outside the sparse checkout"),
        }
    }
}

/// A path that differs and stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its path from the top of the work tree.
    pub path: Vec<u8>,
    /// Why.
    pub why: KeptWhy,
}

/// What a restore will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub(crate) present: String,
    pub(crate) steps: Vec<Step>,
    /// Paths that differ and stay as they are.
    pub kept: Vec<Kept>,
}

impl Plan {
    /// Paths that are written, or get other permissions; folders among them.
    pub fn writes(&self) -> impl Iterator<Item = &[u8]> {
        self.steps.iter().filter(|s| s.to != State::Absent).map(|s| s.path.as_slice())
    }

    /// Paths that are deleted; folders among them, which go only if nothing ignored is in them.
    pub fn deletes(&self) -> impl Iterator<Item = &[u8]> {
        self.steps.iter().filter(|s| s.to == State::Absent).map(|s| s.path.as_slice())
    }

    /// Paths that do not get what the target has, because something else is there.
    pub fn blocked(&self) -> impl Iterator<Item = &[u8]> {
        let blocked = self.kept.iter().filter(|kept| kept.why == KeptWhy::InTheWay);
        blocked.map(|kept| kept.path.as_slice())
    }
}

/// Plans the way from the present, of which a snapshot was just taken, to a target.
///
/// The target is a snapshot or a plain commit.
pub fn plan(
    workspace: &Workspace,
    rules: &Rules,
    present: &Snapshot,
    target: &str,
    scope: &Scope,
) -> Result<Plan, snapshot::Error> {
    let dir = &workspace.dir;
    let (a, b) = (state::Version::open(dir, &present.commit)?, state::Version::open(dir, target)?);
    let mut steps = state::compare_versions(&a, &b)?;
    steps.retain(|step| !rules.excludes(&step.path) && scope.holds(step));
    let missed = [&a, &b].into_iter().filter_map(|v| v.manifest.as_ref()).flat_map(|m| &m.missed);
    let missed: Vec<_> = missed.filter(|m| m.why.content_is_missing()).collect();
    let lacking = b.manifest.as_ref().map_or(&[][..], |m| &m.missed);
    let mut stays = ignored::ignored_then(dir, &b, &steps, scope.beside.as_deref())?;
    if scope.own {
        let becomes_file = |step: &&Step| step.to.oid().is_some();
        let files: Vec<&Step> = steps.iter().filter(becomes_file).collect();
        stays.retain(|path| !files.iter().any(|file| is_below(path, &file.path)));
    }
    let mut going = going(&steps);
    going.retain(|path| !stays.contains(path));
    let mut planner = Planner { dir, scope, missed, lacking, stays, going, index: None };
    let mut kept = Vec::new();
    let mut left = Vec::with_capacity(steps.len());
    for step in steps {
        match planner.judge(&step)? {
            None => left.push(step),
            Some(Verdict::Kept(why)) => kept.push(Kept { path: step.path, why }),
            Some(Verdict::Silent) => {}
        }
    }
    Ok(Plan { present: present.commit.clone(), steps: left, kept })
}

/// Paths that will not be in the way, because they go or become folders.
fn going(steps: &[Step]) -> BTreeSet<Vec<u8>> {
    let goes = |step: &&Step| step.from != State::Absent && !step.from.same_type(step.to);
    steps.iter().filter(goes).map(|step| step.path.clone()).collect()
}

enum Verdict {
    Kept(KeptWhy),
    /// Nothing to do, and nothing to say.
    Silent,
}

struct Planner<'a> {
    dir: &'a Path,
    scope: &'a Scope,
    missed: Vec<&'a snapshot::Missed>,
    /// What the target misses.
    lacking: &'a [snapshot::Missed],
    /// Paths that the target's own rules ignore.
    stays: BTreeSet<Vec<u8>>,
    going: BTreeSet<Vec<u8>>,
    /// The index of a sparse checkout, once it was asked for; an empty one where there is none.
    index: Option<Index>,
}

impl Planner<'_> {
    fn judge(&mut self, step: &Step) -> Result<Option<Verdict>, snapshot::Error> {
        let path = step.path.as_slice();
        let is_submodule = |state: State| matches!(state, State::Submodule { .. });
        if is_submodule(step.from) || is_submodule(step.to) {
            return Ok(Some(Verdict::Kept(KeptWhy::Submodule)));
        }
        let covers = |m: &snapshot::Missed| m.path == path || is_below(path, &m.path);
        if let Some(missed) = self.missed.iter().find(|m| covers(m)) {
            // What took the place of a file would be merged as its deletion.
            let is_other = matches!(missed.why, Why::Nested | Why::Special);
            let is_held = step.to.oid().is_some() && !self.lacking.iter().any(covers);
            let blocked = self.scope.own && is_other && is_held;
            let why = KeptWhy::NotCaptured(missed.why);
            return Ok(Some(Verdict::Kept(if blocked { KeptWhy::InTheWay } else { why })));
        }
        if step.to == State::Absent {
            if self.stays.contains(path) {
                return Ok(Some(Verdict::Kept(KeptWhy::IgnoredThen)));
            }
            if self.scope.keep.contains(path) {
                return Ok(Some(Verdict::Kept(KeptWhy::Foreign)));
            }
            let holds_kept = || self.scope.keep.iter().any(|kept| is_below(kept, path));
            if matches!(step.from, State::Folder { .. }) && holds_kept() {
                return Ok(Some(Verdict::Silent));
            }
        }
        let there = apply::about(self.dir, path);
        let replaces = matches!(step.from, State::Folder { .. }) && step.to.oid().is_some();
        let blocked = match step.from {
            State::Absent => self.in_the_way(step, there.as_ref()),
            _ => replaces && !self.empties(path),
        };
        if blocked {
            return Ok(Some(Verdict::Kept(KeptWhy::InTheWay)));
        }
        if step.from != State::Absent && there.is_none() && self.is_sparse(path)? {
            return Ok(Some(Verdict::Kept(KeptWhy::Sparse)));
        }
        Ok(None)
    }

    /// Whether something that the present snapshot does not have is where a path goes.
    fn in_the_way(&self, step: &Step, there: Option<&std::fs::Metadata>) -> bool {
        if let Some(there) = there {
            return !(there.is_dir() && matches!(step.to, State::Folder { .. }));
        }
        let mut folder = parent(&step.path);
        while let Some(path) = folder.filter(|path| !path.is_empty()) {
            let about = apply::about(self.dir, path);
            if about.is_some_and(|about| !about.is_dir()) && !self.going.contains(path) {
                return true;
            }
            folder = parent(path);
        }
        false
    }

    /// Whether all that is in a folder goes.
    fn empties(&self, folder: &[u8]) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        let Ok(listed) = std::fs::read_dir(self.dir.join(os_path(folder))) else { return false };
        listed.flatten().all(|entry| {
            let path = join(folder, entry.file_name().as_bytes());
            let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
            let goes = self.going.contains(&path) && !self.scope.keep.contains(&path);
            goes && (!is_dir || self.empties(&path))
        })
    }

    fn is_sparse(&mut self, path: &[u8]) -> Result<bool, snapshot::Error> {
        if self.index.is_none() {
            let repo = settings::open(self.dir)?;
            let is_sparse = Settings::load(&repo, 0)?.sparse;
            let index = is_sparse.then(|| Index::read(self.dir, &repo.index())).transpose()?;
            self.index = Some(index.unwrap_or_default());
        }
        let index = self.index.as_ref();
        let skipped = |index: &Index| {
            index.get(path).is_some_and(|t| t.skipped)
                || (index.get(path).is_none() && index.has_below(path))
        };
        Ok(index.is_some_and(skipped))
    }
}

//! Protocol files on disk: makes the edits that the protocol of a run asks for.
//!
//! They are written from the ledger after it, and can be written again from it at any time. A file
//! that can't be written stops nothing: the next event writes it.

mod log;
pub(crate) mod replace;

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use piton_core::{Event, LanePath, Plan, RunState, Timestamp};
use piton_engine::world::Views;
use piton_engine::{Result, Store};
use piton_formats::plan::PLAN_BYTES_MAX;
use piton_protocols::files::{Around, Edit, Files, Wanted};
use piton_protocols::time;
use piton_workspace::files::beneath::AnchoredPath;
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::failed;
use super::run_lock::RunLock;
use replace::Replacer;

/// What an edit has remembered, in the folder of a run.
const MEMORY: &str = "protocol-memory";

/// Where a run's files lie, and what the ledger says of it and of others.
pub struct Place {
    /// The project's root.
    pub root: PathBuf,
    /// The project's state folder, which outlives all runs.
    pub state_dir: PathBuf,
    /// The folder of the run there.
    pub run_dir: PathBuf,
    /// The run.
    pub run_id: String,
    /// Opens the ledger to read.
    pub ledger: fn(&Path) -> Option<Store>,
    /// The protocol that it follows.
    pub protocol: String,
}

/// Writes the protocol files of one run.
pub struct Writer {
    place: Place,
    files: Box<dyn Files>,
    replacer: Replacer,
    run_lock: RunLock,
    /// Lines for the log that are not in it yet.
    unlogged: String,
    /// The last event that it has, or shall have with those lines.
    logged: u64,
    /// Whether it was there: then one that is not there was deleted.
    has_log: bool,
    /// When the run last did something: the name of what is kept aside.
    last_at: Timestamp,
}

impl Writer {
    /// Makes one for the files of a run; `run_lock` is the lock that its drivers hold while they act.
    pub fn new(place: Place, files: Box<dyn Files>, run_lock: RunLock) -> Self {
        let replacer = Replacer::new(&place.root, &place.state_dir);
        let (unlogged, last_at) = (String::new(), Timestamp::default());
        Self { place, files, replacer, run_lock, unlogged, logged: 0, has_log: false, last_at }
    }

    /// Lets a driver write them, and none that came before it.
    pub fn take_over(&mut self, epoch: u64) -> Result<()> {
        self.run_lock.take_over(epoch)
    }

    /// Brings files that a driver which died may have left behind up to what the ledger says: `all`
    /// are the events of the run from its first. What a person should know.
    pub fn bring_up(
        &mut self,
        all: &[(u64, Timestamp, Event)],
        plan: &Plan,
        state: &RunState,
    ) -> Vec<String> {
        for (_, at, event) in all {
            self.files.happened(*at, event);
        }
        let log = self.run_lock.hold().and_then(|_held| self.rebuild_log(all).map_err(failed));
        let mut said = Vec::from_iter(log.err().map(|e| format!("the log was not written: {e}")));
        match self.write(plan, state) {
            Ok(warnings) => said.extend(warnings),
            Err(error) => said.push(format!("a view was not written: {error}")),
        }
        said
    }

    /// Gives the files of a run that was archived their final names, and says so in them.
    pub fn set_aside(&mut self, plan: &Plan, state: &RunState) -> io::Result<()> {
        self.rename(plan, state, |(used, aside)| (used, aside))?;
        self.write_all(plan, state)
    }

    /// Gives them the names back that they had before.
    pub fn bring_back(&self, plan: &Plan, state: &RunState) -> io::Result<()> {
        self.rename(plan, state, |(used, aside)| (aside, used))
    }

    fn rename(
        &self,
        plan: &Plan,
        state: &RunState,
        order: fn((String, String)) -> (String, String),
    ) -> io::Result<()> {
        let mut files = self.files.archived(plan, state).into_iter().map(order);
        files.try_for_each(|(from, to)| rename(&self.place.root, &from, &to))
    }

    /// Writes what has to be; one that fails keeps none of the others back.
    fn write_all(&mut self, plan: &Plan, state: &RunState) -> io::Result<()> {
        self.last_at = state.last_at;
        let mut outcome = self.write_log();
        let Self { place, files, replacer, .. } = self;
        let stamp = time::stamp(state.last_at);
        for mut edit in files.edits(plan, state, place) {
            let path = place.root.join(edit.path());
            let mut changed = false;
            let written = replacer.replace(&path, &stamp, &mut |there, settled| {
                let wanted = edit.change(there, settled);
                changed = matches!(wanted, Wanted::Text { .. } | Wanted::Instead { .. });
                edit.before().map_or(Ok(()), |memory| place.remember(&memory))?;
                Ok(wanted)
            });
            let written =
                written.and_then(|()| if changed { sound(&*edit, &path) } else { Ok(()) });
            let after = |()| edit.after().map_or(Ok(()), |memory| place.remember(&memory));
            outcome = outcome.and(written.and_then(after));
        }
        outcome
    }

    /// Appends to the log what was taken for it; one that was deleted is written again.
    fn write_log(&mut self) -> io::Result<()> {
        let Some(log) = self.files.log() else { return Ok(()) };
        let path = self.place.root.join(log);
        if self.has_log && !self.unlogged.is_empty() && !path.exists() {
            let mut all = self.place.history().unwrap_or_default();
            // What is not taken for it yet comes later.
            all.retain(|(seq, ..)| *seq <= self.logged);
            if !all.is_empty() {
                self.rebuild_log(&all)?;
                self.unlogged.clear();
            }
        }
        log::append(&self.replacer, &path, &self.unlogged)?;
        self.has_log |= !self.unlogged.is_empty();
        self.unlogged.clear();
        Ok(())
    }

    /// Completes the log: `all` are the events of the run from its first.
    fn rebuild_log(&mut self, all: &[(u64, Timestamp, Event)]) -> io::Result<()> {
        let Some(log) = self.files.log() else { return Ok(()) };
        let lines: String = all.iter().map(|(_, at, event)| self.files.lines(*at, event)).collect();
        if let Some((seq, at, _)) = all.last() {
            (self.logged, self.last_at) = (*seq, *at);
        }
        let path = self.place.root.join(log);
        log::rebuild(&mut self.replacer, &path, &time::stamp(self.last_at), &lines)?;
        self.has_log = true;
        Ok(())
    }
}

/// Asks an edit whether its file is as it should be, now that it is written.
fn sound(edit: &dyn Edit, path: &Path) -> io::Result<()> {
    let flaw = edit.flaw(&|| crate::read::bytes(path, PLAN_BYTES_MAX));
    let words = |flaw| io::Error::other(format!("{}: {flaw}", path.display()));
    flaw.map_or(Ok(()), |flaw| Err(words(flaw)))
}

/// Makes a file of a project that is not there yet, durably, with the folders above it.
pub fn create(root: &Path, path: &str, text: &str) -> io::Result<()> {
    let full = root.join(path);
    let folder = full.parent().unwrap_or(root);
    fs::create_dir_all(folder)?;
    let mut file = File::create_new(&full)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    File::open(folder)?.sync_all()
}

/// Gives a file of a project another name, if it is there.
pub fn rename(root: &Path, from: &str, to: &str) -> io::Result<()> {
    let find = |path: &str| AnchoredPath::at(root, &root.join(path));
    match find(from)?.rename(&find(to)?, RenameFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Views for Writer {
    fn happened(&mut self, events: &[(u64, Timestamp, &Event)], state: &RunState) -> bool {
        let mut is_first = false;
        for (seq, at, event) in events {
            self.files.happened(*at, event);
            self.unlogged.push_str(&self.files.lines(*at, event));
            self.logged = self.logged.max(*seq);
            is_first |= self.files.is_shown_first(event, state);
        }
        is_first
    }

    fn write(&mut self, plan: &Plan, state: &RunState) -> Result<Vec<String>> {
        let _held = self.run_lock.hold()?;
        self.write_all(plan, state).map_err(failed)?;
        Ok(std::mem::take(&mut self.replacer.warnings))
    }

    fn recent(&self, lane: &LanePath) -> Vec<String> {
        self.files.recent(lane)
    }
}

impl Place {
    /// Keeps what an edit wants to be remembered, durably.
    fn remember(&self, memory: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.run_dir)?;
        let new = self.run_dir.join(format!("{MEMORY}.new"));
        let mut file = File::create(&new)?;
        file.write_all(memory)?;
        file.sync_all()?;
        fs::rename(new, self.run_dir.join(MEMORY))
    }

    /// All events of the run; nothing where they can't be read.
    fn history(&self) -> Option<Vec<(u64, Timestamp, Event)>> {
        let mut store = (self.ledger)(&self.state_dir)?;
        let row = store.ledger().run(&self.run_id).ok()??;
        store.history(&row).ok()
    }
}

impl Around for Place {
    fn text(&self, path: &str) -> Option<String> {
        crate::read::text(&self.root.join(path), PLAN_BYTES_MAX).ok()
    }

    fn modified(&self, path: &str) -> Option<Timestamp> {
        crate::read::modified(&self.root.join(path))
    }

    fn memory(&self) -> Vec<u8> {
        fs::read(self.run_dir.join(MEMORY)).unwrap_or_default()
    }

    fn runs(&self) -> Vec<RunState> {
        let Some(mut store) = (self.ledger)(&self.state_dir) else { return Vec::new() };
        let mut rows = store.runs().unwrap_or_default();
        rows.retain(|row| Path::new(&row.root) == self.root);
        // The newest is the first of them. What can't be read is left out.
        let load = |row| Some(store.load_row(row).ok()?.state);
        let states = rows.into_iter().rev().filter_map(load);
        states.filter(|state| state.protocol.id == self.protocol).collect()
    }
}

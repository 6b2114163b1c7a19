//! The views of the lanes protocol: `checkpoints.json`, run log, run report, and the gates of a
//! phase document.
//!
//! They are written from the ledger after it, and can be written again from it at any time. What
//! others wrote into them stays. Nothing here decides anything about the run, and a view that can't
//! be written stops nothing: the next event writes it.

mod entries;
mod gates;
mod log;
mod prompt;
mod records;
mod replace;
mod report;
mod write;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use piton_core::event::{ProtocolRef, Shape};
use piton_core::lane::Isolation;
use piton_core::{Event, LanePath, Plan, RunState, Status, Timestamp};
use piton_engine::world::Rooms;
use piton_protocols::Protocol as _;
use piton_protocols::lanes::checkpoints::{Book, OwnRecord};
use piton_protocols::lanes::{Lanes, naming, time};
use piton_workspace::beneath::Spot;
use rustix::fs::RenameFlags;
use rustix::io::Errno;

pub use entries::leaving;
pub use prompt::Told;
use prompt::prompt;
pub use records::records;
use replace::Replacer;

/// Where the views of a project lie, from its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewPaths {
    /// The file of checkpoints.
    pub checkpoints: String,
    /// The folder of run logs.
    pub run_logs: String,
    /// The folder of run reports.
    pub run_reports: String,
    /// The folder of worktrees, where a lane will work that has not begun.
    pub worktrees: String,
}

impl Default for ViewPaths {
    fn default() -> Self {
        Self {
            checkpoints: naming::CHECKPOINTS_PATH.to_owned(),
            run_logs: naming::RUN_LOGS_DIR.to_owned(),
            run_reports: naming::RUN_REPORTS_DIR.to_owned(),
            worktrees: naming::WORKTREES_DIR.to_owned(),
        }
    }
}

impl ViewPaths {
    /// The log of a run, by the run's id or the name it has once it is set aside.
    pub fn run_log(&self, name: &str) -> String {
        format!("{}/{name}.jsonl", self.run_logs.trim_end_matches('/'))
    }

    /// The report of a run, by the same name.
    pub fn run_report(&self, name: &str) -> String {
        format!("{}/{name}.md", self.run_reports.trim_end_matches('/'))
    }
}

/// What the files of a run are called: its id, and when it was archived if it was.
pub(super) fn file_name(run_id: &str, state: &RunState) -> String {
    if state.ended == Some(Status::Archived) {
        // Nothing happens to a run after that, unless it is brought back.
        return format!("{run_id}.archived-{}", time::stamp(state.last_at));
    }
    run_id.to_owned()
}

/// Entries of the log that an attempt is told of, as the contract has it.
const RECENT_MAX: usize = 5;

/// Whether views are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// For runs with a lane in a worktree, and runs of a phase document.
    #[default]
    Auto,
    /// For every run.
    On,
    /// For none.
    Off,
}

/// Lanes of a run that write its views.
pub trait Viewed: Rooms {
    /// Brings the run log up to what the ledger says: `all` are the events of the run from its first.
    fn rebuild_log(
        &mut self,
        run_id: &str,
        all: Vec<(u64, Timestamp, Event)>,
    ) -> piton_engine::Result<()>;
}

/// The records of all runs of the project that have views, each with its id, the oldest first.
pub type AllRecords = Vec<(String, Vec<OwnRecord>)>;

/// Finds them.
pub type Others = Box<dyn Fn() -> AllRecords>;

/// Finds all events of the run, from its first.
pub type History = Box<dyn Fn() -> Vec<(u64, Timestamp, Event)>>;

/// Writes the views of one run.
pub struct Views {
    root: PathBuf,
    paths: ViewPaths,
    mode: Mode,
    files: Replacer,
    /// What was last written into the file of checkpoints.
    book: Book,
    /// The phase document, where the plan is one.
    document: Option<String>,
    /// What it calls its lanes, once that was read.
    names: Option<report::Names>,
    /// Whether a lane works in a worktree.
    isolated: bool,
    /// Lanes that do tasks of other lanes, as far as events told.
    parts: entries::Parts,
    /// Lines for the run's log that are not in it yet.
    unlogged: String,
    /// The last event that it has, or shall have with those lines.
    logged: u64,
    /// Whether it was there: then one that is not there was deleted.
    has_log: bool,
    /// What the ledger says of this run, for a log that is gone.
    history: Option<History>,
    /// The last entries about each lane, in words.
    recent: BTreeMap<LanePath, VecDeque<String>>,
    /// What is known of ticks in it.
    ticks: gates::Ticks,
    /// When the run last did something: the name of what is kept aside.
    last_at: Timestamp,
    /// What the ledger says of all runs, for a file that has to be written anew.
    others: Option<Others>,
}

impl Views {
    /// Makes the views of a run below `root`; `lock_dir` is the project's state folder.
    pub fn new(root: &Path, lock_dir: &Path, paths: ViewPaths, mode: Mode) -> Self {
        Self {
            root: root.to_owned(),
            paths,
            mode,
            files: Replacer::new(root, lock_dir),
            book: Book::default(),
            document: None,
            names: None,
            isolated: false,
            parts: entries::Parts::new(),
            unlogged: String::new(),
            logged: 0,
            has_log: false,
            history: None,
            recent: BTreeMap::new(),
            ticks: gates::Ticks::new(lock_dir),
            last_at: Timestamp::default(),
            others: None,
        }
    }

    /// Says where the records of all runs are found: a file that is gone held them too.
    #[must_use]
    pub fn with_others(mut self, others: Others) -> Self {
        self.others = Some(others);
        self
    }

    /// Says where the events of the run are found: a log that is deleted while it runs had them.
    #[must_use]
    pub fn with_history(mut self, history: History) -> Self {
        self.history = Some(history);
        self
    }

    /// Says what the plan's file is: a phase document becomes one of the views.
    #[must_use]
    pub fn with_plan(mut self, protocol: &ProtocolRef, plan_path: &str) -> Self {
        self.look_at_plan(protocol, plan_path);
        self
    }

    /// Paths that never count as dirt, from the root: files, and folders with all in them.
    pub fn own_paths(&self) -> Vec<String> {
        let checkpoints = self.paths.checkpoints.as_str();
        // A folder of the protocol's own holds only such files, also those of a killed writer.
        let folder = checkpoints.rsplit_once('/').map(|(folder, _)| folder);
        let own = folder.filter(|f| f.rsplit('/').next() == Some("run-logs"));
        let mut all = vec![own.unwrap_or(checkpoints).to_owned()];
        all.extend([self.paths.run_logs.clone(), self.paths.run_reports.clone()]);
        all.extend(self.document.clone().filter(|path| !Path::new(path).is_absolute()));
        all
    }

    /// What a person should know about the views since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.files.warnings)
    }

    /// Writes all views; what is as it should be is not touched.
    pub fn write(&mut self, plan: &Plan, state: &RunState) -> io::Result<()> {
        self.look_at_plan(&state.protocol, &state.plan_path);
        self.isolated |= state.lanes().any(|(_, lane)| lane.isolation == Isolation::Worktree);
        self.last_at = state.last_at;
        let Some(run_id) = state.run_id.as_ref().filter(|_| self.is_wanted()) else {
            return Ok(());
        };
        // One that fails keeps none of the others back.
        let log = self.write_log(&run_id.0);
        let checkpoints = self.write_checkpoints(state);
        let report = self.write_report(&file_name(&run_id.0, state), plan, state);
        let gates = self.tick_gates(&run_id.0, plan, state);
        log.and(checkpoints).and(report).and(gates)
    }

    /// Gives the files of a run that was archived their final names, and says so in them.
    pub fn set_aside(&mut self, plan: &Plan, state: &RunState) -> io::Result<()> {
        let run_id = state.run_id.as_ref().map(|id| id.0.clone()).unwrap_or_default();
        self.rename(&run_id, &file_name(&run_id, state))?;
        self.write(plan, state)
    }

    /// Gives them the names back that they had before.
    pub fn bring_back(&self, state: &RunState) -> io::Result<()> {
        let run_id = state.run_id.as_ref().map(|id| id.0.clone()).unwrap_or_default();
        self.rename(&file_name(&run_id, state), &run_id)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let paths = &self.paths;
        let log = (paths.run_log(from), paths.run_log(to));
        let report = (paths.run_report(from), paths.run_report(to));
        for (from, to) in [log, report] {
            let find = |path: String| Spot::at(&self.root, &self.root.join(path));
            match find(from)?.rename(&find(to)?, RenameFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes what happened for the run's log, which is written with the other views; says whether
    /// there are any.
    pub fn log(&mut self, run_id: &str, events: &[(u64, Timestamp, &Event)]) -> bool {
        for (seq, _, event) in events {
            self.look_at(event);
            self.remember(event);
            self.logged = self.logged.max(*seq);
        }
        if self.is_wanted() {
            let parts = &self.parts;
            let lines =
                events.iter().map(|(_, at, event)| entries::lines(run_id, *at, parts, event));
            self.unlogged.extend(lines);
        }
        self.is_wanted()
    }

    /// Appends to the run's log what was taken for it; one that was deleted is written anew.
    fn write_log(&mut self, run_id: &str) -> io::Result<()> {
        let path = self.root.join(self.paths.run_log(run_id));
        if self.has_log && !self.unlogged.is_empty() && !path.exists() {
            let mut all = self.history.as_ref().map(|find| find()).unwrap_or_default();
            // What is not taken for it yet comes later.
            all.retain(|(seq, ..)| *seq <= self.logged);
            if !all.is_empty() {
                self.rebuild_log(run_id, all.into_iter())?;
                self.unlogged.clear();
            }
        }
        log::append(&self.files, &path, &self.unlogged)?;
        self.has_log |= !self.unlogged.is_empty();
        self.unlogged.clear();
        Ok(())
    }

    /// Makes the run's log whole: `all` are the events of the run from its first.
    pub fn rebuild_log(
        &mut self,
        run_id: &str,
        all: impl Iterator<Item = (u64, Timestamp, Event)>,
    ) -> io::Result<()> {
        let mut lines = String::new();
        self.recent.clear();
        for (seq, at, event) in all {
            self.look_at(&event);
            self.last_at = at;
            self.logged = self.logged.max(seq);
            self.remember(&event);
            lines.push_str(&entries::lines(run_id, at, &self.parts, &event));
        }
        if !self.is_wanted() {
            return Ok(());
        }
        let path = self.root.join(self.paths.run_log(run_id));
        let stamp = time::stamp(self.last_at);
        log::rebuild(&mut self.files, &path, &stamp, &lines)?;
        self.has_log = true;
        Ok(())
    }

    fn remember(&mut self, event: &Event) {
        for (lane, text) in entries::told(&self.parts, event) {
            let recent = self.recent.entry(lane).or_default();
            recent.push_back(text);
            if recent.len() > RECENT_MAX {
                recent.pop_front();
            }
        }
    }

    /// The last entries of the run's log about a lane; those of a task stand with its lane.
    pub fn logged(&self, lane: &LanePath) -> Vec<String> {
        if !self.is_wanted() {
            return Vec::new();
        }
        let whole = self.parts.get(lane).map_or(&lane.lane, |task| &task.lane);
        let name = records::lane_of(whole).to_owned();
        let lane = LanePath { phase: lane.phase.clone(), lane: name };
        self.recent.get(&lane).into_iter().flatten().cloned().collect()
    }

    /// Whether this run has views, as far as its plan and its events told.
    pub fn is_wanted(&self) -> bool {
        match self.mode {
            Mode::On => true,
            Mode::Off => false,
            Mode::Auto => self.isolated || self.document.is_some(),
        }
    }

    /// What the contract wants to be said of the lanes that are meant; nothing where no view is
    /// written.
    pub fn prompt(&mut self, state: &RunState, told: Told) -> Vec<String> {
        self.look_at_plan(&state.protocol, &state.plan_path);
        self.isolated |= state.lanes().any(|(_, lane)| lane.isolation == Isolation::Worktree);
        if self.is_wanted() { prompt(&self.root, &self.paths, state, told) } else { Vec::new() }
    }

    fn look_at_plan(&mut self, protocol: &ProtocolRef, plan_path: &str) {
        self.document = (protocol.reader == Lanes.id()).then(|| plan_path.to_owned());
    }

    /// Learns from an event whether the run has views.
    fn look_at(&mut self, event: &Event) {
        let isolated = |shape: &Shape| {
            let mut lanes = shape.phases.iter().flat_map(|phase| &phase.lanes);
            lanes.any(|lane| lane.isolation == Isolation::Worktree)
        };
        let shape = match event {
            Event::RunCreated(e) => {
                self.look_at_plan(&e.protocol, &e.plan_path);
                &e.shape
            }
            Event::PlanAccepted(e) => &e.shape,
            _ => return,
        };
        self.isolated |= isolated(shape);
        for phase in &shape.phases {
            let parts = phase.lanes.iter().filter_map(|l| Some((l, l.task.clone()?)));
            self.parts.extend(parts.map(|(lane, task)| {
                (LanePath { phase: phase.id.clone(), lane: lane.id.clone() }, task)
            }));
        }
    }
}

//! The files of the lanes protocol: `checkpoints.json`, run log, run report, and the gates of a
//! phase document.
//!
//! They are written from the ledger and can be rebuilt from it at any time. What others wrote into
//! them is kept.

mod edits;
mod entries;
mod gates;
mod records;
mod report;
mod words;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use piton_core::lane::Role;
use piton_core::{Event, LanePath, Plan, RunState, Status, Timestamp};
use piton_formats::settings::{self, Views};

use super::{Lanes, checkpoints};
use crate::files::{Around, Edit, Files, Occasion, Run};
use crate::protocol::Protocol as _;
use crate::time;

/// Entries of the log in a failure context, as the contract says.
const RECENT_MAX: usize = 5;

/// Where the files of a project are.
struct Place {
    root: PathBuf,
    settings: settings::Lanes,
}

impl Place {
    fn log(&self, name: &str) -> String {
        format!("{}/{name}.jsonl", self.settings.run_logs.trim_end_matches('/'))
    }

    fn report(&self, name: &str) -> String {
        format!("{}/{name}.md", self.settings.run_reports.trim_end_matches('/'))
    }
}

/// The files of one run.
pub(super) struct LaneFiles {
    place: Place,
    run_id: String,
    /// The phase document, if the plan is one.
    document: Option<String>,
    /// What the report takes from it, once it was read.
    told: Option<report::Told>,
    /// What its lanes and steps are for.
    roles: entries::Roles,
    /// The last entries of each lane, in words.
    recent: BTreeMap<LanePath, VecDeque<String>>,
    /// What is known about ticks in the document.
    ticks: gates::Ticks,
    /// The records as they were written last.
    written: checkpoints::Written,
}

impl LaneFiles {
    /// The files of a run; `None` if the settings switch them off.
    pub fn new(run: &Run<'_>) -> Option<Self> {
        let settings = run.settings.lanes.clone();
        (settings.views != Views::Off).then(|| Self {
            place: Place { root: run.root.to_owned(), settings },
            run_id: run_id(run.state),
            document: document(run.state).map(ToOwned::to_owned),
            told: None,
            roles: entries::Roles::new(run.state),
            recent: BTreeMap::new(),
            ticks: gates::Ticks::default(),
            written: checkpoints::Written::default(),
        })
    }
}

/// Where the files of all runs are, and the document of this one.
pub(super) fn own_paths(run: &Run<'_>) -> Vec<String> {
    let mut all = written(run.settings);
    all.extend(document(run.state).filter(|path| !path.starts_with('/')).map(ToOwned::to_owned));
    all
}

/// Where the files of all runs are, without documents: nobody writes them but Piton and its kin.
pub(super) fn written(settings: &settings::Settings) -> Vec<String> {
    let settings = &settings.lanes;
    let checkpoints = settings.checkpoints.as_str();
    // A folder of the protocol contains only such files, also those of a killed writer.
    let folder = checkpoints.rsplit_once('/').map(|(folder, _)| folder);
    let own = folder.filter(|f| f.rsplit('/').next() == Some("run-logs"));
    let mut all = vec![own.unwrap_or(checkpoints).to_owned()];
    all.extend([settings.run_logs.clone(), settings.run_reports.clone()]);
    all
}

/// The phase document of a run, if its plan is one.
fn document(state: &RunState) -> Option<&str> {
    (state.protocol.reader == Lanes.id()).then_some(&*state.plan_path)
}

fn run_id(state: &RunState) -> String {
    state.run_id.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// The name of a run's files: its id, and the time if it was archived.
fn name(state: &RunState) -> String {
    let run_id = run_id(state);
    if state.ended == Some(Status::Archived) {
        // An archived run does not change any more, unless it is restored.
        return format!("{run_id}.archived-{}", time::stamp(state.last_at));
    }
    run_id
}

impl Files for LaneFiles {
    fn edits<'e>(
        &'e mut self,
        plan: &'e Plan,
        state: &'e RunState,
        around: &'e dyn Around,
    ) -> Vec<Box<dyn Edit + 'e>> {
        let Self { place, document, told, ticks, written, .. } = self;
        let told = told.get_or_insert_with(|| {
            let text = document.as_ref().and_then(|path| around.text(path));
            text.map(|text| report::told(&text)).unwrap_or_default()
        });
        let (path, ours) = (place.report(&name(state)), records::records(place, state));
        let reported = report::ours(place, plan, state, told);
        let mut all: Vec<Box<dyn Edit>> = vec![
            Box::new(edits::Recording { place, ours, written, around }),
            Box::new(edits::Reporting { path, ours: reported }),
        ];
        if let Some(path) = document {
            all.extend(gates::ticking(path, ticks, plan, state, around));
        }
        all
    }

    fn happened(&mut self, _at: Timestamp, event: &Event) {
        let shape = match event {
            Event::RunCreated(e) => Some(&e.shape),
            Event::PlanAccepted(e) => Some(&e.shape),
            _ => None,
        };
        if let Some(shape) = shape {
            self.roles.learn(shape);
        }
        for (lane, text) in entries::words(&self.roles, event) {
            let recent = self.recent.entry(lane).or_default();
            recent.push_back(text);
            if recent.len() > RECENT_MAX {
                recent.pop_front();
            }
        }
    }

    /// Whoever reads only the checkpoints finds each before what it comes before: that of a start before
    /// the worktree is made, that of a merge or pull request before base moves or it is opened. A
    /// retry finds the records of earlier attempts.
    fn is_shown_first(&self, event: &Event, state: &RunState) -> bool {
        match event {
            Event::StepStarted(e) => {
                e.attempt > 1 || matches!(state.role(&e.step), Role::PullRequest | Role::Tests)
            }
            Event::LaneBegun(_) | Event::MergeIntended(_) => true,
            _ => false,
        }
    }

    fn log(&self) -> Option<String> {
        Some(self.place.log(&self.run_id))
    }

    fn lines(&self, at: Timestamp, event: &Event) -> String {
        entries::lines(&self.run_id, at, &self.roles, event)
    }

    /// The entries of a task are with its lane.
    fn recent(&self, lane: &LanePath) -> Vec<String> {
        let name = self.roles.name(lane).to_owned();
        let lane = LanePath { phase: lane.phase.clone(), lane: name };
        self.recent.get(&lane).into_iter().flatten().cloned().collect()
    }

    fn archived(&self, _plan: &Plan, state: &RunState) -> Vec<(String, String)> {
        let (place, used, aside) = (&self.place, &self.run_id, name(state));
        vec![(place.log(used), place.log(&aside)), (place.report(used), place.report(&aside))]
    }

    fn words(&self, state: &RunState, occasion: Occasion) -> Vec<String> {
        words::words(&self.place, state, occasion)
    }
}

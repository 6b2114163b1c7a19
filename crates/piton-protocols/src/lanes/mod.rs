//! The lanes protocol: phase documents, `checkpoints.json`, run log and run report.
//!
//! Readers accept what real documents contain and report what they do not understand; writers emit
//! every field of the contract.

/// An enum of the words that a field of a file can have, with a variant for any other word.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
            /// A word that this version does not know; it is kept.
            Unknown(String),
        }
        impl $name {
            /// Reads a word.
            pub fn read(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    other => Self::Unknown(other.to_owned()),
                }
            }
            /// The word as it is written.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Unknown(word) => word,
                }
            }
        }
    };
}

pub mod checkpoints;
mod files;
mod fix;
mod import;
mod inspect;
pub mod phase;
mod read;
mod roadmap;
pub mod run_log;
mod start;

use piton_core::hash::Sha;
use piton_core::lane::TaskOf;
use piton_core::{LanePath, Plan, RunState, Timestamp};
use piton_formats::settings::{Settings, Views};
use piton_formats::template::Given;

use crate::files::{Files, Run};
use crate::format::{Claim, Format};
use crate::protocol::{
    Blocker, Fix, Imported, Link, Names, Protocol, Reader, Reading, Source, Start, Starting,
    Unreadable,
};

/// The protocol's id, and that of its reader of phase documents.
pub const ID: &str = "lanes";
/// Means "no lane" and "no task" in records.
pub const NONE: &str = "-";

/// The lanes protocol.
#[derive(Debug)]
pub struct Lanes;

impl Protocol for Lanes {
    fn id(&self) -> &'static str {
        ID
    }

    fn plans(&self) -> &'static str {
        "a phase document, which has a `## Lane Index & Dependencies`, or a roadmap or folder of them"
    }

    fn claim(&self, source: &Source<'_>) -> Claim {
        let is_phase = || source.text.is_some_and(phase::is_phase);
        if !source.has_extension("toml") && is_phase() { Claim::Content } else { Claim::No }
    }

    fn chain(&self, source: &Source<'_>) -> Vec<Link> {
        roadmap::links(source)
    }

    fn fix(&self, state: &RunState, task: &str) -> Option<Fix> {
        fix::plan(state, task)
    }

    fn read(&self, source: &Source<'_>) -> Result<Reading, Unreadable> {
        read::read(source)
    }

    fn adopts(&self, _plan: &Plan, settings: &Settings) -> bool {
        settings.lanes.views == Views::On
    }

    fn as_recorded(&self, plan: &mut Plan, recorded: &Plan) {
        read::keep_recorded_needs(plan, recorded);
    }

    fn formats(&self) -> &'static [Format] {
        inspect::FORMATS
    }

    fn start(&self, plan: &Plan, earlier: &RunState, _now: Timestamp) -> Start {
        start::start(plan, earlier)
    }

    fn is_needed(&self, run: &RunState, need: &str) -> bool {
        start::has_phase(run, need)
    }

    fn retries_on_resume(&self) -> bool {
        true
    }

    fn import(&self, file: &str, text: &str) -> Option<Imported> {
        let text_only = text.trim_start_matches('\u{feff}').trim_start();
        let is_list = text_only.is_empty() || text_only.starts_with('[');
        is_list.then(|| import::runs(file, text))
    }

    fn is_plan_of(&self, text: &str, phase: &str) -> bool {
        phase::is_phase(text)
            && phase::read("", text).is_ok_and(|(found, _)| phase::plan_id(&found.id) == phase)
    }

    fn inputs(&self, plan: (&str, &Plan), read: &Reader<'_>) -> Option<(Vec<String>, Sha)> {
        let text = read(plan.0).ok()?;
        let (document, _) = phase::inspect("", &text);
        Some((document.ticked(), Sha::of(text.as_bytes())))
    }

    fn dispatch(&self, starting: &Starting<'_>) -> Given {
        read::given(starting)
    }

    fn names(&self, lane: &LanePath, task: Option<&TaskOf>) -> Names {
        match task {
            Some(TaskOf { lane: parent, task, .. }) => Names {
                branch: format!("lane-task/{}/{parent}/{task}", lane.phase),
                folder: format!("tasks/{task}"),
            },
            None => Names { branch: format!("lane/{lane}"), folder: lane.to_string() },
        }
    }

    fn files(&self, run: &Run<'_>) -> Option<Box<dyn Files>> {
        Some(Box::new(files::LaneFiles::new(run)?))
    }

    fn own_paths(&self, run: &Run<'_>) -> Vec<String> {
        files::own_paths(run)
    }

    fn kept_out(&self, settings: &Settings) -> Vec<String> {
        files::written(settings)
    }

    fn blockers(&self, state: &RunState) -> Vec<Blocker> {
        fix::blockers(state)
    }
}

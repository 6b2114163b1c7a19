//! The pipeline protocol: one feature through its stages, with a state file and decisions of people.
//!
//! A feature is a folder with a spec. Its stages are phases of a plan, its boxes gates; what the
//! protocol needs beyond that (changes wanted, escalation, files that a stage may not change, outputs
//! that are asked about) are mechanisms that every plan has.

pub mod adr;
mod checks;
pub mod decision;
mod dispatch;
mod existing;
mod files;
pub mod gaps;
pub mod hashes;
mod init;
mod inspect;
mod plan;
pub mod settings;
pub mod stages;
pub mod state;
mod story;

use piton_core::hash::Sha;
use piton_core::state::RunState;
use piton_core::{GateRef, Plan, Status, Timestamp};
use piton_formats::keys::Section;
use piton_formats::template::Given;

use crate::files::{Files, Run};
use crate::format::{Claim, Format};
use crate::protocol::{
    Begun, Candidate, Existing, Finding, Look, New, Protocol, Reader, Reading, Source, Start,
    Starting, Unreadable,
};
use crate::shown::Shown;

/// Its id, and the name of its section in the settings.
const ID: &str = "pipeline";

/// The pipeline protocol.
#[derive(Debug)]
pub struct Pipeline;

impl Protocol for Pipeline {
    fn id(&self) -> &'static str {
        ID
    }

    fn plans(&self) -> &'static str {
        "the folder of a feature, which has a feature.spec.md"
    }

    fn claim(&self, source: &Source<'_>) -> Claim {
        plan::claim(source)
    }

    fn read(&self, source: &Source<'_>) -> Result<Reading, Unreadable> {
        plan::read(source)
    }

    fn settings(&self) -> Option<&'static Section> {
        Some(&settings::PIPELINE)
    }

    fn formats(&self) -> &'static [Format] {
        inspect::FORMATS
    }

    fn start(&self, _plan: &Plan, earlier: &RunState, _now: Timestamp) -> Start {
        let rejected = |g: &piton_core::state::GateState| {
            g.decision.as_ref().is_some_and(|decision| !decision.approved)
        };
        match earlier.ended {
            Some(Status::Cancelled) => Start::Fresh("its last run was cancelled".to_owned()),
            _ if earlier.is_over() => Start::Fresh("its last run is complete".to_owned()),
            _ if earlier.gates.values().any(rejected) => {
                Start::Fresh("its last run failed: a person rejected it".to_owned())
            }
            _ => Start::Resume,
        }
    }

    fn init(&self, new: &New<'_>) -> Option<Begun> {
        Some(init::begin(new))
    }

    fn unfinished(&self, look: &Look<'_>) -> Vec<Candidate> {
        existing::unfinished(look)
    }

    fn aside(&self, plan: &Plan, now: Timestamp) -> Vec<(String, String)> {
        let record = plan.record.as_ref();
        record.map(|path| (path.clone(), files::renamed(path, now))).into_iter().collect()
    }

    fn existing(&self, source: &Source<'_>, plan: &Plan, now: Timestamp) -> Existing {
        existing::existing(source, plan, now)
    }

    fn checks(&self, plan: &Plan, state: &RunState, read: &Reader<'_>) -> Vec<Finding> {
        checks::checks(plan, state, read)
    }

    fn retries_on_resume(&self) -> bool {
        false
    }

    fn is_complete(&self, starting: &Starting<'_>) -> bool {
        dispatch::is_complete(starting)
    }

    fn rejects(&self, ended: &Starting<'_>) -> Option<String> {
        let step = ended.plan.step(ended.step)?;
        dispatch::flaw(&ended.step.phase, step, ended)
    }

    fn inputs(&self, (_, plan): (&str, &Plan), read: &Reader<'_>) -> Option<(Vec<String>, Sha)> {
        let text = read(plan.record.as_deref()?).ok()?;
        Some((existing::ticked(plan, &text), Sha::of(text.as_bytes())))
    }

    fn presents(
        &self,
        (plan, state): (&Plan, &RunState),
        gate: &GateRef,
        read: &Reader<'_>,
    ) -> Vec<Shown> {
        checks::presented(plan, state, gate, read)
    }

    fn dispatch(&self, starting: &Starting<'_>) -> Given {
        dispatch::given(starting)
    }

    fn files(&self, _run: &Run<'_>) -> Option<Box<dyn Files>> {
        Some(Box::new(files::StateFile::new()))
    }

    fn own_paths(&self, run: &Run<'_>) -> Vec<String> {
        if run.state.protocol.id != ID {
            return Vec::new();
        }
        let folder = run.state.plan_path.trim_end_matches('/');
        plan::state_files(folder, run.settings)
    }
}

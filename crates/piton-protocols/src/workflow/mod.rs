//! The workflow protocol: numbered phases of an implementation plan, one checkpoint file per workflow.
//!
//! Readers accept what real plans, task lists and checkpoints contain and report what they do not
//! understand; writers edit in place. Phases are phases of a plan, tasks of a task list are steps; how
//! phases are planned again is a mechanism that every plan has.

pub mod checkpoint;
mod checks;
mod existing;
mod files;
mod inspect;
mod lanes;
pub mod phase_id;
pub mod plan;
pub mod prompt;
mod record;
mod research;
pub mod settings;
mod standing;
mod story;
pub mod tasks;
mod to_plan;

#[cfg(test)]
mod tests;

use piton_core::{Plan, RunState, Timestamp};
use piton_formats::keys::Section;

use crate::files::{Files, Run};
use crate::format::{Claim, Format};
use crate::protocol::{
    Candidate, Existing, Finding, Look, Protocol, Reader, Reading, Source, Start, Unreadable,
};

pub use phase_id::PhaseId;

/// Its id, and the name of its section in the settings.
const ID: &str = "workflow";

/// The workflow protocol.
#[derive(Debug)]
pub struct Workflow;

impl Protocol for Workflow {
    fn id(&self) -> &'static str {
        ID
    }

    fn plans(&self) -> &'static str {
        "a workflow: Markdown with headings `## Phase 1: Title`, or a task list with `- [ ] T001 text`"
    }

    fn claim(&self, source: &Source<'_>) -> Claim {
        let Some(text) = source.text.filter(|_| !source.has_extension("toml")) else {
            return Claim::No;
        };
        if tasks::is_task_list(text) {
            Claim::Content
        } else {
            inspect::plan_claim(source.file, text)
        }
    }

    fn read(&self, source: &Source<'_>) -> Result<Reading, Unreadable> {
        to_plan::read(source)
    }

    fn as_recorded(&self, plan: &mut Plan, recorded: &Plan) {
        // Which of several names the checkpoint has was decided when the run began.
        plan.record.clone_from(&recorded.record);
    }

    fn settings(&self) -> Option<&'static Section> {
        Some(&settings::WORKFLOW)
    }

    fn formats(&self) -> &'static [Format] {
        inspect::FORMATS
    }

    fn start(&self, plan: &Plan, earlier: &RunState, now: Timestamp) -> Start {
        existing::start(plan, earlier, now)
    }

    fn unfinished(&self, look: &Look<'_>) -> Vec<Candidate> {
        existing::unfinished(look)
    }

    fn aside(&self, plan: &Plan, now: Timestamp) -> Vec<(String, String)> {
        record::aside(plan, now)
    }

    fn existing(&self, source: &Source<'_>, plan: &Plan, now: Timestamp) -> Existing {
        existing::existing(source, plan, now)
    }

    fn checks(&self, plan: &Plan, state: &RunState, read: &Reader<'_>) -> Vec<Finding> {
        checks::checks(plan, state, read)
    }

    fn sums_up(&self) -> bool {
        true
    }

    fn retries_on_resume(&self) -> bool {
        true
    }

    fn files(&self, _run: &Run<'_>) -> Option<Box<dyn Files>> {
        Some(Box::new(files::WorkflowFiles::new()))
    }

    fn kept_out(&self, settings: &piton_formats::settings::Settings) -> Vec<String> {
        vec![settings::Settings::of(settings).checkpoints().to_owned()]
    }

    fn own_paths(&self, run: &Run<'_>) -> Vec<String> {
        if run.state.protocol.id == ID { files::own_paths(run) } else { Vec::new() }
    }
}

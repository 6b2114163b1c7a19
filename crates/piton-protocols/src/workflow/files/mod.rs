//! The files of a run, kept true: its checkpoint, and the boxes and markers of its plan.

mod checkpoint;
mod plan;

use piton_core::{Event, Plan, RunState, Status, Timestamp};

use super::standing::{self, Standing};
use super::story::Story;
use super::{record, settings};
use crate::files::{Around, Edit, Files, Occasion, Run};

/// The files of one run.
pub(super) struct WorkflowFiles {
    story: Story,
}

impl WorkflowFiles {
    /// Begins without events.
    pub(super) fn new() -> Self {
        Self { story: Story::default() }
    }
}

/// The files and folders that runs write: the checkpoints, the plan and the files it is expanded into.
pub(super) fn own_paths(run: &Run<'_>) -> Vec<String> {
    let folder = settings::Settings::of(run.settings).checkpoints().to_owned();
    vec![folder, run.state.plan_path.clone()]
}

impl Files for WorkflowFiles {
    fn edits<'e>(
        &'e mut self,
        plan: &'e Plan,
        state: &'e RunState,
        around: &'e dyn Around,
    ) -> Vec<Box<dyn Edit + 'e>> {
        // One that was set aside has another name, and the plan is its successor's.
        if state.ended == Some(Status::Archived) {
            return Vec::new();
        }
        let mut edits = plan::edits(state, &self.story, around);
        if let Some(path) = &plan.record {
            edits.extend(checkpoint::edits(path, state, &self.story, around));
        }
        edits
    }

    fn happened(&mut self, at: Timestamp, event: &Event) {
        self.story.take(at, event);
    }

    fn is_shown_first(&self, event: &Event, _state: &RunState) -> bool {
        // The checkpoint of a phase is there before the next one begins.
        matches!(event, Event::StepStarted(_))
    }

    fn archived(&self, plan: &Plan, state: &RunState) -> Vec<(String, String)> {
        record::aside(plan, state.last_at)
    }

    fn words(&self, state: &RunState, occasion: Occasion) -> Vec<String> {
        match occasion {
            Occasion::Resumed if !state.is_over() => resumed(state),
            Occasion::Stopped => failed(state),
            Occasion::Resumed | Occasion::RolledBack => Vec::new(),
        }
    }
}

/// The lines of the pattern for a run that resumes.
fn resumed(state: &RunState) -> Vec<String> {
    let mut lines = vec![format!("Resuming from Phase {}", standing::current(state))];
    for phase in &state.phases {
        match standing::of(phase) {
            Standing::Completed => {
                lines.push(format!("Skipping Phase {} (already completed)", phase.id));
            }
            Standing::Skipped => lines.push(format!("Skipping Phase {} (skipped)", phase.id)),
            Standing::Open | Standing::Failed => {}
        }
    }
    lines
}

/// The question of the pattern about phases that failed.
fn failed(state: &RunState) -> Vec<String> {
    let failed = state.phases.iter().filter(|phase| standing::of(phase) == Standing::Failed);
    let ids: Vec<&str> = failed.map(|phase| phase.id.as_str()).collect();
    if ids.is_empty() || state.ended.is_some() {
        return Vec::new();
    }
    let ids = ids.join(", ");
    vec![format!("Phase {ids} failed. Retry phase, Skip phase, or Abort workflow?")]
}

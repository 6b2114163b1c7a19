//! The plan of a run, edited in place: boxes and markers of the phases that this run works on, and
//! nothing else.

use piton_core::RunState;
use piton_core::state::{PhaseState, Progress};

use crate::files::{Around, Edit, Wanted};
use crate::workflow::plan::{self as markdown, Edit as Change, Marker};
use crate::workflow::standing::{self, Standing};
use crate::workflow::story::Story;
use crate::workflow::{tasks, to_plan};

/// The edits of a plan and of the files that its phases are expanded into.
pub(super) fn edits<'e>(
    state: &'e RunState,
    story: &'e Story,
    around: &'e dyn Around,
) -> Vec<Box<dyn Edit + 'e>> {
    let path = state.plan_path.as_str();
    let Some(text) = around.text(path) else { return Vec::new() };
    let view = View { state, story };
    if tasks::is_task_list(&text) {
        return vec![Box::new(Ticking {
            path: path.to_owned(),
            make: move |t: &str| view.ticked(t),
        })];
    }
    let mut edits: Vec<Box<dyn Edit + 'e>> = Vec::new();
    for (phase, link) in expanded(&text, state, story) {
        let path = to_plan::beside(path, &link);
        let id = standing::id(&phase.id);
        let make = move |text: &str| markdown::tick_all(text, &id);
        edits.push(Box::new(Ticking { path, make }));
    }
    edits.push(Box::new(Ticking { path: path.to_owned(), make: move |t: &str| view.marked(t) }));
    edits
}

/// The phases that this run completed and that are expanded into files.
fn expanded<'s>(text: &str, state: &'s RunState, story: &Story) -> Vec<(&'s PhaseState, String)> {
    // Most plans have none, and a plan is read line by line for them.
    if !text.contains("](") {
        return Vec::new();
    }
    let (document, _) = markdown::inspect("", text);
    let done = state
        .phases
        .iter()
        .filter(|phase| story.has_begun(&phase.id) && standing::of(phase) == Standing::Completed);
    done.filter_map(|phase| {
        Some((phase, document.phase(&standing::id(&phase.id))?.expanded.clone()?))
    })
    .collect()
}

/// A run as its plan shows it.
#[derive(Clone, Copy)]
struct View<'e> {
    state: &'e RunState,
    story: &'e Story,
}

impl View<'_> {
    /// A plan with markers and boxes as they are now.
    fn marked(&self, text: &str) -> String {
        let mut changes = Vec::new();
        for phase in &self.state.phases {
            let id = standing::id(&phase.id);
            let Some(marker) = self.marker(phase) else { continue };
            if marker == Marker::Completed {
                changes.push(Change::TickAll { phase: id.clone() });
            }
            changes.push(Change::Mark { phase: id, marker: Some(marker) });
        }
        if changes.is_empty() { text.to_owned() } else { markdown::edit(text, &changes).0 }
    }

    /// The marker of a phase that this run has to do with.
    fn marker(&self, phase: &PhaseState) -> Option<Marker> {
        let has_begun = self.story.has_begun(&phase.id);
        match standing::of(phase) {
            Standing::Completed if has_begun => Some(Marker::Completed),
            Standing::Skipped if has_begun => Some(Marker::Skipped),
            Standing::Completed | Standing::Skipped => None,
            Standing::Open | Standing::Failed if !has_begun => None,
            Standing::Failed => Some(Marker::InProgress),
            Standing::Open => {
                let steps = phase.lanes.iter().flat_map(|lane| &lane.steps);
                // After a rollback nothing of it is there.
                let is_anew = steps
                    .clone()
                    .all(|step| step.progress == Progress::Pending && step.definition.is_none());
                Some(if is_anew { Marker::NotStarted } else { Marker::InProgress })
            }
        }
    }

    /// A task list with the boxes of finished tasks ticked.
    fn ticked(&self, text: &str) -> String {
        let done = self.state.steps().filter(|(path, step)| {
            step.progress == Progress::Done && self.story.has_begun(&path.phase)
        });
        let done: Vec<String> = done.map(|(path, _)| path.step).collect();
        tasks::tick_each(text, &done)
    }
}

/// Brings a file of people up to date; one that is gone stays so.
struct Ticking<F> {
    path: String,
    make: F,
}

impl<F: Fn(&str) -> String> Edit for Ticking<F> {
    fn path(&self) -> &str {
        &self.path
    }

    fn change(&mut self, there: Option<&[u8]>, _is_stable: bool) -> Wanted {
        let Some(text) = there.and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
            return Wanted::AsItIs;
        };
        let new = (self.make)(text);
        if new == text {
            return Wanted::AsItIs;
        }
        Wanted::Text { text: new.into_bytes(), sync: true }
    }
}

//! What changed between two plans, phase by phase: how a replan is shown and recorded.

use piton_core::Plan;
use piton_core::event::{PhaseChange, PhaseChanged};

use super::{ChangeKind, StepChange, diff, phase_changes};

/// Most lines about one phase: who wants all looks at the plan.
const LINES_MAX: usize = 20;

/// The phases that differ between two plans, in the order of the new one; removed ones at the end.
pub fn by_phase(old: &Plan, new: &Plan) -> Vec<PhaseChange> {
    let changes = diff(old, new);
    let of = |phase: &str| -> Vec<String> {
        let steps = changes.steps.iter().filter(|c| c.path.phase == phase);
        steps.flat_map(lines).collect()
    };
    let mut found = Vec::new();
    for phase in &new.phases {
        let was = old.phases.iter().find(|p| p.id == phase.id);
        let mut words = of(&phase.id);
        words.extend(was.map(|was| phase_changes(was, phase)).unwrap_or_default());
        let what = if was.is_some() { PhaseChanged::Changed } else { PhaseChanged::Added };
        if was.is_none() || !words.is_empty() {
            found.push(change(&phase.id, what, words));
        }
    }
    let gone = old.phases.iter().filter(|p| !new.phases.iter().any(|n| n.id == p.id));
    found.extend(gone.map(|p| change(&p.id, PhaseChanged::Removed, of(&p.id))));
    found
}

fn change(phase: &str, what: PhaseChanged, mut words: Vec<String>) -> PhaseChange {
    if words.len() > LINES_MAX {
        let more = words.len() - LINES_MAX;
        words.truncate(LINES_MAX);
        words.push(format!("{more} more"));
    }
    PhaseChange { phase: phase.to_owned(), what, words }
}

/// How a step differs, a line for each field.
fn lines(change: &StepChange) -> Vec<String> {
    let name = format!("{}/{}", change.path.lane, change.path.step);
    match &change.kind {
        ChangeKind::Added => vec![format!("{name} added")],
        ChangeKind::Removed => vec![format!("{name} removed")],
        ChangeKind::Changed { fields, .. } => {
            fields.iter().map(|field| format!("{name}: {field}")).collect()
        }
    }
}

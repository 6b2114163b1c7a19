//! What the events tell of replans.

use piton_core::event::{
    Event, PhaseChange, ReplanBegun, ReplanEnded, ReplanOutcome, ReplanRefused, ReplansImported,
};
use piton_core::{Millis, Timestamp};

use super::trail::Trail;
use super::{Cause, Failure, Replan, Replanned};
use crate::place::At;

impl Trail {
    /// Takes an event of a replan.
    pub(super) fn replanned(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::ReplanBegun(e) => self.replan_begun(at, e),
            Event::ReplanEnded(e) => self.replan_ended(at, e),
            Event::ReplanRefused(e) => self.replan_refused(at, e),
            Event::ReplansImported(e) => self.replans_imported(at, e),
            _ => {}
        }
    }

    /// Without checkpoints, whoever plans again starts again: it is a stop of its own, unless the work
    /// had stopped already.
    fn replan_begun(&mut self, at: Timestamp, e: &ReplanBegun) {
        self.stop(at, Cause::Replan);
        self.replans.push(Replan {
            phase: e.phase.clone(),
            trigger: Some(e.trigger),
            reason: e.reason.clone(),
            forced_by: e.forced_by.clone(),
            began_at: At(at),
            ended_at: None,
            outcome: Replanned::Running,
            words: Vec::new(),
        });
    }

    fn replan_ended(&mut self, at: Timestamp, e: &ReplanEnded) {
        let fell = self.fell_at;
        let is_open = |r: &&mut Replan| r.ended_at.is_none() && r.phase == e.phase;
        let Some(replan) = self.replans.iter_mut().rev().find(is_open) else { return };
        let began = replan.began_at.0;
        let cut = matches!(e.outcome, ReplanOutcome::Interrupted { .. });
        let ended = match e.duration_ms {
            Millis(0) => fell.filter(|fell| cut && *fell > began).unwrap_or(at),
            took => began.after(took),
        };
        replan.ended_at = Some(At(ended));
        (replan.outcome, replan.words) = match &e.outcome {
            ReplanOutcome::Replanned(plan) => (Replanned::Replanned, changes(&plan.changes)),
            ReplanOutcome::Failed { error, .. } => (Replanned::Failed, vec![error.clone()]),
            ReplanOutcome::Looped { equal } => (Replanned::Looped, vec![equal.to_string()]),
            ReplanOutcome::Interrupted { why } => (Replanned::Interrupted, vec![why.clone()]),
        };
        if let ReplanOutcome::Failed { error, lines } = &e.outcome {
            self.failures.push(Failure {
                at: At(ended),
                place: format!("replan of {}", e.phase),
                attempt: None,
                class: None,
                error: error.clone(),
                lines: lines.clone(),
            });
        }
    }

    fn replan_refused(&mut self, at: Timestamp, e: &ReplanRefused) {
        self.replans.push(Replan {
            phase: e.phase.clone(),
            trigger: Some(e.trigger),
            reason: e.reason.clone(),
            forced_by: String::new(),
            began_at: At(at),
            ended_at: Some(At(at)),
            outcome: Replanned::Refused,
            words: vec![e.why.to_string()],
        });
    }

    fn replans_imported(&mut self, at: Timestamp, e: &ReplansImported) {
        let replans = e.history.iter().map(|replan| Replan {
            phase: replan.phase.clone(),
            trigger: None,
            reason: replan.reason.clone(),
            forced_by: String::new(),
            began_at: At(replan.at.unwrap_or(at)),
            ended_at: replan.at.or(Some(at)).map(At),
            outcome: Replanned::Imported,
            words: Vec::new(),
        });
        self.replans.extend(replans);
    }
}

/// What changed in a plan: the phase, and each change in words.
fn changes(changes: &[PhaseChange]) -> Vec<String> {
    let words = |change: &PhaseChange| match &change.words[..] {
        [] => vec![format!("{} {}", change.phase, change.what.as_str())],
        words => words.iter().map(|word| format!("{}: {word}", change.phase)).collect(),
    };
    changes.iter().flat_map(words).collect()
}

impl Replanned {
    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Replanned => "replanned",
            Self::Failed => "failed",
            Self::Looped => "went back to an earlier plan",
            Self::Interrupted => "interrupted",
            Self::Refused => "refused",
            Self::Imported => "imported",
        }
    }
}

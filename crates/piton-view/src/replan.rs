//! Replans of a run: what happened in words, and what the one read model says of them.

use piton_core::event::{NoReplan, ReplanEnded, ReplanOutcome, Trigger};
use piton_core::replan_state::{REPLAN_LANE, ReplanResult};
use piton_core::{Event, GateRef, RunState};

use crate::place::At;
use crate::shape::shapes;
use crate::text::{count, sanitize};

shapes! {
    /// A replan of a phase.
    Replan<'a> {
        phase: &'a str, number: u32, at: At, trigger: Option<Trigger>, reason: &'a str,
        result: ReplanResult,
        /// What it changed, or why it did not.
        words: &'a [String],
        /// Who wanted it whatever the limits say.
        forced_by: Option<&'a str>,
    }
}

/// The replans of a run that are kept in its state, the oldest first.
pub fn replans(state: &RunState) -> Vec<Replan<'_>> {
    let all = state.replans.history().into_iter();
    all.map(|(phase, past)| Replan {
        phase,
        number: past.number,
        at: At(past.at),
        trigger: past.trigger,
        reason: &past.reason,
        result: past.result,
        words: &past.words,
        forced_by: Some(past.forced_by.as_str()).filter(|by| !by.is_empty()),
    })
    .collect()
}

/// Where replans stand, a line for each phase that had one or waits for one.
pub fn lines(state: &RunState) -> Vec<String> {
    let mut lines = Vec::new();
    for (phase, replans) in &state.replans.phases {
        if replans.count > 0 {
            let last = replans.history.last();
            let last = last.map(|past| {
                let how = past.result.as_str();
                format!("; the last: {}, {how}", sanitize(&past.reason))
            });
            let times = count(replans.count as usize, "replan");
            lines.push(format!("phase {phase}: {times}{}", last.unwrap_or_default()));
        }
        let open = |trigger: &Trigger| {
            let gate = piton_core::replan_state::gate(phase, *trigger);
            state.gates.get(&gate).is_some_and(|gate| gate.decision.is_none())
        };
        for (trigger, why) in replans.questions.iter().filter(|(trigger, _)| open(trigger)) {
            lines.push(format!(
                "phase {phase} is not replanned ({trigger}): {}",
                sanitize(&said(why))
            ));
        }
    }
    lines
}

/// Why a person is asked at a gate instead of a replan; nothing for other gates.
pub fn why_asked(state: &RunState, gate: &GateRef) -> Option<String> {
    let (phase, rest) = gate.0.split_once('/')?;
    let word = rest.strip_prefix(REPLAN_LANE)?.strip_prefix('/')?;
    let questions = &state.replans.phases.get(phase)?.questions;
    questions.get(&Trigger::from_word(word)?).map(said)
}

fn said(why: &NoReplan) -> String {
    why.to_string()
}

/// An event about replans in words.
pub(crate) fn event(event: &Event) -> Option<String> {
    Some(match event {
        Event::ReplanWanted(e) => {
            let who = match &e.step {
                Some(step) => step.to_string(),
                None => sanitize(&e.by),
            };
            format!("{who} asks for a replan of phase {}: {}", e.phase, sanitize(&e.reason))
        }
        Event::ReplanBegun(e) => {
            let forced = match sanitize(&e.forced_by) {
                by if by.is_empty() => String::new(),
                by => format!(", forced by {by}"),
            };
            format!(
                "phase {}: replan {} started{forced}: {}",
                e.phase,
                e.number,
                sanitize(&e.reason)
            )
        }
        Event::ReplanEnded(e) => ended(e),
        Event::ReplanRefused(e) => {
            let (reason, why) = (sanitize(&e.reason), sanitize(&said(&e.why)));
            format!("phase {} is not replanned ({reason}): {why}", e.phase)
        }
        Event::ReplansImported(e) => {
            let counts = e.counts.iter().map(|(phase, n)| format!("phase {phase}: {n}"));
            format!("replans taken over: {}", counts.collect::<Vec<_>>().join(", "))
        }
        _ => return None,
    })
}

fn ended(e: &ReplanEnded) -> String {
    let phase = &e.phase;
    match &e.outcome {
        ReplanOutcome::Replanned(new) if new.changes.is_empty() => {
            format!("phase {phase}: the replan left the plan as it was")
        }
        ReplanOutcome::Replanned(_) => format!("phase {phase}: replanned in {}", e.duration_ms),
        ReplanOutcome::Failed { error, .. } => {
            format!(
                "phase {phase}: the replan failed, and the plan stays as it was: {}",
                sanitize(error)
            )
        }
        ReplanOutcome::Looped { equal } => {
            let equal = sanitize(&equal.to_string());
            format!("phase {phase}: the replan is a loop, and the plan stays as it was: {equal}")
        }
        ReplanOutcome::Interrupted { why } => {
            format!("phase {phase}: the replan was interrupted: {}", sanitize(why))
        }
    }
}

/// What stands below the words of a replan: its changes by phase, or its last output.
pub(crate) fn below(event: &Event) -> Vec<String> {
    let Event::ReplanEnded(e) = event else { return Vec::new() };
    match &e.outcome {
        ReplanOutcome::Replanned(new) => {
            let mut lines = Vec::new();
            for change in &new.changes {
                lines.push(format!("{} {}", sanitize(&change.phase), change.what.as_str()));
                lines.extend(change.words.iter().map(|words| format!("  {}", sanitize(words))));
            }
            lines
        }
        ReplanOutcome::Failed { lines, .. } => lines.iter().map(|line| sanitize(line)).collect(),
        ReplanOutcome::Looped { .. } | ReplanOutcome::Interrupted { .. } => Vec::new(),
    }
}

//! How events change the replans of a run, and its plan by them.

use super::{phases_of, rewind, steps};
use crate::event::{
    NewPlan, Next, NoReplan, Outcome, ReplanBegun, ReplanEnded, ReplanOutcome, ReplanRefused,
    ReplanWanted, ReplansImported, Shape, ShapeLane, ShapePhase, ShapeStep, StepFinished, Trigger,
};
use crate::hash::Sha;
use crate::id::{GateRef, StepPath};
use crate::lane_state::{Act, PlanBefore, Undoable};
use crate::replan_state::{
    Due, HISTORY_KEPT_MAX, PastReplan, PhaseReplans, REPLAN_LANE, ReplanResult, SeenPlan, UnderWay,
    gate,
};
use crate::state::{LaneState, PhaseState, Progress, RunState, StepState};
use crate::time::Timestamp;

/// A plan takes effect; what is known of steps with the same path stays.
pub(super) fn put_plan(state: &mut RunState, (hash, title): (&Sha, &str), shape: &Shape) {
    let tried: Vec<(StepPath, u32)> =
        state.steps().filter(|(_, s)| s.attempts > 0).map(|(p, s)| (p, s.attempts)).collect();
    state.phases = phases_of(shape, state);
    let gone = tried.into_iter().filter(|(path, _)| state.step(path).is_none());
    let gone: Vec<_> = gone.collect();
    state.gone.extend(gone);
    state.plan_hash = Some(hash.clone());
    title.clone_into(&mut state.title);
    // A gate with other words is another question: a yes to the old one does not answer it.
    let known: Vec<GateRef> = state.gates.keys().cloned().collect();
    for gate in known {
        let is_own = gate.0.contains(REPLAN_LANE);
        if !is_own
            && super::gate_name(state, &gate) != state.gates.get(&gate).map(|g| g.name.clone())
        {
            state.gates.remove(&gate);
        }
    }
}

/// A person changed the plan: what asked for another one is answered.
pub(super) fn answered_by_hand(state: &mut RunState) {
    let phases: Vec<String> = state.replans.phases.keys().cloned().collect();
    for phase in phases {
        settle(state, &phase, None);
    }
}

/// Somebody wants a phase planned again.
pub(super) fn wanted(state: &mut RunState, event: &ReplanWanted) {
    if event.step.is_none() {
        // A person's own wish stands above what a person said before.
        close_question(state, &event.phase, Trigger::Requested);
    }
    let forced_by = if event.force { event.by.clone() } else { String::new() };
    let due = Due {
        trigger: Trigger::Requested,
        reason: event.reason.clone(),
        step: event.step.clone(),
        signature: String::new(),
        forced_by,
    };
    let phase = state.replans.phases.entry(event.phase.clone()).or_default();
    if phase.due.is_none() || event.step.is_none() {
        phase.due = Some(due);
    }
}

/// What the end of an attempt asks for.
pub(super) fn finished(state: &mut RunState, event: &StepFinished) {
    let due = match &event.outcome {
        Outcome::Failed { error, signature, next: Next::Replan { trigger }, .. } => Due {
            trigger: *trigger,
            reason: format!("{}: {error}", event.step),
            step: Some(event.step.clone()),
            signature: signature.clone(),
            forced_by: String::new(),
        },
        Outcome::Succeeded if !event.drifted.is_empty() => Due {
            trigger: Trigger::ScopeDrift,
            reason: format!(
                "{} changed files outside of its scope: {}",
                event.step,
                event.drifted.join(", ")
            ),
            step: Some(event.step.clone()),
            signature: Sha::of_json(&event.drifted).short().to_owned(),
            forced_by: String::new(),
        },
        _ => return,
    };
    let phase = state.replans.phases.entry(event.step.phase.clone()).or_default();
    phase.due.get_or_insert(due);
}

/// A replan begins, and counts.
pub(super) fn begun(state: &mut RunState, at: Timestamp, event: &ReplanBegun) {
    close_question(state, &event.phase, event.trigger);
    let again = state.replans.under_way.is_some();
    let replans = &mut state.replans;
    replans.under_way =
        Some(Box::new(UnderWay { begun: event.clone(), since: at, interrupted: false }));
    replans.attempts = replans.attempts.max(event.attempt);
    if !again {
        replans.total += 1;
        let words = format!("the plan before replan {} of phase {}", event.number, event.phase);
        see(&mut replans.seen, &event.plan, words);
    }
    let phase = replans.phases.entry(event.phase.clone()).or_default();
    phase.count = phase.count.max(event.number);
    if !again {
        remember(
            phase,
            PastReplan {
                at,
                trigger: Some(event.trigger),
                reason: event.reason.clone(),
                number: event.number,
                signature: event.signature.clone(),
                forced_by: event.forced_by.clone(),
                result: ReplanResult::UnderWay,
                words: Vec::new(),
            },
        );
    }
}

/// A replan ended.
pub(super) fn ended(state: &mut RunState, at: Timestamp, event: &ReplanEnded) {
    state.used.log_bytes = state.used.log_bytes.saturating_add(event.logs.bytes());
    if let ReplanOutcome::Interrupted { .. } = event.outcome {
        if let Some(under_way) = &mut state.replans.under_way {
            under_way.interrupted = true;
        }
        return;
    }
    let Some(under_way) = state.replans.under_way.take() else { return };
    let begun = under_way.begun;
    let (result, words, why) = match &event.outcome {
        ReplanOutcome::Replanned(new) => {
            let words = new.changes.iter().map(|c| format!("{} {}", c.phase, c.what.as_str()));
            let words: Vec<String> = words.collect();
            let same = new.structure == begun.plan;
            replanned(state, at, &begun, new);
            (if same { ReplanResult::Unchanged } else { ReplanResult::Replanned }, words, None)
        }
        ReplanOutcome::Failed { error, .. } => {
            let why = NoReplan::Failed { error: error.clone() };
            (ReplanResult::Failed, vec![error.clone()], Some(why))
        }
        ReplanOutcome::Looped { equal } => {
            let why = NoReplan::Loop { equal: equal.clone() };
            (ReplanResult::Looped, vec![equal.to_string()], Some(why))
        }
        ReplanOutcome::Interrupted { .. } => return,
    };
    let phase = state.replans.phases.entry(begun.phase.clone()).or_default();
    if let Some(why) = why {
        phase.questions.insert(begun.trigger, why);
    }
    if let Some(past) = phase.history.iter_mut().rfind(|past| past.number == begun.number) {
        (past.result, past.words) = (result, words);
    }
}

/// A new plan takes effect: what had failed in the phase is tried again.
fn replanned(state: &mut RunState, at: Timestamp, begun: &ReplanBegun, new: &NewPlan) {
    let before = PlanBefore {
        hash: new.from.clone(),
        title: state.title.clone(),
        shape: shape_of(state),
        attempt: begun.attempt,
        phase: begun.phase.clone(),
        number: begun.number,
        trigger: begun.trigger,
        due: state.replans.phases.get(&begun.phase).and_then(|p| p.due.clone()),
    };
    let steps: Vec<(StepPath, StepState)> =
        state.steps().filter(|(path, _)| path.phase == begun.phase).map(cloned).collect();
    let gone = exchange(state, (&new.to, &new.title), &new.shape);
    let more: Vec<_> = gone.steps.into_iter().filter(|(p, _)| p.phase != begun.phase).collect();
    settle(state, &begun.phase, begun.step.as_ref());
    let words = format!("replan {} of phase {}", begun.number, begun.phase);
    see(&mut state.replans.seen, &new.structure, format!("the plan of {words}"));
    let act = Undoable {
        steps: steps.into_iter().chain(more).collect(),
        lanes: gone.lanes,
        plan: Some(Box::new(before)),
        ..Undoable::blank(state.events, at, Act::Replan, words)
    };
    rewind::push(state, act);
}

fn cloned((path, step): (StepPath, &StepState)) -> (StepPath, StepState) {
    (path, step.clone())
}

/// What a plan that took effect has no place for.
pub(super) struct Gone {
    pub(super) steps: Vec<(StepPath, StepState)>,
    pub(super) lanes: rewind::Works,
}

/// Puts a plan into effect; gives what it has no place for.
pub(super) fn exchange(state: &mut RunState, plan: (&Sha, &str), shape: &Shape) -> Gone {
    let steps: Vec<_> = state.steps().map(cloned).collect();
    let lanes: rewind::Works = state.lanes().map(|(path, l)| (path, l.work.clone())).collect();
    put_plan(state, plan, shape);
    Gone {
        steps: steps.into_iter().filter(|(path, _)| state.step(path).is_none()).collect(),
        lanes: lanes.into_iter().filter(|(path, _)| state.lane(path).is_none()).collect(),
    }
}

/// Takes a replan back, or brings it back: the plan is exchanged. Gives what a further undo needs.
pub(super) fn undone(state: &mut RunState, plan: &PlanBefore, returns: bool) -> (PlanBefore, Gone) {
    let now = PlanBefore {
        hash: state.plan_hash.clone().unwrap_or_else(|| plan.hash.clone()),
        title: state.title.clone(),
        shape: shape_of(state),
        ..plan.clone()
    };
    let gone = exchange(state, (&plan.hash, &plan.title), &plan.shape);
    if returns {
        settle(state, &plan.phase, None);
    }
    let phase = state.replans.phases.entry(plan.phase.clone()).or_default();
    let result = if returns { ReplanResult::Replanned } else { ReplanResult::Undone };
    if let Some(past) = phase.history.iter_mut().rfind(|past| past.number == plan.number) {
        past.result = result;
    }
    if !returns {
        phase.due.clone_from(&plan.due);
        phase.questions.insert(plan.trigger, NoReplan::Undone);
    }
    (now, gone)
}

/// A replan is not done; a person is asked.
pub(super) fn refused(state: &mut RunState, event: &ReplanRefused) {
    let phase = state.replans.phases.entry(event.phase.clone()).or_default();
    phase.questions.insert(event.trigger, event.why.clone());
}

/// Takes over what another tool recorded.
pub(super) fn imported(state: &mut RunState, at: Timestamp, event: &ReplansImported) {
    for (id, count) in &event.counts {
        let phase = state.replans.phases.entry(id.clone()).or_default();
        state.replans.total += count.saturating_sub(phase.count);
        phase.count = phase.count.max(*count);
    }
    for past in &event.history {
        let phase = state.replans.phases.entry(past.phase.clone()).or_default();
        let number = u32::try_from(phase.history.len()).unwrap_or(u32::MAX).saturating_add(1);
        remember(
            phase,
            PastReplan {
                at: past.at.unwrap_or(at),
                trigger: Trigger::from_word(&past.reason),
                reason: past.reason.clone(),
                number,
                signature: String::new(),
                forced_by: String::new(),
                result: ReplanResult::Imported,
                words: Vec::new(),
            },
        );
    }
}

/// A person decided to go on with the plan as it is, or not to.
pub(super) fn decided(state: &mut RunState, place: &GateRef, approved: bool) {
    let Some((phase, trigger)) = place_of(place) else { return };
    let due = state.replans.phases.get(phase).and_then(|p| p.due.as_ref());
    let step = due.filter(|due| due.trigger == trigger).map(|due| due.step.clone());
    if let (true, Some(step)) = (approved, step) {
        settle(state, phase, step.as_ref());
    }
}

/// The phase and the trigger of a gate of replans.
pub(super) fn place_of(gate: &GateRef) -> Option<(&str, Trigger)> {
    let (phase, rest) = gate.0.split_once('/')?;
    let word = rest.strip_prefix(REPLAN_LANE)?.strip_prefix('/')?;
    Some((phase, Trigger::from_word(word)?))
}

/// Nothing asks for a replan of the phase any more: what failed is tried again.
fn settle(state: &mut RunState, phase: &str, step: Option<&StepPath>) {
    let Some(replans) = state.replans.phases.get_mut(phase) else { return };
    let due = replans.due.take();
    let questions = std::mem::take(&mut replans.questions);
    for trigger in questions.into_keys() {
        let open = |g: &crate::state::GateState| g.decision.is_none();
        if state.gates.get(&gate(phase, trigger)).is_some_and(open) {
            state.gates.remove(&gate(phase, trigger));
        }
    }
    if due.is_none() && step.is_none() {
        return;
    }
    let about = due.and_then(|due| due.step);
    let paths: Vec<StepPath> = state
        .steps()
        .filter(|(path, _)| path.phase == phase)
        .filter(|(path, s)| s.progress == Progress::Failed || Some(path) == about.as_ref())
        .filter(|(_, s)| !s.progress.is_over())
        .map(|(path, _)| path)
        .collect();
    for path in paths {
        let rests = |s: &&mut StepState| !matches!(s.progress, Progress::Running { .. });
        if let Some(step) = state.step_mut(&path).filter(rests) {
            steps::grant(step);
            step.tests_failed = 0;
        }
    }
}

fn close_question(state: &mut RunState, phase: &str, trigger: Trigger) {
    state.gates.remove(&gate(phase, trigger));
    if let Some(replans) = state.replans.phases.get_mut(phase) {
        replans.questions.remove(&trigger);
    }
}

fn see(seen: &mut Vec<SeenPlan>, structure: &Sha, words: String) {
    if !seen.iter().any(|plan| plan.structure == *structure) {
        seen.push(SeenPlan { structure: structure.clone(), words });
    }
}

fn remember(phase: &mut PhaseReplans, past: PastReplan) {
    if phase.history.len() == HISTORY_KEPT_MAX {
        phase.history.remove(0);
    }
    phase.history.push(past);
}

/// What the plan in effect is made of.
fn shape_of(state: &RunState) -> Shape {
    let step = |step: &StepState| ShapeStep {
        id: step.id.clone(),
        role: step.role,
        escalation: step.escalation.clone(),
    };
    let lane = |lane: &LaneState| ShapeLane {
        id: lane.id.clone(),
        needs: lane.needs.clone(),
        gate: lane.gate.clone(),
        steps: lane.steps.iter().map(step).collect(),
        isolation: lane.isolation,
        commits: lane.commits,
        alone: lane.alone,
        task: lane.task.clone(),
    };
    let phase = |phase: &PhaseState| ShapePhase {
        id: phase.id.clone(),
        needs: phase.needs.clone(),
        after: phase.after.clone(),
        gate: phase.gate.clone(),
        lanes: phase.lanes.iter().map(lane).collect(),
    };
    Shape { phases: state.phases.iter().map(phase).collect() }
}

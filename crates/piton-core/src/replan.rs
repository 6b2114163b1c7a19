//! When a phase is planned again, and what may come of it.
//!
//! A replan counts when it begins. It never reopens finished work, and it never puts a plan into effect
//! that the run had before: so that replans end, whatever they write.

use crate::complexity::Complexity;
use crate::event::{Class, Equal, Next, NoReplan, Trigger};
use crate::hash::Sha;
use crate::id::{GateRef, StepPath};
use crate::lane::Role;
use crate::plan::{Lane, Phase, Plan, ReplanRules, Step, Work};
use crate::replan_state::{Due, ReplanResult, gate};
use crate::state::{PhaseState, Progress, RunState, StepState};
use crate::text::first_few;

/// The exit code with which a step asks for a replan.
pub const EXIT_REPLAN: i32 = 86;
/// Most steps that are named which a replan would lose.
const NAMED_MAX: usize = 5;

/// What a person is asked instead of a replan of a phase, if one is asked; a yes goes on with the plan
/// as it is.
pub fn question(state: &RunState, phase: &str, trigger: Trigger) -> Option<String> {
    let asked = state.replans.phases.get(phase)?.questions.contains_key(&trigger)
        || state.gates.contains_key(&gate(phase, trigger));
    asked.then(|| format!("Go on with the plan as it is (phase {phase}: {trigger})"))
}

/// What follows for a phase from what asks for another plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// Nothing asks for one.
    GoesOn,
    /// It is planned again.
    Begins(Due),
    /// It is not planned again, and a person is asked.
    Refused(Due, NoReplan),
    /// A person is asked this at a gate.
    Asks(GateRef, String),
}

/// Decides whether a phase is planned again. `forced_by` is a person who wants that whatever the limits
/// say.
pub fn standing(
    plan: &Plan,
    state: &RunState,
    phase: &PhaseState,
    forced_by: Option<&str>,
) -> Standing {
    let rules = plan.replan_rules();
    let Some(mut due) = due(plan, &rules, state, phase) else { return Standing::GoesOn };
    if let (Some(by), true) = (forced_by, due.forced_by.is_empty()) {
        by.clone_into(&mut due.forced_by);
    }
    let replans = state.replans.phases.get(&phase.id);
    let asked = replans.is_some_and(|p| p.questions.contains_key(&due.trigger));
    let asks = || {
        let name = question(state, &phase.id, due.trigger).unwrap_or_default();
        Standing::Asks(gate(&phase.id, due.trigger), name)
    };
    if asked && due.forced_by.is_empty() {
        return asks();
    }
    match refused(&rules, state, phase, &due) {
        // Asked already, and not more possible than then.
        Some(_) if asked => asks(),
        Some(why) => Standing::Refused(due, why),
        None => Standing::Begins(due),
    }
}

/// What asks for a replan of a phase, and was not answered by a person.
fn due(plan: &Plan, rules: &ReplanRules, state: &RunState, phase: &PhaseState) -> Option<Due> {
    let answered = |trigger: Trigger| state.approved(&gate(&phase.id, trigger));
    let recorded = state.replans.phases.get(&phase.id).and_then(|p| p.due.clone());
    if let Some(due) = recorded.filter(|due| !answered(due.trigger)) {
        return Some(due);
    }
    if has_begun(phase) {
        return None;
    }
    let planned = plan.phases.iter().find(|p| p.id == phase.id)?;
    let (trigger, reason) = exceeded(rules, planned).find(|(trigger, _)| !answered(*trigger))?;
    let signature = trigger.as_str().to_owned();
    Some(Due { trigger, reason, step: None, signature, forced_by: String::new() })
}

/// The thresholds of a phase that is about to start and that it exceeds.
fn exceeded(rules: &ReplanRules, phase: &Phase) -> impl Iterator<Item = (Trigger, String)> {
    let limit = rules.complexity;
    let complex = phase.complexity.filter(|found| limit.0 > 0 && *found > limit);
    let complex = complex.map(|found| {
        (
            Trigger::Complexity,
            format!("the complexity of phase {} is {found}, above {limit}", phase.id),
        )
    });
    let (tasks, most) = (phase.tasks, rules.tasks);
    let many = (most > 0 && tasks > most).then(|| {
        (Trigger::Tasks, format!("phase {} has {tasks} tasks, more than {most}", phase.id))
    });
    complex.into_iter().chain(many)
}

fn has_begun(phase: &PhaseState) -> bool {
    phase.lanes.iter().flat_map(|l| &l.steps).any(|s| s.attempts > 0 || s.progress.is_over())
}

/// Why a phase is not planned again.
fn refused(
    rules: &ReplanRules,
    state: &RunState,
    phase: &PhaseState,
    due: &Due,
) -> Option<NoReplan> {
    if rules.by.is_none() {
        return Some(NoReplan::NoCommand);
    }
    if !due.forced_by.is_empty() {
        return None;
    }
    if let Some(equal) = repeats(state, phase, due) {
        return Some(NoReplan::Loop { equal });
    }
    let count = state.replans.count(&phase.id);
    if count >= rules.per_phase {
        return Some(NoReplan::Limit { count });
    }
    let count = state.replans.total;
    (count >= rules.per_run).then_some(NoReplan::RunLimit { count })
}

/// Whether the last replan of the phase changed nothing, and what asked for it happened again.
fn repeats(state: &RunState, phase: &PhaseState, due: &Due) -> Option<Equal> {
    // A person who asks again has a reason that they may not have written down.
    if due.trigger == Trigger::Requested && due.step.is_none() {
        return None;
    }
    let last = state.replans.phases.get(&phase.id)?.history.last()?;
    let same = last.result == ReplanResult::Unchanged
        && last.trigger == Some(due.trigger)
        && last.signature == due.signature;
    same.then(|| Equal {
        this: "what asks for it now".to_owned(),
        that: format!("what asked for replan {}, which changed nothing", last.number),
    })
}

/// Decides whether a failed attempt has its phase planned again, instead of what would follow.
pub fn after_failure(
    plan: &Plan,
    state: &RunState,
    path: &StepPath,
    (class, next): (Class, Next),
) -> Option<Trigger> {
    let step = state.step(path)?;
    let rules = plan.replan_rules();
    let is_last = step.attempts >= plan.budgets.attempts;
    if is_last || step.tests_only || !matches!(next, Next::Retry { .. } | Next::Fail) {
        return None;
    }
    let often = rules.test_failures > 0 && step.tests_failed + 1 >= rules.test_failures;
    let trigger = match class {
        Class::Replan => Trigger::Requested,
        Class::Test if often => Trigger::TestFailures,
        _ => return None,
    };
    (!state.approved(&gate(&path.phase, trigger))).then_some(trigger)
}

/// Whether a failed test is tried once more although no retries are left: that many failures in a row
/// have the phase planned again, which an unattended run reaches by itself.
pub fn awaits_test_failures(plan: &Plan, state: &RunState, path: &StepPath, class: Class) -> bool {
    let (rules, step) = (plan.replan_rules(), state.step(path));
    let is_work = |step: &&StepState| step.role == Role::Work && !step.tests_only;
    let Some(step) = step.filter(is_work) else { return false };
    let is_open = !state.approved(&gate(&path.phase, Trigger::TestFailures));
    let is_before = step.tests_failed + 1 < rules.test_failures;
    let may = step.attempts < plan.budgets.attempts && rules.by.is_some();
    class == Class::Test && is_before && is_open && may
}

/// The limit that a failed step's own word about its phase exceeds, where that calls for another plan.
pub fn too_complex(
    plan: &Plan,
    state: &RunState,
    path: &StepPath,
    (found, next): (Complexity, Next),
) -> Option<Complexity> {
    let limit = plan.replan_rules().complexity;
    let step = state.step(path)?;
    let is_last = step.attempts >= plan.budgets.attempts;
    let may = matches!(next, Next::Retry { .. } | Next::Fail | Next::Replan { .. });
    let answered = state.approved(&gate(&path.phase, Trigger::Complexity));
    let is_work = step.role == Role::Work;
    let asks = is_work && may && !is_last && !answered;
    (limit.0 > 0 && found > limit && asks).then_some(limit)
}

/// Whether changes outside of a step's scope have its phase planned again.
pub fn minds_drift(plan: &Plan, state: &RunState, path: &StepPath) -> bool {
    let approved = state.approved(&gate(&path.phase, Trigger::ScopeDrift));
    plan.replan_rules().scope_drift && !approved
}

/// What becomes of a plan that a replan wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It takes effect; this is its structure.
    Accepted(Sha),
    /// The run had it before.
    Looped(Equal),
    /// It would undo what must stay.
    Refused(String),
}

/// Judges a plan that a replan wrote.
pub fn judge(state: &RunState, before: &Plan, now: &Plan) -> Judged {
    if let Some(why) = loses(state, before, now) {
        return Judged::Refused(why);
    }
    let (old, new) = (structure(before), structure(now));
    let seen = state.replans.seen.iter().find(|seen| seen.structure == new && new != old);
    match seen {
        Some(seen) => {
            Judged::Looped(Equal { this: "the new plan".to_owned(), that: seen.words.clone() })
        }
        None => Judged::Accepted(new),
    }
}

/// What a new plan would undo, in words.
fn loses(state: &RunState, before: &Plan, now: &Plan) -> Option<String> {
    let limits = [
        (before.budgets != now.budgets, "[budgets]"),
        (before.replan != now.replan, "[replan]"),
        (before.spec != now.spec, "`spec`"),
        (before.protocol != now.protocol, "`protocol`"),
    ];
    if let Some((_, what)) = limits.into_iter().find(|(differs, _)| *differs) {
        return Some(format!("the new plan changes {what}, which a replan may not"));
    }
    let kept = |path: &StepPath| match (before.step(path), now.step(path)) {
        (Some(before), Some(now)) => before.definition() == now.definition(),
        (None, _) => true,
        (Some(_), None) => false,
    };
    let done = state.steps().filter(|(_, step)| step.progress == Progress::Done);
    let lost = done.filter(|(path, _)| !kept(path)).map(|(path, _)| path.to_string());
    let lost: Vec<String> = lost.collect();
    if let Some(names) = first_few(lost.into_iter(), NAMED_MAX) {
        return Some(format!("the new plan changes or leaves out finished work: {names}"));
    }
    let gates = gates_removed(state, before, now);
    first_few(gates.into_iter(), NAMED_MAX)
        .map(|names| format!("the new plan leaves out what nobody approved: {names}"))
}

/// The gates that a person has still to approve and that a new plan does not have. A step can write to
/// the plan's file: it must not be able to do away with the question it would be stopped by.
pub fn gates_removed(state: &RunState, before: &Plan, now: &Plan) -> Vec<String> {
    let left = now.gates();
    let is_gone = |gate: &GateRef| !left.iter().any(|(other, _)| other == gate);
    let gates = before.gates().into_iter();
    let gone = gates.filter(|(gate, _)| !state.approved(gate) && is_gone(gate));
    gone.map(|(gate, name)| format!("gate \"{name}\" ({gate})")).collect()
}

/// The hash of what a plan does and in which order: ids, commands and dependencies. Texts, limits and
/// titles make no other plan.
pub fn structure(plan: &Plan) -> Sha {
    let step = |step: &Step| (step.id.clone(), work(&step.work), step.test.clone());
    let lane = |lane: &Lane| {
        let steps: Vec<_> = lane.steps.iter().map(step).collect();
        (lane.id.clone(), lane.needs.clone(), steps)
    };
    let phase = |phase: &Phase| {
        let lanes: Vec<_> = phase.lanes.iter().map(lane).collect();
        (phase.id.clone(), phase.needs.clone(), phase.after.clone(), lanes)
    };
    Sha::of_json(&plan.phases.iter().map(phase).collect::<Vec<_>>())
}

/// A work without how its prompt is laid out.
fn work(work: &Work) -> Work {
    match work {
        Work::Prompt { agent, command, prompt } => Work::Prompt {
            agent: agent.clone(),
            command: command.clone(),
            prompt: prompt.split_whitespace().collect::<Vec<_>>().join(" "),
        },
        other => other.clone(),
    }
}

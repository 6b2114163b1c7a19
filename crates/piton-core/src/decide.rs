//! What to do next, from the state alone.
//!
//! [`decide`] is called whenever something happened. It names the steps to start, the gates to ask
//! about and, when nothing can move any more, the verdict. It never looks at the world.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::agent_state::Day;
use crate::event::{BudgetExhausted, BudgetWarned, ReplanRefused, Verdict};
use crate::failure;
use crate::id::{GateRef, LanePath, StepPath};
use crate::plan::{OnFailure, Plan};
use crate::state::{LaneState, PhaseState, Progress, RunState};
use crate::tasks::Satisfied;
use crate::time::{Millis, Timestamp};

pub mod agents;
mod lanes;
mod proof;
mod replans;
mod retries;
mod tasks;
pub mod validation;

pub(crate) use lanes::is_in_line;
use lanes::{Active, Startable};
pub use lanes::{LaneAct, refused_beginning};
pub use proof::{BeforeCommit, before_commit, must_test, over_rounds, tested_onto};
pub use replans::Replan;
pub use retries::{Asked, reopening, retries_left, retries_max, worker};

/// Something to be done by the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Start an attempt of a step.
    Start {
        /// Which step.
        step: StepPath,
        /// Number of the attempt.
        attempt: u32,
    },
    /// Ask a person, once.
    Ask {
        /// The place it guards.
        gate: GateRef,
        /// What is asked for.
        name: String,
    },
    /// Do something for a lane beside its steps.
    Lane {
        /// Which lane.
        lane: LanePath,
        /// What.
        act: LaneAct,
    },
    /// Plan a phase again.
    Replan(Box<Replan>),
    /// Record that a phase is not planned again, and why.
    RefuseReplan(Box<ReplanRefused>),
    /// End all running steps: a budget of time is used up.
    EndAll,
    /// Have the agent of a running attempt stop after the operation under way: a budget is used up.
    StopAgent {
        /// Which step.
        step: StepPath,
        /// Number of the attempt.
        attempt: u32,
    },
    /// Record that most of a budget is used, and tell a person.
    Warn(BudgetWarned),
    /// Record that a budget is used up.
    Exhausted(BudgetExhausted),
    /// Call again at this time.
    WakeAt(Timestamp),
    /// Nothing can move any more: leave.
    Leave(Verdict),
}

/// What a driver was asked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Most lanes at once.
    pub jobs: usize,
    /// Whether nothing new may start, because a person asked to stop.
    pub draining: bool,
    /// Only this phase.
    pub phase: Option<String>,
    /// Only this lane, of any phase unless `phase` is given.
    pub lane: Option<String>,
    /// Whether lanes in place have checkpoints too: there is a repository to hold them.
    pub checkpoints: bool,
    /// Lanes whose pull request was just looked at, and is not merged.
    pub unmerged: Vec<LanePath>,
    /// Lanes whose step has ended, and whose outcome is left to the next driver.
    pub put_off: Vec<LanePath>,
    /// What other runs of the project used on a day.
    pub elsewhere: Day,
    /// The person who wants what is due planned again whatever the limits say; once.
    pub force_replan: Option<String>,
}

impl Limits {
    /// A lane is chosen with all its parts.
    pub(crate) fn selects(&self, phase: &str, lane: &LaneState) -> bool {
        self.phase.as_deref().is_none_or(|p| p == phase)
            && self.lane.as_deref().is_none_or(|l| l == lane.parent_id())
    }

    pub(crate) fn is_selection(&self) -> bool {
        self.phase.is_some() || self.lane.is_some()
    }
}

/// What the walk over the lanes found.
#[derive(Default)]
struct Survey {
    running: usize,
    failed: bool,
    unasked: Vec<(GateRef, String)>,
    waiting: bool,
    startable: Vec<Startable>,
    acts: Vec<(LanePath, LaneAct)>,
    /// Acts that end what was begun: they go on although nothing new may start.
    urgent: Vec<(LanePath, LaneAct)>,
    active: Vec<Active>,
    wake: Option<Timestamp>,
    /// A step that would be tried again, and may not by the budget of attempts.
    spent: Option<BudgetExhausted>,
    /// What phases ask for that are to be planned again.
    replans: replans::Found,
}

/// Names what to do now.
pub fn decide(plan: &Plan, state: &RunState, limits: &Limits, now: Timestamp) -> Vec<Action> {
    let survey = survey(plan, state, limits, now);
    let mut actions: Vec<Action> = survey
        .unasked
        .iter()
        .map(|(gate, name)| Action::Ask { gate: gate.clone(), name: name.clone() })
        .collect();

    let exhausted = exhausted(plan, state, limits.elsewhere, now);
    if let Some(budget) = &exhausted {
        if state.exhausted.is_none() {
            actions.push(Action::Exhausted(budget.clone()));
        }
        if survey.running > 0 && is_time(&budget.budget) {
            actions.push(Action::EndAll);
        } else {
            actions.extend(agents::to_stop(state, budget));
        }
    }
    actions.extend(agents::warnings(plan, state, limits.elsewhere, now).map(Action::Warn));
    let ends = limits.draining
        || exhausted.is_some()
        || ((survey.failed || survey.spent.is_some()) && plan.on_failure == OnFailure::Stop);
    // What a plan says may be another thing soon: nothing new begins by it.
    let stopped = ends || survey.replans.next.is_some() || state.replans.under_way.is_some();
    if !stopped {
        let free = limits.jobs.max(1).saturating_sub(survey.running);
        actions.extend(lanes::choose(&survey, free));
    }
    let going = survey.urgent.iter().chain(survey.acts.iter().filter(|_| !stopped));
    actions.extend(going.map(|(lane, act)| Action::Lane { lane: lane.clone(), act: *act }));
    let is_idle = survey.running == 0 && survey.urgent.is_empty();
    actions.extend(survey.replans.actions(ends, is_idle));
    let starts = actions.iter().any(|a| {
        matches!(
            a,
            Action::Start { .. }
                | Action::Lane { .. }
                | Action::Replan(_)
                | Action::RefuseReplan(_)
        )
    });
    if starts || survey.running > 0 {
        let budget_end = now.after(time_left(plan, state, now));
        let wake = survey.wake.filter(|_| !stopped).map_or(budget_end, |w| w.min(budget_end));
        actions.push(Action::WakeAt(wake));
        return actions;
    }
    if let (Some(wake), false) = (survey.wake, stopped) {
        actions.push(Action::WakeAt(wake));
        return actions;
    }
    let verdict = verdict(state, limits, &survey, exhausted.is_some());
    if let (Verdict::Budget, None, None) = (verdict, &exhausted, &state.exhausted) {
        actions.extend(survey.spent.map(Action::Exhausted));
    }
    actions.push(Action::Leave(verdict));
    actions
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn verdict(state: &RunState, limits: &Limits, survey: &Survey, exhausted: bool) -> Verdict {
    if state.is_over() {
        return Verdict::Complete;
    }
    if limits.draining {
        return Verdict::Interrupted;
    }
    if exhausted {
        return Verdict::Budget;
    }
    if survey.failed {
        return Verdict::Failed;
    }
    if survey.spent.is_some() {
        return Verdict::Budget;
    }
    if survey.waiting {
        return Verdict::Waiting;
    }
    if limits.is_selection() && selection_is_over(state, limits) {
        return Verdict::SelectionDone;
    }
    Verdict::Blocked
}

fn selection_is_over(state: &RunState, limits: &Limits) -> bool {
    state
        .phases
        .iter()
        .flat_map(|p| p.lanes.iter().map(move |l| (p, l)))
        .filter(|(p, l)| limits.selects(&p.id, l))
        .all(|(_, l)| l.is_over())
}

fn survey(plan: &Plan, state: &RunState, limits: &Limits, now: Timestamp) -> Survey {
    let mut survey = Survey::default();
    replans::note_under_way(state, &mut survey);
    let satisfied = OnceCell::new();
    let phases = Phases::new(&state.phases);
    for (at, phase) in state.phases.iter().enumerate() {
        let wanted = phase.lanes.iter().any(|l| limits.selects(&phase.id, l) && !l.is_over());
        let phase_open = wanted
            && is_phase_ready(phase, |id| phases.find(id, at))
            && !survey.replans.holds(phase)
            && gate_open(state, GateRef(phase.id.clone()), phase.gate.as_ref(), &mut survey);
        let phase_open =
            replans::goes_on((plan, state, limits), phase, phase_open, &mut survey) && phase_open;
        let ready = || is_phase_ready(phase, |id| phases.find(id, at));
        if phase.is_over() && is_asked_again(state, &phase.id) && ready() {
            // What it guards is done, and what was approved is another now.
            gate_open(state, GateRef(phase.id.clone()), phase.gate.as_ref(), &mut survey);
        }
        for lane in &phase.lanes {
            let selected = limits.selects(&phase.id, lane);
            let satisfied = &satisfied;
            let view = View { plan, state, limits, phase, lane, selected, now, satisfied };
            let open = phase_open && selected && tasks::is_awaited(phase, lane);
            survey_lane(&view, open, &mut survey);
        }
    }
    survey
}

/// Phases by their ids. Most need the one before them, so the others are sorted only if one is asked for.
struct Phases<'a> {
    all: &'a [PhaseState],
    by_id: OnceCell<BTreeMap<&'a str, &'a PhaseState>>,
}

impl<'a> Phases<'a> {
    fn new(all: &'a [PhaseState]) -> Self {
        Self { all, by_id: OnceCell::new() }
    }

    /// A phase that the one at a place asks for.
    fn find(&self, id: &str, asking: usize) -> Option<&'a PhaseState> {
        let before = asking.checked_sub(1).and_then(|at| self.all.get(at));
        let all = || self.all.iter().map(|phase| (phase.id.as_str(), phase)).collect();
        before.filter(|p| p.id == id).or_else(|| self.by_id.get_or_init(all).get(id).copied())
    }
}

/// A lane as the survey looks at it.
struct View<'a> {
    plan: &'a Plan,
    state: &'a RunState,
    limits: &'a Limits,
    phase: &'a PhaseState,
    lane: &'a LaneState,
    selected: bool,
    now: Timestamp,
    /// The lanes that are done, found out when the first asks.
    satisfied: &'a OnceCell<Satisfied<'a>>,
}

impl View<'_> {
    /// Whether all that the lane needs is done.
    fn is_ready(&self) -> bool {
        let all = || self.satisfied.get_or_init(|| self.state.satisfied());
        // What is named last mostly ends last.
        self.lane.needs.iter().rev().all(|path| all().contains(path))
    }
}

fn survey_lane(view: &View<'_>, open: bool, survey: &mut Survey) {
    let (state, lane) = (view.state, view.lane);
    if lane.is_over() {
        let place = || format!("{}/{}", view.phase.id, lane.id);
        if lane.gate.is_some() && is_asked_again(state, &place()) && view.is_ready() {
            gate_open(state, GateRef(place()), lane.gate.as_ref(), survey);
        }
        return;
    }
    if tasks::clears(view, survey) {
        return;
    }
    lanes::note_active(view, survey);
    // Not always the current one: an earlier step may have been reset while this one runs.
    if lane.is_running() {
        // One that is blocked has ended, and its outcome waits for a person.
        let ended = lane.work.as_ref().is_some_and(|w| w.blocked.is_some())
            || view.limits.put_off.contains(&lanes::path(view));
        survey.running += usize::from(!ended);
        return;
    }
    // A merge that was intended comes before whatever else is asked of the lane.
    let merging = lane.work.as_ref().is_some_and(|w| w.merging().is_some());
    let Some(step) = lane.current().filter(|_| !merging).map(|i| &lane.steps[i]) else {
        lanes::finish(view, survey);
        return;
    };
    match step.progress {
        // Another plan may let it succeed, or a person is asked about that.
        Progress::Failed if survey.replans.is_held(&view.phase.id) => {}
        Progress::Failed => survey.failed |= view.selected,
        Progress::Escalated => {
            let gate = GateRef(format!("{}/{}/{}", view.phase.id, lane.id, step.id));
            gate_open(state, gate, step.escalation.as_ref(), survey);
        }
        Progress::Pending | Progress::Waiting { .. } if open && view.is_ready() => {
            let gate = GateRef(format!("{}/{}", view.phase.id, lane.id));
            if !gate_open(state, gate, lane.gate.as_ref(), survey) {
                return;
            }
            match step.progress.waits_until(view.now) {
                Some(until) => survey.wake = earliest(survey.wake, Some(until)),
                None if failure::is_spent(&view.plan.budgets, step) => {
                    let (used, limit) = (step.attempts.into(), view.plan.budgets.attempts.into());
                    let spent = BudgetExhausted::of_run(failure::ATTEMPTS, used, limit);
                    survey.spent.get_or_insert(spent);
                }
                None => lanes::next(view, step, survey),
            }
        }
        _ => {}
    }
}

/// Whether the phases before are over, and those needed are satisfied.
pub fn phase_ready(state: &RunState, phase: &PhaseState) -> bool {
    is_phase_ready(phase, |id| state.phase(id))
}

fn is_phase_ready<'a>(phase: &PhaseState, find: impl Fn(&str) -> Option<&'a PhaseState>) -> bool {
    // What is named last mostly ends last.
    phase.needs.iter().rev().all(|id| find(id).is_some_and(PhaseState::satisfies))
        && phase.after.iter().all(|id| find(id).is_some_and(PhaseState::is_over))
}

/// Whether the lanes needed are satisfied.
pub fn lane_ready(state: &RunState, lane: &LaneState) -> bool {
    lane.needs.iter().all(|path| state.satisfies(path))
}

fn gate_open(state: &RunState, gate: GateRef, name: Option<&String>, survey: &mut Survey) -> bool {
    let Some(name) = name else { return true };
    if state.approved(&gate) {
        return true;
    }
    if state.rejected(&gate) {
        survey.failed = true;
        return false;
    }
    survey.waiting = true;
    if !state.gates.contains_key(&gate) {
        survey.unasked.push((gate, name.clone()));
    }
    false
}

/// Whether a person took the approval of a gate back.
fn is_asked_again(state: &RunState, place: &str) -> bool {
    state.reopened.iter().any(|gate| gate.0 == place)
}

/// What does not run where a step is left out, for a person about to skip it: the phases and lanes
/// that need its lane, and all that needs or comes after those.
pub fn dependents(state: &RunState, step: &StepPath) -> Vec<String> {
    let waiting = waiting_for(state, step);
    let waits = |phase: &PhaseState, lane: &LaneState| {
        waiting.iter().any(|l| l.phase == phase.id && l.lane == lane.id)
    };
    let mut found = Vec::new();
    for phase in &state.phases {
        if !phase.lanes.is_empty() && phase.lanes.iter().all(|lane| waits(phase, lane)) {
            found.push(phase.id.clone());
            continue;
        }
        let lanes = phase.lanes.iter().filter(|lane| waits(phase, lane));
        found.extend(lanes.map(|lane| format!("{}/{}", phase.id, lane.id)));
    }
    found
}

/// The lanes that are not over and never start where a step is left out.
pub fn waiting_for(state: &RunState, step: &StepPath) -> Vec<LanePath> {
    let lane = state.parent_of(&step.lane());
    let (mut phases, mut lanes) = (Vec::<&String>::new(), Vec::<LanePath>::new());
    // Going round until nothing is added finds all that depend on these; lanes are few.
    loop {
        let before = phases.len() + lanes.len();
        for phase in &state.phases {
            // A phase with a lane that never starts is never over.
            let open = |id: &String| phases.contains(&id) || lanes.iter().any(|l| l.phase == *id);
            let waits = phase.needs.iter().any(|id| *id == lane.phase || open(id))
                || phase.after.iter().any(open);
            if waits && !phases.contains(&&phase.id) {
                phases.push(&phase.id);
            }
            for other in &phase.lanes {
                let path = LanePath { phase: phase.id.clone(), lane: other.id.clone() };
                let needs = phases.contains(&&phase.id)
                    || other.needs.iter().any(|n| *n == lane || lanes.contains(n));
                if needs && !other.is_over() && !lanes.contains(&path) {
                    lanes.push(path);
                }
            }
        }
        if phases.len() + lanes.len() == before {
            return lanes;
        }
    }
}

fn is_time(budget: &str) -> bool {
    matches!(budget, "run_time" | "phase_time")
}

/// Time the run used, with what passed since the last event.
fn driven(state: &RunState, now: Timestamp) -> Millis {
    let open = if state.driven { now.since(state.counted_at).0 } else { 0 };
    Millis(state.used.driven_ms.0 + open)
}

fn busy_phase(state: &RunState) -> impl Iterator<Item = &PhaseState> {
    state.phases.iter().filter(|p| p.lanes.iter().any(LaneState::is_running))
}

fn exhausted(
    plan: &Plan,
    state: &RunState,
    elsewhere: Day,
    now: Timestamp,
) -> Option<BudgetExhausted> {
    let budgets = &plan.budgets;
    let run = driven(state, now);
    let rows = [
        ("run_time", run.0, budgets.run_time.0),
        ("run_log_bytes", state.used.log_bytes, budgets.run_log_bytes),
    ];
    let over = |(name, used, limit): (&str, u64, u64)| {
        (used >= limit).then(|| BudgetExhausted::of_run(name, used, limit))
    };
    let passed = if state.driven { now.since(state.counted_at).0 } else { 0 };
    let busy: Vec<&str> = busy_phase(state).map(|p| p.id.as_str()).collect();
    let phases = state.phases.iter().filter(|p| !p.is_over()).map(|p| {
        let open = if busy.contains(&p.id.as_str()) { passed } else { 0 };
        ("phase_time", p.driven_ms.0 + open, budgets.phase_time.0)
    });
    let spent = || agents::spent(plan, state, elsewhere, now);
    rows.into_iter().chain(phases).find_map(over).or_else(spent)
}

/// How long until a budget of time is used up.
fn time_left(plan: &Plan, state: &RunState, now: Timestamp) -> Millis {
    let run = plan.budgets.run_time.0.saturating_sub(driven(state, now).0);
    let passed = if state.driven { now.since(state.counted_at).0 } else { 0 };
    let phase = busy_phase(state)
        .map(|p| plan.budgets.phase_time.0.saturating_sub(p.driven_ms.0 + passed))
        .min();
    Millis(phase.map_or(run, |p| p.min(run)).max(1))
}

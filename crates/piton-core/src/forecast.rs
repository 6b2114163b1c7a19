//! What a run would do from where it stands, if every step that starts succeeds and every gate is
//! approved. What failed stays so, with all that follows from it.

use std::collections::HashSet;

use crate::decide::{Action, Limits, decide};
use crate::event::BudgetExhausted;
use crate::id::{LanePath, StepPath};
use crate::lane::{Isolation, Role};
use crate::lane_progress::LaneProgress;
use crate::plan::Plan;
use crate::state::{LaneState, PhaseState, Progress, RunState};
use crate::time::Timestamp;
use crate::unmet::{Unmet, unmet, unreached};

/// What would run, and what keeps the rest from it.
#[derive(Debug, Default, PartialEq)]
pub struct Forecast {
    /// Steps that start together, in the order of their start.
    pub waves: Vec<Vec<StepPath>>,
    /// Lanes that need something that nobody does.
    pub unmet: Vec<Unmet>,
    /// Steps that would not run, and why.
    pub unreached: Vec<(StepPath, String)>,
    /// The budget that stops the rest.
    pub exhausted: Option<BudgetExhausted>,
}

/// Plays the decisions forward.
pub fn forecast(plan: &Plan, state: &RunState, limits: &Limits) -> Forecast {
    let mut state = from_here(state);
    let mut scene = Scene::new(&state);
    let mut found = Forecast::default();
    loop {
        scene.turn(&mut state);
        let mut wave: Vec<StepPath> = Vec::new();
        for action in decide(plan, &state, limits, Timestamp(0)) {
            match action {
                Action::Start { step, .. } => wave.push(step),
                Action::Exhausted(budget) => found.exhausted = Some(budget),
                _ => {}
            }
        }
        let mut goes_on = false;
        let (waiting, mut done) = apart(&state, &mut wave);
        for step in waiting {
            if state.tasks_at(&step).iter().all(|t| state.lane(t).is_some_and(LaneState::is_over)) {
                done.push(step);
            } else {
                goes_on |= fork(&mut state, &step);
            }
        }
        if wave.is_empty() && done.is_empty() && !goes_on {
            scene.end(&mut state);
            found.unmet = unmet(plan, &state, limits);
            found.unreached = unreached(plan, &state, limits);
            return found;
        }
        for path in wave.iter().chain(&done) {
            if let Some((phase, lane, step)) = state.position(path) {
                state.phases[phase].lanes[lane].steps[step].progress = Progress::Done;
            }
        }
        if !wave.is_empty() {
            found.waves.push(wave);
        }
    }
}

/// The state that the play begins with: nothing is at work, and no gate is closed.
fn from_here(state: &RunState) -> RunState {
    let mut state = state.clone();
    state.driven = false;
    state.exhausted = None;
    for phase in &mut state.phases {
        phase.gate = None;
        for lane in &mut phase.lanes {
            lane.gate = None;
            // Where a lane works, and how it is merged, makes no difference to the order.
            lane.isolation = Isolation::InPlace;
            lane.work = None;
            for step in &mut lane.steps {
                if !step.progress.is_over() && step.progress != Progress::Failed {
                    step.progress = Progress::Pending;
                }
            }
        }
    }
    state
}

/// Takes steps out of a wave for which no process runs: those that wait for tasks, and those that
/// would only mend.
fn apart(state: &RunState, wave: &mut Vec<StepPath>) -> (Vec<StepPath>, Vec<StepPath>) {
    let mut found = (Vec::new(), Vec::new());
    for path in std::mem::take(wave) {
        match state.step(&path).map(|step| step.role) {
            Some(Role::Tasks) => found.0.push(path),
            Some(Role::Mend) => found.1.push(path),
            _ => wave.push(path),
        }
    }
    found
}

/// Lets the tasks that a step waits for start; true where they could not before.
fn fork(state: &mut RunState, step: &StepPath) -> bool {
    let lanes = state.phases.iter_mut().filter(|p| p.id == step.phase).flat_map(|p| &mut p.lanes);
    let mut changed = false;
    for lane in lanes.filter(|l| l.id == step.lane) {
        let work = lane.work.get_or_insert_default();
        changed |= !work.is_forked_at(&step.step);
        work.progress = LaneProgress::Forked { step: step.step.clone() };
    }
    changed
}

/// The phases that matter to the next wave are in the state, the others wait aside: a plan of
/// thousands of phases that follow each other is not walked through once for each of them.
struct Scene {
    /// All phases, in the plan's order.
    phases: Vec<Waiting>,
    /// Where those in the state stand in `phases`.
    present: Vec<usize>,
    /// Lanes of phases that are or were aside, and that count as done.
    done: HashSet<LanePath>,
    /// Whether none leaves: a question about another plan looks at phases that are over.
    stays: bool,
}

/// A phase, and what it waits for.
struct Waiting {
    /// The phase while it is aside.
    aside: Option<PhaseState>,
    needs: Vec<String>,
    after: Vec<String>,
    /// How many of these are not done.
    missing: usize,
    /// The phases that wait for it, and whether it is enough for them that it is over.
    followers: Vec<(usize, bool)>,
    lanes: Vec<Need>,
}

/// The needs of a lane.
struct Need {
    all: Vec<LanePath>,
    /// How many of them, from the first, were seen to be met: what is done then stays done, so one
    /// need that is not met keeps a lane as well as all of them do.
    met: usize,
}

impl Scene {
    fn new(state: &RunState) -> Self {
        let need = |lane: &LaneState| Need { all: lane.needs.clone(), met: 0 };
        let waiting = |phase: &PhaseState| Waiting {
            aside: None,
            needs: phase.needs.clone(),
            after: phase.after.clone(),
            missing: phase.needs.len() + phase.after.len(),
            followers: Vec::new(),
            lanes: phase.lanes.iter().map(need).collect(),
        };
        let mut phases: Vec<Waiting> = state.phases.iter().map(waiting).collect();
        let ids = state.phases.iter().enumerate().map(|(at, phase)| (phase.id.as_str(), at));
        let ids: std::collections::HashMap<&str, usize> = ids.collect();
        for (at, phase) in state.phases.iter().enumerate() {
            let needs = phase.needs.iter().map(|id| (id, false));
            for (id, over) in needs.chain(phase.after.iter().map(|id| (id, true))) {
                if let Some(before) = ids.get(id.as_str()) {
                    phases[*before].followers.push((at, over));
                }
            }
        }
        let stays = state.replans.under_way.is_some()
            || !state.reopened.is_empty()
            || state.replans.phases.values().any(|phase| phase.due.is_some());
        Self { present: (0..phases.len()).collect(), phases, done: HashSet::new(), stays }
    }

    /// Lets phases that are over leave, and those that waited for them enter.
    fn turn(&mut self, state: &mut RunState) {
        if !self.stays {
            for at in self.leave(state) {
                let place = self.present.partition_point(|other| *other < at);
                if self.present.get(place) != Some(&at)
                    && let Some(phase) = self.phases[at].aside.take()
                {
                    self.present.insert(place, at);
                    state.phases.insert(place, phase);
                }
                state.phases[place].needs.clear();
                state.phases[place].after.clear();
            }
        }
        self.narrow(state);
    }

    /// Takes the phases away that are over or cannot begin; returns those that can from now on.
    fn leave(&mut self, state: &mut RunState) -> Vec<usize> {
        let present = std::mem::take(&mut self.present);
        let mut ready = Vec::new();
        for (at, phase) in present.into_iter().zip(std::mem::take(&mut state.phases)) {
            if phase.is_over() {
                self.done.extend(satisfied(&phase));
                let satisfies = phase.satisfies();
                for (follower, over) in std::mem::take(&mut self.phases[at].followers) {
                    let missing = &mut self.phases[follower].missing;
                    *missing -= usize::from(over || satisfies);
                    if *missing == 0 && (over || satisfies) {
                        ready.push(follower);
                    }
                }
                self.phases[at].aside = Some(phase);
            } else if self.phases[at].missing > 0 && !has_begun(&phase) {
                self.done.extend(satisfied(&phase));
                self.phases[at].aside = Some(phase);
            } else {
                self.present.push(at);
                state.phases.push(phase);
            }
        }
        ready.retain(|at| self.phases[*at].aside.as_ref().is_none_or(|phase| !phase.is_over()));
        ready
    }

    /// Lets each lane need the first that is not met, if there is one.
    fn narrow(&mut self, state: &mut RunState) {
        let open = |need: &Need| need.met < need.all.len();
        if !self.present.iter().any(|at| self.phases[*at].lanes.iter().any(open)) {
            return;
        }
        let satisfied = state.satisfied();
        for at in &self.present {
            for need in &mut self.phases[*at].lanes {
                let is_met =
                    |path: &&LanePath| satisfied.contains(path) || self.done.contains(*path);
                need.met += need.all[need.met..].iter().take_while(is_met).count();
            }
        }
        drop(satisfied);
        for (at, phase) in self.present.iter().zip(&mut state.phases) {
            for (lane, need) in phase.lanes.iter_mut().zip(&self.phases[*at].lanes) {
                lane.needs = need.all.get(need.met).cloned().into_iter().collect();
            }
        }
    }

    /// Puts everything back as it was, but for the progress that was made.
    fn end(self, state: &mut RunState) {
        let mut present =
            self.present.into_iter().zip(std::mem::take(&mut state.phases)).peekable();
        for (at, waiting) in self.phases.into_iter().enumerate() {
            let here = present.next_if(|(place, _)| *place == at).map(|(_, phase)| phase);
            let Some(mut phase) = here.or(waiting.aside) else { continue };
            phase.needs = waiting.needs;
            phase.after = waiting.after;
            for (lane, need) in phase.lanes.iter_mut().zip(waiting.lanes) {
                lane.needs = need.all;
            }
            state.phases.push(phase);
        }
    }
}

/// Whether something of a phase counts that cannot begin: a failure, or the time it took.
fn has_begun(phase: &PhaseState) -> bool {
    let failed = |lane: &LaneState| lane.steps.iter().any(|s| s.progress == Progress::Failed);
    phase.driven_ms.0 > 0 || phase.lanes.iter().any(failed)
}

/// The lanes of a phase that count as done, with all their parts.
fn satisfied(phase: &PhaseState) -> impl Iterator<Item = LanePath> {
    let is_done =
        |lane: &&LaneState| lane.satisfies() && phase.parts_of(&lane.id).all(LaneState::satisfies);
    let lanes = phase.lanes.iter().filter(is_done);
    lanes.map(|lane| LanePath { phase: phase.id.clone(), lane: lane.id.clone() })
}

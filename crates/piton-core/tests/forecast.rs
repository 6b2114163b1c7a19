//! A forecast leaves phases aside that cannot matter yet: what it says is what the whole walk says.

mod support;

use std::collections::HashSet;

use piton_core::forecast::forecast;
use piton_core::plan::OnFailure;
use piton_core::state::Progress;
use piton_core::unmet::unreached;
use piton_core::{Action, LanePath, Limits, Plan, RunState, StepPath, Timestamp, decide};
use piton_testkit::plans;
use proptest::prelude::*;
use support::Run;

/// Phases with lanes; each phase and lane names earlier ones by numbers.
fn any_plan() -> impl Strategy<Value = Plan> {
    let named = || proptest::collection::vec(any::<prop::sample::Index>(), 0..3);
    let lane = (1..3usize, named());
    let phase = (proptest::collection::vec(lane, 1..4), named(), named());
    (proptest::collection::vec(phase, 1..8), any::<bool>()).prop_map(|(phases, goes_on)| {
        let mut lanes_before: Vec<LanePath> = Vec::new();
        let mut built = Vec::new();
        for (p, (lanes, needs, after)) in phases.iter().enumerate() {
            let id = format!("P{p}");
            let mut phase = plans::phase(&id, Vec::new());
            for (l, (steps, wanted)) in lanes.iter().enumerate() {
                let names: Vec<String> = (0..*steps).map(|s| format!("S{s}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let mut lane = plans::lane_of(&format!("L{l}"), &names);
                if !lanes_before.is_empty() {
                    lane.needs = wanted.iter().map(|at| at.get(&lanes_before).clone()).collect();
                }
                lanes_before.push(LanePath { phase: id.clone(), lane: lane.id.clone() });
                phase.lanes.push(lane);
            }
            let earlier = |named: &[prop::sample::Index]| -> Vec<String> {
                let named = named.iter().filter(|_| p > 0).map(|at| format!("P{}", at.index(p)));
                named.collect::<HashSet<_>>().into_iter().collect()
            };
            (phase.needs, phase.after) = (earlier(needs), earlier(after));
            built.push(phase);
        }
        let mut plan = plans::plan(Vec::new());
        plan.phases = built;
        plan.on_failure = if goes_on { OnFailure::Continue } else { OnFailure::Stop };
        plan
    })
}

/// Plays forward with all phases in the state, as a driver would with no limit of jobs.
fn plainly(plan: &Plan, state: &RunState, limits: &Limits) -> (Vec<Vec<StepPath>>, RunState) {
    let (mut state, mut waves) = (state.clone(), Vec::new());
    loop {
        let start = |action: Action| match action {
            Action::Start { step, .. } => Some(step),
            _ => None,
        };
        let wave: Vec<StepPath> =
            decide(plan, &state, limits, Timestamp(0)).into_iter().filter_map(start).collect();
        if wave.is_empty() {
            return (waves, state);
        }
        for path in &wave {
            let (phase, lane, step) = state.position(path).expect("it was named");
            state.phases[phase].lanes[lane].steps[step].progress = Progress::Done;
        }
        waves.push(wave);
    }
}

proptest! {
    /// Lost: a dry run that hides what would run, or shows it in another order.
    #[test]
    fn phases_left_aside_change_nothing(
        plan in any_plan(),
        dice in proptest::collection::vec(0..12u8, 64),
    ) {
        let mut run = Run::new(plan);
        let steps = run.state.phases.iter_mut().flat_map(|p| &mut p.lanes).flat_map(|l| &mut l.steps);
        for (step, dice) in steps.zip(dice) {
            match dice {
                0..3 => step.progress = Progress::Done,
                3 => step.progress = Progress::Skipped { satisfy: false },
                4 => step.progress = Progress::Failed,
                _ => {}
            }
        }
        let limits = Limits { jobs: usize::MAX, ..Limits::default() };
        let (waves, after) = plainly(&run.plan, &run.state, &limits);
        let found = forecast(&run.plan, &run.state, &limits);
        prop_assert_eq!(found.waves, waves);
        prop_assert_eq!(found.unreached, unreached(&run.plan, &after, &limits));
    }
}

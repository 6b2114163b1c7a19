//! What a run would do, without doing it: waves, commands, and what is skipped and why.

use piton_core::evidence::Rerun;
use piton_core::state::Progress;
use piton_core::{Action, Limits, Plan, RunState, StepPath, Timestamp, decide};

use crate::cli::DriveArgs;
use crate::context::Context;
use crate::ui;

/// Prints the waves of a plan from where a state stands.
pub fn print(context: &Context, plan: &Plan, state: &RunState, reruns: &[Rerun], args: &DriveArgs) {
    let finished: Vec<(StepPath, &'static str)> = state
        .steps()
        .filter_map(|(path, step)| match step.progress {
            Progress::Done => Some((path, "finished before")),
            Progress::Skipped { .. } => Some((path, "left out on a person's word")),
            _ => None,
        })
        .collect();
    let waves = waves(plan, state, args);
    if context.json {
        let steps = |wave: &Vec<StepPath>| {
            wave.iter()
                .map(|p| serde_json::json!({"step": p, "command": command(plan, p)}))
                .collect::<Vec<_>>()
        };
        ui::data_json(&serde_json::json!({
            "waves": waves.iter().map(steps).collect::<Vec<_>>(),
            "skipped": finished.iter().map(|(p, why)| serde_json::json!({"step": p, "reason": why})).collect::<Vec<_>>(),
            "rerun": reruns,
            "gates": plan.gates().iter().map(|(g, n)| serde_json::json!({"gate": g, "name": n})).collect::<Vec<_>>(),
        }));
        return;
    }
    for (number, wave) in waves.iter().enumerate() {
        ui::data(&format!("wave {}", number + 1));
        for path in wave {
            let why = reruns.iter().find(|r| &r.step == path);
            let why = why.map(|r| format!("  (again: {})", r.reason)).unwrap_or_default();
            ui::data(&format!("  {path}: {}{why}", command(plan, path)));
        }
    }
    for (gate, name) in plan.gates() {
        if !state.approved(&gate) {
            ui::data(&format!("gate {gate}: \"{name}\" must be approved first"));
        }
    }
    for (path, why) in finished {
        ui::data(&format!("skipped {path}: {why}"));
    }
}

fn command(plan: &Plan, path: &StepPath) -> String {
    plan.step(path).map(|s| s.work.display()).unwrap_or_default()
}

/// Plays the decisions forward: every step succeeds, every gate is approved.
fn waves(plan: &Plan, state: &RunState, args: &DriveArgs) -> Vec<Vec<StepPath>> {
    let mut state = state.clone();
    state.driven = false;
    state.exhausted = None;
    for step in state.phases.iter_mut().flat_map(|p| &mut p.lanes).flat_map(|l| &mut l.steps) {
        if !step.progress.is_over() {
            step.progress = Progress::Pending;
        }
    }
    for phase in &mut state.phases {
        phase.gate = None;
        for lane in &mut phase.lanes {
            lane.gate = None;
            // Where a lane works, and how it is merged, makes no difference to the order.
            lane.isolation = piton_core::lane::Isolation::InPlace;
            lane.work = None;
        }
    }
    let limits = Limits {
        jobs: usize::MAX,
        draining: false,
        phase: args.phase.clone(),
        lane: args.lane.clone(),
        ..Limits::default()
    };
    let mut waves = Vec::new();
    loop {
        let wave: Vec<StepPath> = decide(plan, &state, &limits, Timestamp(0))
            .into_iter()
            .filter_map(|a| match a {
                Action::Start { step, .. } => Some(step),
                _ => None,
            })
            .collect();
        if wave.is_empty() {
            return waves;
        }
        for phase in &mut state.phases {
            for lane in &mut phase.lanes {
                for step in &mut lane.steps {
                    let path = StepPath::new(&phase.id, &lane.id, &step.id);
                    if wave.contains(&path) {
                        step.progress = Progress::Done;
                    }
                }
            }
        }
        waves.push(wave);
    }
}

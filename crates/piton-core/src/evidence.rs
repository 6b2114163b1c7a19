//! The one rule for what counts as finished: same definition, same inputs, artifacts still there.
//!
//! A file has changed only if it differs from what the run last recorded for it. So a step does not
//! run again because a later step rewrote its artifact.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::event::FileHash;
use crate::hash::Sha;
use crate::id::{LanePath, StepPath};
use crate::plan::{Lane, Phase, Plan};
use crate::state::{Progress, RunState, StepState};

/// Most missing artifacts that are named: enough to see a pattern in a line or two.
const MISSING_NAMED_MAX: usize = 10;

/// The hashes of files that are evidence now; `None` for a missing file.
pub type Files = BTreeMap<String, Option<Sha>>;

/// The declared inputs of finished steps now.
pub type Inputs = BTreeMap<StepPath, Vec<FileHash>>;

/// A finished step that must run again, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerun {
    /// Which step.
    pub step: StepPath,
    /// What is not as it was.
    pub stale: Stale,
    /// Why, in words.
    pub reason: String,
}

/// What of a finished step is not as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Stale {
    Definition,
    ArtifactMissing,
    ArtifactChanged,
    Input,
}

/// The paths whose hashes [`stale`] needs: every artifact of a finished step.
pub fn paths_to_see(state: &RunState) -> Vec<String> {
    let mut paths: Vec<String> = done(state)
        .filter(|(path, _)| !in_base(state, path))
        .flat_map(|(path, step)| {
            step.artifacts.iter().map(move |f| state.place_of(&path, &f.path)).collect::<Vec<_>>()
        })
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// The finished steps that declare inputs, which must be checked.
pub fn steps_with_inputs<'a>(plan: &'a Plan, state: &RunState) -> Vec<(StepPath, &'a [String])> {
    done(state)
        .filter(|(path, _)| !in_base(state, path))
        .filter_map(|(path, _)| {
            let inputs = plan.step(&path)?.inputs.as_slice();
            (!inputs.is_empty()).then_some((path, inputs))
        })
        .collect()
}

/// The steps of a plan in an order in which they can run: `needs` first, then the document's order.
/// Computed only if needed.
struct Order<'a> {
    plan: &'a Plan,
    places: OnceCell<BTreeMap<StepPath, usize>>,
}

impl<'a> Order<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self { plan, places: OnceCell::new() }
    }

    fn of(&self, step: &StepPath) -> Option<usize> {
        self.places.get_or_init(|| places(self.plan)).get(step).copied()
    }
}

fn places(plan: &Plan) -> BTreeMap<StepPath, usize> {
    let mut open: BTreeMap<&str, usize> =
        plan.phases.iter().map(|phase| (phase.id.as_str(), phase.lanes.len())).collect();
    let path =
        |phase: &Phase, lane: &Lane| LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
    let mut waiting: Vec<(&Phase, &Lane)> =
        plan.phases.iter().flat_map(|phase| phase.lanes.iter().map(move |l| (phase, l))).collect();
    let (mut placed, mut places) = (BTreeSet::new(), BTreeMap::new());
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|(phase, lane)| {
            let over = |id: &String| open.get(id.as_str()).is_none_or(|left| *left == 0);
            let ready = phase.needs.iter().chain(&phase.after).all(over)
                && lane.needs.iter().all(|needed| placed.contains(needed));
            if ready {
                place(phase, lane, &mut places);
                placed.insert(path(phase, lane));
                open.entry(phase.id.as_str()).and_modify(|left| *left -= 1);
            }
            !ready
        });
        // A plan with a cycle is refused. If one gets here, the document's order is as good as any.
        if waiting.len() == before {
            waiting.drain(..).for_each(|(phase, lane)| place(phase, lane, &mut places));
        }
    }
    places
}

fn place(phase: &Phase, lane: &Lane, places: &mut BTreeMap<StepPath, usize>) {
    for step in &lane.steps {
        let next = places.len();
        places.insert(StepPath::new(&phase.id, &lane.id, &step.id), next);
    }
}

/// Files that steps will make again before later steps are checked: the place of each, and the
/// position of the step that makes it.
type Awaited = BTreeMap<String, usize>;

/// Names the finished steps whose evidence is gone, in the plan's order.
///
/// An input that an earlier step makes again is checked after that step has run: it may be the
/// same.
pub fn stale(plan: &Plan, state: &RunState, files: &Files, inputs: &Inputs) -> Vec<Rerun> {
    let order = Order::new(plan);
    let mut awaited = Awaited::new();
    let mut reruns = stale_but(&order, state, files, inputs, &awaited);
    if !reruns.iter().any(|r| r.stale == Stale::Input) {
        return reruns;
    }
    // Each round decides at least one step, so there are at most as many rounds as steps.
    for _ in 0..=reruns.len() {
        let found = made_again(&order, state, &reruns);
        if found == awaited {
            break;
        }
        awaited = found;
        reruns = stale_but(&order, state, files, inputs, &awaited);
    }
    reruns
}

fn stale_but(
    order: &Order<'_>,
    state: &RunState,
    files: &Files,
    inputs: &Inputs,
    awaited: &Awaited,
) -> Vec<Rerun> {
    done(state)
        .filter_map(|(path, step)| {
            let (stale, reason) = reason(order, state, files, inputs, awaited, &path, step)?;
            Some(Rerun { step: path, stale, reason })
        })
        .collect()
}

/// The artifacts of steps that succeeded once and will run again: those named, and those that are
/// already pending or running.
fn made_again(order: &Order<'_>, state: &RunState, reruns: &[Rerun]) -> Awaited {
    let mut found = Awaited::new();
    for (path, _) in order.plan.steps() {
        let Some(position) = order.of(&path) else { continue };
        let Some(step) = state.step(&path).filter(|step| !step.artifacts.is_empty()) else {
            continue;
        };
        let runs = matches!(step.progress, Progress::Pending | Progress::Running { .. })
            || reruns.iter().any(|r| r.step == path);
        if runs {
            let places = step.artifacts.iter().map(|f| state.place_of(&path, &f.path));
            places.for_each(|place| {
                let first = found.entry(place).or_insert(position);
                *first = position.min(*first);
            });
        }
    }
    found
}

/// Whether a step's work is merged: later merges may change the same files.
fn in_base(state: &RunState, path: &StepPath) -> bool {
    state.is_merged(&path.lane())
}

fn done(state: &RunState) -> impl Iterator<Item = (StepPath, &StepState)> {
    state.steps().filter(|(_, s)| s.progress == Progress::Done)
}

fn reason(
    order: &Order<'_>,
    state: &RunState,
    files: &Files,
    inputs: &Inputs,
    awaited: &Awaited,
    path: &StepPath,
    step: &StepState,
) -> Option<(Stale, String)> {
    let planned = order.plan.step(path)?;
    let same = step.definition.as_ref().is_some_and(|d| planned.is_defined_by(d));
    // What is merged is in base: another wording of its tasks does not take it back.
    if !same && !in_base(state, path) {
        return Some((Stale::Definition, "its definition in the plan changed".to_owned()));
    }
    let is_missing = |f: &&FileHash| files.get(&state.place_of(path, &f.path)) == Some(&None);
    let gone: Vec<&str> =
        step.artifacts.iter().filter(is_missing).map(|f| f.path.as_str()).collect();
    if !gone.is_empty() {
        return Some((Stale::ArtifactMissing, missing(&gone)));
    }
    for artifact in &step.artifacts {
        let place = state.place_of(path, &artifact.path);
        if let Some(Some(found)) = files.get(&place) {
            let known = state.recorded.contains_key(&place);
            let same = if known {
                left_by(state, &place, found).is_some()
            } else {
                artifact.sha256 == *found
            };
            if !same {
                let reason = format!("artifact {} changed since it was recorded", artifact.path);
                return Some((Stale::ArtifactChanged, reason));
            }
        }
    }
    let seen = inputs.get(path)?;
    let waits = |file: &FileHash| {
        let maker = awaited.get(&state.place_of(path, &file.path));
        maker.is_some_and(|maker| order.of(path).is_some_and(|own| *maker < own))
    };
    let reason = changed_input(order, state, path, &step.inputs, seen, &waits)?;
    Some((Stale::Input, reason))
}

/// Says which artifacts are missing.
pub fn missing<T: AsRef<str>>(paths: &[T]) -> String {
    let named: Vec<&str> = paths.iter().take(MISSING_NAMED_MAX).map(AsRef::as_ref).collect();
    let named = named.join(", ");
    match paths.len() {
        1 => format!("artifact {named} is missing"),
        ..=MISSING_NAMED_MAX => format!("artifacts {named} are missing"),
        count => format!("artifacts {named} and {} more are missing", count - MISSING_NAMED_MAX),
    }
}

fn changed_input(
    order: &Order<'_>,
    state: &RunState,
    path: &StepPath,
    before: &[FileHash],
    now: &[FileHash],
    waits: &dyn Fn(&FileHash) -> bool,
) -> Option<String> {
    for file in now {
        let known = before.iter().find(|b| b.path == file.path);
        let same = known.is_some_and(|b| b.sha256 == file.sha256);
        if !same && !rewritten_later(order, state, path, file) && !waits(file) {
            let what = if known.is_some() { "changed" } else { "is new" };
            return Some(format!("input {} {what}", file.path));
        }
    }
    let is_gone = |b: &&FileHash| !now.iter().any(|n| n.path == b.path) && !waits(b);
    let gone = before.iter().find(is_gone)?;
    Some(format!("input {} is missing", gone.path))
}

/// Whether the step itself, or a later one, recorded these bytes.
fn rewritten_later(order: &Order<'_>, state: &RunState, path: &StepPath, file: &FileHash) -> bool {
    let by = left_by(state, &state.place_of(path, &file.path), &file.sha256);
    by.is_some_and(|by| order.of(&by) >= order.of(path))
}

/// The step that left a file with these bytes: the one that recorded it last. If that step must run
/// again, for example after a rollback, also the last one that is still finished.
fn left_by(state: &RunState, place: &str, found: &Sha) -> Option<StepPath> {
    let recorded = state.recorded.get(place)?;
    if recorded.sha256 == *found {
        return Some(recorded.by.clone());
    }
    if state.step(&recorded.by).is_some_and(|step| step.progress == Progress::Done) {
        return None;
    }
    let left = |(path, step): (StepPath, &StepState)| {
        let mut files = step.artifacts.iter().chain(&step.inputs);
        let file = files.find(|file| state.place_of(&path, &file.path) == place)?;
        Some((step.done_event, file.sha256 == *found, path))
    };
    let (_, same, path) = done(state).filter_map(left).max_by_key(|(event, ..)| *event)?;
    same.then_some(path)
}

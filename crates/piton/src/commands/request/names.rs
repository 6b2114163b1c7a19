//! What people type for runs, steps and gates, and what they mean by it.
//!
//! A short name is enough where it fits one thing only; where it fits several, they are listed and
//! nothing is guessed.

use piton_core::refusal::Remedy;
use piton_core::request::{Refused, find_gate};
use piton_core::state::Progress;
use piton_core::text::first_few;
use piton_core::{GateRef, RunState, StepPath, remedy};
use piton_engine::{Loaded, Store};

use super::unfinished;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};

/// Most unfinished runs that are looked through for a gate; older ones have to be named.
const RUNS_SEARCHED_MAX: usize = 50;
/// Most candidates listed; more would not be read.
const CANDIDATES_MAX: usize = 10;

/// Splits `[RUN] TARGET`: two words are run and target, one is the target unless it is a run's id.
pub fn split<'a>(
    store: &mut Store,
    first: Option<&'a str>,
    second: Option<&'a str>,
) -> Result<(Option<&'a str>, Option<&'a str>)> {
    match (first, second) {
        (run, Some(target)) => Ok((run, Some(target))),
        (Some(one), None) if store.ledger().run(one)?.is_some() => Ok((Some(one), None)),
        (one, None) => Ok((None, one)),
    }
}

/// The run whose gate is meant: the one named, else the newest where that gate is asked about, else
/// the newest unfinished one that has it.
pub fn run_with_gate(
    store: &mut Store,
    run: Option<&str>,
    gate: &str,
    verb: &str,
) -> Result<(Loaded, GateRef)> {
    if run.is_some() {
        let row = Context::pick(store, run, |_| true, "run")?;
        return with_gate(store.load_row(row)?, gate, verb);
    }
    let rows: Vec<_> = store.runs()?.into_iter().filter(unfinished).collect();
    let mut has_it = None;
    for row in rows.iter().take(RUNS_SEARCHED_MAX) {
        let loaded = store.load_row(row.clone())?;
        let place = match find_gate(&loaded.state, gate) {
            Ok((place, _)) => place,
            // An older run is not meant because it is clear there.
            Err(Refused::ManyGates(..)) => return with_gate(loaded, gate, verb),
            Err(_) => continue,
        };
        if loaded.state.asked(&place).is_some_and(|g| g.decision.is_none()) {
            return Ok((loaded, place));
        }
        has_it = has_it.or(Some((loaded, place)));
    }
    if let Some(found) = has_it {
        return Ok(found);
    }
    let row = Context::pick(store, None, unfinished, "unfinished run")?;
    with_gate(store.load_row(row)?, gate, verb)
}

fn with_gate(loaded: Loaded, gate: &str, verb: &str) -> Result<(Loaded, GateRef)> {
    match find_gate(&loaded.state, gate) {
        Ok((place, _)) => Ok((loaded, place)),
        Err(Refused::ManyGates(text, places)) => {
            let run = &loaded.row.run_id;
            let message = format!("several gates of run {run} are called `{text}`");
            let mut error = CommandError::usage("no-gate", message);
            for place in places {
                let stands = stands(&loaded.state, &place);
                error = error.hint(gate_choice(verb, run, &place, &format!("{place}, {stands}")));
            }
            Err(error)
        }
        Err(refused) => {
            let run = &loaded.row.run_id;
            Err(CommandError::refused(Kind::Usage, refused)
                .hint(remedy![Piton "show {run}", Words " lists its gates"]))
        }
    }
}

/// How one of several gates is named.
pub fn gate_choice(verb: &str, run: &str, place: &GateRef, which: &str) -> Remedy {
    remedy![Piton "{verb} {run} {place}", Words " for {which}"]
}

/// What became of a gate so far.
fn stands(state: &RunState, gate: &GateRef) -> &'static str {
    match state.asked(gate).map(|found| &found.decision) {
        None => "which is not open yet",
        Some(None) => "which is open",
        Some(Some(decision)) if decision.approved => "which is approved",
        Some(Some(_)) => "which is rejected",
    }
}

/// Finds the step a person means: a full path, the end of one, or a place with a single step.
pub fn step(loaded: &Loaded, wanted: &str) -> Result<StepPath> {
    let found = candidates(&loaded.state, wanted);
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let run = &loaded.row.run_id;
            let message = format!("run {run} has no step `{wanted}`");
            let hint = match nearest(&loaded.state, wanted) {
                Some(near) => remedy![Words "did you mean `{near}`?"],
                None => remedy![Piton "status {run}", Words " shows its steps"],
            };
            Err(CommandError::usage("no-step", message).hint(hint))
        }
        many => {
            let message = format!("`{wanted}` could mean: {}", listed(many));
            Err(CommandError::usage("ambiguous-step", message)
                .hint("write PHASE/LANE/STEP, or enough of its end to make it unique"))
        }
    }
}

/// The steps a text may mean.
fn candidates(state: &RunState, wanted: &str) -> Vec<StepPath> {
    let all: Vec<StepPath> = state.steps().map(|(path, _)| path).collect();
    if let Some(exact) = all.iter().find(|p| p.to_string() == wanted) {
        return vec![exact.clone()];
    }
    let by_end: Vec<StepPath> = all.iter().filter(|p| fits(p, wanted)).cloned().collect();
    if !by_end.is_empty() {
        return by_end;
    }
    // A lane or phase names its only step.
    let below =
        |p: &&StepPath| p.phase == wanted || p.lane == wanted || p.lane().to_string() == wanted;
    all.iter().filter(below).cloned().collect()
}

/// Whether a text names this step: its path, or the end of it.
pub fn fits(path: &StepPath, wanted: &str) -> bool {
    ends_with(&path.to_string(), wanted)
}

/// Whether a text names this lane: its path, or its id.
pub fn fits_lane(path: &StepPath, wanted: &str) -> bool {
    ends_with(&path.lane().to_string(), wanted)
}

fn ends_with(path: &str, wanted: &str) -> bool {
    path == wanted || path.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('/'))
}

fn nearest(state: &RunState, wanted: &str) -> Option<String> {
    let all = state.steps().map(|(path, _)| path);
    let distance = |p: &StepPath| {
        strsim::damerau_levenshtein(&p.step, wanted)
            .min(strsim::damerau_levenshtein(&p.to_string(), wanted))
    };
    let best = all.min_by_key(distance)?;
    (distance(&best) <= wanted.len() / 2).then(|| best.to_string())
}

/// The steps that failed and have no attempt left.
pub fn failed(state: &RunState) -> Vec<StepPath> {
    state.steps().filter(|(_, s)| s.progress == Progress::Failed).map(|(path, _)| path).collect()
}

/// Names a few of many.
pub fn listed(paths: &[StepPath]) -> String {
    first_few(paths.iter().map(ToString::to_string), CANDIDATES_MAX).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use piton_core::state::{LaneState, PhaseState, StepState};

    use super::*;

    fn state(steps: &[(&str, &str, &[&str])]) -> RunState {
        let mut state = RunState::default();
        for (phase, lane, ids) in steps {
            let steps = ids
                .iter()
                .map(|id| StepState { id: (*id).to_owned(), ..StepState::default() })
                .collect();
            let lane = LaneState { id: (*lane).to_owned(), steps, ..LaneState::default() };
            match state.phases.iter_mut().find(|p| p.id == *phase) {
                Some(found) => found.lanes.push(lane),
                None => state.phases.push(PhaseState {
                    id: (*phase).to_owned(),
                    lanes: vec![lane],
                    ..PhaseState::default()
                }),
            }
        }
        state
    }

    fn found(wanted: &str) -> Vec<String> {
        let state = state(&[
            ("P1", "A", &["build", "test"]),
            ("P1", "B", &["build"]),
            ("P2", "main", &["work"]),
        ]);
        candidates(&state, wanted).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_end_of_a_path_is_enough_where_it_occurs_once() {
        assert_eq!(found("P1/A/build"), ["P1/A/build"]);
        assert_eq!(found("B/build"), ["P1/B/build"]);
        assert_eq!(found("test"), ["P1/A/test"]);
        assert_eq!(found("est"), [""; 0]);
    }

    #[test]
    fn several_fits_are_all_given() {
        assert_eq!(found("build"), ["P1/A/build", "P1/B/build"]);
        assert_eq!(found("A"), ["P1/A/build", "P1/A/test"]);
    }

    #[test]
    fn a_lane_or_phase_names_its_only_step() {
        assert_eq!(found("P2"), ["P2/main/work"]);
        assert_eq!(found("P1/B"), ["P1/B/build"]);
    }
}

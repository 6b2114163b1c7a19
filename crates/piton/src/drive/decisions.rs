//! What is to be decided at open gates, gathered from the run, its snapshots and its protocol.

use piton_core::approval::{self, Last};
use piton_core::{GateRef, RunState, StepPath};
use piton_engine::Store;
use piton_view::decision::{Changes, Decision};
use piton_workspace::history;
use piton_world::read::protocol_file;

use super::root_of;
use crate::context::Context;

/// What is to be decided at each open gate.
pub fn decisions(context: &Context, store: &mut Store, state: &RunState) -> Vec<Decision> {
    let gates = state.open_gates();
    gates.map(|(gate, asked)| decision(context, store, state, (gate, &asked.name))).collect()
}

fn decision(
    context: &Context,
    store: &mut Store,
    state: &RunState,
    (gate, name): (&GateRef, &str),
) -> Decision {
    let steps = approval::reviewed(state, gate);
    let made = steps.iter().filter_map(|path| Some((path, state.step(path)?)));
    let mut files: Vec<String> = made
        .flat_map(|(path, step)| {
            step.artifacts.iter().map(|file| state.place_of(path, &file.path)).collect::<Vec<_>>()
        })
        .collect();
    files.sort();
    files.dedup();
    let changes = changes(context, state, gate, &steps);
    let plan = store.plan(state).ok();
    let protocol = context.protocol(state, &state.protocol.id).ok();
    let tables = plan.zip(protocol).map(|(plan, protocol)| {
        let root = root_of(context, state);
        let read = |path: &str| protocol_file(&root, path);
        protocol.presents((&plan, state), gate, &read)
    });
    let (gate, name, tables) = (gate.0.clone(), name.to_owned(), tables.unwrap_or_default());
    Decision { gate, name, files, changes, tables }
}

/// What changed since a person last decided: all files in numbers, those to decide about line by line.
fn changes(
    context: &Context,
    state: &RunState,
    gate: &GateRef,
    steps: &[StepPath],
) -> Option<Changes> {
    // Lanes in place share their files: what is there now is in the newest snapshot of them all.
    let snapshot = |path: &StepPath| {
        let work = state.lane(&path.lane())?.work.as_ref()?;
        let own = !work.isolation.is_in_place();
        if own { work.latest.snapshot.clone() } else { approval::newest_snapshot(state) }
    };
    let (last, seen) = approval::decided_before(state, gate)?;
    // What lanes merged is in base, with the work of all of them.
    let merged = |path: &StepPath| {
        let work = state.lane(&path.lane())?.work.as_deref()?;
        let base =
            work.merged().and_then(|merged| merged.to.as_ref()).map(|_| &work.base_branch)?;
        Some(format!("refs/heads/{base}^{{tree}}"))
    };
    let now = steps.iter().find_map(merged);
    let now = now.or_else(|| Some(format!("{}:tree", steps.iter().find_map(snapshot)?)))?;
    let root = &context.project.root;
    let seen = format!("{seen}:tree");
    let counted = history::diff(root, &seen, &now, true).unwrap_or_default();
    if counted.is_empty() && last == Last::Nothing {
        return None;
    }
    let mut changes = Changes::since(last);
    changes.counted = counted.lines().map(|line| line.trim().to_owned()).collect();
    let paths = history::changed(root, &seen, &now).unwrap_or_default().into_iter();
    changes.paths = paths.map(|path| String::from_utf8_lossy(&path).into_owned()).collect();
    // A file that is new is read as a whole.
    let made = steps.iter().filter_map(|path| state.step(path)).flat_map(|step| &step.artifacts);
    let made = made.map(|file| file.path.clone());
    let old: Vec<String> =
        made.filter(|path| history::has_file(root, &seen, path.as_ref())).collect();
    if !old.is_empty() {
        let diff = history::diff_of(root, &seen, &now, &old).unwrap_or_default();
        changes.take(&context.redactor.redact(&diff));
    }
    Some(changes)
}

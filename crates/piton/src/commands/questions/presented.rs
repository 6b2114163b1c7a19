//! What a person sees before they decide about a gate: the files that were made for it, what changed
//! since the last decision, and what the protocol of the run shows.

use piton_core::approval::{self, Last};
use piton_core::{GateRef, RunState, StepPath};
use piton_engine::Store;
use piton_view::text::sanitize;
use piton_workspace::history;
use piton_world::read::protocol_file;

use crate::context::Context;
use crate::drive;
use crate::ui;

/// Most lines of a difference that are shown: about two screens.
const DIFF_LINES_MAX: usize = 80;

/// Says what is to be decided at each open gate.
pub fn say(context: &Context, store: &mut Store, state: &RunState) {
    for (gate, asked) in state.open_gates() {
        let lines = lines(context, store, state, gate);
        if !lines.is_empty() {
            ui::say(format!("to decide about \"{}\":", asked.name));
            for line in lines {
                ui::say(format!("  {line}"));
            }
        }
    }
}

fn lines(context: &Context, store: &mut Store, state: &RunState, gate: &GateRef) -> Vec<String> {
    let steps = approval::reviewed(state, gate);
    let made = steps.iter().filter_map(|path| Some((path, state.step(path)?)));
    let mut files: Vec<String> = made
        .flat_map(|(path, step)| {
            step.artifacts.iter().map(|file| state.place_of(path, &file.path)).collect::<Vec<_>>()
        })
        .collect();
    files.sort();
    files.dedup();
    let mut lines: Vec<String> = files.iter().map(|file| format!("file {file}")).collect();
    lines.extend(changes(context, state, gate, &steps));
    let plan = store.plan(state).ok();
    let protocol = context.protocol(state, &state.protocol.id).ok();
    if let (Some(plan), Some(protocol)) = (plan, protocol) {
        let root = drive::root_of(context, state);
        let read = |path: &str| protocol_file(&root, path);
        lines.extend(protocol.presents((&plan, state), gate, &read));
    }
    lines
}

/// What changed since a person last decided: all files in numbers, those to decide about line by line.
fn changes(context: &Context, state: &RunState, gate: &GateRef, steps: &[StepPath]) -> Vec<String> {
    // Lanes in place share their files: what is there now is in the newest snapshot of them all.
    let snapshot = |path: &StepPath| {
        let work = state.lane(&path.lane())?.work.as_ref()?;
        let own = !work.isolation.is_in_place();
        if own { work.latest.snapshot.clone() } else { approval::newest_snapshot(state) }
    };
    let Some(((last, seen), now)) =
        approval::decided_before(state, gate).zip(steps.iter().find_map(snapshot))
    else {
        return Vec::new();
    };
    let root = &context.project.root;
    let (seen, now) = (format!("{seen}:tree"), format!("{now}:tree"));
    let counted = history::diff(root, &seen, &now, true).unwrap_or_default();
    if counted.is_empty() && last == Last::Nothing {
        return Vec::new();
    }
    let since = match last {
        Last::Changes { by } => format!("{by} asked for changes"),
        Last::Approved { by, name } => format!("{by} approved \"{name}\""),
        Last::Nothing => "the run began".to_owned(),
    };
    let what = if counted.is_empty() { "nothing changed" } else { "changed" };
    let mut lines = vec![format!("{what} since {since}")];
    let counted: Vec<&str> = counted.lines().map(str::trim).collect();
    lines.extend(shown(&counted));
    // A file that is new is read as a whole.
    let made = steps.iter().filter_map(|path| state.step(path)).flat_map(|step| &step.artifacts);
    let made = made.map(|file| file.path.clone());
    let old: Vec<String> =
        made.filter(|path| history::has_file(root, &seen, path.as_ref())).collect();
    if !old.is_empty() {
        let diff = history::diff_of(root, &seen, &now, &old).unwrap_or_default();
        let diff = context.redactor.redact(&diff);
        lines.extend(shown(&diff.lines().collect::<Vec<_>>()));
    }
    lines
}

/// Lines as far as they are shown.
fn shown(lines: &[&str]) -> Vec<String> {
    let all = lines.iter().take(DIFF_LINES_MAX).map(|line| format!("  {}", sanitize(line)));
    let left = lines.len().saturating_sub(DIFF_LINES_MAX);
    all.chain((left > 0).then(|| format!("  and {left} lines more"))).collect()
}

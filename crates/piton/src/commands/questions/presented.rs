//! What a person sees before they decide about a gate: the files that were made for it, what changed
//! since changes were asked for, and what the protocol of the run shows.

use piton_core::{GateRef, RunState, approval};
use piton_engine::Store;
use piton_view::text::sanitize_lines;
use piton_workspace::history;
use piton_world::read::protocol_file;

use crate::context::Context;
use crate::drive;
use crate::ui;

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
    let latest = steps
        .iter()
        .find_map(|path| state.lane(&path.lane())?.work.as_ref()?.latest.snapshot.clone());
    let last = state.reviews.get(gate);
    if let Some((review, (seen, now))) =
        last.and_then(|r| Some((r, r.seen.as_ref().zip(latest.as_ref())?)))
    {
        let root = &context.project.root;
        let diff = history::diff(root, &format!("{seen}:tree"), &format!("{now}:tree"), true);
        let shown = diff.unwrap_or_default();
        let what = if shown.is_empty() { "nothing changed" } else { "changed" };
        lines.push(format!("{what} since {} asked for changes", review.by));
        lines.extend(sanitize_lines(&shown).lines().map(|line| format!("  {}", line.trim())));
    }
    let plan = store.plan(state).ok();
    let protocol = context.protocol(state, &state.protocol.id).ok();
    if let (Some(plan), Some(protocol)) = (plan, protocol) {
        let root = drive::root_of(context, state);
        let read = |path: &str| protocol_file(&root, path);
        lines.extend(protocol.presents((&plan, state), gate, &read));
    }
    lines
}

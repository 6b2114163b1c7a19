//! The gates of a phase document: ticked when the lane that provides them completes, and open again
//! when that lane is rolled back.
//!
//! Only our own ticks are removed. The document does not show whose tick it is, so ours are stored with
//! the run before the document is written. Any other tick is a person's.

use std::collections::BTreeSet;

use piton_core::{Plan, RunState};

use super::super::phase;
use crate::files::{Around, Edit, Wanted};

/// What is known about ticks in the document.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    /// Gates that were seen ticked: a tick that a person removes afterwards is not restored.
    seen: BTreeSet<String>,
    /// Those that we ticked, once they were loaded.
    ours: Option<BTreeSet<String>>,
}

/// Ticks the gates of finished lanes, and removes our ticks for lanes that are not finished any more.
struct Ticking<'e> {
    path: &'e str,
    seen: &'e mut BTreeSet<String>,
    ours: &'e mut BTreeSet<String>,
    close: BTreeSet<&'e String>,
    open: BTreeSet<&'e String>,
    /// Whether the last change ticked some.
    ticked: bool,
}

/// The edit of a document, if it needs one.
pub(super) fn ticking<'e>(
    path: &'e str,
    ticks: &'e mut Ticks,
    plan: &'e Plan,
    state: &RunState,
    around: &dyn Around,
) -> Option<Box<dyn Edit + 'e>> {
    let (mut close, mut open) = provided(plan, state);
    let Ticks { seen, ours } = ticks;
    close.retain(|gate| !seen.contains(*gate));
    if close.is_empty() && open.is_empty() {
        return None;
    }
    let ours = ours.get_or_insert_with(|| {
        String::from_utf8_lossy(&around.memory()).lines().map(ToOwned::to_owned).collect()
    });
    open.retain(|gate| ours.contains(*gate));
    let is_due = !close.is_empty() || !open.is_empty();
    is_due.then(|| Box::new(Ticking { path, seen, ours, close, open, ticked: false }) as _)
}

impl Ticking<'_> {
    fn memory(&self) -> Vec<u8> {
        let gates: Vec<&str> = self.ours.iter().map(String::as_str).collect();
        gates.join("\n").into_bytes()
    }
}

impl Edit for Ticking<'_> {
    fn path(&self) -> &str {
        self.path
    }

    fn change(&mut self, there: Option<&[u8]>, _: bool) -> Wanted {
        self.ticked = false;
        // A file that is not text is not a phase document.
        let Some(Ok(text)) = there.map(std::str::from_utf8) else { return Wanted::AsItIs };
        let untick = |text: String, gate: &&String| phase::untick(&text, gate).unwrap_or(text);
        let mut new = self.open.iter().fold(text.to_owned(), untick);
        for gate in &self.close {
            if let Some(ticked) = phase::tick(&new, gate) {
                new = ticked;
                self.ours.insert((*gate).clone());
                self.ticked = true;
            }
        }
        if new == text {
            return Wanted::AsItIs;
        }
        Wanted::Text { text: new.into_bytes(), sync: true }
    }

    fn before(&mut self) -> Option<Vec<u8>> {
        self.ticked.then(|| self.memory())
    }

    fn after(&mut self) -> Option<Vec<u8>> {
        self.seen.extend(self.close.iter().map(|gate| (*gate).clone()));
        for gate in &self.open {
            self.seen.remove(*gate);
            self.ours.remove(*gate);
        }
        (!self.open.is_empty()).then(|| self.memory())
    }
}

/// The gates of finished lanes, and those that only unfinished lanes provide.
fn provided<'p>(plan: &'p Plan, state: &RunState) -> (BTreeSet<&'p String>, BTreeSet<&'p String>) {
    let (mut close, mut open) = (BTreeSet::new(), BTreeSet::new());
    for (path, _) in state.lanes() {
        let Some(lane) = plan.lane(&path) else { continue };
        // A lane that was skipped has closed no gate.
        let gates = if state.satisfies(&path) { &mut close } else { &mut open };
        gates.extend(&lane.rules.provides);
    }
    open.retain(|gate| !close.contains(gate));
    (close, open)
}

//! The gates of a phase document: ticked when the lane that provides them completes, and open again
//! when that lane is rolled back.
//!
//! Only a tick of ours is taken away. The document does not tell whose it is, so a file in the run's
//! folder does. It is written before the document, and without it every tick is a person's.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use piton_core::{Plan, RunState};
use piton_protocols::lanes::{phase, time};

use super::Views;
use super::replace::Wanted;

/// The file with the gates that we ticked, one a line, in the folder of a run.
const FILE: &str = "gates-ticked";

/// What is known of ticks in the document.
#[derive(Debug)]
pub(super) struct Ticks {
    /// Where the folders of runs are.
    runs: PathBuf,
    /// Gates that were seen ticked: a tick that a person takes away afterwards stays away.
    seen: BTreeSet<String>,
    /// Those that we ticked, once that was read.
    ours: Option<BTreeSet<String>>,
}

impl Ticks {
    pub fn new(state_dir: &Path) -> Self {
        Self { runs: state_dir.join("runs"), seen: BTreeSet::new(), ours: None }
    }

    /// Those that we ticked in a run.
    fn ours(&mut self, run_id: &str) -> &mut BTreeSet<String> {
        let file = self.runs.join(run_id).join(FILE);
        self.ours.get_or_insert_with(|| {
            let text = fs::read_to_string(file).unwrap_or_default();
            text.lines().map(ToOwned::to_owned).collect()
        })
    }

    fn save(&mut self, run_id: &str) -> io::Result<()> {
        let dir = self.runs.join(run_id);
        let gates: Vec<&str> = self.ours(run_id).iter().map(String::as_str).collect();
        fs::create_dir_all(&dir)?;
        let new = dir.join(format!("{FILE}.new"));
        let mut file = File::create(&new)?;
        file.write_all(gates.join("\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(new, dir.join(FILE))
    }
}

impl Views {
    /// Ticks the gates that finished lanes provide in the phase document; those that we ticked for a
    /// lane that is not finished any more are open again.
    pub(super) fn tick_gates(
        &mut self,
        run_id: &str,
        plan: &Plan,
        state: &RunState,
    ) -> io::Result<()> {
        let Some(document) = self.document.clone() else { return Ok(()) };
        let (close, open) = provided(plan, state);
        let Self { ticks, files, .. } = self;
        let close: Vec<&String> = close.into_iter().filter(|g| !ticks.seen.contains(*g)).collect();
        let open: Vec<&String> = if open.is_empty() {
            Vec::new()
        } else {
            let ours = ticks.ours(run_id);
            open.into_iter().filter(|gate| ours.contains(*gate)).collect()
        };
        if close.is_empty() && open.is_empty() {
            return Ok(());
        }
        let stamp = time::stamp(self.last_at);
        files.replace(&self.root.join(document), &stamp, &mut |there, _| {
            // What is no text is no phase document.
            let Some(Ok(text)) = there.map(std::str::from_utf8) else { return Ok(Wanted::AsItIs) };
            let mut new = open
                .iter()
                .fold(text.to_owned(), |text, gate| phase::untick(&text, gate).unwrap_or(text));
            let mut is_noted = true;
            for gate in &close {
                if let Some(ticked) = phase::tick(&new, gate) {
                    new = ticked;
                    is_noted &= !ticks.ours(run_id).insert((*gate).clone());
                }
            }
            if !is_noted {
                ticks.save(run_id)?;
            }
            if new == text {
                return Ok(Wanted::AsItIs);
            }
            Ok(Wanted::Text { text: new.into_bytes(), sync: true })
        })?;
        ticks.seen.extend(close.into_iter().cloned());
        if open.is_empty() {
            return Ok(());
        }
        for gate in open {
            ticks.seen.remove(gate);
            ticks.ours(run_id).remove(gate);
        }
        ticks.save(run_id)
    }
}

/// The gates that finished lanes provide, and those that only others do.
fn provided<'p>(plan: &'p Plan, state: &RunState) -> (BTreeSet<&'p String>, BTreeSet<&'p String>) {
    let (mut close, mut open) = (BTreeSet::new(), BTreeSet::new());
    for (path, _) in state.lanes() {
        let Some(lane) = plan.lane(&path) else { continue };
        // A lane that was left out has frozen nothing.
        let gates = if state.satisfies(&path) { &mut close } else { &mut open };
        gates.extend(&lane.rules.provides);
    }
    open.retain(|gate| !close.contains(gate));
    (close, open)
}

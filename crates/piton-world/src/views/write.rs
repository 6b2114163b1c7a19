//! How views come from the state: checkpoints and report.

use std::io;

use piton_core::{Plan, RunState};
use piton_protocols::lanes::checkpoints::{Book, CHECKPOINTS_BYTES_MAX, OwnRecord};
use piton_protocols::lanes::time;

use super::replace::Wanted;
use super::{Others, Views, records, report};

impl Views {
    /// Writes the run's records into `checkpoints.json`.
    pub(super) fn write_checkpoints(&mut self, state: &RunState) -> io::Result<()> {
        let name = self.paths.checkpoints.clone();
        let ours = records(&self.root, &self.paths, &state.plan_path, state);
        let stamp = time::stamp(self.last_at);
        let Self { files, book, root, others, .. } = self;
        let all = || whole(others.as_ref(), &ours);
        files.replace(&root.join(&name), &stamp, &mut |there, settled| {
            let Some(bytes) = there else { return rebuilt(book, &name, &all(), None) };
            if bytes.len() > CHECKPOINTS_BYTES_MAX {
                // Large is not damaged: nothing is moved away.
                return Err(io::Error::other(format!("more than {CHECKPOINTS_BYTES_MAX} bytes")));
            }
            let text = std::str::from_utf8(bytes);
            // No bytes, or some that make no sense: perhaps somebody is just writing it.
            if !settled && text.is_ok_and(|text| text.trim().is_empty()) {
                return Ok(Wanted::Unfinished);
            }
            let read = text.map_err(|_| "it is no text".to_owned()).and_then(|text| {
                let new = book.update(&name, Some(text), &ours);
                new.map(|new| (text, new))
                    .map_err(|problem| format!("line {}: {}", problem.line, problem.message))
            });
            match read {
                Ok((text, new)) if new.text == text => Ok(Wanted::AsItIs),
                // What other runs wrote, this one could not write again.
                Ok((_, new)) => Ok(Wanted::Text { text: new.text.into_bytes(), sync: new.others }),
                Err(_) if !settled => Ok(Wanted::Unfinished),
                Err(why) => rebuilt(book, &name, &all(), Some(why)),
            }
        })
    }

    /// Writes the run's report.
    pub(super) fn write_report(
        &mut self,
        name: &str,
        plan: &Plan,
        state: &RunState,
    ) -> io::Result<()> {
        let path = self.root.join(self.paths.run_report(name));
        if self.names.is_none() {
            let document = self.document.as_ref().map(|path| self.root.join(path));
            self.names = Some(document.map(|path| report::names(&path)).unwrap_or_default());
        }
        let none = report::Names::new();
        let names = self.names.as_ref().unwrap_or(&none);
        let report = report::report(&self.root, plan, state, names);
        let stamp = time::stamp(self.last_at);
        self.files.replace(&path, &stamp, &mut |there, _| {
            let Ok(text) = there.map(std::str::from_utf8).transpose() else {
                let text = report::text(None, &report).into_bytes();
                return Ok(Wanted::Instead { text, why: "it is no text".to_owned() });
            };
            let new = report::text(text, &report);
            let sync = report::has_notes(&new);
            let is_same = text == Some(&new);
            Ok(if is_same { Wanted::AsItIs } else { Wanted::Text { text: new.into_bytes(), sync } })
        })
    }
}

/// The records of all runs, with those of this one as it knows them.
fn whole(others: Option<&Others>, ours: &[OwnRecord]) -> Vec<OwnRecord> {
    let own = ours.first().map(|own| own.run_id.as_str());
    let runs = others.map(|find| find()).unwrap_or_default();
    let at = runs.iter().position(|(run_id, _)| Some(run_id.as_str()) == own);
    let mut all = Vec::new();
    for (index, (_, records)) in runs.into_iter().enumerate() {
        all.extend(if Some(index) == at { ours.to_vec() } else { records });
    }
    if at.is_none() {
        all.extend_from_slice(ours);
    }
    all
}

/// The file as the ledger alone makes it; `why` says what is wrong with the one that is there.
fn rebuilt(
    book: &mut Book,
    name: &str,
    ours: &[OwnRecord],
    why: Option<String>,
) -> io::Result<Wanted> {
    let made = book.update(name, None, ours);
    let text = made.map_err(|problem| io::Error::other(problem.message))?.text.into_bytes();
    let Some(why) = why else { return Ok(Wanted::Text { text, sync: false }) };
    let why = format!(
        "{why}; it was written again from the ledger: records of other tools are only in the old file"
    );
    Ok(Wanted::Instead { text, why })
}

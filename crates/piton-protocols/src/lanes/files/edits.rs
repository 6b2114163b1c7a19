//! Writes checkpoints and report: merges what the file contains with what the run adds.

use super::super::checkpoints::{self, CHECKPOINTS_BYTES_MAX, OwnRecord, Written};
use super::{Place, records, report};
use crate::files::{Around, Edit, Wanted};

/// The records of the run in `checkpoints.json`.
pub(super) struct Recording<'e> {
    pub place: &'e Place,
    pub ours: Vec<OwnRecord>,
    /// The records as they were written last.
    pub written: &'e mut Written,
    pub around: &'e dyn Around,
}

impl Edit for Recording<'_> {
    fn path(&self) -> &str {
        &self.place.settings.checkpoints
    }

    fn change(&mut self, there: Option<&[u8]>, is_stable: bool) -> Wanted {
        let Some(bytes) = there else { return self.rebuilt(None) };
        if bytes.len() > CHECKPOINTS_BYTES_MAX {
            // Large is not damaged: the file is not replaced.
            return Wanted::Refused(format!("it is larger than {CHECKPOINTS_BYTES_MAX} bytes"));
        }
        let text = std::str::from_utf8(bytes);
        // An empty file may be one that somebody is about to write.
        if !is_stable && text.is_ok_and(|text| text.trim().is_empty()) {
            return Wanted::Unfinished;
        }
        let read = text.map_err(|_| "it is not UTF-8 text".to_owned()).and_then(|text| {
            let new = checkpoints::update(self.path(), Some(text), &self.ours, self.written);
            new.map(|new| (text, new))
                .map_err(|problem| format!("line {}: {}", problem.line, problem.message))
        });
        match read {
            Ok((text, new)) if new.text == text => Wanted::AsItIs,
            // This run could not rebuild the records of other runs.
            Ok((_, new)) => Wanted::Text { text: new.text.into_bytes(), sync: new.others },
            Err(_) if !is_stable => Wanted::Unfinished,
            Err(why) => self.rebuilt(Some(why)),
        }
    }

    fn after(&mut self) -> Option<Vec<u8>> {
        self.written.keep(&self.ours);
        None
    }
}

impl Recording<'_> {
    /// The file rebuilt from the ledger; `why` says what is wrong with the present one.
    fn rebuilt(&mut self, why: Option<String>) -> Wanted {
        let all = self.all_runs();
        let text = match checkpoints::update(self.path(), None, &all, self.written) {
            Ok(made) => made.text.into_bytes(),
            Err(problem) => return Wanted::Refused(problem.message),
        };
        let Some(why) = why else { return Wanted::Text { text, sync: false } };
        let why = format!(
            "{why}; it was rebuilt from the ledger, and records of other tools are only in the old \
             file"
        );
        Wanted::Instead { text, why }
    }

    /// The records of all runs; those of this run are up to date.
    fn all_runs(&self) -> Vec<OwnRecord> {
        let own = self.ours.first().map(|own| own.run_id.as_str());
        let runs = self.around.runs();
        let is_own = |run_id: &str| Some(run_id) == own;
        let mut all = Vec::new();
        let mut is_in = false;
        for state in runs {
            let its = state.run_id.as_ref().is_some_and(|id| is_own(&id.0));
            is_in |= its;
            let records = || records::records(self.place, &state);
            all.extend(if its { self.ours.clone() } else { records() });
        }
        if !is_in {
            all.extend_from_slice(&self.ours);
        }
        all
    }
}

/// The report of the run.
pub(super) struct Reporting {
    pub path: String,
    /// Our part of it.
    pub ours: String,
}

impl Edit for Reporting {
    fn path(&self) -> &str {
        &self.path
    }

    fn change(&mut self, there: Option<&[u8]>, _: bool) -> Wanted {
        let Ok(text) = there.map(std::str::from_utf8).transpose() else {
            let text = report::text(None, &self.ours).into_bytes();
            return Wanted::Instead { text, why: "it is not UTF-8 text".to_owned() };
        };
        let new = report::text(text, &self.ours);
        let sync = report::has_notes(&new);
        let is_same = text == Some(&new);
        if is_same { Wanted::AsItIs } else { Wanted::Text { text: new.into_bytes(), sync } }
    }
}

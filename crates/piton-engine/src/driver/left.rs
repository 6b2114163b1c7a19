//! What is recorded of the files that an attempt was given and left: artifacts and inputs.

use piton_core::event::FileHash;
use piton_core::evidence;
use piton_core::plan::Step;

use super::Driver;
use crate::world::{Attempt, Ended, SealError};

/// Why the artifacts of a step that succeeded are not recorded.
pub(super) enum Unsealed {
    /// They are not what the step has to leave: its failure.
    Unfit(String),
    /// The driver had trouble with them: nothing that the step could do better.
    Unread(String),
}

impl Driver<'_> {
    /// Hashes the artifacts of an attempt that succeeded, and makes them durable.
    pub(super) fn seal(
        &mut self,
        ended: &Ended,
        step: &Step,
        more: Vec<String>,
    ) -> Result<Vec<FileHash>, Unsealed> {
        if step.artifacts.is_empty() && more.is_empty() {
            return Ok(Vec::new());
        }
        let patterns: Vec<String> = step.artifacts.iter().cloned().chain(more).collect();
        let dir = self.dir_of(&ended.attempt.step.lane());
        let unfit = |what: &str| Unsealed::Unfit(format!("it succeeded, but {what}"));
        let sealed = self.world.seal(&dir, &patterns).map_err(|error| match error {
            SealError::Missing(paths) => unfit(&evidence::missing(&paths)),
            SealError::Unfit(what) => unfit(&what.join(", ")),
            SealError::Failed(why) => {
                Unsealed::Unread(format!("an artifact could not be recorded: {why}"))
            }
        })?;
        for file in &sealed {
            if self.world.changed_after(&dir, &file.path, ended.at) {
                let (step, path) = (&ended.attempt.step, self.redact(&file.path));
                self.warn(format!(
                    "{step}: artifact {path} was changed after the step had ended; what it is now is recorded"
                ));
            }
        }
        // Paths are recorded as they are: files are found by them.
        let redactor = &self.options.redactor;
        let shown = sealed.iter().map(|file| (redactor.redact(&file.path), file));
        match shown.into_iter().find(|(shown, file)| *shown != file.path) {
            Some((shown, _)) => Err(unfit(&format!(
                "artifact {shown} has a secret in its name, which would be recorded"
            ))),
            None => Ok(sealed),
        }
    }

    /// The inputs of a step that changed while it ran: it counts as its own doing, as when an agent
    /// edits what it was given, and is not a reason to run it again.
    pub(super) fn changed_inputs(&mut self, step: &Step, ended: &Ended) -> Option<Vec<FileHash>> {
        if step.inputs.is_empty() {
            return None;
        }
        // One that can't be read any more stays on record as it was given.
        let dir = self.dir_of(&ended.attempt.step.lane());
        let now = self.world.inputs(&dir, &step.inputs).ok()?;
        let before = self.state.step(&ended.attempt.step).map(|s| s.inputs.clone());
        let before = before.unwrap_or_default();
        // Nor is what somebody did since it ended, as when nobody drove the run.
        let mut left = Vec::new();
        for file in now {
            let given = before.iter().find(|f| f.path == file.path);
            if given == Some(&file) || !self.world.changed_after(&dir, &file.path, ended.at) {
                left.push(file);
            } else {
                left.extend(given.cloned());
                self.files.recheck_inputs = true;
            }
        }
        (left != before).then_some(left)
    }

    /// Files on record that an attempt changed and then did not succeed, of those it declares: they
    /// are no reason to do the work again of whoever made them.
    pub(super) fn left_changed(&mut self, step: &Step, attempt: &Attempt) -> Option<Vec<FileHash>> {
        let patterns: Vec<String> = step.inputs.iter().chain(&step.artifacts).cloned().collect();
        if patterns.is_empty() || self.state.recorded.is_empty() {
            return None;
        }
        // Nobody waits for what ends anyway.
        if self.stop.ending.is_some() && self.hashes(&attempt.step, &patterns) {
            return None;
        }
        let dir = self.dir_of(&attempt.step.lane());
        let mut now = self.world.inputs(&dir, &patterns).ok()?;
        let given = self.state.step(&attempt.step).map_or(&[][..], |s| s.inputs.as_slice());
        now.retain(|file| {
            let recorded = self.state.recorded.get(&self.state.place_of(&attempt.step, &file.path));
            recorded.is_some_and(|r| r.sha256 != file.sha256) && !given.contains(file)
        });
        (!now.is_empty()).then_some(now)
    }
}

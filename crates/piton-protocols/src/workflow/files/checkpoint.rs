//! The checkpoint of a run: written after each phase, failure and replan, and not more often.
//!
//! Its content depends on nothing else, so that a file that is up to date stays as it is. A file of
//! an older form is kept as `NAME.backup` before it gets the form of the pattern.

use std::io;

use piton_core::replan_state::{PastReplan, ReplanResult};
use piton_core::state::{PhaseState, RunState};
use piton_core::time::Millis;
use piton_core::{StepPath, Timestamp};
use piton_formats::Diagnostic;

use crate::files::{Around, Edit, Wanted};
use crate::workflow::checkpoint::{
    self as record, Editor, Form, Fresh, PhaseRecord, Replan, Stand, Status,
};
use crate::workflow::phase_id::PhaseId;
use crate::workflow::record::{id, is_about};
use crate::workflow::research;
use crate::workflow::standing::{self, Standing};
use crate::workflow::story::{Failure, Story};

const MINUTE_MS: u64 = 60_000;

/// The edits of a checkpoint, and of the backup of one that has an older form.
pub(super) fn edits<'e>(
    path: &'e str,
    state: &'e RunState,
    story: &'e Story,
    around: &'e dyn Around,
) -> Vec<Box<dyn Edit + 'e>> {
    let mut edits: Vec<Box<dyn Edit + 'e>> = Vec::new();
    if let Some(text) = around.text(path)
        && is_older(path, &text)
    {
        edits.push(Box::new(Backup { path: format!("{path}.backup"), text }));
    }
    edits.push(Box::new(Recording { path, view: View { path, state, story, around } }));
    edits
}

/// Whether a checkpoint has an older form, or lacks fields of the pattern.
fn is_older(path: &str, text: &str) -> bool {
    record::read(path, text).is_ok_and(|found| found.form == Form::Versioned)
        || record::verify(path, text).is_ok_and(|missing| !missing.is_empty())
}

/// Keeps a file as it was; a copy that is there stays.
struct Backup {
    path: String,
    text: String,
}

impl Edit for Backup {
    fn path(&self) -> &str {
        &self.path
    }

    fn change(&mut self, there: Option<&[u8]>, _is_stable: bool) -> Wanted {
        if there.is_some() {
            return Wanted::AsItIs;
        }
        Wanted::Text { text: self.text.clone().into_bytes(), sync: true }
    }
}

/// Brings a checkpoint up to date.
struct Recording<'e> {
    path: &'e str,
    view: View<'e>,
}

impl Edit for Recording<'_> {
    fn path(&self) -> &str {
        self.path
    }

    fn change(&mut self, there: Option<&[u8]>, is_stable: bool) -> Wanted {
        let there = there.filter(|bytes| !bytes.trim_ascii().is_empty());
        let text = there.map(std::str::from_utf8);
        let made = match text {
            None => self.view.written(&self.view.anew()),
            Some(Ok(text)) => match record::read(self.path, text) {
                Ok(found) if !is_about(&found, &self.view.state.plan_path) => {
                    let other = found.plan_path.unwrap_or_default();
                    let why = format!("is the checkpoint of another plan ({other})");
                    return Wanted::Refused(format!("{} {why}; move it away", self.path));
                }
                Ok(_) => self.view.brought_up(text),
                Err(_) if !is_stable => return Wanted::Unfinished,
                Err(problem) => return self.instead(problem.message),
            },
            Some(Err(_)) => return self.instead("it is not text".to_owned()),
        };
        match made {
            Ok(new) if there == Some(new.as_bytes()) => Wanted::AsItIs,
            Ok(new) => Wanted::Text { text: new.into_bytes(), sync: true },
            Err(problem) => Wanted::Refused(problem.message),
        }
    }

    fn flaw(&self, read: &dyn Fn() -> io::Result<Vec<u8>>) -> Option<String> {
        let bytes = match read() {
            Ok(bytes) => bytes,
            Err(error) => return Some(format!("the checkpoint cannot be read back: {error}")),
        };
        let text = String::from_utf8_lossy(&bytes);
        match record::verify(self.path, &text) {
            Ok(missing) if missing.is_empty() => None,
            Ok(missing) => Some(format!("the checkpoint lacks {}", missing.join(", "))),
            Err(problem) => Some(format!("the checkpoint is not valid: {}", problem.message)),
        }
    }
}

impl Recording<'_> {
    fn instead(&self, why: String) -> Wanted {
        match self.view.written(&self.view.anew()) {
            Ok(text) => Wanted::Instead { text: text.into_bytes(), why },
            Err(problem) => Wanted::Refused(problem.message),
        }
    }
}

/// A run as its checkpoint shows it.
struct View<'e> {
    path: &'e str,
    state: &'e RunState,
    story: &'e Story,
    around: &'e dyn Around,
}

impl View<'_> {
    /// A new file, to be brought up to date.
    fn anew(&self) -> String {
        let plan = &self.state.plan_path;
        let (made, tests) =
            (beside_plans(plan, "implementation"), beside_plans(plan, "test_results"));
        let first =
            self.state.phases.first().map_or_else(|| PhaseId::from(1), |p| standing::id(&p.id));
        record::fresh(&Fresh {
            workflow_id: id(self.path),
            plan_path: plan,
            current_phase: &first,
            total_phases: self.state.phases.len() as u64,
            plan_modified: self.around.modified(plan),
            artifact_paths: &[("implementation_dir", &made), ("test_results", &tests)],
            research: &research::reports(&self.around.text(plan).unwrap_or_default()),
            title: &self.state.title,
            now: self.state.created_at,
        })
    }

    /// A checkpoint that is there with everything in it as it is now.
    fn brought_up(&self, text: &str) -> Result<String, Box<Diagnostic>> {
        if is_older(self.path, text) {
            return self.written(&record::upgrade(self.path, text)?);
        }
        self.written(text)
    }

    /// A text in the form of the pattern with everything in it as it is now.
    fn written(&self, text: &str) -> Result<String, Box<Diagnostic>> {
        let mut edit = Editor::new(self.path, text)?;
        let mut last = self.state.created_at;
        for phase in &self.state.phases {
            last = last.max(self.phase(&mut edit, phase).unwrap_or_default());
        }
        let failure = standing::last_failure(self.state, self.story);
        edit.stand(&Stand {
            current: standing::current(self.state),
            total: self.state.phases.len() as u64,
            status: match failure {
                _ if self.state.is_over() => Status::Completed,
                Some(_) => Status::Failed,
                None => Status::InProgress,
            },
            error: failure.map(|failure| failure.error.clone()),
            tests_passing: !failure.is_some_and(|failure| failure.is_test),
        });
        last = last.max(self.replans(&mut edit));
        let new = edit.finish()?;
        if new == text {
            return Ok(new);
        }
        let mut edit = Editor::new(self.path, &new)?;
        edit.touch(last, self.around.modified(&self.state.plan_path));
        edit.finish()
    }

    /// Records how a phase stands; when that came about.
    fn phase(&self, edit: &mut Editor, phase: &PhaseState) -> Option<Timestamp> {
        let id = standing::id(&phase.id);
        let (at, _) = self.last(phase).unwrap_or_default();
        match (standing::of(phase), self.story.failure(&phase.id)) {
            (Standing::Completed, _) if self.story.is_foreign(&phase.id) => {
                let record = self.record(phase, "completed");
                edit.complete_elsewhere(&id, &PhaseRecord { duration_minutes: None, ..record });
                return None;
            }
            (Standing::Completed, _) => edit.complete(&id, &self.record(phase, "completed")),
            (Standing::Skipped, _) => edit.skip(&id, &self.record(phase, "skipped")),
            (_, Some(failure)) => {
                edit.fail(&id, &self.failed(phase, failure));
                return Some(failure.at);
            }
            (Standing::Open | Standing::Failed, None) => {
                edit.reopen(&id);
                return None;
            }
        }
        at
    }

    fn failed(&self, phase: &PhaseState, failure: &Failure) -> PhaseRecord {
        PhaseRecord {
            error: Some(failure.error.clone()),
            timestamp: Some(whole_second(failure.at)),
            duration_minutes: Some(minutes(failure.spent)),
            ..self.record(phase, "failed")
        }
    }

    fn record(&self, phase: &PhaseState, status: &str) -> PhaseRecord {
        let (at, words) = self.last(phase).unwrap_or_default();
        let mut artifacts: Vec<String> = Vec::new();
        for lane in &phase.lanes {
            for step in &lane.steps {
                let path = StepPath::new(&phase.id, &lane.id, &step.id);
                let files = step.artifacts.iter();
                artifacts.extend(files.map(|file| self.state.place_of(&path, &file.path)));
                let changed = self.story.of(&path).map(|ended| ended.changed.as_slice());
                artifacts.extend(changed.unwrap_or_default().iter().cloned());
            }
        }
        artifacts.sort_unstable();
        artifacts.dedup();
        PhaseRecord {
            status: status.to_owned(),
            artifacts,
            duration_minutes: Some(minutes(self.story.spent(&phase.id))),
            timestamp: at.map(whole_second),
            error: None,
            key_results: Some(words).filter(|words| !words.is_empty()),
        }
    }

    /// When the last step of a phase ended, and what it said.
    fn last(&self, phase: &PhaseState) -> Option<(Option<Timestamp>, String)> {
        let steps = phase.lanes.iter().flat_map(|lane| {
            lane.steps.iter().map(|step| StepPath::new(&phase.id, &lane.id, &step.id))
        });
        let ended = steps.filter_map(|path| self.story.of(&path));
        let last = ended.max_by_key(|ended| ended.at)?;
        Some((last.at, last.words.clone()))
    }

    /// Records the replans that took effect. The ledger counts every attempt, so that replans end.
    fn replans(&self, edit: &mut Editor) -> Timestamp {
        let mut last = Timestamp::default();
        let replan = |(phase, past): (&str, &PastReplan)| Replan {
            phase: standing::id(phase),
            reason: past.trigger.map_or_else(|| past.reason.clone(), |t| t.as_str().to_owned()),
            timestamp: Some(past.at).filter(|at| at.0 > 0),
        };
        let is_shown = |(_, past): &(&str, &PastReplan)| took_effect(past);
        let history = self.state.replans.history().into_iter().filter(is_shown);
        let history: Vec<Replan> = history.map(replan).collect();
        last = last.max(history.iter().filter_map(|r| r.timestamp).max().unwrap_or_default());
        edit.replanned(&history);
        for (phase, replans) in &self.state.replans.phases {
            let without = replans.history.iter().filter(|past| !took_effect(past)).count();
            let count = u64::from(replans.count).saturating_sub(without as u64);
            edit.replan_count(&standing::id(phase), count);
        }
        last
    }
}

/// Whether a plan came of a replan; one that was taken back later counts.
fn took_effect(past: &PastReplan) -> bool {
    match past.result {
        ReplanResult::Replanned
        | ReplanResult::Unchanged
        | ReplanResult::Undone
        | ReplanResult::Imported => true,
        ReplanResult::UnderWay | ReplanResult::Failed | ReplanResult::Looped => false,
    }
}

/// A time as the file writes it.
fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp(at.0.div_euclid(1000) * 1000)
}

fn minutes(spent: Millis) -> u64 {
    (spent.0 + MINUTE_MS / 2) / MINUTE_MS
}

/// A folder of the topic that a plan belongs to.
fn beside_plans(plan: &str, name: &str) -> String {
    let mut folders: Vec<&str> = plan.split('/').collect();
    folders.pop();
    if let Some(at) = folders.iter().rposition(|folder| *folder == "plans") {
        folders.truncate(at);
    }
    folders.push(name);
    format!("{}/", folders.join("/"))
}

//! The files of a session, written from its run: checkpoints, and the changes of the memory bank.
//!
//! The run says which changes each file gets, in order. What a file has already got is remembered with
//! the run before and after it is written: so each change is made once, whoever dies in between. A
//! checkpoint file is a view; one that is damaged or gone comes back.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use piton_core::event::{Cause, Event, Reason, SessionNotResumed, SessionSaved};
use piton_core::hash::Sha;
use piton_core::{Plan, RunState, Timestamp};
use piton_formats::diagnostic::{Diagnostic, code};
use piton_formats::json::{Object, Tree};
use piton_formats::yaml::Document;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::bank::{self, Bank};
use super::change::Change;
use super::checkpoint::Checkpoint;
use super::cleanup::{BACKUP, EMERGENCY};
use super::settings::Settings;
use super::{CHECKPOINTS, LATEST};
use crate::files::{Around, Edit, Files, Run, Wanted};
use crate::time;

/// The list in the progress file that failed resumes are added to.
const LOG_FIELD: &str = "log";
/// A Markdown file that has nothing yet.
const FRONT_MATTER: &str = "---\n---\n";

/// What the files have got.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Memory {
    /// The checkpoint in `latest.json`; `None` before the first.
    shown: Option<String>,
    /// How many changes of the run each file has.
    applied: BTreeMap<String, usize>,
    /// What is being written: the hashes of the file before and after, and its number of changes.
    writing: BTreeMap<String, (Sha, Sha, usize)>,
}

/// The files of one run.
#[derive(Debug)]
pub struct SessionFiles {
    root: String,
    run: String,
    settings: Settings,
    /// Changes in order: when, and what happens to which file.
    changes: Vec<(Timestamp, Step)>,
    saved: BTreeMap<String, SessionSaved>,
    /// The times of checkpoints that nobody goes on from any more.
    done_with: Vec<String>,
    /// The time of the checkpoint that the session goes on from.
    resumed: Option<String>,
    failed: Vec<SessionNotResumed>,
}

/// Something that happens to files of the bank.
#[derive(Clone, Debug)]
enum Step {
    /// Changes are made. Nobody knows whether another tool made those of its checkpoint already.
    Changes { all: Vec<Value>, is_unsure: bool },
    /// A failed resume is logged.
    Log(String),
    /// All is written: the time of the last full sync is set.
    Synced,
}

impl SessionFiles {
    /// Makes them for a run; events follow.
    pub fn new(run: &Run<'_>) -> Self {
        Self {
            root: bank::root_of(&run.state.plan_path),
            run: run.state.run_id.as_ref().map(|id| id.0.clone()).unwrap_or_default(),
            settings: Settings::of(run.settings),
            changes: Vec::new(),
            saved: BTreeMap::new(),
            done_with: Vec::new(),
            resumed: None,
            failed: Vec::new(),
        }
    }
}

impl Files for SessionFiles {
    fn happened(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::SessionChanged(e) => {
                let read = |text: &String| serde_json::from_str(text).ok();
                let changes = e.changes.iter().filter_map(read).collect();
                let is_unsure = e.cause == Cause::Resume;
                self.changes.push((at, Step::Changes { all: changes, is_unsure }));
            }
            Event::SessionSaved(e) => {
                self.saved.insert(e.name.clone(), (**e).clone());
            }
            Event::SessionNotResumed(e) => {
                self.failed.push((**e).clone());
                self.changes.push((at, Step::Log(e.why.clone())));
            }
            Event::SessionOpened(e) => {
                self.resumed = e.resumed.as_ref().map(|resumed| resumed.timestamp.clone());
            }
            Event::SessionSynced(_) => {
                self.done_with.extend(self.resumed.take());
                self.changes.push((at, Step::Synced));
            }
            _ => {}
        }
    }

    fn edits<'e>(
        &'e mut self,
        _plan: &'e Plan,
        state: &'e RunState,
        around: &'e dyn Around,
    ) -> Vec<Box<dyn Edit + 'e>> {
        let memory: Memory = serde_json::from_slice(&around.memory()).unwrap_or_default();
        let memory = Rc::new(RefCell::new(memory));
        let read = |path: &str| around.text(path).ok_or(std::io::ErrorKind::NotFound.into());
        let bank = Bank::read(&self.root, &self.settings, &read);
        let mut edits: Vec<Box<dyn Edit + 'e>> = Vec::new();
        for path in self.touched(&bank) {
            let kind = FileKind::of(&bank, &path);
            let pending = self.steps_of(&bank, &path);
            edits.push(Box::new(Changing { path, kind, pending, memory: Rc::clone(&memory) }));
        }
        let active = state.session.as_ref().and_then(|session| session.active.clone());
        let is_new = memory.borrow().shown.as_ref() != Some(&active.clone().unwrap_or_default());
        let saved = active.as_ref().and_then(|name| self.saved.get(name));
        if let Some(saved) = saved.filter(|_| is_new) {
            edits.extend(self.copies(saved));
        }
        for failed in &self.failed {
            let path = format!("{CHECKPOINTS}/archive/failed-{}.json", failed.stamp);
            edits.push(self.copy(&path, &failed.document));
        }
        // A checkpoint that a session went on from is taken away also where it was somebody else's.
        let is_done_with = active.is_none() && !self.done_with.is_empty();
        if is_new || saved.is_some() || is_done_with {
            let is_new = is_new || is_done_with;
            if saved.is_some() {
                edits.extend(self.displaced(&bank));
            }
            let (run, done_with) = (self.run.clone(), self.done_with.clone());
            let document =
                saved.map_or_else(|| Checkpoint::empty().write(), |saved| saved.document.clone());
            let name = active.unwrap_or_default();
            let path = bank::within(&self.root, LATEST);
            edits.push(Box::new(Latest { path, name, document, is_new, run, done_with, memory }));
        }
        edits
    }
}

impl SessionFiles {
    /// The files that the changes are about, each once.
    fn touched(&self, bank: &Bank) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        let mut add = |path: String| {
            if !paths.contains(&path) {
                paths.push(path);
            }
        };
        for (_, step) in &self.changes {
            match step {
                Step::Changes { all: changes, .. } => {
                    let named = changes.iter().filter_map(|c| c.get("file")?.as_str());
                    named.filter_map(|word| bank.target(word)).for_each(&mut add);
                }
                Step::Log(_) => add(bank.progress_path()),
                Step::Synced => {}
            }
        }
        // Last: what is written is taken from the list only then.
        if bank.delta.is_some() && !self.changes.is_empty() {
            add(bank.delta_path());
        }
        paths
    }

    /// All steps with what each does to one file.
    fn steps_of(&self, bank: &Bank, path: &str) -> Vec<(Timestamp, Step)> {
        let is_delta = bank.delta_path() == path;
        let own = |change: &&Value| {
            let target = change.get("file").and_then(Value::as_str).and_then(|w| bank.target(w));
            is_delta || target.as_deref() == Some(path)
        };
        let narrowed = |(at, step): &(Timestamp, Step)| {
            let step = match step {
                Step::Changes { all, is_unsure } => Step::Changes {
                    all: all.iter().filter(own).cloned().collect(),
                    is_unsure: *is_unsure,
                },
                Step::Log(_) if bank.progress_path() != path => {
                    Step::Changes { all: Vec::new(), is_unsure: false }
                }
                other => other.clone(),
            };
            (*at, step)
        };
        self.changes.iter().map(narrowed).collect()
    }

    /// The backup of a checkpoint, or its emergency save.
    fn copies<'e>(&self, saved: &SessionSaved) -> Vec<Box<dyn Edit + 'e>> {
        let named = |kind: &str| format!("{CHECKPOINTS}/{kind}{}.json", saved.stamp);
        let emergency = saved.reason == Reason::TokenCritical;
        let kind = if emergency { EMERGENCY } else { BACKUP };
        vec![self.copy(&named(kind), &saved.document)]
    }

    /// The copy of another tool's checkpoint that gives way to a new one and that nobody resumed.
    fn displaced<'e>(&self, bank: &Bank) -> Option<Box<dyn Edit + 'e>> {
        let file = bank.latest.as_ref()?;
        let (found, _) = Checkpoint::read(&file.path, &file.text).ok()?;
        let is_done_with = self.done_with.contains(&found.timestamp);
        if !found.is_active() || found.owner.is_some() || is_done_with {
            return None;
        }
        let stamp = found.at().map(time::stamp)?;
        Some(self.copy(&format!("{CHECKPOINTS}/archive/{BACKUP}{stamp}.json"), &file.text))
    }

    fn copy<'e>(&self, path: &str, document: &str) -> Box<dyn Edit + 'e> {
        let path = bank::within(&self.root, path);
        Box::new(Copy { path, document: document.to_owned() })
    }
}

/// A file that is written once and not looked at again.
struct Copy {
    path: String,
    document: String,
}

impl Edit for Copy {
    fn path(&self) -> &str {
        &self.path
    }

    fn change(&mut self, there: Option<&[u8]>, _is_stable: bool) -> Wanted {
        match there {
            Some(_) => Wanted::AsItIs,
            None => Wanted::Text { text: self.document.clone().into_bytes(), sync: true },
        }
    }
}

/// The checkpoint that the next session goes on from.
struct Latest {
    path: String,
    /// Its name; empty if there is none.
    name: String,
    document: String,
    /// Whether the file has another one, as far as it is known.
    is_new: bool,
    /// The run: its own checkpoints give way to none.
    run: String,
    /// The times of checkpoints of others that do, because a session went on from them.
    done_with: Vec<String>,
    memory: Rc<RefCell<Memory>>,
}

impl Edit for Latest {
    fn path(&self) -> &str {
        &self.path
    }

    fn change(&mut self, there: Option<&[u8]>, is_stable: bool) -> Wanted {
        let text = || self.document.clone().into_bytes();
        let is_none = self.name.is_empty();
        let Some(bytes) = there else {
            return if is_none {
                Wanted::AsItIs
            } else {
                Wanted::Text { text: text(), sync: true }
            };
        };
        let found = std::str::from_utf8(bytes).ok();
        let found = found.and_then(|text| Checkpoint::read(&self.path, text).ok());
        match found {
            _ if bytes == self.document.as_bytes() => Wanted::AsItIs,
            // A checkpoint that nobody went on from stays.
            Some((found, _)) if is_none && !self.is_done_with(&found) => Wanted::AsItIs,
            // Another session may have made a checkpoint since: the newest one stays.
            Some((found, _)) if self.is_foreign(&found) => Wanted::AsItIs,
            Some(_) if self.is_new => Wanted::Text { text: text(), sync: true },
            Some(_) => Wanted::AsItIs,
            // Not a checkpoint of this run that was damaged: it stays for whoever wants to know why.
            None if is_none => Wanted::AsItIs,
            None if !is_stable => Wanted::Unfinished,
            None => Wanted::Instead { text: text(), why: "it is not a checkpoint".to_owned() },
        }
    }

    fn after(&mut self) -> Option<Vec<u8>> {
        let mut memory = self.memory.borrow_mut();
        memory.shown = Some(self.name.clone());
        serde_json::to_vec(&*memory).ok()
    }
}

impl Latest {
    /// Tells whether the file has a checkpoint that nobody goes on from any more.
    fn is_done_with(&self, found: &Checkpoint) -> bool {
        let is_own = found.owner.as_ref().is_some_and(|(run, _)| *run == self.run);
        is_own || self.done_with.contains(&found.timestamp)
    }

    /// Tells whether the file has a checkpoint of somebody else that is newer than this one.
    fn is_foreign(&self, found: &Checkpoint) -> bool {
        let Ok((own, _)) = Checkpoint::read(&self.path, &self.document) else { return false };
        let run = |checkpoint: &Checkpoint| checkpoint.owner.clone().map(|(run, _)| run);
        found.is_active() && own.is_active() && run(found) != run(&own) && found.at() > own.at()
    }
}

/// What kind of file is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Board,
    Delta,
    Other,
}

impl FileKind {
    fn of(bank: &Bank, path: &str) -> Self {
        if bank.delta_path() == path {
            return Self::Delta;
        }
        if bank.target("taskBoard").as_deref() == Some(path) { Self::Board } else { Self::Other }
    }
}

/// The changes of one file that it has not got.
struct Changing {
    path: String,
    kind: FileKind,
    /// All steps of the run, with what each does to this file.
    pending: Vec<(Timestamp, Step)>,
    memory: Rc<RefCell<Memory>>,
}

impl Edit for Changing {
    fn path(&self) -> &str {
        &self.path
    }

    fn change(&mut self, there: Option<&[u8]>, _is_stable: bool) -> Wanted {
        let there_hash = Sha::of(there.unwrap_or_default());
        let mut memory = self.memory.borrow_mut();
        let mut done = memory.applied.get(&self.path).copied().unwrap_or_default();
        // After a crash the file is as it was before, as it was to be, or somebody changed it since: then
        // nobody knows.
        let is_unsure = match memory.writing.remove(&self.path) {
            Some((_, to, count)) if to == there_hash => {
                done = done.max(count);
                false
            }
            Some((from, ..)) => from != there_hash,
            None => false,
        };
        memory.applied.insert(self.path.clone(), done);
        if done >= self.pending.len() {
            return Wanted::AsItIs;
        }
        let old = match there.map(|bytes| std::str::from_utf8(bytes)) {
            Some(Ok(text)) => text.to_owned(),
            Some(Err(_)) => return Wanted::Refused("it is not UTF-8".to_owned()),
            None => String::new(),
        };
        let new = match self.changed(&old, there.is_none(), done, is_unsure) {
            Ok(new) => new,
            Err(problem) => {
                let why = format!("line {}: {}", problem.line, problem.message);
                return Wanted::Refused(why);
            }
        };
        let count = self.pending.len();
        if new == old {
            memory.applied.insert(self.path.clone(), count);
            return Wanted::AsItIs;
        }
        let entry = (there_hash, Sha::of(new.as_bytes()), count);
        memory.writing.insert(self.path.clone(), entry);
        Wanted::Text { text: new.into_bytes(), sync: true }
    }

    fn before(&mut self) -> Option<Vec<u8>> {
        serde_json::to_vec(&*self.memory.borrow()).ok()
    }

    fn after(&mut self) -> Option<Vec<u8>> {
        let mut memory = self.memory.borrow_mut();
        if let Some((_, _, count)) = memory.writing.remove(&self.path) {
            memory.applied.insert(self.path.clone(), count);
        }
        serde_json::to_vec(&*memory).ok()
    }
}

impl Changing {
    /// The text with all steps from one on.
    fn changed(
        &self,
        old: &str,
        is_missing: bool,
        from: usize,
        is_unsure: bool,
    ) -> Result<String, Box<Diagnostic>> {
        if self.kind == FileKind::Delta {
            return self.taken(old, from);
        }
        let steps = &self.pending[from..];
        let is_idle = |step: &Step| match step {
            Step::Changes { all, .. } => all.is_empty(),
            Step::Log(_) => false,
            Step::Synced => true,
        };
        if steps.iter().all(|(_, step)| is_idle(step)) {
            return Ok(old.to_owned());
        }
        let is_markdown = Path::new(&self.path).extension().is_some_and(|end| end == "md");
        let text = if is_missing && is_markdown { FRONT_MATTER } else { old };
        let mut document = Document::new(&self.path, text)?;
        for (at, step) in steps {
            match step {
                Step::Changes { all, is_unsure: is_foreign } => {
                    for change in all.iter().filter_map(|change| Change::read(change).ok()) {
                        let is_board = self.kind == FileKind::Board;
                        let change = change.unsure(is_unsure || *is_foreign);
                        document = match change.apply(&document, is_board) {
                            // A task that a person removed since needs no change.
                            Err(problem) if problem.code == code::UNKNOWN_ID => document,
                            changed => changed?,
                        };
                    }
                }
                Step::Log(why) => {
                    let entry = Tree::object([
                        ("timestamp", time::write_seconds(*at).as_str().into()),
                        ("event", "checkpoint resume failed".into()),
                        ("error", why.as_str().into()),
                    ]);
                    document.push(&[LOG_FIELD], entry)?;
                }
                Step::Synced => {}
            }
        }
        Ok(document.into_text())
    }

    /// The list of changes without those that are written.
    fn taken(&self, old: &str, from: usize) -> Result<String, Box<Diagnostic>> {
        let mut object = Object::new(&self.path, old)?;
        let mut left = object.get(&["changes"]).unwrap_or_default();
        let left = left.as_array_mut().map(std::mem::take).unwrap_or_default();
        let (mut left, count) = (left.clone(), left.len());
        for (at, step) in &self.pending[from..] {
            let stamp = json!(time::write_seconds(*at));
            match step {
                Step::Changes { all, .. } => {
                    for change in all {
                        if let Some(index) = left.iter().position(|other| other == change) {
                            left.remove(index);
                            object.set(&["usage", "lastFlush"], stamp.clone());
                        }
                    }
                }
                Step::Synced => {
                    object.set(&["lastFullSync"], stamp);
                }
                Step::Log(_) => {}
            }
        }
        if left.len() < count {
            object.set(&["changes"], Tree::from(Value::Array(left)));
        }
        Ok(object.into_text())
    }
}

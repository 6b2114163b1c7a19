//! A checkpoint that the ledger does not know, and phases that are complete before a run starts.
//!
//! What a checkpoint calls completed, and what the plan marks as complete, is not done again. What the
//! plan marks as skipped or deferred is left out.

use std::collections::BTreeMap;

use piton_core::event::{ImportedReplan, ReplansImported, StepImported, StepSkipped};
use piton_core::plan::{Phase, Step};
use piton_core::refusal::Refusal;
use piton_core::{Event, Plan, RunState, StepPath, Timestamp, remedy};
use piton_formats::Diagnostic;

use super::checkpoint::{AutoResume, Checkpoint, Editor, auto_resume, read, upgrade};
use super::phase_id::PhaseId;
use super::plan::PhaseStatus;
use super::record;
use super::settings::Settings;
use super::standing;
use super::{plan as markdown, tasks};
use crate::protocol::{Candidate, Existing, Look, Midway, Offer, Source, Start, Unclear, Upgrade};

/// Who left a phase out.
const BY_PLAN: &str = "the marker in the plan";
/// Most checkpoints that are looked at to find what is unfinished.
const LOOKED_AT_MAX: usize = 200;

/// The first line of the pattern about a checkpoint.
const FOUND: &str = "Found existing checkpoint for this plan.";

/// What an earlier run that the ledger knows means.
pub(super) fn start(plan: &Plan, earlier: &RunState, now: Timestamp) -> Start {
    // One that never started has no phases yet.
    if earlier.phases.is_empty() {
        return Start::Resume;
    }
    // A replan that is under way changes the plan; whether that counts is decided by who goes on.
    let is_same =
        earlier.plan_hash.as_ref() == Some(&plan.hash()) || earlier.replans.under_way.is_some();
    Start::Offer(Offer {
        said: said(&standing::current(earlier).to_string(), &standing::completed(earlier)),
        reason: standing::reason(earlier, is_same, now),
        record: plan.record.clone().unwrap_or_default(),
    })
}

/// The lines of the pattern about a checkpoint.
fn said(current: &str, completed: &str) -> Vec<String> {
    vec![
        FOUND.to_owned(),
        format!("Current phase: {current}"),
        format!("Completed phases: {completed}"),
    ]
}

/// What the checkpoint and the markers of a plan mean for a new run.
pub(super) fn existing(source: &Source<'_>, plan: &Plan, now: Timestamp) -> Existing {
    let record = record::find(source);
    let path = record.path;
    let found = match record.found {
        Some(Err(problem)) => {
            let why = format!("line {}: {}", problem.line, problem.message);
            return cannot_tell(&path, &why);
        }
        Some(Ok(found)) => Some(found),
        None => None,
    };
    // The file that is there, until the run writes its own.
    let there = record.from.as_ref().unwrap_or(&path).clone();
    if let Some(why) = found.as_ref().and_then(|found| found.progress.unclear.as_ref()) {
        return cannot_tell(&there, why);
    }
    let text = (source.read)(source.path).unwrap_or_default();
    let settled = Settled::of(&text, found.as_ref());
    let mut events = settled.events(plan);
    let is_complete = events.len() == plan.steps().count();
    let Some(found) = found else {
        if events.is_empty() {
            return Existing::Nothing;
        }
        return Existing::Midway(Midway { events, ..Midway::default() });
    };
    events.extend(replans(&found));
    let completed: Vec<&str> = found.progress.completed.iter().map(PhaseId::as_str).collect();
    let current = found.progress.current.as_ref().map_or("1", PhaseId::as_str);
    let mut said = said(current, &completed.join(","));
    let reason = match auto_resume(&found, now, (source.modified)(source.path)) {
        _ if is_complete => {
            said.push("All phases are already complete; --fresh starts over.".to_owned());
            None
        }
        AutoResume::Safe => None,
        AutoResume::Ask(reason) => Some(reason.to_string()),
    };
    let upgrade = match record.from.map(|from| upgraded(source, from, path)).transpose() {
        Ok(upgrade) => upgrade,
        Err(problem) => return cannot_tell(&there, &problem.message),
    };
    let offer = Some(Offer { said, reason, record: there });
    Existing::Midway(Midway { events, offer, upgrade, ..Midway::default() })
}

/// A checkpoint with the name of an older form, under the name and in the form of the pattern.
fn upgraded(source: &Source<'_>, from: String, to: String) -> Result<Upgrade, Box<Diagnostic>> {
    let text = (source.read)(&from).unwrap_or_default();
    let mut edit = Editor::new(&to, &upgrade(&from, &text)?)?;
    edit.set(&["workflow_id"], record::id(&to));
    let text = edit.finish()?;
    Ok(Upgrade { backup: format!("{from}.backup"), from, to, text })
}

fn cannot_tell(path: &str, why: &str) -> Existing {
    let (refusal, record) = (unclear(path, why), Some(path.to_owned()));
    Existing::Unclear(Box::new(Unclear { refusal, resume: None, record }))
}

fn unclear(path: &str, why: &str) -> Refusal {
    Refusal::new("checkpoint-unclear", format!("{path} cannot be read: {why}"))
        .or(remedy![Words "see how it is read with ", Piton "inspect {path}"])
        .or(remedy![
            Words "correct it, or move it away, then start again; ",
            Option "--fresh",
            Words " renames it and starts anew"
        ])
}

/// Replans that another tool counted.
fn replans(found: &Checkpoint) -> Option<Event> {
    if found.replans.counts.is_empty() {
        return None;
    }
    let count =
        |(id, count): (&PhaseId, &u64)| (id.to_string(), u32::try_from(*count).unwrap_or(u32::MAX));
    let history = found.replans.history.iter().map(|replan| ImportedReplan {
        phase: replan.phase.to_string(),
        reason: replan.reason.clone(),
        at: replan.timestamp,
    });
    Some(Event::ReplansImported(Box::new(ReplansImported {
        counts: found.replans.counts.iter().map(count).collect(),
        history: history.collect(),
    })))
}

/// What is settled before a run starts, by the keys of ids.
#[derive(Default)]
struct Settled {
    /// Phases that are complete, and when.
    done: BTreeMap<String, Option<Timestamp>>,
    /// Phases that are left out.
    left_out: Vec<String>,
    /// Tasks that are ticked.
    tasks: Vec<String>,
}

impl Settled {
    fn of(text: &str, found: Option<&Checkpoint>) -> Self {
        let mut settled = Self::default();
        if let Some(found) = found {
            for id in &found.progress.completed {
                let record = found.progress.records.get(id);
                settled.done.insert(id.key(), record.and_then(|record| record.timestamp));
            }
        }
        if tasks::is_task_list(text) {
            let (list, _) = tasks::inspect("", text);
            settled.tasks = list.tasks().filter(|t| t.done).map(|t| t.id.clone()).collect();
            return settled;
        }
        let (document, _) = markdown::inspect("", text);
        for phase in &document.phases {
            match phase.status {
                PhaseStatus::Completed => {
                    settled.done.entry(phase.id.key()).or_default();
                }
                PhaseStatus::Skipped | PhaseStatus::Deferred => {
                    settled.left_out.push(phase.id.key());
                }
                _ => {}
            }
        }
        settled
    }

    /// What is recorded of that.
    fn events(&self, plan: &Plan) -> Vec<Event> {
        let mut events = Vec::new();
        for phase in &plan.phases {
            let key = standing::id(&phase.id).key();
            let is_left_out = self.left_out.contains(&key);
            for (path, step) in steps(phase) {
                let is_ticked = self.tasks.contains(&step.id);
                if let Some(at) = self.done.get(&key).copied().or(is_ticked.then_some(None)) {
                    events.push(imported(path, step, at));
                } else if is_left_out {
                    let by = BY_PLAN.to_owned();
                    events.push(Event::StepSkipped(StepSkipped { step: path, by, satisfy: true }));
                }
            }
        }
        events
    }
}

fn steps(phase: &Phase) -> impl Iterator<Item = (StepPath, &Step)> {
    phase.lanes.iter().flat_map(move |lane| {
        lane.steps.iter().map(move |step| (StepPath::new(&phase.id, &lane.id, &step.id), step))
    })
}

fn imported(step: StepPath, planned: &Step, at: Option<Timestamp>) -> Event {
    Event::StepImported(Box::new(StepImported {
        step,
        attempts: 1,
        failures: 0,
        clusters: Vec::new(),
        is_done: true,
        at,
        artifacts: Vec::new(),
        definition: Some(planned.definition()),
    }))
}

/// The workflows whose checkpoints say that they are unfinished.
pub(super) fn unfinished(look: &Look<'_>) -> Vec<Candidate> {
    let settings = Settings::of(look.settings);
    let folder = settings.checkpoints();
    let mut names = (look.list)(folder);
    names.sort();
    let of = |name: String| -> Option<Candidate> {
        let stem = name.strip_suffix(".json")?;
        let text = (look.read)(&format!("{folder}/{name}")).ok()?;
        let found = read(&name, &text).ok()?;
        let path = found.plan_path?;
        // One that was archived has the time in its name; of an older form nobody can tell.
        if found.workflow_id.as_deref() != Some(stem) || (look.read)(&path).is_err() {
            return None;
        }
        let status = found.health.status?;
        if status == super::checkpoint::Status::Completed {
            return None;
        }
        let phase = found.progress.current.as_ref().map_or("1", PhaseId::as_str);
        let stands = format!("Phase {phase}, {}", status.as_str());
        Some(Candidate { path, name: stem.to_owned(), stands, at: found.times.written() })
    };
    names.into_iter().take(LOOKED_AT_MAX).filter_map(of).collect()
}

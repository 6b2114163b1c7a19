//! A state file that the ledger does not know: what another tool, or a run before, left beside a
//! feature.
//!
//! Completed stages count if their artifacts are there, not more. A stage without a row that comes
//! before the current one counts if its output is there. Ticked boxes are approvals.

use piton_core::event::{Cluster as Recorded, Event, FileHash, GateDecided, StepImported};
use piton_core::hash::Sha;
use piton_core::plan::{Lane, Phase};
use piton_core::refusal::Refusal;
use piton_core::{GateRef, Plan, StepPath, Timestamp, remedy};

use super::decision::{Decision, Ended, NoRun, Unclear as Why, decide};
use super::files::{DONE, boxes, renamed};
use super::hashes::Comparison;
use super::settings::Settings;
use super::state::{Checkpoint, Completed, JobStatus, State, read, stage_key};
use super::{gaps, hashes, plan};
use crate::protocol::{Candidate, Existing, Look, Midway, Source, Unclear};
use crate::time;

/// The first artifact of a stage that is missing.
struct Missing(String);

/// Who ticked a box, as far as anybody knows.
const BY_FILE: &str = "found ticked in the state file";

/// What the state file of a feature means for a new run.
pub(super) fn existing(source: &Source<'_>, plan: &Plan, now: Timestamp) -> Existing {
    let Some(path) = &plan.record else { return Existing::Nothing };
    let Ok(text) = (source.read)(path) else { return Existing::Nothing };
    let (state, _) = read(path, &text);
    let over = |said: &str, is_told: bool| {
        let aside = renamed(path, now);
        let said = format!("{said}; {path} is now {aside}");
        Existing::Over { previous: is_told.then_some(aside), said }
    };
    match decide(Some(&state)) {
        Decision::Resume(_) => midway(source, plan, &state, path),
        Decision::Fresh(Ended::Complete) => over("the last run of this feature is complete", false),
        Decision::Fresh(Ended::Failed) => over(
            "the last run of this feature failed; its notes are given to the first stage",
            true,
        ),
        Decision::Fresh(Ended::Cancelled) => {
            over("the last run of this feature was cancelled", false)
        }
        Decision::Fresh(Ended::NoStateFile) => Existing::Nothing,
        Decision::NotARun(NoRun::Template) => over("the state file was a template", false),
        Decision::NotARun(NoRun::Nothing) if text.trim().is_empty() => Existing::Nothing,
        Decision::NotARun(NoRun::Nothing) => {
            let cause = format!("{path} is not a state file of a pipeline");
            let refusal = Refusal::new("state-unclear", cause).or("move it away, then start again");
            Existing::Unclear(Box::new(Unclear { refusal, resume: None, record: None }))
        }
        Decision::AskHuman(why) => {
            let resume = match midway(source, plan, &state, path) {
                Existing::Midway(midway) => Some(midway),
                Existing::Nothing => Some(Midway::default()),
                _ => None,
            };
            Existing::Unclear(Box::new(Unclear {
                refusal: unclear(path, &why),
                resume,
                record: None,
            }))
        }
    }
}

fn unclear(path: &str, why: &Why) -> Refusal {
    let (cause, change) = match why {
        Why::NoStatus => (
            format!("{path} does not say what the status of the run is"),
            "add a line `- status: IN_PROGRESS`",
        ),
        // A second line would contradict the first.
        Why::UnknownStatus(raw) => {
            (format!("{path} has the unknown status `{raw}`"), "change its status to IN_PROGRESS")
        }
    };
    Refusal::new("state-unclear", cause)
        .or(format!("{change} to continue that run, or to COMPLETE to start another"))
        .or(remedy![Words "see how it is read with ", Piton "inspect {path}"])
}

fn midway(source: &Source<'_>, plan: &Plan, state: &State, path: &str) -> Existing {
    let current = state.current_stage.as_deref().unwrap_or_default();
    let Some(at) = position(plan, current) else {
        let cause =
            format!("{path} is at the stage `{current}`, which this pipeline does not have");
        let refusal = Refusal::new("state-unclear", cause)
            .or("add the stage to `stages` of [pipeline] in piton.toml, or correct current_stage");
        return Existing::Unclear(Box::new(Unclear { refusal, resume: None, record: None }));
    };
    let take = Take { source, plan, state };
    if take.has_not_begun() {
        return Existing::Nothing;
    }
    let mut midway = Midway { spec: take.spec(), ..Midway::default() };
    midway.said.push(format!("{path} was written by another tool: continuing at {current}"));
    midway.said.extend(take.spec_words());
    for (index, phase) in plan.phases.iter().enumerate().filter(|(_, phase)| phase.id != DONE) {
        take.stage(phase, index, at, &mut midway);
    }
    midway.events.extend(take.approvals());
    Existing::Midway(midway)
}

/// Where a stage stands in a plan; what is done is behind all.
fn position(plan: &Plan, stage: &str) -> Option<usize> {
    if stage_key(stage) == DONE {
        return Some(plan.phases.len());
    }
    let id = plan::stage_in(plan, stage)?;
    plan.phases.iter().position(|phase| phase.id == id)
}

/// What is taken over.
struct Take<'a> {
    source: &'a Source<'a>,
    plan: &'a Plan,
    state: &'a State,
}

impl Take<'_> {
    /// Whether nobody did anything yet: a feature that was only prepared.
    fn has_not_begun(&self) -> bool {
        let queued = self.state.detail.job_status.known() == Some(JobStatus::Queued);
        let dispatched = self.state.detail.value("dispatched_at").and_then(time::read);
        queued && dispatched.is_none() && self.state.completed.is_empty()
    }

    /// The hash of the spec as recorded: of the whole file where the recorded one fits it in any way.
    fn spec(&self) -> Option<Sha> {
        let recorded = self.state.value("spec_hash")?;
        let text = (self.source.read)(self.plan.spec.as_deref()?).ok()?;
        match hashes::compare(recorded, text.as_bytes()) {
            Comparison::Different => hashes::digest(recorded),
            _ => Some(Sha::of(text.as_bytes())),
        }
    }

    /// What the recorded hash of the spec says about the spec.
    fn spec_words(&self) -> Option<String> {
        let recorded = self.state.value("spec_hash").filter(|hash| !hash.trim().is_empty())?;
        let text = (self.source.read)(self.plan.spec.as_deref()?).ok()?;
        let words = match hashes::compare(recorded, text.as_bytes()) {
            Comparison::WholeFile => "is that of the whole file",
            Comparison::BelowMetadata => "is that of what follows the metadata of the file",
            Comparison::Different => "differs",
            Comparison::Unverifiable => "is not a complete SHA-256, and is not compared",
        };
        Some(format!("spec hash: the recorded one {words}"))
    }

    fn stage(&self, phase: &Phase, index: usize, at: usize, midway: &mut Midway) {
        let Some((path, lane)) = work(phase) else { return };
        let step = &lane.steps[0];
        let key = stage_key(&phase.id);
        let rows = self.rows(&key);
        let row = rows.last().copied();
        let definition = Some(step.definition());
        let made = || self.made(&rows, &step.artifacts);
        // While a person is asked about the current stage, it is done.
        let is_asked = index == at && self.waits_after(phase) && !step.artifacts.is_empty();
        let passed =
            index < at || is_asked && step.artifacts.iter().all(|path| self.is_complete(path));
        if row.is_some() || passed {
            match made() {
                Ok(artifacts) => {
                    let done_at =
                        row.and_then(|row| row.completed_at.as_deref()).and_then(time::read);
                    midway.events.push(Event::StepImported(Box::new(StepImported {
                        step: path,
                        attempts: self.attempts(&key).max(1),
                        failures: 0,
                        clusters: Vec::new(),
                        is_done: true,
                        at: done_at,
                        artifacts,
                        definition,
                    })));
                }
                Err(Missing(missing)) => {
                    midway.said.push(format!("{}: {missing} is missing: it runs again", phase.id));
                }
            }
            return;
        }
        if index != at {
            return;
        }
        let retried = self.state.detail.retry_count.unwrap_or_default();
        midway.events.push(Event::StepImported(Box::new(StepImported {
            step: path,
            attempts: retried + 1,
            failures: retried,
            clusters: self.clusters(&key),
            is_done: false,
            at: None,
            artifacts: Vec::new(),
            definition,
        })));
    }

    fn is_complete(&self, path: &str) -> bool {
        (self.source.read)(path).is_ok_and(|text| gaps::looks_complete(&text))
    }

    /// Whether a box after a stage is not ticked.
    fn waits_after(&self, phase: &Phase) -> bool {
        let next = self.plan.phases.iter().find(|next| next.after.contains(&phase.id));
        let gate = next.and_then(|next| next.gate.as_ref());
        let is_waiting = self.state.status.known() == Some(super::state::Status::WaitingForHuman);
        is_waiting && gate.is_some()
    }

    /// The attempts that iteration counts tell of a stage.
    fn attempts(&self, key: &str) -> u32 {
        let row = self.state.iterations.iter().find(|row| stage_key(&row.stage) == key);
        row.and_then(|row| row.cycle_count.trim().parse().ok()).unwrap_or_default()
    }

    /// The rows of the last completion of a stage.
    fn rows(&self, key: &str) -> Vec<&Completed> {
        let of_stage = || self.state.completed.iter().filter(|row| row.key() == key);
        let last = of_stage().next_back().map(|row| &row.completed_at);
        of_stage().filter(|row| Some(&row.completed_at) == last).collect()
    }

    /// The artifacts of a stage, with the hash that is recorded where it can be compared; or the first
    /// that is missing.
    fn made(&self, rows: &[&Completed], declared: &[String]) -> Result<Vec<FileHash>, Missing> {
        let listed = rows.iter().flat_map(|row| {
            let hash = row.hash.as_deref().unwrap_or_default();
            listed(row).into_iter().map(move |path| (path, hash))
        });
        let mut files: Vec<(String, &str)> = listed.collect();
        if files.is_empty() {
            files = declared.iter().map(|path| (path.clone(), "")).collect();
        }
        let read = |(path, recorded): (String, &str)| {
            let Ok(text) = (self.source.read)(&path) else { return Err(Missing(path)) };
            // The stages that make the spec would otherwise vouch for one that was changed since.
            if Some(&path) == self.plan.spec.as_ref()
                && let Some(sha256) = self.spec()
            {
                return Ok(FileHash { path, sha256 });
            }
            let differs = hashes::compare(recorded, text.as_bytes()) == Comparison::Different;
            let recorded = hashes::digest(recorded).filter(|_| differs);
            let sha256 = recorded.unwrap_or_else(|| Sha::of(text.as_bytes()));
            Ok(FileHash { path, sha256 })
        };
        files.into_iter().map(read).collect()
    }

    fn clusters(&self, key: &str) -> Vec<Recorded> {
        let of_stage = self.state.clusters.iter().filter(|row| stage_key(&row.stage) == key);
        let count = |text: &str| text.trim().parse().unwrap_or(1);
        of_stage
            .map(|row| Recorded {
                signature: stage_key(&row.name),
                error: row.name.clone(),
                first_at: time::read(&row.first_seen).unwrap_or_default(),
                count: count(&row.retry_count),
            })
            .collect()
    }

    /// The decisions that ticked boxes are.
    fn approvals(&self) -> Vec<Event> {
        let gates = self.plan.gates();
        let steps = self
            .plan
            .steps()
            .filter_map(|(path, step)| Some((GateRef(path.to_string()), step.escalation.clone()?)));
        let all = gates.into_iter().chain(steps);
        let cleared: Vec<&Checkpoint> = self.state.cleared().collect();
        let decided = all.filter(|(_, name)| cleared.iter().any(|c| is_same(&c.text, name)));
        decided
            .map(|(gate, _)| {
                Event::GateDecided(GateDecided {
                    gate,
                    approved: true,
                    by: BY_FILE.to_owned(),
                    at: None,
                    message: String::new(),
                    plan_hash: self.plan.hash(),
                    artifacts: Vec::new(),
                })
            })
            .collect()
    }
}

/// The files that the row of a completed stage names; a cell that is no path says nothing.
fn listed(row: &Completed) -> Vec<String> {
    let cell = row.artifact.as_deref().unwrap_or_default();
    let parts = cell.split([',', ' ']).map(|part| part.trim_matches(['`', '*', ' ']));
    let is_path = |part: &&str| {
        part.contains('/') && part.rsplit('/').next().is_some_and(|n| n.contains('.'))
    };
    parts.filter(is_path).map(str::to_owned).collect()
}

/// Whether a box and a gate are about the same.
pub(super) fn is_same(text: &str, name: &str) -> bool {
    let bare = |text: &str| {
        let text = text.split('(').next().unwrap_or_default();
        text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
    };
    bare(text) == bare(name)
}

fn work(phase: &Phase) -> Option<(StepPath, &Lane)> {
    let lane = phase.lanes.first()?;
    let step = lane.steps.first()?;
    Some((StepPath::new(&phase.id, &lane.id, &step.id), lane))
}

/// The features whose state files say that they are unfinished.
pub(super) fn unfinished(look: &Look<'_>) -> Vec<Candidate> {
    let features = Settings::of(look.settings).features().trim_end_matches('/').to_owned();
    let mut names = (look.list)(&features);
    names.sort();
    let found = names.into_iter().filter_map(|name| {
        let path = format!("{features}/{name}");
        let text = plan::state_files(&path, look.settings)
            .into_iter()
            .find_map(|p| (look.read)(&p).ok())?;
        let (state, _) = read("", &text);
        if !matches!(decide(Some(&state)), Decision::Resume(_)) {
            return None;
        }
        let stage = state.current_stage.as_deref().unwrap_or("?");
        let stands = format!("{stage}, {}", state.status.raw().unwrap_or_default());
        let at = state.value("last_updated_at").and_then(time::read);
        Some(Candidate { path, name, stands, at })
    });
    found.collect()
}

/// The ticked boxes of a state file, as the gates of a plan call them.
pub(super) fn ticked(plan: &Plan, text: &str) -> Vec<String> {
    let (state, _) = read("", text);
    let boxes = boxes(plan);
    let named = |c: &Checkpoint| boxes.iter().find(|name| is_same(&c.text, name)).cloned();
    state.cleared().filter_map(named).collect()
}

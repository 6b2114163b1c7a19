//! The state file of a run, kept true: written from the ledger, with all that others wrote in it.
//!
//! A file that is gone is written anew. One that cannot be read as a state file is never touched.

use piton_core::lane::Role;
use piton_core::state::{PhaseState, Progress, RunState, StepState};
use piton_core::{Event, GateRef, Plan, Status as Standing, StepPath, Timestamp};

use super::state::{
    Cluster, Completed, Editor, Iteration, JobStatus, NewRun, State, Status, Substance, fresh, read,
};
use super::story::{Done, Story};
use crate::files::{Around, Edit, Files, Wanted};
use crate::time::{stamp, write_seconds};

/// What stands for the current stage of a complete run.
pub(super) const DONE: &str = "done";

/// The state file of one run.
pub(super) struct StateFile {
    story: Story,
}

impl StateFile {
    /// Begins without events.
    pub(super) fn new() -> Self {
        Self { story: Story::default() }
    }
}

impl Files for StateFile {
    fn edits<'e>(
        &'e mut self,
        plan: &'e Plan,
        state: &'e RunState,
        _around: &'e dyn Around,
    ) -> Vec<Box<dyn Edit + 'e>> {
        let Some(path) = &plan.record else { return Vec::new() };
        // One that was set aside has another name.
        if state.ended == Some(Standing::Archived) {
            return Vec::new();
        }
        vec![Box::new(Recording { path, view: View { plan, state, story: &self.story } })]
    }

    fn happened(&mut self, at: Timestamp, event: &Event) {
        self.story.take(at, event);
    }

    fn archived(&self, plan: &Plan, state: &RunState) -> Vec<(String, String)> {
        let record = plan.record.as_ref();
        record.map(|path| (path.clone(), renamed(path, state.last_at))).into_iter().collect()
    }

    fn is_shown_first(&self, event: &Event, _state: &RunState) -> bool {
        matches!(event, Event::StepStarted(_))
    }
}

/// The name of a state file that another one takes the place of.
pub(super) fn renamed(path: &str, at: Timestamp) -> String {
    let (stem, end) = path.rsplit_once('.').unwrap_or((path, "md"));
    format!("{stem}.{}.{end}", stamp(at))
}

/// Brings a state file up to date.
struct Recording<'e> {
    path: &'e str,
    view: View<'e>,
}

impl Edit for Recording<'_> {
    fn path(&self) -> &str {
        self.path
    }

    fn change(&mut self, there: Option<&[u8]>, is_stable: bool) -> Wanted {
        let there = there.filter(|bytes| !bytes.is_empty());
        let text = match there.map(std::str::from_utf8) {
            None => self.view.anew(),
            Some(Ok(text)) => text.to_owned(),
            Some(Err(_)) => return self.refused("is not text"),
        };
        let found = read(self.path, &text).0;
        match found.substance {
            Substance::Run => {}
            _ if !is_stable => return Wanted::Unfinished,
            Substance::Template => return self.refused("is a template nobody filled in"),
            Substance::Nothing => return self.refused("is not a state file"),
        }
        let new = self.view.written(&text, &found);
        if there.is_some_and(|bytes| bytes == new.as_bytes()) {
            return Wanted::AsItIs;
        }
        Wanted::Text { text: new.into_bytes(), sync: true }
    }
}

impl Recording<'_> {
    /// Leaves the file to whoever wrote it.
    fn refused(&self, why: &str) -> Wanted {
        let (path, run) = (self.path, self.view.run_id());
        Wanted::Refused(format!(
            "{path} {why}, so it was left as it is; move it away, then run `piton resume {run}`"
        ))
    }
}

/// A run as its state file shows it.
struct View<'e> {
    plan: &'e Plan,
    state: &'e RunState,
    story: &'e Story,
}

impl View<'_> {
    fn run_id(&self) -> &str {
        self.state.run_id.as_ref().map_or("", |id| id.0.as_str())
    }

    /// A new file, to be brought up to date.
    fn anew(&self) -> String {
        let boxes = boxes(self.plan);
        let boxes: Vec<&str> = boxes.iter().map(String::as_str).collect();
        fresh(&NewRun {
            run_id: self.run_id(),
            feature: &self.state.title,
            spec_version: "",
            spec_hash: &self.spec_hash(),
            started_at: &write_seconds(self.story.started.unwrap_or(self.state.created_at)),
            stage: self.state.phases.first().map_or(DONE, |phase| &phase.id),
            boxes: &boxes,
        })
    }

    fn spec_hash(&self) -> String {
        let spec = self.state.spec.as_ref();
        spec.map(|spec| format!("sha256:{}", spec.sha256)).unwrap_or_default()
    }

    /// A text with everything in it as it is now.
    fn written(&self, text: &str, found: &State) -> String {
        let mut edit = Editor::new(text);
        let stage = self.current();
        edit.set_field("spec_hash", &self.spec_hash());
        edit.set_field("last_updated_at", &write_seconds(self.state.last_at));
        edit.set_field("current_stage", stage.map_or(DONE, |(phase, _)| &phase.id));
        edit.set_field("status", self.status().as_str());
        self.detail(&mut edit, stage);
        for done in self.story.completed.iter().filter(|done| !is_listed(found, done)) {
            for row in rows(done) {
                edit.complete_stage(&row);
            }
        }
        for (phase, step, budget) in self.steps() {
            self.counts(&mut edit, phase, step, budget);
        }
        for (place, gate) in &self.state.gates {
            if gate.decision.as_ref().is_some_and(|decision| decision.approved) {
                edit.tick(&self.box_of(place, &gate.name));
            }
        }
        let until = found.value("last_updated_at").and_then(crate::time::read);
        // What happened before the file was last written stands there, or a person changed it since.
        let is_new = |at: Timestamp| until.is_none_or(|until| at.0 / 1000 >= until.0 / 1000);
        for (gate, at) in &self.story.reopened {
            let is_approved = self.state.approved(gate);
            if let Some(name) = self.gate_name(gate).filter(|_| is_new(*at) && !is_approved) {
                edit.untick(&name);
            }
        }
        for (at, note) in &self.story.notes {
            if is_new(*at) && !found.notes.iter().any(|line| line.contains(note.as_str())) {
                edit.note(note);
            }
        }
        edit.into_text()
    }

    /// The text of the box of a gate.
    fn box_of(&self, place: &GateRef, name: &str) -> String {
        self.gate_name(place).unwrap_or_else(|| name.to_owned())
    }

    fn gate_name(&self, place: &GateRef) -> Option<String> {
        self.plan.gates().into_iter().find(|(gate, _)| gate == place).map(|(_, name)| name)
    }

    /// The stages of the protocol with their steps and budgets.
    fn steps(&self) -> impl Iterator<Item = (&PhaseState, &StepState, u32)> {
        self.state.phases.iter().filter(|phase| phase.id != DONE).filter_map(|phase| {
            let lane = phase.lanes.first()?;
            let step = lane.steps.iter().find(|step| step.role == Role::Work)?;
            let path = StepPath::new(&phase.id, &lane.id, &step.id);
            let budget = self.plan.step(&path).map_or(0, |step| step.retries);
            Some((phase, step, budget))
        })
    }

    /// The stage that the run is at, and its step: while a person is asked about a stage, that one.
    fn current(&self) -> Option<(&PhaseState, &StepState)> {
        let phases = &self.state.phases;
        let asked = |phase: &PhaseState| self.state.gates.get(&GateRef(phase.id.clone()));
        let is_open = |phase: &PhaseState| asked(phase).is_some_and(|gate| gate.decision.is_none());
        // A person may be asked again about a stage, and those after it are done.
        let at = phases.iter().position(|phase| !phase.is_over() || is_open(phase))?;
        let waits = asked(&phases[at])
            .is_some_and(|gate| !gate.decision.as_ref().is_some_and(|d| d.approved));
        let before = waits && at > 0 && phases[at].id != phases[0].id;
        let phase = &phases[if before { at - 1 } else { at }];
        Some((phase, phase.lanes.first()?.steps.first()?))
    }

    fn status(&self) -> Status {
        let state = self.state;
        let steps = || state.phases.iter().flat_map(|p| &p.lanes).flat_map(|l| &l.steps);
        let is = |progress: Progress| steps().any(|step| step.progress == progress);
        let blocked = |lane: &piton_core::state::LaneState| {
            lane.work.as_ref().is_some_and(|work| work.blocked.is_some())
        };
        match state.ended {
            Some(Standing::Cancelled) => return Status::Cancelled,
            Some(_) => return Status::Aborted,
            None => {}
        }
        let rejected =
            state.gates.values().any(|g| g.decision.as_ref().is_some_and(|d| !d.approved));
        if state.is_over() {
            Status::Complete
        } else if rejected {
            Status::Failed
        } else if state.open_gates().next().is_some()
            || is(Progress::Failed)
            || is(Progress::Escalated)
            || state.exhausted.is_some()
            || state.lanes().any(|(_, lane)| blocked(lane))
        {
            Status::WaitingForHuman
        } else {
            Status::InProgress
        }
    }

    fn detail(&self, edit: &mut Editor, stage: Option<(&PhaseState, &StepState)>) {
        let Some((phase, step)) = stage else {
            edit.set_detail("stage", DONE).set_detail("job_status", JobStatus::Done.as_str());
            return;
        };
        edit.set_detail("stage", &phase.id);
        let dispatched = self.story.dispatched.get(&phase.id).map(|at| write_seconds(*at));
        if let Some(at) = dispatched {
            edit.set_detail("dispatched_at", &at);
        }
        edit.set_detail("job_status", self.job_status(step).as_str());
        edit.set_detail("retry_count", &step.attempts.saturating_sub(1).to_string());
        if let Some(said) = self.story.summaries.get(&phase.id) {
            edit.set_detail("last_output_summary", said);
        }
    }

    fn job_status(&self, step: &StepState) -> JobStatus {
        match (self.state.ended, step.progress) {
            (Some(Standing::Cancelled), _) => JobStatus::Cancelled,
            (Some(_), _) => JobStatus::Aborted,
            (_, Progress::Running { .. }) => JobStatus::Running,
            (_, Progress::Waiting { .. }) => JobStatus::Retrying,
            (_, Progress::Failed) => JobStatus::Failed,
            (_, Progress::Escalated) => JobStatus::Escalated,
            _ if self.status() == Status::WaitingForHuman => JobStatus::WaitingForHuman,
            (_, Progress::Done | Progress::Skipped { .. }) => JobStatus::Done,
            (_, Progress::Pending) => JobStatus::Queued,
        }
    }

    fn counts(&self, edit: &mut Editor, phase: &PhaseState, step: &StepState, budget: u32) {
        let cycles = self.story.cycles.get(&phase.id).copied().unwrap_or_default();
        if step.attempts > 0 && cycles > 0 {
            let is_out = step.progress == Progress::Failed;
            edit.set_iteration(&Iteration {
                stage: phase.id.clone(),
                cycle_count: cycles.to_string(),
                budget: budget.to_string(),
                status: if is_out { "EXHAUSTED" } else { "WITHIN_BUDGET" }.to_owned(),
            });
        }
        for cluster in step.clusters.iter().filter(|cluster| cluster.count > 1) {
            edit.set_cluster(&Cluster {
                name: format!("{} ({})", cluster.error, cluster.signature),
                first_seen: write_seconds(cluster.first_at),
                retry_count: cluster.count.to_string(),
                stage: phase.id.clone(),
                notes: String::new(),
            });
        }
    }
}

/// The boxes of a plan.
pub(super) fn boxes(plan: &Plan) -> Vec<String> {
    let gates = plan.gates().into_iter().map(|(_, name)| name);
    let escalations = plan.steps().filter_map(|(_, step)| step.escalation.clone());
    in_order(gates.chain(escalations).collect())
}

/// Boxes, those of the protocol first and in its order.
pub(super) fn in_order(own: Vec<String>) -> Vec<String> {
    let known = super::state::BOXES.into_iter().map(str::to_owned);
    let mut all: Vec<String> = known.filter(|text| own.contains(text)).collect();
    all.extend(own.into_iter().filter(|text| !super::state::BOXES.contains(&text.as_str())));
    all
}

/// Whether the row of a completed stage stands in the file.
fn is_listed(found: &State, done: &Done) -> bool {
    let mut rows =
        found.completed.iter().filter(|row| row.key() == super::state::stage_key(&done.stage));
    match done.at {
        // The tool that completed it wrote it down in its own way.
        _ if done.is_foreign => rows.next().is_some(),
        None => rows.next().is_some(),
        Some(at) => {
            let is_then = |row: &&Completed| {
                let then = row.completed_at.as_deref().and_then(crate::time::read);
                then.is_some_and(|then| then.0 / 1000 == at.0 / 1000)
            };
            let then: Vec<&Completed> = rows.filter(is_then).collect();
            let has = |sha: &str| {
                then.iter().any(|row| row.hash.as_deref().is_some_and(|h| h.contains(sha)))
            };
            // A stage may complete twice within a second, with another output.
            !then.is_empty() && done.artifacts.iter().all(|file| has(&file.sha256.0))
        }
    }
}

/// The rows of a completed stage: one for each artifact.
fn rows(done: &Done) -> Vec<Completed> {
    let row = |artifact: &str, hash: String| Completed {
        stage: done.stage.clone(),
        completed_at: done.at.map(write_seconds),
        artifact: Some(artifact.to_owned()),
        hash: Some(hash),
        line: 0,
    };
    if done.artifacts.is_empty() {
        // Stages that only change code have no artifact of their own.
        return vec![row("code", "n/a".to_owned())];
    }
    let files = done.artifacts.iter();
    files.map(|file| row(&file.path, format!("sha256:{}", file.sha256))).collect()
}

//! What `checkpoints.json` must say of a run: the stage records of its state, in the contract's form.
//!
//! Pure. Lanes stand in the plan's order, stages in theirs, so that a file rebuilt from the ledger
//! is the one that grew with the run.

use std::collections::BTreeSet;
use std::path::Path;

use piton_core::lane::{Role, Stage, StageStatus};
use piton_core::lane_state::{LaneWork, StageRecord};
use piton_core::state::LaneState;
use piton_core::text::short;
use piton_core::{LanePath, RunState, StepPath, Timestamp};
use piton_formats::template::quote_for_shell;

use super::super::NONE;
use super::super::checkpoints::{self, OwnRecord};
use super::Place;

/// Everything there is to say of a run, in order.
pub fn records(place: &Place, state: &RunState) -> Vec<OwnRecord> {
    let Some(run_id) = &state.run_id else { return Vec::new() };
    let (root, plan_path) = (&place.root, &state.plan_path);
    let log_path = root.join(place.log(&super::name(state))).display().to_string();
    let twins = Twins::of(state);
    let mut all = Vec::new();
    // A task has no records of its own: the contract knows lanes, and what happens to a task is
    // recorded with its lane.
    for (path, lane) in state.lanes().filter(|(_, lane)| lane.task.is_none()) {
        let Some(work) = &lane.work else { continue };
        let hints = Hints { root, plan_path, run_id: &run_id.0, lane: twins.words(&path, lane) };
        let (resume, rollback) = (hints.command("--resume"), hints.command("--rollback"));
        let worktree_path = worktree(place, &path, lane, work);
        let tasks = worktrees_of_tasks(state, &path, lane);
        let is_start = |r: &StageRecord| {
            r.stage == Stage::AfterLaneStart && r.status == StageStatus::InProgress
        };
        let is_early = |r: &StageRecord| is_start(r) && tasks.as_ref().is_some_and(Vec::is_empty);
        let at = |r: &StageRecord| {
            let first = tasks.iter().flatten().min().filter(|_| is_start(r));
            first.map_or(r.at, |first| r.at.max(*first))
        };
        let shown = |stage| work.record(stage).filter(|r| !r.assumed && !is_early(r));
        for record in Stage::ALL.into_iter().filter_map(shown) {
            all.push(OwnRecord {
                run_id: run_id.0.clone(),
                phase: path.phase.clone(),
                lane: name_of(lane).to_owned(),
                stage: checkpoints::Stage::read(record.stage.as_str()),
                status: checkpoints::Status::read(record.status.as_str()),
                base_branch: work.base_branch.clone(),
                worktree_path: worktree_path.clone(),
                log_path: log_path.clone(),
                timestamp: at(record),
                notes: notes(record),
                resume_hint: resume.clone(),
                rollback_hint: rollback.clone(),
                retry_attempt: record.retry_attempt,
                max_retries: record.retry_attempt.and(record.max_retries),
                failure_context: record.retry_attempt.map(|_| record.failure_context.clone()),
                test_command: record.test_command.clone(),
                exit_code: record.exit_code,
                base_sha: record.base_sha.clone(),
                head_sha: record.head_sha.clone(),
                target_branch: record.target_branch.clone(),
                last_command: record.last_command.clone(),
            });
        }
    }
    all
}

/// When the tasks that a lane begins with got worktrees of their own; `None` if it begins otherwise. By
/// the contract it has not started before there is one.
fn worktrees_of_tasks(
    state: &RunState,
    path: &LanePath,
    lane: &LaneState,
) -> Option<Vec<Timestamp>> {
    let first = lane.steps.iter().find(|step| step.role != Role::Setup)?;
    let tasks = state.tasks_at(&StepPath::new(&path.phase, &path.lane, &first.id));
    let ready = |task: &LanePath| {
        let work = state.lane(task)?.work.as_ref()?;
        work.record(Stage::AfterLaneStart).map(|record| record.at)
    };
    (!tasks.is_empty()).then(|| tasks.iter().filter_map(ready).collect())
}

/// How views call a lane: the validation of a phase is the phase's own.
fn name_of(lane: &LaneState) -> &str {
    if lane.is_validation() { NONE } else { &lane.id }
}

/// Commands that lead on from a record.
pub struct Hints<'h> {
    /// The project's root.
    pub root: &'h Path,
    /// The plan's path from there.
    pub plan_path: &'h str,
    /// The run.
    pub run_id: &'h str,
    /// What chooses the lane on the command line; nothing for all.
    pub lane: Words,
}

impl Hints<'_> {
    /// A line for a shell.
    pub fn command(&self, mode: &str) -> String {
        // A path that begins like an option is one only to programs.
        let dashed = self.plan_path.starts_with('-');
        let plan = format!("{}{}", if dashed { "./" } else { "" }, self.plan_path);
        let root = quote_for_shell(&self.root.display().to_string());
        let run = quote_for_shell(self.run_id);
        let plan = quote_for_shell(&plan);
        let mut line = format!("cd {root} && piton run {plan} {mode} --run-id {run}");
        for word in if mode == ROLLBACK { &self.lane.rollback } else { &self.lane.resume } {
            line.push(' ');
            line.push_str(&quote_for_shell(word));
        }
        line
    }
}

/// The option that takes a lane back.
const ROLLBACK: &str = "--rollback";

/// What chooses a lane on the command line.
#[derive(Default)]
pub struct Words {
    /// To go on with.
    resume: Vec<String>,
    /// To take back.
    rollback: Vec<String>,
}

/// Names that lanes of several phases have.
pub struct Twins<'s> {
    names: BTreeSet<&'s str>,
    /// Whether several lanes share the project's folder.
    shared: bool,
}

impl<'s> Twins<'s> {
    /// Looks for them in a run.
    pub fn of(state: &'s RunState) -> Self {
        let (mut once, mut more) = (BTreeSet::new(), BTreeSet::new());
        for lane in state.phases.iter().flat_map(|phase| &phase.lanes) {
            if !once.insert(lane.id.as_str()) {
                more.insert(lane.id.as_str());
            }
        }
        let in_place = state.lanes().filter(|(_, lane)| lane.isolation.is_in_place());
        Self { names: more, shared: in_place.count() > 1 }
    }

    /// What chooses a lane on the command line: its phase too where another has a lane of that name.
    /// One that shares its folder goes back with the others, to where it began itself.
    pub fn words(&self, path: &LanePath, lane: &LaneState) -> Words {
        let is_one = self.names.contains(path.lane.as_str());
        let phase = if is_one { vec!["--phase", &path.phase] } else { Vec::new() };
        let resume: Vec<String> =
            phase.into_iter().chain(["--lane", &path.lane]).map(str::to_owned).collect();
        let rollback = if self.shared && lane.isolation.is_in_place() {
            vec!["--to".to_owned(), format!("{path}@{}", Stage::BeforeLaneStart)]
        } else {
            resume.clone()
        };
        Words { resume, rollback }
    }
}

/// Where a lane works, absolute.
fn worktree(place: &Place, path: &LanePath, lane: &LaneState, work: &LaneWork) -> String {
    let Place { root, settings } = place;
    let dir = if lane.isolation.is_in_place() {
        root.clone()
    } else if work.dir.is_empty() {
        // Blocked before it began: where it will be.
        root.join(&settings.worktrees).join(&path.phase).join(&path.lane)
    } else {
        root.join(&work.dir)
    };
    dir.display().to_string()
}

/// What a person reads: the record's own notes, then its facts.
fn notes(record: &StageRecord) -> String {
    let exit = |code: Option<i32>| code.map(|c| format!(" (exit {c})")).unwrap_or_default();
    let mut facts: Vec<String> = Vec::new();
    if record.last_command.is_some() && record.last_command != record.test_command {
        let command = record.last_command.as_deref().unwrap_or_default();
        facts.push(format!("last command: {command}{}", exit(record.exit_code)));
    }
    if let Some(test) = &record.test_command {
        facts.push(format!("test: {test}{}", exit(record.exit_code)));
    }
    match (record.stage, &record.base_sha, &record.head_sha, &record.target_branch) {
        (Stage::PrePr, _, Some(head), Some(target)) => {
            facts.push(format!("head {} -> {target}", short(head)));
        }
        (Stage::BeforeLaneStart | Stage::AfterLaneStart, Some(base), ..) => {
            facts.push(format!("base {}", short(base)));
        }
        _ => {}
    }
    // The notes of a record that was taken over may say them already.
    facts.retain(|fact| !record.notes.contains(fact.as_str()));
    if !record.notes.is_empty() {
        facts.insert(0, record.notes.clone());
    }
    facts.join("; ")
}

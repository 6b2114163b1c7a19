//! The lines of the run log: what each event of the ledger says there.
//!
//! An event's lines depend on the event, its time and the plan's structure only, so the log can be
//! rebuilt at any time. Most events have one line; a failure with a retry has a second one for it.

use std::collections::{BTreeMap, BTreeSet};

use piton_core::event::{
    Class, DriverLeft, LaneMerged, LaneReopened, MergedBy, Next, Outcome, RewindIntended,
    RunCreated, Shape, StepFinished, Verdict,
};
use piton_core::lane::{Role, TaskOf};
use piton_core::lane_state::Act;
use piton_core::shell::joined;
use piton_core::text::short;
use piton_core::{Event, GateRef, LanePath, RunState, StepPath, Timestamp};

use super::super::NONE;
use super::super::run_log::{self, Entry, Status};

/// The lines of an event, each with its newline; empty if the event is not logged.
pub fn lines(run_id: &str, at: Timestamp, roles: &Roles, event: &Event) -> String {
    let log = Log { run_id, at, roles };
    log.entries(event).iter().map(run_log::line).collect()
}

/// The entries of an event in words, each with its lane.
pub fn words(roles: &Roles, event: &Event) -> Vec<(LanePath, String)> {
    let log = Log { run_id: "", at: Timestamp::default(), roles };
    let words = |entry: Entry| {
        let task = if entry.task == NONE { String::new() } else { format!(" {}", entry.task) };
        let notes = entry.notes.map(|notes| format!(": {notes}")).unwrap_or_default();
        let text = format!("{}{task} {}{notes}", entry.event, entry.status.as_str());
        (LanePath { phase: entry.phase, lane: entry.lane }, text)
    };
    log.entries(event).into_iter().map(words).collect()
}

/// What lanes and steps are for, as far as events told.
#[derive(Default)]
pub struct Roles {
    /// Lanes that do tasks of other lanes: the log calls them tasks.
    tasks: BTreeMap<LanePath, TaskOf>,
    /// Lanes that validate their phase: the log calls them the phase's own.
    validations: BTreeSet<LanePath>,
    /// Steps that only test.
    tests: BTreeSet<StepPath>,
    /// The phases.
    phases: BTreeSet<String>,
}

impl Roles {
    /// What the lanes and steps of a run are for.
    pub fn new(state: &RunState) -> Self {
        let mut roles = Self::default();
        for (path, lane) in state.lanes() {
            let steps = lane.steps.iter().map(|s| (&s.id, s.role));
            roles.learn_lane(path, steps, lane.is_validation(), lane.task.as_ref());
        }
        roles
    }

    /// Takes note of the roles in the shape of a plan.
    pub fn learn(&mut self, shape: &Shape) {
        for phase in &shape.phases {
            for lane in &phase.lanes {
                let path = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
                let steps = lane.steps.iter().map(|s| (&s.id, s.role));
                self.learn_lane(path, steps, lane.is_validation(), lane.task.as_ref());
            }
        }
    }

    fn learn_lane<'a>(
        &mut self,
        path: LanePath,
        steps: impl Iterator<Item = (&'a String, Role)>,
        validates: bool,
        task: Option<&TaskOf>,
    ) {
        self.phases.insert(path.phase.clone());
        let tests = steps.filter(|(_, role)| matches!(role, Role::Tests | Role::Validation));
        self.tests.extend(tests.map(|(id, _)| StepPath::new(&path.phase, &path.lane, id)));
        if validates {
            self.validations.insert(path);
        } else if let Some(task) = task {
            self.tasks.insert(path, task.clone());
        }
    }

    /// How views call a lane: a task has the name of its lane, and a validation none.
    pub fn name<'r>(&'r self, lane: &'r LanePath) -> &'r str {
        if self.validations.contains(lane) {
            return NONE;
        }
        self.tasks.get(lane).map_or(&lane.lane, |task| &task.lane)
    }
}

struct Log<'l> {
    run_id: &'l str,
    at: Timestamp,
    roles: &'l Roles,
}

impl Log<'_> {
    fn entry(&self, phase: &str, lane: &str, task: &str, event: &str, status: Status) -> Entry {
        let path = LanePath { phase: phase.to_owned(), lane: lane.to_owned() };
        let task = self.roles.tasks.get(&path).map_or(task, |of| &of.task);
        let lane = self.roles.name(&path);
        let mut entry = Entry::new(self.at, self.run_id, phase, Some(lane), event);
        task.clone_into(&mut entry.task);
        entry.status = status;
        entry
    }

    fn run(&self, event: &str, status: Status, notes: String) -> Vec<Entry> {
        vec![noted(self.entry(NONE, NONE, NONE, event, status), notes)]
    }

    fn lane(&self, path: &LanePath, event: &str, status: Status, notes: String) -> Vec<Entry> {
        vec![noted(self.entry(&path.phase, &path.lane, NONE, event, status), notes)]
    }

    fn task(&self, path: &StepPath, event: &str, status: Status, notes: String) -> Vec<Entry> {
        vec![noted(self.entry(&path.phase, &path.lane, &path.step, event, status), notes)]
    }

    fn gate(&self, gate: &GateRef, event: &str, status: Status, notes: String) -> Vec<Entry> {
        let (phase, lane) = gate.0.split_once('/').unwrap_or((&gate.0, NONE));
        vec![noted(self.entry(phase, lane, NONE, event, status), notes)]
    }

    fn entries(&self, event: &Event) -> Vec<Entry> {
        match event {
            Event::RunCreated(e) => self.created(e),
            Event::DriverAttached(e) if e.epoch <= 1 => Vec::new(),
            Event::DriverAttached(e) => {
                let how = if e.takeover { "taken over" } else { "driven" };
                self.run("resume", Status::Ok, format!("{how} by {} on {}", e.pid, e.host))
            }
            Event::DriverLeft(e) => self.left(e),
            Event::StepStarted(e) => {
                let word =
                    if self.roles.tests.contains(&e.step) { "test_start" } else { "task_start" };
                self.task(&e.step, word, Status::Ok, format!("attempt {}", e.attempt))
            }
            Event::StepFinished(e) => self.finished(e),
            Event::StepReset(e) => self.task(&e.step, "task_reset", Status::Ok, e.reason.clone()),
            Event::StepRetried(e) => {
                self.task(&e.step, "retry", Status::Ok, format!("asked for by {}", e.by))
            }
            Event::StepSkipped(e) => {
                let counts = if e.satisfy { ", counts as done" } else { "" };
                let notes = format!("by {}{counts}", e.by);
                self.task(&e.step, "task_skipped", Status::Skipped, notes)
            }
            Event::StepProven(e) if e.tree.is_empty() => {
                self.task(&e.step, "task_skipped", Status::Skipped, "not needed".to_owned())
            }
            Event::StepProven(e) => {
                let notes = format!("passed on the tree {} before", short(&e.tree));
                self.task(&e.step, "test_done", Status::Ok, notes)
            }
            Event::GateAsked(e) => {
                self.gate(&e.gate, "gate_asked", Status::Blocked, e.name.clone())
            }
            Event::GateDecided(e) => {
                let yes = ("gate_approved", Status::Ok);
                let (word, status) =
                    if e.approved { yes } else { ("gate_rejected", Status::Failed) };
                self.gate(&e.gate, word, status, joined_notes(&format!("by {}", e.by), &e.message))
            }
            Event::GateReopened(e) => {
                let notes = format!("by {}: {}", e.by, e.why);
                self.gate(&e.gate, "gate_reopened", Status::Blocked, notes)
            }
            Event::PlanAccepted(e) => self.run("plan_accepted", Status::Ok, e.title.clone()),
            Event::TicksSeen(e) if e.gates.is_empty() => {
                self.run("gates_opened", Status::Ok, e.gone.join(", "))
            }
            Event::TicksSeen(e) => {
                let word = if e.count { "gate_check" } else { "gates_doubted" };
                let status = if e.count { Status::Ok } else { Status::Blocked };
                self.run(word, status, format!("{}: {}", e.gates.join(", "), e.by))
            }
            Event::SpecAccepted(e) => self.run("spec_accepted", Status::Ok, format!("by {}", e.by)),
            Event::CheckpointRecorded(e) => {
                self.run("checkpoint", Status::Ok, joined_notes(&e.name, &e.message))
            }
            Event::BudgetExhausted(e) => {
                let notes = format!("{}: {} of {} used", e.budget, e.used, e.limit);
                self.run("budget_exhausted", Status::Blocked, notes)
            }
            Event::TimeSkipped(_) => Vec::new(),
            Event::RunAborted(e) => {
                let word = if e.cancel { "cancelled" } else { "aborted" };
                self.run(word, Status::Error, joined_notes(&format!("by {}", e.by), &e.message))
            }
            Event::RunArchived(e) => self.run("archived", Status::Ok, format!("by {}", e.by)),
            _ => self.of_lane(event),
        }
    }

    fn of_lane(&self, event: &Event) -> Vec<Entry> {
        match event {
            Event::LaneBegun(e) => {
                let base = e.base_sha.as_deref().map(short).unwrap_or_default();
                let from = format!("{} {base}", e.base_branch);
                let from = if from.trim().is_empty() { "" } else { &format!("from {from}") };
                self.lane(&e.lane, "lane_start", Status::Ok, joined_notes(from.trim_end(), &e.note))
            }
            Event::LaneBlocked(e) => {
                self.lane(&e.lane, "lane_blocked", Status::Blocked, e.refusal.to_string())
            }
            Event::LaneReady(e) => {
                let place = format!("{} on {}", e.dir, e.branch);
                self.lane(&e.lane, "worktree_ready", Status::Ok, joined_notes(&place, &e.note))
            }
            Event::LaneCommitted(e) => {
                let what = if e.changed { "" } else { ", nothing changed" };
                let notes = format!("{}{what}", short(&e.commit));
                let mut all = self.lane(&e.lane, "commit", Status::Ok, notes);
                if !e.tests.is_empty() {
                    let mut tests = self.lane(&e.lane, "test_done", Status::Ok, String::new());
                    tests[0].cmd = Some(joined(&e.tests));
                    tests[0].exit_code = Some(0);
                    all.splice(0..0, tests);
                }
                let ready = e.changed && !self.roles.tasks.contains_key(&e.lane);
                let ready = ready
                    .then(|| self.lane(&e.lane, "lane_ready_to_merge", Status::Ok, String::new()));
                all.extend(ready.into_iter().flatten());
                all
            }
            Event::LaneRebased(e) => {
                let notes = format!("{} onto {}", short(&e.commit), short(&e.onto));
                self.lane(&e.lane, "rebase", Status::Ok, notes)
            }
            Event::LaneReopened(e) => self.reopened(e),
            Event::MergeIntended(e) => {
                let notes = format!("{} {} -> {}", e.base_branch, short(&e.from), short(&e.to));
                self.lane(&e.lane, "merge_start", Status::Ok, notes)
            }
            Event::MergeMissed(e) => {
                let notes = format!("base moved to {} meanwhile", short(&e.found));
                self.lane(&e.lane, "merge_start", Status::Blocked, notes)
            }
            Event::LaneMerged(e) => self.merged(e),
            Event::PullRequestOpened(e) => {
                self.lane(&e.lane, "pull_request", Status::Ok, e.url.clone())
            }
            Event::LaneRemoved(e) => {
                let stays = if e.branch_stays { "its branch stays" } else { "" };
                self.lane(&e.lane, "worktree_removed", Status::Ok, stays.to_owned())
            }
            Event::LaneKept(e) => {
                self.lane(&e.lane, "worktree_kept", Status::Blocked, e.refusal.to_string())
            }
            Event::LaneForked(e) => {
                self.task(&e.step, "tasks_start", Status::Ok, format!("from {}", short(&e.commit)))
            }
            Event::LaneJoined(e) => self.task(&e.step, "tasks_complete", Status::Ok, String::new()),
            Event::LaneImported(e) => self.lane(&e.lane, "imported", Status::Ok, e.note.clone()),
            Event::RewindIntended(e) => self.rewinding(e),
            Event::Rewound(e) if e.reverted.is_empty() => {
                self.run("rewind_done", Status::Ok, String::new())
            }
            Event::Rewound(e) => self.run("rewind_done", Status::Failed, e.reverted.clone()),
            _ => Vec::new(),
        }
    }

    fn created(&self, event: &RunCreated) -> Vec<Entry> {
        let notes = format!("{} ({})", event.title, event.plan_path);
        match event.shape.phases.as_slice() {
            [only] => {
                vec![noted(self.entry(&only.id, NONE, NONE, "phase_start", Status::Ok), notes)]
            }
            _ => self.run("run_start", Status::Ok, notes),
        }
    }

    fn left(&self, event: &DriverLeft) -> Vec<Entry> {
        let signal = event.signal.map(|s| format!("signal {s}")).unwrap_or_default();
        let (word, status) = match event.verdict {
            Verdict::Complete => ("run_complete", Status::Ok),
            Verdict::SelectionDone => ("selection_complete", Status::Ok),
            Verdict::RolledBack => ("rolled_back", Status::Ok),
            Verdict::Failed => ("run_stopped", Status::Failed),
            Verdict::Waiting | Verdict::Blocked | Verdict::Budget => {
                ("run_stopped", Status::Blocked)
            }
            Verdict::Interrupted | Verdict::Aborted => ("run_stopped", Status::Error),
        };
        // Tools of the protocol know a finished phase by these.
        let of_phase = |event: &str, notes: &str| {
            let entry = |p: &String| self.entry(p, NONE, NONE, event, status.clone());
            let phases = self.roles.phases.iter();
            phases.map(|p| noted(entry(p), notes.to_owned())).collect::<Vec<Entry>>()
        };
        let mut all: Vec<Entry> = Vec::new();
        match event.verdict {
            Verdict::Complete => {
                all.extend(of_phase("phase_done", ""));
                all.extend(of_phase("phase_chain_signal", "the next phase may start"));
            }
            Verdict::Failed | Verdict::Blocked => {
                all.extend(of_phase("phase_chain_signal", "the next phase must wait"));
            }
            _ => {}
        }
        all.extend(self.run(word, status, signal));
        all
    }

    fn finished(&self, event: &StepFinished) -> Vec<Entry> {
        let step = &event.step;
        let is_test = self.roles.tests.contains(step);
        let mut all = match &event.outcome {
            Outcome::Succeeded if is_test => {
                self.task(step, self.tested(step), Status::Ok, String::new())
            }
            Outcome::Succeeded => {
                let mut notes = event.facts.notes.clone();
                if !event.outside.is_empty() {
                    notes.push(format!("changed outside its scope: {}", event.outside.join(", ")));
                }
                self.task(step, "task_done", Status::Ok, notes.join("; "))
            }
            Outcome::Failed { class, error, next, .. } => {
                let word = match class {
                    Class::Test => self.tested(step),
                    Class::PullRequest => "pull_request",
                    _ => "task_failed",
                };
                let waits = matches!(next, Next::Wait { .. });
                let status = if waits { Status::Blocked } else { Status::Failed };
                let mut all = self.task(step, word, status, error.clone());
                if matches!(next, Next::Retry { .. }) {
                    let notes = format!("attempt {} failed", event.attempt);
                    all.extend(self.task(step, "retry", Status::Ok, notes));
                }
                all
            }
            Outcome::Interrupted { why } => {
                self.task(step, "task_failed", Status::Error, why.clone())
            }
        };
        if let Some(first) = all.first_mut() {
            let tests = || Some(joined(&event.tests)).filter(|tests| !tests.is_empty());
            first.cmd = event.command.clone().or_else(tests);
            first.exit_code = event.exit_code.map(i64::from);
        }
        all
    }

    fn reopened(&self, event: &LaneReopened) -> Vec<Entry> {
        let word = if event.class == Class::Test { "test_done" } else { "merge_done" };
        let mut all = self.lane(&event.lane, word, Status::Failed, event.error.clone());
        all.extend(self.task(&event.step, "retry", Status::Ok, "the lane continues".to_owned()));
        all
    }

    fn merged(&self, event: &LaneMerged) -> Vec<Entry> {
        let (status, how) = match event.by {
            MergedBy::Queue => (Status::Ok, ""),
            MergedBy::PullRequest => (Status::Ok, "through its pull request"),
            MergedBy::Nothing => (Status::Skipped, "there was nothing to merge"),
            MergedBy::Kept => (Status::Skipped, "it stays on its branch"),
        };
        let moved = event.from.as_deref().zip(event.to.as_deref());
        let moved = moved.map(|(from, to)| format!("{} -> {}", short(from), short(to)));
        let notes = joined_notes(how, &joined_notes(&moved.unwrap_or_default(), &event.note));
        self.lane(&event.lane, "merge_done", status, notes)
    }

    /// The word for tests that ended: those after the last merge have their own.
    fn tested(&self, step: &StepPath) -> &'static str {
        let validates = self.roles.validations.contains(&step.lane());
        if validates { "cross_lane_validation" } else { "test_done" }
    }

    fn rewinding(&self, event: &RewindIntended) -> Vec<Entry> {
        let word = Act::from(event.kind).as_str();
        let notes = format!("to {}, by {}", event.to, event.by);
        let notes = joined_notes(&notes, &event.leaving().unwrap_or_default());
        if event.lanes.is_empty() {
            return self.run(word, Status::Ok, notes);
        }
        let of = |lane| self.lane(lane, word, Status::Ok, notes.clone());
        event.lanes.iter().flat_map(of).collect()
    }
}

fn noted(mut entry: Entry, notes: String) -> Entry {
    entry.notes = Some(notes).filter(|notes| !notes.is_empty());
    entry
}

/// Joins two texts, either of which may be empty.
fn joined_notes(first: &str, second: &str) -> String {
    let both = [first, second].map(str::trim);
    both.iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use piton_core::event::TicksSeen;

    use super::*;

    /// The lines of an event of a run with one phase, as `PHASE EVENT STATUS NOTES`.
    fn said(event: &Event) -> Vec<String> {
        let roles = Roles { phases: BTreeSet::from(["P1".to_owned()]), ..Roles::default() };
        let text = lines("r", Timestamp::default(), &roles, event);
        let shown = |entry: &Entry| {
            let notes = entry.notes.as_deref().unwrap_or_default();
            let line = format!("{} {} {}", entry.phase, entry.event, entry.status.as_str());
            format!("{line} {notes}").trim_end().to_owned()
        };
        run_log::read("r.jsonl", &text).0.iter().map(shown).collect()
    }

    fn left(verdict: Verdict) -> Vec<String> {
        let (head, signal, driven_until) = (None, None, None);
        said(&Event::DriverLeft(DriverLeft { verdict, head, signal, driven_until }))
    }

    /// Lost: tools of the protocol would begin the next phase too early, or never.
    #[test]
    fn a_phase_is_done_and_lets_the_next_one_start_when_its_run_is_complete() {
        assert_eq!(
            left(Verdict::Complete),
            [
                "P1 phase_done ok",
                "P1 phase_chain_signal ok the next phase may start",
                "- run_complete ok",
            ]
        );
        for (verdict, status) in [(Verdict::Failed, "failed"), (Verdict::Blocked, "blocked")] {
            let waits = format!("P1 phase_chain_signal {status} the next phase must wait");
            assert_eq!(left(verdict), [waits, format!("- run_stopped {status}")]);
        }
        // Whoever goes on with the run says more of the phase.
        for verdict in [Verdict::SelectionDone, Verdict::Waiting, Verdict::Interrupted] {
            let said = left(verdict);
            assert!(said.iter().all(|line| line.starts_with("- ")), "{said:?}");
        }
    }

    /// Lost: the log would not tell when a gate that lanes wait for was taken for closed.
    #[test]
    fn a_tick_that_counts_is_a_gate_check() {
        let seen = |count: bool| {
            let (gates, by) = (vec!["IF-0-P1-A".to_owned()], "Ann".to_owned());
            let (document, gone) = (None, Vec::new());
            said(&Event::TicksSeen(Box::new(TicksSeen { gates, count, by, document, gone })))
        };
        assert_eq!(seen(true), ["- gate_check ok IF-0-P1-A: Ann"]);
        assert_eq!(seen(false), ["- gates_doubted blocked IF-0-P1-A: Ann"]);
    }
}

//! What one driver did, printed at its end: what ran, retried and stopped, and what to type next.
//!
//! [`Tally`] only counts events; it decides nothing and prints nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use piton_core::decide::agents::used_by_now;
use piton_core::event::{BudgetExhausted, MergedBy, Outcome, StepStarted, Verdict};
use piton_core::lane::Role;
use piton_core::refusal::Refusal;
use piton_core::state::Progress;
use piton_core::text::first_few;
use piton_core::{Event, LanePath, Millis, RunState, Status, StepPath, Timestamp};
use piton_engine::{Note, Observer};
use piton_protocols::Blocker;

use crate::course::Course;
use crate::decision::Decision;
use crate::lane::Blocked;
use crate::layout::{Layout, STRONG, style_of};
use crate::run::{Again, RunView};
use crate::shape::shapes;
use crate::text::{count, sanitize, wrap};
use crate::words;

/// Most steps that a summary names per kind; `piton status` names them all.
const NAMED_MAX: usize = 10;

/// Counts what happens while a driver works.
#[derive(Debug, Default)]
pub struct Tally {
    /// Whether nothing is said of what to type next.
    pub no_next: bool,
    began_at: Option<Timestamp>,
    last_at: Timestamp,
    /// Steps of which an attempt was started or ended.
    ran: BTreeSet<StepPath>,
    /// Steps that were settled meanwhile without an attempt: proven by another, or joined.
    settled: BTreeSet<StepPath>,
    retried: usize,
    /// Tests of lanes whose last attempt succeeded.
    passed: BTreeSet<StepPath>,
    interrupted: usize,
    replans: usize,
    redone: Vec<(StepPath, String)>,
    /// The budget that was used up meanwhile, be it by the last step.
    exhausted: Option<BudgetExhausted>,
    /// What the run met, as far as it was watched or read.
    pub course: Course,
}

impl Tally {
    /// How many steps were finished before and stayed so.
    fn finished_before(&self, state: &RunState) -> usize {
        let touched = |step: &StepPath| self.ran.contains(step) || self.settled.contains(step);
        let done = state.steps().filter(|(_, s)| s.progress == Progress::Done);
        done.filter(|(path, _)| !touched(path)).count()
    }

    /// An attempt starts: the first, a retry, or one for a reason of its own.
    fn started(&mut self, e: &StepStarted, reason: Option<&str>) {
        let is_known = !self.ran.insert(e.step.clone());
        // Tests that passed run again on a base that moved: nothing is tried again.
        let passed = self.passed.remove(&e.step);
        match reason {
            Some(reason) if !is_known => self.redone.push((e.step.clone(), reason.to_owned())),
            _ if e.attempt > 1 && !passed => self.retried += 1,
            _ => {}
        }
    }

    /// What the driver did, now that it leaves; `logs` is the folder of the run's logs.
    pub fn summary<'a>(
        &'a self,
        view: &'a RunView<'a>,
        verdict: Verdict,
        logs: &'a Path,
    ) -> Summary<'a> {
        let again = |(step, reason): &'a (StepPath, String)| Again { step: step.clone(), reason };
        let next = if self.no_next { Vec::new() } else { view.next_typed(verdict) };
        Summary {
            run_id: view.run_id,
            verdict,
            took_ms: self.last_at.since(self.began_at.unwrap_or(self.last_at)),
            steps_run: self.ran.len(),
            finished_before: self.finished_before(view.state),
            retried: self.retried,
            interrupted: self.interrupted,
            replans: self.replans,
            skipped: view.skipped(),
            redone: self.redone.iter().map(again).collect(),
            failed: view
                .failed()
                .map(|(step, s)| Failed {
                    step,
                    exit_code: s.exit_code,
                    error: s.failure_context.last().map(|f| f.error.as_str()),
                    why: words::why_failed(s),
                })
                .collect(),
            blocked: view
                .lanes()
                .filter_map(|l| {
                    Some(BlockedLane { lane: &l.path, blocked: l.work.blocked.clone()? })
                })
                .collect(),
            fix_tasks: &view.fix_tasks,
            logs,
            next,
            decide: Vec::new(),
            title: words::verdict(verdict, view),
            status: status_of(view.state, verdict),
            log: view.failed().next().filter(|_| !self.no_next).map(|(step, _)| {
                view.place.piton(format_args!("log {} --step {step}", view.run_id))
            }),
            rejected: words::rejected(view.state),
            blocks: blocks(view, !self.no_next),
            exhausted: self.exhausted.clone().map(|budget| {
                let used = used_by_now(view.state, &budget);
                BudgetExhausted { used, ..budget }
            }),
            oddities: oddities(view.state),
            met: self.course.words(),
        }
    }
}

shapes! {
    /// What one driver did.
    Summary<'a> {
        run_id: &'a str, verdict: Verdict, took_ms: Millis, steps_run: usize,
        finished_before: usize, retried: usize, interrupted: usize, replans: usize,
        skipped: usize, redone: Vec<Again<'a>>, failed: Vec<Failed<'a>>,
        blocked: Vec<BlockedLane<'a>>, fix_tasks: &'a [Blocker], logs: &'a Path,
        next: Vec<String>,
        /// What is to be decided at open gates; people are shown it after this.
        #[serde(skip_serializing_if = "Vec::is_empty")] decide: Vec<Decision>,
        #[serde(skip)] title: (&'static str, String), #[serde(skip)] status: Status,
        #[serde(skip)] rejected: Vec<String>,
        /// What shows the output of the first step that failed.
        #[serde(skip)] log: Option<String>,
        /// Why lanes are blocked.
        #[serde(skip)] blocks: Vec<String>,
        #[serde(skip)] exhausted: Option<BudgetExhausted>,
        /// What a person should look at though nothing failed.
        #[serde(skip)] oddities: Vec<String>,
        /// What the run met on its way.
        #[serde(skip)] met: Option<String>,
    }

    /// A step that failed for good.
    Failed<'a> {
        step: StepPath, exit_code: Option<i32>, error: Option<&'a str>,
        #[serde(skip)] why: String,
    }

    /// A lane that needs you.
    BlockedLane<'a> { lane: &'a LanePath, #[serde(flatten)] blocked: Blocked<'a> }
}

/// Lanes that changed nothing, and files that steps changed outside of their scope.
pub(crate) fn oddities(state: &RunState) -> Vec<String> {
    let mut found = Vec::new();
    for (path, lane) in state.lanes() {
        let nothing = lane.work.as_ref().and_then(|work| work.merged());
        if nothing.is_some_and(|merged| merged.by == MergedBy::Nothing) {
            found.push(format!("changed nothing: {path}"));
        }
        for step in lane.steps.iter().filter(|step| !step.outside.is_empty()) {
            let files = first_few(step.outside.iter().cloned(), NAMED_MAX).unwrap_or_default();
            found.push(format!(
                "outside its scope: {path}/{} changed {}",
                step.id,
                sanitize(&files)
            ));
        }
    }
    found
}

impl Summary<'_> {
    /// For people.
    pub fn render(&self, layout: &Layout) -> String {
        let mut out = format!(
            "{} {} after {}{}\n",
            layout.paint(style_of(self.status), layout.symbol(self.status)),
            layout.paint(STRONG, &format!("run {} {}", self.run_id, self.title.0)),
            self.took_ms,
            words::detail(&self.title.1),
        );
        let mut line = |text: &str| {
            let _ = writeln!(out, "{}", wrap(&format!("  {text}"), layout.width, 4));
        };
        if let Some(counts) = self.counts() {
            line(&counts);
        }
        if let Some(met) = &self.met {
            line(met);
        }
        for Failed { step, why, .. } in self.failed.iter().take(NAMED_MAX) {
            line(&format!("failed: {step}: {why}"));
        }
        for words in self.rejected.iter().take(NAMED_MAX) {
            line(words);
        }
        if let Some(budget) = &self.exhausted {
            line(&words::budget(budget));
        }
        for words in self.blocks.iter().take(NAMED_MAX) {
            line(words);
        }
        for words in self.oddities.iter().take(NAMED_MAX) {
            line(words);
        }
        for task in self.fix_tasks {
            line(&format!("{} is {}", task.phase, sanitize(&task.words())));
        }
        // Commands are not wrapped: they are there to be copied.
        if let Some(command) = &self.log {
            let _ = writeln!(out, "  log:  {command}");
        }
        for (index, command) in self.next.iter().enumerate() {
            let label = if index == 0 { "next:" } else { "  or:" };
            let _ = writeln!(out, "  {label} {command}");
        }
        out
    }

    fn counts(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.steps_run > 0 {
            parts.push(format!("{} run", count(self.steps_run, "step")));
        }
        let mut part = |number: usize, words: &str| {
            if number > 0 {
                parts.push(format!("{number} {words}"));
            }
        };
        part(self.finished_before, "finished before");
        part(self.retried, if self.retried == 1 { "retry" } else { "retries" });
        part(self.redone.len(), "run again");
        part(self.interrupted, "interrupted");
        part(self.replans, if self.replans == 1 { "replan" } else { "replans" });
        part(self.skipped, "skipped");
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl Observer for Tally {
    fn event(&mut self, _seq: u64, at: Timestamp, event: &Event, state: &RunState) {
        self.began_at.get_or_insert(at);
        self.last_at = self.last_at.max(at);
        self.course.take(at, event);
        match event {
            Event::StepStarted(e) => {
                let reason = state.step(&e.step).and_then(|step| step.rerun.as_deref());
                self.started(e, reason);
            }
            Event::StepFinished(e) => {
                self.ran.insert(e.step.clone());
                // Work that succeeded is done again to resolve a conflict, and that is a retry.
                let is_test = state.step(&e.step).is_some_and(|step| step.role == Role::Tests);
                if is_test && matches!(e.outcome, Outcome::Succeeded) {
                    self.passed.insert(e.step.clone());
                }
                self.interrupted += usize::from(matches!(e.outcome, Outcome::Interrupted { .. }));
            }
            Event::ReplanBegun(_) => self.replans += 1,
            Event::BudgetExhausted(e) => self.exhausted = Some(e.clone()),
            Event::StepProven(e) => drop(self.settled.insert(e.step.clone())),
            Event::LaneJoined(e) => drop(self.settled.insert(e.step.clone())),
            _ => {}
        }
    }

    fn note(&mut self, _note: &Note) {}
}

/// Why lanes are blocked. What to do about the first is said by the next commands.
fn blocks(view: &RunView<'_>, has_next: bool) -> Vec<String> {
    let block = |(number, (lanes, refusal)): (usize, (Vec<&LanePath>, &Refusal))| {
        let names = first_few(lanes.iter().map(ToString::to_string), NAMED_MAX).unwrap_or_default();
        match number {
            0 if has_next => format!("blocked: {names}: {}", sanitize(&refusal.cause)),
            _ => format!("blocked: {names}: {}", view.place.refusal(refusal)),
        }
    };
    view.blocks().into_iter().enumerate().map(block).collect()
}

fn status_of(state: &RunState, verdict: Verdict) -> Status {
    match verdict {
        Verdict::Complete => Status::Complete,
        Verdict::SelectionDone => Status::Pending,
        Verdict::Failed => Status::Failed,
        Verdict::Waiting => Status::Waiting,
        Verdict::Blocked | Verdict::Budget => Status::Blocked,
        Verdict::Aborted => state.ended.unwrap_or(Status::Aborted),
        Verdict::RolledBack => Status::RolledBack,
        Verdict::Interrupted => Status::Interrupted,
    }
}

#[cfg(test)]
mod tests {
    use piton_core::event::{Class, Next};
    use piton_core::state::StepState;

    use super::*;
    use crate::fixture::{done, failed, finish, lane, start, state};
    use crate::place::Place;

    /// What the summary says, as people and as programs read it.
    fn told(tally: &Tally, state: &RunState) -> (String, serde_json::Value) {
        let place = Place::default();
        let view = RunView::by_driver(state, state.last_at, &place);
        let summary = tally.summary(&view, Verdict::Failed, Path::new("/s/logs"));
        (summary.render(&Layout::plain(80)), serde_json::to_value(&summary).unwrap_or_default())
    }

    fn failure(next: Next) -> Outcome {
        let (error, lines) = ("no".to_owned(), Vec::new());
        Outcome::Failed {
            class: Class::Command,
            error,
            lines,
            budget: None,
            signature: String::new(),
            next,
        }
    }

    /// Lost: a fresh run would claim to have found steps finished that it settled itself.
    #[test]
    fn what_was_settled_without_an_attempt_was_not_finished_before() {
        let mut state = state();
        state.phases[0].lanes[0] = lane("A", vec![done("fetch"), done("tests")]);
        let mut tally = Tally::default();
        let before = tally.finished_before(&state);
        let (step, tree) = (StepPath::new("P1", "A", "tests"), String::new());
        let proven =
            piton_core::event::StepProven { step, tree, definition: None, artifacts: Vec::new() };
        let event = Event::StepProven(proven);
        tally.event(1, Timestamp(1), &event, &state);
        assert_eq!(tally.finished_before(&state) + 1, before);
    }

    /// Lane A: fetch was finished before, build is redone, fails once and then for good.
    fn tallied() -> (Tally, RunState) {
        let mut state = state();
        state.phases[0].lanes[0] = lane("A", vec![done("fetch"), failed("build")]);
        state.phases[0].lanes[0].steps[1].rerun = Some("artifact b.txt is missing".to_owned());
        let mut tally = Tally::default();
        let events = [
            (1_000, start("build", 1)),
            (2_000, finish("build", failure(Next::Retry { at: Timestamp(2_000) }))),
            (2_000, start("build", 2)),
            (5_000, finish("build", failure(Next::Fail))),
        ];
        for (seq, (at, event)) in events.iter().enumerate() {
            tally.event(seq as u64, Timestamp(*at), event, &state);
        }
        (tally, state)
    }

    #[test]
    fn the_summary_tells_what_ran_and_what_to_do() {
        let (tally, state) = tallied();
        assert_eq!(
            told(&tally, &state).0,
            "✗ run r-1 failed after 4.0s\n\
             \x20 1 step run, 1 finished before, 1 retry, 1 run again\n\
             \x20 failed: P1/A/build: the linker said no\n\
             \x20 log:  piton log r-1 --step P1/A/build\n\
             \x20 next: fix this, then piton retry r-1\n"
        );
    }

    /// Lost: nobody would know who said no, or that the last step was dearer than it might be.
    #[test]
    fn a_no_and_a_budget_that_is_used_up_are_said() {
        let (mut tally, mut state) = tallied();
        for gate in state.gates.values_mut() {
            let (by, message) = ("ann".to_owned(), "not yet".to_owned());
            let no = piton_core::state::Decision { approved: false, by, message, at: Timestamp(0) };
            gate.decision = Some(no);
        }
        let budget = BudgetExhausted::of_run("tokens", 60, 50);
        tally.event(9, Timestamp(5_000), &Event::BudgetExhausted(budget), &state);
        let (said, _) = told(&tally, &state);
        assert!(
            said.contains("  rejected: gate \"Spec approval\" (P2) by ann: not yet\n"),
            "{said}"
        );
        assert!(said.contains("  budget tokens is used up (60 of 50)\n"), "{said}");
    }

    /// Lost: a lane whose tests passed again on a base that moved would look as if it had failed.
    #[test]
    fn tests_that_passed_and_run_again_are_no_retry() {
        let (mut state, mut tally) = (state(), Tally::default());
        let tests = StepState { role: Role::Tests, ..done("tests") };
        state.phases[0].lanes[0] = lane("A", vec![tests]);
        for attempt in 1..=3 {
            tally.event(1, Timestamp(1), &start("tests", attempt), &state);
            tally.event(1, Timestamp(1), &finish("tests", Outcome::Succeeded), &state);
        }
        assert_eq!(tally.retried, 0);
    }
}

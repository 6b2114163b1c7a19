//! What one driver did, told at its end: run, finished before, retried, redone and why, and what to
//! type next.
//!
//! [`Tally`] only counts events; it decides nothing and prints nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use piton_core::event::{BudgetExhausted, Class, Next, Outcome, StepFinished, Verdict};
use piton_core::state::Progress;
use piton_core::{Event, LanePath, Millis, RunState, Status, StepPath, Timestamp};
use piton_engine::{Note, Observer};
use piton_protocols::Blocker;

use crate::lane::Blocked;
use crate::look::{Look, STRONG, style_of};
use crate::run::{Again, RunView};
use crate::shape::shapes;
use crate::text::{count, sanitize, wrap};
use crate::words;

/// Most steps that a summary names per kind; `piton status` names them all.
const NAMED_MAX: usize = 10;

/// What the next attempt of a failed step will have been.
#[derive(Clone, Copy, Debug)]
enum Due {
    Retry,
    /// One after a wait for what passes by itself.
    Wait,
}

/// Counts what happens while a driver works.
#[derive(Debug, Default)]
pub struct Tally {
    /// Whether nothing is said of what to type next.
    pub no_way_on: bool,
    began_at: Option<Timestamp>,
    last_at: Timestamp,
    /// Steps of which an attempt was started or ended.
    ran: BTreeSet<StepPath>,
    /// Steps that were settled meanwhile without an attempt: proven by another, or joined.
    settled: BTreeSet<StepPath>,
    /// Steps that failed and are to be tried again.
    due: BTreeMap<StepPath, Due>,
    retried: usize,
    waited: usize,
    interrupted: usize,
    redone: Vec<(StepPath, String)>,
    /// The budget that was used up meanwhile, be it by the last step.
    exhausted: Option<BudgetExhausted>,
}

impl Tally {
    /// Steps that were finished before and stayed so, and the time they had taken.
    fn saved(&self, state: &RunState) -> (usize, Millis) {
        state
            .steps()
            .filter(|(path, s)| s.progress == Progress::Done && !self.touched(path))
            .fold((0, Millis(0)), |(n, time), (_, s)| (n + 1, Millis(time.0 + s.duration_ms.0)))
    }

    /// Whether this driver brought a step to where it is.
    fn touched(&self, step: &StepPath) -> bool {
        self.ran.contains(step) || self.settled.contains(step)
    }

    fn redo(&mut self, step: &StepPath, reason: &str) {
        if !self.redone.iter().any(|(known, _)| known == step) {
            self.redone.push((step.clone(), reason.to_owned()));
        }
    }

    fn finished(&mut self, e: &StepFinished) {
        self.ran.insert(e.step.clone());
        match &e.outcome {
            Outcome::Failed { next: Next::Retry { .. }, .. } => {
                self.due.insert(e.step.clone(), Due::Retry);
            }
            Outcome::Failed { next: Next::Wait { .. }, .. } => {
                self.due.insert(e.step.clone(), Due::Wait);
            }
            Outcome::Interrupted { .. } => self.interrupted += 1,
            _ => {}
        }
    }

    /// A step starts: a retry or a wait that was due is one now. A driver that leaves before has not
    /// seen it.
    fn started(&mut self, step: &StepPath) {
        self.ran.insert(step.clone());
        match self.due.remove(step) {
            Some(Due::Retry) => self.retried += 1,
            Some(Due::Wait) => self.waited += 1,
            None => {}
        }
    }

    /// What the driver before left to be tried again.
    fn attached(&mut self, state: &RunState) {
        let due = state.steps().filter_map(|(path, step)| match step.progress {
            Progress::Waiting { class: Class::Network | Class::RateLimit, .. } => {
                Some((path, Due::Wait))
            }
            Progress::Waiting { .. } => Some((path, Due::Retry)),
            _ => None,
        });
        self.due.extend(due);
    }

    /// What the driver did, now that it leaves; `logs` is the folder of the run's logs.
    pub fn summary<'a>(
        &'a self,
        view: &'a RunView<'a>,
        verdict: Verdict,
        logs: &'a Path,
    ) -> Summary<'a> {
        let (before, saved) = self.saved(view.state);
        let again = |(step, reason): &'a (StepPath, String)| Again { step: step.clone(), reason };
        let next = if self.no_way_on { Vec::new() } else { view.next_typed(verdict) };
        Summary {
            run_id: view.run_id,
            verdict,
            took_ms: self.last_at.since(self.began_at.unwrap_or(self.last_at)),
            steps_run: self.ran.len(),
            finished_before: before,
            saved_ms: saved,
            retried: self.retried,
            waited: self.waited,
            interrupted: self.interrupted,
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
                .filter_map(|l| Some(BlockedLane { lane: &l.path, blocked: l.work.blocked? }))
                .collect(),
            fix_tasks: &view.fix_tasks,
            logs,
            next,
            title: words::verdict(verdict, view),
            status: status_of(view.state, verdict),
            rejected: words::rejected(view.state),
            exhausted: self.exhausted.as_ref(),
        }
    }
}

shapes! {
    /// What one driver did.
    Summary<'a> {
        run_id: &'a str, verdict: Verdict, took_ms: Millis, steps_run: usize,
        finished_before: usize, saved_ms: Millis, retried: usize, waited: usize,
        interrupted: usize, skipped: usize, redone: Vec<Again<'a>>, failed: Vec<Failed<'a>>,
        blocked: Vec<BlockedLane<'a>>, fix_tasks: &'a [Blocker], logs: &'a Path,
        next: Vec<String>, #[serde(skip)] title: String, #[serde(skip)] status: Status,
        #[serde(skip)] rejected: Vec<String>,
        #[serde(skip)] exhausted: Option<&'a BudgetExhausted>,
    }

    /// A step that failed for good.
    Failed<'a> {
        step: StepPath, exit_code: Option<i32>, error: Option<&'a str>,
        #[serde(skip)] why: String,
    }

    /// A lane that can't go on before a person acts.
    BlockedLane<'a> { lane: &'a LanePath, #[serde(flatten)] blocked: Blocked<'a> }
}

impl Summary<'_> {
    /// For people.
    pub fn render(&self, look: &Look) -> String {
        let mut out = format!(
            "{} {} after {}\n",
            look.paint(style_of(self.status), look.symbol(self.status)),
            look.paint(STRONG, &format!("run {} {}", self.run_id, self.title)),
            self.took_ms
        );
        let mut line = |text: &str| {
            let _ = writeln!(out, "{}", wrap(&format!("  {text}"), look.width, 4));
        };
        line(&self.counts());
        for Failed { step, why, .. } in self.failed.iter().take(NAMED_MAX) {
            line(&format!("failed: {step}: {why}"));
        }
        for words in self.rejected.iter().take(NAMED_MAX) {
            line(words);
        }
        if let Some(budget) = self.exhausted {
            line(&words::budget(budget));
        }
        for BlockedLane { lane, blocked } in self.blocked.iter().take(NAMED_MAX) {
            line(&format!("{lane} is {blocked}"));
        }
        for task in self.fix_tasks {
            line(&format!("{} is {}", task.phase, sanitize(&task.words())));
        }
        for Again { step, reason } in self.redone.iter().take(NAMED_MAX) {
            line(&format!("redone: {step}: {}", sanitize(reason)));
        }
        if self.redone.len() > NAMED_MAX {
            line(&format!("redone: {} more", self.redone.len() - NAMED_MAX));
        }
        // Paths and commands are not wrapped: they are there to be copied.
        let _ = writeln!(out, "  logs: {}", sanitize(&self.logs.to_string_lossy()));
        for (index, command) in self.next.iter().enumerate() {
            let label = if index == 0 { "next:" } else { "  or:" };
            let _ = writeln!(out, "  {label} {command}");
        }
        out
    }

    fn counts(&self) -> String {
        let mut parts = vec![format!("{} run", count(self.steps_run, "step"))];
        let mut part = |number: usize, words: &str| {
            if number > 0 {
                parts.push(format!("{number} {words}"));
            }
        };
        let saved = format!("finished before (saved {})", self.saved_ms);
        part(self.finished_before, &saved);
        part(self.retried, if self.retried == 1 { "retry" } else { "retries" });
        part(self.waited, "waited out");
        part(self.redone.len(), "redone");
        part(self.interrupted, "interrupted");
        part(self.skipped, "skipped");
        parts.join(", ")
    }
}

impl Observer for Tally {
    fn event(&mut self, _seq: u64, at: Timestamp, event: &Event, state: &RunState) {
        self.began_at.get_or_insert(at);
        self.last_at = self.last_at.max(at);
        match event {
            Event::StepStarted(e) => {
                self.started(&e.step);
                if let Some(reason) = state.step(&e.step).and_then(|s| s.rerun.as_deref()) {
                    self.redo(&e.step, reason);
                }
            }
            Event::StepFinished(e) => self.finished(e),
            Event::DriverAttached(_) => self.attached(state),
            Event::BudgetExhausted(e) => self.exhausted = Some(e.clone()),
            Event::StepProven(e) => drop(self.settled.insert(e.step.clone())),
            Event::LaneJoined(e) => drop(self.settled.insert(e.step.clone())),
            _ => {}
        }
    }

    fn note(&mut self, _note: &Note) {}
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
    use super::*;
    use crate::fixture::{done, failed, finish, lane, start, state};
    use crate::place::Place;

    /// What the summary says, as people and as programs read it.
    fn told(tally: &Tally, state: &RunState) -> (String, serde_json::Value) {
        let place = Place::default();
        let view = RunView::by_driver(state, state.last_at, &place);
        let summary = tally.summary(&view, Verdict::Failed, Path::new("/s/logs"));
        (summary.render(&Look::plain(80)), serde_json::to_value(&summary).unwrap_or_default())
    }

    fn counts(tally: &Tally, state: &RunState) -> String {
        let (text, _) = told(tally, state);
        text.lines().nth(1).unwrap_or_default().trim().to_owned()
    }

    fn attach() -> Event {
        Event::DriverAttached(piton_core::event::DriverAttached {
            epoch: 2,
            pid: 1,
            host: "box".to_owned(),
            head: None,
            takeover: false,
            base: None,
            retries: None,
            seed_dirty: false,
            keep_going: false,
            driven_until: None,
        })
    }

    fn failure(next: Next) -> Outcome {
        Outcome::Failed { class: Class::Command, error: "no".to_owned(), lines: Vec::new(), next }
    }

    /// Lost: a fresh run would claim to have found steps finished that it settled itself.
    #[test]
    fn what_was_settled_without_an_attempt_was_not_finished_before() {
        let mut state = state();
        state.phases[0].lanes[0] = lane("A", vec![done("fetch"), done("tests")]);
        let mut tally = Tally::default();
        let before = tally.saved(&state).0;
        let (step, tree) = (StepPath::new("P1", "A", "tests"), String::new());
        let proven = piton_core::event::StepProven { step, tree, definition: None };
        let event = Event::StepProven(proven);
        tally.event(1, Timestamp(1), &event, &state);
        assert_eq!(tally.saved(&state).0 + 1, before);
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
    fn the_summary_tells_what_ran_what_was_saved_and_what_to_do() {
        let (tally, state) = tallied();
        assert_eq!(
            told(&tally, &state).0,
            "✗ run r-1 failed after 4.0s\n\
             \x20 1 step run, 1 finished before (saved 1m 05s), 1 retry, 1 redone\n\
             \x20 failed: P1/A/build: exit 7: the linker said no\n\
             \x20 redone: P1/A/build: artifact b.txt is missing\n\
             \x20 logs: /s/logs\n\
             \x20 next: piton retry r-1 P1/A/build && piton resume r-1\n\
             \x20   or: piton skip r-1 P1/A/build && piton resume r-1\n\
             \x20   or: piton abort r-1\n\
             \x20   or: piton log r-1 --step P1/A/build\n"
        );
    }

    /// Lost: a driver that was stopped at once would claim retries and waits that never were.
    #[test]
    fn only_what_happened_is_counted() {
        let at = Timestamp(9_000_000);
        for (next, class, words) in [
            (Next::Retry { at }, Class::Command, "1 step run, 1 retry"),
            (Next::Wait { until: at }, Class::RateLimit, "1 step run, 1 waited out"),
        ] {
            let mut state = state();
            state.phases[0].lanes[0] = lane("A", vec![failed("build")]);
            let mut first = Tally::default();
            first.event(1, Timestamp(1), &start("build", 1), &state);
            first.event(2, Timestamp(2), &finish("build", failure(next)), &state);
            assert_eq!(counts(&first, &state), "1 step run");
            // Whoever goes on tries again what the one before left.
            let waits = Progress::Waiting { since: Timestamp(2), until: at, class };
            state.phases[0].lanes[0].steps[0].progress = waits;
            let mut second = Tally::default();
            second.event(3, Timestamp(3), &attach(), &state);
            assert_eq!(counts(&second, &state), "0 steps run");
            second.event(4, at, &start("build", 2), &state);
            assert_eq!(counts(&second, &state), words);
        }
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
        let budget = BudgetExhausted { budget: "tokens".to_owned(), used: 60, limit: 50 };
        tally.event(9, Timestamp(5_000), &Event::BudgetExhausted(budget), &state);
        let (said, _) = told(&tally, &state);
        assert!(
            said.contains("  rejected: gate \"Spec approval\" (P2) by ann: not yet\n"),
            "{said}"
        );
        assert!(said.contains("  budget tokens is used up (60 of 50)\n"), "{said}");
    }

    #[test]
    fn programs_get_the_same_numbers() {
        let (tally, state) = tallied();
        let (_, summary) = told(&tally, &state);
        assert_eq!(summary["verdict"], "failed");
        assert_eq!(summary["finished_before"], 1);
        assert_eq!(summary["saved_ms"], 65_000);
        assert_eq!(summary["redone"][0]["step"], "P1/A/build");
        assert_eq!(summary["failed"][0]["exit_code"], 7);
    }
}

//! What one driver did, told at its end: run, finished before, retried, redone and why, and what to
//! type next.
//!
//! [`Tally`] only counts events; it decides nothing and prints nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use piton_core::event::{BudgetExhausted, Class, Next, Outcome, StepFinished, Verdict};
use piton_core::failure;
use piton_core::lane_state::LaneWork;
use piton_core::state::{Progress, StepState};
use piton_core::{Event, LanePath, Millis, RunState, Status, StepPath, Timestamp};
use piton_engine::{Note, Observer};
use piton_protocols::{TABLE, blockers};

use super::look::{Look, STRONG, style_of};
use super::text::{count, sanitize, wrap};
use super::{here, lane_words, words};

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

    /// The summary for people, on stderr; `logs` is the folder of the run's logs.
    pub fn render(&self, state: &RunState, verdict: Verdict, logs: &Path, look: &Look) -> String {
        let status = status_of(state, verdict);
        let took = self.last_at.since(self.began_at.unwrap_or(self.last_at));
        let mut out = format!(
            "{} {} after {took}\n",
            look.paint(style_of(status), look.symbol(status)),
            look.paint(
                STRONG,
                &format!("run {} {}", words::run_id(state), words::verdict_of(verdict, state))
            ),
        );
        let mut line = |text: &str| {
            let _ = writeln!(out, "{}", wrap(&format!("  {text}"), look.width, 4));
        };
        line(&self.counts(state));
        for (path, step) in failed(state).iter().take(NAMED_MAX) {
            line(&format!("failed: {path}: {}", why_failed(step)));
        }
        for words in words::rejected(state).iter().take(NAMED_MAX) {
            line(words);
        }
        if let Some(budget) = &self.exhausted {
            line(&words::budget(budget));
        }
        for (path, work) in held(state).into_iter().take(NAMED_MAX) {
            line(&format!("{path} is {}", lane_words::blocked(work).unwrap_or_default()));
        }
        for task in blockers(TABLE, state) {
            line(&format!("{} is {}", task.phase, sanitize(&task.words())));
        }
        for (step, reason) in self.redone.iter().take(NAMED_MAX) {
            line(&format!("redone: {step}: {}", sanitize(reason)));
        }
        if self.redone.len() > NAMED_MAX {
            line(&format!("redone: {} more", self.redone.len() - NAMED_MAX));
        }
        // Paths and commands are not wrapped: they are there to be copied.
        let _ = writeln!(out, "  logs: {}", sanitize(&logs.to_string_lossy()));
        let next = if self.no_way_on { Vec::new() } else { next_commands(state, verdict) };
        for (index, command) in next.iter().enumerate() {
            let label = if index == 0 { "next:" } else { "  or:" };
            let _ = writeln!(out, "  {label} {command}");
        }
        out
    }

    fn counts(&self, state: &RunState) -> String {
        let (before, saved) = self.saved(state);
        let mut parts = vec![format!("{} run", count(self.ran.len(), "step"))];
        let mut part = |number: usize, words: String| {
            if number > 0 {
                parts.push(words);
            }
        };
        part(before, format!("{before} finished before (saved {saved})"));
        let noun = if self.retried == 1 { "retry" } else { "retries" };
        part(self.retried, format!("{} {noun}", self.retried));
        part(self.waited, format!("{} waited out", self.waited));
        part(self.redone.len(), format!("{} redone", self.redone.len()));
        part(self.interrupted, format!("{} interrupted", self.interrupted));
        let skipped = skipped(state);
        part(skipped, format!("{skipped} skipped"));
        parts.join(", ")
    }

    /// The summary for programs.
    pub fn summary_json(
        &self,
        state: &RunState,
        verdict: Verdict,
        logs: &Path,
    ) -> serde_json::Value {
        let (before, saved) = self.saved(state);
        let redone: Vec<_> = self
            .redone
            .iter()
            .map(|(step, reason)| serde_json::json!({ "step": step, "reason": reason }))
            .collect();
        let failed: Vec<_> = failed(state)
            .iter()
            .map(|(step, s)| {
                let error = s.failure_context.last().map(|f| f.error.as_str());
                serde_json::json!({ "step": step, "exit_code": s.exit_code, "error": error })
            })
            .collect();
        serde_json::json!({ "summary": {
            "run_id": state.run_id,
            "verdict": verdict,
            "took_ms": self.last_at.since(self.began_at.unwrap_or(self.last_at)),
            "steps_run": self.ran.len(),
            "finished_before": before,
            "saved_ms": saved,
            "retried": self.retried,
            "waited": self.waited,
            "interrupted": self.interrupted,
            "skipped": skipped(state),
            "redone": redone,
            "failed": failed,
            "blocked": held(state).iter().map(|(path, work)| {
                let (why, fix) = work.blocked.clone().unwrap_or_default();
                serde_json::json!({ "lane": path, "why": why, "fix": fix })
            }).collect::<Vec<_>>(),
            "fix_tasks": blockers(TABLE, state),
            "logs": logs.to_string_lossy(),
            "next": next_commands(state, verdict),
        }})
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

/// How many steps were left out.
pub fn skipped(state: &RunState) -> usize {
    state.steps().filter(|(_, s)| matches!(s.progress, Progress::Skipped { .. })).count()
}

/// Lanes that can't go on before a person acts.
fn held(state: &RunState) -> Vec<(LanePath, &LaneWork)> {
    let works = state.lanes().filter_map(|(path, lane)| Some((path, lane.work.as_deref()?)));
    works.filter(|(_, work)| work.blocked.is_some()).collect()
}

fn failed(state: &RunState) -> Vec<(StepPath, &StepState)> {
    state.steps().filter(|(_, s)| s.progress == Progress::Failed).collect()
}

/// Why a step failed last, in words.
pub fn why_failed(step: &StepState) -> String {
    match step.failure_context.last() {
        Some(f) => words::failure(f.class, step.exit_code, &f.error),
        None => step.exit_code.map_or_else(|| "failed".to_owned(), |code| format!("exit {code}")),
    }
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

/// What to type next after a driver left, the likeliest first.
pub fn next_commands(state: &RunState, verdict: Verdict) -> Vec<String> {
    let commands = commands_after(state, verdict);
    commands.iter().map(|command| here::told(command).into_owned()).collect()
}

fn commands_after(state: &RunState, verdict: Verdict) -> Vec<String> {
    let run = words::run_id(state);
    let resume = format!("piton resume {run}");
    match verdict {
        Verdict::Complete => vec![format!("piton show {run}")],
        Verdict::Waiting => {
            let gates = state.open_gates().map(|(gate, _)| gate);
            // Approving is not running: the two belong together.
            let approve = gates.map(|gate| format!("piton approve {run} {gate} && {resume}"));
            let all: Vec<String> = approve.take(NAMED_MAX).collect();
            if all.is_empty() { vec![resume] } else { all }
        }
        Verdict::Failed => after_failure(state, run, &resume),
        Verdict::Blocked => {
            let skipped = words::holding(state).into_iter().next();
            let mut all: Vec<String> = skipped
                .map(|path| format!("piton skip {run} {path} --satisfy && {resume}"))
                .into_iter()
                .collect();
            if let Some((_, work)) = held(state).first() {
                let (_, fix) = work.blocked.clone().unwrap_or_default();
                all.extend(after_block(&sanitize(&fix), &resume));
            }
            all.push(format!("piton status {run}"));
            all
        }
        Verdict::Budget => {
            let budget = state.exhausted.as_deref().unwrap_or("the budget");
            vec![format!("raise `{}` in the plan, then {resume}", sanitize(budget))]
        }
        Verdict::Aborted if state.ended.is_some_and(Status::is_final) => {
            vec![format!("piton show {run}")]
        }
        Verdict::RolledBack => {
            let undo = format!("piton undo {run}");
            let goes_on = state.lanes().filter_map(|(_, lane)| lane.work.as_deref());
            // What came back may be a failure, which a resume alone only meets again.
            if failed(state).is_empty() || goes_on.into_iter().any(|w| w.rolled_back.is_some()) {
                return vec![resume, undo];
            }
            let mut all = after_failure(state, run, &resume);
            all.insert(1, undo);
            all
        }
        Verdict::Interrupted | Verdict::SelectionDone | Verdict::Aborted => vec![resume],
    }
}

/// What to do about a block, then the command: alone, that would only meet the block again.
fn after_block(fix: &str, resume: &str) -> Vec<String> {
    const SEED: &str = "--seed-dirty";
    let asked = ["then `piton resume`", "then resume"];
    let first = match asked.iter().find_map(|end| fix.strip_suffix(end)).map(str::trim_end) {
        Some("") => format!("put that right, then {resume}"),
        Some(first) => format!("{first} then {resume}"),
        None if fix.is_empty() => resume.to_owned(),
        None if fix.contains("resume") => fix.to_owned(),
        None => format!("{fix}; then {resume}"),
    };
    let seeded = fix.contains(SEED).then(|| format!("{resume} {SEED}"));
    std::iter::once(first).chain(seeded).collect()
}

fn after_failure(state: &RunState, run: &str, resume: &str) -> Vec<String> {
    let failed = failed(state);
    let Some((path, _)) = failed.first() else {
        // A failed run without a failed step: a gate was rejected.
        let rejected = state.gates.keys().find(|gate| state.rejected(gate));
        let approve = rejected.map(|gate| format!("piton approve {run} {gate} && {resume}"));
        return approve.into_iter().chain([format!("piton abort {run}")]).collect();
    };
    let retry = if failed.len() == 1 {
        format!("piton retry {run} {path} && {resume}")
    } else {
        // Without a step all that failed are meant.
        format!("piton retry {run} && {resume}")
    };
    let spent = failed.iter().any(|(_, step)| failure::is_ended_by_attempts(step));
    vec![
        if spent {
            format!("raise `{}` in the plan, then {retry}", failure::ATTEMPTS)
        } else {
            retry
        },
        format!("piton skip {run} {path} && {resume}"),
        format!("piton abort {run}"),
        format!("piton log {run} --step {path}"),
    ]
}

#[cfg(test)]
mod tests {
    use piton_core::event::StepStarted;
    use piton_core::hash::Sha;

    use super::super::fixture::{done, failed, lane, state};
    use super::*;

    fn start(step: &str, attempt: u32) -> Event {
        Event::StepStarted(StepStarted {
            step: StepPath::new("P1", "A", step),
            attempt,
            definition: Sha("d".to_owned()),
            inputs: Vec::new(),
            before: None,
            tests_only: false,
            secrets: Vec::new(),
        })
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

    fn finish(step: &str, outcome: Outcome) -> Event {
        Event::StepFinished(Box::new(StepFinished {
            step: StepPath::new("P1", "A", step),
            attempt: 1,
            outcome,
            exit_code: Some(1),
            signal: None,
            duration_ms: Millis(10),
            logs: piton_core::event::LogRanges::default(),
            artifacts: Vec::new(),
            inputs: None,
            facts: piton_core::event::Facts::default(),
            after: None,
            tests: Vec::new(),
            stirred: false,
            command: None,
            retries_max: None,
        }))
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
            tally.render(&state, Verdict::Failed, Path::new("/s/logs"), &Look::plain(80)),
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
            assert_eq!(first.counts(&state), "1 step run");
            // Whoever goes on tries again what the one before left.
            let waits = Progress::Waiting { since: Timestamp(2), until: at, class };
            state.phases[0].lanes[0].steps[0].progress = waits;
            let mut second = Tally::default();
            second.event(3, Timestamp(3), &attach(), &state);
            assert_eq!(second.counts(&state), "0 steps run");
            second.event(4, at, &start("build", 2), &state);
            assert_eq!(second.counts(&state), words);
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
        let said = tally.render(&state, Verdict::Failed, Path::new("/s/logs"), &Look::plain(80));
        assert!(
            said.contains("  rejected: gate \"Spec approval\" (P2) by ann: not yet\n"),
            "{said}"
        );
        assert!(said.contains("  budget tokens is used up (60 of 50)\n"), "{said}");
    }

    #[test]
    fn programs_get_the_same_numbers() {
        let (tally, state) = tallied();
        let value = tally.summary_json(&state, Verdict::Failed, Path::new("/s/logs"));
        let summary = &value["summary"];
        assert_eq!(summary["verdict"], "failed");
        assert_eq!(summary["finished_before"], 1);
        assert_eq!(summary["saved_ms"], 65_000);
        assert_eq!(summary["redone"][0]["step"], "P1/A/build");
        assert_eq!(summary["failed"][0]["exit_code"], 7);
    }

    /// Lost: the command that is to be typed next would meet the same block, again and again.
    #[test]
    fn a_block_is_put_right_before_the_run_goes_on() {
        let after = |fix: &str| after_block(fix, "piton resume r");
        let dirty = "commit them, or start from them with --seed-dirty";
        let first = format!("{dirty}; then piton resume r");
        assert_eq!(after(dirty), [first.as_str(), "piton resume r --seed-dirty"]);
        assert_eq!(after("mend it, then `piton resume`"), ["mend it, then piton resume r"]);
        assert_eq!(after("then `piton resume`"), ["put that right, then piton resume r"]);
        assert_eq!(after("resume when base is quiet"), ["resume when base is quiet"]);
        assert_eq!(after(""), ["piton resume r"]);
    }

    #[test]
    fn the_next_command_follows_the_verdict() {
        let first = |state: &RunState, verdict| next_commands(state, verdict).remove(0);
        let mut state = state();
        assert_eq!(first(&state, Verdict::Waiting), "piton approve r-1 P2 && piton resume r-1");
        let mut two = state.clone();
        let gates = state.gates.values().cloned();
        two.gates.extend(gates.map(|gate| (piton_core::GateRef("P1".to_owned()), gate)));
        assert_eq!(first(&two, Verdict::Waiting), "piton approve r-1 P1 && piton resume r-1");
        assert_eq!(first(&state, Verdict::Interrupted), "piton resume r-1");
        assert_eq!(first(&state, Verdict::Complete), "piton show r-1");
        state.exhausted = Some("tokens".to_owned());
        assert!(first(&state, Verdict::Budget).starts_with("raise `tokens` in the plan"));
        state.phases[0].lanes[1].steps[0].progress = Progress::Skipped { satisfy: false };
        assert_eq!(
            first(&state, Verdict::Blocked),
            "piton skip r-1 P1/B/work --satisfy && piton resume r-1"
        );
        for gate in state.gates.values_mut() {
            gate.decision = Some(piton_core::state::Decision {
                approved: false,
                by: "ann".to_owned(),
                message: String::new(),
                at: Timestamp(0),
            });
        }
        assert_eq!(first(&state, Verdict::Failed), "piton approve r-1 P2 && piton resume r-1");
        state.ended = Some(Status::Cancelled);
        assert_eq!(first(&state, Verdict::Aborted), "piton show r-1");
    }
}

//! Which event may follow which state, and what it changes.

mod support;

use piton_core::event::{
    Class, DriverAttached, DriverLeft, Event, GateAsked, GateDecided, Next, Outcome, PlanAccepted,
    RunAborted, RunArchived, Shape, StepReset, StepRetried, StepSkipped, Verdict,
};
use piton_core::state::{FAILURES_KEPT_MAX, Progress};
use piton_core::{GateRef, Illegal, Millis, Plan, RunState, Status, Timestamp, apply};
use piton_testkit::plans;
use support::{Run, attached, created, failed, finished, interrupted, path, started};

const STEP: &str = "P/A/one";

fn plan() -> Plan {
    plans::plan(vec![plans::phase("P", vec![plans::lane_of("A", &["one", "two"])])])
}

/// A run whose first step is in each of the states there are.
fn in_every_state() -> Vec<(&'static str, Run)> {
    let make = |change: &dyn Fn(&mut Run)| {
        let mut run = Run::new(plan());
        change(&mut run);
        run
    };
    let later = Timestamp(9_000_000);
    vec![
        ("pending", make(&|_| {})),
        ("running", make(&|run| _ = run.start(STEP, vec![]))),
        (
            "retrying",
            make(&|run| run.attempt(STEP, failed(Class::Command, Next::Retry { at: later }))),
        ),
        (
            "parked",
            make(&|run| run.attempt(STEP, failed(Class::RateLimit, Next::Wait { until: later }))),
        ),
        ("failed", make(&|run| run.attempt(STEP, failed(Class::Test, Next::Fail)))),
        ("complete", make(&|run| run.done(STEP))),
        ("skipped", make(&|run| run.take(skipped()))),
    ]
}

fn skipped() -> Event {
    Event::StepSkipped(StepSkipped { step: path(STEP), satisfy: false, by: "ada".to_owned() })
}

#[test]
fn each_event_is_legal_in_exactly_these_states() {
    type Make = fn(&Run) -> Event;
    let table: [(&str, Make, &[&str]); 5] = [
        (
            "start",
            |run| started(&run.plan, STEP, attempts(run) + 1, vec![]),
            &["pending", "retrying", "parked"],
        ),
        ("finish", |run| finished(STEP, attempts(run), Outcome::Succeeded, vec![]), &["running"]),
        (
            "reset",
            |_| Event::StepReset(StepReset { step: path(STEP), reason: "why".to_owned() }),
            &["pending", "retrying", "parked", "failed", "complete", "skipped"],
        ),
        (
            "retry",
            |_| Event::StepRetried(StepRetried { step: path(STEP), by: "ada".to_owned() }),
            &["pending", "retrying", "parked", "failed", "skipped"],
        ),
        ("skip", |_| skipped(), &["pending", "retrying", "parked", "failed", "skipped"]),
    ];
    for (verb, make, legal) in table {
        for (name, mut run) in in_every_state() {
            assert_eq!(run.state.step(&path(STEP)).map(|s| s.status().as_str()), Some(name));
            let before = run.state.clone();
            let event = make(&run);
            let result = run.apply(event);
            assert_eq!(result.is_ok(), legal.contains(&name), "{verb} when {name}: {result:?}");
            if result.is_err() {
                assert_eq!(run.state, before, "{verb} when {name} changed something");
                assert!(matches!(result, Err(Illegal::Step { .. })), "{verb} when {name}");
            }
        }
    }
}

fn attempts(run: &Run) -> u32 {
    run.state.step(&path(STEP)).map_or(0, |s| s.attempts)
}

#[test]
fn attempts_are_numbered_without_gaps_and_never_again() {
    let mut run = Run::new(plan());
    let start = |run: &mut Run, n| {
        let event = started(&run.plan, STEP, n, vec![]);
        run.apply(event)
    };
    let wrong = |expected, found| Err(Illegal::Attempt { step: path(STEP), expected, found });
    assert_eq!(start(&mut run, 2), wrong(1, 2));
    assert_eq!(start(&mut run, 0), wrong(1, 0));
    assert_eq!(start(&mut run, 1), Ok(()));
    let end = |run: &mut Run, n| run.apply(finished(STEP, n, interrupted(), vec![]));
    assert_eq!(end(&mut run, 2), wrong(1, 2));
    assert_eq!(end(&mut run, 1), Ok(()));
    assert_eq!(start(&mut run, 1), wrong(2, 1), "an interrupted attempt keeps its number");
    assert_eq!(start(&mut run, 2), Ok(()));
}

#[test]
fn a_run_begins_once_and_with_its_creation() {
    let mut state = RunState::default();
    assert_eq!(apply(&mut state, Timestamp(0), &attached(1)), Err(Illegal::NotCreated));
    let mut run = Run::new(plan());
    assert_eq!(run.apply(created(&plan())), Err(Illegal::CreatedTwice));
    assert_eq!(run.apply(attached(1)), Err(Illegal::Epoch { current: 1, found: 1 }));
    assert_eq!(run.apply(attached(5)), Ok(()));
    assert_eq!(run.apply(attached(4)), Err(Illegal::Epoch { current: 5, found: 4 }));
}

#[test]
fn what_is_not_in_the_plan_is_illegal() {
    let mut run = Run::new(plan());
    let event = started(&run.plan, "P/A/nine", 1, vec![]);
    assert_eq!(run.apply(event), Err(Illegal::NoStep(path("P/A/nine"))));
    let gate = GateRef("P".to_owned());
    let asked = Event::GateAsked(GateAsked { gate: gate.clone(), name: "Go".to_owned() });
    assert_eq!(run.apply(asked), Err(Illegal::NoGate(gate)));
}

#[test]
fn a_run_that_is_over_for_good_does_not_change() {
    let archived = Event::RunArchived(RunArchived { by: "ada".to_owned() });
    let aborted = |cancel| {
        Event::RunAborted(RunAborted { by: "ada".to_owned(), message: String::new(), cancel })
    };
    for (event, over) in [
        (archived, Some(Status::Archived)),
        (aborted(true), Some(Status::Cancelled)),
        (aborted(false), None),
    ] {
        let mut run = Run::new(plan());
        run.take(event);
        // One that was set aside can be brought back by whoever drives it again.
        let driven = over.filter(|status| *status != Status::Archived);
        let mut back = Run { state: run.state.clone(), ..Run::new(plan()) };
        let after = [run.apply(skipped()), back.apply(attached(2))];
        let refused = |over: Option<Status>| over.map_or(Ok(()), |s| Err(Illegal::Over(s)));
        assert_eq!(after, [over, driven].map(refused));
    }
}

#[test]
fn counters_follow_outcomes_and_a_grant_starts_them_over() {
    let mut run = Run::new(plan());
    let at = Timestamp(run.at.0 + 5_000);
    run.attempt(STEP, failed(Class::Command, Next::Retry { at }));
    run.attempt(STEP, failed(Class::Network, Next::Wait { until: at }));
    run.attempt(STEP, failed(Class::RateLimit, Next::Wait { until: at }));
    run.attempt(STEP, interrupted());
    let step = run.state.step(&path(STEP)).expect("it is there").clone();
    assert_eq!((step.attempts, step.failures, step.interruptions), (4, 1, 1));
    assert_eq!((step.network_waits, step.network_waited_ms), (1, Millis(5_000)));
    assert_eq!((step.rate_limit_waits, step.rate_limit_waited_ms), (1, Millis(5_000)));
    assert_eq!(step.failure_context.len(), 3, "an interruption is no failure to learn from");
    assert!(step.failure_text().starts_with("Attempt 1: exit code 1\n  oh\n"));
    run.attempt(STEP, failed(Class::Command, Next::Fail));
    run.take(Event::StepRetried(StepRetried { step: path(STEP), by: "ada".to_owned() }));
    let step = run.state.step(&path(STEP)).expect("it is there");
    assert_eq!((step.failures, step.network_waits, step.rate_limit_waits), (0, 0, 0));
    assert_eq!(step.attempts, 5, "numbers are never used twice");
    assert_eq!(step.failure_context.len(), 4, "the next attempt still reads of them");
    run.done(STEP);
    assert!(run.state.step(&path(STEP)).is_some_and(|s| s.failure_context.is_empty()));
}

/// Lost: test failures that are far apart have a phase planned again.
#[test]
fn only_test_failures_in_a_row_are_counted() {
    let mut run = Run::new(plan());
    let at = run.at;
    let count = |run: &Run| run.state.step(&path(STEP)).map(|step| step.tests_failed);
    let test = || failed(Class::Test, Next::Retry { at });
    run.attempt(STEP, test());
    run.attempt(STEP, test());
    assert_eq!(count(&run), Some(2));
    run.attempt(STEP, failed(Class::Command, Next::Retry { at }));
    assert_eq!(count(&run), Some(0), "another failure");
    run.attempt(STEP, test());
    run.done(STEP);
    assert_eq!(count(&run), Some(0), "a success");
    run.take(Event::StepReset(StepReset { step: path(STEP), reason: "asked".to_owned() }));
    run.attempt(STEP, test());
    assert_eq!(count(&run), Some(1));
}

#[test]
fn the_state_keeps_only_so_many_failures() {
    let mut run = Run::new(plan());
    for _ in 0..FAILURES_KEPT_MAX + 5 {
        let at = run.at;
        run.attempt(STEP, failed(Class::Command, Next::Retry { at }));
    }
    let step = run.state.step(&path(STEP)).expect("it is there");
    assert_eq!(step.failure_context.len(), FAILURES_KEPT_MAX);
    assert_eq!(step.failure_context.last().map(|f| f.attempt), Some(step.attempts));
}

#[test]
fn a_changed_plan_keeps_what_it_still_has() {
    let mut run = Run::new(plan());
    run.done("P/A/one");
    run.done("P/A/two");
    let new = plans::plan(vec![plans::phase("P", vec![plans::lane_of("A", &["one", "three"])])]);
    run.take(Event::PlanAccepted(Box::new(PlanAccepted {
        from: run.plan.hash(),
        to: new.hash(),
        title: "New".to_owned(),
        shape: Shape::from(&new),
        by: String::new(),
    })));
    let known: Vec<_> =
        run.state.steps().map(|(p, s)| (p.step, s.progress == Progress::Done)).collect();
    assert_eq!(known, [("one".to_owned(), true), ("three".to_owned(), false)]);
    assert_eq!(run.state.plan_hash, Some(new.hash()));
}

#[test]
fn a_decision_stands_and_a_question_keeps_its_time() {
    let mut plan = plan();
    plan.phases[0].gate = Some("Go".to_owned());
    let mut run = Run::new(plan);
    let gate = GateRef("P".to_owned());
    let asked = Event::GateAsked(GateAsked { gate: gate.clone(), name: "Go".to_owned() });
    run.take(asked.clone());
    let first = run.at;
    run.at = run.at.after(Millis(500));
    run.take(asked);
    assert_eq!(run.state.gates[&gate].asked_at, first);
    run.take(Event::GateDecided(GateDecided {
        gate: gate.clone(),
        approved: true,
        by: "ada".to_owned(),
        at: None,
        message: "go".to_owned(),
        plan_hash: run.plan.hash(),
        artifacts: vec![],
    }));
    assert!(run.state.approved(&gate));
    assert_eq!(run.state.open_gates().count(), 0);
}

#[test]
fn only_time_with_a_driver_counts() {
    let mut run = Run::new(plan());
    run.at = run.at.after(Millis(100));
    run.start(STEP, vec![]);
    run.at = run.at.after(Millis(1_000));
    run.take(finished(STEP, 1, Outcome::Succeeded, vec![]));
    assert_eq!(run.state.used.driven_ms, Millis(1_100));
    assert_eq!(run.state.phases[0].driven_ms, Millis(1_000), "a phase counts while it works");
    // The driver falls here; a person acts an hour later, a new driver comes another hour later.
    run.at = run.at.after(Millis::from_secs(3600));
    run.take(Event::StepReset(StepReset { step: path(STEP), reason: "asked".to_owned() }));
    run.at = run.at.after(Millis::from_secs(3600));
    run.take(attached(2));
    run.at = run.at.after(Millis(10));
    let left =
        DriverLeft { verdict: Verdict::Waiting, head: None, signal: None, driven_until: None };
    run.take(Event::DriverLeft(left));
    assert_eq!(run.state.used.driven_ms, Millis(1_110));
}

/// Lost, a run is driven for days that count for no budget, where a clock that was wrong is put right.
#[test]
fn time_counts_on_where_the_clock_was_set_back() {
    let mut run = Run::new(plan());
    run.at = run.at.after(Millis(100));
    run.start(STEP, vec![]);
    run.at = Timestamp(run.at.0 - 900_000);
    run.take(finished(STEP, 1, Outcome::Succeeded, vec![]));
    run.at = run.at.after(Millis(1_000));
    let left =
        DriverLeft { verdict: Verdict::Waiting, head: None, signal: None, driven_until: None };
    run.take(Event::DriverLeft(left));
    assert_eq!(run.state.used.driven_ms, Millis(1_100));
}

/// Lost, a run whose driver is killed again and again would never reach its budget of time.
#[test]
fn the_time_of_a_driver_that_fell_counts_up_to_its_last_sign_of_life() {
    let mut run = Run::new(plan());
    run.start(STEP, vec![]);
    let begun = run.at;
    let mut attach = |epoch, until: u64, at: u64| {
        run.at = begun.after(Millis(at));
        let Event::DriverAttached(event) = attached(epoch) else { return Millis(0) };
        let driven_until = Some(begun.after(Millis(until)));
        run.take(Event::DriverAttached(DriverAttached { driven_until, ..event }));
        assert_eq!(run.state.phases[0].driven_ms, run.state.used.driven_ms);
        run.state.used.driven_ms
    };
    assert_eq!(attach(2, 4_000, 3_600_000), Millis(4_000));
    assert_eq!(attach(3, 3_605_000, 3_602_000), Millis(6_000), "not beyond now");
    assert_eq!(attach(4, 1_000, 3_700_000), Millis(6_000), "nothing counts twice");
    // Somebody else says that it fell, and the next driver comes hours later.
    run.at = begun.after(Millis(7_000_000));
    let until = Some(begun.after(Millis(3_702_000)));
    let (verdict, head, signal) = (Verdict::Interrupted, None, None);
    run.take(Event::DriverLeft(DriverLeft { verdict, head, signal, driven_until: until }));
    assert_eq!(run.state.used.driven_ms, Millis(8_000));
    run.at = begun.after(Millis(9_000_000));
    run.take(attached(5));
    assert_eq!(run.state.used.driven_ms, Millis(8_000));
}

//! What a person wants changed, what keeps failing alike, and outputs that were changed from outside.

mod support;

use piton_core::decide::Limits;
use piton_core::event::{
    Class, Comment, Event, GateAsked, Next, Outcome, OutputsAccepted, Review, Verdict,
};
use piton_core::failure;
use piton_core::request::{Refused, Request, turn};
use piton_core::state::{Progress, RunState};
use piton_core::{Action, GateRef, Plan, Status, decide};
use piton_testkit::plans;
use support::{Run, file, path};

const STEP: &str = "P1/A/one";

fn plan() -> Plan {
    let mut plan = plans::plan(vec![
        plans::phase(
            "P1",
            vec![plans::lane_of("A", &["one"]), plans::lane_of("B", &["one", "two"])],
        ),
        plans::phase("P2", vec![plans::lane_of("C", &["one"])]),
    ]);
    plan.phases[1].gate = Some("Go".to_owned());
    plan.phases[0].lanes[0].steps[0].escalation = Some("Stuck".to_owned());
    plan.phases[0].lanes[0].steps[0].retries = 5;
    plan
}

fn actions(run: &Run) -> Vec<Action> {
    decide(&run.plan, &run.state, &Limits { jobs: 4, ..Limits::default() }, run.at)
}

fn reviewed() -> Run {
    let mut run = Run::new(plan());
    for step in ["P1/A/one", "P1/B/one", "P1/B/two"] {
        run.done(step);
    }
    run.take(asked("P2", "Go"));
    run
}

fn asked(gate: &str, name: &str) -> Event {
    Event::GateAsked(GateAsked { gate: GateRef(gate.to_owned()), name: name.to_owned() })
}

fn changes(gate: &str) -> Request {
    let comment = Comment { path: "a.rs".to_owned(), line: 3, text: "name the unit".to_owned() };
    let review =
        Review { by: String::new(), message: "almost".to_owned(), comments: vec![comment] };
    Request::Changes { gate: gate.to_owned(), review }
}

fn decision(gate: &str, approved: bool, message: &str) -> Request {
    Request::Decide { gate: gate.to_owned(), approved, message: message.to_owned() }
}

fn carry_out(run: &mut Run, request: &Request) -> Result<(), Refused> {
    for event in turn(&run.state, request, "ada")? {
        run.take(event);
    }
    Ok(())
}

/// Fails the next attempt of a step as a driver would record it.
fn fail(run: &mut Run, line: &str) {
    let lines = vec![line.to_owned()];
    let (class, error) = (Class::Test, "the test failed: exit code 1".to_owned());
    let signature = failure::signature(class, &error, &lines);
    let attempt = run.start(STEP, Vec::new());
    let step = run.plan.step(&path(STEP)).expect("it is in the plan");
    let state = run.state.step(&path(STEP)).expect("it is in the state");
    let next = Next::Retry { at: run.at };
    let approved = run.state.approved(&GateRef(STEP.to_owned()));
    let escalates = failure::escalates(step, &run.plan.budgets, state, approved, &signature, next);
    let next = if escalates { Next::Escalate } else { next };
    let outcome = Outcome::Failed { class, error, lines, budget: None, signature, next };
    run.take(support::finished(STEP, attempt, outcome, Vec::new()));
}

fn progress(state: &RunState, step: &str) -> Progress {
    state.step(&path(step)).expect("it is in the state").progress
}

/// Lost: a reviewer can only say no, and the work starts over without knowing why.
#[test]
fn the_work_before_a_gate_runs_again_with_what_the_reviewer_said() {
    let mut run = reviewed();
    carry_out(&mut run, &changes("Go")).expect("nobody decided yet");
    for (step, wanted) in [
        ("P1/A/one", Progress::Pending),
        ("P1/B/one", Progress::Done),
        ("P1/B/two", Progress::Pending),
    ] {
        assert_eq!(progress(&run.state, step), wanted, "{step}");
    }
    let text = run.state.step(&path("P1/B/two")).expect("it is there").failure_text();
    assert_eq!(text, "Changes wanted by ada:\n  almost\n  a.rs:3: name the unit\n");
    assert_eq!(run.state.open_gates().count(), 0, "nobody is asked before it was done again");
    assert_eq!(run.state.reviews[&GateRef("P2".to_owned())].round, 1);

    run.done("P1/A/one");
    run.done("P1/B/two");
    let again = Action::Ask { gate: GateRef("P2".to_owned()), name: "Go".to_owned() };
    assert!(actions(&run).contains(&again), "the next question comes by itself");
    assert!(run.state.step(&path("P1/B/two")).expect("it is there").reviews.is_empty());
}

/// Lost: reviews without end, each with all retries.
#[test]
fn changes_count_in_the_budget_of_the_step() {
    let mut run = reviewed();
    carry_out(&mut run, &changes("Go")).expect("nobody decided yet");
    let step = run.state.step(&path(STEP)).expect("it is there");
    assert_eq!((step.retried, step.failures), (1, 1));
}

#[test]
fn changes_are_refused_where_nothing_can_be_done_again() {
    let mut run = Run::new(plan());
    let nothing = Refused::NothingBefore("Go".to_owned());
    assert_eq!(carry_out(&mut run, &changes("Go")), Err(nothing));
    let nothing = Refused::NothingBefore("Stuck".to_owned());
    assert_eq!(carry_out(&mut run, &changes("Stuck")), Err(nothing), "it is not stuck");
    let mut run = reviewed();
    carry_out(&mut run, &decision("Go", true, "")).expect("it is open");
    let decided = Refused::Decided("Go".to_owned(), "approved", "ada".to_owned());
    assert_eq!(carry_out(&mut run, &changes("Go")), Err(decided), "it may have had effects");
}

/// Lost: a step fails alike until its retries are gone, and nobody is asked.
#[test]
fn the_same_failure_three_times_asks_a_person() {
    let mut run = Run::new(plan());
    fail(&mut run, "41 ms: escapes quotes");
    fail(&mut run, "another failure");
    fail(&mut run, "7 ms: escapes quotes");
    assert!(matches!(progress(&run.state, STEP), Progress::Waiting { .. }), "twice is not enough");
    fail(&mut run, "9 ms: escapes quotes");
    assert_eq!(progress(&run.state, STEP), Progress::Escalated);
    let step = run.state.step(&path(STEP)).expect("it is there");
    let counts: Vec<u32> = step.clusters.iter().map(|c| c.count).collect();
    assert_eq!(counts, [3, 1]);
    assert_eq!(step.status(), Status::Waiting);
    let asks = Action::Ask { gate: GateRef(STEP.to_owned()), name: "Stuck".to_owned() };
    assert!(actions(&run).contains(&asks), "{:?}", actions(&run));

    run.take(asked(STEP, "Stuck"));
    for step in ["P1/B/one", "P1/B/two"] {
        run.done(step);
    }
    assert_eq!(actions(&run), [Action::Leave(Verdict::Waiting)]);
    carry_out(&mut run, &decision("Stuck", true, "double the quotes")).expect("it is asked");
    assert_eq!(progress(&run.state, STEP), Progress::Pending);
    let text = run.state.step(&path(STEP)).expect("it is there").failure_text();
    assert!(text.starts_with("Changes wanted by ada:\n  double the quotes\n"), "{text}");
    for _ in 0..4 {
        fail(&mut run, "9 ms: escapes quotes");
    }
    assert!(matches!(progress(&run.state, STEP), Progress::Waiting { .. }), "asked once");
}

#[test]
fn a_step_that_nobody_lets_go_on_has_failed() {
    let mut run = Run::new(plan());
    for _ in 0..3 {
        fail(&mut run, "again");
    }
    run.take(asked(STEP, "Stuck"));
    carry_out(&mut run, &decision(STEP, false, "give up")).expect("it is asked");
    assert_eq!(progress(&run.state, STEP), Progress::Failed);
    assert_eq!(actions(&run).last(), Some(&Action::Leave(Verdict::Failed)));
}

/// Lost: a person who retries the step is asked about it for ever.
#[test]
fn a_retry_or_skip_answers_the_question_too() {
    for request in [
        Request::Retry { step: path(STEP), again: false, downstream: false },
        Request::Skip { step: path(STEP), satisfy: false },
        changes("Stuck"),
    ] {
        let mut run = Run::new(plan());
        for _ in 0..3 {
            fail(&mut run, "again");
        }
        run.take(asked(STEP, "Stuck"));
        carry_out(&mut run, &request).expect("it is asked");
        assert_eq!(run.state.open_gates().count(), 0, "{request:?}");
    }
}

/// Lost: what a person accepted once is asked about at every resume, or the spec that a step writes
/// counts as changed behind its back.
#[test]
fn accepted_outputs_and_a_spec_that_a_step_makes_are_as_recorded() {
    let mut run = Run::new(plan());
    run.state.spec = Some(file("spec.md", "draft"));
    run.attempt_with(STEP, Outcome::Succeeded, Vec::new(), vec![file("spec.md", "made")]);
    assert_eq!(run.state.spec, Some(file("spec.md", "made")));
    run.take(Event::OutputsAccepted(OutputsAccepted {
        step: path(STEP),
        files: vec![file("spec.md", "edited")],
        by: "ada".to_owned(),
    }));
    assert_eq!(run.state.spec, Some(file("spec.md", "edited")));
    assert_eq!(run.state.recorded["spec.md"].sha256, file("spec.md", "edited").sha256);
    assert_eq!(run.state.step(&path(STEP)).expect("done").artifacts, [file("spec.md", "edited")]);
}

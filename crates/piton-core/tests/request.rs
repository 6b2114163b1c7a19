//! What others may ask of a run, and how they are refused.

mod support;

use piton_core::event::{Class, Event, GateAsked, Next, RunArchived, TicksSeen};
use piton_core::refusal::Refusal;
use piton_core::request::{Refused, Request, awaits_tick, find_gate, skip_warning, turn};
use piton_core::{GateRef, LanePath, Plan};
use piton_testkit::plans;
use support::{Run, failed, path};

fn plan() -> Plan {
    let mut plan = plans::plan(vec![
        plans::phase(
            "P1",
            vec![plans::lane_of("A", &["one", "two"]), plans::lane_of("B", &["one"])],
        ),
        plans::phase("P2", vec![plans::lane_of("C", &["one"])]),
    ]);
    plan.phases[0].gate = Some("Go".to_owned());
    plan.phases[1].gate = Some("Go".to_owned());
    plan.phases[1].lanes[0].gate = Some("Ship".to_owned());
    plan
}

fn retry(step: &str, again: bool, downstream: bool) -> Request {
    Request::Retry { step: path(step), again, downstream }
}

fn skip(step: &str) -> Request {
    Request::Skip { step: path(step), satisfy: false }
}

fn decide(gate: &str, approved: bool) -> Request {
    Request::Decide { gate: gate.to_owned(), approved, message: String::new() }
}

fn refusal(run: &Run, request: &Request) -> Option<Refused> {
    turn(&run.state, request, "ada").err()
}

fn carry_out(run: &mut Run, request: &Request) -> usize {
    let events = turn(&run.state, request, "ada").expect("it is not refused");
    let count = events.len();
    for event in events {
        run.take(event);
    }
    count
}

fn run_name(run: &Run) -> String {
    run.state.run_id.as_ref().map(|id| id.0.clone()).expect("the run has begun")
}

#[test]
fn refusals_name_the_reason() {
    let mut run = Run::new(plan());
    run.start("P1/A/one", vec![]);
    run.done("P1/B/one");
    let name = || run_name(&run);
    let running = || Some(Refused::Running(path("P1/A/one"), name()));
    assert_eq!(refusal(&run, &retry("P1/A/one", true, false)), running());
    assert_eq!(refusal(&run, &skip("P1/A/one")), running());
    let finished = || Some(Refused::Finished(path("P1/B/one"), name()));
    // Lost: typed as it stands, it would run finished work of another run again.
    let said = finished().map(|r| Refusal::from(r).to_string()).unwrap_or_default();
    assert!(said.contains(&format!("`piton retry {} P1/B/one --again`", name())), "{said}");
    assert_eq!(refusal(&run, &retry("P1/B/one", false, false)), finished());
    assert_eq!(refusal(&run, &skip("P1/B/one")), finished());
    let pending = Refused::NotFailed(path("P2/C/one"), "pending".to_owned());
    assert_eq!(refusal(&run, &retry("P2/C/one", false, false)), Some(pending));
    let nowhere = Refused::NoStep("P9/A/one".to_owned());
    assert_eq!(refusal(&run, &skip("P9/A/one")), Some(nowhere));
    run.take(Event::RunArchived(RunArchived { by: "ada".to_owned() }));
    let over = Refused::Archived("run-1".to_owned());
    assert_eq!(refusal(&run, &skip("P2/C/one")), Some(over));
}

#[test]
fn a_complete_run_cannot_be_aborted() {
    let mut run = Run::new(plan());
    for step in ["P1/A/one", "P1/A/two", "P1/B/one", "P2/C/one"] {
        run.done(step);
    }
    let abort = Request::Abort { cancel: false, message: String::new() };
    assert_eq!(refusal(&run, &abort), Some(Refused::Over("complete".to_owned())));
}

#[test]
fn gates_are_found_by_place_or_by_text() {
    let mut run = Run::new(plan());
    let at = |place: &str| GateRef(place.to_owned());
    let place = |found: Result<(GateRef, String), Refused>| found.map(|(gate, _)| gate.0).ok();
    assert_eq!(place(find_gate(&run.state, "P2")), Some("P2".to_owned()));
    assert_eq!(place(find_gate(&run.state, "ship")), Some("P2/C".to_owned()));
    assert!(matches!(find_gate(&run.state, "Go"), Err(Refused::ManyGates(..))));
    assert!(matches!(find_gate(&run.state, "nothing"), Err(Refused::NoGate(..))));
    run.take(Event::GateAsked(GateAsked { gate: at("P2"), name: "Go".to_owned() }));
    let both = Refused::ManyGates("Go".to_owned(), ["P1", "P2"].map(at).to_vec());
    assert_eq!(find_gate(&run.state, "Go"), Err(both.clone()), "P1 may be meant just as well");
    carry_out(&mut run, &decide("P1", false));
    assert_eq!(find_gate(&run.state, "Go"), Err(both), "a rejection may be taken back");
    carry_out(&mut run, &decide("P1", true));
    assert_eq!(place(find_gate(&run.state, "Go")), Some("P2".to_owned()), "the one asked about");
}

#[test]
fn an_approval_stands_and_a_rejection_may_be_taken_back() {
    let mut run = Run::new(plan());
    carry_out(&mut run, &decide("P1", false));
    assert!(matches!(
        refusal(&run, &decide("P1", false)),
        Some(Refused::Decided(_, "rejected", _))
    ));
    carry_out(&mut run, &decide("P1", true));
    for approved in [true, false] {
        let refused = refusal(&run, &decide("P1", approved));
        assert!(matches!(refused, Some(Refused::Decided(_, "approved", _))));
    }
}

/// Lost: a box that stays ticked would approve again what a person has rejected since.
#[test]
fn a_tick_says_something_until_it_counted_or_a_person_decided() {
    let mut run = Run::new(plan());
    run.plan.phases[0].lanes[0].rules.frozen = vec!["IF-1".to_owned()];
    let awaits = |run: &Run, name: &str| awaits_tick(&run.plan, &run.state, name);
    for name in ["P1", "P2/C", "IF-1", "Go"] {
        assert!(awaits(&run, name), "{name}");
    }
    assert!(!awaits(&run, "P1/A"), "no gate is there");
    carry_out(&mut run, &decide("P1", false));
    assert!(!awaits(&run, "P1"));
    let gates = vec!["IF-1".to_owned(), "P2".to_owned()];
    let seen =
        TicksSeen { gates, count: true, by: String::new(), document: None, gone: Vec::new() };
    run.take(Event::TicksSeen(Box::new(seen)));
    assert!(!awaits(&run, "IF-1") && !awaits(&run, "P2") && awaits(&run, "P2/C"));
}

#[test]
fn what_comes_after_runs_again_only_when_asked_for() {
    let done = || {
        let mut run = Run::new(plan());
        for step in ["P1/A/one", "P1/A/two", "P1/B/one", "P2/C/one"] {
            run.done(step);
        }
        run
    };
    assert_eq!(carry_out(&mut done(), &retry("P1/A/one", true, false)), 1);
    let events = turn(&done().state, &retry("P1/A/one", true, true), "ada").expect("it may");
    let steps: Vec<String> = events
        .iter()
        .filter_map(|e| match e {
            Event::StepReset(e) => Some(e.step.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(steps, ["P1/A/one", "P1/A/two", "P2/C/one"], "not the lane beside it");
    // One that is to run anyway: what comes after it is still asked for.
    let mut run = done();
    carry_out(&mut run, &retry("P1/A/one", true, false));
    assert_eq!(carry_out(&mut run, &retry("P1/A/one", true, true)), 2);
}

/// Lost: what failed would hold up all that was asked to run again after it.
#[test]
fn what_failed_after_a_step_is_tried_again_with_it() {
    let mut run = Run::new(plan());
    run.done("P1/A/one");
    run.attempt("P1/A/two", failed(Class::Test, Next::Fail));
    carry_out(&mut run, &retry("P1/A/one", true, true));
    for step in ["P1/A/one", "P1/A/two"] {
        let progress = run.state.step(&path(step)).map(|s| s.progress);
        assert_eq!(progress, Some(piton_core::state::Progress::Pending), "{step}");
    }
}

#[test]
fn a_failed_step_may_be_retried_and_a_skip_says_what_it_holds() {
    let mut plan = plan();
    plan.phases[0].lanes[1].needs = vec![LanePath { phase: "P1".into(), lane: "A".into() }];
    let mut run = Run::new(plan);
    run.attempt("P1/A/one", failed(Class::Test, Next::Fail));
    let warning = skip_warning(&run.state, &path("P1/A/one"), false).expect("a lane needs it");
    assert!(warning.contains("P1/B") && warning.contains("--satisfy"), "{warning}");
    // The phase after it is never reached, since that lane never ends.
    assert!(warning.starts_with("P1/B, P2 depend on it"), "{warning}");
    assert_eq!(skip_warning(&run.state, &path("P2/C/one"), false), None);
    assert_eq!(carry_out(&mut run, &retry("P1/A/one", false, false)), 1);
    run.start("P1/A/one", vec![]);
}

#[test]
fn checkpoints_are_numbered_on() {
    let mut run = Run::new(plan());
    let request =
        Request::Checkpoint { message: "here".to_owned(), head: None, snapshots: Vec::new() };
    carry_out(&mut run, &request);
    carry_out(&mut run, &request);
    let names: Vec<&str> = run.state.checkpoints.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["manual-1", "manual-2"]);
}

#[test]
fn the_words_of_requests_in_the_inbox_are_frozen() {
    let requests = [
        (
            decide("P1", true),
            "{\"ask\":\"decide\",\"gate\":\"P1\",\"approved\":true,\"message\":\"\"}",
        ),
        (
            retry("P/A/x", true, false),
            "{\"ask\":\"retry\",\"step\":\"P/A/x\",\"again\":true,\"downstream\":false}",
        ),
        (skip("P/A/x"), "{\"ask\":\"skip\",\"step\":\"P/A/x\",\"satisfy\":false}"),
        (Request::Archive, "{\"ask\":\"archive\"}"),
    ];
    for (request, text) in requests {
        assert_eq!(serde_json::to_string(&request).ok().as_deref(), Some(text));
        assert_eq!(serde_json::from_str::<Request>(text).ok(), Some(request));
    }
}

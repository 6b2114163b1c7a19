//! What a person does while a driver works: signals, approvals, aborts, refusals.
//!
//! Promise 7: a person is asked once; that this would be noticed is shown in `promises.rs`.

use piton_core::event::{Event, Outcome, Verdict};
use piton_core::plan::{Phase, Step};
use piton_core::request::{Reply, Request};
use piton_core::{Millis, Status, StepPath};
use piton_engine::store::Answer;
use piton_engine::{Ending, Note};
use piton_ledger::{Acquire, Liveness};
use piton_testkit::{Behaviour, Care, CrashPoint, Effect, Rig, Script, Side, plans};

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

fn two_lanes() -> Rig {
    let plan = plans::plan(vec![plans::phase(
        "P",
        vec![plans::lane_of("A", &["one", "two"]), plans::lane_of("B", &["one", "two"])],
    )]);
    let slow = || vec![Behaviour::ok().lasting(Millis(2_000))];
    Rig::new(plan, Script::default().with("P/A/one", slow()).with("P/B/one", slow()))
}

fn signal(rig: &Rig, after: Millis, signal: i32) {
    let mut machine = rig.machine.borrow_mut();
    let at = machine.now.after(after);
    machine.signal_at(at, signal);
}

fn starts(rig: &Rig) -> usize {
    let machine = rig.machine.borrow();
    machine.log.iter().filter(|e| matches!(e, Effect::Started { .. })).count()
}

fn interrupted(rig: &Rig) -> usize {
    let events = rig.events().expect("the ledger is readable");
    let is = |e: &Event| matches!(e, Event::StepFinished(f) if matches!(f.outcome, Outcome::Interrupted { .. }));
    events.iter().filter(|(_, _, e)| is(e)).count()
}

/// Asks at the n-th action of a driver that goes on; returns its ending and the answer.
fn ask_at(rig: &Rig, n: usize, request: Request) -> (Ending, Option<String>) {
    let asking = rig.clone();
    let asked = std::rc::Rc::new(std::cell::Cell::new(None));
    let id = std::rc::Rc::clone(&asked);
    let crash = CrashPoint::at(n, Side::After).instead(move || {
        match asking.ask(&request, Liveness::Alive) {
            Ok(Answer::Asked(number)) => id.set(Some(number)),
            other => panic!("a driver lives, but the answer was {other:?}"),
        }
    });
    let ending = rig.drive(&crash, Acquire::IfFree).expect("the driver goes on");
    let mut store = rig.store(&CrashPoint::never()).expect("the ledger opens");
    let id = asked.get().expect("the request was made");
    let answer = store.ledger().answer_of(id).expect("the request is known");
    (ending, answer.map(|text| said(&text)))
}

/// A reply in words.
fn said(text: &str) -> String {
    match Reply::from_inbox(text) {
        Reply::Done(words) => words,
        Reply::Refused(refusal) => format!("refused: {refusal}"),
    }
}

#[test]
fn the_first_ctrl_c_lets_running_steps_finish() {
    let rig = two_lanes();
    signal(&rig, Millis(500), SIGINT);
    let ending = rig.run().expect("the driver leaves");
    assert_eq!((ending.verdict, ending.signal), (Verdict::Interrupted, Some(SIGINT)));
    assert_eq!((starts(&rig), interrupted(&rig)), (2, 0));
    assert!(rig.notes.borrow().contains(&Note::Draining { running: 2 }));
    let ending = rig.run().expect("it is resumed");
    assert_eq!(ending.verdict, Verdict::Complete);
    assert_eq!(starts(&rig), 4);
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
}

#[test]
fn the_second_ctrl_c_ends_them() {
    let rig = two_lanes();
    signal(&rig, Millis(500), SIGINT);
    signal(&rig, Millis(600), SIGINT);
    let ending = rig.run().expect("the driver leaves");
    assert_eq!((ending.verdict, ending.signal), (Verdict::Interrupted, Some(SIGINT)));
    assert_eq!((starts(&rig), interrupted(&rig)), (2, 2));
    let ending = rig.run().expect("it is resumed");
    assert_eq!(ending.verdict, Verdict::Complete);
    assert_eq!(starts(&rig), 6, "what was ended runs again, nothing else");
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
}

#[test]
fn a_termination_signal_ends_them_at_once() {
    let rig = two_lanes();
    signal(&rig, Millis(500), SIGTERM);
    let ending = rig.run().expect("the driver leaves");
    assert_eq!((ending.verdict, ending.signal), (Verdict::Interrupted, Some(SIGTERM)));
    assert_eq!(interrupted(&rig), 2);
}

/// Lost: whoever ended the run with a signal is told by the exit that somebody else did.
#[test]
fn the_signal_that_ends_them_is_told_also_after_a_ctrl_c() {
    let rig = two_lanes();
    for (at, number) in [(500, SIGINT), (600, SIGTERM), (700, SIGINT)] {
        signal(&rig, Millis(at), number);
    }
    let ending = rig.run().expect("the driver leaves");
    assert_eq!((ending.verdict, ending.signal), (Verdict::Interrupted, Some(SIGTERM)));
}

#[test]
fn a_signal_after_the_last_step_leaves_a_complete_run() {
    let rig = two_lanes();
    signal(&rig, Millis(2_200), SIGINT);
    let ending = rig.run().expect("the driver leaves");
    assert_eq!(ending.verdict, Verdict::Complete, "what ran was all there was");
}

#[test]
fn an_abort_through_the_inbox_ends_what_runs_and_is_answered() {
    let rig = two_lanes();
    let abort = Request::Abort { cancel: false, message: "enough".to_owned() };
    let (ending, answer) = ask_at(&rig, 5, abort);
    assert_eq!(ending.verdict, Verdict::Aborted);
    assert_eq!(answer.as_deref(), Some("aborted the run"));
    assert_eq!(ending.state.ended, Some(Status::Aborted));
    assert!(rig.machine.borrow().running().is_empty());
    let ending = rig.run().expect("an aborted run may be resumed");
    assert_eq!(ending.verdict, Verdict::Complete);
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
}

#[test]
fn a_cancelled_run_cannot_go_on() {
    let rig = two_lanes();
    let cancel = Request::Abort { cancel: true, message: String::new() };
    let (ending, answer) = ask_at(&rig, 5, cancel);
    assert_eq!(ending.state.ended, Some(Status::Cancelled));
    assert_eq!(answer.as_deref(), Some("cancelled the run"));
    assert!(rig.run().is_err());
}

#[test]
fn an_abort_without_a_driver_ends_what_the_keeper_still_holds() {
    let rig = two_lanes();
    // Falls once both first steps run.
    let fallen = rig.drive(&CrashPoint::at(5, Side::After), Acquire::IfFree);
    assert!(fallen.is_err());
    assert_eq!(rig.machine.borrow().running().len(), 2);
    let ending = rig.abort().expect("it is aborted");
    assert_eq!(ending.verdict, Verdict::Aborted);
    assert!(rig.machine.borrow().running().is_empty());
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
}

#[test]
fn an_abort_that_waits_in_the_inbox_starts_nothing_that_was_left_unstarted() {
    // Falls between the intent and the first start.
    let rig = two_lanes();
    let names = {
        let crash = CrashPoint::never();
        two_lanes().drive(&crash, Acquire::IfFree).expect("it completes");
        crash.names()
    };
    let at = names.iter().position(|n| n == "start P/B/one#1").expect("it is started");
    assert!(rig.drive(&CrashPoint::at(at + 1, Side::Before), Acquire::IfFree).is_err());
    let request = Request::Abort { cancel: false, message: String::new() };
    let asked = rig.ask(&request, Liveness::Alive).expect("the lease is still there");
    assert!(matches!(asked, Answer::Asked(_)));
    let before = starts(&rig);
    let ending = rig.run().expect("the next driver takes it");
    assert_eq!(ending.verdict, Verdict::Aborted);
    assert_eq!(starts(&rig), before, "an order that was waiting is not carried out any more");
    assert!(rig.machine.borrow().running().is_empty());
}

fn gated() -> Rig {
    let first = plans::phase("P1", vec![plans::lane_of("A", &["one"])]);
    let gated = Phase {
        needs: vec![],
        gate: Some("Release".to_owned()),
        ..plans::phase("P2", vec![plans::lane_of("C", &["one"])])
    };
    let mut plan = plans::plan(vec![first, gated]);
    // Both may start at once: the gate is asked about while the first phase works.
    plan.phases[1].after.clear();
    let slow = vec![Behaviour::ok().lasting(Millis(3_000))];
    Rig::new(plan, Script::default().with("P1/A/one", slow))
}

#[test]
fn an_approval_through_the_inbox_lets_the_driver_go_on() {
    let rig = gated();
    let approve =
        Request::Decide { gate: "Release".to_owned(), approved: true, message: "go".to_owned() };
    let (ending, answer) = ask_at(&rig, 5, approve);
    assert_eq!(answer.as_deref(), Some("approved gate P2"));
    assert_eq!(ending.verdict, Verdict::Complete);
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
}

#[test]
fn a_rejection_ends_the_run_as_failed_and_may_be_taken_back() {
    let rig = gated();
    let decide =
        |approved| Request::Decide { gate: "P2".to_owned(), approved, message: String::new() };
    let (ending, answer) = ask_at(&rig, 5, decide(false));
    assert_eq!(answer.as_deref(), Some("rejected gate P2"));
    assert_eq!(ending.verdict, Verdict::Failed);
    let taken_back = rig.ask(&decide(true), Liveness::Dead).expect("an approval follows");
    assert_eq!(taken_back, Answer::Done("approved gate P2".to_owned()));
    assert_eq!(rig.run().expect("it goes on").verdict, Verdict::Complete);
}

#[test]
fn a_decision_outlives_drivers_and_is_not_asked_for_again() {
    let rig = gated();
    assert_eq!(rig.run().expect("it waits").verdict, Verdict::Waiting);
    assert_eq!(rig.run().expect("it still waits").verdict, Verdict::Waiting);
    let approve = Request::Decide { gate: "P2".to_owned(), approved: true, message: String::new() };
    rig.ask(&approve, Liveness::Dead).expect("it is approved");
    let again = rig.ask(&approve, Liveness::Dead);
    assert!(again.is_err_and(|e| e.to_string().contains("already approved by ada")));
    assert_eq!(rig.run().expect("it goes on").verdict, Verdict::Complete);
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let rig = two_lanes();
    // Legal when it is asked, too late when the driver gets to it.
    let archive = Request::Archive;
    let (ending, answer) = ask_at(&rig, 5, archive);
    assert_eq!(ending.verdict, Verdict::Complete);
    let answer = answer.expect("it is answered");
    assert!(answer.starts_with("refused: ") && answer.contains("abort it first"), "{answer}");
    let said = |note: &Note| matches!(note, Note::Request { answer: Reply::Refused(_) });
    assert!(rig.notes.borrow().iter().any(said));
}

#[test]
fn a_request_that_is_not_understood_is_refused_and_stops_nothing() {
    let rig = two_lanes();
    let asking = rig.clone();
    let crash = CrashPoint::at(5, Side::After).instead(move || {
        let row = asking.load().expect("the run is there").row;
        let new = piton_ledger::NewRequest {
            key: "odd",
            at: 0,
            from: "ada",
            tag: Request::TAG,
            version: 1,
            body: b"{\"ask\":\"sing\"}",
        };
        let mut store = asking.store(&CrashPoint::never()).expect("the ledger opens");
        store.ledger().request(row.run, &new).expect("the inbox takes it");
    });
    let ending = rig.drive(&crash, Acquire::IfFree).expect("the driver goes on");
    assert_eq!(ending.verdict, Verdict::Complete);
    let mut store = rig.store(&CrashPoint::never()).expect("the ledger opens");
    let answer = store.ledger().answer_of(1).expect("it is known").expect("it is answered");
    let answer = said(&answer);
    assert!(answer.starts_with("refused: ") && answer.contains("`sing`"), "{answer}");
    assert!(answer.contains("written by a newer Piton"), "{answer}");
}

#[test]
fn a_failed_step_may_be_retried_or_skipped_and_the_run_goes_on() {
    let steps = vec![plans::step("one"), plans::step("two")];
    let plan = plans::plan(vec![plans::phase("P", vec![plans::lane("A", steps)])]);
    let script = Script::default()
        .with("P/A/one", vec![Behaviour::fails(3), Behaviour::ok()])
        .with("P/A/two", vec![Behaviour::fails(3)]);
    let rig = Rig::new(plan, script);
    assert_eq!(rig.run().expect("it leaves").verdict, Verdict::Failed);
    assert_eq!(rig.run().expect("it is still failed").verdict, Verdict::Failed);
    let one = StepPath::new("P", "A", "one");
    let retry = Request::Retry { step: one, again: false, downstream: false };
    rig.ask(&retry, Liveness::Dead).expect("it is retried");
    assert_eq!(rig.run().expect("it goes on to the next").verdict, Verdict::Failed);
    let skip = Request::Skip { step: StepPath::new("P", "A", "two"), satisfy: false };
    rig.ask(&skip, Liveness::Dead).expect("it is skipped");
    assert_eq!(rig.run().expect("nothing is left").verdict, Verdict::Complete);
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
}

#[test]
fn a_step_run_again_waits_for_a_later_one_of_its_lane() {
    let steps = vec![plans::step("one"), Step { artifacts: Vec::new(), ..plans::step("two") }];
    let plan = plans::plan(vec![plans::phase("P", vec![plans::lane("A", steps)])]);
    let slow = vec![Behaviour::ok().lasting(Millis(5_000))];
    let rig = Rig::new(plan, Script::default().with("P/A/two", slow));
    let names = {
        let crash = CrashPoint::never();
        rig.clone().drive(&crash, Acquire::IfFree).expect("it completes");
        crash.names()
    };
    let at = names.iter().position(|n| n == "start P/A/two#1").expect("it is started") + 1;
    let slow = vec![Behaviour::ok().lasting(Millis(5_000))];
    let fresh = Rig::new(rig.plan.clone(), Script::default().with("P/A/two", slow));
    let one = StepPath::new("P", "A", "one");
    let again = Request::Retry { step: one, again: true, downstream: false };
    let (ending, answer) = ask_at(&fresh, at, again);
    assert_eq!(answer.as_deref(), Some("P/A/one will run again"));
    assert_eq!(ending.verdict, Verdict::Complete);
    let order: Vec<String> = fresh.machine.borrow().log.iter().map(|e| format!("{e:?}")).collect();
    let started = order.iter().position(|e| e.starts_with("Started") && e.contains("number: 2"));
    let two_ended = order.iter().position(|e| e.starts_with("Completed") && e.contains("\"two\""));
    assert!(two_ended < started, "steps of a lane run one after the other: {order:#?}");
}

//! Requests that reach an inbox when nobody will look into it any more: between the driver's last
//! look and the release of its lease, or shortly before it dies. Whoever waits settles them.

use std::cell::Cell;
use std::rc::Rc;

use piton_core::Status;
use piton_core::event::Verdict;
use piton_core::plan::Phase;
use piton_core::request::{Reply, Request};
use piton_engine::store::Answer;
use piton_ledger::{Acquire, Liveness, NewRequest};
use piton_testkit::{CrashPoint, Rig, Script, Side, plans};

/// A plan that ends at a gate.
fn gated() -> Rig {
    let phase = Phase {
        gate: Some("Release".to_owned()),
        ..plans::phase("P", vec![plans::lane_of("A", &["one"])])
    };
    Rig::new(plans::plan(vec![phase]), Script::default())
}

fn approve() -> Request {
    Request::Decide { gate: "P".to_owned(), approved: true, message: String::new() }
}

fn abort() -> Request {
    Request::Abort { cancel: false, message: String::new() }
}

/// Drives to the end, with a request that comes after the last look and before the release.
fn asked_at_the_last_moment(rig: &Rig, request: &Request) -> i64 {
    let names = {
        let crash = CrashPoint::never();
        let twin = Rig::new(rig.plan.clone(), Script::default());
        twin.drive(&crash, Acquire::IfFree).expect("the twin leaves");
        crash.names()
    };
    let last = names.iter().position(|n| n.contains("driver.left")).expect("it leaves") + 1;
    let id = Rc::new(Cell::new(None));
    let (asking, asked, put) = (rig.clone(), request.clone(), Rc::clone(&id));
    let crash = CrashPoint::at(last, Side::Before).instead(move || {
        // As one does who looked at the run a moment ago, when all of this still fitted.
        let body = serde_json::to_vec(&asked).expect("requests can be written");
        let new = NewRequest {
            key: "late",
            at: 0,
            from: "ada",
            tag: Request::TAG,
            version: Request::VERSION,
            body: &body,
        };
        let row = asking.load().expect("the run is there").row;
        let mut store = asking.store(&CrashPoint::never()).expect("the ledger opens");
        put.set(store.ledger().request(row.run, &new).ok());
    });
    rig.drive(&crash, Acquire::IfFree).expect("the driver leaves");
    id.get().expect("the request was made")
}

#[test]
fn an_approval_at_the_last_moment_is_carried_out_by_the_one_who_waits() {
    let rig = gated();
    let id = asked_at_the_last_moment(&rig, &approve());
    let answer = rig.answer(id, &approve(), Liveness::Alive).expect("it is settled");
    assert_eq!(answer, Some(Reply::Done("approved gate P".to_owned())));
    let again = rig.answer(id, &approve(), Liveness::Alive).expect("it stays settled");
    assert_eq!(again, answer);
    assert_eq!(rig.run().expect("it goes on").verdict, Verdict::Complete);
}

#[test]
fn an_abort_at_the_last_moment_does_not_wait_for_the_next_driver() {
    let rig = gated();
    let id = asked_at_the_last_moment(&rig, &abort());
    let answer = rig.answer(id, &abort(), Liveness::Alive).expect("it is settled");
    assert_eq!(answer, Some(Reply::Done("aborted the run".to_owned())));
    assert_eq!(rig.load().expect("it is there").state.ended, Some(Status::Aborted));
    assert_eq!(rig.run().expect("it may be resumed").verdict, Verdict::Waiting);
}

#[test]
fn what_came_too_late_is_refused_and_ends_no_later_driver() {
    let plan = plans::plan(vec![plans::phase("P", vec![plans::lane_of("A", &["one"])])]);
    let rig = Rig::new(plan, Script::default());
    let id = asked_at_the_last_moment(&rig, &abort());
    let answer = rig.answer(id, &abort(), Liveness::Alive).expect("it is settled");
    assert!(matches!(answer, Some(Reply::Refused(_))), "{answer:?}");
    let mut store = rig.store(&CrashPoint::never()).expect("the ledger opens");
    let row = rig.load().expect("the run is there").row;
    assert_eq!(store.ledger().requests(row.run).expect("the inbox is readable"), []);
}

#[test]
fn while_a_driver_lives_nobody_answers_for_it() {
    let plan = plans::plan(vec![plans::phase("P", vec![plans::lane_of("A", &["one", "two"])])]);
    let rig = Rig::new(plan, Script::default());
    assert!(rig.drive(&CrashPoint::at(3, Side::After), Acquire::IfFree).is_err());
    let checkpoint =
        Request::Checkpoint { message: "here".to_owned(), head: None, snapshots: Vec::new() };
    let Ok(Answer::Asked(id)) = rig.ask(&checkpoint, Liveness::Alive) else {
        panic!("the fallen driver still holds its lease");
    };
    let early = rig.answer(id, &checkpoint, Liveness::Alive).expect("it is looked at");
    assert_eq!(early, None);
    let settled = rig.answer(id, &checkpoint, Liveness::Dead).expect("it is settled");
    assert_eq!(settled, Some(Reply::Done("recorded checkpoint manual-1".to_owned())));
}

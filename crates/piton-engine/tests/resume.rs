//! Promise 5: every row of the table of differences that needs no process, produced and named.

use std::collections::BTreeSet;

use piton_core::event::{Event, Verdict};
use piton_core::plan::{Command, OnChange, Phase, Step, Work};
use piton_core::{Millis, Plan, redact};
use piton_engine::resume::{Accepts, Check, Severity, TABLE, check};
use piton_ledger::Acquire;
use piton_testkit::{
    Behaviour, Care, CrashPoint, LedgerFaults, Rig, Script, Side, SimWorld, Stop, plans,
};

/// Rows about processes and places, which the program adds and its own tests show.
const BY_THE_PROGRAM: [&str; 9] = [
    "root-moved",
    "worktree-gone",
    "step-running",
    "step-lost",
    "step-removed",
    "strays",
    "protocol-refuses",
    "protocol-warns",
    "protocol-reruns",
];

fn files_step() -> Step {
    Step {
        inputs: vec!["in.txt".to_owned()],
        artifacts: vec!["out.txt".to_owned()],
        ..plans::step("make")
    }
}

/// A run that finished its first step and waits at a gate.
fn waiting() -> Rig {
    let first = plans::phase("P1", vec![plans::lane("A", vec![files_step()])]);
    let second = Phase {
        gate: Some("Go".to_owned()),
        ..plans::phase("P2", vec![plans::lane_of("B", &["use"])])
    };
    let mut plan = plans::plan(vec![first, second]);
    plan.spec = Some("spec.md".to_owned());
    let script =
        Script::default().with("P1/A/make", vec![Behaviour::ok().writing("out.txt", "made")]);
    let rig = Rig::new(plan, script);
    rig.machine.borrow_mut().put("spec.md", "spec");
    rig.machine.borrow_mut().put("in.txt", "input");
    assert_eq!(rig.run().expect("it waits").verdict, Verdict::Waiting);
    rig
}

fn look(rig: &Rig) -> Check {
    let crash = CrashPoint::never();
    let mut store = rig.store(&crash).expect("the ledger opens");
    rig.compare(&mut store, &mut SimWorld::new(&rig.machine, &crash)).expect("it is compared")
}

/// Compares with a recorded plan and no plan file.
fn look_without_file(rig: &Rig, recorded: &Plan) -> Check {
    let state = rig.load().expect("the run is there").state;
    let mut world = SimWorld::new(&rig.machine, &CrashPoint::never());
    check(&state, recorded, None, Accepts::default(), &mut world).expect("it is compared")
}

fn first_step(plan: &mut Plan) -> &mut Step {
    &mut plan.phases[0].lanes[0].steps[0]
}

fn names(check: &Check) -> Vec<&'static str> {
    check.differences.iter().map(|d| d.name).collect()
}

/// Every way to make a difference, with the row it must produce.
fn cases() -> Vec<(&'static str, Check)> {
    let mut cases = Vec::new();
    let mut case = |row, change: &dyn Fn(&mut Rig)| {
        let mut rig = waiting();
        change(&mut rig);
        cases.push((row, look(&rig)));
    };
    case("spec-changed", &|rig| rig.machine.borrow_mut().put("spec.md", "another"));
    case("spec-changed", &|rig| rig.machine.borrow_mut().remove("spec.md"));
    case("spec-accepted", &|rig| {
        rig.accepts = (false, true);
        rig.machine.borrow_mut().put("spec.md", "another");
    });
    case("plan-changed-finished", &|rig| {
        first_step(&mut rig.plan).work = Work::Run(Command::Shell("make it otherwise".to_owned()));
    });
    case("gate-removed", &|rig| rig.plan.phases[1].gate = None);
    case("plan-changed", &|rig| first_step(&mut rig.plan).retries = 7);
    case("plan-changed", &|rig| {
        rig.plan.phases[1].lanes[0].steps.push(plans::step("new"));
    });
    case("artifact-missing", &|rig| rig.machine.borrow_mut().remove("out.txt"));
    case("artifact-changed", &|rig| rig.machine.borrow_mut().put("out.txt", "edited"));
    case("input-changed", &|rig| rig.machine.borrow_mut().put("in.txt", "edited"));
    case("input-changed", &|rig| rig.machine.borrow_mut().remove("in.txt"));
    case("output-changed", &|rig| {
        rig.plan.on_change = OnChange::Ask;
        rig.machine.borrow_mut().put("out.txt", "edited");
    });
    case("output-accepted", &|rig| {
        (rig.plan.on_change, rig.accepts_outputs) = (OnChange::Ask, true);
        rig.machine.borrow_mut().put("out.txt", "edited");
    });
    case("input-outdated", &|rig| {
        rig.plan.on_change = OnChange::Ask;
        rig.machine.borrow_mut().put("in.txt", "edited");
    });
    case("head-moved", &|rig| rig.machine.borrow_mut().head = Some("feedbeef".to_owned()));
    let rig = waiting();
    cases.push(("plan-missing", look_without_file(&rig, &rig.plan)));
    let mut redacted = rig.plan.clone();
    let later = &mut redacted.phases[1].lanes[0].steps[0];
    later.env.insert("TOKEN".to_owned(), redact::REPLACEMENT.to_owned());
    cases.push(("plan-secret", look_without_file(&rig, &redacted)));
    cases
}

#[test]
fn nothing_differs_when_nothing_changed() {
    let check = look(&waiting());
    assert!(check.differences.is_empty(), "{:?}", check.differences);
    assert!(check.events.is_empty() && check.reruns.is_empty());
}

/// Lost, a driver that dies while a stage writes the spec would need a person to continue.
#[test]
fn a_spec_that_an_unfinished_step_makes_has_not_changed() {
    let step = Step { artifacts: vec!["spec.md".to_owned()], ..plans::step("write") };
    let mut plan = plans::plan(vec![plans::phase("P", vec![plans::lane("A", vec![step])])]);
    plan.spec = Some("spec.md".to_owned());
    let half = Behaviour::fails(1).writing("spec.md", "half");
    let rig = Rig::new(plan, Script::default().with("P/A/write", vec![half]));
    rig.machine.borrow_mut().put("spec.md", "spec");
    assert_eq!(rig.run().expect("it fails").verdict, Verdict::Failed);
    assert!(!names(&look(&rig)).contains(&"spec-changed"));
}

#[test]
fn every_row_is_produced_with_its_severity_and_way_out() {
    let mut seen: BTreeSet<&str> = BY_THE_PROGRAM.into();
    for (name, check) in cases() {
        assert!(names(&check).contains(&name), "{name}: {:?}", check.differences);
        let row = TABLE.iter().find(|row| row.name == name).expect("it has a row");
        let found = check.differences.iter().find(|d| d.name == name).expect("it was found");
        assert_eq!((found.severity, found.next.name), (row.severity, row.name), "{name}");
        assert!(!found.message.is_empty());
        assert_eq!(check.stops(), row.severity == Severity::Stops, "{name}");
        let reset = check.events.iter().any(|e| matches!(e, Event::StepReset(_)));
        let again = row.severity == Severity::RunsAgain || name == "plan-changed-finished";
        assert_eq!(reset, again, "{name}: {:?}", check.events);
        seen.insert(name);
    }
    let rows: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
    assert_eq!(seen, rows);
}

#[test]
fn what_a_person_accepts_is_recorded_and_goes_on() {
    let mut rig = waiting();
    rig.accepts = (true, true);
    rig.machine.borrow_mut().put("spec.md", "another");
    first_step(&mut rig.plan).work = Work::Run(Command::Shell("make it otherwise".to_owned()));
    let before = rig.load().expect("the run is there").state;
    let ending = rig.complete(CrashPoint::never(), &|_| {}, Millis(0)).expect("it goes on");
    assert_eq!(ending.verdict, Verdict::Complete);
    let events = rig.events().expect("the ledger is readable");
    let accepted = events.iter().find_map(|(_, _, e)| match e {
        Event::SpecAccepted(e) => Some(e.clone()),
        _ => None,
    });
    let accepted = accepted.expect("the spec was accepted");
    assert_eq!(accepted.from, before.spec);
    assert_ne!(accepted.to, before.spec);
    assert_eq!(accepted.by, "ada");
    let plan = events.iter().find_map(|(_, _, e)| match e {
        Event::PlanAccepted(e) => Some(e.clone()),
        _ => None,
    });
    let plan = plan.expect("the plan was accepted");
    assert_eq!((Some(&plan.from), &plan.to), (before.plan_hash.as_ref(), &rig.plan.hash()));
    assert_eq!(plan.by, "ada");
    let redone = ending.state.steps().filter(|(_, s)| s.successes == 2).count();
    assert_eq!(redone, 1, "the changed step runs again, nothing else");
}

#[test]
fn a_blocked_resume_leaves_the_run_as_it_was() {
    let rig = waiting();
    rig.machine.borrow_mut().put("spec.md", "another");
    let (before, effects) = (rig.load().expect("it is there"), rig.machine.borrow().log.len());
    assert!(matches!(rig.run(), Err(Stop::Blocked(_))));
    let after = rig.load().expect("it is there");
    assert_eq!((after.seq, &after.state), (before.seq, &before.state));
    assert!(after.row.owner.is_none(), "and the lease is given up");
    assert_eq!(rig.machine.borrow().log.len(), effects);
}

#[test]
fn finished_steps_of_a_plan_that_grew_stay_finished() {
    let mut rig = waiting();
    rig.plan.phases[1].lanes.push(plans::lane_of("C", &["more"]));
    let ending = rig.complete(CrashPoint::never(), &|_| {}, Millis(0)).expect("it goes on");
    assert_eq!(ending.verdict, Verdict::Complete);
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
    assert_eq!(ending.state.steps().count(), 3);
}

/// A later step in flight rewrites what an earlier one made, and its driver falls.
#[test]
fn what_a_step_in_flight_rewrites_makes_nothing_run_again() {
    let make = Step { artifacts: vec!["doc.txt".to_owned()], ..plans::step("make") };
    let polish = Step {
        inputs: vec!["doc.txt".to_owned()],
        artifacts: vec!["doc.txt".to_owned()],
        ..plans::step("polish")
    };
    let plan = plans::plan(vec![plans::phase("P", vec![plans::lane("A", vec![make, polish])])]);
    let script = Script::default()
        .with("P/A/make", vec![Behaviour::ok().writing("doc.txt", "made")])
        .with("P/A/polish", vec![Behaviour::ok().writing("doc.txt", "polished")]);
    let crash = CrashPoint::never();
    Rig::new(plan.clone(), script.clone()).drive(&crash, Acquire::IfFree).expect("it completes");
    let at = crash.names().iter().position(|n| n == "start P/A/polish#1").expect("it starts") + 1;
    let rig = Rig::new(plan, script);
    let gap = Millis(5_000);
    let ending = rig.complete(CrashPoint::at(at, Side::After), &|_| {}, gap);
    assert_eq!(ending.expect("it completes").verdict, Verdict::Complete);
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
    let again = rig.run().expect("there is nothing to do");
    assert_eq!(again.verdict, Verdict::Complete);
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
}

#[test]
fn a_state_cached_by_another_version_is_not_used() {
    let rig = waiting();
    let before = rig.load().expect("the run is there");
    rig.faults.set(LedgerFaults { ages_snapshots: true, ..LedgerFaults::default() });
    let after = rig.load().expect("the run is there");
    assert_eq!((after.seq, after.state), (before.seq, before.state));
}

#[test]
fn the_time_nobody_drove_is_not_counted() {
    let rig = waiting();
    // Falls in the middle of its work, so that nothing says that it left.
    let crash = CrashPoint::at(1, Side::After);
    assert!(rig.drive(&crash, Acquire::IfFree).is_err());
    let used = rig.load().expect("the run is there").state.used.driven_ms;
    rig.machine.borrow_mut().pass(Millis::from_secs(100 * 3600));
    let ending = rig.complete(CrashPoint::never(), &|_| {}, Millis(0)).expect("it goes on");
    assert_eq!(ending.verdict, Verdict::Complete, "run_time is not used up by waiting");
    assert!(ending.state.used.driven_ms.0 < used.0 + 10_000);
}

#[test]
fn an_approval_long_after_a_fall_counts_no_time() {
    let rig = waiting();
    assert!(rig.drive(&CrashPoint::at(2, Side::Before), Acquire::IfFree).is_err());
    rig.machine.borrow_mut().pass(Millis::from_secs(100 * 3600));
    let approve = piton_core::request::Request::Decide {
        gate: "P2".to_owned(),
        approved: true,
        message: String::new(),
    };
    rig.ask(&approve, piton_ledger::Liveness::Dead).expect("it is approved");
    let ending = rig.run().expect("it goes on");
    assert_eq!(ending.verdict, Verdict::Complete);
    assert!(ending.state.used.driven_ms < Millis::from_secs(60), "{:?}", ending.state.used);
}

//! What a person is asked besides gates: a step that keeps failing alike, changes wanted, outputs that
//! were changed from outside; and steps that may change only some files. Each with falls everywhere.

use piton_core::Millis;
use piton_core::event::{Class, Event, Outcome, Review, Verdict};
use piton_core::plan::{OnChange, Step};
use piton_core::request::Request;
use piton_engine::Note;
use piton_ledger::Liveness;
use piton_testkit::{Behaviour, Care, CrashPoint, Rig, Script, Side, SimMachine, Stop, plans};

/// A stage that writes a text, a review that may only write its report, and a gate before the end.
fn pipeline() -> Rig {
    let text = Step { artifacts: vec!["text.md".to_owned()], retries: 5, ..plans::step("write") };
    let text = Step { escalation: Some("Stuck".to_owned()), ..text };
    let review = Step { writes: Some(Vec::new()), retries: 1, ..plans::step("review") };
    let review = Step { artifacts: vec!["report.md".to_owned()], ..review };
    let mut plan = plans::plan(vec![
        plans::phase("write", vec![plans::lane("main", vec![text])]),
        plans::phase("review", vec![plans::lane("main", vec![review])]),
        plans::phase("end", vec![plans::lane_of("main", &["ship"])]),
    ]);
    plan.phases[2].gate = Some("Go".to_owned());
    plan.on_change = OnChange::Ask;
    let stuck = Behaviour::fails(1).saying("41 ms: quotes are not escaped");
    let script = Script::default()
        .with(
            "write/main/write",
            vec![stuck.clone(), stuck.clone(), stuck, Behaviour::ok().writing("text.md", "text")],
        )
        .with(
            "review/main/review",
            vec![
                Behaviour::ok().writing("report.md", "good").writing("code.rs", "mended"),
                Behaviour::ok().writing("report.md", "good").writing("code.rs", "code"),
            ],
        );
    let mut rig = Rig::new(plan, script);
    rig.options.limits.checkpoints = true;
    let machine = rig.machine.replace(SimMachine::new(Script::default()));
    rig.machine.replace(machine.with_repo(&[("code.rs", "code")]));
    rig
}

fn outcomes(rig: &Rig, step: &str) -> Vec<Outcome> {
    let events = rig.events().expect("the ledger is readable").into_iter();
    let of_step = events.filter_map(|(_, _, event)| match event {
        Event::StepFinished(e) if e.step.to_string() == step => Some(e.outcome),
        _ => None,
    });
    of_step.collect()
}

fn questions(rig: &Rig) -> Vec<String> {
    let events = rig.events().expect("the ledger is readable").into_iter();
    let asked = events.filter_map(|(_, _, event)| match event {
        Event::GateAsked(e) => Some(e.name),
        _ => None,
    });
    asked.collect()
}

/// Lost: a loop burns money on one mistake; a review changes what it reviews; a person is asked again
/// because a driver fell.
#[test]
fn what_is_stuck_asks_once_and_what_may_not_be_changed_is_not_wherever_a_driver_falls() {
    let crash = CrashPoint::never();
    let whole = pipeline();
    let ending = whole.complete(crash.clone(), &|_| {}, Millis(0)).expect("it runs without a fall");
    assert_eq!(ending.verdict, Verdict::Complete);
    let reviews = outcomes(&whole, "review/main/review");
    let scope = |o: &Outcome| matches!(o, Outcome::Failed { class: Class::Scope, error, .. } if error.contains("code.rs"));
    assert!(scope(&reviews[0]) && reviews[1] == Outcome::Succeeded, "{reviews:#?}");
    for n in 1..=crash.names().len() {
        for (side, fall) in [
            (Side::Before, (|_| {}) as fn(&Rig)),
            (Side::After, |_| {}),
            (Side::After, Rig::power_cut),
        ] {
            let rig = pipeline();
            let ending = rig.complete(CrashPoint::at(n, side), &fall, Millis(0));
            let verdict = ending.map(|ending| ending.verdict).ok();
            assert_eq!(verdict, Some(Verdict::Complete), "point {n} {side:?}");
            let asked = questions(&rig);
            // An attempt that never started or was lost did not fail, and the fourth succeeds.
            let expected = asked == ["Stuck", "Go"] || asked == ["Go"];
            assert!(expected, "point {n} {side:?}: {asked:?}");
            assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new(), "point {n}");
        }
    }
}

/// Lost: a review whose first attempt changed the code passes with its second, and nobody undid it.
#[test]
fn what_an_earlier_attempt_changed_counts_until_it_is_put_back() {
    let mut rig = pipeline();
    rig.plan.phases.remove(0);
    rig.plan.phases[0].after.clear();
    let both = Behaviour::ok().writing("report.md", "good").writing("code.rs", "mended");
    let only = Behaviour::ok().writing("report.md", "good");
    rig.machine.borrow_mut().script =
        Script::default().with("review/main/review", vec![both, only]);
    let ending = rig.run().expect("it ends");
    assert_eq!(ending.verdict, Verdict::Failed);
    assert_eq!(outcomes(&rig, "review/main/review").len(), 2);
    let retry = Request::Retry {
        step: "review/main/review".parse().expect("a step"),
        again: false,
        downstream: false,
    };
    rig.ask(&retry, Liveness::Dead).expect("a person who saw it may keep it");
    assert_eq!(rig.run().expect("it waits").verdict, Verdict::Waiting);
}

/// Lost: what a reviewer said, when the driver falls right after it was said.
#[test]
fn changes_wanted_run_the_work_again_and_ask_again() {
    let rig = pipeline();
    let complete = |rig: &Rig| rig.run().expect("it waits").verdict;
    assert_eq!(complete(&rig), Verdict::Waiting);
    let yes = Request::Decide { gate: "Stuck".into(), approved: true, message: String::new() };
    rig.ask(&yes, Liveness::Dead).expect("it is asked");
    assert_eq!(complete(&rig), Verdict::Waiting);
    let review = Review { by: String::new(), message: "say more".into(), comments: Vec::new() };
    rig.ask(&Request::Changes { gate: "Go".into(), review }, Liveness::Dead).expect("it is asked");
    let ran = outcomes(&rig, "review/main/review").len();
    assert_eq!(complete(&rig), Verdict::Waiting);
    assert_eq!(outcomes(&rig, "review/main/review").len(), ran + 1);
    assert_eq!(outcomes(&rig, "write/main/write").len(), 4, "only what was reviewed runs again");
    assert_eq!(questions(&rig), ["Stuck", "Go", "Go"]);
}

/// Lost: a person's edit of a finished text is overwritten by its stage, or goes in unseen.
#[test]
fn an_output_that_a_person_edited_is_asked_about_and_never_made_again_by_itself() {
    let rig = pipeline();
    let until_gate = || {
        let ending = rig.run()?;
        for (gate, _) in ending.state.open_gates().filter(|(_, g)| g.name != "Go") {
            let gate = gate.0.clone();
            let yes = Request::Decide { gate, approved: true, message: String::new() };
            rig.ask(&yes, Liveness::Dead).expect("it is asked");
        }
        Ok::<_, Stop>(())
    };
    until_gate().expect("it is stuck");
    until_gate().expect("it waits");
    rig.machine.borrow_mut().put("text.md", "edited");
    let Err(Stop::Blocked(check)) = rig.run() else { panic!("an edit was not noticed") };
    let names: Vec<&str> = check.differences.iter().map(|d| d.name).collect();
    assert_eq!(names, ["output-changed"]);
    assert!(check.reruns.is_empty());

    let mut accepting = rig.clone();
    accepting.accepts_outputs = true;
    assert_eq!(accepting.run().expect("it was accepted").verdict, Verdict::Waiting);
    assert_eq!(rig.run().expect("nobody is asked again").verdict, Verdict::Waiting);
    assert_eq!(outcomes(&rig, "write/main/write").len(), 4);
    assert!(!rig.notes.borrow().iter().any(|n| matches!(n, Note::Warning(_))));
}

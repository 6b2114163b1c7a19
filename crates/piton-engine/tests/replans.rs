//! Replans on the simulated machine: what asks for them, what comes of them, and falls at every point.

use piton_core::complexity::Complexity;
use piton_core::event::{Event, NoReplan, ReplanOutcome, Trigger, Verdict};
use piton_core::plan::{Command, ReplanRules, Step, Work};
use piton_core::replan::EXIT_REPLAN;
use piton_core::request::Request;
use piton_core::state::Progress;
use piton_core::{Millis, Plan};
use piton_ledger::Liveness;
use piton_testkit::{Behaviour, Care, CrashPoint, PLAN_FILE, Rig, Script, Side, plans, undo_last};

/// Nobody is there for so long after a fall: not at all, or until what ran has ended.
const GAPS: [Millis; 2] = [Millis(0), Millis(5_000)];
const REPLAN: &str = "P2/@replan/replan";

fn rules() -> ReplanRules {
    let work = Work::Run(Command::Shell("revise".to_owned()));
    let by = Some(Box::new(Step { work, ..plans::step("replan") }));
    ReplanRules { by, ..ReplanRules::default() }
}

/// Three phases of one step each; the second does what it is told.
fn plan(second: &[&str]) -> Plan {
    let phase = |id: &str, steps: &[&str]| plans::phase(id, vec![plans::lane_of("main", steps)]);
    let phases = vec![phase("P1", &["work"]), phase("P2", second), phase("P3", &["work"])];
    Plan { replan: Some(rules()), ..plans::plan(phases) }
}

/// A run whose plan's file holds one of these plans; the first is what it starts with.
fn rig(texts: &[(&str, Plan)], script: Script) -> Rig {
    let rig = Rig::new(texts[0].1.clone(), script);
    let mut machine = rig.machine.borrow_mut();
    machine.plans = texts.iter().map(|(text, plan)| ((*text).to_owned(), plan.clone())).collect();
    machine.put(PLAN_FILE, texts[0].0);
    drop(machine);
    rig
}

fn asks() -> Behaviour {
    Behaviour::fails(EXIT_REPLAN).saying("the interface is missing")
}

fn writes(text: &str) -> Behaviour {
    Behaviour::ok().writing(PLAN_FILE, text)
}

fn requested() -> Rig {
    let script =
        Script::default().with("P2/main/work", vec![asks()]).with(REPLAN, vec![writes("b")]);
    rig(&[("a", plan(&["work"])), ("b", plan(&["prepare", "build"]))], script)
}

fn outcomes(rig: &Rig) -> Vec<ReplanOutcome> {
    let events = rig.events().expect("the ledger is readable").into_iter();
    let ended = events.filter_map(|(_, _, event)| match event {
        Event::ReplanEnded(e) => Some(e.outcome),
        _ => None,
    });
    ended.collect()
}

/// Lost: a step that needs another plan fails until its retries are gone.
#[test]
fn a_step_that_asks_gets_another_plan() {
    let rig = requested();
    let ending = rig.run().expect("it runs");
    assert_eq!(ending.verdict, Verdict::Complete);
    let replans = &ending.state.replans;
    assert_eq!((replans.count("P2"), replans.total), (1, 1));
    let all = outcomes(&rig);
    let [ReplanOutcome::Replanned(new)] = all.as_slice() else { panic!("replanned") };
    assert_eq!(new.changes.len(), 1, "{:?}", new.changes);
    assert_eq!(
        new.changes[0].words,
        ["main/prepare added", "main/build added", "main/work removed"]
    );
    assert!(ending.state.step(&"P2/main/build".parse().expect("a path")).is_some());
}

/// Falls at every point of a run that replans at most once. An attempt that is lost before it asks may
/// do better the next time.
fn fall_everywhere(make: &dyn Fn() -> Rig, fall: &dyn Fn(&Rig)) {
    let crash = CrashPoint::never();
    let ending = make().complete(crash.clone(), &|_| {}, Millis(0));
    assert_eq!(ending.expect("it runs without a fall").verdict, Verdict::Complete);
    for (index, name) in crash.names().iter().enumerate() {
        for side in [Side::Before, Side::After] {
            for gap in GAPS {
                let rig = make();
                let place = format!("{side:?} {index} ({name}), gap {gap}");
                let ending = rig.complete(CrashPoint::at(index + 1, side), fall, gap);
                let ending = ending.unwrap_or_else(|stop| panic!("{place}: {stop:?}"));
                assert_eq!(ending.verdict, Verdict::Complete, "{place}");
                let asked = rig.lost.borrow().iter().all(|a| a.step.step == "replan");
                let counted = ending.state.replans.total;
                assert!(counted == 1 || (counted == 0 && !asked), "{place}: it counts once");
                let violations = rig.violations(Care::NothingAgain);
                assert!(violations.is_empty(), "{place}: {violations:#?}");
                assert!(rig.lost.borrow().len() <= rig.options.limits.jobs, "{place}");
                let accepted = rig.events().expect("readable").into_iter();
                let by_hand = accepted.filter(|(_, _, e)| matches!(e, Event::PlanAccepted(_)));
                assert_eq!(by_hand.count(), 0, "{place}: nobody changed the plan");
            }
        }
    }
}

/// Lost: a fall in the middle of a replan counts it twice, or leaves half a plan.
#[test]
fn a_driver_that_falls_anywhere_replans_once() {
    fall_everywhere(&requested, &|_| {});
    fall_everywhere(&requested, &Rig::crash_keeper);
    fall_everywhere(&requested, &Rig::power_cut);
}

/// Lost: a fall while a plan is put back leaves what a failed replan wrote.
#[test]
fn a_driver_that_falls_anywhere_puts_the_plan_back() {
    let make = || {
        let failing = Behaviour::fails(3).beginning(PLAN_FILE, "half");
        let script = Script::default()
            .with("P2/main/work", vec![asks(), Behaviour::ok()])
            .with(REPLAN, vec![failing]);
        rig(&[("a", plan(&["work"])), ("b", plan(&["other"]))], script)
    };
    fall_everywhere(&make, &|_| {});
    fall_everywhere(&make, &Rig::crash_keeper);
    fall_everywhere(&make, &Rig::power_cut);
}

/// A person approves what is asked, and drivers go on until nothing moves.
fn complete(rig: &Rig) -> piton_engine::Ending {
    rig.complete(CrashPoint::never(), &|_| {}, Millis(0)).expect("it ends")
}

fn refusals(rig: &Rig) -> Vec<(Trigger, NoReplan)> {
    let events = rig.events().expect("the ledger is readable").into_iter();
    let refused = events.filter_map(|(_, _, event)| match event {
        Event::ReplanRefused(e) => Some((e.trigger, e.why)),
        _ => None,
    });
    refused.collect()
}

/// Lost: a phase is planned again for ever.
#[test]
fn a_third_replan_is_refused_and_a_person_is_asked() {
    let script = Script::default()
        .with("P2/main/work", vec![asks()])
        .with(REPLAN, vec![writes("b"), writes("c"), writes("d")]);
    let texts = [
        ("a", plan(&["work"])),
        ("b", plan(&["work", "b"])),
        ("c", plan(&["work", "c"])),
        ("d", plan(&["work", "d"])),
    ];
    let rig = rig(&texts, script);
    let ending = rig.run().expect("it runs");
    assert_eq!(ending.verdict, Verdict::Waiting);
    assert_eq!(ending.state.replans.count("P2"), 2, "counters unchanged");
    assert_eq!(refusals(&rig), [(Trigger::Requested, NoReplan::Limit { count: 2 })]);
    let open: Vec<_> = ending.state.open_gates().map(|(gate, _)| gate.0.clone()).collect();
    assert_eq!(open, ["P2/@replan/requested"]);
    assert_eq!(rig.run().expect("it runs").verdict, Verdict::Waiting, "asked once");
    assert_eq!(refusals(&rig).len(), 1);

    let mut forced = rig.clone();
    forced.options.limits.force_replan = Some("ada".to_owned());
    let ending = forced.run().expect("it runs");
    assert_eq!(ending.verdict, Verdict::Waiting, "once");
    assert_eq!(ending.state.replans.count("P2"), 3);
    let history = &ending.state.replans.phases["P2"].history;
    assert_eq!(history[2].forced_by, "ada");

    let ending = complete(&rig);
    assert_eq!(ending.verdict, Verdict::Failed, "the step has no retries");
    assert_eq!(ending.state.replans.count("P2"), 3);
}

/// Lost: two plans take turns until the limit is reached.
#[test]
fn a_plan_that_the_run_had_before_is_a_loop() {
    let script = Script::default()
        .with("P2/main/work", vec![asks()])
        .with(REPLAN, vec![writes("b"), writes("a2")]);
    // The same structure in other words.
    let again = Plan { title: "other words".to_owned(), ..plan(&["work"]) };
    let rig = rig(&[("a", plan(&["work"])), ("b", plan(&["work", "more"])), ("a2", again)], script);
    let ending = rig.run().expect("it runs");
    assert_eq!(ending.verdict, Verdict::Waiting);
    let all = outcomes(&rig);
    let ReplanOutcome::Looped { equal } = &all[1] else { panic!("{all:?}") };
    assert_eq!(equal.that, "the plan before replan 1 of phase P2");
    assert_eq!(rig.machine.borrow().text(PLAN_FILE).as_deref(), Some("b"), "it is put back");
    assert!(ending.state.step(&"P2/main/more".parse().expect("a path")).is_some());
}

/// Lost: a replan that does nothing is paid for until the limit is reached.
#[test]
fn the_same_failure_after_a_replan_without_a_change_is_a_loop() {
    let script =
        Script::default().with("P2/main/work", vec![asks()]).with(REPLAN, vec![Behaviour::ok()]);
    let rig = rig(&[("a", plan(&["work"]))], script);
    let ending = rig.run().expect("it runs");
    assert_eq!(ending.verdict, Verdict::Waiting);
    assert_eq!(ending.state.replans.count("P2"), 1, "before the limit");
    let refused = refusals(&rig);
    let [(Trigger::Requested, NoReplan::Loop { equal })] = refused.as_slice() else {
        panic!("{refused:?}")
    };
    assert!(equal.that.contains("replan 1"), "{equal}");
}

fn failing(replan: Behaviour, after: Plan) -> Rig {
    let script = Script::default()
        .with("P2/main/work", vec![asks(), Behaviour::ok()])
        .with(REPLAN, vec![replan]);
    rig(&[("a", plan(&["work"])), ("b", after)], script)
}

/// Lost: a replan that failed leaves another plan, or finished work that is lost.
#[test]
fn a_failed_replan_leaves_plan_and_record_as_they_were() {
    let lost = {
        let mut plan = plan(&["work"]);
        plan.phases.remove(0);
        plan
    };
    let loosened = {
        let mut plan = plan(&["other"]);
        plan.replan = Some(ReplanRules { per_phase: 1_000, ..rules() });
        plan
    };
    let cases = [
        (Behaviour::fails(3).beginning(PLAN_FILE, "half"), plan(&["other"]), "exit code 3"),
        (writes("nonsense"), plan(&["other"]), "cannot be read"),
        (writes("b"), lost, "finished work: P1/main/work"),
        (writes("b"), loosened, "changes [replan]"),
        (
            Behaviour { cannot_start: Some("no such program".to_owned()), ..Behaviour::ok() },
            plan(&["other"]),
            "no such program",
        ),
    ];
    for (replan, after, expected) in cases {
        let rig = failing(replan, after);
        let before = rig.plan.hash();
        let ending = rig.run().expect("it runs");
        assert_eq!(ending.verdict, Verdict::Waiting, "{expected}");
        let all = outcomes(&rig);
        let [ReplanOutcome::Failed { error, .. }] = all.as_slice() else { panic!("{all:?}") };
        assert!(error.contains(expected), "{error}");
        assert_eq!(rig.machine.borrow().text(PLAN_FILE).as_deref(), Some("a"), "{expected}");
        assert_eq!(ending.state.plan_hash, Some(before), "{expected}");
        assert_eq!(ending.state.replans.count("P2"), 1, "it counts");
        // A person goes on with the plan as it is.
        assert_eq!(complete(&rig).verdict, Verdict::Complete, "{expected}");
    }
}

/// Lost: a person who took a replan back finds it done again.
#[test]
fn an_undo_takes_a_replan_back_and_it_still_counts() {
    let script = Script::default()
        .with("P2/main/work", vec![asks(), Behaviour::ok()])
        .with("P2/main/build", vec![Behaviour::fails(1)])
        .with(REPLAN, vec![writes("b")]);
    let rig = rig(&[("a", plan(&["work"])), ("b", plan(&["prepare", "build"]))], script);
    let ending = rig.run().expect("it runs");
    assert_eq!(ending.verdict, Verdict::Failed);
    let undo = undo_last(&ending.state).expect("a replan to undo");
    rig.rewind(&CrashPoint::never(), undo).expect("it is undone");
    assert_eq!(rig.machine.borrow().text(PLAN_FILE).as_deref(), Some("a"));
    let state = rig.load().expect("it loads").state;
    assert_eq!(state.plan_hash, Some(rig.plan.hash()));
    assert_eq!(state.replans.count("P2"), 1);
    assert!(state.step(&"P2/main/work".parse().expect("a path")).is_some());

    let ending = rig.run().expect("it runs");
    assert_eq!(ending.verdict, Verdict::Waiting, "it is not replanned by itself");
    let undo = undo_last(&ending.state).expect("an undo to undo");
    rig.rewind(&CrashPoint::never(), undo).expect("it is brought back");
    assert_eq!(rig.machine.borrow().text(PLAN_FILE).as_deref(), Some("b"));
    let state = rig.load().expect("it loads").state;
    let path = "P2/main/prepare".parse().expect("a path");
    assert!(state.step(&path).is_some_and(|s| s.progress == Progress::Done), "still done");

    let undo = undo_last(&state).expect("a replan to undo");
    rig.rewind(&CrashPoint::never(), undo).expect("it is undone");
    assert_eq!(complete(&rig).verdict, Verdict::Complete);
}

/// Lost: a phase that is too large for one go is started as it is.
#[test]
fn phases_that_are_too_large_are_planned_again_before_they_start() {
    for (trigger, complexity, tasks) in
        [(Trigger::Complexity, Some(Complexity(801)), 0), (Trigger::Tasks, None, 11)]
    {
        let mut large = plan(&["work"]);
        (large.phases[1].complexity, large.phases[1].tasks) = (complexity, tasks);
        let script = Script::default().with(REPLAN, vec![writes("b")]);
        let rig = rig(&[("a", large), ("b", plan(&["one", "two"]))], script);
        let ending = rig.run().expect("it runs");
        assert_eq!(ending.verdict, Verdict::Complete);
        let past = &ending.state.replans.phases["P2"].history[0];
        assert_eq!(past.trigger, Some(trigger));
    }
    let mut within = plan(&["work"]);
    (within.phases[1].complexity, within.phases[1].tasks) = (Some(Complexity::whole(8)), 10);
    let rig = rig(&[("a", within)], Script::default());
    assert_eq!(rig.run().expect("it runs").state.replans.total, 0);
}

/// Lost: without a command the run goes on as if nothing was wrong, or asks every time.
#[test]
fn without_a_command_a_person_is_asked_once() {
    let mut large = plan(&["work"]);
    large.phases[1].complexity = Some(Complexity::whole(9));
    large.replan = None;
    let rig = rig(&[("a", large)], Script::default());
    let ending = rig.run().expect("it runs");
    assert_eq!(ending.verdict, Verdict::Waiting);
    assert_eq!(refusals(&rig), [(Trigger::Complexity, NoReplan::NoCommand)]);
    let ending = complete(&rig);
    assert_eq!((ending.verdict, ending.state.replans.total), (Verdict::Complete, 0));
    assert!(rig.violations(Care::NothingAgain).is_empty());
}

/// Lost: a person's no is taken for a yes.
#[test]
fn a_person_who_says_no_stops_the_run() {
    let mut large = plan(&["work"]);
    large.phases[1].tasks = 11;
    large.replan = None;
    let rig = rig(&[("a", large)], Script::default());
    rig.run().expect("it runs");
    let gate = "P2/@replan/too_many_tasks".to_owned();
    let request = Request::Decide { gate, approved: false, message: String::new() };
    rig.ask(&request, Liveness::Dead).expect("it is asked");
    assert_eq!(rig.run().expect("it runs").verdict, Verdict::Failed);
}

fn tested(failures: usize) -> Rig {
    let mut with_test = plan(&["work"]);
    let step = &mut with_test.phases[1].lanes[0].steps[0];
    (step.test, step.retries) = (Some(Command::Shell("check".to_owned())), 5);
    let failed = || Behaviour { part: 1, ..Behaviour::fails(1) };
    let mut attempts = vec![failed(); failures];
    attempts.push(Behaviour { part: 1, ..Behaviour::ok() });
    let script = Script::default().with("P2/main/work", attempts).with(REPLAN, vec![writes("b")]);
    let mut after = with_test.clone();
    after.phases[1].lanes[0].steps[0].test = Some(Command::Shell("check better".to_owned()));
    rig(&[("a", with_test), ("b", after)], script)
}

/// Lost: a step fails its test until its retries are gone, and nobody looks at the plan.
#[test]
fn two_test_failures_in_a_row_have_the_phase_planned_again() {
    for (failures, replans) in [(1, 0), (2, 1), (3, 1)] {
        let rig = tested(failures);
        let ending = rig.run().expect("it runs");
        assert_eq!((ending.verdict, ending.state.replans.total), (Verdict::Complete, replans));
    }
    let mut rig = tested(3);
    rig.plan.replan = None;
    rig.machine.borrow_mut().plans.insert("a".to_owned(), rig.plan.clone());
    let ending = rig.run().expect("it runs");
    assert_eq!(ending.state.replans.total, 0, "without [replan] its retries decide");
}

/// Lost: a person's wish for another plan waits until something fails.
#[test]
fn a_person_may_ask_for_a_replan() {
    let script = Script::default().with(REPLAN, vec![writes("b")]);
    let mut gated = plan(&["work"]);
    gated.phases[1].gate = Some("Design review".to_owned());
    let mut after = plan(&["one", "two"]);
    after.phases[1].gate = Some("Design review".to_owned());
    let rig = rig(&[("a", gated), ("b", after)], script);
    assert_eq!(rig.run().expect("it runs").verdict, Verdict::Waiting);
    let wish = |phase: &str| Request::Replan {
        phase: phase.to_owned(),
        reason: "split it".to_owned(),
        step: None,
        force: false,
    };
    assert!(rig.ask(&wish("P1"), Liveness::Dead).is_err(), "P1 is complete");
    rig.ask(&wish("P2"), Liveness::Dead).expect("it is taken");
    let ending = complete(&rig);
    assert_eq!((ending.verdict, ending.state.replans.total), (Verdict::Complete, 1));
    let path = "P2/main/two".parse().expect("a path");
    assert!(ending.state.step(&path).is_some_and(|s| s.progress == Progress::Done));
}

/// Lost: a signal in the middle of a replan counts as a replan that failed.
#[test]
fn a_replan_that_is_interrupted_begins_again_and_counts_once() {
    let rig = requested();
    let at = rig.machine.borrow().now.after(Millis(700));
    rig.machine.borrow_mut().signal_at(at, 15);
    let ending = rig.run().expect("it runs");
    assert_eq!(ending.verdict, Verdict::Interrupted);
    assert_eq!(rig.machine.borrow().text(PLAN_FILE).as_deref(), Some("a"), "it is put back");
    assert!(matches!(outcomes(&rig)[..], [ReplanOutcome::Interrupted { .. }]));
    let ending = rig.run().expect("it runs");
    assert_eq!((ending.verdict, ending.state.replans.total), (Verdict::Complete, 1));
    assert_eq!(ending.state.replans.attempts, 2);
}

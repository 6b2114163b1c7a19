//! The promises with their mechanisms switched off: each test shows first that a scenario keeps the
//! promise, then that the same scenario breaks it, noticeably, without the mechanism.
//!
//! Promise 1: durable appends, and artifacts synced before success is recorded.
//! Promise 2: exits kept until their record is acknowledged; evidence compared on resume.
//! Promise 4: see `takeover.rs`.
//! Promise 5: the world compared with the record before anything runs.
//! Promise 7: questions and decisions are events of the ledger.
//! Promise 8: budgets.

use piton_core::Millis;
use piton_core::budget::Budgets;
use piton_core::event::{Event, Verdict};
use piton_core::plan::Step;
use piton_core::request::Request;
use piton_engine::Ending;
use piton_ledger::Liveness;
use piton_testkit::{Behaviour, Care, CrashPoint, LedgerFaults, Rig, Script, Side, Stop, plans};

fn example() -> Rig {
    let (plan, script) = plans::example();
    Rig::new(plan, script)
}

/// Falls before and after every point; returns everything that was broken.
fn fall_everywhere(prepare: &dyn Fn(&mut Rig), fall: &dyn Fn(&Rig)) -> Vec<String> {
    let crash = CrashPoint::never();
    example().complete(crash.clone(), &|_| {}, Millis(0)).expect("it runs without a fall");
    let mut found = Vec::new();
    for n in 1..=crash.names().len() {
        for side in [Side::Before, Side::After] {
            let mut rig = example();
            prepare(&mut rig);
            if let Err(stop) = rig.complete(CrashPoint::at(n, side), fall, Millis(0)) {
                found.push(format!("stopped: {stop:?}"));
            }
            found.extend(rig.violations(Care::NothingAgain));
        }
    }
    found
}

fn set_faults(rig: &Rig, faults: LedgerFaults) {
    rig.faults.set(faults);
}

fn mentions(found: &[String], text: &str) -> bool {
    found.iter().any(|violation| violation.contains(text))
}

#[test]
fn promise_1_a_power_cut_takes_back_no_event() {
    assert_eq!(fall_everywhere(&|_| {}, &Rig::power_cut), Vec::<String>::new());
    let lazy = LedgerFaults { not_durable: true, ..LedgerFaults::default() };
    let found = fall_everywhere(&|rig| set_faults(rig, lazy), &Rig::power_cut);
    assert!(mentions(&found, "acknowledged, but not in the ledger"), "{found:#?}");
}

#[test]
fn promise_1_a_power_cut_takes_back_no_artifact() {
    let blind = |rig: &mut Rig| rig.compares = false;
    assert_eq!(fall_everywhere(&blind, &Rig::power_cut), Vec::<String>::new());
    let lazy = |rig: &mut Rig| {
        blind(rig);
        rig.machine.borrow_mut().switches.seal_syncs = false;
    };
    let found = fall_everywhere(&lazy, &Rig::power_cut);
    assert!(mentions(&found, "its artifact out/build.txt is not"), "{found:#?}");
}

#[test]
fn promise_2_a_fallen_driver_repeats_nothing() {
    assert_eq!(fall_everywhere(&|_| {}, &|_| {}), Vec::<String>::new());
    let forgetful = |rig: &mut Rig| rig.machine.borrow_mut().switches.keep_exits = false;
    let found = fall_everywhere(&forgetful, &|_| {});
    assert!(mentions(&found, "ended by itself, and that is not what is recorded"), "{found:#?}");
}

/// Completes the example's first phase, takes an artifact away, and goes on to the end.
fn without_its_artifact(compares: bool) -> (Rig, Ending) {
    let mut rig = example();
    rig.compares = compares;
    assert_eq!(rig.run().expect("it waits").verdict, Verdict::Waiting);
    rig.machine.borrow_mut().remove("out/build.txt");
    let ending = rig.complete(CrashPoint::never(), &|_| {}, Millis(0)).expect("it completes");
    (rig, ending)
}

#[test]
fn promise_2_work_runs_again_only_when_its_evidence_is_gone_and_says_why() {
    let (rig, ending) = without_its_artifact(true);
    assert_eq!(ending.verdict, Verdict::Complete);
    let reasons: Vec<String> = rig
        .events()
        .expect("the ledger is readable")
        .into_iter()
        .filter_map(|(_, _, event)| match event {
            Event::StepReset(e) => Some(format!("{}: {}", e.step, e.reason)),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, ["P1/A/build: artifact out/build.txt is missing"]);
    assert_eq!(rig.violations(Care::MayRunAgain), Vec::<String>::new());

    let (rig, _) = without_its_artifact(false);
    let found = rig.violations(Care::MayRunAgain);
    assert!(mentions(&found, "is done, but its artifact out/build.txt is not"), "{found:#?}");
}

/// Changes the spec between two drivers.
fn with_another_spec(compares: bool) -> Result<Ending, Stop> {
    let (mut plan, script) = plans::example();
    plan.spec = Some("spec.md".to_owned());
    let mut rig = Rig::new(plan, script);
    rig.compares = compares;
    rig.machine.borrow_mut().put("spec.md", "do this");
    rig.run()?;
    rig.machine.borrow_mut().put("spec.md", "do that");
    rig.run()
}

#[test]
fn promise_5_a_changed_spec_stops_before_anything_runs() {
    let stopped = with_another_spec(true);
    let Err(Stop::Blocked(check)) = stopped else { panic!("it went on: {stopped:?}") };
    assert_eq!(check.differences[0].name, "spec-changed");
    assert!(with_another_spec(false).is_ok(), "without the comparison nobody notices");
}

/// Waits twice for the same gate, then for its approval; returns what was broken.
fn wait_twice(faults: LedgerFaults) -> Vec<String> {
    let rig = example();
    set_faults(&rig, faults);
    for _ in 0..2 {
        assert_eq!(rig.run().expect("it waits").verdict, Verdict::Waiting);
    }
    let approve = Request::Decide { gate: "P2".to_owned(), approved: true, message: String::new() };
    rig.ask(&approve, Liveness::Dead).expect("it is approved");
    let verdict = rig.run().expect("it goes on").verdict;
    set_faults(&rig, LedgerFaults::default());
    let mut found = rig.violations(Care::NothingAgain);
    if verdict != Verdict::Complete {
        found.push(format!("after the approval the run is {verdict:?}"));
    }
    found
}

#[test]
fn promise_7_a_person_is_asked_once() {
    assert_eq!(wait_twice(LedgerFaults::default()), Vec::<String>::new());
    let forgets = |tag| LedgerFaults { forgets: Some(tag), ..LedgerFaults::default() };
    let found = wait_twice(forgets("gate.asked"));
    assert!(mentions(&found, "was asked 2 times about gate P2"), "{found:#?}");
    let found = wait_twice(forgets("gate.decided"));
    assert!(mentions(&found, "after the approval the run is Waiting"), "{found:#?}");
}

/// A run of one step under budgets.
fn one_step(step: Step, behaviour: Behaviour, budgets: Budgets) -> Rig {
    let mut plan = plans::plan(vec![plans::phase("P", vec![plans::lane("A", vec![step])])]);
    plan.budgets = budgets;
    Rig::new(plan, Script::default().with("P/A/work", vec![behaviour]))
}

fn unlimited() -> Budgets {
    let never = Millis(u64::MAX / 4);
    Budgets {
        attempts: u32::MAX,
        run_time: never,
        phase_time: never,
        network_wait: never,
        rate_limit_wait: never,
        restarts: u32::MAX,
        ..Budgets::default()
    }
}

fn does_not_end(result: &Result<Ending, Stop>) -> bool {
    matches!(result, Err(Stop::Failed(error)) if error.to_string() == "the run does not end")
}

#[test]
fn promise_8_waiting_for_the_network_ends() {
    let offline = || Behaviour::fails(1).saying("curl: (6) Could not resolve host: example.org");
    let budgets = Budgets { network_wait: Millis::from_secs(60), ..Budgets::default() };
    let ended = one_step(plans::step("work"), offline(), budgets).run();
    assert_eq!(ended.expect("it ends").verdict, Verdict::Failed);
    let endless = one_step(plans::step("work"), offline(), unlimited()).run();
    assert!(does_not_end(&endless), "{endless:?}");
}

#[test]
fn promise_8_a_rate_limit_that_is_always_over_at_once_ends() {
    let limited = || Behaviour::fails(1).saying("HTTP 429: rate limit, retry after 0 s");
    let budgets = Budgets { attempts: 6, ..Budgets::default() };
    let ended = one_step(plans::step("work"), limited(), budgets).run();
    assert_eq!(ended.expect("it ends").verdict, Verdict::Failed);
    let endless = one_step(plans::step("work"), limited(), unlimited()).run();
    assert!(does_not_end(&endless), "{endless:?}");
}

#[test]
fn promise_8_restarts_after_kills_from_outside_end() {
    let killed = || Behaviour { signal: Some(9), ..Behaviour::fails(1) };
    let ended = one_step(plans::step("work"), killed(), Budgets::default()).run();
    assert_eq!(ended.expect("it ends").verdict, Verdict::Failed);
    let endless = one_step(plans::step("work"), killed(), unlimited()).run();
    assert!(does_not_end(&endless), "{endless:?}");
}

/// If this fails, a laptop that was closed over the weekend ends its running steps when it wakes.
#[test]
fn promise_8_the_time_of_a_run_does_not_end_in_its_sleep() {
    let budgets = Budgets { run_time: Millis::from_secs(60), ..Budgets::default() };
    let lasting = Behaviour::ok().lasting(Millis::from_secs(30));
    let rig = one_step(plans::step("work"), lasting, budgets);
    let midway = rig.machine.borrow().now.after(Millis::from_secs(10));
    rig.machine.borrow_mut().sleep_at(midway, Millis::from_secs(3 * 24 * 3600));
    let ending = rig.run().expect("it completes");
    assert_eq!(ending.verdict, Verdict::Complete);
    assert!(ending.state.used.driven_ms < Millis::from_secs(60), "{:?}", ending.state.used);
}

#[test]
fn promise_8_the_time_of_a_run_ends() {
    let forever = || Behaviour::ok().lasting(Millis(u64::MAX / 8));
    let patient = || Step { timeout: Millis(u64::MAX / 8), ..plans::step("work") };
    for name in ["run_time", "phase_time"] {
        let mut budgets = unlimited();
        let limit =
            if name == "run_time" { &mut budgets.run_time } else { &mut budgets.phase_time };
        *limit = Millis::from_secs(60);
        let rig = one_step(patient(), forever(), budgets);
        let ending = rig.run().expect("it ends");
        assert_eq!(ending.verdict, Verdict::Budget, "{name}");
        assert_eq!(ending.state.exhausted.as_deref(), Some(name));
        assert!(rig.machine.borrow().running().is_empty(), "{name}: what ran was ended");
    }
    let endless = one_step(patient(), forever(), unlimited()).run();
    assert!(does_not_end(&endless), "{endless:?}");
}

#[test]
fn promise_2_a_step_that_changes_its_own_input_is_finished_all_the_same() {
    let formatter = Step { inputs: vec!["src.txt".to_owned()], ..plans::step("work") };
    let behaviour = Behaviour::ok().writing("src.txt", "formatted {attempt} times");
    let rig = one_step(formatter, behaviour, Budgets::default());
    rig.machine.borrow_mut().put("src.txt", "raw");
    assert_eq!(rig.run().expect("it completes").verdict, Verdict::Complete);
    let ending = rig.run().expect("there is nothing to do");
    assert_eq!(attempts(&ending.state, "P/A/work"), 1);
    rig.machine.borrow_mut().put("src.txt", "edited by a person");
    let ending = rig.run().expect("it completes again");
    assert_eq!(attempts(&ending.state, "P/A/work"), 2);
}

#[test]
fn promise_8_steps_that_change_each_others_inputs_are_not_run_for_ever() {
    let step = |id: &str, reads: &str| Step { inputs: vec![reads.to_owned()], ..plans::step(id) };
    let lane = plans::lane("A", vec![step("one", "x"), step("two", "y")]);
    let writes = |path: &str| vec![Behaviour::ok().writing(path, "attempt {attempt}")];
    let script = Script::default().with("P/A/one", writes("y")).with("P/A/two", writes("x"));
    let rig = Rig::new(plans::plan(vec![plans::phase("P", vec![lane])]), script);
    rig.machine.borrow_mut().put("x", "raw");
    assert_eq!(rig.run().expect("it completes").verdict, Verdict::Complete);
    let ending = rig.run().expect("it completes again, and ends");
    assert_eq!(ending.verdict, Verdict::Complete);
    let warned = |note: &piton_engine::Note| matches!(note, piton_engine::Note::Warning(text) if text.to_string().contains("once more"));
    assert!(rig.notes.borrow().iter().any(warned), "and it is said");
}

fn attempts(state: &piton_core::RunState, step: &str) -> u32 {
    let path = step.parse().expect("a path");
    state.step(&path).map_or(0, |s| s.attempts)
}

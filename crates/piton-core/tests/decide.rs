//! What is started, asked and concluded, from states alone.

mod support;

use piton_core::event::{
    BudgetExhausted, Class, Event, GateAsked, GateDecided, Next, Outcome, StepReset, StepSkipped,
    TimeSkipped, Verdict,
};
use piton_core::plan::{OnFailure, Phase};
use piton_core::{Action, GateRef, LanePath, Limits, Millis, Plan, Timestamp, decide};
use piton_testkit::plans;
use support::{Run, failed, finished, path};

fn jobs(jobs: usize) -> Limits {
    Limits { jobs, ..Limits::default() }
}

/// Why chosen lanes cannot begin.
fn unmet_of(run: &Run, limits: &Limits) -> Vec<String> {
    let all = piton_core::unmet::unmet(&run.plan, &run.state, limits);
    all.into_iter().map(|u| format!("{}: {}; {}", u.lane, u.why, u.first)).collect()
}

/// What keeps the steps that are left.
fn held_of(run: &Run, limits: &Limits) -> Vec<String> {
    let all = piton_core::unmet::unreached(&run.plan, &run.state, limits);
    all.into_iter().map(|(step, why)| format!("{step}: {why}")).collect()
}

/// The steps that are started now.
fn starts(run: &Run, limits: &Limits) -> Vec<String> {
    let actions = decide(&run.plan, &run.state, limits, run.at);
    let start = |action: Action| match action {
        Action::Start { step, attempt } => Some(format!("{step}#{attempt}")),
        _ => None,
    };
    actions.into_iter().filter_map(start).collect()
}

fn verdict(run: &Run, limits: &Limits) -> Option<Verdict> {
    let actions = decide(&run.plan, &run.state, limits, run.at);
    actions.into_iter().find_map(|action| match action {
        Action::Leave(verdict) => Some(verdict),
        _ => None,
    })
}

fn asks(run: &Run) -> Vec<String> {
    let actions = decide(&run.plan, &run.state, &jobs(9), run.at);
    let ask = |action: Action| match action {
        Action::Ask { gate, .. } => Some(gate.0),
        _ => None,
    };
    actions.into_iter().filter_map(ask).collect()
}

fn three_lanes() -> Plan {
    plans::plan(vec![
        plans::phase(
            "P1",
            vec![
                plans::lane_of("A", &["a1", "a2"]),
                plans::lane_of("B", &["b1"]),
                plans::lane_of("C", &["c1"]),
            ],
        ),
        plans::phase("P2", vec![plans::lane_of("D", &["d1"])]),
    ])
}

fn skip(run: &mut Run, step: &str, satisfy: bool) {
    let by = "ada".to_owned();
    run.take(Event::StepSkipped(StepSkipped { step: path(step), satisfy, by }));
}

#[test]
fn lanes_go_side_by_side_and_steps_one_after_the_other() {
    let mut run = Run::new(three_lanes());
    assert_eq!(starts(&run, &jobs(9)), ["P1/A/a1#1", "P1/B/b1#1", "P1/C/c1#1"]);
    assert_eq!(starts(&run, &jobs(2)), ["P1/A/a1#1", "P1/B/b1#1"]);
    assert_eq!(starts(&run, &jobs(0)).len(), 1, "no number of jobs means one");
    run.start("P1/A/a1", vec![]);
    assert_eq!(starts(&run, &jobs(2)), ["P1/B/b1#1"]);
    assert_eq!(starts(&run, &jobs(1)), Vec::<String>::new());
    assert_eq!(verdict(&run, &jobs(1)), None);
    run.take(finished("P1/A/a1", 1, piton_core::event::Outcome::Succeeded, vec![]));
    assert_eq!(starts(&run, &jobs(1)), ["P1/A/a2#1"]);
}

#[test]
fn a_phase_waits_for_those_before_it() {
    let mut run = Run::new(three_lanes());
    for step in ["P1/A/a1", "P1/A/a2", "P1/B/b1"] {
        run.done(step);
    }
    assert_eq!(starts(&run, &jobs(9)), ["P1/C/c1#1"]);
    run.done("P1/C/c1");
    assert_eq!(starts(&run, &jobs(9)), ["P2/D/d1#1"]);
    run.done("P2/D/d1");
    assert_eq!(verdict(&run, &jobs(9)), Some(Verdict::Complete));
}

#[test]
fn what_is_skipped_lets_those_after_it_go_on_but_not_those_that_need_it() {
    let mut plan = three_lanes();
    plan.phases[0].lanes[1].needs = vec![LanePath { phase: "P1".into(), lane: "C".into() }];
    for (satisfy, b_starts) in [(false, false), (true, true)] {
        let mut run = Run::new(plan.clone());
        run.done("P1/A/a1");
        run.done("P1/A/a2");
        skip(&mut run, "P1/C/c1", satisfy);
        assert_eq!(starts(&run, &jobs(9)), if b_starts { vec!["P1/B/b1#1"] } else { vec![] });
        let expected = (!b_starts).then_some(Verdict::Blocked);
        assert_eq!(verdict(&run, &jobs(9)), expected);
    }
    // By order alone, P2 only waits until P1 is over.
    let mut run = Run::new(three_lanes());
    for step in ["P1/A/a1", "P1/A/a2", "P1/B/b1", "P1/C/c1"] {
        skip(&mut run, step, false);
    }
    assert_eq!(starts(&run, &jobs(9)), ["P2/D/d1#1"]);
}

#[test]
fn a_gate_is_asked_about_once_and_holds_only_what_is_behind_it() {
    let mut plan = three_lanes();
    plan.phases[0].lanes[0].gate = Some("Lane".to_owned());
    plan.phases[1] = Phase { gate: Some("Phase".to_owned()), ..plan.phases[1].clone() };
    let mut run = Run::new(plan);
    assert_eq!(asks(&run), ["P1/A"], "the second phase is not reached yet");
    assert_eq!(starts(&run, &jobs(9)), ["P1/B/b1#1", "P1/C/c1#1"]);
    let gate = GateRef("P1/A".to_owned());
    run.take(Event::GateAsked(GateAsked { gate: gate.clone(), name: "Lane".to_owned() }));
    assert_eq!(asks(&run), Vec::<String>::new());
    run.done("P1/B/b1");
    run.done("P1/C/c1");
    assert_eq!(verdict(&run, &jobs(9)), Some(Verdict::Waiting));
    let decided = |approved| {
        Event::GateDecided(GateDecided {
            gate: gate.clone(),
            approved,
            by: "ada".to_owned(),
            at: None,
            message: String::new(),
            plan_hash: piton_core::hash::Sha::of(b""),
            artifacts: vec![],
        })
    };
    run.take(decided(false));
    assert_eq!(verdict(&run, &jobs(9)), Some(Verdict::Failed));
    run.take(decided(true));
    assert_eq!(starts(&run, &jobs(9)), ["P1/A/a1#1"]);
    run.done("P1/A/a1");
    run.done("P1/A/a2");
    assert_eq!(asks(&run), ["P2"]);
}

#[test]
fn a_failure_stops_or_lets_the_others_go_on() {
    for (on_failure, others) in [(OnFailure::Stop, 0), (OnFailure::Continue, 2)] {
        let mut plan = three_lanes();
        plan.on_failure = on_failure;
        let mut run = Run::new(plan);
        run.attempt("P1/A/a1", failed(Class::Command, Next::Fail));
        assert_eq!(starts(&run, &jobs(9)).len(), others, "{on_failure:?}");
        if others > 0 {
            run.done("P1/B/b1");
            run.done("P1/C/c1");
        }
        assert_eq!(verdict(&run, &jobs(9)), Some(Verdict::Failed));
    }
}

#[test]
fn a_failure_outside_of_the_selection_does_not_hold_it() {
    let mut run = Run::new(three_lanes());
    run.attempt("P1/A/a1", failed(Class::Command, Next::Fail));
    let only_b = Limits { lane: Some("B".to_owned()), ..jobs(9) };
    assert_eq!(starts(&run, &only_b), ["P1/B/b1#1"]);
    run.done("P1/B/b1");
    assert_eq!(verdict(&run, &only_b), Some(Verdict::SelectionDone));
}

#[test]
fn a_selection_starts_nothing_else() {
    let mut run = Run::new(three_lanes());
    let only_a = Limits { phase: Some("P1".to_owned()), lane: Some("A".to_owned()), ..jobs(9) };
    assert_eq!(starts(&run, &only_a), ["P1/A/a1#1"]);
    let only_p2 = Limits { phase: Some("P2".to_owned()), ..jobs(9) };
    assert_eq!(verdict(&run, &only_p2), Some(Verdict::Blocked), "it comes after P1");
    run.done("P1/A/a1");
    run.done("P1/A/a2");
    assert_eq!(verdict(&run, &only_a), Some(Verdict::SelectionDone));
}

#[test]
fn a_driver_that_is_told_to_stop_starts_nothing() {
    let mut run = Run::new(three_lanes());
    let draining = Limits { draining: true, ..jobs(9) };
    assert_eq!(verdict(&run, &draining), Some(Verdict::Interrupted));
    run.start("P1/A/a1", vec![]);
    assert_eq!(starts(&run, &draining), Vec::<String>::new());
    assert_eq!(verdict(&run, &draining), None, "what runs may finish");
}

#[test]
fn a_step_that_waits_is_woken_at_its_time() {
    let mut run = Run::new(plans::plan(vec![plans::phase("P", vec![plans::lane_of("A", &["a"])])]));
    let until = run.at.after(Millis(5_000));
    run.attempt("P/A/a", failed(Class::RateLimit, Next::Wait { until }));
    assert_eq!(decide(&run.plan, &run.state, &jobs(1), run.at), [Action::WakeAt(until)]);
    run.at = until;
    assert_eq!(starts(&run, &jobs(1)), ["P/A/a#2"]);
}

/// Lost, a retry in two seconds comes in two days where a clock that was wrong is put right.
#[test]
fn a_wait_does_not_outlast_a_clock_that_is_set_back() {
    let lane = plans::lane_of("A", &["a"]);
    for next in [|until| Next::Wait { until }, |at| Next::Retry { at }] {
        let mut run = Run::new(plans::plan(vec![plans::phase("P", vec![lane.clone()])]));
        let begun = run.at;
        let until = begun.after(Millis(5_000));
        run.attempt("P/A/a", failed(Class::Network, next(until)));
        run.at = begun.after(Millis(1));
        assert_eq!(starts(&run, &jobs(1)), Vec::<String>::new());
        run.at = Timestamp(begun.0 - 900_000);
        assert_eq!(starts(&run, &jobs(1)), ["P/A/a#2"]);
    }
}

#[test]
fn an_earlier_step_that_is_reset_waits_for_the_one_that_runs() {
    let mut run = Run::new(three_lanes());
    run.done("P1/A/a1");
    run.start("P1/A/a2", vec![]);
    run.take(Event::StepReset(StepReset { step: path("P1/A/a1"), reason: "asked".to_owned() }));
    assert_eq!(starts(&run, &jobs(9)), ["P1/B/b1#1", "P1/C/c1#1"]);
    assert_eq!(starts(&run, &jobs(1)), Vec::<String>::new(), "the one that runs counts");
    assert_eq!(verdict(&run, &Limits { draining: true, ..jobs(9) }), None);
}

#[test]
fn each_budget_of_a_run_ends_it_with_its_name() {
    let used = |name: &str, run: &mut Run| match name {
        "tokens" => run.state.used.tokens = 10,
        "money" => run.state.used.money_micros = 10,
        "run_log_bytes" => run.state.used.log_bytes = 10,
        "run_time" => run.state.used.driven_ms = Millis(10),
        _ => run.state.phases[0].driven_ms = Millis(10),
    };
    for name in ["run_time", "phase_time", "tokens", "money", "run_log_bytes"] {
        let mut plan = three_lanes();
        match name {
            "tokens" => plan.budgets.tokens = 10,
            "money" => plan.budgets.money_micros = 10,
            "run_log_bytes" => plan.budgets.run_log_bytes = 10,
            "run_time" => plan.budgets.run_time = Millis(10),
            _ => plan.budgets.phase_time = Millis(10),
        }
        let mut run = Run::new(plan);
        assert_eq!(starts(&run, &jobs(9)).len(), 3, "{name}: not used up yet");
        run.start("P1/A/a1", vec![]);
        used(name, &mut run);
        let actions = decide(&run.plan, &run.state, &jobs(9), run.at);
        let told = actions.iter().any(|a| matches!(a, Action::Exhausted(b) if b.budget == name));
        assert!(told, "{name}: {actions:?}");
        let time = name.ends_with("time");
        assert_eq!(actions.contains(&Action::EndAll), time, "{name}: only time ends what runs");
        assert_eq!(starts(&run, &jobs(9)), Vec::<String>::new(), "{name}");
        run.take(finished("P1/A/a1", 1, piton_core::event::Outcome::Succeeded, vec![]));
        assert_eq!(verdict(&run, &jobs(9)), Some(Verdict::Budget), "{name}");
    }
}

/// Lost, a person's retries are bounded by nothing; or what did not fail is held by its budget.
#[test]
fn a_step_that_failed_is_tried_no_more_often_than_the_budget_says() {
    let mut plan = plans::plan(vec![plans::phase("P", vec![plans::lane_of("A", &["a"])])]);
    plan.budgets.attempts = 1;
    let retried = || {
        let step = path("P/A/a");
        Event::StepRetried(piton_core::event::StepRetried { step, by: "ann".to_owned() })
    };
    let mut run = Run::new(plan);
    run.attempt("P/A/a", failed(Class::Command, Next::Fail));
    assert_eq!(verdict(&run, &jobs(1)), Some(Verdict::Failed));
    run.take(retried());
    let exhausted = Action::Exhausted(BudgetExhausted::of_run("attempts", 1, 1));
    let leave = Action::Leave(Verdict::Budget);
    assert_eq!(decide(&run.plan, &run.state, &jobs(1), run.at), [exhausted, leave]);
    run.plan.budgets.attempts = 2;
    assert_eq!(starts(&run, &jobs(1)), ["P/A/a#2"]);
    run.attempt("P/A/a", Outcome::Interrupted { why: "killed".to_owned() });
    assert_eq!(starts(&run, &jobs(1)), ["P/A/a#3"], "what was cut short did not fail");
    run.done("P/A/a");
    run.take(Event::StepReset(StepReset { step: path("P/A/a"), reason: "asked".to_owned() }));
    assert_eq!(starts(&run, &jobs(1)), ["P/A/a#4"], "nor did what is to run again");
}

#[test]
fn a_driver_wakes_up_when_a_budget_of_time_ends() {
    let mut plan = three_lanes();
    plan.budgets.run_time = Millis(1_000);
    let mut run = Run::new(plan);
    run.start("P1/A/a1", vec![]);
    let actions = decide(&run.plan, &run.state, &jobs(1), run.at);
    assert_eq!(actions, [Action::WakeAt(Timestamp(run.at.0 + 1_000))]);
    run.at = run.at.after(Millis(1_000));
    let actions = decide(&run.plan, &run.state, &jobs(1), run.at);
    assert!(actions.contains(&Action::EndAll), "{actions:?}");
}

/// If this fails, a laptop that was closed over the weekend ends its running steps when it wakes.
#[test]
fn time_that_the_machine_slept_counts_for_no_budget() {
    let mut plan = three_lanes();
    plan.budgets.run_time = Millis(1_000);
    let mut run = Run::new(plan);
    run.start("P1/A/a1", vec![]);
    run.at = run.at.after(Millis(50_000));
    run.take(Event::TimeSkipped(TimeSkipped { ms: Millis(49_900) }));
    let actions = decide(&run.plan, &run.state, &jobs(1), run.at);
    assert_eq!(actions, [Action::WakeAt(Timestamp(run.at.0 + 900))]);
    run.take(finished("P1/A/a1", 1, piton_core::event::Outcome::Succeeded, vec![]));
    assert_eq!(run.state.used.driven_ms, Millis(100));
}

#[test]
fn what_a_chosen_lane_needs_and_nobody_chose_is_named() {
    let mut plan = three_lanes();
    plan.phases[0].lanes[1].needs = vec![LanePath { phase: "P1".into(), lane: "A".into() }];
    plan.phases[0].lanes[0].rules.provides = vec!["IF-0-P1-API".to_owned()];
    let mut run = Run::new(plan);
    let lane = |id: &str| Limits { lane: Some(id.to_owned()), ..jobs(9) };
    assert_eq!(verdict(&run, &lane("B")), Some(Verdict::Blocked));
    assert_eq!(
        unmet_of(&run, &lane("B")),
        ["P1/B: it needs P1/A (closes gate IF-0-P1-API), which is pending; --lane A"]
    );
    let second = Limits { phase: Some("P2".to_owned()), ..jobs(9) };
    assert_eq!(unmet_of(&run, &second), ["P2/D: it needs phase P1, which is not done; --phase P1"]);
    assert_eq!(unmet_of(&run, &jobs(9)), Vec::<String>::new(), "everything runs");
    let first = Limits { phase: Some("P1".to_owned()), ..jobs(9) };
    assert_eq!(unmet_of(&run, &first), Vec::<String>::new(), "it is chosen with what it needs");
    for step in ["P1/A/a1", "P1/A/a2"] {
        run.start(step, vec![]);
        run.take(finished(step, 1, piton_core::event::Outcome::Succeeded, vec![]));
    }
    assert_eq!(unmet_of(&run, &lane("B")), Vec::<String>::new());
}

/// Lost: a look at what would happen is silent about steps that would not run.
#[test]
fn every_step_that_would_not_run_has_a_reason() {
    let mut plan = three_lanes();
    plan.phases[0].lanes[1].needs = vec![LanePath { phase: "P1".into(), lane: "A".into() }];
    plan.on_failure = OnFailure::Continue;
    let mut run = Run::new(plan);
    run.start("P1/A/a1", vec![]);
    run.take(finished("P1/A/a1", 1, failed(Class::Command, Next::Fail), vec![]));
    let after = "P2/D/d1: it comes after phase P1, which would not be done";
    let of_the_rest = [
        "P1/A/a2: it comes after P1/A/a1, which failed",
        "P1/B/b1: it needs lane P1/A, which would not be done",
    ];
    let waits = "P1/C/c1: what it waits for would not be there";
    assert_eq!(held_of(&run, &jobs(9)), [of_the_rest[0], of_the_rest[1], waits, after]);
    run.plan.on_failure = OnFailure::Stop;
    let stopped = "P1/C/c1: nothing new starts, because P1/A/a1 failed";
    assert_eq!(held_of(&run, &jobs(9)), [of_the_rest[0], of_the_rest[1], stopped, after]);
    let lane = Limits { lane: Some("C".to_owned()), ..jobs(9) };
    assert_eq!(held_of(&run, &lane)[0], "P1/A/a2: it was not chosen");
}

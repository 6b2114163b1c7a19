//! The words for where lanes, phases and runs stand.

mod support;

use piton_core::event::{
    Class, DriverLeft, Event, GateAsked, GateDecided, LaneBlocked, Next, RunAborted, RunArchived,
    StepSkipped, Verdict,
};
use piton_core::refusal::Refusal;
use piton_core::summary::{
    current, lane_status, phase_status, progress, run_status, standing, standing_verdict,
    step_status,
};
use piton_core::{GateRef, Status};
use piton_testkit::plans;
use support::{Run, failed, path};

fn run() -> Run {
    let mut plan = plans::plan(vec![
        plans::phase(
            "P1",
            vec![plans::lane_of("A", &["one", "two"]), plans::lane_of("B", &["one"])],
        ),
        plans::phase("P2", vec![plans::lane_of("C", &["one"])]),
    ]);
    plan.phases[1].gate = Some("Go".to_owned());
    Run::new(plan)
}

fn statuses(run: &Run) -> (Status, Status, Status) {
    let phase = &run.state.phases[0];
    let lane = lane_status(&run.state, phase, &phase.lanes[0]);
    (lane, phase_status(&run.state, phase), run_status(&run.state, true))
}

fn leave(run: &mut Run, verdict: Verdict) -> Status {
    run.take(Event::DriverLeft(DriverLeft {
        verdict,
        head: None,
        signal: None,
        driven_until: None,
    }));
    run_status(&run.state, false)
}

type Change = Box<dyn Fn(&mut Run)>;

#[test]
fn a_lane_stands_where_its_current_step_stands() {
    let later = piton_core::Timestamp(9_000_000);
    let table: Vec<(Change, Status)> = vec![
        (Box::new(|_| {}), Status::Pending),
        (Box::new(|run| _ = run.start("P1/A/one", vec![])), Status::Running),
        (Box::new(|run| run.done("P1/A/one")), Status::Running),
        (Box::new(|run| run.attempt("P1/A/one", failed(Class::Test, Next::Fail))), Status::Failed),
        (
            Box::new(move |run| {
                run.attempt("P1/A/one", failed(Class::Test, Next::Retry { at: later }));
            }),
            Status::Retrying,
        ),
        (
            Box::new(move |run| {
                run.attempt("P1/A/one", failed(Class::RateLimit, Next::Wait { until: later }));
            }),
            Status::Parked,
        ),
        (
            Box::new(|run| {
                run.done("P1/A/one");
                run.done("P1/A/two");
            }),
            Status::Complete,
        ),
    ];
    for (change, expected) in table {
        let mut run = run();
        change(&mut run);
        assert_eq!(statuses(&run).0, expected);
    }
}

#[test]
fn a_phase_says_the_worst_and_a_driven_run_runs() {
    let mut run = run();
    run.start("P1/B/one", vec![]);
    run.attempt("P1/A/one", failed(Class::Test, Next::Fail));
    assert_eq!(statuses(&run), (Status::Failed, Status::Failed, Status::Running));
}

#[test]
fn a_gate_that_was_asked_makes_its_phase_wait() {
    let mut run = run();
    for step in ["P1/A/one", "P1/A/two", "P1/B/one"] {
        run.done(step);
    }
    let gate = GateRef("P2".to_owned());
    run.take(Event::GateAsked(GateAsked { gate, name: "Go".to_owned() }));
    assert_eq!(phase_status(&run.state, &run.state.phases[1]), Status::Waiting);
    assert_eq!(leave(&mut run, Verdict::Waiting), Status::Waiting);
    // Lost: a run that only has to be resumed would be said to wait for a person.
    for (approved, status) in [(false, Status::Failed), (true, Status::Interrupted)] {
        run.take(Event::GateDecided(GateDecided {
            gate: GateRef("P2".to_owned()),
            approved,
            by: "ada".to_owned(),
            at: None,
            message: String::new(),
            plan_hash: piton_core::hash::Sha::of(b""),
            artifacts: Vec::new(),
        }));
        assert_eq!(run_status(&run.state, false), status);
    }
}

#[test]
fn a_run_without_a_driver_says_how_the_last_one_left() {
    for (verdict, status) in [
        (Verdict::Failed, Status::Failed),
        (Verdict::Waiting, Status::Waiting),
        (Verdict::Blocked, Status::Blocked),
        (Verdict::Budget, Status::Blocked),
        (Verdict::Interrupted, Status::Interrupted),
        (Verdict::SelectionDone, Status::Pending),
    ] {
        let mut run = run();
        run.start("P1/A/one", vec![]);
        assert_eq!(run_status(&run.state, false), Status::Interrupted, "it fell");
        if verdict == Verdict::Failed {
            run.attempt("P1/B/one", failed(Class::Test, Next::Fail));
        }
        if verdict == Verdict::Blocked {
            run.take(Event::LaneBlocked(LaneBlocked {
                lane: path("P1/B/one").lane(),
                stage: piton_core::lane::Stage::BeforeLaneStart,
                refusal: Refusal::new("dirty", "dirty").or("commit"),
                base_branch: String::new(),
            }));
        }
        assert_eq!(leave(&mut run, verdict), status);
    }
}

#[test]
fn a_run_that_is_over_says_so_whoever_lives() {
    let mut run = run();
    for step in ["P1/A/one", "P1/A/two", "P1/B/one"] {
        run.done(step);
    }
    let by = || "ada".to_owned();
    run.take(Event::StepSkipped(StepSkipped { step: path("P2/C/one"), satisfy: false, by: by() }));
    assert_eq!(run_status(&run.state, true), Status::Complete);
    assert_eq!(phase_status(&run.state, &run.state.phases[1]), Status::Skipped);
    assert_eq!(progress(&run.state), (4, 4));
    assert_eq!(current(&run.state), None);
    run.take(Event::RunAborted(RunAborted { by: by(), message: String::new(), cancel: false }));
    assert_eq!(run_status(&run.state, false), Status::Aborted);
}

/// Lost, a run that fell before its first event would count as complete.
#[test]
fn a_run_without_its_first_event_is_pending() {
    let state = piton_core::RunState::default();
    assert_eq!(run_status(&state, false), Status::Pending);
    assert_eq!(run_status(&state, true), Status::Pending);
}

/// Lost, a run whose failed step got new attempts would still count as failed, and the only way on
/// that is named would be to end it.
#[test]
fn a_failure_that_was_dealt_with_fails_the_run_no_more() {
    let mut run = run();
    run.attempt("P1/A/one", failed(Class::Test, Next::Fail));
    assert_eq!(leave(&mut run, Verdict::Failed), Status::Failed);
    let step = path("P1/A/one");
    run.take(Event::StepRetried(piton_core::event::StepRetried { step, by: "ann".to_owned() }));
    assert_eq!(run_status(&run.state, false), Status::Interrupted);
}

/// Lost, the way on that is named would be that of a run with nothing left to do.
#[test]
fn a_complete_run_with_work_to_be_done_again_is_complete_no_more() {
    let mut run = run();
    for step in ["P1/A/one", "P1/A/two", "P1/B/one", "P2/C/one"] {
        run.done(step);
    }
    assert_eq!(leave(&mut run, Verdict::Complete), Status::Complete);
    assert_eq!(standing_verdict(&run.state), Some(Verdict::Complete));
    let (step, reason) = (path("P1/A/one"), "ann asked for it".to_owned());
    run.take(Event::StepReset(piton_core::event::StepReset { step, reason }));
    assert_eq!(standing_verdict(&run.state), None);
    assert_eq!(run_status(&run.state, false), Status::Interrupted);
}

/// Lost: a run that was ended long ago would look as if it was at work.
#[test]
fn what_was_ended_with_its_run_is_not_shown_at_work() {
    for run in [Status::Aborted, Status::Cancelled, Status::Interrupted, Status::Archived] {
        assert_eq!(standing(Status::Running, run, false, true), run);
        assert_eq!(standing(Status::Running, run, true, false), Status::Running, "a step goes on");
        assert_eq!(standing(Status::Complete, run, false, false), Status::Complete);
    }
    for run in [Status::Failed, Status::Blocked, Status::Waiting, Status::RolledBack] {
        assert_eq!(standing(Status::Running, run, false, true), Status::Interrupted);
    }
    assert_eq!(standing(Status::Running, Status::Pending, false, true), Status::Pending);
    let live = Status::Running;
    assert_eq!(standing(Status::Running, live, false, true), Status::Running, "it is merged");
    assert_eq!(standing(Status::Running, live, false, false), Status::Pending, "another lane runs");
    assert_eq!(standing(Status::Running, live, true, false), Status::Running);
}

/// Lost: a run that was ended for good would count down to an attempt that never comes.
#[test]
fn nothing_waits_in_a_run_that_was_ended() {
    let by = || "ada".to_owned();
    let abort = |cancel| Event::RunAborted(RunAborted { by: by(), message: String::new(), cancel });
    let until = piton_core::Timestamp(9_000_000);
    for (event, ended) in [
        (abort(false), Status::Aborted),
        (abort(true), Status::Cancelled),
        (Event::RunArchived(RunArchived { by: by() }), Status::Archived),
    ] {
        for (class, next) in
            [(Class::Test, Next::Retry { at: until }), (Class::RateLimit, Next::Wait { until })]
        {
            let mut run = run();
            run.attempt("P1/A/one", failed(class, next));
            run.take(event.clone());
            let (phase, gate) = (&run.state.phases[0], GateRef("P1/B".to_owned()));
            let lane = &phase.lanes[0];
            assert_eq!(step_status(&run.state, phase, lane, &lane.steps[0]), ended);
            assert_eq!(step_status(&run.state, phase, lane, &lane.steps[1]), Status::Pending);
            assert_eq!(statuses(&run), (ended, ended, ended));
            let (name, asked_at, decision) = ("Go".to_owned(), until, None);
            let asked = piton_core::state::GateState { name, asked_at, decision };
            run.state.gates.insert(gate, asked);
            let phase = &run.state.phases[0];
            assert_eq!(lane_status(&run.state, phase, &phase.lanes[1]), ended, "for a person");
        }
    }
}

/// Lost: a run that a person had freed would still be called blocked, and nothing would be named that
/// goes on.
#[test]
fn a_block_that_was_dealt_with_blocks_the_run_no_more() {
    let mut plan = plans::plan(vec![plans::phase(
        "P1",
        vec![plans::lane_of("A", &["one"]), plans::lane_of("B", &["one"])],
    )]);
    plan.phases[0].lanes[1].needs = vec![path("P1/A/one").lane()];
    let mut run = Run::new(plan);
    let skip = |run: &mut Run, satisfy| {
        let (step, by) = (path("P1/A/one"), "ada".to_owned());
        run.take(Event::StepSkipped(StepSkipped { step, satisfy, by }));
    };
    skip(&mut run, false);
    assert_eq!(leave(&mut run, Verdict::Blocked), Status::Blocked);
    skip(&mut run, true);
    assert_eq!(run_status(&run.state, false), Status::Interrupted);
}

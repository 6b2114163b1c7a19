//! Lanes that run alone and lanes on their way to base: who waits for whom, and never for each other.

mod lane_events;
mod support;

use lane_events::{TEST, begun, blocked, committed, lane_path, ready, rebased, removed, snapshot};
use piton_core::decide::LaneAct;
use piton_core::event::{Event, MergedBy, Outcome, StepReset};
use piton_core::lane::{Isolation, Merge, Stage};
use piton_core::plan::Lane;
use piton_core::{Action, Limits, decide};
use piton_testkit::plans;
use support::{Run, attached, finished, path};

fn lane(id: &str, alone: bool, merge: Merge) -> Lane {
    let mut lane = plans::apart(id, vec![plans::step("work")], &[TEST]);
    lane.rules.alone = alone;
    lane.rules.merge = merge;
    lane
}

fn run(lanes: Vec<Lane>) -> Run {
    Run::new(plans::plan(vec![plans::phase("P", lanes)]))
}

fn attempt(run: &mut Run, step: &str, tests: bool) {
    let number = run.start(step, vec![]);
    let Event::StepFinished(mut event) = finished(step, number, Outcome::Succeeded, vec![]) else {
        unreachable!("it is the end of a step")
    };
    event.after = Some(snapshot("made"));
    event.tests = if tests { vec![TEST.to_owned()] } else { Vec::new() };
    run.take(Event::StepFinished(event));
}

/// Takes a lane to the end of its steps.
fn works(run: &mut Run, id: &str) {
    let lane = format!("P/{id}");
    run.take(begun(&lane, Isolation::Worktree));
    run.take(ready(&lane, "start"));
    attempt(run, &format!("{lane}/work"), false);
    attempt(run, &format!("{lane}/tests"), true);
}

fn actions(run: &Run) -> Vec<Action> {
    let limits = Limits { jobs: 8, ..Limits::default() };
    decide(&run.plan, &run.state, &limits, run.at)
}

fn begins(run: &Run, id: &str) -> bool {
    let wanted = Action::Lane { lane: lane_path(&format!("P/{id}")), act: LaneAct::Begin };
    actions(run).contains(&wanted)
}

#[test]
fn one_that_runs_alone_waits_for_those_on_their_way() {
    let mut run = run(vec![lane("A", false, Merge::Queue), lane("B", true, Merge::Queue)]);
    works(&mut run, "A");
    assert!(!begins(&run, "B"), "A is to be committed");
    run.take(committed("P/A", "made", true));
    assert!(!begins(&run, "B"), "A is to be rebased");
    run.take(rebased("P/A", "base", "made"));
    assert!(!begins(&run, "B"), "A is to be merged");
    run.take(lane_events::merged("P/A", MergedBy::Queue));
    run.take(removed("P/A"));
    assert!(begins(&run, "B"));
}

#[test]
fn but_not_for_one_that_needs_a_person_or_never_gets_there() {
    let mut stuck = run(vec![lane("A", false, Merge::Queue), lane("B", true, Merge::Queue)]);
    works(&mut stuck, "A");
    stuck.take(committed("P/A", "made", true));
    stuck.take(blocked("P/A", Stage::PrePr));
    assert!(begins(&stuck, "B"));
    for merge in [Merge::None, Merge::PullRequest] {
        let mut run = run(vec![lane("A", false, merge), lane("B", true, Merge::Queue)]);
        works(&mut run, "A");
        run.take(committed("P/A", "made", true));
        assert!(begins(&run, "B"), "{merge:?}");
    }
}

/// Lost: a run would stand still for ever, with one lane waiting for the queue and the other for it.
#[test]
fn one_that_holds_the_queue_tests_again_beside_one_that_ran_alone() {
    let mut run = run(vec![lane("A", false, Merge::Queue), lane("B", true, Merge::Queue)]);
    works(&mut run, "A");
    run.take(committed("P/A", "made", true));
    run.take(blocked("P/A", Stage::PrePr));
    works(&mut run, "B");
    run.take(committed("P/B", "made", true));
    run.take(attached(2));
    run.take(committed("P/A", "made", true));
    run.take(rebased("P/A", "base", "other"));
    let step = path("P/A/tests");
    run.take(Event::StepReset(StepReset { step: step.clone(), reason: "moved".to_owned() }));
    assert!(actions(&run).contains(&Action::Start { step, attempt: 2 }), "{:?}", actions(&run));
}

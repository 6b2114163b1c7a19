//! Tasks in worktrees of their own: when they may work, and what follows for their lane.

#![expect(clippy::unwrap_used, reason = "what is not there is a failed test")]

mod lane_events;
mod support;

use lane_events::{
    TEST, begun, blocked, committed, forked, joined, lane_path, merged, proven, ready, removed,
};
use piton_core::decide::LaneAct;
use piton_core::event::{
    Class, Event, MergedBy, Next, Outcome, RewindIntended, RewindKind, RewindWorkspace, Rewound,
    StepReset,
};
use piton_core::lane::{Isolation, SnapshotRef, Stage, StageStatus};
use piton_core::lane_state::LaneProgress;
use piton_core::plan::Step;
use piton_core::request::{Refused, Request, turn};
use piton_core::state::Progress;
use piton_core::summary::{lane_status, step_status};
use piton_core::{Action, LanePath, Limits, Status, decide};
use piton_testkit::plans;
use support::{Run, failed, finished, path};

const WAITS: &str = "P/A/tasks";

fn run() -> Run {
    let task = || Step { retries: 0, ..plans::step("work") };
    let mut lanes = plans::with_tasks("A", &[("T1", task()), ("T2", task())], 1, &[TEST]);
    lanes.push(plans::lane_of("after", &["work"]));
    lanes[3].needs.push(lane_path("P/A"));
    Run::new(plans::plan(vec![plans::phase("P", lanes)]))
}

/// A run whose lane is at its tasks, with its work committed or not.
fn at_tasks(fork: bool) -> Run {
    let mut run = run();
    run.take(begun("P/A", Isolation::Worktree));
    run.take(ready("P/A", "start"));
    run.done("P/A/first");
    if fork {
        run.take(forked(WAITS, "first"));
    }
    run
}

fn decided(run: &Run, limits: &Limits) -> Vec<Action> {
    let all = decide(&run.plan, &run.state, limits, run.at).into_iter();
    all.filter(|a| !matches!(a, Action::WakeAt(_))).collect()
}

fn limits() -> Limits {
    Limits { jobs: 4, checkpoints: true, ..Limits::default() }
}

fn lane_act(lane: &str, act: LaneAct) -> Action {
    Action::Lane { lane: lane_path(lane), act }
}

/// Lets a task do its work and reach its lane.
fn bring_back(run: &mut Run, task: &str) {
    run.take(begun(task, Isolation::Worktree));
    run.take(ready(task, "first"));
    run.done(&format!("{task}/work"));
    run.take(proven(&format!("{task}/tests"), "done"));
    run.take(committed(task, "done", true));
    run.take(merged(task, MergedBy::Queue));
    run.take(removed(task));
}

#[test]
fn tasks_start_once_what_their_lane_did_is_committed() {
    let run = at_tasks(false);
    assert_eq!(decided(&run, &limits()), [lane_act("P/A", LaneAct::Fork)]);
    let run = at_tasks(true);
    let both = [lane_act("P/A.T1", LaneAct::Begin), lane_act("P/A.T2", LaneAct::Begin)];
    assert_eq!(decided(&run, &limits()), both);
    assert_eq!(decided(&run, &Limits { jobs: 1, ..limits() }), both[..1]);
    // Whoever chooses a lane chooses its tasks.
    let lane = Some("A".to_owned());
    assert_eq!(decided(&run, &Limits { lane, ..limits() }), both);
    let other = Some("after".to_owned());
    assert!(matches!(decided(&run, &Limits { lane: other, ..limits() })[..], [Action::Leave(_)]));
}

#[test]
fn a_lane_goes_on_when_all_its_tasks_are_back() {
    let mut run = at_tasks(true);
    bring_back(&mut run, "P/A.T1");
    assert_eq!(decided(&run, &limits()), [lane_act("P/A.T2", LaneAct::Begin)]);
    bring_back(&mut run, "P/A.T2");
    assert_eq!(decided(&run, &limits()), [lane_act("P/A", LaneAct::Join)]);
    run.take(joined(WAITS, "both"));
    let work = run.state.lane(&lane_path("P/A")).unwrap().work.clone().unwrap();
    assert_eq!(work.progress, LaneProgress::Working { conflict: None });
    assert_eq!(work.latest.tree.as_deref(), Some("both"));
    // Nothing went wrong, so nobody mends; the tests have not seen this tree.
    assert_eq!(decided(&run, &limits()), [lane_act("P/A", LaneAct::Prove)]);
    run.take(proven("P/A/mend", ""));
    let tests = Action::Start { step: path("P/A/tests"), attempt: 1 };
    assert_eq!(decided(&run, &limits()), [tests]);
    assert!(run.state.undo.is_empty(), "{:?}", run.state.undo);
}

#[test]
fn tasks_come_back_in_the_order_of_the_plan() {
    let mut run = at_tasks(true);
    for task in ["P/A.T1", "P/A.T2"] {
        run.take(begun(task, Isolation::Worktree));
        run.take(ready(task, "first"));
    }
    run.start("P/A.T1/work", vec![]);
    run.done("P/A.T2/work");
    run.take(proven("P/A.T2/tests", "done"));
    run.take(committed("P/A.T2", "done", true));
    assert_eq!(decided(&run, &limits()), []);
    run.take(finished("P/A.T1/work", 1, Outcome::Succeeded, vec![]));
    run.take(proven("P/A.T1/tests", "done"));
    run.take(committed("P/A.T1", "done", true));
    assert_eq!(decided(&run, &limits()), [lane_act("P/A.T1", LaneAct::Rebase)]);
}

#[test]
fn what_holds_a_task_up_shows_with_its_lane() {
    let mut run = at_tasks(true);
    run.take(begun("P/A.T1", Isolation::Worktree));
    run.take(ready("P/A.T1", "first"));
    run.attempt("P/A.T1/work", failed(Class::Agent, Next::Fail));
    let state = &run.state;
    let phase = state.phase("P").unwrap();
    let whole = &phase.lanes[0];
    assert_eq!(lane_status(state, phase, whole), Status::Failed);
    assert_eq!(step_status(state, phase, whole, &whole.steps[1]), Status::Failed);
    let told = whole.work.as_ref().unwrap().record(Stage::AfterLaneStart).unwrap();
    assert_eq!((told.status, told.notes.as_str()), (StageStatus::Failed, "work: exit code 1"));
    run.take(blocked("P/A.T2", Stage::BeforeLaneStart));
    let told = run.state.phases[0].lanes[0].work.as_ref().unwrap();
    let told = told.record(Stage::AfterLaneStart).unwrap();
    assert_eq!(told.status, StageStatus::Blocked);
    assert!(told.notes.starts_with("T2: something is wrong"), "{}", told.notes);
}

#[test]
fn requests_for_the_step_that_waits_are_for_its_tasks() {
    let mut run = at_tasks(true);
    run.take(begun("P/A.T1", Isolation::Worktree));
    run.take(ready("P/A.T1", "first"));
    let asks = |run: &Run, request: &Request| {
        let events = turn(&run.state, request, "ada")?;
        let named = |e: &Event| e.step().map(ToString::to_string).unwrap_or_default();
        Ok::<_, Refused>(events.iter().map(named).collect::<Vec<_>>())
    };
    let retry = |again| Request::Retry { step: path(WAITS), again, downstream: false };
    let skip = Request::Skip { step: path(WAITS), satisfy: false };
    assert!(matches!(asks(&run, &retry(false)), Err(Refused::NotFailed(..))));
    run.attempt("P/A.T1/work", failed(Class::Agent, Next::Fail));
    assert_eq!(asks(&run, &retry(false)).unwrap(), ["P/A.T1/work"]);
    let open = ["P/A.T1/work", "P/A.T1/tests", "P/A.T2/work", "P/A.T2/tests"];
    assert_eq!(asks(&run, &skip).unwrap(), open);
    run.start("P/A.T2/work", vec![]);
    assert!(matches!(asks(&run, &skip), Err(Refused::Running(..))));
    // What comes after a task is what its lane does then, and what needs the lane.
    let mut run = over();
    let after = |step: &str| Request::Retry { step: path(step), again: true, downstream: true };
    let all = asks(&run, &after("P/A.T2/work")).unwrap();
    assert_eq!(all[1..], ["P/A/mend", "P/A/tests", "P/A.T2/tests", "P/after/work"]);
    let all = asks(&run, &after("P/A/first")).unwrap();
    assert_eq!(all.len(), 9, "{all:?}");
    for event in turn(&run.state, &after("P/A.T2/work"), "ada").unwrap() {
        run.take(event);
    }
    assert_eq!(run.state.step(&path(WAITS)).unwrap().progress, Progress::Pending);
}

/// A run that is over.
fn over() -> Run {
    let mut run = at_tasks(true);
    bring_back(&mut run, "P/A.T1");
    bring_back(&mut run, "P/A.T2");
    run.take(joined(WAITS, "both"));
    run.take(proven("P/A/mend", ""));
    run.done("P/A/tests");
    run.take(committed("P/A", "both", true));
    run.take(merged("P/A", MergedBy::Queue));
    run.take(removed("P/A"));
    run.done("P/after/work");
    assert!(run.state.is_over());
    run
}

#[test]
fn a_task_that_is_reset_makes_its_lane_wait_again() {
    let mut run = over();
    let (step, reason) = (path("P/A.T1/work"), "asked for".to_owned());
    run.take(Event::StepReset(StepReset { step, reason }));
    assert_eq!(run.state.step(&path(WAITS)).unwrap().progress, Progress::Pending);
    assert!(!run.state.satisfies(&lane_path("P/A")));
    assert_eq!(decided(&run, &limits()), [lane_act("P/A", LaneAct::Begin)]);
}

fn rolled_back(run: &mut Run, after_event: u64) {
    run.take(Event::RewindIntended(Box::new(RewindIntended {
        kind: RewindKind::Rollback,
        to: "before_lane_start".to_owned(),
        stage: Some(Stage::BeforeLaneStart),
        after_event,
        points: Vec::new(),
        lanes: vec![lane_path("P/A")],
        workspaces: Vec::new(),
        reverts: Vec::new(),
        undoes: None,
        by: "ada".to_owned(),
    })));
    run.take(Event::Rewound(Rewound::default()));
}

fn task(run: &Run, lane: &str) -> (Progress, Option<bool>) {
    let lane: LanePath = lane_path(lane);
    let lane = run.state.lane(&lane).unwrap();
    (lane.steps[0].progress, lane.work.as_ref().map(|w| w.is_dropped()))
}

#[test]
fn a_lane_that_goes_back_lets_its_tasks_start_over() {
    let mut run = at_tasks(true);
    bring_back(&mut run, "P/A.T1");
    run.take(begun("P/A.T2", Isolation::Worktree));
    run.take(ready("P/A.T2", "first"));
    run.attempt("P/A.T2/work", failed(Class::Agent, Next::Fail));
    rolled_back(&mut run, 2);
    // The first left nothing that would have to go.
    assert_eq!(task(&run, "P/A.T1"), (Progress::Pending, None));
    assert_eq!(task(&run, "P/A.T2"), (Progress::Pending, Some(true)));
    assert!(decided(&run, &limits()).contains(&lane_act("P/A.T2", LaneAct::Remove)));
    run.take(removed("P/A.T2"));
    assert_eq!(task(&run, "P/A.T2"), (Progress::Pending, None));
    // Brought back, the lane has the first task's work, and the second starts over.
    let undoes = run.state.undo.last().map(|u| u.id);
    run.take(Event::RewindIntended(Box::new(RewindIntended {
        kind: RewindKind::Undo,
        to: String::new(),
        stage: None,
        after_event: 0,
        points: Vec::new(),
        lanes: Vec::new(),
        workspaces: Vec::new(),
        reverts: Vec::new(),
        undoes,
        by: "ada".to_owned(),
    })));
    run.take(Event::Rewound(Rewound::default()));
    assert_eq!(task(&run, "P/A.T1").0, Progress::Done);
    assert_eq!(task(&run, "P/A.T2"), (Progress::Pending, Some(true)));
}

/// The worktree of a task, as a rewind changes it.
fn workspace(lane: &str, goes: bool) -> RewindWorkspace {
    RewindWorkspace {
        lane: Some(lane_path(lane)),
        dir: format!("workspaces/{lane}"),
        present: SnapshotRef { commit: "half".to_owned(), ..SnapshotRef::default() },
        target: "half".to_owned(),
        beside: None,
        paths: Vec::new(),
        keep: Vec::new(),
        branch: format!("task/{lane}"),
        head_from: None,
        head_to: None,
        large: None,
        goes,
        copy: Vec::new(),
    }
}

fn rewinds(run: &mut Run, kind: RewindKind, workspaces: Vec<RewindWorkspace>) {
    let undoes = run.state.undo.last().map(|u| u.id).filter(|_| kind == RewindKind::Undo);
    let rollback = kind == RewindKind::Rollback;
    let intent = RewindIntended {
        kind,
        to: "before_lane_start".to_owned(),
        stage: rollback.then_some(Stage::BeforeLaneStart),
        after_event: 2,
        points: Vec::new(),
        lanes: if rollback { vec![lane_path("P/A")] } else { Vec::new() },
        workspaces,
        reverts: Vec::new(),
        undoes,
        by: "ada".to_owned(),
    };
    let leaving: Vec<LanePath> =
        intent.workspaces.iter().filter(|r| r.goes).filter_map(|r| r.lane.clone()).collect();
    assert_eq!(run.state.tasks_leaving(&intent, &[]), leaving);
    run.take(Event::RewindIntended(Box::new(intent)));
    run.take(Event::Rewound(Rewound::default()));
}

/// Lost: what a task did, though its worktree comes back with an undo.
#[test]
fn a_task_whose_worktree_comes_back_goes_on_where_it_was() {
    let mut run = at_tasks(true);
    bring_back(&mut run, "P/A.T1");
    run.take(begun("P/A.T2", Isolation::Worktree));
    run.take(ready("P/A.T2", "first"));
    run.done("P/A.T2/work");
    let before = run.state.lane(&lane_path("P/A.T2")).cloned();
    for _ in 0..2 {
        // With the worktree nothing is left that would have to go.
        rewinds(&mut run, RewindKind::Rollback, vec![workspace("P/A.T2", true)]);
        assert_eq!(task(&run, "P/A.T2"), (Progress::Pending, None));
        rewinds(&mut run, RewindKind::Undo, vec![workspace("P/A.T2", false)]);
        assert_eq!(run.state.lane(&lane_path("P/A.T2")).cloned(), before);
        rewinds(&mut run, RewindKind::Undo, vec![workspace("P/A.T2", true)]);
        assert_eq!(task(&run, "P/A.T2"), (Progress::Pending, None));
        rewinds(&mut run, RewindKind::Undo, vec![workspace("P/A.T2", false)]);
        assert_eq!(run.state.lane(&lane_path("P/A.T2")).cloned(), before);
    }
}

#[test]
fn tasks_that_were_back_before_the_point_stay() {
    let mut run = over();
    let joined_at = run.state.step(&path(WAITS)).unwrap().done_event;
    rolled_back(&mut run, joined_at);
    assert_eq!(task(&run, "P/A.T1").0, Progress::Done);
}

/// Confusing: a task that waits for its turn would be shown at work.
#[test]
fn a_task_that_is_done_before_its_turn_waits() {
    let mut run = at_tasks(true);
    for task in ["P/A.T1", "P/A.T2"] {
        run.take(begun(task, Isolation::Worktree));
        run.take(ready(task, "first"));
    }
    run.done("P/A.T2/work");
    run.take(proven("P/A.T2/tests", "done"));
    run.take(committed("P/A.T2", "done", true));
    let status = |run: &Run, lane: &str| {
        let phase = &run.state.phases[0];
        lane_status(&run.state, phase, run.state.lane(&lane_path(lane)).unwrap())
    };
    assert_eq!(status(&run, "P/A.T2"), Status::Waiting);
    assert_eq!(status(&run, "P/A"), Status::Running, "the other one works");
    run.done("P/A.T1/work");
    run.take(proven("P/A.T1/tests", "done"));
    run.take(committed("P/A.T1", "done", true));
    run.take(merged("P/A.T1", MergedBy::Queue));
    run.take(removed("P/A.T1"));
    assert_eq!(status(&run, "P/A.T2"), Status::Running, "it is its turn");
}

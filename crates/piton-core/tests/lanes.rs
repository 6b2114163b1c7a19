//! What events do to lanes: the records of their stages, what is legal, and what follows.

mod lane_events;
mod support;

use lane_events::{
    TEST, begun, blocked, committed, intended, lane_path, merged, missed, proven, ready, rebased,
    removed, reopened, snapshot,
};
use piton_core::decide::LaneAct;
use piton_core::event::{
    Class, Event, MergedBy, Next, Outcome, PullRequestOpened, RewindIntended, RewindKind, Rewound,
    StepFinished, StepReset, StepRetried, StepSkipped,
};
use piton_core::lane::{Isolation, Merge, Stage, StageStatus};
use piton_core::lane_state::{Conflict, LaneProgress, LaneWork, StageRecord};
use piton_core::plan::{Lane, Step};
use piton_core::state::Progress;
use piton_core::{Action, Illegal, Limits, Plan, Timestamp, decide};
use piton_testkit::plans;
use support::{Run, attached, failed, finished, path};

const LANE: &str = "P/A";
const WORK: &str = "P/A/work";
const TESTS: &str = "P/A/tests";

fn apart() -> Lane {
    plans::apart("A", vec![Step { retries: 2, ..plans::step("work") }], &[TEST])
}

fn plan(lane: Lane) -> Plan {
    plans::plan(vec![plans::phase("P", vec![lane])])
}

/// A lane in a worktree whose workspace is there.
fn in_workspace() -> Run {
    let mut run = Run::new(plan(apart()));
    run.take(begun(LANE, Isolation::Worktree));
    run.take(ready(LANE, "start"));
    run
}

/// The end of an attempt, with the files it left.
fn left(step: &str, attempt: u32, outcome: Outcome, tree: &str) -> Event {
    let Event::StepFinished(mut event) = finished(step, attempt, outcome, vec![]) else {
        unreachable!("it is the end of a step")
    };
    let is_test = step == TESTS;
    let succeeded = event.outcome == Outcome::Succeeded;
    event.after = Some(snapshot(tree));
    event.tests = if is_test && succeeded { vec![TEST.to_owned()] } else { Vec::new() };
    if !succeeded {
        event.exit_code = Some(1);
        event.command = Some(if is_test { TEST.to_owned() } else { "do work".to_owned() });
        event.retries_max = Some(2);
    }
    Event::StepFinished(Box::new(StepFinished { ..*event }))
}

fn attempt(run: &mut Run, step: &str, outcome: Outcome, tree: &str) {
    let number = run.start(step, vec![]);
    run.take(left(step, number, outcome, tree));
}

/// A lane whose tests have passed and whose work is committed.
fn done() -> Run {
    let mut run = in_workspace();
    attempt(&mut run, WORK, Outcome::Succeeded, "made");
    attempt(&mut run, TESTS, Outcome::Succeeded, "made");
    run.take(committed(LANE, "made", true));
    run
}

fn work(run: &Run) -> &LaneWork {
    run.state.lane(&lane_path(LANE)).and_then(|l| l.work.as_deref()).expect("the lane began")
}

fn record(run: &Run, stage: Stage) -> &StageRecord {
    work(run).record(stage).expect("the stage is recorded")
}

fn statuses(run: &Run) -> Vec<(Stage, StageStatus)> {
    let mut all: Vec<_> = work(run).records.iter().map(|r| (r.stage, r.status)).collect();
    all.sort_by_key(|(stage, _)| *stage);
    all
}

#[test]
fn each_event_sets_the_status_of_its_stage() {
    use Stage::{AfterLaneStart, AfterLaneTests, BeforeLaneStart, PrePr};
    use StageStatus::{Blocked, Complete, Failed, InProgress, Ready};
    let mut run = Run::new(plan(apart()));
    let step = |run: &mut Run, event: Event, expected: &[(Stage, StageStatus)]| {
        let name = format!("{event:?}");
        run.take(event);
        assert_eq!(statuses(run), expected, "{name}");
    };
    step(&mut run, blocked(LANE, BeforeLaneStart), &[(BeforeLaneStart, Blocked)]);
    step(&mut run, begun(LANE, Isolation::Worktree), &[(BeforeLaneStart, Ready)]);
    let mut so_far = vec![(BeforeLaneStart, Ready), (AfterLaneStart, InProgress)];
    step(&mut run, ready(LANE, "start"), &so_far);
    attempt(&mut run, WORK, Outcome::Succeeded, "made");
    attempt(&mut run, TESTS, Outcome::Succeeded, "made");
    assert_eq!(statuses(&run), so_far);
    so_far.push((AfterLaneTests, Complete));
    step(&mut run, committed(LANE, "made", true), &so_far);
    step(&mut run, rebased(LANE, "base", "made"), &so_far);
    so_far.push((PrePr, InProgress));
    step(&mut run, intended(LANE, "base", "commit of made"), &so_far);
    step(&mut run, missed(LANE), &so_far);
    so_far[3] = (PrePr, Failed);
    step(&mut run, blocked(LANE, PrePr), &so_far);
    so_far[3] = (PrePr, Complete);
    step(&mut run, merged(LANE, MergedBy::Queue), &so_far);
    step(&mut run, removed(LANE), &so_far);
    assert!(run.state.is_over());
}

#[test]
fn the_records_hold_what_a_reader_needs() {
    let mut run = done();
    let tests = record(&run, Stage::AfterLaneTests);
    assert_eq!((tests.test_command.as_deref(), tests.exit_code), (Some(TEST), Some(0)));
    assert_eq!(tests.head_sha.as_deref(), Some("commit of made"));
    assert_eq!(tests.snapshot.as_deref(), Some("snapshot of made"));
    assert_eq!(tests.retry_attempt, None);
    run.take(rebased(LANE, "newer", "both"));
    run.take(intended(LANE, "newer", "commit of both"));
    let merge = record(&run, Stage::PrePr);
    assert_eq!(merge.base_sha.as_deref(), Some("newer"));
    assert_eq!(merge.head_sha.as_deref(), Some("commit of both"));
    assert_eq!(merge.target_branch.as_deref(), Some("main"));
    assert_eq!(work(&run).stage(), Some(Stage::PrePr));
}

/// Lost: a record would say that tests passed which a person left out.
#[test]
fn tests_that_were_left_out_are_not_on_record() {
    let mut run = in_workspace();
    attempt(&mut run, WORK, Outcome::Succeeded, "made");
    let (step, by) = (path(TESTS), "ada".to_owned());
    run.take(Event::StepSkipped(StepSkipped { step, satisfy: true, by }));
    run.take(committed(LANE, "made", true));
    assert!(work(&run).record(Stage::AfterLaneTests).is_none());
}

#[test]
fn a_lane_in_place_has_its_records_without_a_worktree() {
    let mut run = Run::new(plan(plans::lane_of("A", &["work"])));
    run.take(begun(LANE, Isolation::InPlace));
    let started = [
        (Stage::BeforeLaneStart, StageStatus::Ready),
        (Stage::AfterLaneStart, StageStatus::InProgress),
    ];
    assert_eq!(statuses(&run), started);
    assert!(work(&run).has_workspace());
    attempt(&mut run, WORK, Outcome::Succeeded, "made");
    assert_eq!(record(&run, Stage::AfterLaneTests).status, StageStatus::Complete);
    assert_eq!(record(&run, Stage::AfterLaneTests).notes, "the lane has no tests");
    assert!(run.state.is_over());
}

/// Class, what follows; then the stage that shows it with its status, and the status of retries: a
/// failure that no retry follows, and that followed none, tells of none.
type Row = (Class, Next, Option<(Stage, StageStatus)>, Option<StageStatus>);

#[test]
fn failures_are_recorded_where_they_happened() {
    let later = Next::Retry { at: Timestamp(2_000_000) };
    let until = Next::Wait { until: Timestamp(2_000_000) };
    let rows: &[Row] = &[
        (Class::Command, later, None, Some(StageStatus::Retrying)),
        (Class::Command, Next::Fail, Some((Stage::AfterLaneStart, StageStatus::Failed)), None),
        (
            Class::Test,
            later,
            Some((Stage::AfterLaneTests, StageStatus::Failed)),
            Some(StageStatus::Retrying),
        ),
        (Class::Test, Next::Fail, Some((Stage::AfterLaneTests, StageStatus::Failed)), None),
        (Class::Network, until, None, None),
        (Class::Network, Next::Fail, Some((Stage::AfterLaneStart, StageStatus::Failed)), None),
    ];
    for (class, next, shown, retry) in rows {
        let mut run = in_workspace();
        attempt(&mut run, WORK, failed(*class, *next), "torn");
        let row = format!("{class:?} {next:?}");
        if let Some((stage, status)) = shown {
            let record = record(&run, *stage);
            assert_eq!(record.status, *status, "{row}");
            assert_eq!(record.exit_code, Some(1), "{row}");
            assert_eq!(record.last_command.as_deref(), Some("do work"), "{row}");
            assert_eq!(record.failure_context, ["Attempt 1: exit code 1", "oh"], "{row}");
            let told = retry.map(|_| (1, 2));
            assert_eq!(record.retry_attempt.zip(record.max_retries), told, "{row}");
        } else {
            let started = record(&run, Stage::AfterLaneStart).status;
            assert_eq!(started, StageStatus::InProgress, "{row}");
            assert!(work(&run).record(Stage::AfterLaneTests).is_none(), "{row}");
        }
        let found = work(&run).record(Stage::RetryAttempt).map(|r| r.status);
        assert_eq!(found, *retry, "{row}");
    }
}

#[test]
fn retries_are_counted_from_one_to_the_last() {
    let mut run = in_workspace();
    let later = Next::Retry { at: Timestamp(2_000_000) };
    for (nth, next) in [later, later, Next::Fail].into_iter().enumerate() {
        attempt(&mut run, WORK, failed(Class::Command, next), "torn");
        let retry = record(&run, Stage::RetryAttempt);
        let number = u32::try_from(nth + 1).expect("it is small").min(2);
        assert_eq!((retry.retry_attempt, retry.max_retries), (Some(number), Some(2)));
        assert_eq!(retry.failure_context.len(), 2 * (nth + 1), "all attempts are told");
    }
    assert_eq!(record(&run, Stage::RetryAttempt).status, StageStatus::Failed);
    assert_eq!(record(&run, Stage::AfterLaneStart).retry_attempt, Some(2));
    assert_eq!(work(&run).stage(), Some(Stage::AfterLaneStart), "a retry advances nothing");
}

#[test]
fn a_reopened_lane_works_again_from_that_step_on() {
    let mut run = done();
    run.take(reopened(LANE, Class::Conflict, 2));
    let lane = run.state.lane(&lane_path(LANE)).expect("it is there").clone();
    assert!(lane.steps.iter().all(|s| s.progress == Progress::Pending));
    assert_eq!(lane.steps[0].failure_context.len(), 1);
    let found = work(&run);
    let both = Conflict { onto: "newer base".to_owned(), head: "own".to_owned() };
    assert_eq!(found.conflict(), Some(&both));
    assert_eq!(found.base_sha.as_deref(), Some("newer base"));
    assert_eq!((found.committed(), found.onto(), found.reopened.count), (None, None, 1));
    assert_eq!(record(&run, Stage::RetryAttempt).status, StageStatus::Retrying);
    run.take(ready(LANE, "both sides"));
    assert_eq!(work(&run).conflict(), None);

    // Its success is not the end of the story.
    attempt(&mut run, WORK, Outcome::Succeeded, "settled");
    assert_eq!(work(&run).reopened.count, 1);
    assert_eq!(record(&run, Stage::RetryAttempt).status, StageStatus::Complete);
    run.take(reopened(LANE, Class::Test, 2));
    assert_eq!(work(&run).reopened.count, 2);
    let step = run.state.step(&path(WORK)).expect("it is there");
    assert_eq!(step.failure_context.len(), 2, "it is told of both");
}

#[test]
fn a_skipped_step_stays_so_when_its_lane_is_reopened() {
    let mut run = in_workspace();
    attempt(&mut run, WORK, Outcome::Succeeded, "made");
    let (step, by) = (path(TESTS), "ada".to_owned());
    run.take(Event::StepSkipped(StepSkipped { step, satisfy: true, by }));
    run.take(reopened(LANE, Class::Conflict, 2));
    let tests = run.state.step(&path(TESTS)).expect("it is there");
    assert_eq!(tests.progress, Progress::Skipped { satisfy: true });
}

#[test]
fn events_of_a_lane_that_did_not_begin_are_illegal() {
    let all = [
        ready(LANE, "start"),
        committed(LANE, "made", true),
        rebased(LANE, "base", "made"),
        reopened(LANE, Class::Test, 1),
        intended(LANE, "base", "made"),
        missed(LANE),
        merged(LANE, MergedBy::Queue),
        Event::PullRequestOpened(PullRequestOpened {
            lane: lane_path(LANE),
            url: "url".to_owned(),
        }),
        removed(LANE),
    ];
    for event in all {
        let mut run = Run::new(plan(apart()));
        let (before, name) = (run.state.clone(), format!("{event:?}"));
        assert_eq!(run.apply(event), Err(Illegal::LaneNotBegun(lane_path(LANE))), "{name}");
        assert_eq!(run.state, before, "{name}: nothing changed");
    }
    let mut run = Run::new(plan(apart()));
    let nobody = Err(Illegal::NoLane(lane_path("P/Z")));
    assert_eq!(run.apply(begun("P/Z", Isolation::Worktree)), nobody);
    assert_eq!(run.apply(Event::Rewound(Rewound::default())), Err(Illegal::NotRewinding));
}

fn limits() -> Limits {
    Limits { jobs: 2, ..Limits::default() }
}

fn acts(run: &Run, limits: &Limits) -> Vec<LaneAct> {
    let act = |action| match action {
        Action::Lane { act, .. } => Some(act),
        _ => None,
    };
    decide(&run.plan, &run.state, limits, run.at).into_iter().filter_map(act).collect()
}

#[test]
fn a_lane_goes_from_one_act_to_the_next() {
    let mut run = Run::new(plan(apart()));
    let next = |run: &Run| acts(run, &limits());
    assert_eq!(next(&run), [LaneAct::Begin]);
    run.take(begun(LANE, Isolation::Worktree));
    assert_eq!(next(&run), [LaneAct::MakeWorkspace]);
    run.take(ready(LANE, "start"));
    assert_eq!(next(&run), []);
    attempt(&mut run, WORK, Outcome::Succeeded, "made");
    assert_eq!(next(&run), [], "the tests have not seen this tree");
    attempt(&mut run, TESTS, Outcome::Succeeded, "made");
    assert_eq!(next(&run), [LaneAct::Commit]);
    run.take(committed(LANE, "made", true));
    assert_eq!(next(&run), [LaneAct::Rebase]);
    run.take(rebased(LANE, "base", "made"));
    assert_eq!(next(&run), [LaneAct::Merge]);
    run.take(intended(LANE, "base", "commit of made"));
    assert_eq!(next(&run), [LaneAct::Merge], "an intent is carried out");
    run.take(missed(LANE));
    assert_eq!(next(&run), [LaneAct::Rebase]);
    run.take(merged(LANE, MergedBy::Queue));
    assert_eq!(next(&run), [LaneAct::Remove]);
    run.take(removed(LANE));
    assert_eq!(next(&run), []);
}

#[test]
fn a_merge_that_was_intended_comes_before_steps_that_run_again() {
    let mut run = done();
    run.take(rebased(LANE, "base", "made"));
    run.take(intended(LANE, "base", "commit of made"));
    let reason = "its artifact is missing".to_owned();
    run.take(Event::StepReset(StepReset { step: path(WORK), reason }));
    assert_eq!(acts(&run, &limits()), [LaneAct::Merge]);
    let draining = Limits { draining: true, ..limits() };
    assert_eq!(acts(&run, &draining), [LaneAct::Merge]);
    let elsewhere = Limits { lane: Some("B".to_owned()), ..limits() };
    assert_eq!(acts(&run, &elsewhere), [LaneAct::Merge]);
    run.take(merged(LANE, MergedBy::Queue));
    let actions = decide(&run.plan, &run.state, &limits(), run.at);
    let starts = |a: &Action| matches!(a, Action::Start { step, .. } if *step == path(WORK));
    assert!(actions.iter().any(starts), "{actions:?}");
}

#[test]
fn what_is_done_with_finished_work_is_what_the_plan_says() {
    let rows = [
        (Merge::Queue, true, LaneAct::Rebase),
        (Merge::None, true, LaneAct::Conclude(MergedBy::Kept)),
        (Merge::PullRequest, true, LaneAct::CheckPullRequest),
        (Merge::Queue, false, LaneAct::Conclude(MergedBy::Nothing)),
        (Merge::None, false, LaneAct::Conclude(MergedBy::Nothing)),
    ];
    for (merge, changed, expected) in rows {
        let mut run = done();
        run.plan.phases[0].lanes[0].rules.merge = merge;
        run.take(committed(LANE, "made", changed));
        assert_eq!(acts(&run, &limits()), [expected], "{merge:?} {changed}");
    }
    let mut run = done();
    run.plan.phases[0].lanes[0].rules.merge = Merge::PullRequest;
    let looked_at = Limits { unmerged: vec![lane_path(LANE)], ..limits() };
    assert_eq!(acts(&run, &looked_at), []);
}

#[test]
fn tests_that_passed_on_the_tree_are_proven_and_others_run() {
    let mut run = in_workspace();
    attempt(&mut run, WORK, Outcome::Succeeded, "made");
    attempt(&mut run, TESTS, Outcome::Succeeded, "made");
    let (step, reason) = (path(TESTS), "again".to_owned());
    run.take(Event::StepReset(StepReset { step: step.clone(), reason: reason.clone() }));
    assert_eq!(acts(&run, &limits()), [LaneAct::Prove]);
    run.take(proven(TESTS, "made"));
    assert_eq!(acts(&run, &limits()), [LaneAct::Commit]);
    run.take(committed(LANE, "made", true));
    run.take(rebased(LANE, "newer", "both"));
    run.take(Event::StepReset(StepReset { step, reason }));
    let actions = decide(&run.plan, &run.state, &limits(), run.at);
    let starts = |a: &Action| matches!(a, Action::Start { step, .. } if *step == path(TESTS));
    assert!(actions.iter().any(starts), "{actions:?}");
}

#[test]
fn one_lane_at_a_time_is_in_the_merge_queue() {
    let lanes = ["A", "B"].map(|id| plans::apart(id, vec![plans::step("work")], &[]));
    let mut run = Run::new(plans::plan(vec![plans::phase("P", lanes.to_vec())]));
    for lane in ["P/A", "P/B"] {
        run.take(begun(lane, Isolation::Worktree));
        run.take(ready(lane, "start"));
        attempt(&mut run, &format!("{lane}/work"), Outcome::Succeeded, lane);
        run.take(committed(lane, lane, true));
    }
    assert_eq!(acts(&run, &limits()), [LaneAct::Rebase]);
    run.take(rebased("P/A", "base", "A"));
    assert_eq!(acts(&run, &limits()), [LaneAct::Merge]);
    run.take(blocked("P/A", Stage::PrePr));
    assert_eq!(acts(&run, &limits()), [LaneAct::Rebase], "one that is held up gives way");
    run.take(rebased("P/B", "base", "B"));
    run.take(intended("P/B", "base", "commit of B"));
    run.take(merged("P/B", MergedBy::Queue));
    run.take(removed("P/B"));
    assert_eq!(acts(&run, &limits()), []);
    run.take(attached(2));
    assert_eq!(acts(&run, &limits()), [LaneAct::Commit], "its files are looked at again");
}

#[test]
fn a_held_lane_waits_for_a_person_whoever_attaches() {
    let mut run = done();
    run.take(rebased(LANE, "base", "made"));
    run.take(merged(LANE, MergedBy::Queue));
    let act = run.state.undo.last().expect("a merge can be undone").id;
    let intent = RewindIntended {
        kind: RewindKind::Undo,
        to: "merge".to_owned(),
        stage: None,
        after_event: 0,
        points: Vec::new(),
        lanes: vec![lane_path(LANE)],
        workspaces: Vec::new(),
        reverts: Vec::new(),
        undoes: Some(act),
        by: "ada".to_owned(),
    };
    run.take(Event::RewindIntended(Box::new(intent.clone())));
    run.take(Event::Rewound(Rewound::default()));
    assert!(matches!(work(&run).progress, LaneProgress::HeldBack(_)));
    run.take(attached(2));
    assert_eq!(acts(&run, &limits()), []);
    let (kind, undoes) = (RewindKind::Rollback, None);
    let (stage, after_event) = (Some(Stage::AfterLaneStart), 4);
    let back = RewindIntended { kind, undoes, stage, after_event, ..intent };
    run.take(Event::RewindIntended(Box::new(back)));
    run.take(Event::Rewound(Rewound::default()));
    assert!(matches!(work(&run).progress, LaneProgress::Working { .. }));
    assert_eq!(work(&run).blocked, None);
}

#[test]
fn the_start_of_a_lane_is_kept_for_a_rollback_whatever_happens_there() {
    let mut run = in_workspace();
    let fresh = record(&run, Stage::AfterLaneStart).clone();
    let keeps = |run: &Run, status: StageStatus| {
        let now = record(run, Stage::AfterLaneStart);
        assert_eq!((now.event, &now.snapshot), (fresh.event, &fresh.snapshot));
        assert_eq!((&now.base_sha, &now.head_sha), (&fresh.base_sha, &fresh.head_sha));
        assert_eq!(now.status, status);
    };
    attempt(&mut run, WORK, failed(Class::Command, Next::Fail), "torn");
    keeps(&run, StageStatus::Failed);
    let (step, by) = (path(WORK), "ada".to_owned());
    run.take(Event::StepRetried(StepRetried { step, by }));
    attempt(&mut run, WORK, Outcome::Succeeded, "made");
    keeps(&run, StageStatus::InProgress);
    attempt(&mut run, TESTS, Outcome::Succeeded, "made");
    run.take(reopened(LANE, Class::Conflict, 2));
    run.take(ready(LANE, "both sides"));
    keeps(&run, StageStatus::InProgress);
}

#[test]
fn a_rewind_that_failed_changes_nothing() {
    let mut run = done();
    let before = run.state.clone();
    run.take(Event::RewindIntended(Box::new(RewindIntended {
        kind: RewindKind::Rollback,
        to: "before_lane_start".to_owned(),
        stage: Some(Stage::BeforeLaneStart),
        after_event: 3,
        points: Vec::new(),
        lanes: vec![lane_path(LANE)],
        workspaces: Vec::new(),
        reverts: Vec::new(),
        undoes: None,
        by: "ada".to_owned(),
    })));
    run.take(Event::Rewound(Rewound { reverted: "the disk is full".to_owned() }));
    assert_eq!(run.state.phases, before.phases);
    assert_eq!((run.state.undo.len(), &run.state.rewinding), (before.undo.len(), &None));
}

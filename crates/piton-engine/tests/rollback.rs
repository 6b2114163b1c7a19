//! Rollback, undo and undo of undo: files, steps and records go together, whoever falls when.

mod lane_support;

use lane_support::{
    base_text, is_whole, lane, messages, path, plan, record, rig, run, starts, status, story, work,
    writes,
};
use piton_core::event::{Event, Verdict};
use piton_core::lane::{Merge, Role, Stage, StageStatus};
use piton_core::lane_state::{Act, LaneProgress, LaneWork};
use piton_core::request::Request;
use piton_core::state::{Progress, StepState};
use piton_core::{RunState, StepPath};
use piton_engine::world::Rewind;
use piton_ledger::Liveness;
use piton_testkit::{
    Behaviour, Care, CrashPoint, Rig, Script, Side, Tree, plans, rollback_to, undo_last, undo_of,
};

/// The stages that a lane goes through.
const STAGES: [Stage; 4] =
    [Stage::BeforeLaneStart, Stage::AfterLaneStart, Stage::AfterLaneTests, Stage::PrePr];

/// A lane that has gone through all its stages and stays on its branch.
fn finished() -> Rig {
    let mut lane = lane("A", 0);
    lane.rules.merge = Merge::None;
    let script = Script::default().with("P/A/work", vec![writes("a", "of A")]);
    let rig = rig(plan(vec![lane]), script);
    assert_eq!(run(&rig).verdict, Verdict::Complete);
    rig
}

/// A lane whose work is in base.
fn merged() -> Rig {
    let script = Script::default().with("P/A/work", vec![writes("a", "of A {attempt}")]);
    let rig = rig(plan(vec![lane("A", 0)]), script);
    assert_eq!(run(&rig).verdict, Verdict::Complete);
    rig
}

fn state(rig: &Rig) -> RunState {
    rig.load().expect("the run is there").state
}

fn to_stage(rig: &Rig, to: Stage) -> Rewind {
    let events = rig.events().expect("the ledger is readable");
    rollback_to(&state(rig), &events, &[path("P/A")], to).expect("the stage was passed")
}

/// A lane whose work stood on a newer base before it was stopped: base has changes of a person.
fn stopped() -> Rig {
    let script = Script::default()
        .with("P/A/work", vec![Behaviour::fails(1).writing("junk", "left"), writes("a", "of A")]);
    let rig = rig(plan(vec![lane("A", 1)]), script);
    let editing = rig.clone();
    let names = lane_support::points(&|| {
        let other = lane_support::rig(rig.plan.clone(), Script::default());
        other.machine.borrow_mut().script = rig.machine.borrow().script.clone();
        other
    });
    let at = names.iter().position(|n| n == "start P/A/tests#1").expect("it starts") + 1;
    let crash = CrashPoint::at(at, Side::After).instead(move || {
        let mut machine = editing.machine.borrow_mut();
        machine.commit_as_person("b", "theirs");
        machine.put("a", "half done");
    });
    let ending = rig.drive(&crash, piton_ledger::Acquire::IfFree).expect("it leaves");
    assert_eq!(ending.verdict, Verdict::Blocked, "{}", story(&rig));
    rig
}

#[test]
fn a_lane_on_a_newer_base_goes_back_to_where_its_stage_was() {
    for to in STAGES {
        let rig = stopped();
        let target = record(&state(&rig), "P/A", to);
        let on_newer = picture(&rig);
        assert_eq!(on_newer.files["b"], "theirs");
        go_back(&rig, to_stage(&rig, to));
        let seen = picture(&rig);
        assert_eq!(seen.branch, target.head_sha, "{to}");
        assert_eq!(seen.files.contains_key("b"), to == Stage::PrePr, "{to}");
        let early = to <= Stage::AfterLaneStart;
        assert_eq!(seen.files.contains_key("a"), !early, "{to}");
        assert_eq!(seen.files.contains_key("junk"), !early, "the start is a fresh worktree: {to}");
        let undo = undo_last(&state(&rig)).expect("the rollback");
        go_back(&rig, undo);
        assert_eq!(picture(&rig).files, on_newer.files);
        let redo = undo_last(&state(&rig)).expect("the undo");
        go_back(&rig, redo);
        rig.machine.borrow_mut().remove("a");
        let ending = run(&rig);
        is_whole(to.as_str(), &rig, &ending, Care::MayRunAgain, &[("a", "of A"), ("b", "theirs")]);
    }
}

/// What a rewind is about: the files of the lane, its branch, base, its steps and its work.
#[derive(Clone, Debug, PartialEq)]
struct Picture {
    files: Tree,
    branch: Option<String>,
    base: Tree,
    steps: Vec<StepState>,
    work: LaneWork,
}

fn picture(rig: &Rig) -> Picture {
    let state = state(rig);
    let machine = rig.machine.borrow();
    let repo = machine.repo.as_ref().expect("a repository");
    let lane = state.lane(&path("P/A")).expect("the lane is there");
    // Numbers of attempts are never used twice, whatever is undone.
    let steps = lane.steps.iter().map(|s| StepState { attempts: 0, ..s.clone() });
    Picture {
        files: machine.files_of(".worktrees/P/A"),
        branch: repo.head("lane/P/A"),
        base: repo.tree(&repo.head("main").expect("base is there")),
        steps: steps.collect(),
        work: work(&state, "P/A"),
    }
}

fn go_back(rig: &Rig, rewind: Rewind) -> RunState {
    let ending = rig.rewind(&CrashPoint::never(), rewind).expect("it goes back");
    assert_eq!((ending.verdict, &ending.refused), (Verdict::RolledBack, &None));
    assert_eq!(rig.violations(Care::MayRunAgain), Vec::<String>::new());
    ending.state
}

fn done(state: &RunState, step: &str) -> bool {
    let path = StepPath::new("P", "A", step);
    state.step(&path).is_some_and(|s| s.progress == Progress::Done)
}

#[test]
fn a_rollback_takes_files_steps_and_records_back_to_a_stage() {
    for (index, to) in STAGES.into_iter().enumerate() {
        let rig = finished();
        let target = record(&state(&rig), "P/A", to);
        let after = go_back(&rig, to_stage(&rig, to));
        let seen = picture(&rig);
        assert_eq!(seen.files.contains_key("a"), index >= 2, "{to}");
        assert_eq!(seen.branch, target.head_sha, "{to}");
        assert_eq!((done(&after, "work"), done(&after, "tests")), (index >= 2, index >= 2), "{to}");
        for (at, stage) in STAGES.into_iter().enumerate() {
            let rolled_back = status(&after, "P/A", stage) == Some(StageStatus::RolledBack);
            assert_eq!(rolled_back, at > index, "{stage} after a rollback to {to}");
        }
        assert_eq!(seen.work.stage(), Some(to));
        let phase = &after.phases[0];
        let shown = piton_core::summary::lane_status(&after, phase, &phase.lanes[0]);
        assert_eq!(shown, piton_core::Status::RolledBack, "{to}");

        // From there it goes on.
        let ending = run(&rig);
        is_whole(to.as_str(), &rig, &ending, Care::MayRunAgain, &[]);
        assert_eq!(starts(&rig, "P/A/work"), if index < 2 { 2 } else { 1 }, "{to}");
        assert_eq!(picture(&rig).files["a"], "of A");
        for stage in STAGES {
            let now = status(&ending.state, "P/A", stage);
            assert_ne!(now, Some(StageStatus::RolledBack), "{stage} after {to}");
        }
    }
}

#[test]
fn an_undo_brings_everything_back_and_can_be_undone() {
    for to in STAGES {
        let rig = finished();
        // A file that nobody committed is as dear as any other.
        rig.machine.borrow_mut().put(".worktrees/P/A/notes", "mine");
        let before = picture(&rig);
        go_back(&rig, to_stage(&rig, to));
        let behind = picture(&rig);
        assert!(!behind.files.contains_key("notes"), "{to}");
        for round in 0..2 {
            let undo = undo_last(&state(&rig)).expect("there is something to undo");
            go_back(&rig, undo);
            assert_eq!(picture(&rig), before, "undo after {to}, round {round}");
            let redo = undo_last(&state(&rig)).expect("there is something to undo");
            go_back(&rig, redo);
            assert_eq!(picture(&rig), behind, "undo of undo after {to}, round {round}");
        }
        let ending = run(&rig);
        is_whole(to.as_str(), &rig, &ending, Care::MayRunAgain, &[]);
    }
}

/// Carries a rewind out, with a driver that falls at a point; the next command finishes it.
fn fall_in(rig: &Rig, rewind: &dyn Fn(&Rig) -> Rewind, point: &CrashPoint) {
    let known = rig.events().expect("the ledger is readable").len();
    let fell = rig.rewind(point, rewind(rig));
    if !point.fallen() {
        fell.expect("it goes back");
        return;
    }
    let all = rig.events().expect("the ledger is readable");
    let has = |wanted: &dyn Fn(&Event) -> bool| all[known..].iter().any(|(_, _, e)| wanted(e));
    if !has(&|e| matches!(e, Event::RewindIntended(_))) {
        // Nothing was intended yet: the person asks again.
        go_back(rig, rewind(rig));
    } else if !has(&|e| matches!(e, Event::Rewound(_))) {
        rig.finish().expect("what was intended is finished");
    }
}

/// Falls before and after every point of a rewind; the picture after it is always the same.
fn fall_everywhere(make: &dyn Fn() -> Rig, rewind: &dyn Fn(&Rig) -> Rewind) {
    let whole = make();
    let count = CrashPoint::never();
    whole.rewind(&count, rewind(&whole)).expect("it goes back");
    let expected = picture(&whole);
    let names = count.names();
    assert!(names.iter().any(|n| n.contains("half its files")), "{names:#?}");
    for (index, name) in names.iter().enumerate() {
        for side in [Side::Before, Side::After] {
            let rig = make();
            let place = format!("{side:?} {index} ({name})");
            fall_in(&rig, rewind, &CrashPoint::at(index + 1, side));
            let mut found = picture(&rig);
            // Who attaches between is counted among the events.
            found.work.records.iter_mut().zip(&expected.work.records).for_each(|(f, e)| {
                (f.event, f.at) = (e.event, e.at);
            });
            for (f, e) in found.steps.iter_mut().zip(&expected.steps) {
                f.done_event = e.done_event;
            }
            assert_eq!(found.files, expected.files, "{place}\n{}", story(&rig));
            assert_eq!(
                (&found.branch.is_some(), &found.base),
                (&expected.branch.is_some(), &expected.base),
                "{place}"
            );
            assert_eq!(found.steps, expected.steps, "{place}");
            assert_eq!(found.work.stage(), expected.work.stage(), "{place}");
            assert_eq!(rig.violations(Care::MayRunAgain), Vec::<String>::new(), "{place}");
            let ending = run(&rig);
            is_whole(&place, &rig, &ending, Care::MayRunAgain, &[]);
        }
    }
}

#[test]
fn a_rollback_that_is_cut_short_is_finished_by_the_next_driver() {
    for to in STAGES {
        fall_everywhere(&finished, &|rig| to_stage(rig, to));
    }
}

#[test]
fn an_undo_that_is_cut_short_is_finished_by_the_next_driver() {
    let rolled_back = || {
        let rig = finished();
        go_back(&rig, to_stage(&rig, Stage::BeforeLaneStart));
        rig
    };
    fall_everywhere(&rolled_back, &|rig| undo_last(&state(rig)).expect("an act"));
}

#[test]
fn a_merged_lane_goes_back_by_a_revert_and_starts_over() {
    for to in STAGES {
        let rig = merged();
        rig.machine.borrow_mut().commit_as_person("later", "mine");
        let after = go_back(&rig, to_stage(&rig, to));
        assert_eq!(base_text(&rig, "a"), None, "{to}");
        assert_eq!(base_text(&rig, "later").as_deref(), Some("mine"));
        assert_eq!((done(&after, "work"), done(&after, "tests")), (false, false), "{to}");
        let ending = run(&rig);
        let files = [("a", "of A 2"), ("later", "mine")];
        is_merged_again(&rig, &ending, &files);
    }
}

#[test]
fn what_was_validated_is_validated_again_when_a_lane_goes_to_base_anew() {
    let mut validation = plans::lane_of("validation", &["validate-1"]);
    validation.needs = vec![path("P/A"), path("P/B")];
    validation.steps[0].role = Role::Validation;
    let lanes = vec![lane("A", 0), lane("B", 0), validation];
    let script = Script::default()
        .with("P/A/work", vec![writes("a", "of A {attempt}")])
        .with("P/B/work", vec![writes("b", "of B")]);
    let rig = rig(plan(lanes), script);
    assert_eq!(run(&rig).verdict, Verdict::Complete);
    assert_eq!((starts(&rig, "P/validation/validate-1"), starts(&rig, "P/B/work")), (1, 1));
    go_back(&rig, to_stage(&rig, Stage::BeforeLaneStart));
    let ending = run(&rig);
    is_merged_again(&rig, &ending, &[("a", "of A 2"), ("b", "of B")]);
    assert_eq!((starts(&rig, "P/validation/validate-1"), starts(&rig, "P/B/work")), (2, 1));
    assert_eq!(run(&rig).verdict, Verdict::Complete);
    assert_eq!(starts(&rig, "P/validation/validate-1"), 2, "base did not change again");
}

/// Complete, with the lane's work in base a second time, after a revert.
fn is_merged_again(rig: &Rig, ending: &piton_engine::Ending, files: &[(&str, &str)]) {
    assert_eq!(ending.verdict, Verdict::Complete, "{}", story(rig));
    let mut found = rig.violations(Care::MayRunAgain);
    found.extend(rig.lane_violations(files));
    assert!(found.is_empty(), "{found:#?}\n{}", story(rig));
    assert!(messages(rig).contains(&"revert P/A".to_owned()));
}

#[test]
fn the_rollback_of_a_merged_lane_is_undone_by_taking_the_revert_back() {
    let rig = merged();
    let before = picture(&rig);
    go_back(&rig, to_stage(&rig, Stage::BeforeLaneStart));
    let undo = undo_last(&state(&rig)).expect("the rollback");
    go_back(&rig, undo);
    assert_eq!(picture(&rig), before);
    assert_eq!(run(&rig).verdict, Verdict::Complete);
    assert_eq!(starts(&rig, "P/A/work"), 1);
}

#[test]
fn a_rollback_of_a_merged_lane_that_later_work_stands_on_changes_nothing() {
    let rig = merged();
    rig.machine.borrow_mut().commit_as_person("a", "changed since");
    let before = picture(&rig);
    let ending = rig.rewind(&CrashPoint::never(), to_stage(&rig, Stage::BeforeLaneStart));
    let ending = ending.expect("the driver leaves");
    assert_eq!(ending.refused.expect("a refusal").cause, "later work changed a");
    assert_eq!(picture(&rig), before);
}

fn undo(rig: &Rig, act: Act) -> RunState {
    let state = state(rig);
    let last = state.undo.iter().rev().find(|u| u.act == act && !u.undone);
    go_back(rig, undo_of(last.expect("the act is known")))
}

#[test]
fn removal_and_merge_can_be_undone_and_done_again() {
    let rig = merged();
    let over = picture(&rig);
    undo(&rig, Act::Removal);
    let there = picture(&rig);
    assert_eq!(there.files["a"], "of A 1");
    assert_eq!(there.branch, over.work.committed().map(|c| c.commit.clone()));
    assert_eq!(run(&rig).verdict, Verdict::Complete, "what a person brought back stays");
    assert_eq!(picture(&rig).files, there.files);

    undo(&rig, Act::Merge);
    assert_eq!(base_text(&rig, "a"), None);
    assert_eq!(run(&rig).verdict, Verdict::Blocked, "{}", story(&rig));
    assert_eq!(base_text(&rig, "a"), None, "it waits for a person's word");
    undo(&rig, Act::Undo);
    assert_eq!(base_text(&rig, "a").as_deref(), Some("of A 1"));
    assert_eq!(run(&rig).verdict, Verdict::Complete);
}

#[test]
fn a_removal_that_is_undone_and_done_again_removes_at_once() {
    let rig = merged();
    let over = picture(&rig);
    undo(&rig, Act::Removal);
    let there = picture(&rig);
    for _ in 0..2 {
        undo(&rig, Act::Undo);
        let gone = picture(&rig);
        assert_eq!((&gone.files, &gone.branch), (&over.files, &over.branch), "{}", story(&rig));
        assert!(gone.work.is_removed());
        undo(&rig, Act::Undo);
        let back = picture(&rig);
        assert_eq!((&back.files, &back.branch), (&there.files, &there.branch));
        assert!(matches!(back.work.progress, LaneProgress::Restored(_)));
    }
}

#[test]
fn a_lane_whose_merge_was_undone_can_start_over() {
    let rig = merged();
    undo(&rig, Act::Removal);
    undo(&rig, Act::Merge);
    go_back(&rig, to_stage(&rig, Stage::BeforeLaneStart));
    assert!(work(&state(&rig), "P/A").blocked.is_none());
    let ending = run(&rig);
    is_merged_again(&rig, &ending, &[("a", "of A 2")]);
}

#[test]
fn a_skip_can_be_undone() {
    let script = Script::default().with("P/A/work", vec![Behaviour::fails(1), writes("a", "A")]);
    let rig = rig(plan(vec![lane("A", 0)]), script);
    assert_eq!(run(&rig).verdict, Verdict::Failed);
    let skip = Request::Skip { step: StepPath::new("P", "A", "work"), satisfy: false };
    rig.ask(&skip, Liveness::Dead).expect("it is skipped");
    undo(&rig, Act::Skip);
    let step = state(&rig).step(&StepPath::new("P", "A", "work")).cloned();
    assert_eq!(step.map(|s| s.progress), Some(Progress::Failed));
}

#[test]
fn in_place_files_of_others_stay() {
    let step = |id: &str, file: &str| (format!("P/A/{id}"), vec![writes(file, "made")]);
    let (one, two) = (step("one", "out-1"), step("two", "out-2"));
    let script = Script::default().with(&one.0, one.1).with(&two.0, two.1);
    let mut rig = rig(plan(vec![plans::lane_of("A", &["one", "two"])]), script);
    rig.options.limits.checkpoints = true;
    assert_eq!(run(&rig).verdict, Verdict::Complete);
    {
        let mut machine = rig.machine.borrow_mut();
        machine.put("notes", "mine");
        machine.put("ignored/cache", "kept");
    }
    let after = go_back(&rig, to_stage(&rig, Stage::BeforeLaneStart));
    let text = |path: &str| rig.machine.borrow().text(path);
    assert_eq!((text("out-1"), text("out-2")), (None, None));
    assert_eq!(text("notes").as_deref(), Some("mine"));
    assert_eq!(text("ignored/cache").as_deref(), Some("kept"));
    assert!(!done(&after, "one"));
    let undo = undo_last(&state(&rig)).expect("the rollback");
    go_back(&rig, undo);
    assert_eq!((text("out-1").as_deref(), text("out-2").as_deref()), (Some("made"), Some("made")));
    assert_eq!(text("notes").as_deref(), Some("mine"));
}

#[test]
fn what_runs_is_ended_before_files_go_back() {
    let script = Script::default().with(
        "P/A/work",
        vec![Behaviour::ok().beginning("a", "half").lasting(piton_core::Millis(60_000))],
    );
    let rig = rig(plan(vec![lane("A", 0)]), script);
    let names = {
        let crash = CrashPoint::never();
        let fresh = lane_support::rig(rig.plan.clone(), Script::default());
        fresh.drive(&crash, piton_ledger::Acquire::IfFree).expect("it completes");
        crash.names()
    };
    let at = names.iter().position(|n| n == "start P/A/work#1").expect("it starts") + 1;
    // The driver falls while the step is at work.
    let fell = rig.drive(&CrashPoint::at(at, Side::After), piton_ledger::Acquire::IfFree);
    assert!(fell.is_err());
    assert_eq!(rig.machine.borrow().running().len(), 1);
    let before = rig.machine.borrow().files_of(".worktrees/P/A");
    assert_eq!(before["a"], "half");
    go_back(&rig, to_stage(&rig, Stage::AfterLaneStart));
    assert_eq!(rig.machine.borrow().running().len(), 0);
    assert!(!picture(&rig).files.contains_key("a"));
    let undo = undo_last(&state(&rig)).expect("the rollback");
    go_back(&rig, undo);
    assert_eq!(picture(&rig).files, before, "what it had left is not lost");
}

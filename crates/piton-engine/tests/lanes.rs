//! Lanes in worktrees on the way to base: each lane's work is there once, whoever falls when.

mod lane_support;

use lane_support::{
    TEST, base_text, events, fall_everywhere, is_whole, lane, messages, plan, points, record, rig,
    run, starts, status, work, writes,
};
use piton_core::event::{Event, Verdict};
use piton_core::lane::{Merge, PULL_REQUEST_WORDS, Stage, StageStatus};
use piton_core::plan::{Command, Step};
use piton_core::{Millis, StepPath};
use piton_ledger::Acquire;
use piton_testkit::{Behaviour, Care, CrashPoint, Effect, Rig, Script, Side, Stop, plans};

const FILES: &[(&str, &str)] = &[("a", "of A"), ("b", "of B"), ("c", "of C"), ("shared", "base")];

/// Three lanes that change different files, with tests and one retry.
fn three() -> Rig {
    let lanes = vec![lane("A", 1), lane("B", 0), lane("C", 0)];
    let script = Script::default()
        .with("P/A/work", vec![Behaviour::fails(2), writes("a", "of A")])
        .with("P/B/work", vec![writes("b", "of B").lasting(Millis(900))])
        .with("P/C/work", vec![writes("c", "of C")]);
    rig(plan(lanes), script)
}

#[test]
fn three_lanes_reach_base_one_after_the_other() {
    let rig = three();
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, FILES);
    let mut merged = messages(&rig);
    assert_eq!(merged.remove(0), "first");
    merged.sort();
    assert_eq!(merged, ["A: A plan", "B: A plan", "C: A plan"]);
    for lane in ["P/A", "P/B", "P/C"] {
        for stage in [Stage::AfterLaneTests, Stage::PrePr] {
            assert_eq!(status(&ending.state, lane, stage), Some(StageStatus::Complete), "{lane}");
        }
    }
}

/// Lost: a run whose repository is gone would end in an error that names no lane and no way on.
#[test]
fn without_a_repository_a_lane_in_a_worktree_is_blocked() {
    let rig = rig(plan(vec![lane("A", 0)]), Script::default());
    rig.machine.borrow_mut().repo = None;
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Blocked);
    let refusal = work(&ending.state, "P/A").blocked.clone().unwrap_or_default();
    let (why, fix) = (refusal.cause, refusal.remedies[0].to_string());
    assert_eq!(why, "lanes in worktrees need a git repository");
    assert!(fix.contains("git init"), "{fix}");
}

#[test]
fn the_scenario_falls_in_the_middle_of_everything() {
    let names = points(&three);
    for part in ["half its files", "branch", "base moves", "the root follows", "files go", "views"]
    {
        assert!(names.iter().filter(|n| n.contains(part)).count() >= 3, "{part}: {names:#?}");
    }
}

#[test]
fn a_driver_that_falls_anywhere_merges_each_lane_once() {
    fall_everywhere(&three, &|_| {}, &|place, rig, ending| {
        is_whole(place, rig, ending, Care::MayRunAgain, FILES);
        for lane in ["A", "B", "C"] {
            let attempts = if lane == "A" { 2 } else { 1 };
            assert!(starts(rig, &format!("P/{lane}/work")) <= attempts, "{place}: {lane}");
        }
    });
}

#[test]
fn driver_and_keeper_that_fall_together_merge_each_lane_once() {
    fall_everywhere(&three, &Rig::crash_keeper, &|place, rig, ending| {
        is_whole(place, rig, ending, Care::MayRunAgain, FILES);
    });
}

/// Lanes whose own step runs the test that is asked for.
fn proven(ids: &[&str]) -> Rig {
    let mut script = Script::default();
    let lanes = ids.iter().map(|id| {
        let test = Some(Command::Shell(TEST.to_owned()));
        plans::apart(id, vec![Step { test, ..plans::step("work") }], &[TEST])
    });
    for id in ids {
        script = script.with(&format!("P/{id}/work"), vec![writes(&id.to_lowercase(), "work")]);
    }
    rig(plan(lanes.collect()), script)
}

fn provings(rig: &Rig) -> Vec<String> {
    let proven = |e: Event| match e {
        Event::StepProven(e) => Some(e.step.to_string()),
        _ => None,
    };
    events(rig).into_iter().filter_map(proven).collect()
}

#[test]
fn tests_that_passed_on_the_same_tree_do_not_run_again() {
    let rig = proven(&["A"]);
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::NothingAgain, &[("a", "work")]);
    assert_eq!(provings(&rig), ["P/A/tests"]);
    assert_eq!(starts(&rig, "P/A/tests"), 0);
    let tests = record(&ending.state, "P/A", Stage::AfterLaneTests);
    assert_eq!((tests.test_command.as_deref(), tests.exit_code), (Some(TEST), Some(0)));
}

#[test]
fn a_tree_that_the_rebase_changed_is_tested_again() {
    let rig = proven(&["A", "B"]);
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("a", "work"), ("b", "work")]);
    assert_eq!(provings(&rig), ["P/A/tests", "P/B/tests"]);
    assert_eq!((starts(&rig, "P/A/tests"), starts(&rig, "P/B/tests")), (0, 1));
}

#[test]
fn what_is_proven_stays_so_whoever_falls_when() {
    fall_everywhere(&|| proven(&["A", "B"]), &|_| {}, &|place, rig, ending| {
        is_whole(place, rig, ending, Care::MayRunAgain, &[("a", "work"), ("b", "work")]);
        assert!(starts(rig, "P/A/work") <= 1 && starts(rig, "P/B/work") <= 1, "{place}");
        assert!(starts(rig, "P/A/tests") + starts(rig, "P/B/tests") <= 2, "{place}");
    });
}

#[test]
fn a_stale_driver_moves_no_ref() {
    for fence in [true, false] {
        let mut broken = 0;
        for (index, name) in points(&|| proven(&["A"])).iter().enumerate() {
            let rig = proven(&["A"]);
            rig.machine.borrow_mut().switches.ref_fence = fence;
            let other = rig.clone();
            let crash = CrashPoint::at(index + 1, Side::Before).instead(move || {
                // Where the other can't come, as before there is a run, this one goes on.
                let _ = other.drive(&CrashPoint::never(), Acquire::Takeover);
            });
            let stopped = rig.drive(&crash, Acquire::IfFree);
            assert!(stopped.is_err() || index == 0, "{name}: {stopped:?}");
            let mut found = rig.lane_violations(&[("a", "work")]);
            if name.contains("files") {
                // Files can't be fenced: one that wakes up while it writes some writes the rest.
                found.retain(|v| !v.contains("its worktree is there"));
            }
            assert!(!fence || found.is_empty(), "{name}: {found:#?}");
            broken += found.iter().filter(|v| v.contains("a stale driver moved")).count();
        }
        assert_eq!(broken > 0, !fence, "the fence is what keeps it from that");
    }
}

fn with_merge(merge: Merge, work: Behaviour) -> Rig {
    let mut lane = lane("A", 0);
    lane.rules.merge = merge;
    rig(plan(vec![lane]), Script::default().with("P/A/work", vec![work]))
}

#[test]
fn a_lane_without_a_change_has_nothing_to_merge() {
    let make = || with_merge(Merge::Queue, Behaviour::ok());
    fall_everywhere(&make, &|_| {}, &|place, rig, ending| {
        is_whole(place, rig, ending, Care::NothingAgain, &[]);
        assert_eq!(messages(rig), ["first"], "{place}");
    });
    let rig = make();
    let ending = run(&rig);
    let end = record(&ending.state, "P/A", Stage::PrePr);
    assert_eq!((end.status, end.notes.as_str()), (StageStatus::Complete, "nothing to merge"));
}

#[test]
fn a_lane_that_is_not_to_be_merged_stays_on_its_branch() {
    let make = || with_merge(Merge::None, writes("a", "of A"));
    fall_everywhere(&make, &|_| {}, &|place, rig, ending| {
        is_whole(place, rig, ending, Care::NothingAgain, &[]);
        assert_eq!(base_text(rig, "a"), None, "{place}");
        let machine = rig.machine.borrow();
        assert_eq!(machine.text(".worktrees/P/A/a").as_deref(), Some("of A"), "{place}");
        let repo = machine.repo.as_ref().expect("a repository");
        let head = repo.head("lane/P/A").expect("its branch stays");
        assert_eq!(repo.tree(&head)["a"], "of A", "{place}");
    });
}

/// A lane that goes to base through a pull request.
fn pull_request(work: Behaviour, opens: Vec<Behaviour>) -> Rig {
    let lane = plans::through_pull_request("A", vec![plans::step("work")], &[TEST]);
    let script = Script::default().with("P/A/work", vec![work]).with("P/A/pull-request", opens);
    rig(plan(vec![lane]), script)
}

const URL: &str = "https://example.org/pull/1";

fn opened() -> Rig {
    pull_request(writes("a", "of A"), vec![Behaviour::ok().saying("pushed").saying(URL)])
}

#[test]
fn a_pull_request_is_waited_for() {
    let rig = opened();
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Waiting);
    let open = record(&ending.state, "P/A", Stage::PrePr);
    assert_eq!(open.status, StageStatus::InProgress);
    assert_eq!(open.notes, format!("pull request {URL}"));
    assert_eq!(open.target_branch.as_deref(), Some("main"));
    assert_eq!(open.head_sha, work(&ending.state, "P/A").committed().map(|c| c.commit.clone()));
    let phase = &ending.state.phases[0];
    let shown = piton_core::summary::lane_status(&ending.state, phase, &phase.lanes[0]);
    assert_eq!(shown, piton_core::Status::Waiting);
    assert_eq!(run(&rig).verdict, Verdict::Waiting);

    rig.machine.borrow_mut().merge_pull_request("lane/P/A");
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::NothingAgain, &[("a", "of A")]);
    assert_eq!(starts(&rig, "P/A/pull-request"), 1);
    assert_eq!(status(&ending.state, "P/A", Stage::PrePr), Some(StageStatus::Complete));
    assert!(rig.machine.borrow().text(".worktrees/P/A/a").is_none(), "its worktree is gone");
}

#[test]
fn the_checkpoint_before_a_pull_request_is_seen_before_it_is_opened() {
    let names = points(&opened);
    let at = names.iter().position(|n| n == "start P/A/pull-request#1").expect("it starts") + 1;
    let rig = opened();
    let fell = rig.drive(&CrashPoint::at(at, Side::Before), Acquire::IfFree);
    assert!(fell.is_err());
    let view = rig.machine.borrow().repo.as_ref().expect("a repository").view.join("\n");
    assert!(view.contains("stage: PrePr, status: InProgress"), "{view}");
}

#[test]
fn a_pull_request_is_opened_once_whoever_falls_when() {
    for (index, name) in points(&opened).iter().enumerate() {
        for side in [Side::Before, Side::After] {
            let rig = opened();
            let place = format!("{side:?} {index} ({name})");
            let fell = rig.drive(&CrashPoint::at(index + 1, side), Acquire::IfFree);
            assert!(matches!(fell, Err(Stop::Failed(_))), "{place}");
            assert_eq!(run(&rig).verdict, Verdict::Waiting, "{place}");
            rig.machine.borrow_mut().merge_pull_request("lane/P/A");
            let ending = run(&rig);
            is_whole(&place, &rig, &ending, Care::NothingAgain, &[("a", "of A")]);
            assert!(starts(&rig, "P/A/pull-request") <= 1, "{place}");
        }
    }
}

/// Lost: a driver with nothing else to do would look for ever and never leave.
#[test]
fn a_look_at_a_pull_request_that_takes_long_is_not_followed_by_another() {
    let lane = |id| plans::through_pull_request(id, vec![plans::step("work")], &[TEST]);
    let script = ["A", "B"].into_iter().fold(Script::default(), |script, lane| {
        let (work, open) = (format!("P/{lane}/work"), format!("P/{lane}/pull-request"));
        let writes = writes(&lane.to_lowercase(), "text");
        script.with(&work, vec![writes]).with(&open, vec![Behaviour::ok().saying(URL)])
    });
    let rig = rig(plan(vec![lane("A"), lane("B")]), script);
    rig.machine.borrow_mut().repo.as_mut().expect("a repository").look_takes = Millis(40_000);
    assert_eq!(run(&rig).verdict, Verdict::Waiting);
    assert_eq!(rig.machine.borrow().repo.as_ref().map(|repo| repo.looks), Some(2));
}

#[test]
fn a_pull_request_that_cannot_be_opened_fails_the_lane_before_its_merge() {
    let fails = Behaviour::fails(4).saying("permission denied");
    let rig = pull_request(writes("a", "of A"), vec![fails, Behaviour::ok().saying(URL)]);
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Failed);
    let failed = record(&ending.state, "P/A", Stage::PrePr);
    assert_eq!((failed.status, failed.exit_code), (StageStatus::Failed, Some(4)));
    assert_eq!(failed.target_branch.as_deref(), Some("main"));
    assert_eq!(failed.last_command.as_deref(), Some(PULL_REQUEST_WORDS));
    assert!(failed.head_sha.is_some());
    let step = StepPath::new("P", "A", "pull-request");
    let retry = piton_core::request::Request::Retry { step, again: false, downstream: false };
    rig.ask(&retry, piton_ledger::Liveness::Dead).expect("it is retried");
    assert_eq!(run(&rig).verdict, Verdict::Waiting);
}

#[test]
fn a_lane_without_a_change_opens_no_pull_request() {
    let make = || pull_request(Behaviour::ok(), vec![Behaviour::ok().saying(URL)]);
    fall_everywhere(&make, &|_| {}, &|place, rig, ending| {
        is_whole(place, rig, ending, Care::NothingAgain, &[]);
        assert_eq!(starts(rig, "P/A/pull-request"), 0, "{place}");
    });
}

/// Whether attempts of two lanes were ever at work at once.
fn overlap(rig: &Rig, one: &str) -> bool {
    let mut running: Vec<String> = Vec::new();
    rig.machine.borrow().log.iter().any(|effect| {
        match effect {
            Effect::Started { attempt, .. } => running.push(attempt.step.lane().to_string()),
            Effect::Completed { attempt, .. } | Effect::Killed { attempt } => {
                let lane = attempt.step.lane().to_string();
                running.retain(|l| *l != lane);
            }
            Effect::Notified(_) => {}
        }
        running.iter().any(|l| l == one) && running.iter().any(|l| l != one)
    })
}

#[test]
fn a_lane_that_runs_alone_has_nobody_beside_it() {
    let make = |alone: bool| {
        move || {
            let mut lanes = vec![lane("A", 0), lane("B", 1), lane("C", 0)];
            lanes[1].rules.alone = alone;
            let script = Script::default()
                .with("P/A/work", vec![writes("a", "of A")])
                .with("P/B/work", vec![Behaviour::fails(1), writes("b", "of B")])
                .with("P/C/work", vec![writes("c", "of C")]);
            rig(plan(lanes), script)
        }
    };
    let together = make(false)();
    run(&together);
    assert!(overlap(&together, "P/B"));
    fall_everywhere(&make(true), &|_| {}, &|place, rig, ending| {
        is_whole(place, rig, ending, Care::MayRunAgain, FILES);
        assert!(!overlap(rig, "P/B"), "{place}");
    });
}

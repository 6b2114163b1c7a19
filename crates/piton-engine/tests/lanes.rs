//! Lanes in worktrees on the way to base: each lane's work is there once, whoever falls when.

mod lane_support;

use lane_support::{
    fall_everywhere, is_whole, lane, messages, plan, points, rig, run, starts, status, writes,
};
use piton_core::lane::{Stage, StageStatus};
use piton_testkit::{Behaviour, Care, Rig, Script};

const FILES: &[(&str, &str)] = &[("a", "of A"), ("b", "of B"), ("c", "of C"), ("shared", "base")];

/// Three lanes that change different files, with tests and one retry.
fn three() -> Rig {
    let lanes = vec![lane("A", 1), lane("B", 0), lane("C", 0)];
    let script = Script::default()
        .with("P/A/work", vec![Behaviour::fails(2), writes("a", "of A")])
        .with("P/B/work", vec![writes("b", "of B").lasting(piton_core::Millis(900))])
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

//! What people and agents are told: of failures, of odd changes, of what a record says and when.

use serde_json::Value;

use super::common::PITON;
use super::kills::arm;
use super::scene::{CHECKPOINTS, DOCUMENT, LaneDoc, Scene, document, lane};

fn killed_at(pattern: &str, after: bool) -> Scene {
    let scene = Scene::of(&[lane("SL-1")]);
    arm(&scene, pattern, after);
    let first = scene.project.finish(scene.command(PITON).args(["run", DOCUMENT]));
    assert_eq!(first.code, 137, "{}", first.stderr);
    scene
}

/// Lost: whoever reads only the checkpoints would find a worktree that nothing tells of.
#[test]
fn the_checkpoint_of_a_start_is_there_before_the_worktree() {
    let scene = killed_at("read-tree --reset -u --no-recurse-submodules", true);
    assert_eq!(scene.stage_status("SL-1", "before_lane_start"), "ready");
}

/// Lost: whoever reads only the checkpoints would find a base that moved for no reason.
#[test]
fn the_checkpoint_of_a_merge_is_there_before_base_moves() {
    let scene = killed_at("piton: merge lane", true);
    assert_eq!(scene.subjects("main").len(), 2, "base has moved");
    assert_eq!(scene.stage_status("SL-1", "pre_pr"), "in_progress");
}

/// Lost: a person's word in a field of ours would be gone without a trace.
#[test]
fn what_a_person_set_in_a_record_of_ours_is_kept_beside_it() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.agent("SL-1", "exit 1");
    scene.run(&[]).exits(1);
    let edited = scene.project.read(CHECKPOINTS).replace("\"failed\"", "\"blocked\"");
    scene.project.write(CHECKPOINTS, &edited);
    scene.usual_agent("SL-1");
    scene.resume(&[]).exits(0);
    let record = scene.record("SL-1", "after_lane_start");
    assert_eq!(
        (&record["status"], &record["edited"]["status"]),
        (&"in_progress".into(), &"blocked".into())
    );
}

/// Lost: a record would carry the time of something else, and a rollback none.
#[test]
fn a_rollback_marks_records_with_its_own_time() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.agent("SL-1", "exit 1");
    scene.run(&[]).exits(1);
    let at = |stage: &str| scene.record("SL-1", stage)["timestamp"].as_str().unwrap().to_owned();
    let before = at("after_lane_start");
    let run = scene.project.run_id();
    scene.project.piton(&["rollback", &run, "--yes"]).exits(0);
    let record = scene.record("SL-1", "after_lane_start");
    assert_eq!(record["status"], "rolled_back");
    assert!(at("after_lane_start") > before, "{record:#}");
}

/// Lost: whoever reads the checkpoints would take the time of one stage for that of another.
#[test]
fn a_record_has_the_time_at_which_its_stage_was_reached() {
    let scene = Scene::of(&[lane("SL-1")]);
    let times = scene.outside("times").display().to_string();
    // The agent ends in another second than it began in.
    scene.agent(
        "SL-1",
        &format!(
            "now() {{ date -u +%Y-%m-%dT%H:%M:%SZ; }}; now > {times}; begun=$(now)\n\
             while [ \"$(now)\" = \"$begun\" ]; do :; done\nnow >> {times}; echo x > SL-1-01.txt"
        ),
    );
    scene.run(&[]).exits(0);
    let [begun, ended] = <[String; 2]>::try_from(scene.told("times")).unwrap();
    let at =
        |stage: &str| scene.record("SL-1", stage)["timestamp"].as_str().unwrap()[..19].to_owned();
    assert!(at("before_lane_start") <= at("after_lane_start"));
    assert!(at("after_lane_start")[..] <= begun[..19], "{begun}");
    assert!(at("after_lane_tests")[..] >= ended[..19], "{ended}");
    assert!(at("pre_pr") >= at("after_lane_tests"));
}

/// Lost: nobody would know how to go on with a run that another tool recorded.
#[test]
fn a_record_without_a_run_says_that_it_can_be_imported() {
    let scene = Scene::of(&[lane("SL-1")]);
    let record = r#"[{"run_id":"P1-SL-1-20260101-000000","phase":"P1","lane":"SL-1","stage":"after_lane_start","status":"failed","timestamp":"2026-01-01T00:00:00Z"}]"#;
    scene.project.write(CHECKPOINTS, record);
    let said = scene.run(&["--resume", "--run-id", "P1-SL-1-20260101-000000"]).exits(2);
    assert!(said.stderr.contains(&format!("piton import {CHECKPOINTS}")), "{}", said.stderr);
}

const PLAN: &str = "\
[[phase]]
id = \"P1\"

[[phase.lane]]
id = \"A\"
isolation = \"worktree\"
agent = \"writer\"
prompt = \"Write it.\"
test = \"grep -q second work.txt\"
retries = 1
";

/// Lost: an agent would make the same mistake again, because its prompt does not ask for the last one.
#[test]
fn a_retry_is_told_what_failed_though_its_prompt_does_not_ask() {
    let scene = Scene::planned(PLAN);
    let out = scene.outside("prompt").display().to_string();
    scene.agent("A", &format!(
        "cat > {out}-$PITON_ATTEMPT\n[ $PITON_ATTEMPT = 1 ] && echo first > work.txt || echo second > work.txt"
    ));
    scene.project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(scene.told("prompt-1"), ["Write it."]);
    let second = scene.told("prompt-2").join("\n");
    for words in ["Write it.", "## What failed before", "failed: grep -q second work.txt (exit 1)"]
    {
        assert!(second.contains(words), "{words}: {second}");
    }
    let shown = |attempt: &str| {
        let args = ["show", "P1/A/work", "--prompt", "--attempt", attempt];
        scene.project.piton(&args).exits(0).stdout
    };
    assert!(!shown("1").contains("What failed") && shown("2").contains("What failed before"));
}

/// Lost: work would be paid for twice because somebody else does the rest.
#[test]
fn another_agent_command_does_not_make_finished_work_count_as_changed() {
    let mut second = lane("SL-2");
    second.index = &["Depends on: SL-1"];
    let scene = Scene::of(&[lane("SL-1"), second]);
    let out = scene.outside("ran").display().to_string();
    scene.agent("SL-1", &format!("echo x >> {out}; echo x > SL-1-01.txt"));
    scene.agent("SL-2", "exit 1");
    scene.run(&[]).exits(1);
    let settings = scene.project.read("piton.toml").replace("[\"sh\",", "[\"sh\", \"-u\",");
    let settings = settings.replace("[agents.writer]\n", "[agents.writer]\nmodel = \"large\"\n");
    scene.project.write("piton.toml", &settings);
    scene.project.git(&["commit", "--quiet", "--all", "--message", "another command"]);
    scene.usual_agent("SL-2");
    scene.resume(&["--accept-plan"]).exits(0);
    assert_eq!(scene.told("ran").len(), 1);
}

/// Lost: another wording of a task would undo the merge of its lane, and pay for it again.
#[test]
fn another_wording_never_reopens_a_merged_lane() {
    let mut second = lane("SL-2");
    second.index = &["Depends on: SL-1"];
    let scene = Scene::of(&[lane("SL-1"), second]);
    let out = scene.outside("ran").display().to_string();
    scene.agent("SL-1", &format!("echo x >> {out}; echo x > SL-1-01.txt"));
    scene.agent("SL-2", "exit 1");
    scene.run(&[]).exits(1);
    let text = scene.project.read(DOCUMENT);
    let text = text.replace("### SL-1 -- Lane SL-1\n", "### SL-1 -- Lane SL-1\n\nMind the gap.\n");
    scene.project.write(DOCUMENT, &text.replace("SL-1-01.txt | - |", "SL-1-01.txt, gap.txt | - |"));
    scene.project.git(&["commit", "--quiet", "--all", "--message", "another wording"]);
    scene.usual_agent("SL-2");
    scene.resume(&["--accept-plan"]).exits(0);
    assert_eq!(scene.told("ran").len(), 1);
}

/// Lost: another test command of a task would undo the merge of its lane, and pay for it again.
#[test]
fn another_test_command_never_reopens_a_merged_lane() {
    let second = LaneDoc { index: &["Depends on: SL-1"], ..lane("SL-2") };
    let scene = Scene::of(&[lane("SL-1"), second.clone()]);
    let out = scene.outside("ran").display().to_string();
    scene.agent("SL-1", &format!("echo x >> {out}; echo x > SL-1-01.txt"));
    scene.agent("SL-2", "exit 1");
    scene.run(&[]).exits(1);
    let times = || {
        let at = |stage: &str| scene.record("SL-1", stage)["timestamp"].clone();
        (at("before_lane_start"), at("after_lane_tests"), at("pre_pr"))
    };
    let before = times();
    let first = LaneDoc { test: "test -s SL-1-01.txt".to_owned(), ..lane("SL-1") };
    scene.project.write(DOCUMENT, &document("", &[first, second], ""));
    scene.project.git(&["commit", "--quiet", "--all", "--message", "another test"]);
    scene.usual_agent("SL-2");
    scene.resume(&["--accept-plan"]).exits(0);
    assert_eq!(scene.told("ran").len(), 1);
    assert_eq!(times(), before, "it is not begun, tested or merged again");
    scene.nothing_left();
}

/// Lost: a lane that did nothing, or too much, would look like any other.
#[test]
fn a_lane_that_changed_nothing_and_files_outside_a_scope_are_named() {
    let mut idle = lane("SL-1");
    idle.test = "true".to_owned();
    let scene = Scene::with(&document("", &[idle, lane("SL-2")], ""), "");
    scene.agent("SL-1", "exit 0");
    scene.agent("SL-2", "echo x > SL-2-01.txt; echo x > other.txt");
    let said = scene.run(&[]).exits(0);
    assert!(said.stderr.contains("changed nothing: P1/SL-1"), "{}", said.stderr);
    let words = "outside its scope: P1/SL-2/SL-2-01 changed other.txt";
    assert!(said.stderr.contains(words), "{}", said.stderr);
    let run = scene.project.run_id();
    let report = scene.project.read(&format!(".claude/run-reports/{run}.md"));
    assert!(report.contains("| P1/SL-2/SL-2-01 | other.txt |"), "{report}");
    assert!(report.contains("## Lanes that changed nothing\n\n- P1/SL-1\n"), "{report}");
    let records: Vec<Value> = scene.records();
    assert!(!records.is_empty());
}

/// Lost: a command out of the checkpoints would do something else than it says, or nothing.
#[test]
fn the_hints_of_archived_runs_and_blocked_lanes_are_true() {
    let gates = "## Interface Freeze Gates\n\n- [ ] IF-0-P1-A: it\n";
    let mut second = lane("SL-2");
    second.index = &["Depends on: IF-0-P1-A"];
    let scene = Scene::with(&document(gates, &[lane("SL-1"), second], ""), "");
    scene.agent("SL-1", "exit 1");
    scene.run(&["--run-id", "old"]).exits(1);
    scene.run(&["--fresh", "--run-id", "new"]).exits(1);
    scene.usual_agent("SL-1");
    let hint = |run: &str, lane: &str| {
        let all = scene.records();
        let found = all.iter().rfind(|r| r["run_id"] == run && r["lane"] == lane).cloned();
        found.unwrap()["resume_hint"].as_str().unwrap().to_owned()
    };
    scene.paste(&hint("old", "SL-1")).exits(0);
    assert!(scene.project.has("SL-1-01.txt"));
    scene.paste(&hint("old", "SL-2")).exits(4).says("open gates: IF-0-P1-A");
    let ticked = scene.project.read(DOCUMENT).replace("- [ ] IF-0", "- [x] IF-0");
    scene.project.write(DOCUMENT, &ticked);
    scene.paste(&hint("old", "SL-2")).exits(0);
    assert!(scene.project.has("SL-2-01.txt"));
}

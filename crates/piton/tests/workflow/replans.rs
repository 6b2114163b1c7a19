//! Replans of a workflow: counted in its checkpoint when they happen, limited, never in a circle.

use serde_json::json;

use super::scene::{FOLDER, PLAN, Scene};

/// A replan that makes the phase smaller each time.
const REPLAN: &str = "\n[replan]\nrun = [\"sh\", \"replan.sh\"]\n";
/// Adds a box to the second phase, another one each time.
const SCRIPT: &str = "echo replanned >> ../log/replans.txt\nn=$(wc -l < ../log/replans.txt)\n\
    sed -i \"s/^- \\[ \\] form.*/- [ ] form, part $n/\" specs/027_auth/plans/001_implementation.md\n";
/// The eight phases of the story.
fn eight() -> String {
    let phase = |n: u32| {
        let test = if n == 5 { "\n**Testing**: `test -e made/revised`\n" } else { "" };
        format!("## Phase {n}: P{n}\n- [ ] form{test}\n\n")
    };
    format!("# Plan 077\n\n{}", (1..=8).map(phase).collect::<String>())
}

fn scene(plan: &str, script: &str, more: &str) -> Scene {
    let scene = Scene::with(PLAN, plan, &format!("{more}{REPLAN}"));
    scene.project.write("replan.sh", script);
    scene.project.commit();
    scene
}

/// The story of Plan 077: four phases complete, the tests of the fifth fail, it is replanned once, the
/// rest goes through. Lost: a failure in the middle costs what was done before it.
#[test]
fn the_story_of_plan_077() {
    let script = "sed -i '/Phase 5/,/Phase 6/s/- \\[ \\] form/- [ ] revised form/' specs/027_auth/plans/001_implementation.md\n";
    let scene = scene(&eight(), script, "retries = 3\n");
    scene.does("5", "grep -q 'revised form' $log/5.$n.txt && echo ok > made/revised; true");
    scene.run().exits(0);
    assert_eq!(scene.ran(), ["1", "2", "3", "4", "5", "5", "5", "6", "7", "8"]);
    let found = scene.checkpoint();
    assert_eq!(found["replan_count"], json!({ "5": 1 }));
    let history = found["replan_history"].as_array().unwrap();
    assert_eq!(history.len(), 1);
    assert_eq!((&history[0]["phase"], &history[0]["reason"]), (&json!(5), &json!("test_failures")));
    assert_eq!(found["completed_phases"], json!([1, 2, 3, 4, 5, 6, 7, 8]));
    scene.shows("- [x] revised form");
}

/// Lost: replans without end (the third anti-pattern), or a limit that a restart forgets.
#[test]
fn a_third_replan_of_a_phase_is_refused_and_counters_stay() {
    let scene = scene(super::scene::THREE, SCRIPT, "");
    scene.does("2", "exit 86");
    scene.run().exits(3);
    assert_eq!(scene.checkpoint()["replan_count"], json!({ "2": 2 }));
    assert_eq!(scene.project.lines("../log/replans.txt").len(), 2);
    scene.project.kill_all();
    scene.project.piton(&["resume"]).exits(3);
    assert_eq!(scene.checkpoint()["replan_count"], json!({ "2": 2 }));
    assert_eq!(scene.checkpoint()["replan_history"].as_array().map(Vec::len), Some(2));
    assert_eq!(scene.times("1"), 1);
}

/// Lost: the replans of another tool do not count, so that together they never end.
#[test]
fn replans_of_another_tool_count() {
    let scene = scene(super::scene::THREE, SCRIPT, "");
    let now = scene.project.sh("date -u +%Y-%m-%dT%H:%M:%SZ").stdout.trim().to_owned();
    let foreign = json!({
        "version": "2.0", "plan_file": PLAN, "current_phase": 2, "completed_phases": [1],
        "status": "in_progress", "updated_at": now, "replan_phase_2_count": 2,
    });
    let path = format!("{FOLDER}/implement_auth_20251021_120000.json");
    scene.project.write(&path, &foreign.to_string());
    scene.does("2", "exit 86");
    scene.run().exits(3);
    assert_eq!(scene.project.lines("../log/replans.txt").len(), 0);
    let found = scene.checkpoint();
    assert_eq!(found["replan_count"], json!({ "2": 2 }));
    assert_eq!(found["replan_phase_2_count"], json!(2));
}

/// Lost: a replan that came to nothing changes the checkpoint, and counts for other tools.
#[test]
fn a_replan_that_fails_leaves_the_checkpoint_as_it_was() {
    let scene = scene(super::scene::THREE, "exit 1", "");
    scene.does("2", "exit 86");
    scene.run().exits(3).says("the plan stays as it was");
    let found = scene.checkpoint();
    assert_eq!((&found["replan_count"], &found["replan_history"]), (&json!({}), &json!([])));
}

/// Lost: what was found outside of the scope can never be made a part of it.
#[test]
fn a_replan_may_extend_the_files_of_a_finished_phase() {
    let plan =
        "# P\n\n## Phase 1: A\n**Files to modify**: `made/1`\n- [ ] a\n\n## Phase 2: B\n- [ ] b\n";
    let script = format!("sed -i 's/`made.1`/`made\\/1`, `other.txt`/' {PLAN}\n");
    let scene = scene(plan, &script, "");
    scene.does("1", "echo x > other.txt");
    scene.run().exits(0).says("replan 1 started");
    assert!(scene.text().contains("`made/1`, `other.txt`"), "{}", scene.text());
    assert_eq!(scene.ran(), ["1", "2"]);
    scene.run().exits(0).says("already complete");
    assert_eq!(scene.ran(), ["1", "2"]);
}

/// Lost: a phase that is too large starts all the same, or a person is not asked.
#[test]
fn a_phase_that_is_too_complex_or_too_long_asks_first() {
    let boxes = "- [ ] t\n".repeat(11);
    let plan =
        format!("# P\n\n## Phase 1: A\n**Complexity**: 9/10\n- [ ] a\n\n## Phase 2: B\n{boxes}");
    let scene = Scene::with_plan(&plan);
    scene.run().exits(3).says("complexity");
    assert_eq!(scene.ran(), [""; 0]);
    let scene = Scene::with_plan(&plan.replace("9/10", "8/10"));
    scene.run().exits(3).says("11 tasks");
    assert_eq!(scene.ran(), ["1"]);
}

/// Lost: a phase that changes files outside of its scope goes unnoticed.
#[test]
fn scope_drift_is_seen_by_the_files_of_the_plan() {
    let plan =
        "# P\n\n## Phase 1: A\n**Files to modify**: `made/1`\n- [ ] a\n\n## Phase 2: B\n- [ ] b\n";
    let scene = Scene::with_plan(plan);
    scene.run().exits(0);
    let scene = Scene::with_plan(plan);
    scene.does("1", "echo x > other.txt");
    scene.run().exits(3).says("other.txt");
    assert_eq!(scene.ran(), ["1"]);
    // Also in the last phase.
    let scene =
        Scene::with_plan(&plan.replace("- [ ] b", "**Files to modify**: `made/2`\n- [ ] b"));
    scene.does("2", "echo x > other.txt");
    scene.run().exits(3).says("other.txt");
    scene.project.piton(&["approve", "2/@replan/scope_drift"]).exits(0);
    scene.project.piton(&["resume", &scene.project.run_id()]).exits(0);
    assert_eq!(scene.ran(), ["1", "2"]);
    assert_eq!(scene.checkpoint()["status"], "completed");
}

/// Lost: a person can't take a replan back, or the phases before it go with it.
#[test]
fn undo_takes_a_replan_back_and_it_still_counts() {
    let scene = scene(super::scene::THREE, SCRIPT, "");
    scene.does("2", "[ $n = 1 ] && exit 86; exit 1");
    scene.run().exits(1);
    let (replanned, before) = (scene.text(), scene.checkpoint());
    assert!(replanned.contains("- [ ] form, part 1\n"), "{replanned}");
    scene.project.piton(&["undo", "--yes"]).exits(0).says("undone: replan 1 of phase 2");
    assert_eq!(scene.text(), replanned.replace("form, part 1", "form"));
    let found = scene.checkpoint();
    assert_eq!((&found["current_phase"], &found["completed_phases"]), (&json!(2), &json!([1])));
    assert_eq!(found["phase_metadata"]["1"], before["phase_metadata"]["1"]);
    assert_eq!((&found["status"], &found["last_error"]), (&json!("in_progress"), &json!(null)));
    assert_eq!(found["replan_count"], json!({ "2": 1 }));
    assert_eq!(found["replan_history"], before["replan_history"]);
    scene.project.piton(&["resume"]).exits(3).says("2/@replan/requested");
    assert_eq!(scene.project.lines("../log/replans.txt").len(), 1);
    assert_eq!(scene.times("1"), 1);
}

//! A base that moves while lanes work: by other runs, by the user; and what is said of it.

use super::scene::{DOCUMENT, LaneDoc, Scene, document, lane};

/// A plan with one lane that brings a new file to base.
const OTHER: &str = "title = \"Other\"\n[[phase]]\nid = \"P2\"\n[[phase.lane]]\nid = \"L\"\n\
                     isolation = \"worktree\"\nrun = \"mktemp new.XXXXXX\"\n";

/// A lane whose tests move base the first `times` they run, by this command in the project's folder.
fn outrun(times: u32, command: &str) -> Scene {
    let test = format!(
        "cd ../../.. && n=$(cat ../times 2>/dev/null || echo 0) && echo $((n+1)) > ../times && \
         if [ $n -lt {times} ]; then {command} >> ../moves 2>&1; fi"
    );
    let scene = Scene::with(
        &document("", &[LaneDoc { test, ..lane("SL-1") }], ""),
        "[lanes]\nmerge_rounds = 1\n",
    );
    scene.project.write("other.toml", OTHER);
    scene.project.commit();
    scene
}

/// Lost: a lane would give up because other runs merge their work too.
#[test]
fn merges_of_other_runs_are_waited_for_and_count_for_no_round() {
    let scene = outrun(4, "$PROGRAM run other.toml --fresh");
    let said = scene.run(&[]).exits(0).stderr;
    assert_eq!(scene.subjects("main").len(), 7, "{said}\n{:?}", scene.told("moves"));
    assert!(said.contains("in the meantime, by another run"), "{said}");
    scene.nothing_left();
}

/// Confusing: what to do was followed by words that it goes on.
#[test]
fn the_last_round_is_not_followed_by_another_in_words() {
    let scene = outrun(9, "f=$(mktemp x.XXXXXX) && git add $f && git commit -qm x");
    let said = scene.run(&[]).exits(4).stderr;
    let last = said.find("base moved 1 times while it was being merged").unwrap();
    assert_eq!(said[..last].matches("in the meantime").count(), 2, "{said}");
    assert!(!said[last..].contains("in the meantime") && !said.contains("once more"), "{said}");
}

/// Lost: two runs at the same time, of which one gives up.
#[test]
fn two_runs_at_once_bring_all_their_lanes_to_base() {
    let lanes = |phase: &str, ids: [&'static str; 6]| {
        document("", &ids.map(lane), "").replace("# P1: First", &format!("# {phase}: Some"))
    };
    let scene = Scene::with(
        &lanes("P1", ["A1", "A2", "A3", "A4", "A5", "A6"]),
        "[lanes]\nmerge_rounds = 1\n",
    );
    scene.project.write("plans/phase-2.md", &lanes("P2", ["B1", "B2", "B3", "B4", "B5", "B6"]));
    scene.project.commit();
    let one = scene.project.spawn(&["run", DOCUMENT, "--jobs", "6"]);
    let two = scene.project.spawn(&["run", "plans/phase-2.md", "--jobs", "6"]);
    one.wait().exits(0);
    two.wait().exits(0);
    assert_eq!(scene.subjects("main").len(), 14);
    scene.nothing_left();
}

/// Lost: that the lane works on files which are not those of base any more.
#[test]
fn a_base_that_moved_is_told_on_resume_in_status_and_at_the_merge() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.agent("SL-1", "exit 1");
    let short = || scene.project.git(&["rev-parse", "main"])[..10].to_owned();
    let first = short();
    scene.run(&[]).exits(1);
    let status = scene.project.piton(&["status"]).exits(0).stdout;
    assert!(!status.contains("moved"), "{status}");
    scene.project.write("mine.txt", "mine\n");
    scene.project.commit();
    let words = format!("main moved from {first} to {}", short());
    let status = scene.project.piton(&["status"]).exits(0).stdout;
    assert!(status.contains(&words), "{status}");
    let json = scene.project.status_json("");
    assert!(json["moved"][0]["from"].as_str().unwrap().starts_with(&first), "{json:#}");
    scene.resume(&[]).exits(1).says(&format!("P1/SL-1: {words}"));
    scene.agent("SL-1", "echo x > SL-1-01.txt");
    let said = scene.resume(&[]).exits(0).stderr;
    let merged = said.lines().find(|l| l.contains("P1/SL-1 merged into")).unwrap();
    assert!(merged.contains(&words), "{merged}");
    let notes = scene.record("SL-1", "pre_pr")["notes"].as_str().unwrap().to_owned();
    assert!(notes.contains(&words), "{notes}");
    let status = scene.project.piton(&["status"]).exits(0).stdout;
    assert!(!status.contains("moved from"), "{status}");
}

/// A lane that stays on its branch because a person left out its tests, which fail until base has `fixed`.
fn left_untested(scene: &Scene) {
    scene.agent("SL-1", "echo x > SL-1-01.txt");
    let piton = |args: &[&str]| super::pull_requests::piton(scene, args);
    piton(&["run", DOCUMENT, "--run-id", "r"]).exits(1);
    piton(&["skip", "r", "P1/SL-1/SL-1-01"]).exits(0);
    piton(&["skip", "r", "P1/SL-1/tests"]).exits(0);
    piton(&["resume", "r"]).exits(0).says("its tests were skipped: stays on its branch");
    scene.project.write("fixed", "");
    scene.project.git(&["add", "fixed"]);
    scene.project.git(&["commit", "-qm", "fixed"]);
}

/// Lost: a lane whose tests were left out would stay on its branch although they pass, or fail for ever on
/// a base that was put right since.
#[test]
fn tests_that_were_left_out_run_again_on_the_base_of_now_and_then_it_is_merged() {
    let test = "test -e fixed && test -e SL-1-01.txt".to_owned();
    let scene = Scene::of(&[LaneDoc { test, ..lane("SL-1") }]);
    left_untested(&scene);
    scene.project.piton(&["retry", "r", "P1/SL-1/tests", "--again"]).exits(0);
    scene.resume(&[]).exits(0).says("is merged");
    assert!(scene.project.has("SL-1-01.txt") && scene.project.has("fixed"));
    scene.nothing_left();
}

/// Lost: the same for a lane that goes to base by a pull request, which nobody would open.
#[test]
fn tests_that_were_left_out_and_pass_are_followed_by_the_pull_request() {
    let scene = super::pull_requests::scene();
    let document = scene.project.read(DOCUMENT);
    let there = scene.outside("ok").display().to_string();
    scene
        .project
        .write(DOCUMENT, &document.replace("test -e SL-1-01.txt", &format!("test -e {there}")));
    scene.project.commit();
    left_untested(&scene);
    std::fs::write(&there, "").unwrap();
    super::pull_requests::piton(&scene, &["retry", "r", "P1/SL-1/tests", "--again"]).exits(0);
    super::pull_requests::piton(&scene, &["resume", "r"]).exits(3);
    assert_eq!(scene.told("gh/opened").len(), 1);
}

/// Lost: a lane that stays on its branch would work again on an old base, without a word.
#[test]
fn a_lane_that_stays_on_its_branch_and_works_again_says_that_base_moved() {
    let scene = Scene::planned(
        "title = \"T\"\n[[phase]]\nid = \"P1\"\n[[phase.lane]]\nid = \"SL-1\"\n\
         isolation = \"worktree\"\nmerge = \"none\"\nrun = \"date > one.txt\"\n",
    );
    scene.project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    scene.project.write("mine", "");
    scene.project.git(&["add", "mine"]);
    scene.project.git(&["commit", "-qm", "mine"]);
    scene.project.piton(&["status", "r"]).exits(0).silent_about("main moved from");
    scene.project.piton(&["retry", "r", "P1/SL-1/work", "--again"]).exits(0);
    scene.project.piton(&["status", "r"]).exits(0).says("main moved from");
    scene.project.piton(&["resume", "r"]).exits(0).says("P1/SL-1: main moved from");
}

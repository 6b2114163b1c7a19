//! Who closes a gate of a phase document: a person, or the lane that provides it; no other step.

use super::scene::{DOCUMENT, LaneDoc, Scene, document, lane};

const GATE: &str = "IF-0-P1-API";

/// SL-1 waits for nothing, SL-2 for the gate.
fn scene() -> Scene {
    let gates = format!("## Interface Freeze Gates\n\n- [ ] {GATE}: the interface\n\n");
    let waits = LaneDoc { index: &["Depends on: IF-0-P1-API"], ..lane("SL-2") };
    Scene::with(&document(&gates, &[lane("SL-1"), waits], ""), "")
}

/// A line for the shell that ticks the gate in a document.
fn tick(document: &str) -> String {
    format!("sed -i 's/\\[ \\] IF-0/[x] IF-0/' '{document}'\n")
}

/// What is told of the run's gates.
fn history(scene: &Scene) -> String {
    scene.project.piton(&["show"]).exits(0).stdout
}

/// Lost: an agent could approve what it works on itself.
#[test]
fn a_tick_of_a_step_does_not_close_a_gate() {
    for base in [false, true] {
        let scene = scene();
        let project = &scene.project;
        let root = project.root().join(DOCUMENT).display().to_string();
        let ticks = tick(if base { &root } else { DOCUMENT });
        scene.agent("SL-1", &format!("{ticks}echo 1 > SL-1-01.txt\n"));
        let blocked = scene.run(&[]).exits(4).says(&format!("is blocked: open gates: {GATE}"));
        blocked.silent_about(&format!("warning: P1/SL-2: open gates: {GATE}"));
        assert!(project.read(DOCUMENT).contains(&format!("[x] {GATE}")), "{base}");
        project.git(&["add", "-A", "--", "plans"]);
        project.git(&["commit", "-q", "--allow-empty", "-m", "as it is"]);
        for _ in 0..2 {
            let refused = scene.resume(&[]).exits(4);
            let refused =
                refused.says(&format!("ticked while steps may have been at work: {GATE}"));
            refused.says("--accept-gates");
            assert!(!project.has("SL-2-01.txt"), "{base}");
        }
        scene.resume(&["--accept-gates"]).exits(0);
        assert!(project.has("SL-2-01.txt"));
        let history = history(&scene);
        assert!(history.contains(&format!("ticked {GATE}: accepted by ")), "{history}");
    }
}

/// Lost: a person's own tick would have to be said twice, or nobody could tell later when it was there.
#[test]
fn a_tick_while_nothing_runs_is_a_persons_and_on_record() {
    let scene = scene();
    let project = &scene.project;
    scene.run(&[]).exits(4);
    let open = project.read(DOCUMENT);
    std::fs::remove_file(project.root().join(DOCUMENT)).unwrap();
    scene.resume(&[]).exits(4).says(&format!("open gates: {GATE}"));
    project.write(DOCUMENT, &open.replace("[ ] IF-0", "[x] IF-0"));
    project.commit();
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    scene.resume(&[]).exits(0);
    assert!(project.has("SL-2-01.txt"));
    let history = history(&scene);
    let words = format!("ticked {GATE}: found ticked in the document, seen at 20");
    assert_eq!(history.matches(&words).count(), 1, "{history}");
}

/// Lost: what was approved before the run began would be asked about again.
#[test]
fn a_tick_before_the_run_began_counts() {
    let scene = scene();
    let project = &scene.project;
    project.write(DOCUMENT, &project.read(DOCUMENT).replace("[ ] IF-0", "[x] IF-0"));
    project.commit();
    scene.agent("SL-2", "exit 1");
    scene.run(&[]).exits(1);
    scene.usual_agent("SL-2");
    scene.resume(&[]).exits(0);
    assert_eq!(history(&scene).matches("found ticked in the document").count(), 1);
}

/// Lost: what an agent ticked would count once a person merged its lane by hand.
#[test]
fn a_tick_of_a_lane_that_is_merged_later_does_not_close_a_gate() {
    let scene = scene();
    let project = &scene.project;
    let settings = project.read("piton.toml");
    project.write("piton.toml", &settings.replace("[defaults]", "[defaults]\nmerge = \"none\""));
    project.commit();
    scene.agent("SL-1", &format!("{}echo 1 > SL-1-01.txt\n", tick(DOCUMENT)));
    scene.run(&[]).exits(4);
    assert!(!project.read(DOCUMENT).contains("[x]"));
    project.git(&["merge", "--quiet", "--ff-only", "lane/P1/SL-1"]);
    let refused = scene.resume(&[]).exits(4);
    refused.says(&format!("ticked while steps may have been at work: {GATE}"));
    assert!(!scene.workspace("SL-2").exists());
    scene.resume(&["--accept-gates"]).exits(0);
}

/// Lost: a document with another ending would run, and its gates would never be ticked.
#[test]
fn gates_are_ticked_whatever_the_document_is_called() {
    let gates = format!("## Interface Freeze Gates\n\n- [ ] {GATE}: the interface\n\n");
    let provides = LaneDoc { index: &["Interfaces provided: IF-0-P1-API"], ..lane("SL-1") };
    let scene = Scene::with(&document(&gates, &[provides], ""), "");
    let project = &scene.project;
    project.git(&["mv", DOCUMENT, "plans/P1.markdown"]);
    project.commit();
    project.piton(&["run", "plans/P1.markdown"]).exits(0);
    assert!(project.read("plans/P1.markdown").contains(&format!("- [x] {GATE}")));
    let listed = project.piton(&["runs", "--json"]).exits(0).json();
    assert_eq!(listed[0]["protocol"]["id"], "lanes");
}

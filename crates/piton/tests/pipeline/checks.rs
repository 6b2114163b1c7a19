//! The four checks before a feature goes on, and outputs that were changed from outside.

use super::scene::{ADR, FOLDER, Feature, SPEC, UNFILLED};

fn file(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// Lost: work goes on against a spec that nobody has read.
#[test]
fn a_changed_spec_blocks_until_a_person_accepts_it() {
    let feature = Feature::at_architecture();
    feature.project.write(SPEC, "# CSV export\n\nAnd TSV.\n");
    feature.tick("Architecture sign-off");
    for _ in 0..2 {
        feature.run().exits(4).says("the spec was").says("--accept-spec");
    }
    assert_eq!(feature.times("tasks"), 0);
    let run = feature.project.run_id();
    feature.project.piton(&["resume", &run, "--accept-spec"]).exits(3).says("Security sign-off");
    feature.mentions("Changed spec accepted by tester.");
    assert_eq!((feature.times("spec"), feature.times("architect")), (1, 1));
    feature.run().exits(3).silent_about("accept");
}

/// Lost: a lost artifact is not made again, or all that came after it is.
#[test]
fn only_the_stage_whose_artifact_is_missing_runs_again() {
    let feature = Feature::at_security();
    let before = feature.ran().len();
    feature.project.remove(&file("tasks.md"));
    feature.run().exits(3).says("tasks.md is missing");
    assert_eq!(feature.ran()[before..], ["tasks"]);
    feature.mentions("- [x] Architecture sign-off");
    assert!(feature.project.has(&file("tasks.md")));
}

/// Lost: work that was complete when everything was killed is paid for again.
#[test]
fn output_that_looks_complete_after_a_kill_counts() {
    let feature = Feature::at_architecture();
    feature.does(
        "tasks",
        "echo '- [ ] T001 all of it' > $d/tasks.md; touch ../log/hold-tasks2\n\
                  while [ -e ../log/hold-tasks2 ]; do sleep 0.02; done",
    );
    feature.tick("Architecture sign-off");
    let mut driver = feature.project.spawn(&["run", FOLDER]);
    feature.project.wait_for("../log/hold-tasks2");
    driver.kill();
    feature.project.kill_all();
    feature.project.remove("../log/hold-tasks2");
    feature.run().exits(3).says("Security sign-off");
    assert_eq!(feature.times("tasks"), 1);
    assert_eq!(feature.project.read(&file("tasks.md")), "- [ ] T001 all of it\n");
    feature.mentions("| tasks | 20");
}

/// Lost: half an output passes for a whole one.
#[test]
fn output_that_is_not_complete_after_a_kill_does_not_count() {
    let feature = Feature::at_architecture();
    feature.does(
        "tasks",
        "[ $n = 1 ] || return 0; echo 'T001 <name of task>' > $d/tasks.md\n\
                  touch ../log/hold-tasks2; while [ -e ../log/hold-tasks2 ]; do sleep 0.02; done",
    );
    feature.tick("Architecture sign-off");
    let mut driver = feature.project.spawn(&["run", FOLDER]);
    feature.project.wait_for("../log/hold-tasks2");
    driver.kill();
    feature.project.kill_all();
    feature.project.remove("../log/hold-tasks2");
    feature.run().exits(3).says("Security sign-off");
    assert_eq!(feature.times("tasks"), 2);
    let prompt = feature.prompt("tasks", 2);
    assert!(prompt.contains("continue from them") && prompt.contains("tasks.md"), "{prompt}");
}

/// Lost: a feature goes on although nobody checked it against the constitution.
#[test]
fn an_unfilled_constitution_check_runs_the_architect_again() {
    let feature = Feature::at_architecture();
    feature.project.write(&file("adr.md"), UNFILLED);
    let run = feature.project.run_id();
    feature
        .project
        .piton(&["resume", &run, "--accept-outputs"])
        .exits(3)
        .says("constitution check");
    assert_eq!(feature.times("architect"), 2);
    assert_eq!(feature.project.read(&file("adr.md")), ADR);
}

/// Lost: a stage that leaves the check out counts as done.
#[test]
fn an_unfilled_constitution_check_fails_the_attempt() {
    let feature = Feature::at_spec_approval();
    feature.does(
        "architect",
        "[ $n != 1 ] || { echo R > $d/research.md\n\
                  printf '# ADR\\n\\n## Constitution Check\\n' > $d/adr.md; exit 0; }",
    );
    feature.tick("Spec approval");
    feature.run().exits(3).says("the Constitution Check of specs/003-csv/adr.md is not complete");
    assert_eq!(feature.times("architect"), 2);
    assert!(feature.prompt("architect", 2).contains("Constitution Check of"));
    feature.shows("- retry_count: 1");
}

/// Lost: an edit by a person is overwritten by a stage that runs again, or passes unseen.
#[test]
fn an_output_changed_from_outside_is_asked_about_once() {
    let feature = Feature::at_architecture();
    feature.tick("Architecture sign-off");
    feature.project.write(&file("adr.md"), &format!("{ADR}\nBy hand.\n"));
    feature.run().exits(4).says("adr.md changed since it was recorded").says("--accept-outputs");
    assert_eq!((feature.times("architect"), feature.times("tasks")), (1, 0));
    let run = feature.project.run_id();
    feature.project.piton(&["resume", &run, "--accept-outputs"]).exits(3).says("Security sign-off");
    assert_eq!(feature.times("architect"), 1);
    assert!(feature.project.read(&file("adr.md")).ends_with("By hand.\n"));
    feature.mentions("Changed output of architect accepted by tester.");
    feature.run().exits(3).silent_about("changed since it was");
}

/// Lost: a review that repairs what it finds passes for a review.
#[test]
fn a_review_that_changes_code_fails() {
    for stage in ["code-review", "security"] {
        let feature = Feature::at_architecture();
        feature.does(stage, "echo better > code.txt");
        feature.tick("Architecture sign-off");
        feature.run().exits(1).says("code.txt");
        assert_eq!(feature.times(stage), 2, "once more, as its budget says");
        feature.shows("- status: WAITING_FOR_HUMAN");
        feature.mentions(&format!("| {stage} | 2 | 1 | EXHAUSTED |"));
    }
}

//! The five things that must never happen, one test each.

use super::scene::{FOLDER, Feature, SPEC, STATE, UNFILLED};

/// Lost: completed stages are paid for again.
#[test]
fn completed_stages_do_not_run_again() {
    let feature = Feature::at_security();
    let before = feature.ran();
    for _ in 0..3 {
        feature.run().exits(3).says(" refactor");
    }
    assert_eq!(feature.ran(), before);
}

/// Lost: a person is asked again what they have decided.
#[test]
fn cleared_checkpoints_are_not_asked_about_again() {
    let feature = Feature::at_security();
    feature.project.remove(&format!("{FOLDER}/tasks.md"));
    feature.project.remove(&format!("{FOLDER}/research.md"));
    let said = feature.run().exits(3).says(" refactor");
    said.silent_about("about \"Spec").silent_about("about \"Arch").silent_about("needs approval: ");
    // Also where another tool had it ticked before.
    let feature = Feature::new();
    let text = "# Pipeline State\n\n- current_stage: architect\n- status: IN_PROGRESS\n\n\
                ## Human Checkpoints Cleared\n\n- [x] Spec approval\n- [x] Architecture sign-off\n";
    feature.project.write(STATE, text);
    let said = feature.run().exits(3).says("Security sign-off");
    said.silent_about("about \"Spec").silent_about("about \"Arch").silent_about(" tasks \"");
}

/// Lost: a changed spec goes unnoticed, also when another tool recorded its hash.
#[test]
fn a_changed_spec_is_never_resumed() {
    let feature = Feature::new();
    let hash = "5e".repeat(32);
    let text = format!(
        "# Pipeline State\n\n- current_stage: architect\n- spec_hash: sha256:{hash}\n\
         - status: IN_PROGRESS\n\n## Human Checkpoints Cleared\n\n- [x] Spec approval\n"
    );
    feature.project.write(STATE, &text);
    feature.run().exits(4).says("--accept-spec");
    assert!(feature.ran().is_empty());
    let feature = Feature::at_spec_approval();
    feature.tick("Spec approval");
    feature.project.write(SPEC, "# Something else\n");
    feature.project.piton(&["run", "--yes"]).exits(4).says("--accept-spec");
    assert_eq!(feature.times("architect"), 0);
}

/// Lost: a failed run goes on as if nobody had rejected it.
#[test]
fn a_failed_run_is_not_resumed() {
    let feature = Feature::at_spec_approval();
    feature.project.piton(&["reject", "architect", "-m", "wrong feature"]).exits(0);
    feature.shows("- status: FAILED");
    feature.mentions("Rejected by tester: wrong feature");
    feature.project.piton(&["waiting"]).exits(0).says("nothing waits");
    feature.run().exits(3).says("Spec approval");
    assert_eq!(feature.ran(), ["spec", "clarify", "spec", "clarify"]);
    assert_eq!(feature.set_aside().len(), 1);
    let old = feature.project.read(&format!("{FOLDER}/{}", feature.set_aside()[0]));
    assert!(old.contains("- status: FAILED") && old.contains("wrong feature"), "{old}");
    assert!(feature.prompt("spec", 2).contains("Rejected by tester: wrong feature"));
    assert!(!feature.prompt("clarify", 2).contains("wrong feature"));
}

/// Lost: a later stage goes on without the check of the constitution.
#[test]
fn the_constitution_check_is_not_skipped_at_a_later_stage() {
    let feature = Feature::at_security();
    feature.project.write(&format!("{FOLDER}/adr.md"), UNFILLED);
    let run = feature.project.run_id();
    let before = feature.ran().len();
    feature.project.piton(&["resume", &run, "--accept-outputs"]).exits(3);
    assert_eq!(feature.ran()[before..], ["architect"]);
}

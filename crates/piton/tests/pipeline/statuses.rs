//! The status of a state file decides: continue, start fresh, or ask.

use super::scene::{FOLDER, Feature, STATE};

/// A state file of another tool at a stage, its first two stages complete.
fn foreign(stage: &str, status: &str) -> String {
    format!(
        "# Pipeline State\n\n- run_id: other-1\n- feature: csv\n- current_stage: {stage}\n\
         - status: {status}\n- mood: good\n\n## Completed Stages\n\n\
         | Stage | Completed At | Output Artifact | Output Hash |\n|---|---|---|---|\n\
         | spec | 2026-01-02T03:04:05Z | {FOLDER}/feature.spec.md | |\n\
         | clarify | 2026-01-02T03:05:05Z | {FOLDER}/feature.spec.md | |\n\n\
         ## Human Checkpoints Cleared\n\n- [x] Spec approval\n- [ ] Architecture sign-off\n\n\
         ## Notes\n\nBob had a cold.\n"
    )
}

/// Lost: an unfinished run of another tool is started over, or a finished one goes on.
#[test]
fn each_of_the_six_statuses_has_its_meaning() {
    for (status, ran) in [
        ("IN_PROGRESS", "architect"),
        ("WAITING_FOR_HUMAN", "architect"),
        ("ABORTED", "architect"),
        ("COMPLETE", "spec clarify"),
        ("FAILED", "spec clarify"),
        ("CANCELLED", "spec clarify"),
    ] {
        let feature = Feature::new();
        feature.project.write(STATE, &foreign("architect", status));
        feature.run().exits(3);
        assert_eq!(feature.ran().join(" "), ran, "{status}");
        let continues = ran == "architect";
        assert_eq!(feature.set_aside().len(), usize::from(!continues), "{status}");
        assert_eq!(feature.state().contains("Bob had a cold."), continues, "{status}");
        let is_told = feature.ran()[0] == "spec" && feature.prompt("spec", 1).contains("cold");
        assert_eq!(is_told, status == "FAILED", "{status}");
    }
}

/// Lost: a status that nobody understands is taken for one of them.
#[test]
fn an_unclear_state_file_asks_and_stays_as_it_is() {
    for (text, words) in [
        (foreign("architect", "PAUSED"), "unknown status `PAUSED`"),
        (foreign("architect", ""), "does not say what the status"),
        (foreign("shipping", "IN_PROGRESS"), "at the stage `shipping`"),
        ("A poem.\n".to_owned(), "is not a state file"),
    ] {
        let feature = Feature::new();
        feature.project.write(STATE, &text);
        feature.run().exits(3).says("error[state-unclear]").says(STATE).says(words);
        assert_eq!(feature.state(), text);
        assert!(feature.ran().is_empty() && feature.set_aside().is_empty());
    }
}

/// Lost: paid work of another tool is done again, or what it wrote into the file is gone.
#[test]
fn a_run_of_another_tool_is_taken_over_in_the_middle() {
    let feature = Feature::new();
    feature.project.write(STATE, &foreign("architect", "IN_PROGRESS"));
    feature.run().exits(3).says("written by another tool: continuing at architect");
    assert_eq!(feature.ran(), ["architect"]);
    for line in ["- mood: good", "Bob had a cold.", "- [x] Spec approval", "- run_id: other-1"] {
        feature.shows(line);
    }
    feature.mentions("| spec | 2026-01-02T03:04:05Z |");
    feature.mentions("Resumed from checkpoint at ");
    feature.mentions("Prior session ended at stage: architect.");
    feature.tick("Architecture sign-off");
    feature.run().exits(3).says("Security sign-off");
    assert_eq!(feature.times("spec") + feature.times("clarify"), 0);
}

/// Lost: of two state files the wrong one decides, without a word.
#[test]
fn the_visible_of_two_state_files_is_used() {
    let feature = Feature::new();
    let visible = format!("{FOLDER}/pipeline-state.md");
    feature.project.write(STATE, &foreign("tdd", "COMPLETE"));
    feature.project.write(&visible, &foreign("architect", "IN_PROGRESS"));
    feature.run().exits(3).says(&format!("both {visible} and {STATE} exist"));
    assert_eq!(feature.ran(), ["architect"]);
    assert_eq!(feature.state(), foreign("tdd", "COMPLETE"));
    assert!(feature.project.read(&visible).contains("- status: WAITING_FOR_HUMAN"));
}

/// Lost: a run that was stopped cannot go on, or one that was ended for good does.
#[test]
fn abort_resumes_and_cancel_starts_fresh() {
    let feature = Feature::at_spec_approval();
    feature.project.piton(&["abort", "-m", "lunch"]).exits(0);
    feature.shows("- status: ABORTED");
    feature.mentions("Stopped by tester: lunch");
    feature.tick("Spec approval");
    feature.run().exits(3).says("Architecture sign-off");
    assert_eq!(feature.ran(), ["spec", "clarify", "architect"]);
    feature.project.piton(&["abort", "--cancel", "--yes"]).exits(0);
    feature.shows("- status: CANCELLED");
    feature.run().exits(3).says("Spec approval");
    assert_eq!(feature.ran()[3..], ["spec", "clarify"]);
    assert_eq!(feature.set_aside().len(), 1);
    feature.mentions("- [ ] Spec approval");
}

/// Lost: a feature that is complete cannot be run again, or its record is overwritten.
#[test]
fn a_complete_feature_starts_fresh() {
    let feature = Feature::with_settings("stages = [\"spec\"]\n");
    feature.run().exits(0);
    feature.shows("- status: COMPLETE");
    feature.run().exits(0);
    assert_eq!(feature.ran(), ["spec", "spec"]);
    assert_eq!(feature.set_aside().len(), 1);
}

/// Lost: a state file that another tool keeps in its reports folder is not found, and its work is done
/// again.
#[test]
fn a_state_file_in_the_reports_folder_is_used() {
    let feature = Feature::new();
    let record = format!("{FOLDER}/reports/pipeline-state.md");
    feature.project.write(&record, &foreign("architect", "IN_PROGRESS"));
    feature.project.piton(&["run"]).exits(3).says("continuing 003-csv (architect, IN_PROGRESS)");
    assert_eq!(feature.ran(), ["architect"]);
    assert!(feature.project.read(&record).contains("- status: WAITING_FOR_HUMAN"));
    assert!(!feature.project.has(STATE));
}

/// Lost: nobody knows what a recorded hash was compared with, or a changed spec passes.
#[test]
fn what_the_recorded_hash_of_the_spec_matches_is_said() {
    let body = "# CSV export\n\nRows are exported as CSV.\n";
    let sha = |text: &str| piton_core::hash::Sha::of(text.as_bytes()).to_string();
    let with = |hash: &str| {
        let text = foreign("architect", "IN_PROGRESS");
        text.replace("- mood: good", &format!("- spec_hash: {hash}"))
    };
    for (spec, hash, code, words) in [
        (body.to_owned(), format!("sha256:{}", sha(body)), 3, "is that of the whole file"),
        (body.to_owned(), sha(body), 3, "is that of the whole file"),
        (format!("---\nversion: 1\n---\n{body}"), sha(body), 3, "follows the metadata of the file"),
        (body.to_owned(), "sha256:0a1b2c".to_owned(), 3, "is not a complete SHA-256"),
        (body.to_owned(), sha("other"), 4, "spec hash: the recorded one differs"),
    ] {
        let feature = Feature::new();
        feature.project.write(&format!("{FOLDER}/feature.spec.md"), &spec);
        feature.project.write(STATE, &with(&hash));
        feature.run().exits(code).says(words);
        assert_eq!(feature.ran().is_empty(), code == 4, "{words}");
    }
}

/// Lost: a feature whose spec somebody deleted cannot be continued, and nothing says why.
#[test]
fn a_feature_without_its_spec_says_what_to_do() {
    let feature = Feature::new();
    feature.project.remove(&format!("{FOLDER}/feature.spec.md"));
    feature.run().exits(4).says("error[spec-missing]").says("write it");
    feature.project.git(&["checkout", "--", FOLDER]);
    feature.run().exits(3).says("Spec approval");
    feature.tick("Spec approval");
    feature.project.remove(&format!("{FOLDER}/feature.spec.md"));
    feature.run().exits(4).says("--accept-spec");
    feature.project.git(&["checkout", "--", FOLDER]);
    feature.run().exits(3).says("Architecture sign-off");
    assert_eq!(feature.ran(), ["spec", "clarify", "architect"]);
}

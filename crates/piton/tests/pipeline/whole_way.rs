//! A feature from its spec to the end, and what is seen of it on the way.

use super::scene::{BOXES, FOLDER, Feature, STAGES, STATE};

/// Lost: a person who ticks boxes in an editor never sees the feature complete.
#[test]
fn ticks_by_hand_lead_to_the_end() {
    let feature = Feature::new();
    for name in BOXES {
        feature.run().exits(3).says(name);
        feature.shows("- status: WAITING_FOR_HUMAN");
        feature.shows("- job_status: WAITING_FOR_HUMAN");
        feature.tick(name);
    }
    feature.run().exits(0);
    assert_eq!(feature.ran(), STAGES);
    for line in ["- status: COMPLETE", "- current_stage: done", "- stage: done"] {
        feature.shows(line);
    }
    for stage in STAGES {
        feature.mentions(&format!("| {stage} | 20"));
    }
    assert!(feature.set_aside().is_empty());
}

/// Lost: an approval given by command is not in the file that other tools read.
#[test]
fn approvals_by_command_tick_the_boxes() {
    let feature = Feature::new();
    for (gate, name) in ["architect", "tasks", "refactor"].into_iter().zip(BOXES) {
        feature.run().exits(3).says(name);
        feature.project.piton(&["approve", gate]).exits(0);
        feature.mentions(&format!("- [x] {name}"));
    }
    feature.run().exits(0);
    assert_eq!(feature.ran(), STAGES);
    feature.shows("- status: COMPLETE");
    feature.mentions("- [ ] Convergence escalation");
    // Gates are also known by the text of their box.
    let feature = Feature::at_spec_approval();
    feature.project.piton(&["approve", "spec approval"]).exits(0).says("architect");
}

/// Lost: a state file of ours that no reader of the format understands.
#[test]
fn the_state_file_is_valid_at_every_pause() {
    let feature = Feature::new();
    for name in BOXES {
        feature.run().exits(3);
        let found = feature.project.piton(&["inspect", STATE, "--json"]).exits(0).json();
        assert_eq!((&found["format"], &found["valid"]), (&"pipeline/state".into(), &true.into()));
        assert_eq!(found["problems"], serde_json::json!([]));
        assert_eq!(found["data"]["status"], "WAITING_FOR_HUMAN");
        assert_eq!(found["data"]["decision"], "resume");
        feature.tick(name);
    }
    feature.run().exits(0);
    let found = feature.project.piton(&["inspect", STATE, "--json"]).exits(0).json();
    assert_eq!(found["data"]["status"], "COMPLETE");
    assert_eq!(found["data"]["decision"], "fresh");
}

/// Lost: stages do not get what the resume rules say, and begin from nothing.
#[test]
fn each_stage_is_given_its_files() {
    let feature = Feature::new();
    feature.project.write(&format!("{FOLDER}/constitution.md"), "I. Simple\n");
    feature.project.write(&format!("{FOLDER}/research.md"), "Known before.\n");
    feature.does("spec", "echo 'Quotes: [NEEDS CLARIFICATION: which?]' >> $d/feature.spec.md");
    feature.does("clarify", "sed -i '/NEEDS/d' $d/feature.spec.md");
    for name in BOXES {
        feature.run().exits(3);
        feature.tick(name);
    }
    feature.run().exits(0);
    for (stage, wanted) in [
        ("spec", "- specs/003-csv/feature.spec.md"),
        ("clarify", "- line 4: which?"),
        ("architect", "- specs/003-csv/research.md"),
        ("architect", "- specs/003-csv/constitution.md"),
        ("tasks", "- specs/003-csv/adr.md"),
        ("tdd", "- specs/003-csv/tasks.md"),
        ("programmer", "do not start over"),
        ("testrunner", "- specs/003-csv/test-report.md"),
        ("code-review", "Change no file but code-review.md"),
        ("security", "Change no file but security-report.md"),
        ("refactor", "- specs/003-csv/code-review.md"),
    ] {
        let prompt = feature.prompt(stage, 1);
        assert!(prompt.contains(wanted), "{stage} is not given `{wanted}`:\n{prompt}");
    }
}

/// Lost: somebody who comes back after a weekend does not know what waits for them.
#[test]
fn waiting_lists_what_is_to_be_decided() {
    let feature = Feature::new();
    feature.project.piton(&["waiting"]).exits(0).says("nothing waits for you");
    assert_eq!(
        feature.project.piton(&["waiting", "--json"]).exits(0).json(),
        serde_json::json!([])
    );
    feature.run().exits(3);
    let run = feature.project.run_id();
    let next = format!("piton approve {run} architect");
    let said = feature.project.piton(&["waiting"]).exits(0);
    said.says(&format!("{run}: gate architect, for ")).says(": Spec approval").says(&next);
    let items = feature.project.piton(&["waiting", "--json"]).exits(0).json();
    let of = |key: &str| items[0][key].as_str().unwrap().to_owned();
    assert_eq!((of("run_id"), of("kind"), of("place")), (run, "gate".into(), "architect".into()));
    assert_eq!((of("what"), of("next")), ("Spec approval".to_owned(), next));
    feature.tick("Spec approval");
    feature.does("architect", "exit 1");
    feature.run().exits(1);
    let items = feature.project.piton(&["waiting", "--json"]).exits(0).json();
    assert_eq!(items[0]["kind"], "failed_step");
}

/// Lost: `piton run` asks about features that are not there, or takes the wrong one.
#[test]
fn run_without_arguments_continues_the_one_feature() {
    let feature = Feature::new();
    feature.project.piton(&["run"]).exits(2).silent_about("active feature");
    feature.run().exits(3);
    feature.tick("Spec approval");
    feature.project.piton(&["run"]).exits(3).says("continuing 003-csv (clarify, ");
    let other = "specs/004-tsv/.pipeline-state.md";
    let text = "# Pipeline State\n\n- current_stage: tdd\n- status: ABORTED\n";
    feature.project.write(other, text);
    let said = feature.project.piton(&["run"]).exits(2).says("error[several-features]");
    said.says("piton run specs/003-csv").says("piton run specs/004-tsv").says("tdd, ABORTED");
    feature.project.write(other, &text.replace("ABORTED", "COMPLETE"));
    feature.project.piton(&["run"]).exits(3).says("continuing 003-csv (architect, ");
}

//! The loop over phases: what runs, in which order, what it is given, and what the plan shows.

use super::scene::{PLAN, Scene, THREE};

/// Lost: a plan is not run phase by phase, or more of it is changed than boxes and markers.
#[test]
fn phases_run_in_order_and_only_boxes_and_markers_change() {
    let scene = Scene::new();
    scene.run().exits(0);
    assert_eq!(scene.ran(), ["1", "2", "3"]);
    let wanted = THREE
        .replace("Schema", "Schema [COMPLETED]")
        .replace("[NOT STARTED]", "[COMPLETED]")
        .replace("Mail", "Mail [COMPLETED]")
        .replace("[ ] table", "[x] table")
        .replace("[ ] index", "[x] index")
        .replace("[ ] form", "[x] form")
        .replace("[ ] send", "[x] send");
    assert_eq!(scene.text(), wanted);
    scene.run().exits(0).says("is already complete");
    assert_eq!(scene.ran().len(), 3);
}

/// Lost: an agent does not know what its phase asks for, or its test is not run.
#[test]
fn a_phase_is_its_section_and_its_tests() {
    let scene = Scene::new();
    scene.does("1", "[ $n = 1 ] && exit 0\n");
    let said = scene.run().exits(1).says("the test failed");
    said.says("Phase 1 failed. Retry phase, Skip phase, or Abort workflow?");
    let prompt = scene.prompt("1", 1);
    for words in [PLAN, "Schema", "Write the schema.", "- [ ] table", "at most 50 words"] {
        assert!(prompt.contains(words), "no `{words}` in\n{prompt}");
    }
    assert!(!prompt.contains("Login"), "{prompt}");
    let shown = scene.project.piton(&["show", "1/main/work", "--prompt"]).exits(0);
    assert!(shown.stdout.contains("Write the schema."), "{}", shown.stdout);
    scene.project.piton(&["retry", "1"]).exits(0);
    scene.project.piton(&["resume"]).exits(0);
    assert!(scene.prompt("1", 2).contains("What went wrong before"));
    assert_eq!(scene.ran(), ["1", "1", "2", "3"]);
}

/// Lost: a user cannot change what agents are told, or which command tests a phase.
#[test]
fn settings_change_prompt_test_and_single_phases() {
    let more = "prompt = \"{{ phase.id }} of {{ context.plan }} is {{ context.title }}:\\n{{ context.section }}\"\n\
                test = \"test -e made/$PITON_PHASE\"\n\n[workflow.phase.2]\nrun = \"mkdir -p made; echo 2 > made/2\"\n";
    let scene = Scene::with(PLAN, THREE, more);
    scene.run().exits(0);
    assert_eq!(scene.ran(), ["1", "3"]);
    assert_eq!(scene.prompt("3", 1), format!("3 of {PLAN} is Mail:\n## Phase 3: Mail\n- [ ] send"));
    let bad = Scene::with(PLAN, THREE, "prompt = \"{{ nothing }}\"\n");
    bad.run().exits(2).says("the settings of workflows cannot be used");
    assert_eq!(bad.checkpoints(), [""; 0]);
}

/// Lost: phases that wait for nobody wait all the same, or run before what they depend on.
#[test]
fn dependencies_make_waves_and_cycles_are_named() {
    let phase =
        |id: &str, on: &str| format!("### Phase {id}: P{id}\n**Dependencies**: {on}\n- [ ] t\n\n");
    let diamond = format!(
        "# D\n\n{}{}{}{}",
        phase("1", "[]"),
        phase("2A", "[1]"),
        phase("2B", "depends_on: [phase_1]"),
        phase("3", "2A, 2B")
    );
    let scene = Scene::with_plan(&diamond);
    let waves = scene.run_with(&["--dry-run", "--json"]).exits(0).json();
    let steps = |wave: usize| -> Vec<String> {
        let wave = waves["waves"][wave].as_array().unwrap();
        wave.iter().map(|s| s["step"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(steps(0), ["1/main/work"]);
    // Agents of one wave take turns.
    assert_eq!(steps(1), ["2A/main/work"]);
    assert_eq!(steps(2), ["2B/main/work"]);
    assert_eq!(steps(3), ["3/main/work"]);
    scene.run().exits(0);
    assert_eq!(scene.ran(), ["1", "2A", "2B", "3"]);
    let circle = format!("# C\n\n{}{}{}", phase("1", "[3]"), phase("2", "[1]"), phase("3", "[2]"));
    let scene = Scene::with_plan(&circle);
    scene.run().exits(2).says("phases depend on each other in a cycle: 1 -> 3 -> 2 -> 1");
    assert_eq!(scene.ran(), [""; 0]);
}

/// Lost: work that the plan says is done, or is not wanted, is done again.
#[test]
fn settled_phases_are_skipped() {
    let plan = "# P\n\n## Phase 1: A [COMPLETE]\n- [ ] one\n\n## Phase 2: B\n- [x] two\n\n\
                ## Phase 3: C [SKIPPED]\n- [ ] three\n\n## Phase 4: D [DEFERRED]\n- [ ] four\n\n\
                ## Phase 5 (OPTIONAL): E [PARTIAL]\n**Depends on**: 4\n- [x] five\n- [ ] six\n";
    let scene = Scene::with_plan(plan);
    scene.run_with(&["--dry-run"]).exits(0).says("5/main/work").says("finished before");
    let said = scene.run().exits(0);
    said.says("Resuming from Phase 5\n")
        .says("Skipping Phase 1 (already completed)\nSkipping Phase 2 (already completed)\n")
        .says("Skipping Phase 3 (skipped)\n");
    assert_eq!(scene.ran(), ["5"]);
    let wanted = plan.replace("[PARTIAL]", "[COMPLETED]").replace("- [ ] six", "- [x] six");
    assert_eq!(scene.text(), wanted);
    assert_eq!(scene.checkpoint()["completed_phases"], serde_json::json!([1, 2, 5]));
}

/// Lost: what the file of an expanded phase asks for is not done, or its boxes stay open.
#[test]
fn an_expanded_phase_is_followed_into_its_file() {
    let plan = "# P\n\n## Phase 1: A\nSee [Phase 1 Details](phase_1_a.md).\n- [ ] all\n\n## Phase 2: B\n- [ ] b\n";
    let scene = Scene::with_plan(plan);
    let details = "specs/027_auth/plans/phase_1_a.md";
    let text = "# Phase 1: A\n\nThe long story.\n- [ ] one\n- [ ] two\n";
    scene.project.write(details, text);
    scene.does("2", "exit 1");
    scene.run().exits(1);
    let prompt = scene.prompt("1", 1);
    assert!(prompt.contains("The long story."), "{prompt}");
    assert_eq!(scene.project.read(details), text.replace("[ ]", "[x]"));
    scene.shows("- [x] all");
    scene.shows("- [ ] b");
}

/// Lost: the document of another protocol is taken for a plan, or the other way round.
#[test]
fn plans_are_told_from_documents_of_other_protocols() {
    let scene = Scene::new();
    let phase = "# P1: Base\n\n## Interface Freeze Gates\n- [ ] IF-0-P1-A: a\n\n## Lane Index & Dependencies\n\
                 - SL-A -- A\n  - Depends on: (none)\n  - Parallel-safe: yes\n";
    scene.project.write("phase.md", phase);
    let said = scene.project.piton(&["run", "phase.md", "--dry-run"]);
    assert!(said.stderr.contains("SL-A"), "{}", said.stderr);
    let found = scene.project.piton(&["inspect", PLAN, "--json"]).exits(0).json();
    assert_eq!(found["format"], "workflow/plan");
}

/// Lost: two agents write in one folder at once, and each takes the other's work for its own.
#[test]
fn agents_of_one_wave_take_turns_and_commands_do_not() {
    let plan = "# W\n\n## Phase 1: A\n**Dependencies**: []\n**Files to modify**: `made/1`\n- [ ] a\n\n\
                ## Phase 2: B\n**Dependencies**: []\n**Files to modify**: `made/2`\n- [ ] b\n";
    let scene = Scene::with_plan(plan);
    scene.hold("1");
    let driver = scene.project.spawn(&["run", PLAN]);
    scene.wait_at("1");
    assert_eq!(scene.project.step("2/main/work")["status"], "pending");
    scene.release("1");
    // Neither did the other's work: nothing is outside of its scope.
    driver.wait().exits(0).silent_about("scope");
    assert_eq!(scene.ran(), ["1", "2"]);
    let meet = "touch ../log/$PITON_PHASE; while [ ! -e ../log/$1 ]; do sleep 0.02; done";
    let own = |phase: &str, other: &str| {
        format!("[workflow.phase.{phase}]\nrun = \"{}\"\n\n", meet.replace("$1", other))
    };
    let commands = Scene::with(PLAN, plan, &format!("\n{}{}", own("1", "2"), own("2", "1")));
    commands.run().exits(0);
}

/// Lost: a person who names a file that is not a plan does not learn what one is.
#[test]
fn what_is_not_a_plan_is_told_what_plans_are() {
    let scene = Scene::new();
    for text in ["# Notes\n\n- buy milk\n", "# Only a heading\n", ""] {
        scene.project.write("notes.md", text);
        let said = scene.project.piton(&["run", "notes.md"]).exits(2);
        let said = said.says("error[plan-unreadable]: notes.md is not a plan");
        for words in ["plan.toml", "phase document", "feature.spec.md", "## Phase 1: Title", "T001"]
        {
            assert!(said.stderr.contains(words), "{}", said.stderr);
        }
    }
    scene.project.piton(&["run", "made"]).exits(2);
    scene.project.write("folder/x.txt", "");
    scene.project.piton(&["run", "folder"]).exits(2).says("is a folder").says("feature.spec.md");
}

/// Lost: a template in a file of its own is not what agents are told.
#[test]
fn the_prompt_of_a_phase_is_made_by_the_file_that_the_settings_name() {
    let scene = Scene::with(PLAN, THREE, "prompt_file = \"prompts/phase.md\"\n");
    scene.run().exits(2).says("workflow.prompt_file");
    let template =
        "{{ phase.id }} of {{ context.plan }}, {{ context.title }}:\n{{ context.section }}\n";
    scene.project.write("prompts/phase.md", template);
    scene.run().exits(0);
    let wanted = format!("3 of {PLAN}, Mail:\n## Phase 3: Mail\n- [ ] send");
    assert_eq!(scene.prompt("3", 1).trim_end(), wanted);
}

//! What people decide: changes wanted, escalation, budgets, ticks that appear at the wrong time.

use super::scene::{FOLDER, Feature};

/// Lost: a person's comments do not reach the agent, cost nothing, or pass for an approval.
#[test]
fn changes_wanted_reach_the_next_prompt_and_are_asked_about_again() {
    let feature = Feature::at_architecture();
    feature.project.write("comments.md", "specs/003-csv/adr.md:3: say why\nand be short\n");
    let asked = ["reject", "tasks", "--changes", "--file", "comments.md", "-m", "not yet"];
    feature.project.piton(&asked).exits(0).says("architect/main/work will run again");
    feature.run().exits(3).says("Architecture sign-off");
    assert_eq!((feature.times("architect"), feature.times("tasks")), (2, 0));
    let prompt = feature.prompt("architect", 2);
    for words in
        ["Changes wanted by tester", "not yet", "specs/003-csv/adr.md:3: say why", "be short"]
    {
        assert!(prompt.contains(words), "no `{words}` in\n{prompt}");
    }
    feature.mentions("Changes wanted by tester: ");
    feature.mentions("| architect | 2 | 2 | WITHIN_BUDGET |");
    feature.shows("- retry_count: 1");
    feature.mentions("- [ ] Architecture sign-off");
    feature.mentions("- [x] Spec approval");
    feature.project.piton(&["approve", "tasks"]).exits(0);
    feature.run().exits(3).says("Security sign-off");
}

/// Lost: an agent that fails the same way burns its whole budget before anybody looks.
#[test]
fn the_same_failure_three_times_asks_a_person() {
    let feature = Feature::at_architecture();
    feature
        .does("programmer", "[ $n -gt 3 ] || { echo \"took ${n}s: rows is None\" >&2; exit 1; }");
    feature.tick("Architecture sign-off");
    feature.run().exits(3).says("Convergence escalation");
    assert_eq!(feature.times("programmer"), 3);
    for line in ["- status: WAITING_FOR_HUMAN", "- current_stage: programmer", "- retry_count: 2"] {
        feature.shows(line);
    }
    feature.mentions("| 3 | programmer |");
    feature.run().exits(3).says("programmer/main/work");
    assert_eq!(feature.times("programmer"), 3, "nobody has decided yet");
    feature.project.piton(&["approve", "programmer/main/work"]).exits(0);
    feature.mentions("- [x] Convergence escalation");
    feature.run().exits(3).says("Security sign-off");
    assert_eq!(feature.times("programmer"), 4);
}

/// Lost: a stage without attempts left looks as if it were at work.
#[test]
fn an_exhausted_budget_waits_for_a_person() {
    let feature = Feature::at_spec_approval();
    feature.does("architect", "echo \"reason $n$n$n\" >&2; exit $n");
    feature.tick("Spec approval");
    feature.run().exits(1);
    assert_eq!(feature.times("architect"), 3);
    for line in ["- status: WAITING_FOR_HUMAN", "- job_status: FAILED", "- retry_count: 2"] {
        feature.shows(line);
    }
    feature.mentions("| architect | 3 | 2 | EXHAUSTED |");
    feature.run().exits(1);
    assert_eq!(feature.times("architect"), 3, "a resume gives no further attempts");
    feature.does("architect", "true");
    feature.project.piton(&["retry"]).exits(0);
    feature.run().exits(3).says("Architecture sign-off");
}

/// Lost: an agent ticks its own box, and nobody is asked.
#[test]
fn a_tick_that_appears_while_a_stage_works_asks() {
    let feature = Feature::at_spec_approval();
    feature.does(
        "architect",
        "sed -i 's/\\[ \\] Architecture/[x] Architecture/' $d/.pipeline-state.md",
    );
    feature.tick("Spec approval");
    feature.run().exits(3).says("Architecture sign-off");
    assert_eq!(feature.times("tasks"), 0);
    feature.mentions("- [x] Architecture sign-off");
    feature.run().exits(3);
    assert_eq!(feature.times("tasks"), 0);
    feature.project.piton(&["approve", "tasks"]).exits(0);
    feature.run().exits(3).says("Security sign-off");
    assert!(feature.project.has(&format!("{FOLDER}/tasks.md")));
}

/// Lost: a person who decides does not see what changed since they last did.
#[test]
fn what_changed_since_the_last_approval_is_shown() {
    let feature = Feature::new();
    feature.does("clarify", "echo 'With a header.' >> $d/feature.spec.md");
    let said = feature.run().exits(3).says("changed since the run began");
    said.says("+With a header.");
    feature.tick("Spec approval");
    let said = feature.run().exits(3).says("changed since tester approved \"Spec approval\"");
    said.says("specs/003-csv/adr.md").says("Constitution Check").silent_about("+With a header.");
    feature.project.piton(&["reject", "tasks", "--changes", "-m", "why?"]).exits(0);
    feature.does("architect", "[ $n = 1 ] || trap 'echo Because. >> $d/adr.md' EXIT");
    let said = feature.run().exits(3).says("changed since tester asked for changes");
    said.says("+Because.").silent_about("research.md |");
    // Taken back by a person, it is compared with what they approved last.
    feature.project.piton(&["approve", "tasks"]).exits(0);
    feature.does("architect", "true");
    feature.project.piton(&["retry", "architect/main/work", "--again"]).exits(0);
    feature.project.piton(&["approve", "architect"]).exits(0);
    let said = feature.run().exits(3).says("changed since tester approved \"Spec approval\"");
    said.says("-Because.");
}

/// Lost: an approval that a person took back counts again because its box was ticked for them, or the
/// box says for ever that it was given.
#[test]
fn an_approval_that_is_taken_back_opens_its_box() {
    let feature = Feature::at_security();
    feature.project.piton(&["retry", "architect/main/work", "--again"]).exits(0);
    feature.mentions("- [ ] Spec approval");
    feature.mentions("- [ ] Architecture sign-off");
    feature.mentions("Approval of tasks taken back by tester");
    feature.run().exits(3).says("gate architect \"Spec approval");
    assert_eq!(feature.times("architect"), 1);
    feature.tick("Spec approval");
    feature.run().exits(3).says("gate tasks \"Architecture sign-off");
    assert_eq!(feature.times("architect"), 2);
    feature.shows("- current_stage: architect");
    feature.tick("Architecture sign-off");
    feature.run().exits(3).says("Security sign-off").silent_about("gate tasks \"");
    feature.mentions("- [x] Architecture sign-off");
    assert_eq!(feature.times("architect"), 2);
    // Also where nothing is left to do after it.
    feature.tick("Security sign-off");
    feature.project.piton(&["resume"]).exits(0);
    feature.shows("- status: COMPLETE");
    let run = feature.project.run_id();
    feature.project.piton(&["retry", &run, "security/main/work", "--again"]).exits(0);
    feature.project.piton(&["resume", &run]).exits(3).says("gate refactor \"Security sign-off");
    assert_eq!(feature.times("security"), 2);
    feature.shows("- status: WAITING_FOR_HUMAN");
    feature.shows("- current_stage: security");
    feature.project.piton(&["approve", &run, "refactor"]).exits(0);
    feature.project.piton(&["resume", &run]).exits(0);
    feature.shows("- status: COMPLETE");
}

/// Lost: a program that asks people for Piton cannot show them what they decide about.
#[test]
fn programs_are_given_what_is_to_be_decided() {
    let feature = Feature::at_spec_approval();
    feature.tick("Spec approval");
    let said = feature.project.piton(&["run", FOLDER, "--json"]).exits(3);
    let last = said.stdout.lines().last().unwrap_or_default();
    let summary: serde_json::Value = serde_json::from_str(last).unwrap();
    let decide = &summary["summary"]["decide"][0];
    assert_eq!(
        (&decide["gate"], &decide["name"].as_str().unwrap()[..12]),
        (&"tasks".into(), "Architecture")
    );
    let adr = format!("{FOLDER}/adr.md");
    assert_eq!(decide["files"], serde_json::json!([adr, format!("{FOLDER}/research.md")]));
    let changes = &decide["changes"];
    assert_eq!((&changes["since"], &changes["by"]), (&"approved".into(), &"tester".into()));
    assert_eq!(changes["about"], "Spec approval");
    assert!(changes["paths"].as_array().unwrap().contains(&adr.clone().into()), "{changes}");
    let table = &decide["tables"][0];
    assert_eq!(table["columns"], serde_json::json!(["article", "status", "notes"]));
    assert_eq!(table["rows"], serde_json::json!([["I. Simple", "COMPLIES", "one file"]]));
    // The list of what waits has the same; after changes, what changed line by line.
    feature.does("architect", "echo R > $d/research.md; cp ../log/adr.md $d/adr.md; exit 0");
    feature.project.write("../log/adr.md", &format!("{}\nBecause.\n", super::scene::ADR));
    feature.project.piton(&["reject", "tasks", "--changes", "-m", "why?"]).exits(0);
    feature.run().exits(3);
    let items = feature.project.piton(&["waiting", "--json"]).exits(0).json();
    let changes = &items[0]["decide"]["changes"];
    assert_eq!((&changes["since"], &changes["by"]), (&"changes_wanted".into(), &"tester".into()));
    assert!(changes["diff"].as_array().unwrap().contains(&"+Because.".into()), "{changes}");
}

/// Lost: a new feature lists boxes that nobody will ever be asked about.
#[test]
fn a_new_feature_has_the_boxes_of_its_stages() {
    let feature = Feature::with_settings(
        "stages = [\"clarify\", \"architect\", \"own\"]\n\n\
         [pipeline.stage.architect]\ncheckpoint = \"none\"\n\n\
         [pipeline.stage.own]\nrun = \"true\"\ncheckpoint = \"Own sign-off\"\n",
    );
    feature.project.piton(&["init", "pipeline", "tsv"]).exits(0);
    let state = feature.project.read("specs/004-tsv/.pipeline-state.md");
    let boxes: Vec<&str> = state.lines().filter_map(|line| line.strip_prefix("- [ ] ")).collect();
    assert_eq!(boxes, ["Spec approval", "Own sign-off"]);
    let usual = Feature::new();
    usual.project.piton(&["init", "pipeline", "tsv"]).exits(0);
    let state = usual.project.read("specs/004-tsv/.pipeline-state.md");
    assert_eq!(state.matches("- [ ] ").count(), 4);
}

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

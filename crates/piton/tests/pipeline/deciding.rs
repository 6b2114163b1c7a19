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

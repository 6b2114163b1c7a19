//! Replans by the real program: what asks for them, what comes of them, kills in the middle, limits.

mod common;

use common::{Project, Signal};
use serde_json::Value;

/// A plan whose second phase asks for another plan, and what writes that.
fn project(revise: &str) -> Project {
    let project = Project::with_plan(
        "[replan]\nrun = \"sh revise.sh\"\n\n\
         [[phase]]\nid = \"P1\"\nrun = \"echo one >> ran\"\n\n\
         [[phase]]\nid = \"P2\"\nrun = \"echo two >> ran; exit 86\"\n\n\
         [[phase]]\nid = \"P3\"\nrun = \"echo three >> ran\"\n",
    );
    project.write("revise.sh", &format!("echo revise >> revised\n{revise}\n"));
    project.write(".gitignore", "ran\nrevised\nhold\nat-it\ngiven\n");
    project.commit();
    project
}

/// What corrects the plan.
const CORRECT: &str = "sed -i 's/; exit 86//' \"$PITON_PLAN\"";

fn replans(project: &Project) -> Vec<Value> {
    project.status_json("")["replans"].as_array().cloned().unwrap_or_default()
}

fn results(project: &Project) -> Vec<String> {
    let all = replans(project);
    all.iter().map(|r| r["result"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Lost: what asks for a replan does not reach whoever writes the plan.
#[test]
fn the_command_is_told_why_and_the_change_is_shown() {
    let project = project(&format!(
        "printenv PITON_REPLAN_REASON PITON_REPLAN_TRIGGER PITON_REPLAN_NUMBER PITON_PHASE > given\n\
         cat \"$PITON_FAILURE_CONTEXT\" >> given\n{CORRECT}"
    ));
    project
        .piton(&["run"])
        .exits(0)
        .says("P2: replan 1 started: P2/main/work: it asks for a replan")
        .says("main/work: run: echo two >> ran; exit 86 -> echo two >> ran")
        .says("1 replan");
    assert_eq!(project.lines("ran"), ["one", "two", "two", "three"]);
    let given = project.read("given");
    for words in ["it asks for a replan", "requested\n1\nP2\n", "\"attempt\": 1"] {
        assert!(given.contains(words), "{words}: {given}");
    }
    let all = replans(&project);
    assert_eq!((all.len(), &all[0]["phase"], &all[0]["number"]), (1, &"P2".into(), &1.into()));
    assert_eq!((&all[0]["trigger"], &all[0]["result"]), (&"requested".into(), &"replanned".into()));
    project.piton(&["status"]).exits(0).says("P2: 1 replan");
}

/// Lost: a replan that was killed counts twice, or leaves half a plan behind.
#[test]
fn a_replan_outlives_its_driver_and_counts_once() {
    let project = project(&format!(
        "echo half > \"$PITON_PLAN.half\"; echo >> \"$PITON_PLAN\"; echo '[broken' >> \"$PITON_PLAN\"\n\
         touch at-it; while [ -e hold ]; do sleep 0.05; done\n\
         head -n -1 \"$PITON_PLAN\" > new && cat new > \"$PITON_PLAN\"\n{CORRECT}"
    ));
    project.write("hold", "");
    let mut driver = project.spawn(&["run"]);
    project.wait_for("at-it");
    driver.kill();
    assert!(project.read("plan.toml").contains("[broken"), "it is in the middle");
    std::fs::remove_file(project.root().join("hold")).expect("it was there");
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("revised"), ["revise"], "its process went on");
    assert_eq!(results(&project), ["replanned"]);
}

/// Lost: the fall of driver and keeper leaves what half a replan wrote as the plan.
#[test]
fn a_replan_that_falls_with_its_keeper_begins_again_from_the_plan_before() {
    let project = project(&format!(
        "if [ -e hold ]; then echo '[broken' >> \"$PITON_PLAN\"; touch at-it; sleep 600; fi\n{CORRECT}"
    ));
    project.write("hold", "");
    let _driver = project.spawn(&["run"]);
    project.wait_for("at-it");
    project.kill_all();
    project.remove("hold");
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("revised").len(), 2, "it began again");
    assert_eq!(results(&project), ["replanned"], "and counts once");
    assert!(!project.read("plan.toml").contains("broken"));
}

/// Lost: Ctrl-C during a replan leaves another plan than the one on record.
#[test]
fn a_signal_ends_a_replan_and_puts_the_plan_back() {
    let project = project(&format!(
        "if [ -e hold ]; then echo '[broken' >> \"$PITON_PLAN\"; touch at-it; sleep 600; fi\n{CORRECT}"
    ));
    project.write("hold", "");
    let driver = project.spawn(&["run"]);
    project.wait_for("at-it");
    driver.signal(Signal::TERM);
    assert_eq!(driver.wait().code, 143);
    assert!(!project.read("plan.toml").contains("broken"));
    project.remove("hold");
    project.piton(&["resume"]).exits(0);
    assert_eq!(results(&project), ["replanned"]);
}

/// Lost: phases are planned again until the money is gone.
#[test]
fn a_third_replan_is_refused_and_a_person_may_force_it() {
    let project = project(
        "echo \"# $PITON_REPLAN_NUMBER\" >> \"$PITON_PLAN\"; sed -i \"s/two/two$PITON_REPLAN_NUMBER/\" \"$PITON_PLAN\"",
    );
    project
        .piton(&["run"])
        .exits(3)
        .says("the phase was already replanned 2 times")
        .says("--force-replan");
    assert_eq!(project.lines("revised").len(), 2);
    project.piton(&["waiting"]).exits(0).says("already replanned 2 times");
    project.piton(&["resume"]).exits(3);
    assert_eq!(project.lines("revised").len(), 2, "counters unchanged");
    project
        .piton(&["resume", "--force-replan"])
        .exits(3)
        .says("replan 3 started, forced by tester");
    assert_eq!((project.lines("revised").len(), replans(&project).len()), (3, 3));
    project.piton(&["approve", "P2/@replan/requested"]).exits(0);
    project.piton(&["resume"]).exits(1);
    assert_eq!(project.lines("revised").len(), 3, "a person said to go on as it is");
}

/// Lost: two plans take turns, and nobody says which.
#[test]
fn a_replan_that_goes_back_to_an_earlier_plan_stops() {
    let project = project(
        "if grep -q two \"$PITON_PLAN\"; then sed -i 's/two/2/' \"$PITON_PLAN\"; \
         else sed -i 's/echo 2/echo  two/; s/echo  two/echo two/' \"$PITON_PLAN\"; echo '# other bytes' >> \"$PITON_PLAN\"; fi",
    );
    project
        .piton(&["run"])
        .exits(3)
        .says("the new plan equals the plan before replan 1 of phase P2");
    assert_eq!(results(&project), ["replanned", "looped"]);
    assert!(project.read("plan.toml").contains("echo 2 >>"), "it is put back");
}

/// Lost: a replan that changes nothing is paid for again.
#[test]
fn a_replan_without_a_change_and_the_same_failure_is_a_loop() {
    let project = project("true");
    project.piton(&["run"]).exits(3).says("which changed nothing");
    assert_eq!(results(&project), ["unchanged"]);
}

/// Lost: a replan that fails, or loses finished work, changes the plan all the same.
#[test]
fn a_failed_replan_leaves_the_plan_and_keeps_what_it_wrote() {
    for (revise, expected) in [
        ("echo '[broken' >> \"$PITON_PLAN\"; echo 'no idea' >&2; exit 7", "exit code 7"),
        ("echo '[broken' >> \"$PITON_PLAN\"", "cannot be read"),
        ("sed -i 's/echo one/echo uno/' \"$PITON_PLAN\"", "finished work: P1/main/work"),
        ("sed -i 's/revise.sh/revise.sh more/' \"$PITON_PLAN\"", "changes [replan]"),
    ] {
        let project = project(revise);
        let before = project.read("plan.toml");
        project.piton(&["run"]).exits(3).says("the plan stays as it was").says(expected);
        assert_eq!(project.read("plan.toml"), before, "{expected}");
        assert_eq!(results(&project), ["failed"], "{expected}");
        let kept = project.run_dirs()[0].join("replans/1/after/0");
        let kept = std::fs::read_to_string(kept).expect("what it wrote is kept");
        assert_ne!(kept, before, "{expected}");
        assert_eq!(project.lines("ran"), ["one", "two"], "{expected}");
    }
}

/// Lost: a person can't take back what a replan did.
#[test]
fn undo_takes_a_replan_back_and_it_still_counts() {
    let project = project(CORRECT);
    let before = project.read("plan.toml");
    project.piton(&["run"]).exits(0);
    let after = project.read("plan.toml");
    project.piton(&["undo", "--yes"]).exits(0).says("undone: replan 1 of phase P2");
    assert_eq!(project.read("plan.toml"), before);
    assert_eq!(results(&project), ["undone"]);
    project.piton(&["resume"]).exits(3).says("P2/@replan/requested");
    assert_eq!(project.lines("revised").len(), 1, "it is not done again by itself");
    project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(project.read("plan.toml"), after);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran"), ["one", "two", "two", "three"], "finished work stays");
}

/// Lost: what a person writes into the plan while an undo replaces it is lost.
#[test]
fn undo_keeps_what_a_person_wrote_since() {
    let project = project(CORRECT);
    project.piton(&["run"]).exits(0);
    let edited = project.read("plan.toml") + "# mine\n";
    project.write("plan.toml", &edited);
    project.piton(&["undo", "--yes"]).exits(0);
    let kept = project.run_dirs()[0].join("replans/1/found-0");
    assert_eq!(std::fs::read_to_string(kept).expect("it is kept"), edited);
}

/// A plan of one phase and more, and what writes another one; nothing where that is empty.
fn plan_of(revise: &str, phase: &str) -> Project {
    let run = if revise.is_empty() { "" } else { "run = \"sh revise.sh\"\n" };
    let project =
        Project::with_plan(&format!("[replan]\n{run}\n[[phase]]\nid = \"P1\"\n{phase}\n"));
    project.write("revise.sh", revise);
    project.write(".gitignore", "ran\nrevised\n");
    project.commit();
    project
}

/// Lost: a phase that is too large for one go is started as it is.
#[test]
fn large_phases_are_planned_again_before_they_start() {
    for (size, fix) in [
        ("complexity = 8.5", "s/complexity = 8.5/complexity = 4/"),
        ("tasks = 11", "s/tasks = 11/tasks = 5/"),
    ] {
        let replan = format!("sed -i '{fix}' $PITON_PLAN; cat ran >> revised || true");
        let project = plan_of(&replan, &format!("{size}\nrun = \"echo ran >> ran\""));
        project.piton(&["run"]).exits(0).says("replan 1 started");
        assert_eq!(project.lines("ran"), ["ran"], "{size}");
        assert!(project.lines("revised").is_empty(), "{size}: before it starts");
    }
    let project = plan_of("", "complexity = 8\ntasks = 10\nrun = \"true\"");
    project.piton(&["run"]).exits(0);
    assert!(replans(&project).is_empty());
}

/// Lost: a step that finds out how much its phase is has no way to say so.
#[test]
fn a_failed_step_may_say_that_its_phase_is_too_complex() {
    let report = |number: &str| {
        let words = format!("echo '{{\\\"complexity\\\": {number}}}' > $PITON_OUTPUT");
        format!("run = \"{words}; exit 1\"")
    };
    let project = plan_of("sed -i 's/exit 1/true/' $PITON_PLAN", &report("8.5"));
    project.piton(&["run"]).exits(0).says("it reports a complexity of 8.5, above 8");
    assert_eq!(replans(&project)[0]["trigger"], "complexity_exceeded");
    // Nobody asks again after a person went on, and nobody asks about what is done.
    let project = plan_of("", &report("9"));
    project.piton(&["run"]).exits(3);
    project.piton(&["approve", "P1/@replan/complexity_exceeded"]).exits(0);
    project.piton(&["resume"]).exits(1);
    for phase in [report("8"), report("9").replace("exit 1", "true")] {
        let project = plan_of("", &phase);
        project.piton(&["run"]).silent_about("complexity");
        assert!(replans(&project).is_empty());
    }
}

/// Lost: without a command the run goes on as if nothing was wrong, or asks every time.
#[test]
fn without_a_command_a_person_is_asked_once() {
    let project = plan_of("", "complexity = 9\nrun = \"echo ran >> ran\"");
    project.piton(&["run"]).exits(3).says("no replan command is configured");
    assert!(!project.has("ran"));
    project.piton(&["approve", "P1/@replan/complexity_exceeded"]).exits(0);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran"), ["ran"]);
    assert!(replans(&project).is_empty());

    let project = plan_of("", "complexity = 9\nrun = \"echo ran >> ran\"");
    project.piton(&["run"]).exits(3);
    let plan = project.read("plan.toml").replace("complexity = 9", "complexity = 3");
    project.write("plan.toml", &plan);
    project.piton(&["resume"]).exits(0);
}

/// Lost: whoever does what the message says, and configures a command, waits for it in vain.
#[test]
fn a_command_that_is_configured_meanwhile_writes_the_plan() {
    let project = plan_of("", "complexity = 9\nrun = \"echo ran >> ran\"");
    project.piton(&["run"]).exits(3).says("no replan command is configured");
    project.write("revise.sh", "sed -i 's/complexity = 9/complexity = 3/' \"$PITON_PLAN\"\n");
    let plan = project.read("plan.toml");
    let plan = plan.replace("[replan]\n", "[replan]\nrun = \"sh revise.sh\"\n");
    project.write("plan.toml", &plan);
    project.piton(&["resume"]).exits(0).says("replan 1 started").says("1 replan");
    assert_eq!(project.lines("ran"), ["ran"]);
}

/// Lost: a test that can't pass is tried until the retries are gone.
#[test]
fn two_test_failures_in_a_row_have_the_phase_planned_again() {
    let project = plan_of(
        "sed -i 's/test = .*/test = \"true\"/' $PITON_PLAN",
        "run = \"echo ran >> ran\"\ntest = \"false\"\nretries = 5\nbackoff = \"0s\"",
    );
    project.piton(&["run"]).exits(0).says("replan 1 started");
    assert_eq!(project.lines("ran").len(), 3);
    assert_eq!(replans(&project)[0]["trigger"], "test_failures");
}

/// Lost: without retries the second failure in a row never comes, or each resume counts anew.
#[test]
fn test_failures_in_a_row_are_reached_without_retries() {
    let phase = "run = \"echo ran >> ran\"\ntest = \"false\"";
    let project = plan_of("sed -i 's/test = .*/test = \"true\"/' $PITON_PLAN", phase);
    project.piton(&["run"]).exits(0).says("replan 1 started");
    assert_eq!(project.lines("ran").len(), 3);
    // Without a command that writes another plan, retries decide, and a retry goes on counting.
    let project = Project::with_plan(&format!("[replan]\n\n[[phase]]\nid = \"P1\"\n{phase}\n"));
    project.piton(&["run"]).exits(1);
    project.piton(&["retry", "P1/main/work"]);
    project.piton(&["resume"]).exits(3).says("P1/@replan/test_failures");
    assert_eq!(project.lines("ran").len(), 2);
}

/// Lost: a lane in a worktree is tried until its retries are gone, or its work is lost with the plan.
#[test]
fn two_test_failures_of_a_lane_in_a_worktree_have_its_phase_planned_again() {
    let project = plan_of(
        "sed -i 's/test = .*/test = \"test -e lane.txt\"/' $PITON_PLAN",
        "[[phase.lane]]\nid = \"L\"\nisolation = \"worktree\"\n\
         run = \"echo $PITON_ATTEMPT >> lane.txt\"\ntest = \"false\"\nretries = 5\nbackoff = \"0s\"",
    );
    project.piton(&["run"]).exits(0).says("replan 1 started");
    let all = replans(&project);
    assert_eq!((all.len(), &all[0]["trigger"]), (1, &"test_failures".into()));
    assert_eq!(project.read("lane.txt").lines().last(), Some("3"), "what was tried stays");
    project.git(&["log", "-1", "--format=%H", "--", "lane.txt"]);
    assert!(!project.has(".worktrees/P1/L"), "it was merged and removed");
    assert!(project.read("plan.toml").contains("test -e lane.txt"));
}

/// Lost: work outside of what was planned goes unnoticed, or fails although it is good.
#[test]
fn changes_outside_of_the_scope_call_for_a_replan() {
    let project = plan_of(
        "echo revise >> revised",
        "run = \"echo a > src.rs; echo b > other.rs\"\nscope = [\"src.rs\"]\n\n\
         [[phase]]\nid = \"P2\"\nrun = \"echo ran >> ran\"",
    );
    project.piton(&["run"]).exits(0).says("changed files outside of its scope: other.rs");
    assert_eq!((project.lines("revised").len(), project.lines("ran").len()), (1, 1));
    assert_eq!(replans(&project)[0]["trigger"], "scope_drift");
    assert_eq!(project.step("P1/main/work")["attempts"], 1, "its work stays");
}

/// Lost: what the last phase did beside its scope is complete before anybody has seen it.
#[test]
fn drift_of_the_last_phase_is_asked_about() {
    let drifts = "run = \"echo a > src.rs; echo b > other.rs\"\nscope = [\"src.rs\"]";
    let project = plan_of("", drifts);
    project.piton(&["run"]).exits(3).says("changed files outside of its scope: other.rs");
    assert_eq!(project.status_json("")["status"], "waiting");
    project.piton(&["resume"]).exits(3);
    let run = project.run_id();
    project.piton(&["approve", "P1/@replan/scope_drift"]).exits(0);
    project.piton(&["resume", &run]).exits(0);
    assert_eq!(project.step("P1/main/work")["attempts"], 1);
    assert_eq!(project.status_json("")["status"], "complete");
    // A replan may add what is missing; one that adds nothing is enough.
    let more = "printf '\\n[[phase]]\\nid = \"P2\"\\nrun = \"echo more >> ran\"\\n' >> $PITON_PLAN";
    for (revise, ran) in [("true", 0), (more, 1)] {
        let project = plan_of(revise, drifts);
        project.piton(&["run"]).exits(0).says("replan 1 started");
        let ran_since = if project.has("ran") { project.lines("ran").len() } else { 0 };
        assert_eq!(ran_since, ran, "{revise}");
    }
    let project = plan_of("", drifts);
    project.piton(&["run"]).exits(3);
    project.piton(&["reject", "P1/@replan/scope_drift", "-m", "no"]).exits(0);
    project.piton(&["resume"]).exits(1);
}

/// Lost: a step has no way to say what is wrong with the plan, or sets its own limits aside.
#[test]
fn a_step_may_ask_with_words_and_not_by_force() {
    let project = plan_of("sed -i 's/ask.sh/do.sh/' $PITON_PLAN", "run = \"sh ask.sh\"");
    project.write(
        "ask.sh",
        "\"$PROGRAM\" replan --reason 'by force' --force-replan 2> refused && exit 9\n\
         grep -q inside-a-step refused || exit 8\n\
         \"$PROGRAM\" replan --reason 'the schema is missing' || exit 7\nexit 1\n",
    );
    project.write("do.sh", "echo done >> ran\n");
    project.commit();
    project
        .piton(&["run"])
        .exits(0)
        .says("P1/main/work asks for a replan of phase P1: the schema is missing");
    assert_eq!(project.lines("ran"), ["done"]);
    assert_eq!(replans(&project)[0]["reason"], "the schema is missing");
}

/// Lost: a person can't have a phase planned again before it fails.
#[test]
fn a_person_may_ask_for_a_replan() {
    let project = plan_of(
        "sed -i 's/echo ran/echo other/' $PITON_PLAN",
        "gate = \"Design review\"\nrun = \"echo ran >> ran\"",
    );
    project.piton(&["run"]).exits(3);
    project
        .piton(&["replan", "P9", "--reason", "no such phase"])
        .exits(2)
        .says("the phases of this run are: P1");
    project
        .piton(&["replan", "--reason", "better words"])
        .exits(0)
        .says("phase P1 will be replanned");
    project.piton(&["resume"]).exits(3).says("replan 1 started: better words");
    project.piton(&["approve", "P1"]).exits(0);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran"), ["other"]);
    project.piton(&["replan", "P1", "--reason", "late"]).exits(2);
}

/// Lost: an agent that writes the plan is told nothing.
#[test]
fn an_agent_gets_the_reason_as_a_prompt() {
    let project = Project::with_plan(
        "[agents.scribe]\ncommand = \"sh scribe.sh\"\n\n\
         [replan]\nagent = \"scribe\"\n\n\
         [[phase]]\nid = \"P1\"\nrun = \"echo no schema; exit 86\"\n",
    );
    project.write("scribe.sh", "cat > given; sed -i 's/exit 86/true/' plan.toml\n");
    project.write(".gitignore", "given\n");
    project.commit();
    project.piton(&["run"]).exits(0);
    let given = project.read("given");
    for words in ["Phase P1 of the plan", "it asks for a replan", "no schema", "Attempt 1:"] {
        assert!(given.contains(words), "{words}: {given}");
    }
}

/// Lost: a plan is written again although its tests did not fail twice in a row.
#[test]
fn another_failure_between_two_test_failures_starts_the_count_over() {
    let project = plan_of(
        "echo revise >> revised",
        "run = \"echo ran >> ran; [ $(wc -l < ran) != 2 ]\"\ntest = \"[ $(wc -l < ran) = 4 ]\"\n\
         retries = 5\nbackoff = \"0s\"",
    );
    project.piton(&["run"]).exits(0);
    assert_eq!(project.lines("ran").len(), 4);
    assert!(replans(&project).is_empty(), "{:?}", replans(&project));
    assert!(!project.has("revised"));
}

/// Lost: the limit that a plan sets for itself is read and not obeyed.
#[test]
fn the_plan_says_how_often_a_phase_is_planned_again() {
    let project = project("sed -i \"s/two/two$PITON_REPLAN_NUMBER/\" \"$PITON_PLAN\"");
    let plan = project.read("plan.toml").replace("[replan]\n", "[replan]\nper_phase = 1\n");
    project.write("plan.toml", &plan);
    project.commit();
    project.piton(&["run"]).exits(3).says("the phase was already replanned once");
    assert_eq!(project.lines("revised").len(), 1);
    assert_eq!(results(&project), ["replanned"]);
}

//! The world compared with the record: each row of the table of differences, on the real program.
//!
//! Each test lets a run come to its gate, changes one thing, and looks at what a resume says, runs
//! again and records.

mod common;

use common::{Project, wait_until};
use piton_core::event::Event;

/// Makes an artifact from an input, then copies it, then waits for a person.
const PLAN: &str = r#"
[[phase]]
id = "make"
run = "echo make >> ran.txt; tr a-z A-Z < in.txt > out.txt"
inputs = ["in.txt"]
artifacts = ["out.txt"]

[[phase]]
id = "copy"
run = "echo copy >> ran.txt; cp out.txt copy.txt"
artifacts = ["copy.txt"]

[[phase]]
id = "ship"
gate = "Ship"
run = "echo ship >> ran.txt"
"#;

/// A run of that plan which waits at its gate.
fn waiting(plan: &str) -> Project {
    let project = Project::with_plan(plan);
    project.write("in.txt", "hello\n");
    project.write("spec.md", "what is wanted\n");
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(3);
    project.remove("ran.txt");
    project
}

/// What a resume would run again, from `--dry-run --json`: steps and reasons.
fn reruns(project: &Project) -> Vec<(String, String)> {
    let said = project.piton(&["resume", "--dry-run", "--json"]).exits(0);
    let last = said.stdout.lines().last().unwrap_or_default();
    let json: serde_json::Value =
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {said:?}"));
    let word = |v: &serde_json::Value| v.as_str().unwrap_or_default().to_owned();
    let all = json["resume"]["rerun"].as_array().cloned().unwrap_or_default();
    all.iter().map(|r| (word(&r["step"]), word(&r["reason"]))).collect()
}

/// The names of the differences that a resume finds.
fn differences(project: &Project) -> Vec<String> {
    let said = project.piton(&["resume", "--dry-run", "--json"]).exits(0);
    let first = said.stdout.lines().next().unwrap_or_default();
    let json: serde_json::Value =
        serde_json::from_str(first).unwrap_or_else(|e| panic!("{e}: {said:?}"));
    let all = json["resume"]["differences"].as_array().cloned().unwrap_or_default();
    all.iter().filter_map(|d| d["name"].as_str().map(str::to_owned)).collect()
}

/// Checks that exactly this step runs again for this reason, and that it is said and recorded.
#[track_caller]
fn runs_again(project: &Project, name: &str, step: &str, reason: &str) {
    assert_eq!(reruns(project), [(step.to_owned(), reason.to_owned())]);
    assert_eq!(differences(project), [name]);
    let said = format!("runs again: {step}: {reason}");
    project.piton(&["resume"]).exits(3).says(&said).says("1 run again");
    let wanted = step.split('/').next().unwrap_or_default();
    assert_eq!(project.lines("ran.txt"), [wanted]);
    let recorded = project.events("").into_iter().any(
        |e| matches!(e, Event::StepReset(r) if r.step.to_string() == step && r.reason == reason),
    );
    assert!(recorded, "why it ran again is not in the ledger");
    assert!(differences(project).is_empty());
}

/// If this fails, a resume does finished work again for no reason.
#[test]
fn nothing_runs_again_where_nothing_changed() {
    let project = waiting(PLAN);
    assert!(reruns(&project).is_empty() && differences(&project).is_empty());
    project.piton(&["resume"]).exits(3).says("2 finished before");
    assert!(project.lines("ran.txt").is_empty());
}

/// If this fails, a step whose work was deleted counts as done.
#[test]
fn a_missing_artifact_runs_its_step_again() {
    let project = waiting(PLAN);
    project.remove("copy.txt");
    runs_again(&project, "artifact-missing", "copy/main/work", "artifact copy.txt is missing");
    assert_eq!(project.read("copy.txt"), "HELLO\n");
}

/// If this fails, a broken artifact passes for what the step made.
#[test]
fn a_changed_artifact_runs_its_step_again() {
    let project = waiting(PLAN);
    project.write("copy.txt", "something else\n");
    let reason = "artifact copy.txt changed since it was recorded";
    runs_again(&project, "artifact-changed", "copy/main/work", reason);
    assert_eq!(project.read("copy.txt"), "HELLO\n");
}

/// If this fails, work is kept that was made from something else.
#[test]
fn a_changed_input_runs_its_step_again() {
    let project = waiting(PLAN);
    project.write("in.txt", "hello\nworld\n");
    runs_again(&project, "input-changed", "make/main/work", "input in.txt changed");
    assert_eq!(project.read("out.txt"), "HELLO\nWORLD\n");
}

/// If this fails, two steps that work on one file make each other run for ever.
#[test]
fn an_artifact_that_a_later_step_rewrote_is_as_recorded() {
    let plan = PLAN.replace(
        "cp out.txt copy.txt\"\nartifacts = [\"copy.txt\"]",
        "echo more >> out.txt\"\nartifacts = [\"out.txt\"]",
    );
    assert_ne!(plan, PLAN);
    let project = waiting(&plan);
    assert!(reruns(&project).is_empty());
    project.piton(&["resume"]).exits(3);
    assert!(project.lines("ran.txt").is_empty());
}

/// If this fails, a step that failed costs the finished ones whose files it touched, and a mended
/// file is overwritten.
#[test]
fn what_a_failed_attempt_left_half_done_costs_no_finished_work() {
    for declares in ["artifacts", "inputs"] {
        let plan = format!(
            "[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"A\"\nsteps = [\n\
             {{ id = \"make\", run = \"echo make >> ran.txt; echo made > doc\", artifacts = [\"doc\"] }},\n\
             {{ id = \"mend\", run = \"echo mend >> ran.txt; echo half >> doc; test -e ok\", \
             {declares} = [\"doc\"] }},\n]\n"
        );
        let project = Project::with_plan(&plan);
        project.piton(&["run", "plan.toml"]).exits(1);
        assert_eq!(reruns(&project), [], "{declares}");
        // A person's edit afterwards is one.
        let half = project.read("doc");
        project.write("doc", "edited\n");
        let edited = "artifact doc changed since it was recorded".to_owned();
        assert_eq!(reruns(&project), [("P/A/make".to_owned(), edited)], "{declares}");
        project.write("doc", &half);
        project.write("ok", "");
        project.piton(&["retry"]).exits(0);
        project.piton(&["resume"]).exits(0);
        assert_eq!(project.lines("ran.txt"), ["make", "mend", "mend"], "{declares}");
    }
}

/// If this fails, a fallen machine costs more than the step in flight, or a status says so.
#[test]
fn what_a_lost_attempt_left_half_done_costs_no_finished_work() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"A\"\nsteps = [\n\
         { id = \"make\", run = \"echo make >> ran.txt; echo made > doc\", artifacts = [\"doc\"] },\n\
         { id = \"mend\", run = \"echo half >> doc; echo mend >> ran.txt; test -e ok || sleep 600\", \
         artifacts = [\"doc\"] },\n]\n",
    );
    let driver = project.spawn(&["run", "plan.toml"]);
    wait_until("the step", || project.lines("ran.txt") == ["make", "mend"]);
    project.kill_all();
    drop(driver);
    assert_eq!(project.status_json("")["rerun"], serde_json::json!([]));
    project.write("ok", "");
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["make", "mend", "mend"]);
}

/// If this fails, a step that made nothing is recorded as a success.
#[test]
fn an_artifact_missing_after_success_is_a_failure() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P1\"\nrun = \"true\"\nartifacts = [\"made/*.txt\", \"one.txt\"]\n",
    );
    project.piton(&["run", "plan.toml"]).exits(1).says("artifacts made/*.txt, one.txt are missing");
    assert_eq!(project.step_status("P1/main/work"), "failed");
    project.write("made/a.txt", "");
    project.write("one.txt", "");
    project.piton(&["retry"]).exits(0);
    project.piton(&["resume"]).exits(0);
    let artifacts = project.step("P1/main/work")["artifacts"].clone();
    assert_eq!(artifacts[0]["path"], "made/a.txt", "{artifacts}");
    assert_eq!(artifacts[1]["path"], "one.txt", "{artifacts}");
}

/// If this fails, a typo in a later step can't be mended without redoing the earlier ones.
#[test]
fn a_plan_changed_where_nothing_is_finished_goes_on() {
    let project = waiting(PLAN);
    project.write("plan.toml", &PLAN.replace("echo ship", "echo shipped"));
    assert_eq!(differences(&project), ["plan-changed"]);
    project.piton(&["approve", "ship"]).exits(0);
    project.piton(&["resume"]).exits(0).says("ship/main/work").says("echo shipped");
    assert_eq!(project.lines("ran.txt"), ["shipped"]);
    let accepted = plan_accepted(&project);
    assert!(matches!(accepted.as_slice(), [by] if by.is_empty()), "{accepted:?}");
}

/// If this fails, a person goes on without knowing that a question or a limit is another one now.
#[test]
fn changes_outside_of_steps_are_shown_too() {
    let project = waiting(PLAN);
    let changed = PLAN.replace("gate = \"Ship\"", "gate = \"Ship it\"");
    project.write("plan.toml", &format!("budgets = {{ attempts = 3 }}\n{changed}"));
    let said = project.piton(&["resume"]).exits(3);
    said.says("plan: phase ship gate: `Ship` is now `Ship it`")
        .says("plan: budget attempts: 20 is now 3");
}

/// Who accepted changed plans, as recorded.
fn plan_accepted(project: &Project) -> Vec<String> {
    let by = |e: Event| match e {
        Event::PlanAccepted(e) => Some(e.by.clone()),
        _ => None,
    };
    project.events("").into_iter().filter_map(by).collect()
}

/// If this fails, a changed plan silently keeps or redoes finished work.
#[test]
fn a_plan_changed_where_work_is_finished_needs_a_word() {
    let project = waiting(PLAN);
    project.write("plan.toml", &PLAN.replace("cp out.txt", "cp -p out.txt"));
    assert_eq!(differences(&project), ["plan-changed-finished"]);
    for args in [["resume"].as_slice(), &["resume", "--yes"], &["resume", "--accept-spec"]] {
        project
            .piton(args)
            .exits(4)
            .says("copy/main/work")
            .says("cp -p out.txt")
            .says(&format!("`piton resume {} --accept-plan`", project.run_id()));
    }
    assert!(project.lines("ran.txt").is_empty() && plan_accepted(&project).is_empty());
    project.piton(&["resume", "--accept-plan"]).exits(3);
    assert_eq!(project.lines("ran.txt"), ["copy"], "only the changed step runs again");
    assert_eq!(plan_accepted(&project), ["tester"]);
    project.piton(&["resume"]).exits(3);
    assert_eq!(project.lines("ran.txt"), ["copy"]);
}

/// If this fails, a step that writes to the plan does away with the question that would stop it.
#[test]
fn a_gate_does_not_go_without_a_word() {
    let project = waiting(PLAN);
    project.write("plan.toml", &PLAN.replace("gate = \"Ship\"\n", ""));
    assert_eq!(differences(&project), ["gate-removed"]);
    for args in [["resume"].as_slice(), &["resume", "--yes"]] {
        project.piton(args).exits(4).says("gate \"Ship\" (ship)").says("--accept-plan`");
    }
    assert!(project.lines("ran.txt").is_empty() && plan_accepted(&project).is_empty());
    project.piton(&["resume", "--accept-plan"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["ship"]);
    assert_eq!(plan_accepted(&project), ["tester"]);
}

/// If this fails, steps can't be added to or taken from a plan under way.
#[test]
fn steps_may_come_and_go() {
    let project = waiting(PLAN);
    let copy = PLAN.find("[[phase]]\nid = \"copy\"").unwrap_or_default();
    let ship = PLAN.find("[[phase]]\nid = \"ship\"").unwrap_or_default();
    let other = "[[phase]]\nid = \"other\"\nrun = \"echo other >> ran.txt\"\n";
    project.write("plan.toml", &format!("{}{other}{}", &PLAN[..copy], &PLAN[ship..]));
    project.piton(&["approve", "ship"]).exits(0);
    project.piton(&["resume"]).exits(0).says("removed").says("added");
    assert_eq!(project.lines("ran.txt"), ["other", "ship"]);
}

/// If this fails, a broken plan file on resume is passed over, or ends in something else than help.
#[test]
fn a_plan_that_became_invalid_is_refused_on_resume() {
    let project = waiting(PLAN);
    project.write("plan.toml", &PLAN.replace("artifacts", "artefacts"));
    project.piton(&["resume"]).exits(2).says("plan.toml:").says("artifacts");
    assert!(project.lines("ran.txt").is_empty());
}

/// If this fails, work goes on against a spec that nobody looked at.
#[test]
fn a_changed_spec_stops_until_it_is_accepted() {
    let project = waiting(&format!("spec = \"spec.md\"\n{PLAN}"));
    project.write("spec.md", "something else is wanted\n");
    assert_eq!(differences(&project), ["spec-changed"]);
    for args in [["resume"].as_slice(), &["resume", "--yes"], &["resume", "--accept-plan"]] {
        project.piton(args).exits(4).says("spec.md").says("--accept-spec");
    }
    let accepted = |project: &Project| {
        let all = project.events("").into_iter();
        all.filter_map(|e| match e {
            Event::SpecAccepted(e) => Some(e),
            _ => None,
        })
        .collect::<Vec<_>>()
    };
    assert!(accepted(&project).is_empty());
    project.piton(&["resume", "--accept-spec"]).exits(3);
    let recorded = accepted(&project);
    assert_eq!(recorded.len(), 1);
    let hash = |text: &[u8]| Some(piton_core::hash::Sha::of(text));
    assert_eq!(recorded[0].from.clone().map(|f| f.sha256), hash(b"what is wanted\n"));
    assert_eq!(recorded[0].to.clone().map(|f| f.sha256), hash(b"something else is wanted\n"));
    assert_eq!(recorded[0].by, "tester");
    // Asked once: the accepted spec is the record now; and one that is gone is a change too.
    project.piton(&["resume"]).exits(3);
    project.remove("spec.md");
    project.piton(&["resume"]).exits(4).says("--accept-spec");
    assert!(project.lines("ran.txt").is_empty(), "finished work was redone");
}

/// If this fails, whoever types what is hinted is sent from one difference to the other for ever.
#[test]
fn a_hint_accepts_all_that_stops() {
    let project = waiting(&format!("spec = \"spec.md\"\n{PLAN}"));
    let plan = PLAN.replace("cp out.txt", "cp -p out.txt");
    project.write("plan.toml", &format!("spec = \"spec.md\"\n{plan}"));
    project.write("spec.md", "something else is wanted\n");
    let run = project.run_id();
    let both = format!("`piton resume {run} --accept-plan --accept-spec`");
    for args in [["resume"].as_slice(), &["resume", "--accept-plan"], &["resume", "--accept-spec"]]
    {
        project.piton(args).exits(4).says(&both);
    }
    project.piton(&["resume", &run, "--accept-plan", "--accept-spec"]).exits(3);
    let shown = project.piton(&["show", "--json"]).exits(0).json();
    let what = |at: usize| shown["accepted"][at]["what"].clone();
    assert_eq!((what(0), what(1)), ("plan".into(), "spec".into()));
}

/// If this fails, a run starts that nobody could measure against anything.
#[test]
fn a_spec_that_is_not_there_stops_the_start() {
    let project = Project::with_plan(&format!("spec = \"spec.md\"\n{PLAN}"));
    project.write("in.txt", "");
    project.piton(&["run", "plan.toml"]).exits(4).says("spec.md").says("hint: ");
    assert!(!project.has("ran.txt"));
    let runs = project.piton(&["runs", "--json"]).exits(0).json();
    assert_eq!(runs.as_array().map(Vec::len), Some(0), "{runs}");
}

/// If this fails, nobody learns that another commit lies under the run.
#[test]
fn a_moved_head_is_said_and_does_not_stop() {
    let project = waiting(PLAN);
    project.git(&["commit", "--quiet", "--allow-empty", "-m", "more"]);
    assert_eq!(differences(&project), ["head-moved"]);
    project.piton(&["resume"]).exits(3).says("warning: HEAD was");
    project.piton(&["resume"]).exits(3).silent_about("HEAD was");
}

/// If this fails, a run dies with the file of its plan.
#[test]
fn without_its_file_the_recorded_plan_is_used() {
    let project = waiting(PLAN);
    project.remove("plan.toml");
    assert_eq!(differences(&project), ["plan-missing"]);
    project.piton(&["approve", "ship"]).exits(0);
    project.piton(&["resume"]).exits(0).says("plan.toml is gone");
    assert_eq!(project.lines("ran.txt"), ["ship"]);
}

/// If this fails, a step runs with the word that stands for a secret instead of the secret.
#[test]
fn a_recorded_plan_without_its_secret_is_not_used() {
    let ship = "env = { API_TOKEN = \"s3cret-s3cret\" }\nrun = \"echo ship";
    let project = waiting(&PLAN.replace("run = \"echo ship", ship));
    project.remove("plan.toml");
    assert_eq!(differences(&project), ["plan-secret", "plan-missing"]);
    project.piton(&["approve", "ship"]).exits(0);
    project.piton(&["resume"]).exits(4).says("bring the plan's file back");
    assert!(project.lines("ran.txt").is_empty());
}

/// If this fails, a project that was moved can't go on, or works in a folder that is gone.
#[test]
fn a_moved_project_goes_on_where_it_lies() {
    let project = waiting(PLAN);
    let moved = project.outside().join("moved");
    std::fs::rename(project.root(), &moved).unwrap_or_else(|e| panic!("{e}"));
    project.piton_in(&moved, &["approve", "ship"]).exits(0);
    project.piton_in(&moved, &["resume"]).exits(0).says("is no longer this project; steps run in");
    let ran = std::fs::read_to_string(moved.join("ran.txt")).unwrap_or_default();
    assert_eq!(ran, "ship\n");
    std::fs::rename(&moved, project.root()).unwrap_or_else(|e| panic!("{e}"));
}

/// A step that waits for a file, and one after it.
const HELD: &str = r#"
[[phase]]
id = "P1"
run = "echo old >> ran.txt; while [ ! -e go ]; do sleep 0.02; done; echo end >> ran.txt"

[[phase]]
id = "P2"
run = "echo last >> ran.txt"
"#;

/// The plan at work, its driver killed.
fn in_flight() -> Project {
    let project = Project::with_plan(HELD);
    let mut driver = project.spawn(&["run", "plan.toml"]);
    wait_until("the step", || project.lines("ran.txt") == ["old"]);
    driver.kill();
    project
}

/// If this fails, the outcome of the old command counts for the new one.
#[test]
fn a_step_changed_while_it_runs_runs_again_as_it_is_now() {
    let project = in_flight();
    let new = HELD.replace(
        "echo old >> ran.txt; while [ ! -e go ]; do sleep 0.02; done",
        "echo new >> ran.txt",
    );
    project.write("plan.toml", &new);
    let driver = project.spawn(&["resume"]);
    wait_until("the driver", || driver.stderr().contains("is still running"));
    project.write("go", "");
    driver.wait().exits(0).says("its definition in the plan changed since it began");
    assert_eq!(project.lines("ran.txt"), ["old", "end", "new", "end", "last"]);
    project.piton(&["run", "plan.toml"]).exits(0).says("already complete");
}

/// If this fails, a step that was taken out of the plan goes on beside the run, or hangs it.
#[test]
fn a_step_taken_out_while_it_runs_is_ended() {
    let project = in_flight();
    let last = HELD.find("[[phase]]\nid = \"P2\"").unwrap_or_default();
    project.write("plan.toml", &HELD[last..]);
    assert_eq!(differences(&project), ["plan-changed", "step-removed"]);
    let gone = "P1/main/work (attempt 1) is still running, and is no longer in the plan";
    let said = project.piton(&["resume"]).exits(0).says("removed").says(gone);
    said.says("P1/main/work interrupted: it is no longer in the plan").says("1 interrupted");
    project.wait_quiet();
    project.write("go", "");
    assert_eq!(project.lines("ran.txt"), ["old", "last"]);
    project.piton(&["doctor"]).exits(0);
}

/// If this fails, a yes to one question counts for another.
#[test]
fn an_approval_does_not_outlive_its_question() {
    let project = waiting(PLAN);
    project.piton(&["approve", "ship"]).exits(0);
    project.write("plan.toml", &PLAN.replace("\"Ship\"", "\"Delete production\""));
    project.piton(&["resume"]).exits(3).says("Delete production");
    assert!(project.lines("ran.txt").is_empty());
    project.piton(&["approve", "ship"]).exits(0);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["ship"]);
}

/// If this fails, files that came to a glob or went from it are not noticed.
#[test]
fn globs_are_looked_at_anew() {
    let plan = PLAN
        .replace("inputs = [\"in.txt\"]", "inputs = [\"in*.txt\"]")
        .replace("artifacts = [\"copy.txt\"]", "artifacts = [\"cop*.txt\"]");
    let project = waiting(&plan);
    project.write("in2.txt", "");
    project.remove("copy.txt");
    let wanted = [
        ("make/main/work", "input in2.txt is new"),
        ("copy/main/work", "artifact copy.txt is missing"),
    ];
    assert_eq!(reruns(&project), wanted.map(|(s, r)| (s.to_owned(), r.to_owned())));
    project.piton(&["resume"]).exits(3);
    project.remove("in2.txt");
    assert_eq!(
        reruns(&project),
        [("make/main/work".to_owned(), "input in2.txt is missing".to_owned())]
    );
}

/// If this fails, a dry run promises what a run refuses.
#[test]
fn a_dry_run_says_that_the_spec_is_missing() {
    let project = Project::with_plan(&format!("spec = \"missing.md\"\n{PLAN}"));
    let said = project.piton(&["run", "plan.toml", "--dry-run"]).exits(0);
    said.says("warning: the spec missing.md does not exist").says("the run would be refused");
    project.piton(&["run", "plan.toml"]).exits(4).says("error[spec-missing]");
}

/// A step that copies what it reads, and one after it that waits for a person.
const COPIES: &str = r#"
[[phase]]
id = "P1"
inputs = ["in.txt"]
artifacts = ["out.txt"]
run = "while [ ! -e go ]; do sleep 0.02; done; cp in.txt out.txt; echo ran >> ran.txt"

[[phase]]
id = "P2"
gate = "G"
run = "true"
"#;

/// The plan with its first step ended while no driver lived.
fn ended_alone(plan: &str) -> Project {
    let project = Project::with_plan(plan);
    project.write("in.txt", "1");
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for(".git/piton/runs/r/keeper.journal");
    wait_until("the step", || project.status_json("r")["phases"][0]["status"] == "running");
    driver.kill();
    project.write("go", "");
    let journal = project.state_dir().join("runs/r/keeper.journal");
    wait_until("its end", || {
        std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("\"exited\""))
    });
    project
}

/// If this fails, what a person edits after a step ended passes for the step's own doing, and its stale
/// output for finished work.
#[test]
fn an_input_edited_after_a_step_ended_alone_is_named() {
    let project = ended_alone(COPIES);
    std::thread::sleep(std::time::Duration::from_millis(20));
    project.write("in.txt", "2");
    let planned = project.piton(&["resume", "r", "--dry-run"]).exits(0);
    planned.says("has finished in the meantime").silent_about("cp in.txt out.txt");
    project.piton(&["resume", "r"]).exits(3).says("input in.txt changed");
    assert_eq!((project.read("out.txt"), project.lines("ran.txt").len()), ("2".to_owned(), 2));

    let project = ended_alone(COPIES);
    std::thread::sleep(std::time::Duration::from_millis(20));
    project.write("out.txt", "mine");
    project.piton(&["resume", "r"]).exits(3).says("artifact out.txt was changed after the step");
    assert_eq!(project.lines("ran.txt").len(), 1);
}

/// If this fails, finished work is redone in another way without a word from anybody.
#[test]
fn a_step_that_ended_alone_and_changed_since_needs_a_persons_word() {
    let project = ended_alone(COPIES);
    project.write("plan.toml", &COPIES.replace("echo ran", "echo anew"));
    let said = project.piton(&["resume", "r"]).exits(4);
    said.says("finished steps changed in the plan: P1/main/work").says("--accept-plan");
    assert_eq!(project.lines("ran.txt"), ["ran"]);
    project.piton(&["resume", "r", "--accept-plan"]).exits(3);
    assert_eq!(project.lines("ran.txt"), ["ran", "anew"]);
}

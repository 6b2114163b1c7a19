//! Killed and resumed, with real processes: what is lost, what runs again, which run is meant.
//!
//! Steps write their key and attempt when they begin, so that the file tells how often each ran;
//! those that must be caught in the middle wait for a file. Random moments are left to the soak.

mod common;

use common::{Driver, Project, Signal, kill, wait_until};
use piton_core::event::{Event, Outcome};

/// Three steps; the second waits for `go` in its first attempt.
const HELD: &str = r#"
[[phase]]
id = "P1"

[[phase.lane]]
id = "A"
steps = [
  { id = "one", run = "echo one $PITON_ATTEMPT >> ran.txt" },
  { id = "two", run = '''
echo two $PITON_ATTEMPT >> ran.txt
[ $PITON_ATTEMPT -gt 1 ] || while [ ! -e go ]; do sleep 0.02; done
echo end $PITON_ATTEMPT >> ended.txt
''' },
  { id = "three", run = "echo three $PITON_ATTEMPT >> ran.txt" },
]
"#;

/// Starts the run and waits until its second step is at work.
fn held(plan: &str) -> (Project, Driver) {
    let project = Project::with_plan(plan);
    let driver = project.spawn(&["run", "plan.toml"]);
    wait_until("the second step", || project.lines("ran.txt").contains(&"two 1".to_owned()));
    (project, driver)
}

/// The reasons why attempts were interrupted, as recorded.
fn interrupted(project: &Project) -> Vec<String> {
    let why = |event: &Event| match event {
        Event::StepFinished(e) => match &e.outcome {
            Outcome::Interrupted { why } => Some(format!("{} {}: {why}", e.step, e.attempt)),
            _ => None,
        },
        _ => None,
    };
    project.events("").iter().filter_map(why).collect()
}

/// If this fails, a killed driver costs work: the first promise of the house.
#[test]
fn a_driver_killed_in_the_middle_of_a_step_costs_nothing() {
    let (project, mut driver) = held(HELD);
    driver.kill();
    assert_eq!(project.status(""), "interrupted");
    let resumed = project.spawn(&["resume"]);
    wait_until("the new driver", || resumed.stderr().contains("P1/A/two"));
    project.write("go", "");
    resumed.wait().exits(0).says("is still running");
    assert_eq!(project.lines("ran.txt"), ["one 1", "two 1", "three 1"]);
    assert_eq!(project.lines("ended.txt"), ["end 1"]);
    project.piton(&["doctor"]).exits(0);
    project.wait_quiet();
}

/// If this fails, what a step did while nobody watched is forgotten.
#[test]
fn a_step_that_ends_without_a_driver_is_not_run_again() {
    let (project, mut driver) = held(HELD);
    driver.kill();
    project.write("go", "");
    project.wait_for("ended.txt");
    project.piton(&["resume"]).exits(0).says("1 finished before");
    assert_eq!(project.lines("ran.txt"), ["one 1", "two 1", "three 1"]);
    assert!(interrupted(&project).is_empty());
}

/// If this fails, a fallen machine costs more than the step in flight, or hides that it ran twice.
#[test]
fn when_everything_is_killed_only_the_step_in_flight_runs_again() {
    let (project, driver) = held(HELD);
    project.kill_all();
    drop(driver);
    let looked = project.piton(&["resume", "--dry-run"]).exits(0);
    looked.says("was running when its keeper died").says("skipped P1/A/one: finished before");
    project.piton(&["resume"]).exits(0).says("1 interrupted");
    assert_eq!(project.lines("ran.txt"), ["one 1", "two 1", "two 2", "three 1"]);
    assert_eq!(project.lines("ended.txt"), ["end 2"]);
    let recorded = interrupted(&project);
    assert!(
        matches!(recorded.as_slice(), [one] if one.starts_with("P1/A/two 1: ")),
        "{recorded:?}"
    );
    project.piton(&["doctor"]).exits(0);
}

/// If this fails, a keeper that dies leaves two copies of a step at work, or a driver that hangs.
#[test]
fn a_keeper_killed_alone_is_replaced_and_its_step_runs_again() {
    let (project, driver) = held(HELD);
    let keepers = project.keepers();
    assert_eq!(keepers.len(), 1, "{keepers:?}");
    kill(keepers[0].pid, Signal::KILL);
    driver.wait().exits(0);
    assert_eq!(project.lines("ran.txt"), ["one 1", "two 1", "two 2", "three 1"]);
    assert_eq!(interrupted(&project).len(), 1);
    // The first attempt still waited for its file: it must be gone, not merely forgotten.
    project.write("go", "");
    project.wait_quiet();
    assert_eq!(project.lines("ended.txt"), ["end 2"]);
}

/// If this fails, progress is a line instead of a set: what finished early in another lane is lost.
#[test]
fn finished_steps_stay_finished_in_whatever_order_they_finished() {
    let plan = HELD.to_owned()
        + r#"
[[phase.lane]]
id = "B"
steps = [
  { id = "four", run = "echo four $PITON_ATTEMPT >> ran.txt" },
  { id = "five", run = "echo five $PITON_ATTEMPT >> ran.txt" },
]

[[phase]]
id = "P2"
needs = []
run = "echo six $PITON_ATTEMPT >> ran.txt"
"#;
    let (project, driver) = held(&plan);
    wait_until("the other lanes", || {
        project.step_status("P1/B/five") == "complete"
            && project.step_status("P2/main/work") == "complete"
    });
    project.kill_all();
    drop(driver);
    project.piton(&["resume"]).exits(0).says("4 finished before");
    let mut lines = project.lines("ran.txt");
    lines.sort();
    let wanted = ["five 1", "four 1", "one 1", "six 1", "three 1", "two 1", "two 2"];
    assert_eq!(lines, wanted);
}

/// If this fails, a driver killed again and again makes a step run again, or never ends.
#[test]
fn many_killed_drivers_are_as_good_as_one() {
    let (project, mut driver) = held(HELD);
    for _ in 0..3 {
        driver.kill();
        let epoch = project.status_json("")["epoch"].as_u64();
        driver = project.spawn(&["resume"]);
        wait_until("a later epoch", || project.status_json("")["epoch"].as_u64() > epoch);
    }
    project.write("go", "");
    driver.wait().exits(0);
    assert_eq!(project.lines("ran.txt"), ["one 1", "two 1", "three 1"]);
}

/// If this fails, a person does not learn where the run stands and what comes next.
#[test]
fn a_resume_says_where_the_run_stands() {
    let (project, driver) = held(HELD);
    project.kill_all();
    drop(driver);
    let said = project.piton(&["resume", "--dry-run"]).exits(0);
    said.says("steps finished").says("runs again: P1/A/two (attempt 1)").says("wave 1\n  P1/A/two");
    assert_eq!(project.lines("ran.txt"), ["one 1", "two 1"]);
}

/// Two phases; the second waits for a person, so that the run stays unfinished.
const OPEN: &str = r#"
[[phase]]
id = "P1"
run = "echo $PITON_RUN_ID >> ran.txt"

[[phase]]
id = "P2"
gate = "Go"
run = "echo two >> ran.txt"
"#;

/// If this fails, a script starts a plan twice, or a person is not told how to go on.
#[test]
fn an_unfinished_run_stops_a_second_one_and_names_both_ways_on() {
    let project = Project::with_plan(OPEN);
    project.piton(&["run", "plan.toml", "--run-id", "first"]).exits(3);
    project
        .piton(&["run", "plan.toml"])
        .exits(4)
        .says("first")
        .says("piton run plan.toml --resume")
        .says("piton run plan.toml --fresh");
    // A name of its own makes no difference: both would work in the same folder.
    project.piton(&["run", "plan.toml", "--run-id", "other"]).exits(4).says("first");
    assert_eq!(project.lines("ran.txt"), ["first"]);
    // `--yes` answers the question, but approves nothing.
    project.piton(&["run", "plan.toml", "--yes"]).exits(3);
    project.piton(&["run", "plan.toml", "--resume"]).exits(3);
    // Without a plan, what is unfinished here is meant.
    project.piton(&["run"]).exits(3).says("first");
    assert_eq!(project.lines("ran.txt"), ["first"]);
    project.piton(&["run", "--fresh"]).exits(2).says("hint: ");
}

/// If this fails, starting anew throws the old run away instead of setting it aside.
#[test]
fn starting_fresh_archives_the_unfinished_run() {
    let project = Project::with_plan(OPEN);
    project.piton(&["run", "plan.toml", "--run-id", "first"]).exits(3);
    project.piton(&["run", "plan.toml", "--fresh", "--run-id", "second"]).exits(3);
    assert_eq!(project.lines("ran.txt"), ["first", "second"]);
    assert_eq!(project.status("first"), "archived");
    assert_eq!(project.status("second"), "waiting");
    project.piton(&["runs"]).exits(0).says("first").says("archived");
    project.piton(&["approve", "first", "P2"]).exits(2).says("piton resume first");
    assert_eq!(project.status("first"), "archived");
    // Nobody means it without its name; with that it comes back where it stood.
    project.piton(&["resume"]).exits(3).says("second");
    project.piton(&["resume", "first"]).exits(3).says("first was archived and is now continued");
    assert_eq!(project.status("first"), "waiting");
    assert_eq!(project.lines("ran.txt"), ["first", "second"]);
}

/// If this fails, steps of a run that was set aside go on beside the new one.
#[test]
fn starting_fresh_ends_what_still_runs_of_the_old_run() {
    let (project, mut driver) = held(HELD);
    driver.kill();
    let old = project.run_id();
    project.write("plan.toml", OPEN);
    let said = project.piton(&["run", "plan.toml", "--fresh", "--run-id", "new"]).exits(3);
    said.says(&format!("archived {old}, ended P1/")).says(&format!("piton resume {old}"));
    assert_eq!(project.status(&old), "archived");
    project.write("go", "");
    project.wait_quiet();
    assert!(!project.has("ended.txt"), "the old step went on");
}

/// If this fails, a finished plan is done again by accident, or can't be done again on purpose.
#[test]
fn a_complete_run_says_so_and_fresh_runs_anew() {
    let project = Project::with_plan("[[phase]]\nid = \"P1\"\nrun = \"echo ran >> ran.txt\"\n");
    project.piton(&["run", "plan.toml"]).exits(0);
    let first = project.run_id();
    for args in [["run", "plan.toml"].as_slice(), &["resume", &first], &["resume"], &["run"]] {
        project.piton(args).exits(0).says("already complete").says("--fresh");
    }
    assert_eq!(project.lines("ran.txt").len(), 1);
    project.piton(&["run", "plan.toml", "--fresh"]).exits(0);
    assert_eq!(project.lines("ran.txt").len(), 2);
    assert_eq!(project.status(&first), "complete", "a complete run needs no archive");
}

/// If this fails, a run whose work is gone is called complete, and nothing brings it back.
#[test]
fn a_complete_run_is_not_taken_for_complete_when_its_evidence_is_gone() {
    let plan = "[[phase]]\nid = \"P1\"\nrun = \"echo made > art\"\nartifacts = [\"art\"]\n";
    let project = Project::with_plan(plan);
    project.piton(&["run", "plan.toml"]).exits(0);
    for args in [["resume"].as_slice(), &["run"], &["run", "plan.toml"]] {
        project.remove("art");
        project.piton(args).exits(0).says("artifact art is missing");
        assert!(project.has("art"), "it was not made again by {args:?}");
    }
}

/// If this fails, a look for something to continue with leaves a ledger behind.
#[test]
fn without_a_run_there_is_nothing_to_resume_and_nothing_is_made() {
    let project = Project::new();
    let plan = "[[phase]]\nid = \"P1\"\nrun = \"echo ran >> ran.txt\"\n";
    project.write("job.toml", plan);
    for args in [["resume"].as_slice(), &["run"], &["resume", "--dry-run"]] {
        project.piton(args).exits(2).says("no runs here yet").says("piton run PLAN");
    }
    assert!(!project.state_dir().exists());
    // A plan of the usual name is meant where nothing is unfinished.
    project.write("plan.toml", plan);
    project.piton(&["run"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["ran"]);
}

/// If this fails, two runs get one name, or a bad name becomes a path.
#[test]
fn run_ids_are_unique_and_may_be_chosen() {
    let project = Project::new();
    let plans: Vec<String> = (0..8).map(|n| format!("{n}/job.toml")).collect();
    for plan in &plans {
        project.write(plan, "[[phase]]\nid = \"P1\"\nrun = \"true\"\n");
    }
    // Plans of one name, started at once: within one second their ids collide.
    let listed = || {
        let runs = project.piton(&["runs", "--all", "--json"]).exits(0).json();
        let all = runs.as_array().cloned().unwrap_or_default();
        let id = |r: &serde_json::Value| r["run_id"].as_str().unwrap_or_default().to_owned();
        all.iter().map(id).collect::<Vec<_>>()
    };
    let mut rounds = 0;
    wait_until("two runs within a second", || {
        rounds += 1;
        let start = |plan: &String| project.spawn(&["run", plan, "--fresh"]);
        let drivers: Vec<Driver> = plans.iter().map(start).collect();
        for driver in drivers {
            driver.wait().exits(0);
        }
        listed().iter().any(|id| id.ends_with("-2"))
    });
    let ids = listed();
    let unique: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), unique.len()), (8 * rounds, 8 * rounds), "{ids:?}");
    assert!(ids.iter().all(|id| id.starts_with("job-")), "{ids:?}");
}

/// If this fails, a chosen name is taken twice, becomes a path, or a short one means any run.
#[test]
fn a_run_may_be_named_and_found_by_the_start_of_its_name() {
    let project = Project::with_plan("[[phase]]\nid = \"P1\"\nrun = \"true\"\n");
    let run = |id: &str| project.piton(&["run", "plan.toml", "--fresh", "--run-id", id]);
    run("mine").exits(0);
    run("mine").exits(2).says("mine");
    run("mine-10").exits(0);
    run("mine-11").exits(0);
    for bad in ["../up", "a b", "", "x/y", "."] {
        run(bad).exits(2);
    }
    assert_eq!(project.status_json("mine")["run_id"], "mine", "a whole name is no beginning");
    assert_eq!(project.status_json("mine-10")["run_id"], "mine-10");
    project.piton(&["status", "mine-1"]).exits(2).says("mine-10").says("mine-11");
    project.piton(&["status", "nobody"]).exits(2).says("piton runs");
    project.piton(&["status", "mime-10"]).exits(2).says("did you mean `mine-10`?");
}

/// If this fails, a driver killed between two attempts forgets the failure or waits for ever.
#[test]
fn a_driver_killed_while_a_retry_waits_goes_on_with_it() {
    let project = Project::with_plan(
        r#"
[[phase]]
id = "P1"
retries = 1
backoff = "1s"
run = "echo $PITON_ATTEMPT >> ran.txt; cp $PITON_FAILURE_CONTEXT context.json; test $PITON_ATTEMPT = 2"
"#,
    );
    let mut driver = project.spawn(&["run", "plan.toml"]);
    wait_until("the wait", || driver.stderr().contains("P1/main/work failed"));
    driver.kill();
    assert_eq!(project.step_status("P1/main/work"), "retrying");
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["1", "2"]);
    assert!(project.read("context.json").contains("exit code 1"));
}

/// If this fails, a run that only waits for a retry looks as if nothing would happen any more.
#[test]
fn a_retry_that_is_waited_for_is_what_comes_next() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\nrun = \"false\"\nretries = 2\nbackoff = \"10m\"\n",
    );
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    wait_until("the retry", || driver.stderr().contains("; retry at "));
    driver.kill();
    let said = project.piton(&["resume", "r", "--dry-run"]).exits(0);
    said.says("  waiting: P/main/work until ");
    let json = project.piton(&["resume", "r", "--dry-run", "--json"]).exits(0).json();
    let waits = &json["resume"]["waiting"][0];
    assert_eq!(waits["step"], "P/main/work", "{json}");
    assert!(waits["until"].as_str().is_some_and(|until| until.contains('T')));
    let resumed = project.spawn(&["resume", "r"]);
    wait_until("the report", || resumed.stderr().contains("waiting: P/main/work until "));
    resumed.signal(Signal::INT);
    resumed.wait().exits(130);
}

/// If this fails, a keeper that fell is told as if another driver had been there.
#[test]
fn what_fell_with_a_keeper_is_not_said_to_be_of_a_driver() {
    let (project, driver) = held(HELD);
    let keeper = project.keepers().first().map(|keeper| keeper.pid);
    kill(keeper.expect("a keeper holds the step"), Signal::KILL);
    project.write("go", "");
    let said = driver.wait().exits(0);
    said.says("P1/A/two: attempt 1 (started by the previous keeper) was lost")
        .silent_about("previous driver");
}

//! Agents that do not stop, stop by themselves, or cannot begin.

use std::fs;

use piton_core::Event;
use piton_core::event::{Next, Outcome};

use super::common::Project;
use super::{WORKS, of_agent, project, resume, tokens};

/// Lost: a budget holds only for programs whose hooks are on.
#[test]
fn a_budget_holds_for_a_program_that_passes_over_its_hook() {
    let deaf = "request 1 20000 make; until_stopped; answered 1; request 2 20000 make; answered 2\n\
                request 3 20000 make; sleep 600\n";
    let project = project("", "[budgets]\ntokens = 10000", &[deaf, WORKS]);
    let stopped = project.piton(&["run", "plan.toml"]).exits(6).says("went on, so it was ended");
    stopped.says("budget tokens is used up (60030 of 10000)");
    let plan = project.read("plan.toml").replace("= 10000", "= 1000000");
    project.write("plan.toml", &plan);
    resume(&project).exits(0).says("continues session");
    assert_eq!(tokens(&project), 60_030 + 110);
    project.wait_quiet();
}

/// Lost: a command that reports what it uses spends what it may not.
#[test]
fn a_command_is_ended_at_its_budget() {
    let project = Project::new();
    let report = r#"piton: {"tokens":{"input":5000}}"#;
    project.write("agent.sh", &format!("echo '{report}'\nsleep 600\n"));
    project.write(
        "plan.toml",
        "[budgets]\ntokens = 1000\n[agents.own]\ncommand = \"sh agent.sh\"\n[[phase]]\nid = \"P\"\n\
         agent = \"own\"\nprompt = \"Do it.\"\n",
    );
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(6).says("(5000 of 1000)");
    project.wait_quiet();
}

/// Lost: a hook of a person that stops the agent starts it again and again.
#[test]
fn a_stop_that_nobody_asked_for_is_a_failure() {
    let stops = "request 1 100 make; answered 1; ends false hook_stopped 'not on a Sunday'\n";
    let project = project("", "", &[stops]);
    let failed = project.piton(&["run", "plan.toml"]).exits(1);
    failed.says("a hook of its own stopped it: not on a Sunday");
    assert_eq!(of_agent(&project, "count").trim(), "1");
}

/// Lost: a program that ends at once is started ten times within a second, and the step is lost.
#[test]
fn a_program_that_ends_without_an_answer_is_given_time() {
    let project = project("", "", &[":\n", WORKS]);
    project.piton(&["run", "plan.toml"]).exits(0).says("before its model answered");
    let waits = |event: &Event| {
        let Event::StepFinished(finished) = event else { return false };
        matches!(&finished.outcome, Outcome::Failed { next: Next::Wait { .. }, .. })
    };
    assert!(project.events(&project.run_id()).iter().any(waits));
    project.wait_quiet();
}

/// Lost: a parked night fails for good because its program is not found where it goes on.
#[test]
fn a_resume_without_the_program_spends_nothing() {
    let sleeps = "request 1 100 make; : > begun; sleep 600\n";
    let project = project("", "", &[sleeps, WORKS]);
    let driver = project.spawn(&["run", "plan.toml"]);
    project.wait_for("begun");
    project.kill_all();
    drop(driver);
    let (program, away) = (project.outside().join("agent/claude"), project.outside().join("away"));
    fs::rename(&program, &away).unwrap();
    resume(&project).exits(4).says("the program of agent claude is not found");
    fs::rename(&away, &program).unwrap();
    resume(&project).exits(0);
    assert_eq!(of_agent(&project, "count").trim(), "2");
    project.wait_quiet();
}

/// Lost: a night begins with an agent that may change nothing.
#[test]
fn an_agent_that_cannot_work_alone_does_not_start() {
    let project = project("", "permissions = \"own\"", &[WORKS]);
    project.piton(&["run", "plan.toml"]).exits(4).says("cannot work without a person");
    assert_eq!(of_agent(&project, "count"), "");
}

/// Lost: tokens without a price cost nothing, and no budget of money stops them.
#[test]
fn tokens_that_a_step_reports_without_a_price_count() {
    let project = Project::new();
    project.write("report.json", r#"{"tokens": 5000000}"#);
    let step = |id: &str| {
        format!("[[phase]]\nid = \"{id}\"\nrun = \"cat report.json > $PITON_OUTPUT; : > {id}\"\n")
    };
    project.write("plan.toml", &format!("[budgets]\nmoney = 1.0\n{}{}", step("P"), step("Q")));
    project.commit();
    let stopped = project.piton(&["run", "plan.toml"]).exits(6);
    stopped.says("it reported tokens and no cost").says("$25.00");
    assert!(!project.has("Q"));
}

//! The look before the first step: all problems at once, from `check`, `run` and `--dry-run`.

use super::common::Project;

/// An agent in place, then lanes in worktrees hours later.
const PLAN: &str = r#"[agents.w]
command = ["no-such-agent"]
[agents.ok]
command = ["sh", "-c", "echo ran >> ../ran; echo x > made.txt"]

[[phase]]
id = "first"
agent = "ok"
prompt = "write"

[[phase]]
id = "second"
[[phase.lane]]
id = "a"
agent = "w"
prompt = "a"
[[phase.lane]]
id = "b"
agent = "ok"
prompt = "b"
"#;

fn dirty() -> Project {
    let project = Project::with_plan(PLAN);
    project.write("README", "one\n");
    project.commit();
    project.write("README", "two\n");
    project
}

/// Lost: a night would end after hours with what could be known at once, one problem after the other.
#[test]
fn all_problems_are_named_before_the_first_step() {
    let project = dirty();
    let said = project.piton(&["run", "plan.toml"]).exits(4);
    let said = said.says("2 problems").says("no-such-agent").says("README").says("--seed-dirty");
    assert!(!project.outside().join("ran").exists(), "nothing ran: {}", said.stderr);
    project.piton(&["runs", "--json"]).exits(0).says("[]");
    let said = project.piton(&["run", "plan.toml", "--dry-run"]).exits(0);
    said.says("no-such-agent").says("would be refused");
    let found = project.piton(&["check", "plan.toml", "--json"]).exits(4).json();
    let problems = found["problems"].as_array().cloned().unwrap_or_default();
    let codes: Vec<_> = problems.iter().map(|problem| problem["code"].clone()).collect();
    assert_eq!(codes, ["agent-missing", "dirty"], "{found:#}");
    assert!(problems.iter().all(|p| !p["remedies"].as_array().unwrap().is_empty()), "{found:#}");
    assert_eq!(found["ready"], false);
    let said = project.piton(&["check", "plan.toml"]).exits(4);
    assert!(said.stdout.contains("error[agent-missing]") && said.stdout.contains("error[dirty]"));
}

/// Lost: who fixed all that was named would not be told that it is enough.
#[test]
fn a_plan_that_can_run_is_said_to() {
    let project = dirty();
    project.commit();
    project.write("plan.toml", &PLAN.replace("no-such-agent", "true"));
    let said = project.piton(&["check", "plan.toml"]).exits(0);
    assert!(said.stdout.contains("plan.toml can run"), "{}", said.stdout);
    let found = project.piton(&["check", "plan.toml", "--json"]).exits(0).json();
    assert_eq!(found["ready"], true);
}

/// Lost: a plan that is not committed yet, as a new one never is, would stop its own lanes.
#[test]
fn the_plan_file_is_no_dirt() {
    let project = Project::new();
    project.write("README", "one\n");
    project.commit();
    project.write("plan.toml", &PLAN.replace("no-such-agent", "true"));
    project.piton(&["run", "plan.toml"]).exits(0);
    assert!(project.has("plan.toml"));
}

/// Lost: a run would be refused whose agent has another that takes its place.
#[test]
fn a_missing_agent_with_a_fallback_is_no_problem() {
    let project = Project::new();
    project.write("README", "one\n");
    let fallback = "command = [\"no-such-agent\"]\non_limit = \"fallback\"\nfallback = [\"ok\"]";
    project.write("plan.toml", &PLAN.replace("command = [\"no-such-agent\"]", fallback));
    project.commit();
    project.piton(&["check", "plan.toml"]).exits(0);
}

/// Lost: whoever runs some file would be told what is wrong with it, and not what a plan is.
#[test]
fn a_file_that_is_no_plan_is_answered_with_what_plans_are() {
    let project = Project::new();
    project.write("notes.md", "# Notes\n\nBuy milk.\n");
    for command in ["run", "check"] {
        let said = project.piton(&[command, "notes.md"]).exits(2);
        said.says("plan.toml").says("phase document");
    }
}

/// Lost: in a folder without git, two agents would write over each other's files.
#[test]
fn without_git_two_agents_work_side_by_side_only_where_the_plan_says_so() {
    let plan = r#"[agents.w]
command = ["sh", "-c", "echo x > $PITON_LANE.txt"]

[defaults]
agent = "w"

[[phase]]
id = "P"
[[phase.lane]]
id = "a"
prompt = "a"
[[phase.lane]]
id = "b"
prompt = "b"
"#;
    let project = Project::without_git("plain");
    project.write("plan.toml", plan);
    for command in ["run", "check"] {
        let said = project.piton(&[command, "plan.toml"]).exits(2);
        said.says("without git").says("git init").says("isolation = \"in-place\"");
    }
    assert!(!project.has("a.txt") && !project.has("b.txt"), "nothing ran");
    let agreed = plan.replace("id = \"P\"\n", "id = \"P\"\nisolation = \"in-place\"\n");
    project.write("plan.toml", &agreed);
    project.piton(&["run", "plan.toml"]).exits(0);
    assert!(project.has("a.txt") && project.has("b.txt"));
}

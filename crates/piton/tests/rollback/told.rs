//! What is said before and after something is taken back: plans as data, refusals, next steps.

use serde_json::json;

use crate::common::Project;

const LANE: &str = r#"
[[phase]]
id = "P"
lane = [{ id = "A", isolation = "worktree", run = "echo a > a.txt; rm old.txt" }]
"#;

const IN_PLACE: &str =
    "[[phase]]\nid = \"P\"\nrun = \"echo made > made.txt; rm old.txt; exit 1\"\n";

fn project(plan: &str) -> Project {
    let project = Project::with_plan(plan);
    project.write("old.txt", "old\n");
    project.commit();
    project
}

/// If this fails, a program cannot know what would change.
#[test]
fn plans_are_data() {
    let project = project(IN_PLACE);
    project.piton(&["run", "plan.toml"]).exits(1);
    project.write("mine.txt", "mine");
    let plan = project.piton(&["rollback", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(plan["plan"], "rollback");
    assert_eq!(plan["to"], "before_lane_start");
    let workspace = &plan["workspaces"][0];
    assert_eq!(workspace["restored"], json!(["old.txt"]));
    assert_eq!(workspace["deleted"], json!(["made.txt"]));
    assert_eq!(workspace["kept"][0]["path"], "mine.txt");
    assert_eq!(plan["runs_again"], json!(["P/main"]));
    let args = ["restore", "before_lane_start", "--dry-run", "--json"];
    let plan = project.piton(&args).exits(0).json();
    assert_eq!(plan["workspaces"][0]["restored"], json!(["old.txt"]));
    assert_eq!(plan["workspaces"][0]["deleted"], json!([]));
    assert!(!project.has("old.txt"), "nothing was done");
    let done = project.piton(&["restore", "before_lane_start", "old.txt", "--yes", "--json"]);
    assert!(done.exits(0).stdout.contains("\"restored\""));
    let plan = project.piton(&["undo", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(
        (&plan["plan"], &plan["workspaces"][0]["deleted"]),
        (&json!("undo"), &json!(["old.txt"]))
    );
}

/// If this fails, nobody knows where base goes before it goes there.
#[test]
fn what_happens_to_base_is_told() {
    let project = project(LANE);
    project.piton(&["run", "plan.toml"]).exits(0);
    let head = || project.git(&["rev-parse", "main"]).trim().to_owned();
    let at = head();
    let plan = project.piton(&["rollback", "--dry-run", "--json"]).exits(0).json();
    let base = &plan["base"][0];
    assert_eq!((&base["how"], &base["from"]), (&json!("commit"), &json!(at)));
    project.piton(&["rollback", "--yes"]).exits(0).says("a commit on main takes back");
    let reverted = head();
    let said = project.piton(&["undo", "--dry-run"]).exits(0);
    said.says(&format!("main moves from {} to {}", &reverted[..10], &at[..10]));
    let plan = project.piton(&["undo", "--dry-run", "--json"]).exits(0).json();
    let base = &plan["base"][0];
    assert_eq!((&base["how"], &base["from"]), (&json!("move"), &json!(reverted)));
    assert_eq!(base["to"], json!(at));
    project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(head(), at, "as was told");
}

/// If this fails, a refusal reads like a success, or comes only after a question.
#[test]
fn a_refusal_is_foreseen_and_said_once() {
    let project = project(LANE);
    project.piton(&["run", "plan.toml"]).exits(0);
    project.write("a.txt", "dirty\n");
    for how in ["--dry-run", "--yes"] {
        let said = project.piton(&["rollback", how]).exits(1);
        let said = said.says("nothing was changed").says("a.txt").says("run the command again");
        said.silent_about("was rolled back").silent_about("piton undo").silent_about("then resume");
    }
    let plan = project.piton(&["rollback", "--dry-run", "--json"]).exits(1).json();
    assert!(plan["refused"].as_str().unwrap().contains("a.txt"), "{plan}");
    assert_eq!(project.status(""), "complete");
}

/// If this fails, a restore blames others for files that a step made, or finds nothing wrong with a
/// path that is nowhere.
#[test]
fn a_restore_says_what_it_leaves_and_what_it_cannot_find() {
    let project = project(IN_PLACE);
    project.piton(&["run", "plan.toml"]).exits(1);
    let said = project.piton(&["restore", "P/main@before_lane_start", "--dry-run"]).exits(0);
    let said = said.says("stays   made.txt (the checkpoint does not have it; --exact removes it)");
    said.says("the project: 1 file will change");
    let args = ["restore", "P/main@before_lane_start", "nofile", "--yes"];
    project.piton(&args).exits(2).says("`nofile` is neither in");
    let out = project.outside().join("copied");
    let to = out.to_str().unwrap();
    let args = ["restore", "P/main@before_lane_start", "nofile", "--to", to];
    project.piton(&args).exits(2).says("`nofile` is neither in");
}

/// If this fails, a file that is not there is said to stay.
#[test]
fn what_no_snapshot_holds_and_is_gone_is_not_said_to_stay() {
    let project = project("[[phase]]\nid = \"P\"\nrun = \"rm large.txt old.txt; exit 1\"\n");
    project.write("piton.toml", "[snapshots]\nfile_max = \"500B\"\n");
    project.write("large.txt", &"large\n".repeat(100));
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(1);
    project.piton(&["rollback", "--dry-run"]).exits(0).says("lacks   large.txt");
    let plan = project.piton(&["rollback", "--dry-run", "--json"]).exits(0).json();
    let workspace = &plan["workspaces"][0];
    assert_eq!(
        (&workspace["lacking"][0]["path"], &workspace["kept"]),
        (&json!("large.txt"), &json!([]))
    );
}

/// If this fails, a person is sent to a command that fails at once, or cannot tell two acts apart.
#[test]
fn an_undo_says_what_goes_on_and_which_lanes_it_was_about() {
    let lane =
        |id: &str| format!("{{ id = \"{id}\", isolation = \"worktree\", run = \"exit 1\" }}");
    let lanes = format!("[[phase]]\nid = \"P\"\nlane = [{}, {}]\n", lane("A"), lane("B"));
    let project = project(&lanes);
    project.piton(&["run", "plan.toml"]).exits(1);
    let run = project.run_id();
    project.piton(&["skip", "P/B/work", "--yes"]).exits(0);
    project.piton(&["undo", "--yes"]).exits(0).says(&format!("then piton retry {run}"));
    project.piton(&["rollback", "--lane", "A", "--yes"]).exits(0).says("lane/P/A stays at");
    project.piton(&["rollback", "--lane", "B", "--yes"]).exits(0);
    let list = project.piton(&["undo", "--list"]).exits(0);
    let list = list.says("before_lane_start, of P/A").says("before_lane_start, of P/B");
    drop(list);
    project
        .piton(&["undo", "--yes"])
        .exits(0)
        .says("undone: rollback to before_lane_start, of P/B");
    project.piton(&["show", "P/A/work#9"]).exits(2).says("there is no checkpoint `P/A/work#9`");
}

/// If this fails, views that somebody committed are called a stranger's files.
#[test]
fn views_that_somebody_committed_are_not_named_as_what_stays() {
    let project = Project::with_plan(
        "protocol = \"lanes\"\n[[phase]]\nid = \"P\"\nrun = \"echo one > one.txt\"\n",
    );
    project.commit();
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    project.git(&["add", "--force", ".claude"]);
    project.git(&["commit", "--quiet", "-m", "views"]);
    project.write("mine.txt", "mine");
    let said = project.piton(&["rollback", "--yes"]).exits(0);
    said.says("stays   mine.txt").silent_about("stays   .claude");
    assert!(!project.has("one.txt") && project.has(".claude/run-logs/r.jsonl"));
}

//! Names of checkpoints, as documented, in every command that takes one; and what is said of a name
//! that means nothing, or several things.

use std::fs;
use std::path::PathBuf;

use crate::common::Project;

/// Two lanes that stay on their branches, and commit by themselves.
const KEPT: &str = r#"
[[phase]]
id = "P1"
lane = [
  { id = "keep", isolation = "worktree", merge = "none", retries = 1, run = "echo $PITON_ATTEMPT >> x.txt; git add -A; git commit -qm attempt-$PITON_ATTEMPT; test $PITON_ATTEMPT = 2" },
  { id = "other", isolation = "worktree", merge = "none", run = "echo other > y.txt" },
]
"#;

/// A lane that is merged, so that its worktree is gone.
const MERGED: &str = r#"
[[phase]]
id = "P1"
lane = [{ id = "A", isolation = "worktree", run = "echo a > a.txt", test = "true" }]
"#;

fn ran(plan: &str) -> Project {
    let project = Project::with_plan(plan);
    project.commit();
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    project
}

fn workspace(project: &Project, lane: &str) -> PathBuf {
    project.root().join(".worktrees/P1").join(lane)
}

fn log(project: &Project, branch: &str) -> Vec<String> {
    let text = project.git(&["log", "--format=%s", branch, "--"]);
    text.lines().map(str::to_owned).collect()
}

/// If this fails, a name that the manual gives is not known to a command.
#[test]
fn stages_of_lanes_in_worktrees_are_known_everywhere() {
    let project = ran(KEPT);
    for stage in ["before_lane_start", "after_lane_start"] {
        let name = format!("P1/keep@{stage}");
        let said = project.piton(&["show", &name]).exits(0);
        said.says(&format!("checkpoint {name}")).says(&format!("snapshot   {name} of P1/keep"));
        project.piton(&["show", stage, "--lane", "keep"]).exits(0).says(&name);
        project.piton(&["diff", &name]).exits(0).says("+2");
        let said = project.piton(&["diff", stage, "--lane", "keep", "--stat"]).exits(0);
        said.says("x.txt").silent_about("y.txt");
        let out = project.outside().join(stage);
        project.piton(&["restore", &name, "--to", out.to_str().unwrap()]).exits(0);
        assert!(out.join("plan.toml").exists() && !out.join("x.txt").exists());
        let said = project.piton(&["rollback", "--to", &name, "--dry-run"]).exits(0);
        said.says("P1/keep").silent_about("P1/other");
    }
    project.piton(&["restore", "keep@before_lane_start", "--dry-run"]).exits(0).says("x.txt");
    project.piton(&["show", "P1/keep/work#1"]).exits(0).says("checkpoint P1/keep/work#1");
    project.piton(&["show", "r/P1/keep/work#1"]).exits(0).says("checkpoint P1/keep/work#1");
}

/// If this fails, two lanes cannot be compared, or another one than was named is.
#[test]
fn checkpoints_of_two_lanes_are_compared() {
    let project = ran(KEPT);
    let said = project.piton(&["diff", "P1/keep/work#1", "P1/other/work#1", "--stat"]).exits(0);
    said.says("x.txt").says("y.txt");
    let said = project.piton(&["diff", "P1/other@after_lane_start", "P1/keep/work#2"]).exits(0);
    said.says("+2").silent_about("other");
}

/// If this fails, a name that could mean several silently means one of them.
#[test]
fn what_a_name_could_mean_and_what_there_is_are_told() {
    let project = ran(KEPT);
    for command in ["diff", "restore"] {
        let said = project.piton(&[command, "after_lane_start"]).exits(2);
        said.says("P1/keep@after_lane_start").says("P1/other@after_lane_start").says("--lane");
    }
    let said = project.piton(&["diff", "P1/other@retry_attempt"]).exits(2);
    said.says("no checkpoint `retry_attempt` of P1/other").says("P1/other@after_lane_start");
    project.piton(&["diff", "P1/none@pre_pr"]).exits(2).says("no lane `P1/none`").says("P1/other");
    let said = project.piton(&["rollback", "--to", "P1/other/work#9", "--yes"]).exits(2);
    said.says("no checkpoint `P1/other/work#9`").says("P1/other/work#1");
    let said = project.piton(&["rollback", "--lane", "keep", "--to", "P1/other@after_lane_start"]);
    said.exits(2).says("is not a checkpoint of lane keep").says("leave out `--lane`");
    let said = project.piton(&["show", "retry_attempt", "--lane", "other"]).exits(2);
    said.says("no checkpoint `retry_attempt` of other").says("P1/other@after_lane_start");
}

/// If this fails, what a merged lane did can only be found with git.
#[test]
fn checkpoints_of_a_merged_lane_are_known_without_its_worktree() {
    let project = ran(MERGED);
    assert!(!workspace(&project, "A").exists());
    let said = project.piton(&["diff", "P1/A@before_lane_start", "--stat"]).exits(0);
    said.says("a.txt").says("`now` means the project");
    project.piton(&["diff", "P1/A@pre_pr", "--stat"]).exits(0);
    project.piton(&["show", "P1/A@pre_pr"]).exits(0);
    project.piton(&["restore", "P1/A@pre_pr", "--yes"]).exits(2).says("--to DIR");
    let out = project.outside().join("copied");
    project.piton(&["restore", "P1/A@pre_pr", "--to", out.to_str().unwrap()]).exits(0);
    assert_eq!(fs::read_to_string(out.join("a.txt")).unwrap(), "a\n");
}

/// If this fails, commits that were taken back stay in the lane's branch, and would be merged.
#[test]
fn a_lane_that_goes_back_to_an_attempt_goes_with_its_branch() {
    let project = ran(KEPT);
    let (all, first) = (["attempt-2", "attempt-1"], ["attempt-1"]);
    assert_eq!(log(&project, "lane/P1/keep")[..2], all);
    let two = project.git(&["rev-parse", "lane/P1/keep"]);
    for to in ["retry_attempt", "P1/keep/work#1"] {
        let args = ["rollback", "--lane", "keep", "--to", to, "--yes"];
        project.piton(&args).exits(0).says("branch  lane/P1/keep from");
        assert_eq!(log(&project, "lane/P1/keep")[..1], first, "{to}");
        let dir = workspace(&project, "keep");
        assert_eq!(project.git(&["-C", dir.to_str().unwrap(), "status", "--porcelain"]), "");
        // Nothing of it is lost, whatever git tidies up.
        project.git(&["reflog", "expire", "--expire=now", "--all"]);
        project.git(&["gc", "--quiet", "--prune=now"]);
        project.piton(&["undo", "--yes"]).exits(0);
        assert_eq!(project.git(&["rev-parse", "lane/P1/keep"]), two);
    }
}

/// Lost: a file of the user's whose name is no text would be deleted by a rollback that says it stays.
#[test]
fn names_that_are_no_text_are_names_like_others() {
    use std::os::unix::ffi::OsStrExt as _;
    let plan = "[[phase]]\nid = \"P1\"\nrun = \"echo a > a.txt\"\n";
    let project = Project::with_plan(plan);
    let path = |name: &[u8]| project.root().join(std::ffi::OsStr::from_bytes(name));
    fs::write(path(b"tr\xff"), "tracked").unwrap();
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(0);
    fs::write(path(b"caf\xe9"), "mine").unwrap();
    fs::remove_file(path(b"tr\xff")).unwrap();
    let mut restore = project.command(crate::common::PITON);
    restore.args(["restore", "before_lane_start", "--yes"]);
    project.finish(restore.arg(std::ffi::OsStr::from_bytes(b"tr\xff"))).exits(0);
    assert_eq!(fs::read(path(b"tr\xff")).unwrap(), b"tracked");
    project.piton(&["rollback", "--yes"]).exits(0).says("caf");
    assert_eq!(fs::read(path(b"caf\xe9")).unwrap(), b"mine");
    assert!(!project.has("a.txt"));
}

/// If this fails, a whole checkpoint is asked for, and nothing is said to differ; or a folder is
/// written that was only asked about.
#[test]
fn the_top_of_the_work_tree_is_all_of_it_and_a_dry_run_writes_no_folder() {
    let project = Project::with_plan("[[phase]]\nid = \"P1\"\nrun = \"rm a.txt\"\n");
    project.write("a.txt", "a");
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(0);
    let to = project.outside().join("to").display().to_string();
    let said = project.piton(&["restore", "before_lane_start", "--to", &to, "--dry-run"]).exits(0);
    said.says("would write 2 files of P1/main@before_lane_start to");
    assert!(!project.outside().join("to").exists());
    for all in [".", "./", ""] {
        project.piton(&["restore", "before_lane_start", all, "--yes"]).exits(0);
        assert_eq!(project.read("a.txt"), "a");
        project.remove("a.txt");
    }
}

/// If this fails, what is offered for a name that means several is not understood.
#[test]
fn a_checkpoint_of_several_workspaces_is_named_by_each() {
    let project = ran(KEPT);
    project.piton(&["checkpoint", "r", "-m", "noon"]).exits(0);
    let mut said = project.piton(&["diff", "manual-1", "now"]).exits(2);
    for name in ["project@manual-1", "P1/keep@manual-1", "P1/other@manual-1"] {
        said = said.says(name);
        project.piton(&["diff", name, "now"]).exits(0);
    }
    fs::write(workspace(&project, "other").join("y.txt"), "more\n").unwrap();
    project.piton(&["diff", "manual-1", "now", "--lane", "other"]).exits(0).says("+more");
    project.piton(&["diff", "other@manual-1"]).exits(0).says("+more");
}

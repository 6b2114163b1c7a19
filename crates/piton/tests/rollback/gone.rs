//! Worktrees whose folders somebody deleted: made again from what git and the snapshots have.

use std::fs;

use crate::common::Project;

const PLAN: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "A"
isolation = "worktree"
setup = "mkdir -p deps; echo set > deps/up; echo set up >> $HOME/setups"
copy = [".env"]
steps = [
  { id = "one", run = "echo one > one.txt; git add -A; git commit -qm one; echo more >> one.txt" },
  { id = "two", run = "test -e deps/up && test -e .env && test -e $HOME/ok && echo two > two.txt" },
]
"#;

fn failed() -> Project {
    let project = Project::with_plan(PLAN);
    project.write(".gitignore", ".env\ndeps\n");
    project.commit();
    project.write(".env", "S=1\n");
    project.piton(&["run", "plan.toml"]).exits(1);
    assert!(project.has(".worktrees/P/A/one.txt"));
    fs::remove_dir_all(project.root().join(".worktrees")).unwrap();
    fs::write(project.outside().join("home/ok"), "").unwrap();
    project
}

/// If this fails, a lane whose folder was deleted can never go on.
#[test]
fn a_worktree_that_is_gone_is_made_again() {
    let project = failed();
    project.piton(&["retry", "P/A/two"]).exits(0);
    project.piton(&["resume"]).exits(0).says("its worktree was deleted; it was created again");
    assert_eq!(project.read("one.txt"), "one\nmore\n");
    assert!(project.has("two.txt"));
    let setups = fs::read_to_string(project.outside().join("home/setups")).unwrap();
    assert_eq!(setups.lines().count(), 2, "its setup ran in the fresh worktree");
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
}

/// If this fails, a lane whose folder was deleted cannot be taken back, or is said not to be.
#[test]
fn a_lane_whose_worktree_is_gone_goes_back() {
    let project = failed();
    let workspace = project.root().join(".worktrees/P/A");
    project.piton(&["rollback", "--to", "P/A/one#1", "--dry-run"]).exits(0).says("is restored");
    assert!(!workspace.exists());
    project.piton(&["rollback", "--to", "P/A/one#1", "--yes"]).exits(0);
    assert_eq!(fs::read_to_string(workspace.join("one.txt")).unwrap(), "one\nmore\n");
    project.piton(&["rollback", "--yes"]).exits(0);
    assert!(!workspace.join("one.txt").exists());
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.read("one.txt"), "one\nmore\n");
}

//! Ignored files that stand where a checkpoint has something else.

use std::fs;

use crate::common::Project;

/// A repository that ignores logs, with a file, a folder and one lane.
fn project(lane: &str) -> Project {
    let project = Project::with_plan(&format!("[[phase]]\nid = \"P\"\n{lane}\n"));
    project.write(".gitignore", "*.log\nempty/\n");
    project.write("a.txt", "first\n");
    project.write("b.log/file", "first\n");
    project.git(&["add", "-f", "b.log/file"]);
    project.commit();
    project
}

/// Puts ignored things in the place of all of them.
const SPOIL: &str = "rm -r a.txt b.log; mkdir -p a.txt/deep/empty; echo q > a.txt/deep/q.log; \
                     echo b > b.log";

/// If this fails, a file that a failed attempt replaced by a folder is deleted from base.
#[test]
fn what_a_failed_attempt_put_in_the_place_of_a_file_goes_with_a_reset() {
    let run = format!("if [ $PITON_ATTEMPT = 1 ]; then {SPOIL}; exit 1; fi; echo w > work.txt");
    let project = project(&format!(
        "[[phase.lane]]\nid = \"A\"\nisolation = \"worktree\"\nretries = 1\n\
         on_retry = \"reset\"\ntest = \"true\"\nrun = \"{run}\""
    ));
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(project.read("a.txt"), "first\n");
    assert_eq!(project.read("b.log/file"), "first\n");
    let changed = project.git(&["show", "--name-status", "--format=", "main"]);
    assert_eq!(changed.trim(), "A\twork.txt");
}

/// If this fails, a lane's worktree is said to be back and is not, or an undo loses what was there.
#[test]
fn in_a_worktree_it_goes_with_a_rollback_and_comes_back_with_an_undo() {
    let project = project(&format!(
        "[[phase.lane]]\nid = \"A\"\nisolation = \"worktree\"\nrun = \"{SPOIL}; exit 1\""
    ));
    project.piton(&["run", "plan.toml"]).exits(1);
    let workspace = project.root().join(".worktrees/P/A");
    let said = project.piton(&["rollback", "--dry-run"]).exits(0);
    said.silent_about("in its place").says("a.txt").says("b.log");
    project.piton(&["rollback", "--yes"]).exits(0);
    assert_eq!(fs::read_to_string(workspace.join("a.txt")).unwrap(), "first\n");
    assert_eq!(fs::read_to_string(workspace.join("b.log/file")).unwrap(), "first\n");
    project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(fs::read_to_string(workspace.join("a.txt/deep/q.log")).unwrap(), "q\n");
    assert_eq!(fs::read_to_string(workspace.join("b.log")).unwrap(), "b\n");
    assert!(workspace.join("a.txt/deep/empty").is_dir());
}

/// If this fails, a rollback of the project's folder claims that all is back.
#[test]
fn in_place_it_stays_and_the_plan_says_so() {
    let project = project(&format!("run = \"{SPOIL}; exit 1\""));
    project.piton(&["run", "plan.toml"]).exits(1);
    let said = project.piton(&["rollback", "--yes"]).exits(0);
    said.says("stays   a.txt (an ignored file is in its place");
    assert_eq!(project.read("a.txt/deep/q.log"), "q\n");
    project.piton(&["undo", "--yes"]).exits(0);
    let said = project.piton(&["rollback", "--yes", "--json"]).exits(0);
    let last = said.stdout.lines().last().unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    assert!(last["kept"].as_array().unwrap().contains(&"a.txt".into()), "{last}");
}

/// If this fails, a person agrees to a rollback that is refused only when it is under way, or a file
/// is deleted from base because a repository took its place.
#[test]
fn what_no_snapshot_holds_is_refused_by_the_plan() {
    for inner in ["a.txt/sub", "a.txt"] {
        let run = format!("rm a.txt; git init -q {inner}; echo q > {inner}/q; exit 1");
        let project = project(&format!(
            "[[phase.lane]]\nid = \"A\"\nisolation = \"worktree\"\nrun = \"{run}\""
        ));
        project.piton(&["run", "plan.toml"]).exits(1);
        let said = project.piton(&["rollback", "--dry-run"]).exits(1);
        said.says("a.txt").says("no snapshot has that").says("nothing was changed");
        let said = project.piton(&["rollback", "--dry-run", "--json"]).exits(1);
        let plan: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        assert!(plan["refused"].as_str().unwrap().contains("a.txt"), "{plan}");
        let said = project.piton(&["rollback", "--yes"]).exits(1);
        said.says("no snapshot has that").silent_about("rolling back");
        let workspace = project.root().join(".worktrees/P/A");
        assert_eq!(fs::read_to_string(workspace.join(inner).join("q")).unwrap(), "q\n");
        fs::rename(workspace.join("a.txt"), project.outside().join("aside")).unwrap();
        project.piton(&["rollback", "--yes"]).exits(0);
        assert_eq!(fs::read_to_string(workspace.join("a.txt")).unwrap(), "first\n");
    }
}

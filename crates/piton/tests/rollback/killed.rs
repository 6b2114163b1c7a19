//! Rollbacks and undos that are killed at every call of git, and what the next command makes of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::common::{Output, PITON, Project, wait_until};
use crate::tree::{Tree, mine, same, tree};

/// A git that counts its calls and, at the one it is told, kills whoever called it.
const GIT: &str = r#"#!/bin/sh
n=$(cat "$HOME/calls" 2>/dev/null || echo 0)
n=$((n + 1))
echo $n > "$HOME/calls"
if [ "$n" = "$(cat "$HOME/kill-at")" ]; then kill -9 $PPID; exit 1; fi
exec "$REAL_GIT" "$@"
"#;

/// Calls of git that a rollback may take; a loop that never ends would hide that it is killed for
/// another reason.
const CALLS_MAX: u32 = 200;

/// Every so many calls are enough to meet each part of a rollback; all of them would take minutes.
const STRIDE: usize = 11;

const IN_PLACE: &str = r#"
[[phase]]
id = "P"
run = "echo changed > edited.txt; rm gone.txt; mkdir -p new/empty; echo x > new/x; chmod +x edited.txt; exit 1"
"#;

const WORKTREE: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "A"
isolation = "worktree"
run = "echo changed > edited.txt; rm gone.txt; git add -A; git commit -qm own; echo x > x"
test = "false"
"#;

const MERGED: &str = r#"
[[phase]]
id = "P"
lane = [
  { id = "A", isolation = "worktree", run = "echo changed > edited.txt; rm gone.txt" },
  { id = "B", isolation = "worktree", needs = ["A"], run = "echo b > b.txt" },
]
"#;

fn project(plan: &str) -> Project {
    let project = Project::with_plan(plan);
    project.write("edited.txt", "first\n");
    project.write("gone.txt", "first\n");
    project.commit();
    git_that_kills(&project);
    project
}

/// Makes the git that [`killed_at`] calls.
pub fn git_that_kills(project: &Project) {
    let bin = project.outside().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("git"), GIT).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a command that is killed at a call of git; true in the second place if it came that far.
pub fn killed_at(project: &Project, call: u32, args: &[&str]) -> (Output, bool) {
    let home = project.outside().join("home");
    fs::write(home.join("kill-at"), call.to_string()).unwrap();
    let _ = fs::remove_file(home.join("calls"));
    let usual = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&usual).map(|d| d.join("git")).find(|g| g.is_file()).unwrap();
    let path = format!("{}:{usual}", project.outside().join("bin").display());
    let mut command = project.command(PITON);
    let said = project.finish(command.args(args).env("PATH", path).env("REAL_GIT", real));
    let made = fs::read_to_string(home.join("calls")).unwrap_or_default();
    (said, made.trim().parse::<u32>().unwrap_or(0) >= call)
}

/// All that a rollback may change.
fn world(project: &Project) -> (Tree, Tree, String) {
    let workspace = project.root().join(".worktrees/P/A");
    let workspace = if workspace.is_dir() { tree(&workspace) } else { Tree::new() };
    let refs = project.git(&["for-each-ref", "--format=%(refname) %(tree)", "refs/heads"]);
    (tree(project.root()), workspace, refs)
}

/// Kills `rollback` and `undo` at each of their calls of git, in turn.
fn kill_everywhere(project: &Project) {
    let after = world(project);
    let own = mine(project);
    project.piton(&["rollback", "--yes"]).exits(0);
    let before = world(project);
    let moves_base = mine(project) != own;
    project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(world(project), after);
    for (kills, call) in (1..CALLS_MAX).step_by(STRIDE).enumerate() {
        let (said, killed) = killed_at(project, call, &["rollback", "--yes"]);
        if !killed {
            said.exits(0);
            assert!(kills > 2, "only {kills} kills");
            return;
        }
        project.kill_all();
        project.piton(&["rollback", "--yes"]).exits(0);
        let now = world(project);
        assert_eq!(now, before, "killed at call {call}");
        let (said, killed) = killed_at(project, call, &["undo", "--yes"]);
        project.kill_all();
        if !killed {
            said.exits(0);
        }
        // Killed before its intent it did nothing; later it is finished by the next command.
        let mut tries = 0;
        while world(project) != after {
            tries += 1;
            assert!(tries < 4, "killed at call {call}: {:#?}", world(project));
            project.piton(&["undo", "--yes"]).exits(0);
        }
        if !moves_base {
            assert_eq!(mine(project), own, "killed at call {call}");
        }
    }
    panic!("it never ends");
}

/// If this fails, a rollback in the user's own folder that is cut short leaves it half done.
#[test]
fn in_place() {
    let project = project(IN_PLACE);
    project.piton(&["run", "plan.toml"]).exits(1);
    kill_everywhere(&project);
}

/// If this fails, a killed rollback leaves a lane's branch and files at odds.
#[test]
fn in_a_worktree() {
    let project = project(WORKTREE);
    project.piton(&["run", "plan.toml"]).exits(1);
    kill_everywhere(&project);
}

/// If this fails, a killed rollback leaves base between two commits.
#[test]
fn of_merged_lanes() {
    let project = project(MERGED);
    project.piton(&["run", "plan.toml"]).exits(0);
    let start = world(&project);
    kill_everywhere(&project);
    assert_ne!(world(&project), start, "it ended rolled back");
    let dirt = project.git(&["status", "--porcelain", "--", ".", ":!.claude"]);
    assert_eq!(dirt.trim(), "");
}

/// If this fails, what a person made after a kill is deleted by the command that cleans up, or nobody
/// is told that files are half way.
#[test]
fn files_made_after_a_kill_stay() {
    let project = project(IN_PLACE);
    project.piton(&["run", "plan.toml"]).exits(1);
    let failed = tree(project.root());
    let mut cut_short = false;
    for call in (1..CALLS_MAX).step_by(STRIDE) {
        let (said, killed) = killed_at(&project, call, &["rollback", "--yes"]);
        if !killed {
            said.exits(0);
            assert!(cut_short, "no kill came after the intent");
            return;
        }
        project.kill_all();
        if project.status_json("")["rewinding"] == "before_lane_start" {
            cut_short = true;
            let plan = project.piton(&["rollback", "--dry-run", "--json"]).exits(0).json();
            assert!(plan["cut_short"].is_string(), "{plan}");
            for command in ["status", "doctor"] {
                let said = project.piton(&[command]).exits(0);
                said.says("a rollback to before_lane_start was cut short").says("piton resume");
            }
        }
        project.write("mine.txt", "mine");
        project.piton(&["rollback", "--yes"]).exits(0);
        assert_eq!(project.read("mine.txt"), "mine", "killed at call {call}");
        project.remove("mine.txt");
        for _ in 0..2 {
            if tree(project.root()) != failed {
                project.piton(&["restore", "P/main/work#1", "--exact", "--yes"]).exits(0);
            }
        }
        same(&tree(project.root()), &failed);
    }
}

/// If this fails, a worktree that was being brought back is neither there nor gone, and nothing more
/// can be undone.
#[test]
fn while_a_removed_worktree_comes_back() {
    let project = project(MERGED);
    for file in 0..300 {
        project.write(&format!("f{file}"), "x");
    }
    project.commit();
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    let workspace = project.root().join(".worktrees/P/B");
    for _ in 0..3 {
        let mut undo = project.spawn(&["undo", "r", "--yes"]);
        wait_until("the worktree is begun", || workspace.join(".git").exists());
        undo.kill();
        project.kill_all();
        project.piton(&["resume", "r"]).exits(0);
        assert_eq!(fs::read_dir(&workspace).unwrap().count(), 304, "all files and the link");
        assert_eq!(
            project.git(&["-C", &workspace.display().to_string(), "status", "--porcelain"]),
            ""
        );
        project.piton(&["undo", "r", "--yes"]).exits(0);
        assert!(!workspace.exists());
    }
}

/// If this fails, a rollback of a complete run that is cut short is not finished by the command that
/// everybody would give.
#[test]
fn of_a_complete_run_and_then_resumed_without_its_name() {
    let project = project(&IN_PLACE.replace("; exit 1", ""));
    project.piton(&["run", "plan.toml"]).exits(0);
    let done = tree(project.root());
    for call in (1..CALLS_MAX).step_by(STRIDE) {
        let (said, killed) = killed_at(&project, call, &["rollback", "--yes"]);
        project.kill_all();
        if !killed {
            said.exits(0);
            panic!("no kill came after the intent");
        }
        if project.status_json("")["rewinding"] == "before_lane_start" {
            project.piton(&["resume"]).exits(0).says("finished in");
            same(&tree(project.root()), &done);
            return;
        }
    }
}

/// If this fails, a checkpoint holds files that are half way, or a step is asked for in a run whose
/// files are.
#[test]
fn commands_that_ask_something_of_the_run_finish_it_first() {
    let commands: [&[&str]; 3] =
        [&["checkpoint", "-m", "x"], &["retry", "P/main/work"], &["skip", "P/main/work", "--yes"]];
    for command in commands {
        let project = project(IN_PLACE);
        project.piton(&["run", "plan.toml"]).exits(1);
        let half = |call| {
            killed_at(&project, call, &["rollback", "--yes"]);
            project.kill_all();
            project.status_json("")["rewinding"] == "before_lane_start"
        };
        assert!((1..CALLS_MAX).step_by(STRIDE).any(half), "no kill came after the intent");
        project.piton(command);
        assert_eq!(project.read("edited.txt"), "first\n", "{command:?}");
        assert!(project.status_json("")["rewinding"].is_null(), "{command:?}");
    }
}

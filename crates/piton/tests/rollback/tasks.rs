//! A lane that goes back while tasks of it have worktrees of their own: the plan says what becomes of
//! them, and an undo brings them back as they were.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Output, Project};
use crate::killed::{git_that_kills, killed_at};
use crate::tree::{Tree, same, tree};

const DOCUMENT: &str = "# P1: First\n\n## Lane Index & Dependencies\n\n- SL-1 -- Lane one\n\n\
    ## D. Swim Lanes\n\n### SL-1 -- Lane one\n\n\
    | Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) |\n\
    |---|---|---|---|---|---|\n\
    | T1 | impl | - | T1.txt | - | `test -e T1.txt` |\n\
    | T2 | impl | - | T2.txt | - | `test -e T2.txt` |\n\
    | T3 | impl | - | T3.txt | - | `test -e T3.txt` |\n";

/// The first comes back to its lane; the second fails, and leaves a commit, a change, an untracked
/// file, an empty folder and an ignored file; the third is done and waits for the second.
const AGENT: &str = r#"
echo $PITON_STEP >> "$HOME/ran"
if [ $PITON_STEP = T2 ] && [ ! -e "$HOME/ok" ]; then
  until [ "$(git rev-parse lane/P1/SL-1)" != "$(git rev-parse main)" ]; do sleep 0.05; done
  echo own > own.txt; git add own.txt; git commit -qm own; echo more >> own.txt
  mkdir -p deep/empty; echo half > deep/half.txt; chmod +x deep/half.txt; echo x > x.log; rm gone.txt
  exit 7
fi
echo $PITON_STEP > $PITON_STEP.txt
"#;

const TASKS: [&str; 2] = ["T2", "T3"];

/// A run with one task in its lane, one that failed and one that is done.
fn project(settings: &str) -> Project {
    let project = Project::new();
    let agent = project.outside().join("agent.sh");
    fs::write(&agent, AGENT).unwrap();
    project.write(
        "piton.toml",
        &format!(
            "{settings}\n[defaults]\nagent = \"writer\"\nbackoff = \"1ms\"\n\
             [agents.writer]\ncommand = [\"sh\", \"{}\"]\n",
            agent.display()
        ),
    );
    project.write("plans/phase-1.md", DOCUMENT);
    project.write(".gitignore", "*.log\n");
    project.write("gone.txt", "first\n");
    project.commit();
    project.piton(&["run", "plans/phase-1.md", "--task-worktrees", "auto"]).exits(1);
    project
}

fn lane(project: &Project) -> PathBuf {
    project.root().join(".worktrees/P1/SL-1")
}

fn task(project: &Project, task: &str) -> PathBuf {
    lane(project).join("tasks").join(task)
}

/// All that a rollback of the lane may change, but for ignored files.
type World = (Vec<Tree>, String, String);

fn world(project: &Project) -> World {
    let workspaces = [lane(project), task(project, "T2"), task(project, "T3")];
    let mut trees: Vec<Tree> =
        workspaces.iter().map(|dir| if dir.is_dir() { tree(dir) } else { Tree::new() }).collect();
    for tree in &mut trees {
        tree.retain(|path, _| !path.starts_with("tasks") && !path.ends_with("x.log"));
    }
    let refs = project.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads"]);
    let list = project.git(&["worktree", "list", "--porcelain"]);
    let list: Vec<&str> = list.lines().filter(|l| !l.starts_with("HEAD")).collect();
    (trees, refs, list.join("\n"))
}

#[track_caller]
fn is_same(now: &World, wanted: &World) {
    for (now, wanted) in now.0.iter().zip(&wanted.0) {
        same(now, wanted);
    }
    assert_eq!((&now.1, &now.2), (&wanted.1, &wanted.2));
}

/// How often each task ran.
fn ran(project: &Project, task: &str) -> usize {
    let told = fs::read_to_string(project.outside().join("home/ran")).unwrap();
    told.lines().filter(|line| *line == task).count()
}

fn json(said: &Output) -> Value {
    serde_json::from_str(said.stdout.lines().last().unwrap()).unwrap()
}

/// If this fails, a person agrees to a rollback that removes more than it told.
#[test]
fn the_plan_says_which_worktrees_and_branches_of_tasks_go() {
    let project = project("");
    let mut said = project.piton(&["rollback", "--lane", "SL-1", "--dry-run"]).exits(0);
    for task in TASKS {
        said = said.says(&format!(
            "P1/SL-1.{task}: its worktree .worktrees/P1/SL-1/tasks/{task} is removed"
        ));
        said = said.says(&format!("lane-task/P1/SL-1/{task} at"));
        said = said.says("later steps run again in ").says(&format!("P1/SL-1.{task}"));
    }
    said.silent_about("stays   tasks").silent_about("delete  tasks");
    let plan =
        json(&project.piton(&["rollback", "--lane", "SL-1", "--dry-run", "--json"]).exits(0));
    let workspaces = plan["workspaces"].as_array().unwrap();
    let named =
        |task: &str| workspaces.iter().find(|r| r["lane"] == format!("P1/SL-1.{task}")).unwrap();
    for task in TASKS {
        let workspace = named(task);
        assert_eq!(
            workspace["worktree_goes"],
            format!(".worktrees/P1/SL-1/tasks/{task}"),
            "{plan:#}"
        );
        assert_eq!(workspace["branch"]["name"], format!("lane-task/P1/SL-1/{task}"));
        assert!(
            workspace["branch"]["from"].is_string() && workspace["branch"]["to"].is_null(),
            "{plan:#}"
        );
    }
    assert_eq!(workspaces[0]["worktree_goes"], Value::Null);
    assert_eq!(
        (&workspaces[0]["kept"], &workspaces[0]["deleted"]),
        (&serde_json::json!([]), &serde_json::json!(["T1.txt"]))
    );
    let again = plan["runs_again"].to_string();
    assert!(again.contains("SL-1.T1") && again.contains("SL-1.T3"), "{again}");
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    let mut said = project.piton(&["undo", "--dry-run"]).exits(0);
    for task in TASKS {
        said = said.says(&format!("P1/SL-1.{task}: its worktree is restored"));
        said = said.says(&format!("lane-task/P1/SL-1/{task} from nothing to"));
    }
    said.silent_about("stays away");
}

/// If this fails, a rollback loses what tasks did, or they do it twice.
#[test]
fn an_undo_brings_worktrees_of_tasks_back_and_what_is_done_stays_done() {
    let project = project("");
    let before = world(&project);
    let half = fs::read_to_string(task(&project, "T2").join("own.txt")).unwrap();
    assert_eq!(half, "own\nmore\n");
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    let back = world(&project);
    assert_eq!(back.2.matches("worktree ").count(), 2, "{}", back.2);
    assert!(!lane(&project).join("tasks").exists() && !lane(&project).join("T1.txt").exists());
    for _ in 0..2 {
        project.piton(&["undo", "--yes"]).exits(0);
        is_same(&world(&project), &before);
        assert!(!task(&project, "T2").join("gone.txt").exists());
        project.piton(&["undo", "--yes"]).exits(0);
        is_same(&world(&project), &back);
    }
    project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(project.step("P1/SL-1.T3/T3")["status"], "complete");
    assert_eq!(project.step("P1/SL-1.T2/T2")["status"], "failed");
    fs::write(project.outside().join("home/ok"), "").unwrap();
    project.piton(&["retry", "T2"]).exits(0);
    project.piton(&["resume"]).exits(0);
    assert_eq!(["T1", "T2", "T3"].map(|task| ran(&project, task)), [1, 2, 1]);
    assert_eq!(project.read("own.txt"), "own\nmore\n");
    assert!(project.has("T1.txt") && project.has("T2.txt") && project.has("T3.txt"));
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
}

/// If this fails, an undo leaves worktrees of tasks that began since, or loses what they did.
#[test]
fn tasks_that_began_since_go_with_an_undo_and_come_back_with_another() {
    let project = project("");
    let before = world(&project);
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    project.piton(&["resume"]).exits(1);
    fs::write(task(&project, "T3").join("since.txt"), "since\n").unwrap();
    let since = world(&project);
    project.piton(&["undo", "--yes"]).exits(0);
    is_same(&world(&project), &before);
    project.piton(&["undo", "--yes"]).exits(0);
    is_same(&world(&project), &since);
}

/// If this fails, a rollback that nobody can carry out is found out half way, or loses a file.
#[test]
fn what_only_a_tasks_worktree_holds_is_refused_by_the_plan() {
    let project = project("[snapshots]\nfile_max = \"500B\"\n");
    let large = task(&project, "T2").join("large.bin");
    fs::write(&large, "large\n".repeat(100)).unwrap();
    let before = world(&project);
    let said = project.piton(&["rollback", "--lane", "SL-1", "--dry-run"]).exits(1);
    said.says("the worktree of P1/SL-1.T2 can't be removed")
        .says("large.bin")
        .says("nothing was changed");
    let said = project.piton(&["rollback", "--lane", "SL-1", "--dry-run", "--json"]).exits(1);
    assert!(json(&said)["refused"].to_string().contains("large.bin"), "{}", said.stdout);
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(1).says("large.bin");
    is_same(&world(&project), &before);
    fs::remove_file(large).unwrap();
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
}

/// If this fails, a rollback that is killed leaves a task's worktree without its branch, or an undo
/// brings half of it back.
#[test]
fn killed_anywhere_it_is_finished_by_the_next_command() {
    let project = project("");
    git_that_kills(&project);
    let before = world(&project);
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    let back = world(&project);
    project.piton(&["undo", "--yes"]).exits(0);
    for (kills, call) in (3..).step_by(17).enumerate() {
        let (said, killed) = killed_at(&project, call, &["rollback", "--lane", "SL-1", "--yes"]);
        if !killed {
            said.exits(0);
            assert!(kills > 2, "only {kills} kills");
            return;
        }
        project.kill_all();
        project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
        is_same(&world(&project), &back);
        killed_at(&project, call, &["undo", "--yes"]);
        project.kill_all();
        let mut tries = 0;
        while world(&project) != before {
            tries += 1;
            assert!(tries < 4, "killed at call {call}: {:#?}", world(&project));
            project.piton(&["undo", "--yes"]).exits(0);
        }
    }
}

/// If this fails, what a rollback took back can't be named any more because tasks went with it.
#[test]
fn the_point_before_a_rollback_is_that_of_the_lane_unless_a_task_is_named() {
    let project = project("");
    let before = world(&project);
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    let shown = project.piton(&["show"]).exits(0).stdout;
    let mut names = shown.split_whitespace().filter(|word| word.starts_with("before-rollback-"));
    let name = names.next_back().unwrap();
    let out = project.outside().join("out");
    let to = |name: &str| out.join(name).display().to_string();
    project.piton(&["restore", name, "--to", &to("lane")]).exits(0);
    assert!(out.join("lane/T1.txt").exists());
    project.piton(&["restore", name, "--lane", "SL-1.T2", "--to", &to("task")]).exits(0);
    assert_eq!(fs::read_to_string(out.join("task/own.txt")).unwrap(), "own\nmore\n");
    // The lane begins anew: an undo is the way back to there.
    let refused = project.piton(&["rollback", "--to", name, "--yes"]).exits(2).stderr;
    let undo = refused.split('`').find(|words| words.starts_with("piton undo")).unwrap();
    let undo: Vec<&str> = undo.split(' ').skip(1).chain(["--yes"]).collect();
    project.piton(&undo).exits(0);
    same(&world(&project).0[0], &before.0[0]);
}

/// If this fails, an undo that meets something foreign leaves half of it behind, or takes that away.
#[test]
fn what_took_the_place_of_a_tasks_worktree_or_branch_refuses_the_undo() {
    let project = project("");
    let before = world(&project);
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    fs::create_dir_all(task(&project, "T3")).unwrap();
    fs::write(task(&project, "T3").join("mine"), "mine\n").unwrap();
    let told = "the worktree of P1/SL-1.T3 can't be created again";
    project.piton(&["undo", "--dry-run"]).exits(1).says(told).says("nothing was changed");
    project.piton(&["undo", "--yes"]).exits(1).says(told);
    assert_eq!(fs::read_to_string(task(&project, "T3").join("mine")).unwrap(), "mine\n");
    fs::remove_dir_all(lane(&project).join("tasks")).unwrap();
    project.git(&["branch", "lane-task/P1/SL-1/T3"]);
    let back = world(&project);
    project.piton(&["undo", "--dry-run"]).exits(1).says(told).says("branch");
    project.piton(&["undo", "--yes"]).exits(1).says(told);
    is_same(&world(&project), &back);
    project.git(&["branch", "-D", "lane-task/P1/SL-1/T3"]);
    project.piton(&["undo", "--yes"]).exits(0);
    is_same(&world(&project), &before);
}

/// If this fails, an undo that a full disk stops leaves some worktrees of tasks there.
#[test]
fn an_undo_that_fails_half_way_leaves_no_worktree_of_a_task() {
    let project = project("");
    // Larger than any file that Piton itself writes here: so the limit hits only this one.
    fs::write(task(&project, "T3").join("big.txt"), "much ".repeat(4 << 20)).unwrap();
    let before = world(&project);
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    let back = world(&project);
    let said = project.sh("trap '' XFSZ; ulimit -f 16384; exec $PROGRAM undo --yes");
    assert_ne!(said.code, 0, "{said:?}");
    said.says("nothing was changed").says("big.txt");
    is_same(&world(&project), &back);
    project.piton(&["undo", "--yes"]).exits(0);
    is_same(&world(&project), &before);
}

/// If this fails, a large file that a task committed is lost by an undo.
#[test]
fn large_files_of_tasks_come_back() {
    let project = project("[snapshots]\nfile_max = \"2kB\"\n");
    let workspace = task(&project, "T3");
    fs::write(workspace.join("large.txt"), "large\n".repeat(1000)).unwrap();
    project.git(&["-C", workspace.to_str().unwrap(), "add", "large.txt"]);
    project.git(&["-C", workspace.to_str().unwrap(), "commit", "-qm", "large"]);
    let before = world(&project);
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    project.piton(&["undo", "--yes"]).exits(0);
    is_same(&world(&project), &before);
}

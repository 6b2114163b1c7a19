//! What a person does by hand, in a lane's worktree or in base, while the run waits for them.

use std::fs;

use super::common::{Output, Project};

/// A repository with `a.txt` and a plan of these lanes, each in a worktree.
pub fn project(lanes: &[(&str, &str)]) -> Project {
    let project = Project::new();
    let lane = |(id, keys): &(&str, &str)| {
        format!("[[phase.lane]]\nid = \"{id}\"\nisolation = \"worktree\"\n{keys}\n")
    };
    let lanes: String = lanes.iter().map(lane).collect();
    project.write("plan.toml", &format!("[[phase]]\nid = \"P1\"\n{lanes}"));
    project.write("a.txt", "base\n");
    project.commit();
    project
}

#[track_caller]
pub fn run(project: &Project) -> Output {
    project.piton(&["run", "plan.toml", "--run-id", "r"])
}

/// Git in the worktree of a lane.
#[track_caller]
pub fn in_workspace(project: &Project, lane: &str, args: &[&str]) -> Output {
    let workspace = project.root().join(".worktrees/P1").join(lane);
    project.finish(project.command("git").args(args).current_dir(workspace))
}

/// Lane B, whose first of two commits conflicts with what A brought to base.
fn conflict() -> Project {
    let after = "while [ \\\"$(git show main:a.txt)\\\" != A ]; do sleep 0.02; done";
    let commits =
        "echo B > a.txt; git commit -qam c1; echo two > two.txt; git add -A; git commit -qm c2";
    let project = project(&[
        ("A", "run = \"echo A > a.txt\""),
        ("B", &format!("run = \"{after}; {commits}\"")),
    ]);
    run(&project).exits(4).says("rebase main");
    project
}

/// Lost: commits that a rebase under way has not replayed yet would become deletions, and reach base.
#[test]
fn a_rebase_under_way_in_a_lane_is_waited_for() {
    let project = conflict();
    in_workspace(&project, "B", &["rebase", "main"]);
    fs::write(project.root().join(".worktrees/P1/B/a.txt"), "AB\n").unwrap();
    in_workspace(&project, "B", &["add", "a.txt"]).exits(0);
    let said = project.piton(&["resume", "r"]).exits(4);
    said.says("a rebase is in progress").says("B rebase --continue").says("piton resume r");
    in_workspace(&project, "B", &["-c", "core.editor=true", "rebase", "--continue"]).exits(0);
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!((&*project.read("a.txt"), &*project.read("two.txt")), ("AB\n", "two\n"));
    assert_eq!(project.git(&["log", "--format=%s", "-2", "main"]), "c2\nc1\n");
}

/// Lost: with a cherry-pick or a bisection under way, files would be committed that nobody meant, and
/// what it was begun for would be gone.
#[test]
fn a_cherry_pick_or_a_bisection_in_a_lane_is_waited_for_too() {
    let project = conflict();
    in_workspace(&project, "B", &["cherry-pick", "main"]);
    project.piton(&["resume", "r"]).exits(4).says("a cherry-pick is in progress");
    in_workspace(&project, "B", &["cherry-pick", "--abort"]).exits(0);
    in_workspace(&project, "B", &["bisect", "start", "HEAD", "HEAD~2"]).exits(0);
    project.piton(&["resume", "r"]).exits(4).says("B bisect reset");
    in_workspace(&project, "B", &["bisect", "reset"]).exits(0);
    project.piton(&["resume", "r"]).exits(4).says("conflict with base in a.txt");
    assert_eq!(project.git(&["log", "--format=%s", "-1", "lane/P1/B"]), "c2\n");
}

/// A lane whose steps rebase onto a branch that it conflicts with.
fn rebasing(steps: &[&str]) -> Project {
    let step = |(at, run): (usize, &&str)| {
        format!("[[phase.lane.step]]\nid = \"s{at}\"\nrun = \"{run}\"\n")
    };
    let steps: String = steps.iter().enumerate().map(step).collect();
    let project = project(&[("L1", &steps)]);
    project.git(&["switch", "-qc", "q"]);
    project.write("a.txt", "q\n");
    project.commit();
    project.git(&["switch", "-q", "main"]);
    project
}

/// Begins a rebase that stops at the first of two commits.
const BEGINS: &str = "echo B > a.txt; git commit -qam c1; echo two > two.txt; git add -A; \
                      git commit -qm c2; git rebase q || echo Bq > a.txt";

/// Lost: half of what a step was about to put in order would be committed.
#[test]
fn a_rebase_that_a_step_left_half_way_is_not_committed() {
    let project = rebasing(&[BEGINS]);
    run(&project).exits(4).says("a rebase is in progress").says("L1 rebase --abort");
    assert_eq!(project.git(&["log", "--format=%s", "-1", "lane/P1/L1"]), "c2\n");
}

/// Lost: an agent could never settle what another left.
#[test]
fn steps_start_while_a_rebase_is_under_way() {
    let ends = "git add -A; git -c core.editor=true rebase --continue";
    let project = rebasing(&[BEGINS, ends]);
    run(&project).exits(0);
    assert_eq!((&*project.read("a.txt"), &*project.read("two.txt")), ("Bq\n", "two\n"));
}

/// A lane whose work is committed, and can't go to base because of a file that is in the way there.
fn held_up() -> Project {
    let project = project(&[("L1", "")]);
    let root = project.root().display().to_string();
    let keys = format!("run = \"echo w > work.txt; echo mine > {root}/work.txt\"");
    project.write("plan.toml", &format!("{}{keys}\n", project.read("plan.toml")));
    project.commit();
    run(&project).exits(4).says("work.txt");
    fs::remove_file(project.root().join("work.txt")).unwrap();
    project
}

/// Lost: the work of a lane whose worktree a person used to look at something else would be taken back
/// and called nothing.
#[test]
fn a_lane_whose_branch_a_person_left_is_not_concluded() {
    for (away, said) in [
        (&["checkout", "-q", "--detach", "main"][..], "no branch is checked out"),
        (&["switch", "-qc", "look", "main"], "look is checked out"),
    ] {
        let project = held_up();
        in_workspace(&project, "L1", away).exits(0);
        let refused = project.piton(&["resume", "r"]).exits(4);
        refused.says(said).says("L1 switch lane/P1/L1").says("piton resume r");
        assert_eq!(project.git(&["show", "lane/P1/L1:work.txt"]), "w\n");
        in_workspace(&project, "L1", &["switch", "-q", "lane/P1/L1"]).exits(0);
        project.piton(&["resume", "r"]).exits(0);
        assert_eq!(project.read("work.txt"), "w\n");
    }
}

/// Lost: what a person put right on top of a lane's work, on a branch of their own.
#[test]
fn commits_on_top_of_a_lanes_own_are_taken_wherever_they_are() {
    let project = held_up();
    in_workspace(&project, "L1", &["switch", "-qc", "mine"]).exits(0);
    fs::write(project.root().join(".worktrees/P1/L1/more.txt"), "more\n").unwrap();
    in_workspace(&project, "L1", &["add", "more.txt"]).exits(0);
    in_workspace(&project, "L1", &["commit", "-qm", "more"]).exits(0);
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!((&*project.read("work.txt"), &*project.read("more.txt")), ("w\n", "more\n"));
}

/// Lost: a lane would begin from, and go to, a base that is not what the person has before them.
#[test]
fn preconditions_hold_for_a_lane_that_begins_again_too() {
    let project = project(&[("L1", "run = \"echo w > work.txt\"")]);
    run(&project).exits(0);
    project.piton(&["rollback", "r", "--yes"]).exits(0);
    project.write("a.txt", "dirty\n");
    // The refusal is no start from them.
    for _ in 0..2 {
        project.piton(&["resume", "r"]).exits(4).says("a.txt").says("--seed-dirty");
    }
    project.git(&["checkout", "-q", "--", "a.txt"]);
    project.git(&["switch", "-qc", "other"]);
    project.piton(&["resume", "r"]).exits(4).says("other").says("git switch main");
    assert!(!project.has("work.txt"));
    project.git(&["switch", "-q", "main"]);
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.read("work.txt"), "w\n");
}

/// Lost: tests that failed because of base would fail for ever, though base is put right.
#[test]
fn a_base_that_was_put_right_is_what_the_tests_run_on_again() {
    let project = project(&[("L1", "")]);
    let root = project.root().display().to_string();
    let breaks = format!("cd {root} && echo u > u.txt && git add u.txt && git commit -qm u");
    let keys = format!(
        "run = \"echo w > work.txt; {breaks}\"\ntest = \"echo t >> report.txt; [ ! -f u.txt ]\""
    );
    project.write("plan.toml", &format!("{}{keys}\n", project.read("plan.toml")));
    project.commit();
    run(&project).exits(1);
    project.git(&["rm", "-q", "u.txt"]);
    project.commit();
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.read("work.txt"), "w\n");
    assert!(!project.has("u.txt"));
}

/// A lane whose work writes `wrong`, and whose test wants `right`; each work of it is told outside.
fn failing(isolation: &str, keys: &str) -> Project {
    let project = Project::new();
    let ran = project.outside().join("ran").display().to_string();
    project.write(
        "plan.toml",
        &format!(
            "[[phase]]\nid = \"P1\"\n[[phase.lane]]\nid = \"A\"\nisolation = \"{isolation}\"\n\
             {keys}[[phase.lane.step]]\nid = \"make\"\nrun = \"echo $PITON_ATTEMPT >> {ran}; \
             echo wrong > a.txt; cp $PITON_FAILURE_CONTEXT {ran}.context || true\"\n\
             test = \"grep -q right a.txt\"\n"
        ),
    );
    project.write("a.txt", "base\n");
    project.commit();
    project
}

/// What a person does after it failed, and which attempts worked.
fn fixed(project: &Project, isolation: &str, fix: Option<&str>) -> (Output, Vec<String>) {
    let workspace = if isolation == "worktree" { ".worktrees/P1/A/a.txt" } else { "a.txt" };
    if let Some(text) = fix {
        project.write(workspace, text);
    }
    if isolation == "in-place" {
        project.piton(&["retry", "r"]).exits(0);
    }
    let said = project.piton(&["resume", "r"]);
    let ran = fs::read_to_string(project.outside().join("ran")).unwrap();
    (said, ran.lines().map(str::to_owned).collect())
}

/// Lost: what a person put right after a failed test would be overwritten by the work that failed.
#[test]
fn a_fix_by_hand_is_tested_before_the_work_runs_again() {
    for (isolation, on_retry) in
        [("worktree", ""), ("worktree", "on_retry = \"reset\"\n"), ("in-place", "")]
    {
        let project = failing(isolation, on_retry);
        run(&project).exits(1);
        let (said, ran) = fixed(&project, isolation, Some("right\n"));
        said.exits(0).says("files changed since the test failed");
        assert_eq!((&*project.read("a.txt"), ran), ("right\n", vec!["1".to_owned()]));
    }
}

/// Lost: the same where a retry was still to come when the driver was stopped.
#[test]
fn a_fix_by_hand_is_tested_first_where_a_driver_left_a_retry() {
    let project = failing("worktree", "retries = 1\nbackoff = \"1s\"\n");
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    super::common::wait_until("the retry", || driver.stderr().contains("; retry at "));
    driver.kill();
    let (said, ran) = fixed(&project, "worktree", Some("right\n"));
    said.exits(0).says("files changed since the test failed");
    assert_eq!((&*project.read("a.txt"), ran.len()), ("right\n", 1));
}

/// Lost: a fix that does not hold would be all that is tried, or the work would not hear of it.
#[test]
fn a_fix_that_fails_too_is_told_to_the_work_that_follows() {
    for isolation in ["worktree", "in-place"] {
        let project = failing(isolation, "");
        run(&project).exits(1);
        let (said, ran) = fixed(&project, isolation, Some("rigth\n"));
        said.exits(1);
        assert_eq!(ran, ["1", "3"], "the second attempt only tested");
        let context = fs::read_to_string(project.outside().join("ran.context")).unwrap();
        assert!(context.contains("Attempt 2: the test failed"), "{context}");
        let (said, ran) = fixed(&project, isolation, None);
        said.exits(1).silent_about("files changed since the test failed");
        assert_eq!(ran, ["1", "3", "4"], "nothing was put right");
    }
}

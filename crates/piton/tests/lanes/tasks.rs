//! Tasks of a lane in worktrees of their own: at once where they can, back in their lane in order, and
//! nothing left of them, whoever falls when.

use serde_json::Value;

use super::common::{Output, PITON, wait_until};
use super::kills::{arm, calls};
use super::scene::{DOCUMENT, Scene};

/// A document with one lane and these rows of tasks.
fn document(rows: &str) -> String {
    format!(
        "# P1: First\n\n## Lane Index & Dependencies\n\n- SL-1 -- Lane one\n  - Retries: 1\n\n\
         ## D. Swim Lanes\n\n### SL-1 -- Lane one\n\n\
         | Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) |\n\
         |---|---|---|---|---|---|\n{rows}\n"
    )
}

/// Two tasks with files of their own, and one after them.
const APART: &str = "| T1 | impl | - | T1.txt | - | `test -e T1.txt` |\n\
                     | T2 | impl | - | T2.txt | - | `test -e T2.txt` |\n\
                     | T3 | verify | - | - | - | `test -e T1.txt && test -e T2.txt` |\n";

/// Lets a task say where it works, and wait for the other one to be at work too.
fn meets(scene: &Scene, own: &str, other: &str) {
    let out = scene.outside("").display().to_string();
    scene.agent(
        own,
        &format!(
            "pwd > {out}/where-{own}; git branch --show-current >> {out}/where-{own}\n\
             until [ -e {out}/where-{other} ]; do sleep 0.02; done\n\
             echo {own} > {own}.txt\n"
        ),
    );
}

fn scene(rows: &str) -> Scene {
    Scene::with(&document(rows), "")
}

#[track_caller]
fn asked(scene: &Scene, when: &str) -> Output {
    scene.run(&["--task-worktrees", when])
}

/// The lines of the run log.
fn log(scene: &Scene) -> Vec<Value> {
    let path = format!(".claude/run-logs/{}.jsonl", scene.project.run_id());
    let text = scene.project.read(&path);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Lost: tasks that could run at once would wait for each other, or work in each other's files.
#[test]
fn tasks_with_files_of_their_own_run_at_once_and_come_back_in_order() {
    let scene = scene(APART);
    meets(&scene, "T1", "T2");
    meets(&scene, "T2", "T1");
    asked(&scene, "auto").exits(0);
    for task in ["T1", "T2"] {
        let told = scene.told(&format!("where-{task}"));
        assert!(told[0].ends_with(&format!(".worktrees/P1/SL-1/tasks/{task}")), "{told:?}");
        assert_eq!(told[1], format!("lane-task/P1/SL-1/{task}"));
        assert!(scene.project.has(&format!("{task}.txt")));
    }
    let subjects = scene.subjects("main");
    assert_eq!(subjects[..2], ["feat(P1-SL-1): T2", "feat(P1-SL-1): T1"], "{subjects:?}");
    scene.nothing_left();
    assert_eq!(scene.stage_status("SL-1", "pre_pr"), "complete");
    let records = scene.records();
    assert!(records.iter().all(|r| r["lane"] == "SL-1"), "{records:#?}");
    // In the log a task is a task of its lane.
    let merged = |l: &&Value| l["event"] == "merge_done" && l["status"] == "ok";
    let log = log(&scene);
    let merges: Vec<_> = log.iter().filter(merged).map(|l| (&l["lane"], &l["task"])).collect();
    assert_eq!(format!("{merges:?}").matches("SL-1").count(), 3, "{merges:?}");
    assert_eq!((merges[0].1, merges[1].1, merges[2].1), (&"T1".into(), &"T2".into(), &"-".into()));
    let status = scene.project.piton(&["status"]).exits(0).stdout;
    let below = "    ✓ tasks-1 complete\n      ✓ SL-1.T1 complete, merged as ";
    assert!(status.contains(below), "{status}");
}

/// Lost: two agents would change one file at once because a document was read too boldly.
#[test]
fn tasks_that_share_files_or_name_none_stay_in_their_lane() {
    let rows = "| T1 | impl | - | src/ | - | - |\n| T2 | impl | - | src/b.txt | - | - |\n\
                | T3 | impl | - | - | - | - |\n| T4 | impl | T3 | docs | - | - |\n";
    let scene = scene(rows);
    let where_ = format!("pwd >> {}\n", scene.outside("where").display());
    for task in ["T1", "T2", "T3", "T4"] {
        scene.agent(task, &where_);
    }
    asked(&scene, "auto").exits(0);
    let told = scene.told("where");
    assert_eq!(told.len(), 4);
    assert!(told.iter().all(|dir| dir.ends_with(".worktrees/P1/SL-1")), "{told:?}");
    assert_eq!(asked(&scene, "auto").exits(0).stderr.matches("tasks-1").count(), 0);
}

/// Lost: a dry run would not show what runs at once.
#[test]
fn a_dry_run_shows_the_groups() {
    let scene = scene(APART);
    let dry = scene.run(&["--task-worktrees", "auto", "--dry-run"]).exits(0).stdout;
    let first = dry.split("wave 2").next().unwrap_or_default();
    assert!(first.contains("P1/SL-1.T1/T1") && first.contains("P1/SL-1.T2/T2"), "{dry}");
    let then = dry.split("wave 3").nth(1).unwrap_or_default();
    assert!(then.starts_with("\n  P1/SL-1/T3"), "{dry}");
    assert!(!dry.contains("tasks-1") && !dry.contains("mend"), "{dry}");
    let place = "worktree .worktrees/P1/SL-1/tasks/T1, branch lane-task/P1/SL-1/T1";
    assert!(dry.contains(&format!("{place}, merged in turn into SL-1")), "{dry}");
    let on = scene.run(&["--task-worktrees", "on", "--dry-run"]).exits(0).stdout;
    assert!(on.contains("wave 3\n  P1/SL-1.T3/T3"), "{on}");
}

/// Lost: what two tasks did to one file would be lost, or end in nobody's hands.
#[test]
fn tasks_that_meet_in_one_file_are_settled_by_the_later_one() {
    let rows = "| T1 | impl | - | - | - | `grep -q T1 both.txt` |\n\
                | T2 | impl | - | - | - | `grep -q T2 both.txt` |\n";
    let scene = scene(rows);
    let out = scene.outside("T2-attempts").display().to_string();
    scene.agent("T1", "echo T1 > both.txt");
    scene.agent(
        "T2",
        &format!(
            "echo $PITON_ATTEMPT >> {out}; [ $PITON_ATTEMPT = 1 ] && {{ echo T2 > both.txt; exit; }}\n\
             cp both.txt {out}.seen; cat > {out}.prompt; printf 'T1\\nT2\\n' > both.txt"
        ),
    );
    asked(&scene, "on").exits(0);
    assert_eq!(scene.project.read("both.txt"), "T1\nT2\n");
    assert_eq!(scene.told("T2-attempts"), ["1", "2"]);
    let seen = scene.told("T2-attempts.seen").join("\n");
    assert!(seen.contains("<<<<<<<") && seen.contains("T1") && seen.contains("T2"), "{seen}");
    let prompt = scene.told("T2-attempts.prompt").join("\n");
    assert!(prompt.contains("conflict with base in both.txt"), "{prompt}");
    scene.nothing_left();
}

/// Lost: what goes wrong after the last task would have nobody to mend it.
#[test]
fn a_lane_in_trouble_after_its_tasks_is_mended_in_its_own_worktree() {
    let scene = scene("| T1 | impl | - | both.txt | - | `test -e both.txt` |\n");
    let out = scene.outside("mend").display().to_string();
    // Somebody else changes the same file on base meanwhile.
    scene.agent(
        "T1",
        "echo lane > both.txt; cd \"$PITON_ROOT\" && echo base > both.txt && git add both.txt && \
         git -c user.name=p -c user.email=p@x commit -qm person",
    );
    scene.agent("mend", &format!("pwd > {out}; cat >> {out}; echo mended > both.txt"));
    asked(&scene, "on").exits(0);
    assert_eq!(scene.project.read("both.txt"), "mended\n");
    let told = scene.told("mend").join("\n");
    assert!(told.contains(".worktrees/P1/SL-1\n"), "{told}");
    assert!(
        told.contains("- T1 (impl): both.txt") && told.contains("conflict with base"),
        "{told}"
    );
    scene.nothing_left();
}

/// Lost: a driver that is killed in the middle of tasks would lose one, or do it twice.
#[test]
fn a_driver_killed_while_tasks_are_at_work_goes_on_with_them() {
    let scene = scene(APART);
    let out = scene.outside("").display().to_string();
    for task in ["T1", "T2"] {
        let script = format!(
            "echo at >> {out}/{task}; until [ -e {out}/go ]; do sleep 0.02; done; touch {task}.txt"
        );
        scene.agent(task, &script);
    }
    let mut driver = scene.project.spawn(&["run", DOCUMENT, "--task-worktrees", "auto"]);
    wait_until("both tasks are at work", || {
        scene.outside("T1").exists() && scene.outside("T2").exists()
    });
    driver.kill();
    std::fs::write(scene.outside("go"), "").unwrap();
    scene.resume(&[]).exits(0);
    assert_eq!((scene.told("T1").len(), scene.told("T2").len()), (1, 1));
    assert!(scene.project.has("T1.txt") && scene.project.has("T2.txt"));
    scene.nothing_left();
}

/// Lost: after a power cut a lane's files would be those from before its tasks, and what the tasks did
/// would leave it again.
#[test]
fn a_lane_that_waits_for_tasks_has_their_work_after_a_power_cut() {
    let scene = scene(APART);
    let out = scene.outside("").display().to_string();
    let waits = "until [ -e OUT/go ]; do sleep 0.02; done; touch T2.txt";
    scene.agent("T1", "echo whole > T1.txt");
    scene.agent("T2", &waits.replace("OUT", &out));
    let mut driver = scene.project.spawn(&["run", DOCUMENT, "--task-worktrees", "auto"]);
    let merged = scene.workspace("SL-1").join("T1.txt");
    let gone = scene.workspace("SL-1").join("tasks/T1");
    wait_until("the first task is back", || merged.exists() && !gone.exists());
    driver.kill();
    scene.project.reboot();
    std::fs::write(&merged, "").unwrap();
    std::fs::write(scene.outside("go"), "").unwrap();
    scene.resume(&[]).exits(0).says("T1.txt").says("piton undo");
    assert_eq!(scene.project.read("T1.txt"), "whole\n");
    assert!(scene.project.has("T2.txt"));
    scene.nothing_left();
}

/// Kills the driver at a call of git, resumes, and checks that nothing is lost, doubled or left.
#[track_caller]
fn survives(pattern: &str, after: bool) {
    let scene = scene(APART);
    arm(&scene, pattern, after);
    let piton = |args: &[&str]| scene.project.finish(scene.command(PITON).args(args));
    let first = piton(&["run", DOCUMENT, "--task-worktrees", "auto"]);
    assert_eq!(first.code, 137, "no `{pattern}`:\n{}\n{}", calls(&scene), first.stderr);
    piton(&["resume"]).exits(0);
    let mut subjects = scene.subjects("main");
    subjects.sort();
    subjects.retain(|s| s.starts_with("feat(P1-SL-1): T"));
    assert_eq!(subjects, ["feat(P1-SL-1): T1", "feat(P1-SL-1): T2"], "{pattern}");
    assert!(scene.project.has("T1.txt") && scene.project.has("T2.txt"));
    scene.nothing_left();
    scene.project.git(&["fsck", "--no-dangling"]);
}

/// Lost: a half-made worktree of a task would stop its lane.
#[test]
fn a_driver_killed_while_it_makes_a_tasks_worktree() {
    survives("tasks/T2", false);
    survives("tasks/T2", true);
}

/// Lost: a task's work would be in its lane twice or not at all, or the lane's files would stay behind.
#[test]
fn a_driver_killed_while_it_brings_a_task_back() {
    survives("piton: merge lane", true);
    survives("read-tree -m -u [0-9a-f]", false);
    survives("piton: lane merged", true);
}

/// Lost: tasks of a lane that went back would go on from what is no longer there.
#[test]
fn a_rollback_of_the_lane_ends_its_tasks_and_an_undo_brings_its_files_back() {
    let scene = scene(APART);
    let project = &scene.project;
    scene.agent("T2", "touch half.txt; exit 7");
    let run = asked(&scene, "auto").exits(1);
    assert!(run.stderr.contains("P1/SL-1.T2/T2"), "{}", run.stderr);
    let workspace = scene.workspace("SL-1");
    assert!(workspace.join("T1.txt").exists() && workspace.join("tasks/T2/half.txt").exists());
    assert_eq!(scene.stage_status("SL-1", "after_lane_start"), "failed");
    let head = project.git(&["rev-parse", "lane/P1/SL-1"]);
    project
        .piton(&["rollback", "--lane", "SL-1.T2", "--yes"])
        .exits(2)
        .says("is rolled back with its lane");
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    assert!(!workspace.join("T1.txt").exists() && !workspace.join("tasks").exists());
    assert_eq!(scene.branches(), ["lane/P1/SL-1"]);
    assert_eq!(scene.worktrees().len(), 1);
    project.piton(&["undo", "--yes"]).exits(0);
    assert!(workspace.join("T1.txt").exists());
    assert_eq!(project.git(&["rev-parse", "lane/P1/SL-1"]), head);
    project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    scene.usual_agent("T2");
    scene.resume(&[]).exits(0);
    assert!(project.has("T1.txt") && project.has("T2.txt") && !project.has("half.txt"));
    scene.nothing_left();
}

/// Kills a rollback at a call of git; the next command finishes it, and an undo brings all back.
#[track_caller]
fn finishes_a_rollback(pattern: &str, after: bool) {
    let scene = scene(APART);
    scene.agent("T2", "echo half > half.txt; exit 7");
    asked(&scene, "on").exits(1);
    let (branches, workspaces) = (scene.branches(), scene.worktrees());
    arm(&scene, pattern, after);
    let piton = |args: &[&str]| scene.project.finish(scene.command(PITON).args(args));
    let killed = piton(&["rollback", "--lane", "SL-1", "--yes"]);
    assert_eq!(killed.code, 137, "no `{pattern}`:\n{}\n{}", calls(&scene), killed.stderr);
    scene.project.piton(&["status"]).exits(0).silent_about("SL-1.T2 complete");
    // It is finished first, and then undone.
    let undo = piton(&["undo", "--yes"]).exits(0);
    undo.says("cut short").silent_about("made again");
    assert_eq!((scene.branches(), scene.worktrees()), (branches, workspaces), "{pattern}");
    let half = scene.workspace("SL-1").join("tasks/T2/half.txt");
    assert_eq!(std::fs::read_to_string(half).unwrap(), "half\n");
    piton(&["undo", "--yes"]).exits(0);
    assert_eq!(scene.branches(), ["lane/P1/SL-1"]);
    scene.usual_agent("T2");
    piton(&["resume"]).exits(0);
    scene.nothing_left();
    scene.project.git(&["fsck", "--no-dangling"]);
}

/// Lost: a task's worktree would be gone and its branch there, or the other way round.
#[test]
fn a_rollback_killed_while_a_tasks_worktree_goes_is_finished() {
    finishes_a_rollback("piton: lane starts over", false);
    finishes_a_rollback("piton: lane starts over", true);
}

/// Lost: what was made once in a task's worktree would be missing when that comes back.
#[test]
fn what_setup_and_copy_made_is_there_again_after_an_undo() {
    let scene = scene(APART);
    let lines = "[defaults]\nsetup = \"echo made > made.log\"\ncopy = [\"local.env\"]";
    let settings = scene.project.read("piton.toml").replace("[defaults]", lines);
    scene.project.write("piton.toml", &settings);
    scene.project.write(".gitignore", "*.log\nlocal.env\n");
    scene.project.commit();
    scene.project.write("local.env", "local\n");
    scene.agent("T1", "echo half > half.txt; exit 7");
    asked(&scene, "auto").exits(1);
    scene.project.piton(&["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    scene.project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(scene.project.step("P1/SL-1.T2/T2")["status"], "complete");
    let workspace = scene.workspace("SL-1").join("tasks/T1");
    assert_eq!(std::fs::read_to_string(workspace.join("local.env")).unwrap(), "local\n");
    let seen = scene.outside("seen").display().to_string();
    scene.agent("T1", &format!("cat made.log local.env half.txt > {seen}; touch T1.txt"));
    scene.project.piton(&["retry", "T1"]).exits(0);
    scene.resume(&[]).exits(0);
    assert_eq!(scene.told("seen"), ["made", "local", "half"]);
    assert_eq!(scene.project.step("P1/SL-1.T2/T2")["attempts"], 1);
    scene.nothing_left();
}

/// Lost: worktrees of tasks would keep that of their lane, or stay for ever.
#[test]
fn worktrees_of_tasks_of_a_deleted_run_go_with_that_of_their_lane() {
    let scene = scene(APART);
    scene.agent("T2", "exit 7");
    asked(&scene, "auto").exits(1);
    assert_eq!(scene.worktrees().len(), 2);
    scene.usual_agent("T2");
    scene.run(&["--fresh"]).exits(0);
    scene.project.piton(&["gc", "--keep-runs", "0", "--yes"]).exits(0);
    assert_eq!(scene.worktrees(), Vec::<String>::new());
}

/// Lost: work would be redone or lost because a run went on with another value of the option.
#[test]
fn a_run_goes_on_with_the_value_it_began_with() {
    let scene = scene(APART);
    scene.agent("T2", "exit 7");
    asked(&scene, "auto").exits(1);
    scene.usual_agent("T2");
    let resumed = scene.run(&["--resume", "--task-worktrees", "off"]).exits(0);
    resumed.silent_about("plan:");
    assert_eq!(scene.project.step("P1/SL-1.T1/T1")["attempts"], 1);
    scene.nothing_left();
    // The settings say it too, and the command line is stronger.
    scene.project.write(
        "piton.toml",
        &format!("[lanes]\ntask_worktrees = \"on\"\n{}", scene.project.read("piton.toml")),
    );
    scene.project.commit();
    let dry = scene.run(&["--dry-run", "--fresh"]).exits(0).stdout;
    assert!(dry.contains("P1/SL-1.T3/T3"), "{dry}");
    let off = scene.run(&["--dry-run", "--fresh", "--task-worktrees", "off"]).exits(0).stdout;
    assert!(!off.contains("SL-1.T"), "{off}");
}

/// Lost: whoever reads only the checkpoints would take a lane for started that has no place to work in.
#[test]
fn a_lane_has_started_when_the_worktrees_of_its_tasks_exist() {
    let scene = scene(APART);
    arm(&scene, "SL-1/tasks/T", false);
    let first = scene.project.finish(scene.command(PITON).args([
        "run",
        DOCUMENT,
        "--task-worktrees",
        "auto",
    ]));
    assert_eq!(first.code, 137, "{}\n{}", calls(&scene), first.stderr);
    assert!(scene.workspace("SL-1").join(".git").exists());
    assert_eq!(scene.stage_status("SL-1", "before_lane_start"), "ready");
    assert_eq!(scene.stage_status("SL-1", "after_lane_start"), "");
    scene.resume(&[]).exits(0);
    let at = |stage: &str| scene.record("SL-1", stage)["timestamp"].as_str().unwrap().to_owned();
    assert!(at("before_lane_start") <= at("after_lane_start"));
    assert!(at("after_lane_start") <= at("after_lane_tests"));
}

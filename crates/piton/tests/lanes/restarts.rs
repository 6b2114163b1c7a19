//! The machine restarts, or the repository goes to another one: files of a lane's worktree stay as
//! they are, but for those that a power cut tore.

use std::fs;
use std::path::PathBuf;

use super::by_hand::{in_workspace, project, run};
use super::common::{PITON, Project, wait_until};
use super::kills::{arm, calls};
use super::scene::{DOCUMENT, Scene, lane};

fn workspace(project: &Project, lane: &str) -> PathBuf {
    project.root().join(".worktrees/P1").join(lane)
}

/// The tree of base after a conflict was settled by hand, as Piton says, and `between` happened.
fn settled(between: impl FnOnce(&Project)) -> String {
    let after = "while [ \\\"$(git show main:a.txt)\\\" != A ]; do sleep 0.02; done";
    let project = project(&[
        ("A", "run = \"echo A > a.txt; echo other > other.txt\""),
        ("B", &format!("run = \"{after}; echo B > a.txt; echo two > two.txt\"")),
    ]);
    let said = run(&project).exits(4).stderr;
    let is_git = |text: &&str| text.starts_with("git -C ");
    let mut commands = said.split('`').filter(is_git).map(str::to_owned);
    let (rebase, go_on) = (commands.next().unwrap(), commands.next().unwrap());
    assert!(rebase.ends_with("rebase main") && go_on.ends_with("rebase --continue"), "{said}");
    project.sh(&rebase);
    fs::write(workspace(&project, "B").join("a.txt"), "AB\n").unwrap();
    in_workspace(&project, "B", &["add", "a.txt"]).exits(0);
    project.sh(&format!("GIT_EDITOR=true {go_on}")).exits(0);
    between(&project);
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!((&*project.read("a.txt"), &*project.read("other.txt")), ("AB\n", "other\n"));
    project.git(&["rev-parse", "main^{tree}"])
}

/// Lost: what a person settled, and the merged file of another lane, which base would not have any
/// more though the run is complete.
#[test]
fn a_conflict_settled_by_hand_is_merged_after_a_restart() {
    let as_ever = settled(|_| {});
    assert_eq!(settled(Project::reboot), as_ever);
    // The same where the worktree has to be made again.
    assert_eq!(settled(|project| fs::remove_dir_all(workspace(project, "B")).unwrap()), as_ever);
}

/// Lost: what a step had committed would be taken back in base.
#[test]
fn what_a_step_committed_is_there_after_a_restart() {
    let project = project(&[("L", "")]);
    let out = project.outside().display().to_string();
    let commits = "echo c > c.txt; git add c.txt; git commit -qm made";
    let once = format!("git log --format=%s | grep -q made || {{ {commits}; touch {out}/made; }}");
    let keys = format!("run = \"{once}; until [ -e {out}/go ]; do sleep 0.02; done\"");
    project.write("plan.toml", &format!("{}{keys}\n", project.read("plan.toml")));
    project.commit();
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    wait_until("the step committed", || project.outside().join("made").exists());
    driver.kill();
    project.reboot();
    fs::write(project.outside().join("go"), "").unwrap();
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.read("c.txt"), "c\n");
}

/// A lane whose step makes `w.txt` once, and fails until somebody made `more.txt`.
fn waits_for_a_person() -> Project {
    let step = "[ -e w.txt ] || echo w > w.txt; echo r > ran.txt; [ -e more.txt ]";
    let project = project(&[("L", &format!("run = \"{step}\""))]);
    run(&project).exits(1);
    project
}

/// Lost: what a person did in a lane's worktree, with nothing that could bring it back.
#[test]
fn what_a_person_did_in_a_lane_is_there_after_a_restart() {
    let project = waits_for_a_person();
    let at = |name: &str| workspace(&project, "L").join(name);
    fs::write(at("a.txt"), "edited\n").unwrap();
    fs::write(at("more.txt"), "new\n").unwrap();
    fs::remove_file(at("ran.txt")).unwrap();
    project.reboot();
    let said = project.piton(&["resume", "r"]).exits(0);
    assert!(!said.stderr.contains("restart"), "{}", said.stderr);
    assert_eq!((&*project.read("a.txt"), &*project.read("more.txt")), ("edited\n", "new\n"));
}

/// Lost: work that a checkpoint has, where a power cut left an empty file of it; or what was there
/// instead, if that was meant.
#[test]
fn torn_files_are_put_back_and_an_undo_brings_them_again() {
    let project = waits_for_a_person();
    let at = |name: &str| workspace(&project, "L").join(name);
    for torn in ["a.txt", "w.txt"] {
        fs::write(at(torn), "").unwrap();
    }
    fs::write(at("empty.txt"), "").unwrap();
    project.reboot();
    project.piton(&["resume", "r"]).exits(1).says("a.txt, w.txt").says("piton undo");
    assert_eq!(fs::read_to_string(at("a.txt")).unwrap(), "base\n");
    assert_eq!(fs::read_to_string(at("w.txt")).unwrap(), "w\n");
    assert_eq!(fs::read_to_string(at("empty.txt")).unwrap(), "");
    project.piton(&["undo", "r", "--yes"]).exits(0);
    assert_eq!(fs::read_to_string(at("a.txt")).unwrap(), "");
    assert_eq!(fs::read_to_string(at("w.txt")).unwrap(), "");
    // It is looked for once after each restart: what a person empties later is their own doing.
    project.piton(&["resume", "r"]).exits(1);
    assert_eq!(fs::read_to_string(at("w.txt")).unwrap(), "");
}

/// A torn file, and a driver that was killed before it had put that back.
fn killed_while_it_puts_back() -> (Scene, PathBuf) {
    let scene = Scene { project: waits_for_a_person() };
    let torn = workspace(&scene.project, "L").join("w.txt");
    fs::write(&torn, "").unwrap();
    scene.project.reboot();
    arm(&scene, "cat-file --batch-check", false);
    let killed = scene.project.finish(scene.command(PITON).args(["resume", "r"]));
    assert_eq!(killed.code, 137, "{}", calls(&scene));
    (scene, torn)
}

/// Lost: the other torn files, and the way back, if the driver is killed while it puts them back.
#[test]
fn putting_torn_files_back_is_finished_by_the_next_driver() {
    let (scene, torn) = killed_while_it_puts_back();
    let piton = |args: &[&str]| scene.project.finish(scene.command(PITON).args(args));
    assert_eq!(fs::read_to_string(&torn).unwrap(), "");
    piton(&["resume", "r"]).exits(1);
    assert_eq!(fs::read_to_string(&torn).unwrap(), "w\n");
    piton(&["undo", "r", "--yes"]).exits(0).says("the state before the restart");
    assert_eq!(fs::read_to_string(&torn).unwrap(), "");
}

/// Lost: what a person writes into a torn file after the driver that put it back was killed.
#[test]
fn a_torn_file_that_a_person_mended_meanwhile_is_left_alone() {
    let (scene, torn) = killed_while_it_puts_back();
    let piton = |args: &[&str]| scene.project.finish(scene.command(PITON).args(args));
    fs::write(&torn, "by hand\n").unwrap();
    piton(&["resume", "r"]).exits(1);
    assert_eq!(fs::read_to_string(&torn).unwrap(), "by hand\n");
}

/// Lost: files of base, if a worktree that was just made is torn before its lane has its first snapshot.
#[test]
fn a_worktree_that_no_snapshot_was_taken_of_is_put_back_from_its_commit() {
    let scene = Scene::of(&[lane("SL-1")]);
    arm(&scene, "piton: snapshot --stdin", false);
    let piton = |args: &[&str]| scene.project.finish(scene.command(PITON).args(args));
    assert_eq!(piton(&["run", DOCUMENT]).code, 137, "{}", calls(&scene));
    // The link by which git knows it is torn as well.
    for name in ["README", ".git"] {
        fs::write(scene.workspace("SL-1").join(name), "").unwrap();
    }
    scene.project.reboot();
    piton(&["resume"]).exits(0).says("README");
    assert_eq!(scene.project.read("README"), "a project\n");
    scene.nothing_left();
}

/// Lost: the work of the lane that was merged before, right after Piton itself put the next one on it.
#[test]
fn a_lane_that_piton_moved_keeps_its_files_after_a_restart() {
    for (pattern, after) in [("piton: move lane", false), ("piton: move lane", true)] {
        let scene = Scene::of(&[lane("SL-1"), lane("SL-2")]);
        arm(&scene, pattern, after);
        let piton = |args: &[&str]| scene.project.finish(scene.command(PITON).args(args));
        let first = piton(&["run", DOCUMENT]);
        assert_eq!(first.code, 137, "no `{pattern}`:\n{}\n{}", calls(&scene), first.stderr);
        scene.project.reboot();
        piton(&["resume"]).exits(0);
        assert!(scene.project.has("SL-1-01.txt") && scene.project.has("SL-2-01.txt"));
        scene.nothing_left();
    }
}

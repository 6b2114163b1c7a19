//! What snapshots of a lane's worktree leave out: it gets to base with the lane, or its worktree stays.

use std::fs;

use super::common::Project;
use super::scene::{DOCUMENT, LaneDoc, Scene, document, lane};

/// A repository with a limit for snapshots that a line exceeds, and one lane.
fn project(lane: &str) -> Project {
    let project = Project::new();
    project.write("piton.toml", "[snapshots]\nfile_max = \"500B\"\n");
    project.write("large.txt", &"large\n".repeat(100));
    project.write("plan.toml", &plan(lane));
    project.commit();
    project
}

fn plan(lane: &str) -> String {
    format!(
        "[[phase]]\nid = \"P1\"\n[[phase.lane]]\nid = \"L1\"\nisolation = \"worktree\"\n{lane}\n"
    )
}

fn worktrees(project: &Project) -> usize {
    project.git(&["worktree", "list"]).lines().count() - 1
}

/// Lost: a tracked file that is too large for a snapshot would be committed as deleted, and merged
/// away from base; and its tests, which saw it, would never count for the tree that has it.
#[test]
fn a_file_that_is_too_large_for_a_snapshot_is_part_of_the_commit() {
    let project = project("run = \"echo 1 > one.txt\"\ntest = \"test -s large.txt\"");
    project.piton(&["run", "plan.toml"]).exits(0);
    assert!(project.has("one.txt") && project.has("large.txt"));
    let changed = project.git(&["show", "--name-status", "--format=", "main"]);
    assert_eq!(changed.trim(), "A\tone.txt");
    assert_eq!(worktrees(&project), 0);
}

/// Lost: what a lane wrote, if it was more than a snapshot holds, would go with its worktree.
#[test]
fn a_large_file_that_a_lane_makes_or_changes_gets_to_base_tested() {
    let write = "seq 100 >> large.txt; seq 200 > new.txt; echo run >> $HOME/tests";
    let test = "grep -q 42 large.txt && test -s new.txt && echo test >> $HOME/tests";
    let project = project(&format!("run = \"{write}\"\ntest = \"{test}\""));
    project.piton(&["run", "plan.toml"]).exits(0);
    let changed = project.git(&["show", "--name-status", "--format=", "main"]);
    assert_eq!(changed.trim(), "M\tlarge.txt\nA\tnew.txt");
    let told = fs::read_to_string(project.outside().join("home/tests")).unwrap();
    assert_eq!(told, "run\ntest\n", "the tests ran once, on what is merged");
    assert_eq!(worktrees(&project), 0);
}

/// Lost: a change of a large file after the tests would be merged untested.
#[test]
fn a_large_file_that_base_changed_meanwhile_is_tested_with_the_lane() {
    let project = project("");
    let root = project.root().display().to_string();
    let run =
        format!("echo 1 > one.txt; cd {root} && seq 90 >> large.txt && git commit -qam mine; true");
    let test = "tail -n 1 large.txt >> $HOME/tests";
    project.write("plan.toml", &plan(&format!("run = \"{run}\"\ntest = \"{test}\"")));
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(0);
    let told = fs::read_to_string(project.outside().join("home/tests")).unwrap();
    assert_eq!(told, "large\n90\n");
    assert!(project.has("one.txt") && project.read("large.txt").ends_with("90\n"));
}

/// Lost: a repository that a step made would be deleted with the worktree, and no undo brings it back.
#[test]
fn a_worktree_with_a_repository_of_its_own_in_it_stays_and_is_named() {
    let nest = "git init -q nest; cd nest; echo precious > p; git add -A; git commit -qm p";
    let project = project(&format!("run = \"echo 1 > one.txt; {nest}\""));
    let said = project.piton(&["run", "plan.toml"]).exits(0).stderr;
    assert!(
        said.contains("its worktree has the only copy of nest (a repository of its own)"),
        "{said}"
    );
    let kept = project.root().join(".worktrees/P1/L1/nest/p");
    assert!(project.has("one.txt") && kept.exists());
    let status = project.piton(&["status"]).exits(0).stdout;
    assert!(status.contains("is left over: only it has its uncommitted changes"), "{status}");
    let said = project.piton(&["gc", "--yes"]).exits(0).stderr;
    assert!(said.contains("then `piton gc` removes the worktree"), "{said}");
    assert!(kept.exists());
    fs::remove_dir_all(project.root().join(".worktrees/P1/L1/nest")).unwrap();
    project.piton(&["gc", "--yes"]).exits(0);
    assert_eq!(worktrees(&project), 0);
    assert_eq!(project.git(&["branch", "--list", "lane/*"]), "");
}

/// Lost: base would name a commit of a submodule that was deleted with the worktree. One in which
/// nothing was done keeps no worktree.
#[test]
fn a_worktree_with_new_commits_in_a_submodule_stays() {
    let fills = "git -c protocol.file.allow=always submodule update --init";
    for (setup, work, stays) in [
        (fills, "cd mod && echo z > z && git add -A && git commit -qm z", 1),
        (fills, "echo 1 > 1", 0),
        ("true", "echo 1 > 1", 0),
        ("true", "echo 1 > 1; echo z > mod/z", 1),
    ] {
        let project = project("");
        let other = project.outside().join("other").display().to_string();
        project.sh(&format!(
            "git init -q {other} && cd {other} && echo m > m && git add -A && git commit -qm m"
        ));
        let allow = ["-c", "protocol.file.allow=always"];
        project.git(&[&allow[..], &["submodule", "--quiet", "add", &other, "mod"]].concat());
        project.write("plan.toml", &plan(&format!("setup = \"{setup}\"\nrun = \"{work}\"")));
        project.commit();
        let said = project.piton(&["run", "plan.toml"]).exits(0).stderr;
        let told = said.matches("P1/L1: submodules of its worktree are empty (mod)").count();
        assert_eq!(told, usize::from(setup != fills), "{setup}: {said}");
        assert_eq!(said.contains("git submodule update --init"), setup != fills, "{said}");
        assert_eq!(worktrees(&project), stays, "{work}");
        project.piton(&["gc", "--yes"]).exits(0);
        assert_eq!(project.has(".worktrees/P1/L1/mod/z"), stays == 1);
    }
}

/// Lost: both sides of a conflict that a step left would be merged, markers and all.
#[test]
fn a_merge_that_a_step_left_undecided_is_a_conflict() {
    let project =
        project("run = \"echo l > a.txt; git add a.txt; git commit -qm l; git merge q || true\"");
    project.git(&["switch", "-qc", "q"]);
    project.write("a.txt", "q\n");
    project.commit();
    project.git(&["switch", "-q", "main"]);
    let said = project.piton(&["run", "plan.toml"]).exits(4).stderr;
    assert!(said.contains("not resolved in a.txt (it has conflict markers)"), "{said}");
    assert!(!project.has("a.txt"), "nothing of it is in base");
}

/// Lost: a lane whose branch somebody deleted could neither go on nor be given up.
#[test]
fn a_branch_that_was_deleted_under_its_worktree_is_made_again() {
    for command in [&["resume"][..], &["rollback", "--yes"], &["abort", "--yes"]] {
        let project = project("run = \"echo 1 > one.txt; test -e $HOME/ok\"");
        project.piton(&["run", "plan.toml"]).exits(1);
        project.git(&["update-ref", "-d", "refs/heads/lane/P1/L1"]);
        fs::write(project.outside().join("home/ok"), "").unwrap();
        project.piton(command).exits(0);
        assert_eq!(project.has("one.txt"), command[0] == "resume", "{command:?}");
    }
}

/// Lost: the branch of a lane whose work another one brought to base first would stay for good, and
/// the lane would find its old work when it starts over.
#[test]
fn a_lane_whose_work_is_in_base_already_leaves_no_branch() {
    let project = Project::new();
    let lane = |id: &str, first: &str| {
        format!(
            "[[phase.lane]]\nid = \"{id}\"\nisolation = \"worktree\"\n\
             run = \"{first} test -e same.txt && echo {id} >> $HOME/found; echo same > same.txt\"\n"
        )
    };
    let root = project.root().display().to_string();
    let until = format!("while [ ! -e {root}/same.txt ]; do sleep 0.02; done;");
    let (a, b) = (lane("A", "rm -f x;"), lane("B", &until));
    project.write("plan.toml", &format!("[[phase]]\nid = \"P1\"\n{a}{b}"));
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(project.git(&["branch", "--list", "lane/*"]), "");
    project.piton(&["rollback", "--yes"]).exits(0);
    project.write("user.txt", "mine\n");
    project.commit();
    project.piton(&["resume"]).exits(0);
    assert!(!project.outside().join("home/found").exists(), "each began from base");
    assert_eq!(project.git(&["branch", "--list", "lane/*"]), "");
}

/// Lost: what a lane wrote into its own phase document would be in no commit and no snapshot.
#[test]
fn an_edit_of_the_phase_document_is_the_lanes_work_and_gates_are_ticked_on_top() {
    let gates = "## Interface Freeze Gates\n\n- [ ] IF-0-P1-API\n";
    let provides = LaneDoc { index: &["Provides: IF-0-P1-API"], ..lane("SL-1") };
    let scene = Scene::with(&document(gates, &[provides], ""), "");
    scene.agent("SL-1", &format!("echo noted >> {DOCUMENT}; echo x > SL-1-01.txt"));
    scene.run(&[]).exits(0);
    let committed = scene.project.git(&["show", &format!("main:{DOCUMENT}")]);
    assert!(committed.ends_with("noted\n") && committed.contains("- [ ] IF-0"), "{committed}");
    let here = scene.project.read(DOCUMENT);
    assert!(here.ends_with("noted\n") && here.contains("- [x] IF-0"), "{here}");
    scene.nothing_left();
}

/// Lost: a lane would begin without files that are there, or with older ones, and nobody would know.
#[test]
fn it_is_said_which_uncommitted_files_a_lane_begins_without() {
    let project = project("run = \"echo 1 > one.txt; exit 1\"");
    project.write("other.txt", &"other\n".repeat(100));
    project.commit();
    project.write("large.txt", &"changed\n".repeat(100));
    project.write("mine.txt", "mine\n");
    project.sh("git init -q nest && cd nest && git commit -q --allow-empty -m x").exits(0);
    let said = project.piton(&["run", "plan.toml", "--seed-dirty"]).exits(1);
    let said = said.says("(from main ").says("without these of your uncommitted files");
    said.says("large.txt (larger").says("nest (a repository").silent_about("other.txt (");
    project.piton(&["status"]).exits(0).says("without these of your uncommitted files");
}

/// Lost: somebody's uncommitted changes leave the work tree, and nobody says where they are.
#[test]
fn it_is_said_where_uncommitted_changes_are_that_a_lane_began_with() {
    let project = project("run = \"echo 1 > one.txt\"");
    project.write("mine.txt", "mine\n");
    project.piton(&["run", "plan.toml", "--seed-dirty"]).exits(0);
    assert!(project.has("mine.txt") && project.has("one.txt"));
    let said = project.piton(&["rollback", "--yes"]).exits(0).stderr;
    assert!(said.contains("it started with your uncommitted changes"), "{said}");
    let to = project.outside().join("to").display().to_string();
    project.piton(&["restore", "P1/L1@before_lane_start", "--to", &to]).exits(0);
    assert_eq!(fs::read_to_string(project.outside().join("to/mine.txt")).unwrap(), "mine\n");
    let said = project.piton(&["undo", "--yes"]).exits(0).stderr;
    assert!(!said.contains("it started with your uncommitted"), "they come back: {said}");
    assert!(project.has("mine.txt"));
}

/// Lost: what can't be committed would be left out without a word, and go with the worktree.
#[test]
fn a_lane_with_work_that_cannot_be_committed_waits_until_it_can() {
    // Too large for a snapshot, and not.
    for lines in [300, 3] {
        let run = format!("seq {lines} > new.big");
        let project = project(&format!("run = \"{run}\"\ntest = \"test -s new.big\""));
        project.write(".gitattributes", "*.big filter=broken\n");
        project.git(&["config", "filter.broken.required", "true"]);
        project.git(&["config", "filter.broken.smudge", "cat"]);
        project.git(&["config", "filter.broken.clean", "false"]);
        project.commit();
        let said = project.piton(&["run", "plan.toml"]).exits(4);
        said.says("some of its files can't be committed").says("new.big");
        assert!(project.has(".worktrees/P1/L1/new.big"));
        project.git(&["config", "filter.broken.clean", "cat"]);
        project.piton(&["resume"]).exits(0);
        assert_eq!(project.read("new.big").lines().count(), lines);
        assert_eq!(worktrees(&project), 0);
    }
}

/// Lost: a name that git refuses would end the driver with git's own words, or the file would go with
/// the worktree.
#[test]
fn a_name_that_git_refuses_holds_the_lane_up_until_it_is_changed() {
    let project =
        project("run = \"echo 1 > one.txt; echo x > git~1; mkdir .GIT; echo y > .GIT/y\"");
    let said = project.piton(&["run", "plan.toml"]).exits(4);
    said.says("git~1 (git allows no such name)").says(".GIT (git allows").says("rename them");
    let workspace = project.root().join(".worktrees/P1/L1");
    fs::rename(workspace.join("git~1"), workspace.join("two.txt")).unwrap();
    fs::remove_dir_all(workspace.join(".GIT")).unwrap();
    project.piton(&["resume"]).exits(0);
    assert!(project.has("one.txt") && project.has("two.txt"));
    assert_eq!(worktrees(&project), 0);
}

/// Lost: an artifact that success was told of, and that git ignores, would go with its worktree.
#[test]
fn an_artifact_that_git_ignores_keeps_its_worktree() {
    for more in ["; echo s > src", ""] {
        let run = format!("mkdir -p out; echo 1 > out/bin{more}");
        let project =
            project(&format!("run = \"{run}\"\nartifacts = [\"out/bin\", \"large.txt\"]"));
        project.write(".gitignore", "out/\n");
        project.commit();
        let held = "its worktree has the only copy of out/bin, an artifact that git ignores";
        project.piton(&["run", "plan.toml"]).exits(0).says(held);
        assert_eq!(worktrees(&project), 1);
        let left = "only it has out/bin, an artifact that git ignores";
        project.piton(&["status"]).exits(0).says(left);
        project.piton(&["gc", "--yes"]).exits(0);
        assert_eq!(worktrees(&project), 1, "what nobody moved is not deleted");
        let list = project.git(&["worktree", "list", "--porcelain"]);
        let dir = list.lines().filter_map(|l| l.strip_prefix("worktree ")).nth(1).unwrap();
        fs::remove_file(std::path::Path::new(dir).join("out/bin")).unwrap();
        project.piton(&["gc", "--yes"]).exits(0);
        assert_eq!(worktrees(&project), 0);
    }
}

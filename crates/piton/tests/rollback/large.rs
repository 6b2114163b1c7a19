//! Files that are too large for a snapshot, in a lane's worktree that goes back.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::Project;
use crate::killed::{git_that_kills, killed_at};
use crate::tree::{same, tree};

/// A repository with a limit that one file exceeds, and one lane.
fn project(lane: &str) -> Project {
    let project = Project::with_plan(&format!(
        "[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"A\"\nisolation = \"worktree\"\n{lane}\n"
    ));
    project.write("piton.toml", "[snapshots]\nfile_max = \"500B\"\n");
    project.write("large.txt", &"large\n".repeat(100));
    project.write("small.txt", "small\n");
    project.commit();
    project
}

fn changed(project: &Project) -> String {
    project.git(&["show", "--name-status", "--format=", "main"]).trim().to_owned()
}

/// The files of that name below a folder.
fn named(dir: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(named(&path, name));
        } else if path.ends_with(name) {
            found.push(path);
        }
    }
    found
}

/// Changes a large file, makes one, and makes a small one large.
const SPOIL: &str = "echo junk >> large.txt; seq 300 > new.txt; seq 400 > small.txt";

/// If this fails, what a failed attempt did to large files is merged.
#[test]
fn a_reset_takes_back_what_a_failed_attempt_did_to_large_files() {
    let run = format!("if [ $PITON_ATTEMPT = 1 ]; then {SPOIL}; exit 1; fi; echo w > work.txt");
    let project =
        project(&format!("retries = 1\non_retry = \"reset\"\ntest = \"true\"\nrun = \"{run}\""));
    let said = project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(changed(&project), "A\twork.txt");
    assert_eq!(project.read("large.txt"), "large\n".repeat(100));
    // So it is where there was none before.
    project.remove("large.txt");
    project.remove("work.txt");
    project.commit();
    project.piton(&["run", "plan.toml", "--fresh"]).exits(0);
    assert_eq!(changed(&project), "A\twork.txt");
    // Nobody else has it: it is kept, and told where.
    said.says("new.txt");
    let kept = named(&project.state_dir(), "new.txt");
    assert!(fs::read_to_string(&kept[0]).unwrap().ends_with("300\n"), "{kept:?}");
}

/// If this fails, a large file that a step before made is lost, or spoilt by the one that failed.
#[test]
fn a_reset_leaves_what_steps_before_did_to_large_files() {
    let spoil = "echo junk >> large.txt; echo junk >> own.txt";
    let run = format!("if [ $PITON_ATTEMPT = 1 ]; then {spoil}; exit 1; fi; echo w > work.txt");
    let project = project(&format!(
        "retries = 1\non_retry = \"reset\"\nsteps = [\n\
         {{ id = \"one\", run = \"seq 200 > own.txt; echo more >> large.txt\" }},\n\
         {{ id = \"two\", run = \"{run}\", test = \"true\" }},\n]"
    ));
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(project.read("large.txt"), "large\n".repeat(100) + "more\n");
    assert!(project.read("own.txt").ends_with("200\n"));
}

/// If this fails, a lane that starts over begins with large files of the attempt that was taken back.
#[test]
fn a_rollback_to_the_start_takes_large_files_back() {
    let run =
        format!("test -e $HOME/ok || {{ {SPOIL}; rm piton.toml; exit 1; }}; echo w > work.txt");
    let project = project(&format!("test = \"true\"\nrun = \"{run}\""));
    project.piton(&["run", "plan.toml"]).exits(1);
    project.piton(&["rollback", "--yes"]).exits(0);
    let room = project.root().join(".worktrees/P/A");
    assert_eq!(fs::read_to_string(room.join("large.txt")).unwrap(), "large\n".repeat(100));
    assert_eq!(fs::read_to_string(room.join("small.txt")).unwrap(), "small\n");
    assert!(!room.join("new.txt").exists());
    assert_eq!(named(&project.state_dir(), "new.txt").len(), 1);
    fs::write(project.outside().join("home/ok"), "").unwrap();
    project.piton(&["resume"]).exits(0);
    assert_eq!(changed(&project), "A\twork.txt");
}

/// If this fails, an undo leaves large files of a lane's worktree in the run's folder.
#[test]
fn an_undo_brings_large_files_back_that_a_rollback_set_aside() {
    let run = format!("{SPOIL}; seq 500 > deep; exit 1");
    let project = project(&format!("run = \"{run}\""));
    project.piton(&["run", "plan.toml"]).exits(1);
    let room = project.root().join(".worktrees/P/A");
    let before = tree(&room);
    project.piton(&["rollback", "--yes"]).exits(0);
    let back = tree(&room);
    assert_ne!(before, back);
    project.piton(&["rollback", "--yes"]).exits(0).says("nothing to roll back");
    let said = project.piton(&["undo", "--dry-run"]).exits(0);
    said.says("new.txt (comes back from").silent_about("stays away");
    for _ in 0..2 {
        project.piton(&["undo", "--yes"]).exits(0);
        same(&tree(&room), &before);
        project.piton(&["undo", "--yes"]).exits(0);
        same(&tree(&room), &back);
    }
    // What was made since is kept too.
    fs::write(room.join("new.txt"), "since\n".repeat(200)).unwrap();
    let since = tree(&room);
    project.piton(&["undo", "--yes"]).exits(0);
    same(&tree(&room), &before);
    project.piton(&["undo", "--yes"]).exits(0);
    same(&tree(&room), &since);
}

/// If this fails, an undo moves a file away that lies behind a link, outside of the worktree.
#[test]
fn what_lies_behind_a_link_is_left_alone() {
    let project = project("run = \"mkdir -p cache; seq 700 > cache/model.bin; exit 1\"");
    project.piton(&["run", "plan.toml"]).exits(1);
    let room = project.root().join(".worktrees/P/A");
    project.piton(&["rollback", "--yes"]).exits(0);
    let shared = project.outside().join("shared");
    fs::create_dir_all(&shared).unwrap();
    fs::write(shared.join("model.bin"), "shared\n".repeat(200)).unwrap();
    let _ = fs::remove_dir(room.join("cache"));
    std::os::unix::fs::symlink(&shared, room.join("cache")).unwrap();
    let undone = project.piton(&["undo", "--yes"]);
    let there = fs::read_to_string(shared.join("model.bin")).unwrap();
    assert_eq!(there, "shared\n".repeat(200), "{undone:?}");
    if undone.code == 0 {
        let own = fs::read_to_string(room.join("cache/model.bin")).unwrap();
        assert!(own.ends_with("700\n") && !room.join("cache").is_symlink(), "{undone:?}");
    }
}

/// If this fails, a large file that git has is deleted because what was set aside is gone.
#[test]
fn what_was_set_aside_and_is_gone_refuses_the_undo() {
    let project = project("run = \"echo junk >> large.txt; exit 1\"");
    project.piton(&["run", "plan.toml"]).exits(1);
    let room = project.root().join(".worktrees/P/A");
    project.piton(&["rollback", "--yes"]).exits(0);
    project.piton(&["undo", "--yes"]).exits(0);
    let before = tree(&room);
    for held in named(&project.state_dir(), "large.txt") {
        fs::remove_file(held).unwrap();
    }
    project.piton(&["undo", "--dry-run"]).exits(1).says("is not there any more");
    project.piton(&["undo", "--yes"]).exits(1).says("is not there any more");
    same(&tree(&room), &before);
}

/// If this fails, a rollback or undo that is killed loses a large file.
#[test]
fn killed_anywhere_large_files_are_where_they_belong() {
    let project = project(&format!("run = \"{SPOIL}; exit 1\""));
    git_that_kills(&project);
    project.piton(&["run", "plan.toml"]).exits(1);
    let room = project.root().join(".worktrees/P/A");
    let before = tree(&room);
    project.piton(&["rollback", "--yes"]).exits(0);
    let back = tree(&room);
    project.piton(&["undo", "--yes"]).exits(0);
    let mut meanwhile = 0;
    for call in (2..).step_by(13) {
        let (said, killed) = killed_at(&project, call, &["rollback", "--yes"]);
        if !killed {
            said.exits(0);
            assert!(call > 9, "only {call} calls");
            let kept = named(&project.state_dir(), "new.txt").into_iter();
            let kept = kept.filter(|p| fs::read_to_string(p).unwrap().starts_with("meanwhile"));
            assert!(meanwhile > 0, "nobody wrote in between");
            assert_eq!(kept.count(), meanwhile);
            return;
        }
        project.kill_all();
        project.piton(&["rollback", "--yes"]).exits(0);
        same(&tree(&room), &back);
        killed_at(&project, call, &["undo", "--yes"]);
        project.kill_all();
        if !room.join("new.txt").exists() && call % 2 == 0 {
            // Nobody knows of what is written now.
            fs::write(room.join("new.txt"), "meanwhile\n".repeat(100)).unwrap();
            meanwhile += 1;
        }
        let mut tries = 0;
        while tree(&room) != before {
            tries += 1;
            assert!(tries < 4, "killed at call {call}");
            project.piton(&["undo", "--yes"]).exits(0);
        }
    }
}

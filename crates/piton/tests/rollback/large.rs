//! Files that are too large for a snapshot, in a lane's worktree that goes back.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::Project;
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

/// If this fails, a rollback replaces a large file that nothing can bring back, or a lane that starts
/// over begins with large files of the attempt that was rolled back.
#[test]
fn a_rollback_refuses_to_replace_large_files_and_restores_those_of_git() {
    let run =
        format!("test -e $HOME/ok || {{ {SPOIL}; rm piton.toml; exit 1; }}; echo w > work.txt");
    let project = project(&format!("test = \"true\"\nrun = \"{run}\""));
    project.piton(&["run", "plan.toml"]).exits(1);
    let workspace = project.root().join(".worktrees/P/A");
    let before = tree(&workspace);
    project.piton(&["rollback", "--dry-run"]).exits(1).says("too large for a snapshot");
    project.piton(&["rollback", "--yes"]).exits(1).says("new.txt");
    same(&tree(&workspace), &before);
    for name in ["large.txt", "new.txt", "small.txt"] {
        fs::remove_file(workspace.join(name)).unwrap();
    }
    project.piton(&["rollback", "--yes"]).exits(0);
    assert_eq!(fs::read_to_string(workspace.join("large.txt")).unwrap(), "large\n".repeat(100));
    assert_eq!(fs::read_to_string(workspace.join("small.txt")).unwrap(), "small\n");
    assert!(!workspace.join("new.txt").exists());
    fs::write(project.outside().join("home/ok"), "").unwrap();
    project.piton(&["resume"]).exits(0);
    assert_eq!(changed(&project), "A\twork.txt");
}

//! Odd repositories: each works, in place and in a worktree, or is refused with a reason.
//!
//! What is the user's in the git folder stays as it was, except that a merge moves base.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::common::{Output, PITON, Project};
use crate::tree::{mine, same, tree};

/// Changes a file and makes one; fails, so that there is something to take back.
const IN_PLACE: &str = r#"
[[phase]]
id = "P"
run = "echo changed >> edited.txt; echo made > made.txt; exit 1"
"#;

const WORKTREE: &str = r#"
[[phase]]
id = "P"
lane = [{ id = "A", isolation = "worktree", run = "echo changed >> edited.txt; echo made > made.txt" }]
"#;

fn project(plan: &str) -> Project {
    let project = Project::with_plan(plan);
    project.write("edited.txt", "first\n");
    project
}

/// Runs in place, goes back and forth, and compares byte for byte.
#[track_caller]
fn works_in_place(project: &Project) {
    project.write("plan.toml", IN_PLACE);
    let (start, own) = (tree(project.root()), mine(project));
    project.piton(&["run", "plan.toml", "--fresh", "--yes"]).exits(1);
    let failed = tree(project.root());
    assert_ne!(failed, start);
    project.piton(&["rollback", "--yes"]).exits(0);
    same(&tree(project.root()), &start);
    project.piton(&["undo", "--yes"]).exits(0);
    same(&tree(project.root()), &failed);
    assert_eq!(mine(project), own);
    project.piton(&["rollback", "--yes"]).exits(0);
    same(&tree(project.root()), &start);
}

/// Runs a lane in a worktree through to base, and takes it back again.
#[track_caller]
fn works_in_a_worktree(project: &Project) {
    project.write("plan.toml", WORKTREE);
    project.commit();
    let config = fs::read(project.root().join(".git/config")).unwrap();
    let start = tree(project.root());
    project.piton(&["run", "plan.toml", "--fresh", "--yes"]).exits(0);
    assert_eq!(project.read("made.txt"), "made\n");
    assert!(project.read("edited.txt").ends_with("changed\n") || project.has(".gitattributes"));
    let dirt = project.git(&["status", "--porcelain", "--", ".", ":!.claude"]);
    assert_eq!(dirt.trim(), "", "base follows");
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
    project.piton(&["rollback", "--yes"]).exits(0);
    same(&tree(project.root()), &start);
    assert_eq!(fs::read(project.root().join(".git/config")).unwrap(), config);
}

#[track_caller]
fn works(project: &Project) {
    works_in_place(project);
    works_in_a_worktree(project);
}

#[track_caller]
fn refused(said: Output, what: &str) {
    assert!([2, 4].contains(&said.code), "it is refused: {said:?}");
    said.says(what);
}

/// If this fails, names that people give their files break runs.
#[test]
fn links_blanks_and_letters_of_all_kinds() {
    let project = project(IN_PLACE);
    project.write("ein Ordner/naïve ünïcode 日本.txt", "x");
    project.write("quote\"d 'and' $HOME.txt", "x");
    project.write("new\nline.txt", "x");
    project.write("-rf", "x");
    symlink("nowhere", project.root().join("dangling")).unwrap();
    symlink("ein Ordner", project.root().join("to a folder")).unwrap();
    symlink("/etc/hostname", project.root().join("absolute")).unwrap();
    project.commit();
    works(&project);
}

/// If this fails, line endings are changed by a rollback.
#[test]
fn line_endings_that_git_converts() {
    let project = project(IN_PLACE);
    project.write(".gitattributes", "*.crlf text eol=crlf\n*.txt text\n");
    project.git(&["config", "core.autocrlf", "true"]);
    project.write("dos.crlf", "a\r\nb\r\n");
    project.write("mixed.txt", "a\r\nb\n");
    project.commit();
    project.write("unix-although.crlf", "a\nb\n");
    works_in_place(&project);
    project.remove("unix-although.crlf");
    let start = tree(project.root());
    project.write("plan.toml", WORKTREE);
    project.commit();
    project.piton(&["run", "plan.toml", "--fresh", "--yes"]).exits(0);
    assert!(project.read("made.txt").starts_with("made"));
    let dos = std::path::Path::new("dos.crlf");
    assert_eq!(tree(project.root()).get(dos), start.get(dos));
}

/// If this fails, files behind a filter come back as pointers, or not at all.
#[test]
fn filters_that_clean_and_smudge() {
    let project = project(IN_PLACE);
    project.write(".gitattributes", "*.big filter=rot\n");
    project.git(&["config", "filter.rot.clean", "tr a-z n-za-m"]);
    project.git(&["config", "filter.rot.smudge", "tr a-z n-za-m"]);
    project.git(&["config", "filter.rot.required", "true"]);
    project.write("data.big", "hello\n");
    project.commit();
    assert_eq!(project.git(&["cat-file", "-p", "HEAD:data.big"]), "uryyb\n");
    works(&project);
    assert_eq!(project.read("data.big"), "hello\n");
}

/// If this fails, a filter that is not installed corrupts files.
#[test]
fn a_required_filter_that_is_missing() {
    let project = project(WORKTREE);
    project.write("data.big", "data\n");
    project.commit();
    project.write(".gitattributes", "*.big filter=absent\n");
    project.git(&["add", ".gitattributes"]);
    project.git(&["commit", "--quiet", "-m", "attributes"]);
    project.git(&["config", "filter.absent.smudge", "no-such-program"]);
    project.git(&["config", "filter.absent.clean", "no-such-program"]);
    project.git(&["config", "filter.absent.required", "true"]);
    refused(project.piton(&["run", "plan.toml"]), "no-such-program");
}

/// If this fails, a sparse checkout is filled, or its absent files are taken for deleted.
#[test]
fn a_sparse_checkout() {
    let project = project(IN_PLACE);
    project.write("inside/a.txt", "a");
    project.write("outside/b.txt", "b");
    project.commit();
    project.git(&["sparse-checkout", "set", "--cone", "inside"]);
    assert!(!project.has("outside/b.txt"));
    works_in_place(&project);
    assert!(!project.has("outside/b.txt"));
    project.write("plan.toml", WORKTREE);
    project.commit();
    project.piton(&["run", "plan.toml", "--fresh", "--yes"]).exits(0);
    assert_eq!(project.read("made.txt"), "made\n");
    assert!(!project.has("outside/b.txt"), "it stays sparse");
    assert_eq!(project.git(&["cat-file", "-p", "HEAD:outside/b.txt"]), "b");
}

/// If this fails, a repository within the project is swallowed or emptied.
#[test]
fn a_nested_repository() {
    let project = project(IN_PLACE);
    project.commit();
    project.sh("git init -q nested && echo own > nested/own.txt").exits(0);
    project.write("plan.toml", IN_PLACE);
    let start = tree(project.root());
    project.piton(&["run", "plan.toml"]).exits(1);
    project.piton(&["status"]).exits(0).says("nested");
    project.write("nested/later.txt", "later");
    project.piton(&["rollback", "--exact", "--yes"]).exits(0);
    assert_eq!(project.read("nested/later.txt"), "later", "its files are its own");
    project.remove("nested/later.txt");
    same(&tree(project.root()), &start);
}

/// If this fails, projects with submodules lose the commits they are at.
#[test]
fn submodules() {
    let project = project(IN_PLACE);
    project.commit();
    project.sh("git init -q ../library && cd ../library && echo l > l.txt && git add . && git commit -qm l").exits(0);
    let add =
        ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../library", "lib"];
    let url = project.outside().join("library");
    let mut add = add.to_vec();
    add[5] = url.to_str().unwrap();
    project.git(&add);
    project.commit();
    works_in_place(&project);
    assert_eq!(project.read("lib/l.txt"), "l\n");
    project.write("plan.toml", WORKTREE);
    project.commit();
    let said = project.piton(&["run", "plan.toml", "--fresh", "--yes"]);
    match said.code {
        0 => assert_eq!(project.read("made.txt"), "made\n"),
        _ => refused(said, "submodule"),
    }
    assert_eq!(project.read("lib/l.txt"), "l\n");
}

/// If this fails, only a checked-out branch can be worked on.
#[test]
fn a_detached_head() {
    let project = project(IN_PLACE);
    project.commit();
    project.git(&["checkout", "--quiet", "--detach"]);
    works_in_place(&project);
    project.write("plan.toml", WORKTREE);
    project.commit();
    refused(project.piton(&["run", "plan.toml", "--fresh", "--yes"]), "detached");
}

/// If this fails, a project has to be committed before Piton is of use.
#[test]
fn no_commit_yet() {
    let project = project(IN_PLACE);
    works_in_place(&project);
    project.write("plan.toml", WORKTREE);
    refused(project.piton(&["run", "plan.toml", "--fresh", "--yes"]), "has no commits");
}

/// A command without an identity in the environment; the machine's name is no identity either.
fn anonymous(project: &Project, args: &[&str]) -> Output {
    let mut command = project.command(PITON);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env_remove(format!("GIT_{who}_NAME")).env_remove(format!("GIT_{who}_EMAIL"));
    }
    project.finish(command.args(args))
}

/// If this fails, a fresh machine or a container can't finish a lane.
#[test]
fn no_identity() {
    let project = project(WORKTREE);
    project.git(&["config", "user.useConfigOnly", "true"]);
    project.commit();
    anonymous(&project, &["run", "plan.toml"]).exits(0);
    assert_eq!(project.read("made.txt"), "made\n");
    anonymous(&project, &["rollback", "--yes"]).exits(0);
    assert!(!project.has("made.txt"));
    anonymous(&project, &["undo", "--yes"]).exits(0);
    assert!(project.has("made.txt"));
}

/// If this fails, hooks made for people stop or change our internal commits.
#[test]
fn hooks_that_fail() {
    let project = project(IN_PLACE);
    project.commit();
    let names =
        ["pre-commit", "commit-msg", "post-checkout", "reference-transaction", "post-merge"];
    for hook in names {
        let path = format!(".git/hooks/{hook}");
        project.write(&path, "#!/bin/sh\necho ran >> \"$HOME/hooks-ran\"\nexit 1\n");
        let path = project.root().join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    works_in_place(&project);
    let hooks = project.root().join(".git/hooks");
    assert!(!project.outside().join("home/hooks-ran").exists());
    fs::rename(&hooks, project.outside().join("hooks")).unwrap();
    project.write("plan.toml", WORKTREE);
    project.commit();
    fs::rename(project.outside().join("hooks"), &hooks).unwrap();
    project.piton(&["run", "plan.toml", "--fresh", "--yes"]).exits(0);
    project.piton(&["rollback", "--yes"]).exits(0);
    assert!(!project.outside().join("home/hooks-ran").exists(), "none of them ran");
}

/// If this fails, a git command that a person has open stops a run, or loses its lock.
#[test]
fn a_lock_on_the_index() {
    let project = project(IN_PLACE);
    project.commit();
    project.write(".git/index.lock", "held");
    works_in_place(&project);
    assert_eq!(project.read(".git/index.lock"), "held");
    project.remove(".git/index.lock");
    project.write("plan.toml", WORKTREE);
    project.commit();
    project.write(".git/index.lock", "held");
    let said = project.piton(&["run", "plan.toml", "--fresh", "--yes"]);
    assert_ne!(said.code, 0, "base is not moved under a lock");
    said.says("index.lock");
    assert_eq!(project.read(".git/index.lock"), "held");
    project.remove(".git/index.lock");
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.read("made.txt"), "made\n");
}

fn initialised(option: &str) -> Option<Project> {
    let project = Project::without_git("repo");
    let made = project.sh(&format!("git init --quiet -b main {option}")).code == 0;
    project.write("edited.txt", "first\n");
    // A git without that format has nothing to be tested.
    made.then_some(project)
}

/// If this fails, repositories of the new object format are damaged, or nobody knows why they are
/// refused.
#[test]
fn sha256() {
    if let Some(project) = initialised("--object-format=sha256") {
        project.write("plan.toml", IN_PLACE);
        project.commit();
        let said = project.piton(&["run", "plan.toml"]);
        refused(said.clone(), "sha256");
        said.says("snapshots.enabled");
        project.write("piton.toml", "[snapshots]\nenabled = false\n");
        project.piton(&["run", "plan.toml", "--fresh", "--yes"]).exits(1).says("failed");
        project.write("plan.toml", WORKTREE);
        project.commit();
        refused(project.piton(&["run", "plan.toml", "--fresh", "--yes"]), "sha256");
    }
}

/// If this fails, repositories of the new ref format are out.
#[test]
fn reftable() {
    if let Some(project) = initialised("--ref-format=reftable") {
        project.commit();
        works(&project);
    }
}

/// If this fails, a home folder under git is copied file by file.
#[test]
fn the_home_folder() {
    let project = project(IN_PLACE);
    project.commit();
    let mut run = project.command(PITON);
    let said = project.finish(run.args(["run", "plan.toml"]).env("HOME", project.root()));
    refused(said.clone(), "home");
    said.says("snapshots.enabled");
    project.write("piton.toml", "[snapshots]\nenabled = false\n");
    let mut run = project.command(PITON);
    let run = run.args(["run", "plan.toml", "--fresh", "--yes"]).env("HOME", project.root());
    project.finish(run).exits(1).says("failed");
}

/// If this fails, a project of a million files stands still without a word.
#[test]
fn too_many_files() {
    let project = project(IN_PLACE);
    (0..20).for_each(|n| project.write(&format!("many/{n}.txt"), "x"));
    project.write("piton.toml", "[snapshots]\nfiles_max = 10\n");
    project.commit();
    refused(project.piton(&["run", "plan.toml"]), "files_max");
    project.write("piton.toml", "[snapshots]\nfiles_max = 100\n");
    project.piton(&["resume"]).exits(1).says("failed");
}

/// If this fails, a bare repository is written into.
#[test]
fn a_bare_repository() {
    let project = Project::without_git("repo");
    project.git(&["init", "--quiet", "--bare", "-b", "main"]);
    project.write("plan.toml", WORKTREE);
    let said = project.piton(&["run", "plan.toml"]);
    assert_ne!(said.code, 0);
    let told = said.stderr.contains("bare") || said.stderr.contains("git");
    assert!(told, "{said:?}");
}

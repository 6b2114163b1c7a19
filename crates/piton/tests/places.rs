//! Where a project lies, and from where it is looked at: one ledger, found from everywhere.
//!
//! Paths with blanks, subfolders, linked worktrees, no git at all, no commit yet, and the git
//! commands that sweep a work tree.

mod common;

use common::Project;
use piton_core::event::Event;

const PLAN: &str = r#"
[[phase]]
id = "P1"
run = "pwd -P > where.txt; echo one >> ran.txt"

[[phase]]
id = "P2"
gate = "Go"
run = "echo two >> ran.txt"
"#;

/// If this fails, whoever keeps projects in "My Documents" can't use Piton.
#[test]
fn a_path_with_blanks_and_other_letters_is_a_path() {
    let project = Project::without_git("Öffentlich und 'quer' \"日本\" $HOME");
    project.git(&["init", "--quiet"]);
    project.write("pläne/mein plan.toml", PLAN);
    project.piton(&["run", "pläne/mein plan.toml"]).exits(3);
    project.piton(&["approve", "P2"]).exits(0);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
    assert_eq!(project.read("where.txt").trim_end(), project.root().to_str().unwrap_or_default());
    project.piton(&["log"]).exits(0);
    project.piton(&["doctor"]).exits(0);
}

/// If this fails, worktrees are made in a folder of another name, and hints lead nowhere.
#[test]
fn a_path_that_is_no_text_is_refused_before_anything_is_made() {
    let project = Project::with_plan(PLAN);
    let line = "odd=$(printf 'odd\\377'); mkdir \"$odd\" && cp plan.toml \"$odd\" && cd \"$odd\" && \
                git init -q && $PROGRAM run plan.toml; code=$?; ls -A; exit $code";
    let said = project.sh(line).exits(4);
    said.says("is not valid UTF-8").says("rename the folder").silent_about("ran.txt");
}

/// If this fails, a person in a subfolder gets a second, empty ledger.
#[test]
fn everything_is_found_from_a_subfolder() {
    let project = Project::with_plan(PLAN);
    project.write("a/b/keep", "");
    let deep = project.root().join("a/b");
    project.piton_in(&deep, &["run", "../../plan.toml"]).exits(3);
    assert_eq!(project.read("where.txt").trim_end(), project.root().to_str().unwrap_or_default());
    let json = project.piton_in(&deep, &["status", "--json"]).exits(0).json();
    assert_eq!(json["plan"], "plan.toml");
    assert_eq!(json["run_id"], project.run_id().as_str());
    project.piton_in(&deep, &["approve", "P2"]).exits(0);
    // The same plan under another name is the same plan.
    project.piton_in(&deep, &["run", "../../plan.toml", "--resume"]).exits(0);
    project.piton_in(project.outside(), &["-C", "repo/a", "status"]).exits(0).says("complete");
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
    assert!(!project.has("a/b/.piton") && !project.has("a/b/where.txt"));
}

/// If this fails, a command that is named to be typed next does something else where the person stands.
#[test]
fn what_is_named_to_be_typed_works_where_the_person_stands() {
    let project = Project::with_plan(PLAN);
    let (here, run) = (project.outside(), "r-1");
    let waits = project.piton_in(here, &["-C", "repo", "run", "plan.toml", "--run-id", run]);
    let next = format!("next: piton -C repo approve {run} P2\n");
    waits.exits(3).says(&next);
    let status = project.piton_in(here, &["-C", "repo", "status"]).exits(0);
    status.says(&format!("piton -C repo approve {run} P2"));
    let json = project.piton_in(here, &["-C", "repo", "status", "none", "--json"]).exits(2).json();
    assert_eq!(json["error"]["hints"][0], "`piton -C repo runs` lists the runs of this project");
    let away = ["-C", "./repo", "status", "none"];
    project.piton_in(here, &away).exits(2).says("hint: `piton -C ./repo runs` lists");
    project.piton(&["status", "none"]).exits(2).says("hint: `piton runs` lists");
    project.piton_in(here, &["-C", "repo", "approve", run, "P2"]).exits(0);
    project.piton_in(here, &["-C", "repo", "resume", run]).exits(0);
}

/// If this fails, each worktree has a ledger of its own and a run can be driven twice.
#[test]
fn a_linked_worktree_shares_the_ledger() {
    let project = Project::with_plan(PLAN);
    project.commit();
    project.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let side = project.outside().join("side").canonicalize().unwrap_or_default();
    project.piton(&["run", "plan.toml"]).exits(3);
    let run = project.run_id();
    let json = project.piton_in(&side, &["status", "--json"]).exits(0).json();
    assert_eq!(json["run_id"], run.as_str());
    project.piton_in(&side, &["approve", &run, "P2", "-m", "from the side"]).exits(0);
    project.piton_in(&side, &["resume", &run]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"], "steps run where the run was started");
    assert!(!side.join("ran.txt").exists());
}

/// If this fails, a worktree's plan, HEAD or runs are taken for those of another.
#[test]
fn worktrees_do_not_disturb_each_other() {
    let project = Project::with_plan(PLAN);
    project.commit();
    project.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let side = project.outside().join("side").canonicalize().unwrap_or_default();
    project.piton(&["run", "plan.toml", "--run-id", "first"]).exits(3);

    // The same path in another worktree is another plan: it neither meets nor archives that run.
    let other = PLAN.replace("echo one", "echo side-one");
    std::fs::write(side.join("plan.toml"), other).unwrap_or_else(|e| panic!("{e}"));
    project.piton_in(&side, &["run", "plan.toml", "--run-id", "second"]).exits(3);
    project.piton_in(&side, &["run", "plan.toml", "--fresh", "--run-id", "third"]).exits(3);
    assert_eq!(project.status("first"), "waiting");
    assert_eq!(project.status("second"), "archived");
    assert_eq!(project.lines("ran.txt"), ["one"]);

    // Resumed from beside, a run still has its own plan and its own HEAD.
    project
        .finish(project.command("git").current_dir(&side).args(["commit", "-qam", "side"]))
        .exits(0);
    project.piton_in(&side, &["approve", "first", "P2"]).exits(0);
    let said = project.piton_in(&side, &["resume", "first"]).exits(0);
    said.silent_about("HEAD was").silent_about("plan:");
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
    assert_eq!(project.status("third"), "waiting");
}

/// If this fails, a checkpoint names a commit that the run never worked on.
#[test]
fn a_checkpoint_records_the_commit_of_the_runs_own_worktree() {
    let project = Project::with_plan(PLAN);
    project.commit();
    project.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let side = project.outside().join("side");
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    let commit = ["commit", "--allow-empty", "-qm", "side"];
    project.finish(project.command("git").current_dir(&side).args(commit)).exits(0);
    project.piton_in(&side, &["checkpoint", "r", "-m", "here"]).exits(0);
    let heads: Vec<_> = project
        .events("r")
        .into_iter()
        .filter_map(|e| match e {
            Event::CheckpointRecorded(e) => e.head,
            _ => None,
        })
        .collect();
    assert_eq!(heads, [project.git(&["rev-parse", "HEAD"]).trim()]);
}

/// If this fails, a run goes on in a work tree that it was never meant for.
#[test]
fn a_run_whose_worktree_is_gone_stops_until_it_is_back() {
    let project = Project::with_plan(PLAN);
    project.commit();
    let add = ["worktree", "add", "--quiet", "../side"];
    project.git(&add);
    let side = project.outside().join("side");
    project.piton_in(&side, &["run", "plan.toml", "--run-id", "r"]).exits(3);
    project.piton(&["approve", "r", "P2"]).exits(0);
    project.git(&["worktree", "remove", "--force", "../side"]);
    let stopped = project.piton(&["resume", "r"]).exits(4).says("/side is gone");
    stopped.says("git worktree add").silent_about("runs again");
    assert!(!project.has("ran.txt"), "nothing ran elsewhere");
    project.git(&add);
    project.piton(&["resume", "r"]).exits(0);
    assert!(side.join("ran.txt").exists() && !project.has("ran.txt"));
}

/// If this fails, Piton can't be used in a folder that is no repository.
#[test]
fn without_git_the_state_lies_beside_the_plan() {
    let project = Project::without_git("plain");
    project.write("plan.toml", PLAN);
    project.write("sub/keep", "");
    project.piton(&["run", "plan.toml"]).exits(3);
    assert!(project.has(".piton/ledger.db"));
    project.piton_in(&project.root().join("sub"), &["approve", "P2"]).exits(0);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
    project.piton(&["doctor"]).exits(0);
}

/// If this fails, other users of the machine can read logs and prompts.
#[test]
fn the_state_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml"]).exits(3);
    let mode = std::fs::metadata(project.state_dir()).map(|m| m.permissions().mode());
    assert_eq!(mode.map(|m| m & 0o777).ok(), Some(0o700));
}

/// If this fails, a new repository must be committed to before it can be worked in.
#[test]
fn a_repository_without_a_commit_will_do() {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml"]).exits(3);
    project.piton(&["approve", "P2"]).exits(0);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
    assert_eq!(project.status(""), "complete");
}

/// If this fails, cleaning the work tree throws the record of hours away.
#[test]
fn sweeping_the_work_tree_keeps_the_state() {
    let project = Project::with_plan(PLAN);
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(3);
    let events = project.events("").len();
    project.git(&["clean", "-fdxq"]);
    assert!(!project.has("ran.txt"));
    project.write("untracked.txt", "");
    project.git(&["stash", "--all", "--quiet"]);
    assert_eq!(project.events("").len(), events);
    project.piton(&["approve", "P2"]).exits(0);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["two"], "finished work was not redone");
}

/// Runs commands where the project is mounted read-only; nothing where the system forbids that.
fn read_only(project: &Project, commands: &str) -> Option<common::Output> {
    let mount = "mount --bind . . && mount -o remount,bind,ro . && cd \"$PWD\"";
    if project.sh(&format!("unshare -Urm sh -c '{mount} && ! touch new'")).code != 0 {
        return None;
    }
    Some(project.sh(&format!("unshare -Urm sh -c '{mount} && {commands}'")))
}

/// If this fails, a run on a read-only mount, or of another user, can't even be looked at.
#[test]
fn where_nothing_can_be_written_runs_can_be_looked_at() {
    let project = Project::with_plan(PLAN);
    let Some(unused) = read_only(&project, "$PROGRAM run plan.toml") else { return };
    unused.exits(4).says("error[state-read-only]").says("/.git: ");
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    let looks = ["status r", "runs", "show r", "log r", "resume r --dry-run", "gc --dry-run"];
    let looks = looks.map(|look| format!("$PROGRAM {look} >/dev/null")).join(" && ");
    read_only(&project, &looks).unwrap_or_else(|| panic!("no mount")).exits(0);
    for act in ["run plan.toml --resume", "resume r", "approve r P2", "abort r"] {
        let done = read_only(&project, &format!("$PROGRAM {act}"));
        let done = done.unwrap_or_else(|| panic!("no mount")).exits(4);
        done.says("error[state-read-only]").says("/.git/piton: ");
    }
}

/// Lost: what a person is told to type would not work where they stand, or not in a shell.
#[test]
fn plans_in_hints_can_be_pasted_where_the_person_stands() {
    let project = Project::new();
    project.write("my dir/the plan's.toml", "[[phase]]\nid = \"P\"\nrun = \"true\"\n");
    project.write("sub/deep/x", "");
    let deep = project.root().join("sub/deep");
    project.piton_in(&deep, &["run", "../../my dir/the plan's.toml"]).exits(0);
    let typed = r"piton run '../../my dir/the plan'\''s.toml' --fresh";
    let said = project.piton_in(&deep, &["resume"]).exits(0).says("already complete").says(typed);
    assert!(said.stdout.is_empty());
    project
        .finish(
            project
                .command("sh")
                .args(["-c", &typed.replace("piton", "$PROGRAM")])
                .current_dir(&deep),
        )
        .exits(0);
}

/// Lost: a typing error in the settings would keep everybody from seeing, deciding about or ending
/// a run.
#[test]
fn broken_settings_keep_nobody_from_looking_and_ending() {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    project.write("piton.toml", "jobbs = 3\n");
    for command in [&["status"][..], &["runs"], &["log"], &["show"], &["status", "--json"]] {
        project.piton(command).exits(0).says("jobbs").says("the defaults are used");
    }
    project.piton(&["doctor"]).exits(1).says("piton.toml cannot be read").says("1 run");
    project.piton(&["approve", "r", "P2"]).exits(0);
    project.piton(&["abort", "r"]).exits(0);
    project.piton(&["resume", "r"]).exits(2).says("jobbs").silent_about("defaults hold");
}

/// If this fails, a home folder under git is snapshotted with all that is in it, only because it is
/// reached through a link.
#[test]
fn a_home_folder_behind_a_link_is_a_home_folder() {
    let project = Project::with_plan(PLAN);
    let link = project.outside().join("link");
    std::os::unix::fs::symlink(project.root(), &link).expect("a link");
    let mut command = project.command(common::PITON);
    let said = project.finish(command.args(["run", "plan.toml"]).env("HOME", &link)).exits(4);
    said.says(&format!("{} is your home folder", project.root().display()));
    assert!(!project.has("ran.txt"));
}

/// If this fails, whoever tries something out in a copy of a project changes the project itself.
#[test]
fn a_copy_of_a_project_leaves_the_first_alone() {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml"]).exits(3);
    let copy = project.outside().join("copy");
    project.sh("cp -a . ../copy").exits(0);
    project.piton_in(&copy, &["approve", "P2"]).exits(0);
    project.piton_in(&copy, &["resume"]).exits(0).says("steps run in").says("copy");
    assert_eq!(project.lines("ran.txt"), ["one"]);
    assert_eq!(std::fs::read_to_string(copy.join("ran.txt")).unwrap_or_default(), "one\ntwo\n");
    project.piton_in(&copy, &["rollback", "--yes"]).exits(0);
    assert!(project.has("ran.txt") && !copy.join("ran.txt").exists());
    project.piton(&["status"]).exits(0).says("Go");
}

/// If this fails, lanes of a copied or moved project work in, merge to or remove what is another's.
#[test]
fn worktrees_recorded_in_another_place_are_not_touched() {
    let plan = r#"
[[phase]]
id = "P1"
lane = [{ id = "L", isolation = "worktree", run = "echo x > x.txt; exit 1" }]
"#;
    let project = Project::with_plan(plan);
    project.commit();
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    project.sh("cp -a . ../copy").exits(0);
    let copy = project.outside().join("copy");
    let before = project.git(&["for-each-ref"]);
    for args in [&["resume", "r"][..], &["rollback", "r", "--yes"], &["undo", "r", "--yes"]] {
        let said = project.piton_in(&copy, args).exits(4);
        said.says("project-moved").says("continue it there").says("--fresh");
    }
    project.piton_in(&copy, &["status", "r"]).exits(0);
    project.piton_in(&copy, &["gc", "--yes"]).exits(0);
    assert!(project.has(".worktrees/P1/L/x.txt"));
    assert_eq!(project.git(&["for-each-ref"]), before);
    // Moved, the old path can lead to it.
    let moved = project.outside().join("moved");
    std::fs::rename(project.root(), &moved).unwrap_or_else(|e| panic!("{e}"));
    let said = project.piton_in(&moved, &["rollback", "r", "--yes"]).exits(4);
    said.says("link the old path to it: `ln -s");
    assert!(!project.root().exists());
    std::os::unix::fs::symlink(&moved, project.root()).unwrap_or_else(|e| panic!("{e}"));
    project.piton_in(&moved, &["rollback", "r", "--yes"]).exits(0);
    assert!(!moved.join(".worktrees/P1/L/x.txt").exists());
}

/// Lost: whoever looks up an error that a deleted folder caused would meet the same error.
#[test]
fn what_needs_no_project_works_in_a_folder_that_is_gone() {
    let project = Project::new();
    for line in ["explain no-run", "explain", "schema plan", "completions bash"] {
        let said = project.sh(&format!("mkdir gone && cd gone && rmdir $PWD && $PROGRAM {line}"));
        assert_ne!(said.exits(0).stdout, "", "{line}");
    }
    let said = project.sh("mkdir gone && cd gone && rmdir $PWD && $PROGRAM status");
    said.exits(2).says("the current folder cannot be used");
}

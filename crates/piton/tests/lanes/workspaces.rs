//! What a lane finds in its worktree, and how its work becomes a commit.

use super::common::Project;
use super::scene::{DOCUMENT, LaneDoc, Scene, document, lane};

/// A scene whose lanes have these keys below `[defaults]`.
fn with_defaults(lanes: &[LaneDoc], keys: &str) -> Scene {
    let scene = Scene::with(&document("", lanes, ""), "");
    let settings = scene.project.read("piton.toml");
    scene
        .project
        .write("piton.toml", &settings.replace("[defaults]", &format!("[defaults]\n{keys}")));
    scene.project.commit();
    scene
}

/// Lost: a lane that was taken back to its start would work on a base of long ago, unsaid.
#[test]
fn a_lane_that_begins_again_starts_from_the_base_of_now_and_says_so() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.agent("SL-1", "exit 1");
    scene.run(&[]).exits(1);
    scene.project.write("README", "moved on\n");
    scene.project.commit();
    let base = scene.project.git(&["rev-parse", "main"]);
    scene.project.write("dirt.txt", "mine\n");
    scene.project.piton(&["rollback", "--yes"]).exits(0);
    let seen = scene.outside("seen");
    scene.agent("SL-1", &format!("cat README > {}; exit 1", seen.display()));
    scene.resume(&[]).exits(4).says("dirt.txt");
    scene.project.remove("dirt.txt");
    scene.resume(&[]).exits(1).says("base moved from").says(&base[..10]);
    assert_eq!(scene.told("seen"), ["moved on"]);
    assert_eq!(scene.record("SL-1", "before_lane_start")["base_sha"], base.trim());
    scene.usual_agent("SL-1");
    scene.resume(&[]).exits(0);
    scene.nothing_left();
}

/// Lost: a file that came later would never reach the lane that waits for it.
#[test]
fn a_file_to_be_copied_that_came_later_is_there_for_the_next_setup() {
    for back in [false, true] {
        let scene = with_defaults(&[lane("SL-1")], "copy = [\".env\"]\nsetup = \"test -f .env\"\n");
        scene.project.write(".gitignore", ".env\n");
        scene.project.commit();
        scene.run(&[]).exits(1);
        scene.project.write(".env", "S=1\n");
        if back {
            scene.project.piton(&["rollback", "--yes"]).exits(0);
            scene.resume(&[]).exits(0);
        } else {
            scene.resume(&[]).exits(0).says("copied into its worktree now: .env");
        }
        scene.nothing_left();
    }
}

/// Lost: a fresh worktree without dependencies and secrets, of no use to an agent.
#[test]
fn setup_and_copied_files_make_a_worktree_usable() {
    let scene = with_defaults(
        &[lane("SL-1")],
        "setup = \"cp .env configured.tmp\"\ncopy = [\".env\", \"local\"]",
    );
    scene.project.write(".gitignore", ".env\nlocal/\n*.tmp\n");
    scene.project.commit();
    scene.project.write(".env", "KEY=1\n");
    scene.project.write("local/deep/file", "deep\n");
    scene.agent("SL-1", "cat configured.tmp local/deep/file > SL-1-01.txt");
    scene.run(&[]).exits(0);
    assert_eq!(scene.project.read("SL-1-01.txt"), "KEY=1\ndeep\n");
    assert!(!scene.project.has("configured.tmp"));
    let tracked = scene.project.git(&["ls-files"]);
    assert!(!tracked.contains(".env") && !tracked.contains("local"), "{tracked}");
    scene.nothing_left();
}

/// Lost: a worktree that could not be set up would be given to an agent.
#[test]
fn a_failing_setup_keeps_the_agent_out_until_it_works() {
    let scene = with_defaults(&[lane("SL-1")], "setup = \"test -e $PITON_ROOT/.git/ok\"");
    scene.agent("SL-1", "touch ../../../../worked; echo x > SL-1-01.txt");
    scene.run(&[]).exits(1).says("setup");
    assert!(!scene.outside("worked").exists());
    assert_eq!(scene.stage_status("SL-1", "after_lane_start"), "failed");
    scene.project.write(".git/ok", "");
    scene.resume(&[]).exits(0);
    scene.nothing_left();
}

/// Lost: files that are to be copied and are not there would stop the lane, or nobody would know.
#[test]
fn a_file_that_is_not_there_to_be_copied_is_named() {
    let scene = with_defaults(&[lane("SL-1")], "copy = [\"absent.env\"]");
    scene.run(&[]).exits(0).says("absent.env");
    scene.nothing_left();
}

/// Lost: which of the two an attempt finds: what the one before left, or what that one found.
#[test]
fn an_attempt_finds_what_the_setting_says() {
    for (on_retry, seen) in [("keep", "1\n2\n"), ("reset", "2\n")] {
        let failing = LaneDoc { test: "test $PITON_ATTEMPT = 2".to_owned(), ..lane("SL-1") };
        let scene = with_defaults(
            &[failing],
            &format!("on_retry = \"{on_retry}\"\nretries = 1\nmerge = \"none\""),
        );
        scene.agent("SL-1", "echo $PITON_ATTEMPT >> SL-1-01.txt; echo junk > junk.$PITON_ATTEMPT");
        scene.run(&[]).exits(0);
        let at = |name: &str| format!("lane/P1/SL-1:{name}");
        assert_eq!(scene.project.git(&["show", &at("SL-1-01.txt")]), seen, "{on_retry}");
        let files = scene.project.git(&["ls-tree", "--name-only", "lane/P1/SL-1"]);
        assert_eq!(files.contains("junk.1"), on_retry == "keep", "{files}");
    }
}

/// Lost: after a crash an attempt would find the half-done work it was to be spared.
#[test]
fn reset_holds_after_a_crash_too() {
    let scene = with_defaults(&[lane("SL-1")], "on_retry = \"reset\"");
    let here = scene.outside("here").display().to_string();
    scene.agent(
        "SL-1",
        &format!(
            "echo $PITON_ATTEMPT >> SL-1-01.txt; git add -A; git commit -qm own; touch {here}\n\
             while [ ! -e {here}.go ]; do sleep 0.02; done"
        ),
    );
    let mut driver = scene.project.spawn(&["run", DOCUMENT]);
    super::common::wait_until("the agent works", || scene.outside("here").exists());
    driver.kill();
    scene.project.kill_all();
    std::fs::write(scene.outside("here.go"), "").unwrap();
    scene.resume(&[]).exits(0);
    assert_eq!(scene.project.read("SL-1-01.txt"), "2\n");
    let subjects = scene.project.git(&["log", "--format=%s", "main"]);
    assert_eq!(subjects.matches("own").count(), 1, "{subjects}");
    scene.nothing_left();
}

/// Lost: commits whose words say nothing.
#[test]
fn the_message_of_a_lanes_commit_is_a_template() {
    let scene = with_defaults(
        &[lane("SL-1")],
        "commit_message = \"\"\"\n{{ phase.id }}/{{ lane.id }}: {{ title }}\n\nby {{ run.id }}\"\"\"",
    );
    scene.run(&["--run-id", "r1"]).exits(0);
    let message = scene.project.git(&["log", "-1", "--format=%B", "main"]);
    assert_eq!(message.trim(), "P1/SL-1: First\n\nby r1");
}

/// Lost: a machine without an identity could not run lanes, or would invent the user's name.
#[test]
fn without_an_identity_commits_have_the_documented_one() {
    let scene = Scene::of(&[lane("SL-1")]);
    let mut command = scene.project.command(super::common::PITON);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env_remove(format!("GIT_{who}_NAME")).env_remove(format!("GIT_{who}_EMAIL"));
    }
    scene.project.finish(command.args(["run", DOCUMENT])).exits(0);
    let who = scene.project.git(&["log", "-1", "--format=%an <%ae>", "main"]);
    assert!(who.to_lowercase().contains("piton"), "{who}");
    assert_eq!(scene.project.git(&["config", "--local", "--list"]).matches("user.").count(), 0);
    scene.nothing_left();
}

/// Lost: the identity that the user configured for this repository.
#[test]
fn the_configured_identity_is_used() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.project.git(&["config", "user.name", "Ann"]);
    scene.project.git(&["config", "user.email", "ann@localhost"]);
    let mut command = scene.project.command(super::common::PITON);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env_remove(format!("GIT_{who}_NAME")).env_remove(format!("GIT_{who}_EMAIL"));
    }
    scene.project.finish(command.args(["run", DOCUMENT])).exits(0);
    let who = scene.project.git(&["log", "-1", "--format=%an <%ae>", "main"]);
    assert_eq!(who.trim(), "Ann <ann@localhost>");
}

/// Lost: hooks of the user would run on our own commits, fail them, or change them.
#[test]
fn hooks_of_the_user_do_not_run_for_our_commits() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::of(&[lane("SL-1")]);
    let hooks = [
        "pre-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-commit",
        "post-checkout",
        "post-merge",
        "pre-rebase",
        "post-rewrite",
        "reference-transaction",
        "post-index-change",
    ];
    for name in hooks {
        let path = scene.project.root().join(".git/hooks").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let log = scene.outside("hooks").display().to_string();
        std::fs::write(&path, format!("#!/bin/sh\necho {name} >> {log}\nexit 1\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    scene.run(&[]).exits(0);
    assert_eq!(scene.told("hooks"), Vec::<String>::new());
    assert!(scene.project.has("SL-1-01.txt"));
}

/// Lost: started by a hook, which git tells its repository, a lane's own `git commit` would land on
/// the branch that the user has checked out.
#[test]
fn git_in_a_lane_works_on_the_lane_whoever_started_piton() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.agent("SL-1", "echo x > SL-1-01.txt; git add -A; git commit -qm own; git branch > seen");
    let at = scene.project.root().join(".git");
    let mut run = scene.command("piton");
    run.args(["run", DOCUMENT]).env("GIT_DIR", &at).env("GIT_WORK_TREE", scene.project.root());
    scene.project.finish(run.env("GIT_INDEX_FILE", at.join("index"))).exits(0);
    assert!(scene.project.read("seen").contains("* lane/P1/SL-1"));
    let dirt = scene.project.git(&["status", "--porcelain", "--untracked-files=no"]);
    assert_eq!(dirt, "", "index and files of the user are what base is");
    scene.nothing_left();
}

/// Lost: commits of a failed attempt would stay in the lane's branch, and get to base with the next.
#[test]
fn reset_takes_commits_of_the_attempt_before_off_the_branch_and_keeps_them() {
    let failing = LaneDoc { test: "test $PITON_ATTEMPT = 3".to_owned(), ..lane("SL-1") };
    let scene = with_defaults(&[failing], "on_retry = \"reset\"\nretries = 2\nmerge = \"none\"");
    scene.agent(
        "SL-1",
        "n=$PITON_ATTEMPT; test ! -e own.1 -a ! -e own.2 || exit 9\n\
         echo $n > own.$n; git add -A; git commit -qm \"own $n\"\n\
         test $n != 2 || git checkout -q --detach; echo rest > rest.$n; echo $n > SL-1-01.txt",
    );
    scene.run(&["--run-id", "r1"]).exits(0);
    let subjects = scene.project.git(&["log", "--format=%s", "main..lane/P1/SL-1"]);
    assert!(subjects.contains("own 3") && !subjects.contains("own 1"), "{subjects}");
    assert!(!subjects.contains("own 2"), "{subjects}");
    let files = scene.project.git(&["ls-tree", "--name-only", "lane/P1/SL-1"]);
    assert!(files.contains("own.3") && !files.contains("own.1"), "{files}");
    let kept = "for-each-ref --format=%(subject) refs/piton/r1/rewound";
    let kept = scene.project.git(&kept.split(' ').collect::<Vec<_>>());
    assert!(kept.contains("own 1") && kept.contains("own 2"), "{kept}");
}

/// Lost: a step that deletes the file by which git knows its worktree would end the run, with the lanes
/// beside it, and the person would be told to remove the project itself.
#[test]
fn a_worktree_whose_link_a_step_deleted_is_linked_again() {
    for harm in ["rm .git", "echo nothing > .git"] {
        let scene = Scene::of(&[lane("SL-1"), lane("SL-2")]);
        scene.agent("SL-1", &format!("echo done > SL-1-01.txt; {harm}"));
        scene.run(&[]).exits(0);
        assert!(scene.project.has("SL-1-01.txt") && scene.project.has("SL-2-01.txt"));
        scene.nothing_left();
    }
}

/// Lost: whoever is told that a step is not run again would not expect what it does twice.
#[test]
fn a_step_that_deleted_its_worktree_is_said_to_run_again() {
    let project = Project::with_plan(
        r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
isolation = "worktree"
run = """
echo ran >> $HOME/ran; workspace=$PWD; cd /
[ $(wc -l < $HOME/ran) -gt 1 ] || rm -rf "$workspace"
"""
"#,
    );
    project.commit();
    let said = project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(4);
    said.says("its worktree and everything in it is gone")
        .says("runs the step again")
        .says("next: find out what deleted it")
        .silent_about("does not run again");
    for args in [&["resume", "--dry-run"][..], &["resume"]] {
        let said = project.piton(args).exits(0);
        said.says("runs again: P/L/work (attempt 1) has finished, but the worktree")
            .silent_about("has finished in the meantime");
    }
    let ran = std::fs::read_to_string(project.outside().join("home/ran")).unwrap();
    assert_eq!(ran.lines().count(), 2);
}

/// Lost: a person would look for a worktree that is gone, and leave a branch that nobody needs.
#[test]
fn a_branch_that_can_not_be_deleted_stays_and_is_all_that_stays() {
    let scene = Scene::of(&[lane("SL-1")]);
    let lock = scene.project.root().join(".git/packed-refs.lock");
    scene.agent("SL-1", &format!("echo done > SL-1-01.txt; touch {}", lock.display()));
    scene.project.git(&["pack-refs", "--all"]);
    let said = scene.run(&[]).exits(0);
    said.says("removed the worktree of P1/SL-1; its branch is kept")
        .says("branch lane/P1/SL-1 stays because it could not be deleted")
        .says("`piton gc` deletes it")
        .silent_about("its worktree could not be removed")
        .silent_about("the worktree of P1/SL-1 stays");
    assert_eq!(scene.worktrees(), Vec::<String>::new());
    assert_eq!(scene.branches(), ["lane/P1/SL-1"]);
    std::fs::remove_file(&lock).unwrap();
    scene.project.piton(&["gc", "--yes"]).exits(0);
    scene.nothing_left();
}

/// Lost: a person's files, where somebody deleted what git knows of a worktree.
#[test]
fn a_worktree_that_git_forgot_is_left_alone_until_it_is_moved() {
    for link_too in [false, true] {
        let scene = Scene::of(&[lane("SL-1"), lane("SL-2")]);
        scene.agent("SL-1-01", "echo half > half.txt; exit 1");
        scene.run(&[]).exits(1);
        scene.usual_agent("SL-1-01");
        let (workspace, entry) =
            (scene.workspace("SL-1"), scene.project.root().join(".git/worktrees/SL-1"));
        std::fs::write(workspace.join("mine.txt"), "mine\n").unwrap();
        std::fs::remove_dir_all(&entry).unwrap();
        if link_too {
            std::fs::remove_file(workspace.join(".git")).unwrap();
        }
        scene.resume(&[]).exits(1).says("git no longer knows the worktree").says("move the folder");
        assert!(workspace.join("mine.txt").exists());
        std::fs::rename(&workspace, scene.outside("away")).unwrap();
        scene.resume(&[]).exits(0);
        for name in ["half.txt", "SL-1-01.txt", "SL-2-01.txt", "README"] {
            assert!(scene.project.has(name), "{name}");
        }
        scene.nothing_left();
    }
}

/// Lost: one folder after the other, each time the run is resumed.
#[test]
fn a_folder_that_somebody_made_a_repository_of_is_not_worked_around() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.agent("SL-1-01", "exit 1");
    scene.run(&[]).exits(1);
    let workspace = scene.workspace("SL-1");
    std::fs::remove_dir_all(scene.project.root().join(".git/worktrees/SL-1")).unwrap();
    std::fs::remove_file(workspace.join(".git")).unwrap();
    let made = scene.project.command("git").args(["init", "-q"]).arg(&workspace).status();
    assert!(made.unwrap().success());
    for _ in 0..2 {
        scene.resume(&[]).exits(1).says("git no longer knows the worktree").says("move the folder");
        assert_eq!(scene.worktrees(), Vec::<String>::new());
        let workspaces = std::fs::read_dir(workspace.parent().unwrap()).unwrap().count();
        assert_eq!(workspaces, 1);
    }
    std::fs::rename(&workspace, scene.outside("away")).unwrap();
    scene.usual_agent("SL-1-01");
    scene.resume(&[]).exits(0);
    scene.nothing_left();
}

//! Lanes that work in the project's own folder: back, forth, and what stays.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::common::{Project, wait_until};
use crate::tree::{Tree, mine, same, tree};

/// The first step changes all there is to change; the second fails until told otherwise.
const PLAN: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
steps = [
  { id = "one", run = "sh $HOME/one.sh" },
  { id = "two", run = "echo two > two.txt; test -e $HOME/ok" },
]
"#;

const ONE: &str = r#"
echo changed > edited.txt
rm gone.txt
mv before.txt after.txt
chmod +x tool.sh
chmod 700 folder
rm link && ln -s other link
rmdir empty
mkdir -p new/empty
echo new > new/file.txt
echo "with blanks" > "new/ä b.txt"
rm -r becomes && echo file > becomes
mkdir -p ignored && echo built > ignored/out
echo dirty >> staged.txt
"#;

/// A project in a state that only a byte for byte comparison does justice to.
fn project() -> Project {
    let project = Project::with_plan(PLAN);
    fs::write(project.outside().join("home/one.sh"), ONE).unwrap();
    let files =
        ["edited.txt", "gone.txt", "before.txt", "tool.sh", "staged.txt", "becomes/deep.txt"];
    for path in files {
        project.write(path, path);
    }
    project.write(".gitignore", "ignored/\n");
    project.write("folder/inner", "x");
    symlink("somewhere", project.root().join("link")).unwrap();
    project.commit();
    project.write("edited.txt", "stashed");
    project.git(&["stash", "push", "--quiet"]);
    project.write("staged.txt", "staged");
    project.git(&["add", "staged.txt"]);
    project.write("staged.txt", "and changed again");
    project.write("untracked ü.txt", "untracked");
    fs::create_dir(project.root().join("empty")).unwrap();
    let secret = project.root().join("untracked ü.txt");
    fs::set_permissions(secret, fs::Permissions::from_mode(0o600)).unwrap();
    project
}

fn without_ignored(tree: &Tree) -> Tree {
    let own = |path: &std::path::Path| !path.starts_with("ignored");
    tree.iter().filter(|(path, _)| own(path)).map(|(p, w)| (p.clone(), w.clone())).collect()
}

/// If this fails, a rollback loses files, or is none.
#[test]
fn back_to_the_start_and_forth_again_any_number_of_times() {
    let project = project();
    let (start, own) = (tree(project.root()), mine(&project));
    project.piton(&["run", "plan.toml"]).exits(1);
    let failed = tree(project.root());
    assert_eq!(mine(&project), own, "a run in place touches nothing of the user's");
    let back = project.piton(&["rollback", "--yes"]).exits(0);
    back.says("change  edited.txt").says("delete  two.txt").says("restore gone.txt");
    let now = tree(project.root());
    same(&without_ignored(&now), &start);
    assert_eq!(project.read("ignored/out"), "built\n", "ignored files stay");
    for round in 0..3 {
        project.piton(&["undo", "--yes"]).exits(0).says("undone");
        same(&tree(project.root()), &failed);
        project.piton(&["undo", "--yes"]).exits(0).says("undone");
        same(&without_ignored(&tree(project.root())), &start);
        assert_eq!(mine(&project), own, "round {round}");
    }
    fs::write(project.outside().join("home/ok"), "").unwrap();
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.status(""), "complete");
    assert_eq!(project.step("P/L/one")["attempts"], 2, "it ran again");
    assert_eq!(project.read("edited.txt"), "changed\n");
    assert_eq!(mine(&project), own);
}

/// If this fails, a person does not see what a rollback does before it does it.
#[test]
fn nothing_happens_without_a_yes() {
    let project = project();
    project.piton(&["run", "plan.toml"]).exits(1);
    let (before, events) = (tree(project.root()), project.events("").len());
    for args in [&["rollback", "--dry-run"][..], &["rollback", "--dry-run", "--yes"]] {
        project.piton(args).exits(0).says("restore gone.txt").says("delete  new/file.txt");
    }
    let asked = project.piton(&["rollback"]).exits(3);
    asked.says("error[not-confirmed]").says("nothing was changed").says("--yes");
    project.piton(&["rollback", "--json"]).exits(3);
    same(&tree(project.root()), &before);
    assert_eq!(project.events("").len(), events, "nothing is recorded either");
    project.piton(&["undo", "--yes"]).exits(2).says("nothing to undo");
}

/// If this fails, work that a person did beside the run is deleted by a rollback.
#[test]
fn what_did_not_come_from_the_run_stays_unless_exactness_is_asked_for() {
    let project = project();
    let start = tree(project.root());
    project.piton(&["run", "plan.toml"]).exits(1);
    project.write("notes/mine.txt", "mine");
    let failed = tree(project.root());
    let said = project.piton(&["rollback", "--dry-run"]).exits(0);
    said.says("stays   notes/mine.txt").silent_about("delete  notes");
    project.piton(&["rollback", "--yes"]).exits(0).says("notes/mine.txt").says("--exact");
    let mut wanted = start.clone();
    wanted.insert("notes".into(), "folder 755".to_owned());
    wanted.insert("notes/mine.txt".into(), "file 644 mine".to_owned());
    same(&without_ignored(&tree(project.root())), &wanted);
    project.piton(&["undo", "--yes"]).exits(0);
    same(&tree(project.root()), &failed);
    project.piton(&["rollback", "--exact", "--yes"]).exits(0).silent_about("stays");
    same(&without_ignored(&tree(project.root())), &start);
    project.piton(&["undo", "--yes"]).exits(0);
    same(&tree(project.root()), &failed);
}

/// If this fails, a person can only go all the way back.
#[test]
fn every_checkpoint_can_be_gone_back_to() {
    let project = project();
    let start = tree(project.root());
    project.piton(&["run", "plan.toml"]).exits(1);
    project.piton(&["checkpoint", "-m", "by hand"]).exits(0);
    let failed = tree(project.root());
    let mut one = failed.clone();
    one.remove(std::path::Path::new("two.txt"));
    let commit = project.piton(&["show", "P/L/one#1", "--json"]).exits(0).json();
    let commit = commit["snapshots"][0]["commit"].as_str().unwrap()[..9].to_owned();
    let points: [(&str, &Tree); 8] = [
        ("P/L/one#1", &one),
        ("before_lane_start", &start),
        ("manual-1", &failed),
        ("P/L/one#1.before", &start),
        ("P/L/two#1.before", &one),
        ("after_lane_start", &start),
        ("P/L/two#1", &failed),
        (&commit, &one),
    ];
    for (to, wanted) in points {
        project.piton(&["rollback", "--to", to, "--exact", "--yes"]).exits(0).says(to);
        let now = without_ignored(&tree(project.root()));
        assert_eq!(now, without_ignored(wanted), "{to}");
    }
    // Since the last point is after the first step, only the second runs again.
    fs::write(project.outside().join("home/ok"), "").unwrap();
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.step("P/L/two")["status"], "complete");
    project.piton(&["rollback", "--to", "manual-9", "--yes"]).exits(2).says("no-checkpoint");
    project.piton(&["rollback", "--to", "pre_pr", "--yes"]).exits(2).says("no-checkpoint");
}

/// If this fails, the prompt that the recovery contract asks for is missing.
#[test]
fn the_way_on_is_told() {
    let project = project();
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    let said = project.piton(&["run", "plan.toml", "--rollback", "--run-id", "r", "--yes"]);
    let said = said.exits(0).says("rolled back P/L to before_lane_start");
    said.says("next: piton resume r").says("undo: piton undo r");
    let json = project.piton(&["undo", "r", "--json", "--yes"]).exits(0);
    assert!(json.stdout.contains("\"undone\""), "{json:?}");
    let json = project.piton(&["rollback", "r", "--json", "--yes"]).exits(0);
    let last: serde_json::Value =
        serde_json::from_str(json.stdout.trim().lines().last().unwrap()).unwrap_or_default();
    let whole: serde_json::Value = serde_json::from_str(&json.stdout).unwrap_or(last);
    assert_eq!(whole["rollback_hint"], "piton rollback r", "{json:?}");
}

/// If this fails, a rollback loses a file, or leaves it as it is, because `.gitignore` changed.
#[test]
fn files_whose_being_ignored_changed_are_restored_or_stay() {
    let project = project();
    project.write("report.log", "first");
    project.write("gone.log", "first");
    project.write("key.env", "secret");
    project.write(".gitignore", "ignored/\n*.env\n");
    let start = tree(project.root());
    project.piton(&["run", "plan.toml"]).exits(1);
    project.write(".gitignore", "*.log\n");
    project.write("report.log", "second");
    project.remove("gone.log");
    let changed = tree(project.root());
    let said = project.piton(&["rollback", "--exact", "--yes"]).exits(0);
    said.says("change  report.log").says("stays   key.env").silent_about("delete  key.env");
    same(&without_ignored(&tree(project.root())), &start);
    project.piton(&["undo", "--yes"]).exits(0);
    same(&tree(project.root()), &changed);
}

const SHARED: &str = r#"
[[phase]]
id = "P"
lane = [
  { id = "A", run = "echo a > a.txt" },
  { id = "B", run = "echo b > b.txt; test -e $HOME/ok" },
]
[[phase]]
id = "Q"
run = "echo q > q.txt"
"#;

/// If this fails, one lane is taken back under the feet of another that shares its files.
#[test]
fn lanes_that_share_a_folder_go_back_together() {
    let project = Project::with_plan(SHARED);
    let start = tree(project.root());
    project.piton(&["run", "plan.toml", "--jobs", "1"]).exits(1);
    let args = ["rollback", "--lane", "A", "--yes"];
    project.piton(&args).exits(2).says("shared-folder").says("P/B").says("rolled back together");
    project.piton(&["rollback", "--yes"]).exits(0);
    same(&tree(project.root()), &start);
    fs::write(project.outside().join("home/ok"), "").unwrap();
    project.piton(&["resume"]).exits(0);
    assert!(project.has("a.txt") && project.has("b.txt") && project.has("q.txt"));
}

const LONG: &str = r#"
[[phase]]
id = "P"
run = "echo begun > begun.txt; while [ ! -e $HOME/ok ]; do sleep 0.02; done; echo end > end.txt"
"#;

/// If this fails, a step that still runs writes into files that were just taken back.
#[test]
fn a_running_step_is_ended_first_and_its_files_can_come_back() {
    let project = Project::with_plan(LONG);
    let start = tree(project.root());
    let mut driver = project.spawn(&["run", "plan.toml"]);
    project.wait_for("begun.txt");
    driver.kill();
    assert!(!project.keepers().is_empty(), "the step goes on under its keeper");
    project.piton(&["rollback", "--yes"]).exits(0).says("delete  begun.txt");
    same(&tree(project.root()), &start);
    project.wait_quiet();
    project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(project.read("begun.txt"), "begun\n");
    fs::write(project.outside().join("home/ok"), "").unwrap();
    project.piton(&["resume"]).exits(0);
    assert!(project.has("end.txt"));
}

/// If this fails, two processes change the same files at once.
#[test]
fn a_run_that_is_driven_ends_before_it_is_rolled_back() {
    let project = Project::with_plan(LONG);
    let start = tree(project.root());
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun.txt");
    // Only a rollback means that the run shall stop.
    let restore = project.piton(&["restore", "before_lane_start", "--exact", "--yes"]);
    restore.exits(5).says("run-driven").says("this command and `--takeover`");
    let plan = project.piton(&["rollback", "r", "--dry-run", "--json"]).exits(0).json();
    assert!(plan["driven_by"].as_str().unwrap().contains("process"), "{plan}");
    project.piton(&["rollback", "r"]).exits(3).says("is driven by process").says("--yes");
    assert!(project.has("begun.txt"));
    project.piton(&["rollback", "r", "--yes"]).exits(0).says("which is ended first");
    driver.wait().exits(5);
    same(&tree(project.root()), &start);
    wait_until("the step is gone", || project.processes().is_empty());
    fs::write(project.outside().join("home/ok"), "").unwrap();
    project.piton(&["resume", "r"]).exits(0);
    assert!(project.has("end.txt"));
}

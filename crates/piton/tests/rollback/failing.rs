//! Rollbacks that can't be carried out: everything is as before, and it says why.

use std::fs;

use crate::common::Project;
use crate::tree::{mine, same, tree};

const PLAN: &str = r#"
[[phase]]
id = "P"
run = "echo changed > a.txt; rm big.txt; rm z.txt; exit 1"
"#;

fn project() -> Project {
    let project = Project::with_plan(PLAN);
    project.write("a.txt", "first\n");
    project.write("z.txt", "last\n");
    project.write("big.txt", &"much ".repeat(2000));
    project.write(".gitignore", "*.ignored\n");
    project.commit();
    project
}

/// If this fails, a rollback overwrites a file that no snapshot holds.
#[test]
fn an_ignored_file_in_the_way_stays_and_is_named() {
    let project = project();
    project.piton(&["run", "plan.toml"]).exits(1);
    project.write(".git/info/exclude", "z.txt\nz.txt/\n");
    project.write("z.txt/inner.ignored", "mine");
    let said = project.piton(&["rollback", "--yes"]).exits(0);
    said.says("z.txt").says("move it away first");
    assert_eq!(project.read("z.txt/inner.ignored"), "mine");
    assert_eq!(project.read("a.txt"), "first\n");
}

/// If this fails, a repository that lost objects loses files too.
#[test]
fn objects_that_are_gone_stop_it_before_anything_changes() {
    let project = project();
    project.piton(&["run", "plan.toml"]).exits(1);
    let before = tree(project.root());
    let id = project.git(&["rev-parse", "HEAD:big.txt"]);
    let (dir, name) = id.trim().split_at(2);
    let object = project.root().join(".git/objects").join(dir).join(name);
    let kept = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    let gone = project.sh(&format!("git cat-file -e {}", id.trim())).code != 0;
    if gone {
        let said = project.piton(&["rollback", "--yes"]);
        assert_ne!(said.code, 0);
        said.says("missing");
        same(&tree(project.root()), &before);
    }
    fs::create_dir_all(object.parent().unwrap()).unwrap();
    fs::write(&object, kept).unwrap();
    project.piton(&["rollback", "--yes"]).exits(0);
    assert_eq!(project.read("big.txt").len(), 10_000);
}

/// If this fails, a disk that is full in the middle of a rollback leaves half of it.
#[test]
fn a_write_that_fails_leaves_everything_as_before() {
    let project = project();
    // Larger than any file that Piton itself writes here: so the limit hits only this one.
    project.write("big.txt", &"much ".repeat(4 << 20));
    project.commit();
    let own = mine(&project);
    project.piton(&["run", "plan.toml"]).exits(1);
    let before = tree(project.root());
    let line = "trap '' XFSZ; ulimit -f 16384; exec $PROGRAM rollback --yes";
    let said = project.sh(line);
    assert_ne!(said.code, 0, "{said:?}");
    said.says("nothing was changed").says("big.txt");
    same(&tree(project.root()), &before);
    assert_eq!(mine(&project), own);
    assert_eq!(project.status(""), "failed", "as it was");
    project.piton(&["undo", "--yes"]).exits(2).says("nothing to undo");
    project.piton(&["rollback", "--yes"]).exits(0);
    assert_eq!(project.read("big.txt").len(), 20 << 20);
    assert_eq!(project.read("z.txt"), "last\n");
}

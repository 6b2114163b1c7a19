//! Conflicts that git can't write into a file: nobody settles them by doing nothing.

use std::fs;

use super::scene::{LaneDoc, Scene, lane};

/// Two lanes at odds: `SL-1` does `first` and is merged, then `SL-2` does `second`, and `again` when it
/// has both sides.
fn contested(first: &str, second: &str, again: &str) -> Scene {
    let quiet = |id, index| LaneDoc { test: "true".to_owned(), index, ..lane(id) };
    let scene = Scene::of(&[quiet("SL-1", &[]), quiet("SL-2", &["Retries: 1"])]);
    fs::write(scene.project.root().join("logo.png"), b"\0old").unwrap();
    scene.project.write("kept.txt", "one\ntwo\nthree\nfour\n");
    scene.project.commit();
    let (root, begun) = (scene.project.root().display(), scene.outside("begun"));
    let (begun, seen) = (begun.display(), scene.outside("seen"));
    let seen = seen.display();
    scene.agent(
        "SL-1",
        &format!("while [ ! -e {begun} ]; do sleep 0.02; done\n{first}\necho > first.txt"),
    );
    scene.agent(
        "SL-2",
        &format!(
            "if [ $PITON_ATTEMPT = 1 ]; then touch {begun}\n\
             while [ ! -e {root}/first.txt ]; do sleep 0.02; done\n{second}\necho > second.txt\n\
             else ls -A > {seen}; cat \"$PITON_PROMPT_FILE\" >> {seen}\n{again}\nfi"
        ),
    );
    scene
}

/// The work of `SL-2` is not in base, and its worktree is there.
#[track_caller]
fn not_merged(scene: &Scene, file: &str) {
    scene.run(&[]).exits(4).says("the conflict is not resolved in").says(file).says("piton resume");
    let files = scene.project.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(!files.contains("second.txt") && !files.contains('~'), "{files}");
    assert_eq!(scene.stage_status("SL-2", "pre_pr"), "failed");
}

const BINARY: (&str, &str) = ("printf '\\0A' > logo.png", "printf '\\0B' > logo.png");

/// Lost: the lane's binary file, as base's was taken without a word.
#[test]
fn a_binary_file_is_settled_when_what_lies_beside_it_is_gone() {
    let scene = contested(BINARY.0, BINARY.1, "true");
    not_merged(&scene, "logo.png~base and logo.png~lane");
    let told = scene.told("seen");
    assert!(told.iter().any(|l| l == "logo.png~lane"), "{told:#?}");
    let line = told.iter().find(|l| l.contains("logo.png (binary): base has logo.png~base"));
    let line = line.unwrap_or_else(|| panic!("{told:#?}"));
    let (_, id) = line.rsplit_once("the lane has logo.png~lane (`git show ").unwrap();
    let id = id.split('`').next().unwrap();
    assert_eq!(scene.project.git(&["cat-file", "blob", id]), "\0B");
    // Once more without doing anything: still not.
    scene.resume(&[]).exits(4).says("the conflict is not resolved in logo.png");
    let workspace = scene.workspace("SL-2");
    fs::rename(workspace.join("logo.png~lane"), workspace.join("logo.png")).unwrap();
    fs::remove_file(workspace.join("logo.png~base")).unwrap();
    scene.resume(&[]).exits(0);
    assert_eq!(fs::read(scene.project.root().join("logo.png")).unwrap(), b"\0B");
    scene.nothing_left();
}

/// Lost: a way to say that base's file shall stay.
#[test]
fn base_may_keep_its_side() {
    let scene = contested(BINARY.0, BINARY.1, "rm logo.png~*");
    scene.run(&[]).exits(0);
    assert_eq!(fs::read(scene.project.root().join("logo.png")).unwrap(), b"\0A");
    assert!(scene.project.has("second.txt"));
    scene.nothing_left();
}

/// Lost: that nothing was settled, where git is told to ignore what lies beside the file.
#[test]
fn ignored_sides_count_too() {
    let scene = contested(BINARY.0, BINARY.1, "true");
    scene.project.write(".gitignore", "*~*\n");
    scene.project.commit();
    not_merged(&scene, "logo.png");
}

/// Lost: a deletion, or the change of what was deleted.
#[test]
fn a_deleted_file_that_base_changed_is_asked_about() {
    let scene = contested("echo more >> kept.txt", "rm kept.txt", "true");
    not_merged(&scene, "kept.txt (kept.txt~base still exists)");
    let told = scene.told("seen").join("\n");
    assert!(told.contains("kept.txt (modify/delete): base has kept.txt~base"), "{told}");
    assert!(told.contains("the lane has none"), "{told}");
    let workspace = scene.workspace("SL-2");
    fs::remove_file(workspace.join("kept.txt")).unwrap();
    fs::remove_file(workspace.join("kept.txt~base")).unwrap();
    scene.resume(&[]).exits(0);
    assert!(!scene.project.has("kept.txt"));
    scene.nothing_left();
}

/// Lost: a file under a name that nobody gave it would come into base.
#[test]
fn a_file_where_base_has_a_folder_is_asked_about() {
    let scene = contested("mkdir d; echo x > d/x", "echo file > d", "true");
    not_merged(&scene, "d (d~lane still exists)");
    let workspace = scene.workspace("SL-2");
    assert_eq!(fs::read_to_string(workspace.join("d~lane")).unwrap(), "file\n");
    fs::rename(workspace.join("d~lane"), workspace.join("d/file")).unwrap();
    scene.resume(&[]).exits(0);
    let files = scene.project.git(&["ls-tree", "-r", "--name-only", "main", "d"]);
    assert_eq!(files, "d/file\nd/x\n");
    scene.nothing_left();
}

/// Lost: one of two names, or both would be in base.
#[test]
fn two_new_names_of_a_file_are_asked_about() {
    let scene = contested("mv kept.txt one.txt", "mv kept.txt two.txt", "true");
    not_merged(&scene, "one.txt~base");
    let workspace = scene.workspace("SL-2");
    for gone in ["one.txt", "one.txt~base", "two.txt~lane"] {
        fs::remove_file(workspace.join(gone)).unwrap();
    }
    scene.resume(&[]).exits(0);
    assert!(scene.project.has("two.txt") && !scene.project.has("one.txt"));
    scene.nothing_left();
}

/// Lost: markers that two attempts left would be merged after the second.
#[test]
fn markers_that_stay_for_several_attempts_are_never_merged() {
    let scene = contested("echo a > kept.txt", "echo b > kept.txt", "true");
    let text = scene.project.read(super::scene::DOCUMENT).replace("Retries: 1", "Retries: 3");
    scene.project.write(super::scene::DOCUMENT, &text);
    scene.project.commit();
    not_merged(&scene, "kept.txt (it has conflict markers)");
    assert!(!scene.project.read("kept.txt").contains("<<<"));
}

/// Refused for ever: a file with such lines of its own, in which the conflict is settled.
#[test]
fn lines_like_markers_that_were_there_before_are_no_conflict() {
    let again = "grep -v -e '^<<<<<<< [0-9a-f]\\{40\\}' -e '^=======$' -e '^>>>>>>> [0-9a-f]\\{40\\}' \
                 guide.txt > new; mv new guide.txt";
    let scene = contested(
        "echo first > guide.txt; cat told >> guide.txt",
        "echo second > guide.txt; \
                 cat told >> guide.txt",
        again,
    );
    let lines = "<<<<<<< ours\nis how it begins\n>>>>>>> theirs\n";
    scene.project.write("told", lines);
    scene.project.write("guide.txt", &format!("zero\n{lines}"));
    scene.project.commit();
    scene.run(&[]).exits(0);
    assert_eq!(scene.project.read("guide.txt"), format!("first\nsecond\n{lines}"));
    scene.nothing_left();
}

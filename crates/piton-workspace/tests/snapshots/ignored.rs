//! Files whose being ignored changed between a snapshot and its restore.

use piton_workspace::restore::{KeptWhy, Scope};

use crate::support::Repo;

#[test]
fn a_captured_file_that_is_ignored_by_now_is_restored_and_comes_back() {
    let repo = Repo::new();
    repo.write("notes.log", "first");
    repo.write("out/deep/file", "first");
    repo.write("gone.log", "first");
    let (before, taken) = (repo.everything(), repo.take());
    repo.write(".gitignore", "*.log\nout/\n");
    repo.write("notes.log", "second");
    repo.write("out/deep/file", "second");
    repo.write("out/build", "never captured");
    repo.remove("gone.log");
    let changed = repo.everything();
    let plain = repo.take();
    assert!(!repo.paths(&plain).contains(&"notes.log".to_owned()), "it is ignored");
    let present = repo.present(&taken.commit);
    assert!(repo.paths(&present).contains(&"out/deep/file".to_owned()));
    assert!(!repo.paths(&present).contains(&"out/build".to_owned()), "the target has none");
    repo.restore(&taken.commit);
    let mut wanted = before.clone();
    // It is ignored, so it stays.
    let build = changed.get(b"out/build".as_slice()).unwrap();
    wanted.insert(b"out/build".to_vec(), build.clone());
    assert_eq!(repo.everything(), wanted);
    repo.undo(&present.commit, &taken.commit);
    assert_eq!(repo.everything(), changed);
    assert_eq!(repo.take().tree, plain.tree, "the next snapshot leaves it out again");
}

#[test]
fn a_file_that_was_ignored_then_stays_although_nothing_ignores_it_now() {
    let repo = Repo::new();
    repo.write(".gitignore", "*.env\nbuilt/\n");
    repo.write("src/.gitignore", "local\n");
    repo.write("key.env", "a secret");
    repo.write("built/out", "output");
    repo.write("src/local", "mine");
    let taken = repo.take();
    repo.write(".gitignore", "");
    repo.remove("src/.gitignore");
    repo.write("new.txt", "made since");
    let changed = repo.everything();
    let present = repo.present(&taken.commit);
    let plan = repo.plan(&taken.commit, &Scope::default());
    let kept: Vec<&[u8]> = plan.kept.iter().map(|k| k.path.as_slice()).collect();
    assert_eq!(kept, [b"built".as_slice(), b"built/out", b"key.env", b"src/local"]);
    assert!(plan.kept.iter().all(|k| k.why == KeptWhy::IgnoredThen));
    repo.restore(&taken.commit);
    assert_eq!(repo.read("key.env"), "a secret");
    assert_eq!(repo.read("built/out"), "output");
    assert_eq!(repo.read("src/local"), "mine");
    assert!(!repo.path("new.txt").exists());
    assert_eq!(repo.take().tree, taken.tree);
    repo.undo(&present.commit, &taken.commit);
    assert_eq!(repo.everything(), changed);
}

#[test]
fn an_ignored_folder_in_the_place_of_a_file_is_left_alone() {
    let repo = Repo::new();
    repo.write("data", "a file");
    let taken = repo.take();
    repo.remove("data");
    repo.write(".gitignore", "data/\n");
    repo.write("data/cache", "much");
    repo.restore(&taken.commit);
    assert_eq!(repo.read("data/cache"), "much");
}

#[test]
fn in_a_work_tree_of_a_lane_what_is_in_the_place_of_something_else_goes_and_comes_back() {
    let repo = Repo::new();
    repo.write("data", "a file");
    repo.write("dir/file", "in a folder");
    let (before, taken) = (repo.everything(), repo.take());
    repo.remove("data");
    repo.remove("dir/file");
    std::fs::remove_dir(repo.path("dir")).unwrap();
    repo.write(".gitignore", "data/\ndir\n");
    repo.write("data/deep/cache", "much");
    std::fs::create_dir_all(repo.path("data/empty/within")).unwrap();
    repo.write("dir", "a file now");
    let changed = repo.everything();
    let present = repo.present_of(&taken.commit, true);
    repo.restore_own(&taken.commit);
    assert_eq!(repo.everything(), before);
    repo.undo(&present.commit, &taken.commit);
    assert_eq!(repo.everything(), changed);
}

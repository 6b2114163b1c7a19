//! Restores: exact, only what differs, all or nothing, and undone by another.

use std::os::unix::fs::{MetadataExt as _, symlink};

use piton_workspace::restore::{self, Error, KeptWhy, Scope};

use crate::support::{Item, Repo};

fn busy(repo: &Repo) {
    repo.write(".gitignore", "*.o\n");
    repo.write("x.o", "ignored");
    repo.write("keep/untracked", "u");
    repo.write("secret", "s");
    repo.chmod("secret", 0o600);
    std::fs::create_dir_all(repo.path("empty/inner")).unwrap();
    repo.chmod("empty", 0o700);
    symlink("a.txt", repo.path("link")).unwrap();
}

fn wreck(repo: &Repo) {
    repo.write("a.txt", "wrecked\n");
    repo.remove("keep/untracked");
    std::fs::remove_dir(repo.path("keep")).unwrap();
    repo.write("keep", "now a file");
    repo.remove("link");
    repo.write("link/inside", "now a folder");
    std::fs::remove_dir_all(repo.path("empty")).unwrap();
    repo.chmod("secret", 0o644);
    repo.write("new/deep/file", "n");
}

#[test]
fn a_restore_is_exact_and_can_be_undone() {
    let repo = Repo::new();
    busy(&repo);
    let (before, taken) = (repo.everything(), repo.take());
    let users = repo.users();
    wreck(&repo);
    let (wrecked, present) = (repo.everything(), repo.take());
    repo.restore(&taken.commit);
    assert_eq!(repo.everything(), before);
    repo.restore(&present.commit);
    assert_eq!(repo.everything(), wrecked);
    assert_eq!(repo.users(), users);
}

/// Lost: a step that leaves folders nobody may write into, as package caches are, could not be taken
/// back. Whoever may write everywhere sees nothing here.
#[test]
fn files_go_from_folders_that_may_not_be_written() {
    let repo = Repo::new();
    let (before, taken) = (repo.everything(), repo.take());
    repo.write("src/new.txt", "n");
    repo.write("cache/deep/file", "f");
    symlink("file", repo.path("cache/deep/link")).unwrap();
    for folder in ["src", "cache/deep", "cache"] {
        repo.chmod(folder, 0o500);
    }
    let (locked, present) = (repo.everything(), repo.take());
    repo.restore(&taken.commit);
    assert_eq!(repo.everything(), before);
    repo.restore(&present.commit);
    assert_eq!(repo.everything(), locked);
    repo.restore(&taken.commit);
}

#[test]
fn files_that_do_not_differ_are_not_touched() {
    let repo = Repo::new();
    busy(&repo);
    let taken = repo.take();
    let before = std::fs::metadata(repo.path("src/b.txt")).unwrap();
    wreck(&repo);
    repo.restore(&taken.commit);
    let after = std::fs::metadata(repo.path("src/b.txt")).unwrap();
    assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
}

#[test]
fn ignored_files_stay_and_keep_their_folders() {
    let repo = Repo::new();
    repo.write(".gitignore", "*.o\n");
    let taken = repo.take();
    repo.write("fresh/a.rs", "a");
    repo.write("fresh/a.o", "built");
    assert_eq!(repo.plan(&taken.commit, &Scope::default()).deletes().count(), 2);
    repo.restore(&taken.commit);
    assert_eq!(repo.read("fresh/a.o"), "built");
    assert!(!repo.path("fresh/a.rs").exists());
}

#[test]
fn what_is_ignored_by_now_is_not_overwritten() {
    let repo = Repo::new();
    repo.write("dist", "captured");
    let taken = repo.take();
    repo.write(".gitignore", "dist\n");
    repo.write("dist", "no snapshot has this");
    let plan = repo.plan(&taken.commit, &Scope::default());
    assert_eq!(plan.kept.len(), 1);
    assert_eq!(
        (plan.kept[0].path.as_slice(), plan.kept[0].why),
        (b"dist".as_slice(), KeptWhy::InTheWay)
    );
    restore::execute(&repo.workspace.dir, &plan).unwrap();
    assert_eq!(repo.read("dist"), "no snapshot has this");
}

#[test]
fn paths_and_foreign_files_limit_a_restore() {
    let repo = Repo::new();
    let taken = repo.take();
    repo.write("a.txt", "changed\n");
    repo.write("src/b.txt", "changed\n");
    repo.write("foreign/file", "a person's");
    repo.write("ours/file", "a step's");
    let only = Scope { paths: vec!["src".into()], ..Scope::default() };
    let plan = repo.plan(&taken.commit, &only);
    assert_eq!(plan.writes().collect::<Vec<_>>(), [b"src/b.txt"]);
    assert_eq!(plan.deletes().count() + plan.kept.len(), 0);
    restore::execute(&repo.workspace.dir, &plan).unwrap();
    assert_eq!(
        (repo.read("a.txt").as_str(), repo.read("src/b.txt").as_str()),
        ("changed\n", "two\n")
    );
    let keep = Scope { keep: [b"foreign/file".to_vec()].into(), ..Scope::default() };
    let plan = repo.plan(&taken.commit, &keep);
    assert_eq!(plan.writes().collect::<Vec<_>>(), [b"a.txt"]);
    assert_eq!(plan.deletes().collect::<Vec<_>>(), [b"ours".as_slice(), b"ours/file"]);
    let kept = |kept: &restore::Kept| (kept.path.clone(), kept.why);
    let foreign = (b"foreign/file".to_vec(), KeptWhy::Foreign);
    assert_eq!(plan.kept.iter().map(kept).collect::<Vec<_>>(), [foreign]);
    restore::execute(&repo.workspace.dir, &plan).unwrap();
    assert_eq!(repo.read("foreign/file"), "a person's");
    assert!(!repo.path("ours").exists());
}

/// Lost: a link that a restored file's folder took the place of would not come back with an undo.
#[test]
fn what_led_to_a_restored_path_is_undone_with_it() {
    let repo = Repo::new();
    repo.write("link/deep/file", "f");
    repo.write("gone/deep/file", "g");
    repo.write("other/deep/file", "o");
    let taken = repo.take();
    for folder in ["link", "gone", "other"] {
        std::fs::remove_dir_all(repo.path(folder)).unwrap();
    }
    symlink("src", repo.path("link")).unwrap();
    let (before, present) = (repo.everything(), repo.take());
    let paths = ["link/deep/file", "gone/deep/file"].map(Into::into).to_vec();
    let there = Scope { paths, ..Scope::default() };
    let act = |target: &str, scope: &Scope| {
        let plan = repo.plan(target, scope);
        restore::execute(&repo.workspace.dir, &plan).unwrap();
    };
    act(&taken.commit, &there);
    assert_eq!(
        (repo.read("link/deep/file"), repo.read("gone/deep/file")),
        ("f".into(), "g".into())
    );
    let restored = repo.everything();
    let back = Scope { beside: Some(taken.commit.clone()), ..there.clone() };
    act(&present.commit, &back);
    assert_eq!(repo.everything(), before);
    // What somebody put there since stays, and so does the way to it.
    act(&taken.commit, &there);
    assert_eq!(repo.everything(), restored);
    repo.write("link/theirs", "t");
    repo.write("gone/theirs", "t");
    act(&present.commit, &back);
    assert_eq!((repo.read("link/theirs"), repo.read("gone/theirs")), ("t".into(), "t".into()));
}

#[test]
fn a_failure_puts_everything_back() {
    let repo = Repo::new();
    busy(&repo);
    let taken = repo.take();
    wreck(&repo);
    let plan = repo.plan(&taken.commit, &Scope::default());
    // A file that nobody may replace, as far as a test can make one: its folder went meanwhile
    // and an ignored file is in its place.
    repo.write("keep.o", "ignored");
    std::fs::remove_dir_all(repo.path("src")).unwrap();
    repo.write("a.txt", "changed after the plan\n");
    let everything = repo.everything();
    let failed = restore::execute(&repo.workspace.dir, &plan);
    assert!(matches!(failed, Err(Error::Moved { .. })), "{failed:?}");
    assert_eq!(repo.everything(), everything);
}

#[test]
fn a_failure_half_way_puts_everything_back() {
    let repo = Repo::new();
    repo.write(".gitignore", "*.o\n");
    std::fs::create_dir(repo.path("zz")).unwrap();
    repo.write("zz/file", "z");
    let taken = repo.take();
    repo.write("a.txt", "changed\n");
    repo.remove("zz/file");
    std::fs::remove_dir(repo.path("zz")).unwrap();
    repo.write("zz", "a file that must become a folder");
    repo.write("yy/file", "y");
    let plan = repo.plan(&taken.commit, &Scope::default());
    let everything = repo.everything();
    // A folder in the place of a temporary file's target cannot be renamed over.
    let immutable = std::process::Command::new("chattr").arg("+i").arg(repo.path("a.txt")).status();
    if !immutable.is_ok_and(|s| s.success()) {
        return;
    }
    let failed = restore::execute(&repo.workspace.dir, &plan);
    let freed = std::process::Command::new("chattr").arg("-i").arg(repo.path("a.txt")).status();
    assert!(freed.unwrap().success());
    assert!(failed.is_err());
    assert_eq!(repo.everything(), everything);
}

#[test]
fn missing_objects_are_found_before_anything_changes() {
    let repo = Repo::new();
    let taken = repo.take();
    repo.write("a.txt", "changed\n");
    let plan = repo.plan(&taken.commit, &Scope::default());
    std::fs::remove_dir_all(repo.path(".git/objects/pack")).unwrap();
    std::fs::create_dir(repo.path(".git/objects/pack")).unwrap();
    let failed = restore::execute(&repo.workspace.dir, &plan);
    assert!(matches!(failed, Err(Error::Missing { .. })), "{failed:?}");
    assert_eq!(repo.read("a.txt"), "changed\n");
}

#[test]
fn a_plain_commit_is_a_target_too() {
    let repo = Repo::new();
    repo.chmod("a.txt", 0o600);
    repo.write("src/b.txt", "changed\n");
    let head = repo.git(&["rev-parse", "HEAD"]);
    repo.restore(&head);
    assert_eq!(repo.read("src/b.txt"), "two\n");
    assert_eq!(
        repo.everything().get(b"a.txt".as_slice()),
        Some(&Item::File(b"one\n".to_vec(), 0o600))
    );
}

#[test]
fn files_of_a_snapshot_can_be_written_elsewhere() {
    let repo = Repo::new();
    busy(&repo);
    repo.write(".gitattributes", "*.txt text\n");
    repo.write("w.txt", "dos\r\n");
    let taken = repo.take();
    let to = repo.beside("exported");
    restore::export(repo.dir(), &taken.commit, &["w.txt".into(), "empty".into()], &to).unwrap();
    assert_eq!(std::fs::read(to.join("w.txt")).unwrap(), b"dos\r\n");
    assert!(to.join("empty/inner").is_dir());
    assert!(!to.join("a.txt").exists());
    let again = restore::export(repo.dir(), &taken.commit, &[], &to);
    assert!(again.is_err());
    assert!(!to.join("a.txt").exists());
}

/// The id of a process that has ended.
fn dead() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn what_a_killed_restore_left_is_never_captured_and_goes_with_the_next() {
    let repo = Repo::new();
    let taken = repo.take();
    let left = format!(".piton-restore-{}-3", dead());
    let beside = format!("src/{left}");
    let living = format!("src/.piton-restore-{}-7", std::process::id());
    let alike = "src/.piton-restore-notes";
    for path in [&beside, &living, alike] {
        repo.write(path, "half of it");
    }
    repo.write("src/b.txt", "changed\n");
    let present = repo.take();
    let held = repo.git(&["ls-tree", "-r", "--name-only", &format!("{}:tree", present.commit)]);
    assert!(held.contains(alike) && !held.contains(&left) && !held.contains(&living), "{held}");
    repo.restore(&taken.commit);
    assert_eq!(repo.read("src/b.txt"), "two\n");
    assert!(!repo.path(&beside).exists());
    assert!(repo.path(&living).exists(), "that of a living process was removed");
    assert!(!repo.path(alike).exists(), "an ordinary file did not go back");
}

/// Lost: a folder would come back empty, because its files seem to be there beyond the link.
#[test]
fn a_folder_that_became_a_link_to_one_like_it_comes_back_with_its_files() {
    let repo = Repo::new();
    repo.write("v1/f", "one");
    repo.write("v1/in/g", "one");
    repo.write("v2/f", "two");
    repo.write("v2/in/g", "two");
    let (before, taken) = (repo.everything(), repo.take());
    std::fs::remove_dir_all(repo.path("v1")).unwrap();
    symlink("v2", repo.path("v1")).unwrap();
    let (linked, present) = (repo.everything(), repo.take());
    repo.restore(&taken.commit);
    assert_eq!(repo.everything(), before);
    repo.restore(&present.commit);
    assert_eq!(repo.everything(), linked);
}

/// Lost: one file of a folder that is a plain file by now could not be asked for.
#[test]
fn a_path_below_what_is_a_plain_file_by_now_is_restored() {
    let repo = Repo::new();
    let taken = repo.take();
    std::fs::remove_dir_all(repo.path("src")).unwrap();
    repo.write("src", "plain");
    let present = repo.take();
    let scope = Scope { paths: vec!["src/b.txt".into()], ..Scope::default() };
    let plan = restore::plan(&repo.workspace, &repo.rules, &present, &taken.commit, &scope);
    restore::execute(&repo.workspace.dir, &plan.unwrap()).unwrap();
    assert_eq!(repo.read("src/b.txt"), "two\n");
}

/// Lost: any file that a link leads to which no snapshot has, because git ignores it.
#[test]
fn nothing_is_restored_through_an_ignored_link() {
    let repo = Repo::new();
    repo.write("conf/file", "ours");
    let taken = repo.take();
    std::fs::remove_dir_all(repo.path("conf")).unwrap();
    let mine = repo.beside("mine");
    std::fs::create_dir(&mine).unwrap();
    std::fs::write(mine.join("file"), "mine").unwrap();
    symlink(&mine, repo.path("conf")).unwrap();
    repo.write(".gitignore", "/conf\n");
    let present = repo.take();
    for paths in [Vec::new(), vec!["conf/file".into()]] {
        let scope = Scope { paths, ..Scope::default() };
        let plan = restore::plan(&repo.workspace, &repo.rules, &present, &taken.commit, &scope);
        let _ = restore::execute(&repo.workspace.dir, &plan.unwrap());
        assert_eq!(std::fs::read_to_string(mine.join("file")).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(&mine).unwrap().count(), 1);
    }
}

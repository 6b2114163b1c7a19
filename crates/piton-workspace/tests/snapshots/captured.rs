//! What a snapshot holds: what git would commit, and what git cannot hold.

use std::os::unix::fs::symlink;

use piton_workspace::restore::{self, ChangeKind};
use piton_workspace::snapshot;

use crate::support::Repo;

#[test]
fn the_tree_is_what_git_would_commit() {
    let repo = Repo::new();
    repo.write(".gitignore", "*.log\n!keep.log\nbuild/\n");
    repo.write("src/.gitignore", "/gen*\n!gen.keep\n");
    for path in ["x.log", "keep.log", "build/out", "src/gen.rs", "src/gen.keep", "src/deep/gen.rs"]
    {
        repo.write(path, path);
    }
    repo.write("a.txt", "changed\n");
    repo.remove("src/b.txt");
    symlink("nowhere", repo.path("dangling")).unwrap();
    symlink("src", repo.path("to-folder")).unwrap();
    repo.write("run.sh", "#!/bin/sh\n");
    repo.chmod("run.sh", 0o755);
    repo.write("sp ace/ü \"q\"/new\nline", "odd");
    let taken = repo.take();
    assert_eq!(taken.tree, repo.git_tree());
    assert_eq!(taken.degraded, []);
    assert!(taken.changed);
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn trees_stay_those_of_git_while_files_come_and_go() {
    let repo = Repo::new();
    repo.take();
    let steps: [&dyn Fn(); 6] = [
        &|| repo.write("deep/er/still/x", "1"),
        &|| repo.write("deep/er.txt", "sorts between er and er/"),
        &|| repo.remove("deep/er/still/x"),
        &|| repo.write(".gitignore", "deep/\n"),
        &|| repo.write(".gitignore", "nothing\n"),
        &|| std::fs::remove_dir_all(repo.path("deep")).unwrap(),
    ];
    for step in steps {
        step();
        assert_eq!(repo.take().tree, repo.git_tree());
    }
}

#[test]
fn tracked_files_are_captured_though_ignored() {
    let repo = Repo::new();
    repo.write("out/kept/tracked", "t");
    repo.commit();
    repo.write(".gitignore", "out/\n");
    repo.write("out/other", "o");
    repo.write("out/kept/other", "o");
    let taken = repo.take();
    assert_eq!(taken.tree, repo.git_tree());
    repo.write("out/kept/tracked", "changed");
    assert_eq!(repo.shows(&repo.take(), "out/kept/tracked"), "changed");
    repo.git(&["rm", "-q", "--cached", "out/kept/tracked"]);
    assert_eq!(repo.paths(&repo.take()), [".gitignore", "a.txt", "src/b.txt"]);
}

#[test]
fn without_a_change_nothing_is_written() {
    let repo = Repo::new();
    repo.settle();
    let first = repo.take();
    let again = repo.take();
    assert_eq!(
        (again.commit, again.tree, again.changed),
        (first.commit.clone(), first.tree, false)
    );
    std::fs::remove_file(&repo.workspace.cache).unwrap();
    assert_eq!(repo.take().commit, first.commit);
    let count = repo.git(&["rev-list", "--count", crate::support::CHAIN]);
    assert_eq!(count, "1");
}

#[test]
fn a_broken_cache_is_made_anew() {
    let repo = Repo::new();
    repo.settle();
    let first = repo.take();
    let mut bytes = std::fs::read(&repo.workspace.cache).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&repo.workspace.cache, &bytes).unwrap();
    assert_eq!(repo.take().commit, first.commit);
    std::fs::write(&repo.workspace.cache, &bytes[..middle]).unwrap();
    assert_eq!(repo.take().commit, first.commit);
}

#[test]
fn repositories_of_all_kinds_work() {
    let unborn = Repo::empty();
    unborn.write("first", "1");
    assert_eq!(unborn.paths(&unborn.take()), ["first"]);
    let nothing = Repo::empty();
    assert_eq!(nothing.take().tree, "4b825dc642cb6eb9a060e54bf8d69288fbee4904");

    let detached = Repo::new();
    detached.git(&["checkout", "-q", "--detach"]);
    assert_eq!(detached.take().tree, detached.git_tree());

    let linked = Repo::new();
    let path = linked.beside("linked");
    linked.git(&["worktree", "add", "-q", path.to_str().unwrap()]);
    let mut other = linked.workspace.clone();
    other.cache.set_file_name("linked");
    other.dir = path;
    std::fs::write(other.dir.join("only-here"), "x").unwrap();
    let meta = snapshot::Meta { message: "m", at: 0 };
    let chain = "refs/piton/run-1/other";
    let taken = snapshot::take(&other, &linked.rules, chain, &linked.fence, &meta).unwrap();
    assert_eq!(linked.paths(&taken), ["a.txt", "only-here", "src/b.txt"]);
}

#[test]
fn diff_names_every_kind_of_change() {
    let repo = Repo::new();
    repo.write("mode", "m");
    repo.write("type", "t");
    std::fs::create_dir(repo.path("empty")).unwrap();
    let before = repo.take();
    repo.write("a.txt", "changed\n");
    repo.remove("src/b.txt");
    repo.chmod("mode", 0o600);
    repo.remove("type");
    symlink("a.txt", repo.path("type")).unwrap();
    repo.write("new/file", "n");
    std::fs::remove_dir(repo.path("empty")).unwrap();
    let after = repo.take();
    let changes = restore::diff(repo.dir(), &before.commit, &after.commit).unwrap();
    let named: Vec<_> = changes
        .iter()
        .map(|c| (String::from_utf8_lossy(&c.path).into_owned(), c.kind, c.folder))
        .collect();
    let expected = [
        ("a.txt", ChangeKind::Modified, false),
        ("empty", ChangeKind::Deleted, true),
        ("mode", ChangeKind::Mode, false),
        ("new/file", ChangeKind::Added, false),
        ("src/b.txt", ChangeKind::Deleted, false),
        ("type", ChangeKind::Type, false),
    ];
    assert_eq!(named, expected.map(|(p, k, f)| (p.to_owned(), k, f)));
    let head = repo.git(&["rev-parse", "HEAD"]);
    let paths = restore::diff(repo.dir(), &head, &before.commit).unwrap();
    assert_eq!(paths.iter().map(|c| c.path.as_slice()).collect::<Vec<_>>(), [b"mode", b"type"]);
}

#[test]
fn a_snapshot_can_be_read_back() {
    let mut repo = Repo::new();
    repo.rules.file_bytes_max = 10;
    repo.write("large", "more than ten bytes");
    let taken = repo.take();
    let loaded = snapshot::load(repo.dir(), &taken.commit).unwrap();
    assert_eq!((loaded.commit, loaded.tree), (taken.commit, taken.tree));
    assert_eq!(loaded.degraded, taken.degraded);
    let head = repo.git(&["rev-parse", "HEAD"]);
    assert!(snapshot::load(repo.dir(), &head).is_err());
}

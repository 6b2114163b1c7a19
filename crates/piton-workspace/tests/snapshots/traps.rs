//! Known traps, each of which has cost somebody a file with another tool.

use piton_workspace::refs::Fence;
use piton_workspace::snapshot::{self, Why};

use crate::support::{CHAIN, Repo};

#[test]
fn an_edit_of_the_same_size_right_after_a_snapshot_is_seen() {
    let repo = Repo::new();
    for round in 0..20 {
        repo.write("a.txt", format!("{round:04}"));
        let taken = repo.take();
        assert_eq!(repo.shows(&taken, "a.txt"), format!("{round:04}"));
    }
}

#[test]
fn flags_of_the_users_index_are_not_trusted() {
    let repo = Repo::new();
    repo.git(&["update-index", "--assume-unchanged", "a.txt"]);
    repo.git(&["update-index", "--skip-worktree", "src/b.txt"]);
    repo.write("a.txt", "edited behind the flag\n");
    repo.write("src/b.txt", "edited as well\n");
    let taken = repo.take();
    assert_eq!(repo.shows(&taken, "a.txt"), "edited behind the flag");
    assert_eq!(repo.shows(&taken, "src/b.txt"), "edited as well");
}

/// A person's own mark on a file says nothing of whether it is there.
#[test]
fn a_file_marked_to_be_skipped_that_is_deleted_is_deleted_where_nothing_is_sparse() {
    let repo = Repo::new();
    repo.git(&["update-index", "--skip-worktree", "src/b.txt"]);
    let taken = repo.take();
    repo.remove("src/b.txt");
    let after = repo.take();
    assert_eq!(repo.paths(&after), ["a.txt"]);
    repo.restore(&taken.commit);
    assert_eq!(repo.read("src/b.txt"), "two\n");
    repo.restore(&after.commit);
    assert!(!repo.path("src/b.txt").exists());
}

#[test]
fn a_sparse_checkout_deletes_nothing() {
    let repo = Repo::new();
    repo.write("out/side/c.txt", "c");
    repo.commit();
    repo.git(&["sparse-checkout", "set", "src"]);
    assert!(!repo.path("out").exists());
    let taken = repo.take();
    assert_eq!(taken.tree, repo.git(&["rev-parse", "HEAD^{tree}"]));
    repo.write("src/b.txt", "edited\n");
    let after = repo.take();
    assert_eq!(repo.paths(&after), ["a.txt", "out/side/c.txt", "src/b.txt"]);
    repo.restore(&taken.commit);
    assert_eq!(repo.read("src/b.txt"), "two\n");
    assert!(!repo.path("out").exists());
    // The same with git's own shorter index.
    repo.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "src"]);
    assert_eq!(repo.take().tree, taken.tree);
}

#[test]
fn line_endings_are_kept_exactly_and_committed_as_git_would() {
    let repo = Repo::new();
    repo.write(".gitattributes", "*.txt text\n*.bin -text\n*.id ident\n");
    repo.write("w.txt", "one\r\ntwo\r\n");
    repo.write("raw.bin", "one\r\n");
    repo.write("v.id", "$Id: something$\n");
    let taken = repo.take();
    assert_eq!(taken.tree, repo.git_tree());
    assert_eq!(repo.shows(&taken, "w.txt"), "one\ntwo");
    let raw = format!("{}:side/raw/w.txt", taken.commit);
    assert_eq!(repo.git(&["cat-file", "-s", &raw]), "10");
    repo.write("w.txt", "one\ntwo\n");
    repo.write("v.id", "$Id$\n");
    let now = repo.take();
    assert_eq!(now.tree, taken.tree);
    assert!(now.changed, "the bytes on disk differ");
    repo.restore(&taken.commit);
    assert_eq!(repo.read("w.txt"), "one\r\ntwo\r\n");
    assert_eq!(repo.read("v.id"), "$Id: something$\n");
}

#[test]
fn committed_carriage_returns_stay_as_git_would_leave_them() {
    let repo = Repo::new();
    repo.write("dos.txt", "a\r\nb\r\n");
    repo.commit();
    repo.git(&["config", "core.autocrlf", "input"]);
    repo.write("dos.txt", "a\r\nb\r\nc\r\n");
    repo.write("new.txt", "a\r\n");
    let taken = repo.take();
    assert_eq!(taken.tree, repo.git_tree());
}

#[test]
fn a_clean_filter_runs_and_the_raw_bytes_come_back() {
    let repo = Repo::new();
    repo.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
    repo.git(&["config", "filter.up.smudge", "tr A-Z a-z"]);
    repo.git(&["config", "filter.up.required", "true"]);
    repo.write(".gitattributes", "*.up filter=up\n");
    repo.write("x.up", "Mixed\n");
    let taken = repo.take();
    assert_eq!(taken.tree, repo.git_tree());
    assert_eq!(repo.shows(&taken, "x.up"), "MIXED");
    repo.remove("x.up");
    repo.restore(&taken.commit);
    assert_eq!(repo.read("x.up"), "Mixed\n");
}

/// Lost, a commit would hold what git makes of files by attributes that do not hold any more: a lane would
/// be merged with bytes that its tests have not seen.
#[test]
fn files_are_converted_by_the_attributes_of_now() {
    type Act = (&'static str, fn(&Repo));
    let acts: [Act; 7] = [
        ("taken away", |repo| repo.remove(".gitattributes")),
        ("changed", |repo| repo.write(".gitattributes", "*.up -filter\n")),
        ("in a folder", |repo| repo.write("in/.gitattributes", "*.up -filter\n*.txt text\n")),
        ("of the repository", |repo| repo.write(".git/info/attributes", "*.up -filter\n")),
        ("another filter", |repo| {
            repo.git(&["config", "filter.up.clean", "sed s/i/o/"]);
        }),
        ("line endings", |repo| {
            repo.git(&["config", "core.autocrlf", "input"]);
        }),
        ("ignored ones", |repo| repo.write("quiet/.gitattributes", "*.up -filter\n")),
    ];
    for (name, act) in acts {
        let repo = Repo::new();
        repo.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
        repo.write(".gitattributes", "*.up filter=up\n");
        repo.write("in/.gitattributes", "*.other text\n");
        repo.write("quiet/.gitignore", ".gitattributes\n");
        for file in ["x.up", "in/y.up", "quiet/z.up", "dos.txt", "in/dos.txt"] {
            repo.write(file, "Mixed\r\n");
        }
        repo.take();
        repo.settle();
        let before = repo.take();
        repo.settle();
        assert!(!repo.take().changed);
        act(&repo);
        let taken = repo.take();
        assert_eq!(taken.tree, repo.git_tree(), "{name}");
        assert_ne!(taken.tree, before.tree, "{name}");
        repo.restore(&before.commit);
        assert_eq!(repo.read("in/y.up"), "Mixed\r\n", "{name}");
    }
}

/// Lost, a lane that changes attributes would commit other bytes for every file that nobody touched, and
/// meet all others there.
#[test]
fn what_is_as_it_was_committed_is_not_converted_again() {
    let repo = Repo::new();
    repo.write("dos.txt", "a\r\n");
    repo.commit();
    repo.settle();
    repo.take();
    repo.write(".gitattributes", "*.txt text\n");
    repo.write("new.txt", "a\r\n");
    let size = |path: &str| {
        let taken = repo.take();
        repo.git(&["cat-file", "-s", &format!("{}:tree/{path}", taken.commit)])
    };
    assert_eq!((size("dos.txt").as_str(), size("new.txt").as_str()), ("3", "2"));
    repo.write("dos.txt", "a\r\nb\r\n");
    assert_eq!(size("dos.txt"), "4");
}

#[test]
fn a_missing_filter_program_is_listed_and_loses_no_byte() {
    let repo = Repo::new();
    repo.git(&["config", "filter.lfs.clean", "no-such-program clean"]);
    repo.git(&["config", "filter.lfs.required", "true"]);
    repo.write(".gitattributes", "*.big filter=lfs\n");
    repo.write("x.big", "payload\n");
    let taken = repo.take();
    assert_eq!(taken.degraded.len(), 1);
    assert_eq!(
        (taken.degraded[0].path.as_slice(), taken.degraded[0].why),
        (b"x.big".as_slice(), Why::Filter)
    );
    assert!(!repo.take().changed);
    repo.write("x.big", "other\n");
    repo.restore(&taken.commit);
    assert_eq!(repo.read("x.big"), "payload\n");
}

#[test]
fn an_unmerged_index_a_lock_and_no_identity_do_not_matter() {
    let repo = Repo::new();
    repo.git(&["checkout", "-q", "-b", "other"]);
    repo.write("a.txt", "theirs\n");
    repo.commit();
    repo.git(&["checkout", "-q", "main"]);
    repo.write("a.txt", "ours\n");
    repo.commit();
    let merge = std::process::Command::new("git")
        .arg("-C")
        .arg(repo.dir())
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost", "merge", "-q", "other"])
        .output()
        .unwrap();
    assert!(!merge.status.success());
    repo.write(".git/index.lock", "");
    repo.git(&["config", "user.useConfigOnly", "true"]);
    let users = repo.users();
    let taken = repo.take();
    assert!(repo.shows(&taken, "a.txt").contains("<<<<<<<"));
    assert_eq!(repo.users(), users);
    assert!(repo.path(".git/index.lock").exists());
    let who = repo.git(&["log", "-1", "--format=%an <%ae> %ct", &taken.commit]);
    assert_eq!(who, "piton <piton@localhost> 1700000000");
}

#[test]
fn a_hook_that_fails_is_not_run() {
    let repo = Repo::new();
    for hook in ["pre-commit", "reference-transaction", "post-index-change"] {
        repo.write(&format!(".git/hooks/{hook}"), "#!/bin/sh\nexit 1\n");
        repo.chmod(&format!(".git/hooks/{hook}"), 0o755);
    }
    assert!(repo.take().changed);
}

#[test]
fn a_driver_that_was_taken_over_moves_no_ref() {
    let repo = Repo::new();
    let taken = repo.take();
    piton_workspace::refs::Fence::raise(repo.dir(), crate::support::RUN, 2).unwrap();
    repo.write("a.txt", "by a stale driver\n");
    assert!(matches!(repo.try_take(), Err(snapshot::Error::Git(_))));
    assert_eq!(repo.git(&["rev-parse", CHAIN]), taken.commit);
    let packs = std::fs::read_dir(repo.path(".git/objects/pack")).unwrap();
    let held =
        packs.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "keep"));
    assert_eq!(held.count(), 0, "what it wrote is garbage that git may collect");
}

#[test]
fn objects_that_were_collected_with_their_run_are_written_again() {
    let repo = Repo::new();
    repo.write("untracked", "only in snapshots\n");
    repo.take();
    repo.git(&["update-ref", "-d", CHAIN]);
    repo.git(&["gc", "-q", "--prune=now"]);
    let taken = repo.take();
    assert_eq!(repo.shows(&taken, "untracked"), "only in snapshots");
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn other_settings_of_git_count_at_once() {
    let repo = Repo::new();
    repo.write("x.o", "object");
    assert_eq!(repo.paths(&repo.take()), ["a.txt", "src/b.txt", "x.o"]);
    let file = repo.beside("ignore");
    std::fs::write(&file, "*.o\n").unwrap();
    repo.git(&["config", "core.excludesFile", file.to_str().unwrap()]);
    assert_eq!(repo.paths(&repo.take()), ["a.txt", "src/b.txt"]);
    std::fs::write(&file, "*.none\n").unwrap();
    assert_eq!(repo.paths(&repo.take()), ["a.txt", "src/b.txt", "x.o"]);
    repo.write(".git/info/exclude", "*.o\n");
    assert_eq!(repo.paths(&repo.take()), ["a.txt", "src/b.txt"]);
    repo.write(".git/info/exclude", "");
    repo.git(&["config", "core.fileMode", "false"]);
    repo.chmod("a.txt", 0o755);
    repo.git(&["update-index", "--chmod=+x", "src/b.txt"]);
    assert_eq!(repo.take().tree, repo.git_tree());
}

#[test]
fn rules_that_ignore_their_own_file_still_change() {
    let repo = Repo::new();
    repo.write("cachedir/.gitignore", "*\n");
    repo.write("cachedir/data", "d");
    assert_eq!(repo.paths(&repo.take()), ["a.txt", "src/b.txt"]);
    repo.write("cachedir/.gitignore", "x\n");
    let paths = ["a.txt", "cachedir/.gitignore", "cachedir/data", "src/b.txt"];
    assert_eq!(repo.paths(&repo.take()), paths);
}

/// Lost, a checkpoint by one command could fail because another, or a driver, was as quick.
#[test]
fn whoever_comes_at_once_finds_one_fence() {
    let repo = Repo::new();
    let dir = repo.dir();
    std::thread::scope(|scope| {
        let looks: Vec<_> = (0..6).map(|_| scope.spawn(|| Fence::current(dir, "other"))).collect();
        let driver = scope.spawn(|| Fence::raise(dir, "other", 1));
        assert!(looks.into_iter().all(|look| look.join().unwrap().is_ok()));
        assert!(driver.join().unwrap().unwrap().holds(dir));
    });
    assert_eq!(Fence::epoch(dir, "other").unwrap(), Some(1));
    assert!(Fence::raise(dir, "other", 0).is_err());
}

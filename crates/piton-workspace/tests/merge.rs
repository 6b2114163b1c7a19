//! Rebase and revert in the object store: linear, repeatable, conflicts by file.
//!
//! If these fail, merging could lose a commit, bring one back that the user took away, or make
//! another result the second time.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::path::Path;

use piton_workspace::merge::{self, Rebase, Revert, rebase};
use piton_workspace::worktree::{Added, Identity};
use tree_support::{Repo, commit, git, hermetic, write};

/// A lane with two commits, and one on base meanwhile.
fn apart(repo: &Repo) -> (Added, String, String) {
    let lane = repo.lane("SL-1");
    write(&lane.path, "lane.txt", "one\n");
    commit(&lane.path, "lane one");
    write(&lane.path, "lane.txt", "two\n");
    let head = commit(&lane.path, "lane two");
    repo.write("base.txt", "base\n");
    let onto = repo.commit("base");
    (lane, head, onto)
}

fn subjects(dir: &Path, commit: &str) -> Vec<String> {
    git(dir, &["log", "--format=%s", commit]).lines().map(ToOwned::to_owned).collect()
}

fn show(repo: &Repo, what: &str) -> String {
    repo.git(&["show", what])
}

#[test]
fn commits_go_on_top_of_base_the_same_way_each_time() {
    hermetic(|repo| {
        let (lane, head, onto) = apart(repo);
        let first = rebase(&repo.root, &head, &lane.start, &onto).unwrap();
        assert_eq!(first, rebase(&repo.root, &head, &lane.start, &onto).unwrap());
        let Rebase::Clean { commit, tree, commits: 2, squashed: false } = first else {
            panic!("{first:?}")
        };
        assert_eq!(subjects(&repo.root, &commit), ["lane two", "lane one", "base", "first"]);
        assert_eq!(repo.head(&format!("{commit}^{{tree}}")), tree);
        let told = "%an %ae %ad %cn %ce %cd %B";
        let told = |commit: &str| repo.git(&["log", "-1", &format!("--format={told}"), commit]);
        assert_eq!(told(&head), told(&commit));
        assert_eq!(repo.head("lane/P1/SL-1"), head, "no ref moved");
        assert_eq!(repo.head("main"), onto);
        assert_eq!(repo.status(), "");
        // On top of its own result there is nothing left to do.
        let done = rebase(&repo.root, &commit, &lane.start, &onto).unwrap();
        assert_eq!(done, Rebase::UpToDate { commit: commit.clone(), tree: tree.clone() });
        let merged = rebase(&repo.root, &head, &lane.start, &commit).unwrap();
        assert_eq!(merged, Rebase::Nothing { commit, tree });
    });
}

#[test]
fn a_lane_on_base_stays_and_an_empty_one_is_nothing() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        let nothing = rebase(&repo.root, &lane.head, &lane.start, &lane.head).unwrap();
        assert!(matches!(nothing, Rebase::Nothing { .. }));
        commit(&lane.path, "empty");
        write(&lane.path, "x", "x\n");
        let head = commit(&lane.path, "x");
        let done = rebase(&repo.root, &head, &lane.start, &lane.start).unwrap();
        let Rebase::Clean { commit: done, commits: 1, .. } = done else { panic!("{done:?}") };
        assert_eq!(subjects(&repo.root, &done), ["x", "first"], "the empty one is dropped");
    });
}

#[test]
fn conflicts_name_the_files_and_the_commit() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        write(&lane.path, "a.txt", "one\nlane\nthree\n");
        write(&lane.path, "dir/b.txt", "lane\n");
        write(&lane.path, "fine.txt", "fine\n");
        let head = commit(&lane.path, "lane's idea");
        repo.write("a.txt", "one\nbase\nthree\n");
        repo.git(&["rm", "-q", "dir/b.txt"]);
        let onto = repo.commit("base's idea");
        let found = rebase(&repo.root, &head, &lane.start, &onto).unwrap();
        let Rebase::Conflict { files, detail } = found else { panic!("{found:?}") };
        assert_eq!(files, ["a.txt", "dir/b.txt"]);
        assert!(detail.contains("lane's idea"), "{detail}");
        assert!(detail.contains("Merge conflict in a.txt"), "{detail}");
        assert!(detail.contains("modify/delete"), "{detail}");
    });
}

#[test]
fn commits_that_conflict_only_one_by_one_become_one() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        write(&lane.path, "a.txt", "one\nlane\nthree\n");
        commit(&lane.path, "try");
        write(&lane.path, "a.txt", "one\ntwo\nthree\n");
        write(&lane.path, "new.txt", "new\n");
        let head = commit(&lane.path, "take back");
        repo.write("a.txt", "one\nbase\nthree\n");
        let onto = repo.commit("base");
        let done = rebase(&repo.root, &head, &lane.start, &onto).unwrap();
        let Rebase::Clean { commit, squashed: true, commits: 1, .. } = done else {
            panic!("{done:?}")
        };
        assert_eq!(show(repo, &format!("{commit}:a.txt")), "one\nbase\nthree");
        assert_eq!(subjects(&repo.root, &commit), ["take back", "base", "first"]);
        assert!(repo.git(&["log", "-1", "--format=%b", &commit]).contains("* try"));
    });
}

#[test]
fn merges_within_a_lane_are_flattened_without_losing_what_they_hold() {
    hermetic(|repo| {
        let (lane, _, _) = apart(repo);
        git(&lane.path, &["merge", "-q", "-m", "merge base", "main"]);
        write(&lane.path, "after.txt", "after\n");
        let head = commit(&lane.path, "after");
        repo.write("base.txt", "base again\n");
        let onto = repo.commit("base again");
        let done = rebase(&repo.root, &head, &lane.start, &onto).unwrap();
        let Rebase::Clean { commit: done, commits: 3, squashed: false, .. } = done else {
            panic!("{done:?}")
        };
        assert_eq!(repo.git(&["rev-list", "--merges", &done]), "");
        // A merge with a change of its own cannot be told as a row of commits.
        git(&lane.path, &["merge", "-q", "--no-commit", "main"]);
        write(&lane.path, "evil.txt", "evil\n");
        let head = commit(&lane.path, "evil merge");
        let done = rebase(&repo.root, &head, &lane.start, &onto).unwrap();
        let Rebase::Clean { commit: done, squashed: true, .. } = done else { panic!("{done:?}") };
        assert_eq!(repo.git(&["rev-list", "--merges", &done]), "");
        assert_eq!(show(repo, &format!("{done}:evil.txt")), "evil");
        assert_eq!(show(repo, &format!("{done}:base.txt")), "base again");
    });
}

#[test]
fn commits_the_user_took_back_from_base_do_not_return() {
    hermetic(|repo| {
        let first = repo.head("main");
        repo.write("secret.txt", "oops\n");
        repo.commit("oops");
        let lane = repo.lane("SL-1");
        write(&lane.path, "lane.txt", "lane\n");
        let head = commit(&lane.path, "lane");
        repo.git(&["reset", "-q", "--hard", &first]);
        let done = rebase(&repo.root, &head, &lane.start, &first).unwrap();
        let Rebase::Clean { commit, .. } = done else { panic!("{done:?}") };
        assert_eq!(subjects(&repo.root, &commit), ["lane", "first"]);
        let files = repo.git(&["ls-tree", "-r", "--name-only", &commit]);
        assert!(!files.contains("secret"), "{files}");
    });
}

#[test]
fn odd_commits_keep_their_bytes() {
    hermetic(|repo| {
        let (lane, _, onto) = apart(repo);
        // A message in another encoding, a signature, and no line break at the end.
        let tree = git(&lane.path, &["rev-parse", "HEAD^{tree}"]);
        write(&lane.path, "x", "x\n");
        commit(&lane.path, "x");
        let (with, parent) = (
            git(&lane.path, &["rev-parse", "HEAD^{tree}"]),
            git(&lane.path, &["rev-parse", "HEAD~1"]),
        );
        assert_ne!(tree, with);
        let mut bytes = format!(
            "tree {with}\nparent {parent}\nauthor A <a@x> 1 +0130\ncommitter C <c@x> 2 -0200\n\
             gpgsig -----BEGIN\n lines\n -----END\nencoding ISO-8859-1\n\ngr"
        )
        .into_bytes();
        bytes.extend_from_slice(b"\xfc\xdfe");
        let object = repo.root.join(".git/object");
        std::fs::write(&object, &bytes).unwrap();
        let head = repo.git(&["hash-object", "-t", "commit", "-w", object.to_str().unwrap()]);
        let done = rebase(&repo.root, &head, &lane.start, &onto).unwrap();
        let Rebase::Clean { commit, .. } = done else { panic!("{done:?}") };
        let mut git = std::process::Command::new("git");
        let raw = git.current_dir(&repo.root).args(["cat-file", "commit", &commit]).output();
        let raw = raw.unwrap().stdout;
        let tail: &[u8] = b"\nauthor A <a@x> 1 +0130\ncommitter C <c@x> 2 -0200\n\
                            encoding ISO-8859-1\n\ngr\xfc\xdfe";
        assert!(raw.ends_with(tail), "{}", String::from_utf8_lossy(&raw));
    });
}

#[test]
fn a_merged_lane_is_taken_back_wherever_base_is() {
    hermetic(|repo| {
        let from = repo.head("main");
        repo.write("lane.txt", "lane\n");
        repo.write("a.txt", "one\nlane\nthree\n");
        let to = repo.commit("lane");
        repo.write("later.txt", "later\n");
        let tip = repo.commit("later");
        let revert = |tip: &str| {
            let who = Identity::Configured;
            merge::revert(&repo.root, tip, (&from, &to), "Revert lane", &who, 1_700_000_000)
                .unwrap()
        };
        let done = revert(&tip);
        assert_eq!(done, revert(&tip), "the same each time");
        let Revert::Clean { commit, .. } = done else { panic!("{done:?}") };
        let files = repo.git(&["ls-tree", "-r", "--name-only", &commit]);
        assert_eq!(files, "a.txt\ndir/b.txt\nlater.txt");
        assert_eq!(repo.head(&format!("{commit}~1")), tip);
        assert_eq!(revert(&commit), Revert::Nothing);
        repo.write("a.txt", "one\nlane and more\nthree\n");
        let tip = repo.commit("on top");
        let Revert::Conflict { files, .. } = revert(&tip) else { panic!() };
        assert_eq!(files, ["a.txt"]);
    });
}

#[test]
fn containing_is_asked_of_the_branch_as_it_is() {
    hermetic(|repo| {
        let (_, head, onto) = apart(repo);
        assert!(merge::contains(&repo.root, "main", &onto).unwrap());
        assert!(!merge::contains(&repo.root, "main", &head).unwrap());
        assert!(!merge::contains(&repo.root, "gone", &head).unwrap());
        assert!(
            merge::contains(&repo.root, "main", "0123456789012345678901234567890123456789")
                .is_err()
        );
    });
}

//! The checks before lanes are made: each refusal names what is wrong and how to put it right.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::fs;

use piton_core::refusal::Refusal;
use piton_workspace::checks;
use piton_workspace::worktree::{self, Spec};
use tree_support::{git, hermetic};

fn code<T: std::fmt::Debug>(result: Result<T, Refusal>) -> String {
    let refusal = result.unwrap_err();
    assert!(!refusal.cause.is_empty() && !refusal.remedies.is_empty());
    refusal.code.into_owned()
}

#[test]
fn base_is_what_is_checked_out_or_asked_for() {
    hermetic(|repo| {
        let base = checks::base(&repo.root, None).unwrap();
        assert_eq!((base.branch.as_str(), &base.commit), ("main", &repo.head("main")));
        assert_eq!(base.worktree.as_ref(), Some(&repo.root));
        repo.git(&["branch", "other"]);
        assert_eq!(checks::base(&repo.root, Some("other")).unwrap().worktree, None);
        assert_eq!(code(checks::base(&repo.root, Some("missing"))), "no-base");
        repo.git(&["update-ref", "refs/remotes/origin/there", "main"]);
        let remote = checks::base(&repo.root, Some("there")).unwrap_err();
        assert!(remote.to_string().contains("git branch there origin/there"), "{remote}");
        repo.git(&["checkout", "-q", "--detach"]);
        assert_eq!(code(checks::base(&repo.root, None)), "detached-head");
        assert!(checks::base(&repo.root, Some("main")).is_ok());
        repo.git(&["checkout", "-q", "--orphan", "fresh"]);
        assert_eq!(code(checks::base(&repo.root, None)), "no-commits");
    });
}

#[test]
fn base_in_bare_or_no_repositories_is_refused() {
    hermetic(|repo| {
        let home = repo.root.parent().unwrap();
        git(home, &["init", "-q", "--bare", "bare"]);
        assert_eq!(code(checks::usable(&home.join("bare"))), "bare-repository");
        fs::create_dir(home.join("plain")).unwrap();
        assert_eq!(code(checks::usable(&home.join("plain"))), "no-repository");
    });
}

#[test]
fn dirt_is_named_our_own_apart() {
    hermetic(|repo| {
        repo.lane("SL-1");
        checks::clean(&repo.root, &[]).unwrap();
        repo.write("logs/checkpoints.json", "[]");
        checks::clean(&repo.root, &["logs/checkpoints.json"]).unwrap();
        checks::clean(&repo.root, &["logs"]).unwrap();
        assert_eq!(code(checks::clean(&repo.root, &["logs/check"])), "dirty");
        for number in 0..12 {
            repo.write(&format!("new {number:02}.txt"), "x");
        }
        let refusal = checks::clean(&repo.root, &["logs"]).unwrap_err();
        assert!(refusal.cause.contains("new 09.txt, 2 more"), "{}", refusal.cause);
    });
}

/// Lost: a lane whose work moves a submodule would block the lanes behind it, with advice that is not
/// true of it. One that somebody moved on is a change.
#[test]
fn a_submodule_that_lags_behind_base_is_no_dirt() {
    hermetic(|repo| {
        let other = repo.root.parent().unwrap().join("other");
        git(repo.root.parent().unwrap(), &["init", "-q", "other"]);
        let (name, mail) = ("user.name=n", "user.email=n@n");
        let again = ["-c", name, "-c", mail, "commit", "-q", "--allow-empty", "-m", "again"];
        git(&other, &again);
        let url = other.to_str().unwrap();
        repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "sub"]);
        repo.commit("submodule");
        let sub = repo.root.join("sub");
        let one = git(&sub, &["rev-parse", "HEAD"]).trim().to_owned();
        git(&sub, &again);
        let moved = checks::clean(&repo.root, &[]).unwrap_err();
        assert!(moved.cause.contains("sub (a submodule: commit it"), "{}", moved.cause);
        repo.commit("on");
        git(&sub, &["checkout", "-q", &one]);
        checks::clean(&repo.root, &[]).unwrap();
        fs::write(sub.join("new.txt"), "new").unwrap();
        assert_eq!(code(checks::clean(&repo.root, &[])), "dirty");
    });
}

#[test]
fn operations_under_way_are_named() {
    hermetic(|repo| {
        repo.git(&["checkout", "-q", "-b", "other"]);
        repo.write("a.txt", "other\n");
        repo.commit("other");
        repo.git(&["checkout", "-q", "main"]);
        repo.write("a.txt", "main\n");
        repo.commit("main");
        for (command, what) in
            [("merge", "a merge"), ("rebase", "a rebase"), ("cherry-pick", "a cherry-pick")]
        {
            assert!(!repo.tries(&[command, "other"]));
            let refusal = checks::clean(&repo.root, &[]).unwrap_err();
            assert_eq!(refusal.code, "operation-in-progress");
            assert!(refusal.cause.starts_with(what), "{}", refusal.cause);
            repo.git(&[command, "--abort"]);
        }
        checks::clean(&repo.root, &[]).unwrap();
        repo.git(&["bisect", "start"]);
        assert_eq!(code(checks::clean(&repo.root, &[])), "operation-in-progress");
    });
}

#[test]
fn a_remote_that_would_publish_our_refs_is_remarked_on() {
    hermetic(|repo| {
        let remarks = |repo: &tree_support::Repo| {
            let all = checks::repository(&repo.root).into_iter();
            all.map(|r| r.about.cause).collect::<Vec<_>>()
        };
        assert!(remarks(repo).is_empty());
        repo.git(&["config", "remote.copy.mirror", "true"]);
        assert!(remarks(repo)[0].contains("would publish refs/piton"));
        repo.git(&["config", "--unset", "remote.copy.mirror"]);
        repo.git(&["config", "remote.copy.push", "+refs/*:refs/*"]);
        assert!(remarks(repo)[0].contains("would publish refs/piton"));
        repo.git(&["config", "--add", "remote.copy.push", "^refs/piton/*"]);
        assert!(remarks(repo).is_empty());
        repo.git(&["config", "remote.origin.promisor", "true"]);
        assert!(remarks(repo)[0].contains("partial clone"));
    });
}

/// Lost: a folder would be copied into itself until the disk is full, or a FIFO waited for.
#[test]
fn worktrees_are_not_copied_into_a_worktree_and_a_fifo_is_passed_over() {
    hermetic(|repo| {
        repo.write("local/.env", "x\n");
        let fifo = repo.root.join("local/fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let spec = |copy: &str| Spec { copy: vec![copy.to_owned()], ..repo.spec("SL-1") };
        let error = worktree::add(&repo.root, &spec(".worktrees"), &repo.fence()).unwrap_err();
        assert!(error.to_string().contains("it contains the worktrees"), "{error}");
        let added = worktree::add(&repo.root, &spec("local"), &repo.fence()).unwrap();
        assert!(added.path.join("local/.env").exists() && !added.path.join("local/fifo").exists());
    });
}

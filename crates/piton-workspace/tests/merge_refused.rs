//! What stands in the way of a merge in the work tree of base, in words that say what to do.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use piton_core::refusal::Refusal;
use piton_workspace::checks;
use piton_workspace::merge;
use tree_support::{Repo, commit, git, hermetic, write};

/// The refusal to merge a lane that changes some paths, after the user did something.
fn refusal(repo: &Repo, paths: &[&str], user: impl FnOnce()) -> Option<Refusal> {
    let old = repo.head("main");
    let lane = repo.lane("SL-1").path;
    for path in paths {
        write(&lane, path, "of the lane\n");
    }
    let new = commit(&lane, "lane");
    user();
    merge::would_follow(&checks::find_base(&repo.root, "main").unwrap(), &old, &new).err()
}

/// Lost: the advice would be to commit or stash what can be neither.
#[test]
fn a_repository_of_its_own_in_the_way_is_called_so() {
    hermetic(|repo| {
        let found = refusal(repo, &["vendor"], || {
            repo.write("vendor/own.txt", "own\n");
            git(&repo.root.join("vendor"), &["init", "-q"]);
        });
        let what = found.unwrap().cause;
        assert!(what.contains("vendor (a repository of its own: move it"), "{what}");
        let dirty = checks::clean(&repo.root, &[".worktrees"]).unwrap_err().cause;
        assert!(dirty.contains("vendor/ (a repository of its own: move it"), "{dirty}");
    });
}

/// Begins a rebase of main that stops at a conflict.
fn rebase_half_way(repo: &Repo, dir: &std::path::Path) {
    git(dir, &["checkout", "-q", "-b", "side", "main"]);
    write(dir, "a.txt", "side\n");
    commit(dir, "side");
    git(dir, &["checkout", "-q", "main"]);
    write(dir, "a.txt", "main\n");
    commit(dir, "main");
    let rebase =
        std::process::Command::new("git").current_dir(dir).args(["rebase", "side"]).output();
    assert!(!rebase.unwrap().status.success());
    assert_eq!(checks::find_base(&repo.root, "main").unwrap().worktree, None);
}

/// Lost: `git rebase --abort` puts base back to where it was when the rebase began, so what was merged
/// meanwhile would be in no branch any more.
#[test]
fn base_that_the_user_is_rebasing_does_not_move() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1").path;
        write(&lane, "new.txt", "of the lane\n");
        let new = commit(&lane, "lane");
        rebase_half_way(repo, &repo.root);
        let base = checks::find_base(&repo.root, "main").unwrap();
        let found = merge::would_follow(&base, &base.commit, &new).unwrap_err();
        assert!(found.cause.starts_with("a rebase is in progress in "), "{found}");
        assert!(found.to_string().contains(" rebase --abort`"), "{found}");
        // Also where that was asked before, and a driver was killed since.
        let moved = merge::advance(&repo.root, &base, &base.commit, &new, &repo.fence());
        assert!(matches!(moved, Err(merge::Error::InProgress(_))), "{moved:?}");
        assert_eq!(repo.head("main"), base.commit);
        git(&repo.root, &["rebase", "--abort"]);
        let base = checks::find_base(&repo.root, "main").unwrap();
        assert!(merge::would_follow(&base, &base.commit, &base.commit).is_ok());
    });
}

/// Likewise in another work tree than the one that is asked in.
#[test]
fn base_that_is_rebased_in_another_work_tree_does_not_move() {
    hermetic(|repo| {
        repo.git(&["checkout", "-q", "--detach"]);
        let other = repo.root.with_file_name("other");
        repo.git(&["worktree", "add", "-q", "../other", "main"]);
        rebase_half_way(repo, &other);
        for root in [&repo.root, &other] {
            let found = checks::find_base(root, "main").unwrap().rebased_in.unwrap();
            assert!(found.ends_with("other"), "{}", found.display());
        }
    });
}

/// Lost: git would delete the file that is there and then stop, and with the same filter it could not
/// be put back either.
#[test]
fn a_filter_that_fails_is_named_before_any_file_goes() {
    hermetic(|repo| {
        repo.write(".gitattributes", "*.bin filter=store\n");
        repo.write("x.bin", "old\n");
        repo.git(&["config", "filter.store.required", "true"]);
        repo.git(&["config", "filter.store.clean", "cat"]);
        repo.git(&["config", "filter.store.smudge", "cat"]);
        commit(&repo.root, "filtered");
        let found = refusal(repo, &["x.bin", "a.txt"], || {
            repo.git(&["config", "filter.store.smudge", "false"]);
        });
        let what = found.unwrap().cause;
        assert!(what.contains("can't be checked out: x.bin: smudge filter store failed"), "{what}");
        assert_eq!(std::fs::read_to_string(repo.root.join("x.bin")).unwrap(), "old\n");
    });
}

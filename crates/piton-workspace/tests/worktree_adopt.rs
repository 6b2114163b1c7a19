//! Branches and worktrees of another tool become those of a lane; nothing of them changes.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use piton_workspace::refs::Fence;
use piton_workspace::worktree::{self, BranchEnd, Error, Spec};
use tree_support::{RUN, commit, git, hermetic, write};

/// Lost: work of another tool would be left aside for a worktree of the same name, or be changed.
#[test]
fn a_foreign_worktree_is_taken_up_as_it_is() {
    hermetic(|repo| {
        let path = repo.root.join(".worktrees/P1/SL-1");
        repo.git(&["worktree", "add", "-q", "-b", "lane/P1/SL-1", path.to_str().unwrap()]);
        write(&path, "new.txt", "work\n");
        let head = commit(&path, "theirs");
        write(&path, "more.txt", "uncommitted\n");
        let (spec, fence) = (repo.spec("SL-1"), repo.fence());
        assert!(worktree::adopt(&repo.root, &spec, &fence).unwrap());
        assert!(worktree::adopt(&repo.root, &spec, &fence).unwrap(), "twice is once");
        assert_eq!(git(&path, &["status", "--porcelain"]), "?? more.txt");
        assert_eq!(repo.head("lane/P1/SL-1"), head);
        let again = repo.lane("SL-1");
        assert!(again.reused && !again.base_moved);
        assert_eq!((again.path, again.head), (path.clone(), head.clone()));
        worktree::remove(&repo.root, &path, &fence).unwrap();
        repo.git(&["merge", "-q", "--ff-only", "lane/P1/SL-1"]);
        let who = (RUN, "P1/SL-1");
        let end = worktree::delete_branch_if_contained(&repo.root, who, &head, "main", &fence);
        assert_eq!(end.unwrap(), BranchEnd::Deleted);
    });
}

/// Lost: a lane would work on a fresh branch beside the one that has its work.
#[test]
fn a_branch_without_a_worktree_gets_one() {
    hermetic(|repo| {
        repo.git(&["branch", "lane/P1/SL-1"]);
        assert!(!worktree::adopt(&repo.root, &repo.spec("SL-1"), &repo.fence()).unwrap());
        let lane = repo.lane("SL-1");
        assert_eq!((lane.branch.as_str(), lane.reused), ("lane/P1/SL-1", false));
        let none = worktree::adopt(&repo.root, &repo.spec("SL-2"), &repo.fence());
        assert!(matches!(none, Err(Error::NoBranch(_))));
    });
}

/// Lost: two runs would work in one worktree.
#[test]
fn the_worktree_of_another_run_of_ours_stays_its_own() {
    hermetic(|repo| {
        repo.lane("SL-1");
        let spec = Spec { run_id: "other".to_owned(), ..repo.spec("SL-1") };
        let fence = Fence::raise(&repo.root, "other", 1).unwrap();
        let refused = worktree::adopt(&repo.root, &spec, &fence);
        assert!(matches!(refused, Err(Error::Foreign(_))));
        let refs = repo.git(&["for-each-ref", "--format=%(refname)", "refs/piton/other"]);
        assert_eq!(refs, "refs/piton/other/epoch", "nothing was claimed");
    });
}

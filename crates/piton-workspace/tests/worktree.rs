//! Worktrees of lanes on real git: made once, found again after a kill anywhere, gone without trace.
//!
//! If these fail, a crash could leave worktrees behind, lose a lane's work, or touch somebody
//! else's branches and folders.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use piton_workspace::refs::{self, Fence};
use piton_workspace::worktree::{self, BranchEnd, Error, Files, Identity, Spec};
use tree_support::{RUN, Repo, git, hermetic, tree, write};

#[test]
fn a_worktree_is_made_with_branch_and_files() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        assert_eq!(lane.path, repo.root.join(".worktrees/P1/SL-1"));
        assert_eq!(lane.branch, "lane/P1/SL-1");
        assert_eq!(lane.head, repo.head("main"));
        assert!(!lane.reused && !lane.base_moved);
        assert_eq!(fs::read_to_string(lane.path.join("dir/b.txt")).unwrap(), "b\n");
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        assert_eq!(git(&lane.path, &["symbolic-ref", "HEAD"]), "refs/heads/lane/P1/SL-1");
        assert_eq!(repo.status(), "", "the folder of worktrees is no dirt");
        git(&repo.root, &["fsck", "--strict"]);
    });
}

#[test]
fn the_worktree_of_a_lane_is_found_again_as_it_was_left() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        write(&lane.path, "new.txt", "work\n");
        let head = tree_support::commit(&lane.path, "by the agent");
        write(&lane.path, "more.txt", "uncommitted\n");
        repo.write("a.txt", "moved on\n");
        repo.commit("second");
        let again = repo.lane("SL-1");
        assert!(again.reused && again.base_moved);
        assert_eq!((again.path.clone(), again.head), (lane.path, head));
        assert_eq!(again.start, lane.start);
        assert!(again.path.join("more.txt").exists());
        assert_eq!(repo.admins().len(), 1);
    });
}

#[test]
fn a_lane_that_starts_over_starts_from_the_commit_that_is_asked_for() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        repo.write("a.txt", "moved on\n");
        let now = repo.commit("second");
        worktree::start_from(&lane.path, &now, &repo.fence()).unwrap();
        assert_eq!(fs::read_to_string(lane.path.join("a.txt")).unwrap(), "moved on\n");
        let again = repo.lane("SL-1");
        assert!(again.reused && !again.base_moved, "{again:?}");
        assert_eq!((&again.head, &again.start), (&now, &now));
        // A folder that is lost is made anew from there too.
        repo.git(&["worktree", "unlock", ".worktrees/P1/SL-1"]);
        repo.git(&["worktree", "remove", "--force", ".worktrees/P1/SL-1"]);
        repo.git(&["update-ref", "-d", "refs/heads/lane/P1/SL-1"]);
        assert_eq!(repo.lane("SL-1").head, now);
    });
}

#[test]
fn an_earlier_boot_is_told_until_all_is_whole() {
    hermetic(|repo| {
        repo.lane("SL-1");
        let mark = repo.admins()[0].join("piton");
        let text = fs::read_to_string(&mark).unwrap();
        let old: Vec<&str> = text
            .lines()
            .map(|line| if line.starts_with("boot ") { "boot old" } else { line })
            .collect();
        fs::write(&mark, old.join("\n") + "\n").unwrap();
        fs::write(repo.admins()[0].join("index"), "torn").unwrap();
        let lane = repo.lane("SL-1");
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        assert!(worktree::restarted(&repo.root, &lane.path).unwrap());
        worktree::note_complete(&lane.path).unwrap();
        assert!(!worktree::restarted(&repo.root, &lane.path).unwrap());
    });
}

#[test]
fn foreign_branches_and_folders_keep_their_names() {
    hermetic(|repo| {
        repo.git(&["branch", "lane/P1/SL-1"]);
        repo.write(".worktrees/P1/SL-2/mine", "mine\n");
        repo.git(&["worktree", "add", "-q", ".worktrees/P1/SL-3", "-b", "lane/P1/SL-3"]);
        let before = repo.head("lane/P1/SL-1");
        assert_eq!(repo.lane("SL-1").branch, "lane/P1/SL-1-2");
        assert_eq!(repo.lane("SL-1").branch, "lane/P1/SL-1-2", "and found again");
        assert_eq!(repo.lane("SL-2").path, repo.root.join(".worktrees/P1/SL-2-2"));
        let third = repo.lane("SL-3");
        assert_eq!(third.branch, "lane/P1/SL-3-2");
        assert_eq!(third.path, repo.root.join(".worktrees/P1/SL-3-2"));
        assert_eq!(repo.head("lane/P1/SL-1"), before);
        assert_eq!(repo.read(".worktrees/P1/SL-2/mine"), "mine\n");
        let foreign = repo.root.join(".worktrees/P1/SL-3");
        assert!(matches!(
            worktree::remove(&repo.root, &foreign, &repo.fence()),
            Err(Error::Foreign(_))
        ));
        assert!(foreign.join("a.txt").exists());
    });
}

#[test]
fn an_entry_of_others_at_our_path_stays() {
    hermetic(|repo| {
        for (lane, lock) in [("SL-1", false), ("SL-2", true)] {
            let path = format!(".worktrees/P1/{lane}");
            repo.git(&["worktree", "add", "-q", &path, "-b", &format!("lane/P1/{lane}")]);
            if lock {
                repo.git(&["worktree", "lock", &path]);
            }
            fs::remove_dir_all(repo.root.join(path)).unwrap();
        }
        let first = repo.lane("SL-1");
        assert_eq!(first.path, repo.root.join(".worktrees/P1/SL-1-2"));
        assert_eq!(first.branch, "lane/P1/SL-1-2", "the branch is theirs");
        assert_eq!(repo.lane("SL-2").path, repo.root.join(".worktrees/P1/SL-2-2"));
        assert!(repo.worktrees().contains("locked"), "{}", repo.worktrees());
        assert_eq!(refs::run_of_branch(&repo.root, "lane/P1/SL-1-2").as_deref(), Some(RUN));
        assert_eq!(refs::run_of_branch(&repo.root, "lane/P1/SL-1"), None);
    });
}

#[test]
fn a_lane_named_like_another_ones_second_choice_gets_its_own() {
    hermetic(|repo| {
        repo.git(&["branch", "lane/P1/SL-1"]);
        assert_eq!(repo.lane("SL-1").branch, "lane/P1/SL-1-2");
        assert_eq!(repo.lane("SL-1-2").branch, "lane/P1/SL-1-2-2");
    });
}

#[test]
fn a_branch_in_the_way_of_the_folder_is_gone_round() {
    hermetic(|repo| {
        repo.git(&["branch", "lane"]);
        let lane = repo.lane("SL-1");
        assert_eq!(lane.branch, format!("piton-lane/P1/SL-1-{RUN}"));
        assert_eq!(repo.lane("SL-1").branch, lane.branch);
    });
}

#[test]
fn another_run_gets_names_of_its_own() {
    hermetic(|repo| {
        let first = repo.lane("SL-1");
        let spec = Spec { run_id: "P1-other".to_owned(), ..repo.spec("SL-1") };
        let fence = Fence::raise(&repo.root, "P1-other", 1).unwrap();
        let second = worktree::add(&repo.root, &spec, &fence).unwrap();
        assert_ne!(first.path, second.path);
        assert_ne!(first.branch, second.branch);
        let ours = worktree::list(&repo.root).unwrap();
        let ours: Vec<_> = ours.into_iter().filter_map(|entry| entry.ours).collect();
        assert_eq!(ours.len(), 2);
        assert!(ours.contains(&("P1-other".to_owned(), "P1/SL-1".to_owned())));
    });
}

/// Each point at which making a worktree can be interrupted, made by hand.
#[test]
fn half_made_worktrees_are_made_anew() {
    hermetic(|repo| {
        let reason = format!("piton: run {RUN}, lane P1/SL-1\n");
        let admin = |name: &str| {
            let dir = repo.root.join(".git/worktrees").join(name);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("locked"), &reason).unwrap();
            dir
        };
        let undo = |repo: &Repo| {
            worktree::remove(&repo.root, Path::new(".worktrees/P1/SL-1"), &repo.fence()).unwrap();
            assert!(repo.admins().is_empty(), "{:?}", repo.admins());
        };
        let whole = |repo: &Repo, reused: bool| {
            let lane = repo.lane("SL-1");
            assert_eq!(lane.path, repo.root.join(".worktrees/P1/SL-1"));
            assert_eq!((lane.branch.as_str(), lane.reused), ("lane/P1/SL-1", reused));
            assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
            assert_eq!(repo.admins().len(), 1);
            lane
        };
        // Only the record and the branch, or only the record.
        whole(repo, false);
        undo(repo);
        whole(repo, false);
        undo(repo);
        repo.git(&["update-ref", "-d", "refs/heads/lane/P1/SL-1"]);
        whole(repo, false);
        undo(repo);
        // An entry that says nothing but whose it is; and one that leads to a folder not yet there.
        admin("SL-1");
        whole(repo, false);
        undo(repo);
        let dir = admin("SL-1");
        let link = repo.root.join(".worktrees/P1/SL-1/.git");
        fs::write(dir.join("gitdir"), format!("{}\n", link.display())).unwrap();
        whole(repo, false);
        undo(repo);
        // Registered, half of the files, no index, a lock, no mark.
        let lane = whole(repo, false);
        let dir = repo.admins()[0].clone();
        fs::remove_file(dir.join("piton")).unwrap();
        fs::remove_file(dir.join("index")).unwrap();
        fs::write(dir.join("index.lock"), "").unwrap();
        fs::remove_file(lane.path.join("dir/b.txt")).unwrap();
        whole(repo, false);
        // Whole, with a stale lock: taken up as it is.
        let dir = repo.admins()[0].clone();
        fs::write(dir.join("index.lock"), "").unwrap();
        whole(repo, true);
        assert!(!dir.join("index.lock").exists());
    });
}

#[test]
fn an_entry_whose_folder_is_gone_is_pruned_and_work_on_the_branch_kept() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        write(&lane.path, "new.txt", "work\n");
        let head = tree_support::commit(&lane.path, "work");
        fs::remove_dir_all(&lane.path).unwrap();
        let stale = worktree::list(&repo.root).unwrap();
        assert!(stale.iter().any(|entry| entry.prunable && entry.ours.is_some()));
        let again = repo.lane("SL-1");
        assert!(!again.reused);
        assert_eq!(again.head, head);
        assert!(again.path.join("new.txt").exists());
        assert_eq!(repo.admins().len(), 1);
    });
}

#[test]
fn a_worktree_whose_link_was_deleted_is_linked_again() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        write(&lane.path, "work", "work\n");
        fs::remove_file(lane.path.join(".git")).unwrap();
        let again = repo.lane("SL-1");
        assert!(again.reused);
        assert_eq!(git(&again.path, &["status", "--porcelain"]), "?? work");
    });
}

#[test]
fn a_branch_of_ours_that_the_user_has_checked_out_is_refused() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
        repo.git(&["checkout", "-q", "lane/P1/SL-1"]);
        let refused = worktree::add(&repo.root, &repo.spec("SL-1"), &repo.fence());
        assert!(matches!(refused, Err(Error::BranchInUse { .. })));
        repo.git(&["checkout", "-q", "main"]);
        repo.lane("SL-1");
    });
}

#[test]
fn removal_leaves_no_trace_and_can_be_called_again() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        let before = repo.status();
        write(&lane.path, "locked/in", "x\n");
        let mut mode = fs::metadata(lane.path.join("locked")).unwrap().permissions();
        mode.set_readonly(true);
        fs::set_permissions(lane.path.join("locked"), mode).unwrap();
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
        assert!(!repo.worktrees().contains("SL-1"));
        assert!(!lane.path.exists() && !repo.root.join(".worktrees/P1").exists());
        assert!(!repo.root.join(".git/worktrees").exists());
        assert_eq!(repo.status(), before);
        // Killed between the files and the entry.
        let lane = repo.lane("SL-2");
        fs::rename(&lane.path, repo.root.join(".git/piton/trash/left")).unwrap();
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
        assert!(repo.admins().is_empty());
        worktree::empty_trash(&repo.root).unwrap();
        // The thread of the first removal may still be at it.
        while fs::read_dir(repo.root.join(".git/piton/trash")).unwrap().next().is_some() {
            let _ = worktree::empty_trash(&repo.root);
        }
    });
}

#[test]
fn what_the_user_locked_or_what_holds_another_worktree_stays() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        let path = lane.path.to_str().unwrap();
        repo.git(&["worktree", "unlock", path]);
        repo.git(&["worktree", "lock", "--reason", "mine", path]);
        let kept = worktree::remove(&repo.root, &lane.path, &repo.fence());
        assert!(matches!(kept, Err(Error::Locked { reason, .. }) if reason == "mine"));
        assert!(repo.lane("SL-1").reused);
        repo.git(&["worktree", "unlock", path]);
        let task = Spec {
            lane: "P1/SL-1/T1".to_owned(),
            path: lane.path.join("tasks/T1"),
            branch: "lane-task/P1/SL-1/T1".to_owned(),
            ..repo.spec("SL-1")
        };
        let task = worktree::add(&repo.root, &task, &repo.fence()).unwrap();
        assert_eq!(task.branch, "lane-task/P1/SL-1/T1");
        let nested = worktree::remove(&repo.root, &lane.path, &repo.fence());
        assert!(matches!(nested, Err(Error::Nested(_))));
        worktree::remove(&repo.root, &task.path, &repo.fence()).unwrap();
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
    });
}

#[test]
fn a_driver_that_was_taken_over_changes_nothing() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        let old = repo.fence();
        Fence::raise(&repo.root, RUN, 2).unwrap();
        let second = worktree::add(&repo.root, &repo.spec("SL-2"), &old);
        assert!(matches!(second, Err(Error::Superseded)));
        assert!(!repo.tries(&["rev-parse", "--verify", "-q", "lane/P1/SL-2"]));
        let removed = worktree::remove(&repo.root, &lane.path, &old);
        assert!(matches!(removed, Err(Error::Superseded)));
        write(&lane.path, "x", "x\n");
        let committed =
            worktree::commit(&lane.path, &tree(&lane.path), "x", &Identity::Configured, &old);
        assert!(matches!(committed, Err(Error::Superseded)));
        assert_eq!(repo.head("lane/P1/SL-1"), lane.head);
    });
}

#[test]
fn moving_takes_branch_index_and_files_along() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        write(&lane.path, "new.txt", "work\n");
        let second = tree_support::commit(&lane.path, "second");
        // A step left HEAD elsewhere, a merge half-way, a lock and a change.
        git(&lane.path, &["checkout", "-q", "--detach"]);
        let admin = repo.admins()[0].clone();
        fs::write(admin.join("MERGE_HEAD"), format!("{second}\n")).unwrap();
        fs::write(admin.join("index.lock"), "").unwrap();
        write(&lane.path, "a.txt", "torn\n");
        worktree::move_to(&lane.path, &lane.head, Files::Follow, &repo.fence()).unwrap();
        assert_eq!(repo.head("lane/P1/SL-1"), lane.head);
        assert_eq!(git(&lane.path, &["symbolic-ref", "HEAD"]), "refs/heads/lane/P1/SL-1");
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        assert!(!lane.path.join("new.txt").exists() && !admin.join("MERGE_HEAD").exists());
        worktree::move_to(&lane.path, &second, Files::Stay, &repo.fence()).unwrap();
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), " D new.txt");
        worktree::move_to(&lane.path, &second, Files::Follow, &repo.fence()).unwrap();
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        let main = worktree::move_to(&repo.root, &second, Files::Follow, &repo.fence());
        assert!(matches!(main, Err(Error::Foreign(_))), "never the user's");
    });
}

/// A kill leaves the locks that git holds just then. Those of what all work trees share can't be told
/// from the user's, so making a worktree takes none.
#[test]
fn a_worktree_is_made_without_the_lock_of_the_packed_refs() {
    hermetic(|repo| {
        let lock = repo.root.join(".git/packed-refs.lock");
        fs::write(&lock, "").unwrap();
        let lane = repo.lane("SL-1");
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        assert!(lock.exists());
    });
}

/// A user who commits to base while a branch goes must not make it stay for ever.
#[test]
fn a_branch_goes_although_base_moves_meanwhile() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        write(&lane.path, "new.txt", "work\n");
        let head = tree_support::commit(&lane.path, "work");
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
        repo.git(&["merge", "-q", "--ff-only", "lane/P1/SL-1"]);
        let fence = repo.fence();
        std::thread::scope(|scope| {
            // Fewer than it is tried, so that it cannot fail each time.
            let user = scope.spawn(|| {
                for _ in 0..8 {
                    // On a busy machine a lock of ours is held for longer than git waits by itself.
                    let patience = "core.filesRefLockTimeout=10000";
                    let args = ["-c", patience, "commit", "-q", "--allow-empty", "-m", "theirs"];
                    repo.git(&args);
                }
            });
            let who = (RUN, "P1/SL-1");
            let end = worktree::delete_branch_if_contained(&repo.root, who, &head, "main", &fence);
            assert_eq!(end.unwrap(), BranchEnd::Deleted);
            user.join().unwrap();
        });
        assert!(!repo.tries(&["rev-parse", "--verify", "-q", "lane/P1/SL-1"]));
        assert_eq!(repo.git(&["rev-list", "--count", &format!("{head}..main")]), "8");
    });
}

#[test]
fn a_branch_goes_only_when_base_contains_it() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        write(&lane.path, "new.txt", "work\n");
        let head = tree_support::commit(&lane.path, "work");
        let end = |head: &str| {
            let who = (RUN, "P1/SL-1");
            worktree::delete_branch_if_contained(&repo.root, who, head, "main", &repo.fence())
                .unwrap()
        };
        assert_eq!(end(&lane.head), BranchEnd::Moved(head.clone()));
        assert!(matches!(end(&head), BranchEnd::InUse(_)));
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
        assert_eq!(end(&head), BranchEnd::NotContained);
        repo.git(&["merge", "-q", "--ff-only", "lane/P1/SL-1"]);
        assert_eq!(end(&head), BranchEnd::Deleted);
        assert_eq!(end(&head), BranchEnd::Deleted);
        assert!(!repo.tries(&["rev-parse", "--verify", "-q", "lane/P1/SL-1"]));
        let left = repo.git(&["for-each-ref", "--format=%(refname)", "refs/piton"]);
        assert_eq!(left, format!("refs/piton/{RUN}/epoch"));
    });
}

/// Lost: a kill in the first moment of a worktree would leave an entry that nobody knows as ours, so it
/// would stay for ever and the lane's own would get another name.
#[test]
fn an_entry_that_was_not_even_locked_yet_is_cleared_away() {
    hermetic(|repo| {
        let entries = repo.root.join(".git/worktrees");
        let lane = repo.lane("SL-1");
        let reason = fs::read(entries.join("SL-1/locked")).unwrap();
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
        fs::create_dir_all(entries.join("SL-1")).unwrap();
        fs::write(entries.join(format!("SL-1/locked.new.{RUN}")), reason).unwrap();
        repo.lane("SL-1");
        let names: Vec<_> =
            fs::read_dir(&entries).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["SL-1"]);
    });
}

/// Lost: a kill between making the lock of a worktree and writing into it would leave an entry that
/// nobody knows as ours; or the lock that another run is just writing would be taken away from it.
#[test]
fn an_empty_lock_is_cleared_away_by_its_own_run_alone() {
    hermetic(|repo| {
        let entries = repo.root.join(".git/worktrees");
        for (entry, run) in [("SL-1", RUN), ("SL-2", "another")] {
            fs::create_dir_all(entries.join(entry)).unwrap();
            fs::write(entries.join(entry).join(format!("locked.new.{run}")), "").unwrap();
        }
        worktree::sweep_begun(&repo.root, RUN, std::iter::empty()).unwrap();
        assert!(!entries.join("SL-1").exists());
        assert!(entries.join("SL-2").exists());
    });
}

/// Lost: a copy of the repository has entries that lead to the worktrees of the first, and would remove
/// them.
#[test]
fn a_worktree_of_the_repository_this_one_was_copied_from_stays() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        let copy = repo.root.with_file_name("copy");
        let copied = std::process::Command::new("cp").arg("-a").args([&repo.root, &copy]).status();
        assert!(copied.unwrap().success());
        let removed = worktree::remove(&copy, &lane.path, &repo.fence());
        assert!(matches!(removed, Err(Error::Foreign(_))), "{removed:?}");
        assert!(lane.path.join(".git").exists());
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
        assert!(!lane.path.exists());
    });
}

/// Lost, one of several runs that begin at the same moment would be held up by the name of another's
/// branch.
#[test]
fn runs_that_begin_at_once_all_find_a_name() {
    hermetic(|repo| {
        let run = |number: usize| {
            let run_id = format!("r{number}");
            let fence = Fence::raise(&repo.root, &run_id, 1).unwrap();
            let spec = Spec { run_id, ..repo.spec("SL-1") };
            move || worktree::add(&repo.root, &spec, &fence).unwrap()
        };
        let runs: Vec<_> = (0..4).map(run).collect();
        let added: Vec<_> = std::thread::scope(|scope| {
            let begun: Vec<_> = runs.into_iter().map(|run| scope.spawn(run)).collect();
            begun.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let branches: BTreeSet<_> = added.iter().map(|one| one.branch.clone()).collect();
        let paths: BTreeSet<_> = added.iter().map(|one| one.path.clone()).collect();
        assert_eq!((branches.len(), paths.len()), (4, 4), "{branches:?} {paths:?}");
    });
}

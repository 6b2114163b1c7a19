//! Base advances, and the work tree that has it checked out follows; killed anywhere, it is told.
//!
//! If these fail, a merge could overwrite the user's changes, leave their work tree behind for
//! ever, or take away a lock that is theirs.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::fs;

use piton_workspace::checks::{self, Base};
use piton_workspace::merge::{self, Advanced, Error, Followed, Probe};
use piton_workspace::refs::{Fence, Transaction};
use tree_support::{RUN, Repo, commit, git, hermetic, write};

/// A step for base: changes, adds and deletes files.
fn step(repo: &Repo) -> (Base, String, String) {
    repo.write("gone.txt", "gone\n");
    repo.write("other.txt", "other\n");
    let old = repo.commit("more");
    let lane = repo.lane("SL-1");
    write(&lane.path, "a.txt", "one\nlane\nthree\n");
    write(&lane.path, "new/file.txt", "a new file with some text\n");
    fs::remove_file(lane.path.join("gone.txt")).unwrap();
    let new = commit(&lane.path, "lane");
    (checks::base(&repo.root, None).unwrap(), old, new)
}

fn advance(repo: &Repo, base: &Base, old: &str, new: &str) -> Advanced {
    merge::advance(&repo.root, base, old, new, &repo.fence()).unwrap()
}

/// Base moved, and nothing else yet.
fn move_ref(repo: &Repo, old: &str, new: &str) {
    let update = Transaction::fenced(&repo.fence()).update("refs/heads/main", new, Some(old));
    update.commit(&repo.root, "test").unwrap();
}

fn at_new(repo: &Repo) {
    assert_eq!(repo.read("a.txt"), "one\nlane\nthree\n");
    assert_eq!(repo.read("new/file.txt"), "a new file with some text\n");
    assert!(!repo.root.join("gone.txt").exists());
    assert!(!repo.root.join(".git/index.lock").exists());
    let ours = fs::read_dir(repo.root.join(".git")).unwrap();
    let ours = ours.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = ours.filter(|name| name.starts_with("piton-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn base_and_its_work_tree_advance_and_again_is_the_same() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        assert_eq!(merge::probe(&repo.root, &base, &old, &new).unwrap(), Probe::NotDone);
        merge::would_follow(&base, &old, &new).unwrap();
        assert_eq!(repo.head("main"), old, "asking changes nothing");
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
        assert_eq!(repo.head("main"), new);
        assert_eq!(repo.status(), "");
        at_new(repo);
        assert_eq!(merge::probe(&repo.root, &base, &old, &new).unwrap(), Probe::Done);
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
        assert!(repo.git(&["reflog", "-1", "HEAD"]).contains("piton: merge lane"));
    });
}

#[test]
fn base_goes_back_to_an_earlier_commit_unless_it_went_on() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
        assert_eq!(merge::probe(&repo.root, &base, &new, &old).unwrap(), Probe::NotDone);
        repo.write("b.txt", "on top\n");
        let top = repo.commit("on top");
        let moved = Probe::BaseMoved { found: Some(top.clone()) };
        assert_eq!(merge::probe(&repo.root, &base, &new, &old).unwrap(), moved);
        repo.git(&["reset", "--quiet", "--hard", &new]);
        assert_eq!(advance(repo, &base, &new, &old), Advanced::Done(Followed::Done));
        assert_eq!((repo.head("main"), repo.status()), (old.clone(), String::new()));
        assert_eq!(merge::probe(&repo.root, &base, &new, &old).unwrap(), Probe::Done);
        repo.write("b.txt", "on top of the old\n");
        repo.commit("on top of the old");
        assert_eq!(merge::probe(&repo.root, &base, &new, &old).unwrap(), Probe::Done);
    });
}

#[test]
fn unrelated_changes_of_the_user_survive() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        repo.write("other.txt", "edited\n");
        repo.write("dir/b.txt", "staged\n");
        repo.git(&["add", "dir/b.txt"]);
        repo.write("untracked.txt", "mine\n");
        // Touched but the same: no change.
        repo.write("a.txt", "one\ntwo\nthree\n");
        merge::would_follow(&base, &old, &new).unwrap();
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
        at_new(repo);
        assert_eq!(repo.status(), "M  dir/b.txt\n M other.txt\n?? untracked.txt");
        assert_eq!(repo.read("other.txt"), "edited\n");
    });
}

#[test]
fn overlapping_changes_are_refused_and_named() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        let refused = |what: &str| {
            let refusal = merge::would_follow(&base, &old, &new).unwrap_err();
            assert_eq!(refusal.code, "base-in-the-way");
            assert!(refusal.cause.contains(what), "{}", refusal.cause);
        };
        repo.write("a.txt", "mine\n");
        refused("a.txt");
        repo.git(&["checkout", "-q", "a.txt"]);
        repo.write("gone.txt", "mine\n");
        repo.git(&["add", "gone.txt"]);
        refused("gone.txt");
        repo.git(&["reset", "-q", "--hard"]);
        repo.write("new/file.txt", "untracked\n");
        refused("new/file.txt");
        repo.write(".git/info/exclude", "new/\nnew\n");
        refused("new/file.txt");
        fs::remove_dir_all(repo.root.join("new")).unwrap();
        repo.write("new", "a file where a folder goes\n");
        refused("new/file.txt");
        // Unasked, base does not move either: a commit of the user's would take the work back.
        let in_the_way = vec!["new/file.txt".to_owned()];
        assert_eq!(advance(repo, &base, &old, &new), Advanced::InTheWay(in_the_way.clone()));
        assert_eq!(repo.head("main"), old);
        assert!(!repo.root.join(".git/index.lock").exists());
        // If it was moved all the same, nothing is overwritten, and it can be made up for.
        move_ref(repo, &old, &new);
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Blocked(in_the_way)));
        assert_eq!(repo.read("new"), "a file where a folder goes\n");
        assert_eq!(merge::probe(&repo.root, &base, &old, &new).unwrap(), Probe::RefMoved);
        fs::remove_file(repo.root.join("new")).unwrap();
        assert_eq!(merge::follow(&repo.root, &base, &old, &new).unwrap(), Followed::Done);
        at_new(repo);
    });
}

/// The user has what the lane brings, in every way that a file can be theirs.
fn alike(repo: &Repo) {
    repo.write("a.txt", "one\nlane\nthree\n");
    repo.write("new/file.txt", "a new file with some text\n");
    fs::remove_file(repo.root.join("gone.txt")).unwrap();
}

#[test]
fn files_that_are_what_the_merge_brings_are_not_in_its_way() {
    for staged in [false, true] {
        hermetic(|repo| {
            let (base, old, new) = step(repo);
            alike(repo);
            repo.write("other.txt", "edited\n");
            if staged {
                repo.git(&["add", "-A", "a.txt", "new", "gone.txt"]);
            }
            let before = repo.status();
            merge::would_follow(&base, &old, &new).unwrap();
            assert_eq!(repo.status(), before, "asking changes nothing");
            assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
            at_new(repo);
            assert_eq!(repo.status(), " M other.txt");
        });
    }
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        repo.write("a.txt", "staged\n");
        repo.git(&["add", "a.txt"]);
        alike(repo);
        let refusal = merge::would_follow(&base, &old, &new).unwrap_err();
        assert!(refusal.cause.ends_with(": a.txt"), "{}", refusal.cause);
        assert_eq!(advance(repo, &base, &old, &new), Advanced::InTheWay(vec!["a.txt".to_owned()]));
        assert_eq!(repo.git(&["show", ":a.txt"]), "staged");
    });
}

#[test]
fn files_of_the_user_that_are_alike_are_not_taken_back_after_a_kill() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        alike(repo);
        let status = repo.status();
        // Killed before the ref moved: the step is taken back, their files are not.
        fs::write(repo.root.join(".git/piton-follow"), format!("{old} {new}\n")).unwrap();
        fs::hard_link(repo.root.join(".git/piton-follow"), repo.root.join(".git/index.lock"))
            .unwrap();
        fs::write(repo.root.join(".git/piton-theirs"), "a.txt\0new/file.txt\0gone.txt").unwrap();
        merge::finish_interrupted(&repo.root, &base, &old, &new).unwrap();
        assert_eq!(repo.status(), status);
        assert_eq!(repo.read("a.txt"), "one\nlane\nthree\n");
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
        at_new(repo);
    });
}

#[test]
fn a_file_becomes_a_folder_and_back() {
    hermetic(|repo| {
        repo.write("thing", "file\n");
        let old = repo.commit("file");
        let lane = repo.lane("SL-1");
        fs::remove_file(lane.path.join("thing")).unwrap();
        write(&lane.path, "thing/deep/x", "x\n");
        let new = commit(&lane.path, "folder");
        let base = checks::base(&repo.root, None).unwrap();
        merge::would_follow(&base, &old, &new).unwrap();
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
        assert_eq!(repo.status(), "");
        fs::remove_dir_all(lane.path.join("thing")).unwrap();
        write(&lane.path, "thing", "file\n");
        let back = commit(&lane.path, "file again");
        merge::would_follow(&base, &new, &back).unwrap();
        assert_eq!(advance(repo, &base, &new, &back), Advanced::Done(Followed::Done));
        assert_eq!((repo.status(), repo.read("thing")), (String::new(), "file\n".to_owned()));
    });
}

#[test]
fn the_users_commit_in_between_is_not_lost() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        repo.write("other.txt", "by the user\n");
        let theirs = repo.commit("theirs");
        let found = Some(theirs.clone());
        assert_eq!(advance(repo, &base, &old, &new), Advanced::BaseMoved { found: found.clone() });
        assert_eq!(
            merge::probe(&repo.root, &base, &old, &new).unwrap(),
            Probe::BaseMoved { found }
        );
        assert_eq!(repo.head("main"), theirs);
        // The queue goes round again.
        let again = merge::rebase(&repo.root, &new, &old, &theirs).unwrap();
        let merge::Rebase::Clean { commit, .. } = again else { panic!("{again:?}") };
        assert_eq!(advance(repo, &base, &theirs, &commit), Advanced::Done(Followed::Done));
        at_new(repo);
        assert_eq!(repo.read("other.txt"), "by the user\n");
        // And a commit on top of ours is no reason to doubt it.
        repo.write("later.txt", "x\n");
        repo.commit("later");
        assert_eq!(merge::probe(&repo.root, &base, &theirs, &commit).unwrap(), Probe::Done);
    });
}

#[test]
fn a_driver_that_was_taken_over_moves_nothing() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        let late = repo.fence();
        Fence::raise(&repo.root, RUN, 2).unwrap();
        let refused = merge::advance(&repo.root, &base, &old, &new, &late);
        assert!(matches!(refused, Err(Error::Superseded)));
        assert_eq!(repo.head("main"), old);
        assert_eq!(repo.status(), "");
    });
}

#[test]
fn base_that_is_not_checked_out_only_moves() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        repo.git(&["checkout", "-q", "-b", "elsewhere"]);
        repo.write("a.txt", "mine\n");
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::NotCheckedOut));
        assert_eq!(repo.read("a.txt"), "mine\n");
        assert_eq!(merge::probe(&repo.root, &base, &old, &new).unwrap(), Probe::Done);
        // Checked out in another worktree, that one follows.
        let other = repo.root.with_file_name("other tree");
        repo.git(&["branch", "-f", "main", &old]);
        repo.git(&["worktree", "add", "-q", other.to_str().unwrap(), "main"]);
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
        assert_eq!(git(&other, &["status", "--porcelain"]), "");
        assert!(other.join("new/file.txt").exists());
    });
}

/// From before the ref moves the index is held: a commit from the old index on top of the new base
/// would take the lane's work back.
#[test]
fn killed_before_the_ref_moved() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        let dir = repo.root.join(".git");
        fs::write(dir.join("piton-follow"), format!("{old} {new}\n")).unwrap();
        fs::hard_link(dir.join("piton-follow"), dir.join("index.lock")).unwrap();
        fs::copy(dir.join("index"), dir.join("piton-index")).unwrap();
        assert!(!repo.tries(&["commit", "--allow-empty", "-m", "theirs"]), "the index is held");
        assert_eq!(merge::probe(&repo.root, &base, &old, &new).unwrap(), Probe::NotDone);
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
        at_new(repo);
        assert_eq!(repo.status(), "");
    });
}

/// Between an interrupted step and its end there is no moment in which the user could commit from the
/// old index.
#[test]
fn the_index_is_not_let_go_between_a_kill_and_the_end_of_the_step() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        let dir = repo.root.join(".git");
        move_ref(repo, &old, &new);
        fs::write(dir.join("piton-follow"), format!("{old} {new}\n")).unwrap();
        let lock = dir.join("index.lock");
        fs::hard_link(dir.join("piton-follow"), &lock).unwrap();
        let behind = fs::read(dir.join("index")).unwrap();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let user = scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    if fs::File::create_new(&lock).is_ok() {
                        let found = fs::read(dir.join("index")).unwrap();
                        fs::remove_file(&lock).unwrap();
                        return found;
                    }
                }
                Vec::new()
            });
            assert_eq!(merge::follow(&repo.root, &base, &old, &new).unwrap(), Followed::Done);
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_ne!(user.join().unwrap(), behind, "the user got the old index");
        });
        at_new(repo);
    });
}

/// A run that is not gone on with must not leave the user without their index.
#[test]
fn an_interrupted_step_is_settled_without_the_next_merge() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        let dir = repo.root.join(".git");
        let interrupt = || {
            fs::write(dir.join("piton-follow"), format!("{old} {new}\n")).unwrap();
            fs::hard_link(dir.join("piton-follow"), dir.join("index.lock")).unwrap();
        };
        interrupt();
        merge::finish_interrupted(&repo.root, &base, &old, &new).unwrap();
        assert!(!dir.join("index.lock").exists() && !dir.join("piton-follow").exists());
        assert_eq!((repo.head("main"), repo.status()), (old.clone(), String::new()));
        move_ref(repo, &old, &new);
        interrupt();
        merge::finish_interrupted(&repo.root, &base, &old, &new).unwrap();
        at_new(repo);
        assert_eq!(repo.status(), "");
        // Nothing to settle, nothing changed.
        merge::finish_interrupted(&repo.root, &base, &old, &new).unwrap();
    });
}

#[test]
fn killed_between_the_ref_and_the_work_tree() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        repo.write("other.txt", "edited\n");
        move_ref(repo, &old, &new);
        assert_eq!(merge::probe(&repo.root, &base, &old, &new).unwrap(), Probe::RefMoved);
        assert_eq!(merge::follow(&repo.root, &base, &old, &new).unwrap(), Followed::Done);
        at_new(repo);
        assert_eq!(repo.status(), " M other.txt");
    });
}

/// A step interrupted while git wrote files: some new, one half-written, one missing, the lock and
/// the index aside still there.
#[test]
fn killed_while_the_files_were_written() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        repo.write("other.txt", "edited\n");
        move_ref(repo, &old, &new);
        let dir = repo.root.join(".git");
        fs::write(dir.join("piton-follow"), format!("{old} {new}\n")).unwrap();
        fs::hard_link(dir.join("piton-follow"), dir.join("index.lock")).unwrap();
        fs::copy(dir.join("index"), dir.join("piton-index")).unwrap();
        fs::write(dir.join("piton-index.lock"), "").unwrap();
        repo.write("new/file.txt", "a new file wi");
        fs::remove_file(repo.root.join("a.txt")).unwrap();
        fs::remove_file(repo.root.join("gone.txt")).unwrap();
        assert_eq!(merge::probe(&repo.root, &base, &old, &new).unwrap(), Probe::RefMoved);
        assert_eq!(merge::follow(&repo.root, &base, &old, &new).unwrap(), Followed::Done);
        at_new(repo);
        assert_eq!(repo.status(), " M other.txt");
    });
}

#[test]
fn killed_after_the_index_was_replaced() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        advance(repo, &base, &old, &new);
        let dir = repo.root.join(".git");
        fs::write(dir.join("piton-follow"), format!("{old} {new}\n")).unwrap();
        fs::hard_link(dir.join("piton-follow"), dir.join("index.lock")).unwrap();
        assert_eq!(merge::probe(&repo.root, &base, &old, &new).unwrap(), Probe::RefMoved);
        assert_eq!(merge::follow(&repo.root, &base, &old, &new).unwrap(), Followed::Done);
        at_new(repo);
    });
}

#[test]
fn what_the_user_wrote_after_an_interrupted_step_is_theirs() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        move_ref(repo, &old, &new);
        fs::write(repo.root.join(".git/piton-follow"), format!("{old} {new}\n")).unwrap();
        repo.write("a.txt", "something of the user's\n");
        repo.write("new/file.txt", "a new file with some text\n");
        let followed = merge::follow(&repo.root, &base, &old, &new).unwrap();
        assert_eq!(followed, Followed::Blocked(vec!["a.txt".to_owned()]));
        assert_eq!(repo.read("a.txt"), "something of the user's\n");
        repo.git(&["checkout-index", "-f", "a.txt"]);
        assert_eq!(merge::follow(&repo.root, &base, &old, &new).unwrap(), Followed::Done);
        at_new(repo);
    });
}

#[test]
fn a_lock_of_the_users_is_respected() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        let lock = repo.root.join(".git/index.lock");
        fs::write(&lock, "").unwrap();
        assert_eq!(merge::would_follow(&base, &old, &new).unwrap_err().code, "index-locked");
        let busy = merge::advance(&repo.root, &base, &old, &new, &repo.fence());
        assert!(matches!(busy, Err(Error::Locked(found)) if found == lock));
        assert!(lock.exists());
        fs::remove_file(&lock).unwrap();
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
        at_new(repo);
    });
}

/// Lost: git's own words about a lock would end the run instead of naming it to whoever can wait.
#[test]
fn a_lock_on_the_head_that_leads_to_base_is_named() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        let lock = repo.root.join(".git/HEAD.lock");
        fs::write(&lock, "").unwrap();
        let busy = merge::advance(&repo.root, &base, &old, &new, &repo.fence());
        assert!(matches!(busy, Err(Error::Locked(found)) if found == lock));
        fs::remove_file(&lock).unwrap();
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
        at_new(repo);
    });
}

#[test]
fn a_merge_of_the_users_under_way_is_refused() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        fs::write(repo.root.join(".git/MERGE_HEAD"), format!("{old}\n")).unwrap();
        assert_eq!(
            merge::would_follow(&base, &old, &new).unwrap_err().code,
            "operation-in-progress"
        );
    });
}

#[test]
fn hooks_of_the_user_do_not_run_on_a_merge() {
    hermetic(|repo| {
        let (base, old, new) = step(repo);
        let hooks = repo.root.join(".git/hooks");
        for hook in ["post-merge", "post-checkout", "reference-transaction", "post-index-change"] {
            use std::os::unix::fs::PermissionsExt as _;
            fs::create_dir_all(&hooks).unwrap();
            fs::write(
                hooks.join(hook),
                "#!/bin/sh\ntouch \"$(git rev-parse --git-dir)/ran\"\nexit 1\n",
            )
            .unwrap();
            fs::set_permissions(hooks.join(hook), fs::Permissions::from_mode(0o755)).unwrap();
        }
        assert_eq!(advance(repo, &base, &old, &new), Advanced::Done(Followed::Done));
        assert!(!repo.root.join(".git/ran").exists());
    });
}

//! Worktrees after a power cut: what of them was not synced is empty, or not there.
//!
//! Only the mark is synced when a worktree is made. If these fail, a power cut costs a lane its
//! worktree, or makes git or us take it for somebody else's.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::fs;
use std::path::{Path, PathBuf};

use piton_workspace::worktree::{self, Added};
use tree_support::{RUN, Repo, git, hermetic, write};

/// The files by which git knows a worktree.
fn links(repo: &Repo, lane: &Added) -> [PathBuf; 5] {
    let admin = &repo.admins()[0];
    let own = |name: &str| admin.join(name);
    [own("HEAD"), own("commondir"), own("gitdir"), own("locked"), lane.path.join(".git")]
}

/// Makes the mark one of an earlier boot.
fn reboot(admin: &Path) {
    let mark = fs::read_to_string(admin.join("piton")).unwrap();
    let aged = |line| if str::starts_with(line, "boot ") { "boot old" } else { line };
    let aged: Vec<&str> = mark.lines().map(aged).collect();
    fs::write(admin.join("piton"), aged.join("\n") + "\n").unwrap();
}

/// What a power cut may leave of a file that was not synced.
fn tear(file: &Path, how: &str) {
    match how {
        "empty" => fs::write(file, "").unwrap(),
        "zeros" => {
            fs::write(file, vec![0; fs::metadata(file).unwrap().len().try_into().unwrap()])
                .unwrap();
        }
        _ => fs::remove_file(file).unwrap(),
    }
}

/// Tears some of the files, lets git collect its garbage as a user might, and takes the lane up.
fn torn(repo: &Repo, which: &[usize], how: &str) {
    let repo = &repo.fresh(&format!("{which:?} {how}"));
    let lane = repo.lane("SL-1");
    write(&lane.path, "work.txt", "work\n");
    let files = links(repo, &lane);
    let before = files.each_ref().map(|file| fs::read(file).unwrap());
    for at in which {
        tear(&files[*at], how);
    }
    reboot(&repo.admins()[0]);
    repo.git(&["worktree", "prune", "--expire=now"]);
    let again = repo.lane("SL-1");
    let case = format!("{which:?} {how}");
    assert!(
        again.reused && worktree::restarted(&repo.root, &lane.path).unwrap(),
        "{case}: {again:?}"
    );
    assert_eq!((&again.path, &again.branch), (&lane.path, &lane.branch), "{case}");
    assert_eq!(files.each_ref().map(|file| fs::read(file).unwrap()), before, "{case}");
    assert_eq!(repo.admins().len(), 1, "{case}");
    assert_eq!(git(&lane.path, &["status", "--porcelain"]), "?? work.txt", "{case}");
    worktree::note_complete(&lane.path).unwrap();
    assert!(!worktree::restarted(&repo.root, &lane.path).unwrap(), "{case}");
}

#[test]
fn each_file_that_was_torn_is_written_again() {
    hermetic(|repo| {
        for how in ["empty", "zeros", "gone"] {
            // A lock that is not there was taken away by somebody.
            for at in (0..5).filter(|at| how != "gone" || *at != 3) {
                torn(repo, &[at], how);
            }
        }
    });
}

#[test]
fn all_files_that_were_torn_are_written_again() {
    hermetic(|repo| {
        torn(repo, &[0, 1, 2, 3, 4], "empty");
        torn(repo, &[0, 1, 2, 3, 4], "zeros");
        torn(repo, &[0, 1, 2, 4], "gone");
    });
}

#[test]
fn whoever_reads_a_torn_entry_first_finds_it_whole() {
    hermetic(|repo| {
        let fence = repo.fence();
        let tear_all = |lane: &Added| {
            for file in links(repo, lane) {
                tear(&file, "empty");
            }
            reboot(&repo.admins()[0]);
        };
        let lane = repo.lane("SL-1");
        tear_all(&lane);
        let found = worktree::checked_out(&repo.root, &lane.branch);
        assert_eq!(found.as_ref(), Some(&lane.path));
        tear_all(&lane);
        let listed = worktree::list(&repo.root).unwrap();
        let listed = listed.iter().find(|entry| entry.ours.is_some()).unwrap();
        assert_eq!((&listed.path, listed.branch.as_ref()), (&lane.path, Some(&lane.branch)));
        assert!(!listed.prunable && repo.admins()[0].join("locked").exists());
        tear_all(&lane);
        worktree::remove(&repo.root, &lane.path, &fence).unwrap();
        assert!(repo.admins().is_empty() && !lane.path.exists());
    });
}

#[test]
fn nothing_is_written_again_in_this_boot_or_for_others() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        let files = links(repo, &lane);
        // In this boot nothing is torn: whoever changed it wanted that.
        fs::write(&files[3], "").unwrap();
        worktree::list(&repo.root).unwrap();
        assert_eq!(fs::read_to_string(&files[3]).unwrap(), "");
        // A lock of the user's, a detached HEAD and another place are as they should be.
        fs::write(&files[3], "mine\n").unwrap();
        git(&lane.path, &["checkout", "-q", "--detach"]);
        let moved = repo.root.join("moved");
        repo.git(&[
            "worktree",
            "move",
            "--force",
            "--force",
            &lane.path.to_string_lossy(),
            "moved",
        ]);
        reboot(&repo.admins()[0]);
        let listed = worktree::list(&repo.root).unwrap();
        let listed = listed.iter().find(|entry| entry.path == moved).unwrap();
        assert_eq!(listed.ours, Some((RUN.to_owned(), "P1/SL-1".to_owned())));
        let locked = fs::read_to_string(repo.admins()[0].join("locked")).unwrap();
        assert_eq!((locked.trim_end(), &listed.branch), ("mine", &None));
        assert!(!lane.path.exists());
    });
}

#[test]
fn a_mark_without_the_path_is_one_as_before() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        let mark = repo.admins()[0].join("piton");
        let text = fs::read_to_string(&mark).unwrap();
        let older = text.lines().filter(|line| !line.starts_with("path "));
        fs::write(&mark, older.collect::<Vec<_>>().join("\n") + "\n").unwrap();
        reboot(&repo.admins()[0]);
        let again = repo.lane("SL-1");
        assert!(again.reused && worktree::restarted(&repo.root, &lane.path).unwrap());
        assert_eq!(again.path, lane.path);
    });
}

/// Lost: commits on a lane's branch, if a power cut brings back the note of a move that was over.
#[test]
fn a_move_that_is_over_is_not_done_again() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        let note = repo.admins()[0].join("piton-move");
        let begun =
            |from: &str| fs::write(&note, format!("{} follow {from}\n", lane.head)).unwrap();
        let one = tree_support::commit(&lane.path, "one");
        begun(&one);
        assert_eq!(repo.lane("SL-1").head, lane.head, "a move that was begun is finished");
        write(&lane.path, "two.txt", "two\n");
        let two = tree_support::commit(&lane.path, "two");
        begun(&one);
        assert_eq!(repo.lane("SL-1").head, two);
        assert!(!note.exists() && lane.path.join("two.txt").exists());
    });
}

/// Registering is several files, and a kill may come between any two of them.
#[test]
fn one_that_was_registered_in_part_is_made_anew() {
    hermetic(|repo| {
        repo.lane("SL-0");
        // The last one that was begun may hold nothing yet, but for the first.
        for (left, torn) in (0..5).map(|left| (left, false)).chain((0..4).map(|left| (left, true)))
        {
            let name = format!("SL-{}{}", left + 1, if torn { "-torn" } else { "" });
            let lane = repo.lane(&name);
            let admin = repo.root.join(".git/worktrees").join(&name);
            let order = [
                lane.path.join(".git"),
                admin.join("HEAD"),
                admin.join("commondir"),
                admin.join("gitdir"),
            ];
            for file in ["piton", "index"] {
                fs::remove_file(admin.join(file)).unwrap();
            }
            for file in fs::read_dir(&lane.path).unwrap().map(|entry| entry.unwrap().path()) {
                let _ = fs::remove_file(&file).or_else(|_| fs::remove_dir_all(&file));
            }
            fs::write(lane.path.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
            for file in order.iter().take(left) {
                fs::remove_file(file).unwrap();
            }
            if torn {
                fs::write(&order[left], "").unwrap();
            }
            let again = repo.lane(&name);
            assert!(!again.reused, "{left}");
            assert_eq!((again.path, again.branch), (lane.path.clone(), lane.branch), "{left}");
            assert_eq!(git(&lane.path, &["status", "--porcelain"]), "", "{left}");
        }
        assert_eq!(repo.admins().len(), 10);
    });
}

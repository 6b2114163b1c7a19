//! Worktrees and lane commits in odd repositories: hooks, filters, names, nobody configured.
//!
//! Each works or is refused with a reason; if these fail, some repository breaks lanes silently.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use piton_workspace::checks;
use piton_workspace::worktree::{self, Error, Identity, Spec};
use tree_support::{Repo, commit, git, hermetic, hermetic_in, tree, write};

fn committed(repo: &Repo, dir: &Path, message: &str) -> worktree::Committed {
    let fence = repo.fence();
    worktree::commit(dir, &tree(dir), message, &Identity::Configured, &fence).unwrap()
}

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn uncommitted_work_becomes_one_commit_and_nothing_becomes_none() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        let none = committed(repo, &lane.path, "nothing");
        assert_eq!((none.commit.as_str(), none.changed), (lane.head.as_str(), false));
        write(&lane.path, "a.txt", "changed\n");
        write(&lane.path, "new dir/ä.txt", "new\n");
        fs::remove_file(lane.path.join("dir/b.txt")).unwrap();
        let done = committed(repo, &lane.path, "lane SL-1\n\nbody");
        assert!(done.changed);
        assert_eq!(repo.head("lane/P1/SL-1"), done.commit);
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        assert_eq!(
            git(&lane.path, &["log", "-1", "--format=%an <%ae>|%B"]).trim_end(),
            "Ann <ann@example.org>|lane SL-1\n\nbody"
        );
        let again = committed(repo, &lane.path, "again");
        assert_eq!((again.commit, again.changed), (done.commit, false));
    });
}

/// Lost: a link that came with a commit lets lanes work in any folder of the user.
#[test]
fn a_link_out_of_the_project_is_refused_before_a_branch_is_made() {
    hermetic(|repo| {
        let outside = tempfile::tempdir().unwrap();
        for link in [".worktrees", ".worktrees/P1"] {
            let link = repo.root.join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(outside.path(), &link).unwrap();
            let refused = worktree::add(&repo.root, &repo.spec("SL-1"), &repo.fence());
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("[link-leads-out]"), "{refused}");
            assert!(refused.contains(&*link.to_string_lossy()), "{refused}");
            assert!(!repo.tries(&["rev-parse", "--verify", "lane/P1/SL-1"]));
            assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
            fs::remove_file(link).unwrap();
        }
        fs::create_dir(repo.root.join("kept")).unwrap();
        symlink("../kept", repo.root.join(".worktrees/P1")).unwrap();
        repo.lane("SL-1");
        assert!(repo.root.join("kept/SL-1/a.txt").exists());
    });
}

/// Lost: what is copied into a worktree lands where a link of the commit leads; or, after a power cut,
/// git's own small file of the worktree where a link of a step does.
#[test]
fn nothing_of_a_worktree_is_written_through_its_links() {
    hermetic(|repo| {
        let outside = tempfile::tempdir().unwrap();
        let mine = outside.path().join("mine");
        fs::write(&mine, "mine\n").unwrap();
        symlink(outside.path(), repo.root.join("conf")).unwrap();
        commit(&repo.root, "a link");
        fs::remove_file(repo.root.join("conf")).unwrap();
        repo.write("conf/mine", "copied\n");
        let spec = Spec { copy: vec!["conf/mine".to_owned()], ..repo.spec("SL-1") };
        let refused = worktree::add(&repo.root, &spec, &repo.fence()).unwrap_err().to_string();
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine\n");
        assert!(refused.contains("[link-leads-out]"), "{refused}");
        let lane = repo.lane("SL-2");
        fs::remove_file(lane.path.join(".git")).unwrap();
        symlink(&mine, lane.path.join(".git.new")).unwrap();
        assert!(repo.lane("SL-2").reused);
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine\n");
        // In the place of the worktree itself.
        fs::remove_dir_all(&lane.path).unwrap();
        symlink(outside.path(), &lane.path).unwrap();
        let added = worktree::add(&repo.root, &repo.spec("SL-2"), &repo.fence());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        let refused = added.unwrap_err().to_string();
        assert!(refused.contains("[link-leads-out]"), "{refused}");
    });
}

#[test]
fn a_file_in_the_place_of_all_worktrees_is_refused_before_a_branch_is_made() {
    hermetic(|repo| {
        repo.write(".worktrees", "a file\n");
        let refused = worktree::add(&repo.root, &repo.spec("SL-1"), &repo.fence());
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(".worktrees is not a folder"), "{refused}");
        assert!(!repo.tries(&["rev-parse", "--verify", "lane/P1/SL-1"]));
        fs::remove_file(repo.root.join(".worktrees")).unwrap();
        repo.lane("SL-1");
    });
}

#[test]
fn what_a_step_committed_itself_counts_wherever_it_did() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        write(&lane.path, "one", "1\n");
        let own = commit(&lane.path, "by the agent");
        git(&lane.path, &["checkout", "-q", "-b", "astray"]);
        write(&lane.path, "two", "2\n");
        let astray = commit(&lane.path, "on another branch");
        write(&lane.path, "three", "3\n");
        let done = committed(repo, &lane.path, "rest");
        assert_eq!(git(&lane.path, &["rev-parse", "HEAD~1"]), astray);
        assert_eq!(git(&lane.path, &["rev-parse", "HEAD~2"]), own);
        assert_eq!(git(&lane.path, &["symbolic-ref", "HEAD"]), "refs/heads/lane/P1/SL-1");
        assert_eq!(git(&lane.path, &["show", "--format=", "--name-only", &done.commit]), "three");
    });
}

#[test]
fn an_unmerged_index_and_a_merge_half_way_do_not_keep_work_from_being_committed() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        write(&lane.path, "a.txt", "lane\n");
        commit(&lane.path, "lane");
        repo.write("a.txt", "base\n");
        repo.commit("base");
        let merged =
            Command::new("git").arg("-C").arg(&lane.path).args(["merge", "main"]).output().unwrap();
        assert!(!merged.status.success(), "a conflict is wanted");
        write(&lane.path, "a.txt", "resolved\n");
        let wanted = {
            git(&lane.path, &["add", "a.txt"]);
            git(&lane.path, &["write-tree"])
        };
        let fence = repo.fence();
        let done =
            worktree::commit(&lane.path, &wanted, "rest", &Identity::Configured, &fence).unwrap();
        assert!(done.changed);
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        checks::idle(&lane.path).unwrap();
    });
}

/// Lost: git would not read a tree into such an index, so a lane whose step set a mark could never be
/// committed, moved or rolled back, and its run would end with an error each time it is resumed.
#[test]
fn files_that_a_step_told_git_not_to_look_at_are_committed_and_moved() {
    hermetic(|repo| {
        for (lane, mark) in [("SL-1", "--assume-unchanged"), ("SL-2", "--skip-worktree")] {
            let lane = repo.lane(lane);
            let all = ["a.txt", "dir/b.txt", "new\nline.txt"];
            write(&lane.path, all[2], "third\n");
            let before = commit(&lane.path, "third");
            git(&lane.path, &[&["update-index", mark][..], &all].concat());
            write(&lane.path, "a.txt", "changed\n");
            write(&lane.path, all[2], "changed too\n");
            let changed = tree(&lane.path);
            let (identity, fence) = (Identity::Configured, repo.fence());
            let done = worktree::commit(&lane.path, &changed, "lane", &identity, &fence).unwrap();
            assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
            git(&lane.path, &[&["update-index", mark][..], &all].concat());
            write(&lane.path, "a.txt", "changed again\n");
            worktree::move_to(&lane.path, &before, worktree::Files::Follow, &fence).unwrap();
            assert_ne!(done.commit, before);
            assert_eq!(fs::read_to_string(lane.path.join(all[2])).unwrap(), "third\n");
            assert_eq!(fs::read_to_string(lane.path.join("a.txt")).unwrap(), "one\ntwo\nthree\n");
        }
    });
}

/// Lost: a lane whose index a step tore could not go on before somebody knew which file to delete.
#[test]
fn an_index_that_nobody_can_read_is_made_anew() {
    hermetic(|repo| {
        let lane = repo.lane("SL-1");
        write(&lane.path, "a.txt", "changed\n");
        let changed = tree(&lane.path);
        let index = git(&lane.path, &["rev-parse", "--git-path", "index"]);
        fs::write(lane.path.join(index.trim()), "torn").unwrap();
        let (identity, fence) = (Identity::Configured, repo.fence());
        worktree::commit(&lane.path, &changed, "lane", &identity, &fence).unwrap();
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
    });
}

#[test]
fn nobody_configured_gives_the_documented_identity() {
    hermetic(|repo| {
        repo.git(&["config", "--unset", "user.name"]);
        repo.git(&["config", "--unset", "user.email"]);
        let lane = repo.lane("SL-1");
        write(&lane.path, "x", "x\n");
        committed(repo, &lane.path, "x");
        let who = git(&lane.path, &["log", "-1", "--format=%an <%ae> %cn <%ce>"]);
        assert_eq!(who, "Piton <piton@localhost> Piton <piton@localhost>");
        write(&lane.path, "x", "y\n");
        let fixed = Identity::Fixed { name: "Bea".to_owned(), email: "b@example.org".to_owned() };
        worktree::commit(&lane.path, &tree(&lane.path), "y", &fixed, &repo.fence()).unwrap();
        assert_eq!(git(&lane.path, &["log", "-1", "--format=%an %ce"]), "Bea b@example.org");
    });
}

#[test]
fn hooks_of_the_user_do_not_run() {
    hermetic(|repo| {
        let ran = repo.root.join(".git/ran");
        for hook in [
            "pre-commit",
            "commit-msg",
            "post-commit",
            "post-checkout",
            "reference-transaction",
            "post-index-change",
            "post-rewrite",
            "prepare-commit-msg",
        ] {
            let text = format!("echo {hook} >> '{}'\nexit 1", ran.display());
            script(&repo.root.join(".git/hooks").join(hook), &text);
        }
        let lane = repo.lane("SL-1");
        write(&lane.path, "x", "x\n");
        committed(repo, &lane.path, "x");
        worktree::move_to(&lane.path, &lane.head, worktree::Files::Follow, &repo.fence()).unwrap();
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
        assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
    });
}

#[test]
fn names_with_spaces_and_other_letters() {
    hermetic_in("mein Projekt – ü\n2", |repo| {
        repo.write("ein Ordner/ü\u{2003}x.txt", "ü\n");
        symlink("nowhere", repo.root.join("dangling")).unwrap();
        script(&repo.root.join("run.sh"), "true");
        repo.commit("odd");
        let mut spec = repo.spec("SL-1");
        spec.path = ".worktrees/P 1/Spur ß".into();
        let lane = worktree::add(&repo.root, &spec, &repo.fence()).unwrap();
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        assert_eq!(fs::read_link(lane.path.join("dangling")).unwrap(), Path::new("nowhere"));
        let mode = fs::metadata(lane.path.join("run.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111);
        assert!(worktree::add(&repo.root, &spec, &repo.fence()).unwrap().reused);
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
        assert!(repo.admins().is_empty());
    });
}

#[test]
fn files_to_copy_are_copied_once_and_only_within() {
    hermetic(|repo| {
        repo.write(".gitignore", ".env\nconf/\n");
        repo.commit("ignore");
        repo.write(".env", "KEY=1\n");
        repo.write("conf/deep/x", "x\n");
        symlink("deep/x", repo.root.join("conf/link")).unwrap();
        let copy = [".env", "conf", "missing"].map(ToOwned::to_owned).to_vec();
        let spec = Spec { copy, ..repo.spec("SL-1") };
        let lane = worktree::add(&repo.root, &spec, &repo.fence()).unwrap();
        assert_eq!(lane.not_copied, ["missing"]);
        assert_eq!(fs::read_to_string(lane.path.join(".env")).unwrap(), "KEY=1\n");
        assert_eq!(fs::read_to_string(lane.path.join("conf/link")).unwrap(), "x\n");
        fs::write(lane.path.join(".env"), "KEY=2\n").unwrap();
        worktree::add(&repo.root, &spec, &repo.fence()).unwrap();
        assert_eq!(fs::read_to_string(lane.path.join(".env")).unwrap(), "KEY=2\n");
        for out in ["../x", "/etc/passwd", ".git/config"] {
            let spec = Spec { copy: vec![out.to_owned()], ..repo.spec("SL-2") };
            let refused = worktree::add(&repo.root, &spec, &repo.fence());
            assert!(matches!(refused, Err(Error::OutOfProject(_))), "{out}");
        }
    });
}

#[test]
fn what_was_not_there_to_be_copied_is_copied_later_and_only_once() {
    hermetic(|repo| {
        let spec = Spec {
            copy: vec![".env".to_owned(), "own.txt".to_owned(), "never".to_owned()],
            ..repo.spec("SL-1")
        };
        let lane = worktree::add(&repo.root, &spec, &repo.fence()).unwrap();
        assert_eq!(lane.not_copied, spec.copy);
        let copied = || worktree::copy_missing(&repo.root, &lane.path).unwrap();
        assert_eq!(copied(), Vec::<String>::new());
        repo.write(".env", "KEY=1\n");
        repo.write("own.txt", "the project's\n");
        write(&lane.path, "own.txt", "the lane's\n");
        assert_eq!(copied(), [".env"]);
        assert_eq!(fs::read_to_string(lane.path.join(".env")).unwrap(), "KEY=1\n");
        assert_eq!(fs::read_to_string(lane.path.join("own.txt")).unwrap(), "the lane's\n");
        fs::remove_file(lane.path.join(".env")).unwrap();
        assert_eq!(copied(), Vec::<String>::new(), "what the lane removed stays so");
    });
}

#[test]
fn line_ends_and_filters_are_as_git_would_write_them() {
    hermetic(|repo| {
        repo.git(&["config", "filter.swap.clean", "tr a-z A-Z"]);
        repo.git(&["config", "filter.swap.smudge", "tr A-Z a-z"]);
        repo.write(".gitattributes", "*.crlf text eol=crlf\n*.swap filter=swap\n");
        repo.write("x.crlf", "one\r\ntwo\r\n");
        repo.write("x.swap", "lower\n");
        repo.commit("attributes");
        assert_eq!(repo.git(&["show", "HEAD:x.swap"]), "LOWER");
        let lane = repo.lane("SL-1");
        assert_eq!(fs::read_to_string(lane.path.join("x.crlf")).unwrap(), "one\r\ntwo\r\n");
        assert_eq!(fs::read_to_string(lane.path.join("x.swap")).unwrap(), "lower\n");
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
    });
}

#[test]
fn a_required_filter_that_is_missing_is_refused_and_can_be_mended() {
    hermetic(|repo| {
        repo.git(&["config", "filter.lfs.clean", "cat"]);
        repo.git(&["config", "filter.lfs.smudge", "cat"]);
        repo.git(&["config", "filter.lfs.required", "true"]);
        repo.write(".gitattributes", "*.bin filter=lfs\n");
        repo.write("x.bin", "pointer\n");
        repo.commit("big file");
        repo.git(&["config", "filter.lfs.smudge", "git-lfs-is-missing smudge -- %f"]);
        assert!(matches!(
            worktree::add(&repo.root, &repo.spec("SL-1"), &repo.fence()),
            Err(Error::Git(_))
        ));
        repo.git(&["config", "filter.lfs.smudge", "cat"]);
        assert!(!repo.lane("SL-1").reused);
        assert_eq!(repo.admins().len(), 1);
    });
}

#[test]
fn a_sparse_selection_holds_in_the_worktree_too() {
    hermetic(|repo| {
        repo.write("wanted/x", "x\n");
        repo.write("unwanted/y", "y\n");
        repo.commit("more");
        repo.git(&["sparse-checkout", "set", "wanted"]);
        let lane = repo.lane("SL-1");
        assert!(lane.path.join("wanted/x").exists());
        assert!(!lane.path.join("unwanted").exists());
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        write(&lane.path, "wanted/x", "changed\n");
        committed(repo, &lane.path, "x");
        assert_eq!(git(&lane.path, &["show", "HEAD:unwanted/y"]), "y");
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
    });
}

#[test]
fn submodules_stay_empty_and_are_found() {
    hermetic(|repo| {
        let other = repo.root.with_file_name("other");
        git(repo.root.parent().unwrap(), &["init", "-q", "-b", "main", "other"]);
        git(&other, &["config", "user.name", "Ann"]);
        git(&other, &["config", "user.email", "ann@example.org"]);
        write(&other, "x", "x\n");
        commit(&other, "x");
        let url = other.to_str().unwrap();
        repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "sub"]);
        repo.commit("submodule");
        let lane = repo.lane("SL-1");
        assert!(lane.path.join("sub").is_dir());
        assert!(!lane.path.join("sub/x").exists());
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        assert_eq!(checks::unfilled(&lane.path), ["sub"]);
        let fill = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"];
        git(&lane.path, &fill);
        assert_eq!(checks::unfilled(&lane.path), Vec::<String>::new());
    });
}

#[test]
fn other_object_and_ref_formats_work() {
    for format in ["--object-format=sha256", "--ref-format=reftable"] {
        hermetic(|repo| {
            let dir = repo.root.with_file_name("other");
            fs::create_dir(&dir).unwrap();
            git(&dir, &["init", "-q", "-b", "main", format]);
            git(&dir, &["config", "user.name", "Ann"]);
            git(&dir, &["config", "user.email", "ann@example.org"]);
            write(&dir, "x", "x\n");
            let start = commit(&dir, "x");
            let fence = piton_workspace::refs::Fence::raise(&dir, tree_support::RUN, 1).unwrap();
            let spec = Spec { start, ..repo.spec("SL-1") };
            let lane = worktree::add(&dir, &spec, &fence).unwrap();
            write(&lane.path, "y", "y\n");
            let done =
                worktree::commit(&lane.path, &tree(&lane.path), "y", &Identity::Configured, &fence);
            assert!(done.unwrap().changed);
            assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
            assert!(worktree::add(&dir, &spec, &fence).unwrap().reused);
            assert_eq!(checks::base(&dir, None).unwrap().worktree.as_ref(), Some(&dir));
            worktree::remove(&dir, &lane.path, &fence).unwrap();
            assert_eq!(git(&dir, &["worktree", "list"]).lines().count(), 1);
        });
    }
}

#[test]
fn stale_locks_of_ours_go_and_the_users_stay() {
    hermetic(|repo| {
        repo.lane("SL-1");
        let ours = repo.admins()[0].join("index.lock");
        let theirs = repo.root.join(".git/index.lock");
        for lock in [&ours, &theirs] {
            fs::write(lock, "").unwrap();
        }
        assert!(repo.lane("SL-1").reused);
        assert!(!ours.exists() && theirs.exists());
    });
}

#[test]
fn a_git_command_of_a_dead_driver_is_waited_for() {
    hermetic(|repo| {
        repo.lane("SL-1");
        let witness = repo.root.join(".git/piton/git-children");
        // A process that holds the lock as such a command would, until nobody reads from it.
        let file = fs::File::open(&witness).unwrap();
        file.lock_shared().unwrap();
        let mut child = Command::new("yes").stdin(file).stdout(Stdio::piped()).spawn().unwrap();
        let other = fs::File::open(&witness).unwrap();
        assert!(other.try_lock().is_err(), "it is held");
        drop(child.stdout.take());
        assert!(repo.lane("SL-1").reused);
        assert!(other.try_lock().is_ok(), "it was waited for");
        child.wait().unwrap();
    });
}

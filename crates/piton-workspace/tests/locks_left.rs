//! Git is killed while it moves base: its locks go, and base moves all the same.
//!
//! A `git` of the test's own lets the real one take its locks, and then kills it and itself. If this
//! fails, nobody can commit to base any more until they find and delete the files by hand.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use piton_workspace::merge::{self, Advanced, Followed};
use piton_workspace::{checks, refs};
use tree_support::hermetic;

/// Names the project that a process is to drive, instead of testing.
const DRIVE: &str = "PITON_TEST_DRIVE";

const SHIM: &str = r#"#!/bin/sh
own=${PATH%%:*}
PATH=${PATH#*:}
case "$*" in *"piton: merge lane"*) ;; *) exec git "$@" ;; esac
if mkfifo "$own/in" 2>"$own/told"; then
  git "$@" <"$own/in" >"$own/out" &
  sed 's/^commit$/prepare/' >"$own/lines"
  exec 3>"$own/in"
  cat "$own/lines" >&3
  until grep -q 'prepare: ok' "$own/out"; do :; done
  (cd "$own/../project/.git" && find . -name '*.lock') >"$own/locks"
  kill -9 $!
  kill -9 $$
fi
exec git "$@"
"#;

#[test]
fn base_moves_and_no_lock_stays_where_git_is_killed_in_it() {
    if let Some(root) = std::env::var_os(DRIVE) {
        let root = std::path::Path::new(&root);
        let [old, new] = ["HEAD", "next"].map(|name| refs::value(root, name).unwrap());
        let base = checks::base(root, None).unwrap();
        let fence = refs::Fence::raise(root, tree_support::RUN, 1).unwrap();
        let moved = merge::advance(root, &base, &old, &new, &fence).unwrap();
        assert_eq!(moved, Advanced::Done(Followed::Done));
        return;
    }
    hermetic(|repo| {
        repo.git(&["checkout", "-q", "-b", "next"]);
        repo.write("new.txt", "new\n");
        let next = repo.commit("next");
        repo.git(&["checkout", "-q", "main"]);
        let shim = repo.root.with_file_name("shim");
        fs::create_dir(&shim).unwrap();
        fs::write(shim.join("git"), SHIM).unwrap();
        fs::set_permissions(shim.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", shim.display(), std::env::var("PATH").unwrap());
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["base_moves_and_no_lock_stays_where_git_is_killed_in_it", "--exact"])
            .env(DRIVE, &repo.root)
            .env("PATH", path)
            .status()
            .unwrap();
        let killed = fs::read_to_string(shim.join("locks")).unwrap();
        assert!(killed.contains("./HEAD.lock") && killed.contains("refs/heads/main.lock"));
        let mut find = Command::new("find");
        let found = find.arg(repo.root.join(".git")).args(["-name", "*.lock"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "");
        assert!(status.success());
        assert_eq!(repo.head("main"), next);
    });
}

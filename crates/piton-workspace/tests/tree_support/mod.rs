//! A repository of its own for each test, and a process of its own without anybody's settings.
//!
//! The library runs git with the environment of its process, so a test that must not see the
//! developer's settings calls itself again in a clean environment.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use piton_workspace::refs::Fence;
use piton_workspace::worktree::{self, Added, Spec};
use tempfile::TempDir;

/// Says that the environment is clean already.
const CLEAN: &str = "PITON_TEST_CLEAN";

/// Asks for every case of a test that otherwise takes samples.
pub const ALL: &str = "PITON_TEST_ALL";

/// The run of all tests.
pub const RUN: &str = "P1-20260101-000000";

/// A repository with a first commit on `main`.
pub struct Repo {
    _home: TempDir,
    pub root: PathBuf,
}

/// Runs a test in a process with an empty home and no settings.
pub fn hermetic<F: FnOnce(&Repo)>(body: F) {
    hermetic_in("project", body);
}

/// The same, with a name for the project's folder.
pub fn hermetic_in<F: FnOnce(&Repo)>(folder: &str, body: F) {
    if std::env::var_os(CLEAN).is_some() {
        let repo = Repo::new(folder);
        body(&repo);
        return;
    }
    let name = std::any::type_name::<F>();
    let name = name.split("::").skip(1).take_while(|part| !part.starts_with("{{"));
    let name = name.collect::<Vec<_>>().join("::");
    let home = tempfile::tempdir().unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args([&name, "--exact", "--nocapture"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("TMPDIR", std::env::temp_dir())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env(CLEAN, "1")
        .envs(std::env::var_os(ALL).map(|value| (ALL, value)))
        .status()
        .unwrap();
    assert!(status.success(), "{name} failed, see above");
}

impl Repo {
    fn new(folder: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap().join(folder);
        fs::create_dir(&root).unwrap();
        let repo = Self { _home: home, root };
        repo.git(&["init", "-q", "-b", "main"]);
        repo.git(&["config", "user.name", "Ann"]);
        repo.git(&["config", "user.email", "ann@example.org"]);
        repo.write("a.txt", "one\ntwo\nthree\n");
        repo.write("dir/b.txt", "b\n");
        repo.commit("first");
        repo
    }

    /// A copy next to it, with a tag where lanes start, one commit more, and a change of the user's.
    pub fn fresh(&self, folder: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap().join(folder);
        let status = Command::new("cp").arg("-R").arg(&self.root).arg(&root).status().unwrap();
        assert!(status.success());
        let repo = Self { _home: home, root };
        repo.git(&["tag", "start"]);
        repo.write("base.txt", "base\n");
        repo.commit("base");
        repo.write("a.txt", "changed by the user\n");
        repo
    }

    /// Runs git in the main work tree.
    pub fn git(&self, args: &[&str]) -> String {
        git(&self.root, args)
    }

    /// Tries git in the main work tree.
    pub fn tries(&self, args: &[&str]) -> bool {
        Command::new("git").arg("-C").arg(&self.root).args(args).output().unwrap().status.success()
    }

    pub fn write(&self, path: &str, text: &str) {
        write(&self.root, path, text);
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// Commits everything in the main work tree.
    pub fn commit(&self, message: &str) -> String {
        commit(&self.root, message)
    }

    pub fn head(&self, name: &str) -> String {
        self.git(&["rev-parse", "--verify", name])
    }

    pub fn fence(&self) -> Fence {
        Fence::raise(&self.root, RUN, 1).unwrap()
    }

    pub fn status(&self) -> String {
        self.git(&["status", "--porcelain", "-uall"])
    }

    /// The worktree of a lane.
    pub fn lane(&self, lane: &str) -> Added {
        worktree::add(&self.root, &self.spec(lane), &self.fence()).unwrap()
    }

    pub fn spec(&self, lane: &str) -> Spec {
        Spec {
            run_id: RUN.to_owned(),
            lane: format!("P1/{lane}"),
            path: PathBuf::from(format!(".worktrees/P1/{lane}")),
            branch: format!("lane/P1/{lane}"),
            start: self.head("main"),
            copy: Vec::new(),
            workers: 2,
        }
    }

    pub fn worktrees(&self) -> String {
        self.git(&["worktree", "list", "--porcelain"])
    }

    /// The folders in which git registers worktrees.
    pub fn admins(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.root.join(".git/worktrees")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(dir).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

pub fn write(dir: &Path, path: &str, text: &str) {
    let file = dir.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

pub fn commit(dir: &Path, message: &str) -> String {
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "--allow-empty", "-m", message]);
    git(dir, &["rev-parse", "HEAD"])
}

/// The tree git would commit, without touching an index.
pub fn tree(dir: &Path) -> String {
    let index = tempfile::tempdir().unwrap();
    let index = index.path().join("index");
    let run = |args: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(dir).args(["-c", "core.hooksPath=/dev/null"]);
        command.args(args).env("GIT_INDEX_FILE", &index);
        let output = command.output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    run(&["read-tree", "HEAD"]);
    run(&["add", "-A"]);
    run(&["write-tree"])
}

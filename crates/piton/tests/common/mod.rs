//! The bench on which the real program is tested: a scratch repository, real processes, real kills.
//!
//! Hermetic: a home of its own, no settings of the user, nothing of the environment but a PATH. A
//! project ends whatever still runs of it when it is dropped, also after a failed test: its
//! processes are known by their HOME, which no other has, and by their working directory. Nothing
//! here waits for a fixed time; [`wait_until`] polls a condition up to a deadline.

#![allow(dead_code, reason = "each test binary uses its own part of the bench")]
#![allow(clippy::unwrap_used, reason = "a bench that can't be set up is a failed test")]

mod command;
mod processes;
pub mod terminal;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use piton_core::event::Event;
use piton_engine::Store;
use piton_ledger::{Open, Sqlite};
use piton_process::cgroup;
use serde_json::Value;

pub use command::{Driver, Output};
pub use processes::{Process, Signal, hear_signals, kill, wait_until};
use processes::{poll, processes};

/// The program under test.
pub const PITON: &str = env!("CARGO_BIN_EXE_piton");

/// A scratch project with a home of its own.
pub struct Project {
    scratch: tempfile::TempDir,
    root: PathBuf,
    outputs: AtomicU32,
}

impl Project {
    /// An empty git repository.
    pub fn new() -> Self {
        let project = Self::without_git("repo");
        project.git(&["init", "--quiet", "-b", "main"]);
        project
    }

    /// A git repository with a plan.
    pub fn with_plan(plan: &str) -> Self {
        let project = Self::new();
        project.write("plan.toml", plan);
        project
    }

    /// A plain folder of that name.
    pub fn without_git(name: &str) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        for dir in ["home", "tmp", "out", name] {
            fs::create_dir_all(scratch.path().join(dir)).unwrap();
        }
        let root = scratch.path().join(name).canonicalize().unwrap();
        Self { scratch, root, outputs: AtomicU32::new(0) }
    }

    /// The project's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder around the project, for what must lie outside of it.
    pub fn outside(&self) -> &Path {
        self.scratch.path()
    }

    /// Where Piton keeps its state.
    pub fn state_dir(&self) -> PathBuf {
        let git = self.root.join(".git");
        if git.is_dir() { git.join("piton") } else { self.root.join(".piton") }
    }

    /// The folders of all runs.
    pub fn run_dirs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state_dir().join("runs")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// The cgroups of all runs that are there.
    pub fn cgroups(&self) -> Vec<PathBuf> {
        self.run_dirs().iter().flat_map(|dir| cgroup::groups(dir)).collect()
    }

    /// A command in the project's root with the hermetic environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let at = |name: &str| self.scratch.path().join(name);
        command
            .current_dir(&self.root)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", at("home"))
            .env("XDG_CONFIG_HOME", at("home/.config"))
            .env("XDG_CACHE_HOME", at("home/.cache"))
            .env("XDG_STATE_HOME", at("home/.state"))
            .env("XDG_DATA_HOME", at("home/.data"))
            .env("TMPDIR", at("tmp"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("LC_ALL", "C.UTF-8")
            .env("USER", "tester")
            // Steps call the program under test by this name.
            .env("PROGRAM", PITON)
            .stdin(Stdio::null());
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "tester");
            command.env(format!("GIT_{who}_EMAIL"), "tester@localhost");
        }
        command
    }

    /// Runs Piton to its end in the project's root.
    #[track_caller]
    pub fn piton(&self, args: &[&str]) -> Output {
        self.finish(self.command(PITON).args(args))
    }

    /// Runs Piton to its end in a folder.
    #[track_caller]
    pub fn piton_in(&self, dir: &Path, args: &[&str]) -> Output {
        self.finish(self.command(PITON).args(args).current_dir(dir))
    }

    /// Runs git; it must succeed.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.finish(self.command("git").args(args)).exits(0).stdout
    }

    /// Commits all there is.
    #[track_caller]
    pub fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "work"]);
    }

    /// Runs a shell line to its end.
    #[track_caller]
    pub fn sh(&self, line: &str) -> Output {
        self.finish(self.command("sh").args(["-c", line]))
    }

    /// Runs a prepared command to its end; bounded, so that nothing hangs the test.
    #[track_caller]
    pub fn finish(&self, command: &mut Command) -> Output {
        self.start(command).wait()
    }

    /// Starts Piton in the project's root.
    #[track_caller]
    pub fn spawn(&self, args: &[&str]) -> Driver {
        self.start(self.command(PITON).args(args))
    }

    /// Starts a prepared command; its output goes to files, so that it never blocks on us.
    #[track_caller]
    pub fn start(&self, command: &mut Command) -> Driver {
        hear_signals();
        let number = self.outputs.fetch_add(1, Ordering::Relaxed);
        let path = |stream: &str| self.scratch.path().join(format!("out/{number}.{stream}"));
        let (out, err) = (path("stdout"), path("stderr"));
        let child = command
            .stdout(fs::File::create(&out).unwrap())
            .stderr(fs::File::create(&err).unwrap())
            .spawn()
            .unwrap();
        Driver { child, out, err }
    }

    /// Writes a file of the project.
    #[track_caller]
    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Reads a file of the project.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// Deletes a file of the project.
    #[track_caller]
    pub fn remove(&self, path: &str) {
        fs::remove_file(self.root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    }

    /// Whether a file of the project is there.
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The lines of a file of the project; none while it is not there.
    pub fn lines(&self, path: &str) -> Vec<String> {
        let text = fs::read_to_string(self.root.join(path)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until a file of the project is there.
    #[track_caller]
    pub fn wait_for(&self, path: &str) {
        wait_until(path, || self.has(path));
    }

    /// `status --json` of a run, or of the newest.
    #[track_caller]
    pub fn status_json(&self, run: &str) -> Value {
        let args: &[&str] =
            if run.is_empty() { &["status", "--json"] } else { &["status", "--json", run] };
        self.piton(args).exits(0).json()
    }

    /// The status of a run, or of the newest.
    #[track_caller]
    pub fn status(&self, run: &str) -> String {
        self.status_json(run)["status"].as_str().unwrap().to_owned()
    }

    /// One step of the newest run, as `status --json` has it.
    #[track_caller]
    pub fn step(&self, path: &str) -> Value {
        let mut found = self.status_json("");
        for (part, list) in path.split('/').zip(["phases", "lanes", "steps"]) {
            let all = found[list].as_array().cloned().unwrap_or_default();
            found =
                all.into_iter().find(|v| v["id"] == part).unwrap_or_else(|| panic!("no {path}"));
        }
        found
    }

    /// The status of one step of the newest run.
    #[track_caller]
    pub fn step_status(&self, path: &str) -> String {
        self.step(path)["status"].as_str().unwrap().to_owned()
    }

    /// The id of the newest run.
    #[track_caller]
    pub fn run_id(&self) -> String {
        self.status_json("")["run_id"].as_str().unwrap().to_owned()
    }

    /// The events of a run, or of the newest, straight from the ledger.
    #[track_caller]
    pub fn events(&self, run: &str) -> Vec<Event> {
        let ledger = Sqlite::open(&self.state_dir(), Open::ReadOnly).unwrap();
        let mut store = Store::new(Box::new(ledger));
        let rows = store.runs().unwrap();
        let row = rows.iter().find(|r| run.is_empty() || r.run_id == run).unwrap();
        let (mut events, mut seq) = (Vec::new(), 0);
        loop {
            let page = store.events(row, seq).unwrap();
            let Some(last) = page.last() else {
                return events;
            };
            seq = last.0;
            events.extend(page.into_iter().map(|(_, _, event)| event));
        }
    }

    /// The processes of this project that live: of Piton and of its steps.
    pub fn processes(&self) -> Vec<Process> {
        processes(self.scratch.path())
    }

    /// The keepers that live.
    pub fn keepers(&self) -> Vec<Process> {
        let keeper = |p: &Process| p.command.contains("__keeper");
        self.processes().into_iter().filter(keeper).collect()
    }

    /// Kills all that runs here, at once, until nothing is left.
    #[track_caller]
    pub fn kill_all(&self) {
        wait_until("everything killed", || {
            let left = self.processes();
            for process in &left {
                kill(process.pid, Signal::KILL);
            }
            left.is_empty()
        });
    }

    /// Ends all that runs here and makes what is on disk that of an earlier boot of the machine.
    #[track_caller]
    pub fn reboot(&self) {
        self.kill_all();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let worktrees = fs::read_dir(self.root.join(".git/worktrees")).into_iter().flatten();
        let marks = worktrees.flatten().map(|entry| entry.path().join("piton"));
        let journals = self.run_dirs().into_iter().map(|dir| dir.join("keeper.journal"));
        for file in marks.chain(journals) {
            let Ok(text) = fs::read_to_string(&file) else { continue };
            fs::write(&file, text.replace(boot.trim(), "an-earlier-boot")).unwrap();
        }
    }

    /// Waits until nothing of this project runs any more.
    #[track_caller]
    pub fn wait_quiet(&self) {
        let mut left = Vec::new();
        let quiet = poll(|| {
            left = self.processes();
            left.is_empty()
        });
        assert!(quiet, "still alive: {left:?}");
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        // Not an assertion: a second panic would hide the first.
        poll(|| {
            let left = self.processes();
            for process in &left {
                kill(process.pid, Signal::KILL);
            }
            left.is_empty()
        });
        self.run_dirs().iter().for_each(|dir| cgroup::disband(dir));
    }
}

//! The folder of one round: a git repository, a plan, a home and a folder for temporary files of
//! its own, so that whatever a round leaves behind is found in it, and goes with it. All that the
//! program writes can lie on a disk of the round's own; what the round notes itself never does.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::machine::Disk;
use super::processes::{self, Process};
use super::{Broken, Round};

/// The name every round gives its run.
pub(super) const RUN: &str = "soak";
/// Lanes of the plan.
pub(super) const LANES: [&str; 3] = ["A", "B", "C"];
/// Steps of each lane.
pub(super) const STEPS: [&str; 4] = ["s1", "s2", "s3", "s4"];
/// No command of a round takes nearly as long, however busy the machine is.
const COMMAND_WAIT: Duration = Duration::from_secs(60);
/// Time for processes to be gone that were told to end.
const GONE_WAIT: Duration = Duration::from_secs(5);
/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Lines of what the program said that are shown when a round fails.
const TOLD_LINES: usize = 30;

/// Where the stdout of all programs goes.
const STDOUT: &str = "stdout";

/// What `doctor` says about the disk.
const DISK: &str = " free (";

/// The folder of one round.
pub(super) struct Scratch {
    // Unmounted before its folder is removed.
    disk: Option<Disk>,
    dir: Option<tempfile::TempDir>,
    outside: PathBuf,
    base: PathBuf,
    piton: PathBuf,
    keep: bool,
}

impl Scratch {
    /// Makes a repository with a plan whose steps write a line between two sleeps.
    pub(super) fn new(round: &Round<'_>, step_ms: (u64, u64)) -> Result<Self, Broken> {
        let (before, after) = step_ms;
        let line = format!(
            "sleep {}; echo \\\"$PITON_STEP_KEY $PITON_ATTEMPT\\\" >> ../lines; sleep {}",
            seconds(before),
            seconds(after)
        );
        let mut plan = "title = \"Soak\"\n\n[[phase]]\nid = \"P\"\n".to_owned();
        for lane in LANES {
            plan.extend(["\n[[phase.lane]]\nid = \"", lane, "\"\nsteps = [\n"]);
            for step in STEPS {
                plan.extend(["  { id = \"", step, "\", run = \"", &line, "\" },\n"]);
            }
            plan.push_str("]\n");
        }
        Self::with_plan(round, &plan)
    }

    /// Makes a repository with this plan.
    pub(super) fn with_plan(round: &Round<'_>, plan: &str) -> Result<Self, Broken> {
        Self::with_files(round, false, |_| vec![("plan.toml", plan.to_owned())])
    }

    /// Makes a repository with these files, all committed, on a disk of its own if that is wanted.
    /// What the files say may depend on the folder that is not on that disk.
    pub(super) fn with_files(
        round: &Round<'_>,
        own_disk: bool,
        files: impl FnOnce(&Path) -> Vec<(&'static str, String)>,
    ) -> Result<Self, Broken> {
        let dir =
            tempfile::Builder::new().prefix("piton-soak-").tempdir().map_err(|e| e.to_string())?;
        let outside = dir.path().canonicalize().map_err(|e| e.to_string())?;
        let disk = own_disk.then(|| Disk::new(&outside)).transpose()?;
        let base = disk.as_ref().map_or(&*outside, Disk::at).to_owned();
        for folder in ["repo", "home", "tmp", "bin"] {
            fs::create_dir(base.join(folder)).map_err(|e| e.to_string())?;
        }
        for (name, text) in files(&outside) {
            let file = base.join("repo").join(name);
            let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
            folder.and_then(|()| fs::write(&file, text)).map_err(|e| e.to_string())?;
        }
        // Steps commit too.
        let who = "[user]\n\tname = soak\n\temail = soak@localhost\n";
        fs::write(base.join("home/.gitconfig"), who).map_err(|e| e.to_string())?;
        let (dir, piton) = (Some(dir), round.piton.to_owned());
        let scratch = Self { disk, dir, outside, base, piton, keep: round.keep_failed };
        for words in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "--all"],
            &["commit", "--quiet", "-m", "plan"],
        ] {
            scratch.git(words)?;
        }
        Ok(scratch)
    }

    /// The program.
    pub(super) fn program(&self) -> &Path {
        &self.piton
    }

    /// The folder with the repository, the lines and the homes.
    pub(super) fn base(&self) -> &Path {
        &self.base
    }

    /// The folder for what the round itself writes; another one only where there is a disk.
    pub(super) fn outside(&self) -> &Path {
        &self.outside
    }

    /// The disk that the repository lies on, if it has one of its own.
    pub(super) fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// Where the program keeps its state.
    pub(super) fn state_dir(&self) -> PathBuf {
        self.base.join("repo/.git/piton")
    }

    /// Brings what was written to its own disk, where it has one.
    pub(super) fn sync(&self) -> Result<(), Broken> {
        self.disk.as_ref().map_or(Ok(()), Disk::sync)
    }

    /// Removes all temporary files.
    pub(super) fn clear_temporary(&self) -> Result<(), Broken> {
        let folder = self.base.join("tmp");
        fs::remove_dir_all(&folder)
            .and_then(|()| fs::create_dir(&folder))
            .map_err(|e| e.to_string())
    }

    /// What git says in the repository; an error if it fails.
    pub(super) fn git(&self, words: &[&str]) -> Result<String, Broken> {
        let mut git = self.command("git");
        let output = git.args(words).output().map_err(|e| format!("git: {e}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        }
        Err(format!("git {words:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// A program in the repository, with an environment of its own.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let mut path = self.base.join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.base.join("home"))
            .env("TMPDIR", self.base.join("tmp"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.base.join("repo"))
            .stdin(Stdio::null());
        command
    }

    /// The program in the repository, quiet.
    pub(super) fn piton(&self, words: &[&str]) -> Command {
        let mut command = self.command(&self.piton);
        command.args(words);
        command
    }

    /// Starts the program; what it says is kept for the report of a failure.
    pub(super) fn start(&self, words: &[&str]) -> Result<Started, Broken> {
        self.start_reading(words, Stdio::null())
    }

    /// Starts the program with something to read.
    pub(super) fn start_with(&self, words: &[&str], input: &str) -> Result<Started, Broken> {
        self.start_reading(words, self.input(input)?.into())
    }

    /// Runs the program with something to read; what it says is not kept with the rest.
    pub(super) fn answers(
        &self,
        words: &[&str],
        input: &str,
    ) -> Result<std::process::Output, Broken> {
        self.piton(words).stdin(self.input(input)?).output().map_err(|e| e.to_string())
    }

    /// A file with something to read, without a name.
    fn input(&self, text: &str) -> Result<fs::File, Broken> {
        let mut file = tempfile::tempfile_in(&self.outside).map_err(|e| e.to_string())?;
        let written = std::io::Write::write_all(&mut file, text.as_bytes());
        written.and_then(|()| std::io::Seek::rewind(&mut file)).map_err(|e| e.to_string())?;
        Ok(file)
    }

    fn start_reading(&self, words: &[&str], input: Stdio) -> Result<Started, Broken> {
        let said = self.outside.join("said");
        let open = |file: &Path| {
            let file = fs::OpenOptions::new().create(true).append(true).open(file);
            file.map_err(|e| e.to_string())
        };
        let mut note = open(&said)?;
        // One write, so that two drivers at once do not cut each other's heading.
        let heading = format!("$ piton {}\n", words.join(" "));
        std::io::Write::write_all(&mut note, heading.as_bytes()).map_err(|e| e.to_string())?;
        let own = tempfile::NamedTempFile::new_in(&self.outside).map_err(|e| e.to_string())?;
        let (own, path) = own.keep().map_err(|e| e.to_string())?;
        let mut piton = self.piton(words);
        piton.stdin(input).stdout(open(&self.outside.join(STDOUT))?).stderr(own);
        let child = piton.spawn();
        let child =
            child.map_err(|e| format!("{} could not be started: {e}", self.piton.display()))?;
        Ok(Started { child, said: path, all: said })
    }

    /// The first command of a round.
    pub(super) fn run_words() -> [&'static str; 4] {
        ["run", "plan.toml", "--run-id", RUN]
    }

    /// The lines that steps wrote: key and attempt.
    pub(super) fn lines(&self) -> Vec<(String, u32)> {
        let text = fs::read_to_string(self.base.join("lines")).unwrap_or_default();
        let pair = |line: &str| {
            let (key, attempt) = line.split_once(' ')?;
            Some((key.to_owned(), attempt.parse().ok()?))
        };
        text.lines().map(|line| pair(line).unwrap_or_else(|| (line.to_owned(), 0))).collect()
    }

    /// What the programs of this round said on stdout.
    pub(super) fn stdout(&self) -> String {
        fs::read_to_string(self.outside.join(STDOUT)).unwrap_or_default()
    }

    /// Forgets what they said after this, and half a line at its end.
    pub(super) fn forget_after(&self, said: &str) -> Result<(), Broken> {
        let whole = said.rfind('\n').map_or("", |end| &said[..=end]);
        fs::write(self.outside.join(STDOUT), whole).map_err(|e| e.to_string())
    }

    /// The processes of this round: those that have its folder in environment or command line.
    pub(super) fn processes(&self) -> Vec<Process> {
        processes::of(&self.base, &self.piton)
    }

    /// Waits until something holds; false when it did not for the longest time.
    pub(super) fn until(mut holds: impl FnMut() -> bool) -> bool {
        let deadline = Instant::now() + GONE_WAIT;
        while !holds() {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(LOOK_EVERY);
        }
        true
    }

    /// Checks that no process of the round lives any more.
    pub(super) fn nothing_lives(&self) -> Result<(), Broken> {
        if Self::until(|| self.processes().is_empty()) {
            return Ok(());
        }
        Err(format!("processes of the run still live: {:?}", self.processes()))
    }

    /// Checks what must be so after every round: `doctor` is content, nothing lives, and nothing
    /// was left in the folder for temporary files.
    pub(super) fn clean(&self) -> Result<(), Broken> {
        self.nothing_lives()?;
        let output = self.piton(&["doctor", "--json"]).output().map_err(|e| e.to_string())?;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        // How full the disk is says nothing about the run.
        let is_fine = |finding: &serde_json::Value| {
            finding["severity"] == "ok"
                || finding["what"].as_str().is_some_and(|what| what.contains(DISK))
        };
        let fine = report["findings"].as_array().is_some_and(|all| all.iter().all(is_fine));
        if !fine {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("doctor is not content: {report} {said}"));
        }
        let bases = fs::read_dir(self.base.join("tmp")).map_err(|e| e.to_string())?;
        for base in bases.flatten() {
            let left: Vec<_> = fs::read_dir(base.path()).into_iter().flatten().flatten().collect();
            if !left.is_empty() || !base.file_name().to_string_lossy().starts_with("piton-") {
                return Err(format!(
                    "temporary files were left: {} {left:?}",
                    base.path().display()
                ));
            }
        }
        Ok(())
    }

    /// Adds what the program said to what broke; the folder stays if that was asked for.
    pub(super) fn report(&mut self, broken: &str) -> Broken {
        let said = fs::read_to_string(self.outside.join("said")).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(TOLD_LINES)..].join("\n    ");
        let mut report = format!("{broken}\n    {last}");
        if self.keep {
            processes::end(&self.processes());
            if let Some(dir) = self.dir.take() {
                report.extend(["\n    kept in ", &dir.keep().display().to_string()]);
            }
        }
        report
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A round that failed may have left something running.
        Self::until(|| {
            let left = self.processes();
            processes::end(&left);
            left.is_empty()
        });
    }
}

/// A number of milliseconds as `sleep` reads it.
fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// A started program.
pub(super) struct Started {
    child: Child,
    said: PathBuf,
    all: PathBuf,
}

/// How a program ended and what it said.
pub(super) struct Ended {
    status: ExitStatus,
    /// What it said.
    pub(super) said: String,
}

impl Started {
    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub(super) fn is_over(&mut self) -> Result<bool, Broken> {
        self.child.try_wait().map(|status| status.is_some()).map_err(|e| e.to_string())
    }

    /// Waits for its end, or for so long.
    pub(super) fn wait_for(&mut self, longest: Duration) -> Result<Option<Ended>, Broken> {
        let deadline = Instant::now() + longest;
        loop {
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                return Ok(Some(self.ended(status)));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// Waits for its end; a program that takes too long is killed, and that is a failure.
    pub(super) fn wait(mut self) -> Result<Ended, Broken> {
        if let Some(ended) = self.wait_for(COMMAND_WAIT)? {
            return Ok(ended);
        }
        self.kill()?;
        Err(format!("a command took longer than {} s", COMMAND_WAIT.as_secs()))
    }

    /// Kills it.
    pub(super) fn kill(&mut self) -> Result<Ended, Broken> {
        self.child.kill().map_err(|e| e.to_string())?;
        let status = self.child.wait().map_err(|e| e.to_string())?;
        Ok(self.ended(status))
    }

    fn ended(&self, status: ExitStatus) -> Ended {
        let said = fs::read(&self.said).map(|b| String::from_utf8_lossy(&b).into_owned());
        let said = said.unwrap_or_default();
        let ended = Ended { status, said };
        let note = format!("{}=> {}\n", ended.said, ended.word());
        let all = fs::OpenOptions::new().append(true).open(&self.all);
        let written = all.and_then(|mut all| std::io::Write::write_all(&mut all, note.as_bytes()));
        // Without this note a failure is reported with less detail; the round itself goes on.
        drop(written);
        ended
    }
}

impl Ended {
    /// Its exit code, as a shell would show it.
    pub(super) fn code(&self) -> i32 {
        self.status.code().or(self.status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
    }

    /// Whether it was ended by SIGKILL.
    pub(super) fn killed(&self) -> bool {
        self.status.signal() == Some(9)
    }

    /// How it ended, in words.
    pub(super) fn word(&self) -> String {
        self.status.to_string()
    }
}

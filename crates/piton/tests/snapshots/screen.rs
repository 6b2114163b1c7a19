//! A person at a terminal: commands are typed, and what is seen is kept as a transcript.
//!
//! The terminal has 100 columns and no colour, and is too simple for a live picture, so that runs are
//! told in lines. stdout and stderr meet on it, as they do for a person. What differs from one time
//! to the next (paths, times, hashes, process ids) is replaced before a transcript is compared.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use super::common::{PITON, Project, Signal, hear_signals, kill, wait_until};
use super::scene::Scene;

/// The size of the terminal.
const SIZE: Winsize = Winsize { ws_col: 100, ws_row: 40, ws_xpixel: 0, ws_ypixel: 0 };

/// What differs from one time to the next, and what a transcript has instead.
const STABLE: &[(&str, &str)] = &[
    (r", \d+[smhd] ago\]", ", 5m ago]"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "2026-01-01T12:00:00Z"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-01-01 12:00:00"),
    (r"\b\d\d:\d\d:\d\d\b", "12:00:00"),
    // A step that took no time is shown without one.
    (r", \d+(\.\d+)?m?s\b", ""),
    (r"([ (])\d+(\.\d+)?m?s\b", "${1}5ms"),
    (r"session-\d{8}-\d{6}", "session-20260101-120000"),
    (r"process \d+( on [\w.-]*\w)?", "process 4242"),
    (r"\b[0-9a-f]{10}\b", "0a1b2c3d4e"),
    (r"\b[0-9a-f]{12}\b", "0a1b2c3d4e5f"),
    (r"\b[0-9a-f]{40}\b", "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"),
    (r"\d+(\.\d+)? (bytes|kB) of snapshots", "1.2 kB of snapshots"),
    (r"\d+\.\d+ kB", "1.2 kB"),
    (r"\d+(\.\d+)? .B free \(\d+ ?%\)", "50.0 GB free (50 %)"),
    (r"git version [\d.]+", "git version 2.47.3"),
    (r"ok: cgroups.*", "ok: cgroups: used"),
    // What is installed here is nobody's business there.
    (
        r"(ok: agent[^\n]*\n(  next: [^\n]*\n)*)+",
        "ok: agent programs not found: claude, codex, gemini, opencode\n",
    ),
];

/// What a scratch folder is shown as: of the same length, so that lines break where they did.
const SCRATCH: &str = "/srv/some/where";

/// A plan of two phases, the first with two lanes.
pub const PLAN: &str = r#"
title = "Nightly"

[budgets]
tokens = 50_000

[[phase]]
id = "build"

[[phase.lane]]
id = "api"
steps = [
  { id = "compile", run = "echo compiled; echo api > api.bin", artifacts = ["api.bin"] },
  { id = "test", run = "echo 41 tests passed" },
]

[[phase.lane]]
id = "web"
run = "echo page > page.html"
artifacts = ["page.html"]

[[phase]]
id = "release"
run = "cat api.bin page.html > release.txt"
artifacts = ["release.txt"]
"#;

/// A project, and what was seen of it.
pub struct Screen {
    /// The project.
    pub project: Project,
    seen: String,
    prefix: String,
}

impl Screen {
    /// A git repository with one commit.
    pub fn new() -> Self {
        let screen = Self::without_git();
        screen.project.git(&["init", "--quiet", "-b", "main"]);
        screen.project.write("README", "a project\n");
        screen.project.commit();
        screen
    }

    /// A folder that is not in a repository.
    pub fn without_git() -> Self {
        short_paths();
        Self::of(Project::without_git("repo"))
    }

    /// A scene of lanes.
    pub fn with_lanes(scene: impl FnOnce() -> Scene) -> Self {
        short_paths();
        Self::of(scene().project)
    }

    /// A project that somebody else makes.
    pub fn made_by(project: impl FnOnce() -> Project) -> Self {
        short_paths();
        Self::of(project())
    }

    fn of(project: Project) -> Self {
        Self { project, seen: String::new(), prefix: String::new() }
    }

    /// A git repository with a plan that is committed.
    pub fn with_plan(plan: &str) -> Self {
        let screen = Self::new();
        screen.project.write("plan.toml", plan);
        screen.project.commit();
        screen
    }

    /// Types a command of Piton and waits for its end.
    #[track_caller]
    pub fn piton(&mut self, args: &str) -> &mut Self {
        self.show(args, &[], None)
    }

    /// Types a command of Piton that asks, and an answer whenever it waits at the end of a line.
    #[track_caller]
    pub fn asked(&mut self, args: &str, answers: &[&str]) -> &mut Self {
        self.show(args, answers, None)
    }

    /// Runs a command of Piton that is not part of the transcript.
    #[track_caller]
    pub fn quietly(&mut self, args: &str) -> &mut Self {
        let mut command = self.command(self.project.root());
        let output = self.project.finish(command.arg(format!("exec {PITON} {args}")));
        assert!(output.code < 128, "{output:?}");
        self
    }

    /// Writes a line about what happens between two commands.
    pub fn note(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.seen, "# {text}\n");
        self
    }

    /// Compares what was seen with what is kept under a name.
    #[track_caller]
    pub fn is(&mut self, name: &str) {
        let scratch = self.project.outside().to_str().unwrap();
        assert_eq!(scratch.len(), SCRATCH.len(), "{scratch}");
        let seen = std::mem::take(&mut self.seen).replace(scratch, SCRATCH);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(folder());
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_filters(STABLE.iter().copied());
        settings.bind(|| insta::assert_snapshot!(name, seen.trim_end()));
    }

    /// Types a command of Piton after an assignment of a variable.
    #[track_caller]
    pub fn with(&mut self, variable: &str, args: &str) -> &mut Self {
        self.prefix = format!("{variable} ");
        self.show(args, &[], None);
        self.prefix.clear();
        self
    }

    fn command(&self, dir: &Path) -> Command {
        let mut command = self.project.command("sh");
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.project.outside().join("bin");
        command.current_dir(dir).env("PATH", format!("{}:{path}", bin.display()));
        command.env("TZ", "UTC").env("TERM", "dumb").env("NO_COLOR", "1").arg("-c");
        command
    }

    /// Types a command of Piton, Ctrl-C when a file is there, and again where it says that this ends it.
    #[track_caller]
    pub fn interrupted(&mut self, args: &str, file: &str) -> &mut Self {
        self.show(args, &[], Some(file))
    }

    #[track_caller]
    fn show(&mut self, args: &str, answers: &[&str], interrupt: Option<&str>) -> &mut Self {
        let (mut master, slave) = terminal();
        let mut command = self.command(self.project.root());
        command.arg(format!("{}exec {PITON} {args}", self.prefix));
        if !answers.is_empty() {
            command.stdin(Stdio::from(slave.try_clone().unwrap()));
        }
        command.stdout(Stdio::from(slave.try_clone().unwrap())).stderr(Stdio::from(slave));
        hear_signals();
        let mut child = command.spawn().unwrap();
        // With it goes our end of the terminal.
        drop(command);
        if let Some(file) = interrupt {
            self.project.wait_for(file);
            kill(child.id(), Signal::INT);
        }
        let mut presses = u32::from(interrupt.is_some());
        let mut answers = answers.iter();
        let mut bytes = Vec::new();
        let mut ended = None;
        wait_until(args, || {
            let status = child.try_wait().unwrap();
            while read(&mut master, &mut bytes) {}
            if bytes.ends_with(b" ")
                && let Some(answer) = answers.next()
            {
                master.write_all(format!("{answer}\n").as_bytes()).unwrap();
            }
            if presses == 1 && String::from_utf8_lossy(&bytes).contains("Ctrl-C") {
                kill(child.id(), Signal::INT);
                presses += 1;
            }
            ended = status;
            ended.is_some()
        });
        let text = String::from_utf8(bytes).unwrap();
        let code = ended.and_then(|status| status.code()).unwrap();
        let _ = writeln!(self.seen, "$ {}piton {args}\n{}", self.prefix, text.trim_end());
        let _ = writeln!(self.seen, "[exit {code}]\n");
        self
    }
}

/// Makes scratch folders where their paths have one length, whatever `TMPDIR` is.
fn short_paths() {
    // It fails where it is set already, to the same.
    let _ = tempfile::env::override_temp_dir(Path::new("/tmp"));
}

/// Where snapshots are kept.
pub fn folder() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots")
}

/// Both ends of a terminal that leaves line ends as they come.
fn terminal() -> (File, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut attributes = tcgetattr(&slave).unwrap();
    attributes.output_modes -= OutputModes::OPOST;
    tcsetattr(&slave, OptionalActions::Now, &attributes).unwrap();
    tcsetwinsize(&slave, SIZE).unwrap();
    (File::from(master), slave.into())
}

/// Reads what is there; whether there was anything.
fn read(master: &mut File, bytes: &mut Vec<u8>) -> bool {
    let mut fds = [PollFd::new(master, PollFlags::IN)];
    let ready = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap_or(0) > 0;
    if !ready || !fds[0].revents().contains(PollFlags::IN) {
        return false;
    }
    let mut buffer = [0; 4096];
    match master.read(&mut buffer) {
        Ok(count) => {
            bytes.extend_from_slice(&buffer[..count]);
            count > 0
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => true,
        // Nobody has it open any more.
        Err(_) => false,
    }
}

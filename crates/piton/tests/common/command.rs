//! A command under test: at work, and what it left.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

use serde_json::Value;

use super::processes::{Signal, kill, poll};
use super::wait_until;

/// What a finished command left.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its exit code; 128 and the signal where one ended it.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it said.
    pub stderr: String,
}

impl Output {
    fn new(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Self {
        let by_signal = status.signal().map(|s| 128 + s);
        Self {
            code: status.code().or(by_signal).unwrap(),
            stdout: String::from_utf8_lossy(stdout).into_owned(),
            stderr: String::from_utf8_lossy(stderr).into_owned(),
        }
    }

    /// Checks the exit code; shows all that was said if it is another.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        let (out, err) = (&self.stdout, &self.stderr);
        assert_eq!(self.code, code, "exit code\n--- stdout\n{out}\n--- stderr\n{err}");
        self
    }

    /// Checks that it was said, on either stream.
    #[track_caller]
    pub fn says(self, words: &str) -> Self {
        let (out, err) = (&self.stdout, &self.stderr);
        let said = out.contains(words) || err.contains(words);
        assert!(said, "not said: {words}\n--- stdout\n{out}\n--- stderr\n{err}");
        self
    }

    /// Checks that it was said on neither stream.
    #[track_caller]
    pub fn silent_about(self, words: &str) -> Self {
        let (out, err) = (&self.stdout, &self.stderr);
        let said = out.contains(words) || err.contains(words);
        assert!(!said, "said: {words}\n--- stdout\n{out}\n--- stderr\n{err}");
        self
    }

    /// Its standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// A command that was started; killed and waited for when dropped.
pub struct Driver {
    pub(super) child: Child,
    pub(super) out: PathBuf,
    pub(super) err: PathBuf,
}

impl Driver {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal);
    }

    /// Stops it while it writes nothing: one that is stopped in a write, others wait for or end.
    pub fn stop_at_rest(&self) {
        let pid = self.pid();
        let is_stopped = || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
        };
        wait_until("it is stopped at rest", || {
            self.signal(Signal::STOP);
            wait_until("it is stopped", is_stopped);
            let locks = fs::read_to_string("/proc/locks").unwrap();
            let is_writing = locks.contains(&format!(" WRITE {pid} "));
            if is_writing {
                self.signal(Signal::CONT);
            }
            !is_writing
        });
    }

    /// Kills it, and nothing else, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its standard input, where the command was given a pipe.
    pub fn take_stdin(&mut self) -> Option<std::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// What it has said so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).unwrap()).into_owned()
    }

    /// What it has printed so far.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).unwrap()).into_owned()
    }

    /// Whether it has ended.
    pub fn ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end, up to the deadline.
    #[track_caller]
    pub fn wait(mut self) -> Output {
        let mut status = None;
        let ended = poll(|| {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert!(ended, "it does not end; it said: {}", self.stderr());
        let read = |path: &Path| fs::read(path).unwrap();
        Output::new(status.unwrap(), &read(&self.out), &read(&self.err))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

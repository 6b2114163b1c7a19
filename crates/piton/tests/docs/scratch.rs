//! A repository to throw away, in which transcripts of the documentation are run.
//!
//! Hermetic: a home of its own, no git settings of the user, nothing of the environment but a PATH
//! whose first `piton` is the one under test. Removed with everything in it when dropped.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Stands in for the agent that the pages name: its prompt becomes the one file that it should write, and
/// it says in the stream of Claude Code that it is done.
const AGENT: &str = r#"#!/bin/sh
cat > "$PITON_LANE.md"
echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
echo '{"type":"result","subtype":"success","session_id":"s","is_error":false,"terminal_reason":"completed","result":"ok"}'
"#;

/// The repository and what surrounds it.
pub struct Scratch {
    dir: tempfile::TempDir,
}

impl Scratch {
    /// Makes an empty repository.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["bin", "home", "tmp", "repo"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_piton"), dir.path().join("bin/piton")).unwrap();
        let scratch = Self { dir };
        scratch.write("../bin/claude", AGENT);
        scratch.sh("chmod +x ../bin/claude");
        scratch.sh("git init --quiet && git config user.name Reader");
        scratch.sh("git config user.email reader@example.org");
        scratch
    }

    /// The repository.
    pub fn repository(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    /// Writes a file of the repository.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.repository().join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a line of a transcript; gives what it said on both streams, in order.
    pub fn sh(&self, line: &str) -> String {
        let log = self.dir.path().join("log");
        let out = fs::File::create(&log).unwrap();
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let mut path = self.dir.path().join("bin").into_os_string();
        path.push(":");
        path.push(inherited);
        Command::new("sh")
            .args(["-c", line])
            .current_dir(self.repository())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.dir.path().join("home"))
            .env("TMPDIR", self.dir.path().join("tmp"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("USER", "reader")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .status()
            .unwrap();
        String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned()
    }
}

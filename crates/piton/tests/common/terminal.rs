//! A terminal for the program under test.
//!
//! `script` of util-linux makes it; where that is missing there is nothing to test with.

use std::io::Write as _;
use std::process::Stdio;

use super::{Driver, PITON, Project, wait_until};

/// A program on a terminal whose keys we press.
pub struct Terminal {
    pub program: Driver,
    keys: std::process::ChildStdin,
}

impl Terminal {
    /// Starts Piton on a terminal; nothing where there is no way to make one.
    pub fn start(project: &Project, args: &str) -> Option<Self> {
        if project.sh("command -v script").code != 0 {
            return None;
        }
        let line = format!("exec {PITON} {args}");
        let mut command = project.command("script");
        command.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::piped());
        let mut program = project.start(&mut command);
        let keys = program.take_stdin()?;
        Some(Self { program, keys })
    }

    /// Waits for words on the screen, then presses a key.
    #[track_caller]
    pub fn answer(&mut self, words: &str, key: &str) {
        wait_until(words, || self.program.stdout().contains(words));
        let pressed = self.keys.write_all(key.as_bytes()).and_then(|()| self.keys.flush());
        assert!(pressed.is_ok(), "{pressed:?}");
    }

    /// Waits for its end and checks the exit code.
    #[track_caller]
    pub fn ends(self, code: i32) -> String {
        // `script` ends with its program, not with its own input: keep that open until then.
        let said = self.program.wait().exits(code).stdout;
        drop(self.keys);
        said
    }

    /// What is on the screen so far.
    pub fn screen(&self) -> String {
        self.program.stdout()
    }
}

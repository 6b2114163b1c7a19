//! Starts the process of a keeper, in the cgroup of its run if possible.
//!
//! Moving a running process to a cgroup takes ten milliseconds or more, because the kernel waits
//! for every processor; starting it there costs nothing. If that is not possible, it is started
//! like any process and tries to move itself.

use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, WaitOptions};
use serde::{Deserialize, Serialize};

use crate::cgroup;
use crate::error::{Error, Result};
use crate::os;

/// The name of the keeper's own log in the run directory.
pub(crate) const LOG: &str = "keeper.log";

/// What starts the one line by which a new keeper says how its start went. Other lines are passed
/// over, since the program around it might print.
pub(crate) const REPORT: &str = "piton-keeper: ";

/// What a new keeper is told on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) mark: String,
    pub(crate) epoch: u64,
}

/// A keeper process that this process started.
#[derive(Debug)]
pub(crate) enum Launched {
    /// As any other.
    Plain(Child),
    /// In its cgroup.
    Placed(Pid),
}

impl Launched {
    /// Waits for its end.
    pub(crate) fn wait(self) {
        match self {
            Self::Plain(mut child) => drop(child.wait()),
            Self::Placed(pid) => {
                let wait = || rustix::process::waitpid(Some(pid), WaitOptions::empty());
                while matches!(wait(), Err(rustix::io::Errno::INTR)) {}
            }
        }
    }

    /// Whether it has ended; then its status was taken, and this must not be called again.
    pub(crate) fn is_over(&mut self) -> bool {
        match self {
            Self::Plain(child) => !matches!(child.try_wait(), Ok(None)),
            Self::Placed(pid) => {
                !matches!(rustix::process::waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None))
            }
        }
    }
}

/// Starts a keeper process, its stderr on its log, its configuration on its stdin. Also returns its
/// report; `None` if it ended without one.
pub(crate) fn launch(
    exe: &Path,
    args: &[&OsStr],
    dir: &Path,
    config: &Config,
) -> Result<(Launched, Option<String>)> {
    let path = dir.join(LOG);
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)
        .map_err(Error::io(format!("could not open {}", path.display())))?;
    let text = serde_json::to_vec(config).map_err(|error| Error::Protocol(error.to_string()))?;
    if let Some((pid, stdout)) = placed(exe, args, dir, config, &log, &text) {
        return Ok((Launched::Placed(pid), report(stdout)?));
    }
    let mut child = Command::new(exe)
        .args(args)
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(Error::io(format!("could not start {} as the keeper", exe.display())))?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it is already dead, its report says so.
        let _ = stdin.write_all(&text);
    }
    let said = child.stdout.take().map(report).transpose()?.flatten();
    Ok((Launched::Plain(child), said))
}

/// Starts it in its cgroup; `None` if that is not possible.
fn placed(
    exe: &Path,
    args: &[&OsStr],
    dir: &Path,
    config: &Config,
    log: &File,
    text: &[u8],
) -> Option<(Pid, io::PipeReader)> {
    // A bare name would have to be looked up in PATH.
    if !exe.is_absolute() {
        return None;
    }
    let words = [exe.as_os_str()].into_iter().chain(args.iter().copied()).chain([dir.as_os_str()]);
    let words: Option<Vec<_>> = words.map(|word| CString::new(word.as_bytes()).ok()).collect();
    let words = words?;
    let (stdin, mut to_stdin) = io::pipe().ok()?;
    let (from_stdout, stdout) = io::pipe().ok()?;
    let group = cgroup::prepare(dir, &config.mark)?;
    let streams = [stdin.as_fd(), stdout.as_fd(), log.as_fd()];
    let pid = os::spawn_into(group.as_fd(), &words, streams).ok()?;
    // A configuration is far smaller than a pipe, so this does not wait for the reader.
    let _ = to_stdin.write_all(text);
    Some((Pid::from_raw(pid)?, from_stdout))
}

/// Reads how the start of a keeper went.
fn report(stdout: impl Read) -> Result<Option<String>> {
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(Error::io("could not read from the new keeper"))?;
        if let Some(report) = line.strip_prefix(REPORT) {
            return Ok(Some(report.to_owned()));
        }
    }
    Ok(None)
}

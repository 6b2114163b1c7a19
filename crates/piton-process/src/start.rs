//! Starts the process of a keeper, and hears from it how that went.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

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

/// Starts a keeper process, its stderr on its log, its configuration on its stdin. Also returns its
/// report; `None` if it ended without one.
pub(crate) fn launch(
    exe: &Path,
    args: &[&OsStr],
    dir: &Path,
    config: &Config,
) -> Result<(Child, Option<String>)> {
    let path = dir.join(LOG);
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)
        .map_err(Error::io(format!("could not open {}", path.display())))?;
    let text = serde_json::to_vec(config).map_err(|error| Error::Protocol(error.to_string()))?;
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
    Ok((child, said))
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

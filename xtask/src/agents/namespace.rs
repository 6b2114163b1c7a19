//! Namespaces for the checks: a network that has only loopback, so that no program reaches its vendor,
//! and process ids of their own, so that nothing lives on when the checks end.

use std::fs;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::Broken;
use crate::shell::answers;

/// How the command is called inside.
pub(super) const INSIDE: &str = "--inside-namespaces";

/// What `unshare` gives, as root and as anybody else.
const APART: [&str; 5] = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// The words for `unshare`, if namespaces can be made here.
fn words() -> Result<Vec<&'static str>, Broken> {
    let as_user = [&["--map-root-user"], &APART[..]].concat();
    for words in [APART.to_vec(), as_user] {
        let probe = [&words[..], &["ip", "link", "set", "lo", "up"]].concat();
        if answers("unshare", &probe) {
            return Ok(words);
        }
    }
    Err(Broken::from("no network namespace can be made here (`unshare --net` with `ip link`)"))
}

/// The command that runs us again inside, with these words; and the folder of the copy that it runs.
pub(super) fn again(args: &[String]) -> Result<(Command, TempDir), Broken> {
    // A build may replace our file meanwhile, and inside there is no link to what runs here.
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("xtask");
    fs::copy("/proc/self/exe", &copy)?;
    let mut command = Command::new("unshare");
    command.args(words()?).arg(copy);
    command.arg("agents").arg(INSIDE).args(args).stdin(Stdio::null());
    Ok((command, folder))
}

/// Raises loopback: a new network namespace has it, but down.
pub(super) fn raise_loopback() -> Result<(), Broken> {
    if answers("ip", &["link", "set", "lo", "up"]) {
        return Ok(());
    }
    Err(Broken::from("loopback cannot be raised"))
}

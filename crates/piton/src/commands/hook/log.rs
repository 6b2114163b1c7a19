//! What went wrong in hooks: an agent must not notice it, so it is written down, and `doctor` shows it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use piton_protocols::time;
use piton_view::text::sanitize;

use crate::context::now;

/// The log, in the state folder.
const FILE: &str = "hooks.log";
/// A log that grew beyond this is begun again: the newest failures matter.
const BYTES_MAX: u64 = 256 << 10;

/// Adds a line. A log that cannot be written must not break the agent either.
pub(super) fn add(state_dir: &Path, what: &str, why: &str) {
    let path = state_dir.join(FILE);
    if fs::metadata(&path).is_ok_and(|file| file.len() > BYTES_MAX) {
        let _ = fs::rename(&path, path.with_extension("log.old"));
    }
    let _ = fs::create_dir_all(state_dir);
    let opened = OpenOptions::new().create(true).append(true).open(&path);
    let line = format!("{} {}: {}\n", time::write_seconds(now()), sanitize(what), sanitize(why));
    let _ = opened.and_then(|mut file| file.write_all(line.as_bytes()));
}

/// Turns a panic into a line of the log: an agent would see a crash otherwise.
pub(super) fn catch_panics(state_dir: &Path) {
    let state_dir = state_dir.to_owned();
    std::panic::set_hook(Box::new(move |panic| {
        add(&state_dir, "panic", &panic.to_string());
        std::process::exit(0);
    }));
}

/// The log, how many failures it has, and the last one; `None` if nothing failed.
pub fn failures(state_dir: &Path) -> Option<(PathBuf, usize, String)> {
    let path = state_dir.join(FILE);
    let text = fs::read_to_string(&path).ok()?;
    let last = text.lines().next_back()?.to_owned();
    Some((path, text.lines().count(), last))
}

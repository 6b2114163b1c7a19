//! What a driver is just doing in the repository, as seen from outside.
//!
//! The driver waits for each git command it starts, so the command line of its child tells what it
//! is about; what it does without git shows in the files that it has open. The git that moves refs
//! for it stays, and what it is just moving stands where its complaints go. A driver that was stopped
//! first stands still meanwhile, so a kill is counted for what it really met.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::scratch::Started;
use super::{Broken, processes};

/// The pause between two looks: shorter than git takes to start.
const LOOK_EVERY: Duration = Duration::from_micros(200);
/// Longest wait for a signalled process to stand still.
const STILL_WAIT: Duration = Duration::from_secs(5);

/// What kills are counted by.
pub(super) const WORKTREE: &str = "worktree creation";
/// Taking a snapshot.
pub(super) const SNAPSHOT: &str = "snapshot";
/// Tests running.
pub(super) const TEST: &str = "test";
/// Putting a lane's commits on top of base.
pub(super) const REBASE: &str = "rebase";
/// Moving base, and its work tree after it.
pub(super) const REF_UPDATE: &str = "ref update";
/// Removing worktree and branch.
pub(super) const REMOVAL: &str = "removal";
/// Committing what a lane left.
pub(super) const COMMIT: &str = "commit";

/// Parts of command lines, and what they belong to. The first that fits counts.
const COMMANDS: [(&str, &str); 14] = [
    (" update-ref -m piton: merge lane ", REF_UPDATE),
    (" read-tree -m -u -n ", ""),
    (" read-tree -m -u ", REF_UPDATE),
    (" check-attr ", SNAPSHOT),
    (" pack-objects ", SNAPSHOT),
    (" config -z --list --show-origin", SNAPSHOT),
    (" worktree add ", WORKTREE),
    (" read-tree --reset -u --no-recurse-submodules ", WORKTREE),
    (" merge-tree ", REBASE),
    (" rev-list --reverse ", REBASE),
    (" hash-object -t ", REBASE),
    (" update-ref -m piton: move lane ", REBASE),
    (" update-ref -m piton: commit lane ", COMMIT),
    (" commit-tree ", COMMIT),
];

/// Parts of the paths of open files, likewise.
const FILES: [(&str, &str); 2] = [("/objects/pack/tmp_", SNAPSHOT), ("/piton/trash/", REMOVAL)];

/// Looks at a driver and at the tests of its run.
pub(super) struct Watch {
    /// A folder with one file for each running test, named by its process id.
    testing: PathBuf,
}

impl Watch {
    /// Watches tests by this folder.
    pub(super) fn new(testing: PathBuf) -> Self {
        Self { testing }
    }

    /// What goes on now.
    pub(super) fn look(&self, driver: u32) -> Vec<&'static str> {
        let mut found = Vec::new();
        found.extend(in_repository(driver));
        if self.tests_run() {
            found.push(TEST);
        }
        found
    }

    fn tests_run(&self) -> bool {
        let entries = fs::read_dir(&self.testing).into_iter().flatten().flatten();
        entries
            .into_iter()
            .any(|entry| Path::new("/proc").join(entry.file_name()).join("cwd").exists())
    }

    /// Waits until this goes on; false when the driver ended first, or nothing of it was seen for
    /// so long.
    pub(super) fn until(
        &self,
        driver: &mut Started,
        wanted: &str,
        longest: Duration,
    ) -> Result<bool, Broken> {
        let deadline = Instant::now() + longest;
        while Instant::now() < deadline {
            if self.look(driver.pid()).contains(&wanted) {
                return Ok(true);
            }
            if driver.is_over()? {
                return Ok(false);
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(false)
    }

    /// Stops a driver and tells what it was about; nothing when it is over.
    pub(super) fn stop(&self, driver: &mut Started) -> Result<Option<Vec<&'static str>>, Broken> {
        processes::signal(driver.pid(), Signal::STOP);
        let deadline = Instant::now() + STILL_WAIT;
        while !matches!(processes::state(driver.pid()), Some('T')) {
            if driver.is_over()? {
                return Ok(None);
            }
            if Instant::now() > deadline {
                return Err("a stopped driver does not stand still".to_owned());
            }
            thread::yield_now();
        }
        Ok(Some(self.look(driver.pid())))
    }
}

fn in_repository(driver: u32) -> Option<&'static str> {
    let dir = Path::new("/proc").join(driver.to_string());
    let tasks = fs::read_dir(dir.join("task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    for child in children.collect::<Vec<_>>().join(" ").split_whitespace() {
        let child = Path::new("/proc").join(child);
        let words = fs::read(child.join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let found = if words.contains(processes::MOVES) {
            moving(&fs::read_to_string(child.join("fd/2")).unwrap_or_default())
        } else {
            meaning(&words)
        };
        if found.is_some() {
            return found;
        }
    }
    let files = fs::read_dir(dir.join("fd")).into_iter().flatten().flatten();
    let mut files = files.filter_map(|file| fs::read_link(file.path()).ok());
    files.find_map(|file| {
        let file = file.to_string_lossy();
        FILES.iter().find(|(part, _)| file.contains(part)).map(|(_, what)| *what)
    })
}

/// What a command line of git is for.
fn meaning(words: &str) -> Option<&'static str> {
    let fits = COMMANDS.iter().find(|(part, _)| words.contains(part));
    fits.map(|(_, what)| *what).filter(|what| !what.is_empty())
}

/// What a transaction under way is for; nothing where there is none. Those before it are done.
fn moving(lines: &str) -> Option<&'static str> {
    let lines = lines.rsplit_once("\ndone\n").map_or(lines, |(_, rest)| rest);
    let moves = |start: &str| lines.lines().any(|line| line.starts_with(start));
    if moves("delete refs/heads/") {
        Some(REMOVAL)
    } else if moves("update refs/heads/") {
        Some(WORKTREE)
    } else {
        let is_epoch = lines.contains("/epoch ") && !moves("verify ");
        (moves("update refs/piton/") && !is_epoch).then_some(SNAPSHOT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_told_apart() {
        let of = |words: &str| meaning(&format!("git -C /x -c gc.auto=0 {words} "));
        assert_eq!(of("update-ref -m piton: merge lane --stdin"), Some(REF_UPDATE));
        assert_eq!(of("read-tree -m -u -n a b"), None);
        assert_eq!(of("read-tree -m -u a b"), Some(REF_UPDATE));
        assert_eq!(of("status"), None);
    }

    #[test]
    fn transactions_are_told_apart() {
        let of = |lines: &str| moving(&format!("start\nverify refs/piton/r/epoch 1\n{lines}\n"));
        assert_eq!(of("update refs/piton/r/branch/A 1 0\nupdate refs/heads/A 1 0"), Some(WORKTREE));
        assert_eq!(of("delete refs/heads/A 1\ndelete refs/piton/r/branch/A 1"), Some(REMOVAL));
        assert_eq!(of("update refs/piton/r/root 1 0"), Some(SNAPSHOT));
        assert_eq!(moving("start\nupdate refs/piton/r/epoch 1 0\n"), None);
        assert_eq!(moving(""), None);
        let done = "start\nupdate refs/heads/A 1 0\ncommit\ndone\n";
        assert_eq!(moving(done), None);
        assert_eq!(moving(&format!("{done}start\nupdate refs/piton/r/root 1 0\n")), Some(SNAPSHOT));
    }
}

//! The place of a process in the tree of cgroups (version 2), read from /proc.
//!
//! Parses and reads; nothing is created or moved here. Version 1 is ignored: it has one tree per
//! controller, which belong to the administrator. Nor is a tree followed that is mounted elsewhere than
//! usual: marks and the journal find strays without it.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::Unused;
use crate::os::Pid;

/// The file that lists the processes of a cgroup, and moves those written to it.
pub(super) const PROCS: &str = "cgroup.procs";

/// Where the tree is mounted: alone, or beside version 1.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// What the kernel appends to the path of a cgroup that was removed.
const DELETED: &str = " (deleted)";

/// The path of a process in the tree, as this process sees it: below the root of our own cgroup
/// namespace, and not necessarily below a mount.
pub(crate) fn of(pid: Pid) -> Option<String> {
    unified(&fs::read(format!("/proc/{pid}/cgroup")).ok()?)
}

/// The folder of this process's own cgroup; or why there is none.
pub(super) fn own() -> Result<PathBuf, Unused> {
    let path = fs::read("/proc/self/cgroup").ok().and_then(|text| unified(&text));
    let path = path.ok_or_else(|| Unused("this system has no cgroups (version 2)".to_owned()))?;
    // What lies outside of our cgroup namespace is named with `..` and cannot be followed.
    let below = path.trim_start_matches('/');
    let mut folders = MOUNTS.iter().map(|mount| Path::new(mount).join(below));
    let found = folders.find(|folder| !path.contains("/..") && folder.join(PROCS).exists());
    found.ok_or_else(|| Unused(format!("the cgroup {path} is not mounted here")))
}

/// Whether groups can be made in this one, and processes moved to them and back, as far as that
/// can be told without trying.
pub(super) fn is_writable(folder: &Path) -> bool {
    let may = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
    may(folder) && may(&folder.join(PROCS))
}

/// The path on the line of version 2: `0::PATH`.
fn unified(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    (path.starts_with('/') && !path.ends_with(DELETED)).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mistaken lines of version 1 would put processes into another manager's tree.
    #[test]
    fn only_the_line_of_version_2_counts() {
        let hybrid = b"4:memory:/a\n1:name=systemd:/b\n0::/user.slice/x y.scope\n";
        assert_eq!(unified(hybrid).as_deref(), Some("/user.slice/x y.scope"));
        assert_eq!(unified(b"4:memory:/a\n1:name=systemd:/b\n"), None);
        assert_eq!(unified(b"0::/gone (deleted)\n"), None);
        assert_eq!(unified(b""), None);
    }
}

//! The place of a process in the tree of cgroups (version 2), read from /proc.
//!
//! Parses and reads; nothing is created or moved here. Version 1 is ignored: it has one tree per
//! controller, which belong to the administrator.

use std::fs;
use std::path::{Component, Path, PathBuf};

use rustix::fs::Access;

use super::Unused;
use crate::os::Pid;

/// The file that lists the processes of a cgroup, and moves those written to it.
pub(super) const PROCS: &str = "cgroup.procs";

/// What the kernel appends to the path of a cgroup that was removed.
const DELETED: &str = " (deleted)";

/// The path of a process in the tree, as this process sees it: below the root of our own cgroup
/// namespace, and not necessarily below a mount.
pub(crate) fn of(pid: Pid) -> Option<String> {
    unified(&fs::read(format!("/proc/{pid}/cgroup")).ok()?)
}

/// The folder of this process's own cgroup, writable if any is; or why there is none.
pub(super) fn own() -> Result<PathBuf, Unused> {
    let none = || Unused("this system has no cgroups (version 2)".to_owned());
    let path = fs::read("/proc/self/cgroup").ok().and_then(|text| unified(&text));
    let path = path.ok_or_else(none)?;
    let mounts = fs::read("/proc/self/mountinfo").map_err(|_| none())?;
    let mut folders = folders(&path, &String::from_utf8_lossy(&mounts));
    folders.retain(|folder| folder.join(PROCS).exists());
    let writable = folders.iter().position(|folder| is_writable(folder));
    if folders.is_empty() {
        return Err(Unused(format!("the cgroup {path} is not mounted here")));
    }
    Ok(folders.swap_remove(writable.unwrap_or(0)))
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

/// The folders that show the cgroup `path`, by the list of mounts: the last mounted first, since
/// it may cover another. A mount can begin below the root of the tree. What lies outside of our
/// cgroup namespace is named with `..` and cannot be followed.
fn folders(path: &str, mounts: &str) -> Vec<PathBuf> {
    let path = Path::new(path);
    if path.components().any(|part| part == Component::ParentDir) {
        return Vec::new();
    }
    let folder = |line: &str| {
        let (mount, rest) = line.split_once(" - ")?;
        if rest.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (unescape(fields.next()?), unescape(fields.next()?));
        let below = path.strip_prefix(root).ok()?;
        Some(Path::new(&point).join(below))
    };
    mounts.lines().rev().filter_map(folder).collect()
}

/// Decodes spaces, line ends and backslashes, which the kernel writes as three octal digits.
fn unescape(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(code) = code.filter(u8::is_ascii) {
            text.push(char::from(code));
            text.push_str(&part[3..]);
        } else {
            text.push('\\');
            text.push_str(part);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_line(path: &str, root: &str, point: &str) -> Vec<PathBuf> {
        folders(path, &format!("41 31 0:38 {root} {point} rw,nosuid shared:9 - cgroup2 none rw\n"))
    }

    /// Mistaken lines of version 1 would put processes into another manager's tree.
    #[test]
    fn only_the_line_of_version_2_counts() {
        let hybrid = b"4:memory:/a\n1:name=systemd:/b\n0::/user.slice/x y.scope\n";
        assert_eq!(unified(hybrid).as_deref(), Some("/user.slice/x y.scope"));
        assert_eq!(unified(b"4:memory:/a\n1:name=systemd:/b\n"), None);
        assert_eq!(unified(b"0::/gone (deleted)\n"), None);
        assert_eq!(unified(b""), None);
    }

    /// Hybrid systems mount the tree elsewhere than others; both must be found.
    #[test]
    fn the_mount_is_found_wherever_it_is() {
        let hybrid = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                      35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(folders("/", hybrid), [Path::new("/sys/fs/cgroup/unified")]);
        let pure = of_line("/a.slice/b", "/", "/sys/fs/cgroup");
        assert_eq!(pure, [Path::new("/sys/fs/cgroup/a.slice/b")]);
        assert_eq!(folders("/", "nonsense\n1 2 3 - cgroup2\n"), Vec::<PathBuf>::new());
    }

    /// In containers the mount shows only a part of the tree, and its paths begin below it.
    #[test]
    fn a_mount_below_the_root_of_the_tree_is_followed() {
        let inside = of_line("/docker/abc/job", "/docker/abc", "/sys/fs/cgroup");
        assert_eq!(inside, [Path::new("/sys/fs/cgroup/job")]);
        assert!(of_line("/docker/abcd", "/docker/abc", "/sys/fs/cgroup").is_empty());
        assert!(of_line("/", "/../..", "/sys/fs/cgroup").is_empty());
        assert!(of_line("/../other", "/", "/sys/fs/cgroup").is_empty());
    }

    /// The mount on top is the one that a path leads to.
    #[test]
    fn the_last_mount_comes_first() {
        let both = "1 0 0:3 / /a rw - cgroup2 x rw\n2 0 0:3 / /b\\040c\\134d rw - cgroup2 x rw\n";
        assert_eq!(folders("/g", both), [Path::new("/b c\\d/g"), Path::new("/a/g")]);
        assert_eq!(unescape("a\\0"), "a\\0");
    }
}

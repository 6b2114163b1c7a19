//! One cgroup per run, if the system allows it: no process that a step starts can leave it by
//! forking, by a new session or by clearing its environment.
//!
//! The keeper enters it before its first child, so every child inherits it at no cost. It only shows which processes belong to a run: no controller is enabled and nothing is
//! limited. If it cannot be created, marks and journal remain, and the reason is recorded. `strays`
//! uses `belongs`; the last process to need an empty group removes it.

mod place;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::os::{self, Pid};
use place::PROCS;

/// The file in the run directory that names the groups of a run.
const RECORD: &str = "keeper.cgroup";

/// What the name of each group begins with; the run's mark follows.
const PREFIX: &str = "piton-";

/// The longest mark that becomes a name: the system allows 255 bytes, and ours are far shorter.
const MARK_BYTES_MAX: usize = 200;

/// How many groups below one are searched: a step can make any number.
const GROUPS_MAX: usize = 4096;

/// How often removing is tried while the kernel still counts a process that has just ended.
const REMOVE_TRIES: u32 = 50;

/// The pause between two tries; all of them together are too short for a person to notice.
const REMOVE_PAUSE: Duration = Duration::from_millis(1);

/// How often processes are moved out of a group that is given up: the next pass moves those that
/// were forked meanwhile.
const DISBAND_PASSES: u32 = 5;

/// Why a keeper is in no cgroup, for a person: nobody decides by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
#[serde(transparent)]
pub struct Unused(String);

/// The groups that keepers of a run made since the machine started, and how the last one fared.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    boot: String,
    groups: Vec<PathBuf>,
    /// Why the last keeper is in none.
    unused: Option<Unused>,
}

impl Record {
    /// Reads the record of a run directory; none if it is from before the machine restarted.
    fn read(dir: &Path) -> Option<Self> {
        let text = fs::read(dir.join(RECORD)).ok()?;
        let mut record: Self = serde_json::from_slice(&text).ok()?;
        if record.boot != os::boot_id().ok()? {
            return None;
        }
        // Even with a damaged record, only our own groups are touched.
        record.groups.retain(|group| {
            let name = group.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(PREFIX))
        });
        Some(record)
    }

    /// The same without groups that are gone; an empty one if there is none.
    fn read_or_new(dir: &Path) -> io::Result<Self> {
        let new = Self { boot: os::boot_id()?, groups: Vec::new(), unused: None };
        let mut record = Self::read(dir).unwrap_or(new);
        record.groups.retain(|group| group.is_dir());
        Ok(record)
    }

    /// Adds a group before any process is in it, so that all groups in use are known.
    fn add(&mut self, dir: &Path, group: &Path) -> io::Result<()> {
        if !self.groups.iter().any(|known| known == group) {
            self.groups.push(group.to_owned());
        }
        self.unused = None;
        self.write(dir)
    }

    fn write(&self, dir: &Path) -> io::Result<()> {
        // Written to another file and renamed: a reader finds the old record or a complete new one.
        let aside = dir.join(format!("{RECORD}.new"));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(&aside, dir.join(RECORD))
    }
}

/// The group that this process, a keeper, is in.
#[derive(Debug)]
pub(crate) struct Group(PathBuf);

impl Group {
    /// Makes the group of a run and moves this process into it; records that, or why not.
    pub(crate) fn enter(dir: &Path, mark: &str) -> Result<Self, Unused> {
        let mut record = Record::read_or_new(dir)
            .map_err(|error| Unused(format!("the boot id is unknown: {error}")))?;
        let entered = enter(dir, mark, &mut record);
        if let Err(reason) = &entered {
            record.unused = Some(reason.clone());
            // Only `piton doctor` reads it.
            let _ = record.write(dir);
        }
        entered
    }

    /// Moves this process back to its former group and removes the group, unless another process is
    /// in it.
    pub(crate) fn leave(self) {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        if members(&self.0).iter().all(|&pid| pid == own)
            && let Some(parent) = self.0.parent()
            && move_to(parent, 0).is_ok()
        {
            remove(&self.0);
        }
    }
}

fn enter(dir: &Path, mark: &str, record: &mut Record) -> Result<Group, Unused> {
    let name =
        name(mark).ok_or_else(|| Unused("the run's mark cannot be a file name".to_owned()))?;
    let own = place::own()?;
    // A program that a step was allowed to leave may start the next keeper from within.
    let is_here = own.file_name().is_some_and(|own| *own == *name);
    let group = if is_here { own } else { own.join(name) };
    let failed = |what: &str, error: &io::Error| {
        Unused(format!("could not {what} {}: {error}", group.display()))
    };
    if !is_here {
        make(&group).map_err(|error| failed("create", &error))?;
    }
    let entered = record.add(dir, &group);
    let entered = if is_here { entered } else { entered.and_then(|()| move_to(&group, 0)) };
    if let Err(error) = entered {
        let _ = fs::remove_dir(&group);
        return Err(failed("enter", &error));
    }
    Ok(Group(group))
}

/// Makes a group, or reuses that of an earlier keeper of the same run.
fn make(group: &Path) -> io::Result<()> {
    // Whatever the umask: only its owner may move processes here.
    match fs::DirBuilder::new().mode(0o755).create(group) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// The name of a run's group; none if the mark cannot be part of a path.
fn name(mark: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let fits = (1..=MARK_BYTES_MAX).contains(&mark.len()) && mark.bytes().all(plain);
    fits.then(|| format!("{PREFIX}{mark}"))
}

/// Whether a process is in the group of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belonging {
    /// It is not, or that is unknown.
    None,
    /// It is in the group itself, as the run's keeper is.
    Within,
    /// It is in a group below, which a step or a run inside a step made.
    Below,
}

/// Whether a process is in the group of a run, wherever in the tree that group is: its name alone
/// identifies the run, even if the record is lost.
pub(crate) fn belongs(pid: Pid, mark: &str) -> Belonging {
    match (place::of(pid), name(mark)) {
        (Some(path), Some(name)) => standing(&path, &name),
        _ => Belonging::None,
    }
}

fn standing(path: &str, name: &str) -> Belonging {
    match path.split('/').rev().position(|part| part == name) {
        None => Belonging::None,
        Some(0) => Belonging::Within,
        Some(_) => Belonging::Below,
    }
}

/// Whether the last keeper of a run directory was in a cgroup, or why not; none if no keeper was
/// there since the machine started.
pub fn used(dir: &Path) -> Option<Result<(), Unused>> {
    Record::read(dir).map(|record| record.unused.map_or(Ok(()), Err))
}

/// The cgroups of a run that are there.
pub fn groups(dir: &Path) -> Vec<PathBuf> {
    let groups = Record::read(dir).map(|record| record.groups).unwrap_or_default();
    groups.into_iter().filter(|group| group.is_dir()).collect()
}

/// Whether a keeper started from here could have a cgroup, as far as that can be told without
/// trying; or why not.
pub fn available() -> Result<(), Unused> {
    let own = place::own()?;
    if place::is_writable(&own) {
        return Ok(());
    }
    Err(Unused(format!("{} is not writable", own.display())))
}

/// Removes the cgroups of a run that are empty. Safe at any time: one that is in use stays.
pub fn tidy(dir: &Path) {
    for group in groups(dir) {
        remove(&group);
    }
}

/// Gives up the cgroups of a run that is about to be deleted: processes in them move to the cgroup
/// above.
pub fn disband(dir: &Path) {
    for group in groups(dir) {
        for _ in 0..DISBAND_PASSES {
            let left = members(&group);
            if left.is_empty() {
                break;
            }
            let Some(parent) = group.parent() else { break };
            for pid in left.into_iter().filter(|&pid| pid > 0) {
                // A process that we may not move stays, and so does the group.
                let _ = move_to(parent, pid);
            }
        }
        remove(&group);
    }
}

/// Moves a process; 0 is this one.
fn move_to(group: &Path, pid: Pid) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(group.join(PROCS))?;
    file.write_all(pid.to_string().as_bytes())
}

/// Removes a group with the groups below it, if no process is in any of them.
fn remove(group: &Path) {
    for _ in 0..REMOVE_TRIES {
        // Groups come after the one they are in.
        tree(group).iter().rev().for_each(|group| drop(fs::remove_dir(group)));
        if !group.is_dir() || !members(group).is_empty() {
            return;
        }
        thread::sleep(REMOVE_PAUSE);
    }
}

/// The processes in a group and below; those of a foreign pid namespace are 0.
fn members(group: &Path) -> Vec<Pid> {
    let read = |group: PathBuf| fs::read_to_string(group.join(PROCS)).unwrap_or_default();
    let pids = |text: String| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>();
    tree(group).into_iter().map(read).flat_map(pids).collect()
}

/// A group and the groups below it, each after the one it is in.
fn tree(group: &Path) -> Vec<PathBuf> {
    let mut found = vec![group.to_owned()];
    let mut next = 0;
    while next < found.len() && found.len() < GROUPS_MAX {
        let entries = fs::read_dir(&found[next]).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let below: Vec<_> = below.map(|entry| entry.path()).collect();
        found.extend(below);
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that led elsewhere would let a record choose what is removed.
    #[test]
    fn only_plain_marks_become_names() {
        assert_eq!(name("a-1_Z").as_deref(), Some("piton-a-1_Z"));
        for bad in ["", "a/b", "..", "a b", "a\n", "ä"] {
            assert_eq!(name(bad), None, "{bad:?}");
        }
        assert_eq!(name(&"a".repeat(MARK_BYTES_MAX + 1)), None);
    }

    /// A mark that another begins with must not be taken for it, or its processes would end.
    #[test]
    fn a_process_belongs_by_the_whole_name() {
        assert_eq!(standing("/", "piton-a"), Belonging::None);
        assert_eq!(standing("/x/piton-ab", "piton-a"), Belonging::None);
        assert_eq!(standing("/x/piton-a", "piton-a"), Belonging::Within);
        assert_eq!(standing("/../x/piton-a/piton-b", "piton-a"), Belonging::Below);
    }

    /// After a restart of the machine the same path may be somebody else's.
    #[test]
    fn a_record_counts_only_since_the_boot() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let group = dir.path().join("piton-x");
        let other = dir.path().join("other");
        fs::create_dir(&group)?;
        fs::create_dir(&other)?;
        let mut record =
            Record { boot: os::boot_id()?, groups: vec![group.clone(), other], unused: None };
        record.write(dir.path())?;
        assert_eq!(groups(dir.path()), std::slice::from_ref(&group));
        assert_eq!(used(dir.path()), Some(Ok(())));
        record.boot = "another".to_owned();
        record.write(dir.path())?;
        assert_eq!((groups(dir.path()), used(dir.path())), (Vec::new(), None));
        tidy(dir.path());
        assert!(group.is_dir());
        Ok(())
    }
}

//! The admin folders of worktrees, as files: whose they are, where they lead, whether complete.
//!
//! Read directly, because git does not list an entry that was interrupted while it was made.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{At as _, Place, Result};

/// The file that says a worktree of ours is complete.
const MARK: &str = "piton";

/// How the reason of our locks begins.
const REASON: &str = "piton: run ";

/// What stands between run and lane in it.
const REASON_LANE: &str = ", lane ";

/// The lane of a run that a worktree was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The run.
    pub run_id: String,
    /// The lane.
    pub lane: String,
}

impl Owner {
    /// The reason that locks a worktree of this owner.
    pub fn reason(&self) -> String {
        format!("{REASON}{}{REASON_LANE}{}", self.run_id, self.lane)
    }

    fn from_reason(reason: &str) -> Option<Self> {
        let (run_id, lane) = reason.trim_end().strip_prefix(REASON)?.rsplit_once(REASON_LANE)?;
        Some(Self { run_id: run_id.to_owned(), lane: lane.to_owned() })
    }
}

/// What the file of a complete worktree says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Whose it is.
    pub owner: Owner,
    /// The lane's branch, by its short name.
    pub branch: String,
    /// The commit the lane started from.
    pub start: String,
    /// The boot of the machine in which it was made or last taken up.
    pub boot: String,
    /// What should have been copied into it and was not there yet.
    pub missing: Vec<String>,
}

impl Mark {
    fn parse(text: &str) -> Option<Self> {
        let value = |key: &str| {
            let mut values = text.lines().filter_map(|line| line.split_once(' '));
            values.find(|(name, _)| *name == key).map(|(_, value)| value.to_owned())
        };
        let owner = Owner { run_id: value("run")?, lane: value("lane")? };
        let (branch, start) = (value("branch")?, value("start")?);
        // The last line is there only if the file is whole.
        value("end")?;
        let missing = text.lines().filter_map(|line| line.strip_prefix("missing "));
        let missing = missing.map(str::to_owned).collect();
        Some(Self { owner, branch, start, boot: value("boot").unwrap_or_default(), missing })
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, admin: &Path) -> Result<()> {
        let Self { owner, branch, start, boot, missing } = self;
        let missing: Vec<String> = missing.iter().map(|name| format!("missing {name}\n")).collect();
        let missing = missing.concat();
        let text = format!(
            "run {}\nlane {}\nbranch {branch}\nstart {start}\nboot {boot}\n{missing}end 1\n",
            owner.run_id, owner.lane
        );
        replace(&admin.join(MARK), text.as_bytes())
    }
}

/// One admin folder.
#[derive(Clone, Debug)]
pub struct Admin {
    /// The folder.
    pub dir: PathBuf,
    /// The worktree it leads to.
    pub path: Option<PathBuf>,
    /// The reason it is locked with.
    pub locked: Option<String>,
    /// Our mark, on a complete worktree.
    pub mark: Option<Mark>,
}

impl Admin {
    /// Reads one.
    pub fn read(dir: &Path) -> Self {
        Self::read_with(dir, &mut Folders::default())
    }

    fn read_with(dir: &Path, folders: &mut Folders) -> Self {
        let text = |name: &str| fs::read_to_string(dir.join(name)).ok();
        let path = fs::read(dir.join("gitdir")).ok().map(|line| dir.join(as_path(&line)));
        // A path relative to the admin folder is followed as far as there is something.
        let path = path.and_then(|dot_git| dot_git.parent().map(Path::to_owned));
        let path = path.map(|path| folders.real(path)).filter(|p| *p != dir);
        let mark = text(MARK).as_deref().and_then(Mark::parse);
        Self { dir: dir.to_owned(), path, locked: text("locked"), mark }
    }

    /// Whose it is, if ours.
    pub fn owner(&self) -> Option<Owner> {
        let marked = self.mark.as_ref().map(|mark| mark.owner.clone());
        marked.or_else(|| self.locked.as_deref().and_then(Owner::from_reason))
    }

    /// The reason of a lock that is not our own.
    pub fn foreign_lock(&self) -> Option<&str> {
        let reason = self.locked.as_deref()?;
        (Owner::from_reason(reason).is_none()).then_some(reason.trim_end())
    }

    /// Tells whether the worktree is there and leads back here.
    pub fn is_linked(&self) -> bool {
        self.path.as_ref().and_then(|path| leads_to(path)).is_some_and(|dir| same(&dir, &self.dir))
    }
}

/// Reads all of a repository's.
pub fn scan(place: &Place) -> Vec<Admin> {
    let mut folders = Folders::default();
    dirs(place).iter().map(|dir| Admin::read_with(dir, &mut folders)).collect()
}

/// All of a repository's, by their names.
pub fn dirs(place: &Place) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(place.common.join("worktrees")) else { return Vec::new() };
    let entries = entries.filter_map(std::result::Result::ok);
    let folders = entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut dirs: Vec<PathBuf> = folders.map(|e| e.path()).collect();
    dirs.sort();
    dirs
}

/// Real paths of folders: worktrees lie side by side, so what is above them is looked up once.
#[derive(Default)]
struct Folders(HashMap<PathBuf, PathBuf>);

impl Folders {
    /// The real path, or the path itself where there is nothing.
    fn real(&mut self, path: PathBuf) -> PathBuf {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path };
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_symlink() => {}
            Ok(_) => return path.canonicalize().unwrap_or(path),
            Err(_) => return path,
        }
        if let Some(known) = self.0.get(parent) {
            return known.join(name);
        }
        let Ok(real) = parent.canonicalize() else { return path };
        let found = real.join(name);
        self.0.insert(parent.to_owned(), real);
        found
    }
}

/// The admin folder that a worktree leads to.
pub fn leads_to(worktree: &Path) -> Option<PathBuf> {
    let text = fs::read(worktree.join(".git")).ok()?;
    Some(worktree.join(as_path(text.strip_prefix(b"gitdir: ")?)))
}

/// The path in a file of one line; a path need not be text.
fn as_path(line: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(line.strip_suffix(b"\n").unwrap_or(line)))
}

/// Tells whether two paths are one folder.
pub fn same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    one == other || real(one) == real(other)
}

/// Replaces a small file of ours: a copy next to it, synced, then renamed.
pub fn replace(file: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let copy = file.with_file_name(name);
    let write = || {
        let mut new = fs::File::create(&copy)?;
        new.write_all(bytes)?;
        new.sync_all()?;
        fs::rename(&copy, file)?;
        fs::File::open(file.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    write().at(file)
}

/// The boot of the machine: what was written in an earlier one may be torn. Empty where the
/// system does not say.
pub fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

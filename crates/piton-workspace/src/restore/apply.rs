//! Changes files: each path from one state to another, in an order that cannot get in its own way.
//!
//! First everything that goes, from the inside out; then folders, files, and at last permissions
//! of folders. Applying the same steps with their sides swapped undoes them, also half of them.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::atomic;
use super::{State, Step};
use crate::files::{os_path, parent};
use crate::git::{self, Git};
use crate::objects::{Kind, Oid};

/// Bytes of files held in memory at once, unless one file alone has more.
const BATCH_BYTES_MAX: u64 = 64 << 20;
/// Permissions of a folder while files are put into it.
const OPEN: u32 = 0o700;

/// Why files could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// An object has other bytes than its id says.
    #[error("git gave other bytes than asked for: {0}")]
    Bytes(String),
    /// A file is not what was written.
    #[error("{} is not as the snapshot has it", .0.display())]
    Differs(PathBuf),
}

/// Sizes of objects; those that are missing are left out.
pub(crate) fn sizes(dir: &Path, oids: &[Oid]) -> Result<HashMap<Oid, u64>, git::Error> {
    let input = Oid::lines(oids);
    let output = Git::at(dir).args(["cat-file", "--batch-check"]).input(input).text()?;
    let found = output.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let &[oid, "blob", size] = words.as_slice() else { return None };
        Some((Oid::from_hex(oid.as_bytes())?, size.parse().ok()?))
    });
    Ok(found.collect())
}

/// Applies steps to the files below a folder; objects come from the repository of another.
pub(crate) struct Apply<'a> {
    pub(crate) repository: &'a Path,
    pub(crate) top: &'a Path,
    pub(crate) sizes: &'a HashMap<Oid, u64>,
    /// Folders that were opened for writing, with the permissions they had.
    opened: Vec<(PathBuf, u32)>,
    /// Goes on after a failure, to put back as much as can be.
    stubborn: bool,
    failed: Option<Failed>,
}

impl<'a> Apply<'a> {
    pub(crate) fn new(repository: &'a Path, top: &'a Path, sizes: &'a HashMap<Oid, u64>) -> Self {
        Self { repository, top, sizes, opened: Vec::new(), stubborn: false, failed: None }
    }

    /// Goes on after a failure, and tells of the first at the end.
    pub(crate) fn stubborn(self) -> Self {
        Self { stubborn: true, ..self }
    }

    /// Carries out all steps, sorted by path.
    pub(crate) fn run(mut self, steps: &[Step]) -> Result<(), Failed> {
        let done = self.change(steps);
        // Permissions that were only lent are given back, whatever happened.
        for (path, perm) in self.opened.iter().rev() {
            let _ = fs::set_permissions(path, Permissions::from_mode(*perm));
        }
        done?;
        for step in steps.iter().rev() {
            if let State::Folder { perm } = step.to {
                let perm = Permissions::from_mode(perm);
                self.at(&step.path, |path| fs::set_permissions(path, perm.clone()))?;
            }
        }
        self.failed.map_or(Ok(()), Err)
    }

    fn change(&mut self, steps: &[Step]) -> Result<(), Failed> {
        for step in steps.iter().rev() {
            if step.from != State::Absent && !step.from.same_type(step.to) {
                self.remove(step)?;
            }
        }
        for step in steps {
            if matches!(step.to, State::Folder { .. }) && !step.from.same_type(step.to) {
                self.at(&step.path, |path| match fs::create_dir(path) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
                    made => made,
                })?;
                self.at(&step.path, |path| open(path).map(drop))?;
            }
        }
        let mut batch: Vec<&Step> = Vec::new();
        let mut bytes = 0;
        for step in steps {
            match (step.from, step.to) {
                (State::File { oid: old, .. }, State::File { oid, perm }) if old == oid => {
                    let perm = Permissions::from_mode(perm);
                    self.at(&step.path, |path| fs::set_permissions(path, perm.clone()))?;
                }
                (_, State::File { oid, .. } | State::Link { oid }) => {
                    let size = self.sizes.get(&oid).copied().unwrap_or_default();
                    if bytes + size > BATCH_BYTES_MAX {
                        self.write_all(&std::mem::take(&mut batch))?;
                        bytes = 0;
                    }
                    batch.push(step);
                    bytes += size;
                }
                _ => {}
            }
        }
        self.write_all(&batch)
    }

    fn remove(&mut self, step: &Step) -> Result<(), Failed> {
        let folder = matches!(step.from, State::Folder { .. });
        let stays = step.to == State::Absent;
        self.at(&step.path, |path| {
            let gone = if folder { fs::remove_dir(path) } else { fs::remove_file(path) };
            match gone {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
                // Ignored files, or files that are to be kept, are in it.
                Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty && stays => Ok(()),
                // Not what it was thought to be: when undoing, it may never have been replaced.
                Err(_) if is_other(path, folder) => Ok(()),
                gone => gone,
            }
        })
    }

    fn write_all(&mut self, batch: &[&Step]) -> Result<(), Failed> {
        if batch.is_empty() {
            return Ok(());
        }
        let oids: Vec<Oid> = batch.iter().filter_map(|s| s.to.oid()).collect();
        let input = Oid::lines(&oids);
        let output = Git::at(self.repository).args(["cat-file", "--batch"]).input(input).bytes()?;
        let mut contents = git::contents(&output);
        for (step, oid) in batch.iter().zip(oids) {
            let data = contents.next().filter(|data| Oid::hash(Kind::Blob, data) == oid);
            let data = data.ok_or_else(|| Failed::Bytes(oid.to_string()))?;
            self.at(&step.path, |path| atomic::put(path, step.to, data))?;
        }
        Ok(())
    }

    /// Does something to a path; a folder without write permission lends it for the time.
    fn at(
        &mut self,
        path: &[u8],
        mut act: impl FnMut(&Path) -> io::Result<()>,
    ) -> Result<(), Failed> {
        let path = self.top.join(os_path(path));
        let mut done = act(&path);
        if done.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
            && let Some((folder, perm)) = path.parent().and_then(|p| Some((p, open(p).ok()??)))
        {
            self.opened.push((folder.to_owned(), perm));
            done = act(&path);
        }
        match done.map_err(|source| Failed::Io { path, source }) {
            Err(error) if self.stubborn => {
                self.failed.get_or_insert(error);
                Ok(())
            }
            done => done,
        }
    }
}

/// Whether something else is at a path than was thought: a folder, or no folder.
fn is_other(path: &Path, folder: bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir() != folder)
}

/// Opens a folder for its owner, whatever the umask; the permissions it had, if others.
fn open(folder: &Path) -> io::Result<Option<u32>> {
    let perm = fs::symlink_metadata(folder)?.permissions().mode() & 0o7777;
    if perm & OPEN == OPEN {
        return Ok(None);
    }
    fs::set_permissions(folder, Permissions::from_mode(perm | OPEN))?;
    Ok(Some(perm))
}

/// What is at a path of a work tree: nothing, where a link leads there from within the work tree, for
/// what is beyond it is another path.
pub(crate) fn about(top: &Path, path: &[u8]) -> Option<fs::Metadata> {
    let about = fs::symlink_metadata(top.join(os_path(path))).ok()?;
    let mut folder = parent(path);
    while let Some(above) = folder.filter(|above| !above.is_empty()) {
        if !fs::symlink_metadata(top.join(os_path(above))).is_ok_and(|above| above.is_dir()) {
            return None;
        }
        folder = parent(above);
    }
    Some(about)
}

/// Whether a path is in a state, as far as it can be seen.
pub(crate) fn is_in(top: &Path, path: &[u8], state: State) -> bool {
    let Some(about) = about(top, path) else { return state == State::Absent };
    let path = top.join(os_path(path));
    let perm = about.permissions().mode() & 0o7777;
    match state {
        State::Absent => false,
        State::Folder { perm: wanted } => about.is_dir() && perm == wanted,
        State::File { oid, perm: wanted } => {
            let read = || fs::read(&path).is_ok_and(|data| Oid::hash(Kind::Blob, &data) == oid);
            about.is_file() && perm == wanted && read()
        }
        State::Link { oid } => {
            use std::os::unix::ffi::OsStrExt as _;
            let target = fs::read_link(&path);
            target.is_ok_and(|t| Oid::hash(Kind::Blob, t.as_os_str().as_bytes()) == oid)
        }
        State::Submodule { .. } => true,
    }
}

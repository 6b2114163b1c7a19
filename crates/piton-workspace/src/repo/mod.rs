//! A repository: where it keeps things, as seen from any of its work trees, and what its names lead to.
//!
//! Most of it is read from git's own files, because a cold `piton status` has no time to start a
//! process. Nothing here changes a repository.

mod batch;
mod loose;
mod memo;
mod project;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

pub use batch::value;
pub(crate) use batch::{bytes, end_processes, remember};
pub(crate) use loose::is_id;
pub(crate) use memo::Memo;
pub use project::{Error, Project};
pub(crate) use project::{REFTABLE_HEAD, head_ref, named_by};

use crate::git::{self, Git};

/// The folders of one repository.
#[derive(Clone, Debug)]
pub(crate) struct Repo {
    /// The top of the work tree that was named.
    pub root: PathBuf,
    /// The git folder of that work tree.
    pub git_dir: PathBuf,
    /// The git folder that all work trees share, by its real path: a git that stays is known by it.
    pub common: PathBuf,
    /// Our own folder in it.
    pub state: PathBuf,
}

/// Folders and their real paths. A run has a handful of them and asks for each many times; one that
/// is replaced by a link to another while it runs is still that folder for it. By whole names: going
/// through paths part by part takes longer than all the rest.
static REAL: Memo<OsString, PathBuf> = Memo::new();

/// The real path of a folder.
pub(crate) fn real(dir: &Path) -> io::Result<PathBuf> {
    if let Some(real) = REAL.get(dir.as_os_str()).filter(|real| real.is_dir()) {
        return Ok(real);
    }
    let real = dir.canonicalize()?;
    if dir.is_absolute() {
        REAL.add(dir.as_os_str().to_owned(), real.clone());
    }
    Ok(real)
}

fn not_found(message: String) -> git::Error {
    git::Error { command: "rev-parse".to_owned(), code: None, message }
}

impl Repo {
    /// Finds the folders of the repository that a folder belongs to.
    pub fn find(dir: &Path) -> Result<Self, git::Error> {
        let dir = real(dir).map_err(|e| not_found(format!("{}: {e}", dir.display())))?;
        let project =
            Project::discover_cached(&dir).map_err(|error| not_found(error.to_string()))?;
        let (Some(git_dir), Some(common)) = (project.git_dir, project.common_dir) else {
            return Err(not_found(format!("{} is not in a git work tree", dir.display())));
        };
        Ok(Self { root: project.root, git_dir, common, state: project.state_dir })
    }

    /// The same for another work tree of the repository, with its admin folder.
    pub fn linked(&self, root: &Path, admin: &Path) -> Self {
        Self { root: root.to_owned(), git_dir: admin.to_owned(), ..self.clone() }
    }

    /// Whether the work tree is the main one.
    pub fn is_main(&self) -> bool {
        self.git_dir == self.common
    }

    /// What a ref or an expression about one names, as seen from the work tree.
    pub fn value(&self, name: &str) -> Option<String> {
        batch::Names { git_dir: &self.git_dir, common: &self.common }.value(name)
    }

    /// The bytes of the object that a name leads to, likewise.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        batch::Names { git_dir: &self.git_dir, common: &self.common }.bytes(name)
    }

    /// Where objects are written.
    pub fn objects(&self) -> PathBuf {
        self.common.join("objects")
    }

    /// The index of the work tree.
    pub fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    /// The admin folders of all linked work trees, by their names.
    pub fn admin_dirs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        let folders = entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut dirs: Vec<PathBuf> = folders.map(|e| e.path()).collect();
        dirs.sort();
        dirs
    }

    /// Begins a git command in the work tree that a later driver can wait for.
    pub fn git(&self) -> Git {
        self.git_in(&self.root)
    }

    /// Begins a git command in another work tree of this repository, likewise.
    pub fn git_in(&self, dir: &Path) -> Git {
        self.prepare();
        Git::at(dir).witnessed(&self.witness())
    }

    /// Makes our own folder. If this fails, so does opening a file in it, and that is reported.
    pub fn prepare(&self) {
        if !self.state.is_dir() {
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.state);
        }
    }

    /// The file that running git commands hold a lock on.
    pub fn witness(&self) -> PathBuf {
        self.state.join("git-children")
    }
}

//! Where a repository keeps things, as seen from any of its work trees.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::git::{self, Git};
use crate::{Project, ask, git::Error};

/// The folders of one repository.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The top of the work tree that was named.
    pub root: PathBuf,
    /// The git folder of that work tree.
    pub git_dir: PathBuf,
    /// The git folder that all work trees share.
    pub common: PathBuf,
    /// Our own folder in it.
    pub state: PathBuf,
}

/// Folders and their real paths. A run has a handful of them and asks for each many times; one that
/// is replaced by a link to another while it runs is still that folder for it.
static REAL: Mutex<Vec<(PathBuf, PathBuf)>> = Mutex::new(Vec::new());

/// How many are remembered.
const REAL_MAX: usize = 64;

/// The real path of a folder.
pub(super) fn real(dir: &Path) -> std::io::Result<PathBuf> {
    let mut known = REAL.lock().unwrap_or_else(PoisonError::into_inner);
    // Whole names: going through paths part by part takes longer than all the rest.
    let found = known.iter().rev().find(|(path, _)| path.as_os_str() == dir.as_os_str());
    if let Some((_, real)) = found.filter(|(_, real)| real.is_dir()) {
        return Ok(real.clone());
    }
    let real = dir.canonicalize()?;
    if dir.is_absolute() && found.is_none() {
        if known.len() == REAL_MAX {
            known.remove(0);
        }
        known.push((dir.to_owned(), real.clone()));
    }
    Ok(real)
}

fn unfound(message: String) -> Error {
    Error { command: "rev-parse".to_owned(), code: None, message }
}

impl Place {
    /// Finds the folders of the repository that a folder belongs to.
    pub fn of(dir: &Path) -> Result<Self, git::Error> {
        let dir = real(dir).map_err(|e| unfound(format!("{}: {e}", dir.display())))?;
        let project = Project::known(&dir).map_err(|error| unfound(error.to_string()))?;
        let (Some(git_dir), Some(common)) = (project.git_dir, project.common_dir) else {
            return Err(unfound(format!("{} is not in a git work tree", dir.display())));
        };
        Ok(Self { root: project.root, git_dir, common, state: project.state_dir })
    }

    /// The same where a work tree, its git folder and the one that all share were found already.
    pub fn in_git((dir, git_dir): (&Path, &Path), common: &Path) -> Result<Self, git::Error> {
        // By one name, whichever way it was found: a git that stays is known by it.
        let real = real(common).map_err(|e| unfound(format!("{}: {e}", common.display())))?;
        let git_dir = if git_dir == common { real.clone() } else { git_dir.to_owned() };
        Ok(Self { root: dir.to_owned(), git_dir, state: real.join("piton"), common: real })
    }

    /// The same for another work tree of the repository, with its admin folder.
    pub fn linked(&self, root: &Path, admin: &Path) -> Self {
        let (root, git_dir) = (root.to_owned(), admin.to_owned());
        Self { root, git_dir, common: self.common.clone(), state: self.state.clone() }
    }

    /// What a ref or an expression about one names, as seen from the work tree.
    pub fn value(&self, name: &str) -> Option<String> {
        ask::id_at((&self.git_dir, &self.common), name)
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
            let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.state);
        }
    }

    /// The file that running git commands hold a lock on.
    pub fn witness(&self) -> PathBuf {
        self.state.join("git-children")
    }
}

//! The admin folders of worktrees, as files: whose they are, where they lead, whether complete.
//!
//! Read directly, because git does not list an entry that was interrupted while it was made.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use super::links;
use super::mark::{Mark, Owner};
use crate::files::{self, Id, id, os_path, small};
use crate::repo::{self, Repo};

/// A path, and the folder that is there.
pub struct Folder<'a> {
    path: &'a Path,
    id: Option<Id>,
}

impl<'a> Folder<'a> {
    /// Looks at a path, following links.
    pub fn at(path: &'a Path) -> Self {
        Self::with(path, fs::metadata(path).ok().as_ref())
    }

    /// The same for one that was looked at.
    pub fn with(path: &'a Path, found: Option<&Metadata>) -> Self {
        Self { path, id: found.map(id) }
    }
}

/// One admin folder.
#[derive(Clone, Debug)]
pub struct Admin {
    /// The folder.
    pub dir: PathBuf,
    /// The worktree it leads to.
    pub path: Option<PathBuf>,
    /// What is there.
    id: Option<Id>,
    /// Our mark, on a complete worktree.
    pub mark: Option<Mark>,
    /// Whose lock it has, where it has no mark.
    locked_by: Option<Owner>,
}

impl Admin {
    /// Reads one.
    pub fn read(dir: &Path) -> Self {
        // First: it repairs the others where an earlier boot tore them.
        let mark = Mark::read(dir);
        let made_at = || mark.as_ref().and_then(|mark| mark.path.as_ref()).map(PathBuf::from);
        let path = links::path(dir).or_else(made_at).filter(|path| path != dir);
        let (path, id) = path.map(real).unzip();
        let locked_by = if mark.is_some() { None } else { lock(dir) };
        let locked_by = locked_by.as_deref().and_then(Owner::from_reason);
        Self { dir: dir.to_owned(), path, id: id.flatten(), mark, locked_by }
    }

    /// Whose it is, if ours.
    pub fn owner(&self) -> Option<&Owner> {
        self.mark.as_ref().map(|mark| &mark.owner).or(self.locked_by.as_ref())
    }

    /// The reason of a lock that is not our own.
    pub fn foreign_lock(&self) -> Option<String> {
        let reason = lock(&self.dir).filter(|reason| Owner::from_reason(reason).is_none())?;
        Some(reason.trim_end().to_owned())
    }

    /// Tells whether this is the entry of the worktree at a path; by name where there is none.
    pub fn is_at(&self, folder: &Folder<'_>) -> bool {
        (self.id.is_some() && self.id == folder.id) || self.path.as_deref() == Some(folder.path)
    }

    /// Tells whether the worktree is there and leads back here.
    pub fn is_linked(&self) -> bool {
        self.path.as_deref().and_then(leads_to).is_some_and(|dir| same(&dir, &self.dir))
    }
}

/// Tells whether the worktree at a path leads to an entry that is there, and is not this one: a copy
/// of a repository has entries that lead to the worktrees of the first.
pub fn is_of_another(path: &Path, admin: &Path) -> bool {
    leads_to(path).is_some_and(|dir| dir.is_dir() && !same(&dir, admin))
}

/// The reason that an entry is locked with, or was about to be when we were killed.
fn lock(dir: &Path) -> Option<String> {
    let aside = || links::left_aside(dir).and_then(|(path, _)| small(&path).ok());
    let reason = small(&dir.join("locked")).ok().or_else(aside)?;
    String::from_utf8(reason).ok()
}

/// Reads all of a repository's.
pub fn scan(repo: &Repo) -> Vec<Admin> {
    repo.admin_dirs().iter().map(|dir| Admin::read(dir)).collect()
}

/// The real path and what is there, or the path itself where there is nothing. Worktrees are side by
/// side, so what is above them is looked up once.
fn real(path: PathBuf) -> (PathBuf, Option<Id>) {
    let Ok(found) = fs::symlink_metadata(&path) else { return (path, None) };
    if found.is_symlink() {
        let found = fs::metadata(&path).ok().as_ref().map(id);
        return (path.canonicalize().unwrap_or(path), found);
    }
    let parent = path.parent().and_then(|parent| repo::real(parent).ok());
    let real = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
    (real.unwrap_or(path), Some(id(&found)))
}

/// The admin folder that a worktree leads to.
pub fn leads_to(worktree: &Path) -> Option<PathBuf> {
    let text = small(&worktree.join(".git")).ok()?;
    Some(worktree.join(as_path(text.strip_prefix(b"gitdir: ")?)))
}

/// The path in a file of one line; a path need not be text.
pub(super) fn as_path(line: &[u8]) -> &Path {
    os_path(line.strip_suffix(b"\n").unwrap_or(line))
}

/// Tells whether two paths are one folder: by what is there, or by name where nothing is.
pub fn same(one: &Path, other: &Path) -> bool {
    one == other || files::is_same(fs::metadata(one), fs::metadata(other))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_by_whichever_path_and_two_that_are_gone_are_one_by_name() {
        let home = tempfile::tempdir().unwrap();
        let (folder, link) = (home.path().join("folder"), home.path().join("link"));
        let none = home.path().join("none");
        assert!(same(&none, &none) && !same(&none, &folder));
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(same(&folder, &link) && same(&link, &folder.join("../folder")));
        assert!(!same(&folder, home.path()) && !same(&folder, &none) && !same(&none, &folder));
        let canonical = folder.canonicalize().unwrap();
        assert_eq!(real(link.clone()).0, canonical);
        assert_eq!(real(folder).0, canonical);
        assert_eq!(real(none.clone()), (none, None));
    }
}

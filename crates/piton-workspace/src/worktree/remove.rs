//! A worktree goes: renamed away at once, deleted later.
//!
//! Deleting a hundred thousand files takes seconds; renaming a folder does not. Files first, then
//! the entry, so that after a kill in between the entry still says what is left to do.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use super::admin::{self, Admin, Folder};
use super::{At as _, Error, Result, check, links, locks};
use crate::refs::Fence;
use crate::repo::Repo;

/// Keeps names within this process apart.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Removes a worktree of ours and its entry; its branch stays. Deleting goes on in a thread: what
/// the end of the process leaves behind, [`empty_trash`] deletes.
pub fn remove(root: &Path, path: &Path, fence: &Fence) -> Result<()> {
    let repo = Repo::find(root)?;
    check(&repo, fence)?;
    locks::await_children(&repo)?;
    let path = repo.root.join(path);
    let Some((admin, real)) = removable(&repo, &path)? else { return Ok(()) };
    let files = discard_files(&repo, path.is_dir().then_some(&path))?;
    let entry = discard_admin(&repo, &admin)?;
    remove_empty_parents(&repo, &real);
    delete_later([files, entry]);
    Ok(())
}

/// Whether [`remove`] would find nothing in its way.
pub fn may_remove(root: &Path, path: &Path) -> Result<()> {
    let repo = Repo::find(root)?;
    removable(&repo, &repo.root.join(path)).map(drop)
}

/// The admin folder of a worktree and where that leads to, if it may go; nothing where there is none.
fn removable(repo: &Repo, path: &Path) -> Result<Option<(PathBuf, PathBuf)>> {
    let path = path.to_owned();
    let admins = admin::scan(repo);
    let folder = Folder::at(&path);
    let Some(admin) = admins.iter().find(|admin| admin.is_at(&folder)) else {
        return if path.join(".git").exists() { Err(Error::Foreign(path)) } else { Ok(None) };
    };
    if admin.owner().is_none() || admin::is_of_another(&path, &admin.dir) {
        return Err(Error::Foreign(path));
    }
    if let Some(reason) = admin.foreign_lock() {
        return Err(Error::Locked { path, reason });
    }
    let real = admin.path.clone().unwrap_or_else(|| path.clone());
    let within = |other: &Admin| {
        other.dir != admin.dir && other.path.as_ref().is_some_and(|path| path.starts_with(&real))
    };
    if admins.iter().any(|other| within(other) && other.is_linked()) {
        return Err(Error::Nested(path));
    }
    Ok(Some((admin.dir.clone(), real)))
}

/// Deletes what is in the trash without anybody waiting for it.
pub(super) fn delete_later(trash: [Option<PathBuf>; 2]) {
    static BIN: OnceLock<Option<Sender<PathBuf>>> = OnceLock::new();
    let bin = BIN.get_or_init(|| {
        let (bin, thrown) = mpsc::channel();
        let thread = thread::Builder::new().name("trash".to_owned());
        // Best effort: what stays behind is deleted by the next call to empty the trash.
        let deletes = move || thrown.iter().for_each(|folder: PathBuf| drop(delete(&folder)));
        thread.spawn(deletes).ok().map(|_| bin)
    });
    for folder in trash.into_iter().flatten() {
        let _ = bin.as_ref().map(|bin| bin.send(folder));
    }
}

/// Moves the files of a worktree out of the way.
pub(super) fn discard_files(repo: &Repo, path: Option<&PathBuf>) -> Result<Option<PathBuf>> {
    let Some(path) = path else { return Ok(None) };
    match throw(repo, path) {
        Ok(trash) => Ok(Some(trash)),
        // The trash is on another file system: somebody has to wait.
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            delete(path).at(path)?;
            Ok(None)
        }
        Err(source) => Err(Error::File { path: path.clone(), source }),
    }
}

/// Moves an admin folder out of the way.
pub(super) fn discard_admin(repo: &Repo, dir: &Path) -> Result<Option<PathBuf>> {
    let trash = match throw(repo, dir) {
        Ok(trash) => trash,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::File { path: dir.to_owned(), source }),
    };
    // Git removes the folder of all entries with the last one; it fails if there are others.
    let _ = fs::remove_dir(repo.common.join("worktrees"));
    Ok(Some(trash))
}

/// What removals left behind and nobody has deleted yet.
pub fn trash_folders(root: &Path) -> Result<Vec<PathBuf>> {
    let repo = Repo::find(root)?;
    let entries = fs::read_dir(trash_folder(&repo)).into_iter().flatten().flatten();
    Ok(entries.map(|entry| entry.path()).collect())
}

/// Deletes what removals left behind; the number of folders that are gone. Everything in the
/// trash was given up, so this may run at any time.
pub fn empty_trash(root: &Path) -> Result<usize> {
    let mut gone = 0;
    for folder in trash_folders(root)? {
        match delete(&folder) {
            Ok(()) => gone += 1,
            // Another deletion of the same folder is in progress.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(Error::File { path: folder, source }),
        }
    }
    Ok(gone)
}

/// Removes what a driver of a run that was killed left of worktrees it was about to make or remove:
/// entries that say nothing but whose they should be, and folders for them that are empty.
pub fn sweep_begun<'a>(
    root: &Path,
    run_id: &str,
    folders: impl Iterator<Item = &'a Path>,
) -> Result<()> {
    let repo = Repo::find(root)?;
    for dir in repo.admin_dirs() {
        if links::left_aside(&dir).is_some_and(|(_, owner)| owner == run_id) {
            delete_later([None, discard_admin(&repo, &dir)?]);
        }
    }
    for folder in folders {
        // Fails where there is something in them.
        let _ = fs::remove_dir(folder);
        let _ = folder.parent().map(fs::remove_dir);
    }
    Ok(())
}

fn trash_folder(repo: &Repo) -> PathBuf {
    repo.state.join("trash")
}

/// A name that no removal of this process had.
fn number() -> String {
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Moves a folder into the trash, under a name that is not taken: one that a process of the same
/// number left has something in it, so nothing can be renamed to it.
fn throw(repo: &Repo, from: &Path) -> std::io::Result<PathBuf> {
    let folder = trash_folder(repo);
    let mut is_made = false;
    loop {
        let trash = folder.join(number());
        match fs::rename(from, &trash) {
            Ok(()) => return Ok(trash),
            Err(error) if error.kind() == ErrorKind::NotFound && !is_made => {
                fs::create_dir_all(&folder)?;
                is_made = true;
            }
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            Err(error) => return Err(error),
        }
    }
}

/// Deletes a folder, also with folders in it that may not be written.
fn delete(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            unlock(folder)?;
            fs::remove_dir_all(folder)
        }
        result => result,
    }
}

fn unlock(folder: &Path) -> std::io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            unlock(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes folders above a worktree that are empty now, up to the folder of all worktrees.
fn remove_empty_parents(repo: &Repo, path: &Path) {
    let Ok(rest) = path.strip_prefix(&repo.root) else { return };
    let depth = rest.components().count();
    for dir in path.ancestors().skip(1).take(depth.saturating_sub(2)) {
        if fs::remove_dir(dir).is_err() {
            return;
        }
    }
}

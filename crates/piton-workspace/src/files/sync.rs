//! Files and folders made durable: git syncs what it writes, but neither the files of a work tree nor
//! the folder that a file is renamed into.
//!
//! The folders above one matter only if it was made: so it is remembered which folders this process
//! has synced the way up from, and they are known again by when they were made, for git removes a
//! folder with its last ref and makes it again.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Files from which one sync of the whole file system takes less time than one for each.
const SINGLE_MAX: usize = 64;

/// What tells one folder from another that had its path before.
type Made = (u64, u64, Option<SystemTime>);

/// Folders whose way up to the repository's is durable.
static KNOWN: Mutex<Option<HashMap<PathBuf, Made>>> = Mutex::new(None);

/// Makes files of a work tree that were written or deleted durable, and the folders they are in.
pub(crate) fn files<'a>(root: &Path, paths: impl Iterator<Item = &'a Path>) -> io::Result<()> {
    let paths: Vec<&Path> = paths.collect();
    contents(root, &paths)?;
    if is_many(paths.len()) {
        return Ok(());
    }
    let folders: BTreeSet<&Path> = paths.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    // One may have gone with its last file.
    folders.into_iter().try_for_each(|folder| if_in_reach(&root.join(folder)))
}

/// Makes what files of a work tree hold durable; of many, their folders too.
pub(crate) fn contents(root: &Path, paths: &[&Path]) -> io::Result<()> {
    if is_many(paths.len()) {
        return file_system(root);
    }
    for path in paths {
        let file = root.join(path);
        // Opening a FIFO of the user's would wait for ever.
        if file.symlink_metadata().is_ok_and(|found| found.is_file()) {
            if_in_reach(&file)?;
        }
    }
    Ok(())
}

/// Whether one sync of the whole file system stands for those of so many files.
pub(crate) fn is_many(files: usize) -> bool {
    cfg!(target_os = "linux") && files > SINGLE_MAX
}

/// One sync for all files that were written below a folder.
pub fn file_system(dir: &Path) -> io::Result<()> {
    let folder = File::open(dir)?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&folder)?;
    #[cfg(not(target_os = "linux"))]
    {
        rustix::fs::sync();
        drop(folder);
    }
    Ok(())
}

/// Syncs a file or folder; not one that its owner may not read, or that went in the meantime.
fn if_in_reach(path: &Path) -> io::Result<()> {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match File::open(path) {
        Err(e) if matches!(e.kind(), NotADirectory | NotFound | PermissionDenied) => Ok(()),
        opened => opened?.sync_all(),
    }
}

/// The folders that lead to a file, named from the folder that all work trees share.
pub(crate) fn way_up(common: &Path, name: &str) -> io::Result<()> {
    way_up_with(common, name, &mut BTreeSet::new(), &mut folder)
}

/// Syncs the folder of a file, and those above it unless that was done.
pub(crate) fn way_up_with(
    common: &Path,
    name: &str,
    done: &mut BTreeSet<PathBuf>,
    sync: &mut impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let file = common.join(name);
    let above = file.ancestors().skip(1).take_while(|folder| *folder != common);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    let mut new = Vec::new();
    let mut lowest = true;
    for folder in above {
        // A folder that went with its last ref changed the one above it.
        let Some(made) = made(folder) else { continue };
        if std::mem::take(&mut lowest) && done.insert(folder.to_owned()) {
            sync(folder)?;
        }
        if made.2.is_some() && known.get(folder) == Some(&made) {
            break;
        }
        sync(folder.parent().unwrap_or(common))?;
        new.push((folder.to_owned(), made));
    }
    known.extend(new);
    Ok(())
}

/// Syncs a folder: what is in it by name.
pub(crate) fn folder(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// When a folder was made, where the file system says; nothing where there is none.
fn made(folder: &Path) -> Option<Made> {
    let found = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
    Some((found.dev(), found.ino(), found.created().ok()))
}

//! Makes ref moves durable: git syncs a ref's file, but not the folder that it is renamed into.
//!
//! That folder is synced after every move. Those above it matter only if it was made: so it is
//! remembered which folders this process has synced the way up from, and they are known again by
//! when they were made, for git removes a folder with its last ref and makes it anew.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// What tells one folder from another that had its path before.
type Made = (u64, u64, SystemTime);

/// Folders whose way up to the repository's is durable.
static KNOWN: Mutex<Option<HashMap<PathBuf, Made>>> = Mutex::new(None);

/// The folders that a transaction changes.
pub(super) struct Changing<'a> {
    common: &'a Path,
    lines: &'a str,
    /// The packed refs as they were.
    packed: Option<Made>,
}

impl<'a> Changing<'a> {
    /// Looks before the transaction is carried out.
    pub(super) fn look(common: &'a Path, lines: &'a str) -> Self {
        Self { common, lines, packed: changed(&common.join("packed-refs")) }
    }

    /// Syncs what it changed.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.sync_with(&mut sync_folder)
    }

    fn sync_with(&self, sync: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
        let names = self.lines.lines().filter_map(|line| {
            let mut words = line.split(' ');
            words.next().filter(|verb| ["update", "delete"].contains(verb)).and(words.next())
        });
        let mut done = BTreeSet::new();
        for name in names {
            sync_way(self.common, name, &mut done, sync)?;
        }
        // A ref that was deleted may have stood there.
        if changed(&self.common.join("packed-refs")) != self.packed {
            sync(self.common)?;
        }
        Ok(())
    }
}

/// The folders that lead to a ref, which may have been moved by somebody who did not sync them.
pub(crate) fn sync_ref(common: &Path, name: &str) -> io::Result<()> {
    sync_way(common, name, &mut BTreeSet::new(), &mut sync_folder)
}

/// Syncs the folder of a ref, and those above it unless that was done; where refs are not files, the
/// folder that holds them all.
fn sync_way(
    common: &Path,
    name: &str,
    done: &mut BTreeSet<PathBuf>,
    sync: &mut impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let tables = common.join("reftable");
    if tables.is_dir() {
        return if done.insert(tables.clone()) { sync(&tables) } else { Ok(()) };
    }
    let file = common.join(name);
    let above = file.ancestors().skip(1).take_while(|folder| *folder != common);
    // A folder that went with its last ref changed the one above it.
    let mut there = above.skip_while(|folder| !folder.is_dir()).peekable();
    if let Some(folder) = there.peek()
        && done.insert((*folder).to_owned())
    {
        sync(folder)?;
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    let mut new = Vec::new();
    for folder in there {
        let made = made(folder);
        if made.is_some() && known.get(folder) == made.as_ref() {
            break;
        }
        sync(folder.parent().unwrap_or(common))?;
        new.extend(made.map(|made| (folder.to_owned(), made)));
    }
    known.extend(new);
    Ok(())
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// When a folder was made, where the file system says.
fn made(folder: &Path) -> Option<Made> {
    let found = fs::metadata(folder).ok()?;
    Some((found.dev(), found.ino(), found.created().ok()?))
}

/// When a file was changed.
fn changed(file: &Path) -> Option<Made> {
    let found = fs::metadata(file).ok()?;
    Some((found.dev(), found.ino(), found.modified().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folders that are synced for a transaction, from the repository's own.
    fn synced(top: &Path, lines: &str, act: impl FnOnce() -> io::Result<()>) -> Vec<String> {
        let changing = Changing::look(top, lines);
        act().expect("the test's own files");
        let mut all = Vec::new();
        let done = changing.sync_with(&mut |folder| {
            let inner = folder.strip_prefix(top).map(|folder| folder.display().to_string());
            all.extend(inner);
            Ok(())
        });
        done.expect("nothing is synced here");
        all
    }

    #[test]
    fn a_new_folder_has_the_way_up_synced_and_a_known_one_only_itself() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let top = home.path();
        let (folder, file) = (top.join("refs/heads/lane/P"), top.join("refs/heads/lane/P/A"));
        let lines = "verify refs/piton/r/epoch 1\nupdate refs/heads/lane/P/A 1 0\n";
        let found = synced(top, lines, || {
            fs::create_dir_all(&folder)?;
            fs::write(&file, "1\n")
        });
        assert_eq!(found, ["refs/heads/lane/P", "refs/heads/lane", "refs/heads", "refs", ""]);
        let lines = "update refs/heads/lane/P/A 2 1\nupdate refs/heads/lane/P/B 2 0\n";
        assert_eq!(synced(top, lines, || fs::write(&file, "2\n")), ["refs/heads/lane/P"]);
        // Git removes the folder with its last ref: the entry that went stood in the one above.
        let lines = "delete refs/heads/lane/P/A 2\n";
        assert_eq!(synced(top, lines, || fs::remove_dir_all(&folder)), ["refs/heads/lane"]);
        // Made anew, it is another folder, though its path and perhaps its number are the same.
        let found = synced(top, "update refs/heads/lane/P/A 1 0\n", || fs::create_dir(&folder));
        assert_eq!(found, ["refs/heads/lane/P", "refs/heads/lane"]);
        Ok(())
    }

    #[test]
    fn packed_refs_and_tables_are_synced_when_they_change() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let top = home.path();
        fs::create_dir_all(top.join("refs/heads"))?;
        let lines = "delete refs/heads/main 2\n";
        assert_eq!(synced(top, lines, || Ok(())), ["refs/heads", "refs", ""]);
        let found = synced(top, lines, || fs::write(top.join("packed-refs"), "x"));
        assert_eq!(found, ["refs/heads", ""]);
        fs::create_dir(top.join("reftable"))?;
        assert_eq!(synced(top, lines, || Ok(())), ["reftable"]);
        Ok(())
    }
}

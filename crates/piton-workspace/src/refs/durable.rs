//! Makes ref moves durable: git syncs a ref's file, but not the folder that it is renamed into.
//!
//! That folder is synced after every move, and those above it if it is new.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use crate::files::sync;

/// What tells one file from another that had its path before.
type Version = (u64, u64, Option<SystemTime>);

/// The folder of a repository's refs where they are not files.
const TABLES: &str = "reftable";

/// The folders that a transaction changes.
pub(super) struct Changing<'a> {
    common: &'a Path,
    lines: &'a str,
    /// Whether a ref goes that may have stood among the packed ones.
    deletes: bool,
    /// The packed refs as they were.
    packed: Option<Version>,
}

impl<'a> Changing<'a> {
    /// Looks before the transaction is carried out.
    pub(super) fn before(common: &'a Path, lines: &'a str) -> Self {
        let deletes = lines.lines().any(|line| line.starts_with("delete "));
        let packed = if deletes { changed(&common.join("packed-refs")) } else { None };
        Self { common, lines, deletes, packed }
    }

    /// Syncs what it changed.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.sync_with(&mut sync::folder)
    }

    fn sync_with(&self, sync: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
        let mut names = self.lines.lines().filter_map(|line| {
            let mut words = line.split(' ');
            words.next().filter(|verb| ["update", "delete"].contains(verb)).and(words.next())
        });
        if has_tables(self.common) {
            return names.next().map_or(Ok(()), |_| sync(&self.common.join(TABLES)));
        }
        let mut done = BTreeSet::new();
        for name in names {
            sync::way_up_with(self.common, name, &mut done, sync)?;
        }
        if self.deletes && changed(&self.common.join("packed-refs")) != self.packed {
            sync(self.common)?;
        }
        Ok(())
    }
}

/// Tells whether refs are not files.
pub(super) fn has_tables(common: &Path) -> bool {
    common.join(TABLES).is_dir()
}

/// The folders that lead to a ref, which may have been moved by somebody who did not sync them.
pub(crate) fn sync_ref(common: &Path, name: &str) -> io::Result<()> {
    if has_tables(common) {
        return sync::folder(&common.join(TABLES));
    }
    sync::way_up(common, name)
}

/// When a file was changed.
fn changed(file: &Path) -> Option<Version> {
    let found = fs::metadata(file).ok()?;
    Some((found.dev(), found.ino(), found.modified().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folders that are synced for a transaction, from the repository's own.
    fn synced(top: &Path, lines: &str, act: impl FnOnce() -> io::Result<()>) -> Vec<String> {
        let changing = Changing::before(top, lines);
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
        // Made again, it is another folder, though its path and perhaps its number are the same.
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

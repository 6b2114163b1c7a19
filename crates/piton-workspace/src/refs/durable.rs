//! Makes ref moves durable: git syncs a ref's file, but not the folder that it is renamed into.
//!
//! That folder is synced after every move, and those above it if it is new.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use crate::files::sync;

/// The folder of a repository's refs where they are not files.
const TABLES: &str = "reftable";

/// Syncs the folders that the lines of a transaction changed.
pub(super) fn sync(common: &Path, lines: &str) -> io::Result<()> {
    sync_with(common, lines, &mut sync::folder)
}

fn sync_with(
    common: &Path,
    lines: &str,
    sync: &mut impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let moves = |line: &'_ &str| line.starts_with("update ") || line.starts_with("delete ");
    let mut names = lines.lines().filter(moves).filter_map(|line| line.split(' ').nth(1));
    if has_tables(common) {
        return names.next().map_or(Ok(()), |_| sync(&common.join(TABLES)));
    }
    let mut done = BTreeSet::new();
    for name in names {
        sync::way_up_with(common, name, &mut done, sync)?;
    }
    // A ref that goes may have stood among the packed ones.
    if lines.lines().any(|line| line.starts_with("delete ")) { sync(common) } else { Ok(()) }
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The folders that are synced for a transaction, from the repository's own.
    fn synced(top: &Path, lines: &str) -> Vec<String> {
        let mut all = Vec::new();
        let done = sync_with(top, lines, &mut |folder| {
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
        let folder = top.join("refs/heads/lane/P");
        fs::create_dir_all(&folder)?;
        let found = synced(top, "verify refs/piton/r/epoch 1\nupdate refs/heads/lane/P/A 1 0\n");
        assert_eq!(found, ["refs/heads/lane/P", "refs/heads/lane", "refs/heads", "refs", ""]);
        let lines = "update refs/heads/lane/P/A 2 1\nupdate refs/heads/lane/P/B 2 0\n";
        assert_eq!(synced(top, lines), ["refs/heads/lane/P"]);
        // Git removes the folder with its last ref: the entry that went stood in the one above. One that
        // was packed stood in a file at the top.
        fs::remove_dir(&folder)?;
        assert_eq!(synced(top, "delete refs/heads/lane/P/A 2\n"), ["refs/heads/lane", ""]);
        // Made again, it is another folder, though its path and perhaps its number are the same.
        fs::create_dir(&folder)?;
        let found = synced(top, "update refs/heads/lane/P/A 1 0\n");
        assert_eq!(found, ["refs/heads/lane/P", "refs/heads/lane"]);
        fs::create_dir(top.join("reftable"))?;
        assert_eq!(synced(top, lines), ["reftable"]);
        Ok(())
    }
}

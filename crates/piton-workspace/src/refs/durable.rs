//! Makes ref moves durable: git syncs a ref's file, but not the folder that it is renamed into.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The folders that the lines of a transaction change; asked before it is carried out.
pub(super) fn folders(common: &Path, lines: &str) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    let tables = common.join("reftable");
    let in_tables = tables.is_dir();
    for line in lines.lines() {
        let mut words = line.split(' ');
        let (Some(verb @ ("update" | "delete")), Some(name)) = (words.next(), words.next()) else {
            continue;
        };
        if in_tables {
            all.insert(tables.clone());
            continue;
        }
        let file = common.join(name);
        // For a ref that is a file only its folder changes; for another perhaps all above.
        let deep = if verb == "update" && file.is_file() { 1 } else { usize::MAX };
        let above = file.ancestors().skip(1).take_while(|folder| *folder != common);
        all.extend(above.take(deep).map(Path::to_owned));
        if verb == "delete" {
            // The file of packed refs is written anew.
            all.insert(common.to_owned());
        }
    }
    all
}

/// The folders that lead to a ref, which may have been moved by somebody who did not sync them.
pub(crate) fn sync_ref(common: &Path, name: &str) -> io::Result<()> {
    let file = common.join(name);
    let tables = common.join("reftable");
    if tables.is_dir() {
        return sync(&BTreeSet::from([tables]));
    }
    let above = file.ancestors().skip(1).take_while(|folder| *folder != common);
    sync(&above.map(Path::to_owned).collect())
}

/// Syncs folders; one that went with its last ref is left out.
pub(super) fn sync(folders: &BTreeSet<PathBuf>) -> io::Result<()> {
    for folder in folders {
        match File::open(folder) {
            Ok(opened) => opened.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(all: &BTreeSet<PathBuf>, top: &Path) -> Vec<String> {
        let inner = all.iter().filter_map(|folder| folder.strip_prefix(top).ok());
        inner.map(|folder| folder.display().to_string()).collect()
    }

    #[test]
    fn a_new_ref_has_all_its_folders_synced_and_a_known_one_its_own() -> io::Result<()> {
        let top = tempfile::tempdir()?;
        let lines = "verify refs/piton/r/epoch 1\nupdate refs/heads/lane/P/A 1 0\n";
        let found = folders(top.path(), lines);
        let wanted = ["refs", "refs/heads", "refs/heads/lane", "refs/heads/lane/P"];
        assert_eq!(named(&found, top.path()), wanted);
        std::fs::create_dir_all(top.path().join("refs/heads"))?;
        std::fs::write(top.path().join("refs/heads/main"), "1\n")?;
        let found = folders(top.path(), "update refs/heads/main 2 1\n");
        assert_eq!(named(&found, top.path()), ["refs/heads"]);
        sync(&found)?;
        let found = folders(top.path(), "delete refs/heads/main 2\n");
        assert_eq!(named(&found, top.path()), ["", "refs", "refs/heads"]);
        std::fs::create_dir(top.path().join("reftable"))?;
        let found = folders(top.path(), lines);
        assert_eq!(named(&found, top.path()), ["reftable"]);
        Ok(())
    }
}

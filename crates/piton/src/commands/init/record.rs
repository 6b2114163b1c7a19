//! What `init` did to each file, in the state folder: its bytes before and after, so that undoing it is
//! exact as long as nobody else changed the file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use piton_core::hash::Sha;
use piton_world::write;

/// The folder with the records, in the state folder.
const FOLDER: &str = "init";
/// The file as it was; missing if there was none.
const BEFORE: &str = "before";
/// The file as it was left.
const AFTER: &str = "after";
/// Folders that were made for it, the outermost first.
const MADE: &str = "folders";

/// The record of a file.
pub(super) struct Record {
    folder: PathBuf,
    /// The file as it was.
    pub(super) before: Option<String>,
    /// The file as it was left.
    pub(super) after: String,
    made: Vec<PathBuf>,
}

impl Record {
    /// Reads the record of a file.
    pub(super) fn read(state_dir: &Path, path: &Path) -> Option<Self> {
        let folder = folder(state_dir, path);
        let after = fs::read_to_string(folder.join(AFTER)).ok()?;
        let before = fs::read_to_string(folder.join(BEFORE)).ok();
        let made = fs::read_to_string(folder.join(MADE)).unwrap_or_default();
        let made = made.lines().map(PathBuf::from).collect();
        Some(Self { folder, before, after, made })
    }

    /// Records what is about to be done, and makes the folders for it.
    pub(super) fn begin(
        state_dir: &Path,
        path: &Path,
        before: Option<&str>,
        after: &str,
    ) -> io::Result<()> {
        let folder = folder(state_dir, path);
        let known = Self::read(state_dir, path);
        fs::create_dir_all(&folder)?;
        match known {
            // Somebody changed the file since: it cannot be put back as it was at first.
            Some(known) if before != Some(&known.after) => {
                return write::replace(&folder.join(AFTER), b"");
            }
            Some(_) => {}
            None => {
                let missing = path.ancestors().skip(1).take_while(|dir| !dir.exists());
                let mut missing: Vec<String> =
                    missing.map(|dir| dir.to_string_lossy().into_owned()).collect();
                missing.reverse();
                write::replace(&folder.join(MADE), missing.join("\n").as_bytes())?;
                if let Some(before) = before {
                    write::replace(&folder.join(BEFORE), before.as_bytes())?;
                }
            }
        }
        write::replace(&folder.join(AFTER), after.as_bytes())
    }

    /// Forgets it, and removes the folders that were made and are empty.
    pub(super) fn end(&self) -> io::Result<()> {
        for dir in self.made.iter().rev() {
            // One that is not empty has become somebody else's too.
            let _ = fs::remove_dir(dir);
        }
        fs::remove_dir_all(&self.folder)
    }
}

fn folder(state_dir: &Path, path: &Path) -> PathBuf {
    state_dir.join(FOLDER).join(Sha::of(path.to_string_lossy().as_bytes()).0)
}

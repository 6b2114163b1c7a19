//! What `init` did to each file: its bytes before and after, so that undoing it is exact as long as nobody
//! else changed the file. Files of a project are recorded in its state folder, those of a home beside them
//! with the projects that use them: what several use goes with the last one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use piton_core::hash::Sha;
use piton_world::write;

/// The folder with the records, in the state folder.
const FOLDER: &str = "init";
/// The folder with the records of a home, in the folder of the agent program.
const HOME_FOLDER: &str = ".piton";
/// The projects that use a file, by their state folders.
const USERS: &str = "users";
/// The file as it was; missing if there was none.
const BEFORE: &str = "before";
/// The file as it was left.
const AFTER: &str = "after";
/// Folders that were made for it, the outermost first.
const MADE: &str = "folders";

/// Where things are recorded for a project.
pub(super) struct Places<'p> {
    /// The state folder of the project.
    pub(super) state_dir: &'p Path,
    /// The folders of agent programs that all projects share.
    pub(super) shared: Vec<PathBuf>,
}

impl Places<'_> {
    /// Where a file is recorded, and whether other projects use it.
    fn of(&self, path: &Path) -> (PathBuf, bool) {
        let shared = self.shared.iter().find(|dir| path.starts_with(dir));
        let base = match shared {
            Some(dir) => dir.join(HOME_FOLDER),
            None => self.state_dir.join(FOLDER),
        };
        (base.join(Sha::of(path.to_string_lossy().as_bytes()).0), shared.is_some())
    }

    fn user(&self) -> String {
        self.state_dir.to_string_lossy().into_owned()
    }
}

/// The record of a file.
pub(super) struct Record {
    folder: PathBuf,
    /// The file as it was.
    pub(super) before: Option<String>,
    /// The file as it was left.
    pub(super) after: String,
    made: Vec<PathBuf>,
    /// The projects that use it; none for a file of a project.
    users: Option<Vec<String>>,
}

impl Record {
    /// Reads the record of a file.
    pub(super) fn read(places: &Places<'_>, path: &Path) -> Option<Self> {
        let (folder, is_shared) = places.of(path);
        let after = fs::read_to_string(folder.join(AFTER)).ok()?;
        let before = fs::read_to_string(folder.join(BEFORE)).ok();
        let lines = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let made = lines(MADE).lines().map(PathBuf::from).collect();
        let users = is_shared.then(|| lines(USERS).lines().map(str::to_owned).collect());
        Some(Self { folder, before, after, made, users })
    }

    /// Whether this project is one of those that use the file.
    pub(super) fn is_used_here(&self, places: &Places<'_>) -> bool {
        self.users.as_ref().is_none_or(|users| users.contains(&places.user()))
    }

    /// Whether other projects that are still there use the file.
    pub(super) fn is_used_elsewhere(&self, places: &Places<'_>) -> bool {
        let own = places.user();
        let is_other = |user: &String| *user != own && Path::new(user).is_dir();
        self.users.iter().flatten().any(is_other)
    }

    /// Records what is about to be done, and makes the folders for it.
    pub(super) fn begin(
        places: &Places<'_>,
        path: &Path,
        before: Option<&str>,
        after: &str,
    ) -> io::Result<()> {
        let (folder, _) = places.of(path);
        let known = Self::read(places, path);
        let missing = path.ancestors().skip(1).take_while(|dir| !dir.exists());
        let mut missing: Vec<String> =
            missing.map(|dir| dir.to_string_lossy().into_owned()).collect();
        missing.reverse();
        fs::create_dir_all(&folder)?;
        match known {
            // Somebody changed the file since: it cannot be put back as it was at first.
            Some(known) if before != Some(&known.after) => {
                return write::replace(&folder.join(AFTER), b"");
            }
            Some(_) => {}
            None => {
                write::replace(&folder.join(MADE), missing.join("\n").as_bytes())?;
                if let Some(before) = before {
                    write::replace(&folder.join(BEFORE), before.as_bytes())?;
                }
            }
        }
        write::replace(&folder.join(AFTER), after.as_bytes())
    }

    /// Notes that this project uses the file, or does not any more.
    pub(super) fn used(&self, places: &Places<'_>, is_used: bool) -> io::Result<()> {
        let Some(users) = &self.users else { return Ok(()) };
        let own = places.user();
        let mut users: Vec<String> = users.iter().filter(|user| **user != own).cloned().collect();
        users.extend(is_used.then_some(own));
        write::replace(&self.folder.join(USERS), users.join("\n").as_bytes())
    }

    /// Forgets it, and removes the folders that were made and are empty.
    pub(super) fn end(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.folder)?;
        // Those that are not empty have become somebody else's too.
        let above = self.folder.ancestors().skip(1).take(2);
        let local = above.take(if self.users.is_some() { 1 } else { 2 });
        for dir in local.chain(self.made.iter().rev().map(PathBuf::as_path)) {
            let _ = fs::remove_dir(dir);
        }
        Ok(())
    }
}

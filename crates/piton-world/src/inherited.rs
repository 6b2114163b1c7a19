//! What the program was given by the system and passes on to its keeper and to steps.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use piton_process::Env;
use piton_workspace::git::NAMES_A_REPOSITORY;

/// What a process has from whoever started it.
#[derive(Clone, Debug, Default)]
pub struct Inherited {
    /// Its variables.
    pub variables: Vec<(OsString, OsString)>,
    /// Where temporary files go.
    pub temp_dir: PathBuf,
    /// The file that it was started from.
    pub program: PathBuf,
}

impl Inherited {
    /// The value of a variable.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    /// The environment children start from: ours, without what a run above us put there, and without
    /// what names a repository: a hook's would let git in a worktree act on the one of the hook.
    pub(crate) fn for_children(&self) -> Env {
        let stays_here = |name: &OsStr| {
            name.to_str().is_some_and(|n| {
                n.starts_with("PITON_") && n != "PITON_USER" || NAMES_A_REPOSITORY.contains(&n)
            })
        };
        Env::new(self.variables.iter().filter(|(name, _)| !stays_here(name)).cloned())
    }

    /// This program, as something to start: a keeper, or a driver in the background.
    ///
    /// Its file may have been replaced since it was started, by an upgrade; the system still has the
    /// one that runs, and only that is sure to speak the same protocol as this process.
    pub fn own_program(&self) -> PathBuf {
        let image = Path::new("/proc/self/exe");
        let which =
            |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
        match which(image) {
            Some(own) if which(&self.program) != Some(own) => image.to_owned(),
            _ => self.program.clone(),
        }
    }
}

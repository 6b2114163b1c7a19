//! Files that are too large for a snapshot and were set aside: an undo brings them back, and sets aside
//! what is in their place.
//!
//! Each is renamed, never copied, so what was cut short can be told from what was done: what comes is
//! in the folder it comes from until it is in its place.

use std::fs;
use std::path::{Path, PathBuf};

use piton_core::LanePath;
use piton_core::event::Aside;
use piton_engine::world::RoomTarget;
use piton_workspace::restore::Scope;

use super::back::move_away;
use super::begin::at;
use super::{GitRooms, names};

impl GitRooms {
    /// Where large files of a worktree go, and which come back.
    pub(super) fn plan_aside(&self, target: &RoomTarget) -> Option<Aside> {
        let lane = target.lane.as_ref()?;
        let to = || self.free(lane, None).display().to_string();
        let Some(before) = &target.set_aside else {
            return target.large.is_some().then(|| Aside { to: to(), ..Aside::default() });
        };
        let held = files(Path::new(&before.to));
        let mut paths: Vec<(String, bool)> = held.iter().map(|path| (text(path), true)).collect();
        let gone = before.paths.iter().filter(|(path, _)| !paths.iter().any(|(p, _)| p == path));
        let gone: Vec<(String, bool)> = gone.map(|(path, _)| (path.clone(), false)).collect();
        paths.extend(gone);
        (!paths.is_empty()).then(|| Aside { to: to(), from: before.to.clone(), paths })
    }

    /// Makes a worktree what a snapshot says, with large files from where they were set aside.
    pub(super) fn exchange(
        &mut self,
        lane: &LanePath,
        dir: &str,
        to: &str,
        aside: &Aside,
        scope: &Scope,
    ) -> Result<(), String> {
        let top = Path::new(dir);
        for (path, comes) in &aside.paths {
            let path = path_of(path);
            let is_done = *comes && !is_there(&Path::new(&aside.from).join(&path));
            let out = Path::new(&aside.to).join(&path);
            if !is_done && is_there(&top.join(&path)) && !is_there(&out) {
                move_away(&top.join(&path), &out)?;
            }
        }
        self.go_back(Some(lane), dir, to, scope, at())?;
        bring(top, Path::new(&aside.from))
    }

    /// Takes back what an exchange, or what set files aside, had begun.
    pub(super) fn put_back(
        &mut self,
        lane: &LanePath,
        dir: &str,
        to: &str,
        aside: &Aside,
        scope: &Scope,
    ) -> Result<(), String> {
        let top = Path::new(dir);
        for (path, _) in aside.paths.iter().filter(|(_, comes)| *comes) {
            let path = path_of(path);
            let from = Path::new(&aside.from).join(&path);
            if !is_there(&from) && is_there(&top.join(&path)) {
                move_away(&top.join(&path), &from)?;
            }
        }
        self.go_back(Some(lane), dir, to, scope, at())?;
        bring(top, Path::new(&aside.to))
    }
}

/// Moves all files of a folder to where they belong; what is there is in a snapshot, or git's.
fn bring(top: &Path, from: &Path) -> Result<(), String> {
    files(from).iter().try_for_each(|path| move_away(&from.join(path), &top.join(path)))
}

/// The files below a folder, as seen from there.
fn files(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if let Ok(below) = path.strip_prefix(top) {
                found.push(below.to_owned());
            }
        }
    }
    found.sort();
    found
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn text(path: &Path) -> String {
    names::text(path.as_os_str().as_encoded_bytes())
}

fn path_of(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(names::bytes(text)).into()
}

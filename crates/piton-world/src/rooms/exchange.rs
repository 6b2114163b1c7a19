//! Files that are too large for a snapshot and were set aside: an undo brings them back, and sets aside
//! what is in their place.
//!
//! Each is renamed, never copied, so what was cut short can be told from what was done: what comes is
//! in the folder it comes from until it is in its place.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use piton_core::LanePath;
use piton_core::event::Aside;
use piton_engine::world::RoomTarget;
use piton_workspace::Git;
use piton_workspace::files::sync;
use piton_workspace::restore::Scope;

use super::back::move_away;
use super::begin::at;
use super::{GitRooms, names};

impl GitRooms {
    /// Where large files of a worktree go, and which come back.
    pub(super) fn plan_aside(&self, target: &RoomTarget) -> Result<Option<Aside>, String> {
        let Some(lane) = target.lane.as_ref() else { return Ok(None) };
        let to = || self.free(lane, None).display().to_string();
        let Some(before) = &target.set_aside else {
            return Ok(target.large.is_some().then(|| Aside { to: to(), ..Aside::default() }));
        };
        let held = files(Path::new(&before.to));
        let mut paths: Vec<(String, bool)> = held.iter().map(|path| (text(path), true)).collect();
        let gone = before.paths.iter().filter(|(path, _)| !paths.iter().any(|(p, _)| p == path));
        let gone: Vec<(String, bool)> = gone.map(|(path, _)| (path.clone(), false)).collect();
        // What git has was in that place, so it was set aside.
        if let Some((path, _)) = gone.iter().find(|(path, _)| is_tracked(&target.dir, path)) {
            let (path, folder) = (names::shown(path), &before.to);
            return Err(format!("{path} was set aside in {folder}, and is not there any more"));
        }
        paths.extend(gone);
        Ok((!paths.is_empty()).then(|| Aside { to: to(), from: before.to.clone(), paths }))
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
        // Somebody may have put something there since this was cut short.
        let spare = self.free(lane, Some(Path::new(&aside.to)));
        for (path, comes) in &aside.paths {
            let path = path_of(path);
            let is_done = *comes && !is_there(&Path::new(&aside.from).join(&path));
            if is_done || leads_out(top, &path) || !is_there(&top.join(&path)) {
                continue;
            }
            let meant = Path::new(&aside.to).join(&path);
            let out = if is_there(&meant) { spare.join(&path) } else { meant };
            move_away(&top.join(&path), &out)?;
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
            if !is_there(&from) && !leads_out(top, &path) && is_there(&top.join(&path)) {
                move_away(&top.join(&path), &from)?;
            }
        }
        self.go_back(Some(lane), dir, to, scope, at())?;
        bring(top, Path::new(&aside.to))
    }
}

/// Moves all files of a folder to where they belong, durably; what is there is in a snapshot, or git's.
fn bring(top: &Path, from: &Path) -> Result<(), String> {
    let paths = files(from);
    if paths.is_empty() {
        return Ok(());
    }
    paths.iter().try_for_each(|path| {
        if leads_out(top, path) {
            let path = top.join(path);
            return Err(format!("a link leads to {}; move that away first", path.display()));
        }
        move_away(&from.join(path), &top.join(path))
    })?;
    sync::file_system(top).map_err(|e| e.to_string())
}

/// Whether a folder on the way to a path is a link: what is behind it is not the worktree's.
fn leads_out(top: &Path, path: &Path) -> bool {
    let is_link = |above: &Path| top.join(above).symlink_metadata().is_ok_and(|m| m.is_symlink());
    path.ancestors().skip(1).any(|above| !above.as_os_str().is_empty() && is_link(above))
}

/// Whether the commit that a worktree stands at has a file.
fn is_tracked(dir: &str, path: &str) -> bool {
    let mut name = OsString::from("HEAD:./");
    name.push(path_of(path));
    Git::at(Path::new(dir)).args(["cat-file", "-e"]).arg(name).run().is_ok()
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
    OsString::from_vec(names::bytes(text)).into()
}

//! Files of the project that a fresh worktree needs but git does not bring, such as `.env`.
//!
//! Copied as they are, links as links; sockets, FIFOs and devices are passed over. Names lead nowhere
//! but into the project, and not to the worktrees.

use std::fs;
use std::path::{Component, Path};

use super::{At as _, Error, Result};
use crate::files::beneath::{self, AnchoredPath};

/// Copies files and folders from one work tree into another; returns what was not there.
pub(super) fn into(from: &Path, to: &Path, names: &[String]) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for name in names {
        let path = Path::new(name);
        let within = |part| matches!(part, Component::Normal(part) if part != ".git");
        if path.as_os_str().is_empty() || !path.components().all(within) {
            return Err(Error::OutOfProject(name.clone()));
        }
        if fs::symlink_metadata(from.join(path)).is_err() {
            missing.push(name.clone());
            continue;
        }
        if holds(&from.join(path), to) {
            return Err(Error::HoldsWorktrees(name.clone()));
        }
        one(&from.join(path), to, path)?;
    }
    Ok(missing)
}

/// Tells whether a folder is the worktree itself, or has it in it: copying it would never end.
fn holds(folder: &Path, worktree: &Path) -> bool {
    let both = (folder.canonicalize(), worktree.canonicalize());
    matches!(both, (Ok(folder), Ok(worktree)) if worktree.starts_with(&folder))
}

fn one(from: &Path, top: &Path, path: &Path) -> Result<()> {
    let about = fs::symlink_metadata(from).at(from)?;
    let to = &top.join(path);
    if about.is_dir() {
        for entry in fs::read_dir(from).at(from)? {
            let name = entry.at(from)?.file_name();
            if name != ".git" {
                one(&from.join(&name), top, &path.join(&name))?;
            }
        }
        // Also one without files.
        return beneath::folder(top, to).map(drop).at(to);
    }
    let new_path = AnchoredPath::at(top, to).at(to)?;
    if about.is_symlink() {
        new_path.remove().at(to)?;
        let target = fs::read_link(from).at(from)?;
        return new_path.link_to(&target).at(to);
    }
    if about.is_file() {
        let mut bytes = fs::File::open(from).at(from)?;
        // Never write through a link that the checkout made.
        new_path.remove().at(to)?;
        let mut new = new_path.create().at(to)?;
        std::io::copy(&mut bytes, &mut new).at(to)?;
        new.set_permissions(about.permissions()).at(to)?;
    }
    Ok(())
}

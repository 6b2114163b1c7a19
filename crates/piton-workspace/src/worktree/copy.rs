//! Files of the project that a fresh worktree needs but git does not bring, such as `.env`.
//!
//! Copied as they are, links as links; sockets, FIFOs and devices are passed over. Names lead nowhere
//! but into the project, and not to the worktrees.

use std::fs;
use std::path::{Component, Path};

use super::{At as _, Error, Result};

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
        let target = to.join(path);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).at(parent)?;
        }
        one(&from.join(path), &target)?;
    }
    Ok(missing)
}

/// Tells whether a folder is the worktree itself, or has it in it: copying it would never end.
fn holds(folder: &Path, worktree: &Path) -> bool {
    let both = (folder.canonicalize(), worktree.canonicalize());
    matches!(both, (Ok(folder), Ok(worktree)) if worktree.starts_with(&folder))
}

fn one(from: &Path, to: &Path) -> Result<()> {
    let kind = fs::symlink_metadata(from).at(from)?.file_type();
    if kind.is_dir() {
        fs::create_dir_all(to).at(to)?;
        for entry in fs::read_dir(from).at(from)? {
            let entry = entry.at(from)?;
            if entry.file_name() != ".git" {
                one(&entry.path(), &to.join(entry.file_name()))?;
            }
        }
        return Ok(());
    }
    let there = fs::symlink_metadata(to);
    if there.as_ref().is_ok_and(|there| there.is_symlink() || kind.is_symlink()) {
        // Never write through a link that the checkout made.
        fs::remove_file(to).at(to)?;
    }
    if kind.is_symlink() {
        let target = fs::read_link(from).at(from)?;
        return std::os::unix::fs::symlink(target, to).at(to);
    }
    if kind.is_file() {
        fs::copy(from, to).at(to)?;
    }
    Ok(())
}

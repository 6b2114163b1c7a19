//! What a repository must look like once all lanes are merged: one line of commits with all that was
//! merged, the user's own things as they were, and no trace of worktrees and branches.

use std::collections::BTreeSet;
use std::fs;

use piton_core::event::Event;

use super::scratch::Scratch;
use super::{Broken, record};

/// Files of ours that lie in the user's work tree.
const OWN: &str = ".claude/";

/// Checks a repository whose lanes are merged.
pub(super) fn check(scratch: &Scratch) -> Result<(), Broken> {
    let status = record::status(scratch);
    if status.as_deref() != Some("complete") {
        return Err(format!("the run is {status:?}, not complete"));
    }
    let empty = |what: &str, text: String| {
        if text.is_empty() { Ok(()) } else { Err(format!("{what}: {text}")) }
    };
    empty("merge commits in base", scratch.git(&["rev-list", "--merges", "main"])?)?;
    contains_all(scratch)?;
    empty("branches are left", scratch.git(&["branch", "--list", "lane/*"])?)?;
    let worktrees = scratch.git(&["worktree", "list"])?;
    if worktrees.lines().count() != 1 {
        return Err(format!("worktrees are left: {worktrees}"));
    }
    let folders = fs::read_dir(scratch.base().join("repo/.worktrees"));
    let left: Vec<_> = folders
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name != ".gitignore")
        .collect();
    if !left.is_empty() {
        return Err(format!("folders of worktrees are left: {left:?}"));
    }
    let head = scratch.git(&["symbolic-ref", "--short", "HEAD"])?;
    if head != "main" {
        return Err(format!("HEAD is on {head}"));
    }
    let changes = scratch.git(&["status", "--porcelain", "--untracked-files=all"])?;
    let foreign: Vec<&str> = changes.lines().filter(|line| !line[3..].starts_with(OWN)).collect();
    empty("the work tree of base is not clean", foreign.join("\n"))?;
    empty("stashed", scratch.git(&["stash", "list"])?)?;
    scratch.git(&["fsck", "--no-dangling", "--no-progress"]).map(drop)
}

/// Checks that base contains every commit that was recorded as merged, each once.
fn contains_all(scratch: &Scratch) -> Result<(), Broken> {
    let all = scratch.git(&["rev-list", "main"])?;
    let base: BTreeSet<&str> = all.lines().collect();
    let mut lanes = BTreeSet::new();
    for (_, event) in record::events(scratch) {
        let Event::LaneMerged(merged) = event else { continue };
        if !lanes.insert(merged.lane.to_string()) {
            return Err(format!("{} was merged twice", merged.lane));
        }
        if let Some(to) = merged.to.as_ref().filter(|to| !base.contains(to.as_str())) {
            return Err(format!("base has lost {to} of {}", merged.lane));
        }
    }
    Ok(())
}

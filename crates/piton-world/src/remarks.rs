//! What a repository uses that matters to lanes, reported once: a remote that would publish snapshots,
//! a partial clone. What does not work at all blocks lanes.
//!
//! The check runs git a few times, so it is repeated only when the files that it reads have changed.
//! What was reported is remembered next to the ledger, for all runs of the repository.

use std::fs;
use std::path::Path;

use piton_core::refusal::Refusal;

use piton_workspace::Project;
use piton_workspace::checks::{self, Remark};

/// What was reported before, next to the ledger.
const FILE: &str = "remarks";
/// A line of that file while something is refused: it is checked again each time.
const REFUSES: &str = "refuses";

/// What is new.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Lines for the person that were not reported before.
    pub lines: Vec<String>,
    /// Why no lane can have a worktree here.
    pub refusal: Option<Refusal>,
}

/// Checks a repository; `worktrees` says whether lanes of the run work in worktrees.
pub fn check(project: &Project, root: &Path, worktrees: bool) -> Remarks {
    let Some(common) = &project.common_dir else { return Remarks::default() };
    let file = project.state_dir.join(FILE);
    let before = fs::read_to_string(&file).unwrap_or_default();
    // Without lanes in worktrees, only what lanes in place need was checked.
    let kind = if worktrees { "worktrees" } else { "in-place" };
    let fresh = before.lines().any(|line| line == kind) && !is_older(&file, &common.join("config"));
    if fresh && !before.lines().any(|line| line == REFUSES) {
        return Remarks::default();
    }
    let seen = if worktrees { checks::repository(root) } else { checks::publishers(root) };
    let (remarks, after) = new_remarks(&seen, &before, kind);
    // Best effort: what can't be remembered is reported again.
    let _ = fs::write(&file, after);
    remarks
}

/// What is new among remarks, and what is to be remembered.
fn new_remarks(seen: &[Remark], before: &str, kind: &str) -> (Remarks, String) {
    let mut remarks = Remarks::default();
    let mut after: Vec<String> =
        before.lines().filter(|l| *l != REFUSES).map(str::to_owned).collect();
    if !after.iter().any(|line| line == kind) {
        after.push(kind.to_owned());
    }
    for remark in seen {
        if remark.refuses {
            remarks.refusal.get_or_insert_with(|| remark.about.clone());
            continue;
        }
        let line = format!("warning: {}", remark.about);
        if !after.contains(&line) {
            after.push(line.clone());
            remarks.lines.push(line);
        }
    }
    if remarks.refusal.is_some() {
        after.push(REFUSES.to_owned());
    }
    (remarks, after.join("\n") + "\n")
}

/// Whether a file was written before another one changed.
fn is_older(file: &Path, other: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    changed(file).is_none_or(|at| changed(other).is_some_and(|changed| changed >= at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remark(code: &'static str, refuses: bool) -> Remark {
        Remark { refuses, about: Refusal::new(code, format!("{code} is used")).or("do this") }
    }

    /// Lost: a person would be warned on every run, or never; or a lane would start where it can't.
    #[test]
    fn each_remark_is_reported_once_and_a_refusal_each_time() {
        let seen = [remark("mirror-remote", false)];
        let (first, file) = new_remarks(&seen, "", "worktrees");
        assert_eq!(first.lines, ["warning: mirror-remote is used; do this"]);
        assert_eq!(first.refusal, None);
        let (second, same) = new_remarks(&seen, &file, "worktrees");
        assert_eq!((second, same), (Remarks::default(), file.clone()));
        let old = [remark("old-git", true)];
        let (third, refused) = new_remarks(&old, &file, "worktrees");
        assert!(third.refusal.is_some() && refused.ends_with("refuses\n"), "{refused}");
        let (fourth, _) = new_remarks(&old, &refused, "worktrees");
        assert!(fourth.refusal.is_some());
    }
}

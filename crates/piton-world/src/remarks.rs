//! What a repository uses that matters to lanes, said once: a remote that would publish snapshots,
//! submodules, filters. What does not work at all holds lanes up.
//!
//! Looking costs a few calls of git, so it is done again only when the files it reads have changed.
//! What was said is remembered next to the ledger, for the whole repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use piton_engine::world::Refusal;
use piton_workspace::Project;
use piton_workspace::checks::{self, Level, Remark};

/// What was said before, next to the ledger.
const FILE: &str = "remarks";
/// Stands in the file of what was said while something is refused: it is looked at again each time.
const REFUSES: &str = "refuses";

/// What there is to say now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Lines for the person, none of them said before.
    pub lines: Vec<String>,
    /// Why no lane can have a worktree here.
    pub refusal: Option<Refusal>,
}

/// Looks at a repository; `worktrees` says whether lanes of the run work in worktrees.
pub fn look(project: &Project, root: &Path, worktrees: bool) -> Remarks {
    let Some(common) = &project.common_dir else { return Remarks::default() };
    let file = project.state_dir.join(FILE);
    let before = fs::read_to_string(&file).unwrap_or_default();
    // Only what lanes in place need was looked at, as long as there were no others.
    let kind = if worktrees { "worktrees" } else { "in-place" };
    let sources = [common.join("config"), root.join(".gitattributes"), root.join(".gitmodules")];
    let fresh = before.lines().any(|line| line == kind) && !is_older(&file, &sources);
    if fresh && !before.lines().any(|line| line == REFUSES) {
        return Remarks::default();
    }
    let seen = if worktrees {
        checks::repository(root, &std::env::var_os("PATH").unwrap_or_default())
    } else {
        checks::publishers(root)
    };
    let (remarks, after) = told(&seen, &before, kind);
    // Best effort: what can't be remembered is said again.
    let _ = fs::write(&file, after);
    remarks
}

/// What is new among remarks, and what is to be remembered.
fn told(seen: &[Remark], before: &str, kind: &str) -> (Remarks, String) {
    let mut remarks = Remarks::default();
    let mut after: Vec<String> =
        before.lines().filter(|l| *l != REFUSES).map(str::to_owned).collect();
    if !after.iter().any(|line| line == kind) {
        after.push(kind.to_owned());
    }
    for remark in seen {
        let sep = if remark.fix.is_empty() { "" } else { "; " };
        let text = format!("{}{sep}{}", remark.what, remark.fix);
        match remark.level {
            Level::Refuse => {
                let (why, fix) = (remark.what.clone(), remark.fix.clone());
                remarks.refusal.get_or_insert(Refusal { why, fix });
            }
            level => {
                let word = if level == Level::Warn { "warning" } else { "note" };
                let line = format!("{word}: {text}");
                if !after.contains(&line) {
                    after.push(line.clone());
                    remarks.lines.push(line);
                }
            }
        }
    }
    if remarks.refusal.is_some() {
        after.push(REFUSES.to_owned());
    }
    (remarks, after.join("\n") + "\n")
}

/// Whether a file was written before one of others changed.
fn is_older(file: &Path, others: &[PathBuf]) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    let Some(at) = changed(file) else { return true };
    let newest = others.iter().filter_map(|path| changed(path)).max();
    newest.unwrap_or(SystemTime::UNIX_EPOCH) >= at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remark(code: &'static str, level: Level) -> Remark {
        Remark { code, level, what: format!("{code} is used"), fix: "do this".to_owned() }
    }

    /// Lost: a person would be warned on every run, or never; or a lane would start where it can't.
    #[test]
    fn each_remark_is_said_once_and_a_refusal_each_time() {
        let seen = [remark("mirror-remote", Level::Warn), remark("hooks", Level::Works)];
        let (first, file) = told(&seen, "", "worktrees");
        assert_eq!(
            first.lines,
            ["warning: mirror-remote is used; do this", "note: hooks is used; do this"]
        );
        assert_eq!(first.refusal, None);
        let (second, same) = told(&seen, &file, "worktrees");
        assert_eq!((second, same), (Remarks::default(), file.clone()));
        let old = [remark("old-git", Level::Refuse)];
        let (third, refused) = told(&old, &file, "worktrees");
        assert!(third.refusal.is_some() && refused.ends_with("refuses\n"), "{refused}");
        let (fourth, _) = told(&old, &refused, "worktrees");
        assert!(fourth.refusal.is_some());
    }
}

//! Restores the files of a workspace to a snapshot; what is there is snapshotted first.
//!
//! Files that are too large for a snapshot come from git where a tree is known that has them. For a new
//! attempt, what is there instead is moved into the run's folder, where a person finds it.

use std::fs;
use std::path::{Path, PathBuf};

use piton_core::{LanePath, Timestamp};
use piton_workspace::missed::large::{self, Large};
use piton_workspace::{missed, refs, restore, snapshot};

use super::error::{Error, Result};
use super::{GitWorkspaces, names};
use crate::{notes, refusals};

/// The folder of what was moved out of the way, in that of the run.
pub(super) const ASIDE: &str = "set-aside";

impl GitWorkspaces {
    /// Restores files to a snapshot; what is there is snapshotted first.
    pub(super) fn restore_files(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        to: &str,
        scope: &restore::Scope,
        at: Timestamp,
    ) -> Result<()> {
        let present = self.take_before(lane, dir, Some(to), "before going back", at)?;
        let (workspace, rules) = (self.workspace(dir), self.rules_of(dir));
        let plan = restore::plan(&workspace, &rules, &present, to, scope)?;
        if scope.own {
            refuse_blocked(&plan, dir)?;
        }
        Ok(restore::execute(&workspace.dir, &plan)?)
    }

    /// The same in a lane's worktree for a rollback, with large files as a commit or tree has them.
    /// Nothing that no snapshot has is replaced.
    pub(super) fn restore_with_large(
        &mut self,
        lane: &LanePath,
        dir: &str,
        (to, tree): (&str, Option<&str>),
        scope: &restore::Scope,
        at: Timestamp,
    ) -> Result<()> {
        let large = self.large_files(lane, dir, (to, tree), at)?;
        refuse_large(&large, dir)?;
        self.restore_files(Some(lane), dir, to, scope, at)?;
        Ok(large.bring(Path::new(dir))?)
    }

    /// The same for a new attempt: what would be replaced is moved out of the way. What a person should
    /// know.
    pub(super) fn restore_for_attempt(
        &mut self,
        lane: &LanePath,
        dir: &str,
        (to, tree): (&str, &str),
        at: Timestamp,
    ) -> Result<Option<String>> {
        let large = self.large_files(lane, dir, (to, Some(tree)), at)?;
        let (top, aside) = (Path::new(dir), self.unused_folder(lane));
        let scope = restore::Scope { own: true, ..restore::Scope::default() };
        let mut moved = Vec::new();
        let done = set_aside(top, &aside, &large.other, &mut moved)
            .and_then(|()| self.restore_files(Some(lane), dir, to, &scope, at))
            .and_then(|()| Ok(large.bring(top)?));
        if let Err(why) = done {
            for (path, at) in moved {
                if let Err(error) = fs::rename(&at, top.join(path)) {
                    return Err(refusals::still_aside(why.into(), path, &at, &error).into());
                }
            }
            return Err(why);
        }
        let paths: Vec<String> = moved.iter().map(|(path, _)| path.display().to_string()).collect();
        Ok((!paths.is_empty()).then(|| notes::set_aside(lane, &aside, &paths)))
    }

    /// How the large files of a lane's worktree differ from those of a tree.
    fn large_files(
        &mut self,
        lane: &LanePath,
        dir: &str,
        (to, tree): (&str, Option<&str>),
        at: Timestamp,
    ) -> Result<Large> {
        let Some(tree) = tree else { return Ok(Large::default()) };
        let target = snapshot::load(&self.root, to)?;
        let present = self.take(Some(lane), dir, "before going back", at)?;
        if !present.degraded.iter().chain(&target.degraded).any(|m| missed::is_large(m.why)) {
            return Ok(Large::default());
        }
        Ok(large::compare(Path::new(dir), tree, &present.degraded, &target.degraded)?)
    }

    /// A folder for what is in the way in a lane's worktree.
    fn unused_folder(&self, lane: &LanePath) -> PathBuf {
        let (phase, name) = (refs::component(&lane.phase), refs::component(&lane.lane));
        let all = self.aside.join(phase).join(name);
        let mut numbers = (1_u32..).map(|number| all.join(number.to_string()));
        numbers.find(|dir| !dir.exists()).unwrap_or(all)
    }
}

/// Moves files out of a work tree; `moved` gets each with where it is.
fn set_aside<'a>(
    top: &Path,
    folder: &Path,
    paths: &'a [PathBuf],
    moved: &mut Vec<(&'a PathBuf, PathBuf)>,
) -> Result<()> {
    for path in paths {
        let (from, to) = (top.join(path), folder.join(path));
        let made = to.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::rename(&from, &to))
            .map_err(|error| refusals::not_moved(&from, &to, &error))?;
        moved.push((path, to));
    }
    Ok(())
}

/// Refuses to leave a lane's worktree with something else than it began with: that would be merged.
pub(super) fn refuse_blocked(plan: &restore::Plan, dir: &str) -> Result<()> {
    let paths: Vec<String> = plan.blocked().map(|path| names::shown(&names::text(path))).collect();
    refuse_paths(&paths, |paths| refusals::uncaptured_in_the_way(dir, paths))
}

/// Refuses to replace large files: no snapshot has them, so that could not be undone.
pub(super) fn refuse_large(large: &Large, dir: &str) -> Result<()> {
    let paths: Vec<String> = large.other.iter().map(|path| path.display().to_string()).collect();
    refuse_paths(&paths, |paths| refusals::large_in_the_way(dir, paths))
}

fn refuse_paths(
    paths: &[String],
    refusal: impl FnOnce(&[String]) -> piton_core::refusal::Refusal,
) -> Result<()> {
    if paths.is_empty() { Ok(()) } else { Err(Error::Refused(refusal(paths))) }
}

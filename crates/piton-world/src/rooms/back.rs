//! Takes the files of a workspace back to a snapshot; what is there is snapshotted first.
//!
//! Files that are too large for a snapshot come from git where a tree is known that has them. What is
//! there instead is moved into the run's folder, where a person finds it.

use std::fs;
use std::path::{Path, PathBuf};

use piton_core::{LanePath, Timestamp};
use piton_workspace::missed::large::{self, Large};
use piton_workspace::snapshot::{self, Meta, Snapshot};
use piton_workspace::{refs, restore};

use super::{GitRooms, names};

/// The folder of what was moved away, in that of the run.
pub(super) const ASIDE: &str = "set-aside";

impl GitRooms {
    /// Snapshots a workspace that shall become what another snapshot is.
    pub(super) fn take_before(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        to: &str,
        why: &str,
        at: Timestamp,
    ) -> Result<Snapshot, String> {
        let fence = self.fenced().map_err(|e| e.to_string())?;
        let message = self.message(why);
        let meta = Meta { message: &message, at: at.0 };
        let (chain, rules) = (self.chain(lane), self.rules_of(dir));
        let taker = self.taker(dir)?;
        let way = (to, lane.is_some());
        restore::present(taker, &rules, &chain, &fence, &meta, way).map_err(|e| e.to_string())
    }

    /// Takes files back to a snapshot; what is there is snapshotted first.
    pub(super) fn go_back(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        to: &str,
        scope: &restore::Scope,
        at: Timestamp,
    ) -> Result<(), String> {
        let present = self.take_before(lane, dir, to, "before going back", at)?;
        let (workspace, rules) = (self.workspace(dir), self.rules_of(dir));
        let plan = restore::plan(&workspace, &rules, &present, to, scope);
        let plan = plan.map_err(|e| e.to_string())?;
        if scope.own {
            refuse_blocked(&plan, dir)?;
        }
        restore::execute(&workspace.dir, &plan).map_err(|e| e.to_string())
    }

    /// The same in a lane's worktree, with the files that are too large for a snapshot, as a commit or
    /// tree has them. What a person should know.
    pub(super) fn go_back_whole(
        &mut self,
        lane: &LanePath,
        dir: &str,
        (to, tree): (&str, Option<&str>),
        aside: Option<PathBuf>,
        scope: &restore::Scope,
        at: Timestamp,
    ) -> Result<Option<String>, String> {
        let large = match tree {
            Some(tree) => self.large(lane, dir, (to, tree), at)?,
            None => Large::default(),
        };
        if large.is_same() {
            return self.go_back(Some(lane), dir, to, scope, at).map(|()| None);
        }
        let top = Path::new(dir);
        // What was intended, and cut short, may have begun to fill its own.
        let spare = self.free(lane, aside.as_deref());
        let aside = aside.unwrap_or_else(|| spare.clone());
        let mut moved = Vec::new();
        let done = set_aside(top, [&aside, &spare], &large.other, &mut moved)
            .and_then(|()| self.go_back(Some(lane), dir, to, scope, at))
            .and_then(|()| large.bring(top).map_err(|e| e.to_string()));
        if let Err(why) = done {
            for (path, at) in moved {
                if let Err(error) = fs::rename(&at, top.join(path)) {
                    let (path, at) = (path.display(), at.display());
                    return Err(format!("{why}; {path} is {at} now: {error}"));
                }
            }
            return Err(why);
        }
        let paths: Vec<String> = moved.iter().map(|(path, _)| path.display().to_string()).collect();
        let told = || {
            let (paths, aside) = (paths.join(", "), aside.display());
            format!("{lane}: what was too large for a snapshot is in {aside} now: {paths}")
        };
        Ok((!paths.is_empty()).then(told))
    }

    /// How the large files of a lane's worktree differ from those of a tree.
    fn large(
        &mut self,
        lane: &LanePath,
        dir: &str,
        (to, tree): (&str, &str),
        at: Timestamp,
    ) -> Result<Large, String> {
        let target = snapshot::load(&self.root, to).map_err(|e| e.to_string())?;
        let present = self.take(Some(lane), dir, "before going back", at)?;
        if !present.degraded.iter().chain(&target.degraded).any(large::is_large) {
            return Ok(Large::default());
        }
        let found = large::compare(Path::new(dir), tree, &present.degraded, &target.degraded);
        found.map_err(|e| e.to_string())
    }

    /// A folder for what a lane's worktree has in the way, other than the one that is meant already.
    pub(super) fn free(&self, lane: &LanePath, meant: Option<&Path>) -> PathBuf {
        let (phase, name) = (refs::component(&lane.phase), refs::component(&lane.lane));
        let all = self.aside.join(phase).join(name);
        let numbers = (1_u32..).map(|number| all.join(number.to_string()));
        let mut free = numbers.filter(|dir| Some(dir.as_path()) != meant && !dir.exists());
        free.next().unwrap_or(all)
    }
}

/// Moves files out of a work tree, into the first folder that has none of that name; those that were
/// moved are told, with where they are.
fn set_aside<'a>(
    top: &Path,
    folders: [&PathBuf; 2],
    paths: &'a [PathBuf],
    moved: &mut Vec<(&'a PathBuf, PathBuf)>,
) -> Result<(), String> {
    for path in paths {
        let is_taken = folders[0].join(path).symlink_metadata().is_ok();
        let to = folders[usize::from(is_taken)].join(path);
        move_away(&top.join(path), &to)?;
        moved.push((path, to));
    }
    Ok(())
}

/// Moves a file or folder to where it is kept.
pub(super) fn move_away(from: &Path, to: &Path) -> Result<(), String> {
    let made = to.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::rename(from, to)).map_err(|error| {
        let (from, to) = (from.display(), to.display());
        format!("{from} can't be moved to {to}: {error}; move it away first")
    })
}

/// Refuses to leave a lane's worktree with something else than it began with: that would be merged.
pub(super) fn refuse_blocked(plan: &restore::Plan, dir: &str) -> Result<(), String> {
    let paths: Vec<String> = plan.blocked().map(|path| names::shown(&names::text(path))).collect();
    if paths.is_empty() {
        return Ok(());
    }
    Err(format!(
        "what is in the place of {} in {dir} is in no snapshot, so it can't be taken away: move it \
         out of there first",
        paths.join(", ")
    ))
}

//! What merged lanes left in the repository: a branch, because base did not contain their work then
//! (a pull request that was merged elsewhere leaves it until the user's own base has the commit), or
//! a worktree, because something in it was nowhere else.
//!
//! Only branches on record as a lane's own are looked at, and one goes only when base contains it, or
//! when its commits change nothing; a worktree goes only when nothing is lost with it.

use std::path::Path;

use piton_core::RunState;
use piton_core::event::MergedBy;
use piton_core::lane_state::LaneWork;
use piton_core::state::LaneState;
use piton_engine::Store;
use piton_view::Leftover;
use piton_workspace::refs::{self, Fence, Ref};
use piton_workspace::{history, merge, missed, worktree};

use crate::context::Context;
use crate::ui;
use piton_world::notes;

/// Whether a lane may have left something.
fn is_merged(lane: &LaneState) -> Option<&LaneWork> {
    let work = lane.work.as_deref().filter(|w| !w.isolation.is_in_place() && w.is_removed())?;
    let by = work.merged()?.by;
    (lane.task.is_none() && by != MergedBy::Kept).then_some(work)
}

/// What in the worktree of a lane is nowhere else, in words.
fn holds(tree: &Path, lane: &LaneState) -> Option<String> {
    if !tree.is_dir() {
        return None;
    }
    if !super::gc::is_clean(tree) {
        return Some("its uncommitted changes".to_owned());
    }
    if !history::is_named(tree) {
        return Some("what it has checked out, which is on no branch,".to_owned());
    }
    match missed::not_in_tree(tree, "HEAD", &lane.artifacts()) {
        Ok(only) if only.is_empty() => {}
        Ok(only) => return notes::ignored_artifacts(&only),
        Err(error) => return Some(format!("what its steps made, perhaps ({error}),")),
    }
    match missed::submodules_only_here(tree) {
        Ok(only) if only.is_empty() => None,
        Ok(only) => {
            let names: Vec<String> = only.iter().map(|path| path.display().to_string()).collect();
            Some(format!("what its submodules hold ({})", names.join(", ")))
        }
        Err(error) => Some(format!("what its submodules hold, perhaps ({error}),")),
    }
}

/// What merged lanes of a run left; looked for only where a pull request was merged or the worktree is
/// still there, unless all are to be looked at.
pub fn in_run(root: &Path, state: &RunState, all: bool) -> Vec<Leftover> {
    let Some(run_id) = state.run_id.as_ref().map(ToString::to_string) else { return Vec::new() };
    let mut found = Vec::new();
    let mut trees = None;
    for (path, lane) in state.lanes() {
        let Some(work) = is_merged(lane) else { continue };
        let elsewhere = || work.merged().is_some_and(|m| m.by == MergedBy::PullRequest);
        if !all && !elsewhere() && !Path::new(&work.dir).is_dir() {
            continue;
        }
        let owner = (run_id.as_str(), &*path.to_string());
        let Some((branch, head)) = refs::branch_of(root, owner) else { continue };
        let trees = trees.get_or_insert_with(|| worktree::list(root).unwrap_or_default());
        let own = |e: &&worktree::Entry| {
            e.ours.as_ref().is_some_and(|(run, lane)| (run.as_str(), lane.as_str()) == owner)
        };
        let worktree = trees.iter().find(own).map(|e| e.path.clone());
        found.push(Leftover {
            contained: merge::contains(root, &work.base_branch, &head).unwrap_or_default(),
            merged: work.merged().and_then(|m| m.to.as_ref()) == Some(&head),
            empty: work.committed_nothing(&head),
            holds: worktree.as_deref().and_then(|tree| holds(tree, lane)),
            worktree,
            run_id: run_id.clone(),
            lane: path.clone(),
            branch,
            head,
            base: work.base_branch.clone(),
        });
    }
    found
}

/// What merged lanes of all runs left that nobody drives.
pub fn find(context: &Context, store: &mut Store, refs: &[Ref]) -> Vec<Leftover> {
    let Ok(rows) = store.runs() else { return Vec::new() };
    let mut found = Vec::new();
    for row in rows {
        let branches = format!("{}branch/", refs::run_prefix(&row.run_id));
        let claimed = super::gc::starting_with(refs, &branches).next().is_some();
        if !claimed || Context::driver_lives(&row) {
            continue;
        }
        // A run that can't be read is told of elsewhere.
        let Ok(loaded) = store.load_row(row) else { continue };
        // Worktrees below another project's folder are that one's.
        let began = Path::new(&loaded.state.root);
        if !began.exists() || context.is_own_root(began) {
            found.extend(in_run(&context.project.root, &loaded.state, true));
        }
    }
    found
}

/// Removes what base contains by now, before new lanes need the names; says what went.
pub fn remove_contained(context: &Context, store: &mut Store) {
    if context.project.git_dir.is_none() {
        return;
    }
    let refs = refs::list(&context.project.root, refs::PREFIX).unwrap_or_default();
    for gone in remove(context, &find(context, store, &refs)) {
        let (base, branch) = (&gone.base, &gone.branch);
        ui::say(&if gone.contained {
            format!("removed branch {branch}: {base} contains it")
        } else {
            format!("removed branch {branch}: it changes nothing")
        });
    }
}

/// Removes those that base contains, and worktrees that nobody needs; the branches that went. The rest
/// is tried again by the next command.
pub fn remove<'a>(context: &Context, all: &'a [Leftover]) -> Vec<&'a Leftover> {
    all.iter().filter(|left| left.goes() && goes(&context.project.root, left)).collect()
}

fn goes(root: &Path, left: &Leftover) -> bool {
    let Ok(fence) = Fence::current(root, &left.run_id) else { return false };
    if let Some(tree) = &left.worktree {
        // Whatever a person did there since is theirs.
        if left.holds.is_some()
            || root.starts_with(tree)
            || worktree::remove(root, tree, &fence).is_err()
        {
            return false;
        }
    }
    let owner = (left.run_id.as_str(), &*left.lane.to_string());
    let end = if left.empty && !left.contained {
        worktree::drop_branch(root, owner, &fence)
    } else {
        worktree::delete_branch_if_contained(root, owner, &left.head, &left.base, &fence)
    };
    matches!(end, Ok(worktree::BranchEnd::Deleted))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::process::Command;

    use piton_core::LanePath;
    use piton_core::shell::git;

    use super::*;

    /// Lost: a person could not remove what is left, for our own lock is in the way.
    #[test]
    fn the_commands_that_remove_a_worktree_and_its_branch_work() {
        let home = tempfile::tempdir().unwrap();
        let (root, tree) = (home.path().join("repo"), home.path().join("it's; left"));
        let sh = |line: &str| {
            let who = ["-c", "user.name=n", "-c", "user.email=e"].join(" ");
            let line = line.replace("GIT", &format!("git {who}"));
            let mut command = Command::new("sh");
            for name in piton_workspace::git::NAMES_A_REPOSITORY {
                command.env_remove(name);
            }
            let done = command.args(["-ec", &line]).current_dir(&root).output().unwrap();
            assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        };
        std::fs::create_dir(&root).unwrap();
        sh("git init -q; GIT commit -q --allow-empty -m first");
        let (branch, at) = ("lane/P/A;x", tree.display().to_string());
        let add =
            ["worktree", "add", "-q", "--lock", "--reason", "piton: run r", "-b", branch, &at];
        sh(&git(None, &add));
        let left = Leftover {
            run_id: "r".to_owned(),
            lane: LanePath { phase: "P".to_owned(), lane: "A".to_owned() },
            branch: branch.to_owned(),
            head: String::new(),
            base: "main".to_owned(),
            worktree: Some(tree.clone()),
            contained: false,
            merged: false,
            empty: false,
            holds: None,
        };
        sh(left.next(ui::place()).rsplit('`').nth(1).unwrap());
        assert!(!tree.exists());
        sh(&format!("! {}", git(None, &["rev-parse", "-q", "--verify", branch])));
    }
}

//! How a rewind changes the folders of the simulated machine.

use piton_core::event::RewindWorkspace;

use super::SimWorkspaces;
use super::trouble::Trouble;
use crate::machine::SimMachine;
use crate::repo::{BASE, place};

impl SimWorkspaces {
    /// Makes one folder what a rewind says.
    pub(super) fn rewind_workspace(&self, workspace: &RewindWorkspace) -> Result<(), Trouble> {
        let what = format!("rewind {}", workspace.dir);
        if workspace.goes {
            return self.leave_workspace(&what, workspace);
        }
        if workspace.target.is_empty() {
            let gone = |m: &mut SimMachine| {
                m.remove_all(&workspace.dir);
                m.repo.as_mut().map(|r| r.worktrees.remove(&workspace.dir));
            };
            self.act(&format!("{what}: files go"), gone)?;
            return self.drop_branch(&what, &workspace.branch, BASE).map(drop);
        }
        if let (Some(to), false) = (&workspace.head_to, workspace.branch.is_empty()) {
            self.set(&format!("{what}: branch"), &workspace.branch, Some(to.clone()))?;
        }
        let (present, target) = {
            let repo = self.repo();
            let tree = |id: &str| repo.snapshot(id).cloned().unwrap_or_default();
            (tree(&workspace.present.commit), tree(&workspace.target))
        };
        let mut wanted = if workspace.paths.is_empty() { target.clone() } else { present.clone() };
        for path in &workspace.paths {
            wanted.remove(path);
            wanted.extend(target.get(path).map(|text| (path.clone(), text.clone())));
        }
        let kept = workspace.keep.iter().filter_map(|p| Some((p.clone(), present.get(p)?.clone())));
        wanted.extend(kept);
        self.check_out(&what, &workspace.dir, &wanted)
    }

    /// Removes a worktree and its branch, in pieces.
    fn leave_workspace(&self, what: &str, workspace: &RewindWorkspace) -> Result<(), Trouble> {
        if self.repo().worktrees.contains_key(&workspace.dir) {
            self.act(&format!("{what}: half its files go"), |machine| {
                machine.repo.as_mut().map(|r| r.worktrees.insert(workspace.dir.clone(), false));
                let first = machine.tree(&workspace.dir).into_keys().next();
                if let Some(path) = first {
                    machine.remove(&place(&workspace.dir, &path));
                }
            })?;
            self.act(&format!("{what}: files go"), |machine| {
                machine.remove_all(&workspace.dir);
                machine.repo.as_mut().map(|r| r.worktrees.remove(&workspace.dir));
            })?;
        }
        self.set(&format!("{what}: branch goes"), &workspace.branch, None)
    }
}

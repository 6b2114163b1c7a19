//! Which files a simulated rollback leaves alone.

use piton_engine::world::RewindTarget;

use super::SimWorkspaces;

impl SimWorkspaces {
    /// The files that no attempt made: they stay.
    pub(super) fn foreign(&self, target: &RewindTarget, present: &str) -> Vec<String> {
        let repo = self.repo();
        let tree = |id: &str| repo.snapshot(id).cloned().unwrap_or_default();
        let wanted = tree(&target.target);
        let made = |path: &String| {
            target.windows.iter().any(|(before, after)| {
                let after = tree(after.as_deref().unwrap_or(present));
                after.contains_key(path) && !tree(before).contains_key(path)
            })
        };
        let now = tree(present);
        now.into_keys().filter(|path| !wanted.contains_key(path) && !made(path)).collect()
    }
}

//! The promises about lanes, checked from outside: base, branches, worktrees, views.

use std::collections::{BTreeMap, BTreeSet};

use piton_core::LanePath;
use piton_core::event::Event;
use piton_core::lane::Role;
use piton_core::lane_event::MergedBy;
use piton_core::lane_state::LaneProgress;

use crate::repo::{BASE, SimRepo, differing, view_of};
use crate::rig::Rig;

impl Rig {
    /// Every promise about lanes that the run so far has broken, in words.
    ///
    /// A lane's own work is a file named like it; `files` says what base shall hold of each.
    pub fn lane_violations(&self, files: &[(&str, &str)]) -> Vec<String> {
        let mut found = Vec::new();
        let machine = self.machine.borrow();
        let Some(repo) = &machine.repo else { return vec!["there is no repository".to_owned()] };
        let head = repo.head(BASE).unwrap_or_default();
        let tree = repo.tree(&head);
        for (path, text) in files {
            if tree.get(*path).map(String::as_str) != Some(*text) {
                found.push(format!("base has {:?} in {path}", tree.get(*path)));
            }
        }
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        repo.messages().into_iter().for_each(|m| *counts.entry(m).or_default() += 1);
        for (message, count) in counts.iter().filter(|(_, count)| **count > 1) {
            if *count > self.commits_of(message) {
                found.push(format!("base has `{message}` {count} times"));
            }
        }
        for path in differing(&tree, &machine.tree("")) {
            found.push(format!("the root does not follow base in {path}"));
        }
        for moved in repo.moves.iter().filter(|m| m.epoch < m.newest) {
            found.push(format!("a stale driver moved {}", moved.name));
        }
        drop(machine);
        self.check_lanes(&mut found);
        self.check_tested(&mut found);
        found
    }

    /// How many commits a lane made, by the message they have: more than one where its work went on.
    fn commits_of(&self, message: &str) -> usize {
        let mut commits = BTreeSet::new();
        for (_, _, event) in self.events().unwrap_or_default() {
            if let Event::LaneCommitted(e) = event
                && message.split_once(':').is_some_and(|(lane, _)| lane == e.lane.lane)
            {
                commits.insert(e.commit);
            }
        }
        commits.len()
    }

    fn check_lanes(&self, found: &mut Vec<String>) {
        let Ok(loaded) = self.load() else {
            found.push("the run cannot be loaded".to_owned());
            return;
        };
        let machine = self.machine.borrow();
        let Some(repo) = &machine.repo else { return };
        if repo.view != view_of(&loaded.state) {
            found.push("the view is not what the ledger says".to_owned());
        }
        for (path, lane) in loaded.state.lanes() {
            let Some(work) = lane.work.as_deref().filter(|w| !w.isolation.is_in_place()) else {
                continue;
            };
            let by = work.merged().map(|m| m.by);
            if !matches!(by, Some(MergedBy::Queue | MergedBy::Nothing))
                || matches!(work.progress, LaneProgress::Restored(_))
            {
                continue;
            }
            if repo.head(&work.branch).is_some() {
                found.push(format!("{path} is merged, and its branch is there"));
            }
            if machine.paths().any(|p| p.starts_with(&work.dir)) {
                found.push(format!("{path} is merged, and its worktree is there"));
            }
        }
    }

    /// What the queue merged passed its tests as exactly that tree.
    fn check_tested(&self, found: &mut Vec<String>) {
        let machine = self.machine.borrow();
        let Some(repo) = &machine.repo else { return };
        for (_, _, event) in self.events().unwrap_or_default() {
            let Event::MergeIntended(intent) = event else { continue };
            let tested = self.plan.lane(&intent.lane).is_some_and(|l| !l.rules.tests.is_empty());
            let tree = SimRepo::tree_id(&repo.tree(&intent.to));
            if tested && !passed(self, repo, &intent.lane, &tree) {
                found.push(format!("{} merges what its tests have not seen", intent.lane));
            }
        }
    }
}

/// Whether an attempt that runs a lane's tests succeeded on a tree.
fn passed(rig: &Rig, repo: &SimRepo, lane: &LanePath, tree: &str) -> bool {
    repo.passed.iter().any(|(attempt, found, left)| {
        let step = rig.plan.step(&attempt.step).filter(|s| !s.tests().is_empty());
        // Tests alone pass on what they find; those that follow work, on what that left.
        let on = step.map(|s| if s.role == Role::Tests { found } else { left });
        attempt.step.lane() == *lane && on.is_some_and(|on| on == tree)
    })
}

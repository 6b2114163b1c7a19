//! What the simulated machine does for lanes, one driver's view of it.
//!
//! Whatever changes refs or files passes the driver's [`CrashPoint`] piece by piece: a worktree that
//! is half made, a base whose files do not follow yet, a removal that left a branch are all places
//! to fall at. Observations only fail once the driver fell.

mod foreign;
mod rewound;
mod trouble;

use std::cell::{Ref, RefCell};
use std::rc::Rc;

use piton_core::event::{
    LaneBegun, LaneReady, LaneRemoved, MergeIntended, Revert, RewindIntended, RewindKind,
    RewindWorkspace, StepStarted,
};
use piton_core::lane::{Isolation, LaneRules, Role, SnapshotRef};
use piton_core::lane_state::{Conflict, LaneWork};
use piton_core::refusal::Refusal;
use piton_core::{Event, LanePath, Plan, RunState, Timestamp};
use piton_engine::Result;
use piton_engine::world::{
    Begin, Commit, MadeWorkspace, Merging, Rebase, RewindTarget, Workspaces,
};
use piton_engine::world::{PullRequest, Removed, Repaired, Views};

use crate::crash::CrashPoint;
use crate::machine::SimMachine;
use crate::repo::{
    BASE, MARKER, SimRepo, Tree, WORKTREES, differing, merge, place, view_of, workspace_of,
};
use trouble::Trouble;

/// What a driver does to repository and worktrees.
pub(crate) struct SimWorkspaces {
    machine: Rc<RefCell<SimMachine>>,
    crash: CrashPoint,
    epoch: u64,
}

fn refuse(why: &str, fix: &str) -> Refusal {
    Refusal::new("world", why.to_owned()).or(fix.to_owned())
}

impl SimWorkspaces {
    pub(crate) fn new(machine: &Rc<RefCell<SimMachine>>, crash: &CrashPoint) -> Self {
        Self { machine: Rc::clone(machine), crash: crash.clone(), epoch: 0 }
    }

    fn repo(&self) -> Ref<'_, SimRepo> {
        Ref::map(self.machine.borrow(), |m| m.repo.as_ref().expect("workspaces need a repository"))
    }

    fn act<T>(&self, name: &str, act: impl FnOnce(&mut SimMachine) -> T) -> Result<T, Trouble> {
        Ok(self.crash.around(name, || act(&mut self.machine.borrow_mut()))?)
    }

    /// Does something to the repository that a stale driver must not do.
    fn fenced<T>(&self, name: &str, act: impl FnOnce(&mut SimRepo) -> T) -> Result<T, Trouble> {
        self.act(name, |machine| {
            let fence = machine.switches.ref_fence;
            let repo = machine.repo.as_mut().expect("workspaces need a repository");
            if fence && repo.epoch > self.epoch { Err(Trouble::Stale) } else { Ok(act(repo)) }
        })?
    }

    fn set(&self, point: &str, name: &str, to: Option<String>) -> Result<(), Trouble> {
        self.fenced(point, |repo| repo.set(name, to, self.epoch))
    }

    fn tree(&self, dir: &str) -> Tree {
        self.machine.borrow().tree(dir)
    }

    fn keep(&self, dir: &str, why: &str) -> Result<SnapshotRef, Trouble> {
        let tree = self.tree(dir);
        let id = SimRepo::tree_id(&tree);
        let commit = self.fenced(&format!("snapshot {why}"), |repo| repo.keep(dir, tree))?;
        Ok(SnapshotRef { commit, tree: id, degraded: Vec::new(), head: None })
    }

    /// Makes the files of a folder those of a tree, in two halves.
    fn check_out(&self, what: &str, dir: &str, tree: &Tree) -> Result<(), Trouble> {
        let half: Tree = tree.clone().into_iter().take(tree.len().div_ceil(2)).collect();
        self.act(&format!("{what}: half its files"), |machine| {
            if !dir.is_empty() {
                machine.repo.as_mut().map(|r| r.worktrees.insert(dir.to_owned(), false));
            }
            for (path, text) in &half {
                machine.put(&place(dir, path), text);
            }
        })?;
        self.act(&format!("{what}: all its files"), |machine| {
            machine.check_out(dir, tree);
            if !dir.is_empty() {
                machine.repo.as_mut().map(|r| r.worktrees.insert(dir.to_owned(), true));
            }
        })
    }

    /// Lets the root, or the worktree of a branch, follow where it still has the files of before.
    fn follow(&self, what: &str, base: &str, from: &str, to: &str) -> Result<(), Trouble> {
        let (old, new) = (self.repo().tree(from), self.repo().tree(to));
        self.act(&format!("{what}: the root follows"), |machine| {
            for path in differing(&old, &new) {
                let there = place(&workspace_of(base), &path);
                if machine.text(&there).as_ref() != old.get(&path) {
                    continue;
                }
                match new.get(&path) {
                    Some(text) => machine.put(&there, text),
                    None => machine.remove(&there),
                }
            }
            machine.head = machine.repo.as_ref().and_then(|r| r.head(BASE));
        })
    }

    fn dirty(&self, base: &str) -> Vec<String> {
        let head = self.repo().head(base).unwrap_or_default();
        differing(&self.repo().tree(&head), &self.tree(&workspace_of(base)))
    }

    /// Puts both sides of a conflict into a lane's worktree.
    fn put_conflict(&self, lane: &LanePath, work: &LaneWork) -> Result<(), Trouble> {
        let Some(Conflict { onto, head }) = work.conflict() else { return Ok(()) };
        let tree = {
            let repo = self.repo();
            let before = repo.tree(&repo.fork(head, onto));
            merge(&before, &repo.tree(onto), &repo.tree(head)).0
        };
        self.set(&format!("conflict {lane}: branch"), &work.branch, Some(onto.clone()))?;
        self.check_out(&format!("conflict {lane}"), &work.dir, &tree)
    }

    fn fill_workspace(&self, lane: &LanePath, work: &LaneWork) -> Result<(), Trouble> {
        let base = work.base_sha.clone().unwrap_or_default();
        let head = self.repo().head(&work.branch);
        let there = self.repo().worktrees.get(&work.dir) == Some(&true);
        if let (true, Some(head)) = (there, &head) {
            let repo = self.repo();
            let clean = self.tree(&work.dir) == repo.tree(head);
            if *head == base || !clean || !repo.history(&base).contains(head) {
                return Ok(());
            }
        }
        let at = head.filter(|h| !self.repo().history(&base).contains(h)).unwrap_or(base);
        let tree = self.repo().tree(&at);
        self.set(&format!("workspace {lane}: branch"), &work.branch, Some(at))?;
        self.check_out(&format!("workspace {lane}"), &work.dir, &tree)
    }

    /// Removes a branch that another contains; where it stood.
    fn drop_branch(&self, what: &str, branch: &str, base: &str) -> Result<Option<String>, Trouble> {
        let head = self.repo().head(branch);
        let contained = head.clone().filter(|head| self.repo().contains(base, head));
        if contained.is_some() {
            self.set(&format!("{what}: branch goes"), branch, None)?;
        }
        Ok(contained)
    }
}

impl Workspaces for SimWorkspaces {
    fn fence(&mut self, epoch: u64) -> Result<()> {
        self.epoch = epoch;
        Ok(self.fenced("fence", |repo| repo.epoch = repo.epoch.max(epoch))?)
    }

    fn begin(&mut self, lane: &LanePath, rules: &LaneRules, state: &RunState) -> Result<Begin> {
        self.crash.check().map_err(Trouble::from)?;
        let mut begun = LaneBegun {
            lane: lane.clone(),
            isolation: rules.isolation,
            dir: String::new(),
            branch: String::new(),
            base_branch: BASE.to_owned(),
            base_sha: self.repo().head(BASE),
            snapshot: None,
            note: String::new(),
        };
        if rules.isolation == Isolation::InPlace {
            begun.snapshot = Some(self.keep("", &format!("begin {lane}"))?);
            return Ok(Begin::Ready(Box::new(begun)));
        }
        if let Some(whole) = state.awaits(lane).and_then(|step| state.lane(&step.lane())) {
            begun.base_branch = whole.work.as_ref().map(|w| w.branch.clone()).unwrap_or_default();
            begun.base_sha = self.repo().head(&begun.base_branch);
            begun.dir = format!("{WORKTREES}tasks/{lane}");
            begun.branch = format!("lane-task/{lane}");
            return Ok(Begin::Ready(Box::new(begun)));
        }
        let dirty = self.dirty(BASE);
        if !dirty.is_empty() {
            let why = format!("base is not clean: {}", dirty.join(", "));
            return Ok(Begin::Refused(refuse(&why, "commit it")));
        }
        begun.dir = format!("{WORKTREES}{lane}");
        begun.branch = format!("lane/{lane}");
        Ok(Begin::Ready(Box::new(begun)))
    }

    fn changed_since(&mut self, _: &str, _: i64) -> bool {
        false
    }

    fn changed(&mut self, from: &str, to: &str, except: &[String]) -> Result<Vec<String>> {
        let repo = self.repo();
        let files = |id: &str| repo.snapshot(id).cloned().unwrap_or_default();
        let changed = differing(&files(from), &files(to));
        Ok(changed.into_iter().filter(|path| !except.contains(path)).collect())
    }

    fn left(&mut self, from: &str, to: &str) -> Result<Vec<String>> {
        let there = self.repo().snapshot(to).cloned().unwrap_or_default();
        let changed = self.changed(from, to, &[])?;
        Ok(changed.into_iter().filter(|path| there.contains_key(path)).collect())
    }

    fn tip(&mut self, branch: &str) -> Option<String> {
        self.repo().head(branch)
    }

    fn make_workspace(
        &mut self,
        lane: &LanePath,
        _: &LaneRules,
        work: &LaneWork,
    ) -> Result<MadeWorkspace> {
        if work.conflict().is_some() {
            self.put_conflict(lane, work)?;
        } else {
            self.fill_workspace(lane, work)?;
        }
        let snapshot = self.keep(&work.dir, &format!("of the workspace {lane}"))?;
        Ok(MadeWorkspace::Ready(Box::new(LaneReady {
            lane: lane.clone(),
            dir: work.dir.clone(),
            branch: work.branch.clone(),
            head: self.repo().head(&work.branch),
            snapshot: Some(snapshot),
            note: String::new(),
        })))
    }

    fn snapshot(
        &mut self,
        _: Option<&LanePath>,
        dir: &str,
        why: &str,
        _: Timestamp,
    ) -> Result<SnapshotRef, Refusal> {
        Ok(self.keep(dir, why)?)
    }

    fn reset(
        &mut self,
        lane: &LanePath,
        dir: &str,
        to: &str,
        _: (Option<&str>, Option<&str>),
        _: Timestamp,
    ) -> Result<Option<String>, Refusal> {
        let Some(tree) = self.repo().snapshot(to).cloned() else {
            return Err(refuse(&format!("there is no snapshot {to}"), ""));
        };
        self.keep(dir, &format!("before the reset of {lane}"))?;
        self.check_out(&format!("reset {lane}"), dir, &tree)?;
        Ok(None)
    }

    fn commit(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        snapshot: &SnapshotRef,
        message: &str,
    ) -> Result<Commit> {
        let tree = self.repo().snapshot(&snapshot.commit).cloned().unwrap_or_default();
        let torn: Vec<String> = tree
            .iter()
            .filter(|(_, text)| text.starts_with(MARKER))
            .map(|(path, _)| path.clone())
            .collect();
        if !torn.is_empty() {
            return Ok(Commit::Unresolved(torn));
        }
        let changed = self.repo().tree(work.base_sha.as_deref().unwrap_or_default()) != tree;
        let head = self.repo().head(&work.branch).unwrap_or_default();
        let (mut commit, same) = (head.clone(), self.repo().tree(&head) == tree);
        if !same {
            commit = self.fenced(&format!("commit {lane}"), |repo| {
                let new = repo.commit(Some(head), tree, message);
                repo.set(&work.branch, Some(new.clone()), self.epoch);
                new
            })?;
        }
        Ok(Commit::Done { commit, tree: snapshot.tree.clone(), changed })
    }

    fn rebase(&mut self, lane: &LanePath, work: &LaneWork) -> Result<Rebase> {
        let onto = self.repo().head(&work.base_branch).unwrap_or_default();
        let head = self.repo().head(&work.branch).unwrap_or_default();
        let replayed =
            self.fenced(&format!("rebase {lane}: objects"), |repo| repo.replay(&head, &onto))?;
        let commit = match replayed {
            Ok(commit) => commit,
            Err(files) => return Ok(Rebase::Conflict { onto, head, files }),
        };
        self.set(&format!("rebase {lane}: branch"), &work.branch, Some(commit.clone()))?;
        let files = self.repo().tree(&commit);
        self.check_out(&format!("rebase {lane}"), &work.dir, &files)?;
        Ok(Rebase::Done { onto, commit, tree: SimRepo::tree_id(&files) })
    }

    fn may_merge(&mut self, intent: &MergeIntended) -> Result<Option<Refusal>> {
        self.crash.check().map_err(Trouble::from)?;
        let changes = differing(&self.repo().tree(&intent.from), &self.repo().tree(&intent.to));
        let dirty = self.dirty(&intent.base_branch);
        let torn = dirty.into_iter().any(|path| changes.contains(&path));
        Ok(torn.then(|| refuse("base has changes that the merge would overwrite", "commit them")))
    }

    fn merge(&mut self, intent: &MergeIntended) -> Result<Merging> {
        let what = format!("merge {}", intent.lane);
        let meddled = self.machine.borrow_mut().repo.as_mut().and_then(|r| r.meddling.pop_front());
        if let Some((path, text)) = meddled {
            self.machine.borrow_mut().commit_as_person(&path, &text);
        }
        let moved = self.fenced(&format!("{what}: base moves"), |repo| {
            let base = &intent.base_branch;
            let tip = repo.head(base).unwrap_or_default();
            if tip == intent.from {
                repo.set(base, Some(intent.to.clone()), self.epoch);
            }
            Some(tip).filter(|_| !repo.contains(base, &intent.to))
        })?;
        if let Some(found) = moved {
            return Ok(Merging::Moved { found, by_runs: self.repo().meddled_by_runs });
        }
        self.follow(&what, &intent.base_branch, &intent.from, &intent.to)?;
        Ok(Merging::Done(String::new()))
    }

    fn pull_request(&mut self, _: &LanePath, work: &LaneWork) -> Result<PullRequest> {
        self.crash.check().map_err(Trouble::from)?;
        self.machine.borrow_mut().look();
        let commit = work.committed().map(|c| c.commit.as_str()).unwrap_or_default();
        if self.repo().pulls_merged.contains(&work.branch) {
            return Ok(PullRequest::Merged("the pull request is merged".to_owned()));
        }
        let contained = self.repo().contains(BASE, commit);
        let merged = || PullRequest::Merged("base contains its commit".to_owned());
        Ok(if contained { merged() } else { PullRequest::Open(None) })
    }

    fn remove(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        _: &[String],
        _: Timestamp,
    ) -> Result<Removed> {
        let what = format!("remove {lane}");
        if self.repo().worktrees.contains_key(&work.dir) {
            if self.repo().worktrees.get(&work.dir) == Some(&true) {
                self.keep(&work.dir, &what)?;
            }
            self.act(&format!("{what}: half its files go"), |machine| {
                machine.repo.as_mut().map(|r| r.worktrees.insert(work.dir.clone(), false));
                let first = machine.tree(&work.dir).into_keys().next();
                if let Some(path) = first {
                    machine.remove(&place(&work.dir, &path));
                }
            })?;
            self.act(&format!("{what}: files go"), |machine| {
                machine.remove_all(&work.dir);
                machine.repo.as_mut().map(|r| r.worktrees.remove(&work.dir));
            })?;
        }
        if work.is_dropped() {
            self.set(&format!("{what}: branch goes"), &work.branch, None)?;
        }
        let mut branch_head = self.drop_branch(&what, &work.branch, &work.base_branch)?;
        if branch_head.is_none() && self.repo().head(&work.branch).is_none() {
            // It went before a fall.
            branch_head = work.committed().map(|c| c.commit.clone());
        }
        let newest = self.repo().newest.get(&work.dir).cloned();
        let snapshot = newest.map(|commit| {
            let tree = self.repo().snapshot(&commit).map(SimRepo::tree_id).unwrap_or_default();
            SnapshotRef { commit, tree, degraded: Vec::new(), head: None }
        });
        let (lane, branch_stays) = (lane.clone(), branch_head.is_none());
        Ok(LaneRemoved { lane, snapshot, branch_head, branch_stays }.into())
    }

    fn plan_rewind(
        &mut self,
        target: &RewindTarget,
        _: Timestamp,
    ) -> Result<RewindWorkspace, Refusal> {
        if !target.target.is_empty() && self.repo().snapshot(&target.target).is_none() {
            return Err(refuse(&format!("there is no snapshot {}", target.target), ""));
        }
        let there = target.dir.is_empty() || self.repo().worktrees.contains_key(&target.dir);
        let present = if there {
            self.keep(&target.dir, &format!("before the rewind of {}", target.dir))?
        } else {
            SnapshotRef::default()
        };
        let keep = if target.exact || !target.dir.is_empty() {
            Vec::new()
        } else {
            self.foreign(target, &present.commit)
        };
        Ok(RewindWorkspace {
            lane: target.lane.clone(),
            dir: target.dir.clone(),
            present,
            target: target.target.clone(),
            beside: target.beside.clone(),
            paths: target.paths.clone(),
            keep,
            branch: target.branch.clone(),
            head_from: self.repo().head(&target.branch),
            head_to: target.head_to.clone(),
            large: None,
            goes: target.goes.is_some(),
            copy: Vec::new(),
        })
    }

    fn plan_revert(&mut self, revert: &Revert, _: RewindKind) -> Result<Revert, Refusal> {
        let tip = self.repo().head(BASE).unwrap_or_default();
        let from = if revert.from.is_empty() { tip } else { revert.from.clone() };
        let (tree, conflicts) = {
            let repo = self.repo();
            let (merged, before) = (repo.tree(&revert.merged_to), repo.tree(&revert.merged_from));
            merge(&merged, &repo.tree(&from), &before)
        };
        if !conflicts.is_empty() {
            return Err(refuse(&format!("later work changed {}", conflicts.join(", ")), ""));
        }
        let message = format!("revert {}", revert.lane);
        let name = format!("plan the revert of {}", revert.lane);
        let to = self.fenced(&name, |repo| repo.commit(Some(from.clone()), tree, &message))?;
        Ok(Revert { from, to, ..revert.clone() })
    }

    fn rewind(&mut self, intent: &RewindIntended) -> Result<(), Refusal> {
        for revert in &intent.reverts {
            let what = format!("revert {}", revert.lane);
            let moved = self.fenced(&format!("{what}: base moves"), |repo| {
                let tip = repo.head(BASE).unwrap_or_default();
                if tip == revert.from {
                    repo.set(BASE, Some(revert.to.clone()), self.epoch);
                }
                Some(tip).filter(|_| !repo.contains(BASE, &revert.to))
            })?;
            if let Some(found) = moved {
                return Err(refuse(&format!("base moved to {found} meanwhile"), ""));
            }
            self.follow(&what, BASE, &revert.from, &revert.to)?;
        }
        for workspace in &intent.workspaces {
            self.rewind_workspace(workspace)?;
        }
        Ok(())
    }

    fn recover(
        &mut self,
        _: &Plan,
        _: &RunState,
        _: &[LanePath],
        _: Timestamp,
    ) -> Result<Repaired> {
        Ok(Repaired::default())
    }
}

impl Views for SimWorkspaces {
    fn happened(&mut self, events: &[(u64, Timestamp, &Event)], state: &RunState) -> bool {
        let is_first = |e: &StepStarted| e.attempt > 1 || state.role(&e.step) == Role::PullRequest;
        events.iter().any(|(_, _, event)| matches!(event, Event::StepStarted(e) if is_first(e)))
    }

    fn write(&mut self, _: &Plan, state: &RunState) -> Result<Vec<String>> {
        let view = view_of(state);
        self.fenced("views", |repo| repo.view = view)?;
        Ok(Vec::new())
    }
}

//! Rollback, restore and undo in a repository: what stays, what is restored, and how a failure is
//! undone.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use piton_core::event::{Revert, RewindIntended, RewindKind, RewindWorkspace};
use piton_core::refusal::Refusal;
use piton_core::{LanePath, Timestamp};
use piton_engine::world::RewindTarget;
use piton_workspace::checks::{self, Base};
use piton_workspace::merge::{self, Advanced, Probe};
use piton_workspace::missed::{self, large};
use piton_workspace::refs::{self, Transaction};
use piton_workspace::restore::{self, Change, Kept, KeptWhy, Scope};
use piton_workspace::snapshot;
use piton_workspace::worktree::{self, Files, Identity};
use piton_workspace::{Project, history, objects};

use super::error::{Error, Result};
use super::restore::{refuse_blocked, refuse_large};
use super::snapshots::{recorded, with_head};
use super::{GitWorkspaces, names};
use crate::{now, refusals};

/// What a rewind would do to a work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// Paths that change.
    pub changes: Vec<Change>,
    /// Paths that differ and stay.
    pub kept: Vec<Kept>,
    /// Paths that the target does not have: it is not known whether they differ.
    pub missed: Vec<snapshot::Missed>,
    /// The same, where nothing exists now: they are not restored.
    pub gone: Vec<snapshot::Missed>,
    /// Large files that the target does not have and that git restores.
    pub large: Vec<Vec<u8>>,
    /// Why it can't be done.
    pub refused: Option<Refusal>,
}

impl GitWorkspaces {
    pub(super) fn plan_workspace(
        &mut self,
        target: &RewindTarget,
        at: Timestamp,
    ) -> Result<RewindWorkspace> {
        if let (Some(lane), Some(artifacts)) = (&target.lane, &target.goes) {
            return self.plan_removal(lane, target, artifacts, at);
        }
        let root = self.root.display().to_string();
        let lane = target.lane.as_ref();
        let there = self.root.join(&target.dir).is_dir();
        let present = if there {
            let why = "before it is taken back";
            let to = Some(target.target.as_str());
            let taken = self.take_before(lane, &target.dir, to, why, at)?;
            with_head(lane, &target.dir, &taken)
        } else {
            // Its worktree is gone; it is created again as the target has it.
            recorded(&snapshot::load(&self.root, &target.target)?)
        };
        let keep = self.staying(target, &present.commit)?;
        let dir = if target.dir.is_empty() { root } else { target.dir.clone() };
        let head =
            (!target.branch.is_empty()).then(|| super::branch_head(&self.root, &target.branch));
        Ok(RewindWorkspace {
            lane: target.lane.clone(),
            dir,
            present,
            target: target.target.clone(),
            beside: target.beside.clone(),
            paths: target.paths.clone(),
            keep,
            branch: target.branch.clone(),
            head_from: head.flatten(),
            head_to: target.head_to.clone(),
            large: target.large.clone(),
            goes: false,
            copy: target.copy.clone(),
        })
    }

    /// What a rewind of a work tree would change, and what would stay although it differs.
    pub fn preview(&self, target: &RewindTarget, present: &str) -> Result<Preview> {
        let keep = self.staying(target, present)?;
        let before = snapshot::load(&self.root, present)?;
        let workspace = self.workspace(&target.dir);
        let own = target.lane.is_some();
        let scope = Scope { own, ..scope(&target.paths, &keep, target.beside.as_deref()) };
        let rules = self.rules_of(&target.dir);
        let plan = restore::plan(&workspace, &rules, &before, &target.target, &scope);
        let plan = plan?;
        let refused = own.then(|| refuse_blocked(&plan, &target.dir).err()).flatten();
        let touched = plan.writes().chain(plan.deletes()).map(<[u8]>::to_vec);
        let touched: BTreeSet<Vec<u8>> = touched.collect();
        let mut changes = restore::diff(&self.root, present, &target.target)?;
        changes.retain(|c| touched.contains(&c.path));
        let kept: BTreeSet<Vec<u8>> = plan.kept.iter().map(|k| k.path.clone()).collect();
        let mut missed = snapshot::load(&self.root, &target.target)?.degraded;
        let compare =
            |tree: &String| large::compare(&workspace.dir, tree, &before.degraded, &missed);
        let differs = target.large.as_ref().map(compare).transpose()?;
        // What exists now and could not be captured stays too, whoever made it.
        let known: BTreeSet<Vec<u8>> = missed.iter().map(|m| m.path.clone()).collect();
        missed.extend(before.degraded.into_iter().filter(|m| !known.contains(&m.path)));
        let stays = |m: &snapshot::Missed| {
            let path = m.path.as_slice();
            m.why.content_is_missing() && !kept.contains(path) && !touched.contains(path)
        };
        missed.retain(stays);
        let mut kept = plan.kept;
        let mut large = BTreeSet::new();
        let mut in_the_way = None;
        if let Some(differs) = differs {
            in_the_way = refuse_large(&differs, &target.dir).err();
            large.extend(missed.iter().filter(|m| missed::is_large(m.why)).map(|m| m.path.clone()));
            let is_large =
                |k: &Kept| matches!(k.why, KeptWhy::NotCaptured(why) if missed::is_large(why));
            large.extend(kept.iter().filter(|k| is_large(k)).map(|k| k.path.clone()));
            missed.retain(|m| !large.contains(&m.path));
            kept.retain(|k| !large.contains(&k.path));
            large.retain(|path| differs.paths().contains(path));
        }
        let is_there = |m: &snapshot::Missed| {
            let path = workspace.dir.join(OsString::from_vec(m.path.clone()));
            path.symlink_metadata().is_ok()
        };
        let (missed, gone) = missed.into_iter().partition(is_there);
        let (large, refused) = (large.into_iter().collect(), refused.or(in_the_way));
        Ok(Preview { changes, kept, missed, gone, large, refused: refused.map(Refusal::from) })
    }

    /// Files that stay although the target does not have them: those that were created since then while
    /// no attempt of the run was running. What is left alone anyway, such as views that somebody
    /// committed, is not named.
    fn staying(&self, target: &RewindTarget, present: &str) -> Result<Vec<String>> {
        if target.exact {
            return Ok(Vec::new());
        }
        let mut own = BTreeSet::new();
        for (before, after) in &target.windows {
            own.extend(self.added(before, after.as_deref().unwrap_or(present))?);
        }
        let rules = self.rules_of(&target.dir);
        let is_named = |path: &&String| !rules.excludes(path.as_bytes());
        let added = self.added(&target.target, present)?;
        Ok(added.difference(&own).filter(is_named).cloned().collect())
    }

    /// Paths that one snapshot has and an earlier one has not.
    fn added(&self, from: &str, to: &str) -> Result<BTreeSet<String>> {
        let changes = restore::diff(&self.root, from, to)?;
        let new = changes.into_iter().filter(|c| c.kind == restore::ChangeKind::Added);
        Ok(new.map(|c| names::text(&c.path)).collect())
    }

    /// Files that a person created after the intent was recorded, as after a kill: an undo would not
    /// restore them from a snapshot, so they stay.
    fn newcomers(&mut self, workspace: &RewindWorkspace) -> Result<Vec<String>> {
        if workspace.lane.is_some() {
            return Ok(Vec::new());
        }
        let now = self.take(None, "", "before going back", now())?;
        let new = self.added(&workspace.present.commit, &now.commit)?;
        Ok(new
            .difference(&self.added(&workspace.present.commit, &workspace.target)?)
            .cloned()
            .collect())
    }

    pub(super) fn plan_revert_of(&mut self, merged: &Revert, kind: RewindKind) -> Result<Revert> {
        let base = self.base_named(&merged.base_branch)?;
        // Several are reverted one on top of the other.
        let tip = if merged.from.is_empty() { &base.commit } else { &merged.from };
        let undo = kind == RewindKind::Undo && *tip == merged.merged_to;
        if undo && !self.is_built_on(merged)? {
            let to = merged.merged_from.clone();
            merge::would_follow(&base, &base.commit, &to)?;
            return Ok(Revert { from: tip.clone(), to, ..merged.clone() });
        }
        let message = self.revert_message(merged);
        let range = (merged.merged_from.as_str(), merged.merged_to.as_str());
        let seconds = now().0.div_euclid(1000);
        let made = merge::revert(&self.root, tip, range, &message, &Identity::Configured, seconds);
        let to = match made? {
            merge::Revert::Nothing => tip.clone(),
            merge::Revert::Clean { commit, .. } => commit,
            merge::Revert::Conflict { files, .. } => {
                return Err(refusals::revert_conflict(&files).into());
            }
        };
        merge::would_follow(&base, &base.commit, &to)?;
        Ok(Revert { from: tip.clone(), to, ..merged.clone() })
    }

    /// What reverting a merge would do, and whether by a new commit; nothing is done.
    pub fn preview_revert(&mut self, merged: &Revert, kind: RewindKind) -> Result<(Revert, bool)> {
        let planned = self.plan_revert_of(merged, kind)?;
        let by_commit = planned.to != planned.from && planned.to != merged.merged_from;
        Ok((planned, by_commit))
    }

    /// Whether a commit that is to be removed from base was published, or another branch contains it.
    fn is_built_on(&self, merged: &Revert) -> Result<bool> {
        if self.is_rewind(merged) {
            return Ok(false);
        }
        let branches = history::containing(&self.root, &merged.merged_to)?;
        let base = format!("refs/heads/{}", merged.base_branch);
        Ok(branches.iter().any(|(commit, name)| {
            name.starts_with("refs/remotes/") || (*name != base && *commit != merged.merged_to)
        }))
    }

    fn base_named(&self, branch: &str) -> Result<Base> {
        let base = checks::find_base(&self.root, branch);
        base.ok_or_else(|| refusals::branch_gone(branch).into())
    }

    /// The message of the commit that reverts a merge, or that applies it again.
    fn revert_message(&self, merged: &Revert) -> String {
        let subject = history::subject(&self.root, &merged.merged_to).unwrap_or_default();
        let again = subject == format!("Revert {}", merged.lane) || self.is_rewind(merged);
        let verb = if again { "Reapply" } else { "Revert" };
        format!("{verb} {}\n\nMade by piton.", merged.lane)
    }

    /// Whether what is reverted was itself a move to an earlier commit.
    fn is_rewind(&self, merged: &Revert) -> bool {
        let earlier = merge::is_ancestor(&self.root, &merged.merged_to, &merged.merged_from);
        earlier.unwrap_or_default()
    }

    /// Carries out an intent; what was changed before a failure is put back.
    pub(super) fn carry_out(&mut self, intent: &RewindIntended) -> Result<()> {
        let (mut workspaces, mut moved) = (0, 0);
        let moves = moves(&intent.reverts);
        // Removals come last: what git ignores there can't be restored.
        let mut order: Vec<&RewindWorkspace> = intent.workspaces.iter().collect();
        order.sort_by_key(|workspace| workspace.goes);
        let done = self.carry_out_in(&order, &moves, &mut workspaces, &mut moved);
        let Err(why) = done else {
            // That restored what a restart of the machine tore there, if anything.
            let stay = intent
                .workspaces
                .iter()
                .filter(|workspace| workspace.lane.is_some() && !workspace.goes);
            for workspace in stay {
                // If this fails, torn files are searched for once more.
                let _ = worktree::note_complete(Path::new(&workspace.dir));
            }
            return Ok(());
        };
        for (branch, from, to) in moves.iter().take(moved).rev() {
            if let Err(again) = self.move_base_to(branch, to, from) {
                return Err(half_done(why, branch, again, &format!("at {from}")));
            }
        }
        for done in order.into_iter().take(workspaces) {
            let head = done.head_from.as_deref();
            let put_back = if done.comes() {
                self.remove_task(done)
            } else {
                self.rewind_workspace(done, &done.present.commit, head, &[])
            };
            if let Err(again) = put_back {
                let kept = format!("as in snapshot {}", done.present.commit);
                return Err(half_done(why, &done.dir, again, &kept));
            }
        }
        Err(why)
    }

    /// Carries out all of it, counting what was begun.
    fn carry_out_in(
        &mut self,
        order: &[&RewindWorkspace],
        moves: &[Move<'_>],
        workspaces: &mut usize,
        moved: &mut usize,
    ) -> Result<()> {
        for workspace in order.iter().filter(|workspace| !workspace.goes) {
            *workspaces += 1;
            let head = workspace.head_to.as_deref();
            self.rewind_workspace(workspace, &workspace.target, head, &workspace.keep)?;
        }
        for (branch, from, to) in moves {
            self.move_base_to(branch, from, to)?;
            *moved += 1;
        }
        for workspace in order.iter().filter(|workspace| workspace.goes) {
            *workspaces += 1;
            self.remove_task(workspace)?;
        }
        Ok(())
    }

    /// Moves base from one commit to another, unless that was done before.
    fn move_base_to(&mut self, branch: &str, from: &str, to: &str) -> Result<()> {
        if from == to {
            return Ok(());
        }
        let fence = self.fenced()?;
        let base = self.base_named(branch)?;
        let moved = match merge::probe(&self.root, &base, from, to)? {
            Probe::Done => return Ok(()),
            Probe::RefMoved => Advanced::Done(merge::follow(&self.root, &base, from, to)?),
            Probe::NotDone => {
                self.moves.note(from, to);
                merge::advance(&self.root, &base, from, to, &fence)?
            }
            Probe::BaseMoved { found } => Advanced::BaseMoved { found },
        };
        match moved {
            Advanced::Done(_) => Ok(()),
            Advanced::BaseMoved { .. } => Err(refusals::base_moved(branch).into()),
            Advanced::InTheWay(paths) => Err(refusals::changes_in_the_way(&paths).into()),
        }
    }

    /// Keeps commits that a branch moves away from: they may be nowhere else, and an undo, or a rollback
    /// to an attempt that made them, needs them.
    pub(super) fn keep_commits(&mut self, from: &str, head: &str) -> Result<()> {
        if from == head {
            return Ok(());
        }
        let fence = self.fenced()?;
        objects::sync(&self.root, from, &[head])?;
        let kept = format!("{}rewound/{from}", refs::run_prefix(&self.run_id));
        let keep = Transaction::fenced(&fence).set(&kept, from);
        Ok(keep.commit(&self.root, "piton: rewound")?)
    }

    /// Restores a lane for a new attempt: its files from a snapshot, its branch to the commit of then.
    /// The lane's snapshots keep what is there now, and the commits that an attempt made.
    pub(super) fn reset_for_attempt(
        &mut self,
        lane: &LanePath,
        dir: &str,
        to: &str,
        (head, tree): (Option<&str>, Option<&str>),
        at: Timestamp,
    ) -> Result<Option<String>> {
        let owner = (self.run_id.as_str(), &*lane.to_string());
        let branch = refs::branch_of(&self.root, owner).map(|(_, commit)| commit);
        // A step may have left its worktree on another branch, or on none.
        let checked_out = Project::discover_cached(Path::new(dir)).ok().and_then(|own| own.head());
        let stands = [branch, checked_out];
        let head = head.filter(|head| stands.iter().any(|at| at.as_deref() != Some(head)));
        if let Some(head) = head {
            stands.iter().flatten().try_for_each(|from| self.keep_commits(from, head))?;
        }
        // Before the branch moves: the index of the attempt says which of its files are tracked. The tree
        // of a snapshot that lacks nothing will do.
        let all = format!("{to}:tree");
        let note = self.restore_for_attempt(lane, dir, (to, tree.unwrap_or(&all)), at)?;
        let Some(head) = head else { return Ok(note) };
        let fence = self.fenced()?;
        worktree::move_to(Path::new(dir), head, Files::Stay, &fence)?;
        Ok(note)
    }

    /// Restores one work tree to a snapshot, with its branch at a commit.
    fn rewind_workspace(
        &mut self,
        workspace: &RewindWorkspace,
        target: &str,
        head: Option<&str>,
        keep: &[String],
    ) -> Result<()> {
        let dir = Path::new(&workspace.dir);
        let fence = self.fenced()?;
        if let (Some(lane), Some(head)) = (&workspace.lane, head) {
            // One that was being created again when its driver was killed exists, and is incomplete.
            if !worktree::is_complete(dir) {
                self.recreate_task(lane, workspace, head)?;
            }
            if let Some(from) = workspace.head_from.as_deref() {
                self.keep_commits(from, head)?;
            }
            worktree::move_to(dir, head, Files::Stay, &fence)?;
        }
        let mut keep = keep.to_vec();
        keep.extend(self.newcomers(workspace)?);
        // After a failure the present is restored, which was taken beside the target.
        let forth = target == workspace.target;
        let beside =
            if forth { workspace.beside.as_deref() } else { Some(workspace.target.as_str()) };
        let scope =
            Scope { own: workspace.lane.is_some(), ..scope(&workspace.paths, &keep, beside) };
        let Some(lane) = &workspace.lane else {
            return self.restore_files(None, "", target, &scope, now());
        };
        let tree = workspace.large.as_deref().filter(|_| forth);
        self.restore_with_large(lane, &workspace.dir, (target, tree), &scope, now())
    }
}

/// A failure that could not be undone either.
fn half_done(why: Error, what: &str, again: Error, kept: &str) -> Error {
    refusals::half_rewound(&why.into(), what, &again.into(), kept).into()
}

/// A branch, the commit that it is at, and the one that it moves to.
type Move<'a> = (&'a str, &'a str, &'a str);

/// The moves of base, one for each branch: reverts of one branch are one move.
fn moves(reverts: &[Revert]) -> Vec<Move<'_>> {
    let mut all: Vec<Move<'_>> = Vec::new();
    for revert in reverts {
        match all.iter_mut().find(|(branch, ..)| *branch == revert.base_branch) {
            Some(known) => known.2 = &revert.to,
            None => all.push((&revert.base_branch, &revert.from, &revert.to)),
        }
    }
    all
}

fn scope(paths: &[String], keep: &[String], beside: Option<&str>) -> Scope {
    Scope {
        beside: beside.map(str::to_owned),
        paths: paths.iter().map(|path| OsString::from_vec(names::bytes(path)).into()).collect(),
        keep: keep.iter().map(|path| names::bytes(path)).collect(),
        own: false,
    }
}

//! Rollback, restore and undo in a repository: what stays, what comes back, and the way back from
//! a failure.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use piton_core::event::{Revert, RewindIntended, RewindKind, RewindRoom};
use piton_core::{LanePath, Timestamp};
use piton_engine::world::RoomTarget;
use piton_workspace::checks::{self, Base};
use piton_workspace::merge::{self, Advanced, Probe};
use piton_workspace::missed::large;
use piton_workspace::refs::{self, Transaction};
use piton_workspace::restore::{self, Change, Kept, KeptWhy, Scope};
use piton_workspace::snapshot;
use piton_workspace::worktree::{self, Identity};
use piton_workspace::{Git, Project, objects};

use super::back;
use super::begin::at;
use super::{GitRooms, STAY, names, noted, recorded};

/// What a rewind would do to a work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// Paths that change.
    pub changes: Vec<Change>,
    /// Paths that differ and stay.
    pub kept: Vec<Kept>,
    /// Paths that the target does not hold: whether they differ, nobody knows.
    pub missed: Vec<snapshot::Missed>,
    /// The same, where nothing is there now: they do not come back.
    pub gone: Vec<snapshot::Missed>,
    /// Paths that the target does not hold and that are known to git: they become what that has.
    pub large: Vec<Vec<u8>>,
    /// Where what is there of them now goes.
    pub aside: PathBuf,
    /// Large files that were set aside and come back, or went and go again: true for the former.
    pub exchanged: Vec<(Vec<u8>, bool)>,
    /// Why it can't be done.
    pub refused: Option<String>,
}

impl GitRooms {
    pub(super) fn plan_room(
        &mut self,
        target: &RoomTarget,
        at: Timestamp,
    ) -> Result<RewindRoom, String> {
        if let (Some(lane), Some(artifacts)) = (&target.lane, &target.goes) {
            return self.plan_leaving(lane, target, artifacts, at);
        }
        let root = self.root.display().to_string();
        let lane = target.lane.as_ref();
        let there = self.root.join(&target.dir).is_dir();
        let present = if there {
            let why = "before it is taken back";
            let taken = self.take_before(lane, &target.dir, &target.target, why, at)?;
            noted(lane, &target.dir, &taken)
        } else {
            // Its worktree is gone; it comes back as the target has it.
            recorded(&snapshot::load(&self.root, &target.target).map_err(|e| e.to_string())?)
        };
        let keep = self.staying(target, &present.commit)?;
        let dir = if target.dir.is_empty() { root } else { target.dir.clone() };
        let head =
            (!target.branch.is_empty()).then(|| super::branch_head(&self.root, &target.branch));
        Ok(RewindRoom {
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
            aside: self.plan_aside(target)?,
        })
    }

    /// What a rewind of a work tree would change, and what would stay although it differs.
    pub fn preview(&self, target: &RoomTarget, present: &str) -> Result<Preview, String> {
        let said = |e: snapshot::Error| e.to_string();
        let keep = self.staying(target, present)?;
        let before = snapshot::load(&self.root, present).map_err(said)?;
        let workspace = self.workspace(&target.dir);
        let own = target.lane.is_some();
        let scope = Scope { own, ..scope(&target.paths, &keep, target.beside.as_deref()) };
        let rules = self.rules_of(&target.dir);
        let plan = restore::plan(&workspace, &rules, &before, &target.target, &scope);
        let plan = plan.map_err(said)?;
        let refused = own.then(|| back::refuse_blocked(&plan, &target.dir).err()).flatten();
        let touched = plan.writes().chain(plan.deletes()).map(<[u8]>::to_vec);
        let touched: BTreeSet<Vec<u8>> = touched.collect();
        let mut changes = restore::diff(&self.root, present, &target.target).map_err(said)?;
        changes.retain(|c| touched.contains(&c.path));
        let kept: BTreeSet<Vec<u8>> = plan.kept.iter().map(|k| k.path.clone()).collect();
        let mut missed = snapshot::load(&self.root, &target.target).map_err(said)?.degraded;
        let differs = target.large.as_ref().map(|tree| {
            large::compare(&workspace.dir, tree, &before.degraded, &missed).map(|l| l.paths())
        });
        // What is there now and could not be looked at stays too, whoever made it.
        let known: BTreeSet<Vec<u8>> = missed.iter().map(|m| m.path.clone()).collect();
        missed.extend(before.degraded.into_iter().filter(|m| !known.contains(&m.path)));
        let stays = |m: &snapshot::Missed| {
            let path = m.path.as_slice();
            m.why.content_is_missing() && !kept.contains(path) && !touched.contains(path)
        };
        missed.retain(stays);
        let mut kept = plan.kept;
        let mut large = BTreeSet::new();
        if let Some(differs) = differs.transpose().map_err(said)? {
            large.extend(missed.iter().filter(|m| large::is_large(m)).map(|m| m.path.clone()));
            let is_large =
                |k: &Kept| matches!(k.why, KeptWhy::NotCaptured(why) if large::is_large_why(why));
            large.extend(kept.iter().filter(|k| is_large(k)).map(|k| k.path.clone()));
            missed.retain(|m| !large.contains(&m.path));
            kept.retain(|k| !large.contains(&k.path));
            large.retain(|path| differs.contains(path));
        }
        let (aside, vanished) = match self.plan_aside(target) {
            Ok(aside) => (aside, None),
            Err(why) => (None, Some(why)),
        };
        let refused = refused.or(vanished);
        let exchanged: Vec<(Vec<u8>, bool)> = aside.map_or_else(Vec::new, |aside| {
            aside.paths.into_iter().map(|(path, comes)| (names::bytes(&path), comes)).collect()
        });
        let is_told = |path: &Vec<u8>| exchanged.iter().any(|(other, _)| other == path);
        missed.retain(|m| !is_told(&m.path));
        kept.retain(|k| !is_told(&k.path));
        let is_there = |m: &snapshot::Missed| {
            let path = workspace.dir.join(OsString::from_vec(m.path.clone()));
            path.symlink_metadata().is_ok()
        };
        let (missed, gone) = missed.into_iter().partition(is_there);
        let (large, aside) = (large.into_iter().collect(), self.aside.clone());
        Ok(Preview { changes, kept, missed, gone, large, aside, exchanged, refused })
    }

    /// Files that stay although the target does not have them: those that are new since then and
    /// appeared while no attempt of the run was at work. What is left alone anyway, as views are that
    /// somebody committed, need not be named.
    fn staying(&self, target: &RoomTarget, present: &str) -> Result<Vec<String>, String> {
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
    fn added(&self, from: &str, to: &str) -> Result<BTreeSet<String>, String> {
        let changes = restore::diff(&self.root, from, to).map_err(|e| e.to_string())?;
        let new = changes.into_iter().filter(|c| c.kind == restore::ChangeKind::Added);
        Ok(new.map(|c| names::text(&c.path)).collect())
    }

    /// Files that a person made after the intent was recorded, as after a kill: they are in no
    /// snapshot that an undo would bring back, so they stay.
    fn newcomers(&mut self, room: &RewindRoom) -> Result<Vec<String>, String> {
        if room.lane.is_some() {
            return Ok(Vec::new());
        }
        let now = self.take(None, "", "before going back", at())?;
        let new = self.added(&room.present.commit, &now.commit)?;
        Ok(new.difference(&self.added(&room.present.commit, &room.target)?).cloned().collect())
    }

    pub(super) fn plan_taking_back(
        &mut self,
        merged: &Revert,
        kind: RewindKind,
    ) -> Result<Revert, String> {
        let base = self.base_named(&merged.base_branch)?;
        // Several are taken back one on top of the other.
        let tip = if merged.from.is_empty() { &base.commit } else { &merged.from };
        let undo = kind == RewindKind::Undo && *tip == merged.merged_to;
        if undo && !self.is_built_on(merged)? {
            let to = merged.merged_from.clone();
            merge::would_follow(&base, &base.commit, &to).map_err(|e| in_the_way(&e))?;
            return Ok(Revert { from: tip.clone(), to, ..merged.clone() });
        }
        let message = self.taking_back(merged);
        let range = (merged.merged_from.as_str(), merged.merged_to.as_str());
        let seconds = at().0.div_euclid(1000);
        let made = merge::revert(&self.root, tip, range, &message, &Identity::Configured, seconds);
        let to = match made.map_err(|e| e.to_string())? {
            merge::Revert::Nothing => tip.clone(),
            merge::Revert::Clean { commit, .. } => commit,
            merge::Revert::Conflict { files, .. } => {
                return Err(format!(
                    "later commits changed the same files: {}; revert it by hand",
                    files.join(", ")
                ));
            }
        };
        merge::would_follow(&base, &base.commit, &to).map_err(|e| in_the_way(&e))?;
        Ok(Revert { from: tip.clone(), to, ..merged.clone() })
    }

    /// What taking a move of base back would do, and whether by a new commit; nothing is done.
    pub fn preview_revert(
        &mut self,
        merged: &Revert,
        kind: RewindKind,
    ) -> Result<(Revert, bool), String> {
        let planned = self.plan_taking_back(merged, kind)?;
        let by_commit = planned.to != planned.from && planned.to != merged.merged_from;
        Ok((planned, by_commit))
    }

    /// Whether a commit of base that shall go was published, or another branch went on from it.
    fn is_built_on(&self, merged: &Revert) -> Result<bool, String> {
        if self.goes_forth(merged) {
            return Ok(false);
        }
        let contains = format!("--contains={}", merged.merged_to);
        let args = ["for-each-ref", &contains, "--format=%(objectname) %(refname)"];
        let refs = Git::at(&self.root).args(args).args(["refs/heads", "refs/remotes"]).text();
        let refs = refs.map_err(|e| e.to_string())?;
        let base = format!("refs/heads/{}", merged.base_branch);
        let further = |(commit, name): (&str, &str)| {
            name.starts_with("refs/remotes/") || (name != base && commit != merged.merged_to)
        };
        Ok(refs.lines().filter_map(|line| line.split_once(' ')).any(further))
    }

    fn base_named(&self, branch: &str) -> Result<Base, String> {
        checks::find_base(&self.root, branch).ok_or_else(|| format!("branch {branch} is gone"))
    }

    /// The message of the commit that takes a merge back, or one that brings it to base again.
    fn taking_back(&self, merged: &Revert) -> String {
        let subject = Git::at(&self.root).args(["log", "-1", "--format=%s", &merged.merged_to]);
        let subject = subject.text().unwrap_or_default();
        let again = subject == format!("Revert {}", merged.lane) || self.goes_forth(merged);
        let verb = if again { "Reapply" } else { "Revert" };
        format!("{verb} {}\n\nMade by piton.", merged.lane)
    }

    /// Whether what is taken back was itself a move to an earlier commit.
    fn goes_forth(&self, merged: &Revert) -> bool {
        let forth = merge::is_ancestor(&self.root, &merged.merged_to, &merged.merged_from);
        forth.unwrap_or_default()
    }

    /// Carries out an intent; what was changed before a failure is put back.
    pub(super) fn carry_out(&mut self, intent: &RewindIntended) -> Result<(), String> {
        let (mut rooms, mut moved) = (0, 0);
        let moves = moves(&intent.reverts);
        // What goes does so last: of that, what git ignores comes back from nowhere.
        let mut order: Vec<&RewindRoom> = intent.rooms.iter().collect();
        order.sort_by_key(|room| room.goes);
        let done = self.go(&order, &moves, &mut rooms, &mut moved);
        let Err(why) = done else {
            // What a restart tore there is put back by that, if it was not before.
            let stay = intent.rooms.iter().filter(|room| room.lane.is_some() && !room.goes);
            for room in stay {
                // If not, it is looked for once more.
                let _ = worktree::note_complete(Path::new(&room.dir));
            }
            return Ok(());
        };
        for (branch, from, to) in moves.iter().take(moved).rev() {
            self.move_base_to(branch, to, from).map_err(|again| {
                format!("{why}; putting {branch} back failed too: {again}; it was at {from}")
            })?;
        }
        for done in order.into_iter().take(rooms) {
            let head = done.head_from.as_deref();
            let put_back = if done.comes() {
                self.leave(done)
            } else {
                self.enter(done, &done.present.commit, head, &[])
            };
            put_back.map_err(|again| {
                format!(
                    "{why}; putting {} back failed too: {again}; its files are in {}",
                    done.dir, done.present.commit
                )
            })?;
        }
        Err(why)
    }

    /// Goes all the way, counting what was begun of it.
    fn go(
        &mut self,
        order: &[&RewindRoom],
        moves: &[Move<'_>],
        rooms: &mut usize,
        moved: &mut usize,
    ) -> Result<(), String> {
        for room in order.iter().filter(|room| !room.goes) {
            *rooms += 1;
            self.enter(room, &room.target, room.head_to.as_deref(), &room.keep)?;
        }
        for (branch, from, to) in moves {
            self.move_base_to(branch, from, to)?;
            *moved += 1;
        }
        for room in order.iter().filter(|room| room.goes) {
            *rooms += 1;
            self.leave(room)?;
        }
        Ok(())
    }

    /// Moves base from one commit to another, unless that was done before.
    fn move_base_to(&mut self, branch: &str, from: &str, to: &str) -> Result<(), String> {
        if from == to {
            return Ok(());
        }
        let fence = self.fenced().map_err(|e| e.to_string())?;
        let base = self.base_named(branch)?;
        let said = |e: merge::Error| e.to_string();
        let moved = match merge::probe(&self.root, &base, from, to).map_err(said)? {
            Probe::Done => return Ok(()),
            Probe::RefMoved => {
                Advanced::Done(merge::follow(&self.root, &base, from, to).map_err(said)?)
            }
            Probe::NotDone => {
                self.moves.note(from, to);
                merge::advance(&self.root, &base, from, to, &fence).map_err(said)?
            }
            Probe::BaseMoved { found } => Advanced::BaseMoved { found },
        };
        match moved {
            Advanced::Done(_) => Ok(()),
            Advanced::BaseMoved { .. } => Err(format!("{branch} moved meanwhile; try again")),
            Advanced::InTheWay(paths) => Err(format!(
                "your own changes are in the way: {}; commit, stash or move them away, then try again",
                paths.join(", ")
            )),
        }
    }

    /// Keeps commits that a branch goes away from: they may be nowhere else, and an undo, or a way
    /// back to an attempt that made them, brings them back.
    pub(super) fn keep_commits(&mut self, from: &str, head: &str) -> Result<(), String> {
        if from == head {
            return Ok(());
        }
        let fence = self.fenced().map_err(|e| e.to_string())?;
        objects::sync(&self.root, from, &[head]).map_err(|e| e.to_string())?;
        let kept = format!("{}rewound/{from}", refs::run_prefix(&self.run_id));
        let keep = Transaction::fenced(&fence).set(&kept, from);
        keep.commit(&self.root, "piton: rewound").map_err(|e| e.to_string())
    }

    /// Lets an attempt begin with what a snapshot has, and the branch where it stood then. What is
    /// there now, and the commits that an attempt made, stay with the lane's snapshots.
    pub(super) fn start_afresh(
        &mut self,
        lane: &LanePath,
        dir: &str,
        to: &str,
        (head, tree): (Option<&str>, Option<&str>),
        at: Timestamp,
    ) -> Result<Option<String>, String> {
        let owner = (self.run_id.as_str(), &*lane.to_string());
        let branch = refs::branch_of(&self.root, owner).map(|(_, commit)| commit);
        // A step may have left its worktree on another branch, or on none.
        let checked_out = Project::discover_cached(Path::new(dir)).ok().and_then(|own| own.head());
        let stands = [branch, checked_out];
        let head = head.filter(|head| stands.iter().any(|at| at.as_deref() != Some(head)));
        if let Some(head) = head {
            stands.iter().flatten().try_for_each(|from| self.keep_commits(from, head))?;
        }
        // While its index is that of the attempt, it is known which of its files were tracked.
        let scope = Scope { own: true, ..Scope::default() };
        // A snapshot that lacks nothing is such a tree itself.
        let all = format!("{to}:tree");
        let tree = Some(tree.unwrap_or(&all));
        let told = self.go_back_whole(lane, dir, (to, tree), None, &scope, at)?;
        let Some(head) = head else { return Ok(told) };
        let fence = self.fenced().map_err(|e| e.to_string())?;
        worktree::move_to(Path::new(dir), head, STAY, &fence).map_err(|e| e.to_string())?;
        Ok(told)
    }

    /// Makes one work tree what a snapshot says, with its branch at a commit.
    fn enter(
        &mut self,
        room: &RewindRoom,
        target: &str,
        head: Option<&str>,
        keep: &[String],
    ) -> Result<(), String> {
        let dir = Path::new(&room.dir);
        let fence = self.fenced().map_err(|e| e.to_string())?;
        if let (Some(lane), Some(head)) = (&room.lane, head) {
            // One that was being brought back when its driver was killed is there, and not whole.
            if !worktree::is_complete(dir) {
                self.come_back(lane, room, head)?;
            }
            if let Some(from) = room.head_from.as_deref() {
                self.keep_commits(from, head)?;
            }
            worktree::move_to(dir, head, STAY, &fence).map_err(|e| e.to_string())?;
            if room.comes() || room.goes {
                self.drop_large(lane, room, target, head)?;
            }
        }
        let mut keep = keep.to_vec();
        keep.extend(self.newcomers(room)?);
        // After a failure the way leads back to the present, which was taken beside the target.
        let forth = target == room.target;
        let beside = if forth { room.beside.as_deref() } else { Some(room.target.as_str()) };
        let scope = Scope { own: room.lane.is_some(), ..scope(&room.paths, &keep, beside) };
        let Some(lane) = &room.lane else {
            return self.go_back(None, "", target, &scope, at());
        };
        match &room.aside {
            Some(aside) if !forth => self.put_back(lane, &room.dir, target, aside, &scope),
            Some(aside) if !aside.from.is_empty() => {
                self.exchange(lane, &room.dir, target, aside, &scope)
            }
            aside => {
                let tree = room.large.as_deref().filter(|_| forth);
                let to = aside.as_ref().map(|aside| PathBuf::from(&aside.to));
                self.go_back_whole(lane, &room.dir, (target, tree), to, &scope, at()).map(drop)
            }
        }
    }
}

/// Why the work tree of base cannot follow, and what to do before the same is tried again.
fn in_the_way(refusal: &checks::Refusal) -> String {
    format!("{}; {}", refusal.what, refusal.fix.replace("then resume", "then try again"))
}

/// A branch, where it stands and where it goes.
type Move<'a> = (&'a str, &'a str, &'a str);

/// The moves of base, one for each branch: what is taken back there goes together.
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

//! Where lanes begin: preconditions, worktrees, and the two sides of a conflict.

use std::path::{Path, PathBuf};

use piton_core::event::LaneBegun;
use piton_core::lane::{LaneRules, Missed, SnapshotRef, Stage, StageStatus, TaskOf};
use piton_core::lane_state::LaneWork;
use piton_core::shell::{git, quoted};
use piton_core::{LanePath, RunState, Timestamp};
use piton_engine::Result;
use piton_engine::world::{Begin, Refusal, Room};
use piton_protocols::lanes;
use piton_workspace::{Git, Project, checks, merge, refs, restore, worktree};

use super::{GitRooms, branch_head, failed, of_worktree, ready, recorded, refusal, spec};
use piton_core::text::short;

use crate::now;

impl GitRooms {
    pub(super) fn begin_lane(
        &mut self,
        lane: &LanePath,
        rules: &LaneRules,
        state: &RunState,
    ) -> Result<Begin> {
        if rules.isolation.is_in_place() {
            return Ok(match self.off_base(lane, state) {
                Some(refusal) => Begin::Refused(refusal),
                None => self.begin_in_place(lane, self.unsaved(lane, state)),
            });
        }
        if let Some(refusal) = &self.refusal {
            return Ok(Begin::Refused(refusal.clone()));
        }
        if let Some(task) = &rules.task {
            return Ok(self.begin_task(lane, task, state));
        }
        if let Some(refusal) = self.not_at_base(state) {
            return Ok(Begin::Refused(refusal));
        }
        let wanted = self.wanted_base(state);
        let base = match self.usual_base(wanted.as_deref()) {
            Ok(base) => base,
            Err(found) => return Ok(Begin::Refused(found)),
        };
        let lacking = match self.lacking(lane, state, &base) {
            Ok(note) => note,
            Err(refusal) => return Ok(Begin::Refused(refusal)),
        };
        let before = state.lane(lane).and_then(|l| l.work.as_deref());
        let again = before.filter(|work| work.begins_again());
        if let (true, Some(refusal)) = (again.is_some(), self.switched(&base.branch)) {
            return Ok(Begin::Refused(refusal));
        }
        let seeded = again.is_some_and(|work| {
            // A refusal has the snapshot that it was taken back to.
            let start = work.record(Stage::BeforeLaneStart);
            start.is_some_and(|r| r.status != StageStatus::Blocked && r.snapshot.is_some())
        });
        let mut snapshot = None;
        if let Some(dir) = &base.worktree {
            match self.clean(dir) {
                Ok(()) => {}
                Err(found) if found.code == "dirty" && (self.options.seed_dirty || seeded) => {
                    let taken = self.take(None, "", &format!("seed of {lane}"), now());
                    snapshot = Some(recorded(&taken.map_err(failed)?));
                }
                Err(found) => return Ok(Begin::Refused(refusal(found))),
            }
        }
        let dir = self.worktree_of(lane);
        let unseen = snapshot.as_ref().and_then(|seed| not_seeded(&self.root, seed));
        let notes = [unseen, lacking.or_else(|| self.behind(&base.branch))];
        Ok(Begin::Ready(Box::new(LaneBegun {
            lane: lane.clone(),
            isolation: rules.isolation,
            dir: dir.display().to_string(),
            branch: lanes::branch(lane, None),
            note: notes.into_iter().flatten().collect::<Vec<_>>().join("; "),
            base_branch: base.branch,
            base_sha: Some(base.commit),
            snapshot,
        })))
    }

    /// Where a lane's worktree is made.
    pub(super) fn worktree_of(&self, lane: &LanePath) -> PathBuf {
        self.root.join(&self.options.worktrees).join(&lane.phase).join(&lane.lane)
    }

    /// Why a lane that begins for the first time could not have a worktree now.
    pub fn refuses_worktrees(&mut self) -> Option<Refusal> {
        let wanted = self.options.base.clone();
        let base = match self.usual_base(wanted.as_deref()) {
            Ok(base) => base,
            Err(found) => return Some(found),
        };
        let found = self.clean(base.worktree.as_deref()?).err()?;
        (found.code != "dirty" || !self.options.seed_dirty).then(|| refusal(found))
    }

    /// Whether a work tree is clean but for what is Piton's own.
    pub(super) fn clean(&self, dir: &Path) -> Result<(), checks::Refusal> {
        let own: Vec<&str> = self.rules.exclude.iter().map(String::as_str).collect();
        checks::clean(dir, &own)
    }

    /// The base that is wanted; without a wish the one at hand, if it is the usual one.
    fn usual_base(&mut self, wanted: Option<&str>) -> Result<checks::Base, Refusal> {
        let base = self.base(wanted).map_err(refusal)?;
        match &self.options.usual_base {
            Some(usual) if wanted.is_none() && *usual != base.branch => {
                Err(other_branch(&base.branch, usual))
            }
            _ => Ok(base),
        }
    }

    /// Why a lane does not begin again: another branch than its base is checked out, and nobody named
    /// that one.
    fn switched(&self, base: &str) -> Option<Refusal> {
        let found = Project::discover_cached(&self.root).ok()?.branch();
        if self.options.base.is_some() || found.as_deref() == Some(base) {
            return None;
        }
        let (found, word) = (found.as_deref().unwrap_or("no branch"), quoted(base));
        let run = &self.run_id;
        Some(Refusal {
            why: format!("it goes to {base}, and {found} is checked out here"),
            fix: format!(
                "`{}`, then `piton resume {run}`; or `piton resume {run} --base {word}`",
                git(None, &["switch", base])
            ),
        })
    }

    fn base(&mut self, wanted: Option<&str>) -> Result<checks::Base, checks::Refusal> {
        if !self.usable {
            checks::usable(&self.root)?;
            self.usable = true;
        }
        checks::base(&self.root, wanted)
    }

    /// A task starts from the branch of the lane it is a part of, and lies within its worktree.
    fn begin_task(&self, lane: &LanePath, task: &TaskOf, state: &RunState) -> Begin {
        let whole = LanePath { phase: lane.phase.clone(), lane: task.lane.clone() };
        let work = state.lane(&whole).and_then(|l| l.work.as_deref());
        let branch = work.map(|w| w.branch.clone()).unwrap_or_default();
        let (Some(work), Some(head)) = (work, branch_head(&self.root, &branch)) else {
            let why = format!("branch {branch} of {whole} is gone");
            let fix = "bring it back, then `piton resume`".to_owned();
            return Begin::Refused(Refusal { why, fix });
        };
        let dir = Path::new(&work.dir).join("tasks").join(&task.task);
        Begin::Ready(Box::new(LaneBegun {
            lane: lane.clone(),
            isolation: piton_core::lane::Isolation::Worktree,
            dir: dir.display().to_string(),
            branch: lanes::branch(lane, Some(task)),
            base_branch: branch,
            base_sha: Some(head),
            snapshot: None,
            note: String::new(),
        }))
    }

    fn begin_in_place(&mut self, lane: &LanePath, note: Option<String>) -> Begin {
        let snapshot = match self.take(None, "", &format!("before {lane}"), now()) {
            Ok(taken) => recorded(&taken),
            Err(why) => {
                let fix = "put that right, then `piton resume`; `snapshots.enabled = false` in \
                           piton.toml runs without checkpoints"
                    .to_owned();
                return Begin::Refused(Refusal { why, fix });
            }
        };
        let project = Project::discover_cached(&self.root).ok();
        let branch = project.as_ref().and_then(Project::branch);
        let head = project.and_then(|p| p.head());
        Begin::Ready(Box::new(LaneBegun {
            lane: lane.clone(),
            isolation: piton_core::lane::Isolation::InPlace,
            dir: self.root.display().to_string(),
            branch: String::new(),
            base_branch: branch.unwrap_or_default(),
            base_sha: head,
            snapshot: Some(snapshot),
            note: note.unwrap_or_default(),
        }))
    }

    /// The base asked for; else that of the lanes before, wherever the user is now.
    pub(super) fn wanted_base(&self, state: &RunState) -> Option<String> {
        let before = || {
            let whole = state.lanes().filter(|(_, l)| l.task.is_none());
            let works = whole.filter_map(|(_, l)| l.work.as_ref());
            let mut isolated = works.filter(|w| !w.isolation.is_in_place());
            isolated.find(|w| !w.base_branch.is_empty()).map(|w| w.base_branch.clone())
        };
        self.options.base.clone().or_else(before)
    }

    /// Says how far a base lags behind what was last fetched.
    fn behind(&self, branch: &str) -> Option<String> {
        let common = Project::discover_cached(&self.root).ok()?.common_dir?;
        let config = std::fs::read_to_string(common.join("config")).ok()?;
        // Most have none, and every lane asks.
        if !config.contains("[branch ") && !config.contains("[include") {
            return None;
        }
        let range = format!("{branch}..{branch}@{{upstream}}");
        let count = Git::at(&self.root).args(["rev-list", "--count", &range]).text().ok()?;
        let count: u64 = count.parse().ok().filter(|n| *n > 0)?;
        let commits = if count == 1 { "commit" } else { "commits" };
        Some(format!("{branch} is {count} {commits} behind its upstream, as last fetched"))
    }

    pub(super) fn make_worktree(
        &mut self,
        lane: &LanePath,
        rules: &LaneRules,
        work: &LaneWork,
    ) -> Result<Room> {
        if let Some(refusal) = self.refuses_touch(work) {
            return Ok(Room::Refused(refusal));
        }
        let fence = self.fenced()?;
        if let Some((onto, head)) = &work.conflict {
            return self.place_conflict(lane, work, onto, head);
        }
        let start = work.base_sha.clone().unwrap_or_default();
        let wanted = spec(&self.run_id, lane, work, &start, &rules.copy);
        let added = match worktree::add(&self.root, &wanted, &fence) {
            Ok(added) => added,
            Err(worktree::Error::Superseded) => return Err(piton_engine::Error::TakenOver),
            Err(error) => {
                let (why, fix) = (error.to_string(), "then `piton resume`".to_owned());
                return Ok(Room::Refused(Refusal { why, fix }));
            }
        };
        let dir = added.path.display().to_string();
        let mut added = added;
        let stale = self.restart(lane, &dir, &mut added, &start)?;
        if let Some(seed) = &work.snapshot {
            // The user's own uncommitted state, as it was when the lane began.
            let back = self.go_back(Some(lane), &dir, seed, &restore::Scope::default(), now());
            back.map_err(failed)?;
        }
        let mut made = ready(lane, &added.path, &added.branch, added.head.clone());
        let taken = self.take(Some(lane), &dir, &format!("{lane} is ready"), now());
        made.snapshot = Some(self.noted_whole(Some(lane), &dir, &taken.map_err(failed)?));
        let taken = (added.branch != work.branch).then(|| self.taken(&work.branch));
        made.note = note(taken, &added, &stale);
        Ok(Room::Ready(Box::new(made)))
    }

    /// Whose a branch is that a lane would have had.
    fn taken(&self, branch: &str) -> String {
        if let Some(run) = refs::run_of_branch(&self.root, branch) {
            return format!("{branch} is a branch of run {run}");
        }
        // A branch can't have the name of a folder that others are in.
        let above = branch.match_indices('/').map(|(at, _)| &branch[..at]);
        match above.into_iter().find(|name| branch_head(&self.root, name).is_some()) {
            Some(above) => format!("there is a branch {above}, so none can be called {branch}"),
            None => format!("there is a branch {branch} that is not ours"),
        }
    }

    /// Lets a lane whose worktree is there already, as after a rollback, start from the base of now,
    /// unless its branch has commits of its own; what a person should know. Where only its branch was
    /// left, what that holds stays below a ref of the run.
    fn restart(
        &mut self,
        lane: &LanePath,
        dir: &str,
        added: &mut worktree::Added,
        start: &str,
    ) -> Result<String> {
        if !added.reused && added.head != start {
            let fence = self.fenced()?;
            let (old, owner) = (added.head.clone(), (&*self.run_id, &*lane.to_string()));
            worktree::keep_commit(&self.root, owner, &old, &fence).map_err(of_worktree)?;
            worktree::start_from(Path::new(dir), start, &fence).map_err(of_worktree)?;
            start.clone_into(&mut added.head);
            return Ok(format!(
                "its branch was left at {}: it starts from {} now",
                short(&old),
                short(start)
            ));
        }
        if !added.reused || !added.base_moved {
            return Ok(String::new());
        }
        let (from, to) = (short(&added.start), short(start));
        if !merge::is_ancestor(&self.root, &added.head, start).map_err(failed)? {
            return Ok(format!("base moved from {from} to {to} since it started from there"));
        }
        let fence = self.fenced()?;
        self.take(Some(lane), dir, "before it starts over", now()).map_err(failed)?;
        worktree::start_from(Path::new(dir), start, &fence).map_err(of_worktree)?;
        start.clone_into(&mut added.head);
        Ok(format!("base moved from {from} to {to}: it starts from there now"))
    }

    /// Copies what was not there when a lane's worktree was made, as long as its first step is to come.
    pub(super) fn copy_missing(&self, lane: &LanePath, dir: &str) -> Result<Option<String>> {
        let copied = worktree::copy_missing(&self.root, Path::new(dir)).map_err(of_worktree)?;
        let words = || format!("{lane}: copied into its worktree now: {}", copied.join(", "));
        Ok((!copied.is_empty()).then(words))
    }
}

/// The refusal of a branch that the settings do not expect.
fn other_branch(found: &str, usual: &str) -> Refusal {
    Refusal {
        why: format!("the current branch is {found}, and `lanes.base` in piton.toml is {usual}"),
        fix: format!(
            "`{}`, or say which one is meant: `--base {}` or `--base {}`",
            git(None, &["switch", usual]),
            quoted(usual),
            quoted(found)
        ),
    }
}

fn note(taken: Option<String>, added: &worktree::Added, stale: &str) -> String {
    let mut notes = Vec::new();
    if let Some(taken) = taken {
        notes.push(format!("{taken}, so it works on {}", added.branch));
    }
    if added.reused {
        notes.push("its worktree was there already and goes on".to_owned());
    }
    if !stale.is_empty() {
        notes.push(stale.to_owned());
    }
    if !added.not_copied.is_empty() {
        notes.push(format!("not there to be copied: {}", added.not_copied.join(", ")));
    }
    notes.join("; ")
}

/// The time of an act outside the engine's turns.
pub(super) fn at() -> Timestamp {
    now()
}

/// What of the user's uncommitted files a lane begins without.
fn not_seeded(root: &Path, seed: &SnapshotRef) -> Option<String> {
    if seed.degraded.is_empty() {
        return None;
    }
    let changed = Git::at(root).args(["status", "--porcelain", "-z", "--no-renames"]);
    let changed = changed.arg("--untracked-files=all").bytes().unwrap_or_default();
    let changed: Vec<String> = changed
        .split(|b| *b == 0)
        .filter_map(|line| Some(String::from_utf8_lossy(line.get(3..)?).into_owned()))
        .collect();
    let is_changed = |missed: &&Missed| {
        let is_it = |path: &String| path.trim_end_matches('/') == missed.path;
        changed.iter().any(|path| is_it(path) || Path::new(path).starts_with(&missed.path))
    };
    let unseen: Vec<Missed> = seed.degraded.iter().filter(is_changed).cloned().collect();
    let list = Missed::words(&unseen)?;
    Some(format!("without these of your uncommitted files, or as they are committed: {list}"))
}

//! What a driver does for lanes beside their steps: begin, make room, commit, rebase, merge, remove.

use piton_core::decide::{LaneAct, Unmet, unmet};
use piton_core::event::{
    Event, LaneBlocked, LaneMerged, LaneRebased, LaneRemoved, MergeIntended, MergeMissed, MergedBy,
    StepProven, StepReset,
};
use piton_core::lane::{PULL_REQUEST_STEP, SnapshotRef, Stage, TESTS_STEP};
use piton_core::lane_state::{LaneWork, MERGE_ROUNDS_MAX, base_moved};
use piton_core::plan::Lane;
use piton_core::state::LaneState;
use piton_core::{LanePath, StepPath};

use super::Driver;
use super::tested::has_tests_step;
use crate::error::{Error, Result};
use crate::observer::Note;
use crate::world::{Begin, Merging, Rebase, Refusal, Removed, Room, Rooms, World};

/// How often a pull request is looked at while something else goes on.
const PULL_REQUEST_EVERY_MS: u64 = 30_000;
/// Most characters that are told of what a command says about a pull request.
const SAID_CHARS_MAX: usize = 200;
/// So many acts for a lane without a step in between come to nothing: few are ever due.
const ACTS_MAX: u32 = 1_000;

impl Driver<'_> {
    /// Carries out what was decided for a lane.
    pub(super) fn lane_act(&mut self, path: &LanePath, act: LaneAct) -> Result<()> {
        let Some(lane) = self.plan.lane(path).cloned() else { return Ok(()) };
        let is_inherited = act == LaneAct::Rebase && !self.acts.contains_key(path);
        let act = if is_inherited && self.was_edited(path)? { LaneAct::Commit } else { act };
        if act != LaneAct::CheckPullRequest {
            let acts = self.acts.entry(path.clone()).or_default();
            *acts += 1;
            if *acts > ACTS_MAX {
                let refusal = Refusal {
                    why: format!("it came no further with {ACTS_MAX} acts, the last to {act:?}"),
                    fix: "this is a mistake of piton's; look at its worktree, then resume".into(),
                };
                return self.block(path, Stage::PrePr, refusal);
            }
        }
        match act {
            LaneAct::Begin => self.begin_lane(path, &lane),
            LaneAct::MakeRoom => self.make_room(path, &lane),
            LaneAct::Prove => self.prove(path),
            LaneAct::Commit => self.commit_lane(path, &lane),
            LaneAct::Rebase => self.rebase(path, &lane),
            LaneAct::Merge => self.merge(path, &lane),
            LaneAct::CheckPullRequest => self.check_pull_request(path),
            LaneAct::Conclude(by) => {
                let untested = self.state.lane(path).is_some_and(LaneState::tests_are_skipped);
                let note = match by {
                    MergedBy::Nothing => "nothing to merge",
                    _ if untested => "its tests were skipped: stays on its branch",
                    _ => "stays on its branch",
                };
                self.merged(path, by, None, None, note)
            }
            LaneAct::Remove => self.remove(path),
            LaneAct::Fork => self.fork(path, &lane),
            LaneAct::Join => self.join(path),
        }
    }

    pub(super) fn rooms(&mut self) -> Result<&mut dyn Rooms> {
        rooms_of(self.world)
    }

    /// The lane's work; lane acts are only decided for lanes that have some.
    pub(super) fn work(&self, path: &LanePath) -> LaneWork {
        let work = self.state.lane(path).and_then(|l| l.work.as_deref());
        work.cloned().unwrap_or_default()
    }

    pub(super) fn block(&mut self, path: &LanePath, stage: Stage, refusal: Refusal) -> Result<()> {
        let (lane, why, fix) = (path.clone(), refusal.why, refusal.fix);
        let begun = self.state.lane(path).and_then(|l| l.work.as_ref());
        let mut base_branch = String::new();
        if begun.is_none_or(|work| work.base_branch.is_empty()) {
            let state = self.state.clone();
            let named = self.world.rooms().and_then(|rooms| rooms.base_branch(&state));
            base_branch = named.unwrap_or_default();
        }
        self.record(Event::LaneBlocked(LaneBlocked { lane, stage, why, fix, base_branch }))
    }

    /// Says of lanes that were chosen without what they need what that is.
    pub(super) fn refuse_unmet(&mut self) -> Result<()> {
        for Unmet { lane, why, first } in unmet(&self.plan, &self.state, &self.options.limits) {
            let run = self.row.run_id.clone();
            let fix = format!("`piton resume {run} {first}` does that, `piton resume {run}` all");
            self.block(&lane, Stage::BeforeLaneStart, Refusal { why, fix })?;
        }
        Ok(())
    }

    fn begin_lane(&mut self, path: &LanePath, lane: &Lane) -> Result<()> {
        if lane.is_unknown() {
            let run = &self.row.run_id;
            let refusal = Refusal {
                why: "what it does is not known: the run was imported without its plan".to_owned(),
                fix: format!(
                    "give the run up with `piton abort {run} --cancel`, then import it anew, with \
                     `--plan` and the plan that has the lane, and resume that"
                ),
            };
            return self.block(path, Stage::BeforeLaneStart, refusal);
        }
        if let Some(open) = self.options.open_gates.get(path).filter(|open| !open.is_empty()) {
            let refusal = Refusal {
                why: format!("open gates: {}", open.join(", ")),
                fix: "close them in the phase document (`- [x]`), then resume".to_owned(),
            };
            return self.block(path, Stage::BeforeLaneStart, refusal);
        }
        if let Some(doubted) = self.options.doubted_gates.get(path).filter(|d| !d.is_empty()) {
            let run = &self.row.run_id;
            let refusal = Refusal {
                why: format!("ticked while steps may have been at work: {}", doubted.join(", ")),
                fix: format!(
                    "a step may have done it; see that it is right, then `piton resume {run} \
                     --accept-gates`"
                ),
            };
            return self.block(path, Stage::BeforeLaneStart, refusal);
        }
        // Git takes its time: outcomes at hand do not wait for it.
        self.commit()?;
        // Gates that lanes before it provide are ticked before it looks.
        let mut lanes = self.plan.phases.iter().flat_map(|phase| &phase.lanes);
        if lanes.any(|lane| !lane.rules.provides.is_empty()) {
            self.views();
        }
        match rooms_of(self.world)?.begin(path, &lane.rules, &self.state)? {
            Begin::Refused(refusal) => self.block(path, Stage::BeforeLaneStart, refusal),
            Begin::Ready(begun) => {
                if !begun.note.is_empty() {
                    self.observer.note(&Note::Warning(format!("{path}: {}", begun.note)));
                }
                if let Some(snapshot) = &begun.snapshot {
                    self.fresh.insert(String::new(), snapshot.clone());
                }
                let isolated = !begun.isolation.is_in_place();
                self.validate_anew(path, &begun)?;
                self.record(Event::LaneBegun(begun))?;
                // The point before anything is created must be durable before it is.
                if isolated { self.commit() } else { Ok(()) }
            }
        }
    }

    fn make_room(&mut self, path: &LanePath, lane: &Lane) -> Result<()> {
        self.commit()?;
        let work = self.work(path);
        match self.rooms()?.make_room(path, &lane.rules, &work)? {
            Room::Refused(refusal) => self.block(path, Stage::AfterLaneStart, refusal),
            Room::Ready(ready) => {
                if !ready.note.is_empty() {
                    self.observer.note(&Note::Warning(format!("{path}: {}", ready.note)));
                }
                if let Some(snapshot) = &ready.snapshot {
                    self.fresh.insert(ready.dir.clone(), snapshot.clone());
                }
                self.record(Event::LaneReady(ready))
            }
        }
    }

    /// Takes a lane's current step for done.
    fn prove(&mut self, path: &LanePath) -> Result<()> {
        let Some(step) = self.current(path) else { return Ok(()) };
        let tests = step.step == TESTS_STEP;
        let tree = self.work(path).tree.filter(|_| tests).unwrap_or_default();
        let definition = self.planned(&step).map(piton_core::plan::Step::definition);
        self.record(Event::StepProven(StepProven { step, tree, definition }))
    }

    /// Snapshots where a lane works; the same turn needs it once.
    pub(super) fn snapshot(
        &mut self,
        path: &LanePath,
        why: &str,
    ) -> Result<Option<SnapshotRef>, String> {
        let Some(work) = self.state.lane(path).and_then(|l| l.work.as_deref()) else {
            return Ok(None);
        };
        if !work.ready {
            return Ok(None);
        }
        let own = !work.isolation.is_in_place();
        let dir = if own { work.dir.clone() } else { String::new() };
        if let Some(fresh) = self.fresh.get(&dir) {
            return Ok(Some(fresh.clone()));
        }
        let at = self.at;
        let Some(rooms) = self.world.rooms().filter(|r| r.takes_snapshots()) else {
            return Ok(None);
        };
        let taken = rooms.snapshot(own.then_some(path), &dir, why, at)?;
        self.fresh.insert(dir, taken.clone());
        Ok(Some(taken))
    }

    /// Takes a lane's files and branch back to what its first attempt found, where the plan says so.
    pub(super) fn reset(&mut self, step: &StepPath) -> Result<(), String> {
        let path = step.lane();
        let resets = self.plan.lane(&path).is_some_and(|l| {
            l.rules.on_retry == piton_core::lane::OnRetry::Reset && !l.rules.isolation.is_in_place()
        });
        let found = self.state.step(step);
        let found =
            found.map(|s| (s.before.clone(), (s.before_head.clone(), s.before_tree.clone())));
        let (true, Some((Some(before), (head, tree)))) = (resets, found) else { return Ok(()) };
        let (dir, at) = (self.work(&path).dir, self.at);
        self.fresh.remove(&dir);
        let Some(rooms) = self.world.rooms() else { return Ok(()) };
        let stood = (head.as_deref(), tree.as_deref());
        if let Some(text) = rooms.reset(&path, &dir, &before, stood, at)? {
            self.observer.note(&Note::Warning(text));
        }
        Ok(())
    }

    /// Whether a lane has other files than a driver before this one committed: a person changed them.
    fn was_edited(&mut self, path: &LanePath) -> Result<bool> {
        let Some(committed) = self.work(path).committed else { return Ok(false) };
        self.commit()?;
        self.fresh.clear();
        // What can't be checkpointed is told when the lane is put on base.
        let Ok(Some(present)) = self.snapshot(path, "before it is put on base") else {
            return Ok(false);
        };
        let is_at_commit = present.head.as_ref() == Some(&committed.commit);
        let was_edited = is_at_commit && present.tree != committed.tree;
        self.edited.extend(was_edited.then(|| path.clone()));
        Ok(was_edited)
    }

    pub(super) fn rebase(&mut self, path: &LanePath, lane: &Lane) -> Result<()> {
        self.commit()?;
        self.fresh.clear();
        let work = self.work(path);
        if let Some(refusal) = self.outrun(path) {
            return self.block(path, Stage::PrePr, refusal);
        }
        match self.rooms()?.rebase(path, &work)? {
            Rebase::Done { onto, commit, tree } => {
                let proven = work.proven(&lane.tests(), &tree);
                let short = onto.chars().take(10).collect::<String>();
                let lane_path = path.clone();
                self.record(Event::LaneRebased(LaneRebased {
                    lane: lane_path,
                    onto,
                    commit,
                    tree,
                }))?;
                if !proven && has_tests_step(lane) {
                    let step = StepPath::new(&path.phase, &path.lane, TESTS_STEP);
                    let reason = format!("its work was put on {short}");
                    self.record(Event::StepReset(StepReset { step, reason }))?;
                }
                Ok(())
            }
            Rebase::Conflict { onto, head, files } => {
                self.reopen_conflict(path, lane, files, (onto, head))
            }
            Rebase::Refused(refusal) => self.block(path, Stage::PrePr, refusal),
        }
    }

    fn merge(&mut self, path: &LanePath, lane: &Lane) -> Result<()> {
        let work = self.work(path);
        let Some(committed) = &work.committed else { return Ok(()) };
        if work.merging.is_none()
            && !work.proven(&lane.tests(), &committed.tree)
            && has_tests_step(lane)
        {
            let step = StepPath::new(&path.phase, &path.lane, TESTS_STEP);
            let reason = "the tests have not passed on the tree to be merged".to_owned();
            return self.record(Event::StepReset(StepReset { step, reason }));
        }
        if let Err(why) = self.clear_retest(path, &work)? {
            return self.hold_up(path, Stage::PrePr, &why);
        }
        let intent = match (&work.merging, &work.onto) {
            (Some(intent), _) => intent.clone(),
            (None, Some(onto)) => MergeIntended {
                lane: path.clone(),
                base_branch: work.base_branch.clone(),
                from: onto.clone(),
                to: committed.commit.clone(),
            },
            (None, None) => return Ok(()),
        };
        if work.merging.is_none() {
            if let Some(refusal) = self.rooms()?.may_merge(&intent)? {
                return self.block(path, Stage::PrePr, refusal);
            }
            self.record(Event::MergeIntended(intent.clone()))?;
        }
        self.commit()?;
        match self.rooms()?.merge(&intent)? {
            Merging::Done(note) => {
                // Tasks go into their lane one after the other: that it moves is nothing to tell.
                let whole = self.state.lane(path).is_some_and(|l| l.task.is_none());
                let moved = work.started_from().filter(|_| whole);
                let moved =
                    moved.and_then(|from| base_moved(&work.base_branch, from, &intent.from));
                let notes: Vec<String> =
                    moved.into_iter().chain([note]).filter(|n| !n.is_empty()).collect();
                let (from, to) = (Some(intent.from), Some(intent.to));
                self.merged(path, MergedBy::Queue, from, to, &notes.join("; "))
            }
            Merging::Moved { found, by_runs } => {
                let lane = path.clone();
                self.record(Event::MergeMissed(MergeMissed { lane, found, by_runs }))?;
                // Told before what follows from it.
                self.commit()?;
                match self.outrun(path) {
                    Some(refusal) => self.block(path, Stage::PrePr, refusal),
                    None => Ok(()),
                }
            }
            Merging::Refused(refusal) => self.block(path, Stage::PrePr, refusal),
        }
    }

    /// Why a lane that base outran too often goes no further by itself.
    fn outrun(&self, path: &LanePath) -> Option<Refusal> {
        let rounds_max = self.options.merge_rounds.unwrap_or(MERGE_ROUNDS_MAX);
        (self.work(path).rounds > rounds_max).then(|| Refusal {
            why: format!("base moved {rounds_max} times while it was being merged"),
            fix: "resume when base is quiet".to_owned(),
        })
    }

    fn merged(
        &mut self,
        path: &LanePath,
        by: MergedBy,
        from: Option<String>,
        to: Option<String>,
        note: &str,
    ) -> Result<()> {
        let (lane, note) = (path.clone(), note.to_owned());
        self.record(Event::LaneMerged(LaneMerged { lane, by, from, to, note }))?;
        // A lane that had nothing to merge needs no pull request.
        let open: Vec<StepPath> = self
            .state
            .lane(path)
            .into_iter()
            .flat_map(|l| &l.steps)
            .filter(|s| !s.progress.is_over())
            .map(|s| StepPath::new(&path.phase, &path.lane, &s.id))
            .collect();
        for step in open {
            let tree = String::new();
            let definition = self.planned(&step).map(piton_core::plan::Step::definition);
            self.record(Event::StepProven(StepProven { step, tree, definition }))?;
        }
        self.validate_again(path)
    }

    fn check_pull_request(&mut self, path: &LanePath) -> Result<()> {
        self.commit()?;
        let work = self.work(path);
        if let Some(note) = self.rooms()?.is_merged(path, &work)? {
            let to = work.committed.map(|c| c.commit);
            // Where base stood then: what needs the lane can tell whether somebody pulled since.
            let from = self.rooms()?.tip(&work.base_branch);
            self.merged(path, MergedBy::PullRequest, from, to, &note)
        } else {
            self.options.limits.unmerged.push(path.clone());
            // Counted from the answer: a command that takes longer than the rest between two looks
            // would be asked again and again, and the driver would never leave.
            self.asked_at = Some(self.at.max(self.world.now()));
            let at = self.at;
            let further = self.rooms()?.not_requested(path, &work, at)?;
            if let Some(text) = further.filter(|text| self.further.get(path) != Some(text)) {
                self.further.insert(path.clone(), text.clone());
                self.observer.note(&Note::Warning(text));
            }
            let said = self.rooms()?.why_unmerged().unwrap_or_default();
            let said = self.options.redactor.redact(&said);
            let said: String = said.chars().take(SAID_CHARS_MAX).collect();
            if !said.is_empty()
                && self.unmerged.insert(path.clone(), said.clone()).as_ref() != Some(&said)
            {
                let (run, url) = (&self.row.run_id, work.pull_request.unwrap_or_default());
                let asks = |l: &Lane| l.steps.iter().any(|s| s.id == PULL_REQUEST_STEP);
                let next = if self.plan.lane(path).is_some_and(asks) {
                    format!(
                        "reopen it, or open another with `piton retry {run} \
                         {path}/{PULL_REQUEST_STEP} --again`, then `piton resume {run}`"
                    )
                } else {
                    // Another tool opened it, if there is one.
                    format!("when {} contains its commit, `piton resume {run}`", work.base_branch)
                };
                let text = format!(
                    "{path}: pull request {url} is not merged: {said}; {next}; `piton rollback \
                     {run} --lane {}` starts the lane over",
                    path.lane
                );
                self.observer.note(&Note::Warning(text));
            }
            Ok(())
        }
    }

    /// Lets pull requests be looked at again after a while.
    pub(super) fn forget_pull_requests(&mut self) {
        if self.asked_at.is_some_and(|at| self.at.since(at).0 >= PULL_REQUEST_EVERY_MS) {
            self.options.limits.unmerged.clear();
            self.asked_at = None;
        }
    }

    pub(super) fn remove(&mut self, path: &LanePath) -> Result<()> {
        self.commit()?;
        let (work, at) = (self.work(path), self.at);
        let artifacts = self.state.lane(path).map_or(Vec::new(), LaneState::artifacts);
        let removed = match self.rooms()?.remove(path, &work, &artifacts, at) {
            Ok(removed) => removed,
            Err(Error::World(why)) if work.dropped => {
                let fix = "put that right, then `piton resume`".to_owned();
                return self.block(path, Stage::AfterLaneStart, Refusal { why, fix });
            }
            Err(Error::World(why)) => {
                let text = format!("{path}: its worktree could not be removed: {why}");
                self.observer.note(&Note::Warning(text));
                let (lane, branch_stays) = (path.clone(), true);
                LaneRemoved { lane, snapshot: None, branch_head: None, branch_stays }.into()
            }
            Err(error) => return Err(error),
        };
        let Removed { record, why_branch_stays: why } = removed;
        if record.branch_stays && record.snapshot.is_some() {
            let why = why.unwrap_or_else(|| format!("until {} contains it", work.base_branch));
            let text = format!("{path}: branch {} stays {why}", work.branch);
            self.observer.note(&Note::Warning(text));
        }
        self.record(Event::LaneRemoved(record))
    }
}

pub(super) fn rooms_of(world: &mut dyn World) -> Result<&mut dyn Rooms> {
    let missing = "lanes in worktrees need a git repository";
    world.rooms().ok_or_else(|| Error::World(missing.to_owned()))
}

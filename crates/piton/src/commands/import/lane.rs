//! One lane that is taken over: what the repository has of it, and the events that say so.

use std::path::{Path, PathBuf};

use piton_core::LanePath;
use piton_core::event::{
    Event, LaneBegun, LaneImported, LaneMerged, LaneReady, MergedBy, Outstanding, StepProven,
};
use piton_core::lane::{Isolation, Role, SnapshotRef, Stage, StageStatus};
use piton_core::lane_state::StageRecord;
use piton_core::plan::Lane;
use piton_core::refusal::Refusal;
use piton_engine::world::Workspaces as _;
use piton_protocols::import::{ForeignLane, Retries, Stand};
use piton_workspace::refs::{self, Fence, Transaction};
use piton_workspace::worktree::{self, Spec};
use piton_workspace::{history, merge};

use crate::context::now;
use piton_world::workspaces::{CHECKOUT_WORKERS, GitWorkspaces};

/// Characters of a commit that name it to a person.
const SHA_CHARS: usize = 12;
/// Shortest name of a commit that is looked up: git's own limit.
const SHA_CHARS_MIN: usize = 4;

/// How a lane of which nothing is here goes on.
const STARTS_OVER: &str = "starts over";

/// A lane about to be taken over.
pub struct Import<'i> {
    /// The project's root.
    pub root: &'i Path,
    /// A folder for what is needed for a moment.
    pub scratch: &'i Path,
    /// The run, as it is called here.
    pub run_id: &'i str,
    /// The lane.
    pub path: &'i LanePath,
    /// The lane in the plan.
    pub planned: &'i Lane,
    /// The branch that its work goes to.
    pub base: &'i str,
    /// What its records say.
    pub foreign: ForeignLane,
    /// Takes snapshots.
    pub workspaces: &'i mut GitWorkspaces,
    /// What every ref update verifies.
    pub fence: &'i Fence,
    /// What is not known, in words.
    pub unknown: Vec<String>,
}

/// What the repository has of a lane.
struct Found {
    branch: String,
    dir: PathBuf,
    base_branch: String,
    /// Where its branch stands, if it is there.
    head: Option<String>,
    /// The commit it started from.
    start: Option<String>,
}

type Events = Vec<Event>;

impl Import<'_> {
    /// The events of the lane, and how it goes on, in words.
    pub fn events(&mut self) -> Result<(Events, String), Refusal> {
        let stages = self.foreign.records.clone();
        if self.foreign.has_unknown {
            let unknown = "records with unknown stages or statuses; the file keeps them".to_owned();
            self.unknown.push(unknown);
        }
        let found = self.look(&stages);
        let in_place = self.planned.rules.isolation.is_in_place();
        let stand = match self.foreign.stand {
            Stand::Merged if !in_place => return self.complete(stages, found),
            Stand::Merged => Stand::Worked,
            other => other,
        };
        if stand == Stand::Fresh || in_place {
            let done = if stand == Stand::Worked { self.proven(|_| true) } else { Vec::new() };
            let words = if done.is_empty() { STARTS_OVER } else { "is done" };
            return Ok(self.ended(done, stages, &found, None, None, words));
        }
        let (Some(_), Some(start)) = (&found.head, &found.start) else {
            self.unknown
                .push("where its work is: it has neither a branch nor a worktree".to_owned());
            return Ok(self.ended(Vec::new(), stages, &found, None, None, STARTS_OVER));
        };
        self.going_on(stand, stages, &found, &start.clone())
    }

    /// Looks at what the repository has of the lane.
    fn look(&mut self, stages: &[StageRecord]) -> Found {
        let usual = self.workspaces.place_of(self.path);
        let there: Vec<_> = worktree::list(self.root).unwrap_or_default();
        let there = || there.iter().filter(|e| !e.prunable && e.path != self.root);
        let recorded = self.foreign.dir.as_ref().map(PathBuf::from).filter(|dir| dir != self.root);
        let at = |dir: &PathBuf| {
            let is_it =
                |path: &Path| path == dir || path.canonicalize().ok() == dir.canonicalize().ok();
            there().find(|e| is_it(&e.path))
        };
        // A path of another machine, or from before the repository was moved, is no place to work
        // in: the lane's branch may be checked out elsewhere.
        let by_branch = || there().find(|e| e.branch.as_ref() == Some(&usual.1));
        let entry = recorded.as_ref().and_then(at).or_else(by_branch);
        let dir = entry.map_or(usual.0, |e| e.path.clone());
        let branch = entry.and_then(|e| e.branch.clone()).unwrap_or(usual.1.clone());
        let base_branch = self.base.to_owned();
        let head = refs::value(self.root, &format!("refs/heads/{branch}"));
        let noted = stages.iter().find_map(|r| {
            let early = matches!(r.stage, Stage::BeforeLaneStart | Stage::AfterLaneStart);
            r.base_sha.as_ref().filter(|_| early).and_then(|sha| self.commit(sha))
        });
        let common = head.as_ref().and_then(|head| self.start(&base_branch, head));
        Found { branch, dir, base_branch, head, start: noted.or(common) }
    }

    /// The commit of that name, whole, if it is here.
    fn commit(&self, sha: &str) -> Option<String> {
        let named = sha.len() >= SHA_CHARS_MIN && sha.chars().all(|c| c.is_ascii_hexdigit());
        named.then(|| refs::value(self.root, &format!("{sha}^{{commit}}")))?
    }

    /// Where a commit left base.
    fn start(&self, base_branch: &str, head: &str) -> Option<String> {
        let base = format!("refs/heads/{base_branch}");
        history::merge_base(self.root, &base, head)
    }

    /// A lane that is recorded complete: merged if base has its commit. Else its work goes on from
    /// where it is; and where it is nowhere here, it waits until base has it.
    fn complete(
        &mut self,
        stages: Vec<StageRecord>,
        found: Found,
    ) -> Result<(Events, String), Refusal> {
        let last = stages.iter().filter(|r| r.stage == Stage::PrePr).max_by_key(|r| r.at);
        let noted = last.and_then(|r| r.head_sha.clone());
        let here = noted.as_ref().and_then(|sha| self.commit(sha));
        let head = here.clone().or_else(|| found.head.clone().filter(|_| noted.is_none()));
        let contains =
            |sha: &String| merge::contains(self.root, &found.base_branch, sha).unwrap_or(false);
        if let Some(head) = head.clone().filter(contains) {
            let from = last.and_then(|r| r.base_sha.clone());
            return Ok(self.merged(stages, &found, from, head));
        }
        let base = found.base_branch.clone();
        let lacks = |what: &str, sha: &str| {
            let sha: String = sha.chars().take(SHA_CHARS).collect();
            format!("why it was recorded as complete: {base} does not contain {what} {sha}")
        };
        if let (Some(head), Some(start)) = (&found.head, &found.start) {
            let branch = found.branch.clone();
            self.unknown.push(lacks(&format!("its branch {branch} at"), head));
            return self.going_on(Stand::Worked, stages, &found, &start.clone());
        }
        if let Some((head, start)) = here.and_then(|h| Some((h.clone(), self.start(&base, &h)?))) {
            let full = format!("refs/heads/{}", found.branch);
            let made = Transaction::fenced(self.fence).update(&full, &head, None);
            made.commit(self.root, "piton import: its commit on record")?;
            self.unknown.push(lacks("its commit", &head));
            self.unknown.push(format!("where its branch went: {} was created again", found.branch));
            let found = Found { head: Some(head), ..found };
            return self.going_on(Stand::Worked, stages, &found, &start);
        }
        Ok(self.outstanding(stages, &found, noted))
    }

    /// A lane whose work is neither in base nor here: nobody knows whether it was merged.
    fn outstanding(
        &mut self,
        stages: Vec<StageRecord>,
        found: &Found,
        noted: Option<String>,
    ) -> (Events, String) {
        self.unknown.push(match &noted {
            Some(sha) => {
                format!("whether it was merged: its commit {sha} is not in this repository")
            }
            None => {
                "whether it was merged: it has neither a recorded commit nor a branch".to_owned()
            }
        });
        let known = self.foreign.pull_request.clone();
        let pull_request = known.unwrap_or_else(|| format!("of branch {}", found.branch));
        let mut events = vec![self.begun(found, found.start.clone())];
        events.extend(self.proven(|_| true));
        let words = format!(
            "waits until {} contains its commit or its pull request is reported merged",
            found.base_branch
        );
        let (mut events, words) = self.ended(events, stages, found, None, None, &words);
        if let Some(Event::LaneImported(event)) = events.last_mut() {
            let commit = noted.unwrap_or_default();
            event.outstanding = Some(Outstanding { commit, pull_request });
        }
        (events, words)
    }

    /// A lane whose commit base has.
    fn merged(
        &mut self,
        stages: Vec<StageRecord>,
        found: &Found,
        from: Option<String>,
        head: String,
    ) -> (Events, String) {
        let from = from.and_then(|sha| self.commit(&sha));
        let from = from.filter(|from| {
            *from != head && merge::is_ancestor(self.root, from, &head).unwrap_or(false)
        });
        if from.is_none() {
            self.unknown.push("which commits it made: a rollback cannot revert them".to_owned());
        }
        let by = if from.is_some() { MergedBy::Queue } else { MergedBy::PullRequest };
        let note = "merged before the import".to_owned();
        let merged = LaneMerged { lane: self.path.clone(), by, from, to: Some(head), note };
        let mut events = vec![self.begun(found, found.start.clone())];
        events.extend(self.proven(|_| true));
        let (mut events, words) = self.ended(events, stages, found, None, Some(merged), "is done");
        if let Some(Event::LaneImported(event)) = events.last_mut() {
            event.stays = found.dir.is_dir();
        }
        (events, words)
    }

    /// A lane whose branch is there: it becomes ours and goes on.
    fn going_on(
        &mut self,
        stand: Stand,
        mut stages: Vec<StageRecord>,
        found: &Found,
        start: &str,
    ) -> Result<(Events, String), Refusal> {
        let spec = Spec {
            run_id: self.run_id.to_owned(),
            lane: self.path.to_string(),
            path: found.dir.clone(),
            branch: found.branch.clone(),
            start: start.to_owned(),
            copy: Vec::new(),
            workers: CHECKOUT_WORKERS,
        };
        let there = worktree::adopt(self.root, &spec, self.fence)?;
        let added = worktree::add(self.root, &spec, self.fence)?;
        let dir = added.path.display().to_string();
        let fresh = self.fresh(start)?;
        let present = self.workspaces.snapshot(Some(self.path), &dir, "as it was found", now())?;
        // That of a lane's start stays what a fresh worktree has: it is where a rollback goes.
        let begun = |r: &&mut StageRecord| r.stage > Stage::AfterLaneStart;
        let newest = stages.iter_mut().filter(|r| advances(r)).max_by_key(|r| r.at);
        if let Some(newest) = newest.filter(begun) {
            newest.snapshot = Some(present.commit.clone());
            newest.head_sha = newest.head_sha.take().or_else(|| found.head.clone());
        }
        let mut events = vec![self.begun(found, Some(start.to_owned()))];
        events.push(Event::LaneReady(Box::new(LaneReady {
            lane: self.path.clone(),
            dir,
            branch: added.branch,
            head: Some(start.to_owned()),
            snapshot: Some(fresh),
            note: String::new(),
        })));
        let worked = stand == Stand::Worked;
        events.extend(self.proven(|role| match role {
            // A worktree that is there may have been left in the middle of its setup.
            Role::Setup => there && worked,
            Role::Work => worked,
            Role::Tests | Role::PullRequest | Role::Tasks | Role::Mend | Role::Validation => false,
        }));
        if !worked {
            self.unknown.push(
                "which of its tasks are done: all run again on the existing files".to_owned(),
            );
        }
        let words = if worked { "continues with its tests" } else { "continues with its tasks" };
        Ok(self.ended(events, stages, found, Some(present), None, words))
    }

    /// The files that a fresh worktree of a commit has, as a snapshot: where a rollback goes.
    fn fresh(&mut self, start: &str) -> Result<SnapshotRef, Refusal> {
        let dir = self.scratch.join(format!("import-{}", std::process::id()));
        worktree::with_scratch(self.root, &dir, start, || {
            let name = dir.display().to_string();
            self.workspaces.snapshot(Some(self.path), &name, "where it started", now())
        })?
    }

    fn begun(&self, found: &Found, base_sha: Option<String>) -> Event {
        Event::LaneBegun(Box::new(LaneBegun {
            lane: self.path.clone(),
            isolation: Isolation::Worktree,
            dir: found.dir.display().to_string(),
            branch: found.branch.clone(),
            base_branch: found.base_branch.clone(),
            base_sha,
            snapshot: None,
            note: String::new(),
        }))
    }

    /// Steps of some roles, taken for done.
    fn proven(&self, is_done: impl Fn(Role) -> bool) -> Events {
        let done = self.planned.steps.iter().filter(|s| is_done(s.role));
        done.map(|s| {
            let step = piton_core::StepPath::new(&self.path.phase, &self.path.lane, &s.id);
            let (tree, definition) = (String::new(), Some(s.definition()));
            Event::StepProven(StepProven { step, tree, definition, artifacts: Vec::new() })
        })
        .collect()
    }

    fn ended(
        &self,
        mut events: Events,
        records: Vec<StageRecord>,
        found: &Found,
        snapshot: Option<SnapshotRef>,
        merged: Option<LaneMerged>,
        words: &str,
    ) -> (Events, String) {
        let over = merged.is_some();
        let failures = if over { Vec::new() } else { self.foreign.failures.clone() };
        let Retries { begun, most } = self.foreign.retries;
        events.push(Event::LaneImported(Box::new(LaneImported {
            lane: self.path.clone(),
            records,
            snapshot,
            merged,
            stays: false,
            base_branch: found.base_branch.clone(),
            outstanding: None,
            failures,
            retried: begun.filter(|_| !over),
            retries: most,
            note: self.unknown.join("; "),
        })));
        (events, words.to_owned())
    }
}

fn advances(record: &StageRecord) -> bool {
    record.stage != Stage::RetryAttempt && record.status != StageStatus::RolledBack
}

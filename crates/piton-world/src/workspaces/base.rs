//! Whether base is as a lane needs it: it has the work of lanes that were merged elsewhere, and it is
//! checked out where lanes work in place after others, or validate them.

use piton_core::event::{LaneMerged, MergedBy};
use piton_core::lane_state::LaneWork;
use piton_core::refusal::Refusal;
use piton_core::state::{LaneState, PhaseState};
use piton_core::{LanePath, RunState};

use piton_workspace::checks::{self, Base};
use piton_workspace::merge::Rebase::{Clean, Nothing, UpToDate};
use piton_workspace::{Project, merge};

use super::GitWorkspaces;
use crate::{notes, refusals};

impl GitWorkspaces {
    /// Why a lane in place can't run here: a validation needs base, and what follows merged lanes needs
    /// their work, but something else is checked out.
    pub(super) fn off_base(&self, lane: &LanePath, state: &RunState) -> Option<Refusal> {
        let validates = state.lane(lane).is_some_and(LaneState::is_validation);
        let (base, why) = if validates {
            let of = |l: &LaneState| apart(l).map(|w| w.base_branch.clone());
            let base = state.phase(&lane.phase)?.lanes.iter().find_map(of)?;
            let why = refusals::validation_needs(&base);
            (base, why)
        } else if let Some((path, work, _)) = merged(state).next() {
            (work.base_branch.clone(), refusals::work_is_in(&path, &work.base_branch))
        } else {
            return self.not_at_base(state);
        };
        let standing = checks::find_base(&self.root, &base)?;
        if let Some(refusal) = self.switch_to(&base, &why) {
            let head = Project::discover_cached(&self.root).ok().and_then(|project| project.head());
            let has = |(_, _, commit): (_, _, &str)| {
                let head = head.as_deref().unwrap_or_default();
                merge::is_ancestor(&self.root, commit, head).unwrap_or(false)
            };
            // Another branch that has their work, such as one for a release, will do.
            return (validates || !merged(state).all(has)).then_some(refusal);
        }
        self.lacking(lane, state, &standing).err()
    }

    /// Why no lane begins where some work in place: base was named, but their files are those of another
    /// branch that is checked out.
    pub(super) fn not_at_base(&self, state: &RunState) -> Option<Refusal> {
        let base = self.options.base.as_deref()?;
        let is_apart = |(_, l): (_, &LaneState)| !l.isolation.is_in_place();
        let in_place = |(_, l): (_, &LaneState)| {
            l.isolation.is_in_place() && !l.is_validation() && !l.is_over()
        };
        let both = state.lanes().any(is_apart) && state.lanes().any(in_place);
        let begins = both && merged(state).next().is_none();
        begins.then(|| self.switch_to(base, &refusals::lanes_in_place_need(base)))?
    }

    /// The refusal that leads to a branch; nothing where it is checked out.
    fn switch_to(&self, base: &str, why: &str) -> Option<Refusal> {
        let here = Project::discover_cached(&self.root).ok().and_then(|project| project.branch());
        if here.as_deref() == Some(base) {
            return None;
        }
        let elsewhere = checks::find_base(&self.root, base).and_then(|standing| standing.worktree);
        let elsewhere = elsewhere.filter(|dir| *dir != self.root);
        Some(refusals::base_needed_here(why, base, here.as_deref(), elsewhere.as_deref()))
    }

    /// What a person should know about a validation: it runs on files that base does not have.
    pub(super) fn unsaved(&self, lane: &LanePath, state: &RunState) -> Option<String> {
        state.lane(lane).filter(|l| l.is_validation())?;
        self.clean(&self.root).err().map(|found| notes::validates_uncommitted(&found.cause))
    }

    /// What a person should know about a lane that needs one which was merged elsewhere while base lacks
    /// its commit; a refusal where base did not move since and lacks the work itself too.
    pub(super) fn lacking(
        &self,
        lane: &LanePath,
        state: &RunState,
        base: &Base,
    ) -> Result<Option<String>, Refusal> {
        let mut note = None;
        for (path, work) in needed(lane, state) {
            let Some(merged) = work.merged().filter(|m| m.by == MergedBy::PullRequest) else {
                continue;
            };
            let Some(commit) = merged.to.as_deref().filter(|_| work.base_branch == base.branch)
            else {
                continue;
            };
            if merge::is_ancestor(&self.root, commit, &base.commit).unwrap_or(true) {
                continue;
            }
            let start = work.base_sha.as_deref().unwrap_or(commit);
            let replayed = merge::rebase(&self.root, commit, start, &base.commit);
            let lacks = matches!(replayed, Ok(Clean { .. } | UpToDate { .. }));
            if lacks && merged.from.as_ref() == Some(&base.commit) {
                return Err(refusals::base_is_behind(&base.branch, &path));
            }
            if !matches!(replayed, Ok(Nothing { .. })) {
                note = Some(notes::base_lacks(&base.branch, &path));
            }
        }
        Ok(note)
    }
}

/// The work of a lane in a worktree of its own that knows its base.
fn apart(lane: &LaneState) -> Option<&LaneWork> {
    let work = lane.work.as_deref().filter(|_| lane.task.is_none());
    work.filter(|w| !w.isolation.is_in_place() && !w.base_branch.is_empty())
}

/// The lanes whose work is in base, and by which commit.
fn merged(state: &RunState) -> impl Iterator<Item = (LanePath, &LaneWork, &str)> {
    state.lanes().filter_map(|(path, lane)| {
        let work = apart(lane)?;
        let by = |m: &&LaneMerged| matches!(m.by, MergedBy::Queue | MergedBy::PullRequest);
        Some((path, work, work.merged().filter(by)?.to.as_deref()?))
    })
}

/// The lanes whose work a lane needs: those it names, and those of the phases before its own.
fn needed<'a>(lane: &LanePath, state: &'a RunState) -> Vec<(LanePath, &'a LaneWork)> {
    let (Some(own), Some(phase)) = (state.lane(lane), state.phase(&lane.phase)) else {
        return Vec::new();
    };
    let before = |p: &PhaseState| phase.needs.contains(&p.id) || phase.after.contains(&p.id);
    let all = state.phases.iter().flat_map(|p| p.lanes.iter().map(move |l| (p, l)));
    let found = all.filter_map(|(p, l)| {
        let path = LanePath { phase: p.id.clone(), lane: l.id.clone() };
        let is_needed = before(p) || own.needs.contains(&path);
        Some((path, l.work.as_deref()?)).filter(|_| is_needed)
    });
    found.collect()
}

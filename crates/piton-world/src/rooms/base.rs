//! Whether base is what a lane needs it to be: with the work of lanes that were merged elsewhere, and
//! checked out where what follows lanes, or validates them, runs in place.

use piton_core::event::{LaneMerged, MergedBy};
use piton_core::lane_state::LaneWork;
use piton_core::shell::git;
use piton_core::state::{LaneState, PhaseState};
use piton_core::{LanePath, RunState};
use piton_engine::world::Refusal;
use piton_workspace::checks::{self, Base};
use piton_workspace::merge::Rebase::{Clean, Nothing, UpToDate};
use piton_workspace::{Project, merge};

use super::GitRooms;

impl GitRooms {
    /// Why a lane in place can't run here: a validation is about base, and what follows merged lanes is
    /// about their work; something else is checked out.
    pub(super) fn off_base(&self, lane: &LanePath, state: &RunState) -> Option<Refusal> {
        let validates = state.lane(lane).is_some_and(LaneState::is_validation);
        let (base, why) = if validates {
            let of = |l: &LaneState| apart(l).map(|w| w.base_branch.clone());
            let base = state.phase(&lane.phase)?.lanes.iter().find_map(of)?;
            let why = format!("the validation runs on {base}");
            (base, why)
        } else if let Some((path, work, _)) = merged(state).next() {
            (work.base_branch.clone(), format!("the work of {path} is in {}", work.base_branch))
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
            // Another branch that has their work, such as one for a release, is as good.
            return (validates || !merged(state).all(has)).then_some(refusal);
        }
        self.lacking(lane, state, &standing).err()
    }

    /// Why no lane begins where some work in place: base was named, and their files are not those of
    /// base, but of what is checked out.
    pub(super) fn not_at_base(&self, state: &RunState) -> Option<Refusal> {
        let base = self.options.base.as_deref()?;
        let is_apart = |(_, l): (_, &LaneState)| !l.isolation.is_in_place();
        let in_place = |(_, l): (_, &LaneState)| {
            l.isolation.is_in_place() && !l.is_validation() && !l.is_over()
        };
        let both = state.lanes().any(is_apart) && state.lanes().any(in_place);
        let begins = both && merged(state).next().is_none();
        let why = || format!("the lanes of this run go to {base}, and some work in place");
        begins.then(|| self.switch_to(base, &why()))?
    }

    /// The refusal that leads to a branch; nothing where it is checked out.
    fn switch_to(&self, base: &str, why: &str) -> Option<Refusal> {
        let here = Project::discover_cached(&self.root).ok().and_then(|project| project.branch());
        if here.as_deref() == Some(base) {
            return None;
        }
        let found = here.unwrap_or_else(|| "no branch".to_owned());
        let elsewhere = checks::find_base(&self.root, base).and_then(|standing| standing.worktree);
        let free = elsewhere.filter(|dir| *dir != self.root).map_or_else(String::new, |dir| {
            let dir = dir.display().to_string();
            format!("`{}`, ", git(Some(&dir), &["switch", "--detach"]))
        });
        let (switch, run) = (git(None, &["switch", base]), &self.run_id);
        Some(Refusal {
            why: format!("{why}, and {found} is checked out here"),
            fix: format!("{free}`{switch}`, then `piton resume {run}`"),
        })
    }

    /// What a person should know of a validation across lanes: it runs on files that base does not have.
    pub(super) fn unsaved(&self, lane: &LanePath, state: &RunState) -> Option<String> {
        state.lane(lane).filter(|l| l.is_validation())?;
        let found = self.clean(&self.root).err()?;
        let what = found.what;
        Some(format!("{what}; the validation runs on these files: commit them if it is to count"))
    }

    /// What a lane should know that needs one which was merged elsewhere while base lacks its commit;
    /// a refusal where base is as it was then, and does not have the work under another name either.
    pub(super) fn lacking(
        &self,
        lane: &LanePath,
        state: &RunState,
        base: &Base,
    ) -> Result<Option<String>, Refusal> {
        let mut note = None;
        for (path, work) in needed(lane, state) {
            let Some(merged) = work.merged.as_ref().filter(|m| m.by == MergedBy::PullRequest)
            else {
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
            let (branch, run) = (&base.branch, &self.run_id);
            if lacks && merged.from.as_ref() == Some(&base.commit) {
                return Err(Refusal {
                    why: format!("{branch} does not contain {path}, which was merged elsewhere"),
                    fix: format!(
                        "bring {branch} up to date (`git pull`), then `piton resume {run}`"
                    ),
                });
            }
            if !matches!(replayed, Ok(Nothing { .. })) {
                note = Some(format!(
                    "{branch} does not contain the commit of {path}, which was merged elsewhere: see \
                     that {branch} is up to date"
                ));
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
        Some((path, work, work.merged.as_ref().filter(by)?.to.as_deref()?))
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

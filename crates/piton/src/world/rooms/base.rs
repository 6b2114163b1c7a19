//! Whether base is what a lane needs it to be: with the work of lanes that were merged elsewhere, and
//! checked out where the validation across lanes runs.

use piton_core::event::MergedBy;
use piton_core::lane_state::LaneWork;
use piton_core::shell::git;
use piton_core::state::{LaneState, PhaseState};
use piton_core::{LanePath, RunState};
use piton_engine::world::Refusal;
use piton_formats::lanes::fix::is_validation;
use piton_workspace::checks::{self, Base};
use piton_workspace::merge::Rebase::{Clean, Nothing, UpToDate};
use piton_workspace::{Project, merge};

use super::GitRooms;

impl GitRooms {
    /// Why a validation across lanes can't run here: its evidence is about base, and something else is
    /// checked out.
    pub(super) fn off_base(&self, lane: &LanePath, state: &RunState) -> Option<Refusal> {
        state.lane(lane).filter(|l| is_validation(l))?;
        let phase = state.phase(&lane.phase)?;
        let of = |l: &LaneState| {
            let work = l.work.as_ref().filter(|w| !w.isolation.is_in_place() && l.task.is_none());
            work.map(|w| w.base_branch.clone()).filter(|b| !b.is_empty())
        };
        let base = phase.lanes.iter().find_map(of)?;
        let here = Project::known(&self.root).ok().and_then(|project| project.branch());
        let standing = checks::standing(&self.root, &base)?;
        if here.as_ref() != Some(&base) {
            let found = here.unwrap_or_else(|| "no branch".to_owned());
            let elsewhere = standing.worktree.filter(|dir| *dir != self.root);
            let free = elsewhere.map_or_else(String::new, |dir| {
                let dir = dir.display().to_string();
                format!("`{}`, ", git(Some(&dir), &["switch", "--detach"]))
            });
            let (switch, run) = (git(None, &["switch", &base]), &self.run_id);
            return Some(Refusal {
                why: format!("the validation runs on {base}, and {found} is checked out here"),
                fix: format!("{free}`{switch}`, then `piton resume {run}`"),
            });
        }
        self.lacking(lane, state, &standing).err()
    }

    /// What a person should know of a validation across lanes: it runs on files that base does not have.
    pub(super) fn unsaved(&self, lane: &LanePath, state: &RunState) -> Option<String> {
        state.lane(lane).filter(|l| is_validation(l))?;
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

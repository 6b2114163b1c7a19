//! What a rewind would change, for people and for programs: files, branches, base.
//!
//! It is worked out once, before anything is asked or done, and foresees what would be refused.

use piton_core::event::{Revert, RewindIntended, RewindKind};
use piton_core::lane::Stage;
use piton_core::lane_state::Act;
use piton_core::refusal::Refusal;
use piton_core::{GateRef, LanePath, RunState, approval, request};
use piton_engine::store::Loaded;
use piton_engine::world::{Rewind, RewindTarget};
use piton_view::rewind::{Base, BaseMove, Branch, Files, How, Kept, MadeWorkspace, RewindPlan};
use piton_workspace::restore::{self, Change, ChangeKind, KeptWhy};
use piton_workspace::snapshot::Missed;
use piton_world::workspaces::{GitWorkspaces, Preview};

use super::tasks;
use crate::commands::current_files;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::ui;

/// What a rewind would do.
pub struct Planned {
    /// As it is told.
    pub plan: RewindPlan,
    /// What it would do to each work tree that is there.
    previews: Vec<Preview>,
    /// Why it can't be done.
    refused: Option<Refusal>,
}

impl Planned {
    /// Works out what a rewind would do.
    pub fn new(context: &Context, loaded: &Loaded, rewind: &Rewind) -> Result<Self> {
        let mut rewind = rewind.clone();
        rewind.with_tasks(&loaded.state);
        let rewind = &rewind;
        let present = current_files::present(context, loaded, &rewind.targets)?;
        let plan = RewindPlan {
            run_id: loaded.row.run_id.clone(),
            kind: rewind.intent.kind,
            to: rewind.intent.to.clone(),
            workspaces: Vec::new(),
            base: Vec::new(),
            approvals_taken_back: taken_back(&loaded.state, rewind),
            approvals_that_come_back: comes_back(&loaded.state, rewind),
            gates: request::gates(&loaded.state),
            runs_again: tasks::run_again(&loaded.state, rewind),
            something_to_do: acts(loaded, rewind),
            refused: None,
            cut_short: Context::view(loaded).cut_short(),
            driven_by: None,
            to_the_start: false,
        };
        let mut planned = Self { plan, previews: Vec::new(), refused: None };
        if rewind.targets.is_empty() && rewind.merges.is_empty() {
            return Ok(planned);
        }
        let mut workspaces = current_files::workspaces(context, loaded)?;
        for (target, present) in rewind.targets.iter().zip(present) {
            planned.check_workspace(
                context,
                &workspaces,
                target,
                present.as_deref(),
                &rewind.targets,
            )?;
        }
        planned.look_at_bases(context, &mut workspaces, loaded, rewind)?;
        planned.plan.refused = planned.refused.as_ref().map(ToString::to_string);
        Ok(planned)
    }

    fn check_workspace(
        &mut self,
        context: &Context,
        workspaces: &GitWorkspaces,
        target: &RewindTarget,
        present: Option<&str>,
        all: &[RewindTarget],
    ) -> Result<()> {
        let (plan, root) = (&mut self.plan, &context.project.root);
        let mut workspace = MadeWorkspace { lane: target.lane.clone(), ..MadeWorkspace::default() };
        let head = piton_workspace::refs::value(root, &format!("refs/heads/{}", target.branch));
        let branch = |to| Branch { name: target.branch.clone(), from: head, to };
        let refused = if target.goes.is_some() {
            let below = std::path::Path::new(&target.dir).strip_prefix(root);
            let dir = below.map_or(target.dir.clone(), |below| below.display().to_string());
            workspace.worktree_goes = Some(dir);
            workspace.branch = Some(branch(None));
            present.and_then(|present| workspaces.preview_removal(target, present))
        } else {
            workspace.branch = target.head_to.clone().map(|to| branch(Some(to)));
            workspace.worktree_comes_back = present.is_none();
            let preview = present.map(|present| workspaces.preview(target, present));
            match preview.transpose()? {
                None => workspaces.preview_recreation(target),
                Some(mut preview) => {
                    tasks::separate_tasks(&mut preview, target, all);
                    tell_files(&mut workspace, &preview, plan.kind);
                    let refused = preview.refused.clone();
                    self.previews.push(preview);
                    refused
                }
            }
        };
        plan.something_to_do |= workspace.changes();
        self.refused = self.refused.take().or(refused);
        plan.workspaces.push(workspace);
        Ok(())
    }

    /// Each merge is taken back on top of the one before.
    fn look_at_bases(
        &mut self,
        context: &Context,
        workspaces: &mut GitWorkspaces,
        loaded: &Loaded,
        rewind: &Rewind,
    ) -> Result<()> {
        let Self { plan, refused, .. } = self;
        let mut before: Vec<Revert> = Vec::new();
        let undone = loaded.state.undo.iter().find(|act| Some(act.id) == rewind.intent.undoes);
        // Undoing anything but a merge may bring one to base again.
        let takes_back = undone.is_none_or(|act| act.act == Act::Merge);
        for merge in &rewind.merges {
            let earlier = before.iter().rev().find(|r| r.base_branch == merge.base_branch);
            let from = earlier.map(|r| r.to.clone()).unwrap_or_default();
            let wanted = Revert { from, ..merge.clone() };
            let found = workspaces.preview_revert(&wanted, plan.kind).map_err(Refusal::from);
            let (from, how, to) = match &found {
                Ok((revert, _)) if revert.from == revert.to => {
                    (&revert.from, BaseMove::Stays, Some(&revert.to))
                }
                Ok((revert, true)) => (&revert.from, BaseMove::Commit, None),
                Ok((revert, false)) => (&revert.from, BaseMove::Move, Some(&revert.to)),
                Err(why) => {
                    refused.get_or_insert_with(|| why.clone().because(&merge.lane));
                    (&wanted.from, BaseMove::Refused, None)
                }
            };
            let (lane, branch) = (merge.lane.clone(), merge.base_branch.clone());
            let work = loaded.state.lane(&lane).and_then(|l| l.work.as_ref());
            let begun = work.and_then(|w| w.record(Stage::BeforeLaneStart));
            let seeded = takes_back && begun.is_some_and(|record| record.snapshot.is_some());
            let changes = match &found {
                Ok((revert, _)) => restore::diff(&context.project.root, &revert.from, &revert.to),
                Err(_) => Ok(Vec::new()),
            };
            let changes = changes.map_err(|e| CommandError::failed("snapshot", e.to_string()))?;
            let (from, to) = (Some(from.clone()).filter(|from| !from.is_empty()), to.cloned());
            let files = files(&changes);
            plan.base.push(Base { lane, branch, how, from, to, files, seeded });
            before.extend(found.ok().map(|(revert, _)| revert));
        }
        Ok(())
    }

    /// Whether something differs, and stays as it is.
    pub fn keeps(&self) -> bool {
        self.previews.iter().any(|preview| !preview.kept.is_empty())
    }

    /// Paths that stay although the checkpoint says otherwise; those that appeared outside the run
    /// apart, which are recorded.
    pub fn stays(&self) -> impl Iterator<Item = String> {
        let kept = self.previews.iter().flat_map(|preview| &preview.kept);
        kept.filter(|kept| kept.why != KeptWhy::Foreign).map(|kept| plain(&kept.path))
    }

    /// The files that it changes.
    pub fn paths(&self) -> Vec<String> {
        let changes = self.previews.iter().flat_map(|preview| &preview.changes);
        changes.map(|change| plain(&change.path)).collect()
    }

    /// Whether a path, or one below it, changes or is kept from changing.
    pub fn touches(&self, path: &[u8]) -> bool {
        let is_in = |found: &[u8]| {
            let rest = found.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        self.previews.iter().any(|p| {
            p.changes.iter().any(|c| is_in(&c.path)) || p.kept.iter().any(|k| is_in(&k.path))
        })
    }

    /// Tells, and ends there if nothing is to be done or it cannot be; true if it shall be done.
    pub fn tell(&self, context: &Context, dry_run: bool) -> Result<bool> {
        let plan = &self.plan;
        let only_told = dry_run || !plan.something_to_do;
        let words = plan.render(ui::place());
        if context.json && only_told {
            ui::data_json(plan);
        } else if !words.is_empty() {
            ui::say_as_is(words.trim_end());
        }
        let Some(why) = self.refused.as_ref().filter(|_| plan.something_to_do) else {
            return Ok(!only_told);
        };
        if context.json && dry_run {
            // The plan says it.
            return Err(CommandError::silent(Kind::Failed));
        }
        Err(super::not_rewound(why))
    }
}

/// The gates whose approval a rewind takes back; so does the undo of an undo.
fn taken_back(state: &RunState, rewind: &Rewind) -> Vec<GateRef> {
    let intent = RewindIntended { reverts: rewind.merges.clone(), ..rewind.intent.clone() };
    let again = undone_gates(state, rewind).filter(|(gate, was)| state.approved(gate) && !was);
    let again = again.map(|(gate, _)| gate.clone());
    approval::taken_back(state, &intent).into_iter().chain(again).collect()
}

/// The gates whose approval comes back with an undo.
fn comes_back(state: &RunState, rewind: &Rewind) -> Vec<GateRef> {
    let back = undone_gates(state, rewind).filter(|(gate, was)| *was && !state.approved(gate));
    back.map(|(gate, _)| gate.clone()).collect()
}

/// The gates that an undo changes, and whether they were approved before what it undoes.
fn undone_gates<'s>(
    state: &'s RunState,
    rewind: &Rewind,
) -> impl Iterator<Item = (&'s GateRef, bool)> {
    let undone = state.undo.iter().find(|act| Some(act.id) == rewind.intent.undoes);
    undone.into_iter().flat_map(|act| &act.gates).map(|(gate, was)| {
        let decision = was.as_ref().and_then(|was| was.decision.as_ref());
        (gate, decision.is_some_and(|decision| decision.approved))
    })
}

/// Whether a rewind is an act although no file changes.
fn acts(loaded: &Loaded, rewind: &Rewind) -> bool {
    let stands = |lane: &LanePath| {
        let work = loaded.state.lane(lane).and_then(|l| l.work.as_ref());
        // Until it goes on, a lane knows where it was last taken back to.
        work.and_then(|w| w.rolled_back.as_ref()) == Some(&rewind.intent.to)
    };
    !rewind.merges.is_empty()
        || rewind.intent.undoes.is_some()
        || !rewind.intent.lanes.iter().all(stands)
}

fn tell_files(workspace: &mut MadeWorkspace, preview: &Preview, kind: RewindKind) {
    let missed = |m: &Missed| Kept { path: plain(&m.path), why: m.why.to_string() };
    let kept = |k: &restore::Kept| Kept { path: plain(&k.path), why: why_kept(k.why, kind) };
    workspace.files = files(&preview.changes);
    workspace.kept = preview.kept.iter().map(kept).collect();
    workspace.kept.extend(
        preview
            .missed
            .iter()
            .map(missed)
            .map(|Kept { path, why }| Kept { path, why: format!("not in the checkpoint: {why}") }),
    );
    workspace.lacking = preview.gone.iter().map(missed).collect();
    workspace.large = preview.large.iter().map(|path| plain(path)).collect();
}

fn files(changes: &[Change]) -> Files {
    let how = |change: &Change| match change.kind {
        ChangeKind::Added => How::Restored,
        ChangeKind::Deleted => How::Deleted,
        _ => How::Changed,
    };
    changes.iter().map(|change| (how(change), plain(&change.path))).collect()
}

/// Why a path stays; a restore does not ask who made it.
fn why_kept(why: KeptWhy, kind: RewindKind) -> String {
    match (why, kind) {
        (KeptWhy::Foreign, RewindKind::Restore) => {
            "the checkpoint does not have it; --exact removes it".to_owned()
        }
        (KeptWhy::Foreign, RewindKind::Rollback) => {
            "not from this run; --exact removes it".to_owned()
        }
        _ => why.to_string(),
    }
}

fn plain(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

//! Rollback, restore and undo: the present is snapshotted, the intent made durable, files go back.
//!
//! A driver that finds an intent without an outcome carries it out again: going back to a snapshot
//! is idempotent, and what was there before stands in the snapshots that the intent names.

use piton_core::event::{Event, MergedBy, Revert, RewindIntended, RewindKind, Rewound};
use piton_core::refusal::Refusal;
use piton_core::{LanePath, approval};

use super::Driver;
use crate::error::{Error, Result};
use crate::world::Rewind;

/// Who puts torn files back: no person asked for it.
const ITSELF: &str = "piton";

fn no_repository() -> Refusal {
    Refusal::new("no-repository", "there is no git repository, so there are no snapshots")
}

impl Driver<'_> {
    /// Carries out what a former driver intended.
    pub(super) fn finish_rewind(&mut self) -> Result<()> {
        let Some(intent) = &self.state.rewinding else { return Ok(()) };
        if intent.kind == RewindKind::Restore && intent.by == ITSELF {
            // A person may have edited such files since: it is looked again which are torn.
            let reverted = "torn files were being put back; they are looked for again".to_owned();
            return self.record(Event::Rewound(Rewound { reverted }));
        }
        self.warn("a rollback that was cut short is finished".to_owned());
        self.commit()?;
        self.carry_out_rewind().map(drop)
    }

    /// Puts files back that a restart of the machine tore, as an act that can be undone. Nothing goes
    /// on with torn ones.
    pub(super) fn put_torn_back(&mut self, busy: &[LanePath]) -> Result<()> {
        let Some(workspaces) = self.world.workspaces() else { return Ok(()) };
        let (targets, notes) = workspaces.torn(&self.state, busy, self.clock.at)?;
        for note in notes {
            self.warn(note);
        }
        if targets.is_empty() {
            return Ok(());
        }
        let intent = RewindIntended {
            kind: RewindKind::Restore,
            to: "the state before the restart".to_owned(),
            stage: None,
            after_event: 0,
            points: Vec::new(),
            lanes: Vec::new(),
            workspaces: Vec::new(),
            reverts: Vec::new(),
            undoes: None,
            by: ITSELF.to_owned(),
        };
        let failed = self.rewind(Rewind { intent, targets, merges: Vec::new() })?;
        let why = |why: Refusal| why.because("files that a restart tore can't be restored");
        failed.map_or(Ok(()), |refusal| Err(Error::World(why(refusal))))
    }

    /// Goes back; nothing of the run is at work any more.
    pub(super) fn rewind(&mut self, mut rewind: Rewind) -> Result<Option<Refusal>> {
        if let Some(why) = self.outdated(&rewind.intent, &rewind.merges) {
            return Ok(Some(why));
        }
        rewind.with_tasks(&self.state);
        let Rewind { mut intent, mut targets, merges } = rewind;
        for target in &mut targets {
            let lane = target.lane.as_ref().and_then(|path| self.plan.lane(path));
            target.copy = lane.map(|lane| lane.rules.copy.clone()).unwrap_or_default();
        }
        self.files.fresh.clear();
        if !targets.is_empty() || !merges.is_empty() {
            let Some(workspaces) = self.world.workspaces() else {
                return Ok(Some(no_repository()));
            };
            for target in &targets {
                match workspaces.plan_rewind(target, self.clock.at) {
                    Ok(workspace) => intent.workspaces.push(workspace),
                    Err(why) => return Ok(Some(why)),
                }
            }
            for merge in &merges {
                // Each is taken back on top of the one before.
                let mut before = intent.reverts.iter().rev();
                let before = before.find(|r| r.base_branch == merge.base_branch);
                let from = before.map(|r| r.to.clone()).unwrap_or_default();
                match workspaces.plan_revert(&Revert { from, ..merge.clone() }, intent.kind) {
                    Ok(revert) => intent.reverts.push(revert),
                    Err(why) => return Ok(Some(why)),
                }
            }
        }
        self.record(Event::RewindIntended(Box::new(intent)))?;
        self.commit()?;
        self.carry_out_rewind()
    }

    /// Why a rollback is not what was asked for any more: a merge under way was finished first.
    fn outdated(&self, intent: &RewindIntended, merges: &[Revert]) -> Option<Refusal> {
        let in_base = |path: &&LanePath| {
            let work = self.state.lane(path).and_then(|l| l.work.as_ref());
            let by = work.and_then(|w| w.merged());
            by.is_some_and(|m| m.by == MergedBy::Queue && m.to.is_some())
        };
        let known = |path: &&LanePath| merges.iter().any(|m| m.lane == **path);
        let rollback = intent.kind == RewindKind::Rollback;
        let mut lanes = intent.lanes.iter().filter(|_| rollback);
        let lane = lanes.find(|path| in_base(path) && !known(path))?;
        let cause = format!("the merge of {lane} was finished first");
        Some(Refusal::new("base-moved", cause).or("run the command again to revert it too"))
    }

    fn carry_out_rewind(&mut self) -> Result<Option<Refusal>> {
        let Some(intent) = self.state.rewinding.clone() else { return Ok(None) };
        self.exchange_plan(intent.undoes)?;
        let done = if intent.workspaces.is_empty() && intent.reverts.is_empty() {
            Ok(())
        } else {
            self.world.workspaces().ok_or_else(|| Error::World(no_repository()))?.rewind(&intent)
        };
        let refusal = done.err();
        let reverted = refusal.as_ref().map(ToString::to_string).unwrap_or_default();
        let gates = approval::taken_back(&self.state, &intent);
        self.record(Event::Rewound(Rewound { reverted: reverted.clone() }))?;
        if reverted.is_empty() {
            let (act, why) = (Some(self.state.events), format!("rollback to {}", intent.to));
            let mut events = approval::reopened(gates, &intent.by, &why, act).into_iter();
            events.try_for_each(|event| self.record(event))?;
        }
        let undone = reverted.is_empty() && intent.kind == RewindKind::Undo;
        if undone {
            self.follow_record()?;
            self.set_up_returned(&intent)?;
        }
        self.commit()?;
        self.clear_dropped()?;
        if undone {
            self.remove_again()?;
        }
        Ok(refusal)
    }

    /// Lets the setup of tasks run again whose worktrees came back: what git ignores is not in them.
    fn set_up_returned(&mut self, intent: &RewindIntended) -> Result<()> {
        let is_task = |path: &&LanePath| self.state.lane(path).is_some_and(|l| l.task.is_some());
        let new = intent.workspaces.iter().filter(|workspace| workspace.comes());
        let lanes: Vec<LanePath> =
            new.filter_map(|workspace| workspace.lane.as_ref()).filter(is_task).cloned().collect();
        lanes.iter().try_for_each(|lane| self.set_up_again(lane))
    }

    /// Removes worktrees that an undo had brought back, and that go now that it is undone.
    fn remove_again(&mut self) -> Result<()> {
        let touched = self.state.undo.last().into_iter().flat_map(|act| &act.lanes);
        let touched: Vec<LanePath> = touched.map(|(lane, _)| lane.clone()).collect();
        for path in touched {
            let work = self.work(&path);
            if work.merged().is_some() && work.blocked.is_none() && !work.is_over() {
                self.remove(&path)?;
            }
        }
        self.commit()
    }
}

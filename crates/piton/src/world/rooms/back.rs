//! Takes the files of a workspace back to a snapshot; what is there is snapshotted first.

use piton_core::{LanePath, Timestamp};
use piton_workspace::restore;
use piton_workspace::snapshot::{Meta, Snapshot};

use super::{GitRooms, names};

impl GitRooms {
    /// Snapshots a workspace that shall become what another snapshot is.
    pub(super) fn take_before(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        to: &str,
        why: &str,
        at: Timestamp,
    ) -> Result<Snapshot, String> {
        let fence = self.fenced().map_err(|e| e.to_string())?;
        let message = format!("{}: {why}", self.run_id);
        let meta = Meta { message: &message, at: at.0 };
        let (chain, rules) = (self.chain(lane), self.rules_of(dir));
        let taker = self.taker(dir)?;
        let way = (to, lane.is_some());
        restore::present(taker, &rules, &chain, &fence, &meta, way).map_err(|e| e.to_string())
    }

    /// Takes files back to a snapshot; what is there is snapshotted first.
    pub(super) fn go_back(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        to: &str,
        scope: &restore::Scope,
        at: Timestamp,
    ) -> Result<(), String> {
        let present = self.take_before(lane, dir, to, "before going back", at)?;
        let (workspace, rules) = (self.workspace(dir), self.rules_of(dir));
        let plan = restore::plan(&workspace, &rules, &present, to, scope);
        let plan = plan.map_err(|e| e.to_string())?;
        if scope.own {
            refuse_blocked(&plan, dir)?;
        }
        restore::execute(&workspace, &rules, &plan).map(drop).map_err(|e| e.to_string())
    }
}

/// Refuses to leave a lane's worktree with something else than it began with: that would be merged.
fn refuse_blocked(plan: &restore::Plan, dir: &str) -> Result<(), String> {
    let paths: Vec<String> = plan.blocked().map(|path| names::shown(&names::text(path))).collect();
    if paths.is_empty() {
        return Ok(());
    }
    Err(format!(
        "what is in the place of {} in {dir} is in no snapshot, so it can't be taken away: move it \
         out of there first",
        paths.join(", ")
    ))
}

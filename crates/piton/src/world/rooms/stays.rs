//! What somebody did in a lane's worktree after its work was committed: it is in no merge, so the
//! worktree stays, and it is told.
//!
//! A lane may wait for its pull request for days, with its folder open in somebody's editor.

use std::path::Path;

use piton_core::lane_state::LaneWork;
use piton_core::{LanePath, Timestamp};
use piton_engine::world::Refusal;
use piton_workspace::snapshot::Snapshot;
use piton_workspace::{Git, Project, merge, refs, whole};

use super::whole::removed_by_hand;
use super::{GitRooms, branch_head};
use crate::ui::lane_words::short;
use crate::ui::text::sanitize;

/// Files that are named; the rest is counted.
const NAMED_MAX: usize = 5;

impl GitRooms {
    /// Why a lane's worktree can't go: there is work in it that base does not have.
    pub(super) fn keeps_work(
        &mut self,
        work: &LaneWork,
        taken: &Snapshot,
        head: Option<&str>,
    ) -> Option<Refusal> {
        let what = self.further_work(work, taken, head)?;
        let why = format!("it alone holds {what}");
        Some(Refusal { why, fix: removed_by_hand(Path::new(&work.dir)) })
    }

    /// What a lane that waits for its pull request holds that the request does not have.
    pub(super) fn waiting_work(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        at: Timestamp,
    ) -> Option<String> {
        if !Path::new(&work.dir).is_dir() {
            return None;
        }
        let head = branch_head(&self.root, &work.branch);
        let taken = self.take(Some(lane), &work.dir, "while it waits", at).ok()?;
        let what = self.further_work(work, &taken, head.as_deref())?;
        Some(format!(
            "{lane}: in {} there is work that is not in its pull request: {what}; commit and push \
             it, or move it away: the worktree stays for as long as it holds that",
            work.dir
        ))
    }

    /// Work in a lane's worktree that is neither in its commit nor in base, in words. Costs nothing
    /// where the worktree is as it was committed.
    fn further_work(
        &mut self,
        work: &LaneWork,
        taken: &Snapshot,
        head: Option<&str>,
    ) -> Option<String> {
        let committed = work.committed.as_ref().filter(|_| !work.dropped)?;
        let dir = Path::new(&work.dir);
        let waited = work.pull_request.is_some();
        // Nobody has the time to leave the branch of a lane that goes from its commit to base.
        let own = || Project::known(dir).ok().and_then(|project| project.head());
        let head = head.unwrap_or(&committed.commit).to_owned();
        let head = if waited { own().unwrap_or(head) } else { head };
        let is_known = head == committed.commit;
        let kept = if is_known {
            Some(committed.tree.clone())
        } else {
            refs::value(&self.root, &format!("{head}^{{tree}}"))
        };
        let found = if whole::is_due(&taken.degraded) {
            self.whole_of(&work.dir, taken)
        } else {
            taken.tree.clone()
        };
        if kept.as_ref() != Some(&found) && !is_clean(dir) {
            let kept = kept.unwrap_or_else(|| committed.tree.clone());
            return Some(format!("{}, which nobody committed", self.changed(&kept, &found)));
        }
        if is_known || merge::contains(&self.root, &work.base_branch, &head).unwrap_or(false) {
            return None;
        }
        let (from, to) = (short(&committed.commit), short(&head));
        Some(format!("commits made after {from}, up to {to}"))
    }

    /// The files in which two trees differ; the first few, the rest counted.
    fn changed(&self, from: &str, to: &str) -> String {
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to];
        let bytes = Git::at(&self.root).args(args).bytes().unwrap_or_default();
        let all: Vec<&[u8]> = bytes.split(|b| *b == 0).filter(|name| !name.is_empty()).collect();
        let shown = all.iter().take(NAMED_MAX);
        let mut names: Vec<String> =
            shown.map(|name| sanitize(&String::from_utf8_lossy(name))).collect();
        match all.len().saturating_sub(NAMED_MAX) {
            0 if names.is_empty() => return "files".to_owned(),
            0 => {}
            more => names.push(format!("{more} more")),
        }
        names.join(", ")
    }
}

/// Whether git finds nothing to commit either: a file that it would convert on the next commit is no
/// work of anybody's.
fn is_clean(dir: &Path) -> bool {
    let status = ["status", "--porcelain", "--untracked-files=all"];
    Git::at(dir).args(status).text().is_ok_and(|text| text.is_empty())
}

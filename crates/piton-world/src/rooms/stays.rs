//! What somebody did in a lane's worktree after its work was committed: it is in no merge, so the
//! worktree stays, and it is told.
//!
//! A lane may wait for its pull request for days, with its folder open in somebody's editor.

use std::path::Path;

use piton_core::lane_state::LaneWork;
use piton_core::{LanePath, Timestamp};
use piton_engine::world::Refusal;
use piton_workspace::snapshot::Snapshot;
use piton_workspace::{Git, Project, merge, missed, refs};

use super::whole::removed_by_hand;
use super::{GitRooms, branch_head};
use piton_core::text::{first_few, short};

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
        let own = || Project::discover_cached(dir).ok().and_then(|project| project.head());
        let head = head.unwrap_or(&committed.commit).to_owned();
        let head = if waited { own().unwrap_or(head) } else { head };
        let is_known = head == committed.commit;
        let kept = if is_known {
            Some(committed.tree.clone())
        } else {
            refs::value(&self.root, &format!("{head}^{{tree}}"))
        };
        let found = if missed::is_incomplete(&taken.degraded) {
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
        named(all.into_iter()).unwrap_or_else(|| "files".to_owned())
    }
}

/// Why a lane's worktree can't go: artifacts of its steps are in no commit and no snapshot. Success was
/// told of them, so they do not go without a word.
pub(super) fn keeps_artifacts(
    work: &LaneWork,
    taken: &Snapshot,
    artifacts: &[String],
) -> Option<Refusal> {
    let dir = Path::new(&work.dir);
    // What is too large is in the commit, or keeps the worktree for itself.
    let missed = |path: &String| taken.degraded.iter().any(|m| m.path == path.as_bytes());
    let why = match missed::not_in_tree(dir, &taken.tree, artifacts) {
        Ok(only) => held_alone(&only.into_iter().filter(|p| !missed(p)).collect::<Vec<_>>())?,
        Err(error) => error.to_string(),
    };
    Some(Refusal { why: format!("it alone holds {why}"), fix: removed_by_hand(dir) })
}

/// Artifacts that only a worktree holds, in words.
pub fn held_alone(artifacts: &[String]) -> Option<String> {
    let names = named(artifacts.iter().map(String::as_bytes))?;
    let which = if artifacts.len() == 1 { "an artifact" } else { "artifacts" };
    Some(format!("{names}, {which} that git ignores"))
}

/// The first few of some files, the rest counted.
pub(super) fn named<'a>(all: impl ExactSizeIterator<Item = &'a [u8]>) -> Option<String> {
    first_few(all.map(|name| String::from_utf8_lossy(name).into_owned()), NAMED_MAX)
}

/// Whether git finds nothing to commit either: a file that it would convert on the next commit is no
/// work of anybody's.
fn is_clean(dir: &Path) -> bool {
    let status = ["status", "--porcelain", "--untracked-files=all"];
    Git::at(dir).args(status).text().is_ok_and(|text| text.is_empty())
}

//! Pull requests that lanes wait for: how often they are looked at, and what is said of them once.

use std::collections::BTreeMap;

use piton_core::event::MergedBy;
use piton_core::lane::Role;
use piton_core::{LanePath, Timestamp, remedy};

use super::Driver;
use crate::error::Result;
use crate::world::PullRequest;

/// How often a pull request is looked at while something else goes on.
const PULL_REQUEST_EVERY_MS: u64 = 30_000;
/// Most characters that are recorded of what a command prints about a pull request.
const SAID_CHARS_MAX: usize = 200;

#[derive(Default)]
pub(super) struct PullRequests {
    /// When one was last looked at.
    checked_at: Option<Timestamp>,
    /// What was last said of those that are not merged.
    unmerged: BTreeMap<LanePath, String>,
    /// What was last said of work that they do not have.
    lacking: BTreeMap<LanePath, String>,
}

/// Whether something is said of a lane for the first time, or otherwise than before.
fn is_news(said: &mut BTreeMap<LanePath, String>, lane: &LanePath, text: &str) -> bool {
    said.insert(lane.clone(), text.to_owned()).is_none_or(|before| before != text)
}

impl Driver<'_> {
    pub(super) fn check_pull_request(&mut self, path: &LanePath) -> Result<()> {
        self.commit()?;
        let work = self.work(path);
        let said = match self.workspaces()?.pull_request(path, &work)? {
            PullRequest::Merged(note) => {
                let to = work.committed().map(|c| c.commit.clone());
                // Where base stood then: what needs the lane can tell whether somebody pulled since.
                let from = self.workspaces()?.tip(&work.base_branch);
                return self.merged(path, MergedBy::PullRequest, from, to, &note);
            }
            PullRequest::Open(said) => said.unwrap_or_default(),
        };
        self.options.limits.unmerged.push(path.clone());
        let at = self.clock.at;
        // Counted from the answer: a command that takes longer than the rest between two looks
        // would be asked again and again, and the driver would never leave.
        self.pull_requests.checked_at = Some(at.max(self.world.now()));
        let lacking = self.workspaces()?.not_requested(path, &work, at)?;
        if let Some(text) = lacking
            && is_news(&mut self.pull_requests.lacking, path, &text)
        {
            self.warn(text);
        }
        let said: String = self.redact(&said).chars().take(SAID_CHARS_MAX).collect();
        if said.is_empty() || !is_news(&mut self.pull_requests.unmerged, path, &said) {
            return Ok(());
        }
        let (run, url) = (self.run.id(), work.pull_request.unwrap_or_default());
        let asks = self.state.lane(path).and_then(|lane| lane.step_for(Role::PullRequest));
        let next = if let Some(step) = asks {
            let step = &step.id;
            remedy![
                Words "reopen it, or open another with ",
                Piton "retry {run} {path}/{step} --again",
                Words ", then run ",
                Piton "resume {run}",
            ]
        } else {
            // Another tool opened it, if there is one.
            let base = &work.base_branch;
            remedy![Words "when {base} contains its commit, run ", Piton "resume {run}"]
        };
        let lane = &path.lane;
        let warning = remedy![Words "{path}: pull request {url} is not merged: {said}; "].and(next);
        self.warn(warning.and(remedy![
            Words "; ", Piton "rollback {run} --lane {lane}", Words " starts the lane over"
        ]));
        Ok(())
    }

    /// Lets pull requests be looked at again after a while.
    pub(super) fn forget_pull_requests(&mut self) {
        let checked = &mut self.pull_requests.checked_at;
        if checked.is_some_and(|at| self.clock.at.since(at).0 >= PULL_REQUEST_EVERY_MS) {
            self.options.limits.unmerged.clear();
            *checked = None;
        }
    }
}

//! What happens to lanes beside their steps, in words.

use piton_core::Event;
use piton_core::event::{LaneMerged, MergedBy, RewindKind};

use super::text::sanitize;

/// An event of a lane in words.
pub fn event(event: &Event) -> String {
    match event {
        Event::LaneBegun(e) if e.branch.is_empty() => format!("{} begins in place", e.lane),
        Event::LaneBegun(e) => {
            let base = e.base_sha.as_deref().map(short).unwrap_or_default();
            format!("{} begins from {} ({base})", e.lane, sanitize(&e.base_branch))
        }
        Event::LaneBlocked(e) => {
            format!("{} is blocked: {}; {}", e.lane, sanitize(&e.why), sanitize(&e.fix))
        }
        Event::LaneReady(e) if e.branch.is_empty() => format!("{} is ready", e.lane),
        Event::LaneReady(e) => {
            format!("{} works on {} in {}", e.lane, sanitize(&e.branch), sanitize(&e.dir))
        }
        Event::StepProven(e) if e.tree.is_empty() => format!("{} is not needed", e.step),
        Event::StepProven(e) => format!("{} passed on this very tree before", e.step),
        Event::LaneCommitted(e) if !e.changed => format!("{} changed nothing", e.lane),
        Event::LaneCommitted(e) => format!("{} is commit {}", e.lane, short(&e.commit)),
        Event::LaneRebased(e) => {
            format!("{} stands on {} as {}", e.lane, short(&e.onto), short(&e.commit))
        }
        Event::LaneReopened(e) => {
            format!("{} goes on at {}: {}", e.lane, e.step.step, sanitize(&e.error))
        }
        Event::MergeIntended(e) => {
            let (from, to) = (short(&e.from), short(&e.to));
            format!("{} is being merged: {} from {from} to {to}", e.lane, sanitize(&e.base_branch))
        }
        Event::MergeMissed(e) => {
            format!("{}: base moved to {} meanwhile; once more", e.lane, short(&e.found))
        }
        Event::LaneMerged(e) => merged(e),
        Event::PullRequestOpened(e) => format!("{} has pull request {}", e.lane, sanitize(&e.url)),
        Event::LaneRemoved(e) => format!("the worktree of {} is removed", e.lane),
        Event::RewindIntended(e) => {
            let what = match e.kind {
                RewindKind::Restore => "restoring files of",
                RewindKind::Undo => "undoing",
                RewindKind::Rollback | RewindKind::Unknown => "rolling back to",
            };
            format!("{what} {}", sanitize(&e.to))
        }
        Event::Rewound(e) if e.reverted.is_empty() => "files and steps are back".to_owned(),
        Event::Rewound(e) => format!("nothing changed: {}", sanitize(&e.reverted)),
        _ => "something happened that has no words yet".to_owned(),
    }
}

fn merged(e: &LaneMerged) -> String {
    match (e.by, &e.to) {
        (MergedBy::Queue, Some(to)) => format!("{} is merged: base is {}", e.lane, short(to)),
        (MergedBy::PullRequest, _) => {
            format!("{}: its pull request is merged: {}", e.lane, sanitize(&e.note))
        }
        _ => format!("{} is done: {}", e.lane, sanitize(&e.note)),
    }
}

/// The first characters of a commit's name, as git shows them.
pub fn short(commit: &str) -> String {
    sanitize(&commit.chars().take(10).collect::<String>())
}

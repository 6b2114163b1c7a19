//! How far a lane is: one enum, and one total [`next`] that says where each change leads.
//!
//! What belongs to a place on the way stands in its variant, so that nothing has to be reset when the
//! lane goes on or back. A change that cannot follow is [`Illegal`]. What blocks a lane, its
//! checkpoints and its counters are not part of this: they do not decide where it can go.

use serde::{Deserialize, Serialize};

use crate::lane_event::{LaneMerged, MergeIntended, MergedBy};

/// How far a lane is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneProgress {
    /// Nothing of it is there: it was refused at its start, taken back to before it, or imported.
    #[default]
    NotBegun,
    /// Its preconditions hold; its worktree is to be made.
    Begun,
    /// Its workspace is there, but it begins again, from the base of now.
    BeginsAgain,
    /// Its workspace is there, and its steps work.
    Working {
        /// The conflict that its work resolves, until what comes of it is a commit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conflict: Option<Conflict>,
    },
    /// Both sides of a conflict are to be put into its workspace.
    Conflicted(Conflict),
    /// What it did is committed, and the tasks that a step of it waits for may start from there.
    Forked {
        /// The step.
        step: String,
    },
    /// Its work is a commit of its branch.
    Committed(Committed),
    /// The same, and it has no workspace here: another tool handed it on, or the worktree is removed.
    CommittedElsewhere(Committed),
    /// Its commit stands on the newest base, and holds the merge queue.
    Rebased {
        /// Its work.
        committed: Committed,
        /// The commit of base.
        onto: String,
    },
    /// Base is being moved to its commit.
    Merging {
        /// Its work.
        committed: Committed,
        /// The move.
        intent: MergeIntended,
    },
    /// Its merge was undone: it waits for a person's word.
    HeldBack(Committed),
    /// Its work is where it belongs; its worktree is to be removed unless the work stays there.
    Merged(Landed),
    /// The same, and a person brought its worktree back.
    Restored(Landed),
    /// The same, and its worktree is removed.
    Removed(Landed),
    /// The same, and its worktree stays because it could not be removed.
    Kept(Landed),
    /// It is a task that starts over; what it did goes first.
    Dropped,
}

/// A lane's work as a commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Committed {
    /// The commit.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// Whether it differs from what the lane started from.
    pub changed: bool,
}

/// Two commits that are in conflict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The commit of base.
    pub onto: String,
    /// The lane's own.
    pub head: String,
}

/// Work that is where it belongs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Landed {
    /// How it got there.
    pub merged: LaneMerged,
    /// Its commit, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed: Option<Committed>,
}

/// What happens to a lane.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It begins; in place there is nothing to be made.
    Begun {
        /// Whether it works in the project's root.
        in_place: bool,
    },
    /// It is refused at its start.
    Refused,
    /// Its workspace is there, with both sides of a conflict if there was one.
    Ready,
    /// A step started that changes its work.
    WorkStarted,
    /// Its work is committed.
    Committed(Committed),
    /// Its commit stands on a newer base.
    Rebased {
        /// Its work.
        committed: Committed,
        /// The commit of base.
        onto: String,
    },
    /// Its work must go on after its steps had finished.
    Reopened(Option<Conflict>),
    /// Its tasks may start.
    Forked {
        /// The step that waits for them.
        step: String,
    },
    /// Its tasks are back in it.
    Joined,
    /// Base is about to be moved to its commit.
    MergeIntended(MergeIntended),
    /// Somebody else moved base.
    MergeMissed,
    /// Its work is where it belongs.
    Merged(LaneMerged),
    /// Its worktree is removed.
    Removed,
    /// Its worktree could not be removed.
    Kept,
    /// Its tests passed.
    TestsPassed {
        /// The tree they ran on.
        tree: String,
        /// Whether it has a pull request, which has the commit that was tested before.
        requested: bool,
    },
    /// Its tests shall run again.
    TestsAsked,
    /// A driver looks again at what blocked it: a person may have changed its files or base.
    Unblocked,
    /// A rollback took it back.
    RolledBack(Back),
    /// Its merge was undone.
    MergeUndone,
    /// The removal of its worktree was undone.
    RemovalUndone,
    /// That undo was undone.
    RemovalRedone,
    /// It is a task that starts over.
    Dropped,
    /// Another tool's record of it is taken over.
    Imported(Option<Handover>),
}

/// Where a rollback takes a lane.
#[derive(Clone, Debug, PartialEq)]
pub enum Back {
    /// To the base of now, without what it had merged.
    Over,
    /// To its start, in a worktree of its own.
    Start,
    /// To its work, or to its commit if that is still what its branch has.
    Work {
        /// The commit of its branch.
        head: Option<String>,
    },
}

/// What another tool did of a lane.
#[derive(Clone, Debug, PartialEq)]
pub enum Handover {
    /// It is merged, and perhaps its worktree is there.
    Merged(LaneMerged, bool),
    /// It waits for its pull request.
    Outstanding(Committed),
}

/// A change that cannot follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{change} cannot follow {at}")]
pub struct Illegal {
    /// Where the lane is.
    pub at: String,
    /// What would happen to it.
    pub change: String,
}

/// Where a change leads.
#[expect(clippy::match_same_arms, reason = "each arm is a rule of its own")]
pub fn next(at: &LaneProgress, change: Change) -> Result<LaneProgress, Illegal> {
    use LaneProgress as P;
    Ok(match (at, change) {
        (
            P::NotBegun
            | P::BeginsAgain
            | P::Working { .. }
            | P::CommittedElsewhere(_)
            | P::Removed(_)
            | P::Kept(_),
            Change::Begun { in_place },
        ) => {
            if in_place {
                working(None)
            } else {
                P::Begun
            }
        }

        (P::Begun, Change::Refused) => P::NotBegun,
        (P::Working { .. }, Change::Refused) => P::BeginsAgain,

        (P::Begun | P::BeginsAgain, Change::Ready) => working(None),
        (P::Conflicted(conflict), Change::Ready) => working(Some(conflict.clone())),
        (P::Working { .. } | P::Forked { .. } | P::Committed(_), Change::Ready) => at.clone(),

        // Without a repository nothing is begun, and steps run all the same.
        (P::NotBegun | P::Working { .. }, Change::WorkStarted) => at.clone(),
        (_, Change::WorkStarted) if at.may_work() => working(None),
        (_, Change::Committed(committed)) if at.is_uncommitted() => P::Committed(committed),
        (P::Committed(_), Change::Committed(committed)) => P::Committed(committed),
        (P::Committed(_) | P::Rebased { .. }, Change::Rebased { committed, onto }) => {
            P::Rebased { committed, onto }
        }
        (P::Working { .. } | P::Conflicted(_), Change::Reopened(None)) => at.clone(),
        (_, Change::Reopened(conflict)) if at.may_work() || at.is_uncommitted() => {
            conflict.map_or_else(|| working(None), P::Conflicted)
        }
        (_, Change::Forked { step }) if at.may_work() => P::Forked { step },
        (P::Forked { .. }, Change::Joined) => working(None),
        (_, Change::Joined) if at.may_work() => at.clone(),

        (P::Rebased { committed, .. }, Change::MergeIntended(intent)) => {
            P::Merging { committed: committed.clone(), intent }
        }
        (P::Merging { committed, .. }, Change::MergeMissed) => P::Committed(committed.clone()),
        (
            P::Committed(committed)
            | P::CommittedElsewhere(committed)
            | P::Rebased { committed, .. }
            | P::Merging { committed, .. },
            Change::Merged(merged),
        ) => P::Merged(Landed { merged, committed: Some(committed.clone()) }),
        (P::Merged(landed), Change::Removed) if !landed.stays() => P::Removed(landed.clone()),
        (P::Merged(landed), Change::Kept) if !landed.stays() => P::Kept(landed.clone()),
        (P::Dropped, Change::Removed) => P::NotBegun,

        // A person put something right in the worktree: what is to be merged is committed anew.
        (
            P::Committed(c) | P::Rebased { committed: c, .. },
            Change::TestsPassed { tree, requested },
        ) if c.tree != tree && !requested => working(None),
        (P::Merged(landed), Change::TestsPassed { tree, requested: false })
            if landed.stays() && landed.committed.as_ref().is_some_and(|c| c.tree != tree) =>
        {
            working(None)
        }
        // It stayed on its branch because its tests were left out: its way to base goes on.
        (P::Merged(landed), Change::TestsAsked) if landed.stays() => {
            landed.committed.clone().map_or_else(|| working(None), P::Committed)
        }

        (P::Committed(_) | P::Rebased { .. }, Change::Unblocked) => working(None),
        (_, Change::RolledBack(back)) => at.rolled_back(back),
        (
            P::Merging { committed, .. } | P::Rebased { committed, .. } | P::Committed(committed),
            Change::MergeUndone,
        ) => P::HeldBack(committed.clone()),
        (P::Merged(landed), Change::RemovalUndone) if !landed.stays() => {
            P::Restored(landed.clone())
        }
        (P::Removed(landed), Change::RemovalRedone) => P::Merged(landed.clone()),
        (P::NotBegun | P::CommittedElsewhere(_) | P::Removed(_) | P::Kept(_), Change::Dropped) => {
            P::NotBegun
        }
        (_, Change::Dropped) => P::Dropped,
        (_, Change::Imported(None)) => at.clone(),
        (_, Change::Imported(Some(handover))) => at.handed_over(handover),
        // What is looked at again, tested or undone may be in any state, and mostly stays so.
        (
            _,
            Change::Refused
            | Change::TestsPassed { .. }
            | Change::TestsAsked
            | Change::Unblocked
            | Change::MergeUndone
            | Change::RemovalUndone
            | Change::RemovalRedone,
        ) => at.clone(),
        (_, change) => return Err(Illegal { at: name(at), change: name(&change) }),
    })
}

fn working(conflict: Option<Conflict>) -> LaneProgress {
    LaneProgress::Working { conflict }
}

impl Landed {
    /// Whether it stays on its branch, and so in its worktree.
    pub fn stays(&self) -> bool {
        self.merged.by == MergedBy::Kept
    }
}

impl LaneProgress {
    /// Its work as a commit.
    pub fn committed(&self) -> Option<&Committed> {
        match self {
            Self::Committed(committed)
            | Self::CommittedElsewhere(committed)
            | Self::HeldBack(committed)
            | Self::Rebased { committed, .. }
            | Self::Merging { committed, .. } => Some(committed),
            Self::Merged(landed)
            | Self::Restored(landed)
            | Self::Removed(landed)
            | Self::Kept(landed) => landed.committed.as_ref(),
            Self::NotBegun
            | Self::Begun
            | Self::BeginsAgain
            | Self::Working { .. }
            | Self::Conflicted(_)
            | Self::Forked { .. }
            | Self::Dropped => None,
        }
    }

    /// How its work got to where it belongs.
    pub fn merged(&self) -> Option<&LaneMerged> {
        match self {
            Self::Merged(landed)
            | Self::Restored(landed)
            | Self::Removed(landed)
            | Self::Kept(landed) => Some(&landed.merged),
            _ => None,
        }
    }

    /// Whether its workspace is there to be worked in.
    pub fn has_workspace(&self) -> bool {
        !matches!(
            self,
            Self::NotBegun
                | Self::Begun
                | Self::CommittedElsewhere(_)
                | Self::Removed(_)
                | Self::Kept(_)
                | Self::Dropped
        )
    }

    /// Whether its steps may work: its workspace is there, and nothing else is to be done first.
    fn may_work(&self) -> bool {
        use LaneProgress as P;
        let at_work = matches!(self, P::Working { .. } | P::Forked { .. } | P::Committed(_));
        at_work || matches!(self, P::Rebased { .. } | P::Merged(_) | P::Restored(_))
    }

    /// Whether what is in its workspace is to be committed once its steps are over.
    fn is_uncommitted(&self) -> bool {
        self.has_workspace() && self.committed().is_none() && self.merged().is_none()
    }

    fn rolled_back(&self, back: Back) -> Self {
        match (self, back) {
            (Self::Dropped, _) => Self::Dropped,
            (Self::Begun, Back::Work { .. }) => Self::Begun,
            (Self::NotBegun | Self::Begun, _) | (_, Back::Over) => Self::NotBegun,
            (_, Back::Start) if self.has_workspace() => Self::BeginsAgain,
            (_, Back::Start) => Self::NotBegun,
            (_, Back::Work { head }) => {
                let committed = self.committed().filter(|c| head.as_ref() == Some(&c.commit));
                match (committed.cloned(), self.has_workspace()) {
                    (Some(committed), true) => Self::Committed(committed),
                    (Some(committed), false) => Self::CommittedElsewhere(committed),
                    (None, true) => working(None),
                    (None, false) => Self::NotBegun,
                }
            }
        }
    }

    fn handed_over(&self, handover: Handover) -> Self {
        let committed = self.committed().cloned();
        match handover {
            Handover::Merged(merged, true) => Self::Restored(Landed { merged, committed }),
            Handover::Merged(merged, false) => Self::Removed(Landed { merged, committed }),
            Handover::Outstanding(work) if self.has_workspace() => Self::Committed(work),
            Handover::Outstanding(work) => Self::CommittedElsewhere(work),
        }
    }
}

/// The name of a variant.
fn name(of: &impl std::fmt::Debug) -> String {
    format!("{of:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
#[path = "lane_progress/tests.rs"]
mod tests;

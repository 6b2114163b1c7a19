//! What a rewind does to the branch that a lane was merged to, and to the files there.

use piton_core::LanePath;
use piton_core::event::RewindKind;
use piton_workspace::restore::Change;
use serde_json::{Value, json};

use super::plan::named;
use piton_core::text::short;

/// What happens to the branch that a lane was merged to.
pub struct BasePlan {
    /// The lane.
    pub lane: LanePath,
    /// The branch.
    pub branch: String,
    /// Where it stands, or will by then.
    pub from: String,
    /// How it goes on from there.
    pub how: BaseMove,
    /// The files that differ then, in its work tree too if it has one.
    pub changes: Vec<Change>,
    /// Whether the lane began with uncommitted changes of the user's, which got to base with it.
    pub seeded: bool,
}

/// How a branch goes on.
pub enum BaseMove {
    /// A new commit takes back what the lane did.
    Commit,
    /// It goes to a commit that is there.
    To(String),
    /// What the lane did is not there any more.
    Stays,
    /// It cannot be done.
    Refused,
}

impl BasePlan {
    /// For people.
    pub fn words(&self, kind: RewindKind) -> String {
        let Self { lane, branch, from, how, .. } = self;
        let what = match kind {
            RewindKind::Undo => "undoes what was done to it there",
            _ => "takes back what it merged",
        };
        match how {
            BaseMove::Commit => {
                let on =
                    if from.is_empty() { String::new() } else { format!(", on {}", short(from)) };
                format!("{lane}: a commit on {branch} {what}{on}")
            }
            BaseMove::To(to) => {
                format!("{lane}: {branch} moves from {} to {}", short(from), short(to))
            }
            BaseMove::Stays => format!("{lane}: {branch} stays: nothing of it is there any more"),
            BaseMove::Refused => format!("{lane}: a commit on {branch} cannot be made"),
        }
    }

    /// As data.
    pub fn json(&self) -> Value {
        let (how, to) = match &self.how {
            BaseMove::Commit => ("commit", None),
            BaseMove::To(to) => ("move", Some(to)),
            BaseMove::Stays => ("stays", Some(&self.from)),
            BaseMove::Refused => ("refused", None),
        };
        let (restored, deleted) = named(&self.changes);
        let from = Some(&self.from).filter(|from| !from.is_empty());
        json!({
            "lane": self.lane.to_string(),
            "branch": self.branch,
            "how": how,
            "from": from,
            "to": to,
            "restored": restored,
            "deleted": deleted,
            "seeded": self.seeded,
        })
    }
}

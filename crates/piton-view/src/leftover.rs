//! What the repository has to say about a run: what merged lanes left there, and bases that moved.

use std::path::PathBuf;

use piton_core::LanePath;
use piton_core::lane_state::base_moved;
use piton_core::shell::git;

use crate::place::Place;
use crate::shape::shapes;
use crate::text::sanitize;

shapes! {
    /// A branch that is left of a merged lane, perhaps with its worktree.
    Leftover {
        run_id: String, lane: LanePath, branch: String, head: String, base: String,
        worktree: Option<PathBuf>,
        /// Whether base contains it by now.
        contained: bool,
        /// Whether it stands where it was merged: its worktree is nobody's need any more.
        #[serde(skip)] merged: bool,
        /// Whether its commits change nothing: base needs none of them.
        #[serde(skip)] empty: bool,
        /// What in its worktree is nowhere else, in words.
        #[serde(skip_serializing_if = "Option::is_none")] holds: Option<String>,
    }

    /// A lane whose base moved, since the commit of it that the lane works on, while it is under way.
    Moved { lane: LanePath, base: String, from: String, to: String }
}

impl Leftover {
    /// What is left and why, in words.
    pub fn words(&self) -> String {
        let Self { lane, branch, base, .. } = self;
        let tree = self.worktree.as_ref().map(|tree| sanitize(&tree.display().to_string()));
        if let (Some(holds), Some(tree)) = (&self.holds, &tree) {
            let holds = sanitize(holds);
            return format!("worktree {tree} of {lane} is left over: only it has {holds}");
        }
        let (branch, base) = (sanitize(branch), sanitize(base));
        let tree = tree.map_or(" is".to_owned(), |tree| format!(" and its worktree {tree} are"));
        let why = match (self.contained, self.empty) {
            (true, _) => format!("{base} now contains it"),
            (false, true) => "it changes nothing".to_owned(),
            (false, false) => format!("{base} does not contain it yet"),
        };
        format!("branch {branch} of {lane}{tree} left: {why}")
    }

    /// What to do about it.
    pub fn next(&self, place: &Place) -> String {
        let gc = format!("`{}`", place.piton("gc"));
        if let (Some(_), Some(tree)) = (&self.holds, &self.worktree) {
            let tree = tree.display();
            return format!(
                "move it out of {tree}, push it or delete it; then {gc} removes the worktree"
            );
        }
        if self.contained || self.empty {
            return format!("{gc} removes it");
        }
        let mut commands = Vec::new();
        match &self.worktree {
            Some(_) if self.merged => return format!("{gc} removes its worktree"),
            Some(tree) => {
                // It is locked, so that nobody removes it by mistake.
                let tree = tree.display().to_string();
                commands.push(git(None, &["worktree", "unlock", &tree]));
                commands.push(git(None, &["worktree", "remove", &tree]));
            }
            None => {}
        }
        commands.push(git(None, &["branch", "-D", &self.branch]));
        sanitize(&format!(
            "update {}, then {gc} removes it; if it was merged as another commit: `{}`",
            self.base,
            commands.join(" && ")
        ))
    }

    /// Whether something of it can go now.
    pub fn goes(&self) -> bool {
        let merged = self.merged && self.worktree.is_some();
        self.holds.is_none() && (self.contained || self.empty || merged)
    }
}

impl Moved {
    /// What moved, in words.
    pub fn words(&self) -> String {
        let moved = base_moved(&self.base, &self.from, &self.to).unwrap_or_default();
        format!("{}: {}", self.lane, sanitize(&moved))
    }
}

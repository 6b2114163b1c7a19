//! What a rollback, restore or undo would change: files, branches, base, approvals.

use std::fmt::Write as _;

use piton_core::event::RewindKind;
use piton_core::lane::Stage;
use piton_core::text::{first_few, short};
use piton_core::{GateRef, LanePath};
use serde::Serialize;

use crate::place::Place;
use crate::shape::shapes;
use crate::text::{count, sanitize};

/// Paths of each kind that are named before a question; the rest is counted.
const PATHS_NAMED_MAX: usize = 20;

shapes! {
    /// What a rewind would do.
    RewindPlan {
        run_id: String, #[serde(rename = "plan")] kind: RewindKind, to: String,
        /// Whether it changes anything at all.
        something_to_do: bool,
        /// Why it cannot be done as things are.
        refused: Option<String>,
        /// What an act that was cut short left half done: it is finished first.
        cut_short: Option<String>,
        /// Who drives the run, and ends first.
        driven_by: Option<String>,
        workspaces: Vec<MadeWorkspace>,
        base: Vec<Base>,
        /// Lanes whose steps run again.
        runs_again: Vec<LanePath>,
        approvals_taken_back: Vec<GateRef>, approvals_that_come_back: Vec<GateRef>,
        /// What gates ask for.
        #[serde(skip)] gates: Vec<(GateRef, String)>,
        /// Whether lanes that are merged go to their start although another point was asked for.
        #[serde(skip)] to_the_start: bool,
    }

    /// What happens to one work tree.
    #[derive(Default)]
    MadeWorkspace {
        lane: Option<LanePath>, worktree_comes_back: bool, worktree_goes: Option<String>,
        #[serde(flatten)] files: Files, kept: Vec<Kept>,
        /// What the checkpoint does not hold and is not there now.
        lacking: Vec<Kept>,
        /// Large files that git restores.
        large: Vec<String>,
        branch: Option<Branch>,
    }

    /// The files that change.
    #[derive(Default)]
    Files {
        restored: Vec<String>, deleted: Vec<String>,
        /// The first of them as they are told.
        #[serde(skip)] told: Vec<String>,
    }

    /// A path that stays, or stays away, and why.
    Kept { path: String, why: String }

    /// Where the branch of a lane goes.
    Branch {
        name: String, from: Option<String>,
        /// Nowhere: it is deleted.
        to: Option<String>,
    }

    /// What happens to the branch that a lane was merged to.
    Base {
        lane: LanePath, branch: String, how: BaseMove,
        /// Where it stands, or will by then.
        from: Option<String>,
        to: Option<String>,
        /// The files that differ then, in its work tree too if it has one.
        #[serde(flatten)] files: Files,
        /// Whether the lane began with uncommitted changes of the user's, which got to base with it.
        seeded: bool,
    }
}

/// How a file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum How {
    Restored,
    Deleted,
    Changed,
}

impl FromIterator<(How, String)> for Files {
    fn from_iter<T: IntoIterator<Item = (How, String)>>(all: T) -> Self {
        let mut files = Self::default();
        for (how, path) in all {
            if files.told.len() < PATHS_NAMED_MAX {
                let word = match how {
                    How::Restored => "restore",
                    How::Deleted => "delete ",
                    How::Changed => "change ",
                };
                files.told.push(format!("{word} {}", sanitize(&path)));
            }
            let list = if how == How::Deleted { &mut files.deleted } else { &mut files.restored };
            list.push(path);
        }
        files
    }
}

impl Files {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.restored.len() + self.deleted.len()
    }

    fn tell(&self, out: &mut String) {
        self.told.iter().for_each(|line| named(out, line));
        more(out, self.count());
    }
}

/// How a branch goes on.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseMove {
    /// A new commit takes back what the lane did.
    Commit,
    /// It goes to a commit that is there.
    Move,
    /// What the lane did is not there any more.
    Stays,
    /// It cannot be done.
    Refused,
}

impl RewindPlan {
    /// For people.
    pub fn render(&self, place: &Place) -> String {
        let mut out = String::new();
        if let Some(words) = &self.cut_short {
            let _ = writeln!(out, "{words}; this command finishes it first");
        }
        let run = &self.run_id;
        if let Some(driver) = &self.driven_by {
            let _ = writeln!(
                out,
                "run {run} is driven by {driver}, which is ended first, with its steps"
            );
        }
        self.workspaces.iter().for_each(|workspace| workspace.tell(&mut out));
        for base in &self.base {
            let lane = &base.lane;
            if self.to_the_start {
                let start = Stage::BeforeLaneStart;
                let _ = writeln!(
                    out,
                    "{lane}: it is merged, so it goes back to {start} and all its steps run again"
                );
            }
            let _ = writeln!(out, "{lane}: {}", base.words(self.kind));
            base.files.tell(&mut out);
            if base.seeded {
                let restore = format!("restore {lane}@before_lane_start --run {run} --to DIR");
                let _ = writeln!(
                    out,
                    "{lane}: it started with your uncommitted changes, which were merged with it \
                     and now leave the work tree; `{}` writes the files with them to a folder",
                    place.piton(restore)
                );
            }
        }
        for (gate, name) in &self.gates {
            let how = match gate {
                gate if self.approvals_taken_back.contains(gate) => {
                    "is taken back; you will be asked again"
                }
                gate if self.approvals_that_come_back.contains(gate) => "comes back",
                _ => continue,
            };
            let name = sanitize(name);
            let _ = writeln!(out, "gate \"{name}\" ({gate}): its approval {how}");
        }
        let again = self.runs_again.iter().map(ToString::to_string);
        if let Some(lanes) = first_few(again, PATHS_NAMED_MAX) {
            let _ = writeln!(out, "later steps run again in {lanes}");
        }
        out
    }
}

impl Base {
    fn words(&self, kind: RewindKind) -> String {
        let branch = &self.branch;
        let commit = |commit: &Option<String>| commit.as_deref().map(short).unwrap_or_default();
        let what = match kind {
            RewindKind::Undo => "undoes that",
            _ => "takes back what it merged",
        };
        match self.how {
            BaseMove::Commit => {
                let on = self.from.as_deref().map(|from| format!(", on {}", short(from)));
                format!("a commit on {branch} {what}{}", on.unwrap_or_default())
            }
            BaseMove::Move => {
                format!("{branch} moves from {} to {}", commit(&self.from), commit(&self.to))
            }
            BaseMove::Stays => format!("{branch} stays: it no longer has the change"),
            BaseMove::Refused => format!("a commit on {branch} cannot be made"),
        }
    }
}

impl MadeWorkspace {
    /// Whether anything of it changes.
    pub fn changes(&self) -> bool {
        let moves = |branch: &Branch| branch.from != branch.to;
        self.worktree_comes_back
            || self.worktree_goes.is_some()
            || self.files.count() + self.large.len() > 0
            || self.branch.as_ref().is_some_and(moves)
    }

    fn tell(&self, out: &mut String) {
        let name = self.lane.as_ref().map_or("the project".to_owned(), ToString::to_string);
        let files = self.files.count();
        let _ = match &self.worktree_goes {
            Some(dir) => writeln!(
                out,
                "{name}: its worktree {dir} is removed\n  \
                 undo restores it, except for files that git ignores"
            ),
            None if self.worktree_comes_back => writeln!(out, "{name}: its worktree is restored"),
            None => writeln!(out, "{name}: {} will change", count(files, "file")),
        };
        self.files.tell(out);
        list(out, &self.kept, |Kept { path, why }| format!("stays   {} ({why})", sanitize(path)));
        list(out, &self.lacking, |Kept { path, why }| {
            format!("lacks   {} (not in the checkpoint: {why}; not restored)", sanitize(path))
        });
        list(out, &self.large, |path| format!("large   {} (restored by git)", sanitize(path)));
        if let Some(Branch { name, from, to }) = &self.branch {
            let from = from.as_deref().map(short);
            let _ = match (from, to.as_deref().map(short)) {
                (Some(from), Some(to)) if from == to => {
                    writeln!(out, "  branch  {name} stays at {to}")
                }
                (Some(from), None) => writeln!(out, "  branch  {name} at {from} is deleted"),
                (None, None) => Ok(()),
                (from, Some(to)) => {
                    let from = from.as_deref().unwrap_or("nothing");
                    writeln!(out, "  branch  {name} from {from} to {to}")
                }
            };
        }
    }
}

/// Names the first of a list, and counts the rest.
fn list<T>(out: &mut String, all: &[T], line: impl Fn(&T) -> String) {
    all.iter().take(PATHS_NAMED_MAX).for_each(|one| named(out, &line(one)));
    more(out, all.len());
}

fn named(out: &mut String, line: &str) {
    let _ = writeln!(out, "  {line}");
}

fn more(out: &mut String, count: usize) {
    if count > PATHS_NAMED_MAX {
        let _ = writeln!(out, "  and {} more", count - PATHS_NAMED_MAX);
    }
}

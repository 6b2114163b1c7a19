//! What `piton gc` deletes.

use std::fmt::Write as _;
use std::path::PathBuf;

use piton_core::Status;
use piton_core::budget::size;

use crate::leftover::Leftover;
use crate::place::{At, Place};
use crate::shape::shapes;
use crate::text::{count, sanitize};

shapes! {
    /// What goes, or went.
    #[derive(Default)]
    Gone {
        dry_run: bool, runs: Vec<Run>,
        /// Folders whose run is gone already.
        folders: Vec<PathBuf>,
        /// Snapshots of runs that the ledger does not know any more.
        snapshots: Vec<Orphan>,
        /// Worktrees whose run goes or is gone.
        worktrees: Vec<Tree>,
        /// What goes without a question: nothing of it can be missed.
        chaff: Chaff,
        /// What is left of merged lanes.
        branches: Vec<Leftover>,
    }

    /// A run.
    Run {
        run_id: String, status: Status, plan: String, updated_at: At, bytes: u64,
        /// What its snapshots take beyond everything else.
        snapshot_bytes: u64,
    }

    /// Snapshots without a run.
    Orphan {
        /// The run, as its refs name it.
        run_id: String,
        bytes: u64,
    }

    /// A worktree without a run.
    Tree { path: PathBuf, run_id: String, lane: String }

    /// Old looks, caches and trash.
    #[derive(Copy, Default)]
    Chaff { count: usize, bytes: u64 }
}

impl Gone {
    /// Whether nothing of it needs a word of a person.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
            && self.folders.is_empty()
            && self.snapshots.is_empty()
            && self.worktrees.is_empty()
    }

    /// The plan for people: what goes, and what stays although it could be missed by nobody.
    pub fn plan(&self, place: &Place) -> (String, String) {
        let (mut goes, mut stays) = (String::new(), String::new());
        for run in &self.runs {
            let Run { run_id, status, updated_at, bytes, snapshot_bytes, .. } = run;
            let snapshots = match snapshot_bytes {
                0 => String::new(),
                bytes => format!(", {} of snapshots", size(*bytes)),
            };
            let (plan, bytes) = (sanitize(&run.plan), size(*bytes));
            let _ = writeln!(
                goes,
                "delete run {run_id} ({status}, {updated_at}, {plan}): {bytes}{snapshots}"
            );
        }
        for folder in &self.folders {
            let _ = writeln!(goes, "delete folder {} (its run is gone)", folder.display());
        }
        for Orphan { run_id, bytes } in &self.snapshots {
            let (run, bytes) = (sanitize(run_id), size(*bytes));
            let _ = writeln!(goes, "delete snapshots of {run} (its run is gone): {bytes}");
        }
        for Tree { path, run_id, lane } in &self.worktrees {
            let (path, run, lane) = (path.display(), sanitize(run_id), sanitize(lane));
            let _ =
                writeln!(goes, "delete worktree {path} (lane {lane} of {run}; its branch stays)");
        }
        if self.chaff.count > 0 {
            let Chaff { count, bytes } = self.chaff;
            let bytes = size(bytes);
            let _ =
                writeln!(goes, "delete temporary snapshots, caches and trash ({count}): {bytes}");
        }
        for left in &self.branches {
            let (branch, base) = (sanitize(&left.branch), sanitize(&left.base));
            let _ = match &left.worktree {
                _ if left.contained && left.holds.is_none() => {
                    writeln!(goes, "delete branch {branch} ({base} contains it)")
                }
                Some(tree) if left.goes() => {
                    let tree = tree.display();
                    writeln!(goes, "delete worktree {tree} (it is merged; {branch} stays)")
                }
                _ => writeln!(stays, "{}; {}", left.words(), left.next(place)),
            };
        }
        (goes, stays)
    }

    /// What went, for people.
    pub fn done(&self) -> String {
        let bytes = self.runs.iter().map(|r| r.bytes).sum();
        let mut out = format!("deleted {}, {} of logs", count(self.runs.len(), "run"), size(bytes));
        let orphans = self.snapshots.iter().map(|o| o.bytes);
        let freed: u64 = self.runs.iter().map(|r| r.snapshot_bytes).chain(orphans).sum();
        if freed > 0 {
            let freed = size(freed);
            let _ = write!(out, "\nthe next `git gc` frees {freed} of snapshots");
        }
        out
    }
}

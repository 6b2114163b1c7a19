//! The checkpoints of a run that hold files: one in full, or a line each.

use std::fmt::Write as _;

use piton_core::LanePath;
use piton_core::lane::{Missed, Stage};
use piton_core::text::short;
use serde::Serialize;

use crate::place::{At, Place};
use crate::run::Checkpoint;
use crate::shape::shapes;
use crate::text::{count, sanitize};

shapes! {
    /// A point of a workspace that can be gone back to.
    #[derive(PartialEq, Eq)]
    Point {
        /// Its name.
        name: String,
        /// The lane whose worktree it is of; none for the project's root.
        lane: Option<LanePath>,
        /// The snapshot.
        commit: String,
        /// When it was recorded.
        at: At,
        /// What is not in it.
        degraded: Vec<Missed>,
        /// Where the lane's branch stood, where that is known.
        #[serde(skip)] head: Option<String>,
        /// The number of its event.
        #[serde(skip)] event: u64,
        /// The stage, where it is one.
        #[serde(skip)] stage: Option<Stage>,
    }
}

impl Point {
    /// In one line.
    pub fn line(&self, place: &Place) -> String {
        let of = self.lane.as_ref().map_or("the project".to_owned(), ToString::to_string);
        let degraded = match self.degraded.len() {
            0 => String::new(),
            missed => format!(", degraded: {} not in it", count(missed, "path")),
        };
        let (name, at, commit) =
            (sanitize(&self.name), place.local(self.at.0), short(&self.commit));
        format!("{name} of {of} at {at}: {commit}{degraded}")
    }
}

shapes! {
    /// The files of a checkpoint.
    Snapshot<'a> {
        #[serde(flatten)] point: &'a Point,
        /// Whether the repository does not have them any more.
        gone: bool,
    }

    /// A checkpoint in full.
    PointView<'a> {
        #[serde(flatten)] what: What<'a>, run_id: &'a str, snapshots: Vec<Snapshot<'a>>,
    }
}

/// What a checkpoint is known by: a person's remark, or its name alone.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum What<'a> {
    Remark(Checkpoint<'a>),
    Point { name: &'a str },
}

impl<'a> PointView<'a> {
    /// A checkpoint that was found by a part of its name.
    pub fn new(
        run_id: &'a str,
        written: &'a str,
        remark: Option<Checkpoint<'a>>,
        snapshots: Vec<Snapshot<'a>>,
    ) -> Self {
        let name = match &*snapshots {
            [one] => &one.point.name,
            _ => written,
        };
        let what = remark.map_or(What::Point { name }, What::Remark);
        Self { what, run_id, snapshots }
    }

    /// For people.
    pub fn render(&self, place: &Place) -> String {
        let mut out = match &self.what {
            What::Remark(remark) => format!("{remark}\n"),
            What::Point { name } => format!("checkpoint {}\n", sanitize(name)),
        };
        let run = self.run_id;
        let _ = writeln!(out, "run        {run}");
        for Snapshot { point, gone } in &self.snapshots {
            let _ = writeln!(out, "snapshot   {}", point.line(place));
            for missed in &point.degraded {
                let (path, why) = (sanitize(&missed.path), sanitize(&missed.why));
                let _ = writeln!(out, "  not in it: {path} ({why})");
            }
            if *gone {
                let _ = writeln!(out, "  gone: its ref was deleted, and git has collected it");
                continue;
            }
            for verb in ["diff", "restore"] {
                let arguments = format_args!("{verb} {} --run {run}", short(&point.commit));
                let _ = writeln!(out, "  {verb:<10} {}", place.piton(arguments));
            }
        }
        out
    }
}

//! Runs that other tools recorded in files of their protocols, for `piton import`.
//!
//! Only what their records say. What is in the repository is looked at by the program.

use std::fmt::Write as _;

use piton_core::LanePath;
use piton_core::lane_state::StageRecord;
use piton_core::plan::UNKNOWN_WORK;
use piton_core::state::FailedAttempt;
use piton_formats::template::escape;

/// A run that another tool recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignRun {
    /// Its id, as the tool has it.
    pub id: String,
    /// The branches that its work goes to: a good file has one, or does not say.
    pub bases: Vec<String>,
    /// Its phases, as a plan names them.
    pub phases: Vec<String>,
    /// Its lanes, in the file's order.
    pub lanes: Vec<ForeignLane>,
    /// What its other records are about.
    pub others: Vec<String>,
}

/// A lane of such a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignLane {
    /// The lane, as a plan names it.
    pub path: LanePath,
    /// How far its records say it came.
    pub stand: Stand,
    /// Those that are known.
    pub records: Vec<StageRecord>,
    /// Whether it has others.
    pub has_unknown: bool,
    /// Where it worked.
    pub dir: Option<String>,
    /// What proves it.
    pub test: Option<String>,
    /// Its pull request.
    pub pull_request: Option<String>,
    /// What went wrong before, as the next attempt is told of it.
    pub failures: Vec<FailedAttempt>,
    /// Its retries.
    pub retries: Retries,
}

/// How far a lane came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// Nothing was made yet.
    Fresh,
    /// Its worktree was made; which of its tasks are done is not on record.
    Working,
    /// Its work was done and tested, or about to be merged.
    Worked,
    /// It was merged.
    Merged,
}

/// Retries as another tool counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// How many were begun and still count.
    pub begun: Option<u32>,
    /// How many there may be.
    pub most: Option<u32>,
}

impl ForeignRun {
    /// A `plan.toml` with its lanes, whose work is done as far as anybody knows, by the ids of run and
    /// protocol; `root` is the project's.
    pub fn plan_text(&self, (run, protocol): (&str, &str), root: &str) -> String {
        let title = quoted(&format!("{run}, taken over"));
        let mut out = format!("title = {title}\nprotocol = {}\n", quoted(protocol));
        for phase in &self.phases {
            let mut lanes = self.lanes.iter().filter(|lane| lane.path.phase == *phase).peekable();
            if lanes.peek().is_some() {
                let _ = write!(out, "\n[[phase]]\nid = {}\n", quoted(phase));
            }
            for lane in lanes {
                let _ = write!(out, "\n[[phase.lane]]\nid = {}\n", quoted(&lane.path.lane));
                let _ = writeln!(out, "run = {}", quoted(&escape(UNKNOWN_WORK)));
                if lane.dir.as_deref() == Some(root) {
                    continue;
                }
                out.push_str("isolation = \"worktree\"\n");
                let _ = match &lane.test {
                    Some(test) => writeln!(out, "test = {}", quoted(&escape(test))),
                    None => writeln!(out, "merge = \"none\""),
                };
            }
        }
        out
    }
}

/// A text of TOML.
fn quoted(text: &str) -> String {
    // What JSON writes between quotes, TOML reads.
    serde_json::Value::from(text).to_string()
}

//! What a run would do: waves, commands, and what is skipped and why.

use std::fmt::Write as _;

use piton_core::lane::{Isolation, Merge};
use piton_core::{GateRef, LanePath, StepPath};

use crate::answers::Problem;
use crate::place::Place;
use crate::resume::Resume;
use crate::shape::shapes;
use crate::text::sanitize;

shapes! {
    /// What a run would do.
    DryRun<'a> {
        /// What a resume has to say first.
        resume: Option<&'a Resume<'a>>,
        /// What would keep the run from starting.
        #[serde(skip_serializing_if = "Vec::is_empty")] problems: Vec<Problem>,
        waves: Vec<Vec<Start>>,
        /// Lanes that need something that nobody does.
        unmet: Vec<Unmet>,
        skipped: Vec<Skipped>, failed: Vec<StepPath>,
        /// The budget that stops the rest.
        budget: Option<String>,
        lanes: Vec<Lane>,
        /// Gates that keep something of the waves from starting.
        gates: Vec<Gate>,
        #[serde(skip)] run_id: &'a str,
    }

    /// A step that would start, its templates filled in as far as is known before a run.
    Start {
        step: StepPath,
        /// As a shell would take it.
        command: String,
        /// The program and its arguments, where no shell takes them apart.
        argv: Option<Vec<String>>,
        /// What must succeed after it.
        test: Option<String>,
    }

    /// A lane that cannot begin.
    Unmet { lane: LanePath, why: String }

    /// A step that would not run.
    Skipped { step: StepPath, reason: String }

    /// A gate that is not approved.
    Gate { gate: GateRef, name: String }

    /// Where a lane would work.
    Lane { lane: LanePath, isolation: Isolation, #[serde(flatten)] workspace: Option<MadeWorkspace> }

    /// A worktree of its own, and what becomes of the work.
    MadeWorkspace { worktree: String, branch: String, merge: Merge, task_of: Option<LanePath> }
}

impl DryRun<'_> {
    /// For people.
    pub fn render(&self, place: &Place) -> String {
        let mut out = String::new();
        for (number, wave) in self.waves.iter().enumerate() {
            let _ = writeln!(out, "wave {}", number + 1);
            for Start { step, command, test, .. } in wave {
                let _ = writeln!(out, "  {step}: {}", lines(command));
                if let Some(test) = test {
                    let _ = writeln!(out, "    then the test: {}", lines(test));
                }
            }
        }
        for path in &self.failed {
            let run = self.run_id;
            let command = |verb: &str| place.piton(format_args!("{verb} {run} {path}"));
            let (retry, skip) = (command("retry"), command("skip"));
            let abort = place.piton(format_args!("abort {run}"));
            let next = format!("`{retry}`, `{skip}` or `{abort}`");
            let _ = writeln!(out, "failed {path}: does not run again by itself; {next}");
        }
        if let Some(budget) = &self.budget {
            let _ = writeln!(out, "stopped: {budget}: raise it in the plan");
        }
        for Unmet { lane, why } in &self.unmet {
            let _ = writeln!(out, "lane {lane} cannot start: {why}");
        }
        for Lane { lane, workspace, .. } in &self.lanes {
            let Some(MadeWorkspace { worktree, branch, merge, task_of }) = workspace else {
                continue;
            };
            let then = match merge {
                Merge::Queue => "merged in turn",
                Merge::PullRequest => "merged by pull request",
                Merge::None => "not merged",
            };
            let into = task_of.as_ref().map(|whole| format!(" into {}", whole.lane));
            let into = into.unwrap_or_default();
            let _ =
                writeln!(out, "lane {lane}: worktree {worktree}, branch {branch}, {then}{into}");
        }
        for Gate { gate, name } in &self.gates {
            let name = sanitize(name);
            let _ = writeln!(out, "gate {gate}: \"{name}\" must be approved first");
        }
        for Skipped { step, reason } in &self.skipped {
            let _ = writeln!(out, "skipped {step}: {reason}");
        }
        out
    }
}

/// A command for the eye: harmless to a terminal, and its further lines set off from the next step. A
/// carriage return hides nothing of what stands before it.
fn lines(command: &str) -> String {
    let line = |line: &str| sanitize(&line.replace('\r', " "));
    command.trim_end().lines().map(line).collect::<Vec<_>>().join("\n    ")
}

//! What a resume prints before anything runs: what waits, what runs again and why, and what changed.

use std::fmt::Write as _;

use piton_core::StepPath;
use piton_core::state::Progress;
use piton_engine::resume::{Check, Difference, Severity};

use crate::place::At;
use crate::run::{Again, RunView};
use crate::shape::shapes;
use crate::text::sanitize;
use crate::words;

shapes! {
    /// A resume.
    Resume<'a> {
        run_id: &'a str, waiting: Vec<Wait>, differences: Vec<Differs<'a>>,
        rerun: Vec<Again<'a>>, plan_changes: Vec<String>,
        /// What the protocol checked and found as recorded.
        #[serde(skip_serializing_if = "<[_]>::is_empty")] holds: &'a [String],
        /// How the spec differs from what was recorded, line by line.
        #[serde(skip_serializing_if = "String::is_empty")] spec_changes: String,
        #[serde(skip)] view: RunView<'a>,
    }

    /// A difference between the world and the record.
    Differs<'a> {
        name: &'a str, severity: &'static str, message: &'a str, next: String,
        #[serde(skip)] weight: Severity,
    }

    /// A step that waits before it is tried again.
    Wait { step: StepPath, until: At }
}

impl<'a> From<&'a Difference> for Differs<'a> {
    fn from(Difference { name, severity, message, next, .. }: &'a Difference) -> Self {
        let word = match severity {
            Severity::Stops => "stops",
            Severity::Warns => "warns",
            Severity::RunsAgain => "runs_again",
        };
        let next = next.remedy().to_string();
        Self { name, severity: word, message, next, weight: *severity }
    }
}

impl<'a> Resume<'a> {
    /// A run as it is shown, and what changed since it was recorded.
    pub fn new(
        view: RunView<'a>,
        check: &'a Check,
        plan_changes: Vec<String>,
        spec_changes: String,
    ) -> Self {
        let waits = view.state.steps().filter_map(|(step, found)| match found.progress {
            progress @ Progress::Waiting { .. } => {
                Some(Wait { step, until: At(progress.waits_until(view.now)?) })
            }
            _ => None,
        });
        Self {
            run_id: view.run_id,
            waiting: waits.collect(),
            differences: check.differences.iter().map(Differs::from).collect(),
            holds: &check.holds,
            spec_changes,
            rerun: view.rerun.clone(),
            plan_changes,
            view,
        }
    }

    /// For people. What stops a resume is left to the refusal that follows, unless it is a `dry` run.
    pub fn render(&self, dry: bool) -> String {
        let RunView { now, place, state, .. } = self.view;
        let ((over, count), skipped) = (self.view.progress(), self.view.skipped());
        let left_out = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
        let (run, over) = (words::titled(state), over - skipped);
        // What another tool or the plan calls done counts before the first driver.
        let verb = if state.epoch == 0 { "starting" } else { "resuming" };
        let head = format!("{verb} {run}: {over} of {count} steps finished{left_out}\n");
        let mut out = String::new();
        let mut line = |name: &str, text: &str| {
            let _ = writeln!(out, "  {name}: {}", sanitize(text));
        };
        self.holds.iter().for_each(|held| line("ok", held));
        self.spec_changes.lines().for_each(|change| line("spec", change));
        if !dry && self.differences.iter().any(|found| found.weight == Severity::Stops) {
            self.plan_changes.iter().for_each(|change| line("plan", change));
            return out;
        }
        for Wait { step, until } in &self.waiting {
            let (when, left) = (place.ahead(until.0, now), until.0.since(now));
            line("waiting", &format!("{step} until {when} ({left})"));
        }
        for Again { step, reason } in &self.rerun {
            line("runs again", &format!("{step}: {reason}"));
        }
        for Differs { weight, name, message, .. } in &self.differences {
            match weight {
                Severity::Stops => line("stops", message),
                Severity::Warns => line("warning", message),
                Severity::RunsAgain if *name == "step-lost" => line("runs again", message),
                // Said above, with the step's reason.
                Severity::RunsAgain => {}
            }
        }
        self.plan_changes.iter().for_each(|change| line("plan", change));
        head + &out
    }
}

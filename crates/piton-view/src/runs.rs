//! The runs of a project, as `piton runs` lists them.

use std::fmt::Write as _;

use piton_core::event::ProtocolRef;

use crate::place::{At, Place};
use crate::shape::shapes;
use crate::text::sanitize;

shapes! {
    /// A run as listed.
    Listed {
        run_id: String, status: String, steps_done: Option<usize>, steps_total: Option<usize>,
        plan: String, protocol: Option<ProtocolRef>, title: String, root: String, driver: Option<String>,
        /// Why it cannot be read.
        #[serde(skip_serializing_if = "Option::is_none")] problem: Option<String>,
        created_at: At, updated_at: At,
    }
}

impl Listed {
    fn steps(&self) -> String {
        match (self.steps_done, self.steps_total) {
            (Some(done), Some(total)) => format!("{done}/{total}"),
            _ => "-".to_owned(),
        }
    }
}

/// Runs for people, a line each.
pub fn table(runs: &[Listed], place: &Place) -> String {
    let wide = |of: fn(&Listed) -> usize, title: &str| {
        runs.iter().map(of).max().unwrap_or(0).max(title.len())
    };
    let id = wide(|r| r.run_id.len(), "RUN");
    let status = wide(|r| r.status.len(), "STATUS");
    let steps = wide(|r| r.steps().len(), "STEPS");
    let mut out = String::new();
    let mut line = |[run, state, far, at, plan]: [&str; 5]| {
        let _ = writeln!(out, "{run:id$}  {state:status$}  {far:>steps$}  {at:19}  {plan}");
    };
    line(["RUN", "STATUS", "STEPS", "UPDATED", "PLAN"]);
    for run in runs {
        let (far, at, plan) = (run.steps(), place.local(run.updated_at.0), sanitize(&run.plan));
        line([&run.run_id, &run.status, &far, &at, &plan]);
    }
    out
}

//! `--next-phase`: the last line of a run's output says whether the next phase may follow.
//!
//! Nothing is started here: whoever called reads the line and decides.

use std::path::Path;

use piton_core::state::Progress;
use piton_core::summary::run_status;
use piton_core::{RunState, Status};
use piton_formats::Severity;
use piton_formats::plan::PLAN_BYTES_MAX;
use piton_protocols::blockers;
use piton_protocols::protocol::Unreadable;

use crate::context::Context;
use crate::error::CommandError;
use crate::plan_file::{self, How};
use crate::ui;
use piton_world::read;

/// Says that the next phase may follow.
const CONTINUE: &str = "PHASE_COMPLETE_CONTINUE";
/// Says that it may not.
const STOP: &str = "PHASE_COMPLETE_STOP";

/// Says whether the next phase may follow; the last line on stdout.
pub fn say(context: &Context, plan: &Path, next: &Path, error: Option<&CommandError>) {
    let stopped = stopped(context, plan, error).or_else(|| unreadable(context, next));
    let line = match stopped {
        // One line, whatever a plan or a system says.
        Some(reason) => format!("{STOP}: {}", ui::text::sanitize(&reason)),
        None => format!("{CONTINUE}: {}", next.display()),
    };
    if context.json {
        ui::data_json(&serde_json::json!({ "next_phase": line }));
    } else {
        ui::data(&line);
    }
}

/// Why the phase is not complete.
fn stopped(context: &Context, plan: &Path, error: Option<&CommandError>) -> Option<String> {
    if let Some(error) = error.filter(|e| !e.message.is_empty()) {
        return Some(error.message.clone());
    }
    let state = newest_run(context, plan);
    let Some((run_id, state)) = state else {
        return Some("the run could not start".to_owned());
    };
    let status = run_status(&state, false);
    if status == Status::Complete && error.is_none() {
        return None;
    }
    let task = blockers(context.table, &state).into_iter().next();
    Some(task.map_or_else(|| reason(&run_id, &state, status), |task| task.words()))
}

/// The newest run of a plan, as it stands.
fn newest_run(context: &Context, plan: &Path) -> Option<(String, RunState)> {
    let path = plan_file::recorded_path(&context.project.root, &context.cwd.join(plan));
    let mut store = context.read_store().ok()?;
    let row = store.runs().ok()?.into_iter().find(|row| row.plan == path)?;
    let loaded = store.load_row(row).ok()?;
    Some((loaded.row.run_id, loaded.state))
}

/// What keeps a run from being complete, in one line.
fn reason(run_id: &str, state: &RunState, status: Status) -> String {
    if let Some((path, step)) = state.steps().find(|(_, s)| s.progress == Progress::Failed) {
        return format!("{path} failed: {}", ui::summary::why_failed(step));
    }
    let held = state.lanes().find_map(|(path, lane)| {
        let (why, _) = lane.work.as_ref()?.blocked.as_ref()?;
        Some(format!("{path} is blocked: {why}"))
    });
    held.unwrap_or_else(|| format!("run {run_id} is {status}"))
}

/// Why the plan of the next phase can't be run.
fn unreadable(context: &Context, next: &Path) -> Option<String> {
    let (full, shown) = (context.cwd.join(next), next.display().to_string());
    let why = match read::text(&full, PLAN_BYTES_MAX) {
        Err(error) => error.to_string(),
        Ok(text) => match plan_file::reading(context, &shown, Some(&text), How::default()) {
            Ok(_) => return None,
            Err(Some(Unreadable::Refused(refusal))) => refusal.cause,
            Err(Some(Unreadable::Problems(found))) => {
                let mut errors = found.into_iter().filter(|p| p.severity == Severity::Error);
                errors.next().map(|p| p.message).unwrap_or_default()
            }
            Err(None) => "no protocol knows it".to_owned(),
        },
    };
    Some(format!("{shown} cannot be read: {why}"))
}

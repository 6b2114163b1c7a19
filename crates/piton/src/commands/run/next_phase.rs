//! `--next-phase`: the last line of a run's output says whether the next phase may follow.
//!
//! Nothing is started here: whoever called reads the line and decides.

use std::path::Path;

use piton_core::Status;
use piton_engine::Loaded;
use piton_formats::Severity;
use piton_formats::plan::PLAN_BYTES_MAX;
use piton_protocols::protocol::Unreadable;
use piton_view::answers::Answer;
use piton_view::{RunView, words};

use crate::context::{Context, now};
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
        Some(reason) => format!("{STOP}: {}", piton_view::text::sanitize(&reason)),
        None => format!("{CONTINUE}: {}", next.display()),
    };
    ui::show(context.json, &Answer::NextPhase(&line), || line.clone());
}

/// Why the phase is not complete, or why the next one may not follow.
pub(super) fn stopped(
    context: &Context,
    plan: &Path,
    error: Option<&CommandError>,
) -> Option<String> {
    if let Some(error) = error.filter(|e| !e.message.is_empty()) {
        return Some(error.message.clone());
    }
    let Some(loaded) = newest_run(context, plan) else {
        return Some("the run could not start".to_owned());
    };
    let view = RunView::by_driver(&loaded.state, now(), ui::place());
    if view.status != Status::Complete || error.is_some() {
        return Some(reason(&view));
    }
    let untested = loaded.state.protocol.reader == piton_protocols::lanes::ID
        && !loaded.state.lanes().any(|(_, lane)| lane.is_validation());
    untested.then(|| format!("{} names no command that validates the phase", plan.display()))
}

/// The newest run of a plan, as it stands.
pub(super) fn newest_run(context: &Context, plan: &Path) -> Option<Loaded> {
    let path = plan_file::recorded_path(&context.project.root, &context.cwd.join(plan));
    let mut store = context.read_store().ok()?;
    let row = store.runs().ok()?.into_iter().find(|row| row.plan == path)?;
    store.load_row(row).ok()
}

/// What keeps a run from being complete, in one line.
fn reason(view: &RunView<'_>) -> String {
    if let Some(task) = view.fix_tasks.first() {
        return task.words();
    }
    if let Some((path, step)) = view.failed().next() {
        return format!("{path} failed: {}", words::why_failed(step));
    }
    let held = view.lanes().find_map(|lane| {
        Some(format!("{} is blocked: {}", lane.path, lane.work.blocked.as_ref()?.cause))
    });
    held.unwrap_or_else(|| format!("run {} is {}", view.run_id, view.status))
}

/// Why the plan of the next phase can't be run.
pub(super) fn unreadable(context: &Context, next: &Path) -> Option<String> {
    let (full, shown) = (context.cwd.join(next), next.display().to_string());
    let why = match read::text(&full, PLAN_BYTES_MAX) {
        Err(error) => error.to_string(),
        Ok(text) => match plan_file::reading(context, &shown, Some(&text), How::default()) {
            Ok(_) => return None,
            Err(Some(Unreadable::Refused(refusal) | Unreadable::Blocked(refusal))) => refusal.cause,
            Err(Some(Unreadable::Problems(found))) => {
                let mut errors = found.into_iter().filter(|p| p.severity == Severity::Error);
                errors.next().map(|p| p.message).unwrap_or_default()
            }
            Err(None) => "no protocol knows it".to_owned(),
        },
    };
    Some(format!("{shown} cannot be read: {why}"))
}

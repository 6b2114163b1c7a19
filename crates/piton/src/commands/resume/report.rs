//! What a resume says before anything runs: where the run stands, what comes next, what holds it,
//! what runs again and why, and what changed.
//!
//! It says what the decisions give, not what the plan hopes for: a failed step that nobody retried
//! is named as what holds the run, and what would run again behind it is not said to run.

use piton_core::decide::held_without;
use piton_core::event::{Class, Verdict};
use piton_core::evidence::Rerun;
use piton_core::state::{Progress, StepState};
use piton_core::summary::{current, progress};
use piton_core::{Action, Limits, Plan, RunState, StepPath, Timestamp, apply, decide};
use piton_engine::resume::{Check, Severity};
use piton_engine::store::Loaded;
use piton_formats::plan_diff::{ChangeKind, FieldChange};

use crate::cli::DriveArgs;
use crate::commands::dry_run;
use crate::commands::request::names;
use crate::context::{Context, now};
use crate::drive;
use crate::ui;
use piton_protocols::files::Occasion;

/// Says where the run stands and what differs, before anything runs; to a program in one value,
/// which the caller prints.
pub(super) fn report(
    context: &Context,
    loaded: &Loaded,
    check: &Check,
    args: &DriveArgs,
) -> Option<serde_json::Value> {
    let state = &loaded.state;
    let (over, count) = progress(state);
    let mut after = state.clone();
    for event in &check.events {
        let _ = apply(&mut after, now(), event);
    }
    // What was in flight comes first, whether it is attached to or runs again; and time that passed
    // without a driver counts for no budget.
    after.driven = false;
    for step in after.phases.iter_mut().flat_map(|p| &mut p.lanes).flat_map(|l| &mut l.steps) {
        if matches!(step.progress, Progress::Running { .. }) {
            step.progress = Progress::Pending;
        }
    }
    let jobs = args.jobs.unwrap_or(context.settings.jobs) as usize;
    let Outlook { next, held } = outlook(&check.plan, &after, jobs, args);
    let (parked, retrying) = waits(&after, args, held.is_some());
    let reruns = all_reruns(state, check);
    let here = current(&after).map(|s| s.to_string());
    let checkpoint = format!(
        "{} (run {}, event {})",
        context.project.state_dir.join(piton_ledger::DATABASE_FILE).display(),
        loaded.row.run_id,
        loaded.seq
    );
    if context.json {
        let back = format!("piton rollback {} --to before_lane_start", loaded.row.run_id);
        return Some(serde_json::json!({
            "run_id": loaded.row.run_id,
            "current": here,
            "checkpoint": checkpoint,
            "rollback": ui::here::told(&back),
            "next": next,
            "parked": waits_json(&parked),
            "retrying": waits_json(&retrying),
            "held": held,
            "differences": check.differences,
            "rerun": reruns,
            "plan_changes": plan_changes(context, check),
        }));
    }
    let skipped = ui::summary::skipped(state);
    let left_out = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    ui::say(&format!(
        "Resuming {} ({}), {} of {count} steps finished{left_out}",
        loaded.row.run_id,
        state.title,
        over - skipped
    ));
    ui::say(&format!("  current stage: {}", here.as_deref().unwrap_or("none")));
    ui::say(&format!("  checkpoint:    {checkpoint}"));
    if !next.is_empty() {
        ui::say(&format!("  next:          {}", next.join(", ")));
    }
    for Wait { step, until, class } in retrying {
        let why = if class == Class::Network { "the network" } else { "a retry" };
        let when = ui::time::ahead(until, now());
        ui::say(&format!("  next:          {step}, again at {when} ({why})"));
    }
    for Wait { step, until, .. } in parked {
        let when = ui::time::ahead(until, now());
        let left = until.since(now());
        let what = "for the reset of a rate limit; Ctrl-C leaves, and the wait is kept";
        ui::say(&format!("  parked:        {step} waits until {when} ({left}) {what}"));
    }
    if let Some(held) = &held {
        ui::say(&format!("  nothing runs:  {held}"));
    }
    for (path, lane) in state.lanes().filter(|(_, l)| !l.is_over()) {
        let Some(work) = &lane.work else { continue };
        if let Some(record) = work.stage().and_then(|stage| work.record(stage)) {
            let status = record.status.as_str();
            ui::say(&format!("  lane {path}: {} ({status})", record.stage));
        }
    }
    if state.lanes().any(|(_, lane)| lane.work.is_some()) {
        let run_id = &loaded.row.run_id;
        ui::say(&format!("  roll back:     piton rollback {run_id} --to before_lane_start"));
    }
    ui::say(&format!(
        "  start over:    piton run {} --fresh",
        context.plan_argument(&state.plan_path)
    ));
    drive::say_words(context, state, Occasion::Resumed);
    let word = if held.is_some() { "to run again: " } else { "runs again:   " };
    for rerun in &reruns {
        ui::say(&format!("  {word} {}: {}", rerun.step, ui::text::sanitize(&rerun.reason)));
    }
    for difference in &check.differences {
        let word = match difference.severity {
            Severity::Stops => "stops",
            Severity::Warns => "warning",
            Severity::RunsAgain if difference.name == "step-lost" => "runs again",
            // Said above, with the step's reason.
            Severity::RunsAgain => continue,
        };
        ui::say(&format!("  {word}: {}", difference.message));
    }
    for change in plan_changes(context, check) {
        ui::say(&format!("  plan:          {change}"));
    }
    None
}

/// A step that waits before it is tried again.
struct Wait {
    step: StepPath,
    until: Timestamp,
    class: Class,
}

/// The steps that wait for the reset of a rate limit, and those that wait for anything else and are
/// tried again by themselves: none where nothing runs before a person acts.
fn waits(state: &RunState, args: &DriveArgs, held: bool) -> (Vec<Wait>, Vec<Wait>) {
    let wait = |(step, found): (StepPath, &StepState)| match found.progress {
        progress @ Progress::Waiting { class, .. } => {
            Some(Wait { step, until: progress.waits_until(now())?, class })
        }
        _ => None,
    };
    let chosen = |wait: &Wait| {
        let lane = state.whole_of(&wait.step.lane());
        args.phase.as_ref().is_none_or(|phase| *phase == lane.phase)
            && args.lane.as_ref().is_none_or(|name| *name == lane.lane)
    };
    let all = state.steps().filter_map(wait);
    let (parked, mut rest): (Vec<_>, Vec<_>) = all.partition(|w| w.class == Class::RateLimit);
    rest.retain(|wait| !held && chosen(wait));
    (parked, rest)
}

fn waits_json(waits: &[Wait]) -> Vec<serde_json::Value> {
    let value = |wait: &Wait| serde_json::json!({ "step": wait.step, "until": ui::time::rfc3339(wait.until) });
    waits.iter().map(value).collect()
}

/// What comes next in a run that is about to go on.
struct Outlook {
    /// The first wave.
    next: Vec<String>,
    /// Why nothing of it runs before a person acts.
    held: Option<String>,
}

fn outlook(plan: &Plan, state: &RunState, jobs: usize, args: &DriveArgs) -> Outlook {
    let (phase, lane) = (args.phase.clone(), args.lane.clone());
    let limits = Limits { jobs, phase, lane, ..Limits::default() };
    let mut state = state.clone();
    // Whether it is used up is decided anew, by the plan as it is now.
    state.exhausted = None;
    let mut outlook = Outlook { next: Vec::new(), held: None };
    for action in decide(&dry_run::with_policy(plan, args), &state, &limits, now()) {
        match action {
            Action::Start { step, .. } => outlook.next.push(step.to_string()),
            Action::Exhausted(budget) => outlook.held = Some(ui::words::budget(&budget)),
            Action::Leave(Verdict::Failed) => outlook.held = Some(why_failed(&state)),
            Action::Leave(Verdict::Blocked) => outlook.held = why_skipped(&state),
            _ => {}
        }
    }
    outlook
}

/// What a failed run waits for.
fn why_failed(state: &RunState) -> String {
    let (failed, run) = (names::failed(state), ui::words::run_id(state));
    if failed.is_empty() {
        let rejected = state.gates.keys().find(|gate| state.rejected(gate));
        let gate = rejected.map_or("GATE", |gate| gate.0.as_str());
        return format!(
            "a gate was rejected; `piton approve {run} {gate}`, or `piton abort {run}`"
        );
    }
    let names = names::listed(&failed);
    format!("failed: {names}; `piton retry {run}`, `piton skip {run}` or `piton abort {run}`")
}

/// What was left out and is waited for.
fn why_skipped(state: &RunState) -> Option<String> {
    let skipped = ui::words::holding(state);
    let first = skipped.first().filter(|step| !held_without(state, step).is_empty())?;
    let (run, names) = (ui::words::run_id(state), names::listed(&skipped));
    Some(format!(
        "skipped, and what remains needs it: {names}; `piton skip {run} {first} --satisfy` lets it go on"
    ))
}

/// The finished steps that run again: what the comparison found, and what was asked for before.
pub(super) fn all_reruns(state: &RunState, check: &Check) -> Vec<Rerun> {
    let mut all = check.reruns.clone();
    for (step, found) in state.steps() {
        if let Some(reason) = ui::status_json::pending_rerun(found)
            && !all.iter().any(|known| known.step == step)
        {
            all.push(Rerun { step, reason: reason.to_owned() });
        }
    }
    all
}

/// What changed in the plan, a line each: steps first, then gates, limits and order.
fn plan_changes(context: &Context, check: &Check) -> Vec<String> {
    let Some(diff) = &check.plan_diff else { return Vec::new() };
    let steps = diff.steps.iter().map(|change| {
        let text = match &change.kind {
            ChangeKind::Added => "added".to_owned(),
            ChangeKind::Removed => "removed".to_owned(),
            ChangeKind::Changed { fields, .. } => {
                // Redacted before it is cut: a part of a secret is not known for one.
                let whole = |text: &str| context.redactor.redact(text).into_owned();
                let shown = fields.iter().map(|field| {
                    let (old, new) = (whole(&field.old), whole(&field.new));
                    FieldChange { name: field.name, old, new }.to_string()
                });
                shown.collect::<Vec<_>>().join("; ")
            }
        };
        format!("{} {text}", change.path)
    });
    steps
        .chain(diff.other.iter().cloned())
        .map(|text| context.redactor.redact(&text).into_owned())
        .collect()
}

//! What a resume says before anything runs: where the run stands, what comes next, what holds it,
//! what runs again and why, and what changed.
//!
//! It says what the decisions give, not what the plan hopes for: a failed step that nobody retried
//! is named as what holds the run, and what would run again behind it is not said to run.

use piton_core::event::Verdict;
use piton_core::state::Progress;
use piton_core::{Action, Limits, Plan, RunState, StepPath, apply, decide};
use piton_engine::resume::Check;
use piton_engine::store::Loaded;
use piton_formats::plan_diff::{ChangeKind, FieldChange};
use piton_protocols::files::Occasion;
use piton_view::resume::{Outlook, Resume, why_failed, why_skipped};
use piton_view::{RunView, Seen, words};

use crate::cli::DriveArgs;
use crate::commands::dry_run;
use crate::context::{Context, now};
use crate::{drive, ui};

/// Where the run stands and what differs, before anything runs; people are told.
pub(super) fn report<'a>(
    context: &Context,
    loaded: &'a Loaded,
    check: &'a Check,
    args: &DriveArgs,
) -> Resume<'a> {
    let state = &loaded.state;
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
    let outlook = outlook(&check.plan, &after, jobs, args);
    let chosen = |step: &StepPath| {
        let lane = state.whole_of(&step.lane());
        args.phase.as_ref().is_none_or(|phase| *phase == lane.phase)
            && args.lane.as_ref().is_none_or(|name| *name == lane.lane)
    };
    let view = RunView::new(state, Seen { rerun: &check.reruns, ..Context::seen(loaded) });
    let changes = (&*check.differences, plan_changes(context, check));
    let ledger = context.project.state_dir.join(piton_ledger::DATABASE_FILE);
    let ledger = ledger.display().to_string();
    let resume = Resume::new(view, (&after, outlook), chosen, changes, &ledger);
    if !context.json {
        let files = drive::files(context, state);
        let prompt = files.map(|files| files.words(state, Occasion::Resumed)).unwrap_or_default();
        let plan = context.plan_argument(&state.plan_path);
        ui::say(resume.render(&plan, &prompt).trim_end());
    }
    resume
}

fn outlook(plan: &Plan, state: &RunState, jobs: usize, args: &DriveArgs) -> Outlook {
    let (phase, lane) = (args.phase.clone(), args.lane.clone());
    let limits = Limits { jobs, phase, lane, ..Limits::default() };
    let mut state = state.clone();
    // Whether it is used up is decided anew, by the plan as it is now.
    state.exhausted = None;
    let mut outlook = Outlook::default();
    for action in decide(&dry_run::with_policy(plan, args), &state, &limits, now()) {
        match action {
            Action::Start { step, .. } => outlook.next.push(step),
            Action::Exhausted(budget) => outlook.held = Some(words::budget(&budget)),
            Action::Leave(Verdict::Failed) => outlook.held = Some(why_failed(&state, ui::place())),
            Action::Leave(Verdict::Blocked) => outlook.held = why_skipped(&state, ui::place()),
            _ => {}
        }
    }
    outlook
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

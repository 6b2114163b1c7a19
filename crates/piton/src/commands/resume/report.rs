//! What a resume prints before anything runs: what waits, what runs again and why, and what changed.

use piton_engine::resume::Check;
use piton_engine::store::Loaded;
use piton_formats::plan_diff::{ChangeKind, FieldChange};
use piton_view::resume::Resume;
use piton_view::{RunView, Seen};

use crate::context::Context;
use crate::ui;

/// What differs from the record, before anything runs; people read it.
pub(super) fn report<'a>(
    context: &Context,
    loaded: &'a Loaded,
    check: &'a Check,
    dry: bool,
) -> Resume<'a> {
    let seen = Seen { rerun: &check.reruns, ..Context::seen(loaded) };
    let view = RunView::new(&loaded.state, seen);
    let resume = Resume::new(view, &check.differences, plan_changes(context, check));
    let words = resume.render(dry);
    if !context.json && !words.is_empty() {
        ui::say_as_is(words.trim_end());
    }
    resume
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

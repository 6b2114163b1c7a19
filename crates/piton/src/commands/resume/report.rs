//! What a resume prints before anything runs: what waits, what runs again and why, and what changed.

use piton_core::approval;
use piton_engine::resume::Check;
use piton_engine::store::Loaded;
use piton_formats::plan_diff::{ChangeKind, FieldChange};
use piton_view::resume::Resume;
use piton_view::{RunView, Seen};

use piton_workspace::history;

use crate::context::Context;
use crate::ui;

/// Most lines of a changed spec that are shown: about two screens.
const SPEC_LINES_MAX: usize = 80;

/// What differs from the record, before anything runs; people read it.
pub(super) fn report<'a>(
    context: &Context,
    loaded: &'a Loaded,
    check: &'a Check,
    dry: bool,
) -> Resume<'a> {
    let seen = Seen { rerun: &check.reruns, ..Context::seen(loaded) };
    let view = RunView::new(&loaded.state, seen);
    let spec = spec_changes(context, loaded, check);
    let resume = Resume::new(view, check, plan_changes(context, check), spec);
    let words = resume.render(dry);
    if !context.json && !words.is_empty() {
        ui::say_as_is(words.trim_end());
    }
    resume
}

/// How a changed spec differs from the last snapshot of it, if there is one.
fn spec_changes(context: &Context, loaded: &Loaded, check: &Check) -> String {
    let changed = ["spec-changed", "spec-accepted"];
    let is_changed = check.differences.iter().any(|found| changed.contains(&found.name));
    let newest = approval::newest_snapshot(&loaded.state).filter(|_| is_changed);
    let Some((snapshot, spec)) = newest.zip(loaded.state.spec.as_ref()) else {
        return String::new();
    };
    let old = format!("{snapshot}:tree/{}", spec.path);
    let diff = history::diff(&context.project.root, &old, &spec.path, false).unwrap_or_default();
    // What git says of the two before the first lines is about names.
    let lines = diff.lines().skip_while(|line| !line.starts_with("@@"));
    let text = lines.take(SPEC_LINES_MAX).collect::<Vec<_>>().join("\n");
    context.redactor.redact(&text).into_owned()
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

//! The prompts of phases and tasks: templates whose own names are filled in when the plan is read.
//!
//! Then the text of a phase is part of its step: a phase that somebody changes is known to be changed.
//! Boxes and markers are left out of it, because a run changes them itself. The other names of a
//! template are filled in when an attempt starts.

use piton_core::plan::{SCOPE_BEGIN, SCOPE_END};
use piton_formats::markdown::Document;
use piton_formats::splice::{Splice, splice};
use piton_formats::template::escape;

use super::plan::{Heading, file_lines, status};

/// The prompt of a phase.
pub const PHASE: &str = "\
Implement phase {{ phase.id }} of {{ context.plan }}: {{ context.title }}

{{ context.section }}

Do everything that this phase asks for, and nothing of the other phases. What is ticked in
{{ context.plan }} is done. Piton ticks its boxes and sets its markers; leave them as they are.
{% if failure_context %}
What went wrong before, or is to be changed:
{{ failure_context }}{% endif %}
At the end, say in at most 50 words what you did.
";

/// The prompt of a task.
pub const TASK: &str = "\
Do task {{ step.id }} of {{ context.plan }}, phase {{ phase.id }}: {{ context.title }}

{{ context.section }}

Do this task, and nothing of the others. Piton ticks its box; leave the file as it is.
{% if failure_context %}
What went wrong before, or is to be changed:
{{ failure_context }}{% endif %}
At the end, say in at most 50 words what you did.
";

/// What the names of a template stand for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Names<'a> {
    /// The plan.
    pub(super) plan: &'a str,
    /// What people call the phase.
    pub(super) title: &'a str,
    /// What it asks for.
    pub(super) section: &'a str,
}

/// A template with its own names filled in: `{{ context.plan }}`, `.title` and `.section`.
pub(super) fn filled(template: &str, names: Names<'_>) -> String {
    let mut out = String::with_capacity(template.len() + names.section.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let inner = after.split_once("}}");
        let value = inner.and_then(|(name, _)| match name.trim_matches(['-', ' ']) {
            "context.plan" => Some(names.plan),
            "context.title" => Some(names.title),
            "context.section" => Some(names.section),
            _ => None,
        });
        rest = if let (Some(value), Some((_, next))) = (value, inner) {
            out.push_str(&scoped(value));
            next
        } else {
            out.push_str("{{");
            after
        };
    }
    out.push_str(rest);
    out
}

/// A text as a template, in which the lines about files are known as the scope: who extends them does
/// not change work that is done.
fn scoped(text: &str) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for lines in file_lines(text) {
        out.push_str(&escape(&text[at..lines.start]));
        out.push_str(SCOPE_BEGIN);
        out.push_str(&escape(&text[lines.clone()]));
        out.push_str(SCOPE_END);
        at = lines.end;
    }
    out.push_str(&escape(&text[at..]));
    out
}

/// The text of a phase without what a run changes in it: markers of headings, and ticks.
pub(super) fn unmarked(text: &str) -> String {
    let document = Document::new(text);
    let mut splices = Vec::new();
    for line in &document.lines {
        if let Some(heading) = Heading::read(line).filter(|heading| heading.marker.is_some()) {
            let start = text[..heading.marker_range.start].trim_end_matches([' ', '\t']).len();
            splices.push(Splice::new(start..heading.marker_range.end, ""));
        }
        if let Some((_, range)) = status(line) {
            splices.push(Splice::new(range, ""));
        }
        if let Some((_, range)) = line.checkbox().filter(|(found, _)| found.is_ticked()) {
            splices.push(Splice::new(range, " "));
        }
    }
    splice(text, splices).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_are_filled_in_and_the_others_stay() {
        let names = Names { plan: "p.md", title: "A {{ b }}", section: "do" };
        assert_eq!(
            filled(
                "{{context.plan}}: {{ context.title }} {{- context.section -}} {{ run.id }}",
                names
            ),
            "p.md: A {{ \"{{\" }} b }} do {{ run.id }}"
        );
        assert_eq!(filled("{{ context.plan", names), "{{ context.plan");
    }

    /// Lost: whoever extends the files of a phase changes work that is done, so no replan may do it.
    #[test]
    fn files_are_marked_as_the_scope() {
        let text = "### Phase 1: A\n**Files to modify**:\n- `a.rs`\n- `b.rs` - new\n\n- [ ] one\n";
        let names = Names { section: text, ..Names::default() };
        let wanted = "### Phase 1: A\n{# scope #}**Files to modify**:\n- `a.rs`\n- `b.rs` - new\n\
                      {# end of scope #}\n- [ ] one\n";
        assert_eq!(filled("{{ context.section }}", names), wanted);
    }

    /// Lost: a plan counts as changed because its own run ticked it.
    #[test]
    fn progress_is_not_part_of_a_phase() {
        let before = "### Phase 1: A\n**Status**: [NOT STARTED]\n- [ ] one\n- [ ] two\n";
        let after = "### Phase 1: A [COMPLETED]\n**Status**: [COMPLETED]\n- [x] one\n- [X] two\n\n";
        assert_eq!(unmarked(before), unmarked(after));
    }
}

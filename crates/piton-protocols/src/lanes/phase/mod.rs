//! Phase documents: Markdown to a [`Phase`] and its problems, and ticks of gates.
//!
//! Reads heading, gates, lanes, tasks and tests from one list of lines, then resolves names. The reader
//! accepts the forms of real documents, reports what it does not understand and never guesses.

#![expect(clippy::similar_names, reason = "lines and lanes are what this is about")]

mod apart;
mod brackets;
mod bullets;
mod commands;
mod draft;
mod fences;
mod gates;
mod groups;
mod ids;
mod index;
mod items;
mod model;
mod names;
mod own_tests;
mod prompt;
mod ranges;
mod replans;
mod resolve;
mod shell_lines;
mod tasks;
mod test_plan;
mod to_plan;
mod typed;

#[cfg(test)]
mod tests;

pub use gates::{tick, untick};
pub use ids::plan_id;
pub use model::{
    About, Dependency, DependencyKind, Field, Gate, Lane, Origin, ParallelSafe, Phase, PlannedTest,
    Task, TaskKind, TestsCount,
};
pub use prompt::{TASK_PROMPT, TASK_PROMPT_NAMES};
pub use to_plan::{Hold, HoldKind, PlanDefaults, Planned, to_plan};

use names::is_phase_id;
use piton_formats::diagnostic::{Diagnostic, Severity, code, quoted};
use piton_formats::markdown::inline::{plain, undecorated};
use piton_formats::markdown::{Document, Place};
use piton_formats::sink::Sink;

/// Largest phase document: a hundred times the longest known; a larger file is the wrong one.
pub const PHASE_BYTES_MAX: usize = 8 << 20;

/// Marks that end the phase's id in the first heading if it has no colon.
const TITLE_MARKS: [&str; 4] = [" -- ", " — ", " – ", " - "];

/// Reads a document to run: the phase and its warnings, or all problems.
pub fn read(file: &str, text: &str) -> Result<(Phase, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (phase, problems) = inspect(file, text);
    if problems.iter().any(|p| p.severity == Severity::Error) {
        return Err(problems);
    }
    Ok((phase, problems))
}

/// Reads as much of a document as possible, and all its problems.
pub fn inspect(file: &str, text: &str) -> (Phase, Vec<Diagnostic>) {
    let mut sink = Sink::new(file, text);
    if text.len() > PHASE_BYTES_MAX {
        let message = format!("the document is larger than {PHASE_BYTES_MAX} bytes");
        sink.error(code::TOO_LARGE, &(0..0), message, "split it, or name the right file");
        return (Phase::default(), sink.finish());
    }
    let document = Document::new(text);
    if let Some(at) = document.unclosed {
        let message = "this is never closed, so the rest of the document is not read";
        let hint = "close the fence with as many marks, or the comment with `-->`";
        sink.warn(code::UNCLOSED, &document.lines[at].span(), message, hint);
    }
    let mut phase = Phase::default();
    heading(&document, &mut phase, &mut sink);
    phase.gates = gates::read(&document, &mut sink);
    let (mut drafts, needs_confirmation) = index::read(&document, &mut sink);
    tasks::read(&document, &mut drafts, &mut sink);
    index::settle_unlisted(&mut drafts, &mut sink);
    if drafts.is_empty() {
        no_lanes(&document, &mut sink);
    }
    phase.lanes = resolve::resolve(drafts, &phase.gates, needs_confirmation, &mut sink);
    phase.needs_confirmation = needs_confirmation;
    let test_plan::Tests { commands, checks } = test_plan::read(&document, &mut sink);
    (phase.test_plan, phase.checks) = (commands, checks);
    phase.acceptance = test_plan::acceptance(&document);
    phase.tests = front_matter(&document, "tests").and_then(|word| TestsCount::read(&word));
    (phase, sink.finish())
}

/// Reports a document without lanes: its index, if it has one, is written in another way.
fn no_lanes(document: &Document<'_>, sink: &mut Sink<'_>) {
    if let Some(span) = index::first_line(document) {
        let message = "the lane index lists no lane with an id";
        let hint = "write `- SL-1 -- Name`: an id of `SL-` and a name, or capitals with a number";
        sink.error(code::NO_LANES, &span, message, hint);
    } else {
        let message = "the document has no lanes";
        let hint = "add `## Lane Index & Dependencies` with items like `- SL-1 -- Name`";
        sink.error(code::NO_LANES, &(0..0), message, hint);
    }
}

/// Tells whether a text is a phase document, by its headings.
pub fn is_phase(text: &str) -> bool {
    let document = Document::new(text);
    let is_own = |title: &str| {
        title.contains("interface freeze gate")
            || title.contains("lane index")
            || title.contains("swim lane")
    };
    !document.sections(is_own).is_empty()
}

/// Tells whether a word is the id of a phase by its form: `P12`.
pub fn is_id(word: &str) -> bool {
    is_phase_id(word)
}

/// A value of the metadata before a text.
pub fn metadata(text: &str, key: &str) -> Option<String> {
    front_matter(&Document::new(text), key)
}

/// A value of the metadata before the document.
fn front_matter(document: &Document<'_>, key: &str) -> Option<String> {
    let metadata = document.lines.iter().take_while(|line| line.place == Place::Aside);
    let values = metadata.filter_map(|line| line.text.split_once(':'));
    let mut found = values.filter(|(name, _)| name.trim().eq_ignore_ascii_case(key));
    let (_, value) = found.next()?;
    let value = value.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| value.to_owned())
}

/// Id and title from the first heading.
fn heading(document: &Document<'_>, phase: &mut Phase, sink: &mut Sink<'_>) {
    let at_level = |wanted: Option<usize>| {
        document.lines.iter().find_map(|line| {
            let (level, title) = line.heading()?;
            let title = plain(undecorated(title));
            wanted.is_none_or(|wanted| wanted == level).then_some((line, title))
        })
    };
    let first = at_level(Some(1)).or_else(|| at_level(None));
    let hint = "write `# P1: Title` as the first heading";
    let Some((line, title)) = first else {
        sink.error(code::NO_PHASE_ID, &(0..0), "the document has no heading", hint);
        return;
    };
    phase.line = line.number;
    let dashed = || TITLE_MARKS.iter().find_map(|mark| title.split_once(mark));
    if let Some((id, rest)) = title.split_once(':').or_else(dashed) {
        // `Phase 5` is no id, and the metadata may have one.
        let stated = front_matter(document, "phase");
        let is_id = |id: &String| id.starts_with(char::is_alphabetic);
        let stated = stated.filter(|stated| id.trim().contains(' ') && is_id(stated));
        phase.id = stated.unwrap_or_else(|| id.trim().to_owned());
        rest.trim().clone_into(&mut phase.title);
    } else if !title.contains(char::is_whitespace) {
        phase.id.clone_from(&title);
    } else if let Some(id) = front_matter(document, "phase") {
        (phase.id, phase.title) = (id, title.clone());
    } else if let Some((id, rest)) = title.split_once(' ').filter(|(id, _)| is_phase_id(id)) {
        (phase.id, phase.title) = (id.to_owned(), rest.trim().to_owned());
    }
    if phase.id.is_empty() {
        let message = format!("the heading {} has no phase id", quoted(&title));
        sink.error(code::NO_PHASE_ID, &line.span(), message, hint);
        phase.title = title;
    }
}

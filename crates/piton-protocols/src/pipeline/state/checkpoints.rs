//! The boxes of people: `## Human Checkpoints Cleared`, and the rows of a stage ledger that say so.

use super::layout::{Layout, Part};
use super::model::{Checkpoint, LedgerRow, Progress};
use piton_formats::diagnostic::code;
use piton_formats::markdown::Place;
use piton_formats::markdown::inline::{bullet, checkbox, plain, without_brackets};
use piton_formats::sink::Sink;

/// The boxes of the protocol.
pub const BOXES: [&str; 4] = [
    "Spec approval",
    "Architecture sign-off (includes Constitution Check)",
    "Convergence escalation (if triggered)",
    "Security sign-off",
];

/// A box of the file.
pub(super) struct Found {
    /// Its text.
    pub(super) text: String,
    /// Whether it is ticked.
    pub(super) is_ticked: bool,
    /// The byte after its opening bracket, and the length of its mark.
    pub(super) mark: (usize, usize),
    /// Position of its line.
    pub(super) index: usize,
}

/// The boxes of the section, in their order.
pub(super) fn boxes(layout: &Layout<'_>) -> Vec<Found> {
    let Some(section) = layout.section(Part::Checkpoints) else { return Vec::new() };
    let mut found = Vec::new();
    for index in section.lines.clone() {
        let line = &layout.lines[index];
        if line.place != Place::Text {
            continue;
        }
        let Some(item) = bullet(line.text) else { continue };
        let Some(boxed) = checkbox(item).filter(|boxed| !boxed.rest.is_empty()) else { continue };
        let open = line.start + (line.text.len() - item.len()) + 1;
        let (text, is_ticked) = (plain(boxed.rest), boxed.is_ticked());
        found.push(Found { text, is_ticked, mark: (open, boxed.mark.len()), index });
    }
    found
}

/// The box that a text names: the same words, or else the same without brackets and prose.
pub(super) fn named(boxes: &[Found], text: &str) -> Option<usize> {
    let exact = |text: &str| {
        let words: Vec<String> = plain(text).split_whitespace().map(str::to_lowercase).collect();
        words.join(" ")
    };
    let short = |text: &str| {
        let bare = exact(&without_brackets(text));
        let end = [" — ", " – ", " -- ", " - ", ": "].iter().filter_map(|m| bare.find(m)).min();
        bare[..end.unwrap_or(bare.len())].to_owned()
    };
    let wanted = (exact(text), short(text));
    let position = |fits: &dyn Fn(&str) -> bool| boxes.iter().position(|found| fits(&found.text));
    position(&|text| exact(text) == wanted.0)
        .or_else(|| position(&|text| !wanted.1.is_empty() && short(text) == wanted.1))
}

/// Reads the boxes; a checkpoint that the ledger calls approved counts as ticked.
pub(super) fn read(
    layout: &Layout<'_>,
    ledger: &[LedgerRow],
    sink: &mut Sink<'_>,
) -> Vec<Checkpoint> {
    let mut checkpoints: Vec<Checkpoint> = Vec::new();
    for found in boxes(layout) {
        let line = &layout.lines[found.index];
        let mark = &layout.text[found.mark.0..found.mark.0 + found.mark.1];
        if !found.is_ticked && !mark.trim().is_empty() {
            let message = format!("unknown box `[{mark}]`, so it counts as not ticked");
            sink.warn(code::BAD_VALUE, &line.span(), message, "write `[ ]` or `[x]`");
        }
        let (text, is_cleared) = (found.text, found.is_ticked);
        checkpoints.push(Checkpoint { text, is_cleared, line: line.number });
    }
    for row in ledger {
        let Some(subject) = subject(&row.name) else { continue };
        let of_subject = |text: &str| text.to_lowercase().contains(subject_word(&subject));
        let is_cleared = row.progress == Progress::Done;
        if let Some(known) = checkpoints.iter_mut().find(|c| of_subject(&c.text)) {
            known.is_cleared |= is_cleared;
            continue;
        }
        let text = BOXES.into_iter().find(|text| of_subject(text));
        let text = text.map_or_else(|| plain(&row.name), str::to_owned);
        checkpoints.push(Checkpoint { text, is_cleared, line: row.line });
    }
    checkpoints
}

/// What a ledger row such as `Human Spec Checkpoint` is about; `None` for the row of a stage.
pub(super) fn subject(name: &str) -> Option<String> {
    let lower = plain(name).to_lowercase();
    let rest = lower.strip_prefix("human ")?;
    let about = ["checkpoint", "approval", "sign-off", "review", "gate"]
        .iter()
        .find_map(|end| rest.strip_suffix(end))?;
    let about = about.trim();
    (!about.is_empty()).then(|| about.to_owned())
}

/// The word that boxes have for a subject.
fn subject_word(subject: &str) -> &str {
    if subject.starts_with("architect") { "architect" } else { subject }
}

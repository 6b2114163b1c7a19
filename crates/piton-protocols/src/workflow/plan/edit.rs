//! Changes of a plan, made in place: markers of headings and boxes. Every other byte stays.

use std::collections::HashMap;
use std::ops::Range;

use piton_formats::markdown::{Document, Line};
use piton_formats::splice::{Splice, splice};

use super::fields;
use super::heading::Heading;
use super::model::{Marker, Task};
use crate::workflow::phase_id::PhaseId;

/// One change of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Sets the marker of a phase's heading, or removes it.
    Mark {
        /// The phase.
        phase: PhaseId,
        /// The marker.
        marker: Option<Marker>,
    },
    /// Ticks or unticks a box of a phase.
    Tick {
        /// The phase.
        phase: PhaseId,
        /// The box, as it was read: found by its text, wherever its line is now.
        task: Task,
        /// Whether it is ticked afterwards.
        done: bool,
    },
    /// Ticks all boxes of a phase.
    TickAll {
        /// The phase.
        phase: PhaseId,
    },
}

/// Makes changes: the new text, and the positions of the changes whose phase or box is not there.
pub fn edit(text: &str, edits: &[Edit]) -> (String, Vec<usize>) {
    let sections = Sections::of(text);
    let mut splices = Vec::new();
    let mut missed = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        match sections.splices(text, edit) {
            Some(made) => splices.extend(made),
            None => missed.push(at),
        }
    }
    (splice(text, splices), missed)
}

/// Ticks all boxes of a text that describes one phase: those of its section if it has one.
pub fn tick_all(text: &str, phase: &PhaseId) -> String {
    let (done, missed) = edit(text, &[Edit::TickAll { phase: phase.clone() }]);
    if missed.is_empty() {
        return done;
    }
    let document = Document::new(text);
    let open = document.lines.iter().filter_map(Line::checkbox).filter(|(b, _)| !b.is_ticked());
    splice(text, open.map(|(_, range)| Splice::new(range, "x")).collect())
}

/// A box in the document.
struct Boxed<'a> {
    text: &'a str,
    done: bool,
    range: Range<usize>,
}

/// The headings of the phases and the boxes below them.
struct Sections<'a> {
    places: HashMap<String, usize>,
    all: Vec<Section<'a>>,
}

/// What of a phase may change.
struct Section<'a> {
    heading: Heading,
    boxes: Vec<Boxed<'a>>,
    /// Its first status line that has a marker.
    stated: Option<(Marker, Range<usize>)>,
}

impl<'a> Sections<'a> {
    fn of(text: &'a str) -> Self {
        let mut sections = Self { places: HashMap::new(), all: Vec::new() };
        // The level of the phase that is being read; of two with one id only the first is.
        let mut open: Option<usize> = None;
        for line in &Document::new(text).lines {
            if let Some((level, _)) = line.heading() {
                if let Some(heading) = Heading::read(line) {
                    let key = heading.id.key();
                    open = (!sections.places.contains_key(&key)).then_some(level);
                    if open.is_some() {
                        sections.places.insert(key, sections.all.len());
                        sections.all.push(Section { heading, boxes: Vec::new(), stated: None });
                    }
                } else if open.is_some_and(|own| level <= own) {
                    open = None;
                }
                continue;
            }
            let last = sections.all.last_mut().filter(|_| open.is_some());
            if let Some(section) = last.filter(|section| section.stated.is_none()) {
                section.stated = fields::status(line);
            }
            let Some((found, range)) = line.checkbox().filter(|_| open.is_some()) else { continue };
            let (text, done) = (found.rest.trim(), found.is_ticked());
            if let Some(section) = sections.all.last_mut() {
                section.boxes.push(Boxed { text, done, range });
            }
        }
        sections
    }

    fn phase(&self, id: &PhaseId) -> Option<&Section<'a>> {
        self.all.get(*self.places.get(&id.key())?)
    }

    /// What a change replaces; `None` if there is nothing to change.
    fn splices(&self, text: &str, edit: &Edit) -> Option<Vec<Splice>> {
        match edit {
            Edit::Mark { phase, marker } => {
                let Section { heading, stated, .. } = self.phase(phase)?;
                let stated = stated.as_ref().zip(marker.as_ref());
                let stated = stated.and_then(|((was, range), now)| {
                    let stays = was == now || (was, now) == (&Marker::Verified, &Marker::Completed);
                    (!stays).then(|| Splice::new(range.clone(), now.as_str()))
                });
                Some(mark(text, heading, marker.as_ref()).into_iter().chain(stated).collect())
            }
            Edit::Tick { phase, task, done } => {
                let Section { boxes, .. } = self.phase(phase)?;
                let mut same = boxes.iter().filter(|found| found.text == task.text);
                let found = same.nth(task.nth)?;
                Some(tick(found, *done).into_iter().collect())
            }
            Edit::TickAll { phase } => {
                let Section { boxes, .. } = self.phase(phase)?;
                Some(boxes.iter().filter_map(|found| tick(found, true)).collect())
            }
        }
    }
}

fn tick(found: &Boxed<'_>, done: bool) -> Option<Splice> {
    let mark = if done { "x" } else { " " };
    (found.done != done).then(|| Splice::new(found.range.clone(), mark))
}

fn mark(text: &str, heading: &Heading, marker: Option<&Marker>) -> Option<Splice> {
    let range = heading.marker_range.clone();
    match marker {
        _ if heading.marker.as_ref() == marker => None,
        // Verified says more than completed.
        Some(Marker::Completed) if heading.marker == Some(Marker::Verified) => None,
        Some(marker) if heading.marker.is_some() => {
            Some(Splice::new(range, format!("[{}]", marker.as_str())))
        }
        Some(marker) => Some(Splice::new(range, format!(" [{}]", marker.as_str()))),
        None => {
            let before = &text[..range.start];
            Some(Splice::new(before.trim_end_matches([' ', '\t']).len()..range.end, ""))
        }
    }
}

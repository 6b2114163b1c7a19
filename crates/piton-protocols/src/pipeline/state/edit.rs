//! Changes a state file in place, in the dialect that it has.
//!
//! A change touches only the lines that it concerns. Rows of completed stages are only ever added, and
//! boxes only ever ticked. What is missing is added where the protocol has it; columns are not.

use super::checkpoints::{boxes, named};
use super::layout::{Layout, Part};
use super::model::{Cluster, Completed, Iteration};
use super::place::{at_end, is_prose, lead, prose, replaced, with_entry, with_row, with_section};
use super::words::{bare, stage_key};
use piton_formats::markdown::edit::{Change, insert_after, one_line, with_cell};
use piton_formats::markdown::inline::bullet;
use piton_formats::markdown::table::column;

/// A state file that is being changed.
#[derive(Clone, Debug)]
pub struct Editor {
    text: String,
}

impl Editor {
    /// Begins with the text of a file; any text can be changed.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The text as it is now.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Sets a field of the header; emphasis and prose around its value stay.
    pub fn set_field(&mut self, key: &str, value: &str) -> &mut Self {
        self.change(|layout| {
            let entries = layout.entries(&layout.header);
            // Some files say `stage` for `current_stage`.
            let short = (key == "current_stage").then_some("stage");
            let found = entries.iter().find(|entry| entry.key == key);
            let found = found.or_else(|| entries.iter().find(|e| Some(e.key.as_str()) == short));
            match found {
                Some(entry) => replaced(layout, entry, value),
                None => Some(with_entry(layout, &layout.header, &entries, key, value)),
            }
        })
    }

    /// Sets a field of Current Stage Detail.
    pub fn set_detail(&mut self, key: &str, value: &str) -> &mut Self {
        self.change(|layout| {
            let Some(section) = layout.section(Part::Detail) else {
                let lines = vec![format!("- {key}: {}", one_line(value))];
                return Some(with_section(layout, Part::Detail, lines));
            };
            let entries = layout.entries(&section.lines);
            match entries.iter().find(|entry| entry.key == key) {
                Some(entry) => replaced(layout, entry, value),
                None => Some(with_entry(layout, &section.lines, &entries, key, value)),
            }
        })
    }

    /// Adds a row to Completed Stages, or to the stage ledger of a file that has one instead.
    pub fn complete_stage(&mut self, done: &Completed) -> &mut Self {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let (at, artifact, hash) =
            (text(&done.completed_at), text(&done.artifact), text(&done.hash));
        let both = format!("{artifact} {hash}");
        let ledger =
            [("stage", &*done.stage), ("status", "COMPLETE"), ("date", &at), ("notes", &both)];
        let stages = [
            ("stage", &*done.stage),
            ("completed at", &at),
            ("output artifact", &artifact),
            ("output hash", &hash),
        ];
        self.change(|layout| {
            let has_ledger = layout.table(Part::Ledger).is_some();
            let has_stages = layout.section(Part::Completed).is_some();
            Some(if has_ledger && !has_stages {
                with_row(layout, Part::Ledger, &ledger)
            } else {
                with_row(layout, Part::Completed, &stages)
            })
        })
    }

    /// Sets the row of a stage in Iteration Counts; an empty value leaves its cell as it is.
    pub fn set_iteration(&mut self, new: &Iteration) -> &mut Self {
        let values = [
            ("stage", &*new.stage),
            ("cycle count", &new.cycle_count),
            ("budget", &new.budget),
            ("status", &new.status),
        ];
        let key = stage_key(&new.stage);
        self.set_row(Part::Iterations, &values, |cell| stage_key(cell) == key)
    }

    /// Sets the row of a failure cluster; an empty value leaves its cell as it is.
    pub fn set_cluster(&mut self, new: &Cluster) -> &mut Self {
        let values = [
            ("cluster", &*new.name),
            ("first seen", &new.first_seen),
            ("retry count", &new.retry_count),
            ("stage", &new.stage),
            ("notes", &new.notes),
        ];
        let key = column(&one_line(&new.name));
        self.set_row(Part::Clusters, &values, |cell| column(cell) == key)
    }

    /// Ticks the box with a text, which is added if it is missing. A ticked box stays ticked.
    pub fn tick(&mut self, text: &str) -> &mut Self {
        if one_line(text).is_empty() {
            return self;
        }
        self.change(|layout| {
            let boxes = boxes(layout);
            if let Some(at) = named(&boxes, text) {
                let found = &boxes[at];
                let (from, length) = found.mark;
                let change = Change { range: from..from + length, with: "x".to_owned() };
                return (!found.is_ticked).then_some(change);
            }
            let ticked = |lead: &str| vec![format!("{lead}[x] {}", one_line(text))];
            let Some(section) = layout.section(Part::Checkpoints) else {
                return Some(with_section(layout, Part::Checkpoints, ticked("- ")));
            };
            let Some(last) = boxes.last() else {
                return Some(at_end(layout, section, ticked("- ")));
            };
            let lead = lead(&layout.lines[last.index]);
            let end = layout.item_end(last.index, section.lines.end);
            Some(insert_after(layout.text, &layout.lines[end], &ticked(lead)))
        })
    }

    /// Takes the tick of a box away, if there is one: its approval was taken back.
    pub fn untick(&mut self, text: &str) -> &mut Self {
        self.change(|layout| {
            let boxes = boxes(layout);
            let found = &boxes[named(&boxes, text).filter(|at| boxes[*at].is_ticked)?];
            let (from, length) = found.mark;
            Some(Change { range: from..from + length, with: " ".to_owned() })
        })
    }

    /// Adds a note of one or several lines to Notes.
    pub fn note(&mut self, text: &str) -> &mut Self {
        let lines: Vec<String> = text.lines().map(prose).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() {
            return self;
        }
        self.change(|layout| {
            let Some(section) = layout.section(Part::Notes) else {
                return Some(with_section(layout, Part::Notes, lines));
            };
            let last = layout.last_filled(&section.lines).map(|at| layout.lines[at]);
            let Some(last) = last.filter(is_prose) else {
                return Some(at_end(layout, section, lines));
            };
            let lead = bullet(last.text).map_or("", |_| lead(&last));
            let continued = " ".repeat(lead.len());
            let marked = lines
                .iter()
                .enumerate()
                .map(|(at, line)| format!("{}{line}", if at == 0 { lead } else { &continued }));
            Some(insert_after(layout.text, &last, &marked.collect::<Vec<_>>()))
        })
    }

    fn set_row(
        &mut self,
        part: Part,
        values: &[(&str, &str)],
        is_same: impl Fn(&str) -> bool,
    ) -> &mut Self {
        self.change(|layout| {
            let table = layout.table(part);
            let found = table.as_ref().and_then(|table| {
                let columns = table.columns();
                let key = columns.iter().position(|name| *name == values[0].0)?;
                let row =
                    table.rows.iter().find(|row| row.cells.get(key).is_some_and(|c| is_same(c)))?;
                Some((columns, row))
            });
            let Some((columns, row)) = found else { return Some(with_row(layout, part, values)) };
            let line = &layout.lines[row.index];
            let mut new = line.text.to_owned();
            for (name, value) in values.iter().skip(1).filter(|(_, value)| !value.is_empty()) {
                let at = columns.iter().position(|column| column == name);
                let is_so =
                    |at: usize| row.cells.get(at).is_some_and(|c| bare(c) == one_line(value));
                if let Some(at) = at.filter(|at| !is_so(*at)) {
                    new = with_cell(&new, at, value);
                }
            }
            (new != line.text).then(|| Change { range: line.span(), with: new })
        })
    }

    fn change(&mut self, find: impl FnOnce(&Layout<'_>) -> Option<Change>) -> &mut Self {
        let change = find(&Layout::new(&self.text));
        if let Some(change) = change {
            change.apply(&mut self.text);
        }
        self
    }
}

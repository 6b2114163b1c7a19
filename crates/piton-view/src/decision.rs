//! What a person sees before they decide about a gate: the files that were made for it, what changed
//! since the last decision, and the tables that the protocol of the run shows.

use piton_core::approval::Last;
use piton_protocols::shown::Shown;
use serde::Serialize;

use crate::shape::shapes;
use crate::text::sanitize;

/// Most lines of a difference that people are shown: about two screens.
const LINES_SHOWN_MAX: usize = 80;

/// Most lines of a difference that programs are given: a longer one is read with `piton diff`.
pub const LINES_MAX: usize = 2000;

shapes! {
    /// A gate that is to be decided about.
    Decision {
        gate: String,
        /// What is asked.
        name: String,
        /// The files that were made for it.
        files: Vec<String>,
        changes: Option<Changes>,
        /// What the protocol of the run shows.
        tables: Vec<Shown>,
    }

    /// What changed since a person last decided.
    Changes {
        since: Since,
        /// Who decided then.
        by: Option<String>,
        /// What was decided about.
        about: Option<String>,
        /// All paths that changed.
        paths: Vec<String>,
        /// The files to decide about that were there before, line by line.
        diff: Vec<String>,
        /// Lines of the difference beyond those.
        left_out: usize,
        /// All files in numbers.
        #[serde(skip)] counted: Vec<String>,
    }
}

/// What the work is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Since {
    ChangesWanted,
    Approved,
    Began,
}

impl Changes {
    /// Nothing yet, compared with what was decided last.
    pub fn since(last: Last) -> Self {
        let (since, by, about) = match last {
            Last::Changes { by } => (Since::ChangesWanted, Some(by), None),
            Last::Approved { by, name } => (Since::Approved, Some(by), Some(name)),
            Last::Nothing => (Since::Began, None, None),
        };
        let (paths, diff, counted) = (Vec::new(), Vec::new(), Vec::new());
        Self { since, by, about, paths, diff, left_out: 0, counted }
    }

    /// A difference, as far as it is kept.
    pub fn take(&mut self, diff: &str) {
        self.diff = diff.lines().take(LINES_MAX).map(str::to_owned).collect();
        self.left_out = diff.lines().count() - self.diff.len();
    }

    fn lines(&self) -> Vec<String> {
        let by = self.by.as_deref().unwrap_or_default();
        let since = match self.since {
            Since::ChangesWanted => format!("{by} asked for changes"),
            Since::Approved => {
                format!("{by} approved \"{}\"", self.about.as_deref().unwrap_or_default())
            }
            Since::Began => "the run began".to_owned(),
        };
        let what = if self.counted.is_empty() { "nothing changed" } else { "changed" };
        let mut lines = vec![format!("{what} since {since}")];
        lines.extend(shown(&self.counted, 0));
        lines.extend(shown(&self.diff, self.left_out));
        lines
    }
}

impl Decision {
    /// For people, line by line; nothing if there is nothing to look at.
    pub fn lines(&self) -> Vec<String> {
        let files = self.files.iter().map(|file| format!("file {file}"));
        let changes = self.changes.iter().flat_map(Changes::lines);
        let row = |row: &Vec<String>| {
            let (name, rest) = row.split_first().map_or(("", row.as_slice()), |(n, r)| (n, r));
            match rest {
                [value, more @ ..] if !more.is_empty() => {
                    format!("  {name}: {value} ({})", more.join(", "))
                }
                [value, ..] => format!("  {name}: {value}"),
                [] => format!("  {name}"),
            }
        };
        let table = |table: &Shown| {
            let rows = table.rows.iter().map(row);
            std::iter::once(table.title.clone()).chain(rows).collect::<Vec<_>>()
        };
        let tables = self.tables.iter().flat_map(table);
        files.chain(changes).chain(tables).map(|line| sanitize(&line)).collect()
    }
}

/// Lines as far as they are shown, with those that were left out before.
fn shown(lines: &[String], left_out: usize) -> Vec<String> {
    let all = lines.iter().take(LINES_SHOWN_MAX).map(|line| format!("  {line}"));
    let left = lines.len().saturating_sub(LINES_SHOWN_MAX) + left_out;
    all.chain((left > 0).then(|| format!("  and {left} lines more"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(diff: &str) -> Decision {
        let mut changes = Changes::since(Last::Approved { by: "ann".into(), name: "Spec".into() });
        changes.counted = vec!["a.md | 2 +-".to_owned()];
        changes.paths = vec!["a.md".to_owned()];
        changes.take(diff);
        let rows = vec![vec!["I".to_owned(), "COMPLIES".to_owned(), "small".to_owned()]];
        let (title, columns) = ("Check".to_owned(), vec!["article", "status", "notes"]);
        Decision {
            gate: "tasks".to_owned(),
            name: "Sign-off".to_owned(),
            files: vec!["a.md".to_owned()],
            changes: Some(changes),
            tables: vec![Shown { title, columns, rows }],
        }
    }

    /// Lost: a person decides without having seen what they decide about.
    #[test]
    fn all_of_it_is_shown() {
        let wanted = [
            "file a.md",
            "changed since ann approved \"Spec\"",
            "  a.md | 2 +-",
            "  -one",
            "  +two",
            "Check",
            "  I: COMPLIES (small)",
        ];
        assert_eq!(decision("-one\n+two\n").lines(), wanted);
    }

    /// Lost: a program that asks people for Piton cannot show what they decide about, or is given a
    /// difference without end.
    #[test]
    fn programs_get_keys_and_a_bounded_difference() {
        let long = "+line\n".repeat(LINES_MAX + 3);
        let value = serde_json::to_value(decision(&long)).unwrap_or_default();
        assert_eq!(value["changes"]["since"], "approved");
        assert_eq!(value["changes"]["left_out"], 3);
        assert_eq!(value["changes"]["diff"].as_array().map(Vec::len), Some(LINES_MAX));
        assert_eq!(value["tables"][0]["rows"][0][1], "COMPLIES");
        let lines = decision(&long).lines();
        let wanted = format!("  and {} lines more", LINES_MAX + 3 - LINES_SHOWN_MAX);
        assert!(lines.contains(&wanted), "{lines:?}");
    }
}

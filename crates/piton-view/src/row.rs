//! One line of a tree, which a still text shows in full and a live picture as far as there is room.
//!
//! Knows columns and styles, not runs.

use piton_core::Status;

use crate::layout::{DIM, Layout, PLAIN, style_of};
use crate::text::{Line, columns, cut, wrap};

/// Fewest columns in which a shortened text still says something.
const BESIDE_COLUMNS_MIN: usize = 4;
/// Columns that a wrapped line is set in below its first.
pub(crate) const HANG: usize = 4;

/// How soon a line is left out when the screen is too low; the highest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// What the whole is about.
    Header,
    /// A phase at work.
    Phase,
    /// A step at work, a failure, a question to a person.
    Step,
    /// A lane at work.
    Lane,
    /// A phase that is yet to come.
    PhasePending,
    /// A phase that is over.
    PhaseOver,
    /// A lane that is yet to come.
    LanePending,
    /// A lane that is over.
    LaneOver,
    /// A step beside the one at work.
    StepBeside,
    /// The last output of a step, on a line of its own.
    Output,
}

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) rank: Rank,
    /// Whether something runs here: counted when the line is left out.
    pub(crate) runs: bool,
    indent: usize,
    /// Whose symbol stands in front.
    status: Option<Status>,
    text: String,
    /// What a still text says below it; a command is there to be copied, and is not wrapped.
    below: Vec<(String, bool)>,
    /// What a live picture says beside it, as far as there is room.
    pub(crate) beside: String,
}

impl Row {
    /// A line with a status, or of words alone.
    pub(crate) fn new(rank: Rank, indent: usize, status: Option<Status>, text: String) -> Self {
        let (below, beside) = (Vec::new(), String::new());
        Self { rank, runs: false, indent, status, text, below, beside }
    }

    /// Whether it stands at the margin.
    pub(crate) fn is_top(&self) -> bool {
        self.indent == 0
    }

    /// Adds words below.
    pub(crate) fn below(&mut self, words: String) {
        self.below.push((words, false));
    }

    /// Adds words that matter to whoever watches.
    pub(crate) fn say(&mut self, words: String, is_command: bool) {
        self.beside.clone_from(&words);
        self.below.push((words, is_command));
    }

    /// The line with all that stands below it, wrapped.
    pub(crate) fn write(&self, out: &mut String, layout: &Layout) {
        let mut line = |indent: usize, symbol: &str, text: &str, whole: bool| {
            let text = format!("{:indent$}{symbol}{text}", "");
            let text = if whole { text } else { wrap(&text, layout.width, indent + HANG) };
            match self.status {
                Some(status) if layout.color && !symbol.is_empty() => {
                    let symbol = layout.symbol(status);
                    out.push_str(&text.replacen(
                        symbol,
                        &layout.paint(style_of(status), symbol),
                        1,
                    ));
                }
                _ => out.push_str(&text),
            }
            out.push('\n');
        };
        let symbol = self.status.map(|s| format!("{} ", layout.symbol(s))).unwrap_or_default();
        line(self.indent, &symbol, &self.text, false);
        for (words, whole) in &self.below {
            line(self.indent + 2, "", words, *whole);
        }
    }

    /// The line alone, at most as wide as the look allows.
    pub(crate) fn paint(&self, layout: &Layout) -> Line {
        let mut left = layout.width;
        let mut out = String::new();
        let mut put = |style, text: &str, fewest: usize| {
            if left >= fewest.max(1) {
                let shown = cut(text, left, layout.ellipsis());
                left -= columns(&shown);
                out.push_str(&layout.paint(style, &shown));
            }
        };
        put(PLAIN, &" ".repeat(self.indent), 1);
        if let Some(status) = self.status {
            put(style_of(status), layout.symbol(status), 1);
            put(PLAIN, " ", 1);
        }
        put(PLAIN, &self.text, 1);
        if !self.beside.trim().is_empty() {
            put(DIM, &format!(" {}", self.beside), 1 + BESIDE_COLUMNS_MIN);
        }
        (out, layout.width - left)
    }
}

/// Leaves out lines until at most `height` remain; the last then says how many are missing.
pub(crate) fn fit(mut rows: Vec<Row>, height: usize, layout: &Layout) -> Vec<Row> {
    rows = without(rows, height, Rank::Output).0;
    if rows.len() <= height {
        return rows;
    }
    let workspace = height.saturating_sub(1).max(1);
    let (mut left_out, mut running) = (0, 0);
    while rows.len() > workspace {
        let highest = rows.iter().map(|r| r.rank).max().unwrap_or(Rank::Header);
        let (rest, gone) = without(rows, workspace, highest);
        rows = rest;
        left_out += gone.len();
        running += gone.iter().filter(|r| r.runs).count();
        if highest == Rank::Header {
            break;
        }
    }
    if height > 1 {
        let runs = if running > 0 { format!(", {running} running") } else { String::new() };
        let more = format!("{} {left_out} more{runs}", layout.ellipsis());
        rows.push(Row::new(Rank::Header, 0, None, more));
    }
    rows
}

/// Takes out lines of one rank as far as needed: what is over from the front, the rest from the end.
fn without(rows: Vec<Row>, height: usize, rank: Rank) -> (Vec<Row>, Vec<Row>) {
    let mut surplus = rows.len().saturating_sub(height);
    let front = matches!(rank, Rank::PhaseOver | Rank::LaneOver);
    let skip = if front {
        0
    } else {
        rows.iter().filter(|r| r.rank == rank).count().saturating_sub(surplus)
    };
    let mut seen = 0;
    let (mut rest, mut gone) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let candidate = row.rank == rank;
        seen += usize::from(candidate);
        if candidate && surplus > 0 && seen > skip {
            surplus -= 1;
            gone.push(row);
        } else {
            rest.push(row);
        }
    }
    (rest, gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rank: Rank, text: &str) -> Row {
        Row::new(rank, 2, None, text.to_owned())
    }

    #[test]
    fn what_stands_beside_gives_way_first() {
        let mut row = Row::new(Rank::Step, 2, Some(Status::Running), "x running, 12s".to_owned());
        row.beside = "the last line of output".to_owned();
        let painted = |width| row.paint(&Layout::plain(width)).0;
        assert_eq!(painted(80), "  ● x running, 12s the last line of output");
        assert_eq!(painted(27), "  ● x running, 12s the las…");
        assert_eq!(painted(22), "  ● x running, 12s");
        assert_eq!(painted(10), "  ● x run…");
        assert_eq!(painted(1), "…");
    }

    #[test]
    fn lines_are_left_out_by_rank_and_counted() {
        let rows = |running: usize| -> Vec<Row> {
            let mut rows = vec![row(Rank::Header, "head")];
            for n in 0..running {
                rows.push(Row { runs: true, ..row(Rank::Step, &format!("s{n}")) });
                rows.push(row(Rank::Output, "out"));
            }
            rows.push(row(Rank::LanePending, "p"));
            rows
        };
        let layout = Layout::plain(80);
        let shown = |running, height| -> Vec<String> {
            fit(rows(running), height, &layout).into_iter().map(|r| r.paint(&layout).0).collect()
        };
        assert_eq!(shown(2, 6).len(), 6);
        assert_eq!(shown(2, 4), ["  head", "  s0", "  s1", "  p"]);
        assert_eq!(shown(2, 3), ["  head", "  s0", "… 2 more, 1 running"]);
        assert_eq!(shown(9, 1), ["  head"]);
    }
}

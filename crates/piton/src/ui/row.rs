//! One line of a live picture: pieces that know how to give way when there is little room.
//!
//! Knows columns and styles, not runs.

use anstyle::Style;

use super::look::Look;
use super::text::{columns, cut};

/// Fewest columns in which a shortened text still says something.
const FLEX_COLUMNS_MIN: usize = 4;

/// What a piece does when the line is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Give {
    /// It stays as long as the line has room at all.
    Stays,
    /// It goes first.
    Goes,
    /// It is shortened; a line has at most one such piece.
    Shrinks,
}

/// How soon a line is left out when the screen is too low; the highest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
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
pub(super) struct Row {
    pub(super) rank: Rank,
    /// Whether something runs here: counted when the line is left out.
    pub(super) runs: bool,
    indent: usize,
    pieces: Vec<(Style, String, Give)>,
}

impl Row {
    /// An empty line.
    pub(super) fn new(rank: Rank, indent: usize) -> Self {
        Self { rank, runs: false, indent, pieces: Vec::new() }
    }

    /// Marks it as the line of something that runs.
    pub(super) fn running(mut self) -> Self {
        self.runs = true;
        self
    }

    /// Adds a piece that stays.
    pub(super) fn put(self, style: Style, text: impl Into<String>) -> Self {
        self.add(style, text.into(), Give::Stays)
    }

    /// Adds a piece that goes first.
    pub(super) fn maybe(self, style: Style, text: impl Into<String>) -> Self {
        self.add(style, text.into(), Give::Goes)
    }

    /// Adds the piece that is shortened.
    pub(super) fn flex(self, style: Style, text: impl Into<String>) -> Self {
        self.add(style, text.into(), Give::Shrinks)
    }

    fn add(mut self, style: Style, text: String, give: Give) -> Self {
        if !text.is_empty() {
            self.pieces.push((style, text, give));
        }
        self
    }

    fn width(&self) -> usize {
        let text: usize = self.pieces.iter().map(|(_, t, _)| columns(t) + 1).sum();
        self.indent + text.saturating_sub(1)
    }

    /// The line as text, at most as wide as the look allows.
    pub(super) fn paint(mut self, look: &Look) -> (String, usize) {
        self.give_way(look);
        let mut left = look.width;
        let mut out = " ".repeat(self.indent.min(left));
        left = left.saturating_sub(self.indent);
        for (index, (style, text, _)) in self.pieces.iter().enumerate() {
            let gap = usize::from(index > 0);
            if left <= gap {
                break;
            }
            let shown = cut(text, left - gap, look.ellipsis());
            out.push_str(&" ".repeat(gap));
            out.push_str(&look.paint(*style, &shown));
            left -= gap + columns(&shown);
            if shown.len() < text.len() {
                break;
            }
        }
        (out, look.width - left)
    }

    fn give_way(&mut self, look: &Look) {
        let flex = self.pieces.iter().position(|p| p.2 == Give::Shrinks);
        if let Some(index) = flex {
            let over = self.width().saturating_sub(look.width);
            let has = columns(&self.pieces[index].1);
            let room = has.saturating_sub(over);
            if over > 0 && room >= FLEX_COLUMNS_MIN {
                self.pieces[index].1 = cut(&self.pieces[index].1, room, look.ellipsis());
            } else if over > 0 {
                self.pieces.remove(index);
            }
        }
        while self.width() > look.width
            && let Some(index) = self.pieces.iter().rposition(|p| p.2 == Give::Goes)
        {
            self.pieces.remove(index);
        }
    }
}

/// Leaves out lines until at most `height` remain; the last then says how many are missing.
pub(super) fn fit(mut rows: Vec<Row>, height: usize, look: &Look) -> Vec<Row> {
    rows = without(rows, height, Rank::Output).0;
    if rows.len() <= height {
        return rows;
    }
    let room = height.saturating_sub(1).max(1);
    let (mut left_out, mut running) = (0, 0);
    while rows.len() > room {
        let highest = rows.iter().map(|r| r.rank).max().unwrap_or(Rank::Header);
        let (rest, gone) = without(rows, room, highest);
        rows = rest;
        left_out += gone.len();
        running += gone.iter().filter(|r| r.runs).count();
        if highest == Rank::Header {
            break;
        }
    }
    if height > 1 {
        let runs = if running > 0 { format!(", {running} running") } else { String::new() };
        let more = format!("{} {left_out} more{runs}", look.ellipsis());
        rows.push(Row::new(Rank::Header, 0).put(super::look::DIM, more));
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
    use super::super::look::PLAIN;
    use super::*;

    fn row() -> Row {
        Row::new(Rank::Step, 2)
            .put(PLAIN, "x")
            .maybe(PLAIN, "[##--]")
            .put(PLAIN, "12s")
            .flex(PLAIN, "the last line of output")
    }

    fn painted(width: usize) -> String {
        row().paint(&Look::plain(width)).0
    }

    #[test]
    fn output_gives_way_before_bars_and_bars_before_numbers() {
        assert_eq!(painted(80), "  x [##--] 12s the last line of output");
        assert_eq!(painted(24), "  x [##--] 12s the last…");
        assert_eq!(painted(16), "  x [##--] 12s");
        assert_eq!(painted(10), "  x 12s");
        assert_eq!(painted(6), "  x 1…");
        assert_eq!(painted(1), " ");
    }

    #[test]
    fn lines_are_left_out_by_rank_and_counted() {
        let rows = |running: usize| -> Vec<Row> {
            let mut rows = vec![Row::new(Rank::Header, 0).put(PLAIN, "head")];
            for n in 0..running {
                rows.push(Row::new(Rank::Step, 2).put(PLAIN, format!("s{n}")).running());
                rows.push(Row::new(Rank::Output, 4).put(PLAIN, "out"));
            }
            rows.push(Row::new(Rank::LanePending, 2).put(PLAIN, "p"));
            rows
        };
        let look = Look::plain(80);
        let shown = |running, height| -> Vec<String> {
            fit(rows(running), height, &look).into_iter().map(|r| r.paint(&look).0).collect()
        };
        assert_eq!(shown(2, 6).len(), 6);
        assert_eq!(shown(2, 4), ["head", "  s0", "  s1", "  p"]);
        assert_eq!(shown(2, 3), ["head", "  s0", "… 2 more, 1 running"]);
        assert_eq!(shown(9, 1), ["head"]);
    }
}

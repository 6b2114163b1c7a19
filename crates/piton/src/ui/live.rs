//! The live tree on a terminal: drawn over itself on stderr, without the alternate screen.
//!
//! Draws what [`super::frame`] made; decides only when to draw and what stays above the tree. What a
//! person must be able to scroll back to (failures, reasons, questions) is printed above as plain
//! lines; the tree itself goes when the driver leaves or this value is dropped.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use crossterm::cursor::{MoveToColumn, MoveUp};
use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use piton_core::event::Outcome;
use piton_core::{Event, Plan, RunState, StepPath, Timestamp};
use piton_engine::{Note, Observer};

use super::frame::{Scene, Tail, closing, frame};
use super::look::{self, Look};
use super::{plain, text, time, words};

/// Least time between two frames: ten a second look smooth, and a thousand steps a second must not
/// become a thousand frames.
const FRAME_EVERY: Duration = Duration::from_millis(95);

/// Draws a run while it is driven.
pub struct Live {
    out: Box<dyn Write>,
    look: Look,
    measured: bool,
    tail: Tail,
    retries: BTreeMap<StepPath, u32>,
    /// The lines on the screen, each with its columns.
    drawn: Vec<(String, usize)>,
    drawn_at: Option<Instant>,
}

impl Live {
    /// Draws on stderr; `tail` gives the last output line of a running step.
    pub fn new(tail: Tail) -> Self {
        let mut live = Self::to(Box::new(std::io::stderr()), Look::stderr(), tail);
        live.measured = true;
        live
    }

    /// Draws elsewhere, in a room that does not change.
    pub fn to(out: Box<dyn Write>, look: Look, tail: Tail) -> Self {
        let (retries, drawn) = (BTreeMap::new(), Vec::new());
        Self { out, look, measured: false, tail, retries, drawn, drawn_at: None }
    }

    /// Lets it say `attempt 2/4`; `retries` takes the place of the plan's, as on the command line.
    #[must_use]
    pub fn with_plan(mut self, plan: &Plan, retries: Option<u32>) -> Self {
        self.retries =
            plan.steps().map(|(path, step)| (path, retries.unwrap_or(step.retries))).collect();
        self
    }

    /// Takes the tree off the screen, for example before a question; the next tick draws it again.
    pub fn clear(&mut self) {
        let mut bytes = Vec::new();
        self.erase(&mut bytes);
        self.drawn.clear();
        self.write(&bytes);
    }

    fn erase(&mut self, bytes: &mut Vec<u8>) {
        if self.measured {
            self.look.measure();
        }
        let rows = rows(&self.drawn, self.look.width);
        if rows > 0 {
            // Writing to memory does not fail.
            let up = u16::try_from(rows).unwrap_or(u16::MAX);
            let _ = queue!(bytes, MoveToColumn(0), MoveUp(up), Clear(ClearType::FromCursorDown));
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            // A terminal that is gone is no reason to stop a run.
            let _ = self.out.write_all(bytes).and_then(|()| self.out.flush());
        }
    }

    /// Prints lines that stay, above the tree.
    fn above(&mut self, lines: &str) {
        let mut bytes = Vec::new();
        self.erase(&mut bytes);
        bytes.extend_from_slice(lines.as_bytes());
        for (line, _) in &self.drawn {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        self.write(&bytes);
    }

    fn draw(&mut self, now: Timestamp, state: &RunState) {
        if self.drawn_at.is_some_and(|at| at.elapsed() < FRAME_EVERY) {
            return;
        }
        let mut bytes = Vec::with_capacity(4096);
        let _ = queue!(bytes, BeginSynchronizedUpdate);
        self.erase(&mut bytes);
        // The cursor needs a row below, and a full last column would wrap on some terminals.
        let room = Look {
            width: self.look.width.saturating_sub(1).max(1),
            height: self.look.height.saturating_sub(1).max(1),
            ..self.look.clone()
        };
        let scene =
            Scene { state, now, look: &room, tail: self.tail.as_ref(), retries: &self.retries };
        self.drawn = frame(&scene);
        for (line, _) in &self.drawn {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        let _ = queue!(bytes, EndSynchronizedUpdate);
        self.write(&bytes);
        self.drawn_at = Some(Instant::now());
    }

    fn close(&mut self, state: &RunState) {
        self.clear();
        let mut lines = closing(state, &self.look).join("\n");
        if !lines.is_empty() {
            lines.push('\n');
        }
        self.write(lines.as_bytes());
        self.drawn_at = None;
    }

    /// What an event leaves above the tree.
    fn lasting(&self, at: Timestamp, event: &Event, state: &RunState) -> Option<String> {
        let style = match event {
            Event::RunCreated(_)
            | Event::DriverAttached(_)
            | Event::DriverLeft(_)
            | Event::StepStarted(_) => return None,
            Event::StepFinished(e) => match e.outcome {
                Outcome::Succeeded => return None,
                _ => look::BAD,
            },
            _ => look::NOTE,
        };
        let clock = self.look.paint(look::DIM, &time::clock(at));
        let words = self.look.paint(style, &words::event(at, event, state));
        let mut lines = format!("{clock} {words}\n");
        for line in plain::output_of(event) {
            let line = self.look.paint(look::DIM, &format!("         | {}", text::sanitize(line)));
            lines.push_str(&line);
            lines.push('\n');
        }
        Some(lines)
    }
}

/// Rows that lines take on a terminal of a width; it may have become narrower since.
fn rows(lines: &[(String, usize)], width: usize) -> usize {
    lines.iter().map(|(_, columns)| columns.div_ceil(width.max(1)).max(1)).sum()
}

impl Observer for Live {
    fn event(&mut self, _seq: u64, at: Timestamp, event: &Event, state: &RunState) {
        if let Some(lines) = self.lasting(at, event, state) {
            self.above(&lines);
        }
        match event {
            Event::DriverLeft(_) => self.close(state),
            _ if state.driven => self.draw(at, state),
            _ => {}
        }
    }

    fn note(&mut self, note: &Note) {
        let line = self.look.paint(look::NOTE, &words::note(note));
        self.above(&format!("{line}\n"));
    }

    fn tick(&mut self, now: Timestamp, state: &RunState) {
        if state.driven {
            self.draw(now, state);
        }
    }

    fn wants_ticks(&self) -> bool {
        true
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use piton_core::event::{DriverLeft, StepReset, Verdict};

    use super::super::fixture::{Shared, state};
    use super::*;

    fn live(out: &Shared) -> Live {
        Live::to(Box::new(out.clone()), Look::plain(80), Box::new(|_| None))
    }

    #[test]
    fn frames_are_drawn_over_each_other_and_not_too_often() {
        let out = Shared::default();
        let mut live = live(&out);
        live.tick(Timestamp(17_000), &state());
        let once = out.text();
        assert!(once.contains("● P1"), "{once}");
        live.tick(Timestamp(17_001), &state());
        assert_eq!(out.text(), once, "a second frame at once");
        live.drawn_at = None;
        live.tick(Timestamp(18_000), &state());
        assert!(out.text()[once.len()..].contains("\u{1b}[9A\u{1b}[J"), "{:?}", out.text());
    }

    #[test]
    fn reasons_stay_above_the_tree_and_the_tree_goes_at_the_end() {
        let out = Shared::default();
        let mut live = live(&out);
        live.tick(Timestamp(17_000), &state());
        let event = Event::StepReset(StepReset {
            step: StepPath::new("P1", "A", "fetch"),
            reason: "artifact a.txt is missing".to_owned(),
        });
        live.event(1, Timestamp(17_000), &event, &state());
        let before = out.text().len();
        let left =
            Event::DriverLeft(DriverLeft { verdict: Verdict::Failed, head: None, signal: None });
        live.event(2, Timestamp(17_000), &left, &state());
        let text = out.text();
        assert!(text[..before].contains("P1/A/fetch is to run again: artifact a.txt is missing\n"));
        assert!(text[before..].starts_with("\u{1b}[1G\u{1b}[9A\u{1b}[J"), "{:?}", &text[before..]);
        assert!(live.drawn.is_empty());
    }

    #[test]
    fn a_terminal_that_became_narrower_is_cleaned_whole() {
        let lines = [("x".repeat(80), 80), (String::new(), 0), ("y".repeat(10), 10)];
        assert_eq!(rows(&lines, 80), 3);
        assert_eq!(rows(&lines, 30), 5);
        assert_eq!(rows(&lines, 0), 91);
    }
}

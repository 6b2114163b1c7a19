//! The live tree on a terminal: drawn over itself on stderr, without the alternate screen.
//!
//! Draws what [`piton_view::frame`] made, with [`super::picture`]; decides when to draw and what stays
//! above the tree. What a person must be able to scroll back to (failures, reasons, questions) is
//! printed above as plain lines; the tree itself goes when the driver leaves or this value is dropped.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use piton_core::event::Outcome;
use piton_core::{Event, Plan, RunState, StepPath, Timestamp};
use piton_engine::{Note, Observer};

use piton_view::frame::{closing, frame};
use piton_view::{Layout, RunView, layout, tree, words};

use super::picture::Picture;
use super::terminal::{self, place};

/// Least time between two frames: ten a second look smooth, and a thousand steps a second must not
/// become a thousand frames.
const FRAME_EVERY: Duration = Duration::from_millis(95);

/// Gives the last line of output of a running step.
pub type Tail = Box<dyn Fn(&StepPath) -> Option<String>>;

/// Draws a run while it is driven.
pub struct Live {
    out: Box<dyn Write>,
    layout: Layout,
    measured: bool,
    tail: Tail,
    retries: BTreeMap<StepPath, u32>,
    picture: Picture,
    drawn_at: Option<Instant>,
}

impl Live {
    /// Draws on stderr; `tail` gives the last output line of a running step.
    pub fn new(tail: Tail) -> Self {
        let mut live = Self::to(Box::new(std::io::stderr()), terminal::stderr(), tail);
        live.measured = true;
        live
    }

    /// Draws elsewhere, in a room that does not change.
    pub fn to(out: Box<dyn Write>, layout: Layout, tail: Tail) -> Self {
        let (retries, picture) = (BTreeMap::new(), Picture::default());
        Self { out, layout, measured: false, tail, retries, picture, drawn_at: None }
    }

    /// Lets it say `attempt 2/4`; `retries` takes the place of the plan's, as on the command line.
    #[must_use]
    pub fn with_plan(mut self, plan: &Plan, retries: Option<u32>) -> Self {
        self.retries =
            plan.steps().map(|(path, step)| (path, retries.unwrap_or(step.retries))).collect();
        self
    }

    /// Takes the tree off the screen; the next tick draws it again.
    pub fn clear(&mut self) {
        self.measure();
        let bytes = self.picture.clear(&self.layout);
        self.write(&bytes);
    }

    fn measure(&mut self) {
        if self.measured {
            terminal::measure(&mut self.layout);
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
        self.measure();
        let bytes = self.picture.above(lines, &self.layout);
        self.write(&bytes);
    }

    fn draw(&mut self, now: Timestamp, state: &RunState) {
        if self.drawn_at.is_some_and(|at| at.elapsed() < FRAME_EVERY) {
            return;
        }
        self.measure();
        let workspace = Picture::workspace(&self.layout);
        let view = &RunView::by_driver(state, now, place());
        let live =
            tree::Live { layout: &workspace, tail: self.tail.as_ref(), retries: &self.retries };
        let bytes = self.picture.draw(frame(view, live), &self.layout);
        self.write(&bytes);
        self.drawn_at = Some(Instant::now());
    }

    fn close(&mut self, state: &RunState) {
        self.clear();
        let view = RunView::by_driver(state, state.last_at, place());
        let mut lines = closing(&view, &self.layout).join("\n");
        if !lines.is_empty() {
            lines.push('\n');
        }
        self.write(lines.as_bytes());
        self.drawn_at = None;
    }

    /// What an event leaves above the tree.
    fn lasting(&self, at: Timestamp, event: &Event, state: &RunState) -> Option<String> {
        let style = match event {
            Event::StepStarted(_) => return None,
            Event::StepFinished(e) => match e.outcome {
                Outcome::Succeeded => return None,
                _ => layout::BAD,
            },
            _ => layout::NOTE,
        };
        let lines = words::lines(at, event, state, place(), (&self.layout, style));
        (!lines.is_empty()).then_some(lines)
    }
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
        let line = self.layout.paint(layout::NOTE, &words::note(note, place()));
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

    use piton_core::state::{LaneState, PhaseState, Progress, StepState};

    use super::super::fixture::{Screen, Shared};
    use super::*;

    /// A run of one step, which runs for the second time.
    fn state() -> RunState {
        let (progress, attempts) = (Progress::Running { since: Timestamp(5_000) }, 2);
        let step = StepState { id: "build".to_owned(), progress, attempts, ..StepState::default() };
        let (id, steps) = ("A".to_owned(), vec![step]);
        let lanes = vec![LaneState { id, steps, ..LaneState::default() }];
        let phases = vec![PhaseState { id: "P1".to_owned(), lanes, ..PhaseState::default() }];
        let title = "Authentication".to_owned();
        RunState { title, driven: true, phases, ..RunState::default() }
    }

    fn live(out: &Shared) -> Live {
        Live::to(Box::new(out.clone()), Layout::plain(80), Box::new(|_| None))
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
        assert!(out.text()[once.len()..].contains("\u{1b}[4A"), "{:?}", out.text());
        let mut screen = Screen::new(80, 24);
        screen.take(out.text().as_bytes());
        assert!(screen.shown()[0].ends_with("Authentication") && screen.shown()[4].is_empty());
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
        let left = Event::DriverLeft(DriverLeft {
            verdict: Verdict::Failed,
            head: None,
            signal: None,
            driven_until: None,
        });
        live.event(2, Timestamp(17_000), &left, &state());
        let text = out.text();
        assert!(text[..before].contains("P1/A/fetch will run again: artifact a.txt is missing\n"));
        let mut screen = Screen::new(80, 24);
        screen.take(text.as_bytes());
        let left: Vec<String> = screen.shown().into_iter().filter(|l| !l.is_empty()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(left[1].starts_with("● P1"), "{left:?}");
    }
}

//! The live picture of a run, as far as the screen has room.
//!
//! Shows what is at work in full and what is over or yet to come in one line; when the screen is low
//! it leaves out the least important and says so.

use std::collections::BTreeMap;

use piton_core::Millis;

use crate::layout::Layout;
use crate::row::{Rank, Row, fit};
use crate::run::{Phase, RunView};
use crate::text::{Line, columns, sanitize};
use crate::tree::{self, Live};

/// Fewest rows in which a tree below a header says more than a picture without the header.
const TREE_ROWS_MIN: usize = 8;

/// Draws a frame of at most the look's height.
pub fn frame(view: &RunView<'_>, live: Live<'_>) -> Vec<Line> {
    let (over, all) = view.progress();
    let elapsed = Millis(view.used.driven_ms.0 + view.since_last().0);
    let text = format!("{} {over}/{all}, {elapsed}", view.run_id);
    let mut rows = vec![Row::new(Rank::Header, 0, None, text)];
    rows[0].beside = sanitize(view.title);
    rows.extend(chosen(view, live, 1));
    painted(rows, live.layout)
}

fn painted(rows: Vec<Row>, layout: &Layout) -> Vec<Line> {
    fit(rows, layout.height, layout).into_iter().map(|row| row.paint(layout)).collect()
}

/// The rows below the header, with less of each lane where `taken` and they are too many.
fn chosen(view: &RunView<'_>, live: Live<'_>, taken: usize) -> Vec<Row> {
    let full = tree::live(view, live, false);
    let needed = taken + full.iter().filter(|r| r.rank <= Rank::Lane).count();
    if needed < live.layout.height { full } else { tree::live(view, live, true) }
}

/// A run at a glance, for `status --watch`: all of it where the screen has the room, else its header
/// and the lines that matter most.
pub fn glance(view: &RunView<'_>, layout: &Layout) -> Vec<Line> {
    let lines = |text: String| -> Vec<Line> {
        text.lines().map(|line| (line.to_owned(), columns(&sanitize(line)))).collect()
    };
    let all = lines(tree::render(view, layout));
    if rows_of(&all, layout) <= layout.height {
        return all;
    }
    let mut header = lines(tree::header(view, layout));
    header.push((String::new(), 0));
    let left = layout.height.saturating_sub(rows_of(&header, layout));
    let (retries, tail) = (&BTreeMap::new(), &|_: &_| None);
    if left < TREE_ROWS_MIN {
        return frame(view, Live { layout, tail, retries });
    }
    let layout = &Layout { height: left, ..layout.clone() };
    header.extend(painted(chosen(view, Live { layout, tail, retries }, 0), layout));
    header
}

/// Rows that lines take: commands are not wrapped, so that they can be copied.
pub fn rows_of(lines: &[Line], layout: &Layout) -> usize {
    lines.iter().map(|(_, columns)| columns.div_ceil(layout.width.max(1)).max(1)).sum()
}

/// One line per phase, for when the run is over and the picture goes.
pub fn closing(view: &RunView<'_>, layout: &Layout) -> Vec<String> {
    let (retries, tail) = (&BTreeMap::new(), &|_: &_| None);
    let begun = |p: &Phase<'_>| p.lanes.iter().any(|l| l.steps.iter().any(|s| s.attempts > 0));
    let rows = tree::live(view, Live { layout, tail, retries }, true);
    let phases = rows.iter().filter(|row| row.is_top()).zip(&view.phases);
    phases.filter(|(_, phase)| begun(phase)).map(|(row, _)| row.paint(layout).0).collect()
}

#[cfg(test)]
mod tests {
    use piton_core::state::{LaneState, Progress, StepState};
    use piton_core::{RunState, StepPath, Timestamp};

    use super::*;
    use crate::fixture::{done, failed, lane, phase, running, seen, state, step};
    use crate::place::Place;

    fn draw(state: &RunState, layout: &Layout) -> Vec<String> {
        let retries = BTreeMap::from([(StepPath::new("P1", "A", "build"), 3)]);
        let tail = |_: &StepPath| Some("Compiling\u{1b}[1m auth v1.2".to_owned());
        let place = Place::default();
        let view = &RunView::new(state, seen(&place, true));
        let lines = frame(view, Live { layout, tail: &tail, retries: &retries });
        for (line, width) in &lines {
            assert_eq!(columns(line), *width, "{line}");
            assert!(*width <= layout.width, "{line}");
        }
        lines.into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_wide_frame_shows_phases_lanes_and_steps() {
        assert_eq!(
            draw(&state(), &Layout::plain(80)),
            [
                "r-1 1/5, 12.0s Authentication",
                "● P1 running, 1/4, 12.0s █████░░░░░░░░░░░░░░░",
                "  ● A running, 1/3",
                "    ✓ fetch complete, 1m 05s, 1 artifact",
                "    ● build running, for 12.0s, attempt 2/4 Compiling auth v1.2",
                "    ○ pack pending",
                "  ○ B pending, 0/1",
                "⏸ P2 waiting, 0/1 piton approve r-1 P2",
            ]
        );
    }

    #[test]
    fn narrow_frames_stay_readable() {
        assert_eq!(
            draw(&state(), &Layout::plain(40))[4..6],
            ["    ● build running, for 12.0s, attempt…", "      Compiling auth v1.2"]
        );
        assert_eq!(
            draw(&state(), &Layout::plain(20)),
            [
                "r-1 1/5, 12.0s Auth…",
                "● P1 running, 1/4, …",
                "  ● A running, 1/3",
                "    ✓ fetch complet…",
                "    ● build running…",
                "      Compiling aut…",
                "    ○ pack pending",
                "  ○ B pending, 0/1",
                "⏸ P2 waiting, 0/1",
            ]
        );
    }

    #[test]
    fn without_utf8_all_is_ascii() {
        let layout = Layout { unicode: false, ..Layout::plain(30) };
        let lines = draw(&state(), &layout);
        assert!(lines.iter().all(|l| l.is_ascii()), "{lines:?}");
        assert_eq!(lines[1], "* P1 running, 1/4, 12.0s [#...");
    }

    #[test]
    fn failures_and_retries_say_why() {
        let mut state = state();
        state.gates.clear();
        state.phases[0].lanes[1] = lane("B", vec![failed("work")]);
        let mut retrying = failed("build");
        retrying.progress = Progress::Waiting {
            since: Timestamp(0),
            until: Timestamp(20_000),
            class: piton_core::event::Class::Command,
        };
        state.phases[0].lanes[0] = lane("A", vec![done("fetch"), retrying]);
        let lines = draw(&state, &Layout::plain(90));
        assert!(
            lines.contains(
                &"    ↻ build retrying, until 00:00:20 (in 3.0s), attempt 2/3 the linker said no"
                    .to_owned()
            ),
            "{lines:?}"
        );
        assert!(
            lines.contains(&"  ✗ B failed, 1.5s, 2 attempts the linker said no".to_owned()),
            "{lines:?}"
        );
    }

    #[test]
    fn more_lanes_than_rows_are_counted() {
        let mut state = state();
        let many = |prefix: &str, n: usize, step: &dyn Fn() -> StepState| -> Vec<LaneState> {
            (0..n).map(|i| lane(&format!("{prefix}{i}"), vec![step(), done("x")])).collect()
        };
        let mut lanes = many("run", 12, &|| running("build"));
        lanes.extend(many("over", 50, &|| done("build")));
        lanes.extend(many("next", 50, &|| step("build")));
        state.phases[0] = phase("P1", lanes);
        state.gates.clear();
        let layout = Layout { height: 10, ..Layout::plain(80) };
        let shown = draw(&state, &layout);
        assert_eq!(shown.len(), 10);
        assert_eq!(shown[2], "  ● run0/build running, for 12.0s, 2 attempts Compiling auth v1.2");
        assert_eq!(shown[9], "… 106 more, 5 running");
        for height in 1..4 {
            assert_eq!(draw(&state, &Layout { height, ..layout.clone() }).len(), height);
        }
    }

    #[test]
    fn a_closing_tells_each_phase_that_began() {
        let (place, state) = (Place::default(), state());
        let view = RunView::by_driver(&state, state.last_at, &place);
        assert_eq!(closing(&view, &Layout::plain(40)), ["● P1 running, 1/4 ██░░░░░░░░"]);
    }

    fn glanced(state: &RunState, height: usize) -> Vec<String> {
        let (place, layout) = (Place::default(), Layout { height, ..Layout::plain(79) });
        let shown = glance(&RunView::new(state, seen(&place, true)), &layout);
        assert!(rows_of(&shown, &layout) <= height, "{shown:?}");
        shown.into_iter().map(|(line, _)| line).collect()
    }

    /// Lost: of a run with many lanes only the last would be seen, which wait.
    #[test]
    fn a_tree_that_is_too_high_shows_header_running_and_failed_steps() {
        let mut state = state();
        let mut lanes: Vec<_> =
            (0..30).map(|n| lane(&format!("over{n}"), vec![done("work")])).collect();
        lanes.push(lane("busy", vec![done("one"), running("two")]));
        lanes.push(lane("bad", vec![failed("work")]));
        lanes.extend((0..30).map(|n| lane(&format!("next{n}"), vec![step("work")])));
        state.phases[0] = phase("P1", lanes);
        for height in [22, 10] {
            let shown = glanced(&state, height).join("\n");
            for word in ["Authentication", "r-1", "31/64", "busy", "bad", "failed", "P1", " more"] {
                assert!(shown.contains(word), "{word}: {shown}");
            }
        }
        assert!(glanced(&state, 22)[3].starts_with("driver"));
    }

    #[test]
    fn what_fits_is_shown_in_full() {
        let shown = glanced(&state(), 22);
        assert!(shown.contains(&"    ○ pack pending".to_owned()), "{shown:?}");
    }
}

//! The live picture of a run: state, time and room in, lines out.
//!
//! Pure. Shows what is at work in full and what is over or yet to come in one line; when the screen
//! is low it leaves out the least important and says so.

use std::collections::BTreeMap;

use piton_core::plan::{IMPLICIT_LANE, IMPLICIT_STEP};
use piton_core::state::{LaneState, PhaseState, Progress, StepState};
use piton_core::summary::{lane_status, phase_status, progress, step_status};
use piton_core::{Millis, RunState, Status, StepPath, Timestamp};

use super::look::{BAD, BUSY, DIM, Look, NOTE, PLAIN, STRONG, style_of};
use super::picture::Line;
use super::row::{Rank, Row, fit};
use super::text::sanitize;
use super::{here, lane_words, time, words};

/// Steps shown on either side of the one at work; the count tells of the rest.
const STEPS_BESIDE: usize = 2;
/// From here on the last output stands on the step's own line.
const OUTPUT_BESIDE_COLUMNS_MIN: usize = 60;
/// Columns of a bar: a quarter of the line, within what the eye can compare.
const BAR_COLUMNS: std::ops::RangeInclusive<usize> = 5..=24;

/// Gives the last line of output of a running step.
pub type Tail = Box<dyn Fn(&StepPath) -> Option<String>>;

/// What a frame is made from.
pub struct Scene<'a> {
    /// Where the run stands.
    pub state: &'a RunState,
    /// When.
    pub now: Timestamp,
    /// Colour, symbols, room.
    pub look: &'a Look,
    /// The last output of running steps.
    pub tail: &'a dyn Fn(&StepPath) -> Option<String>,
    /// How often each step is retried, where known.
    pub retries: &'a BTreeMap<StepPath, u32>,
}

/// Draws a frame of at most the look's height: each line with the columns it takes.
pub fn frame(scene: &Scene<'_>) -> Vec<Line> {
    let mut all = vec![header(scene)];
    all.extend(chosen(scene, 1));
    painted(all, scene.look)
}

/// The same without its header, for where another one stands above.
pub fn below(scene: &Scene<'_>) -> Vec<Line> {
    painted(chosen(scene, 0), scene.look)
}

fn painted(rows: Vec<Row>, look: &Look) -> Vec<Line> {
    fit(rows, look.height, look).into_iter().map(|row| row.paint(look)).collect()
}

/// The rows below the header, with less of each lane where `taken` and they are too many.
fn chosen(scene: &Scene<'_>, taken: usize) -> Vec<Row> {
    let full = rows(scene, false);
    let needed = taken + full.iter().filter(|r| r.rank <= Rank::Lane).count();
    if needed < scene.look.height { full } else { rows(scene, true) }
}

/// One line per phase, for when the run is over and the picture goes.
pub fn closing(state: &RunState, look: &Look) -> Vec<String> {
    let retries = BTreeMap::new();
    let scene = Scene { state, now: state.last_at, look, tail: &|_| None, retries: &retries };
    let begun = |p: &&PhaseState| p.lanes.iter().any(|l| l.steps.iter().any(|s| s.attempts > 0));
    state
        .phases
        .iter()
        .filter(begun)
        .map(|p| phase_row(&scene, p, phase_status(state, p), Rank::Phase).paint(look).0)
        .collect()
}

fn rows(scene: &Scene<'_>, compact: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for phase in &scene.state.phases {
        let status = phase_status(scene.state, phase);
        let rank = match status {
            Status::Complete | Status::Skipped => Rank::PhaseOver,
            Status::Pending | Status::Waiting | Status::Blocked => Rank::PhasePending,
            _ => Rank::Phase,
        };
        rows.push(phase_row(scene, phase, status, rank));
        if rank == Rank::Phase {
            for lane in &phase.lanes {
                lane_rows(scene, phase, lane, compact, &mut rows);
            }
        }
    }
    let open = scene.state.open_gates().filter(|_| scene.state.ended.is_none());
    for (place, gate) in open {
        let mark = scene.look.symbol(Status::Waiting);
        let command = format!("piton approve {} {place}", words::run_id(scene.state));
        rows.push(
            Row::new(Rank::Step, 0)
                .put(NOTE, mark)
                .put(NOTE, here::told(&command).into_owned())
                .flex(PLAIN, format!("({})", sanitize(&gate.name))),
        );
    }
    rows
}

fn header(scene: &Scene<'_>) -> Row {
    let (over, all) = progress(scene.state);
    let elapsed = Millis(scene.state.used.driven_ms.0 + since_last(scene).0);
    Row::new(Rank::Header, 0)
        .flex(STRONG, sanitize(&scene.state.title))
        .maybe(DIM, words::run_id(scene.state))
        .put(PLAIN, format!("{over}/{all}"))
        .put(DIM, elapsed.to_string())
}

/// Time that no event has accounted for yet.
fn since_last(scene: &Scene<'_>) -> Millis {
    if scene.state.driven { scene.now.since(scene.state.last_at) } else { Millis(0) }
}

fn phase_row(scene: &Scene<'_>, phase: &PhaseState, status: Status, rank: Rank) -> Row {
    let steps = || phase.lanes.iter().flat_map(|l| &l.steps);
    let (over, all) = (steps().filter(|s| s.progress.is_over()).count(), steps().count());
    let busy = steps().any(|s| matches!(s.progress, Progress::Running { .. }));
    let more = if busy { since_last(scene) } else { Millis(0) };
    let elapsed = Millis(phase.driven_ms.0 + more.0);
    let row = Row::new(rank, 0)
        .put(style_of(status), scene.look.symbol(status))
        .put(PLAIN, sanitize(&phase.id));
    let row = if rank == Rank::Phase {
        row.maybe(style_of(status), bar(over, all, scene.look))
    } else {
        row.maybe(DIM, status.as_str())
    };
    let row = row.put(PLAIN, format!("{over}/{all}"));
    if elapsed.0 > 0 { row.put(DIM, elapsed.to_string()) } else { row }
}

fn bar(over: usize, all: usize, look: &Look) -> String {
    let columns = (look.width / 4).clamp(*BAR_COLUMNS.start(), *BAR_COLUMNS.end());
    let (full, empty, open, close) =
        if look.unicode { ("█", "░", "", "") } else { ("#", "-", "[", "]") };
    let filled = (over * columns).checked_div(all).unwrap_or(0);
    format!("{open}{}{}{close}", full.repeat(filled), empty.repeat(columns - filled))
}

fn lane_rows(
    scene: &Scene<'_>,
    phase: &PhaseState,
    lane: &LaneState,
    compact: bool,
    rows: &mut Vec<Row>,
) {
    let status = lane_status(scene.state, phase, lane);
    let over = lane.steps.iter().filter(|s| s.progress.is_over()).count();
    let counted = format!("{over}/{}", lane.steps.len());
    let heading = |rank| {
        Row::new(rank, 2)
            .put(style_of(status), scene.look.symbol(status))
            .put(PLAIN, lane.id.clone())
            .put(DIM, counted.clone())
    };
    match status {
        Status::Complete | Status::Skipped => {
            rows.push(heading(Rank::LaneOver).maybe(DIM, status.as_str()));
            return;
        }
        Status::Pending | Status::Waiting | Status::Blocked => {
            let work = lane.work.as_ref();
            let why = work.and_then(|w| lane_words::blocked(w)).or_else(|| lane_words::way(lane));
            let row = heading(Rank::LanePending);
            rows.push(match why {
                Some(why) => row.flex(NOTE, why),
                None => row.maybe(DIM, status.as_str()),
            });
            return;
        }
        _ => {}
    }
    let Some(at) = lane.current() else {
        // Its steps are over, its work is on the way to base.
        let way = lane_words::way(lane).unwrap_or_else(|| "finishing".to_owned());
        rows.push(heading(Rank::Lane).flex(BUSY, way).running());
        return;
    };
    let simple = lane.steps.len() == 1 && lane.steps[0].id == IMPLICIT_STEP;
    if simple || compact {
        let name =
            if simple { lane.id.clone() } else { format!("{}/{}", lane.id, lane.steps[at].id) };
        let name = if simple { name } else { format!("{name} {counted}") };
        step_rows(scene, phase, lane, &lane.steps[at], &name, 2, rows);
        return;
    }
    let alone = phase.lanes.len() == 1 && lane.id == IMPLICIT_LANE;
    if !alone {
        rows.push(heading(Rank::Lane));
    }
    let indent = if alone { 2 } else { 4 };
    let from = at.saturating_sub(STEPS_BESIDE);
    for (index, step) in lane.steps.iter().enumerate().skip(from).take(2 * STEPS_BESIDE + 1) {
        if index == at {
            step_rows(scene, phase, lane, step, &step.id, indent, rows);
        } else {
            rows.push(beside(scene, step, indent));
        }
    }
}

/// A step before or after the one at work.
fn beside(scene: &Scene<'_>, step: &StepState, indent: usize) -> Row {
    let status = step.status();
    let row = Row::new(Rank::StepBeside, indent)
        .put(style_of(status), scene.look.symbol(status))
        .put(DIM, step.id.clone());
    if step.duration_ms.0 > 0 { row.maybe(DIM, step.duration_ms.to_string()) } else { row }
}

/// The step where a lane stands, and its last output.
fn step_rows(
    scene: &Scene<'_>,
    phase: &PhaseState,
    lane: &LaneState,
    step: &StepState,
    name: &str,
    indent: usize,
    rows: &mut Vec<Row>,
) {
    let status = step_status(scene.state, phase, lane, step);
    let path = StepPath::new(&phase.id, &lane.id, &step.id);
    let row = Row::new(Rank::Step, indent)
        .put(style_of(status), scene.look.symbol(status))
        .put(PLAIN, name);
    let last_error = || step.failure_context.last().map(|f| sanitize(&f.error)).unwrap_or_default();
    match step.progress {
        Progress::Running { since } => {
            let output = (scene.tail)(&path).map(|line| sanitize(&line)).unwrap_or_default();
            let row = row
                .maybe(NOTE, attempt(scene, &path, step))
                .put(BUSY, scene.now.since(since).to_string())
                .running();
            if scene.look.width >= OUTPUT_BESIDE_COLUMNS_MIN {
                rows.push(row.flex(DIM, output));
            } else {
                rows.push(row);
                if !output.trim().is_empty() {
                    rows.push(Row::new(Rank::Output, indent + 2).flex(DIM, output));
                }
            }
        }
        Progress::Waiting { .. } if scene.state.ended.is_some() => {
            rows.push(row.put(NOTE, status.as_str()).flex(DIM, last_error()));
        }
        progress @ Progress::Waiting { .. } => {
            let until = progress.waits_until(scene.now).unwrap_or(scene.now);
            let left = until.since(scene.now);
            let when = if status == Status::Parked {
                format!("until {}", time::ahead(until, scene.now))
            } else {
                format!("again in {left}")
            };
            rows.push(row.put(NOTE, when).flex(DIM, last_error()));
        }
        Progress::Failed => {
            let class = step.failure_context.last().map(|f| f.class);
            let error = class.map(|c| words::failure(c, step.exit_code, &last_error()));
            rows.push(row.put(BAD, "failed").flex(PLAIN, error.unwrap_or_default()));
        }
        _ => rows.push(row),
    }
}

/// `attempt 2/4` from the second attempt on; without the limit where it is not known.
fn attempt(scene: &Scene<'_>, path: &StepPath, step: &StepState) -> String {
    if step.attempts < 2 {
        return String::new();
    }
    match scene.retries.get(path) {
        Some(retries) => {
            let last = step.attempts + retries.saturating_sub(step.failures);
            format!("attempt {}/{last}", step.attempts)
        }
        None => format!("attempt {}", step.attempts),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{done, failed, lane, phase, running, state, step};
    use super::super::text::columns;
    use super::*;

    fn draw(state: &RunState, look: &Look) -> Vec<String> {
        let retries = BTreeMap::from([(StepPath::new("P1", "A", "build"), 3)]);
        let tail = |_: &StepPath| Some("Compiling\u{1b}[1m auth v1.2".to_owned());
        let scene = Scene { state, now: Timestamp(17_000), look, tail: &tail, retries: &retries };
        let lines = frame(&scene);
        for (line, width) in &lines {
            assert_eq!(columns(line), *width, "{line}");
            assert!(*width <= look.width, "{line}");
        }
        lines.into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_wide_frame_shows_phases_lanes_and_steps() {
        assert_eq!(
            draw(&state(), &Look::plain(80)),
            [
                "Authentication r-1 1/5 12.0s",
                "● P1 █████░░░░░░░░░░░░░░░ 1/4 12.0s",
                "  ● A 1/3",
                "    ✓ fetch 1m 05s",
                "    ● build attempt 2/4 12.0s Compiling auth v1.2",
                "    ○ pack",
                "  ○ B 0/1 pending",
                "⏸ P2 waiting 0/1",
                "⏸ piton approve r-1 P2 (Spec approval)",
            ]
        );
    }

    #[test]
    fn narrow_frames_stay_readable() {
        assert_eq!(
            draw(&state(), &Look::plain(40))[4..6],
            ["    ● build attempt 2/4 12.0s", "      Compiling auth v1.2"]
        );
        assert_eq!(
            draw(&state(), &Look::plain(20)),
            [
                "Authe… r-1 1/5 12.0s",
                "● P1 █░░░░ 1/4 12.0s",
                "  ● A 1/3",
                "    ✓ fetch 1m 05s",
                "    ● build 12.0s",
                "      Compiling aut…",
                "    ○ pack",
                "  ○ B 0/1 pending",
                "⏸ P2 waiting 0/1",
                "⏸ piton approve r-1…",
            ]
        );
    }

    #[test]
    fn without_utf8_all_is_ascii() {
        let look = Look { unicode: false, ..Look::plain(30) };
        let lines = draw(&state(), &look);
        assert!(lines.iter().all(|l| l.is_ascii()), "{lines:?}");
        assert_eq!(lines[1], "* P1 [#------] 1/4 12.0s");
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
        let lines = draw(&state, &Look::plain(80));
        assert!(
            lines.contains(&"    ↻ build again in 3.0s the linker said no".to_owned()),
            "{lines:?}"
        );
        assert!(lines.contains(&"  ✗ B failed exit 7: the linker said no".to_owned()), "{lines:?}");
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
        let look = Look { height: 10, ..Look::plain(80) };
        let shown = draw(&state, &look);
        assert_eq!(shown.len(), 10);
        assert_eq!(shown[2], "  ● run0/build 1/2 attempt 2 12.0s Compiling auth v1.2");
        assert_eq!(shown[9], "… 106 more, 5 running");
        for height in 1..4 {
            assert_eq!(draw(&state, &Look { height, ..look.clone() }).len(), height);
        }
    }

    #[test]
    fn a_closing_tells_each_phase_that_began() {
        assert_eq!(closing(&state(), &Look::plain(40)), ["● P1 ██░░░░░░░░ 1/4"]);
    }
}

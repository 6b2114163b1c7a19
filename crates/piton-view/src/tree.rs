//! A run as a tree of lines: phases, lanes and steps, the same for `status`, `show` and the live picture.
//!
//! Says every status with symbol and word. Times are lengths, not clock times, where they can be:
//! `status` is a cold command and need not load a time zone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use piton_core::plan::{IMPLICIT_LANE, IMPLICIT_STEP};
use piton_core::state::Progress;
use piton_core::{Millis, Status, StepPath};

use crate::agent_words;
use crate::lane::Blocked;
use crate::layout::{Layout, STRONG, style_of};
use crate::replan;
use crate::row::{HANG, Rank, Row};
use crate::run::{Lane, Phase, RunView, Step};
use crate::session;
use crate::text::{count, sanitize, wrap};
use crate::words;

/// Steps of a lane that are listed in any case; of longer lanes a status counts the finished ones.
const STEPS_UNFOLDED_MAX: usize = 25;
/// Steps that a live picture shows on either side of the one at work; the count tells of the rest.
const STEPS_BESIDE: usize = 2;
/// From here on the last output stands on the step's own line.
const OUTPUT_BESIDE_COLUMNS_MIN: usize = 60;
/// Columns of a bar: a quarter of the line, within what the eye can compare.
const BAR_COLUMNS: std::ops::RangeInclusive<usize> = 5..=24;

/// What a live picture shows beside the run.
#[derive(Clone, Copy)]
pub struct Live<'a> {
    /// Colour, symbols, room.
    pub layout: &'a Layout,
    /// The last output of running steps.
    pub tail: &'a dyn Fn(&StepPath) -> Option<String>,
    /// How often each step is retried, where known.
    pub retries: &'a BTreeMap<StepPath, u32>,
}

/// Header and tree of a run, and what its repository says; every line ends in a newline.
pub fn render(view: &RunView<'_>, layout: &Layout) -> String {
    let mut tree = Tree { view, live: None, is_short: true, rows: Vec::new() };
    let mut out = header(view, layout);
    // The tasks of a session are on its board.
    if view.session.is_none() {
        view.phases.iter().for_each(|phase| tree.phase(phase));
        out.push('\n');
    }
    tree.rows.iter().for_each(|row| row.write(&mut out, layout));
    for moved in view.moved {
        let _ = writeln!(out, "base     {}", moved.words());
    }
    for left in view.left {
        let _ = writeln!(out, "left     {}; {}", left.words(), left.next(view.place));
    }
    out
}

/// One phase with its lanes, or one lane with its steps.
pub fn subtree(
    view: &RunView<'_>,
    phase: &Phase<'_>,
    lane: Option<&Lane<'_>>,
    layout: &Layout,
) -> String {
    let mut tree = Tree { view, live: None, is_short: false, rows: Vec::new() };
    match lane {
        None => tree.phase(phase),
        Some(lane) => tree.lane(2, phase, lane),
    }
    let mut out = String::new();
    tree.rows.iter().for_each(|row| row.write(&mut out, layout));
    out
}

/// The lines of a live picture, all or with one for each lane at work.
pub(crate) fn live(view: &RunView<'_>, live: Live<'_>, is_short: bool) -> Vec<Row> {
    let mut tree = Tree { view, live: Some(live), is_short, rows: Vec::new() };
    view.phases.iter().for_each(|phase| tree.phase(phase));
    tree.rows
}

/// The header of a run: name, status, time, driver, and what to type if it stands still.
pub fn header(view: &RunView<'_>, layout: &Layout) -> String {
    let RunView { status, now, place, state, .. } = view;
    let (over, all) = view.progress();
    let lives = view.driver_lives();
    // The last sign of life of a driver that is gone: an event of its own, or the heartbeat of its
    // lease. What a person records later is no part of it.
    let heard = view.driver.as_ref().map_or(state.counted_at, |driver| driver.heard_at);
    let end = if lives { *now } else { state.counted_at.max(heard) };
    let elapsed = end.since(state.created_at);
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        let text = wrap(&format!("{name:<8} {value}"), layout.width, HANG);
        let _ = writeln!(out, "{}", text.replacen(name, &layout.paint(STRONG, name), 1));
    };
    line("run", &format!("{} {}", sanitize(view.run_id), sanitize(view.title)));
    line("plan", &sanitize(view.plan));
    let shown = format!("{} {status}", layout.symbol(*status));
    let ago = now.since(state.last_at);
    let far = match (view.seq, elapsed) {
        (0, _) => "not started".to_owned(),
        (_, Millis(0)) => format!("{over}/{all} steps, last event {ago} ago"),
        _ => format!("{over}/{all} steps, elapsed {elapsed}, last event {ago} ago"),
    };
    let far = view.session.map_or(far, |session| session::progress(session, ago));
    line("status", &format!("{shown}, {far}"));
    match &view.driver {
        Some(driver) if lives && driver.stopped => {
            line("driver", &format!("{}, which is stopped", sanitize(&driver.to_string())));
            line("next", &format!("kill -CONT {}", driver.pid));
            let run = sanitize(view.run_id);
            line("or", &place.piton(format_args!("resume {run} --takeover")));
        }
        Some(driver) if lives => line("driver", &sanitize(&driver.to_string())),
        Some(driver) => {
            line("driver", &format!("none ({} is gone)", sanitize(&driver.to_string())));
        }
        None => {}
    }
    if let Some(budget) = state.exhausted.as_deref().filter(|_| !lives && !status.is_final()) {
        line("budget", &format!("{} is used up, so nothing more was started", sanitize(budget)));
    }
    if let Some(words) = view.cut_short().filter(|_| !lives) {
        line("note", &words);
    }
    if let Some(last) = view.checkpoints.last() {
        line("saved", &format!("checkpoint {}: {}", sanitize(last.name), sanitize(last.message)));
    }
    for (name, words) in view.session.map(session::lines).unwrap_or_default() {
        line(name, &words);
    }
    for words in replan::lines(state) {
        line("replan", &words);
    }
    for task in &view.fix_tasks {
        line("fix", &sanitize(&task.words()));
    }
    if !lives && !status.is_final() {
        // A command is there to be copied: it is not wrapped.
        if let Some(command) = view.next_standing() {
            let _ = writeln!(out, "{}     {command}", layout.paint(STRONG, "next"));
        }
    }
    out.replacen(&shown, &layout.paint(style_of(*status), &shown), 1)
}

struct Tree<'a> {
    view: &'a RunView<'a>,
    live: Option<Live<'a>>,
    /// Whether less is shown: the finished steps of long lanes are only counted, or of lanes at work
    /// only the step where they stand is named.
    is_short: bool,
    rows: Vec<Row>,
}

impl Tree<'_> {
    fn phase(&mut self, phase: &Phase<'_>) {
        let ((over, all), status) = (phase.progress(), phase.status);
        let mut text = format!("{} {status}, {over}/{all}", sanitize(phase.id));
        let runs = |s: &Step<'_>| matches!(s.state.progress, Progress::Running { .. });
        let busy = phase.lanes.iter().flat_map(|l| &l.steps).any(runs);
        let more = if busy { self.view.since_last() } else { Millis(0) };
        if phase.driven_ms.0 + more.0 > 0 {
            let _ = write!(text, ", {}", Millis(phase.driven_ms.0 + more.0));
        }
        let replan = self.view.state.replans.under_way.as_ref();
        let replan = replan.map(|u| &u.begun).filter(|begun| begun.phase == phase.id);
        if let Some(begun) = replan {
            let _ = write!(text, ", replan {} is under way", begun.number);
        }
        let rank = match status {
            _ if replan.is_some() => Rank::Phase,
            Status::Complete | Status::Skipped => Rank::PhaseOver,
            Status::Pending | Status::Waiting | Status::Blocked => Rank::PhasePending,
            _ => Rank::Phase,
        };
        let mut row = Row::new(rank, 0, Some(status), text);
        self.gate(&mut row, phase.id);
        if let (Some(Live { layout, .. }), Rank::Phase) = (self.live, rank) {
            row.beside = bar(over, all, layout);
        }
        self.rows.push(row);
        let (watched, at_work) = (self.live.is_some(), rank == Rank::Phase);
        // Tasks stand below the step that waits for them.
        let shown = |lane: &&Lane<'_>| if watched { at_work } else { lane.task_of.is_none() };
        for lane in phase.lanes.iter().filter(shown) {
            self.lane(2, phase, lane);
        }
    }

    fn lane(&mut self, at: usize, phase: &Phase<'_>, lane: &Lane<'_>) {
        let (status, work) = (lane.status, &lane.work);
        let mut text = format!("{} {status}", sanitize(lane.id));
        if let Some(way) = lane.way {
            let _ = write!(text, ", {way}");
        }
        let rank = match status {
            Status::Complete | Status::Skipped => Rank::LaneOver,
            Status::Pending | Status::Waiting | Status::Blocked => Rank::LanePending,
            _ => Rank::Lane,
        };
        if self.live.is_some() {
            let over = lane.steps.iter().filter(|s| s.state.progress.is_over()).count();
            let _ = write!(text, ", {over}/{}", lane.steps.len());
        }
        let mut row = Row::new(rank, at, Some(status), text);
        if !lane.is_over {
            work.place.iter().for_each(|place| row.below(place.clone()));
            work.began.iter().for_each(|notes| row.below(format!("began: {}", sanitize(notes))));
        }
        if let Some(blocked) = &work.blocked {
            row.say(self.blocked(lane, blocked), false);
        }
        work.missed().into_iter().for_each(|missed| row.below(missed));
        if lane.has_gate {
            self.gate(&mut row, &lane.path.to_string());
        }
        if self.live.is_some() {
            return self.at_work(row, phase, lane);
        }
        let fold = self.is_short && lane.steps.len() > STEPS_UNFOLDED_MAX;
        let quiet = |s: &&Step<'_>| fold && s.state.progress == Progress::Done && s.rerun.is_none();
        let folded = lane.steps.iter().filter(quiet).count();
        if folded > 0 {
            let (run, steps) = (self.view.run_id, count(folded, "finished step"));
            let show = self.view.place.piton(format_args!("show {run}/{}", lane.path));
            row.below(format!("{steps} ({show} lists them)"));
        }
        self.rows.push(row);
        for step in lane.steps.iter().filter(|step| !quiet(step)) {
            self.step(at + 2, Rank::Step, lane, step, step.id);
            for task in phase.tasks_at(lane.id, step.id) {
                self.lane(at + 4, phase, task);
            }
        }
    }

    /// Why a lane is blocked; what blocks several lanes is said of the first.
    fn blocked(&self, lane: &Lane<'_>, blocked: &Blocked<'_>) -> String {
        let is_same = |other: &&Lane<'_>| {
            other.work.blocked.as_ref().is_some_and(|b| b.refusal == blocked.refusal)
        };
        match self.view.lanes().find(is_same) {
            Some(first) if first.path != lane.path => format!("blocked like {}", first.path),
            _ => format!("blocked: {}", self.view.place.refusal(blocked.refusal)),
        }
    }

    /// A lane that is watched: what is over or yet to come is one line.
    fn at_work(&mut self, mut row: Row, phase: &Phase<'_>, lane: &Lane<'_>) {
        let Some(at) = lane.current.filter(|_| row.rank == Rank::Lane) else {
            // Where its steps are over, its work is on the way to base.
            row.runs = row.rank == Rank::Lane;
            return self.rows.push(row);
        };
        let step = &lane.steps[at];
        if lane.steps.len() == 1 && step.id == IMPLICIT_STEP {
            return self.step(2, Rank::Step, lane, step, lane.id);
        }
        if self.is_short {
            return self.step(2, Rank::Step, lane, step, &format!("{}/{}", lane.id, step.id));
        }
        let alone = phase.lanes.len() == 1 && lane.id == IMPLICIT_LANE;
        if !alone {
            self.rows.push(row);
        }
        let (from, indent) = (at.saturating_sub(STEPS_BESIDE), if alone { 2 } else { 4 });
        for (index, step) in lane.steps.iter().enumerate().skip(from).take(2 * STEPS_BESIDE + 1) {
            let rank = if index == at { Rank::Step } else { Rank::StepBeside };
            self.step(indent, rank, lane, step, step.id);
        }
    }

    /// What is known of a gate; a gate that was not reached yet says nothing.
    fn gate(&self, row: &mut Row, place: &str) {
        let Some(gate) = self.view.gate(place) else {
            return;
        };
        let name = sanitize(&gate.name);
        match &gate.decision {
            None if self.view.state.ended.is_some() => {
                row.below(format!("gate \"{name}\" was not decided"));
            }
            None => {
                let asked = self.view.now.since(gate.asked_at);
                row.below(format!("gate \"{name}\" is waiting for a person, asked {asked} ago"));
                let approve = format_args!("approve {} {place}", self.view.run_id);
                row.say(self.view.place.piton(approve), true);
                // A question to a person is not left out.
                row.rank = row.rank.min(Rank::Step);
            }
            Some(decision) => {
                let verb = if decision.approved { "approved" } else { "rejected" };
                row.below(format!("gate \"{name}\" {verb} by {}", sanitize(&decision.by)));
            }
        }
    }

    fn step(&mut self, at: usize, rank: Rank, lane: &Lane<'_>, step: &Step<'_>, name: &str) {
        let state = step.state;
        let text = format!("{} {}{}", sanitize(name), step.status, self.about(lane, step));
        let mut row = Row::new(rank, at, Some(step.status), text);
        if is_told(step) {
            row.say(words::why_failed(state), false);
        }
        if let Some(reason) = step.rerun {
            row.below(format!("runs again: {}", sanitize(reason)));
        }
        row.runs = matches!(state.progress, Progress::Running { .. });
        // What an agent writes is for programs: what it does is shown instead.
        let waits = matches!(state.progress, Progress::Waiting { .. });
        let agent = state.agent.as_deref().filter(|agent| !agent.program.is_empty());
        let agent = agent.filter(|_| row.runs || waits).map(agent_words::standing);
        let agent = agent.filter(|standing| !standing.is_empty());
        if let (None, Some(agent)) = (&self.live, &agent) {
            row.below(agent.clone());
        }
        let live = self.live.filter(|_| row.runs);
        let output = |live: &Live<'_>| agent.clone().or_else(|| (live.tail)(&lane.step(step.id)));
        let Some((live, output)) = live.and_then(|l| Some((l, output(&l)?))) else {
            return self.rows.push(row);
        };
        let output = sanitize(&output);
        if live.layout.width >= OUTPUT_BESIDE_COLUMNS_MIN {
            row.beside = output;
            self.rows.push(row);
        } else {
            self.rows.push(row);
            self.rows.push(Row::new(Rank::Output, at + 2, None, output));
        }
    }

    /// Attempts, exit code, times and artifacts of a step.
    fn about(&self, lane: &Lane<'_>, step: &Step<'_>) -> String {
        let (RunView { now, place, .. }, attempts) = (self.view, step.attempts);
        let (state, mut more) = (step.state, String::new());
        let mut add = |text: &str| {
            more.push_str(", ");
            more.push_str(text);
        };
        match state.progress {
            Progress::Running { since } => add(&format!("for {}", now.since(since))),
            progress @ Progress::Waiting { .. } if self.view.state.ended.is_none() => {
                let due = || "due now".to_owned();
                add(&progress.waits_until(*now).map_or_else(due, |until| {
                    format!("until {} (in {})", place.ahead(until, *now), until.since(*now))
                }));
            }
            _ if state.duration_ms.0 > 0 => add(&state.duration_ms.to_string()),
            _ => {}
        }
        if attempts > 1 {
            let retries = self.live.and_then(|live| live.retries.get(&lane.step(step.id)));
            add(&match retries {
                Some(more) => {
                    format!("attempt {attempts}/{}", attempts + more.saturating_sub(state.failures))
                }
                None => count(attempts as usize, "attempt"),
            });
        }
        // A failure that is told says it too.
        let is_told = is_told(step) || matches!(state.progress, Progress::Running { .. });
        if let Some(code) = step.exit_code.filter(|code| *code != 0 && !is_told) {
            add(&format!("exit {code}"));
        }
        if !step.artifacts.is_empty() {
            add(&count(step.artifacts.len(), "artifact"));
        }
        more
    }
}

/// Whether the last failure of a step is told.
fn is_told(step: &Step<'_>) -> bool {
    let failed = matches!(step.state.progress, Progress::Failed | Progress::Waiting { .. });
    failed && !step.state.failure_context.is_empty()
}

/// How far something is, for the eye.
fn bar(over: usize, all: usize, layout: &Layout) -> String {
    let columns = (layout.width / 4).clamp(*BAR_COLUMNS.start(), *BAR_COLUMNS.end());
    let (full, empty, open, close) =
        if layout.unicode { ("█", "░", "", "") } else { ("#", "-", "[", "]") };
    let filled = (over * columns).checked_div(all).unwrap_or(0);
    format!("{open}{}{}{close}", full.repeat(filled), empty.repeat(columns - filled))
}

#[cfg(test)]
mod tests {
    use piton_core::evidence::{Rerun, Stale};
    use piton_core::state::StepState;
    use piton_core::{RunState, StepPath, Timestamp};

    use super::*;
    use crate::fixture::{failed, lane, seen, state};
    use crate::place::Place;
    use crate::run::Seen;
    use crate::text::columns;

    fn drawn(state: &RunState, lives: bool, layout: &Layout) -> String {
        render(&RunView::new(state, seen(&Place::default(), lives)), layout)
    }

    /// Lost: a run that was ended for good would count down to an attempt that never comes.
    #[test]
    fn a_run_that_was_ended_waits_for_nothing() {
        let mut state = state();
        let (since, until) = (Timestamp(5_000), Timestamp(9_000_000));
        let waits = Progress::Waiting { since, until, class: piton_core::event::Class::Command };
        let step = StepState { progress: waits, ..failed("build") };
        state.phases[0].lanes[0].steps[1] = step;
        state.ended = Some(Status::Cancelled);
        let text = drawn(&state, false, &Layout::plain(80));
        let whole = "⊗ P1 cancelled, 1/4\n  ⊗ A cancelled\n    ✓ fetch complete, 1m 05s, 1 artifact\n    \
             ⊗ build cancelled, 1.5s, 2 attempts\n      the linker said no\n    \
             ○ pack pending\n  ○ B pending\n    ○ work pending\n⊗ P2 cancelled, 0/1\n  \
             gate \"Spec approval\" was not decided\n";
        assert!(text.contains(whole), "{text}");
    }

    /// Lost: a checkpoint recorded hours after a failure would make the run hours longer.
    #[test]
    fn what_a_person_does_later_makes_a_run_no_longer() {
        let mut state = state();
        state.driven = false;
        state.counted_at = Timestamp(5_000);
        state.last_at = Timestamp(16_000);
        let place = Place::default();
        let seen = Seen { driver: None, ..seen(&place, false) };
        let text = header(&RunView::new(&state, seen), &Layout::plain(80));
        assert!(text.contains("elapsed 5.0s, last event 1.0s ago"), "{text}");
    }

    #[test]
    fn failures_and_reruns_say_why() {
        let mut state = state();
        state.phases[0].lanes[1] = lane("B", vec![failed("work")]);
        let rerun = [Rerun {
            stale: Stale::ArtifactMissing,
            step: StepPath::new("P1", "A", "fetch"),
            reason: "artifact a.txt is missing".to_owned(),
        }];
        let place = Place::default();
        let view = RunView::new(&state, Seen { rerun: &rerun, ..seen(&place, false) });
        let text = subtree(&view, &view.phases[0], None, &Layout::plain(80));
        assert!(text.contains("      runs again: artifact a.txt is missing\n"), "{text}");
        assert!(
            text.contains("    ✗ work failed, 1.5s, 2 attempts\n      the linker said no\n"),
            "{text}"
        );
        let (phase, layout) = (&view.phases[0], Layout::plain(80));
        let lane = subtree(&view, phase, Some(&phase.lanes[1]), &layout);
        assert!(lane.starts_with("  ✗ B failed\n") && !lane.contains("fetch"), "{lane}");
    }

    #[test]
    fn narrow_terminals_wrap_at_words_but_commands_stay_whole() {
        for width in [40, 20] {
            let text = drawn(&state(), true, &Layout::plain(width));
            assert!(text.contains("  piton approve r-1 P2\n"), "{text}");
            for line in text.lines().filter(|l| !l.contains("piton approve")) {
                assert!(columns(line) <= width, "{line}");
            }
        }
    }

    #[test]
    fn colour_changes_no_word() {
        let layout = Layout { color: true, ..Layout::plain(80) };
        let colored = drawn(&state(), true, &layout);
        assert!(colored.contains("\u{1b}[32m✓\u{1b}[0m fetch"), "{colored}");
        let stripped = anstream::adapter::strip_str(&colored).to_string();
        assert_eq!(stripped, drawn(&state(), true, &Layout::plain(80)));
    }
}

//! Phases and lanes on a time line: which rows there are, and which boxes each has.
//!
//! Pure geometry in units of [`scale::LENGTH`]; how a box is drawn is up to the page. Boxes of a row
//! never overlap: attempts too short to be seen apart become one box that counts them.
//!
//! [`scale::LENGTH`]: super::scale::LENGTH

use piton_core::{Millis, Status};

use super::scale::{LENGTH, Mark, Scale};
use super::span::Span;
use super::{Attempt, Cause, Ended, Lane, Phase, Report, Step, Wait, WaitFor};
use crate::place::At;
use crate::text::{count, sanitize};

/// Least width of a box: it can be seen on a phone.
const BOX_MIN: u32 = 50;
/// Most lanes that are drawn: some screens full. The tables name more.
const LANES_DRAWN_MAX: usize = 200;

/// A time line.
#[derive(Debug)]
pub(super) struct TimeLine {
    pub rows: Vec<Row>,
    /// Lanes that are not drawn.
    pub more: usize,
    pub marks: Vec<Mark>,
    pub cuts: Vec<Cut>,
    pub stops: Vec<StopMark>,
}

/// A row.
#[derive(Debug)]
pub(super) struct Row {
    pub kind: RowKind,
    pub name: String,
    pub status: Option<Status>,
    pub boxes: Vec<Box>,
}

/// What a row is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    /// The heading of a phase with several lanes.
    Phase,
    /// A lane of such a phase.
    Lane,
    /// The only lane of a phase, under its name.
    Only,
    /// Waits for people.
    People,
    /// Replans.
    Replans,
}

/// A box of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Box {
    pub from: u32,
    pub to: u32,
    pub tone: Tone,
    /// How many attempts it stands for.
    pub count: usize,
    /// What it is, in words.
    pub words: String,
}

/// What a box says by its looks, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    /// The extent of a phase.
    Extent,
    /// An attempt that succeeded.
    Good,
    /// One that is at work.
    Busy,
    /// A wait for a person.
    Wait,
    /// A replan.
    Replan,
    /// An attempt that was cut short.
    Cut,
    /// One that failed.
    Bad,
}

/// Time that is cut from the line.
#[derive(Debug)]
pub(super) struct Cut {
    pub from: u32,
    pub to: u32,
    pub length: Millis,
}

/// A stop on the line.
#[derive(Debug)]
pub(super) struct StopMark {
    pub at: u32,
    pub cause: Cause,
    pub words: String,
}

impl TimeLine {
    /// The time line of a run; nothing if nothing was ever at work.
    pub fn new(report: &Report<'_>) -> Option<Self> {
        let attempts = super::all_attempts(&report.phases).map(Attempt::span);
        let until = At(report.created_at.0.after(report.times.elapsed_ms));
        let replans = report.replans.iter().filter_map(|replan| replan.span(until));
        let scale = Scale::new(attempts.chain(replans))?;
        let mut rows = Vec::new();
        let mut room = LANES_DRAWN_MAX;
        for phase in &report.phases {
            rows.extend(phase_rows(phase, &scale, &mut room));
        }
        let people = report.waits.iter().map(|wait| wait_box(wait, &scale)).collect();
        rows.extend(row(RowKind::People, "waiting for people", packed(people)));
        let replans = report.replans.iter().filter_map(|replan| {
            let (phase, span) = (sanitize(&replan.phase), replan.span(until)?);
            let words = format!("replan of {phase}, {}", span.length());
            Some(placed(span, &scale, Tone::Replan, words))
        });
        rows.extend(row(RowKind::Replans, "replans", packed(replans.collect())));
        let cut = |piece: &super::scale::Piece| Cut {
            from: piece.from,
            to: piece.to,
            length: piece.span.length(),
        };
        let stop = |stop: &super::Stop| {
            let words = format!("{} at {}", stop.cause.words(), stop.at);
            StopMark { at: scale.place(stop.at.0), cause: stop.cause, words }
        };
        Some(Self {
            more: report.lanes().count() - (LANES_DRAWN_MAX - room),
            marks: scale.marks(),
            cuts: scale.cuts().map(cut).collect(),
            stops: report.stops.iter().map(stop).collect(),
            rows,
        })
    }
}

/// A row that is there only if it has boxes.
fn row(kind: RowKind, name: &str, boxes: Vec<Box>) -> Option<Row> {
    (!boxes.is_empty()).then(|| Row { kind, name: name.to_owned(), status: None, boxes })
}

fn phase_rows(phase: &Phase, scale: &Scale, room: &mut usize) -> Vec<Row> {
    let lanes = &phase.lanes[..phase.lanes.len().min(*room)];
    *room -= lanes.len();
    if lanes.is_empty() {
        return Vec::new();
    }
    if let [only] = &phase.lanes[..] {
        let name =
            if only.id == "main" { phase.id.clone() } else { format!("{}/{}", phase.id, only.id) };
        return vec![lane_row(RowKind::Only, &name, only, scale)];
    }
    let spans =
        || phase.lanes.iter().flat_map(|l| &l.steps).flat_map(|s| &s.attempts).map(Attempt::span);
    let extent = spans().map(|span| span.from).min().zip(spans().map(|span| span.to).max());
    let extent = extent.map(|(from, to)| {
        let span = Span::new(from, to);
        let words = format!("{}: {}", sanitize(&phase.id), phase.busy_ms);
        placed(span, scale, Tone::Extent, words)
    });
    let (name, status) = (sanitize(&phase.id), phase.status);
    let head = Row { kind: RowKind::Phase, name, status, boxes: extent.into_iter().collect() };
    let lanes = lanes.iter().map(|lane| lane_row(RowKind::Lane, &lane.id, lane, scale));
    std::iter::once(head).chain(lanes).collect()
}

fn lane_row(kind: RowKind, name: &str, lane: &Lane, scale: &Scale) -> Row {
    let boxes =
        lane.attempts().into_iter().map(|(step, attempt)| attempt_box(step, attempt, scale));
    let boxes = packed(boxes.collect());
    Row { kind, name: sanitize(name), status: lane.status, boxes }
}

fn attempt_box(step: &Step, attempt: &Attempt, scale: &Scale) -> Box {
    let (tone, how) = match attempt.outcome {
        Ended::Succeeded => (Tone::Good, "succeeded"),
        Ended::Failed => (Tone::Bad, "failed"),
        Ended::Interrupted => (Tone::Cut, "interrupted"),
        Ended::Running => (Tone::Busy, "running"),
    };
    let (step, number, took) = (sanitize(&step.id), attempt.number, attempt.duration_ms);
    let words = format!("{step} attempt {number} {how}, {took}, from {}", attempt.started_at);
    placed(attempt.span(), scale, tone, words)
}

fn wait_box(wait: &Wait, scale: &Scale) -> Box {
    let what = match &wait.for_ {
        WaitFor::Gate { name, .. } => sanitize(name),
        WaitFor::PullRequest { lane, .. } => format!("pull request of {lane}"),
        WaitFor::Person { after } => after.words().to_owned(),
    };
    placed(wait.span(), scale, Tone::Wait, format!("{what}, {}", wait.waited_ms))
}

fn placed(span: Span, scale: &Scale, tone: Tone, words: String) -> Box {
    let from = scale.place(span.from).min(LENGTH - BOX_MIN);
    let to = scale.place(span.to).max(from + BOX_MIN);
    Box { from, to, tone, count: 1, words }
}

/// Boxes side by side, given in the order they begin: what cannot be told apart becomes one.
fn packed(mut boxes: Vec<Box>) -> Vec<Box> {
    boxes.sort_by_key(|one| one.from);
    let mut packed: Vec<Box> = Vec::with_capacity(boxes.len());
    for mut one in boxes {
        match packed.last_mut() {
            Some(last) if one.from < last.to && one.to < last.to + BOX_MIN => last.absorb(&one),
            last => {
                one.from = one.from.max(last.map_or(0, |last| last.to));
                packed.push(one);
            }
        }
    }
    packed
}

impl Box {
    fn absorb(&mut self, other: &Self) {
        self.to = self.to.max(other.to);
        self.tone = self.tone.max(other.tone);
        self.count += other.count;
        self.words = count(self.count, "attempt");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(from: u32, to: u32, tone: Tone) -> Box {
        Box { from, to, tone, count: 1, words: String::new() }
    }

    /// Lost: a box would hide another, and a failure among successes.
    #[test]
    fn boxes_do_not_overlap_and_the_worst_is_seen() {
        let many = (0..1_000).map(|n| {
            let tone = if n == 500 { Tone::Bad } else { Tone::Good };
            one(n, n + BOX_MIN, tone)
        });
        let boxes = packed(
            many.chain([one(900, 3_000, Tone::Cut), one(LENGTH - 60, LENGTH, Tone::Busy)])
                .collect(),
        );
        assert!(boxes.windows(2).all(|pair| pair[0].to <= pair[1].from), "{boxes:?}");
        assert_eq!(boxes.iter().map(|one| one.count).sum::<usize>(), 1_002);
        assert!(boxes.iter().any(|one| one.tone == Tone::Bad));
        assert!(boxes.iter().all(|one| one.to - one.from >= BOX_MIN));
    }
}

//! From points in time to places on a line of fixed length.
//!
//! Long stretches in which nothing was at work, such as a night, are cut: they get a small place of
//! their own, so that the work around them stays visible.

use piton_core::{Millis, Timestamp};

use super::span::{Span, joined};

/// The length of a line: hundredths of a percent.
pub(super) const LENGTH: u32 = 10_000;
/// The place of a stretch that is cut: enough to see that it is one.
const CUT: u32 = 300;
/// Most of a line that cuts take together.
const CUTS_MAX: u32 = 2_500;
/// A stretch is cut if it is longer than this part of the work: shorter ones do not hide it.
const CUT_PART: u64 = 8;
/// The least distance of two marks: room for `12h 30m` on a phone.
const MARKS_APART: u32 = 1_600;

/// A line on which time has places.
#[derive(Debug)]
pub(super) struct Scale {
    pieces: Vec<Piece>,
}

/// A stretch of time on the line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    pub span: Span,
    pub from: u32,
    pub to: u32,
    /// Whether its time is cut.
    pub is_cut: bool,
}

/// A mark on the line, with the time since its beginning.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub at: u32,
    pub text: String,
}

impl Scale {
    /// A line for the time from the first to the last of these stretches; none where there is none.
    pub fn new(busy: impl IntoIterator<Item = Span>) -> Option<Self> {
        let busy = joined(busy);
        let (first, last) = (busy.first()?, busy.last()?);
        let total: u64 = busy.iter().map(|span| span.length().0).sum();
        let is_long = |gap: Span| gap.length().0 > total / CUT_PART;
        let mut spans = vec![(*first, false)];
        for pair in busy.windows(2) {
            let gap = Span::new(pair[0].to, pair[1].from);
            match spans.last_mut() {
                Some((piece, false)) if !is_long(gap) => piece.to = pair[1].to,
                _ => spans.extend([(gap, true), (pair[1], false)]),
            }
        }
        let begun = Span::new(first.from, last.to);
        Some(Self { pieces: placed(&spans, begun) })
    }

    /// The place of a point in time.
    pub fn place(&self, at: Timestamp) -> u32 {
        let Some(first) = self.pieces.first().filter(|piece| at >= piece.span.from) else {
            return 0;
        };
        let within = |piece: &&Piece| at < piece.span.to;
        let Some(piece) = self.pieces.iter().find(within) else { return LENGTH };
        let piece = if at < piece.span.from { first } else { piece };
        piece.place(at)
    }

    /// Where time is cut.
    pub fn cuts(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(|piece| piece.is_cut)
    }

    /// Round times since the beginning, not too close to each other nor to the end.
    pub fn marks(&self) -> Vec<Mark> {
        let Some(begin) = self.pieces.first().map(|piece| piece.span.from) else {
            return Vec::new();
        };
        let mut marks: Vec<Mark> = Vec::new();
        for piece in self.pieces.iter().filter(|piece| !piece.is_cut) {
            let step = round_step(piece);
            let (from, to) = (piece.span.from.since(begin).0, piece.span.to.since(begin).0);
            let first = from.div_ceil(step) * step;
            // What is cut begins at the end, and has no mark.
            for since in
                (first..to.max(from + 1)).step_by(usize::try_from(step).unwrap_or(usize::MAX))
            {
                let at = piece.place(begin.after(Millis(since)));
                let fits = marks.last().is_none_or(|last| at >= last.at + MARKS_APART);
                if fits && at + MARKS_APART / 2 <= LENGTH {
                    marks.push(Mark { at, text: since_words(since) });
                }
            }
        }
        marks
    }
}

impl Piece {
    fn place(&self, at: Timestamp) -> u32 {
        let (passed, whole) = (at.since(self.span.from).0, self.span.length().0.max(1));
        let wide = u128::from(self.to - self.from);
        let far = u128::from(passed.min(whole)) * wide / u128::from(whole);
        self.from + u32::try_from(far).unwrap_or(0)
    }
}

/// Gives each stretch its place: the same to each that is cut, the rest by their lengths.
fn placed(spans: &[(Span, bool)], all: Span) -> Vec<Piece> {
    let cuts = u32::try_from(spans.iter().filter(|(_, is_cut)| *is_cut).count()).unwrap_or(1);
    let cut = CUT.min(CUTS_MAX / cuts.max(1));
    let linear = u128::from(LENGTH - cut * cuts);
    let lengths = spans.iter().filter(|(_, is_cut)| !is_cut).map(|(span, _)| span.length().0);
    let whole = u128::from(lengths.sum::<u64>().max(1));
    let (mut pieces, mut passed, mut cuts_passed) = (Vec::with_capacity(spans.len()), 0u128, 0);
    let at = |passed: u128, cuts: u32| {
        u32::try_from(passed * linear / whole).unwrap_or(LENGTH) + cut * cuts
    };
    for (span, is_cut) in spans {
        let from = at(passed, cuts_passed);
        if *is_cut {
            cuts_passed += 1;
        } else {
            passed += u128::from(span.length().0);
        }
        let is_last = span.to == all.to;
        let to = if is_last { LENGTH } else { at(passed, cuts_passed) };
        pieces.push(Piece { span: *span, from, to, is_cut: *is_cut });
    }
    pieces
}

/// The smallest round length whose marks are far enough from each other.
fn round_step(piece: &Piece) -> u64 {
    const SECOND: u64 = 1_000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    #[rustfmt::skip]
    const STEPS: [u64; 27] = [
        1, 2, 5, 10, 20, 50, 100, 200, 500,
        SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
        MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
        HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY,
    ];
    let (length, wide) = (piece.span.length().0.max(1), u64::from(piece.to - piece.from).max(1));
    let least = (length * u64::from(MARKS_APART)).div_ceil(wide);
    STEPS.into_iter().find(|step| *step >= least).unwrap_or_else(|| least.div_ceil(DAY) * DAY)
}

/// A time since the beginning, as short as it is exact: `0`, `1.5s`, `45m`, `1h 30m`, `2d 6h`.
fn since_words(ms: u64) -> String {
    match ms {
        0 => return "0".to_owned(),
        1_000..60_000 if !ms.is_multiple_of(1_000) => {
            return format!("{}.{}s", ms / 1_000, ms % 1_000 / 100);
        }
        _ => {}
    }
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let mut rest = ms;
    let mut parts = Vec::new();
    for (unit, one) in units {
        if rest >= one {
            parts.push(format!("{}{unit}", rest / one));
            rest %= one;
        }
    }
    parts.truncate(2);
    parts.join(" ")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn hours(from: i64, to: i64) -> Span {
        Span::new(Timestamp(from * HOUR), Timestamp(to * HOUR))
    }

    fn texts(scale: &Scale) -> Vec<String> {
        scale.marks().into_iter().map(|mark| mark.text).collect()
    }

    /// Lost: work would be shown at the wrong time.
    #[test]
    fn time_has_its_place() {
        let scale = Scale::new([hours(10, 14), hours(14, 20)]).unwrap();
        let places = [9, 10, 15, 20, 21].map(|hour| scale.place(Timestamp(hour * HOUR)));
        assert_eq!(places, [0, 0, 5_000, 10_000, 10_000]);
        assert_eq!(texts(&scale), ["0", "2h", "4h", "6h", "8h"]);
        assert_eq!(scale.cuts().count(), 0);
        assert!(Scale::new([]).is_none());
    }

    /// Lost: after a night's rest the work of a day would be a dot at either end.
    #[test]
    fn a_night_is_cut() {
        let scale = Scale::new([hours(0, 2), hours(14, 16)]).unwrap();
        let cut: Vec<&Piece> = scale.cuts().collect();
        assert_eq!(cut[0].span, hours(2, 14));
        assert_eq!((cut[0].from, cut[0].to), (4_850, 5_150));
        assert_eq!(scale.place(Timestamp(15 * HOUR)), 7_575);
        assert_eq!(texts(&scale), ["0", "1h", "14h", "15h"]);
    }

    /// Lost: a run of many short visits would be all cuts and no work.
    #[test]
    fn cuts_leave_room_for_work() {
        let visits = (0..100).map(|day| hours(day * 24, day * 24 + 1));
        let scale = Scale::new(visits).unwrap();
        let cuts: u32 = scale.cuts().map(|cut| cut.to - cut.from).sum();
        assert!(cuts <= CUTS_MAX, "{cuts}");
        let pieces = scale.pieces.windows(2);
        assert!(pieces.into_iter().all(|pair| pair[0].to == pair[1].from));
        assert_eq!(scale.pieces.last().unwrap().to, LENGTH);
    }

    /// Lost: marks of a short run would all read the same, or lie upon each other.
    #[test]
    fn marks_are_round_at_every_length() {
        for (ms, wanted) in [
            (0, vec!["0"]),
            (7, vec!["0", "2ms", "4ms", "6ms"]),
            (950, vec!["0", "200ms", "400ms", "600ms", "800ms"]),
            (2_600, vec!["0", "500ms", "1s", "1.5s", "2s"]),
            (5_400_000, vec!["0", "15m", "30m", "45m", "1h", "1h 15m"]),
            (20 * 86_400_000, vec!["0", "4d", "8d", "12d", "16d"]),
        ] {
            let scale = Scale::new([Span::new(Timestamp(0), Timestamp(ms))]).unwrap();
            assert_eq!(texts(&scale), wanted, "{ms}");
        }
    }
}

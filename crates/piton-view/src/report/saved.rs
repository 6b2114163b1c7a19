//! What continuing saved against starting over, from recorded durations.
//!
//! The rule: each time the work stopped and was continued, starting over would have done again what was
//! finished by then. A replan takes time that starting over does not. Only work counts that is finished
//! now and was not done again; retries within one driver count for neither. So the figure is a lower
//! bound.

use piton_core::Millis;

use super::span::{Cover, Span, covered};
use super::trail::Stopped;
use super::{Cause, Stop};
use crate::place::At;
use crate::shape::shapes;

shapes! {
    /// What continuing saved against starting over.
    #[derive(Default, PartialEq, Eq)]
    Saved {
        /// How often the work was continued after a stop.
        continued: usize,
        /// What the work took: attempts and replans.
        took_ms: Millis,
        /// What it would have taken with starting over.
        over_ms: Millis,
        /// The difference; below zero if replans took longer than what they kept.
        saved_ms: i64,
        /// The same as a part of starting over.
        percent: i64,
        /// Tokens that were not spent again.
        tokens: u64,
        /// Money that was not spent again.
        money_micros: u64,
        /// What is finished now, and is kept if the run is continued.
        kept_ms: Millis,
    }
}

/// Work that is finished.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub span: Span,
    pub tokens: u64,
    pub money_micros: u64,
}

/// Compares the course of a run with starting over at each stop that was continued.
pub(super) fn compare(
    work: &[Span],
    replanning: &[Span],
    mut done: Vec<Done>,
    mut stops: Vec<Stopped>,
) -> (Saved, Vec<Stop>) {
    done.sort_by_key(|done| done.span.to);
    stops.sort_by_key(|stop| stop.at);
    let mut saved = Saved {
        took_ms: covered(work.iter().chain(replanning).copied()),
        over_ms: covered(work.iter().copied()),
        ..Saved::default()
    };
    let (mut cover, mut tokens, mut money_micros) = (Cover::default(), 0, 0);
    let mut rest = done.iter().peekable();
    let mut shown = Vec::with_capacity(stops.len());
    for Stopped { at, cause, continued_at } in stops {
        while let Some(done) = rest.next_if(|done| done.span.to <= at) {
            cover.add(done.span);
            tokens += done.tokens;
            money_micros += done.money_micros;
        }
        let kept_ms = cover.total();
        if continued_at.is_some() {
            saved.continued += 1;
            saved.over_ms.0 += kept_ms.0;
            saved.tokens += tokens;
            saved.money_micros += money_micros;
        }
        shown.push(Stop { at: At(at), cause, continued_at: continued_at.map(At), kept_ms });
    }
    rest.for_each(|done| cover.add(done.span));
    saved.kept_ms = cover.total();
    saved.saved_ms = saved.over_ms.0.cast_signed() - saved.took_ms.0.cast_signed();
    saved.percent = percent(saved.saved_ms, saved.over_ms);
    (saved, shown)
}

/// A part of a whole in percent, rounded.
fn percent(part: i64, whole: Millis) -> i64 {
    let whole = i128::from(whole.0.max(1));
    let doubled = 200 * i128::from(part) + whole * i128::from(part.signum());
    i64::try_from(doubled / (2 * whole)).unwrap_or(0)
}

impl Cause {
    /// In words, after "stopped".
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Killed => "driver killed",
            Self::TakenOver => "taken over",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Budget => "budget used up",
            Self::Interrupted => "interrupted",
            Self::Aborted => "aborted",
            Self::Replan => "replanned",
        }
    }
}

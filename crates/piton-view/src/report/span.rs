//! Stretches of time, and how much of the clock they cover together.
//!
//! Lanes work side by side: an hour in which three of them work is one hour, not three.

use piton_core::{Millis, Timestamp};

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    /// Its beginning.
    pub from: Timestamp,
    /// Its end, never before its beginning.
    pub to: Timestamp,
}

impl Span {
    /// A stretch; of no length where a clock was set back.
    pub fn new(from: Timestamp, to: Timestamp) -> Self {
        Self { from, to: to.max(from) }
    }

    /// How long it is.
    pub fn length(self) -> Millis {
        self.to.since(self.from)
    }
}

/// The same time as stretches that do not touch, in order.
pub(super) fn joined(spans: impl IntoIterator<Item = Span>) -> Vec<Span> {
    let mut spans: Vec<Span> = spans.into_iter().collect();
    spans.sort_unstable();
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.from <= last.to => last.to = last.to.max(span.to),
            _ => joined.push(span),
        }
    }
    joined
}

/// How much of the clock the stretches cover together.
pub(super) fn covered(spans: impl IntoIterator<Item = Span>) -> Millis {
    Millis(joined(spans).into_iter().map(|span| span.length().0).sum())
}

/// Adds up what stretches cover, given in the order of their ends.
#[derive(Debug, Default)]
pub(super) struct Cover {
    /// They do not touch, and are in order.
    apart: Vec<Span>,
    total: Millis,
}

impl Cover {
    /// Adds a stretch that ends no earlier than all before it.
    pub fn add(&mut self, mut span: Span) {
        while let Some(last) = self.apart.pop_if(|last| last.to >= span.from) {
            self.total.0 -= last.length().0;
            span = Span::new(last.from.min(span.from), last.to.max(span.to));
        }
        self.total.0 += span.length().0;
        self.apart.push(span);
    }

    /// What they cover so far.
    pub fn total(&self) -> Millis {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: i64, to: i64) -> Span {
        Span::new(Timestamp(from), Timestamp(to))
    }

    /// Lost: work of lanes side by side would count several times.
    #[test]
    fn time_that_is_covered_twice_counts_once() {
        let spans = [span(50, 60), span(0, 10), span(5, 20), span(20, 30), span(52, 55)];
        assert_eq!(joined(spans), [span(0, 30), span(50, 60)]);
        assert_eq!(covered(spans), Millis(40));
        assert_eq!(covered([span(9, 3)]), Millis(0));
    }

    /// Lost: the sum that grows would differ from the one that is made at once.
    #[test]
    fn a_growing_sum_is_the_sum() {
        let mut all = [span(0, 10), span(8, 12), span(30, 40), span(35, 41), span(1, 50)];
        all.sort_by_key(|span| span.to);
        let mut cover = Cover::default();
        for count in 1..=all.len() {
            cover.add(all[count - 1]);
            assert_eq!(cover.total(), covered(all[..count].iter().copied()), "{count}");
        }
    }
}

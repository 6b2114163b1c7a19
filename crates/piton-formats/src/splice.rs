//! Replaces pieces of a text by their byte ranges and leaves every other byte as it is.

use std::ops::Range;

/// A piece of a text, and what replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// The bytes that go; an empty range only inserts.
    pub range: Range<usize>,
    /// What takes their place.
    pub with: String,
}

impl Splice {
    /// Replaces a range.
    pub fn new(range: Range<usize>, with: impl Into<String>) -> Self {
        Self { range, with: with.into() }
    }
}

/// The text with all pieces replaced, in any order. Of pieces that overlap the first one counts, and
/// a range that is not within the text, or cuts a character, is ignored.
pub fn splice(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|splice| splice.range.start);
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for Splice { range, with } in splices {
        if range.start < end || text.get(range.clone()).is_none() {
            continue;
        }
        out.push_str(&text[end..range.start]);
        out.push_str(&with);
        end = range.end;
    }
    out.push_str(&text[end..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_replaced_in_any_order_and_bad_ranges_ignored() {
        let splices = vec![
            Splice::new(4..5, "E"),
            Splice::new(0..0, "<"),
            Splice::new(1..3, "BC"),
            Splice::new(2..4, "no"),
            Splice::new(9..12, "no"),
        ];
        assert_eq!(splice("abcde", splices), "<aBCdE");
        assert_eq!(splice("ä", vec![Splice::new(0..1, "no")]), "ä");
    }
}

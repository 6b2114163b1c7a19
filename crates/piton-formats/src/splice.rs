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

/// Two pieces overlap, or one is not within the text or cuts a character: nothing is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap;

/// The text with all pieces replaced, in any order. What is inserted where a piece begins comes before
/// what replaces that piece. Nothing is left out: pieces that overlap are refused.
pub fn exact(text: &str, splices: Vec<Splice>) -> Result<String, Overlap> {
    let count = splices.len();
    let (new, made) = replaced(text, splices);
    if made == count { Ok(new) } else { Err(Overlap) }
}

/// The same for pieces of which any may be left out: of those that overlap the first one counts, and a
/// range that is not within the text, or cuts a character, is ignored.
pub fn splice(text: &str, splices: Vec<Splice>) -> String {
    replaced(text, splices).0
}

fn replaced(text: &str, mut splices: Vec<Splice>) -> (String, usize) {
    splices.sort_by_key(|splice| (splice.range.start, !splice.range.is_empty()));
    let mut out = String::with_capacity(text.len());
    let (mut end, mut made) = (0, 0);
    for Splice { range, with } in splices {
        if range.start < end || text.get(range.clone()).is_none() {
            continue;
        }
        out.push_str(&text[end..range.start]);
        out.push_str(&with);
        (end, made) = (range.end, made + 1);
    }
    out.push_str(&text[end..]);
    (out, made)
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

    #[test]
    fn nothing_is_left_out_in_silence() {
        let inner = vec![Splice::new(1..4, ""), Splice::new(2..2, "new")];
        assert_eq!(exact("abcde", inner), Err(Overlap));
        let edges = vec![Splice::new(1..4, ""), Splice::new(1..1, "<"), Splice::new(4..4, ">")];
        assert_eq!(exact("abcde", edges).as_deref(), Ok("a<>e"));
    }
}

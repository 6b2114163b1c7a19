//! The table of tokens, as the build script prepared it: their bytes in the order of their ranks, where
//! each begins, and the ranks in the order of their hashes.

use super::hash::hash;

/// The bytes of all tokens.
static BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/token_bytes"));
/// Where each begins, and where the last one ends: numbers of four bytes.
static STARTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/token_starts"));
/// The rank plus one of the token at each place of the hash table; zero where there is none.
static PLACES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/token_places"));

/// The rank of a token; none for bytes that are not one.
pub fn rank(token: &[u8]) -> Option<u32> {
    let places = PLACES.len() / 4;
    let mut place = hash(token) % places;
    loop {
        let rank = number(PLACES, place).checked_sub(1)?;
        if bytes(rank)? == token {
            return Some(rank);
        }
        place = (place + 1) % places;
    }
}

/// The bytes of a token.
pub fn bytes(rank: u32) -> Option<&'static [u8]> {
    let rank = rank as usize;
    BYTES.get(number(STARTS, rank) as usize..number(STARTS, rank + 1) as usize)
}

/// A number of a list; zero behind its end.
fn number(list: &[u8], index: usize) -> u32 {
    let bytes = list.get(index * 4..index * 4 + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::count;
    use proptest::prelude::*;

    /// Lost: a brief is counted with other tokens than those of the encoding that it names.
    #[test]
    fn the_table_is_that_of_the_encoding() {
        assert_eq!(STARTS.len() / 4 - 1, 199_998);
        for (token, wanted) in [(&b"!"[..], 0), (b" the", 290), (b"hello", 24_912), (b"\n\n", 279)]
        {
            assert_eq!(rank(token), Some(wanted), "{token:?}");
        }
        assert_eq!(rank(b"no such token"), None);
        assert_eq!(
            (0..199_998).filter(|rank| bytes(*rank).and_then(super::rank) != Some(*rank)).count(),
            0
        );
    }

    /// Lost: a brief is longer than its limit, as every other program counts it.
    #[test]
    fn counts_are_those_of_another_program() {
        let other = toktok::Tokenizer::builtin("o200k_base").expect("it is built in");
        let texts = [
            "",
            " ",
            "hello world",
            "  two  blanks \n\n\n and lines\r\n\t\tx",
            "it's WE'RE they'll",
            "fn main() { println!(\"{}\", 12345678); } // ===== ----\n/// ok\n\n",
            "日本語のテキスト и русский 🚀🚀 é\u{301} \u{a0}\u{3000}x",
            "a/b/c//\n/d",
            "   ",
            "trailing  ",
            "\n \n",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        ];
        for text in texts {
            assert_eq!(count(text), other.count(text.as_bytes()), "{text:?}");
        }
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let parts = prop_oneof![
            "\\PC{0,12}",
            "[a-zA-Z' ]{0,20}",
            "[ \t\r\n]{0,6}",
            "[0-9/.,:-]{0,9}",
            "[一-龥ぁ-ん]{0,6}",
        ];
        let any = prop::collection::vec(parts, 0..12).prop_map(|parts| parts.concat());
        runner
            .run(&any, |text| {
                prop_assert_eq!(count(&text), other.count(text.as_bytes()), "{:?}", text);
                Ok(())
            })
            .expect("all counts are equal");
    }
}

//! Counts the tokens of a text as `o200k_base` does.
//!
//! The table of tokens is prepared by the build script and lies ready in the program: no brief waits
//! for two hundred thousand entries to be read. A crate that loads them at start takes longer for that
//! than a brief may take in all. Only counting is done here: no text is encoded or decoded.

mod hash;
mod table;

use std::sync::LazyLock;

use regex::Regex;

use table::rank;

/// The name of the encoding.
pub const NAME: &str = "o200k_base";

/// How a text is split before tokens are looked for. Published with the encoding, but for one branch:
/// white space in front of a word leaves its last character to the word, which `pieces` does, because
/// patterns cannot look ahead here.
const SPLIT: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"|\s*[\r\n]+",
    r"|\s+",
);

static SPLITTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SPLIT).ok());

/// The number of tokens of a text.
pub fn count(text: &str) -> usize {
    let mut tokens = 0;
    pieces(text, |piece| tokens += in_piece(piece.as_bytes()));
    tokens
}

/// Splits a text into what is looked at by itself.
fn pieces(text: &str, mut take: impl FnMut(&str)) {
    let Some(splitter) = &*SPLITTER else {
        // Each byte is a token at most: too many is safe.
        return text.split_inclusive(|_| true).for_each(take);
    };
    let mut at = 0;
    while let Some(found) = splitter.find_at(text, at) {
        let mut piece = found.as_str();
        let is_blank = piece.chars().all(char::is_whitespace);
        let goes_on = text[found.end()..].starts_with(|c: char| !c.is_whitespace());
        if is_blank && goes_on && !piece.ends_with(['\r', '\n']) {
            let last = piece.char_indices().next_back().map_or(0, |(last, _)| last);
            if last > 0 {
                piece = &piece[..last];
            }
        }
        take(piece);
        at = found.start() + piece.len();
    }
}

/// The number of tokens of a piece: neighbours are joined, the most common pair first, until no pair is
/// a token.
fn in_piece(piece: &[u8]) -> usize {
    if piece.len() <= 1 || rank(piece).is_some() {
        return 1;
    }
    // Where each part begins, and the rank of it joined with the next.
    let mut starts: Vec<usize> = (0..=piece.len()).collect();
    let joined = |starts: &[usize], part: usize| -> u32 {
        let (Some(from), Some(to)) = (starts.get(part), starts.get(part + 2)) else {
            return u32::MAX;
        };
        rank(&piece[*from..*to]).unwrap_or(u32::MAX)
    };
    let mut ranks: Vec<u32> = (0..piece.len()).map(|part| joined(&starts, part)).collect();
    loop {
        let best = ranks.iter().enumerate().min_by_key(|(_, rank)| **rank);
        let Some((part, _)) = best.filter(|(_, rank)| **rank < u32::MAX) else {
            return ranks.len();
        };
        starts.remove(part + 1);
        ranks.remove(part + 1);
        ranks[part] = joined(&starts, part);
        if part > 0 {
            ranks[part - 1] = joined(&starts, part - 1);
        }
    }
}

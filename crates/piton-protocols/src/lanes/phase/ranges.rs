//! Ranges of names: `SL-4.2..SL-4.5`, `SL-1..4`, `IF-0-P1-1 through IF-0-P1-3`.
//!
//! A range is written out as the list that it stands for, so that everything else reads lists only.
//! What is not a range of numbers with one beginning stays as it is.

/// Marks between the ends of a range that need no blanks; the longer ones first.
const MARKS: [&str; 5] = ["...", "..", "…", "–", "—"];
/// Words between the ends of a range.
const WORDS: [&str; 4] = ["through", "thru", "to", "until"];
/// Most names in a range: a phase has far fewer lanes and tasks, and more is a typing error.
const RANGE_MAX: u32 = 200;

/// The text with its ranges written out.
pub(super) fn written_out(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let between = words.get(at + 1).is_some_and(|word| is_between(word));
        let spaced = words.get(at + 2).filter(|_| between);
        if let Some(list) = spaced.and_then(|last| list(words[at], last)) {
            out.push(list);
            at += 3;
            continue;
        }
        out.push(joined(words[at]).unwrap_or_else(|| words[at].to_owned()));
        at += 1;
    }
    out.join(" ")
}

fn is_between(word: &str) -> bool {
    let word = word.to_lowercase();
    WORDS.contains(&word.as_str()) || MARKS[..3].contains(&word.as_str())
}

/// A range within one word.
fn joined(word: &str) -> Option<String> {
    MARKS.iter().find_map(|mark| {
        let (first, last) = word.split_once(mark)?;
        list(first, last)
    })
}

/// The names from one to another, with what surrounds the two.
fn list(first: &str, last: &str) -> Option<String> {
    let edge = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let (open, from) = first.split_at(first.rfind(edge).map_or(0, |at| at + char_len(first, at)));
    let end = last.find(edge).unwrap_or(last.len());
    // A sentence may end behind the range.
    let end = last[..end].trim_end_matches('.').len();
    let (to, close) = last.split_at(end);
    let (begin, low) = numbered(from)?;
    let (beginning, high) = numbered(to)?;
    let same = beginning.is_empty() || beginning.eq_ignore_ascii_case(begin);
    if begin.is_empty() || !same || high < low || high - low >= RANGE_MAX {
        return None;
    }
    let names: Vec<String> = (low..=high).map(|number| format!("{begin}{number}")).collect();
    Some(format!("{open}{}{close}", names.join(", ")))
}

fn char_len(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

/// A name as its beginning and the number at its end.
fn numbered(name: &str) -> Option<(&str, u32)> {
    let begin = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name[begin.len()..].parse().ok().map(|number| (begin, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_lists_and_other_words_stay() {
        for (text, wanted) in [
            ("SL-4.2..SL-4.5", "SL-4.2, SL-4.3, SL-4.4, SL-4.5"),
            ("SL-1..3, IF-0-P1-A", "SL-1, SL-2, SL-3, IF-0-P1-A"),
            ("`IF-0-P1-1`..`IF-0-P1-2`", "`IF-0-P1-1`..`IF-0-P1-2`"),
            ("IF-0-P1-1 through IF-0-P1-3.", "IF-0-P1-1, IF-0-P1-2, IF-0-P1-3."),
            ("T1–T3", "T1, T2, T3"),
            ("(SL-1 to SL-2)", "(SL-1, SL-2)"),
            ("SL-1 … SL-2", "SL-1, SL-2"),
            ("SL-2..SL-1", "SL-2..SL-1"),
            ("SL-1..T4", "SL-1..T4"),
            ("work up to 3 files", "work up to 3 files"),
            ("SL-1", "SL-1"),
        ] {
            assert_eq!(written_out(text), wanted, "{text}");
        }
    }
}

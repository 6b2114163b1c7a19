//! Small words that sentences are made of, the same wherever they are made.

/// Characters of a commit that name it to a person.
const COMMIT_CHARS: usize = 10;

/// A commit as a person names it.
pub fn short(commit: &str) -> String {
    commit.chars().take(COMMIT_CHARS).collect()
}

/// The first few of some names, and how many more there are; nothing where there are none.
pub fn first_few(names: impl ExactSizeIterator<Item = String>, max: usize) -> Option<String> {
    let more = names.len().saturating_sub(max);
    let mut shown: Vec<String> = names.take(max).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    (!shown.is_empty()).then(|| shown.join(", "))
}

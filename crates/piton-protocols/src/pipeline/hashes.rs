//! Compares the `sha256:` hashes that a state file records with the files of today.
//!
//! Tools hash a file as it is, or only what follows its metadata, which often holds the hash itself.
//! Both are tried, and the answer says which one matched. A hash that was cut short proves nothing.

use piton_core::hash::Sha;
use piton_formats::markdown::inline::{bullet, plain};
use piton_formats::markdown::{Document, Line, Place};

/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// What a recorded hash says about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// It is the hash of the file.
    WholeFile,
    /// It is the hash of what follows the file's metadata.
    BelowMetadata,
    /// It is the hash of something else.
    Different,
    /// It is cut short, or not a SHA-256: it says nothing.
    Unverifiable,
}

impl Comparison {
    /// Tells whether the file is the recorded one.
    pub fn is_match(self) -> bool {
        matches!(self, Self::WholeFile | Self::BelowMetadata)
    }
}

/// Compares a recorded hash, with or without its prefix, with the bytes of a file.
pub fn compare(recorded: &str, bytes: &[u8]) -> Comparison {
    let Some(wanted) = digest(recorded) else { return Comparison::Unverifiable };
    if Sha::of(bytes) == wanted {
        return Comparison::WholeFile;
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return Comparison::Different };
    let is_wanted = |body: &str| Sha::of(body.as_bytes()) == wanted;
    if bodies(text).into_iter().any(is_wanted) {
        return Comparison::BelowMetadata;
    }
    Comparison::Different
}

/// The hash in a recorded value; `None` if it is not a complete SHA-256.
pub fn digest(recorded: &str) -> Option<Sha> {
    let value = plain(recorded).to_lowercase();
    let word = value.split_whitespace().next().unwrap_or_default().trim_end_matches([',', ';']);
    let prefixes = ["sha256:", "sha256-", "sha256=", "sha-256:"];
    let digits = prefixes.iter().find_map(|p| word.strip_prefix(p)).unwrap_or(word);
    let is_whole = digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_whole.then(|| Sha(digits.to_owned()))
}

/// What follows the metadata of a document: with and without the blank lines and the rule between.
fn bodies(text: &str) -> Vec<&str> {
    let lines = Document::new(text).lines;
    let Some(below) = metadata(&lines) else { return Vec::new() };
    let from = |index: usize| lines.get(index).map_or("", |line| &text[line.start..]);
    let is_between = |line: &&Line<'_>| matches!(line.text.trim(), "" | "---");
    let content = below + lines[below..].iter().take_while(is_between).count();
    let blanks = below + lines[below..].iter().take_while(|l| l.text.trim().is_empty()).count();
    let mut bodies = vec![from(below), from(blanks), from(content)];
    bodies.extend(bodies.clone().into_iter().map(str::trim_end));
    bodies
}

/// The number of lines that front matter, or a heading and a list of fields, take at the beginning.
fn metadata(lines: &[Line<'_>]) -> Option<usize> {
    let first = lines.first()?;
    if first.place == Place::Aside && first.text.trim() == "---" {
        let is_end = |line: &Line<'_>| matches!(line.text.trim(), "---" | "...");
        return lines[1..].iter().position(is_end).map(|at| at + 2);
    }
    let is_field = |line: &&Line<'_>| bullet(line.text).is_some_and(|item| item.contains(':'));
    let is_lead = |line: &&Line<'_>| line.text.trim().is_empty() || line.heading().is_some();
    let lead = lines.iter().take_while(is_lead).count();
    let fields = lines[lead..].iter().take_while(is_field).count();
    (fields > 0).then_some(lead + fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "# Spec\n\ntext\n";

    fn against(hashed: &str, text: &str) -> Comparison {
        compare(&format!("sha256:{}", Sha::of(hashed.as_bytes())), text.as_bytes())
    }

    #[test]
    fn a_hash_matches_the_file_with_and_without_prefix() {
        let sha = Sha::of(BODY.as_bytes()).0;
        for recorded in [
            sha.clone(),
            format!("sha256:{sha}"),
            format!("SHA256:{}", sha.to_uppercase()),
            format!("**`sha256:{sha}`** (version 1.1.0)"),
        ] {
            assert_eq!(compare(&recorded, BODY.as_bytes()), Comparison::WholeFile, "{recorded}");
        }
        assert_eq!(against(BODY, "# Spec\n\nother\n"), Comparison::Different);
    }

    #[test]
    fn a_hash_matches_what_follows_the_metadata() {
        for head in [
            "---\nhash: x\n---\n",
            "---\nhash: x\n---\n\n",
            "- id: 1\n- hash: x\n\n---\n\n",
            "\u{feff}# FEAT-1\n\n- id: 1\n- hash: x\n",
        ] {
            let found = against(BODY, &format!("{head}{BODY}"));
            assert_eq!(found, Comparison::BelowMetadata, "{head}");
        }
        let trimmed = against(BODY.trim_end(), &format!("- id: 1\n\n{BODY}"));
        assert_eq!(trimmed, Comparison::BelowMetadata);
    }

    /// Lost: a shortened hash in an example would stop a resume, or let a changed spec pass.
    #[test]
    fn a_hash_that_is_cut_short_says_nothing() {
        let whole = Sha::of(BODY.as_bytes()).0;
        for recorded in
            ["", "sha256:", "sha256:a3f8...", "sha256:a3f8…", "<sha256>", "md5:0", &whole[1..]]
        {
            let found = compare(recorded, BODY.as_bytes());
            assert_eq!(found, Comparison::Unverifiable, "{recorded}");
        }
        assert_eq!(against("", ""), Comparison::WholeFile);
    }
}

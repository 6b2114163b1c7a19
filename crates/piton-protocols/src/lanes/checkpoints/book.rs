//! Writes our records again and again into one file, and remembers what it wrote.
//!
//! A run writes its records several times a second, and nearly always the file is still what it wrote
//! the last time: then only the records that changed are put into words, and nothing is read. What
//! somebody else changed is read and merged as [`update`](super::update) does; the bytes that come
//! out are the same either way.

use std::collections::HashSet;

use super::elements;
use super::update::{OwnRecord, merged};
use piton_formats::diagnostic::Diagnostic;

/// Larger files are read each time: their records are other runs', and are not worth the memory.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Between two records, as they are written.
pub(super) const BETWEEN: &str = ",\n  ";

/// The file with our records in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The text.
    pub text: String,
    /// Whether records of other runs are in it.
    pub others: bool,
}

/// What a file held when it was last written here.
#[derive(Debug, Default)]
pub struct Book {
    page: Option<Page>,
}

/// A file whose records of ours stand together, and as we write them.
#[derive(Debug)]
struct Page {
    text: String,
    /// What stands before the first and after the last of ours.
    head: String,
    tail: String,
    others: bool,
    /// All of one run, each with its text; no other record is of that run.
    ours: Vec<(OwnRecord, String)>,
}

impl Book {
    /// The file with our records in it, like [`update`](super::update).
    pub fn update(
        &mut self,
        file: &str,
        text: Option<&str>,
        ours: &[OwnRecord],
    ) -> Result<Updated, Box<Diagnostic>> {
        let page = self.page.take().filter(|page| text == Some(&page.text));
        if let Some(page) = page.and_then(|page| page.turned(ours)) {
            let updated = Updated { text: page.text.clone(), others: page.others };
            self.page = Some(page);
            return Ok(updated);
        }
        let (text, strangers) = merged(file, text, ours)?;
        let run_id = ours.first().map(|own| own.run_id.as_str());
        let others = strangers.iter().any(|stranger| Some(stranger.as_str()) != run_id);
        let mixed = strangers.iter().any(|stranger| Some(stranger.as_str()) == run_id);
        self.page = if mixed { None } else { Page::new(&text, ours, others) };
        Ok(Updated { text, others })
    }
}

impl Page {
    /// Finds our records in a text that was just made; `None` if they stand otherwise than we would
    /// put them.
    fn new(text: &str, ours: &[OwnRecord], others: bool) -> Option<Self> {
        let first = ours.first()?;
        if text.len() > KEPT_BYTES_MAX || !is_one_run(ours, &first.run_id) {
            return None;
        }
        let ours: Vec<_> = ours.iter().map(|own| (own.clone(), own.render(&[]))).collect();
        let body = joined(&ours);
        let at = text.find(&body)?;
        // Not within a record of somebody else.
        elements("", text).ok()?.binary_search_by_key(&at, |(start, _)| *start).ok()?;
        let (head, tail) = (&text[..at], &text[at + body.len()..]);
        let begins = head.trim() == "[" || (head.starts_with('[') && head.ends_with(BETWEEN));
        let (head, tail) = (head.to_owned(), tail.to_owned());
        let ends = tail.ends_with('\n');
        (begins && ends).then(|| Self { text: text.to_owned(), head, tail, others, ours })
    }

    /// The same file with other records of ours; `None` if it has to be looked at again: one that is
    /// no longer said may have been somebody's, and order is for those who see all.
    fn turned(mut self, ours: &[OwnRecord]) -> Option<Self> {
        let run_id = self.ours.first()?.0.run_id.clone();
        if !is_one_run(ours, &run_id) {
            return None;
        }
        let mut known = std::mem::take(&mut self.ours).into_iter().peekable();
        for own in ours {
            let before = known.next_if(|(before, _)| before.key() == own.key());
            let kept = before.filter(|(before, _)| before == own);
            self.ours.push(kept.unwrap_or_else(|| (own.clone(), own.render(&[]))));
        }
        if known.next().is_some() {
            return None;
        }
        self.text = format!("{}{}{}", self.head, joined(&self.ours), self.tail);
        (self.text.len() <= KEPT_BYTES_MAX).then_some(self)
    }
}

/// Whether all records are of one run, each with a key of its own.
fn is_one_run(ours: &[OwnRecord], run_id: &str) -> bool {
    let mut keys = HashSet::new();
    ours.iter().all(|own| own.run_id == run_id && keys.insert(own.key()))
}

fn joined(ours: &[(OwnRecord, String)]) -> String {
    let mut all = String::with_capacity(ours.iter().map(|(_, text)| text.len() + 4).sum());
    for (at, (_, text)) in ours.iter().enumerate() {
        all.push_str(if at == 0 { "" } else { BETWEEN });
        all.push_str(text);
    }
    all
}

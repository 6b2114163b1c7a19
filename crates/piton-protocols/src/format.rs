//! The formats of protocol files, as a protocol names them for `piton inspect`.

use std::fmt;

use piton_core::Timestamp;
use piton_formats::diagnostic::Diagnostic;
use serde_json::Value;

/// How sure a protocol is that a file is its own; the surest one reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// It is not.
    No,
    /// It may be, by its name or because nothing says otherwise.
    Name,
    /// It is, by its content.
    Content,
}

/// A file to inspect.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// As the person named it.
    pub file: &'a str,
    /// Its text; bytes that are not UTF-8 are replaced.
    pub text: &'a str,
    /// What the file itself does not tell.
    pub around: Around<'a>,
}

/// What an inspection may need to know besides the file.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The time.
    pub now: Timestamp,
    /// When a file of the project was modified last; `None` if it is not there.
    pub modified: &'a dyn Fn(&str) -> Option<Timestamp>,
}

impl fmt::Debug for Around<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Around").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Source<'_> {
    /// The file's own name, in lower case.
    pub fn name(&self) -> String {
        self.file.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase()
    }
}

/// What was read from a file.
#[derive(Debug)]
pub struct Reading {
    /// Its problems.
    pub problems: Vec<Diagnostic>,
    /// Its content.
    pub data: Value,
    /// The same for a person, line by line.
    pub summary: Vec<String>,
}

/// A format of files.
#[derive(Debug)]
pub struct Format {
    /// Such as `lanes/phase`.
    pub name: &'static str,
    /// How sure it is that a file has this format.
    pub claim: fn(&Source<'_>) -> Claim,
    /// Reads a file.
    pub read: fn(&Source<'_>) -> Reading,
}

/// The surest claim; of equal ones the first, and `None` if nothing is claimed.
pub fn surest<T>(claims: impl DoubleEndedIterator<Item = (Claim, T)>) -> Option<T> {
    // `rev`, because `max_by_key` takes the last of equals.
    let best = claims.rev().max_by_key(|(claim, _)| *claim);
    best.filter(|(claim, _)| *claim > Claim::No).map(|(_, found)| found)
}

//! Whether the filters of what a merge brings work, asked before any file is touched.
//!
//! Git deletes the file that is there, then asks a filter such as that of git-lfs for the new one, and
//! stops in the middle if it fails. Putting the old files back needs the same filter, so a broken one
//! would leave the user without either.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::Result;
use super::diff::Change;
use crate::git::{self, Git};

/// What git says of the first filter that fails on what the new commit brings.
pub(super) fn fails(dir: &Path, changes: &[Change], new: &str) -> Result<Option<String>> {
    let comes =
        |change: &&Change| change.new.as_ref().is_some_and(|(mode, _)| mode.starts_with("100"));
    let path = |change: &'_ Change| change.path.as_os_str().as_bytes().to_vec();
    let paths = git::ended(changes.iter().filter(comes).map(path));
    if paths.is_empty() {
        return Ok(None);
    }
    let args = ["check-attr", "--source", new, "-z", "--stdin", "filter"];
    let listed = Git::at(dir).args(args).input(paths).bytes()?;
    let words: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    // `PATH, filter, VALUE`, each with a zero behind it.
    let named = words
        .chunks_exact(3)
        .filter(|words| !matches!(words[2], b"unspecified" | b"unset" | b"set" | b""));
    let named: BTreeSet<&[u8]> = named.map(|words| words[0]).collect();
    let has_one = |change: &&Change| named.contains(change.path.as_os_str().as_bytes());
    let wanted = |change: &Change| {
        let (_, id) = change.new.as_ref()?;
        Some([id.as_bytes(), b" ", change.path.as_os_str().as_bytes()].concat())
    };
    let wanted = git::ended(changes.iter().filter(comes).filter(has_one).filter_map(wanted));
    if wanted.is_empty() {
        return Ok(None);
    }
    // What it prints may be large, and is of no use.
    let tried = Git::at(dir).args(["cat-file", "--batch", "--filters", "-z"]).input(wanted).run();
    Ok(tried.err().map(|error| {
        let last = error.message.lines().last().unwrap_or_default();
        last.trim_start_matches("fatal: ").to_owned()
    }))
}

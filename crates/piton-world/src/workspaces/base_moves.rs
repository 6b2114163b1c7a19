//! Which moves of branches were merges of ours, of whichever run of this repository.
//!
//! A lane whose base moved under its merge goes round again, so often and no more: somebody who keeps
//! committing must not hold it for ever. Merges of other runs end by themselves, and do not count. So
//! each is noted before it is tried; a note of one that came to nothing harms nobody, for base never
//! is at its commit. A hint only: what is lost costs a round.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The notes, in the folder of stat caches.
const FILE: &str = "base-moves";
/// Larger, and it starts again: about three thousand moves, far more than happen during one merge.
const BYTES_MAX: u64 = 256 << 10;

/// The notes of a repository.
#[derive(Debug)]
pub(super) struct Moves {
    path: PathBuf,
    /// Opened once: every lane makes a note.
    file: Option<File>,
}

impl Moves {
    /// Those in a folder.
    pub fn new(cache: &Path) -> Self {
        Self { path: cache.join(FILE), file: None }
    }

    /// Notes a move that is about to be tried.
    pub fn note(&mut self, from: &str, to: &str) {
        if self.file.is_none() {
            self.file = self.open();
        }
        // One write, at the end: notes of several runs do not mix.
        if let Some(file) = &mut self.file {
            let _ = file.write_all(format!("{from} {to}\n").as_bytes());
        }
    }

    fn open(&self) -> Option<File> {
        let _ = self.path.parent().map(fs::create_dir_all);
        let file = OpenOptions::new().append(true).create(true).open(&self.path).ok()?;
        if file.metadata().is_ok_and(|found| found.len() > BYTES_MAX) {
            let _ = file.set_len(0);
        }
        Some(file)
    }

    /// Whether moves that were noted lead from one commit to another.
    pub fn lead(&self, from: &str, to: &str) -> bool {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let mut reached = vec![from];
        // In the order they were noted, except for a note that another one overtook: hence again.
        loop {
            let steps = text.lines().filter_map(|line| line.split_once(' '));
            let new = steps.filter(|(from, to)| reached.contains(from) && !reached.contains(to));
            let before = reached.len();
            let new: Vec<&str> = new.map(|(_, to)| to).collect();
            reached.extend(new);
            if reached.contains(&to) {
                return true;
            }
            if reached.len() == before {
                return false;
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn only_moves_that_were_all_noted_are_those_of_runs() {
        let home = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (Moves::new(home.path()), Moves::new(home.path()));
        assert!(!one.lead("a", "b"));
        one.note("b", "c");
        other.note("a", "b");
        other.note("a", "x");
        assert!(one.lead("a", "c") && one.lead("a", "b") && other.lead("a", "x"));
        assert!(!one.lead("a", "d") && !one.lead("x", "c"));
        // Somebody else went from c to d, and a run from there on.
        one.note("d", "e");
        assert!(!other.lead("a", "e"));
    }

    #[test]
    fn the_notes_begin_anew_when_they_are_many() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(FILE), "x".repeat(300 << 10)).unwrap();
        Moves::new(home.path()).note("a", "b");
        assert_eq!(fs::read_to_string(home.path().join(FILE)).unwrap(), "a b\n");
    }
}

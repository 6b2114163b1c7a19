//! Files that a power cut tore.
//!
//! A file system writes the bytes of a file page by page, some time after the program that made them,
//! and without asking in which order. So a torn file is what it was, with bytes that are zeros or, from
//! some page on, not there: as a rule all of them, which leaves it empty. What was appended to a page
//! that had been written before is zeros behind what was there, which no text has. What differs in any
//! other way is somebody's work.

use std::path::Path;

use super::{State, state};
use crate::repo;
use crate::snapshot::Error;

/// What file systems write at once.
const PAGE: usize = 4096;

/// The files of a work tree, as a snapshot of the present has them, that are torn pieces of what a
/// snapshot or commit has.
pub fn torn_writes(dir: &Path, present: &str, whole: &str) -> Result<Vec<Vec<u8>>, Error> {
    let mut steps = state::compare(dir, present, whole)?;
    steps.retain(|step| {
        let (State::File { oid: from, .. }, State::File { oid: to, .. }) = (step.from, step.to)
        else {
            return false;
        };
        let bytes = |oid: String| repo::bytes(dir, &oid);
        let both = bytes(from.to_string()).zip(bytes(to.to_string()));
        both.is_some_and(|(found, whole)| is_torn(&found, &whole))
    });
    Ok(steps.into_iter().map(|step| step.path).collect())
}

fn is_torn(found: &[u8], whole: &[u8]) -> bool {
    let is_cut = found.len() < whole.len() && found.len().is_multiple_of(PAGE);
    let more = found.get(whole.len()..);
    let is_zeros = more.is_some_and(|more| more.iter().all(|byte| *byte == 0));
    let is_longer = is_zeros && !whole.is_empty() && !whole.contains(&0);
    (is_cut || is_longer || found.len() == whole.len())
        && found != whole
        && found.iter().zip(whole).all(|(found, whole)| found == whole || *found == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_that_are_missing_make_a_file_torn() {
        let whole = [[1; PAGE], [2; PAGE], [3; PAGE]].concat();
        let with = |at: usize, byte: u8| {
            let mut found = whole.clone();
            found[at * PAGE..(at + 1) * PAGE].fill(byte);
            found
        };
        for torn in [&[][..], &whole[..PAGE], &with(1, 0), &with(2, 0)[..2 * PAGE], &[0; 3 * PAGE]]
        {
            assert!(is_torn(torn, &whole), "{} bytes", torn.len());
        }
        let longer = [&whole[..], &[0, 1]].concat();
        for other in [&whole[..], &with(1, 9), &whole[..PAGE - 1], &longer] {
            assert!(!is_torn(other, &whole), "{} bytes", other.len());
        }
        // What was appended within a page that was there before.
        assert!(
            is_torn(b"old\n\0\0\0\0", b"old\nnew\n") && !is_torn(b"old\nmy\0\n", b"old\nnew\n")
        );
        assert!(is_torn(b"old\n\0\0", b"old\n") && !is_torn(b"\0a\0\0", b"\0a"));
        assert!(is_torn(b"", b"a") && is_torn(b"\0\0", b"ab"));
        assert!(!is_torn(b"a", b"ab") && !is_torn(b"", b"") && !is_torn(b"x", b""));
    }
}

//! How far the record of a run was when a snapshot of it was taken: a line of the commit's message.
//!
//! Snapshots are synced, and name only what was recorded durably before. So a record that ends before
//! the last of them was longer once.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::git::{Error, Git};
use crate::refs::PREFIX;

/// What the line begins with.
const LINE: &str = "Piton-Recorded: ";

/// A place in the record of a run. A later driver is further, whatever its events are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recorded {
    /// The epoch of the driver.
    pub epoch: u64,
    /// The number of the last event.
    pub seq: u64,
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{LINE}{} {}", self.epoch, self.seq)
    }
}

/// How far the snapshots below a prefix are, for each run: by what its refs have after [`PREFIX`].
pub fn recorded(dir: &Path, prefix: &str) -> Result<BTreeMap<String, Recorded>, Error> {
    let format = "--format=%(refname)%0a%(contents)";
    let text = Git::at(dir).args(["for-each-ref", format, prefix.trim_end_matches('/')]).text()?;
    Ok(found(&text))
}

fn found(text: &str) -> BTreeMap<String, Recorded> {
    let (mut all, mut run) = (BTreeMap::new(), "");
    for line in text.lines() {
        if let Some((name, _)) = line.strip_prefix(PREFIX).and_then(|rest| rest.split_once('/')) {
            run = name;
        } else if let Some(recorded) = line.strip_prefix(LINE).and_then(parsed) {
            let last: &mut Recorded = all.entry(run.to_owned()).or_default();
            *last = recorded.max(*last);
        }
    }
    all
}

fn parsed(text: &str) -> Option<Recorded> {
    let (epoch, seq) = text.split_once(' ')?;
    Some(Recorded { epoch: epoch.parse().ok()?, seq: seq.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_furthest_snapshot_of_each_run_counts() {
        let at = |epoch, seq| Recorded { epoch, seq };
        let text = format!(
            "refs/piton/r/epoch\n\nrefs/piton/r/lanes/P/A\nr: after\n\n{}\n\nrefs/piton/r/root\nr: \
             before\n\n{}\n\nrefs/piton/s.%/root\ns: {LINE}9 9\n\n{LINE}7\n{}\n",
            at(2, 4),
            at(1, 12),
            at(1, 3)
        );
        let expected = [("r".to_owned(), at(2, 4)), ("s.%".to_owned(), at(1, 3))];
        assert_eq!(found(&text), expected.into());
    }
}

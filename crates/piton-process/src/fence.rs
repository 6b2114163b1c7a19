//! The highest epoch that ever used a run directory, as empty files named after it.
//!
//! A driver raises the fence before it checks whether a keeper lives; a keeper checks the fence
//! once it holds its lock. So if an overtaken driver is just starting a keeper, either the new
//! driver sees the keeper or the keeper sees the fence. There is one empty file per epoch: a driver
//! that was stopped halfway cannot lower the fence. Nothing is synced: if the machine fails, no
//! driver is left.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::{Error, Result};

/// The prefix of the names; the epoch follows.
const PREFIX: &str = "fence.";

/// Raises the fence to an epoch; refused, without any change, if it is higher already.
pub(crate) fn raise(dir: &Path, epoch: u64) -> Result<()> {
    let highest = highest(dir)?;
    if highest > epoch {
        return Err(Error::Refused { highest });
    }
    if highest == epoch {
        return Ok(());
    }
    let path = dir.join(format!("{PREFIX}{epoch}"));
    let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    made.map_err(Error::io(format!("could not create {}", path.display())))?;
    if highest > 0 {
        // Only to tidy up: the highest name counts.
        let _ = fs::remove_file(dir.join(format!("{PREFIX}{highest}")));
    }
    Ok(())
}

/// The epoch of the fence of a run directory, if anybody raised it.
pub fn highest_epoch(dir: &Path) -> Option<u64> {
    highest(dir).ok().filter(|epoch| *epoch > 0)
}

/// The epoch of the fence; 0 if nobody raised it.
pub(crate) fn highest(dir: &Path) -> Result<u64> {
    let what = || format!("could not list {}", dir.display());
    let mut highest = 0;
    for entry in fs::read_dir(dir).map_err(Error::io(what()))? {
        let name = entry.map_err(Error::io(what()))?.file_name();
        let epoch = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
        highest = highest.max(epoch.unwrap_or(0));
    }
    Ok(highest)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
    use super::*;

    /// Lost, a driver that was overtaken could start a keeper after its successor looked for one.
    #[test]
    fn a_fence_is_never_lowered_and_refusal_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(highest(dir.path()).unwrap(), 0);
        raise(dir.path(), 1).unwrap();
        raise(dir.path(), 3).unwrap();
        raise(dir.path(), 3).unwrap();
        let names = || -> Vec<_> {
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect()
        };
        let before = names();
        assert!(matches!(raise(dir.path(), 2), Err(Error::Refused { highest: 3 })));
        assert_eq!(names(), before);
        assert_eq!(highest(dir.path()).unwrap(), 3);
    }
}

//! Which files of checkpoints are not needed any more.

use piton_core::{Millis, Timestamp};

use crate::time;

/// How long a backup is kept.
pub const AGE_MAX: Millis = Millis(7 * 24 * 60 * 60 * 1000);
/// Backups that are kept beside the latest checkpoint.
const BACKUPS_MAX: usize = 5;
/// How the names of backups begin.
pub const BACKUP: &str = "checkpoint-";
/// How the names of emergency saves begin.
pub const EMERGENCY: &str = "emergency-";

/// What happens to a file in the folder of checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is deleted.
    Delete(String),
    /// It goes to the archive.
    Archive(String),
}

/// The stamp in the name of a backup or emergency save.
pub fn stamp_of(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(".json")?;
    stem.strip_prefix(BACKUP).or_else(|| stem.strip_prefix(EMERGENCY))
}

/// A stamp that no file has yet: its time, and a number if there were several within that second.
pub fn new_stamp(at: Timestamp, names: &[String]) -> String {
    let stamp = time::stamp(at);
    let is_taken = |stamp: &str| names.iter().any(|name| stamp_of(name) == Some(stamp));
    if !is_taken(&stamp) {
        return stamp;
    }
    let numbered = (2..).map(|number: u32| format!("{stamp}-{number}"));
    numbered.into_iter().find(|stamp| !is_taken(stamp)).unwrap_or(stamp)
}

/// The time of a stamp, also of the forms that other tools write.
fn time_of(stamp: &str) -> Option<Timestamp> {
    let digits: String = stamp.chars().filter(char::is_ascii_digit).take(14).collect();
    let part = |range: std::ops::Range<usize>| digits.get(range);
    let (date, clock) = (part(0..8)?, part(8..14)?);
    let text = format!(
        "{}-{}-{}T{}:{}:{}Z",
        &date[..4],
        &date[4..6],
        &date[6..],
        &clock[..2],
        &clock[2..4],
        &clock[4..]
    );
    time::read(&text)
}

/// What to do with the files of the folder: their names with the time of their last change. `keep` is
/// the stamp of the checkpoint that the next session goes on from; without one, the newest backup is
/// the last good checkpoint and stays.
pub fn plan(files: &[(String, Timestamp)], keep: Option<&str>, now: Timestamp) -> Vec<Act> {
    let aged = |(name, modified): &(String, Timestamp)| {
        let stamp = stamp_of(name)?.to_owned();
        let at = time_of(&stamp).unwrap_or(*modified);
        Some((at, stamp, name.clone()))
    };
    let mut all: Vec<(Timestamp, String, String)> = files.iter().filter_map(aged).collect();
    // The newest first; within a second the later number.
    all.sort_by(|a, b| (b.0, &b.1).cmp(&(a.0, &a.1)));
    let mut acts = Vec::new();
    let mut backups = 0;
    for (at, stamp, name) in all {
        // Of several within a second nobody knows which one it is.
        let is_kept = keep.is_some_and(|keep| stamp.starts_with(keep));
        if name.starts_with(EMERGENCY) {
            acts.extend((!is_kept).then_some(Act::Archive(name)));
            continue;
        }
        backups += 1;
        let is_last_good = keep.is_none() && backups == 1;
        let is_old = now.since(at).0 > AGE_MAX.0 || backups > BACKUPS_MAX;
        if is_old && !is_kept && !is_last_good {
            acts.push(Act::Delete(name));
        }
    }
    acts
}

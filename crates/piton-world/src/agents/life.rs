//! The signs of life of an agent: its streams, the processor time of its processes, and files that
//! change where it works. An agent that is slow shows one of them; one that is dead shows none.
//!
//! The dear signs are looked at only where the cheap ones are missing: processes every few seconds of
//! silence, files once before an agent is taken for dead.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use piton_core::Millis;
use piton_process::activity::Activity;

/// Looks at processes during the longest silence: often enough to see work that comes and goes.
const LOOKS: u32 = 40;
/// The pause between two looks is at least this: reading all processes costs milliseconds.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// Most entries of folders that are looked at. In a larger project nobody knows, and the agent is left.
const ENTRIES_MAX: usize = 300_000;
/// Folders that Piton itself writes.
const OURS: [&str; 2] = [".git", ".piton"];

/// What was seen of an agent's life.
#[derive(Debug, Default)]
pub(super) struct Life {
    /// The last sign, by a clock that stops while the machine sleeps.
    last: Option<Instant>,
    looked: Option<Instant>,
    streams: Vec<u64>,
    activity: Activity,
    is_dead: bool,
}

impl Life {
    /// For how long there was no sign, once that is too long; said once. `streams` are the files that
    /// it writes to, `activity` looks at its processes.
    pub(super) fn silence(
        &mut self,
        limit: Millis,
        streams: &[Option<&Path>],
        activity: impl FnOnce() -> Activity,
    ) -> Option<Millis> {
        let (now, limit) = (Instant::now(), Duration::from_millis(limit.0));
        let pause = (limit / LOOKS).max(PAUSE_MIN);
        let is_due = self.looked.is_none_or(|at| now.duration_since(at) >= pause);
        if limit.is_zero() || self.is_dead || !is_due {
            return None;
        }
        self.looked = Some(now);
        let last = *self.last.get_or_insert(now);
        let sizes = sizes(streams);
        if sizes != self.streams {
            (self.streams, self.last) = (sizes, Some(now));
            return None;
        }
        let activity = activity();
        let is_active = activity.is_beyond(&self.activity);
        self.activity = activity;
        if is_active {
            self.last = Some(now);
            return None;
        }
        let silent = now.duration_since(last);
        if silent < limit {
            return None;
        }
        let folder = self.activity.folder();
        let since = SystemTime::now().checked_sub(silent);
        if folder.zip(since).is_none_or(|(folder, since)| has_changed(&top(folder), since)) {
            self.last = Some(now);
            return None;
        }
        self.is_dead = true;
        Some(Millis(u64::try_from(silent.as_millis()).unwrap_or(u64::MAX)))
    }
}

fn sizes(streams: &[Option<&Path>]) -> Vec<u64> {
    let size = |path: &&Path| path.metadata().map_or(0, |found| found.len());
    streams.iter().flatten().map(size).collect()
}

/// The work tree that a folder is in; the folder itself where there is none.
fn top(folder: PathBuf) -> PathBuf {
    let top = folder.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned);
    top.unwrap_or(folder)
}

/// Whether anything below a folder changed since; also if there is too much to look at.
fn has_changed(folder: &Path, since: SystemTime) -> bool {
    let mut folders = vec![folder.to_owned()];
    let mut entries = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            entries += 1;
            let Ok(found) = entry.metadata() else { continue };
            let is_ours = OURS.iter().any(|name| entry.file_name() == *name);
            if is_ours {
                continue;
            }
            if entries > ENTRIES_MAX || found.modified().is_ok_and(|at| at >= since) {
                return true;
            }
            folders.extend(found.is_dir().then(|| entry.path()));
        }
    }
    false
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// Lost: an agent that only writes files is taken for dead; or Piton's own files keep a dead one.
    #[test]
    fn files_that_change_are_a_sign() {
        let dir = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - Duration::from_hours(1);
        let age =
            |name: &str| File::open(dir.path().join(name)).unwrap().set_modified(old).unwrap();
        fs::create_dir_all(dir.path().join("src/deep")).unwrap();
        fs::create_dir_all(dir.path().join(".git")).unwrap();
        for name in ["src/deep/a.rs", ".git/HEAD"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        for name in ["src/deep/a.rs", "src/deep", "src"] {
            age(name);
        }
        let since = SystemTime::now() - Duration::from_mins(10);
        assert!(!has_changed(dir.path(), since));
        fs::write(dir.path().join("src/deep/a.rs"), "y").unwrap();
        assert!(has_changed(dir.path(), since));
        assert_eq!(top(dir.path().join("src/deep")), dir.path());
    }
}

//! `keeper.journal`: what a keeper started and how it ended, in case the keeper dies.
//!
//! One JSON object per line, one `write` per line, in order: `starting` before anything of an
//! attempt can run, `started` once it runs, `exited` when it has ended. Nothing is synced: the
//! kernel keeps the lines when processes die, and after a restart of the machine the boot id
//! differs and the file is ignored. The ledger is the durable record; this is only for a dead
//! keeper.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::os;
use crate::protocol::Exit;

/// The file's name in the run directory.
pub(crate) const JOURNAL: &str = "keeper.journal";

/// The version of the lines; a reader ignores lines it does not know.
const VERSION: u32 = 1;

/// When the journal is larger than this and everything in it is acknowledged, it starts over. A run
/// of 100,000 steps would otherwise leave tens of megabytes to read after a crash.
const RENEW_BYTES: u64 = 4 << 20;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Line {
    #[serde(rename = "header")]
    Header(Header),
    #[serde(rename = "epoch")]
    Epoch { epoch: u64 },
    #[serde(rename = "starting")]
    Starting { key: String },
    #[serde(rename = "started")]
    Started { key: String, part: usize, pid: u32, start: Ticks },
    #[serde(rename = "not-started")]
    NotStarted { key: String },
    #[serde(rename = "exited")]
    Exited(Exit),
}

/// Who wrote the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the lines.
    pub version: u32,
    /// The boot of the machine.
    pub boot: String,
    /// The keeper's process id.
    pub pid: u32,
    /// The run's mark in the environment of every child.
    pub mark: String,
}

/// The bounds of a process's start time, in kernel clock ticks since boot: taken before and after
/// the start, because asking the kernel for the exact value costs more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticks {
    /// The earliest.
    pub from: u64,
    /// The latest.
    pub to: u64,
}

impl Ticks {
    /// Whether a process with this start time can be the one.
    pub fn contains(&self, start: u64) -> bool {
        (self.from..=self.to).contains(&start)
    }
}

/// What the journal says about one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// Nothing of it ran.
    NotStarted,
    /// The keeper died while starting it: it may be running, may have run, or never started.
    Maybe,
    /// It was started and its end was not seen.
    Started {
        /// The part that was started last.
        part: usize,
        /// Its process id.
        pid: u32,
        /// Its start time.
        start: Ticks,
    },
    /// It ended.
    Finished(Exit),
    /// The machine was restarted since (or there is no journal): nothing is known, and nothing of
    /// it runs.
    Lost,
}

/// Everything a journal says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JournalFacts {
    /// Who wrote it; none if there is no journal.
    pub header: Option<Header>,
    /// Whether it was written since the machine started; otherwise every fact is `Lost`.
    pub boot_matches: bool,
    /// The highest epoch that the keeper obeyed.
    pub epoch: u64,
    /// The attempts.
    pub keys: BTreeMap<String, Fact>,
}

impl JournalFacts {
    /// What happened to an attempt, whether the journal names it or not.
    pub fn fact(&self, key: &str) -> Fact {
        if !self.boot_matches {
            return Fact::Lost;
        }
        self.keys.get(key).cloned().unwrap_or(Fact::NotStarted)
    }
}

/// The journal, as its keeper writes it and as others read it.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    file: File,
    header: Header,
    bytes: u64,
    /// Whether the last write may have left half a line, as on a full disk.
    torn: bool,
    /// Lines that could not be written, in order: the disk was full.
    unwritten: VecDeque<Line>,
}

impl Journal {
    /// Reads what the last keeper of a run directory left. Record what it says before a new
    /// keeper is started, which begins a new journal.
    pub fn read(dir: &Path) -> Result<JournalFacts> {
        let path = dir.join(JOURNAL);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(JournalFacts::default());
            }
            Err(error) => {
                return Err(Error::io(format!("could not read {}", path.display()))(error));
            }
        };
        let boot = os::boot_id().map_err(Error::io("could not read the boot id"))?;
        Ok(facts(&text, &boot))
    }

    /// Begins a new journal in the place of the previous one, and carries the epoch over.
    pub(crate) fn create(dir: &Path, mark: &str, epoch: u64) -> Result<Self> {
        let path = dir.join(JOURNAL);
        let header = Header {
            version: VERSION,
            boot: os::boot_id().map_err(Error::io("could not read the boot id"))?,
            pid: std::process::id(),
            mark: mark.to_owned(),
        };
        Self::begin(dir, header, epoch)
            .map_err(Error::io(format!("could not write {}", path.display())))
    }

    fn begin(dir: &Path, header: Header, epoch: u64) -> io::Result<Self> {
        // Written to another file and renamed: a reader finds the old journal or a complete new
        // one.
        let aside = dir.join("keeper.journal.new");
        let mut head = line(&Line::Header(header.clone()))?;
        head.extend(line(&Line::Epoch { epoch })?);
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(&head)?;
        fs::rename(&aside, dir.join(JOURNAL))?;
        let file = OpenOptions::new().append(true).open(dir.join(JOURNAL))?;
        let (bytes, unwritten) = (head.len() as u64, VecDeque::new());
        Ok(Self { dir: dir.to_owned(), file, header, bytes, torn: false, unwritten })
    }

    /// Appends one line with one write.
    pub(crate) fn append(&mut self, entry: &Line) -> io::Result<()> {
        let mut bytes = line(entry)?;
        if self.torn {
            // A line that was cut off must not swallow this one.
            bytes.insert(0, b'\n');
        }
        self.bytes += bytes.len() as u64;
        let written = self.file.write_all(&bytes);
        self.torn = written.is_err();
        written
    }

    /// Appends one line after all lines that wait to be written.
    pub(crate) fn append_in_order(&mut self, entry: &Line) -> io::Result<()> {
        self.catch_up().and_then(|()| self.append(entry))
    }

    /// Appends a line about something that has happened. If it cannot be written, it is kept in
    /// memory and [`Journal::catch_up`] tries again.
    pub(crate) fn keep(&mut self, entry: &Line) -> io::Result<()> {
        // In order: nothing overtakes waiting lines.
        let written = self.append_in_order(entry);
        if written.is_err() {
            self.unwritten.push_back(entry.clone());
        }
        written
    }

    /// Writes what could not be written before, in order.
    pub(crate) fn catch_up(&mut self) -> io::Result<()> {
        while let Some(entry) = self.unwritten.pop_front() {
            if let Err(error) = self.append(&entry) {
                self.unwritten.push_front(entry);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether something has happened that only this process knows.
    pub(crate) fn is_behind(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Drops unwritten lines of an attempt whose end is recorded elsewhere.
    pub(crate) fn forget(&mut self, key: &str) {
        self.unwritten.retain(|line| match line {
            Line::Starting { key: of }
            | Line::NotStarted { key: of }
            | Line::Started { key: of, .. } => of != key,
            Line::Exited(exit) => exit.key != key,
            Line::Header(_) | Line::Epoch { .. } => true,
        });
    }

    /// Starts over if the journal is large, and returns whether it did. Call it only if everything
    /// that is still needed is written again.
    pub(crate) fn renew_if_large(&mut self, epoch: u64) -> io::Result<bool> {
        let is_large = self.bytes > RENEW_BYTES;
        if is_large {
            *self = Self::begin(&self.dir, self.header.clone(), epoch)?;
        }
        Ok(is_large)
    }
}

fn line(entry: &Line) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(entry)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Folds the lines. A torn last line, or one of a newer version, is ignored.
fn facts(text: &[u8], boot: &str) -> JournalFacts {
    let mut facts = JournalFacts::default();
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            continue;
        };
        match line {
            Line::Header(header) => {
                facts.boot_matches = header.boot == boot;
                facts.header = Some(header);
            }
            Line::Epoch { epoch } => facts.epoch = facts.epoch.max(epoch),
            Line::Starting { key } => {
                facts.keys.insert(key, Fact::Maybe);
            }
            Line::Started { key, part, pid, start } => {
                facts.keys.insert(key, Fact::Started { part, pid, start });
            }
            Line::NotStarted { key } => {
                facts.keys.insert(key, Fact::NotStarted);
            }
            Line::Exited(exit) => {
                facts.keys.insert(exit.key.clone(), Fact::Finished(exit));
            }
        }
    }
    if !facts.boot_matches {
        facts.keys.values_mut().for_each(|fact| *fact = Fact::Lost);
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Cause, Dropped, Range};

    fn exit(key: &str) -> Exit {
        Exit {
            key: key.into(),
            part: 0,
            part_began_ns: None,
            code: Some(0),
            signal: None,
            cause: Cause::Exited,
            error: None,
            ended_ms: 2,
            duration_ms: 1,
            stdout: Range::default(),
            stderr: Range::default(),
            dropped: Dropped::default(),
        }
    }

    fn text(boot: &str) -> io::Result<Vec<u8>> {
        let header = Header { version: 1, boot: boot.into(), pid: 1, mark: "m".into() };
        let start = Ticks { from: 5, to: 6 };
        let mut text = Vec::new();
        for entry in [
            Line::Header(header),
            Line::Epoch { epoch: 4 },
            Line::Starting { key: "a".into() },
            Line::Started { key: "a".into(), part: 0, pid: 7, start },
            Line::Exited(exit("a")),
            Line::Starting { key: "b".into() },
            Line::Started { key: "b".into(), part: 0, pid: 8, start },
            Line::Starting { key: "c".into() },
            Line::Starting { key: "d".into() },
            Line::NotStarted { key: "d".into() },
        ] {
            text.extend(line(&entry)?);
        }
        text.extend_from_slice(b"{\"starting\":{\"key\":\"e");
        Ok(text)
    }

    /// A finished step must not run again after the keeper's death, a step in flight must not
    /// count as finished, and a torn line is nobody's start.
    #[test]
    fn each_key_has_its_last_fact() -> io::Result<()> {
        let facts = facts(&text("now")?, "now");
        assert_eq!(facts.epoch, 4);
        assert_eq!(facts.fact("a"), Fact::Finished(exit("a")));
        let start = Ticks { from: 5, to: 6 };
        assert_eq!(facts.fact("b"), Fact::Started { part: 0, pid: 8, start });
        assert_eq!(facts.fact("c"), Fact::Maybe);
        assert_eq!(facts.fact("d"), Fact::NotStarted);
        assert_eq!(facts.fact("e"), Fact::NotStarted);
        Ok(())
    }

    /// A full disk must not turn a finished step into a lost one.
    #[test]
    fn what_a_full_disk_refused_is_written_when_there_is_room() -> Result<()> {
        let dir = tempfile::tempdir().map_err(Error::io("no folder"))?;
        let mut journal = Journal::create(dir.path(), "mark", 1)?;
        let full = OpenOptions::new().append(true).open("/dev/full");
        let full = full.map_err(Error::io("no full disk"))?;
        let roomy = std::mem::replace(&mut journal.file, full);
        assert!(journal.keep(&Line::Starting { key: "a".into() }).is_err());
        assert!(journal.keep(&Line::Exited(exit("a"))).is_err());
        assert!(journal.keep(&Line::Exited(exit("recorded"))).is_err());
        assert!(journal.catch_up().is_err() && journal.is_behind());
        journal.forget("recorded");
        journal.file = roomy;
        assert!(journal.catch_up().is_ok() && !journal.is_behind());
        let facts = Journal::read(dir.path())?;
        assert_eq!(facts.fact("a"), Fact::Finished(exit("a")));
        assert_eq!(facts.fact("recorded"), Fact::NotStarted);
        Ok(())
    }

    /// After a power cut unsynced lines prove nothing, not even the ones that are there.
    #[test]
    fn another_boot_loses_everything() -> io::Result<()> {
        let facts = facts(&text("then")?, "now");
        assert!(!facts.boot_matches);
        assert!(facts.keys.values().all(|fact| *fact == Fact::Lost));
        assert_eq!(facts.fact("never named"), Fact::Lost);
        Ok(())
    }
}

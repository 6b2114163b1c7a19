//! Another process that reads a file again and again while others write it.
//!
//! A thread of the loop itself would be stopped and woken together with its kills; a process of its
//! own reads on whatever the loop does. It learns the file from its input, so that the folder of
//! the round is not in its command line and a kill of all processes of the round spares it, and
//! goes on until that input ends.

use std::fs;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::Broken;
use super::pipelines::state_file;
use super::sessions;
use super::workflows;
use crate::{Failure, Result};

/// How the program is called to be the reader.
pub(crate) const ROLE: &str = "__read";

/// The pause between two reads: shorter than any write takes that is durable.
const READ_EVERY: Duration = Duration::from_millis(1);

/// What a file must be at every moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A list in JSON.
    JsonList,
    /// The state file of a pipeline.
    PipelineState,
    /// The checkpoint of a workflow.
    Checkpoint,
    /// The plan of a workflow.
    PlanMarkdown,
    /// The checkpoint of a session.
    SessionCheckpoint,
    /// The task board of sessions.
    Board,
}

impl Content {
    const ALL: [Self; 6] = [
        Self::JsonList,
        Self::PipelineState,
        Self::Checkpoint,
        Self::PlanMarkdown,
        Self::SessionCheckpoint,
        Self::Board,
    ];

    /// How the reader is told.
    fn word(self) -> &'static str {
        match self {
            Self::JsonList => "json-list",
            Self::PipelineState => "pipeline-state",
            Self::Checkpoint => "checkpoint",
            Self::PlanMarkdown => "plan-markdown",
            Self::SessionCheckpoint => "session-checkpoint",
            Self::Board => "board",
        }
    }

    /// Tells what is wrong with a file.
    fn check(self, bytes: &[u8]) -> std::result::Result<(), String> {
        let text = || String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::JsonList => {
                let value: serde_json::Result<serde_json::Value> = serde_json::from_slice(bytes);
                let is_list = value.as_ref().is_ok_and(serde_json::Value::is_array);
                if is_list { Ok(()) } else { Err(format!("{value:?}: {}", text())) }
            }
            Self::PipelineState => {
                state_file::well_formed(&text()).map_err(|why| format!("{why}: {}", text()))
            }
            Self::Checkpoint => {
                workflows::sound(&text()).map_err(|why| format!("{why}: {}", text()))
            }
            Self::PlanMarkdown => {
                workflows::is_whole(&text()).map_err(|why| format!("{why}: {}", text()))
            }
            Self::SessionCheckpoint => {
                sessions::is_checkpoint(&text()).map_err(|why| format!("{why}: {}", text()))
            }
            Self::Board => sessions::is_board(&text()).map_err(|why| format!("{why}: {}", text())),
        }
    }
}

/// A reader at work.
pub(super) struct Reader(Child);

/// This very program. A build that ran since may have put another in its place: then the system
/// still knows it, under a name that is good for whoever starts it from here.
fn own_program() -> std::result::Result<PathBuf, Broken> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    Ok(if own.exists() { own } else { PathBuf::from("/proc/self/exe") })
}

impl Reader {
    /// Starts to read a file that may not be there yet.
    pub(super) fn start(file: &Path, content: Content) -> std::result::Result<Self, Broken> {
        let mut child = Command::new(own_program()?)
            .arg(ROLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("the reader could not be started: {e}"))?;
        let stdin = child.stdin.as_mut().ok_or("the reader has no input")?;
        let line = format!("{} {}\n", content.word(), file.display());
        stdin.write_all(line.as_bytes()).map_err(|e| format!("the reader: {e}"))?;
        Ok(Self(child))
    }

    /// Ends it; the number of its reads, or what it found broken.
    pub(super) fn finish(mut self) -> std::result::Result<u64, Broken> {
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().map_err(|e| format!("the reader: {e}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("a reader found the file broken: {said}"));
        }
        let count = String::from_utf8_lossy(&output.stdout).trim().parse();
        count.map_err(|e| format!("the reader did not count: {e}"))
    }
}

/// Reads the file named by the first line of the input, after what it must be, until the input ends.
pub(crate) fn role() -> Result<()> {
    let mut line = String::new();
    let named = io::stdin().lock().read_line(&mut line);
    named.map_err(|e| Failure::Other(e.to_string()))?;
    let (word, file) = line.trim_end_matches('\n').split_once(' ').unwrap_or_default();
    let content = Content::ALL.into_iter().find(|content| content.word() == word);
    let content = content.ok_or_else(|| Failure::Other(format!("nobody knows {word:?}")))?;
    let file = PathBuf::from(file);
    let over = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&over);
    thread::spawn(move || {
        // However the input ends, nobody waits for more reads.
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        end.store(true, Ordering::Relaxed);
    });
    let mut seen = Seen { content, reads: 0 };
    while !over.load(Ordering::Relaxed) {
        seen.look(fs::read(&file)).map_err(Failure::Other)?;
        thread::sleep(READ_EVERY);
    }
    println!("{}", seen.reads);
    Ok(())
}

/// What was read so far.
struct Seen {
    content: Content,
    reads: u64,
}

impl Seen {
    /// Takes one read: what it must be at every moment since the file is there.
    fn look(&mut self, read: io::Result<Vec<u8>>) -> std::result::Result<(), String> {
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.reads == 0 => {
                return Ok(());
            }
            Err(error) => return Err(format!("after {} reads: {error}", self.reads)),
        };
        self.content.check(&bytes)?;
        self.reads += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_and_lost_files_are_seen() {
        let gone = || Err(io::ErrorKind::NotFound.into());
        let mut seen = Seen { content: Content::JsonList, reads: 0 };
        assert!(seen.look(gone()).is_ok(), "not there yet");
        assert!(seen.look(Ok(b"[1]".to_vec())).is_ok());
        assert!(seen.look(Ok(b"[1".to_vec())).is_err(), "torn");
        assert!(seen.look(Ok(Vec::new())).is_err(), "empty");
        assert!(seen.look(gone()).is_err(), "gone again");
        assert_eq!(seen.reads, 1);
    }
}

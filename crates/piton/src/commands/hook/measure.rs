//! What a hook looks at: the end of a program's record, and the process of the agent.

use std::fs::{self, File};
use std::io::{Read, Seek as _, SeekFrom};

use piton_agents::hook::{Before, Found, LOOK, TAIL_BYTES, in_time, in_transcript};

use super::Asked;
use super::note::Note;

/// Most bytes of a record that are looked through; one result of an operation may be large.
const TAIL_BYTES_MAX: u64 = 4 << 20;
/// Processes between a hook and the agent that called it: shells and wrappers.
const ANCESTORS_MAX: usize = 4;
/// Programs that only start others.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "env"];

/// The note with what is in use and what fits now: as the call says, as the record says, else as it was;
/// and the model, where one of them says it.
pub(super) fn measured(asked: &Asked, note: &Note) -> (Note, Option<String>) {
    let said = asked.call.tokens();
    let record = || {
        let path = asked.call.transcript_path.as_deref()?;
        let Note { window, used, thresholds, .. } = *note;
        let before = Before { window, used, warning: thresholds.warning };
        in_time(before, || from_end(asked, path), || std::thread::sleep(LOOK))
    };
    let found = said.map(|used| Found { used, ..Found::default() }).or_else(record);
    let found = found.unwrap_or_else(|| Found { used: note.used, ..Found::default() });
    let window = note.window(asked.call.fits().or(found.window));
    (Note { used: found.used, window, ..*note }, asked.call.model.clone().or(found.model))
}

fn from_end(asked: &Asked, path: &str) -> Option<Found> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut size = TAIL_BYTES;
    loop {
        file.seek(SeekFrom::Start(length.saturating_sub(size))).ok()?;
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(length)).ok()?);
        Read::by_ref(&mut file).take(size).read_to_end(&mut bytes).ok()?;
        let tail = String::from_utf8_lossy(&bytes);
        let found = in_transcript(asked.caller, &tail);
        if found.is_some() || size >= length || size >= TAIL_BYTES_MAX {
            let is_current = asked.call.operation().is_none_or(|id| tail.contains(id));
            return Some(Found { is_current, ..found? });
        }
        size *= 8;
    }
}

/// The process of the agent program, and when it started; zeros where that cannot be seen.
pub(super) fn agent_process(named: Option<u32>) -> (u32, u64) {
    let mut pid = named.unwrap_or_else(std::os::unix::process::parent_id);
    for _ in 0..ANCESTORS_MAX {
        let Some((name, parent, since)) = stat(pid) else { break };
        if !SHELLS.contains(&name.as_str()) {
            return (pid, since);
        }
        pid = parent;
    }
    (0, 0)
}

/// When a process started.
pub(super) fn started_at(pid: u32) -> Option<u64> {
    stat(pid).map(|(_, _, since)| since)
}

/// Name, parent and start of a process.
fn stat(pid: u32) -> Option<(String, u32, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some((name.to_owned(), fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}

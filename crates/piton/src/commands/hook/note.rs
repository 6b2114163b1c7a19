//! What hooks remember about a session: a few bytes beside the ledger, and a cache of it.
//!
//! It is read between any two operations of an agent, so it is one line of words. Lost, it is made
//! again; it is never synced.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use piton_core::Timestamp;
use piton_core::agent::Thresholds;
use piton_core::event::Reason;
use piton_core::hash::Sha;
use piton_protocols::session::cleanup;
use piton_protocols::session::tokens::Usage;
use piton_world::read;

use super::trouble::{Result, Trouble};

/// The folder with a note about each session, in the state folder.
const NOTES: &str = "hooks";
/// The first word of a note.
const VERSION: &str = "2";

/// The highest threshold that a conversation has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Passed {
    /// None.
    #[default]
    Nothing,
    /// The one of the warning.
    Warning,
    /// The one at which the agent stops.
    Critical,
    /// The one at which it stops again, because nothing more fits.
    Full,
}

impl Passed {
    /// The highest threshold of a conversation.
    pub fn of(usage: Usage) -> Self {
        match usage.trigger() {
            Some(Reason::TokenCritical) if usage.is_full() => Self::Full,
            Some(Reason::TokenCritical) => Self::Critical,
            Some(Reason::TokenWarning) => Self::Warning,
            _ => Self::Nothing,
        }
    }
}

/// The note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Tokens in use.
    pub used: u64,
    /// Tokens that were in use when they were measured first.
    pub first: u64,
    /// Tokens that fit.
    pub window: u64,
    /// Whether settings say so: then nobody else is believed.
    pub is_window_set: bool,
    /// How full the window may be.
    pub thresholds: Thresholds,
    /// The model that was looked up in the settings, by its [`model_number`]; 0 while none is known.
    pub model: u64,
    /// The threshold that was passed.
    pub passed: Passed,
    /// Whether the agent was stopped, and nobody has asked it for more.
    pub is_stopped: bool,
    /// Operations that were refused since.
    pub denials: u32,
    /// Whether there is a memory bank: nothing is recorded without one.
    pub is_kept: bool,
    /// The process of the agent program, and when it started.
    pub process: (u32, u64),
}

/// A short number for the name of a model, never 0.
pub fn model_number(name: &str) -> u64 {
    let hash = Sha::of(name.as_bytes()).0;
    let digits: String = hash.chars().filter(char::is_ascii_hexdigit).take(12).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0).max(1)
}

impl Note {
    /// Reads the note about a session.
    pub fn read(state_dir: &Path, session: &str) -> Option<Self> {
        Self::at(&path(state_dir, session))
    }

    /// Whether the agent of a session is known to be gone, by the name that its notes have.
    pub fn is_gone(state_dir: &Path, name: &str) -> bool {
        let note = Self::at(&state_dir.join(NOTES).join(name));
        note.is_some_and(|Self { process: (pid, since), .. }| {
            pid > 0 && super::measure::started_at(pid) != Some(since)
        })
    }

    fn at(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let mut words = text.split_ascii_whitespace();
        if words.next()? != VERSION {
            return None;
        }
        let mut number = || words.next()?.parse::<u64>().ok();
        let (used, window) = (number()?, number()?);
        let passed = match number()? {
            0 => Passed::Nothing,
            1 => Passed::Warning,
            2 => Passed::Critical,
            _ => Passed::Full,
        };
        let (is_stopped, denials, is_kept) = (number()? > 0, number()?, number()? > 0);
        let process = (u32::try_from(number()?).ok()?, number()?);
        let denials = u32::try_from(denials).ok()?;
        let first = number()?;
        let (is_window_set, model) = (number()? > 0, number()?);
        let mut share = || u32::try_from(number()?).ok();
        let thresholds = Thresholds { warning: share()?, critical: share()?, halt: share()? };
        let note = Self {
            used,
            first,
            window,
            is_window_set,
            thresholds,
            model,
            passed,
            is_stopped,
            denials,
            is_kept,
            process,
        };
        (window > 0).then_some(note)
    }

    /// Tokens that fit, where a program says how many.
    pub fn window(&self, said: Option<u64>) -> u64 {
        said.filter(|said| *said > 0 && !self.is_window_set).unwrap_or(self.window)
    }

    /// How full the window is.
    pub fn usage(&self) -> Usage {
        Usage { used: self.used, window: self.window, thresholds: self.thresholds }
    }

    /// Keeps it.
    pub fn keep(&self, state_dir: &Path, session: &str) -> Result<()> {
        let Self { used, first, window, is_stopped, denials, is_kept, model, .. } = self;
        let Thresholds { warning, critical, halt } = self.thresholds;
        let set = u8::from(self.is_window_set);
        let (pid, since) = self.process;
        let (passed, stopped, kept) =
            (self.passed as u8, u8::from(*is_stopped), u8::from(*is_kept));
        let text = format!(
            "{VERSION} {used} {window} {passed} {stopped} {denials} {kept} {pid} {since} {first} {set} \
             {model} {warning} {critical} {halt}\n"
        );
        let path = path(state_dir, session);
        let new = path.with_extension(std::process::id().to_string());
        let write = || fs::write(&new, &text).and_then(|()| fs::rename(&new, &path));
        let written = match write() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(state_dir.join(NOTES)).and_then(|()| write())
            }
            written => written,
        };
        written.map_err(|error| Trouble::Note(path, error))
    }

    /// The same with an agent that is stopped, or not any more.
    pub fn stopped(self, is_stopped: bool) -> Self {
        Self { is_stopped, denials: 0, ..self }
    }

    /// Forgets a session.
    pub fn forget(state_dir: &Path, session: &str) {
        // A note of a session that ended misleads nobody for long: its process is gone.
        let _ = fs::remove_file(path(state_dir, session));
    }

    /// Forgets sessions that have not been heard of for as long as backups are kept: a killed agent says
    /// nothing at its end.
    pub fn forget_old(state_dir: &Path, now: Timestamp) {
        let dir = state_dir.join(NOTES);
        let is_old = |path: &PathBuf| {
            read::modified(path).is_some_and(|at| now.since(at).0 > cleanup::AGE_MAX.0)
        };
        for path in read::names(&dir).into_iter().map(|name| dir.join(name)).filter(is_old) {
            // It is tried again at the next start.
            let _ = fs::remove_file(path);
        }
    }

    /// Whether its agent is at work: it was not stopped, and its process lives.
    pub fn is_at_work(&self) -> bool {
        let (pid, since) = self.process;
        !self.is_stopped && pid > 0 && super::measure::started_at(pid) == Some(since)
    }
}

fn path(state_dir: &Path, session: &str) -> PathBuf {
    state_dir.join(NOTES).join(Sha::of(session.as_bytes()).0)
}

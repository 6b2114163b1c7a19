//! The files that a protocol keeps for a run, as edits that somebody else makes.
//!
//! A protocol learns of events and decides what its files contain. Locks, concurrent saves, copies of
//! damaged files and syncs are up to the writer.

use std::io;
use std::path::Path;

use piton_core::{Event, LanePath, Plan, RunState, Timestamp};
use piton_formats::settings::Settings;

/// A run, as its protocol sees it.
#[derive(Clone, Copy)]
pub struct Run<'r> {
    /// The folder that its steps run in.
    pub root: &'r Path,
    /// The settings of the project.
    pub settings: &'r Settings,
    /// Its state.
    pub state: &'r RunState,
}

/// What a protocol can ask for while its files are written.
pub trait Around {
    /// The text of a file, by its path from the root; `None` if it cannot be read.
    fn text(&self, path: &str) -> Option<String>;
    /// When a file was modified last, by its path from the root; `None` if it is not there.
    fn modified(&self, path: &str) -> Option<Timestamp>;
    /// What an earlier edit of this run's files stored; empty at first.
    fn memory(&self) -> Vec<u8>;
    /// All runs of this folder that follow the protocol, the oldest first.
    fn runs(&self) -> Vec<RunState>;
}

/// When a protocol can print something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The run stopped and needs a person.
    Stopped,
    /// The run is about to resume.
    Resumed,
    /// The run was rolled back.
    RolledBack,
}

/// What happens to a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It stays: it is up to date.
    AsItIs,
    /// It gets this text.
    Text {
        /// The text.
        text: Vec<u8>,
        /// Whether to sync it, because the ledger could not rebuild it.
        sync: bool,
    },
    /// It cannot be read: it is kept under another name and replaced.
    Instead {
        /// The text.
        text: Vec<u8>,
        /// The problem, for a person.
        why: String,
    },
    /// Somebody seems to be writing it: read it again, and once it no longer changes, ask with `true`.
    Unfinished,
    /// It stays, for this reason.
    Refused(String),
}

/// A change of one file.
pub trait Edit {
    /// The file, by its path from the root.
    fn path(&self) -> &str;
    /// Decides what happens to it, from its bytes and whether they have stopped changing. Asked again
    /// if somebody saved the file in the meantime.
    fn change(&mut self, there: Option<&[u8]>, is_stable: bool) -> Wanted;
    /// What is wrong with the file after it was changed; `read` reads it back.
    fn flaw(&self, _read: &dyn Fn() -> io::Result<Vec<u8>>) -> Option<String> {
        None
    }
    /// What must be stored durably with the run before the file is changed.
    fn before(&mut self) -> Option<Vec<u8>> {
        None
    }
    /// What must be stored after the file was changed.
    fn after(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// The files that a protocol keeps for one run.
pub trait Files {
    /// The edits that bring its files up to date.
    fn edits<'e>(
        &'e mut self,
        plan: &'e Plan,
        state: &'e RunState,
        around: &'e dyn Around,
    ) -> Vec<Box<dyn Edit + 'e>>;

    /// Learns of a durable event; called for all of them, in order.
    fn happened(&mut self, _at: Timestamp, _event: &Event) {}
    /// Whether an event is written to the files before it is acted on.
    fn is_shown_first(&self, _event: &Event, _state: &RunState) -> bool {
        false
    }
    /// The file that grows by [`Self::lines`], by its path from the root.
    fn log(&self) -> Option<String> {
        None
    }
    /// The lines that an event adds, each with its newline; they depend on no other event.
    fn lines(&self, _at: Timestamp, _event: &Event) -> String {
        String::new()
    }
    /// The last events of a lane, in words, the newest last.
    fn recent(&self, _lane: &LanePath) -> Vec<String> {
        Vec::new()
    }
    /// The files that are renamed when the run is archived: old and new names.
    fn archived(&self, _plan: &Plan, _state: &RunState) -> Vec<(String, String)> {
        Vec::new()
    }
    /// What is printed for a person, line by line.
    fn words(&self, _state: &RunState, _occasion: Occasion) -> Vec<String> {
        Vec::new()
    }
}

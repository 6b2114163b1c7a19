//! The writing side of the seat: what a protocol keeps in files, as edits that somebody else makes.
//!
//! A protocol is told what happened and says what its files shall hold. Locks, exchanges with an
//! editor's save, copies of what is damaged and syncs are the business of whoever carries that out.

use std::path::Path;

use piton_core::{Event, LanePath, Plan, RunState, Timestamp};
use piton_formats::settings::Settings;

/// A run, as its protocol is told of it.
#[derive(Clone, Copy)]
pub struct Run<'r> {
    /// The folder that its steps run in.
    pub root: &'r Path,
    /// The settings of the project.
    pub settings: &'r Settings,
    /// How it stands.
    pub state: &'r RunState,
}

/// What a protocol may ask for while its files are written.
pub trait Around {
    /// The text of a file, by its path from the root; nothing where it can't be read.
    fn text(&self, path: &str) -> Option<String>;
    /// What an edit of this run's files had remembered last; nothing at first.
    fn memory(&self) -> Vec<u8>;
    /// All runs of this folder that follow the protocol, as the ledger has them, the oldest first.
    fn runs(&self) -> Vec<RunState>;
}

/// When a protocol has something to say to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The run stopped, and cannot go on by itself.
    Stopped,
    /// It is about to go on.
    Resumed,
    /// It was taken back.
    RolledBack,
}

/// What shall become of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It is as it should be.
    AsItIs,
    /// It shall hold this text.
    Text {
        /// The text.
        text: Vec<u8>,
        /// Whether it holds what nobody could write again, and must survive a power failure.
        sync: bool,
    },
    /// What it holds can't be read: that is kept aside, and it shall hold this text.
    Instead {
        /// The text.
        text: Vec<u8>,
        /// What is wrong with it, for a person.
        why: String,
    },
    /// Somebody seems to be writing it: look again, and if it stays so, ask with `true`.
    Unfinished,
    /// It stays as it is, and a person should know why.
    Refused(String),
}

/// A change of one file.
pub trait Edit {
    /// The file, by its path from the root.
    fn path(&self) -> &str;
    /// Decides what shall become of it: from its bytes, and whether they have settled. Asked again
    /// where somebody saved meanwhile.
    fn change(&mut self, there: Option<&[u8]>, settled: bool) -> Wanted;
    /// What must be remembered beside the run, durably, before that is done.
    fn before(&mut self) -> Option<Vec<u8>> {
        None
    }
    /// What must be remembered once it is done.
    fn after(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// The files that a protocol keeps of one run.
pub trait Files {
    /// What has to be written for the run as it stands; what is as it should be is not touched.
    fn edits<'e>(
        &'e mut self,
        plan: &'e Plan,
        state: &'e RunState,
        around: &'e dyn Around,
    ) -> Vec<Box<dyn Edit + 'e>>;

    /// The file that says where the run stands, by its path from the root.
    fn record(&self) -> Option<String> {
        None
    }
    /// Learns of an event that is durable; called for all of them, in order.
    fn happened(&mut self, _event: &Event) {}
    /// Whether an event is shown before it is acted on.
    fn is_shown_first(&self, _event: &Event, _state: &RunState) -> bool {
        false
    }
    /// The file that grows by [`Self::lines`], by its path from the root.
    fn log(&self) -> Option<String> {
        None
    }
    /// What an event says there, whatever came before or after it; each line with its end.
    fn lines(&self, _at: Timestamp, _event: &Event) -> String {
        String::new()
    }
    /// The last that happened to a lane, in words, the newest last.
    fn recent(&self, _lane: &LanePath) -> Vec<String> {
        Vec::new()
    }
    /// The files that have another name once the run is archived, as `state` has it: both names.
    fn archived(&self, _state: &RunState) -> Vec<(String, String)> {
        Vec::new()
    }
    /// What is said to a person, line by line.
    fn words(&self, _state: &RunState, _occasion: Occasion) -> Vec<String> {
        Vec::new()
    }
}

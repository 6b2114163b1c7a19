//! The table of protocols, and how the protocol of a plan or of a run is found in it.
//!
//! A run records which protocol it follows, and which version of it, when it is created. After that
//! nothing is guessed from a file's name: whoever needs to know asks the table for the recorded one.
//! A new protocol is its folder and its line in [`TABLE`].

use piton_core::event::ProtocolRef;
use piton_core::{Plan, RunState};
use piton_formats::keys::Section;
use piton_formats::settings::Settings;

use crate::format::surest;
use crate::lanes::Lanes;
use crate::pipeline::Pipeline;
use crate::plain::Plain;
use crate::protocol::{Blocker, Protocol, Source};
use crate::session::Session;
use crate::workflow::Workflow;

/// A table of protocols; if two are equally sure of a file, the first one reads it.
pub type Table = [&'static dyn Protocol];

/// The protocols of this program.
pub const TABLE: &Table = &[&Lanes, &Pipeline, &Workflow, &Session, &Plain];

/// The sections of the settings that belong to protocols.
pub fn sections(table: &Table) -> Vec<(&'static str, &'static Section)> {
    table.iter().filter_map(|protocol| Some((protocol.id(), protocol.settings()?))).collect()
}

/// What blocks phases of a run, as its protocol says.
pub fn blockers(table: &Table, state: &RunState) -> Vec<Blocker> {
    let protocol = find(table, &state.protocol.id);
    protocol.map(|protocol| protocol.blockers(state)).unwrap_or_default()
}

/// Finds the protocol that a run recorded.
pub fn find(table: &Table, id: &str) -> Option<&'static dyn Protocol> {
    table.iter().find(|protocol| protocol.id() == id).copied()
}

/// The protocol that is surest of a file or folder.
pub fn claimed(table: &Table, source: &Source<'_>) -> Option<&'static dyn Protocol> {
    surest(table.iter().map(|protocol| (protocol.claim(source), *protocol)))
}

/// A plan names a protocol that is not in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownProtocol(pub String);

/// The protocol that runs of a plan follow: the one it names, else one that adopts it, else the one
/// that read it. An unknown name is the error.
pub fn followed(
    table: &Table,
    reader: &'static dyn Protocol,
    plan: &Plan,
    settings: &Settings,
) -> Result<ProtocolRef, UnknownProtocol> {
    let adopting = || table.iter().copied().find(|p| p.adopts(plan, settings));
    let protocol = match &plan.protocol {
        Some(name) => find(table, name).ok_or_else(|| UnknownProtocol(name.clone()))?,
        // A plan that another protocol reads follows that protocol.
        None if reader.id() != Plain.id() => reader,
        None => adopting().unwrap_or(reader),
    };
    let (id, version) = (protocol.id().to_owned(), protocol.version());
    Ok(ProtocolRef { id, version, reader: reader.id().to_owned() })
}

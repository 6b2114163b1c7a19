//! The session protocol: checkpoints inside the context budget of an agent, and how a fresh one goes on.
//!
//! Its files are a memory bank: a task board, changes that are not written yet, the objective, the
//! stack, and checkpoints. A session has no plan that Piton runs; commands record what happens in it.

pub mod bank;
pub mod board;
pub mod brief;
pub mod change;
pub mod checkpoint;
pub mod cleanup;
pub mod config;
pub mod create;
pub mod decompose;
pub mod files;
mod inspect;
pub mod resume;
pub mod settings;
pub mod tokens;
pub mod words;

#[cfg(test)]
mod tests;

use piton_core::refusal::Refusal;
use piton_core::remedy;
use piton_formats::keys::Section;

use crate::files::{Files, Run};
use crate::format::{Claim, Format};
use crate::protocol::{Protocol, Reader, Reading, Source, Told, Unreadable};

/// The frozen name of the protocol.
pub const ID: &str = "session";
/// The checkpoint that the next session goes on from, from the root of the memory bank.
pub const LATEST: &str = "checkpoints/latest.json";
/// The folder of checkpoints.
pub const CHECKPOINTS: &str = "checkpoints";
/// The phase and the lane of every session's run.
pub const PHASE: &str = "session";
/// The lane of every session's run.
pub const LANE: &str = "work";

/// The plan of every session's run: one lane in the folder that the agent works in. Its step is never
/// started; the tasks of the board are done by the agent.
pub const PLAN: &str = "\
title = \"Session\"

[[phase]]
id = \"session\"

[[phase.lane]]
id = \"work\"
isolation = \"in-place\"
steps = [{ id = \"tasks\", run = \"true\" }]
";

/// The session protocol.
#[derive(Debug)]
pub struct Session;

impl Protocol for Session {
    fn id(&self) -> &'static str {
        ID
    }

    fn claim(&self, _source: &Source<'_>) -> Claim {
        Claim::No
    }

    /// A session has no plan: nothing of it can be run.
    fn read(&self, _source: &Source<'_>) -> Result<Reading, Unreadable> {
        let cause = "this is the run of an agent's session; it has no steps that Piton could run";
        let remedy = remedy![Piton "session start", Words " shows the agent where to continue"];
        Err(Unreadable::Refused(Refusal::new("session-run", cause).or(remedy)))
    }

    fn settings(&self) -> Option<&'static Section> {
        Some(&settings::SESSION)
    }

    fn formats(&self) -> &'static [Format] {
        inspect::FORMATS
    }

    fn files(&self, run: &Run<'_>) -> Option<Box<dyn Files>> {
        Some(Box::new(files::SessionFiles::new(run)))
    }

    fn told(&self, run: &Run<'_>, read: &Reader<'_>) -> Option<Told> {
        let root = bank::root_of(&run.state.plan_path);
        let bank = bank::Bank::read(&root, &settings::Settings::of(run.settings), read);
        let own = run.state.run_id.as_ref().map_or("", |id| id.0.as_str());
        run.state.session.as_ref().map(|session| brief::told(&bank, own, session))
    }

    fn own_paths(&self, run: &Run<'_>) -> Vec<String> {
        let is_own = run.state.protocol.id == ID;
        let root = bank::root_of(&run.state.plan_path);
        if is_own { vec![bank::within(&root, CHECKPOINTS)] } else { Vec::new() }
    }
}

//! The checklist protocol: a file `NAME.checklist` whose lines are done one after the other.
//!
//! `- [ ] build: make` is a phase and its command. `- [ ] ship? Is it good?` asks a person before the
//! phase `ship`, who answers by ticking the box. Boxes of phases are ticked when they are done.

use std::fmt::Write as _;

use piton_core::hash::Sha;
use piton_core::state::PhaseState;
use piton_core::{Plan, RunState};
use piton_formats::markdown::inline::{bullet, checkbox};
use piton_formats::{Input, read_plan};
use piton_protocols::Protocol;
use piton_protocols::protocol::{Claim, Finding, Reader, Reading, Source, Start, Unreadable};

/// The checklist protocol.
#[derive(Debug)]
pub struct Checklist;

/// A line with a box: whether that is ticked, the phase, its question or its command.
enum Item<'t> {
    Work { phase: &'t str, command: &'t str, ticked: bool },
    Question { phase: &'t str, text: &'t str, ticked: bool },
}

fn items(text: &str) -> impl Iterator<Item = Item<'_>> {
    text.lines().filter_map(|line| {
        let item = checkbox(bullet(line)?)?;
        let at = item.rest.find([':', '?'])?;
        let (phase, rest) = (&item.rest[..at], item.rest[at + 1..].trim());
        let ticked = item.is_ticked();
        Some(match &item.rest[at..=at] {
            ":" => Item::Work { phase, command: rest, ticked },
            _ => Item::Question { phase, text: rest, ticked },
        })
    })
}

impl Protocol for Checklist {
    fn id(&self) -> &'static str {
        "checklist"
    }

    fn claim(&self, source: &Source<'_>) -> Claim {
        let is_list = source.text.is_some_and(|text| items(text).next().is_some());
        if is_list && source.has_extension("checklist") { Claim::Content } else { Claim::No }
    }

    fn read(&self, source: &Source<'_>) -> Result<Reading, Unreadable> {
        let Source { file, settings, git, read, .. } = *source;
        let (mut plan, mut gate) = (String::new(), String::new());
        for item in items(source.text.unwrap_or_default()) {
            let _ = match item {
                Item::Question { text, .. } => writeln!(gate, "gate = {text:?}"),
                Item::Work { phase, command, .. } => {
                    let gate = std::mem::take(&mut gate);
                    writeln!(plan, "[[phase]]\nid = {phase:?}\n{gate}run = {command:?}")
                }
            };
        }
        let (plan, warnings) = read_plan(&Input { file, text: &plan, settings, git, read })?;
        Ok(Reading::new(plan, warnings))
    }

    fn start(&self, _plan: &Plan, _earlier: &RunState) -> Start {
        Start::Resume
    }

    fn checks(&self, state: &RunState, read: &Reader<'_>) -> Vec<Finding> {
        let text = read(&state.plan_path).unwrap_or_default();
        let is_done = |phase: &str| state.phase(phase).is_some_and(PhaseState::satisfies);
        let early = items(&text).filter_map(|item| match item {
            Item::Work { phase, ticked: true, .. } if !is_done(phase) => {
                Some(Finding { stops: true, message: format!("{phase} is ticked and not done") })
            }
            _ => None,
        });
        early.collect()
    }

    fn inputs(&self, plan_path: &str, read: &Reader<'_>) -> Option<(Vec<String>, Sha)> {
        let text = read(plan_path).ok()?;
        let approved = items(&text).filter_map(|item| match item {
            Item::Question { phase, ticked: true, .. } => Some(phase.to_owned()),
            _ => None,
        });
        Some((approved.collect(), Sha::of(text.as_bytes())))
    }
}

//! The checklist protocol: a file `NAME.checklist` whose lines are done one after the other.
//!
//! `- [ ] build: make` is a phase and its command. `- [ ] ship? Is it good?` asks a person before the
//! phase `ship`, who answers by ticking the box. Boxes of phases are ticked when they are done.
//! A command finds the phases that are done as `{{ context.done }}` and in `CHECKLIST_DONE`.

use std::fmt::Write as _;

use piton_core::hash::Sha;
use piton_core::state::{LaneState, PhaseState};
use piton_core::{Plan, RunState, Timestamp};
use piton_formats::markdown::inline::{bullet, checkbox};
use piton_formats::template::Given;
use piton_formats::{Input, read_plan};
use piton_protocols::Protocol;
use piton_protocols::files::{Around, Edit, Files, Run, Wanted};
use piton_protocols::format::Claim;
use piton_protocols::protocol::{
    Effect, Finding, Reader, Reading, Source, Start, Starting, Unreadable,
};

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

    fn start(&self, _plan: &Plan, _earlier: &RunState, _now: Timestamp) -> Start {
        Start::Resume
    }

    fn checks(&self, _plan: &Plan, state: &RunState, read: &Reader<'_>) -> Vec<Finding> {
        let text = read(&state.plan_path).unwrap_or_default();
        let is_done = |phase: &str| state.phase(phase).is_some_and(PhaseState::satisfies);
        let differs = items(&text).filter_map(|item| match item {
            Item::Work { phase, ticked, .. } if ticked != is_done(phase) => {
                let words = if ticked { "ticked and not done" } else { "done and not ticked" };
                let effect = if ticked { Effect::Stops } else { Effect::Warns };
                let message = format!("{phase} is {words}");
                Some(Finding { check: "boxes", effect, message })
            }
            _ => None,
        });
        differs.collect()
    }

    fn inputs(&self, plan: (&str, &Plan), read: &Reader<'_>) -> Option<(Vec<String>, Sha)> {
        let text = read(plan.0).ok()?;
        let approved = items(&text).filter_map(|item| match item {
            Item::Question { phase, ticked: true, .. } => Some(phase.to_owned()),
            _ => None,
        });
        Some((approved.collect(), Sha::of(text.as_bytes())))
    }

    fn dispatch(&self, starting: &Starting<'_>) -> Given {
        let phases = starting.state.phases.iter();
        let done: Vec<&str> = phases.filter(|p| p.satisfies()).map(|p| p.id.as_str()).collect();
        let done = done.join(", ");
        let context = [("done".to_owned(), done.clone())].into();
        let env = [("CHECKLIST_DONE".to_owned(), done)].into();
        Given { context, env, ..Given::default() }
    }

    fn files(&self, run: &Run<'_>) -> Option<Box<dyn Files>> {
        Some(Box::new(List { path: run.state.plan_path.clone() }))
    }

    fn own_paths(&self, run: &Run<'_>) -> Vec<String> {
        let is_own = run.state.protocol.id == self.id();
        is_own.then(|| run.state.plan_path.clone()).into_iter().collect()
    }
}

/// The list of a run.
struct List {
    path: String,
}

impl Files for List {
    fn edits<'e>(
        &'e mut self,
        _plan: &'e Plan,
        state: &'e RunState,
        _around: &'e dyn Around,
    ) -> Vec<Box<dyn Edit + 'e>> {
        vec![Box::new(Ticking { path: &self.path, state })]
    }
}

/// Ticks the boxes of phases that are done.
struct Ticking<'e> {
    path: &'e str,
    state: &'e RunState,
}

impl Edit for Ticking<'_> {
    fn path(&self) -> &str {
        self.path
    }

    fn change(&mut self, there: Option<&[u8]>, _settled: bool) -> Wanted {
        let Some(Ok(text)) = there.map(std::str::from_utf8) else { return Wanted::AsItIs };
        let is_done = |phase: &str| {
            let phase = self.state.phase(phase);
            phase.is_some_and(|phase| phase.lanes.iter().all(LaneState::satisfies))
        };
        let ticked = |line: &str| match items(line).next() {
            Some(Item::Work { phase, .. }) if is_done(phase) => line.replacen("[ ]", "[x]", 1),
            _ => line.to_owned(),
        };
        let new: String = text.split_inclusive('\n').map(ticked).collect();
        if new == text {
            Wanted::AsItIs
        } else {
            Wanted::Text { text: new.into_bytes(), sync: true }
        }
    }
}

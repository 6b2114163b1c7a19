//! What a resume says before anything runs: where the run stands, what comes next, what holds it,
//! what runs again and why, and what changed.

use std::fmt::Write as _;

use piton_core::decide::held_without;
use piton_core::event::Class;
use piton_core::state::Progress;
use piton_core::summary::current;
use piton_core::text::first_few;
use piton_core::{RunState, StepPath};
use piton_engine::resume::{Difference, Severity};

use crate::next::holding;
use crate::place::{At, Place};
use crate::run::{Again, RunView, run_id};
use crate::shape::shapes;
use crate::text::sanitize;

/// Most steps that are named in one sentence; the rest are counted.
const NAMED_MAX: usize = 10;

shapes! {
    /// A resume.
    Resume<'a> {
        run_id: &'a str, current: Option<StepPath>, checkpoint: String, rollback: String,
        next: Vec<StepPath>, parked: Vec<Wait>, retrying: Vec<Wait>, held: Option<String>,
        differences: &'a [Difference], rerun: Vec<Again<'a>>, plan_changes: Vec<String>,
        #[serde(skip)] view: RunView<'a>,
    }

    /// A step that waits before it is tried again.
    Wait { step: StepPath, until: At, #[serde(skip)] class: Class }
}

/// What comes next in a run that is about to go on.
#[derive(Debug, Default)]
pub struct Outlook {
    /// The first wave.
    pub next: Vec<StepPath>,
    /// Why nothing of it runs before a person acts.
    pub held: Option<String>,
}

impl<'a> Resume<'a> {
    /// A run as it is shown, and `after` what was found: `chosen` are the lanes that go on.
    pub fn new(
        view: RunView<'a>,
        (after, outlook): (&RunState, Outlook),
        chosen: impl Fn(&StepPath) -> bool,
        (differences, plan_changes): (&'a [Difference], Vec<String>),
        ledger: &str,
    ) -> Self {
        let Outlook { next, held } = outlook;
        let waits = after.steps().filter_map(|(step, found)| match found.progress {
            progress @ Progress::Waiting { class, .. } => {
                Some(Wait { step, until: At(progress.waits_until(view.now)?), class })
            }
            _ => None,
        });
        let (parked, mut retrying): (Vec<_>, Vec<_>) =
            waits.partition(|w| w.class == Class::RateLimit);
        // None is tried by itself where nothing runs before a person acts.
        retrying.retain(|wait| held.is_none() && chosen(&wait.step));
        let run = view.run_id;
        Self {
            run_id: run,
            current: current(after),
            checkpoint: format!("{ledger} (run {run}, event {})", view.seq),
            rollback: view.place.piton(format_args!("rollback {run} --to before_lane_start")),
            next,
            parked,
            retrying,
            held,
            differences,
            rerun: view.rerun.clone(),
            plan_changes,
            view,
        }
    }

    /// For people; `plan` is how its plan is named here, `prompt` what its protocol says.
    pub fn render(&self, plan: &str, prompt: &[String]) -> String {
        let RunView { now, place, .. } = self.view;
        let (over, count) = self.view.progress();
        let skipped = self.view.skipped();
        let left_out = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
        let (run, title) = (self.run_id, sanitize(self.view.title));
        let over = over - skipped;
        let mut out =
            format!("Resuming {run} ({title}), {over} of {count} steps finished{left_out}\n");
        let mut line = |name: &str, text: &str| {
            let _ = writeln!(out, "  {name:14} {text}");
        };
        let here = self.current.as_ref().map(ToString::to_string);
        line("current stage:", here.as_deref().unwrap_or("none"));
        line("checkpoint:", &self.checkpoint);
        if !self.next.is_empty() {
            let next: Vec<String> = self.next.iter().map(ToString::to_string).collect();
            line("next:", &next.join(", "));
        }
        for Wait { step, until, class } in &self.retrying {
            let why = if *class == Class::Network { "the network" } else { "a retry" };
            line("next:", &format!("{step}, again at {} ({why})", place.ahead(until.0, now)));
        }
        for Wait { step, until, .. } in &self.parked {
            let (when, left) = (place.ahead(until.0, now), until.0.since(now));
            let what = "for the reset of a rate limit; Ctrl-C leaves, and the wait is kept";
            line("parked:", &format!("{step} waits until {when} ({left}) {what}"));
        }
        if let Some(held) = &self.held {
            line("nothing runs:", held);
        }
        for lane in self.view.lanes().filter(|lane| !lane.is_over) {
            if let Some((stage, status)) = lane.work.standing {
                line("lane:", &format!("{} {stage} ({})", lane.path, status.as_str()));
            }
        }
        if self.view.lanes().any(|lane| lane.work.is_begun) {
            line("roll back:", &self.rollback);
        }
        line("start over:", &place.piton(format_args!("run {plan} --fresh")));
        for text in prompt {
            let _ = writeln!(out, "{}", sanitize(text));
        }
        let word = if self.held.is_some() { "to run again:" } else { "runs again:" };
        for Again { step, reason } in &self.rerun {
            let _ = writeln!(out, "  {word:14} {step}: {}", sanitize(reason));
        }
        for difference in self.differences {
            let word = match difference.severity {
                Severity::Stops => "stops",
                Severity::Warns => "warning",
                Severity::RunsAgain if difference.name == "step-lost" => "runs again",
                // Said above, with the step's reason.
                Severity::RunsAgain => continue,
            };
            let _ = writeln!(out, "  {word}: {}", difference.message);
        }
        for change in &self.plan_changes {
            let _ = writeln!(out, "  plan:          {change}");
        }
        out
    }
}

/// What a failed run waits for.
pub fn why_failed(state: &RunState, place: &Place) -> String {
    let run = run_id(state);
    let command = |arguments: String| format!("`{}`", place.piton(arguments));
    let abort = command(format!("abort {run}"));
    let failed = state.steps().filter(|(_, s)| s.progress == Progress::Failed);
    let failed: Vec<StepPath> = failed.map(|(path, _)| path).collect();
    if failed.is_empty() {
        let rejected = state.gates.keys().find(|gate| state.rejected(gate));
        let gate = rejected.map_or("GATE", |gate| gate.0.as_str());
        let approve = command(format!("approve {run} {gate}"));
        return format!("a gate was rejected; {approve}, or {abort}");
    }
    let (retry, skip) = (command(format!("retry {run}")), command(format!("skip {run}")));
    format!("failed: {}; {retry}, {skip} or {abort}", names(&failed))
}

/// What was left out and is waited for.
pub fn why_skipped(state: &RunState, place: &Place) -> Option<String> {
    let skipped = holding(state);
    let first = skipped.first().filter(|step| !held_without(state, step).is_empty())?;
    let run = run_id(state);
    let skip = place.piton(format_args!("skip {run} {first} --satisfy"));
    let names = names(&skipped);
    Some(format!("skipped, and what remains needs it: {names}; `{skip}` lets it go on"))
}

fn names(paths: &[StepPath]) -> String {
    first_few(paths.iter().map(ToString::to_string), NAMED_MAX).unwrap_or_default()
}

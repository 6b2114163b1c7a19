//! What `piton show` tells: a run in full, or one of its steps or checkpoints, with its history.

mod point;
mod step;

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use piton_core::budget::{dollars, size};
use piton_core::event::{CheckpointRecorded, Event, FileHash};
use piton_core::hash::Sha;
use piton_core::request::gates;
use piton_core::{GateRef, Plan, StepPath, Timestamp};
use serde::Serialize;

pub use point::{Point, PointView, Snapshot};
pub use step::{Happened, StepView, take};

use crate::layout::Layout;
use crate::place::At;
use crate::run::{Checkpoint, Lane, Phase, RunView};
use crate::shape::shapes;
use crate::text::{count, sanitize};
use crate::tree;

/// Most artifacts that a decision names to a person; its JSON names all.
const ARTIFACTS_NAMED_MAX: usize = 10;
/// Checkpoints that a run is shown with, the newest; the rest is counted.
const POINTS_LISTED_MAX: usize = 30;

shapes! {
    /// The prompt of a step: as an attempt got it, or its template.
    Prompt<'a> { step: &'a StepPath, attempt: Option<u32>, prompt: &'a str }

    /// A decision about a gate.
    Decided {
        gate: GateRef, approved: bool, by: String, message: String, at: At, plan_hash: Sha,
        artifacts: Vec<FileHash>,
        /// By whom it was taken back, when and why.
        #[serde(skip_serializing_if = "Option::is_none")] taken_back: Option<String>,
    }

    /// A changed plan or spec that was accepted.
    Accepted { what: &'static str, from: Option<Sha>, to: Option<Sha>, by: String, at: At }

    /// Ticks of a phase document.
    Ticked { gates: Vec<String>, counts: bool, by: String, at: At, document: Option<Sha> }

    /// A gate with all that was decided about it.
    Gate<'a> {
        gate: GateRef, name: String, asked_at: Option<At>, approved: Option<bool>,
        decisions: Vec<&'a Decided>,
    }

    /// One budget: what was used, what is allowed.
    Budget { name: &'static str, used: String, limit: String }

    /// What the snapshots of a run take beyond everything else.
    #[derive(Copy)]
    Costs { objects: u64, bytes: u64 }

    /// A run in full: where it stands, what it was made from, what it used, who decided what.
    FullRun<'a> {
        #[serde(flatten)] view: RunView<'a>, plan_hash: Option<&'a Sha>,
        spec: Option<&'a FileHash>, root: &'a str, head: Option<&'a str>,
        snapshots: &'a [Point], gates: Vec<Gate<'a>>, accepted: &'a [Accepted],
        ticks: &'a [Ticked], budgets: [Budget; 6],
        #[serde(skip_serializing_if = "Option::is_none")] snapshot_costs: Option<Costs>,
        logs: PathBuf,
    }
}

/// A part of a run by itself.
#[derive(Serialize)]
pub struct Part<'a, T> {
    /// The part.
    #[serde(flatten)]
    pub part: &'a T,
    /// Its run.
    pub run_id: &'a str,
}

/// What only the events of a run tell.
#[derive(Debug, Default)]
pub struct History {
    points: Vec<(Timestamp, CheckpointRecorded)>,
    decided: Vec<Decided>,
    accepted: Vec<Accepted>,
    ticks: Vec<Ticked>,
}

impl fmt::Display for Checkpoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (by, message) = (sanitize(self.by.unwrap_or_default()), sanitize(self.message));
        write!(f, "checkpoint {} by {by} at {}", sanitize(self.name), self.at)?;
        if let Some(head) = self.head {
            write!(f, " on {}", head.get(..12).unwrap_or(head))?;
        }
        write!(f, ": {message}")
    }
}

impl fmt::Display for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.approved { "approved" } else { "rejected" };
        let (by, at, plan) = (sanitize(&self.by), self.at, self.plan_hash.short());
        let artifacts = count(self.artifacts.len(), "artifact");
        writeln!(f, "       {verb} by {by} at {at}, plan {plan}, {artifacts}")?;
        let message = Some(&self.message).filter(|m| !m.is_empty());
        for words in message.into_iter().chain(&self.taken_back) {
            writeln!(f, "       {}", sanitize(words))?;
        }
        for FileHash { path, sha256 } in self.artifacts.iter().take(ARTIFACTS_NAMED_MAX) {
            writeln!(f, "       {} {}", sha256.short(), sanitize(path))?;
        }
        Ok(())
    }
}

impl fmt::Display for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash =
            |hash: &Option<Sha>| hash.as_ref().map_or("nothing".to_owned(), |h| h.short().into());
        let (what, from, to) = (self.what, hash(&self.from), hash(&self.to));
        let by = match sanitize(&self.by) {
            by if by.is_empty() => "; no finished step changed".to_owned(),
            by => format!(" by {by}"),
        };
        writeln!(f, "accepted {what} {from} -> {to}{by} at {}", self.at)
    }
}

impl fmt::Display for Ticked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (gates, by) = (sanitize(&self.gates.join(", ")), sanitize(&self.by));
        let hash = self.document.as_ref().map(Sha::short).unwrap_or_default();
        let counts = if self.counts { "" } else { "; it does not count by itself" };
        writeln!(f, "ticked {gates}: {by}, seen at {}, document {hash}{counts}", self.at)
    }
}

impl History {
    /// Takes an event of the run, in order.
    pub fn take(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::CheckpointRecorded(e) => self.points.push((at, e.clone())),
            Event::GateDecided(e) => self.decided.push(Decided {
                gate: e.gate.clone(),
                approved: e.approved,
                by: e.by.clone(),
                message: e.message.clone(),
                at: At(e.at.unwrap_or(at)),
                plan_hash: e.plan_hash.clone(),
                artifacts: e.artifacts.clone(),
                taken_back: None,
            }),
            Event::GateReopened(e) => {
                if let Some(last) = self.decided.iter_mut().rev().find(|d| d.gate == e.gate) {
                    let words = format!("taken back by {} at {}: {}", e.by, At(at), e.why);
                    last.taken_back = Some(words);
                }
            }
            Event::PlanAccepted(e) => {
                let (from, to) = (Some(e.from.clone()), Some(e.to.clone()));
                let (what, by, at) = ("plan", e.by.clone(), At(at));
                self.accepted.push(Accepted { what, from, to, by, at });
            }
            Event::SpecAccepted(e) => {
                let hash = |file: &Option<FileHash>| file.as_ref().map(|f| f.sha256.clone());
                let (what, by, at) = ("spec", e.by.clone(), At(at));
                let (from, to) = (hash(&e.from), hash(&e.to));
                self.accepted.push(Accepted { what, from, to, by, at });
            }
            Event::TicksSeen(e) if !e.gates.is_empty() => self.ticks.push(Ticked {
                gates: e.gates.clone(),
                counts: e.count,
                by: e.by.clone(),
                at: At(at),
                document: e.document.clone(),
            }),
            _ => {}
        }
    }

    /// The checkpoints that somebody asked for.
    pub fn remarks(&self) -> Vec<Checkpoint<'_>> {
        let all = self.points.iter();
        all.map(|(at, e)| Checkpoint {
            name: &e.name,
            message: &e.message,
            by: Some(&e.by),
            at: At(*at),
            head: e.head.as_deref(),
        })
        .collect()
    }
}

impl<'a> FullRun<'a> {
    /// A run with its history, its plan where that is known, and its checkpoints that hold files.
    pub fn new(
        mut view: RunView<'a>,
        history: &'a History,
        plan: Option<&Plan>,
        snapshots: &'a [Point],
        snapshot_costs: Option<Costs>,
        logs: PathBuf,
    ) -> Self {
        let state = view.state;
        let gate = |(gate, name): (GateRef, String)| {
            let asked = state.asked(&gate);
            Gate {
                name,
                asked_at: asked.map(|g| At(g.asked_at)),
                approved: asked.and_then(|g| g.decision.as_ref()).map(|d| d.approved),
                decisions: history.decided.iter().filter(|d| d.gate == gate).collect(),
                gate,
            }
        };
        let budgets = budgets(&view, plan);
        view.checkpoints = history.remarks();
        Self {
            plan_hash: state.plan_hash.as_ref(),
            spec: state.spec.as_ref(),
            root: &state.root,
            head: state.head.as_deref(),
            snapshots,
            gates: gates(state).into_iter().map(gate).collect(),
            accepted: &history.accepted,
            ticks: &history.ticks,
            budgets,
            snapshot_costs,
            logs,
            view,
        }
    }

    /// For people.
    pub fn render(&self, layout: &Layout) -> String {
        let Self { view, root, logs, .. } = self;
        let mut out = tree::render(view, layout);
        let hash = self.plan_hash.map(|h| format!(" (sha256 {})", h.short())).unwrap_or_default();
        let _ = writeln!(out, "\nplan   {}{hash}", sanitize(view.plan));
        if let Some(spec) = self.spec {
            let _ =
                writeln!(out, "spec   {} (sha256 {})", sanitize(&spec.path), spec.sha256.short());
        }
        let _ = writeln!(out, "root   {}", sanitize(root));
        if let Some(head) = self.head {
            let _ = writeln!(out, "head   {head}");
        }
        let _ = writeln!(out, "start  {}", view.place.local(view.created_at.0));
        let _ = writeln!(out, "logs   {}", logs.display());
        for gate in &self.gates {
            let how = match (gate.asked_at, gate.approved) {
                (None, _) => "not reached".to_owned(),
                (Some(at), None) => format!("waiting since {}", view.place.local(at.0)),
                _ => "decided".to_owned(),
            };
            let _ = writeln!(out, "gate   {} \"{}\": {how}", gate.gate, sanitize(&gate.name));
            gate.decisions.iter().for_each(|decided| out.push_str(&decided.to_string()));
        }
        self.accepted.iter().for_each(|accepted| out.push_str(&accepted.to_string()));
        self.ticks.iter().for_each(|tick| out.push_str(&tick.to_string()));
        for point in &view.checkpoints {
            let _ = writeln!(out, "{point}");
        }
        let older = self.snapshots.len().saturating_sub(POINTS_LISTED_MAX);
        if older > 0 {
            let all = view.place.piton("show --json");
            let _ = writeln!(out, "snapshot {older} older ones (`{all}` has them all)");
        }
        let mut last = "";
        for point in self.snapshots.iter().skip(older) {
            // Most attempts find the files as the one before left them.
            if point.commit != last || !point.name.ends_with(".before") {
                let _ = writeln!(out, "snapshot {}", point.line(view.place));
            }
            last = &point.commit;
        }
        if let Some(Costs { objects, bytes }) = self.snapshot_costs {
            let bytes = size(bytes);
            let _ = writeln!(out, "snapshots take {bytes} ({objects} objects of their own)");
        }
        let cost = view.session.map(crate::session::cost).unwrap_or_default();
        if !cost.is_empty() {
            out.push_str("the last recovery took\n");
            for part in &cost {
                let _ = writeln!(out, "  {part}");
            }
        }
        out.push_str("budgets used\n");
        let unused = |budget: &&Budget| matches!(&*budget.used, "0" | "$0.00");
        for Budget { name, used, limit } in self.budgets.iter().filter(|b| !unused(b)) {
            let _ = writeln!(out, "  {name:14} {used} of {limit}");
        }
        out
    }
}

fn budgets(view: &RunView<'_>, plan: Option<&Plan>) -> [Budget; 6] {
    let limits = plan.map(|p| p.budgets.clone()).unwrap_or_default();
    let used = view.used;
    let busiest = view.phases.iter().map(|p| p.driven_ms).max().unwrap_or_default();
    let attempts = view.steps().map(|(_, s)| s.attempts).max().unwrap_or(0);
    let budget = |name, used: String, limit: String| Budget { name, used, limit };
    let bytes = (size(used.log_bytes), size(limits.run_log_bytes));
    [
        budget("run_time", used.driven_ms.to_string(), limits.run_time.to_string()),
        budget("phase_time", busiest.to_string(), limits.phase_time.to_string()),
        budget("attempts", attempts.to_string(), limits.attempts.to_string()),
        budget("tokens", used.tokens.to_string(), limits.tokens.to_string()),
        budget("money", dollars(used.money_micros), dollars(limits.money_micros)),
        budget("run_log_bytes", bytes.0, bytes.1),
    ]
}

impl<'a> RunView<'a> {
    /// A phase, or a lane of it.
    pub fn part(&self, phase: &str, lane: Option<&str>) -> Option<(&Phase<'a>, Option<&Lane<'a>>)> {
        let phase = self.phases.iter().find(|p| p.id == phase)?;
        match lane {
            None => Some((phase, None)),
            Some(id) => phase.lanes.iter().find(|l| l.id == id).map(|lane| (phase, Some(lane))),
        }
    }
}

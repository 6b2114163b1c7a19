//! The run report: the state of a run in Markdown.
//!
//! Everything above the mark is ours; what people write below it is kept. Foreign texts are escaped for
//! tables and fences; empty sections are left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use piton_core::event::MergedBy;
use piton_core::lane::{Stage, StageStatus};
use piton_core::state::LaneState;
use piton_core::summary::{lane_status, run_status};
use piton_core::{LanePath, Plan, RunState, Status};
use piton_formats::markdown::write::{cell, code, fence, inline, table};

use super::super::{fix, phase};
use super::Place;
use super::records::{Hints, Words};
use crate::time;

/// Separates our part from people's.
const MARK: &str = "<!-- Text below this line is kept. -->\n";
/// How our part begins.
const TITLE: &str = "# Run report: ";
/// Characters of an abbreviated commit id.
const SHA_CHARS: usize = 12;

/// The text of a report file, with what people wrote into the present one.
pub fn text(there: Option<&str>, ours: &str) -> String {
    let theirs = match there.map(|text| text.split_once(MARK).ok_or(text)) {
        None => "",
        Some(Ok((_, theirs))) => theirs,
        // Without a mark it is a truncated report of ours, or a file that is not ours.
        Some(Err(text)) if text.starts_with(TITLE) => "",
        Some(Err(text)) => text,
    };
    format!("{ours}\n{MARK}{theirs}")
}

/// Whether a report contains notes of people.
pub fn has_notes(text: &str) -> bool {
    text.split_once(MARK).is_some_and(|(_, theirs)| !theirs.is_empty())
}

/// What a report takes from the phase document.
#[derive(Default)]
pub struct Told {
    /// The names of lanes, by id.
    names: BTreeMap<String, String>,
    /// What a person must look at.
    checks: Vec<String>,
    /// Whether no command tests the phase after the last merge.
    untested: bool,
}

/// Reads a phase document for the report.
pub fn told(document: &str) -> Told {
    let phase = phase::inspect("", document).0;
    let check = |(task, text): (Option<&str>, &str)| {
        let text: Vec<&str> = text.split_whitespace().collect();
        let task = task.map(|task| format!("{task}: ")).unwrap_or_default();
        format!("{task}{}", text.join(" "))
    };
    Told {
        checks: phase.checks().into_iter().map(check).collect(),
        untested: phase.test_plan.is_empty(),
        names: phase.lanes.into_iter().map(|lane| (lane.id, lane.name)).collect(),
    }
}

/// Our part of the report.
pub fn ours(place: &Place, plan: &Plan, state: &RunState, told: &Told) -> String {
    let run_id = super::run_id(state);
    let status = run_status(state, state.driven);
    let works = || state.phases.iter().flat_map(|p| &p.lanes).filter_map(|l| l.work.as_ref());
    let base = works().map(|w| w.base_branch.as_str()).find(|branch| !branch.is_empty());
    let phases: Vec<&str> = state.phases.iter().map(|p| p.id.as_str()).collect();
    let title = Some(inline(&state.title)).filter(|title| !title.is_empty());
    let title = title.map(|title| format!(" ({title})")).unwrap_or_default();
    let mut out = format!("{TITLE}{}\n\n", inline(&run_id));
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(out, "- {name}: {value}");
        }
    };
    fact("phase", format!("{}{title}", inline(&phases.join(", "))));
    fact("status", status.as_str().to_owned());
    fact("base branch", code(base.unwrap_or_default()));
    fact("started", time::write(state.created_at));
    fact("ended", if state.driven { String::new() } else { time::write(state.last_at) });

    let lanes = state.lanes().map(|(path, lane)| lane_row(state, &path, lane, told));
    let head = ["lane", "name", "stage", "status", "head", "tests", "attempts"];
    table(&mut out, "Lanes", &head, lanes.collect());
    table(&mut out, "Merges", &["lane", "from", "to", "at"], merges(state));
    for (at, (gate, closed)) in gates(plan, state).iter().enumerate() {
        out.push_str(if at == 0 { "\n## Gates\n\n" } else { "" });
        let _ = writeln!(out, "- [{}] {}", if *closed { "x" } else { " " }, inline(gate));
    }
    let tests = state.lanes().filter_map(|(_, lane)| validated(lane));
    table(&mut out, "Validation", &["command", "result"], tests.collect());
    if told.untested {
        out.push_str(
            "\n## Validation\n\nThe document names no command to run after the last merge.\n",
        );
    }
    for (at, check) in told.checks.iter().enumerate() {
        out.push_str(if at == 0 { "\n## For a person to check\n\n" } else { "" });
        let _ = writeln!(out, "- [ ] {}", inline(check));
    }
    for (at, lane) in idle(state).iter().enumerate() {
        out.push_str(if at == 0 { "\n## Lanes that changed nothing\n\n" } else { "" });
        let _ = writeln!(out, "- {}", inline(lane));
    }
    table(&mut out, "Outside their scope", &["task", "files"], outside(state));
    for (at, (what, context)) in failures(state).iter().enumerate() {
        out.push_str(if at == 0 { "\n## Failures\n" } else { "" });
        let _ = writeln!(out, "\n### {}\n", inline(what));
        fence(&mut out, "text", context);
    }
    if !matches!(status, Status::Complete | Status::Cancelled | Status::Archived) {
        let (root, plan_path) = (&place.root, &state.plan_path);
        let hints = Hints { root, plan_path, run_id: &run_id, lane: Words::default() };
        out.push_str("\n## Next\n\n");
        fence(&mut out, "sh", &[hints.command("--resume"), hints.command("--rollback")]);
    }
    out
}

fn lane_row(state: &RunState, path: &LanePath, lane: &LaneState, told: &Told) -> Vec<String> {
    let work = lane.work.as_ref();
    let phase = state.phase(&path.phase);
    let status = phase.map_or(Status::Pending, |phase| lane_status(state, phase, lane));
    let tests = work.and_then(|w| w.record(Stage::AfterLaneTests));
    let tests = tests.and_then(|r| Some((r.test_command.as_ref()?, r.exit_code)));
    let attempts = lane.steps.iter().map(|s| s.attempts).max().unwrap_or_default();
    vec![
        if state.phases.len() > 1 { cell(&path.to_string()) } else { cell(&path.lane) },
        told.names.get(&path.lane).map(|name| cell(name)).unwrap_or_default(),
        work.and_then(|w| w.stage()).map(|s| s.as_str().to_owned()).unwrap_or_default(),
        status.as_str().to_owned(),
        work.and_then(|w| w.committed()).map(|c| sha(&c.commit)).unwrap_or_default(),
        tests.map(|(test, exit)| format!("{} {}", code(test), ended(exit))).unwrap_or_default(),
        attempts.to_string(),
    ]
}

/// The lanes that are done and left nothing to merge.
fn idle(state: &RunState) -> Vec<String> {
    let is_idle = |lane: &LaneState| {
        let merged = lane.work.as_ref().and_then(|work| work.merged());
        merged.is_some_and(|merged| merged.by == MergedBy::Nothing)
    };
    let lanes = state.lanes().filter(|(_, lane)| lane.task.is_none() && is_idle(lane));
    lanes.map(|(path, _)| path.to_string()).collect()
}

/// The files that tasks changed outside of their scope.
fn outside(state: &RunState) -> Vec<Vec<String>> {
    let steps = state.steps().filter(|(_, step)| !step.outside.is_empty());
    steps
        .map(|(path, step)| vec![cell(&path.to_string()), cell(&step.outside.join(", "))])
        .collect()
}

/// The merges in the order they happened.
fn merges(state: &RunState) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (path, lane) in state.lanes() {
        let Some(work) = &lane.work else { continue };
        let Some(merged) = work.merged() else { continue };
        let (Some(from), Some(to)) = (&merged.from, &merged.to) else { continue };
        let at = work.record(Stage::PrePr).map(|r| r.at);
        let when = at.map(time::write).unwrap_or_default();
        all.push((at, vec![cell(&path.to_string()), sha(from), sha(to), when]));
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, row)| row).collect()
}

/// The gates that lanes provide, and whether each one is closed.
fn gates(plan: &Plan, state: &RunState) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    for (path, _) in state.lanes() {
        let gates = plan.lane(&path).map(|l| l.rules.provides.clone()).unwrap_or_default();
        all.extend(gates.into_iter().map(|gate| (gate, state.satisfies(&path))));
    }
    all
}

/// The tests after the last merge.
fn validated(lane: &LaneState) -> Option<Vec<String>> {
    let work = lane.work.as_ref().filter(|_| lane.is_validation())?;
    let passed = work.record(Stage::AfterLaneTests);
    let passed = passed.and_then(|r| Some((r.test_command.as_ref()?, r.exit_code)));
    let failed = || {
        let found = work.record(Stage::AfterLaneStart);
        let failed = found.filter(|r| r.status == StageStatus::Failed)?;
        Some((failed.last_command.as_ref()?, failed.exit_code))
    };
    passed.or_else(failed).map(|(command, exit)| vec![code(command), ended(exit)])
}

/// What blocks or failed, and why.
fn failures(state: &RunState) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for (path, lane) in state.lanes() {
        if let Some(refusal) = lane.work.as_ref().and_then(|w| w.blocked.as_ref()) {
            let texts = refusal.remedies.iter().map(ToString::to_string);
            let texts = std::iter::once(refusal.cause.clone()).chain(texts);
            all.push((path.to_string(), texts.collect()));
        }
        let failed = lane.steps.iter().filter(|step| step.status() == Status::Failed);
        all.extend(failed.map(|step| {
            let context = step.failure_text().lines().map(str::to_owned).collect();
            (format!("{path}/{}", step.id), context)
        }));
    }
    all.extend(fix::blockers(state).into_iter().map(|task| (task.id.clone(), vec![task.words()])));
    all
}

fn ended(exit: Option<i32>) -> String {
    match exit {
        Some(0) => "passed".to_owned(),
        Some(code) => format!("failed ({code})"),
        None => "not run".to_owned(),
    }
}

fn sha(sha: &str) -> String {
    code(&sha.chars().take(SHA_CHARS).collect::<String>())
}

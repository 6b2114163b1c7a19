//! Requests to a run, and the events that they become.
//!
//! A process that does not drive a run puts a request into its inbox. The driver, or a command that
//! holds the lease for a moment, turns it into events here, so that all decisions are made by one
//! piece of code.

mod questions;
mod refused;
mod replans;
mod reply;
mod skips;
mod tried;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::approval;
use crate::event::{
    ChangesWanted, CheckpointRecorded, Event, FileHash, GateDecided, ReplanWanted, Review,
    RunAborted, RunArchived, StepReset, StepRetried,
};
use crate::hash::Sha;
use crate::id::{GateRef, StepPath};
use crate::plan::Plan;
use crate::session_state::{self, SessionAct};
use crate::state::{Progress, RunState, StepState};
use crate::status::Status;

pub use questions::find as find_question;
pub use refused::Refused;
pub use reply::Reply;
pub use skips::skip_warning;

/// A request to a run from outside of its driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask")]
pub enum Request {
    /// Decide about a gate, named by its place or its text.
    #[serde(rename = "decide")]
    Decide {
        /// Place or text of the gate.
        gate: String,
        /// Yes or no.
        approved: bool,
        /// What the person says.
        message: String,
    },
    /// Want the work before a gate changed.
    #[serde(rename = "changes")]
    Changes {
        /// Place or text of the gate.
        gate: String,
        /// What the person wants changed.
        review: Review,
    },
    /// Give a failed step further attempts, or run a finished one again.
    #[serde(rename = "retry")]
    Retry {
        /// Which step.
        step: StepPath,
        /// Whether to run a finished step again.
        again: bool,
        /// Whether everything after it also runs again.
        downstream: bool,
    },
    /// Leave a step out.
    #[serde(rename = "skip")]
    Skip {
        /// Which step.
        step: StepPath,
        /// Whether it counts as done for what needs it.
        satisfy: bool,
    },
    /// End the run.
    #[serde(rename = "abort")]
    Abort {
        /// Whether the run can never be resumed.
        cancel: bool,
        /// What the person says.
        message: String,
    },
    /// Set the run aside.
    #[serde(rename = "archive")]
    Archive,
    /// Plan a phase again.
    #[serde(rename = "replan")]
    Replan {
        /// Which phase.
        phase: String,
        /// Why.
        reason: String,
        /// The step that asks, where it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<StepPath>,
        /// Whether the limits do not count, because a person says so.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        force: bool,
    },
    /// Note that a step tried a command that only a person may give.
    #[serde(rename = "refused")]
    Refused {
        /// The command, without its arguments.
        command: String,
        /// The step, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<StepPath>,
        /// Its attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
    },
    /// Record a checkpoint.
    #[serde(rename = "checkpoint")]
    Checkpoint {
        /// What the person says.
        message: String,
        /// The commit that is checked out.
        head: Option<String>,
        /// The files of the workspaces, with the lane of each; none for the root.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        snapshots: Vec<(Option<crate::id::LanePath>, crate::lane::SnapshotRef)>,
    },
    /// Ask a person for an approval that no gate of the plan asks for.
    #[serde(rename = "approval")]
    Approval {
        /// The question.
        question: String,
        /// The step that asks, where it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<StepPath>,
        /// The session that asks, where it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// Record what happened in a session.
    #[serde(rename = "session")]
    Session {
        /// What happened, together.
        acts: Vec<SessionAct>,
    },
}

impl Request {
    /// The frozen tag in the inbox.
    pub const TAG: &'static str = "request";
    /// The version of its body.
    pub const VERSION: u32 = 1;

    /// Its key in the inbox: the same command given twice is one request, until its subject
    /// changes. The last change was the event `seen`.
    pub fn key(&self, run_id: &str, seen: u64) -> String {
        Sha::of_json(&(run_id, self, seen)).0
    }
}

/// Turns a request into events, from the state alone.
pub fn turn(state: &RunState, request: &Request, by: &str) -> Result<Vec<Event>, Refused> {
    if let Some(refusal) = over(state) {
        return Err(refusal);
    }
    match request {
        Request::Decide { gate, approved, message } => {
            decide_gate(state, gate, *approved, message, by)
        }
        Request::Changes { gate, review } => want_changes(state, gate, review, by),
        Request::Retry { step, again, downstream } => {
            let mut events = retry(state, step, *again, *downstream, by)?;
            let done_again = |e: &Event| match e {
                Event::StepReset(e) => Some(e.step.lane()),
                _ => None,
            };
            let lanes: Vec<_> = events.iter().filter_map(done_again).collect();
            let gates = approval::of_work(state, &lanes);
            events.extend(approval::reopened(gates, by, &format!("{step} runs again"), None));
            Ok(events)
        }
        Request::Skip { step, satisfy } => skips::skip(state, step, *satisfy, by),
        Request::Abort { .. } if state.is_over() => {
            Err(Refused::Over(Status::Complete.to_string()))
        }
        Request::Abort { cancel, message } => Ok(vec![Event::RunAborted(RunAborted {
            by: by.to_owned(),
            message: message.clone(),
            cancel: *cancel,
        })]),
        Request::Replan { phase, reason, step, force } => {
            let (step, by) = (step.clone(), by.to_owned());
            let (phase, reason, force) = (phase.clone(), reason.clone(), *force);
            replans::wanted(state, ReplanWanted { phase, reason, by, step, force })
        }
        Request::Refused { command, step, attempt } => {
            Ok(vec![tried::event(command, step.as_ref(), *attempt, by)])
        }
        Request::Archive => Ok(vec![Event::RunArchived(RunArchived { by: by.to_owned() })]),
        Request::Approval { question, step, session } => {
            questions::asked(state, question, step.as_ref(), session.as_ref())
        }
        Request::Session { acts } => {
            let last = state.checkpoints.last().map_or(0, |c| number_of(&c.name));
            Ok(session_state::turn(acts, last, by))
        }
        Request::Checkpoint { message, head, snapshots } => {
            let count = state.checkpoints.last().map_or(0, |c| number_of(&c.name)) + 1;
            Ok(vec![Event::CheckpointRecorded(CheckpointRecorded {
                name: format!("manual-{count}"),
                message: message.clone(),
                by: by.to_owned(),
                head: head.clone(),
                snapshots: snapshots.clone(),
            })])
        }
    }
}

/// Why a run accepts no more requests.
pub fn over(state: &RunState) -> Option<Refused> {
    match state.ended.filter(|s| s.is_final())? {
        Status::Archived => Some(Refused::Archived(name_of(state))),
        status => Some(Refused::Over(status.to_string())),
    }
}

fn number_of(name: &str) -> u32 {
    name.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// All gates of a run: place and text.
pub fn gates(state: &RunState) -> Vec<(GateRef, String)> {
    let mut found = Vec::new();
    for phase in &state.phases {
        found.extend(phase.gate.iter().map(|name| (GateRef(phase.id.clone()), name.clone())));
        for lane in &phase.lanes {
            let place = || GateRef(format!("{}/{}", phase.id, lane.id));
            found.extend(lane.gate.iter().map(|name| (place(), name.clone())));
            let asks = |s: &StepState| {
                Some((GateRef(format!("{}/{}", place().0, s.id)), s.escalation.clone()?))
            };
            found.extend(lane.steps.iter().filter_map(asks));
        }
    }
    found.extend(replans::gates(state));
    let asked = state.questions.iter().map(|(place, asked)| (place.clone(), asked.name.clone()));
    found.extend(asked);
    found
}

/// Whether a gate is meant by its place or its text.
pub fn is_called((place, text): &(GateRef, String), name: &str) -> bool {
    place.0 == name || text == name
}

/// Whether a ticked box says something new: lanes wait for a gate of that name, or it is the place or
/// text of one that nobody decided about. A tick counts once: what was decided later stands.
pub fn awaits_tick(plan: &Plan, state: &RunState, name: &str) -> bool {
    let mut lanes = plan.phases.iter().flat_map(|phase| &phase.lanes);
    let is_open = |place: &GateRef| state.gates.get(place).is_none_or(|g| g.decision.is_none());
    // What an agent asks is answered by a command alone: an agent could tick a box.
    let is_planned = |place: &GateRef| !state.questions.contains_key(place);
    let is_meant = |gate: &(GateRef, String)| is_called(gate, name) && is_planned(&gate.0);
    let waits = lanes.any(|lane| lane.rules.frozen.iter().any(|gate| gate == name))
        || gates(state).iter().any(|gate| is_meant(gate) && is_open(&gate.0));
    waits && !state.ticks.contains(name)
}

/// Finds a gate by its place or its text.
pub fn find_gate(state: &RunState, wanted: &str) -> Result<(GateRef, String), Refused> {
    let all = gates(state);
    if let Some(found) = all.iter().find(|(place, _)| place.0 == wanted) {
        return Ok(found.clone());
    }
    let named: Vec<_> = all.iter().filter(|(_, name)| name.eq_ignore_ascii_case(wanted)).collect();
    // Of several gates with the same text, the open question is meant if all others are approved. A
    // gate that is still to come, or was rejected, could be meant too.
    let is_approved =
        |place| state.asked(place).and_then(|g| g.decision.as_ref()).is_some_and(|d| d.approved);
    let ahead: Vec<_> = named.iter().filter(|(place, _)| !is_approved(place)).collect();
    let is_asked = |place| state.asked(place).is_some_and(|g| g.decision.is_none());
    match (named.as_slice(), ahead.as_slice()) {
        ([one], _) => Ok((*one).clone()),
        (_, [one]) if is_asked(&one.0) => Ok((**one).clone()),
        ([], _) => {
            let list: Vec<String> = all.iter().map(|(p, n)| format!("{p} ({n})")).collect();
            Err(Refused::NoGate(wanted.to_owned(), list.join(", ")))
        }
        (many, _) => {
            let places = many.iter().map(|(place, _)| place.clone()).collect();
            Err(Refused::ManyGates(wanted.to_owned(), places))
        }
    }
}

fn decide_gate(
    state: &RunState,
    wanted: &str,
    approved: bool,
    message: &str,
    by: &str,
) -> Result<Vec<Event>, Refused> {
    let (gate, name) = find_gate(state, wanted)?;
    if let Some(decision) = state.asked(&gate).and_then(|g| g.decision.as_ref()) {
        // An approval can revoke a rejection. An approval may already have had effects.
        if decision.approved || !approved {
            let verb = if decision.approved { "approved" } else { "rejected" };
            return Err(Refused::Decided(name, verb, decision.by.clone()));
        }
    }
    // Inputs that steps changed are recorded too, but they are not artifacts.
    let made: BTreeSet<String> = state
        .steps()
        .flat_map(|(path, step)| step.artifacts.iter().map(move |f| state.place_of(&path, &f.path)))
        .collect();
    let artifacts = state
        .recorded
        .iter()
        .filter(|(path, _)| made.contains(*path))
        .map(|(path, r)| FileHash { path: path.clone(), sha256: r.sha256.clone() })
        .collect();
    Ok(vec![Event::GateDecided(GateDecided {
        gate,
        approved,
        by: by.to_owned(),
        at: None,
        message: message.to_owned(),
        plan_hash: state.plan_hash.clone().unwrap_or_else(|| Sha::of(b"")),
        artifacts,
    })])
}

fn want_changes(
    state: &RunState,
    wanted: &str,
    review: &Review,
    by: &str,
) -> Result<Vec<Event>, Refused> {
    let (gate, name) = find_gate(state, wanted)?;
    if let Some(decision) = state.gates.get(&gate).and_then(|g| g.decision.as_ref())
        && decision.approved
    {
        return Err(Refused::Decided(name, "approved", decision.by.clone()));
    }
    let steps = approval::reviewed(state, &gate);
    if steps.is_empty() {
        return Err(Refused::NothingBefore(name));
    }
    let runs = |path: &&StepPath| {
        state.step(path).is_some_and(|s| matches!(s.progress, Progress::Running { .. }))
    };
    if let Some(step) = steps.iter().find(runs) {
        return Err(running(state, step));
    }
    let seen = steps.iter().rev().find_map(|step| {
        let work = state.lane(&step.lane())?.work.as_ref()?;
        work.latest.snapshot.clone()
    });
    let review = Review { by: by.to_owned(), ..review.clone() };
    Ok(vec![Event::ChangesWanted(Box::new(ChangesWanted { gate, review, steps, seen }))])
}

fn running(state: &RunState, step: &StepPath) -> Refused {
    Refused::Running(step.clone(), name_of(state))
}

fn finished(state: &RunState, step: &StepPath) -> Refused {
    Refused::Finished(step.clone(), name_of(state))
}

/// The run id for commands in messages: without it, they would mean the newest run that fits.
fn name_of(state: &RunState) -> String {
    state.run_id.as_ref().map_or("RUN", |id| id.0.as_str()).to_owned()
}

fn retry(
    state: &RunState,
    path: &StepPath,
    again: bool,
    downstream: bool,
    by: &str,
) -> Result<Vec<Event>, Refused> {
    let step = state.step(path).ok_or_else(|| Refused::NoStep(path.to_string()))?;
    let tasks = task_steps(state, path);
    if !tasks.is_empty() {
        return retry_tasks(state, path, step, &tasks, again, by);
    }
    let first = match step.progress {
        Progress::Running { .. } => return Err(running(state, path)),
        Progress::Done if !again => return Err(finished(state, path)),
        Progress::Done => Some(Event::StepReset(StepReset {
            step: path.clone(),
            reason: format!("{by} asked to run it again"),
        })),
        Progress::Pending if !again => {
            return Err(Refused::NotFailed(path.clone(), step.status().to_string()));
        }
        // The step runs anyway, but the steps after it may not.
        Progress::Pending => None,
        _ => Some(Event::StepRetried(StepRetried { step: path.clone(), by: by.to_owned() })),
    };
    let mut events: Vec<Event> = first.into_iter().collect();
    if downstream {
        for (later, step) in after(state, path) {
            match step.progress {
                Progress::Running { .. } => return Err(running(state, &later)),
                // It would block the steps after it.
                Progress::Failed => {
                    events.push(Event::StepRetried(StepRetried { step: later, by: by.to_owned() }));
                }
                progress if progress.is_over() => {
                    let reason = format!("{by} asked to run {path} and everything after it again");
                    events.push(Event::StepReset(StepReset { step: later, reason }));
                }
                _ => {}
            }
        }
    }
    Ok(events)
}

/// The steps of the tasks that a step waits for.
fn task_steps<'a>(state: &'a RunState, path: &StepPath) -> Vec<(StepPath, &'a StepState)> {
    let lanes = state.tasks_at(path);
    state.steps().filter(|(p, _)| lanes.contains(&p.lane())).collect()
}

/// Retries the tasks that a step waits for.
fn retry_tasks(
    state: &RunState,
    path: &StepPath,
    waits: &StepState,
    tasks: &[(StepPath, &StepState)],
    again: bool,
    by: &str,
) -> Result<Vec<Event>, Refused> {
    let mut events = Vec::new();
    for (step, task) in tasks {
        let step = step.clone();
        match task.progress {
            Progress::Running { .. } if again => return Err(running(state, &step)),
            Progress::Failed | Progress::Waiting { .. } | Progress::Skipped { .. } => {
                events.push(Event::StepRetried(StepRetried { step, by: by.to_owned() }));
            }
            Progress::Done if again => {
                let reason = format!("{by} asked to run {path} again");
                events.push(Event::StepReset(StepReset { step, reason }));
            }
            _ => {}
        }
    }
    match waits.progress {
        _ if !events.is_empty() => Ok(events),
        Progress::Done => Err(finished(state, path)),
        _ => Err(Refused::NotFailed(path.clone(), waits.status().to_string())),
    }
}

/// The steps that come after one: later in its lane, in lanes that need it, in later phases. After
/// a task come the later steps of its lane.
fn after<'a>(state: &'a RunState, path: &StepPath) -> Vec<(StepPath, &'a StepState)> {
    let at = state.awaits(&path.lane()).unwrap_or_else(|| path.clone());
    let place = |step: &StepPath| state.position(step).map(|(_, _, step)| step);
    let later = |step: &StepPath| step.lane() == at.lane() && place(step) > place(&at);
    let mut lanes = vec![at.lane()];
    let mut phases = vec![path.phase.clone()];
    // Lanes and phases are few: repeat until nothing is added.
    loop {
        let before = lanes.len() + phases.len();
        for phase in &state.phases {
            let whole = phase.needs.iter().chain(&phase.after).any(|n| phases.contains(n));
            if whole && !phases.contains(&phase.id) {
                phases.push(phase.id.clone());
            }
            for lane in &phase.lanes {
                let place = crate::id::LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
                let part = state.awaits(&place).is_some_and(|waits| {
                    later(&waits) || (waits.lane() != at.lane() && lanes.contains(&waits.lane()))
                });
                let depends = part
                    || (whole && phase.id != path.phase)
                    || lane.needs.iter().any(|n| lanes.contains(n));
                if depends && !lanes.contains(&place) {
                    lanes.push(place);
                    if !phases.contains(&phase.id) {
                        phases.push(phase.id.clone());
                    }
                }
            }
        }
        if lanes.len() + phases.len() == before {
            break;
        }
    }
    let follows = |step: &StepPath| {
        let lane = step.lane();
        let own = lane == path.lane() && place(step) > place(path);
        own || later(step) || (lane != at.lane() && lanes.contains(&lane))
    };
    state.steps().filter(|(p, _)| follows(p)).collect()
}

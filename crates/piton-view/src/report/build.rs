//! How a report is made: where a run stands, with what its events told.

use std::collections::{HashMap, HashSet};

use piton_core::state::Progress;
use piton_core::{Millis, Status, StepPath};

use super::saved::{self, Done};
use super::span::{Span, covered};
use super::trail::Trail;
use super::{
    Artifact, Attempt, Ended, Lane, Phase, Report, Step, Times, Wait, WaitFor, all_attempts,
};
use crate::place::At;
use crate::run::{self, RunView, Waiting};

impl<'a> Report<'a> {
    /// The report of a run, with what its events told.
    pub fn new(view: &RunView<'a>, trail: Trail) -> Self {
        let until = open_until(view);
        let Trail { attempts, failures, stops, waits, decisions, replans, .. } = trail;
        let attempts = attempts.into_iter().map(|(step, mut attempt)| {
            if attempt.outcome == Ended::Running {
                attempt.duration_ms = Span::new(attempt.started_at.0, until.0).length();
            }
            (step, attempt)
        });
        let phases = phases(view, attempts.collect());
        let waits = end_waits(view, waits, until);
        let work: Vec<Span> = all_attempts(&phases).map(Attempt::span).collect();
        let replanning: Vec<Span> =
            replans.iter().filter_map(|replan| replan.span(until)).collect();
        let times = Times {
            elapsed_ms: until.0.since(view.created_at.0),
            driven_ms: Millis(view.used.driven_ms.0 + view.since_last().0),
            busy_ms: covered(work.iter().chain(&replanning).copied()),
            attempts_ms: Millis(work.iter().map(|span| span.length().0).sum()),
            waiting_ms: covered(waits.iter().map(Wait::span)),
        };
        let done = done(view, &phases);
        let (saved, stops) = saved::compare(&work, &replanning, done, stops);
        Self {
            run_id: view.run_id,
            title: view.title,
            plan: view.plan,
            protocol: view.protocol,
            status: view.status,
            created_at: view.created_at,
            updated_at: view.updated_at,
            as_of: At(view.now),
            times,
            tokens: view.used.tokens,
            money_micros: view.used.money_micros,
            saved,
            phases,
            failures,
            replans,
            oddities: crate::summary::oddities(view.state),
            session: view.session,
            stops,
            waits,
            decisions,
            artifacts: artifacts(view),
        }
    }
}

/// Until when what has no end goes on: now, unless nothing can happen any more.
fn open_until(view: &RunView<'_>) -> At {
    let still = view.status.is_final() || view.status == Status::Aborted;
    if still { view.updated_at } else { At(view.now.max(view.updated_at.0)) }
}

/// The attempts of the steps of a run.
type Attempts = Vec<(StepPath, Attempt)>;

/// The phases of the plan with their attempts; those of steps that it does not have any more follow.
fn phases(view: &RunView<'_>, attempts: Attempts) -> Vec<Phase> {
    let mut of_steps: HashMap<StepPath, Vec<Attempt>> = HashMap::new();
    let mut order: Vec<StepPath> = Vec::new();
    for (path, attempt) in attempts {
        let known = of_steps.entry(path.clone()).or_default();
        if known.is_empty() {
            order.push(path);
        }
        known.push(attempt);
    }
    let mut phases: Vec<Phase> = Vec::with_capacity(view.phases.len());
    for phase in &view.phases {
        let lanes = phase.lanes.iter().map(|lane| known_lane(lane, &mut of_steps)).collect();
        let (id, status) = (phase.id.to_owned(), Some(phase.status));
        phases.push(Phase { id, status, busy_ms: Millis(0), lanes });
    }
    for path in order {
        let Some(attempts) = of_steps.remove(&path) else { continue };
        let lane = dropped_lane(&mut phases, &path);
        lane.steps.push(Step { id: path.step, status: None, attempts });
    }
    for phase in &mut phases {
        phase.lanes.iter_mut().for_each(sum_up);
        let lanes = phase.lanes.iter().flat_map(|lane| &lane.steps);
        phase.busy_ms = covered(lanes.flat_map(|step| &step.attempts).map(Attempt::span));
    }
    phases
}

fn known_lane(lane: &run::Lane<'_>, of_steps: &mut HashMap<StepPath, Vec<Attempt>>) -> Lane {
    let steps = lane.steps.iter().map(|step| Step {
        id: step.id.to_owned(),
        status: Some(step.status),
        attempts: of_steps.remove(&lane.step(step.id)).unwrap_or_default(),
    });
    let (steps, way) = (steps.collect(), lane.way.map(|way| way.to_string()));
    let (id, status) = (lane.id.to_owned(), Some(lane.status));
    Lane { id, status, way, busy_ms: Millis(0), tokens: 0, money_micros: 0, steps }
}

/// The lane of a step that the plan does not have any more; the lane may be gone too.
fn dropped_lane<'p>(phases: &'p mut Vec<Phase>, path: &StepPath) -> &'p mut Lane {
    let at = phases.iter().position(|phase| phase.id == path.phase).unwrap_or_else(|| {
        let (id, lanes) = (path.phase.clone(), Vec::new());
        phases.push(Phase { id, status: None, busy_ms: Millis(0), lanes });
        phases.len() - 1
    });
    let lanes = &mut phases[at].lanes;
    let at = lanes.iter().position(|lane| lane.id == path.lane).unwrap_or_else(|| {
        let (id, steps) = (path.lane.clone(), Vec::new());
        let (busy_ms, tokens, money_micros) = (Millis(0), 0, 0);
        lanes.push(Lane { id, status: None, way: None, busy_ms, tokens, money_micros, steps });
        lanes.len() - 1
    });
    &mut lanes[at]
}

fn sum_up(lane: &mut Lane) {
    let attempts = || lane.steps.iter().flat_map(|step| &step.attempts);
    let busy_ms = covered(attempts().map(Attempt::span));
    let tokens = attempts().map(|attempt| attempt.tokens).sum();
    let money_micros = attempts().map(|attempt| attempt.money_micros).sum();
    (lane.busy_ms, lane.tokens, lane.money_micros) = (busy_ms, tokens, money_micros);
}

/// Ends the waits that nobody has to end any more, and measures those that go on.
fn end_waits(view: &RunView<'_>, waits: Vec<Wait>, until: At) -> Vec<Wait> {
    let goes_on =
        |wait: &Wait| match &wait.for_ {
            WaitFor::Gate { gate, .. } => view.waiting_for.iter().any(
                |waiting| matches!(waiting, Waiting::Gate { gate: open, .. } if *open == gate.0),
            ),
            WaitFor::PullRequest { lane, .. } => view.waiting_for.iter().any(
                |waiting| matches!(waiting, Waiting::Request { lane: open, .. } if open == lane),
            ),
            WaitFor::Person { .. } => !view.status.is_final(),
        };
    // One that ended in another way, such as a gate that a changed plan dropped, has no known end.
    let mut waits: Vec<Wait> =
        waits.into_iter().filter(|wait| wait.until.is_some() || goes_on(wait)).collect();
    for wait in waits.iter_mut().filter(|wait| wait.until.is_none()) {
        wait.waited_ms = Span::new(wait.from.0, until.0).length();
    }
    waits
}

/// What is finished now: the last success of each step that is done.
fn done(view: &RunView<'_>, phases: &[Phase]) -> Vec<Done> {
    let is_done: HashSet<StepPath> = view
        .steps()
        .filter(|(_, step)| step.state.progress == Progress::Done)
        .map(|(lane, step)| lane.step(step.id))
        .collect();
    let mut done = Vec::new();
    for phase in phases {
        for lane in &phase.lanes {
            for step in &lane.steps {
                let succeeded = |a: &&Attempt| a.outcome == Ended::Succeeded;
                let last = step.attempts.iter().rev().find(succeeded);
                let path = StepPath::new(&phase.id, &lane.id, &step.id);
                let last = last.filter(|_| is_done.contains(&path));
                done.extend(last.map(|attempt| Done {
                    span: attempt.span(),
                    tokens: attempt.tokens,
                    money_micros: attempt.money_micros,
                }));
            }
        }
    }
    done
}

/// The files that the run made, each with the step that made it last.
fn artifacts<'a>(view: &RunView<'a>) -> Vec<Artifact<'a>> {
    let state = view.state;
    let of = |(lane, step): (&run::Lane<'a>, &run::Step<'a>)| {
        let path = lane.step(step.id);
        step.artifacts.iter().map(move |file| Artifact { step: path.clone(), file })
    };
    let is_last = |artifact: &Artifact<'_>| {
        let place = state.place_of(&artifact.step, &artifact.file.path);
        state.recorded.get(&place).is_none_or(|recorded| recorded.by == artifact.step)
    };
    let made = view.steps().filter(|(_, step)| step.state.progress == Progress::Done);
    made.flat_map(of).filter(is_last).collect()
}

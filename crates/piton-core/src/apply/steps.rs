//! How the end of an attempt changes its step: counters, failures for the next attempt to read, what
//! it made.

use super::agents;
use crate::event::{
    Class, FileHash, Next, Outcome, OutputsAccepted, SpecAccepted, StepFinished, StepImported,
    StepProven,
};
use crate::id::StepPath;
use crate::state::{
    Cluster, FAILURES_KEPT_MAX, FailedAttempt, Progress, Recorded, RunState, StepState,
};
use crate::time::Timestamp;

/// Makes a step pending with all its retries; its failures stay for the next attempt to read. Failures
/// of its test stay counted: the same work that goes on fails them in a row.
pub(super) fn grant(step: &mut StepState) {
    step.progress = Progress::Pending;
    step.interrupted = false;
    step.failures = 0;
    step.retried = 0;
    step.network_waits = 0;
    step.rate_limit_waits = 0;
    step.network_waited_ms.0 = 0;
    step.rate_limit_waited_ms.0 = 0;
    step.clusters.clear();
    step.scope_from = None;
    if let Some(agent) = &mut step.agent {
        agent.handoffs = 0;
    }
}

/// What the end of an attempt means for its step, and what it used.
pub(super) fn finish(state: &mut RunState, at: Timestamp, event: &StepFinished) {
    agents::finished(state, at, (&event.step, event.attempt), &event.facts);
    state.used.log_bytes = state.used.log_bytes.saturating_add(event.logs.bytes());
    let number = state.events;
    if event.outcome != Outcome::Succeeded {
        // Half done as it is, it is how the run left these files.
        record(state, &event.step, event.inputs.iter().flatten());
    }
    let Some(step) = state.step_mut(&event.step) else {
        return;
    };
    step.exit_code = event.exit_code;
    step.duration_ms = event.duration_ms;
    step.logs = event.logs;
    step.secrets.clear();
    match &event.outcome {
        Outcome::Succeeded => {
            // A lane may find later that this was not good enough: its retries are spent all the same.
            let retried = step.retried;
            grant(step);
            step.retried = retried;
            step.tests_failed = 0;
            step.progress = Progress::Done;
            step.outside.clone_from(&event.outside);
            step.successes += 1;
            step.done_event = number;
            (step.before, step.before_head, step.before_tree) = (None, None, None);
            step.taken_over = false;
            step.rerun = None;
            step.failure_context.clear();
            step.reviews.clear();
            step.artifacts.clone_from(&event.artifacts);
            if let Some(inputs) = &event.inputs {
                let given = std::mem::replace(&mut step.inputs, inputs.clone());
                let changed = inputs.iter().filter(|file| !given.contains(file));
                // What a step beside it made meanwhile stays the work of that one.
                let known = |file: &&FileHash| {
                    let recorded = state.recorded.get(&state.place_of(&event.step, &file.path));
                    recorded.is_some_and(|r| r.sha256 == file.sha256)
                };
                let changed: Vec<&FileHash> = changed.filter(|file| !known(file)).collect();
                record(state, &event.step, changed);
            }
            record(state, &event.step, &event.artifacts);
            made_spec(state, &event.artifacts);
        }
        Outcome::Failed { class, error, lines, budget, signature, next } => {
            step.tests_failed = if *class == Class::Test { step.tests_failed + 1 } else { 0 };
            let short = (signature.as_str(), error.as_str());
            count(&mut step.clusters, at, short);
            if step.failure_context.len() == FAILURES_KEPT_MAX {
                step.failure_context.remove(0);
            }
            step.failure_context.push(FailedAttempt {
                attempt: event.attempt,
                class: *class,
                error: error.clone(),
                lines: lines.clone(),
                budget: budget.clone(),
                command: event.command.clone(),
                exit_code: event.exit_code,
            });
            step.progress = match *next {
                Next::Fail => {
                    step.failures += 1;
                    Progress::Failed
                }
                Next::Retry { at: until } => {
                    // Of a test alone the work follows that was asked for: no retry is spent on it.
                    step.failures += u32::from(!step.tests_only);
                    step.retried += u32::from(!step.tests_only);
                    Progress::Waiting { since: at, until, class: *class }
                }
                Next::Escalate => {
                    step.failures += 1;
                    Progress::Escalated
                }
                // It waits for another plan, or for a person.
                Next::Replan { .. } => {
                    step.failures += 1;
                    Progress::Pending
                }
                Next::Wait { until } => {
                    let wait = until.since(at).0;
                    if *class == Class::RateLimit {
                        step.rate_limit_waits += 1;
                        step.rate_limit_waited_ms.0 += wait;
                    } else {
                        step.network_waits += 1;
                        step.network_waited_ms.0 += wait;
                    }
                    Progress::Waiting { since: at, until, class: *class }
                }
            };
        }
        Outcome::Interrupted { .. } => {
            step.interruptions += 1;
            step.interrupted = true;
            step.progress = Progress::Pending;
        }
    }
}

/// A step is done without running.
pub(super) fn prove(state: &mut RunState, event: &StepProven) {
    let number = state.events;
    let Some(step) = state.step_mut(&event.step) else { return };
    step.progress = Progress::Done;
    step.done_event = number;
    step.rerun = None;
    step.definition.clone_from(&event.definition);
    if !event.artifacts.is_empty() {
        make(state, &event.step, &event.artifacts);
    }
}

/// Takes over how far another tool came with a step.
pub(super) fn import(state: &mut RunState, event: &StepImported) {
    let number = state.events;
    let Some(step) = state.step_mut(&event.step) else { return };
    (step.attempts, step.failures, step.retried) = (event.attempts, event.failures, event.failures);
    step.clusters.clone_from(&event.clusters);
    step.definition.clone_from(&event.definition);
    if !event.is_done {
        step.interrupted = event.attempts > 0;
        step.taken_over = step.interrupted;
        return;
    }
    step.progress = Progress::Done;
    step.done_event = number;
    make(state, &event.step, &event.artifacts);
}

/// Notes what a step made.
fn make(state: &mut RunState, path: &StepPath, artifacts: &[FileHash]) {
    if let Some(step) = state.step_mut(path) {
        step.artifacts = artifacts.to_vec();
    }
    record(state, path, artifacts);
    made_spec(state, artifacts);
}

/// Counts a failure with those of the same signature.
fn count(clusters: &mut Vec<Cluster>, at: Timestamp, (signature, error): (&str, &str)) {
    if signature.is_empty() {
        return;
    }
    if let Some(cluster) = clusters.iter_mut().find(|c| c.signature == signature) {
        cluster.count += 1;
        return;
    }
    if clusters.len() == FAILURES_KEPT_MAX {
        clusters.remove(0);
    }
    let (signature, error) = (signature.to_owned(), error.to_owned());
    clusters.push(Cluster { signature, error, first_at: at, count: 1 });
}

/// A step that makes the spec says what it is: only what others change in it is a change.
fn made_spec(state: &mut RunState, artifacts: &[FileHash]) {
    let Some(spec) = &mut state.spec else { return };
    if let Some(made) = artifacts.iter().find(|file| file.path == spec.path) {
        spec.sha256.clone_from(&made.sha256);
    }
}

/// A changed spec is the spec from now on, also for the steps that made it.
pub(super) fn accept_spec(state: &mut RunState, event: &SpecAccepted) {
    state.spec.clone_from(&event.to);
    let Some(spec) = &event.to else { return };
    if let Some(recorded) = state.recorded.get_mut(&spec.path) {
        recorded.sha256.clone_from(&spec.sha256);
    }
    let steps = state.phases.iter_mut().flat_map(|p| &mut p.lanes).flat_map(|l| &mut l.steps);
    for made in steps.flat_map(|s| &mut s.artifacts).filter(|file| file.path == spec.path) {
        made.clone_from(spec);
    }
}

/// Files that were changed from outside count as what the step made.
pub(super) fn accept(state: &mut RunState, event: &OutputsAccepted) {
    if let Some(step) = state.step_mut(&event.step) {
        for artifact in &mut step.artifacts {
            if let Some(file) = event.files.iter().find(|file| file.path == artifact.path) {
                artifact.clone_from(file);
            }
        }
    }
    record(state, &event.step, &event.files);
    made_spec(state, &event.files);
}

/// Notes how a step left files: what it made, and what it changed of what it was given. Both may be
/// the artifact or the input of another step, whose evidence is not gone by that.
fn record<'a>(
    state: &mut RunState,
    step: &StepPath,
    files: impl IntoIterator<Item = &'a FileHash>,
) {
    for file in files {
        let recorded = Recorded { sha256: file.sha256.clone(), by: step.clone() };
        state.recorded.insert(state.place_of(step, &file.path), recorded);
    }
}

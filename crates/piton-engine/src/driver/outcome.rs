//! From what became of an attempt to its recorded outcome.

use std::fmt::Write as _;

use piton_core::agent::Agent;
use piton_core::decide;
use piton_core::event::{
    Class, Event, Facts, FileHash, Next, Outcome, PullRequestOpened, StepFinished,
};
use piton_core::failure::{self, Classified, LINES_PASSED_ON, LINES_READ, Remains};
use piton_core::lane::Role;
use piton_core::plan::{Step, Work};
use piton_core::replan;
use piton_core::state::{Progress, StepState};
use piton_core::text::first_few;
use piton_core::{GateRef, Millis, shell};

use super::Driver;
use super::exits::{asks_for_replan, how, was_killed};
use super::left::Unsealed;
use super::replan::is_replan;
use super::tallies::exceeds;
use crate::error::Result;
use crate::order::of_lane;
use crate::world::{Attempt, Cause, Ended};

/// Longest note of a step that is kept; cut here, because half a secret is not recognized.
const NOTE_CHARS_MAX: usize = 2000;
/// Most files that are named which a step changed and may not.
const CHANGED_NAMED_MAX: usize = 5;

/// Why an attempt ended that this driver did not end: by word of an earlier driver, or with its keeper,
/// as when a machine shuts down.
pub(super) const ENDED_UNSEEN: &str =
    "it was ended before this driver came, with its keeper or by a driver";

impl Driver<'_> {
    /// Records the outcome of an attempt that is over; one that is recorded already is only
    /// acknowledged.
    pub(super) fn ended(&mut self, ended: &Ended) -> Result<()> {
        if is_replan(&ended.attempt) {
            return self.replan_ended(ended);
        }
        if !self.is_running(&ended.attempt) {
            self.dispatch.acks.push(ended.attempt.clone());
            return Ok(());
        }
        let Some(step) = self.planned(&ended.attempt.step).cloned() else {
            self.dispatch.acks.push(ended.attempt.clone());
            return self.lost(&ended.attempt, "it is no longer in the plan".to_owned());
        };
        let mut reported = self.world.reported(&ended.attempt);
        let withheld = self.withheld(&ended.attempt);
        if let Some(why) = &withheld {
            (reported.artifacts, reported.problem) = (Vec::new(), Some(why.clone()));
            reported.trying = None;
            reported.facts.notes = vec![why.clone()];
        }
        let hashes = self.hashes_for(ended, &step, &reported.artifacts);
        if hashes && self.goes_on() {
            self.unrecorded.await_hashes(ended);
            return Ok(());
        }
        self.dispatch.acks.push(ended.attempt.clone());
        let redactor = &self.options.redactor;
        let (taken, secret): (Vec<_>, Vec<_>) =
            reported.artifacts.drain(..).partition(|path| redactor.redact(path) == path.as_str());
        reported.artifacts = taken;
        let secret = secret.into_iter().map(|path| {
            format!("PITON_OUTPUT: artifact {path} has a secret in its name; it was not recorded")
        });
        for problem in reported.problem.take().into_iter().chain(secret) {
            self.warn(format!("{}: {}", ended.attempt.step, self.redact(&problem)));
        }
        let mut artifacts = Vec::new();
        let by_agent = self.agent_outcome(&step, ended)?;
        let begun_as = self.state.step(&ended.attempt.step).and_then(|s| s.definition.clone());
        let outcome = match (by_agent, ended.cause) {
            // It began under an earlier plan: its result is not evidence for the step as it is now.
            (_, Cause::Exited) if !begun_as.as_ref().is_some_and(|d| step.is_defined_by(d)) => {
                Outcome::Interrupted {
                    why: "its definition in the plan changed since it began".to_owned(),
                }
            }
            (Some(outcome), _) => outcome,
            (_, Cause::Exited) if ended.code == Some(0) && hashes => Outcome::Interrupted {
                why: "the run ended before its artifacts were hashed".to_owned(),
            },
            (_, Cause::Exited) if ended.code == Some(0) => {
                match self.seal(ended, &step, std::mem::take(&mut reported.artifacts)) {
                    Ok(sealed) => {
                        artifacts = sealed;
                        self.succeeded(&step, ended)?
                    }
                    Err(Unsealed::Unfit(error)) => {
                        self.failed(&step, ended, Class::Artifact, &error)?
                    }
                    Err(Unsealed::Unread(why)) if self.goes_on() => {
                        return self.leave_unrecorded(&ended.attempt, &why);
                    }
                    Err(Unsealed::Unread(why)) => Outcome::Interrupted { why: self.redact(&why) },
                }
            }
            (_, Cause::Exited) if was_killed(ended) => {
                self.interrupted(&ended.attempt, "it was killed from outside (SIGKILL)".to_owned())
            }
            (_, Cause::Exited) if self.ended_with_driver(ended) => Outcome::Interrupted {
                why: "a signal asked it to end, as it did its driver".to_owned(),
            },
            (_, Cause::Exited) if asks_for_replan(&step, ended) => {
                self.failed(&step, ended, Class::Replan, "it asks for a replan")?
            }
            (_, Cause::Exited) => {
                let in_test = ended.part > 0 || matches!(step.work, Work::Tests(_));
                let what = if in_test { "the test failed: " } else { "" };
                self.failed(&step, ended, Class::Command, &format!("{what}{}", how(ended)))?
            }
            (_, Cause::Timeout) => {
                // A step without a timeout of its own has that of the plan's budget.
                let limit = if step.timeout == self.plan.budgets.step_time {
                    "the budget `step_time`"
                } else {
                    "its timeout"
                };
                let error = format!("it took longer than {limit} of {}", step.timeout);
                self.failed(&step, ended, Class::Timeout, &error)?
            }
            (_, Cause::IdleTimeout) => {
                let limit = step.idle_timeout.unwrap_or(Millis(0));
                self.failed(&step, ended, Class::Timeout, &format!("it was silent for {limit}"))?
            }
            (_, Cause::NotStarted) => {
                let error = ended.error.clone().unwrap_or_else(|| "it could not be started".into());
                self.failed(&step, ended, Class::Input, &error)?
            }
            (_, Cause::Ended) => {
                Outcome::Interrupted { why: self.stop.ending.unwrap_or(ENDED_UNSEEN).to_owned() }
            }
        };
        let is_done = outcome == Outcome::Succeeded;
        if is_done && reported.facts.notes.is_empty() && self.world.sums_up(&self.state) {
            let redactor = &self.options.redactor;
            reported.facts.notes = self.world.tail(ended, LINES_PASSED_ON, redactor);
        }
        reported.facts = self.redacted(reported.facts);
        let facts = self.counted(&ended.attempt, &reported);
        let tried = self.tried(&step, &ended.attempt, reported.trying);
        let inputs = match outcome {
            Outcome::Succeeded => self.changed_inputs(&step, ended),
            _ => self.left_changed(&step, &ended.attempt),
        };
        let rest = Remainder { ended: Some(ended), artifacts, inputs, facts, tried };
        let outcome = self.weighed(outcome, &ended.attempt, reported.complexity);
        self.finish(&ended.attempt, outcome, rest)?;
        self.follow(&step, ended, withheld.is_some())
    }

    /// The outcome of an attempt that made what it should: none of what it may not change is changed.
    fn succeeded(&mut self, step: &Step, ended: &Ended) -> Result<Outcome> {
        if let Some(why) = self.world.rejects(&self.plan, &self.state, &ended.attempt) {
            return self.failed(step, ended, Class::Artifact, &why);
        }
        let changed = self.changed_beyond(step.writes.as_ref(), step, &ended.attempt)?;
        let named = first_few(changed.into_iter(), CHANGED_NAMED_MAX);
        let Some(names) = named else { return Ok(Outcome::Succeeded) };
        let error = format!("it may not change these files, and did: {names}");
        self.failed(step, ended, Class::Scope, &error)
    }

    /// Why nothing that an attempt said is copied: this driver does not know a secret that it can have
    /// known, and could not take it out.
    pub(super) fn withheld(&self, attempt: &Attempt) -> Option<String> {
        let known = self.options.redactor.names();
        let state = self.state.step(&attempt.step)?;
        let names = state.secrets.iter().filter(|name| !known.contains(*name));
        let names: Vec<&str> = names.map(String::as_str).collect();
        let (run, Attempt { step, number }) = (self.run.id(), attempt);
        let verb = if names.len() == 1 {
            "was set when it ran and is"
        } else {
            "were set when it ran and are"
        };
        let words = || {
            format!(
                "{} {verb} not known now, so nothing that it said is copied; `piton log {run} --step \
                 {step} --attempt {number}` shows its log",
                names.join(", ")
            )
        };
        (!names.is_empty()).then(words)
    }

    pub(super) fn is_running(&self, attempt: &Attempt) -> bool {
        let running = |s: &StepState| matches!(s.progress, Progress::Running { .. });
        self.state.step(&attempt.step).is_some_and(|s| running(s) && s.attempts == attempt.number)
    }

    /// An interruption, unless this driver saw too many of this step: every loop ends.
    pub(super) fn interrupted(&mut self, attempt: &Attempt, why: String) -> Outcome {
        let most = self.plan.budgets.restarts;
        if exceeds(&mut self.tallies.restarts, &attempt.step, most) {
            let error = format!("{why}; the budget restarts is used up ({most})");
            let (class, budget) = (Class::Budget, Some("restarts".to_owned()));
            let (lines, signature) = (Vec::new(), String::new());
            return Outcome::Failed { class, error, lines, budget, signature, next: Next::Fail };
        }
        Outcome::Interrupted { why }
    }

    fn failed(&mut self, step: &Step, ended: &Ended, class: Class, error: &str) -> Result<Outcome> {
        let lines = self.world.tail(ended, LINES_READ, &self.options.redactor);
        let mut classified = match class {
            Class::Command => failure::classify(
                Remains {
                    in_test: ended.part > 0 || matches!(step.work, Work::Tests(_)),
                    is_agent: matches!(step.work, Work::Prompt { .. }),
                    is_told: false,
                    lines: &lines,
                    offset_secs: self.world.utc_offset_secs(),
                },
                self.clock.at,
            ),
            other => Classified { class: other, reset: None },
        };
        if step.role == Role::PullRequest && classified.class == Class::Command {
            classified.class = Class::PullRequest;
        }
        self.failed_as(step, ended, classified, (error, lines))
    }

    /// The outcome of an attempt whose failure is classified, with the lines that tell of it.
    pub(super) fn failed_as(
        &mut self,
        step: &Step,
        ended: &Ended,
        classified: Classified,
        (error, lines): (&str, Vec<String>),
    ) -> Result<Outcome> {
        let step = Step { retries: self.retries_left(&ended.attempt, step), ..step.clone() };
        let next = self.state.step(&ended.attempt.step).map_or(Next::Fail, |state| {
            if step.role == Role::Tests && matches!(classified.class, Class::Test | Class::Timeout)
            {
                return self.next_of_tests(ended);
            }
            let next = failure::next(&step, &self.plan.budgets, state, classified, self.clock.at);
            let path = &ended.attempt.step;
            let awaits =
                || replan::awaits_test_failures(&self.plan, &self.state, path, classified.class);
            match next {
                Next::Fail if awaits() => Next::Retry { at: self.clock.at.after(step.backoff) },
                next => next,
            }
        });
        let mut error = self.redact(error);
        let state = self.state.step(&ended.attempt.step);
        let ended_by = state.filter(|_| !matches!(next, Next::Wait { .. })).and_then(|state| {
            failure::ended_by(&self.plan.budgets, state, classified, self.clock.at)
        });
        if let Some(ended) = &ended_by {
            let _ = write!(error, "; {ended}");
        }
        let budget = ended_by.map(|ended| ended.budget().to_owned());
        let mut lines = self.withheld(&ended.attempt).map_or(lines, |why| vec![why]);
        if lines.is_empty() {
            // An attempt without output is described by what the run did around it.
            let lane = ended.attempt.step.lane();
            lines = self.world.views().map(|views| views.recent(&lane)).unwrap_or_default();
        }
        lines.drain(..lines.len().saturating_sub(LINES_PASSED_ON));
        let class = classified.class;
        let signature = failure::signature(class, &error, &lines);
        let path = &ended.attempt.step;
        let replan = replan::after_failure(&self.plan, &self.state, path, (class, next));
        let next = match replan.map(|trigger| Next::Replan { trigger }) {
            Some(next) => next,
            None => self.escalated(&step, &ended.attempt, &signature, next).unwrap_or(next),
        };
        let next = self.or_another_agent(&step, &ended.attempt, classified, next)?;
        Ok(Outcome::Failed { class, error, lines, budget, signature, next })
    }

    /// Asks a person instead of trying again, if a step keeps failing alike.
    fn escalated(
        &self,
        step: &Step,
        attempt: &Attempt,
        signature: &str,
        next: Next,
    ) -> Option<Next> {
        let state = self.state.step(&attempt.step)?;
        let approved = self.state.approved(&GateRef(attempt.step.to_string()));
        let budgets = &self.plan.budgets;
        let asks = failure::escalates(step, budgets, state, approved, signature, next);
        asks.then_some(Next::Escalate)
    }

    fn redacted(&self, mut facts: Facts) -> Facts {
        for note in &mut facts.notes {
            *note = self.options.redactor.redact(note).chars().take(NOTE_CHARS_MAX).collect();
        }
        facts
    }

    /// The command that an attempt to open a pull request ran last.
    fn tried(&self, step: &Step, attempt: &Attempt, trying: Option<String>) -> Option<String> {
        let trying = trying.filter(|_| step.role == Role::PullRequest)?;
        let work = self.state.lane(&attempt.step.lane())?.work.as_deref()?;
        Some(shell::filled(&self.redact(&trying), &of_lane(&self.state, work)))
    }

    pub(super) fn finish(
        &mut self,
        attempt: &Attempt,
        mut outcome: Outcome,
        rest: Remainder<'_>,
    ) -> Result<()> {
        let after = match self.snapshot(&attempt.step.lane(), &format!("after {attempt}")) {
            Ok(after) => after,
            // What ends anyway waits for nothing.
            Err(why) if outcome == Outcome::Succeeded && self.goes_on() => {
                return self.leave_unrecorded(
                    attempt,
                    &format!("its files could not be checkpointed: {why}"),
                );
            }
            Err(why) => {
                outcome = self.without_checkpoint(attempt, outcome, &why.to_string());
                None
            }
        };
        let ended = rest.ended;
        let (mut tests, mut command, mut retries_max) = (Vec::new(), None, None);
        if let Some(step) = self.planned(&attempt.step) {
            match &outcome {
                Outcome::Succeeded if after.is_some() => tests = step.tests(),
                Outcome::Failed { .. } if self.has_records(attempt) => {
                    let tried = rest.tried.clone();
                    command = Some(tried.unwrap_or_else(|| self.command_of(step, attempt, ended)));
                    let (lane, asked) = (attempt.step.lane(), self.options.retries);
                    retries_max =
                        Some(decide::retries_max(&self.plan, &self.state, &lane, step, asked));
                }
                _ => {}
            }
        }
        let (drifted, outside) = match &outcome {
            Outcome::Succeeded => self.drifted(attempt)?,
            _ => Default::default(),
        };
        let changed = match &outcome {
            Outcome::Succeeded if self.world.sums_up(&self.state) => {
                self.left_by(attempt, after.as_ref())?
            }
            _ => Vec::new(),
        };
        let changed_by_tests =
            !tests.is_empty() && self.are_files_changed(attempt, ended.and_then(|e| e.part_began));
        self.record(Event::StepFinished(Box::new(StepFinished {
            step: attempt.step.clone(),
            attempt: attempt.number,
            outcome,
            exit_code: ended.and_then(|e| e.code),
            signal: ended.and_then(|e| e.signal),
            duration_ms: ended.map(|e| e.duration).unwrap_or_default(),
            logs: ended.map(|e| e.logs).unwrap_or_default(),
            artifacts: rest.artifacts,
            inputs: rest.inputs,
            facts: rest.facts,
            after,
            tests,
            changed_by_tests,
            command: command.map(|c| self.redact(&c)),
            retries_max,
            drifted,
            outside,
            changed,
        })))?;
        let redone = self.state.step(&attempt.step).is_some_and(|s| s.successes > 1);
        self.files.recheck_inputs |= redone;
        Ok(())
    }

    /// The command that an attempt ended with: that of the agent that had its prompt.
    fn command_of(&self, step: &Step, attempt: &Attempt, ended: Option<&Ended>) -> String {
        let part = ended.map_or(0, |ended| ended.part);
        let Work::Prompt { agent: own, .. } = &step.work else { return step.command(part) };
        match self.agent_at(attempt).filter(|agent| part == 0 && agent.name != *own) {
            Some(Agent { command: Some(command), .. }) => command.display(),
            Some(Agent { program, .. }) => program,
            None => step.command(part),
        }
    }

    /// Whether the files of a lane changed while the tests that follow an attempt's work ran. What the
    /// step found that is all tests is on record.
    fn are_files_changed(&mut self, attempt: &Attempt, began: Option<i64>) -> bool {
        let work = self.state.lane(&attempt.step.lane()).and_then(|l| l.work.as_ref());
        let own = work.filter(|w| !w.isolation.is_in_place()).map(|w| w.dir.clone());
        let tests = self.planned(&attempt.step).is_some_and(|s| s.role == Role::Tests);
        let (Some(dir), false) = (own, tests) else { return false };
        let Some(workspaces) = self.world.workspaces() else { return false };
        began.is_none_or(|at| workspaces.changed_since(&dir, at))
    }

    fn retries_left(&self, attempt: &Attempt, step: &Step) -> u32 {
        let asked = self.options.retries;
        decide::retries_left(&self.plan, &self.state, &attempt.step, step, asked)
    }

    fn has_records(&self, attempt: &Attempt) -> bool {
        self.state.lane(&attempt.step.lane()).is_some_and(|l| l.work.is_some())
    }

    /// An outcome whose files can't be checkpointed. A success without them is none.
    fn without_checkpoint(&mut self, attempt: &Attempt, outcome: Outcome, why: &str) -> Outcome {
        let why = self.redact(&format!("its files could not be checkpointed: {why}"));
        self.warn(format!("{}: {why}", attempt.step));
        if outcome == Outcome::Succeeded { Outcome::Interrupted { why } } else { outcome }
    }

    /// What follows an attempt for its lane: a failed test reopens it, a pull request is noted.
    fn follow(&mut self, step: &Step, ended: &Ended, withheld: bool) -> Result<()> {
        let path = ended.attempt.step.lane();
        let Some(state) = self.state.step(&ended.attempt.step) else { return Ok(()) };
        match (step.role, state.progress) {
            (Role::Tests, Progress::Waiting { class: Class::Test | Class::Timeout, .. }) => {
                let Some(failed) = state.failure_context.last().cloned() else { return Ok(()) };
                self.reopen(&path, (failed.class, failed.error, failed.lines), None)
            }
            (Role::Tests, Progress::Pending) => self.reopen_for_replan(&ended.attempt.step),
            (Role::PullRequest, Progress::Done) => {
                let url = self.world.answer(ended, &self.options.redactor).filter(|_| !withheld);
                let url = url.map(|url| url.trim().to_owned()).unwrap_or_default();
                self.record(Event::PullRequestOpened(PullRequestOpened { lane: path, url }))
            }
            _ => Ok(()),
        }
    }

    /// What follows a failed test of a lane: its work continues while a retry is left.
    fn next_of_tests(&self, ended: &Ended) -> Next {
        let path = ended.attempt.step.lane();
        let reopens = decide::reopening(&self.plan, &self.state, &path, self.options.retries);
        if reopens.is_some() { Next::Retry { at: self.clock.at } } else { Next::Fail }
    }
}

/// What else an outcome records.
#[derive(Default)]
pub(super) struct Remainder<'a> {
    pub(super) ended: Option<&'a Ended>,
    pub(super) artifacts: Vec<FileHash>,
    pub(super) inputs: Option<Vec<FileHash>>,
    pub(super) facts: Facts,
    pub(super) tried: Option<String>,
}

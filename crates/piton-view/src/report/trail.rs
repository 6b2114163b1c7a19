//! What the recorded events of a run tell of its course, with their times: attempts, stops, waits,
//! replans, decisions.
//!
//! It takes events one after the other and keeps what a report shows. It does not know where the run
//! stands: that is in its state.

use std::collections::HashMap;

use piton_core::event::{
    ChangesWanted, DriverLeft, Event, GateDecided, LaneReopened, MergedBy, Outcome, RewindKind,
    StepFinished, StepStarted, Verdict,
};
use piton_core::{GateRef, LanePath, Millis, StepPath, Timestamp};

use super::span::Span;
use super::{Attempt, Cause, Decision, Ended, Failure, Kind, Replan, Wait, WaitFor};
use crate::place::At;
use crate::words;

/// What the events of a run tell of its course.
#[derive(Debug, Default)]
pub struct Trail {
    pub(super) attempts: Vec<(StepPath, Attempt)>,
    pub(super) failures: Vec<Failure>,
    pub(super) stops: Vec<Stopped>,
    pub(super) waits: Vec<Wait>,
    pub(super) decisions: Vec<Decision>,
    pub(super) replans: Vec<Replan>,
    /// The attempt of each step that has no outcome yet.
    open: HashMap<StepPath, usize>,
    /// Whether a driver is attached, and since when one was.
    driven: bool,
    attached_at: Timestamp,
    /// When a driver that fell was last at work.
    pub(super) fell_at: Option<Timestamp>,
    /// Whether the last stop waits to be continued.
    stopped: bool,
    last_at: Timestamp,
}

/// The work stopped, or was turned in another direction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stopped {
    pub at: Timestamp,
    pub cause: Cause,
    /// When the driver that continued it attached.
    pub continued_at: Option<Timestamp>,
}

impl Trail {
    /// Takes an event of the run, in order.
    pub fn take(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::DriverAttached(e) => self.attached(at, e.takeover, e.driven_until),
            Event::DriverLeft(e) => self.left(at, e),
            Event::StepStarted(e) => self.started(at, e),
            Event::StepFinished(e) => self.finished(at, e),
            Event::LaneMerged(e) => {
                self.continues(at);
                if e.by == MergedBy::PullRequest {
                    self.end_wait(at, |wait| wait.is_request_of(&e.lane));
                }
            }
            Event::StepProven(_) => self.continues(at),
            Event::LaneReopened(e) => self.reopened(at, e),
            Event::LaneBlocked(e) => {
                let place = e.lane.to_string();
                let (error, lines) = (e.refusal.cause.clone(), Vec::new());
                self.failures.push(Failure {
                    at: At(at),
                    place,
                    attempt: None,
                    class: None,
                    error,
                    lines,
                });
            }
            Event::GateAsked(e) => self.asked(at, &e.gate, &e.name),
            Event::ApprovalAsked(e) => self.asked(at, &e.gate, &e.question),
            Event::PullRequestOpened(e) => {
                let (lane, url) = (e.lane.clone(), e.url.clone());
                self.wait(at, WaitFor::PullRequest { lane, url });
            }
            Event::ReplanBegun(_)
            | Event::ReplanEnded(_)
            | Event::ReplanRefused(_)
            | Event::ReplansImported(_) => self.replanned(at, event),
            other => self.decided(at, other),
        }
        self.last_at = self.last_at.max(at);
    }

    fn attached(&mut self, at: Timestamp, takeover: bool, driven_until: Option<Timestamp>) {
        if self.driven {
            // No driver said that it left.
            let fell_at = driven_until.unwrap_or(self.last_at).min(at);
            self.fell_at = Some(fell_at);
            self.stop(fell_at, if takeover { Cause::TakenOver } else { Cause::Killed });
        }
        self.end_wait(at, |wait| matches!(wait.for_, WaitFor::Person { .. }));
        (self.driven, self.attached_at) = (true, at);
    }

    fn left(&mut self, at: Timestamp, e: &DriverLeft) {
        // One that fell, where another process says so.
        let fell = e.driven_until.map(|until| until.min(at));
        self.fell_at = fell.or(self.fell_at);
        let cause = match e.verdict {
            _ if fell.is_some() => Some(Cause::Killed),
            Verdict::Complete => {
                self.continues(at);
                None
            }
            Verdict::SelectionDone | Verdict::RolledBack | Verdict::Waiting => None,
            Verdict::Failed => Some(Cause::Failed),
            Verdict::Blocked => Some(Cause::Blocked),
            Verdict::Budget => Some(Cause::Budget),
            Verdict::Interrupted => Some(Cause::Interrupted),
            Verdict::Aborted => Some(Cause::Aborted),
        };
        self.driven = false;
        let Some(cause) = cause else { return };
        self.stop(fell.unwrap_or(at), cause);
        if matches!(cause, Cause::Failed | Cause::Blocked) {
            self.wait(at, WaitFor::Person { after: cause });
        }
    }

    /// The work stops; what stops it again before it went on is the same stop.
    pub(super) fn stop(&mut self, at: Timestamp, cause: Cause) {
        if !self.stopped {
            self.stops.push(Stopped { at, cause, continued_at: None });
        }
        self.stopped = true;
    }

    /// The work goes on.
    fn continues(&mut self, at: Timestamp) {
        if !std::mem::take(&mut self.stopped) {
            return;
        }
        if let Some(stop) = self.stops.last_mut() {
            let by_another = self.attached_at >= stop.at;
            stop.continued_at = Some(if by_another { self.attached_at } else { at });
        }
    }

    fn started(&mut self, at: Timestamp, e: &StepStarted) {
        self.continues(at);
        self.open.insert(e.step.clone(), self.attempts.len());
        let attempt = Attempt { number: e.attempt, started_at: At(at), ..Attempt::default() };
        self.attempts.push((e.step.clone(), attempt));
    }

    fn finished(&mut self, at: Timestamp, e: &StepFinished) {
        let open = self.open.remove(&e.step).and_then(|index| self.attempts.get_mut(index));
        let Some((_, attempt)) = open else { return };
        let started = attempt.started_at.0;
        let cut = matches!(e.outcome, Outcome::Interrupted { .. });
        let fell = self.fell_at.filter(|fell| cut && *fell > started);
        // A step may end while nobody drives the run: what it took is recorded, its end is not.
        let ended = match e.duration_ms {
            Millis(0) => fell.unwrap_or(at),
            took => started.after(took),
        };
        attempt.ended_at = Some(At(ended));
        attempt.duration_ms = Span::new(started, ended).length();
        attempt.exit_code = e.exit_code;
        attempt.tokens = e.facts.tokens;
        attempt.money_micros = e.facts.money_micros;
        attempt.outcome = match &e.outcome {
            Outcome::Succeeded => Ended::Succeeded,
            Outcome::Interrupted { .. } => Ended::Interrupted,
            Outcome::Failed { class, error, lines, .. } => {
                self.failures.push(Failure {
                    at: At(ended),
                    place: e.step.to_string(),
                    attempt: Some(e.attempt),
                    class: Some(*class),
                    error: error.clone(),
                    lines: lines.clone(),
                });
                Ended::Failed
            }
        };
        if attempt.outcome == Ended::Succeeded {
            self.continues(at);
        }
    }

    fn reopened(&mut self, at: Timestamp, e: &LaneReopened) {
        self.failures.push(Failure {
            at: At(at),
            place: e.lane.to_string(),
            attempt: None,
            class: Some(e.class),
            error: e.error.clone(),
            lines: e.lines.clone(),
        });
    }

    fn asked(&mut self, at: Timestamp, gate: &GateRef, name: &str) {
        let asked = |wait: &Wait| wait.until.is_none() && wait.is_gate(gate);
        if !self.waits.iter().any(asked) {
            self.wait(at, WaitFor::Gate { gate: gate.clone(), name: name.to_owned() });
        }
    }

    fn wait(&mut self, at: Timestamp, for_: WaitFor) {
        self.waits.push(Wait { for_, from: At(at), until: None, waited_ms: Millis(0) });
    }

    /// Ends the waits that fit; the length of the last of them.
    fn end_wait(&mut self, at: Timestamp, fits: impl Fn(&Wait) -> bool) -> Option<Millis> {
        let open = self.waits.iter_mut().filter(|wait| wait.until.is_none() && fits(wait));
        open.map(|wait| {
            let span = Span::new(wait.from.0, at);
            (wait.until, wait.waited_ms) = (Some(At(span.to)), span.length());
            wait.waited_ms
        })
        .last()
    }

    fn decided(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::GateDecided(e) => self.gate_decided(e.at.unwrap_or(at), e),
            Event::ChangesWanted(e) => self.changes_wanted(at, e),
            Event::GateReopened(e) => {
                self.say(at, &e.by, Kind::ApprovalTakenBack, &e.gate.0, &e.why);
            }
            Event::StepRetried(e) => {
                self.answered(at, &e.step);
                self.say(at, &e.by, Kind::Retried, &e.step.to_string(), "");
            }
            Event::StepSkipped(e) => {
                self.answered(at, &e.step);
                self.say(at, &e.by, Kind::Skipped, &e.step.to_string(), "");
            }
            Event::ReplanWanted(e) if e.step.is_none() => {
                self.say(at, &e.by, Kind::ReplanWanted, &e.phase, &e.reason);
            }
            Event::PlanAccepted(e) if !e.by.is_empty() => {
                self.say(at, &e.by, Kind::PlanAccepted, e.to.short(), "");
            }
            Event::SpecAccepted(e) => {
                let of = e.to.as_ref().map_or("", |file| &file.path);
                self.say(at, &e.by, Kind::SpecAccepted, of, "");
            }
            Event::OutputsAccepted(e) => {
                self.say(at, &e.by, Kind::OutputsAccepted, &e.step.to_string(), "");
            }
            Event::TicksSeen(e) => self.say(at, &e.by, Kind::Ticked, &e.gates.join(", "), ""),
            Event::CheckpointRecorded(e) => {
                self.say(at, &e.by, Kind::Checkpoint, &e.name, &e.message);
            }
            Event::RewindIntended(e) => {
                let kind = match e.kind {
                    RewindKind::Rollback => Kind::RolledBack,
                    RewindKind::Restore => Kind::Restored,
                    RewindKind::Undo => Kind::Undone,
                };
                self.say(at, &e.by, kind, &e.to, "");
            }
            Event::RunAborted(e) => {
                self.end_wait(at, |_| true);
                let kind = if e.cancel { Kind::Cancelled } else { Kind::Aborted };
                self.say(at, &e.by, kind, "", &e.message);
            }
            Event::CommandRefused(e) => {
                let command = format!("piton {}", e.command);
                self.say(at, &words::tried_by(e), Kind::Refused, &command, "");
            }
            Event::RunArchived(e) => {
                self.end_wait(at, |_| true);
                self.say(at, &e.by, Kind::Archived, "", "");
            }
            _ => {}
        }
    }

    fn gate_decided(&mut self, at: Timestamp, e: &GateDecided) {
        let waited_ms = self.end_wait(at, |wait| wait.is_gate(&e.gate));
        let kind = if e.approved { Kind::Approved } else { Kind::Rejected };
        let (by, of, message) = (e.by.clone(), self.gate_words(&e.gate), e.message.clone());
        self.decisions.push(Decision { at: At(at), by, kind, of, message, waited_ms });
    }

    fn changes_wanted(&mut self, at: Timestamp, e: &ChangesWanted) {
        let waited_ms = self.end_wait(at, |wait| wait.is_gate(&e.gate));
        let (by, of) = (e.review.by.clone(), self.gate_words(&e.gate));
        let message = e.review.lines().join(" ");
        let kind = Kind::ChangesWanted;
        self.decisions.push(Decision { at: At(at), by, kind, of, message, waited_ms });
    }

    /// What a gate is called, and the place that it guards.
    fn gate_words(&self, gate: &GateRef) -> String {
        let named = self.waits.iter().rev().find_map(|wait| match &wait.for_ {
            WaitFor::Gate { gate: other, name } if other == gate => Some(name),
            _ => None,
        });
        named.map_or_else(|| gate.to_string(), |name| format!("{name} ({gate})"))
    }

    /// A person answered for a step in another way than at its gate.
    fn answered(&mut self, at: Timestamp, step: &StepPath) {
        let gate = GateRef(step.to_string());
        self.end_wait(at, |wait| wait.is_gate(&gate));
    }

    fn say(&mut self, at: Timestamp, by: &str, kind: Kind, of: &str, message: &str) {
        let (by, of, message) = (by.to_owned(), of.to_owned(), message.to_owned());
        self.decisions.push(Decision { at: At(at), by, kind, of, message, waited_ms: None });
    }
}

impl Wait {
    fn is_gate(&self, of: &GateRef) -> bool {
        matches!(&self.for_, WaitFor::Gate { gate, .. } if gate == of)
    }

    fn is_request_of(&self, of: &LanePath) -> bool {
        matches!(&self.for_, WaitFor::PullRequest { lane, .. } if lane == of)
    }
}

//! Which bytes of a lane's two logs belong to which attempt, told from the events alone.
//!
//! A finished attempt says where its output lies. One that runs begins where the last one of its
//! lane ended. One that was lost with its keeper has no end on record: it ends where the next begins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use piton_core::event::{Event, LogRanges, Outcome, ReplanOutcome};
use piton_core::replan_state::REPLAN_LANE;
use piton_core::{LanePath, StepPath};

/// How an attempt ended that was cut short.
const INTERRUPTED: &str = "interrupted";

/// Places in standard output and standard error.
pub type Places = (u64, u64);
/// What was dropped from the middle of standard output and standard error.
pub type Holes = (Option<(u64, u64)>, Option<(u64, u64)>);

/// One attempt and the place of its output.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Which step.
    pub step: StepPath,
    /// Its number.
    pub number: u32,
    /// How it ended; `None` while it runs.
    pub outcome: Option<&'static str>,
    /// Where its output begins.
    pub start: Places,
    /// What was dropped from the middle.
    pub dropped: Holes,
    end: Option<Places>,
}

/// All attempts of a run, in the order of their starts.
#[derive(Debug, Default)]
pub struct Attempts {
    /// The attempts.
    pub list: Vec<Attempt>,
    ends: BTreeMap<LanePath, Places>,
    lost: BTreeMap<LanePath, Vec<usize>>,
}

impl Attempts {
    /// Takes in an event.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::StepStarted(e) => self.start(e.step.clone(), e.attempt),
            Event::StepFinished(e) => {
                let outcome = match e.outcome {
                    Outcome::Succeeded => "succeeded",
                    Outcome::Failed { .. } => "failed",
                    Outcome::Interrupted { .. } => INTERRUPTED,
                };
                self.finish((&e.step, e.attempt), outcome, e.logs);
            }
            Event::ReplanBegun(e) => self.start(replan(&e.phase), e.attempt),
            Event::ReplanEnded(e) => {
                let outcome = match e.outcome {
                    ReplanOutcome::Replanned(_) => "succeeded",
                    ReplanOutcome::Failed { .. } | ReplanOutcome::Looped { .. } => "failed",
                    ReplanOutcome::Interrupted { .. } => INTERRUPTED,
                };
                self.finish((&replan(&e.phase), e.attempt), outcome, e.logs);
            }
            _ => {}
        }
    }

    fn start(&mut self, step: StepPath, number: u32) {
        let start = self.ends.get(&step.lane()).copied().unwrap_or_default();
        let (outcome, dropped, end) = (None, (None, None), None);
        self.list.push(Attempt { step, number, outcome, start, dropped, end });
    }

    fn finish(&mut self, (step, number): (&StepPath, u32), outcome: &'static str, logs: LogRanges) {
        let is_it = |a: &Attempt| a.number == number && a.step == *step;
        let Some(index) = self.list.iter().rposition(is_it) else {
            return;
        };
        let lane = step.lane();
        let attempt = &mut self.list[index];
        attempt.outcome = Some(outcome);
        if logs.is_empty() {
            if outcome == INTERRUPTED {
                self.lost.entry(lane).or_default().push(index);
            } else {
                attempt.end = Some(attempt.start);
            }
            return;
        }
        let (out, err) = (logs.stdout, logs.stderr);
        attempt.start = (out.0, err.0);
        attempt.end = Some((out.1, err.1));
        attempt.dropped = (logs.stdout_dropped, logs.stderr_dropped);
        let start = attempt.start;
        for lost in self.lost.remove(&lane).unwrap_or_default() {
            self.list[lost].end = Some(start);
        }
        self.ends.insert(lane, (out.1, err.1));
    }

    /// Where an attempt's output ends, given the lengths of the files.
    pub fn end(&self, index: usize, files: impl FnOnce() -> Places) -> Places {
        let attempt = &self.list[index];
        if let Some(end) = attempt.end {
            return end;
        }
        let lane = attempt.step.lane();
        let followed = self.list[index + 1..].iter().any(|a| a.step.lane() == lane);
        if followed {
            // Where a lost attempt ends and its running successor begins is not on record yet; the
            // bytes are shown once, with the one that runs.
            attempt.start
        } else {
            files()
        }
    }
}

/// What the process of a replan is called, as if it were a step.
pub fn replan(phase: &str) -> StepPath {
    StepPath::new(phase, REPLAN_LANE, "replan")
}

impl Attempt {
    /// The two log files of its lane.
    pub fn files(&self, logs: &Path) -> (PathBuf, PathBuf) {
        let file =
            |end: &str| logs.join(&self.step.phase).join(format!("{}.{end}", self.step.lane));
        (file("out"), file("err"))
    }
}

#[cfg(test)]
mod tests {
    use piton_core::Millis;
    use piton_core::event::{StepFinished, StepStarted};
    use piton_core::hash::Sha;

    use super::*;

    fn started(step: &str, attempt: u32) -> Event {
        let step = StepPath::new("P1", "A", step);
        Event::StepStarted(StepStarted::new(step, attempt, Sha::of(b"")))
    }

    fn finished(step: &str, attempt: u32, outcome: Outcome, stdout: (u64, u64)) -> Event {
        Event::StepFinished(Box::new(StepFinished {
            duration_ms: Millis(1),
            logs: LogRanges { stdout, ..LogRanges::default() },
            ..StepFinished::new(StepPath::new("P1", "A", step), attempt, outcome)
        }))
    }

    fn ranges(events: &[Event]) -> Vec<(u64, u64)> {
        let mut attempts = Attempts::default();
        for event in events {
            attempts.take(event);
        }
        (0..attempts.list.len())
            .map(|i| (attempts.list[i].start.0, attempts.end(i, || (100, 0)).0))
            .collect()
    }

    fn lost() -> Outcome {
        Outcome::Interrupted { why: "the keeper died".to_owned() }
    }

    #[test]
    fn a_running_attempt_begins_where_the_last_one_ended() {
        let events =
            [started("a", 1), finished("a", 1, Outcome::Succeeded, (0, 40)), started("b", 1)];
        assert_eq!(ranges(&events), [(0, 40), (40, 100)]);
    }

    #[test]
    fn a_lost_attempt_ends_where_the_next_begins() {
        let mut events = vec![started("a", 1), finished("a", 1, lost(), (0, 0))];
        assert_eq!(ranges(&events), [(0, 100)]);
        events.push(started("a", 2));
        assert_eq!(ranges(&events), [(0, 0), (0, 100)]);
        events.push(finished("a", 2, Outcome::Succeeded, (60, 80)));
        assert_eq!(ranges(&events), [(0, 60), (60, 80)]);
    }

    #[test]
    fn an_attempt_without_output_has_none_of_its_successors() {
        let events =
            [started("a", 1), finished("a", 1, Outcome::Succeeded, (0, 0)), started("b", 1)];
        assert_eq!(ranges(&events), [(0, 0), (0, 100)]);
    }
}

//! One running attempt and its limits.

use std::collections::HashSet;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::WaitStatus;

use crate::marks::Mark;
use crate::os::{Pid, Waiting};
use crate::processes::number;
use crate::protocol::{Cause, Dropped, Exit, Start, Started};

use super::log_files::{Marking, Output};

/// The wall clock, milliseconds since 1970.
pub(super) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A duration in whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// An attempt, or a helper treated like one.
pub(super) struct Attempt {
    pub(super) spec: Start,
    /// A helper has no exit report and no journal lines.
    pub(super) helper: bool,
    pub(super) part: usize,
    /// When that began, if it is not the first; by the clock of files.
    pub(super) part_began_ns: Option<i64>,
    /// The process of the present part; none once it was waited for.
    pub(super) pid: Option<Pid>,
    /// The prepared process, if it was made ready ahead.
    pub(super) waited: Option<Waiting>,
    /// The sessions of all parts so far.
    pub(super) sessions: Vec<Pid>,
    pub(super) began: Instant,
    /// When it began, in the ticks of process start times.
    pub(super) began_ticks: u64,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
    pub(super) marking: Marking,
    /// When a log last grew.
    pub(super) grew: Instant,
    pub(super) ending: Option<Ending>,
    pub(super) status: Option<WaitStatus>,
    /// Whether the driver knows that it runs.
    pub(super) told: bool,
}

/// An attempt that is being ended.
pub(super) struct Ending {
    pub(super) cause: Cause,
    /// When the grace period is over.
    pub(super) kill_at: Instant,
    /// How many times it was killed.
    pub(super) passes: u32,
    /// When the ending began, in ticks since boot: processes that started later tidy up, and are
    /// left alone until the kill.
    pub(super) began_ticks: u64,
    /// The processes that got SIGTERM, by pid and start time: once is enough.
    pub(super) told: HashSet<(Pid, u64)>,
}

impl Attempt {
    /// One whose first process was just started.
    pub(super) fn new(
        spec: Start,
        helper: bool,
        pid: Pid,
        began_ticks: u64,
        [stdout, stderr]: [Output; 2],
    ) -> Self {
        let began = Instant::now();
        Self {
            spec,
            helper,
            part: 0,
            part_began_ns: None,
            pid: Some(pid),
            waited: None,
            sessions: vec![pid],
            began,
            began_ticks,
            stdout,
            stderr,
            marking: Marking::default(),
            grew: began,
            ending: None,
            status: None,
            told: false,
        }
    }

    /// The report that it runs: once, and only while a process of it runs.
    pub(super) fn news(&mut self) -> Option<Started> {
        self.pid.filter(|_| !self.told && !self.helper)?;
        self.told = true;
        Some(self.report())
    }

    /// Checks the logs: growth, marks, bounds. Returns a problem for the keeper's log.
    pub(super) fn observe(&mut self, now: Instant) -> Option<String> {
        let out = self.stdout.measure();
        let err = self.stderr.measure();
        if !out && !err {
            return None;
        }
        self.grew = now;
        if self.helper {
            return None;
        }
        let mark = Mark {
            wall_ms: wall_ms(),
            stdout: self.stdout.range.end,
            stderr: self.stderr.range.end,
        };
        let due = self.marking.is_due();
        let marked = if due { self.stdout.log.mark(mark) } else { Ok(()) };
        let bounded = self.bound();
        match (marked, bounded) {
            (Err(error), _) => Some(format!("{}: could not mark its log: {error}", self.spec.key)),
            (_, Err(error)) => Some(format!(
                "{}: could not free the middle of its log, which keeps growing: {error}",
                self.spec.key
            )),
            _ => None,
        }
    }

    fn bound(&mut self) -> std::io::Result<()> {
        self.stdout.bound(self.spec.log_bytes_max)?;
        self.stderr.bound(self.spec.log_bytes_max)
    }

    /// Which limit is exceeded, if any.
    pub(super) fn exceeded(&self, now: Instant) -> Option<Cause> {
        let over =
            |since: Instant, limit: u64| now.duration_since(since).as_millis() >= limit.into();
        if self.ending.is_some() {
            return None;
        }
        if self.spec.timeout_ms > 0 && over(self.began, self.spec.timeout_ms) {
            return Some(Cause::Timeout);
        }
        self.spec
            .idle_timeout_ms
            .filter(|&limit| over(self.grew, limit))
            .map(|_| Cause::IdleTimeout)
    }

    /// What to tell a driver that does not know of it.
    pub(super) fn report(&self) -> Started {
        Started {
            key: self.spec.key.clone(),
            pid: self.sessions.last().copied().map_or(0, number),
            stdout_start: self.stdout.range.start,
            stderr_start: self.stderr.range.start,
        }
    }

    /// Makes the exit report.
    pub(super) fn exit(&mut self, cause: Cause, error: Option<String>) -> Exit {
        self.stdout.measure();
        self.stderr.measure();
        // A failure to limit the log was already reported.
        let _ = self.bound();
        if Rc::ptr_eq(&self.stdout.log, &self.stderr.log) {
            // Both streams in one file: its bytes are reported once.
            self.stderr.range.end = self.stderr.range.start;
            self.stderr.dropped = None;
        }
        Exit {
            key: self.spec.key.clone(),
            part: self.part,
            part_began_ns: self.part_began_ns,
            code: self.status.and_then(WaitStatus::exit_status),
            signal: self.status.and_then(WaitStatus::terminating_signal),
            cause,
            error,
            ended_ms: wall_ms(),
            duration_ms: millis(self.began.elapsed()),
            stdout: self.stdout.range,
            stderr: self.stderr.range,
            dropped: Dropped { stdout: self.stdout.dropped, stderr: self.stderr.dropped },
        }
    }
}

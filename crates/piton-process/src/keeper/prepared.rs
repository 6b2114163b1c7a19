//! An attempt that is made ready while the driver makes its intent durable.
//!
//! Logs, files, environment and the process itself take as long as a disk needs to sync, and none
//! of them does anything yet: the process waits before its program. The journal already says that
//! the attempt may run, so that only the signal is left when the driver says go. If the driver is
//! gone, is taken over or asks for something else, the process exits without having done anything,
//! and the journal says so.

use crate::journal::{Line, Ticks};
use crate::os::{Pid, Waiting};
use crate::processes::number;
use crate::protocol::{Start, State};

use super::attempt::Attempt;
use super::hold::Hold;
use super::launch;
use super::log_files::Output;

/// What is ready to start.
pub(super) struct Prepared {
    start: Start,
    /// Its process; `None` if that failed or died. Starting it in the usual way then shows why.
    child: Option<Child>,
}

struct Child {
    waiting: Waiting,
    ticks: Ticks,
    streams: [Output; 2],
}

impl Prepared {
    /// The process that waits.
    pub(super) fn pid(&self) -> Option<Pid> {
        self.child.as_ref().map(|child| child.waiting.pid())
    }

    /// Notes that a process has ended, if it is this one.
    pub(super) fn reaped(&mut self, pid: Pid) {
        if let Some(mut child) = self.child.take_if(|child| child.waiting.pid() == pid) {
            child.waiting.reaped();
        }
    }
}

impl Hold {
    pub(super) fn prepare(&mut self, start: Start) {
        self.unprepare();
        let mut child = None;
        if self.shutdown.is_none() && self.state(&start.key) == State::NotStarted {
            self.approach(start.near);
            child = self.make_ready(&start);
        }
        self.prepared = Some(Prepared { start, child });
    }

    fn make_ready(&mut self, start: &Start) -> Option<Child> {
        let streams = self.open_logs(start).ok()?;
        self.journal.append_in_order(&Line::Starting { key: start.key.clone() }).ok()?;
        let made = self.first_part(start, &streams, launch::waiting);
        if made.is_err() {
            self.record(&Line::NotStarted { key: start.key.clone() });
        }
        made.ok().map(|(waiting, ticks)| Child { waiting, ticks, streams })
    }

    /// Writes to a new journal what the old one said about the prepared attempt.
    pub(super) fn note_prepared(&mut self) {
        let ready = self.prepared.as_ref().filter(|prepared| prepared.child.is_some());
        let Some(line) = ready.map(|p| Line::Starting { key: p.start.key.clone() }) else {
            return;
        };
        if self.journal.append(&line).is_err() {
            self.unprepare();
        }
    }

    /// Ends the prepared process: something else is requested, or the driver is gone.
    pub(super) fn unprepare(&mut self) {
        if let Some(Prepared { start, child: Some(child) }) = self.prepared.take() {
            // It is gone when this returns.
            drop(child);
            self.record(&Line::NotStarted { key: start.key });
        }
    }

    pub(super) fn go(&mut self, key: &str) {
        if self.prepared.as_ref().is_some_and(|prepared| prepared.start.key != key) {
            self.unprepare();
        }
        let Some(Prepared { start, child }) = self.prepared.take() else {
            // A signal ends the keeper. The step is fine: the driver loses this connection, tries
            // again until we are gone, and starts the step with a new keeper.
            return self.close_driver();
        };
        match child {
            Some(child) => self.release(start, child),
            None => self.start(start),
        }
    }

    fn release(&mut self, start: Start, child: Child) {
        let Child { mut waiting, ticks, streams } = child;
        waiting.release();
        let pid = waiting.pid();
        // The journal already says that it may have started; its pid can wait for a moment.
        let key = start.key.clone();
        self.late.push(Line::Started { key, part: 0, pid: number(pid), start: ticks });
        let mut attempt = Attempt::new(start, false, pid, ticks.from, streams);
        attempt.waited = Some(waiting);
        self.hold(attempt);
    }

    /// Starts an attempt as any other whose process was ready but could not execute its program.
    pub(super) fn start_anew(&mut self, index: usize) {
        let spec = self.attempts.swap_remove(index).spec;
        self.record(&Line::NotStarted { key: spec.key.clone() });
        self.start(spec);
    }
}

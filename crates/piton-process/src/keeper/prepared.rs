//! An attempt that is made ready while the driver makes its intent durable.
//!
//! Logs, files, environment and the process itself take longer than a disk takes to sync, and none
//! of them does anything yet: the process waits before its program. When the driver says go, the
//! journal has its line before the process hears of it. When the driver is gone, is taken over or
//! asks for something else, the process exits without having done anything.

use crate::journal::{Line, Ticks};
use crate::os::{Pid, Waiting};
use crate::processes::number;
use crate::protocol::{NotStarted, Reply, Start, State};

use super::attempt::Attempt;
use super::hold::Hold;
use super::launch;
use super::log_files::Output;

/// What is ready to go.
pub(super) struct Prepared {
    start: Start,
    /// Its process; none if that failed or died, and why is found out by starting it as any other.
    child: Option<Child>,
}

struct Child {
    waiting: Waiting,
    ticks: Ticks,
    streams: [Output; 2],
}

impl Prepared {
    /// Notes that a process has ended, if it is this one.
    pub(super) fn reaped(&mut self, pid: Pid) {
        if let Some(mut child) = self.child.take_if(|child| child.waiting.pid() == pid) {
            child.waiting.reaped();
        }
    }
}

impl Hold {
    pub(super) fn prepare(&mut self, start: Start) {
        // Whatever was ready before is not wanted any more.
        self.prepared = None;
        let mut child = None;
        if self.shutdown.is_none() && self.state(&start.key) == State::NotStarted {
            self.approach(start.near);
            child = self.open_logs(&start).ok().and_then(|streams| {
                let made = self.first_part(&start, &streams, launch::waiting);
                made.ok().map(|(waiting, ticks)| Child { waiting, ticks, streams })
            });
        }
        self.prepared = Some(Prepared { start, child });
    }

    pub(super) fn go(&mut self, key: &str) {
        let prepared = self.prepared.take().filter(|prepared| prepared.start.key == key);
        let Some(Prepared { start, child }) = prepared else {
            let error = "it was not made ready; start it instead".to_owned();
            let (key, errno, command_not_found) = (key.to_owned(), None, false);
            self.say(&Reply::NotStarted(NotStarted { key, error, errno, command_not_found }));
            return;
        };
        match child {
            Some(child) if self.shutdown.is_none() => self.release(start, child),
            _ => self.start(start),
        }
    }

    fn release(&mut self, start: Start, child: Child) {
        let Child { mut waiting, ticks, streams } = child;
        let (key, pid) = (start.key.clone(), waiting.pid());
        // Before the process hears of it: should we die in between, it exits, and counts as lost.
        let line = Line::Started { key, part: 0, pid: number(pid), start: ticks };
        if self.journal.append(&line).is_err() {
            drop(waiting);
            return self.start(start);
        }
        waiting.release();
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

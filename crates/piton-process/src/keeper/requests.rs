//! The requests of drivers, and which driver the keeper obeys.
//!
//! The driver with the highest epoch ever seen is obeyed, on one connection. A process that this
//! keeper itself started (a step, an agent) is never obeyed, whatever epoch it claims.

use std::path::Path;
use std::time::Instant;

use crate::journal::{Line, Ticks};
use crate::os::{self, Pid};
use crate::processes::{ancestors, number};
use crate::protocol::{
    Cause, HELPER_KEY, Hello, NotStarted, PROTOCOL, Part, Reply, Request, Spawn, Start, State,
    Version, Welcome,
};

use super::attempt::Attempt;
use super::hold::Hold;
use super::launch::{self, BaseEnv, Failure, Surroundings};
use super::log_files::Output;
use super::stamps;

/// The longest that a helper may take by default: a notification that hangs must not keep the
/// keeper alive.
const HELPER_TIMEOUT_MS: u64 = 60_000;

/// How long a helper has between SIGTERM and SIGKILL.
const HELPER_GRACE_MS: u64 = 2_000;

impl Hold {
    /// Handles everything that a connection has sent.
    pub(super) fn serve(&mut self, id: u64) {
        let Some(index) = self.index(id) else { return };
        self.connections[index].fill();
        loop {
            let Some(index) = self.index(id) else { return };
            let connection = &mut self.connections[index];
            if connection.closing {
                return;
            }
            match connection.next() {
                Ok(Some(Request::Hello(hello))) => self.greet(id, &hello),
                Ok(Some(request)) if self.driver == Some(id) => self.handle(request),
                Ok(Some(_)) => self.refuse(id),
                Ok(None) => return,
                Err(error) => {
                    connection.closing = true;
                    self.diagnostics.say(&format!("dropped a connection: {error}"));
                }
            }
        }
    }

    fn index(&self, id: u64) -> Option<usize> {
        self.connections.iter().position(|connection| connection.id == id)
    }

    fn refuse(&mut self, id: u64) {
        self.refuse_for(id, None);
    }

    fn refuse_for(&mut self, id: u64, other: Option<Version>) {
        let highest = self.epoch;
        if let Some(index) = self.index(id) {
            let connection = &mut self.connections[index];
            // A refusal is a few bytes: it cannot be too long.
            let _ = connection.say(&Reply::Refused { highest, other });
            connection.closing = true;
        }
    }

    fn greet(&mut self, id: u64, hello: &Hello) {
        let index = self.index(id);
        let peer = index.and_then(|index| os::peer_pid(&self.connections[index].stream));
        if peer.is_some_and(is_below_us) {
            self.diagnostics.say("refused a driver that runs inside a step");
            return self.refuse(id);
        }
        if hello.protocol != PROTOCOL {
            self.diagnostics.say("refused a driver of another version");
            return self.refuse_for(id, Some(Version::own()));
        }
        if hello.epoch < self.epoch {
            return self.refuse(id);
        }
        if self.shutdown.is_some() {
            // Closed without an answer: the client tries again until there is no keeper, then reads
            // the journal and starts a new one.
            if let Some(index) = index {
                self.connections[index].closing = true;
            }
            return;
        }
        if let Some(other) = self.driver.filter(|&other| other != id) {
            if hello.epoch == self.epoch {
                // The other driver may be gone unnoticed; what it sent still counts.
                self.serve(other);
                if self.index(other).is_some_and(|index| !self.connections[index].is_over()) {
                    return self.refuse(id);
                }
            } else {
                self.epoch = hello.epoch;
                self.unprepare();
                self.refuse(other);
            }
        }
        self.epoch = hello.epoch;
        self.record(&Line::Epoch { epoch: hello.epoch });
        self.env = BaseEnv::new(&hello.env);
        self.driver = Some(id);
        let steps = self.attempts.iter().filter(|attempt| !attempt.helper);
        let welcome = Welcome {
            pid: std::process::id(),
            children: steps.map(Attempt::report).collect(),
            finished: self.finished.values().cloned().collect(),
        };
        self.say(&Reply::Welcome(welcome));
    }

    fn handle(&mut self, request: Request) {
        match request {
            Request::Hello(_) => {}
            Request::Start(start) => self.start(*start),
            Request::Prepare(start) => self.prepare(*start),
            Request::Go { key } => self.go(&key),
            Request::Ack { key } => self.acknowledge(key),
            Request::End { key } => self.end(&[(key, Cause::Ended)], Instant::now()),
            Request::Interrupt { key } => self.interrupt(&key),
            Request::EndAll => self.end_steps(),
            Request::Probe { key } => {
                let state = self.state(&key);
                self.say(&Reply::Known { key, state });
            }
            Request::Spawn(spawn) => self.spawn(spawn),
            Request::Shutdown => self.begin_shutdown(self.driver),
        }
    }

    pub(super) fn state(&self, key: &str) -> State {
        if self.attempts.iter().any(|attempt| attempt.spec.key == key && !attempt.helper) {
            State::Running
        } else if let Some(exit) = self.finished.get(key) {
            State::Finished(exit.clone())
        } else if self.acknowledged.contains(key) {
            State::Acknowledged
        } else {
            State::NotStarted
        }
    }

    fn acknowledge(&mut self, key: String) {
        self.journal.forget(&key);
        if self.finished.remove(&key).is_some() {
            self.acknowledged.insert(key);
        }
        if !self.finished.is_empty() || !self.attempts.is_empty() {
            return;
        }
        match self.journal.renew_if_large(self.epoch) {
            Ok(true) => self.note_prepared(),
            Ok(false) => {}
            Err(error) => self.diagnostics.say(&format!("could not renew the journal: {error}")),
        }
    }

    pub(super) fn start(&mut self, start: Start) {
        self.unprepare();
        if self.shutdown.is_some() {
            // A signal ends the keeper. The step is fine: the driver loses this connection, tries
            // again until we are gone, and starts the step with a new keeper.
            return self.close_driver();
        }
        let key = start.key.clone();
        if let Err(reply) = self.try_start(start) {
            // The driver reports the reason: only it knows what is secret in a command.
            self.diagnostics.say(&format!("{key}: not started; the driver got the reason"));
            self.say(&Reply::NotStarted(reply));
        }
    }

    /// Ends the connection of the driver.
    pub(super) fn close_driver(&mut self) {
        if let Some(index) = self.driver.and_then(|id| self.index(id)) {
            self.connections[index].closing = true;
        }
    }

    fn try_start(&mut self, start: Start) -> Result<(), NotStarted> {
        let key = start.key.clone();
        let refuse = |failure: Failure| failure.into_reply(&key);
        if self.state(&key) != State::NotStarted {
            let failure = Failure::new("this attempt was already started; probe it instead");
            return Err(refuse(failure));
        }
        let starting = Line::Starting { key: key.clone() };
        self.journal.append_in_order(&starting).map_err(|error| {
            refuse(Failure::io("could not write the keeper's journal; free disk space", &error))
        })?;
        self.approach(start.near);
        match self.launch(start, false) {
            Ok((attempt, pid, ticks)) => {
                let (part, number) = (0, number(pid));
                let line = Line::Started { key: key.clone(), part, pid: number, start: ticks };
                self.record(&line);
                self.hold(attempt);
                Ok(())
            }
            Err(failure) => {
                self.record(&Line::NotStarted { key: key.clone() });
                Err(refuse(failure))
            }
        }
    }

    /// Keeps an attempt that runs.
    pub(super) fn hold(&mut self, attempt: Attempt) {
        self.keep.extend(attempt.spec.keep.iter().cloned());
        self.attempts.push(attempt);
    }

    /// Moves to the CPU of a driver that waits for only one attempt, and away when there are more:
    /// then any free CPU is better.
    pub(super) fn approach(&mut self, near: Option<usize>) {
        match near.filter(|_| self.attempts.is_empty()) {
            Some(cpu) => drop(self.tether.hold(cpu)),
            None => self.tether.let_go(),
        }
    }

    /// Opens the logs, writes the files and starts the first part.
    fn launch(&mut self, start: Start, helper: bool) -> Result<(Attempt, Pid, Ticks), Failure> {
        let streams = self.open_logs(&start)?;
        let (pid, ticks) = self.first_part(&start, &streams, launch::part)?;
        Ok((Attempt::new(start, helper, pid, ticks.from, streams), pid, ticks))
    }

    pub(super) fn open_logs(&mut self, start: &Start) -> Result<[Output; 2], Failure> {
        let mut open = |path: &Path| {
            self.logs.open(path).map(Output::new).map_err(|error| {
                Failure::io(&format!("could not open the log {}", path.display()), &error)
            })
        };
        Ok([open(&start.stdout)?, open(&start.stderr)?])
    }

    /// Writes the files of an attempt, and makes the process of its first part.
    pub(super) fn first_part<T>(
        &self,
        start: &Start,
        [stdout, stderr]: &[Output; 2],
        make: impl FnOnce(&Start, &Part, &Surroundings<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        launch::write_files(&start.files)?;
        let Some(part) = start.parts.first() else {
            return Err(Failure::new("the attempt has no command"));
        };
        let around = Surroundings {
            env: &self.env,
            mark: &self.mark,
            null: &self.null,
            stdout: &stdout.log.file,
            stderr: &stderr.log.file,
            free: self.tether.free(),
        };
        make(start, part, &around)
    }

    /// Continues with the next part after one that exited with 0.
    pub(super) fn start_next_part(&mut self, index: usize) {
        let attempt = &mut self.attempts[index];
        attempt.part += 1;
        attempt.status = None;
        attempt.part_began_ns = Some(stamps::past_now());
        let around = Surroundings {
            env: &self.env,
            mark: &self.mark,
            null: &self.null,
            stdout: &attempt.stdout.log.file,
            stderr: &attempt.stderr.log.file,
            free: self.tether.free(),
        };
        match launch::part(&attempt.spec, &attempt.spec.parts[attempt.part], &around) {
            Ok((pid, start)) => {
                attempt.pid = Some(pid);
                attempt.sessions.push(pid);
                let (key, part) = (attempt.spec.key.clone(), attempt.part);
                self.record(&Line::Started { key, part, pid: number(pid), start });
            }
            Err(failure) => self.finish(index, Cause::NotStarted, Some(failure.error)),
        }
    }

    fn spawn(&mut self, spawn: Spawn) {
        self.helpers_count += 1;
        let timeout_ms = if spawn.timeout_ms == 0 { HELPER_TIMEOUT_MS } else { spawn.timeout_ms };
        let start = Start {
            key: format!("{HELPER_KEY}{}", self.helpers_count),
            parts: vec![Part { argv: spawn.argv, stdin: None }],
            dir: spawn.dir,
            env: spawn.env,
            stdout: spawn.log.clone(),
            stderr: spawn.log,
            timeout_ms,
            grace_ms: HELPER_GRACE_MS,
            ..Start::default()
        };
        let key = start.key.clone();
        match self.launch(start, true) {
            Ok((mut attempt, ..)) => {
                // Only a helper whose end is reported has not been reported yet.
                attempt.told = !spawn.tell;
                self.attempts.push(attempt);
            }
            Err(failure) => {
                self.diagnostics.say(&format!("helper {key} not started"));
                if spawn.tell {
                    self.say(&Reply::NotStarted(failure.into_reply(&key)));
                }
            }
        }
    }
}

/// Whether a process descends from this keeper.
fn is_below_us(pid: Pid) -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    ancestors(pid).any(|ancestor| ancestor.pid == own)
}

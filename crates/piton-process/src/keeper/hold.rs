//! The keeper's state and its one loop: signals, connections, ticks, in that order, then replies.
//!
//! Everything happens in one thread that never blocks, so events cannot race. Requests of drivers
//! are in `requests`, the end of process trees in `ending`, the end of the keeper itself in
//! `shutdown`.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, WaitStatus};
use signal_hook::consts::{SIGCHLD, SIGTERM};

use crate::error::{Error, Result};
use crate::journal::{Journal, Line};
use crate::lock::Held;
use crate::os::{self, Pid, Tether};
use crate::protocol::{Cause, Exit, Reply};

use super::attempt::Attempt;
use super::connection::Connection;
use super::diagnostics::Diagnostics;
use super::launch::BaseEnv;
use super::log_files::LogFiles;
use super::prepared::Prepared;
use super::shutdown::Shutdown;

/// How often running attempts are checked while a driver watches: the order of their output is
/// exact to a twentieth of a second.
const TICK: Duration = Duration::from_millis(50);

/// The same without a driver: only limits matter then.
const TICK_ALONE: Duration = Duration::from_millis(250);

/// How often trees that are being ended are checked; each check reads the whole process table.
const TICK_ENDING: Duration = Duration::from_millis(10);

/// How long a keeper without driver and children stays, for the next driver to find it.
const IDLE_EXIT: Duration = Duration::from_secs(10);

/// The same while it holds ends of steps that a full disk kept out of the journal: with it they
/// would be gone. A day is long enough for a person to notice, and no process stays for ever.
const IDLE_EXIT_BEHIND: Duration = Duration::from_secs(24 * 3600);

/// How often writing them is tried again while nothing else happens.
const CATCH_UP: Duration = Duration::from_secs(1);

/// Most open connections: one driver, one that takes over, and a few by mistake.
const CONNECTIONS_MAX: usize = 16;

/// How many attempts that are over are remembered, to tell whose a daemon is.
const PAST_MAX: usize = 1024;

/// An attempt that is over while something of it may still live.
pub(super) struct Past {
    pub(super) key: String,
    pub(super) sessions: Vec<Pid>,
    /// When it began and ended, in the ticks of process start times.
    pub(super) ticks: RangeInclusive<u64>,
}

/// Everything the keeper holds.
pub(super) struct Hold {
    pub(super) mark: String,
    pub(super) epoch: u64,
    pub(super) journal: Journal,
    pub(super) diagnostics: Diagnostics,
    pub(super) null: File,
    pub(super) env: BaseEnv,
    pub(super) logs: LogFiles,
    pub(super) connections: Vec<Connection>,
    /// The connection of the driver that is obeyed.
    pub(super) driver: Option<u64>,
    pub(super) attempts: Vec<Attempt>,
    /// The attempt that is ready to start, which its driver may still cancel.
    pub(super) prepared: Option<Prepared>,
    pub(super) finished: BTreeMap<String, Exit>,
    pub(super) acknowledged: HashSet<String>,
    /// The attempts that are over, while anything lives that may be of them.
    pub(super) past: VecDeque<Past>,
    /// Until when some of them are forgotten, in ticks.
    pub(super) forgotten_ticks: Option<u64>,
    /// Programs that may outlive their step, from all steps so far.
    pub(super) keep: BTreeSet<String>,
    pub(super) shutdown: Option<Shutdown>,
    pub(super) helpers_count: u64,
    /// Keeps the keeper beside its driver while short steps follow each other.
    pub(super) tether: Tether,
    listener: UnixListener,
    wake: UnixStream,
    terminate: Arc<AtomicBool>,
    /// Journal lines to write at the end of a turn, because a step waits for the rest of it.
    pub(super) late: Vec<Line>,
    connections_count: u64,
    next_tick: Option<Instant>,
    idle_since: Option<Instant>,
    _held: Held,
}

impl Hold {
    pub(super) fn new(
        held: Held,
        mark: &str,
        epoch: u64,
        journal: Journal,
        diagnostics: Diagnostics,
        listener: UnixListener,
        null: File,
    ) -> Result<Self> {
        let (wake, terminate) = signals().map_err(Error::io("could not handle signals"))?;
        Ok(Self {
            mark: mark.to_owned(),
            epoch,
            journal,
            diagnostics,
            null,
            env: BaseEnv::default(),
            logs: LogFiles::default(),
            connections: Vec::new(),
            driver: None,
            attempts: Vec::new(),
            prepared: None,
            finished: BTreeMap::new(),
            acknowledged: HashSet::new(),
            past: VecDeque::new(),
            forgotten_ticks: None,
            keep: BTreeSet::new(),
            shutdown: None,
            helpers_count: 0,
            tether: Tether::that_lets_finish(),
            listener,
            wake,
            terminate,
            late: Vec::new(),
            connections_count: 0,
            next_tick: None,
            idle_since: None,
            _held: held,
        })
    }

    pub(super) fn null(&self) -> &File {
        &self.null
    }

    pub(super) fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Runs until the keeper has ended.
    pub(super) fn run(&mut self) -> Result<()> {
        loop {
            let ready = self.wait().map_err(Error::io("the keeper could not wait"))?;
            if ready.signal {
                self.drain_wake();
                self.reap();
                if self.terminate.swap(false, Ordering::Relaxed) {
                    self.diagnostics.say("received a signal; ending all steps");
                    self.begin_shutdown(None);
                }
            }
            if ready.listener {
                self.accept();
            }
            for id in ready.connections {
                self.serve(id);
            }
            self.tick(Instant::now());
            let over = self.advance_shutdown(Instant::now());
            self.flush();
            for line in std::mem::take(&mut self.late) {
                self.record(&line);
            }
            if over {
                return Ok(());
            }
        }
    }

    /// Waits for something to do.
    fn wait(&mut self) -> io::Result<Ready> {
        let timeout = self.timeout(Instant::now()).and_then(|wait| Timespec::try_from(wait).ok());
        let mut fds = Vec::with_capacity(2 + self.connections.len());
        fds.push(PollFd::new(&self.wake, PollFlags::IN));
        fds.push(PollFd::new(&self.listener, PollFlags::IN));
        for connection in &self.connections {
            let output = if connection.has_output() { PollFlags::OUT } else { PollFlags::empty() };
            fds.push(PollFd::new(&connection.stream, PollFlags::IN | output));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            // A signal that arrived is in the pipe; the next turn sees it.
            Err(rustix::io::Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let connections = fds[2..].iter().zip(&self.connections);
        Ok(Ready {
            signal: is_ready(&fds[0]),
            listener: is_ready(&fds[1]),
            connections: connections
                .filter(|(fd, _)| is_ready(fd))
                .map(|(_, connection)| connection.id)
                .collect(),
        })
    }

    /// How long nothing needs to be done.
    fn timeout(&mut self, now: Instant) -> Option<Duration> {
        let ending = self.attempts.iter().any(|attempt| attempt.ending.is_some());
        if ending || self.shutdown.is_some() {
            return Some(TICK_ENDING);
        }
        if !self.attempts.is_empty() {
            let tick = if self.driver.is_some() { TICK } else { TICK_ALONE };
            let next = *self.next_tick.get_or_insert(now + tick);
            return Some(next.saturating_duration_since(now));
        }
        if self.driver.is_some() {
            return self.journal.is_behind().then_some(CATCH_UP);
        }
        let since = *self.idle_since.get_or_insert(now);
        let left = (since + self.patience()).saturating_duration_since(now);
        Some(if self.journal.is_behind() { left.min(CATCH_UP) } else { left })
    }

    /// How long it stays with nothing to do.
    fn patience(&self) -> Duration {
        if self.journal.is_behind() { IDLE_EXIT_BEHIND } else { IDLE_EXIT }
    }

    fn drain_wake(&mut self) {
        let mut bytes = [0; 64];
        while matches!((&self.wake).read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }

    /// Waits for every child that has ended: parts of attempts, and orphans that became ours.
    fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.reaped(pid.as_raw_nonzero().get(), status),
                Ok(None) => return,
                Err(rustix::io::Errno::INTR) => {}
                // No children at all: nothing is left that could be of an attempt that is over.
                Err(_) => {
                    self.past.clear();
                    self.forgotten_ticks = None;
                    return;
                }
            }
        }
    }

    fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        if let Some(prepared) = &mut self.prepared {
            prepared.reaped(pid);
        }
        let Some(index) = self.attempts.iter().position(|attempt| attempt.pid == Some(pid)) else {
            return;
        };
        let attempt = &mut self.attempts[index];
        attempt.pid = None;
        attempt.status = Some(status);
        let unborn = attempt.waited.take().is_some_and(|mut waited| waited.reaped());
        if unborn && attempt.ending.is_none() {
            return self.start_anew(index);
        }
        if attempt.ending.is_some() {
            // This turn's tick checks whether its tree is gone too.
            return;
        }
        let more = attempt.part + 1 < attempt.spec.parts.len();
        if more && status.exit_status() == Some(0) {
            self.start_next_part(index);
        } else {
            self.finish(index, Cause::Exited, None);
        }
    }

    /// Records the end of an attempt and tells the driver.
    pub(super) fn finish(&mut self, index: usize, cause: Cause, error: Option<String>) {
        let mut attempt = self.attempts.swap_remove(index);
        let (key, sessions) = (attempt.spec.key.clone(), attempt.sessions.clone());
        let ticks = attempt.began_ticks..=os::now_ticks();
        self.past.push_back(Past { key, sessions, ticks });
        if self.past.len() > PAST_MAX {
            let ended = self.past.pop_front().map(|past| *past.ticks.end());
            self.forgotten_ticks = self.forgotten_ticks.max(ended);
        }
        if attempt.helper && attempt.told {
            return;
        }
        let exit = attempt.exit(cause, error);
        if attempt.helper {
            self.say(&Reply::Exited(exit));
            return;
        }
        self.record(&Line::Exited(exit.clone()));
        self.say(&Reply::Exited(exit.clone()));
        self.finished.insert(exit.key.clone(), exit);
    }

    /// Writes to the journal what has already happened.
    pub(super) fn record(&mut self, line: &Line) {
        if let Err(error) = self.journal.keep(line) {
            let said = "could not write the journal; will try again; free some disk space";
            self.diagnostics.say(&format!("{said}: {error}"));
        }
    }

    /// Queues a reply for the driver, if one is there.
    pub(super) fn say(&mut self, reply: &Reply) {
        let driver = self.driver;
        let Some(connection) = self.connections.iter_mut().find(|c| Some(c.id) == driver) else {
            return;
        };
        if let Err(error) = connection.say(reply) {
            self.diagnostics.say(&format!("could not send {reply:?}: {error}"));
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.connections.len() >= CONNECTIONS_MAX {
                self.diagnostics.say("too many connections; refused one");
                continue;
            }
            self.connections_count += 1;
            if let Ok(connection) = Connection::new(self.connections_count, stream) {
                let id = connection.id;
                self.connections.push(connection);
                // A client sends its greeting at once: often it has already arrived.
                self.serve(id);
            }
        }
    }

    /// Checks the limits of all attempts, and continues with those that are being ended.
    fn tick(&mut self, now: Instant) {
        if self.next_tick.is_some_and(|next| next <= now) {
            self.next_tick = None;
            // A step that lives until a tick is not short: there are no quick hand-overs.
            self.tether.let_go();
            for attempt in &mut self.attempts {
                if let Some(complaint) = attempt.observe(now) {
                    self.diagnostics.say(&complaint);
                }
            }
            // Reported at the tick, not at the start: most short steps end before it, and a driver
            // that waits for the end of one is not woken twice.
            let news: Vec<_> = self.attempts.iter_mut().filter_map(Attempt::news).collect();
            for started in news {
                self.say(&Reply::Started(started));
            }
            let exceeded: Vec<(String, Cause)> = self
                .attempts
                .iter()
                .filter_map(|attempt| Some((attempt.spec.key.clone(), attempt.exceeded(now)?)))
                .collect();
            self.end(&exceeded, now);
        }
        self.advance_endings(now);
        if self.journal.is_behind() && self.journal.catch_up().is_ok() {
            self.diagnostics.say("the journal is complete again");
        }
        if !self.attempts.is_empty() || self.driver.is_some() {
            self.idle_since = None;
        } else if self.idle_since.is_some_and(|since| now >= since + self.patience()) {
            self.begin_shutdown(None);
        }
    }

    /// Sends the replies of this turn, and closes connections that are over.
    fn flush(&mut self) {
        for connection in &mut self.connections {
            if connection.has_output() {
                connection.flush();
            }
        }
        let driver = self.driver;
        let mut lost = false;
        self.connections.retain(|connection| {
            let over = connection.is_over();
            lost |= over && Some(connection.id) == driver;
            !over
        });
        if lost {
            self.driver = None;
            self.unprepare();
        }
    }
}

/// What a wait found.
#[derive(Default)]
struct Ready {
    signal: bool,
    listener: bool,
    connections: Vec<u64>,
}

/// Lets the end of a child, and a request to end the keeper, wake the loop.
fn signals() -> io::Result<(UnixStream, Arc<AtomicBool>)> {
    let (wake, write) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    let terminate = Arc::new(AtomicBool::new(false));
    // The flag first: when the pipe wakes the loop it must be set.
    signal_hook::flag::register(SIGTERM, Arc::clone(&terminate))?;
    signal_hook::low_level::pipe::register(SIGTERM, write.try_clone()?)?;
    signal_hook::low_level::pipe::register(SIGCHLD, write)?;
    Ok((wake, terminate))
}

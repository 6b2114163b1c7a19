//! The driver's side: find or start the keeper, send requests, receive events.
//!
//! Blocking calls, with the descriptor exposed so that a driver can poll it beside its own. Only
//! the handshake and a start wait for the keeper, within limits. Many requests in one `send` are
//! one write, and the keeper answers them with one.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::cgroup;
use crate::error::{Error, Result};
use crate::fence;
use crate::frame::{self, Decoder};
use crate::lock::keeper_alive;
use crate::os::{self, Pid};
use crate::protocol::{Env, Event, Hello, PROTOCOL, Reply, Request, Version, Welcome};
use crate::start::{Config, LOG, launch};

/// The socket's name in the run directory.
pub(crate) const SOCKET: &str = "keeper.sock";

/// How long a living keeper may take to answer a handshake. It is one thread that never waits;
/// only a stopped or starved machine exceeds this.
const HANDSHAKE: Duration = Duration::from_secs(20);

/// The pause between two checks of a keeper that has the lock but no socket.
const PAUSE: Duration = Duration::from_millis(2);

/// The pause between two checks of a keeper that is ending its steps.
const PAUSE_ENDING: Duration = Duration::from_millis(20);

/// How long a keeper may take to end after its last message: it only has to exit.
const FAREWELL: Duration = Duration::from_secs(5);
/// The longest wait between two checks whether to stop waiting: too short for a person to notice.
const SLICE: Duration = Duration::from_millis(100);

/// How many times a start is tried when each new keeper is gone before it could be reached.
const START_TRIES: u32 = 3;

/// Bytes read from the socket at once; an exit report is about 400.
const READ_BYTES: usize = 8 << 10;

/// A connection to a run's keeper.
#[derive(Debug)]
pub struct Keeper {
    stream: UnixStream,
    decoder: Decoder,
    pending: VecDeque<Event>,
    buffer: Vec<u8>,
    welcome: Welcome,
    gone: bool,
    /// Whether the keeper said that it stays a while for its helpers.
    stays: bool,
    /// The keeper itself, if this process started it: to be waited for when it is gone.
    child: Option<Child>,
}

impl Keeper {
    /// Connects to the keeper of a run directory; `None` if no keeper lives. Then nothing is still
    /// starting, and the journal and `strays` are complete. After this call, drivers with a lower
    /// epoch cannot start anything here.
    pub fn connect(dir: &Path, epoch: u64, env: &Env) -> Result<Option<Self>> {
        Self::connect_unless(dir, epoch, env, &mut || false)
    }

    /// The same, but fails with [`Error::GivenUp`] when `stop` says so: a keeper that is ending may
    /// take as long as its steps need to end.
    pub fn connect_unless(
        dir: &Path,
        epoch: u64,
        env: &Env,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Self>> {
        // First of all: a keeper that an overtaken driver starts from now on finds it.
        fence::raise(dir, epoch)?;
        let what = format!("could not open {}", dir.display());
        let open = File::open(dir).map_err(Error::io(what))?;
        let path = os::socket_path(open.as_fd(), dir, SOCKET);
        let mut deadline = Instant::now() + HANDSHAKE;
        loop {
            let Some(pid) = keeper_alive(dir) else {
                return Ok(None);
            };
            // Without a socket it is starting or ending: the lock tells which.
            let mut pause = PAUSE;
            if let Ok(stream) = UnixStream::connect(&path) {
                match Self::handshake(stream, epoch, env, deadline, stop)? {
                    Greeting::Welcome(keeper) => return Ok(Some(*keeper)),
                    // It lives but is ending, which takes as long as its steps need.
                    Greeting::Closed => {
                        deadline = Instant::now() + HANDSHAKE;
                        pause = PAUSE_ENDING;
                    }
                    Greeting::Silence => {}
                }
            }
            if Instant::now() >= deadline {
                return Err(Error::Silent { pid, log: dir.join(LOG) });
            }
            if stop() {
                return Err(Error::GivenUp);
            }
            thread::sleep(pause);
        }
    }

    /// Connects to the keeper of a run directory (0700, existing), starting one if none lives:
    /// `exe args… <dir>` must call [`crate::keeper::main`]. A new keeper begins a new journal:
    /// read and record the old one first. If two drivers start one at once, both get the same.
    pub fn start(
        exe: &Path,
        args: &[&OsStr],
        dir: &Path,
        mark: &str,
        epoch: u64,
        env: &Env,
    ) -> Result<Self> {
        let what = format!("could not find {}", dir.display());
        let dir = &fs::canonicalize(dir).map_err(Error::io(what))?;
        for _ in 0..START_TRIES {
            if let Some(keeper) = Self::connect(dir, epoch, env)? {
                return Ok(keeper);
            }
            let config = Config { mark: mark.to_owned(), epoch };
            let (mut child, report) = launch(exe, args, dir, &config)?;
            if report.as_deref() == Some("ready")
                && let Some(mut keeper) = Self::connect(dir, epoch, env)?
            {
                keeper.child = Some(child);
                return Ok(keeper);
            }
            // It is not the keeper, and ends.
            let _ = child.wait();
            match report.as_deref() {
                // Killed before it could report, or broken: further tries will show.
                // Or another driver's keeper was faster: the next round connects to it.
                None | Some("ready" | "taken") => {}
                Some(other) => {
                    if let Some(highest) = other.strip_prefix("stale ").and_then(|n| n.parse().ok())
                    {
                        return Err(Error::Refused { highest });
                    }
                    return Err(Error::NoStart { reason: other.to_owned(), log: dir.join(LOG) });
                }
            }
        }
        let reason = "it ended as soon as it had started".to_owned();
        Err(Error::NoStart { reason, log: dir.join(LOG) })
    }

    /// What the keeper held when this connection began.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Sends requests, all in one write.
    pub fn send(&mut self, requests: &[Request]) -> Result<()> {
        if self.gone {
            return Err(Error::Gone);
        }
        self.buffer.clear();
        for request in requests {
            frame::encode(request, &mut self.buffer)?;
        }
        if !write_all(&self.stream, &self.buffer) {
            return Err(Error::Gone);
        }
        Ok(())
    }

    /// The connection, to be polled for readability; call [`Keeper::receive`] then.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Returns the events that have arrived. If there are none, waits: without limit for `None`,
    /// not at all for `Some(Duration::ZERO)`; after the limit the list is empty. Once the
    /// connection is lost, the last event is always `Gone`.
    pub fn receive(&mut self, block: Option<Duration>) -> Result<Vec<Event>> {
        let deadline = block.map(|limit| Instant::now() + limit);
        loop {
            // What came with the greeting is already in the decoder, where poll does not see it.
            self.decode()?;
            if !self.pending.is_empty() {
                return Ok(self.pending.drain(..).collect());
            }
            if self.gone {
                self.reap();
                return Ok(vec![Event::Gone]);
            }
            if !self.fill(deadline)? {
                return Ok(Vec::new());
            }
        }
    }

    /// Call this after `Leftovers`: waits for the keeper to end, which takes a moment, and removes
    /// what it leaves in the system. A keeper with helpers does that by itself.
    pub fn farewell(mut self, dir: &Path) {
        if self.stays {
            return;
        }
        let pid = Pid::try_from(self.welcome.pid).ok();
        let process = pid.and_then(os::one);
        let deadline = Instant::now() + FAREWELL;
        while !self.gone {
            let left = deadline.saturating_duration_since(Instant::now());
            if !matches!(self.receive(Some(left)), Ok(events) if !events.is_empty()) {
                return;
            }
        }
        if let Some(process) = process {
            os::wait_gone(&[process], deadline.saturating_duration_since(Instant::now()));
        }
        cgroup::tidy(dir);
    }

    /// Waits until something arrives and reads it; false when the time is over.
    fn fill(&mut self, deadline: Option<Instant>) -> Result<bool> {
        // Without a deadline the read itself waits; with one that is over, nothing does.
        let over = deadline.is_some_and(|deadline| deadline <= Instant::now());
        if deadline.is_some() && !over && !readable(&self.stream, deadline)? {
            return Ok(false);
        }
        let flags = if over { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        let mut chunk = [0; READ_BYTES];
        match rustix::net::recv(&self.stream, &mut chunk, flags) {
            Ok((0, _)) => self.gone = true,
            Ok((count, _)) => self.decoder.push(&chunk[..count]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(false),
            Err(_) => self.gone = true,
        }
        self.decode()?;
        if self.gone {
            self.pending.push_back(Event::Gone);
        }
        Ok(true)
    }

    /// Turns complete frames into events.
    fn decode(&mut self) -> Result<()> {
        while let Some(reply) = self.decoder.next::<Reply>()? {
            self.pending.push_back(match reply {
                Reply::Started(started) => Event::Started(started),
                Reply::NotStarted(not_started) => Event::NotStarted(not_started),
                Reply::Exited(exit) => Event::Exited(exit),
                Reply::Refused { highest, .. } => Event::Refused { highest },
                Reply::Known { key, state } => Event::Known { key, state },
                Reply::Leftovers { list, stays } => {
                    self.stays = stays;
                    Event::Leftovers(list)
                }
                Reply::Welcome(welcome) => {
                    self.welcome = welcome;
                    continue;
                }
            });
        }
        Ok(())
    }

    /// Introduces the driver.
    fn handshake(
        stream: UnixStream,
        epoch: u64,
        env: &Env,
        deadline: Instant,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Greeting> {
        let hello = Hello { protocol: PROTOCOL, epoch, env: env.clone() };
        let mut buffer = Vec::new();
        frame::encode(&Request::Hello(hello), &mut buffer)?;
        if !write_all(&stream, &buffer) {
            return Ok(Greeting::Closed);
        }
        let mut decoder = Decoder::default();
        let mut chunk = [0; READ_BYTES];
        loop {
            match decoder.next::<Reply>()? {
                Some(Reply::Welcome(welcome)) => {
                    let pending = VecDeque::new();
                    let (gone, stays, child) = (false, false, None);
                    let keeper =
                        Self { stream, decoder, pending, buffer, welcome, gone, stays, child };
                    return Ok(Greeting::Welcome(Box::new(keeper)));
                }
                Some(Reply::Refused { other: Some(other), .. }) => {
                    let Version { protocol, program, pid } = other;
                    return Err(Error::OtherVersion { protocol, program, pid });
                }
                Some(Reply::Refused { highest, .. }) => return Err(Error::Refused { highest }),
                Some(other) => return Err(Error::Protocol(format!("greeted with {other:?}"))),
                None => {}
            }
            if !readable(&stream, Some(deadline.min(Instant::now() + SLICE)))? {
                if stop() {
                    return Err(Error::GivenUp);
                }
                if Instant::now() >= deadline {
                    return Ok(Greeting::Silence);
                }
                continue;
            }
            match (&stream).read(&mut chunk) {
                Ok(0) => return Ok(Greeting::Closed),
                Ok(count) => decoder.push(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(Greeting::Closed),
            }
        }
    }

    /// Takes the exit status of a keeper that this process started, if it has ended.
    fn reap(&mut self) {
        if let Some(child) = &mut self.child
            && !matches!(child.try_wait(), Ok(None))
        {
            self.child = None;
        }
    }
}

/// How a keeper answered the greeting.
enum Greeting {
    Welcome(Box<Keeper>),
    /// It hung up: it is ending, or was killed.
    Closed,
    Silence,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.reap();
    }
}

/// Waits until the stream can be read, or the deadline.
fn readable(stream: &UnixStream, deadline: Option<Instant>) -> Result<bool> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = [PollFd::new(stream, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::io("could not wait for the keeper")(error.into())),
        }
    }
}

/// Writes everything, without SIGPIPE; false if the other side is gone.
fn write_all(stream: &UnixStream, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match rustix::net::send(stream, bytes, SendFlags::NOSIGNAL) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    /// Lost: people would be told to use `--takeover`, which does not help.
    #[test]
    fn a_keeper_of_another_version_is_named() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let other = Version { protocol: 9, program: "9.1.0".to_owned(), pid: 42 };
        let mut bytes = Vec::new();
        frame::encode(&Reply::Refused { highest: 1, other: Some(other) }, &mut bytes).unwrap();
        assert!(write_all(&theirs, &bytes));
        let deadline = Instant::now() + HANDSHAKE;
        let refused = Keeper::handshake(ours, 1, &Env::default(), deadline, &mut || false);
        let refused = refused.err().unwrap();
        let said = refused.to_string();
        assert!(said.contains("Piton 9.1.0") && said.contains("`kill 42`"), "{said}");
    }
}

//! The driver's side: find or start the keeper, send requests, hear events.
//!
//! Blocking calls, with the descriptor exposed so that a driver can poll it beside its own. Only
//! the handshake and a start wait for the keeper, within limits. Many requests in one `send` are
//! one write, and the keeper answers them with one.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fence;
use crate::frame::{self, Decoder};
use crate::lock::keeper_alive;
use crate::os;
use crate::protocol::{Env, Event, Hello, PROTOCOL, Reply, Request, Welcome};

/// The socket's name in the run directory.
pub(crate) const SOCKET: &str = "keeper.sock";

/// The name of the keeper's own log in the run directory.
pub(crate) const LOG: &str = "keeper.log";

/// What starts the one line by which a new keeper says how its start went. Other lines are passed
/// over, since the program around it might print.
pub(crate) const REPORT: &str = "piton-keeper: ";

/// How long a living keeper may take to answer a handshake. It is one thread that never waits;
/// only a stopped or starved machine exceeds this.
const HANDSHAKE: Duration = Duration::from_secs(20);

/// The pause between two looks at a keeper that has the lock but no socket yet (or no more).
const PAUSE: Duration = Duration::from_millis(2);

/// The pause between two looks at a keeper that is ending its steps.
const PAUSE_ENDING: Duration = Duration::from_millis(20);

/// How many times a start is tried when each new keeper is gone before it could be reached.
const START_TRIES: u32 = 3;

/// Bytes read from the socket at once; an exit report is about 400.
const READ_BYTES: usize = 8 << 10;

/// What a new keeper is told on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) mark: String,
    pub(crate) epoch: u64,
}

/// A connection to a run's keeper.
#[derive(Debug)]
pub struct Keeper {
    stream: UnixStream,
    decoder: Decoder,
    pending: VecDeque<Event>,
    buffer: Vec<u8>,
    welcome: Welcome,
    gone: bool,
    /// The keeper itself, if this process started it: to be waited for when it is gone.
    child: Option<Child>,
}

impl Keeper {
    /// Connects to the keeper of a run directory; none if no keeper lives, and then nothing that
    /// it started is still on its way: the journal and `strays` say what there is. From then on
    /// drivers with a lower epoch start nothing here.
    pub fn connect(dir: &Path, epoch: u64, env: &Env) -> Result<Option<Self>> {
        // Before anything is looked at: what an overtaken driver starts from now on finds it.
        fence::raise(dir, epoch)?;
        let what = format!("could not open {}", dir.display());
        let open = File::open(dir).map_err(Error::io(what))?;
        let path = os::socket_path(open.as_fd(), dir, SOCKET);
        let mut deadline = Instant::now() + HANDSHAKE;
        loop {
            let Some(pid) = keeper_alive(dir) else {
                return Ok(None);
            };
            // Without a socket it is starting or ending: the lock will say which.
            let mut pause = PAUSE;
            if let Ok(stream) = UnixStream::connect(&path) {
                match Self::handshake(stream, epoch, env, deadline)? {
                    Greeting::Welcome(keeper) => return Ok(Some(*keeper)),
                    // It lives but is on its way out, as long as its steps need to end.
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
            let mut child = launch(exe, args, dir, &config)?;
            let Some(report) = report(&mut child)? else {
                // Killed before it could speak, or broken: the tries will tell.
                drop(child.wait());
                continue;
            };
            match report.as_str() {
                "ready" => {
                    if let Some(mut keeper) = Self::connect(dir, epoch, env)? {
                        keeper.child = Some(child);
                        return Ok(keeper);
                    }
                    let _ = child.wait();
                }
                // Another driver's keeper was faster: the next round connects to it.
                "taken" => drop(child.wait()),
                other => {
                    let _ = child.wait();
                    if let Some(highest) = other.strip_prefix("stale ").and_then(|n| n.parse().ok())
                    {
                        return Err(Error::Refused { highest });
                    }
                    return Err(Error::NoStart { reason: other.to_owned(), log: dir.join(LOG) });
                }
            }
        }
        let reason = "each one ended as soon as it had started".to_owned();
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

    /// Gives what has arrived. If nothing has, waits: without limit for `None`, not at all for
    /// `Some(Duration::ZERO)`; after the limit the list is empty. When the connection is lost the
    /// last event is `Gone`, again and again.
    pub fn receive(&mut self, block: Option<Duration>) -> Result<Vec<Event>> {
        let deadline = block.map(|limit| Instant::now() + limit);
        loop {
            // What came together with the greeting is in the decoder, and no poll will tell of it.
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

    /// Waits until something arrives and takes it; false when the time is over.
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

    /// Turns whole frames into events.
    fn decode(&mut self) -> Result<()> {
        while let Some(reply) = self.decoder.next::<Reply>()? {
            self.pending.push_back(match reply {
                Reply::Started(started) => Event::Started(started),
                Reply::NotStarted(not_started) => Event::NotStarted(not_started),
                Reply::Exited(exit) => Event::Exited(exit),
                Reply::Refused { highest } => Event::Refused { highest },
                Reply::Known { key, state } => Event::Known { key, state },
                Reply::Leftovers { list } => Event::Leftovers(list),
                Reply::Welcome(welcome) => {
                    self.welcome = welcome;
                    continue;
                }
            });
        }
        Ok(())
    }

    /// Introduces the driver.
    fn handshake(stream: UnixStream, epoch: u64, env: &Env, deadline: Instant) -> Result<Greeting> {
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
                    let (gone, child) = (false, None);
                    let keeper = Self { stream, decoder, pending, buffer, welcome, gone, child };
                    return Ok(Greeting::Welcome(Box::new(keeper)));
                }
                Some(Reply::Refused { highest }) => return Err(Error::Refused { highest }),
                Some(other) => return Err(Error::Protocol(format!("greeted with {other:?}"))),
                None => {}
            }
            if !readable(&stream, Some(deadline))? {
                return Ok(Greeting::Silence);
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

/// How a keeper answered the introduction.
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

/// Starts a keeper process, its stderr on its log, its configuration on its stdin.
fn launch(exe: &Path, args: &[&OsStr], dir: &Path, config: &Config) -> Result<Child> {
    let path = dir.join(LOG);
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)
        .map_err(Error::io(format!("could not open {}", path.display())))?;
    let mut child = Command::new(exe)
        .args(args)
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(Error::io(format!("could not start {} as the keeper", exe.display())))?;
    let text = serde_json::to_vec(config).map_err(|error| Error::Protocol(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it is dead already, its report says so.
        let _ = stdin.write_all(&text);
    }
    Ok(child)
}

/// Reads how the start of a keeper went; nothing if it ended without a word.
fn report(child: &mut Child) -> Result<Option<String>> {
    let Some(stdout) = child.stdout.take() else {
        return Ok(None);
    };
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(Error::io("could not read from the new keeper"))?;
        if let Some(report) = line.strip_prefix(REPORT) {
            return Ok(Some(report.to_owned()));
        }
    }
    Ok(None)
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

/// Writes everything without a signal if the other side is gone; false then.
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

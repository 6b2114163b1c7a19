//! The keeper: the process that holds a run's children.
//!
//! The program calls only [`main`]. It detaches from its parent, takes the lock of the run
//! directory, reports the result on its standard output, and then runs one poll loop (`hold`) until
//! it is told to end or has had nothing to do for a while. It decides nothing: the driver decides
//! what runs.

mod attempt;
mod connection;
mod diagnostics;
mod ending;
mod hold;
mod launch;
mod log_files;
mod prepared;
mod requests;
mod shutdown;
mod stamps;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::cgroup::Group;
use crate::client::SOCKET;
use crate::error::{Error, Result};
use crate::fence;
use crate::journal::Journal;
use crate::lock;
use crate::os;
use crate::start::{Config, REPORT};

use diagnostics::Diagnostics;
use hold::Hold;

/// The most a configuration may have: a mark and a number.
const CONFIG_BYTES_MAX: u64 = 4 << 10;

/// Runs the keeper of a run directory until it ends. Call it first in a process that
/// [`crate::Keeper::start`] started; it closes what it inherited and leaves the session.
pub fn main(dir: &Path) -> Result<()> {
    os::close_inherited();
    os::ignore_signals();
    let prepared = configuration().and_then(|config| prepare(dir, &config));
    match prepared {
        Ok(Prepared::Ready(mut hold, group)) => {
            report("ready");
            silence(&hold)?;
            let ended = hold.run();
            // Under the lock: the next keeper of this run must find the group whole or gone.
            if let Some(group) = group.filter(|_| !hold.is_tidied_by_driver()) {
                group.leave();
            }
            ended
        }
        Ok(Prepared::Taken) => {
            report("taken");
            Ok(())
        }
        Err(error) => {
            match &error {
                Error::Refused { highest } => report(&format!("stale {highest}")),
                other => report(&other.to_string().replace('\n', " ")),
            }
            Err(error)
        }
    }
}

enum Prepared {
    Ready(Box<Hold>, Option<Group>),
    /// Another keeper has the lock.
    Taken,
}

/// Becomes the keeper, as far as the socket that drivers find.
fn prepare(dir: &Path, config: &Config) -> Result<Prepared> {
    let what = format!("could not enter {}", dir.display());
    rustix::process::chdir(dir).map_err(|error| Error::io(what)(error.into()))?;
    let here = Path::new(".");
    let Some(lock) = lock::take(here)? else {
        return Ok(Prepared::Taken);
    };
    // A driver that was overtaken must not even begin a new journal. Checked under the lock: the new
    // driver raises the fence before it checks the lock.
    let highest = Journal::read(here)?.epoch.max(fence::highest(here)?);
    if config.epoch < highest {
        return Err(Error::Refused { highest });
    }
    // Fails only for a process that leads a group already, which then has no terminal either.
    let _ = rustix::process::setsid();
    os::become_subreaper().map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => Error::Unsupported,
        _ => Error::io("could not become a subreaper")(error),
    })?;
    let diagnostics = Diagnostics::open(here)?;
    // Before anything is started, and after it is certain that we are the keeper.
    let group = Group::enter(here, &config.mark);
    if let Err(reason) = &group {
        diagnostics.say(&format!("no cgroup for this run: {reason}"));
    }
    let journal = Journal::create(here, &config.mark, highest)?;
    // The lock is ours, so whatever socket is there is a dead keeper's.
    let _ = fs::remove_file(SOCKET);
    let listener =
        UnixListener::bind(SOCKET).map_err(Error::io(format!("could not bind {SOCKET}")))?;
    listener.set_nonblocking(true).map_err(Error::io("could not listen"))?;
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(Error::io("could not open /dev/null"))?;
    let hold = Hold::new(lock, &config.mark, highest, journal, diagnostics, listener, null)?;
    Ok(Prepared::Ready(Box::new(hold), group.ok()))
}

fn configuration() -> Result<Config> {
    let mut text = Vec::new();
    let stdin = io::stdin().lock();
    stdin
        .take(CONFIG_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(Error::io("could not read the configuration"))?;
    serde_json::from_slice(&text)
        .map_err(|_| Error::Protocol("only a run can start a keeper".to_owned()))
}

/// Reports how the start went; the parent may already be gone.
fn report(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{REPORT}{text}");
    let _ = stdout.flush();
}

/// Closes the standard streams, so that nobody waits for the keeper to close them.
fn silence(hold: &Hold) -> Result<()> {
    let null: &File = hold.null();
    rustix::stdio::dup2_stdin(null)
        .and_then(|()| rustix::stdio::dup2_stdout(null))
        .and_then(|()| rustix::stdio::dup2_stderr(hold.diagnostics()))
        .map_err(|error| Error::io("could not detach")(error.into()))
}

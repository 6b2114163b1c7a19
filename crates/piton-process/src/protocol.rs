//! The messages between driver and keeper, as plain values.
//!
//! The messages travel as length-prefixed JSON (see `frame`) between two processes of the same
//! version family; `Exit` is also stored in the journal, so its tags are frozen strings. Nothing
//! here does input or output. Paths and environment values may be any bytes: on the wire each
//! byte is one character of U+0000..U+00FF, which leaves ASCII readable and loses nothing.

mod bytes;
mod pairs;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The protocol version that this build speaks.
pub const PROTOCOL: u32 = 4;

/// The variable in every child's environment that names the run it belongs to.
pub const MARK_VARIABLE: &str = "PITON_MARK";

/// The variable in every child's environment that names the attempt it belongs to (the plain
/// `PITON_ATTEMPT` is the number that steps are promised).
pub const ATTEMPT_VARIABLE: &str = "PITON_ATTEMPT_KEY";

/// The prefix of the keys of helpers; the keys of attempts contain a `#`.
pub const HELPER_KEY: &str = "helper-";

/// A full environment, as the driver has it; names and values may be any bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Env(#[serde(with = "pairs")] pub Vec<(OsString, OsString)>);

impl Env {
    /// Collects an environment, usually from `std::env::vars_os()`.
    pub fn new<K: Into<OsString>, V: Into<OsString>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// Finds the value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }
}

/// What a driver asks of the keeper. `Hello` is sent by the client when it connects; every other
/// request counts for the epoch of that `Hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Introduces the driver.
    Hello(Hello),
    /// Starts an attempt; answered by `NotStarted` or `Exited`, and by `Started` if it lives for
    /// more than a moment.
    Start(Box<Start>),
    /// Prepares everything of an attempt up to its program, in place of what was prepared before.
    /// Nothing of it runs, and there is no answer. Sent while its intent is being made durable.
    Prepare(Box<Start>),
    /// Starts the attempt that was prepared last; answered like a start.
    Go {
        /// The attempt.
        key: String,
    },
    /// Confirms that the exit of an attempt is recorded; the keeper then forgets it.
    Ack {
        /// The attempt.
        key: String,
    },
    /// Ends an attempt and its whole tree: SIGTERM, then SIGKILL after its grace.
    End {
        /// The attempt.
        key: String,
    },
    /// Sends SIGINT to the program of an attempt, and to nothing that it started.
    Interrupt {
        /// The attempt.
        key: String,
    },
    /// Ends every running attempt.
    EndAll,
    /// Asks what happened to an attempt; answered by `Known`.
    Probe {
        /// The attempt.
        key: String,
    },
    /// Starts a helper that belongs to no step (the notify command). If requested, it is answered
    /// by `NotStarted` or `Exited` with a key that begins with [`HELPER_KEY`], which is not
    /// acknowledged.
    Spawn(Spawn),
    /// Ends every attempt and what steps left behind (except what is in `keep`), answers
    /// `Leftovers`, lets helpers finish within their time, and ends the keeper.
    Shutdown,
}

/// The first message of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// See [`PROTOCOL`].
    pub protocol: u32,
    /// The driver's epoch; the keeper obeys only the highest it has seen.
    pub epoch: u64,
    /// The environment that all children start from.
    pub env: Env,
}

/// An attempt to start: its commands, where they run, and their limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Names the attempt; opaque, unique within the run, e.g. `P1/A/build#3`.
    pub key: String,
    /// Commands that run one after the other, the next only if the previous exited with 0.
    pub parts: Vec<Part>,
    /// The working directory.
    #[serde(with = "bytes")]
    pub dir: PathBuf,
    /// Variables added to the driver's environment (they win over it and over `unset`).
    pub env: Vec<(String, String)>,
    /// Variables removed from the driver's environment.
    pub unset: Vec<String>,
    /// Small files written before the first command starts.
    pub files: Vec<NewFile>,
    /// The lane's log of standard output, appended to; absolute.
    #[serde(with = "bytes")]
    pub stdout: PathBuf,
    /// The lane's log of standard error, appended to; absolute.
    #[serde(with = "bytes")]
    pub stderr: PathBuf,
    /// The longest the attempt (all parts) may take; 0 means no limit.
    pub timeout_ms: u64,
    /// The longest the attempt may go without writing to either log.
    pub idle_timeout_ms: Option<u64>,
    /// How long the tree has between SIGTERM and SIGKILL.
    pub grace_ms: u64,
    /// How many bytes of each stream stay on disk (first quarter, last three quarters);
    /// 0 means no limit.
    pub log_bytes_max: u64,
    /// Names of programs that may outlive the attempt and the run.
    pub keep: Vec<String>,
    /// The CPU on which the driver waits for the end of this attempt, if it waits for nothing else.
    #[serde(default)]
    pub near: Option<usize>,
}

/// One command of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The program and its arguments; a program without `/` is looked up in the child's `PATH`.
    pub argv: Vec<String>,
    /// What the command reads from standard input; without it, `/dev/null`.
    pub stdin: Option<String>,
}

/// A small file that the keeper writes before it starts an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewFile {
    /// Where, absolute: in the attempt's own folder (0700), which is created in an existing one.
    #[serde(with = "bytes")]
    pub path: PathBuf,
    /// The content of the new file (0600), which replaces an existing one.
    pub content: String,
}

/// A helper to start and forget.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables added to the driver's environment.
    pub env: Vec<(String, String)>,
    /// The working directory.
    #[serde(with = "bytes")]
    pub dir: PathBuf,
    /// Where both its streams are appended; absolute.
    #[serde(with = "bytes")]
    pub log: PathBuf,
    /// The longest it may take; 0 means the keeper's own limit for helpers.
    pub timeout_ms: u64,
    /// Whether its end is reported.
    #[serde(default)]
    pub tell: bool,
}

/// What the keeper sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Welcome(Welcome),
    Refused {
        highest: u64,
        /// Present if the reason is that the driver speaks another version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        other: Option<Version>,
    },
    Started(Started),
    NotStarted(NotStarted),
    Exited(Exit),
    Known {
        key: String,
        state: State,
    },
    /// `stays`: helpers still run, and the keeper stays for them.
    Leftovers {
        list: Vec<Leftover>,
        #[serde(default)]
        stays: bool,
    },
}

/// The version of a keeper, sent to a driver of another version. Frozen: all versions must agree on
/// this, on [`Hello`] and on the framing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    /// See [`PROTOCOL`].
    pub(crate) protocol: u32,
    /// The version of the program, for people.
    pub(crate) program: String,
    /// The keeper's process id.
    pub(crate) pid: u32,
}

impl Version {
    /// This one.
    pub(crate) fn own() -> Self {
        let program = env!("CARGO_PKG_VERSION").to_owned();
        Self { protocol: PROTOCOL, program, pid: std::process::id() }
    }
}

/// What a driver receives from the keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An attempt runs: sent once it has lived for a moment, never after its end.
    Started(Started),
    /// An attempt could not be started; nothing of it ran.
    NotStarted(NotStarted),
    /// An attempt is over, its tree included if it was ended; repeated to the next driver until
    /// acknowledged.
    Exited(Exit),
    /// A driver with a higher epoch took over (or the same epoch is connected elsewhere); this
    /// connection is dead.
    Refused {
        /// The highest epoch the keeper has seen.
        highest: u64,
    },
    /// The answer to `Probe`.
    Known {
        /// The attempt.
        key: String,
        /// What happened to it.
        state: State,
    },
    /// The answer to `Shutdown`: what steps had left running and is now ended.
    Leftovers(Vec<Leftover>),
    /// The connection is lost: the keeper exited or was killed. Read the journal.
    Gone,
}

/// The keeper's greeting: what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The keeper's process id.
    pub pid: u32,
    /// Attempts that run.
    pub children: Vec<Started>,
    /// Exits that nobody acknowledged yet; they are not pushed again on this connection.
    pub finished: Vec<Exit>,
}

/// A running attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The attempt.
    pub key: String,
    /// The process id of the part that runs, also its session and process group.
    pub pid: u32,
    /// Where its output starts in the standard output log.
    pub stdout_start: u64,
    /// Where its output starts in the standard error log.
    pub stderr_start: u64,
}

/// An attempt that could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotStarted {
    /// The attempt.
    pub key: String,
    /// Why, for people, with the next step.
    pub error: String,
    /// Whether the command itself was not found (a shell would exit with 127).
    pub command_not_found: bool,
}

/// How an attempt ended. Stored in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The attempt.
    pub key: String,
    /// The index of the last part that ran (or could not be started).
    pub part: usize,
    /// When that part began, if it was not the first: nanoseconds since 1970 by the clock that
    /// files are stamped with. What an earlier part wrote is stamped before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_began_ns: Option<i64>,
    /// The exit code, if the last part exited by itself.
    pub code: Option<i32>,
    /// The signal that ended the last part.
    pub signal: Option<i32>,
    /// Why it ended.
    pub cause: Cause,
    /// Why a later part could not be started, when `cause` is `NotStarted`.
    pub error: Option<String>,
    /// When it ended, wall clock, milliseconds since 1970.
    pub ended_ms: u64,
    /// How long it took by the monotonic clock, not counting suspended time.
    pub duration_ms: u64,
    /// The attempt's bytes in the standard output log.
    pub stdout: Range,
    /// The attempt's bytes in the standard error log.
    pub stderr: Range,
    /// What was dropped from the logs to keep them within their limit.
    pub dropped: Dropped,
}

impl Exit {
    /// Whether all parts ran and the last exited with 0, by itself.
    pub fn success(&self) -> bool {
        self.code == Some(0) && self.cause == Cause::Exited
    }
}

/// Why an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// By itself (or by a signal that was not ours).
    #[serde(rename = "exited")]
    Exited,
    /// It took longer than `timeout_ms`.
    #[serde(rename = "timeout")]
    Timeout,
    /// It wrote nothing for `idle_timeout_ms`.
    #[serde(rename = "idle-timeout")]
    IdleTimeout,
    /// A driver asked for it, or the keeper was told to end.
    #[serde(rename = "ended")]
    Ended,
    /// A later part could not be started; see `Exit::error`.
    #[serde(rename = "not-started")]
    NotStarted,
    /// Written by a newer version.
    #[serde(rename = "unknown", other)]
    Unknown,
}

/// A range of bytes in a log file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The first byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl Range {
    /// How many bytes.
    pub fn len(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The bytes of an attempt that are no longer in the logs (they read as zeros).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Of standard output.
    pub stdout: Option<Range>,
    /// Of standard error.
    pub stderr: Option<Range>,
}

/// What the keeper knows about an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It runs.
    Running,
    /// It is over and not yet acknowledged.
    Finished(Exit),
    /// It is over and was acknowledged.
    Acknowledged,
    /// This keeper never started it.
    NotStarted,
}

/// A process that a step left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its process id.
    pub pid: u32,
    /// Its program's name.
    pub name: String,
    /// The attempt that left it, if that is known.
    pub key: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    /// A step in a directory with a name that is not UTF-8 must run there and nowhere else.
    #[test]
    fn any_bytes_survive_the_wire() -> Result<(), serde_json::Error> {
        let odd = OsString::from_vec((1..=255).collect());
        let env = Env::new([(odd.clone(), odd.clone())]);
        let hello = Request::Hello(Hello { protocol: PROTOCOL, epoch: 1, env });
        let text = serde_json::to_string(&hello)?;
        assert_eq!(serde_json::from_str::<Request>(&text)?, hello);
        let start = Start { dir: PathBuf::from(odd), key: "schlüssel".into(), ..Start::default() };
        let text = serde_json::to_string(&start)?;
        assert_eq!(serde_json::from_str::<Start>(&text)?, start);
        Ok(())
    }

    /// An exit written by a newer version must still read as an exit.
    #[test]
    fn an_unknown_cause_is_tolerated() -> Result<(), serde_json::Error> {
        assert_eq!(serde_json::from_str::<Cause>("\"eaten\"")?, Cause::Unknown);
        Ok(())
    }
}

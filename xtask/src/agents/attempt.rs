//! One process of an agent program: started with an invocation of its adapter, its stream read as it
//! comes, ended with all its descendants.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use piton_agents::stream::Clock;
use piton_agents::{Exit, Invocation, Program, Reader, Record, Said, Totals, Verdict};
use piton_core::Timestamp;
use rustix::process::{Pid, Signal, kill_process};

use super::Broken;
use super::subject::Env;

/// Lines that wait to be read. A program that is ahead of us by more waits itself.
const LINES_MAX: usize = 256;

/// How often is looked whether it is time to kill.
const LOOK: Duration = Duration::from_millis(20);

/// A program that has not ended by then does not: on a loaded machine they need up to a minute.
const ENDS_WITHIN: Duration = Duration::from_secs(180);

/// Descendants may hold the stream open when the program has ended: what they say belongs to nobody.
const DRAINS_WITHIN: Duration = Duration::from_secs(5);

/// What is left of a process for a case to look at.
#[derive(Debug)]
pub(super) struct Attempt {
    /// How it went, as the adapter says.
    pub(super) verdict: Verdict,
    /// The session that the stream named.
    pub(super) session: Option<String>,
    /// What it used.
    pub(super) totals: Totals,
    /// What it said.
    pub(super) said: Vec<Said>,
    /// What it was doing when it ended.
    pub(super) in_flight: Vec<String>,
    /// Its exit code.
    pub(super) code: Option<i32>,
    /// The last lines of standard error.
    pub(super) errors: Vec<String>,
}

/// Where and with what a process runs.
pub(super) struct Place {
    /// Its working directory.
    pub(super) work: PathBuf,
    /// Its home; every process that has this in its environment belongs to the case.
    pub(super) home: PathBuf,
    /// All its variables.
    pub(super) env: Env,
}

/// When it ends other than by itself.
#[derive(Clone, Copy)]
pub(super) enum Ending<'a> {
    /// Never.
    Itself,
    /// All its processes are killed as soon as this is so, and it has said what it does, if it does.
    Killed(&'a dyn Fn(bool) -> bool),
    /// A hook stops it, which was asked to before.
    Asked,
    /// It is interrupted as soon as an operation has ended.
    Interrupted,
}

/// Runs a process to its end.
pub(super) fn run(
    place: &Place,
    program: &dyn Program,
    invocation: &Invocation,
    prompt: &str,
    ending: Ending<'_>,
) -> Result<Attempt, Broken> {
    let find = |session: Option<&str>| record(place, &program.record(session?)?);
    // A session that goes on is recorded where it began; what is there is of earlier processes.
    let known = find(invocation.session.as_deref()).map(fs::read_to_string).transpose()?;
    let (mut child, lines) = start(place, invocation, prompt)?;
    let mut following =
        Following { reader: program.reader(), said: Vec::new(), last: String::new() };
    let is_asked = follow(place, &mut child, &lines, &mut following, ending)?;
    let status = child.wait()?;
    let session = following.session();
    if let Some(file) = find(session.as_deref()) {
        let text = fs::read_to_string(file)?;
        let before = known.as_deref().unwrap_or_default();
        for line in text.strip_prefix(before).unwrap_or(&text).lines() {
            let said = following.reader.record(line);
            following.said.extend(said);
        }
    }
    let errors = last_lines(&place.home.join("stderr"));
    let exit = Exit { code: status.code(), is_asked };
    let Following { reader, said, .. } = following;
    Ok(Attempt {
        verdict: reader.verdict(exit, &errors, clock()),
        session,
        totals: reader.totals(),
        in_flight: reader.in_flight(),
        said,
        code: status.code(),
        errors,
    })
}

/// A stream as far as it was read.
struct Following {
    reader: Box<dyn Reader>,
    said: Vec<Said>,
    last: String,
}

impl Following {
    fn hear(&mut self, line: String) {
        self.said.extend(self.reader.line(&line));
        self.last = line;
    }

    /// Whether an operation is under way, as far as the program has said.
    fn is_at_work(&self) -> bool {
        !self.reader.in_flight().is_empty()
    }

    /// Whether an operation has ended, and none is under way.
    fn is_between(&self) -> bool {
        let is_operation =
            |said: &Said| matches!(said, Said::Doing(what) if what.starts_with("Bash"));
        self.said.iter().any(is_operation) && self.reader.in_flight().is_empty()
    }

    fn session(&self) -> Option<String> {
        self.said.iter().find_map(|said| match said {
            Said::Session(id) => Some(id.clone()),
            _ => None,
        })
    }
}

fn start(
    place: &Place,
    invocation: &Invocation,
    prompt: &str,
) -> Result<(Child, Receiver<String>), Broken> {
    let (program, args) =
        invocation.command.split_first().ok_or(Broken::from("there is no command"))?;
    let mut command = Command::new(program);
    command.args(args).current_dir(&place.work).env_clear();
    command.envs(place.env.iter().map(|(name, value)| (name, value)));
    command.envs(invocation.env.iter().map(|(name, value)| (name, value)));
    let errors = File::create(place.home.join("stderr"))?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
    let mut child = command.process_group(0).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(prompt.as_bytes())?;
    }
    let stdout = child.stdout.take().ok_or(Broken::from("there is no standard output"))?;
    let (sender, lines) = sync_channel(LINES_MAX);
    let mut log = File::options().create(true).append(true).open(place.home.join("stdout"))?;
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = writeln!(log, "{line}");
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    Ok((child, lines))
}

/// Reads until the program has ended; whether it was asked to.
fn follow(
    place: &Place,
    child: &mut Child,
    lines: &Receiver<String>,
    following: &mut Following,
    ending: Ending<'_>,
) -> Result<bool, Broken> {
    let begun = Instant::now();
    let mut is_asked = matches!(ending, Ending::Asked);
    let mut ended: Option<Instant> = None;
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => following.hear(line),
            Err(RecvTimeoutError::Disconnected) if ended.is_some() => return Ok(is_asked),
            Err(_) if ended.is_some_and(|since| since.elapsed() > DRAINS_WITHIN) => {
                return Ok(is_asked);
            }
            Err(_) => {
                if ended.is_none() && child.try_wait()?.is_some() {
                    ended = Some(Instant::now());
                }
                thread::park_timeout(LOOK);
            }
        }
        match ending {
            Ending::Killed(is_due) if ended.is_none() && is_due(following.is_at_work()) => {
                kill_all(&place.home)?;
            }
            Ending::Interrupted if !is_asked && following.is_between() => {
                is_asked = true;
                signal(child.id(), Signal::INT);
            }
            _ => {}
        }
        if begun.elapsed() > ENDS_WITHIN {
            kill_all(&place.home)?;
            let (secs, last) = (ENDS_WITHIN.as_secs(), &following.last);
            return Err(Broken::from(format!("it did not end within {secs} s; last line: {last}")));
        }
    }
}

/// Kills every process that has this home, until there is none.
pub(super) fn kill_all(home: &Path) -> Result<(), Broken> {
    let begun = Instant::now();
    loop {
        let living = of(home);
        if living.is_empty() {
            return Ok(());
        }
        for pid in living {
            signal(pid, Signal::KILL);
        }
        if begun.elapsed() > ENDS_WITHIN {
            return Err(Broken::from("some processes cannot be killed"));
        }
        thread::park_timeout(LOOK);
    }
}

/// The living processes that have this home in their environment.
pub(super) fn of(home: &Path) -> Vec<u32> {
    let wanted = format!("HOME={}", home.display());
    let has_home = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        // A process that has ended and was not waited for has no environment.
        environ.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(has_home).collect()
}

/// The processes with this home whose program has this name.
pub(super) fn named(home: &Path, name: &str) -> Vec<u32> {
    let is_named = |pid: &u32| {
        let found = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        // node calls its main thread so.
        found.trim() == name || found.trim() == "MainThread"
    };
    of(home).into_iter().filter(is_named).collect()
}

/// Kills one process.
pub(super) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // One that is gone meanwhile is no error.
        let _ = kill_process(pid, signal);
    }
}

/// The file in which a program records its session.
fn record(place: &Place, wanted: &Record) -> Option<PathBuf> {
    let set = place.env.iter().find(|(name, _)| *name == wanted.variable);
    let root = set.map_or_else(|| place.home.join(wanted.usual), |(_, value)| value.into());
    let mut folders = vec![root.join(wanted.folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().is_some_and(|path| path.ends_with(&wanted.ending)) {
                return Some(path);
            }
        }
    }
    None
}

/// Lines of standard error that an adapter gets to see.
const ERROR_LINES: usize = 20;

fn last_lines(file: &Path) -> Vec<String> {
    let bytes = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[lines.len().saturating_sub(ERROR_LINES)..].to_vec()
}

fn clock() -> Clock {
    Clock { now: now(), offset_secs: 0 }
}

/// Now; programs of the checks have no time zone, so UTC is theirs too.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

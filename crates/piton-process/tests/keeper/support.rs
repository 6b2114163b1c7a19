//! What all tests here share: a run directory with a keeper, and waiting for conditions.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use piton_process::{Env, Event, Exit, Keeper, Part, Request, Start, cgroup, keeper_alive, strays};

/// How long a condition may take on a loaded machine before the test gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Not a test: the keeper, when this program is started with a run directory as last argument.
#[test]
#[ignore = "the entry of the keeper process"]
fn keeper_entry() {
    if let Some(dir) = std::env::args_os().next_back().filter(|arg| Path::new(arg).is_dir()) {
        piton_process::keeper::main(Path::new(&dir)).unwrap();
    }
}

/// Not a test: says whether it runs inside a step.
#[test]
#[ignore = "run by a step of another test"]
fn inside_entry() {
    let dir = std::env::args_os().next_back().unwrap();
    let above = strays::keepers_above(&[Path::new(&dir)]).into_iter().next();
    fs::write(Path::new(&dir).join("inside"), format!("{}", above.is_some())).unwrap();
}

/// The words that make this program run one of the entries above.
pub(crate) fn entry(name: &str) -> Vec<String> {
    ["--exact", "--ignored", "--nocapture", name].map(str::to_owned).into()
}

/// A run directory; its keeper and all processes of it are ended with it.
pub(crate) struct Run {
    dir: tempfile::TempDir,
    pub(crate) mark: String,
}

impl Run {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::tempdir().unwrap();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { dir, mark: format!("test-{}-{count}", std::process::id()) }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Connects, starting a keeper if there is none.
    pub(crate) fn keeper(&self, epoch: u64) -> Keeper {
        self.try_keeper(epoch).unwrap()
    }

    pub(crate) fn try_keeper(&self, epoch: u64) -> piton_process::Result<Keeper> {
        self.keeper_in(self.dir(), epoch)
    }

    pub(crate) fn keeper_in(&self, dir: &Path, epoch: u64) -> piton_process::Result<Keeper> {
        let words = entry("support::keeper_entry");
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        let exe = std::env::current_exe().unwrap();
        Keeper::start(&exe, &words, dir, &self.mark, epoch, &env())
    }

    /// A shell step with generous limits.
    pub(crate) fn step(&self, key: &str, script: &str) -> Start {
        let argv = ["sh", "-c", script].map(str::to_owned).into();
        Start {
            key: key.into(),
            parts: vec![Part { argv, stdin: None }],
            dir: self.dir().to_owned(),
            stdout: self.path("out"),
            stderr: self.path("err"),
            timeout_ms: 60_000,
            grace_ms: 60_000,
            ..Start::default()
        }
    }

    /// Kills the keeper and waits until it is gone.
    pub(crate) fn kill_keeper(&self) {
        signal(keeper_alive(self.dir()).unwrap(), rustix::process::Signal::KILL);
        until("the keeper is dead", || keeper_alive(self.dir()).is_none());
    }

    /// A number that a step wrote to a file.
    pub(crate) fn pid(&self, name: &str) -> u32 {
        until("a step wrote its pid", || self.read(name).ends_with('\n'));
        self.read(name).trim().parse().unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(pid) = keeper_alive(self.dir()) {
            signal(pid, rustix::process::Signal::KILL);
        }
        strays::end(&strays::find(&self.mark, None, &[]));
        cgroup::disband(self.dir());
    }
}

/// The environment that drivers in these tests have.
pub(crate) fn env() -> Env {
    Env::new([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("BASE", "base"), ("GONE", "gone")])
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, signal);
}

/// Whether a process is there and not merely unburied.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// Waits for a condition.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "gave up waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn start(keeper: &mut Keeper, step: Start) {
    keeper.send(&[Request::Start(Box::new(step))]).unwrap();
}

/// Waits for an event that `pick` takes; others are passed over.
pub(crate) fn event<T>(keeper: &mut Keeper, mut pick: impl FnMut(Event) -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let events = keeper.receive(Some(left)).unwrap();
        assert!(!events.is_empty(), "no event came");
        let gone = events.contains(&Event::Gone);
        // Events that came together with the one wanted are not wanted in these tests.
        if let Some(found) = events.into_iter().find_map(&mut pick) {
            return found;
        }
        assert!(!gone, "the keeper went away");
    }
}

pub(crate) fn exit(keeper: &mut Keeper) -> Exit {
    event(keeper, |event| match event {
        Event::Exited(exit) => Some(exit),
        Event::NotStarted(not) => panic!("{not:?}"),
        _ => None,
    })
}

pub(crate) fn run(keeper: &mut Keeper, step: Start) -> Exit {
    start(keeper, step);
    exit(keeper)
}

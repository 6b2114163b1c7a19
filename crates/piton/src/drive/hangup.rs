//! A terminal that closes under a driver: the run continues in the background, its words go to a file,
//! and the next terminal says what happened meanwhile.
//!
//! The driver itself goes on: it keeps its lease and its keeper, so nothing is taken over. What a session
//! manager ends with SIGKILL is a killed driver like any other.

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use piton_core::event::Verdict;
use piton_core::summary::standing_verdict;
use piton_core::{Event, RunState, Timestamp, apply, remedy};
use piton_engine::store::Loaded;
use piton_engine::{Note, Observer, Store};
use piton_view::Tally;
use piton_world::Signals;

use crate::context::{Context, now};
use crate::ui::{self, Live, Stream};

/// The file in the folder of a run that says when its terminal closed, until somebody was told.
const CLOSED_FILE: &str = "terminal-closed";
/// When all terminals of a run closed, one in each line.
const ALL_CLOSED_FILE: &str = "terminals-closed";
/// Where the words of a driver in the background go.
const LOG_FILE: &str = "driver.log";

/// Whether the terminal of this process closed.
static GONE: AtomicBool = AtomicBool::new(false);
/// When it did.
static GONE_AT: AtomicI64 = AtomicI64::new(0);

/// Whether the terminal of this process closed.
pub fn is_gone() -> bool {
    GONE.load(Ordering::Relaxed)
}

/// Lets a driver outlive its terminal; a run that begins after it closed is told of like the one before.
pub fn outlive(signals: &mut Signals, run_dir: &Path) {
    if is_gone() {
        // Best effort, as it is when the terminal closes.
        let _ = mark(run_dir);
    }
    // Asked now: a terminal that is gone is not known as one any more.
    let words = [std::io::stdout().is_terminal(), std::io::stderr().is_terminal()];
    let run_dir = run_dir.to_owned();
    signals.on_hangup(move || {
        if !GONE.swap(true, Ordering::Relaxed) {
            GONE_AT.store(now().0, Ordering::Relaxed);
            // Best effort: a run whose words cannot be kept goes on all the same.
            let _ = leave(&run_dir, words);
        }
    });
}

/// Leaves the terminal: words go to the log of the run, and when it closed is written down.
fn leave(run_dir: &Path, [stdout, stderr]: [bool; 2]) -> std::io::Result<()> {
    mark(run_dir)?;
    let log = OpenOptions::new().create(true).append(true).open(run_dir.join(LOG_FILE))?;
    if stdout {
        rustix::stdio::dup2_stdout(&log)?;
    }
    if stderr {
        rustix::stdio::dup2_stderr(&log)?;
    }
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // It fails only for the leader of a process group, which no other terminal can reach.
    let _ = rustix::process::setsid();
    ui::say("the terminal was closed; the run continues in the background");
    Ok(())
}

/// Writes down, in the folder of a run, when the terminal of its driver closed.
fn mark(run_dir: &Path) -> std::io::Result<()> {
    let at = GONE_AT.load(Ordering::Relaxed);
    std::fs::create_dir_all(run_dir)?;
    std::fs::write(run_dir.join(CLOSED_FILE), at.to_string())?;
    let mut all =
        OpenOptions::new().create(true).append(true).open(run_dir.join(ALL_CLOSED_FILE))?;
    all.write_all(format!("{at}\n").as_bytes())
}

/// The live picture as long as there is a terminal, lines in the log afterwards.
pub struct Screen {
    live: std::mem::ManuallyDrop<Live>,
    lines: Stream,
}

impl Screen {
    /// Begins with the picture.
    pub fn new(live: Live) -> Self {
        Self { live: std::mem::ManuallyDrop::new(live), lines: Stream::words() }
    }

    fn now(&mut self) -> &mut dyn Observer {
        if is_gone() { &mut self.lines } else { &mut *self.live }
    }
}

impl Observer for Screen {
    fn event(&mut self, seq: u64, at: Timestamp, event: &Event, state: &RunState) {
        self.now().event(seq, at, event, state);
    }

    fn note(&mut self, note: &Note) {
        self.now().note(note);
    }

    fn tick(&mut self, now: Timestamp, state: &RunState) {
        self.now().tick(now, state);
    }

    fn wants_ticks(&self) -> bool {
        !is_gone()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if !is_gone() {
            self.live.clear();
        }
    }
}

/// How many terminals closed under drivers of a run.
pub fn closed_terminals(run_dir: &Path) -> usize {
    let all = std::fs::read_to_string(run_dir.join(ALL_CLOSED_FILE));
    all.map_or(0, |all| all.lines().count())
}

/// Says on a terminal what happened to a run since its own one closed, once it is not driven any more.
pub fn tell(context: &Context, store: &mut Store, loaded: &Loaded) {
    if context.json || !std::io::stderr().is_terminal() {
        return;
    }
    let (run_id, run_dir) = (&loaded.row.run_id, context.run_dir(&loaded.row.run_id));
    let file = run_dir.join(CLOSED_FILE);
    let closed = std::fs::read_to_string(&file).ok().and_then(|at| at.trim().parse().ok());
    let Some(closed) = closed.map(Timestamp) else { return };
    let at = ui::place().clock(closed);
    ui::say(format!("the terminal of run {run_id} was closed at {at}; the run continued"));
    let (mut tally, mut state) = (Tally::default(), RunState::default());
    tally.no_next = true;
    let told = store.each_event(&loaded.row, 0, |seq, at, event| {
        let applied = apply(&mut state, at, event).is_ok();
        if applied && at >= closed {
            tally.event(seq, at, event, &state);
        }
    });
    if told.is_err() {
        return;
    }
    tally.course.terminals_closed = closed_terminals(&run_dir);
    if Context::driver_lives(&loaded.row) {
        ui::say(
            remedy![Words "it is still running; ", Piton "attach {run_id}", Words " watches it"],
        );
        return;
    }
    let verdict = standing_verdict(&state).unwrap_or(Verdict::Interrupted);
    let (logs, view) = (run_dir.join("logs"), Context::view(loaded));
    ui::say_as_is(tally.summary(&view, verdict, &logs).render(&ui::stderr()).trim_end());
    // Said once; what cannot be removed is said again.
    let _ = std::fs::remove_file(file);
}

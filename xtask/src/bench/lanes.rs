//! (h) A phase with many lanes that do nothing: what the driver itself adds to each, apart from git.
//!
//! Its own time is the processor time of its process, read from `/proc` after it ended and before
//! it is buried: that of the git commands it waited for is kept apart there. What starting a command
//! and reading its answer costs the one who starts it is git's too: it is measured here, with as
//! many starts of `git version`, and taken off. How long the driver waited for git is told beside,
//! from git's own trace.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::fresh::Fresh;
use super::measure::{median, millis, quiet, time, time_command};
use super::table::{Outcome, Row};
use super::{Bench, Measured, tree};

/// Lanes of the phase.
const LANES: u32 = 32;
/// Rounds; each takes some seconds.
const ROUNDS: usize = 5;
/// Most milliseconds of the driver's own for each lane.
const LIMIT: f64 = 5.0;
/// Commands timed to see what starting git costs beyond what its trace shows.
const STARTS: usize = 30;
/// Commands started to see what that costs the one who starts them.
const CALLS: u32 = 200;
/// Milliseconds of a tick in `/proc`: the kernel shows a hundred a second to every program.
const TICK_MS: f64 = 10.0;
/// How the gits that stay are called, as their traces say it.
const STAY: [&str; 2] = ["--batch-command", r#""piton: lane","--stdin""#];
/// The variable that lets git write what it does, as JSON, into files of a folder.
const TRACE: &str = "GIT_TRACE2_EVENT";

/// One run, in milliseconds for each lane.
#[derive(Clone, Copy, Default)]
struct Sample {
    own: f64,
    wall: f64,
    git: f64,
    calls: f64,
}

/// Measures runs of the phase.
pub(super) fn measure(bench: &Bench) -> Measured {
    let start = start_cost(bench)?;
    let call = call_cost(bench)?;
    let mut samples = Vec::new();
    for _ in 0..bench.rounds(ROUNDS) {
        samples.push(run(bench)?);
    }
    let of = |field: fn(&Sample) -> f64| median(samples.iter().map(field).collect());
    let own = of(|s| s.own).unwrap_or_default();
    let (wall, git) = (of(|s| s.wall).unwrap_or_default(), of(|s| s.git).unwrap_or_default());
    let calls = of(|s| s.calls).unwrap_or_default();
    let git = git + calls * start;
    let remark = format!(
        "processor time in ms, {own:.1} with starting git; a lane takes {wall:.0} ms, {git:.0} of \
         them in {calls:.0} calls of git"
    );
    Ok(vec![Row {
        id: "h",
        what: "32 lanes that do nothing, driver's own time per lane".to_owned(),
        floor_name: "",
        result: Outcome::Counted(own - calls * call),
        limit: Some(LIMIT),
        remark,
    }])
}

/// What the start of a git command costs beyond what its trace shows, in milliseconds.
fn start_cost(bench: &Bench) -> Result<f64, String> {
    let dir = bench.folder("starts")?;
    let mut samples = Vec::new();
    for number in 0..STARTS {
        let trace = bench.folder(&format!("trace-{number}"))?;
        let mut command = quiet(Path::new("git"), &["version"], &dir);
        let wall = time_command(command.env(TRACE, &trace))?;
        samples.push(wall - traced(&trace)?.0);
        fs::remove_dir_all(&trace).map_err(|e| e.to_string())?;
    }
    Ok(median(samples).unwrap_or_default())
}

/// The processor time that starting a git command and reading its answer costs the one who does so,
/// in milliseconds.
fn call_cost(bench: &Bench) -> Result<f64, String> {
    let dir = bench.folder("calls")?;
    let before = own_so_far();
    for _ in 0..CALLS {
        let output = Command::new("git").arg("version").current_dir(&dir).output();
        output.map_err(|e| e.to_string())?;
    }
    Ok((own_so_far() - before) / f64::from(CALLS))
}

/// The processor time of this process, in milliseconds.
fn own_so_far() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    millis(Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default()))
}

fn run(bench: &Bench) -> Result<Sample, String> {
    // Creating files costs processor time too, and on a worn file system much of it.
    let fresh = Fresh::mount(&bench.folder("lanes-fresh")?);
    let below = match &fresh {
        Ok(fresh) => fresh.dir().to_owned(),
        Err(_) => bench.folder("lanes")?,
    };
    let (dir, trace) = (below.join("repo"), below.join("trace"));
    for folder in [&dir, &trace] {
        fs::create_dir(folder).map_err(|e| e.to_string())?;
    }
    let write = |name: &str, text: &str| fs::write(dir.join(name), text).map_err(|e| e.to_string());
    write("phase.md", &document())?;
    write("piton.toml", "[defaults]\nagent = \"none\"\n\n[agents.none]\ncommand = [\"true\"]\n")?;
    super::measure::repository(&dir)?;
    tree::git(&dir, &["add", "-A"])?;
    let who = ["-c", "user.name=b", "-c", "user.email=b@localhost"];
    tree::git(&dir, &[&who[..], &["commit", "--quiet", "-m", "all"]].concat())?;
    let mut command = quiet(&bench.piton, &["run", "phase.md"], &dir);
    let (ended, wall) = time(|| own_time(command.env(TRACE, &trace)));
    let (own, lanes) = (ended?, f64::from(LANES));
    let (git, calls) = traced(&trace)?;
    Ok(Sample {
        own: own / lanes,
        wall: millis(wall) / lanes,
        git: git / lanes,
        calls: calls / lanes,
    })
}

/// A phase document whose tasks do nothing.
fn document() -> String {
    let mut text = "# P: Bench\n\n## Lane Index & Dependencies\n\n".to_owned();
    for lane in 1..=LANES {
        let _ = write!(text, "- SL-{lane} -- Lane {lane}\n  - Parallel-safe: yes\n\n");
    }
    text.push_str("## Lanes\n\n");
    for lane in 1..=LANES {
        let _ = write!(
            text,
            "### SL-{lane} -- Lane {lane}\n\n\
             | Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) |\n\
             |---|---|---|---|---|---|\n\
             | T{lane} | impl | - | - | - | - |\n\n"
        );
    }
    text
}

/// The processor time that a command itself needed, without its children, in milliseconds.
fn own_time(command: &mut Command) -> Result<f64, String> {
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let id = child.id();
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).ok_or("a child has an id")?;
    // Only looked at: its times are gone once it is waited for.
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), look).map_err(|e| e.to_string())?;
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).map_err(|e| e.to_string())?;
    let status = child.wait().map_err(|e| e.to_string())?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}"));
    }
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<u32>().ok());
    let (user, system) = ticks(11).zip(ticks(12)).ok_or("/proc has no times")?;
    Ok(f64::from(user + system) * TICK_MS)
}

/// How long git commands took by their traces, in milliseconds, and how many there were; those
/// that git itself started are within the others.
fn traced(folder: &Path) -> Result<(f64, f64), String> {
    let (mut took, mut calls) = (0.0, 0.0);
    for entry in fs::read_dir(folder).map_err(|e| e.to_string())?.flatten() {
        let text = fs::read_to_string(entry.path()).map_err(|e| e.to_string())?;
        // Those that answer questions and move refs live as long as the run, and mostly wait.
        if STAY.iter().any(|part| text.contains(part)) {
            continue;
        }
        let events = text.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
        let ends = events.filter(|event| event["event"] == "atexit");
        for end in ends.filter(|end| !end["sid"].as_str().is_some_and(|sid| sid.contains('/'))) {
            took += end["t_abs"].as_f64().unwrap_or_default() * 1000.0;
            calls += 1.0;
        }
    }
    Ok((took, calls))
}

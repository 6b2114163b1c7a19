//! (c) A cold `piton status`: against ninja on as many finished edges, with a long history against a
//! short one, and the same right after the driver was killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use piton_ledger::DATABASE_FILE;

use super::fixture::{Driven, RUN};
use super::measure::{in_turn, quiet, repository, time_command};
use super::table::{Outcome, Row};
use super::{Bench, Measured, role_words};

/// Finished steps and edges.
const STEPS: usize = 1000;
/// Steps of the runs with a history: few enough that all are done within the shorter one.
const HISTORY_STEPS: usize = 400;
/// Events of the short and of the long history.
const EVENTS: [u64; 2] = [1_000, 100_000];
/// Events in one commit while a history is written.
const EVENTS_PER_COMMIT: usize = 3_000;
/// Rounds; each takes milliseconds.
const ROUNDS: usize = 60;
/// Commits of the driver before it is killed: enough to leave a WAL of the usual size.
const COMMITS_BEFORE_KILL: usize = 300;
/// Most times ninja may take.
const NINJA_LIMIT: f64 = 0.7;
/// Most times a short history may take.
const HISTORY_LIMIT: f64 = 1.1;

/// Measures all three.
pub(super) fn measure(bench: &Bench) -> Measured {
    let mut rows = vec![against_ninja(bench)?];
    let mut dirs = Vec::new();
    for events in EVENTS {
        let dir = bench.folder(&format!("history-{events}"))?;
        repository(&dir)?;
        let mut driven = Driven::create(&state_dir(&dir), &dir, HISTORY_STEPS)?;
        driven.fill(events, EVENTS_PER_COMMIT)?;
        driven.leave()?;
        dirs.push(dir);
    }
    let status = |dir: &Path| time_command(&mut quiet(&bench.piton, &["status", RUN], dir));
    let rounds = bench.rounds(ROUNDS);
    let (floor, ours) = in_turn(rounds, || status(&dirs[0]), || status(&dirs[1]))?;
    let row = |what: &str, floor, ours| Row {
        id: "c",
        what: what.to_owned(),
        floor_name: "with 1,000 events",
        result: Outcome::Measured { floor, ours, unit: "ms" },
        limit: Some(HISTORY_LIMIT),
        remark: String::new(),
    };
    rows.push(row("cold status with 100,000 events", floor, ours));
    let left: Result<Vec<Killed>, String> = dirs.iter().map(|dir| Killed::leave(dir)).collect();
    let left = left?;
    let after_kill = |killed: &Killed| {
        killed.put_back()?;
        status(&killed.dir)
    };
    let (floor, ours) = in_turn(rounds, || after_kill(&left[0]), || after_kill(&left[1]))?;
    let mut killed = row("the same right after SIGKILL", floor, ours);
    let wals = left.iter().map(|killed| (killed.wal_bytes() / 1024).to_string());
    killed.remark = format!("WAL of {} KiB", wals.collect::<Vec<_>>().join(" and "));
    rows.push(killed);
    Ok(rows)
}

fn state_dir(dir: &Path) -> PathBuf {
    dir.join(".git/piton")
}

fn against_ninja(bench: &Bench) -> Result<Row, String> {
    let dir = bench.folder("status")?;
    repository(&dir)?;
    let mut driven = Driven::create(&state_dir(&dir), &dir, STEPS)?;
    for _ in 1..STEPS {
        driven.step()?;
    }
    driven.leave()?;
    let ninja = bench.folder("ninja")?;
    let mut build = "rule touch\n  command = touch $out\n".to_owned();
    for number in 1..=STEPS {
        build.extend(["build out/", &number.to_string(), ": touch\n"]);
    }
    fs::write(ninja.join("build.ninja"), build).map_err(|e| e.to_string())?;
    let mut row = Row {
        id: "c",
        what: "cold status of 1,000 finished steps".to_owned(),
        floor_name: "ninja -n",
        result: Outcome::NotMeasured(
            "ninja is not installed (apt-get install ninja-build)".to_owned(),
        ),
        limit: Some(NINJA_LIMIT),
        remark: String::new(),
    };
    let program = Path::new("ninja");
    if time_command(&mut quiet(program, &["--version"], &ninja)).is_err() {
        let status = || time_command(&mut quiet(&bench.piton, &["status", RUN], &dir));
        let (ours, _) = in_turn(bench.rounds(ROUNDS), status, || Ok(0.0))?;
        row.result = Outcome::NotMeasured(format!(
            "ninja is not installed (apt-get install ninja-build); ours takes {ours:.2} ms"
        ));
        return Ok(row);
    }
    time_command(&mut quiet(program, &[], &ninja))?;
    let (floor, ours) = in_turn(
        bench.rounds(ROUNDS),
        || time_command(&mut quiet(program, &["-n"], &ninja)),
        || time_command(&mut quiet(&bench.piton, &["status", RUN], &dir)),
    )?;
    row.result = Outcome::Measured { floor, ours, unit: "ms" };
    Ok(row)
}

/// A ledger as a killed driver left it: what a reader does to it is undone before each look.
struct Killed {
    dir: PathBuf,
    kept: Vec<(PathBuf, Vec<u8>)>,
}

impl Killed {
    /// Lets a driver work on the run, kills it, and keeps the files as they were then.
    fn leave(dir: &Path) -> Result<Self, String> {
        let words = role_words("append-for-ever", dir, 0)?;
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        let out = child.stdout.take().ok_or("a piped child has an output")?;
        let commits = BufReader::new(out).lines().take(COMMITS_BEFORE_KILL).count();
        child.kill().map_err(|e| e.to_string())?;
        child.wait().map_err(|e| e.to_string())?;
        if commits < COMMITS_BEFORE_KILL {
            return Err("the driver to be killed did not get to work".to_owned());
        }
        let mut kept = Vec::new();
        for entry in fs::read_dir(state_dir(dir)).map_err(|e| e.to_string())?.flatten() {
            if entry.path().is_file() {
                let bytes = fs::read(entry.path()).map_err(|e| e.to_string())?;
                kept.push((entry.path(), bytes));
            }
        }
        Ok(Self { dir: dir.to_owned(), kept })
    }

    fn wal_bytes(&self) -> usize {
        let name = format!("{DATABASE_FILE}-wal");
        let wal = self.kept.iter().find(|(path, _)| path.ends_with(&name));
        wal.map_or(0, |(_, bytes)| bytes.len())
    }

    /// Puts the files back where a reader changed them.
    fn put_back(&self) -> Result<(), String> {
        for entry in fs::read_dir(state_dir(&self.dir)).map_err(|e| e.to_string())?.flatten() {
            let known = self.kept.iter().any(|(path, _)| *path == entry.path());
            if entry.path().is_file() && !known {
                fs::remove_file(entry.path()).map_err(|e| e.to_string())?;
            }
        }
        for (path, bytes) in &self.kept {
            // The database itself is large and a reader leaves it alone; its companions it does not.
            let is_database = path.file_name().is_some_and(|name| name == DATABASE_FILE);
            if is_database
                && fs::metadata(path).is_ok_and(|about| about.len() == bytes.len() as u64)
            {
                continue;
            }
            fs::write(path, bytes).map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}

/// Drives the run until it is killed, saying each commit.
pub(super) fn append_for_ever(dir: &Path) -> Result<(), String> {
    let mut driven = Driven::attach(&state_dir(dir))?;
    loop {
        driven.step()?;
        println!("{}", driven.seq);
    }
}

//! (a) The durable step: fence, outcome and intent in one commit, against one plain SQLite commit.
//!
//! A commit costs more while the WAL file grows than once it is reused after a checkpoint, so each
//! sample is filed under what the WAL did during it, and like is compared with like.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use piton_ledger::DATABASE_FILE;

use super::fixture::Driven;
use super::measure::{median, micros, time};
use super::table::{Outcome, Row};
use super::{Bench, Measured, role_words};

/// Steps of the plan.
const STEPS: usize = 1000;
/// Rounds, each with fresh databases; a round of a thousand steps gives hundreds of samples.
const ROUNDS: usize = 7;
/// Plain commits for each step: they fill a WAL so much slower that both come around in a round.
const FLOOR_PER_STEP: usize = 3;
/// Bytes of a plain commit's row: about what one encoded event has.
const FLOOR_BYTES: usize = 200;
/// Most times a plain commit may cost.
const LIMIT: f64 = 1.4;
/// Most syncs of a step.
const SYNCS_LIMIT: f64 = 1.05;
/// Steps of the short run that is taken away when syncs are counted: opening costs some too.
const SYNCS_STEPS_FEW: usize = 100;

/// A database with nothing but commits of one row.
pub(super) struct Floor {
    connection: rusqlite::Connection,
    wal: PathBuf,
    body: Vec<u8>,
}

impl Floor {
    /// Opens a new one.
    pub(super) fn open(dir: &Path) -> Result<Self, String> {
        let path = dir.join("floor.db");
        let open = || -> rusqlite::Result<rusqlite::Connection> {
            let connection = rusqlite::Connection::open(&path)?;
            connection.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(()))?;
            connection.execute_batch(
                "PRAGMA synchronous = FULL; CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)",
            )?;
            Ok(connection)
        };
        let connection = open().map_err(|e| e.to_string())?;
        Ok(Self { connection, wal: dir.join("floor.db-wal"), body: vec![b'x'; FLOOR_BYTES] })
    }

    /// One commit; how long it took, and whether the WAL grew.
    pub(super) fn commit(&self) -> Result<(Duration, bool), String> {
        let before = bytes(&self.wal);
        let insert = || -> rusqlite::Result<usize> {
            let mut statement =
                self.connection.prepare_cached("INSERT INTO rows (body) VALUES (?1)")?;
            statement.execute([&self.body])
        };
        let (done, took) = time(insert);
        done.map_err(|e| e.to_string())?;
        Ok((took, bytes(&self.wal) > before))
    }
}

fn bytes(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |about| about.len())
}

/// Samples apart by what the WAL did: `[reused, growing]`.
#[derive(Default)]
pub(super) struct Samples([Vec<f64>; 2]);

impl Samples {
    /// Files a sample.
    pub(super) fn push(&mut self, took: Duration, grew: bool) {
        self.0[usize::from(grew)].push(micros(took));
    }

    /// The mean of all, checkpoints and state snapshots included.
    fn mean(&self) -> f64 {
        let all = || self.0.iter().flatten();
        #[expect(clippy::cast_precision_loss, reason = "some thousand samples")]
        let count = all().count().max(1) as f64;
        all().sum::<f64>() / count
    }

    /// The medians: while the WAL is reused, and while it grows.
    pub(super) fn medians(self) -> [Option<f64>; 2] {
        self.0.map(median)
    }
}

/// Measures commits in both phases of the WAL, and counts syncs.
pub(super) fn measure(bench: &Bench) -> Measured {
    let (mut floor, mut ours) = (Samples::default(), Samples::default());
    for _ in 0..bench.rounds(ROUNDS) {
        let dir = bench.folder("durable")?;
        let plain = Floor::open(&dir)?;
        let state = dir.join("piton");
        let mut driven = Driven::create(&state, &dir, STEPS)?;
        let wal = state.join(format!("{DATABASE_FILE}-wal"));
        for _ in 1..STEPS {
            for _ in 0..FLOOR_PER_STEP {
                let (took, grew) = plain.commit()?;
                floor.push(took, grew);
            }
            let before = bytes(&wal);
            let (done, took) = time(|| driven.step());
            done?;
            ours.push(took, bytes(&wal) > before);
        }
    }
    let mean = format!("means {:.0} and {:.0} us over both phases", floor.mean(), ours.mean());
    let (floor, ours) = (floor.medians(), ours.medians());
    let mut rows = Vec::new();
    for (phase, word) in ["reused", "growing"].into_iter().enumerate() {
        let result = match (floor[phase], ours[phase]) {
            (Some(floor), Some(ours)) => Outcome::Measured { floor, ours, unit: "us" },
            _ => Outcome::NotMeasured("no commit fell into this phase".to_owned()),
        };
        let what = format!("durable step, WAL {word}");
        let floor_name = "SQLite WAL FULL commit";
        rows.push(Row {
            id: "a",
            what,
            floor_name,
            result,
            limit: Some(LIMIT),
            remark: mean.clone(),
        });
    }
    let result = syncs_per_step(bench).map_or_else(Outcome::NotMeasured, Outcome::Counted);
    let remark = format!("counted by strace over {} steps", STEPS - SYNCS_STEPS_FEW);
    let what = "syncs of a durable step".to_owned();
    rows.push(Row { id: "a", what, floor_name: "", result, limit: Some(SYNCS_LIMIT), remark });
    Ok(rows)
}

/// Takes so many steps in a fresh ledger: the child whose system calls are counted.
pub(super) fn take_steps(dir: &Path, steps: usize) -> Result<(), String> {
    let mut driven = Driven::create(&dir.join("piton"), dir, STEPS)?;
    for _ in 0..steps {
        driven.step()?;
    }
    Ok(())
}

fn syncs_per_step(bench: &Bench) -> Result<f64, String> {
    let few = syncs(bench, SYNCS_STEPS_FEW)?;
    let many = syncs(bench, STEPS)?;
    #[expect(clippy::cast_precision_loss, reason = "some thousand syncs at most")]
    let per_step = many.saturating_sub(few) as f64 / (STEPS - SYNCS_STEPS_FEW) as f64;
    Ok(per_step)
}

fn syncs(bench: &Bench, steps: usize) -> Result<usize, String> {
    let dir = bench.folder("syncs")?;
    let trace = dir.join("trace");
    let status = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range,syncfs,msync", "-o"])
        .arg(&trace)
        .args(role_words("steps", &dir, steps)?)
        .stdin(Stdio::null())
        .status()
        .map_err(|_| "strace is not installed (apt-get install strace)".to_owned())?;
    if !status.success() {
        return Err(format!("strace ended with {status}"));
    }
    let text = fs::read_to_string(&trace).map_err(|e| e.to_string())?;
    // A call that another thread interrupts is shown in two lines.
    Ok(text.lines().filter(|line| line.contains("sync") && !line.contains("resumed")).count())
}

//! `cargo xtask bench`: a floor or a peer, and ours, measured side by side in one run.
//!
//! Absolute figures move from machine to machine and from minute to minute; ratios of interleaved
//! rounds hold. So every row measures both sides in turn, takes medians and prints the ratio next to
//! its limit. What cannot be measured here says why.

mod brief;
mod durable;
mod fixture;
mod fresh;
mod growth;
mod hooks;
mod lanes;
mod large;
mod measure;
mod peers;
mod snapshots;
mod spawned;
mod stat_walk;
mod status;
mod streams;
mod table;
mod tree;
mod workflows;
mod worktrees;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failure, Result};
use crate::{shell, tools};
use table::Row;

/// The hidden command under which this program is its own child: `bench-role ROLE DIR NUMBER`.
pub(crate) const ROLE_COMMAND: &str = "bench-role";

/// What a row of the table has at hand.
struct Bench {
    /// The release program, installed.
    piton: PathBuf,
    /// Where things are measured: on the disk that cargo builds on, since the system's folder for
    /// temporary files is often in memory, where a sync costs nothing.
    dir: tempfile::TempDir,
    /// Rounds for each median, if the usual number is not wanted.
    rounds: Option<usize>,
}

impl Bench {
    fn rounds(&self, usual: usize) -> usize {
        self.rounds.unwrap_or(usual)
    }

    /// A fresh folder.
    fn folder(&self, name: &str) -> std::result::Result<PathBuf, String> {
        let dir = self.dir.path().join(name);
        if dir.exists() {
            std::fs::remove_dir_all(&dir).map_err(|e| e.to_string())?;
        }
        std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
        Ok(dir)
    }
}

type Measured = std::result::Result<Vec<Row>, String>;

/// Measures rows.
type Measure = fn(&Bench) -> Measured;

/// The rows by their letters; those of one measurement stand together.
const PARTS: [(&str, Measure); 12] = [
    ("a", durable::measure),
    ("b", spawned::measure),
    ("c", status::measure),
    ("d", growth::measure),
    ("e", snapshots::measure),
    ("fg", worktrees::measure),
    ("h", lanes::measure),
    ("ij", large::measure),
    ("k", workflows::measure),
    ("l", brief::measure),
    ("m", streams::measure),
    ("n", hooks::measure),
];

/// A name for the rows of briefs and streams.
const BRIEF: (&str, &str) = ("brief", "lm");

/// What is to be measured, and how it is shown.
#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    /// Measure only these rows, as in `ac`; `brief` is those of briefs and streams
    #[arg(long, value_parser = rows, default_value_t = rows_all())]
    only: String,
    /// Run so many rounds for each median
    #[arg(long)]
    rounds: Option<usize>,
    /// Run LangGraph and DBOS beside it; they are installed below target/
    #[arg(long)]
    peers: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Exit with 1 when a ratio is over its limit
    #[arg(long)]
    check: bool,
}

fn rows_all() -> String {
    PARTS.iter().map(|(letters, _)| *letters).collect()
}

/// Reads the letters of rows.
fn rows(text: &str) -> std::result::Result<String, String> {
    if text == BRIEF.0 {
        return Ok(BRIEF.1.to_owned());
    }
    let all = rows_all();
    match text.chars().find(|row| !all.contains(*row)) {
        Some(odd) => Err(format!("there is no row `{odd}`; there are {all}")),
        None => Ok(text.to_owned()),
    }
}

/// A part of a measurement that a child process plays.
#[derive(clap::Args)]
pub(crate) struct RoleArgs {
    role: String,
    dir: PathBuf,
    number: usize,
}

/// Measures what the command line asks for.
pub(crate) fn command(args: &BenchArgs) -> Result<()> {
    if cfg!(debug_assertions) {
        return as_packaged();
    }
    // What is still missing then says so in its own row.
    tools::ensure(&[tools::MAKE, tools::NINJA, tools::STRACE]);
    let here = shell::target_dir()?;
    let dir =
        tempfile::Builder::new().prefix("bench-").tempdir_in(here).map_err(|e| e.to_string())?;
    let bench = Bench { piton: installed(dir.path())?, dir, rounds: args.rounds };
    let mut rows = Vec::new();
    for (letters, measure) in PARTS {
        if letters.chars().any(|letter| args.only.contains(letter)) {
            eprintln!("measuring ({letters})");
            rows.extend(measure(&bench)?.into_iter().filter(|row| args.only.contains(row.id)));
        }
    }
    if args.peers {
        eprintln!("measuring peers");
        rows.extend(peers::measure(&bench));
    }
    if args.json {
        println!("{}", table::json(&rows));
    } else {
        print!("{}", table::text(&rows));
    }
    if args.check && rows.iter().any(Row::is_over) { Err(Failure::Said) } else { Ok(()) }
}

/// Puts the program of packages where an installation would: as a copy. What the linker wrote lies in
/// memory in small pieces, and each start of it takes a third of a millisecond longer.
fn installed(dir: &Path) -> std::result::Result<PathBuf, String> {
    let (built, copy) = (shell::program(shell::DIST, "piton")?, dir.join("piton"));
    std::fs::copy(&built, &copy).map_err(|e| format!("{}: {e}", built.display()))?;
    Ok(copy)
}

/// Builds program and benchmark as packages hold them and measures with those.
fn as_packaged() -> Result<()> {
    shell::build(shell::DIST, &["piton", "xtask"])?;
    let program = shell::program(shell::DIST, "xtask")?;
    let words = std::env::args_os().skip(1);
    let status = Command::new(&program).args(words).current_dir(shell::root()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::Said),
        Err(error) => Err(format!("{} could not be started: {error}", program.display()).into()),
    }
}

/// Plays the part of a child process of a measurement.
pub(crate) fn role(args: &RoleArgs) -> Result<()> {
    match args.role.as_str() {
        "steps" => Ok(durable::take_steps(&args.dir, args.number)?),
        "append-for-ever" => Ok(status::append_for_ever(&args.dir)?),
        other => Err(Failure::Other(format!("there is no role `{other}`"))),
    }
}

/// This program in a role.
fn role_words(role: &str, dir: &Path, number: usize) -> std::result::Result<Vec<String>, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let (own, dir) = (own.display().to_string(), dir.display().to_string());
    Ok(vec![own, ROLE_COMMAND.to_owned(), role.to_owned(), dir, number.to_string()])
}

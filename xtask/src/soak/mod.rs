//! `cargo xtask soak`: the release program, killed at random moments, round after round.
//!
//! Each round works in a fresh scratch repository, does real harm to real processes, and then looks
//! at what the promises speak of: lines that steps wrote, the ledger, the processes that live, what
//! `doctor` says. Waits are bounded and random moments follow from a printed seed.

mod drivers;
mod interrupts;
mod kills;
mod processes;
mod record;
mod scratch;
mod writers;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::args::Args;
use crate::rng::Rng;
use crate::{Failure, Result, shell};

/// The loops, in the order they run.
pub(crate) const NAMES: [&str; 7] =
    ["kill-driver", "kill-all", "kill-keeper", "ctrl-c", "two-drivers", "takeover", "many-writers"];

/// Rounds at the same time: as many as the smallest machine has cores, and enough to disturb each
/// other.
const PARALLEL: usize = 2;
/// A loop that failed so often will not be mended by more rounds.
const FAILURES_MAX: usize = 5;
/// Rounds between two lines of progress.
const PROGRESS_EVERY: u64 = 25;

/// What a round says when a promise was broken.
type Broken = String;

/// What one round has at hand.
struct Round<'a> {
    /// The release program.
    piton: &'a Path,
    /// Its random moments.
    rng: Rng,
    /// Whether only a sample is wanted.
    sample: bool,
    /// Whether the scratch folder stays when the round fails.
    keep_failed: bool,
    /// What it counted.
    tally: Tally,
}

/// What a loop counts.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    kills: u64,
    hits: u64,
}

/// A loop: its name, full and sample number of rounds, what a kill is called, one round of it.
struct Loop {
    name: &'static str,
    rounds: u64,
    sample: u64,
    acts: &'static str,
    round: fn(&mut Round<'_>) -> std::result::Result<(), Broken>,
}

const LOOPS: [Loop; NAMES.len()] = [
    Loop { name: NAMES[0], rounds: 200, sample: 6, acts: "kills", round: kills::driver },
    Loop { name: NAMES[1], rounds: 200, sample: 6, acts: "kills", round: kills::all },
    Loop { name: NAMES[2], rounds: 50, sample: 6, acts: "kills", round: kills::keeper },
    Loop { name: NAMES[3], rounds: 50, sample: 6, acts: "signals", round: interrupts::ctrl_c },
    Loop { name: NAMES[4], rounds: 50, sample: 4, acts: "pairs", round: drivers::two },
    Loop { name: NAMES[5], rounds: 50, sample: 4, acts: "stops", round: drivers::takeover },
    Loop { name: NAMES[6], rounds: 1, sample: 1, acts: "requests", round: writers::many },
];

/// How the loops are to run.
struct Options {
    piton: PathBuf,
    rounds: Option<u64>,
    sample: bool,
    seed: u64,
    keep_failed: bool,
}

/// Runs the loops that the command line asks for.
pub(crate) fn command(words: &[String]) -> Result<()> {
    let args =
        Args::read(words, &["--sample", "--keep-failed"], &["--rounds", "--seed", "--piton"], 1)?;
    let chosen: Vec<&Loop> = match args.word() {
        None => LOOPS.iter().collect(),
        Some(name) => vec![LOOPS.iter().find(|known| known.name == name).ok_or_else(|| {
            Failure::Usage(format!("there is no loop `{name}`; there are {}", NAMES.join(", ")))
        })?],
    };
    let options = Options {
        piton: shell::piton(args.text("--piton"))?,
        rounds: args.number("--rounds")?,
        sample: args.has("--sample"),
        seed: args.number("--seed")?.unwrap_or_else(Rng::new_seed),
        keep_failed: args.has("--keep-failed"),
    };
    eprintln!("seed {}", options.seed);
    let mut failed = false;
    let mut summary = Vec::new();
    for one in chosen {
        let outcome = run(one, &options);
        failed |= outcome.is_err();
        let line = outcome.unwrap_or_else(|all| {
            eprintln!("{all}");
            all.lines().last().unwrap_or_default().to_owned()
        });
        summary.push(format!("{:13} {line}", one.name));
    }
    println!("{}", summary.join("\n"));
    if failed { Err(Failure::Said) } else { Ok(()) }
}

/// Runs a sample of one loop with the release program as it is built.
pub(crate) fn sample(name: &str) -> std::result::Result<String, String> {
    let options = Options {
        piton: shell::release_program("piton")?,
        rounds: None,
        sample: true,
        seed: Rng::new_seed(),
        keep_failed: false,
    };
    let known = LOOPS.iter().find(|known| known.name == name);
    run(known.ok_or("there is no such loop")?, &options)
}

/// Runs one loop; gives its summary line, or everything that broke with that line at the end.
fn run(one: &Loop, options: &Options) -> std::result::Result<String, String> {
    let rounds = options.rounds.unwrap_or(if options.sample { one.sample } else { one.rounds });
    let (begun, next) = (Instant::now(), AtomicU64::new(0));
    let total = Mutex::new((0_u64, Tally::default(), Vec::<String>::new()));
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= rounds {
                        return;
                    }
                    let (tally, broken) = one_round(one, options, number);
                    let Ok(mut total) = total.lock() else { return };
                    let (done, sum, failures) = &mut *total;
                    *done += 1;
                    sum.kills += tally.kills;
                    sum.hits += tally.hits;
                    failures.extend(broken.map(|what| format!("round {number}: {what}")));
                    if done.is_multiple_of(PROGRESS_EVERY) && !options.sample {
                        eprintln!("{}: {done} of {rounds}, {} failed", one.name, failures.len());
                    }
                    if failures.len() >= FAILURES_MAX {
                        return;
                    }
                }
            });
        }
    });
    let (done, sum, failures) = total.into_inner().map_err(|_| "a round panicked".to_owned())?;
    let line = format!(
        "{done} rounds, {} {}, {} hit a running step, {} failed, {:.1} s (seed {})",
        sum.kills,
        one.acts,
        sum.hits,
        failures.len(),
        begun.elapsed().as_secs_f64(),
        options.seed,
    );
    if failures.is_empty() { Ok(line) } else { Err(format!("{}\n{line}", failures.join("\n"))) }
}

fn one_round(one: &Loop, options: &Options, number: u64) -> (Tally, Option<Broken>) {
    let mut round = Round {
        piton: &options.piton,
        rng: Rng::of_round(options.seed, one.name, number),
        sample: options.sample,
        keep_failed: options.keep_failed,
        tally: Tally::default(),
    };
    let broken = (one.round)(&mut round).err();
    (round.tally, broken)
}

//! `cargo xtask soak`: the release program, killed at random moments, round after round.
//!
//! Each round works in a fresh scratch repository, does real harm to real processes, and then looks
//! at what the promises speak of: lines that steps wrote, the ledger, the processes that live, what
//! `doctor` says. Waits are bounded and random moments follow from a printed seed.

mod activity;
mod agents;
mod drivers;
mod interrupts;
mod kills;
mod lanes;
mod machine;
mod night;
mod pipelines;
mod processes;
mod pull_requests;
mod reader;
mod record;
mod repository;
mod scratch;
mod sessions;
mod workflows;
mod writers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use self::pipelines::histories;
use crate::rng::Rng;
use crate::{Failure, Result, shell};

pub(crate) use reader::{ROLE as READER_COMMAND, role as read};

/// The loops, in the order they run.
pub(crate) const NAMES: [&str; LOOPS.len()] = {
    let mut names = [""; LOOPS.len()];
    let mut at = 0;
    while at < LOOPS.len() {
        names[at] = LOOPS[at].name;
        at += 1;
    }
    names
};

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

/// So many kills of one round do not hurry it: one that is not through by then runs on a busy
/// machine, where a driver needs longer to get to work.
const HURRIED_KILLS: u64 = 10;

impl Round<'_> {
    /// A time below so many milliseconds; more of them the more kills the round has seen, or a
    /// machine with other things to do would never let a driver come further.
    fn moment(&mut self, end_ms: u64) -> Duration {
        let patience = 1 + self.tally.kills / HURRIED_KILLS;
        self.rng.millis_below(end_ms * patience)
    }
}

/// What a loop counts.
#[derive(Clone, Debug, Default)]
struct Tally {
    kills: u64,
    hits: u64,
    /// Kills by what they met, where a loop aims.
    met: BTreeMap<&'static str, u64>,
    /// How often another process read a file that was being written.
    reads: u64,
    /// Commits that the user made beside.
    commits: u64,
}

impl Tally {
    /// Counts a kill for each of what it met.
    fn met(&mut self, all: &[&'static str]) {
        for what in all {
            *self.met.entry(what).or_default() += 1;
        }
    }

    fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.hits += other.hits;
        self.reads += other.reads;
        self.commits += other.commits;
        for (what, count) in other.met {
            *self.met.entry(what).or_default() += count;
        }
    }

    /// What kills met, in words.
    fn told(&self) -> String {
        let parts: Vec<String> =
            self.met.iter().map(|(what, count)| format!("{what} {count}")).collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
    }

    /// What was done beside kills, in words.
    fn beside(&self) -> String {
        let mut words = String::new();
        for (count, what) in
            [(self.commits, "commits by the user"), (self.reads, "reads of whole files")]
        {
            if count > 0 {
                words.extend([", ", &count.to_string(), " ", what]);
            }
        }
        words
    }
}

/// A loop: its name, full and sample number of rounds, what a kill is called, one round of it.
struct Loop {
    name: &'static str,
    rounds: u64,
    sample: u64,
    acts: &'static str,
    /// What it must have met so often in full.
    aims: (&'static [&'static str], u64),
    /// What it needs of the machine; without it the loop says why and shows nothing.
    needs: fn() -> std::result::Result<(), Broken>,
    round: fn(&mut Round<'_>) -> std::result::Result<(), Broken>,
}

/// No aims.
const NONE: (&[&str], u64) = (&[], 0);

const LOOPS: &[Loop] = &[
    plain("kill-driver", (200, 6), "kills", kills::driver),
    plain("kill-all", (200, 6), "kills", kills::all),
    plain("kill-keeper", (50, 6), "kills", kills::keeper),
    plain("ctrl-c", (50, 6), "signals", interrupts::ctrl_c),
    plain("two-drivers", (50, 4), "pairs", drivers::two),
    plain("takeover", (50, 4), "stops", drivers::takeover),
    plain("many-writers", (1, 1), "requests", writers::many),
    Loop { aims: lanes::AIMS, ..plain("lanes", (200, 2), "kills", lanes::kill) },
    Loop { aims: lanes::DRIVER_AIMS, ..plain("lanes-drivers", (50, 2), "stops", lanes::drivers) },
    Loop {
        aims: pull_requests::AIMS,
        ..plain("pull-requests", (50, 3), "kills", pull_requests::kill)
    },
    Loop { aims: pipelines::AIMS, ..plain("pipelines", (100, 3), "kills", pipelines::kill) },
    Loop { aims: histories::AIMS, ..plain("histories", (200, 6), "acts", histories::history) },
    Loop { aims: workflows::AIMS, ..plain("workflows", (200, 3), "kills", workflows::kill) },
    Loop { aims: agents::AIMS, ..plain("agents", (100, 3), "kills", agents::kill) },
    Loop { aims: sessions::AIMS, ..plain("sessions", (100, 2), "kills", sessions::kill) },
    plain("many-sessions", (10, 1), "agents", sessions::many),
    Loop {
        aims: lanes::RESTART_AIMS,
        needs: machine::can_reboot,
        ..plain("reboot", (200, 3), "restarts", lanes::reboot)
    },
    Loop {
        aims: lanes::RESTART_AIMS,
        needs: machine::can_lose_power,
        ..plain("power", (100, 3), "restarts", lanes::power)
    },
    Loop { needs: night::has_terminals, ..plain("night", (1, 1), "blows", night::night) },
    Loop { aims: lanes::BULLET_AIMS, ..plain("list-items", (100, 2), "kills", lanes::bullets) },
];

/// A loop without aims: its name, full and sample number of rounds, what a kill is called.
const fn plain(
    name: &'static str,
    rounds: (u64, u64),
    acts: &'static str,
    round: fn(&mut Round<'_>) -> std::result::Result<(), Broken>,
) -> Loop {
    let needs = || Ok(());
    Loop { name, rounds: rounds.0, sample: rounds.1, acts, aims: NONE, needs, round }
}

/// What a soak is asked for.
#[derive(clap::Args)]
pub(crate) struct SoakArgs {
    /// The one loop to run
    #[arg(value_parser = NAMES)]
    name: Option<String>,
    /// Run so many rounds of each loop instead of the full number
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// Run a few seconds of each loop
    #[arg(long)]
    sample: bool,
    /// Use the random moments of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// Leave the scratch folders of failed rounds
    #[arg(long)]
    keep_failed: bool,
    /// Use this program instead of a fresh release build
    #[arg(long)]
    piton: Option<PathBuf>,
}

/// How the loops are to run.
struct Options {
    piton: PathBuf,
    rounds: Option<u64>,
    sample: bool,
    seed: u64,
    keep_failed: bool,
}

/// Runs the loops that the command line asks for.
pub(crate) fn command(args: SoakArgs) -> Result<()> {
    let SoakArgs { name, rounds, sample, seed, keep_failed, piton } = args;
    let (piton, seed) = (shell::piton(piton)?, seed.unwrap_or_else(Rng::new_seed));
    let options = Options { piton, rounds, sample, seed, keep_failed };
    eprintln!("seed {}", options.seed);
    let mut failed = false;
    let mut summary = Vec::new();
    for one in LOOPS.iter().filter(|one| name.as_deref().is_none_or(|name| name == one.name)) {
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
        piton: shell::program(shell::RELEASE, "piton")?,
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
    if let Err(why) = (one.needs)() {
        return Ok(format!("not run: {why}"));
    }
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
                    sum.add(tally);
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
    let (done, sum, mut failures) =
        total.into_inner().map_err(|_| "a round panicked".to_owned())?;
    if sum.kills == 0 {
        failures.push(format!("no {} at all: nothing was shown", one.acts));
    }
    let (aims, least) = one.aims;
    for aim in aims.iter().filter(|_| rounds >= one.rounds) {
        let met = sum.met.get(aim).copied().unwrap_or(0);
        if met < least {
            failures.push(format!("only {met} kills met {aim}; {least} must"));
        }
    }
    let line = format!(
        "{done} rounds, {} {}{}, {} hit a running step{}, {} failed, {:.1} s (seed {})",
        sum.kills,
        one.acts,
        sum.told(),
        sum.hits,
        sum.beside(),
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

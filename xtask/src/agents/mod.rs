//! `cargo xtask agents`: the adapters against the real agent programs.
//!
//! The programs are installed from the npm registry, once. The checks run in namespaces without a
//! network, against a scripted model API of our own, so they need no account and cost nothing. What
//! cannot be checked here is skipped and said, and is not a pass.

mod api;
mod attempt;
mod cases;
mod drive;
mod inspector;
mod install;
mod namespace;
mod runs;
mod sessions;
mod stage;
mod subject;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Failure, Result, shell};
use cases::{CASES, Case};
use install::Cache;
use stage::Stage;
use subject::{SUBJECTS, Subject};

/// Options of `agents`.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
#[derive(Debug, clap::Args)]
pub(crate) struct AgentsArgs {
    /// Check these programs alone
    #[arg(long, value_delimiter = ',', value_name = "PROGRAM", value_parser = ids())]
    only: Vec<String>,
    /// Run these cases alone
    #[arg(long, value_delimiter = ',', value_name = "CASE")]
    case: Vec<String>,
    /// Succeed although something was skipped
    #[arg(long)]
    allow_skips: bool,
    /// Keep the folder of a case that failed
    #[arg(long)]
    keep: bool,
    /// The program to test instead of a fresh build
    #[arg(long, value_name = "PROGRAM")]
    piton: Option<PathBuf>,
    /// Play the sample of the suite
    #[arg(long, conflicts_with = "case")]
    sample: bool,
    #[arg(long, hide = true)]
    inside_namespaces: bool,
}

fn ids() -> clap::builder::PossibleValuesParser {
    let programs = SUBJECTS.iter().map(|subject| subject.id);
    programs.chain([inspector::ID]).collect::<Vec<_>>().into()
}

/// Why something did not work, in words for a developer.
#[derive(Debug)]
struct Broken(String);

impl<T: std::fmt::Display> From<T> for Broken {
    fn from(why: T) -> Self {
        Self(why.to_string())
    }
}

/// A line of the table.
struct Row {
    program: &'static str,
    case: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// How something went, with a remark or the reason.
pub(crate) enum Outcome {
    /// It was seen.
    Passed(String),
    /// It was not as it must be.
    Failed(String),
    /// It could not be looked at.
    Skipped(String),
}

/// The cases of the suite, and the programs that play them; none stands for all. All that a night needs
/// is there with some program, and a session with hooks with each; the rest is the long form's.
const SAMPLE: &[(&str, &[&str])] = &[
    ("run", &[]),
    ("run-driver", &["codex", "opencode"]),
    ("run-killed", &[]),
    ("run-limit", &["claude"]),
    ("run-test", &["gemini", "opencode"]),
    ("run-budget", &["codex"]),
    ("run-handoff", &[]),
    ("session", &[]),
    ("session-stop", &[]),
];

/// Plays a sample of the cases with the release program, for `cargo xtask test`.
pub(crate) fn sample() -> Outcome {
    let missing = |why: &str| Outcome::Skipped(format!("{why}; see `cargo xtask agents`"));
    let is_there = |subject: &&Subject| install(subject).is_ok();
    if SUBJECTS.iter().filter(is_there).count() < SUBJECTS.len() {
        return missing("not all agent programs could be installed (npm)");
    }
    let piton = match shell::program(shell::RELEASE, "piton") {
        Ok(piton) => piton,
        Err(why) => return Outcome::Failed(why),
    };
    let words = ["--sample", "--piton"].map(str::to_owned);
    let words: Vec<String> = words.into_iter().chain([piton.display().to_string()]).collect();
    let (mut command, _copy) = match namespace::again(&words) {
        Ok(inside) => inside,
        Err(Broken(why)) => return missing(&why),
    };
    let (passed, said) = shell::capture(&mut command);
    let last = said.lines().rev().find(|line| line.contains(" passed, ")).unwrap_or_default();
    if passed { Outcome::Passed(last.to_owned()) } else { Outcome::Failed(said) }
}

/// Runs the command.
pub(crate) fn command(args: &AgentsArgs) -> Result<()> {
    let rows = if args.inside_namespaces { inside(args) } else { return outside(args) };
    for row in &rows {
        print_row(row);
    }
    let count = |is: fn(&Outcome) -> bool| rows.iter().filter(|row| is(&row.outcome)).count();
    let passed = count(|outcome| matches!(outcome, Outcome::Passed(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let failed = rows.len() - passed - skipped;
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    let is_fine = failed == 0 && (skipped == 0 || args.allow_skips);
    if is_fine { Ok(()) } else { Err(Failure::Said) }
}

fn print_row(Row { program, case, outcome, took }: &Row) {
    let (word, remark) = match outcome {
        Outcome::Passed(remark) => ("passed", remark),
        Outcome::Failed(why) => ("FAILED", why),
        Outcome::Skipped(why) => ("skipped", why),
    };
    println!("{program:9} {case:15} {word:7} {:5.1} s  {remark}", took.as_secs_f64());
}

/// The programs that were asked for.
fn chosen(args: &AgentsArgs) -> Vec<&'static Subject> {
    let is_chosen = |id: &str| args.only.is_empty() || args.only.iter().any(|name| name == id);
    SUBJECTS.iter().filter(|subject| is_chosen(subject.id)).collect()
}

fn install(subject: &Subject) -> std::result::Result<(), Broken> {
    Cache::new()?.ensure(subject)
}

/// Installs, then goes inside.
fn outside(args: &AgentsArgs) -> Result<()> {
    for subject in chosen(args) {
        // The rows inside say that it is not installed; this says why.
        if let Err(Broken(why)) = install(subject) {
            eprintln!("{} is skipped: {why}", subject.id);
        }
    }
    if inspector::is_chosen(args)
        && let Err(Broken(why)) = inspector::install()
    {
        eprintln!("{} is skipped: {why}", inspector::ID);
    }
    let mut words: Vec<String> = std::env::args().skip(2).collect();
    if args.piton.is_none() {
        words.extend(["--piton".to_owned(), shell::piton(None)?.display().to_string()]);
    }
    let (mut command, _copy) = match namespace::again(&words) {
        Ok(inside) => inside,
        Err(Broken(why)) => {
            println!("skipped: {why}");
            return if args.allow_skips { Ok(()) } else { Err(Failure::Said) };
        }
    };
    let status = command.status().map_err(|error| format!("unshare: {error}"))?;
    if status.success() { Ok(()) } else { Err(Failure::Said) }
}

/// Runs the cases: the programs side by side, the cases of each in their order.
fn inside(args: &AgentsArgs) -> Vec<Row> {
    let ready = namespace::raise_loopback().and_then(|()| Cache::new());
    let subjects = chosen(args);
    thread::scope(|scope| {
        let ready = &ready;
        let begun: Vec<_> =
            subjects.iter().map(|subject| scope.spawn(move || all(args, subject, ready))).collect();
        let of_inspector = || inspector::rows(args, ready);
        let last = inspector::is_chosen(args).then(|| scope.spawn(of_inspector));
        begun.into_iter().chain(last).flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

fn all(
    args: &AgentsArgs,
    subject: &Subject,
    ready: &std::result::Result<Cache, Broken>,
) -> Vec<Row> {
    let is_chosen = |case: &&Case| {
        let is_sampled = |(name, programs): &(&str, &[&str])| {
            *name == case.name && (programs.is_empty() || programs.contains(&subject.id))
        };
        let is_asked_for = || args.case.is_empty() || args.case.iter().any(|n| n == case.name);
        let is_named = if args.sample { SAMPLE.iter().any(is_sampled) } else { is_asked_for() };
        is_named && (case.only.is_empty() || case.only.contains(&subject.id))
    };
    let cases = CASES.iter().filter(is_chosen);
    cases
        .map(|case| {
            let begun = Instant::now();
            let outcome = match ready {
                Err(Broken(why)) => Outcome::Skipped(why.clone()),
                Ok(cache) => one(args, case, subject, cache),
            };
            Row { program: subject.id, case: case.name, outcome, took: begun.elapsed() }
        })
        .collect()
}

fn one(args: &AgentsArgs, case: &Case, subject: &Subject, cache: &Cache) -> Outcome {
    if !cache.has(subject) {
        return Outcome::Skipped(format!("{} is not installed", subject.id));
    }
    let piton = args.piton.as_deref().unwrap_or(Path::new("piton"));
    let mut stage = match Stage::new(subject, cache, piton) {
        Ok(stage) => stage,
        Err(Broken(why)) => return Outcome::Failed(why),
    };
    match (case.play)(&mut stage) {
        Ok(remark) => Outcome::Passed(remark),
        Err(Broken(why)) if args.keep => {
            Outcome::Failed(format!("{why}; see {}", stage.keep().display()))
        }
        Err(Broken(why)) => Outcome::Failed(why),
    }
}

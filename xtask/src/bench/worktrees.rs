//! (f) and (g): creating a worktree of many files, and removing it, against git's own commands.
//!
//! Every sample has a file system of its own. What a removal leaves to be deleted in the background
//! is deleted before the next sample, and not measured: nobody waits for it.

use std::path::{Path, PathBuf};

use piton_workspace::refs::Fence;
use piton_workspace::worktree::{self, Spec};

use super::fresh::Fresh;
use super::measure::{median, millis, quiet, time, time_command};
use super::table::{Outcome, Row};
use super::{Bench, Measured, tree};

/// Files of the worktree.
const FILES: usize = 100_000;
/// Rounds; each takes some ten seconds.
const ROUNDS: usize = 5;
/// Most times git may take to create it.
const ADD_LIMIT: f64 = 0.65;
/// Most times git may take to remove it.
const REMOVE_LIMIT: f64 = 0.05;
/// Threads that write files, as the program has them.
const WORKERS: usize = 4;
/// The run that the worktree belongs to.
const RUN: &str = "bench";

/// Measures both in one go: what was created is what is removed.
pub(super) fn measure(bench: &Bench) -> Measured {
    let source = bench.folder("worktree-source")?;
    tree::import(&source, FILES)?;
    let medians = match samples(bench, &source) {
        Ok(medians) => medians,
        Err(why) => return Ok(rows(|_| Outcome::NotMeasured(why.clone()))),
    };
    let [theirs, ours] = medians;
    Ok(rows(|index| Outcome::Measured { floor: theirs[index], ours: ours[index], unit: "ms" }))
}

fn rows(result: impl Fn(usize) -> Outcome) -> Vec<Row> {
    let row = |index, id, what: &str, floor_name, limit| Row {
        id,
        what: what.to_owned(),
        floor_name,
        result: result(index),
        limit: Some(limit),
        remark: "on fresh file systems".to_owned(),
    };
    vec![
        row(0, "f", "creating a worktree of 100,000 files", "git worktree add", ADD_LIMIT),
        row(1, "g", "removing it, as somebody waits", "git worktree remove --force", REMOVE_LIMIT),
    ]
}

/// Creation and removal in milliseconds.
type Sample = [f64; 2];

/// Takes a sample in a repository.
type Take = fn(&Path) -> Result<Sample, String>;

/// The medians: git's and ours.
fn samples(bench: &Bench, source: &Path) -> Result<[Sample; 2], String> {
    let sides: [Take; 2] = [theirs, ours];
    let mut samples = [const { [const { Vec::new() }; 2] }; 2];
    for round in 0..bench.rounds(ROUNDS) {
        for turn in 0..sides.len() {
            let index = (turn + round) % sides.len();
            let sample = fresh(bench, source, sides[index])?;
            for (list, value) in samples[index].iter_mut().zip(sample) {
                list.push(value);
            }
        }
    }
    Ok(samples.map(|side| side.map(|list| median(list).unwrap_or_default())))
}

/// Takes a sample in a copy of the repository on a file system of its own.
fn fresh(bench: &Bench, source: &Path, side: Take) -> Result<Sample, String> {
    let fresh = Fresh::mount(&bench.folder("worktree")?)?;
    let repo = fresh.dir().join("repo");
    let (from, to) = (source.display().to_string(), repo.display().to_string());
    time_command(&mut quiet(Path::new("cp"), &["-r", &from, &to], fresh.dir()))?;
    // The copy itself must not be on its way to the disk while files are created.
    rustix::fs::sync();
    side(&repo)
}

fn theirs(repo: &Path) -> Result<Sample, String> {
    let git = |words: &[&str]| time_command(&mut quiet(Path::new("git"), words, repo));
    let added = git(&["worktree", "add", "--quiet", "-b", "lane", "../worktree"])?;
    let removed = git(&["worktree", "remove", "--force", "../worktree"])?;
    Ok([added, removed])
}

fn ours(repo: &Path) -> Result<Sample, String> {
    let fence = Fence::raise(repo, RUN, 1).map_err(|e| e.to_string())?;
    let start = piton_workspace::refs::value(repo, "HEAD").ok_or("HEAD has no commit")?;
    let spec = Spec {
        run_id: RUN.to_owned(),
        lane: "P/L".to_owned(),
        path: PathBuf::from(".worktrees/P/L"),
        branch: "lane/P/L".to_owned(),
        start,
        copy: Vec::new(),
        workers: WORKERS,
    };
    let (added, took) = time(|| worktree::add(repo, &spec, &fence));
    let added = added.map_err(|e| e.to_string())?;
    let (removed, waited) = time(|| worktree::remove(repo, &added.path, &fence));
    removed.map_err(|e| e.to_string())?;
    // Two deletions of the same folder get in each other's way; the last one finds nothing.
    while worktree::empty_trash(repo).map_or(true, |left| left > 0) {
        std::thread::yield_now();
    }
    Ok([millis(took), millis(waited)])
}

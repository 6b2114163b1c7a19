//! (e) A snapshot of a work tree with some changes: ours, durable, against the way people do it
//! with git today, which is not; and against the stat walk that no snapshot can do without.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use piton_workspace::refs::{self, Fence};
use piton_workspace::snapshot::{self, Meta, Rules, Workspace};

use super::measure::{median, millis, time};
use super::table::{Outcome, Row};
use super::{Bench, Measured, stat_walk, tree};
use crate::rng::Rng;

/// Files of the work trees, and how many stat walks a snapshot should take at most.
const SIZES: [(usize, &str, f64); 2] = [(10_000, "10,000", 2.0), (100_000, "100,000", 1.3)];
/// Files changed before each snapshot.
const CHANGED: usize = 10;
/// Files that are new in each snapshot.
const NEW: usize = 5;
/// Rounds; each takes some tenths of a second.
const ROUNDS: usize = 15;
/// Most times the recipe may take.
const LIMIT: f64 = 0.6;
/// The run that snapshots belong to.
const RUN: &str = "bench";

/// Measures all three in turn, at both sizes.
pub(super) fn measure(bench: &Bench) -> Measured {
    let mut rows = Vec::new();
    for (files, word, aim) in SIZES {
        let dir = bench.folder(&format!("snapshot-{files}"))?;
        rows.extend(one(bench, dir, files, word, aim)?);
    }
    Ok(rows)
}

fn one(
    bench: &Bench,
    dir: PathBuf,
    files: usize,
    word: &str,
    aim: f64,
) -> Result<Vec<Row>, String> {
    tree::checked_out(&dir, files)?;
    let mut side = Side::new(dir, files)?;
    let sides = [Side::walk, Side::recipe, Side::ours];
    let mut samples = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..=bench.rounds(ROUNDS) {
        for turn in 0..sides.len() {
            let index = (turn + round) % sides.len();
            side.change()?;
            let took = sides[index](&side)?;
            // The first round warms up: ours has no cache yet, git has not read its pack.
            if round > 0 {
                samples[index].push(took);
            }
        }
    }
    let [walk, recipe, ours] = samples.map(|s| median(s).unwrap_or_default());
    let what = format!("snapshot of {word} files, 10 changed, 5 new");
    let row = |floor_name, floor, limit, remark| Row {
        id: "e",
        what: what.clone(),
        floor_name,
        result: Outcome::Measured { floor, ours, unit: "ms" },
        limit,
        remark,
    };
    Ok(vec![
        row("add -A, write-tree, …", recipe, Some(LIMIT), "ours is durable".to_owned()),
        row("stat walk", walk, None, format!("the aim is {aim}")),
    ])
}

/// A work tree that is changed again and again.
struct Side {
    dir: PathBuf,
    files: usize,
    rng: Rng,
    number: u64,
    new: Vec<PathBuf>,
    workspace: Workspace,
    rules: Rules,
    fence: Fence,
}

impl Side {
    fn new(dir: PathBuf, files: usize) -> Result<Self, String> {
        let fence = Fence::raise(&dir, RUN, 1).map_err(|e| e.to_string())?;
        let cache = dir.join(".git/piton");
        fs::create_dir_all(&cache).map_err(|e| e.to_string())?;
        let workspace = Workspace { dir: dir.clone(), cache: cache.join("stat-cache") };
        let rng = Rng::of_round(2, "changes", 0);
        let rules = Rules::default();
        Ok(Self { dir, files, rng, number: 0, new: Vec::new(), workspace, rules, fence })
    }

    /// Changes some files and replaces the new ones by others. Each side meets changes of its own:
    /// objects that the other wrote would spare it the work.
    fn change(&mut self) -> Result<(), String> {
        self.number += 1;
        for old in self.new.drain(..) {
            fs::remove_file(old).map_err(|e| e.to_string())?;
        }
        let apart = self.files / CHANGED;
        for index in 0..CHANGED {
            let path = self.dir.join(tree::path(index * apart + apart / 2));
            settled(&path, &tree::text(&mut self.rng))?;
        }
        let apart = self.files / NEW;
        for index in 0..NEW {
            let beside = self.dir.join(tree::path(index * apart + apart / 3));
            let path = beside.with_file_name(format!("new-{}.rs", self.number));
            settled(&path, &tree::text(&mut self.rng))?;
            self.new.push(path);
        }
        Ok(())
    }

    fn walk(&self) -> Result<f64, String> {
        let (found, took) = time(|| stat_walk::walk(&self.dir));
        let (found, wanted) = (found?, self.files + NEW);
        if found == wanted {
            return Ok(millis(took));
        }
        Err(format!("the stat walk found {found} files of {wanted}"))
    }

    fn ours(&self) -> Result<f64, String> {
        let chain = format!("{}root", refs::run_prefix(RUN));
        let at = i64::try_from(self.number).unwrap_or_default();
        let meta = Meta { message: "bench", at };
        let take = || snapshot::take(&self.workspace, &self.rules, &chain, &self.fence, &meta);
        let (taken, took) = time(take);
        let taken = taken.map_err(|e| e.to_string())?;
        if taken.changed && taken.degraded.is_empty() {
            return Ok(millis(took));
        }
        Err("a snapshot did not see all changes".to_owned())
    }

    fn recipe(&self) -> Result<f64, String> {
        let (done, took) = time(|| recipe(&self.dir));
        done.map(|()| millis(took))
    }
}

/// Writes a file and waits until it is on the disk: no side should pay for what it finds.
fn settled(path: &Path, text: &str) -> Result<(), String> {
    let write = || {
        let mut file = fs::File::create(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()
    };
    write().map_err(|e: std::io::Error| e.to_string())
}

/// The way people do it: a temporary index copied from their own, and four commands.
fn recipe(dir: &Path) -> Result<(), String> {
    let index = dir.join(".git/bench-index");
    fs::copy(dir.join(".git/index"), &index).map_err(|e| e.to_string())?;
    let git = |words: &[&str]| -> Result<String, String> {
        let mut command = Command::new("git");
        command.current_dir(dir).args(["-c", "user.name=b", "-c", "user.email=b@localhost"]);
        let output = command.args(words).env("GIT_INDEX_FILE", &index).output();
        let output = output.map_err(|e| e.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    };
    git(&["add", "-A"])?;
    let tree = git(&["write-tree"])?;
    let commit = git(&["commit-tree", "-m", "bench", "-p", "HEAD", &tree])?;
    git(&["update-ref", "refs/bench/snapshot", &commit]).map(drop)
}

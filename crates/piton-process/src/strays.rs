//! Processes of a run without a keeper, found by its cgroup, its mark in the environment, or the
//! journal.
//!
//! The last resort at a takeover, after the keeper is known to be dead. Without a cgroup, it cannot
//! find a process that cleared its environment, left its session and lost its parents, nor one of
//! another user. A living keeper ends its children itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::cgroup::{self, Belonging};
use crate::journal::{Fact, JournalFacts};
use crate::lock;
use crate::os::{self, Pid, Process};
use crate::processes::{Table, ancestors, is_named, number};
use crate::protocol::{ATTEMPT_VARIABLE, MARK_VARIABLE};

/// How many times the tree is killed again before processes that fork faster are given up.
const PASSES_MAX: u32 = 50;

/// How long one pass waits for killed processes; one in an uninterruptible system call can take
/// that long.
const PASS_WAIT: Duration = Duration::from_millis(200);

/// The word in a keeper's command line.
const KEEPER_WORD: &str = "__keeper";

/// A process that belongs to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// Its process id.
    pub pid: u32,
    /// Its program's name.
    pub name: String,
    /// The attempt that started it, if its environment says so.
    pub key: Option<String>,
    process: Process,
}

/// Finds the processes of a run by its cgroup and its mark. Left out are this process and its
/// ancestors; if a keeper is named (one that lives), that keeper and all it holds; and daemons with
/// a name in `keep`, with all below them. A process that still has a parent in the run is not a
/// daemon.
pub fn find(mark: &str, keeper: Option<u32>, keep: &[String]) -> Vec<Stray> {
    let own = own_pid();
    let excluded: Vec<Pid> = ancestors(own).map(|process| process.pid).chain([own]).collect();
    let table = Table::now();
    let keeper = keeper.and_then(|pid| table.get(Pid::try_from(pid).ok()?));
    let held: Vec<Pid> = table.trees(keeper, |_| false).iter().map(|held| held.pid).collect();
    let found: Vec<&Process> = table
        .iter()
        .filter(|process| !process.zombie)
        .filter(|process| !excluded.contains(&process.pid) && !held.contains(&process.pid))
        .filter(|process| belongs(process, mark))
        // The table may be inconsistent; a process of a living keeper must not be taken for a
        // stray.
        .filter(|process| !keeper.is_some_and(|keeper| is_below(process, keeper)))
        .collect();
    let is_orphan = |process: &Process| !found.iter().any(|other| other.pid == process.parent);
    let kept = found.iter().filter(|process| is_orphan(process) && is_named(process, keep));
    let kept = table.trees(kept.copied(), |_| false);
    found
        .iter()
        .filter(|process| !kept.iter().any(|kept| kept.pid == process.pid))
        .map(|process| Stray {
            pid: number(process.pid),
            name: process.name.clone(),
            key: os::variable(process.pid, ATTEMPT_VARIABLE),
            process: (*process).clone(),
        })
        .collect()
}

/// Whether a process belongs to the run with this mark. A keeper is never a stray: one that lost
/// its run directory ends by itself, and holds its processes until then.
fn belongs(process: &Process, mark: &str) -> bool {
    if os::variable(process.pid, MARK_VARIABLE).as_deref() == Some(mark) {
        return true;
    }
    let of_run = match cgroup::belongs(process.pid, mark) {
        Belonging::None => false,
        Belonging::Within => os::command_line(process.pid).get(1).is_none_or(|w| w != KEEPER_WORD),
        Belonging::Below => true,
    };
    // Checked last: a process without arguments, such as a keeper that was just killed, is exiting.
    of_run && !os::is_exiting(process.pid)
}

fn is_below(process: &Process, keeper: &Process) -> bool {
    ancestors(process.pid).any(|above| above.pid == keeper.pid && above.start == keeper.start)
}

/// Kills these processes with everything below them, and waits until they are gone; returns those
/// that did not end.
pub fn end(strays: &[Stray]) -> Vec<Stray> {
    let mut left: Vec<Process> = strays.iter().map(|stray| stray.process.clone()).collect();
    kill_trees(&mut left);
    strays.iter().filter(|stray| left.contains(&stray.process)).cloned().collect()
}

/// Finds and kills the processes of a run until there are none, also those that fork meanwhile.
/// Returns all that were ended, or those that did not end.
pub fn sweep(mark: &str, keeper: Option<u32>, keep: &[String]) -> Result<Vec<Stray>, Vec<Stray>> {
    let mut ended = Vec::new();
    for _ in 0..PASSES_MAX {
        let found = find(mark, keeper, keep);
        if found.is_empty() {
            return Ok(ended);
        }
        let stubborn = end(&found);
        ended.extend(found);
        if !stubborn.is_empty() {
            break;
        }
    }
    let left = find(mark, keeper, keep);
    if left.is_empty() { Ok(ended) } else { Err(left) }
}

/// Kills what was started and did not end according to the journal, if it still lives: the process
/// itself (known by its start time), its session, and everything below. Returns their pids.
pub fn end_recorded(facts: &JournalFacts) -> Vec<u32> {
    if !facts.boot_matches {
        return Vec::new();
    }
    let table = Table::now();
    let mut found: Vec<Process> = Vec::new();
    for fact in facts.keys.values() {
        let Fact::Started { pid, start, .. } = fact else {
            continue;
        };
        let Ok(pid) = Pid::try_from(*pid) else {
            continue;
        };
        // A session is surely the recorded one only while its leader lives; the rest is found by
        // its mark.
        if table.get(pid).is_some_and(|leader| start.contains(leader.start)) {
            let session = table.iter().filter(|process| process.session == pid && !process.zombie);
            found.extend(session.cloned());
        }
    }
    let pids = found.iter().map(|process| number(process.pid)).collect();
    kill_trees(&mut found);
    pids
}

/// Kills in passes until nothing is left; processes left in `seeds` did not end.
fn kill_trees(seeds: &mut Vec<Process>) {
    let own = own_pid();
    for _ in 0..PASSES_MAX {
        let table = Table::now();
        let same = |process: &&Process| {
            seeds.iter().any(|seed| seed.pid == process.pid && seed.start == process.start)
        };
        let roots = table.iter().filter(same);
        let mut tree: Vec<Process> = table
            .trees(roots, |process| process.pid == own)
            .into_iter()
            .filter(|process| !process.zombie)
            .cloned()
            .collect();
        if tree.is_empty() {
            seeds.clear();
            return;
        }
        for process in &tree {
            os::signal(process, Signal::KILL);
        }
        os::wait_gone(&tree, PASS_WAIT);
        // Processes found below must be followed even if their parents are gone.
        seeds.append(&mut tree);
        seeds.sort_unstable_by_key(|process| (process.pid, process.start));
        seeds.dedup_by_key(|process| (process.pid, process.start));
    }
}

/// A keeper above this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Above {
    /// Its process id.
    pub pid: u32,
    /// Its run directory, where that is known.
    pub dir: Option<PathBuf>,
}

/// The keepers above this process, the nearest first: those recorded in one of the run folders
/// given, and any other whose command line says so. A step of a run inside a step has two.
pub fn keepers_above(dirs: &[&Path]) -> Vec<Above> {
    let keeper = |process: Process| {
        let pid = number(process.pid);
        if let Some(dir) = dirs.iter().find(|dir| lock::is_recorded(dir, &process)) {
            return Some(Above { pid, dir: Some(dir.to_path_buf()) });
        }
        let mut words = os::command_line(process.pid).into_iter().skip(1);
        words.next().filter(|word| word == KEEPER_WORD)?;
        Some(Above { pid, dir: words.next().map(PathBuf::from) })
    };
    ancestors(own_pid()).filter_map(keeper).collect()
}

/// Whether this process comes from a step of the run with this mark: it or one above it is in the
/// run's cgroup, or began with the mark in its environment. So a daemon that a step left on purpose
/// is known too, though no keeper is above it any more. Where the run had no cgroup, one that
/// cleared its environment and whose parents are all gone is not.
pub fn from_step(mark: &str) -> bool {
    let own = own_pid();
    std::iter::once(own).chain(ancestors(own).map(|above| above.pid)).any(|pid| {
        cgroup::belongs(pid, mark) != Belonging::None
            || os::variable(pid, MARK_VARIABLE).as_deref() == Some(mark)
    })
}

/// The attempt that this process is part of, as far as it or one above it carries its name.
pub fn attempt_above() -> Option<String> {
    let own = own_pid();
    let pids = std::iter::once(own).chain(ancestors(own).map(|above| above.pid));
    pids.into_iter().find_map(|pid| os::variable(pid, ATTEMPT_VARIABLE))
}

/// Whether a process that fits was started by one above this process: both are then children of the
/// same program. The first process of the system is above everybody, and says nothing.
pub fn has_sibling(fits: impl Fn(&[String]) -> bool) -> bool {
    let above: Vec<Pid> =
        ancestors(own_pid()).map(|above| above.pid).filter(|pid| *pid > 1).collect();
    let started_there = |process: &&Process| above.contains(&process.parent);
    let table = Table::now();
    table.iter().filter(started_there).any(|process| fits(&os::command_line(process.pid)))
}

/// Whether this process comes from a step of any run, of this project or another: it or one above it
/// carries a mark, or a keeper is above it.
pub fn is_in_step() -> bool {
    let own = own_pid();
    let mut pids = std::iter::once(own).chain(ancestors(own).map(|above| above.pid));
    pids.any(|pid| os::variable(pid, MARK_VARIABLE).is_some()) || !keepers_above(&[]).is_empty()
}

fn own_pid() -> Pid {
    rustix::process::getpid().as_raw_nonzero().get()
}

//! What may happen to a feature, in any order.

use std::fs;

use super::super::super::kills::kill_pass;
use super::super::super::scratch::Scratch;
use super::super::super::{Broken, Round};
use super::super::project::{FOLDER, RECORD, STAGES};
use super::{agent, file, person, piton};

const KILL: &str = "kills";
const TICK: &str = "ticks";
const EDIT: &str = "edits";
const REMOVAL: &str = "removals";
const GARBLED: &str = "garbled state files";
const REJECTION: &str = "rejections";
const CHANGES: &str = "changes wanted";
const ABORT: &str = "aborts";
const RERUN: &str = "reruns";
const WRONG: &str = "agents that fail";
/// What must have happened.
pub(super) const AIMS: [&str; 10] =
    [KILL, TICK, EDIT, REMOVAL, GARBLED, REJECTION, CHANGES, ABORT, RERUN, WRONG];

/// Files of the feature that people change and lose.
const FILES: [&str; 12] = [
    "feature.spec.md",
    "research.md",
    "adr.md",
    "tasks.md",
    "test-certification.md",
    "test-report.md",
    "code-review.md",
    "security-report.md",
    "refactor-proposals.md",
    "constitution.md",
    ".pipeline-state.md",
    ".",
];
/// The gates.
const GATES: [&str; 4] = ["architect", "tasks", "refactor", "programmer/main/work"];
/// Statuses that people and tools write.
const STATUSES: [&str; 8] = [
    "IN_PROGRESS",
    "WAITING_FOR_HUMAN",
    "ABORTED",
    "COMPLETE",
    "FAILED",
    "CANCELLED",
    "PAUSED",
    "",
];
/// A driver is killed within so many milliseconds: a stage takes about a tenth of it.
const KILL_WITHIN_MS: u64 = 500;
/// Attempts in a row that go wrong: enough to use up the largest budget.
const WRONG_MAX: u64 = 6;

fn pick<'a>(round: &mut Round<'_>, all: &[&'a str]) -> &'a str {
    let place = round.rng.below(all.len() as u64);
    all[usize::try_from(place).unwrap_or(0)]
}

/// Does something.
pub(super) fn act(
    round: &mut Round<'_>,
    scratch: &Scratch,
    done: &mut Vec<String>,
) -> Result<(), Broken> {
    match round.rng.below(28) {
        0..=5 => return piton(scratch, &["run", FOLDER], done).map(drop),
        6..=8 => return kill(round, scratch, done),
        9 | 10 => tick(round, scratch, done)?,
        11..=13 => edit(round, scratch, done)?,
        14 => remove(round, scratch, done)?,
        15 => garble(round, scratch, done)?,
        16 | 17 => drop(piton(scratch, &["approve", pick(round, &GATES)], done)?),
        18 => {
            round.tally.met(&[REJECTION]);
            drop(piton(scratch, &["reject", pick(round, &GATES), "-m", "no"], done)?);
        }
        19 => {
            round.tally.met(&[CHANGES]);
            let words = ["reject", pick(round, &GATES), "--changes", "-m", "more"];
            drop(piton(scratch, &words, done)?);
        }
        20 => {
            round.tally.met(&[ABORT]);
            let words = ["abort", "--yes", "--cancel"];
            let count = if round.rng.one_in(3) { 3 } else { 2 };
            drop(piton(scratch, &words[..count], done)?);
        }
        21 | 22 => rerun(round, scratch, done)?,
        23 | 24 => wrong(round, scratch, done)?,
        25 | 26 => approve_what_waits(scratch, done)?,
        _ => {
            done.push("git commit".to_owned());
            scratch.git(&["add", "--all"])?;
            scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "all"])?;
        }
    }
    Ok(())
}

/// Approves what the program says waits.
pub(super) fn approve_what_waits(scratch: &Scratch, done: &mut Vec<String>) -> Result<(), Broken> {
    let mut next = person::waiting(scratch)?.into_iter();
    if let Some(command) = next.find(|words| words.starts_with("approve ")) {
        let words: Vec<&str> = command.split_whitespace().collect();
        piton(scratch, &words, done)?;
    }
    Ok(())
}

fn kill(round: &mut Round<'_>, scratch: &Scratch, done: &mut Vec<String>) -> Result<(), Broken> {
    let mut driver = scratch.start(&["run", FOLDER])?;
    // Somebody may write beside it.
    if round.rng.one_in(3) && driver.wait_for(round.rng.millis_below(KILL_WITHIN_MS))?.is_none() {
        done.push("while a driver is at work:".to_owned());
        match round.rng.below(3) {
            0 => tick(round, scratch, done)?,
            1 => edit(round, scratch, done)?,
            _ => remove(round, scratch, done)?,
        }
    }
    let moment = round.rng.millis_below(KILL_WITHIN_MS);
    if let Some(ended) = driver.wait_for(moment)? {
        done.push(format!("piton run {FOLDER} => {}", ended.code()));
        return Ok(());
    }
    let everything = round.rng.one_in(2);
    if everything {
        kill_pass(round, scratch, &mut driver, false)?;
    } else {
        driver.kill()?;
    }
    let what = if everything { "all of it" } else { "it" };
    done.push(format!("piton run {FOLDER}, and {what} is killed after {} ms", moment.as_millis()));
    round.tally.met(&[KILL]);
    Ok(())
}

fn tick(round: &mut Round<'_>, scratch: &Scratch, done: &mut Vec<String>) -> Result<(), Broken> {
    let (from, to) = if round.rng.one_in(4) { ("[x]", "[ ]") } else { ("[ ]", "[x]") };
    let path = file(scratch, RECORD);
    let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
    let boxes = text.match_indices(&format!("- {from}")).count() as u64;
    let chosen = usize::try_from(round.rng.below(boxes)).unwrap_or(0);
    let Some((at, _)) = text.match_indices(&format!("- {from}")).nth(chosen) else {
        return Ok(());
    };
    let (before, after) = text.split_at(at);
    let line = after.lines().next().unwrap_or_default();
    done.push(format!("{line} becomes {to}"));
    round.tally.met(&[TICK]);
    let new = format!("{before}{}", after.replacen(from, to, 1));
    fs::write(path, new).map_err(|e| e.to_string())
}

fn edit(round: &mut Round<'_>, scratch: &Scratch, done: &mut Vec<String>) -> Result<(), Broken> {
    let name = pick(round, &FILES[..FILES.len() - 2]);
    let path = file(scratch, FOLDER).join(name);
    let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
    let new = match round.rng.below(3) {
        0 => String::new(),
        1 => "## Constitution Check\n\n| Article | Status | Notes |\n|---|---|---|\n| I | | |\n"
            .to_owned(),
        _ => format!("{text}By hand {}.\n", round.rng.below(1000)),
    };
    done.push(format!("{name} becomes {:?}", new.lines().last().unwrap_or_default()));
    round.tally.met(&[EDIT]);
    fs::write(path, new).map_err(|e| e.to_string())
}

fn remove(round: &mut Round<'_>, scratch: &Scratch, done: &mut Vec<String>) -> Result<(), Broken> {
    let name = pick(round, &FILES);
    let path = file(scratch, FOLDER).join(name);
    round.tally.met(&[REMOVAL]);
    if name == "." {
        done.push("all files but the spec are removed".to_owned());
        for entry in fs::read_dir(&path).map_err(|e| e.to_string())?.flatten() {
            if entry.path().file_name() != std::path::Path::new(agent::SPEC).file_name() {
                fs::remove_file(entry.path()).map_err(|e| e.to_string())?;
            }
        }
        return Ok(());
    }
    done.push(format!("{name} is removed"));
    let _ = fs::remove_file(path);
    Ok(())
}

/// Makes the state file one that is hard to understand, or not a state file.
fn garble(round: &mut Round<'_>, scratch: &Scratch, done: &mut Vec<String>) -> Result<(), Broken> {
    let path = file(scratch, RECORD);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let new = match round.rng.below(5) {
        0 => "A shopping list.\n".to_owned(),
        1 => text[..text.len() / 2].to_owned(),
        2 => String::new(),
        _ => {
            let status = pick(round, &STATUSES);
            let line = format!("- status: {status}");
            let is_status = |line: &str| line.starts_with("- status:");
            let lines = text.lines().map(|old| if is_status(old) { line.as_str() } else { old });
            lines.flat_map(|line| [line, "\n"]).collect()
        }
    };
    let shown = new.lines().find(|line| line.starts_with("- status:")).unwrap_or(&new);
    done.push(format!("the state file becomes {} bytes, {:?}", new.len(), shown.lines().next()));
    round.tally.met(&[GARBLED]);
    fs::write(path, new).map_err(|e| e.to_string())
}

fn rerun(round: &mut Round<'_>, scratch: &Scratch, done: &mut Vec<String>) -> Result<(), Broken> {
    let stages = STAGES.map(|(stage, _)| stage);
    let step = format!("{}/main/work", pick(round, &stages));
    let words: &[&str] = match round.rng.below(6) {
        0 => &["retry"],
        1 => &["retry", &step, "--again"],
        2 => &["retry", &step, "--again", "--downstream"],
        3 => &["skip", &step],
        4 => &["rollback", "--yes"],
        _ => &["undo", "--yes"],
    };
    round.tally.met(&[RERUN]);
    piton(scratch, words, done).map(drop)
}

/// Lets attempts of a stage go wrong.
fn wrong(round: &mut Round<'_>, scratch: &Scratch, done: &mut Vec<String>) -> Result<(), Broken> {
    let stages = STAGES.map(|(stage, _)| stage);
    let stage = pick(round, &stages);
    let one = pick(round, &agent::WAYS);
    let is_same = round.rng.one_in(2);
    let count = 1 + round.rng.below(WRONG_MAX);
    let ways: Vec<&str> =
        (0..count).map(|_| if is_same { one } else { pick(round, &agent::WAYS) }).collect();
    done.push(format!("the next attempts of {stage} go wrong: {}", ways.join(", ")));
    round.tally.met(&[WRONG]);
    let list = scratch.outside().join(agent::WRONG).join(stage);
    fs::write(list, ways.join("\n") + "\n").map_err(|e| e.to_string())
}

//! A person who does what is printed, and nothing else, until the feature is complete.

use std::fs;

use serde_json::Value;

use super::super::super::scratch::Scratch;
use super::super::super::{Broken, Round};
use super::super::project::{FOLDER, RECORD};
use super::agent::SPEC;
use super::{file, piton};

/// Commands that a person needs at most: each stage may be tried six times, and each try may end in a
/// question.
const MOVES_MAX: usize = 60;
/// Commands that only show something: they lead nowhere.
const LOOKS: [&str; 9] =
    ["explain", "inspect", "show", "log", "status", "runs", "attach", "diff", "doctor"];
/// The exit code of a run that stopped because the world differs from the record.
const BLOCKED: i32 = 4;
/// The exit code of a command that cannot be meant like that.
const USAGE: i32 = 2;

/// Leads the feature to its end.
pub(super) fn follows(
    round: &mut Round<'_>,
    scratch: &Scratch,
    done: &mut Vec<String>,
) -> Result<(), Broken> {
    let run = ["run", FOLDER];
    let (mut code, mut said) = piton(scratch, &run, done)?;
    for _ in 0..MOVES_MAX {
        if by_hand(scratch, &said, done)? {
            let next = printed(&said).into_iter().find(|words| words.starts_with("resume "));
            let next = next.unwrap_or_else(|| run.join(" "));
            (code, said) = piton(scratch, &next.split(' ').collect::<Vec<_>>(), done)?;
            continue;
        }
        if code == 0 && is_complete(scratch, done)? {
            return Ok(());
        }
        let mut moves = printed(&said);
        if code != 0 {
            moves.extend(waiting(scratch)?);
        }
        if moves.is_empty() {
            return Err(format!("exit {code}, and nothing to do is printed:\n{said}"));
        }
        let chosen = usize::try_from(round.rng.below(moves.len() as u64)).unwrap_or(0);
        let words: Vec<&str> = moves[chosen].split_whitespace().collect();
        (code, said) = piton(scratch, &words, done)?;
        let accepts = words.iter().any(|word| word.starts_with("--accept"));
        if code == USAGE || (code == BLOCKED && accepts) {
            return Err(format!(
                "`piton {}` is printed and does not work:\n{said}",
                words.join(" ")
            ));
        }
        // What is decided is carried out by the next run.
        if code == 0 && printed(&said).is_empty() && !is_driven(done) {
            (code, said) = piton(scratch, &run, done)?;
        }
    }
    Err(format!("the feature is not complete after {MOVES_MAX} commands that were printed"))
}

/// Whether the last command drove the run.
fn is_driven(done: &[String]) -> bool {
    let drives = ["piton run", "piton resume"];
    done.last().is_some_and(|last| drives.iter().any(|words| last.starts_with(words)))
}

/// Whether the run is complete after the last command, and the state file says so.
fn is_complete(scratch: &Scratch, done: &[String]) -> Result<bool, Broken> {
    if !is_driven(done) {
        return Ok(false);
    }
    let text = fs::read_to_string(file(scratch, RECORD)).unwrap_or_default();
    if text.lines().any(|line| line == "- status: COMPLETE") {
        return Ok(true);
    }
    Err(format!("the run ended with 0, and its state file says\n{text}"))
}

/// The commands that were printed and lead somewhere.
fn printed(said: &str) -> Vec<String> {
    let quoted = said
        .match_indices("`piton ")
        .filter_map(|(at, open)| said[at + open.len()..].split('`').next());
    let next = said.lines().filter(|line| line.contains("next: "));
    let next = next.filter_map(|line| line.rsplit_once("piton ").map(|(_, rest)| rest));
    quoted.chain(next).filter(|words| leads(words)).map(str::to_owned).collect()
}

/// What waits for a person, as the program lists it.
pub(super) fn waiting(scratch: &Scratch) -> Result<Vec<String>, Broken> {
    let output = scratch.piton(&["waiting", "--json"]).output().map_err(|e| e.to_string())?;
    let items: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("waiting --json: {e}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let items = items.as_array().cloned().unwrap_or_default();
    let next = items.iter().filter_map(|item| item["next"].as_str()?.strip_prefix("piton "));
    Ok(next.filter(|words| leads(words)).map(str::to_owned).collect())
}

/// Whether a command does something, and has all its names.
fn leads(words: &str) -> bool {
    let is_name = |word: &str| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase());
    let first = words.split_whitespace().next().unwrap_or_default();
    !LOOKS.contains(&first) && !words.split_whitespace().any(is_name)
}

/// Does what is printed in words: a state file that nobody understands is moved away or corrected, a
/// spec that is missing is written.
fn by_hand(scratch: &Scratch, said: &str, done: &mut Vec<String>) -> Result<bool, Broken> {
    let path = file(scratch, RECORD);
    if said.contains("move it away") {
        done.push("the state file is moved away".to_owned());
        fs::rename(&path, path.with_extension("away")).map_err(|e| e.to_string())?;
        return Ok(true);
    }
    if said.contains("error[spec-missing]") {
        done.push("the spec is written".to_owned());
        fs::write(file(scratch, SPEC), "# CSV\n\nAgain.\n").map_err(|e| e.to_string())?;
        return Ok(true);
    }
    if said.contains("change its status to IN_PROGRESS") || said.contains("add a line `- status") {
        done.push("its status becomes IN_PROGRESS".to_owned());
        let text = fs::read_to_string(&path).map_err(|e| e.to_string())?;
        let kept = text.lines().filter(|line| !line.starts_with("- status:"));
        let kept: String = kept.flat_map(|line| [line, "\n"]).collect();
        let new =
            kept.replacen("# Pipeline State\n", "# Pipeline State\n\n- status: IN_PROGRESS\n", 1);
        fs::write(&path, new).map_err(|e| e.to_string())?;
        return Ok(true);
    }
    Ok(false)
}

//! Random histories of a feature, and a person who then does nothing but what is printed.
//!
//! Kills, ticks, edits, rejections, changes wanted, aborts, missing files and agents that fail lead to
//! some state of the feature. From there each command that is printed must work, and following them must
//! end in a complete feature: no state is one in which a person is stuck.

mod acts;
mod agent;
mod person;

use std::path::{Path, PathBuf};

use super::super::scratch::Scratch;
use super::super::{Broken, Round};
use super::project::FOLDER;

/// What must have happened, and how often in full.
pub(in crate::soak) const AIMS: (&[&str], u64) = (&acts::AIMS, 20);
/// Acts of the shortest history, and how many more there may be.
const ACTS: (u64, u64) = (3, 12);

/// Boxes that a feature has on its way.
const BOXES: u64 = 3;

/// One round.
pub(in crate::soak) fn history(round: &mut Round<'_>) -> Result<(), Broken> {
    let mut scratch = Scratch::with_files(round, false, agent::files)?;
    agent::prepare(scratch.outside())?;
    let mut done = Vec::new();
    let lived = live(round, &scratch, &mut done);
    let ended = lived.and_then(|()| {
        done.push("then only what is printed".to_owned());
        person::follows(round, &scratch, &mut done)
    });
    ended.map_err(|broken| {
        let done: Vec<String> = done.iter().map(|act| format!("\n    - {act}")).collect();
        scratch.report(&format!("{broken}{}", done.concat()))
    })
}

fn live(round: &mut Round<'_>, scratch: &Scratch, done: &mut Vec<String>) -> Result<(), Broken> {
    // Some begin late: most states are those of a feature that is well under way.
    for _ in 0..round.rng.below(BOXES + 1) {
        piton(scratch, &["run", FOLDER], done)?;
        acts::approve_what_waits(scratch, done)?;
    }
    let (least, more) = ACTS;
    for _ in 0..least + round.rng.below(more) {
        acts::act(round, scratch, done)?;
        round.tally.kills += 1;
    }
    Ok(())
}

/// A file of the repository.
fn file(scratch: &Scratch, path: impl AsRef<Path>) -> PathBuf {
    scratch.base().join("repo").join(path)
}

/// Runs a command of the program to its end; a crash of it breaks the round.
fn piton(
    scratch: &Scratch,
    words: &[&str],
    done: &mut Vec<String>,
) -> Result<(i32, String), Broken> {
    done.push(format!("piton {}", words.join(" ")));
    let ended = scratch.start(words)?.wait()?;
    if let Some(last) = done.last_mut() {
        last.extend([" => ", &ended.code().to_string()]);
    }
    if ended.code() > LAST_CODE || ended.said.contains("panicked") {
        return Err(format!("piton {} ended with {}", words.join(" "), ended.word()));
    }
    Ok((ended.code(), ended.said))
}

/// Exit codes up to this one mean something to people; others are signals and crashes.
const LAST_CODE: i32 = 4;

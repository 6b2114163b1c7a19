//! The command that says whether a pull request is merged, asked by the driver itself.
//!
//! It belongs to no step, so nobody else ends it: one that hangs goes after a while, with all that it
//! started. Whatever goes wrong with it is no merge and is told; it is asked again later.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use piton_core::plan;
use piton_engine::Result;
use piton_workspace::git::NAMES_A_REPOSITORY;
use rustix::process::{Pid, Signal, kill_process};

use super::failed;

/// How long it may take; the driver waits for it.
const ASKED_MAX: Duration = Duration::from_secs(30);
/// How often it is looked whether it is over.
const ASKED_EVERY: Duration = Duration::from_millis(20);

/// What it says.
pub(super) enum Answer {
    /// The request is merged.
    Merged,
    /// It is not, and this is what the command had to say.
    NotMerged(Option<String>),
}

/// Asks in a folder, with these variables; `said` is a file for what the command prints.
pub(super) fn ask(
    command: &plan::Command,
    root: &Path,
    said: &Path,
    variables: &[(&str, &str)],
) -> Result<Answer> {
    let out = File::create(said).map_err(failed)?;
    let (program, args) = match command {
        plan::Command::Shell(line) => ("/bin/sh", vec!["-c", line]),
        plan::Command::Args(all) => {
            let Some((program, args)) = all.split_first() else {
                return Ok(Answer::NotMerged(None));
            };
            (program.as_str(), args.iter().map(String::as_str).collect())
        }
    };
    let mut asked = Command::new(program);
    for name in NAMES_A_REPOSITORY {
        asked.env_remove(name);
    }
    let asked = asked
        .args(args)
        .current_dir(root)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(out.try_clone().map_err(failed)?)
        .stderr(out)
        .spawn();
    let answer = match asked {
        Ok(child) => answered(child, said)?,
        Err(error) => {
            let fix = "correct `merged` of [pull_request] in piton.toml";
            Answer::NotMerged(Some(format!("`{program}` could not be started: {error}; {fix}")))
        }
    };
    let _ = fs::remove_file(said);
    Ok(answer)
}

fn answered(mut child: Child, said: &Path) -> Result<Answer> {
    let began = Instant::now();
    while began.elapsed() < ASKED_MAX {
        if let Some(status) = child.try_wait().map_err(failed)? {
            let text = fs::read(said).unwrap_or_default();
            let line = first_line(&String::from_utf8_lossy(&text));
            return Ok(if status.success() { Answer::Merged } else { Answer::NotMerged(line) });
        }
        std::thread::sleep(ASKED_EVERY);
    }
    end_tree(child.id());
    let _ = child.kill();
    let _ = child.wait();
    let why = format!("the command that looks at it did not end in {ASKED_MAX:?}");
    Ok(Answer::NotMerged(Some(why)))
}

/// Ends what a process started and what that started; stopped first, so that nothing new comes while
/// it is looked.
fn end_tree(pid: u32) {
    let tell = |signal| {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, signal));
    };
    tell(Signal::STOP);
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).for_each(end_tree);
    tell(Signal::KILL);
}

/// The first line that says something.
fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_owned())
}

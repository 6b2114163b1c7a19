//! The command that reports whether a pull request is merged, run by the driver itself.
//!
//! It belongs to no step, so nothing else ends it: one that hangs is ended after a while, with all that
//! it started. Whatever goes wrong with it counts as not merged and is reported; it runs again later.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use piton_core::plan;
use piton_engine::world::PullRequest;
use piton_workspace::git::NAMES_A_REPOSITORY;
use rustix::process::{Pid, Signal, kill_process};

use super::error::Result;
use crate::notes;

/// How long it may take; the driver waits for it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often it is checked whether it has ended.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// Runs the command in a folder, with these variables; `said` is a file for what it prints.
pub(super) fn run(
    command: &plan::Command,
    root: &Path,
    said: &Path,
    variables: &[(&str, &str)],
) -> Result<PullRequest> {
    let out = File::create(said)?;
    let (program, args) = match command {
        plan::Command::Shell(line) => ("/bin/sh", vec!["-c", line]),
        plan::Command::Args(all) => {
            let Some((program, args)) = all.split_first() else {
                return Ok(PullRequest::Open(None));
            };
            (program.as_str(), args.iter().map(String::as_str).collect())
        }
    };
    let mut command = Command::new(program);
    for name in NAMES_A_REPOSITORY {
        command.env_remove(name);
    }
    let child = command
        .args(args)
        .current_dir(root)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out)
        .spawn();
    let answer = match child {
        Ok(child) => wait(child, said)?,
        Err(error) => PullRequest::Open(Some(notes::command_not_started(program, &error))),
    };
    let _ = fs::remove_file(said);
    Ok(answer)
}

fn wait(mut child: Child, said: &Path) -> Result<PullRequest> {
    let began = Instant::now();
    while began.elapsed() < TIMEOUT {
        if let Some(status) = child.try_wait()? {
            let text = fs::read(said).unwrap_or_default();
            let line = first_line(&String::from_utf8_lossy(&text));
            return Ok(if status.success() {
                PullRequest::Merged(notes::REPORTED_AS_MERGED.to_owned())
            } else {
                PullRequest::Open(line)
            });
        }
        std::thread::sleep(CHECK_EVERY);
    }
    end_tree(child.id());
    let _ = child.kill();
    let _ = child.wait();
    Ok(PullRequest::Open(Some(notes::command_timed_out(TIMEOUT.as_secs()))))
}

/// Ends a process and all that it started. It is stopped first, so that it starts nothing new
/// in the meantime.
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

/// The first line that is not blank.
fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_owned())
}

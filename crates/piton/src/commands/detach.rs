//! Driving in the background: the same program, in a session of its own, its words in a file.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use piton_view::answers::Detached;

use crate::cli::DriveArgs;
use crate::context::Context;
use crate::environment::{DETACHED, environment};
use crate::error::{CommandError, Kind, Result};
use crate::ui;

/// How long a background driver may take to get hold of its run.
const START_WAIT: Duration = Duration::from_secs(20);
/// Most words of a background driver that are repeated: a refusal is a few lines.
const WORDS_BYTES_MAX: u64 = 4096;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Leaves the terminal's session, in a driver that was started for the background.
pub fn leave_terminal() {
    if environment().is_detached {
        // It fails only for the leader of a process group, which has what it needs already.
        let _ = rustix::process::setsid();
    }
}

/// Starts a driver for a run in the background and returns once it drives.
pub fn spawn(context: &Context, run_id: &str, args: &DriveArgs) -> Result<()> {
    let failed = |e: std::io::Error| {
        CommandError::failed("detach", format!("cannot start a background driver: {e}"))
    };
    let driven_before = context.read_store()?.load(run_id)?.state.epoch;
    let dir = context.run_dir(run_id);
    std::fs::create_dir_all(&dir).map_err(failed)?;
    let log_path = dir.join("driver.log");
    let log = OpenOptions::new().create(true).append(true).open(&log_path).map_err(failed)?;
    let said_before = log.metadata().map_or(0, |found| found.len());
    let mut command = Command::new(environment().inherited.own_program());
    // Not the folder that this was called in: that one may go while the run does not.
    let root = &context.project.root;
    command.arg("--yes").arg("-C").arg(root).args(["resume", run_id]).current_dir(root);
    let texts = [("--phase", &args.phase), ("--lane", &args.lane), ("--base", &args.base)];
    for (flag, value) in texts {
        if let Some(value) = value {
            command.args([flag, value]);
        }
    }
    for (flag, value) in [("--jobs", args.jobs), ("--retries", args.retries)] {
        if let Some(value) = value {
            command.arg(flag).arg(value.to_string());
        }
    }
    for (flag, set) in [
        ("--keep-going", args.keep_going),
        ("--force-replan", args.force_replan),
        ("--takeover", args.takeover),
        ("--seed-dirty", args.seed_dirty),
        ("--accept-plan", args.accept_plan),
        ("--accept-spec", args.accept_spec),
        ("--accept-outputs", args.accept_outputs),
        ("--accept-gates", args.accept_gates),
    ] {
        if set {
            command.arg(flag);
        }
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(failed)?)
        .stderr(log)
        .env(DETACHED, "1")
        .spawn()
        .map_err(failed)?;
    let pid = child.id();
    let deadline = Instant::now() + START_WAIT;
    loop {
        // Not the lease: it is held while the world is compared, and a difference may stop there.
        let loaded = context.read_store()?.load(run_id)?;
        if loaded.state.epoch > driven_before {
            break;
        }
        if let Some(status) = child.try_wait().map_err(failed)? {
            // It was quick, whatever came of it: failed steps and gates are for `piton status`.
            if status.success() || context.read_store()?.load(run_id)?.state.epoch > driven_before {
                break;
            }
            return Err(ended(status, &log_path, said_before));
        }
        if Instant::now() > deadline {
            // It has the run and still looks around: much has to be compared.
            if loaded.row.owner.is_some_and(|lease| lease.owner.pid == pid) {
                break;
            }
            return Err(CommandError::failed(
                "detach",
                "the background driver did not take the run in time",
            )
            .hint(format!("its output is in {}", log_path.display())));
        }
        std::thread::sleep(PAUSE);
    }
    ui::report(context.json, &Detached { run_id, pid, log: &log_path });
    Ok(())
}

/// The error of a driver that ended before it drove, in its own words and with its own exit code.
fn ended(status: ExitStatus, log: &Path, said_before: u64) -> CommandError {
    let mut words = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        file.seek(SeekFrom::Start(said_before))?;
        file.take(WORDS_BYTES_MAX).read_to_end(&mut words)
    });
    let words = String::from_utf8_lossy(&words);
    let words = if read.is_ok() { words.trim() } else { "" };
    let kind = match status.code() {
        Some(2) => Kind::Usage,
        Some(3) => Kind::Waiting,
        Some(4) => Kind::Blocked,
        Some(5) => Kind::Driven,
        Some(6) => Kind::Budget,
        _ => Kind::Failed,
    };
    let message = format!("the background driver did not start ({status})");
    let message = if words.is_empty() { message } else { format!("{message}:\n{words}") };
    CommandError::new(kind, "detach", message)
        .hint(format!("all its output is in {}", log.display()))
}

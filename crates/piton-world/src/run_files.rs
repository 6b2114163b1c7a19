//! The files in the folder of a run that belong to its attempts: prompts as they were sent, logs.

use std::path::{Path, PathBuf};

use piton_core::StepPath;
use piton_core::redact::Redactor;
use piton_engine::world::{Attempt, Ended};
use piton_process::logs::{AttemptLog, Selection};
use piton_process::protocol::{Dropped, Range};

use crate::tail;

/// Where the prompt of an attempt is kept as it was sent, without secrets.
pub fn prompt_file(run_dir: &Path, attempt: &Attempt) -> PathBuf {
    let StepPath { phase, lane, step } = &attempt.step;
    // No id has a tilde.
    run_dir.join("prompts").join(format!("{phase}~{lane}~{step}-{}.md", attempt.number))
}

/// The two log files of a lane.
pub fn lane_logs(run_dir: &Path, step: &StepPath) -> (PathBuf, PathBuf) {
    let base = run_dir.join("logs").join(&step.phase);
    (base.join(format!("{}.out", step.lane)), base.join(format!("{}.err", step.lane)))
}

/// The output of an attempt that has ended.
pub(crate) fn log_of(run_dir: &Path, ended: &Ended) -> AttemptLog {
    let (stdout, stderr) = lane_logs(run_dir, &ended.attempt.step);
    let range = |r: (u64, u64)| Range { start: r.0, end: r.1 };
    AttemptLog {
        stdout,
        stderr,
        stdout_range: range(ended.logs.stdout),
        stderr_range: range(ended.logs.stderr),
        dropped: Dropped {
            stdout: ended.logs.stdout_dropped.map(range),
            stderr: ended.logs.stderr_dropped.map(range),
        },
    }
}

/// The last line a running step wrote, whose output begins at these places; without secrets.
pub fn last_line(
    run_dir: &Path,
    step: &StepPath,
    (out, err): (u64, u64),
    redactor: &Redactor,
) -> Option<String> {
    let (stdout, stderr) = lane_logs(run_dir, step);
    let log = AttemptLog::of_running(&stdout, &stderr, out, err);
    let line = tail::last_lines(&log, Selection::Both, 1, redactor).ok()?.pop()?;
    // It is shown alone, without its indentation.
    Some(line.trim_start().to_owned())
}

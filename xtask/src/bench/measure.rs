//! Medians, stopwatches, and the folders that measurements work in.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The median; none of nothing.
pub(super) fn median(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    if samples.is_empty() {
        return None;
    }
    if samples.len().is_multiple_of(2) {
        return Some(f64::midpoint(samples[middle - 1], samples[middle]));
    }
    Some(samples[middle])
}

/// How long something takes.
pub(super) fn time<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let done = act();
    (done, begun.elapsed())
}

/// Microseconds.
pub(super) fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}

/// Milliseconds.
pub(super) fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

/// A command in a folder that says nothing and must succeed.
pub(super) fn quiet(program: &Path, words: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(words)
        .current_dir(dir)
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// How long a command takes from its start to its end, in milliseconds.
pub(super) fn time_command(command: &mut Command) -> Result<f64, String> {
    let (status, took) = time(|| command.status());
    let status = status
        .map_err(|e| format!("{} could not be started: {e}", command.get_program().display()))?;
    if status.success() {
        return Ok(millis(took));
    }
    Err(format!("{command:?} ended with {status}"))
}

/// Two commands in turn, so many rounds after one to warm up; the medians in milliseconds.
pub(super) fn in_turn(
    rounds: usize,
    mut first: impl FnMut() -> Result<f64, String>,
    mut second: impl FnMut() -> Result<f64, String>,
) -> Result<(f64, f64), String> {
    first()?;
    second()?;
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // Who comes first changes, so that neither always pays for what the other left behind.
        if round.is_multiple_of(2) {
            firsts.push(first()?);
            seconds.push(second()?);
        } else {
            seconds.push(second()?);
            firsts.push(first()?);
        }
    }
    median(firsts).zip(median(seconds)).ok_or_else(|| "no rounds were measured".to_owned())
}

/// Makes a git repository in a folder.
pub(super) fn repository(dir: &Path) -> Result<(), String> {
    time_command(&mut quiet(Path::new("git"), &["init", "--quiet"], dir)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}

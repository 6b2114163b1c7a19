//! `cargo xtask test`: everything a change has to pass, in one command with one summary.
//!
//! Steps go on after one that failed, so that one run shows everything there is to mend; only what
//! cannot work without an earlier step is left out, and counts as failed.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use crate::agents::{self, Outcome};
use crate::shell::{answers, capture, cargo};
use crate::{Failure, Result, report_check, soak, tools};

/// How one step went.
struct Done {
    name: String,
    word: &'static str,
    took: Duration,
    remark: String,
}

/// How a step went, in the summary.
const PASSED: &str = "passed";
const FAILED: &str = "FAILED";
const SKIPPED: &str = "skipped";

/// The steps so far.
#[derive(Default)]
struct Steps(Vec<Done>);

impl Steps {
    /// Carries out a step: its result is a remark for the summary, or all that is to be shown.
    fn step(
        &mut self,
        name: &str,
        act: impl FnOnce() -> std::result::Result<String, String>,
    ) -> bool {
        self.skippable(name, || match act() {
            Ok(remark) => Outcome::Passed(remark),
            Err(output) => Outcome::Failed(output),
        })
    }

    /// Carries out a step that cannot be carried out everywhere.
    fn skippable(&mut self, name: &str, act: impl FnOnce() -> Outcome) -> bool {
        eprintln!("== {name}");
        let begun = Instant::now();
        let outcome = act();
        let took = begun.elapsed();
        let (word, remark) = match outcome {
            Outcome::Passed(remark) => (PASSED, remark),
            Outcome::Skipped(why) => (SKIPPED, why),
            Outcome::Failed(output) => {
                eprintln!("{}", output.trim_end());
                (FAILED, "output above".to_owned())
            }
        };
        eprintln!("== {name}: {word} in {:.1} s", took.as_secs_f64());
        self.0.push(Done { name: name.to_owned(), word, took, remark });
        word == PASSED
    }

    /// Carries out a step that is one cargo command.
    fn cargo(&mut self, name: &str, words: &[&str], env: &[(&str, &str)]) -> bool {
        self.step(name, || {
            let (passed, output) = capture(cargo(words).envs(env.iter().copied()));
            if passed { Ok(counted(&output)) } else { Err(output) }
        })
    }

    fn left_out(&mut self, name: &str, because: &str) {
        let remark = format!("not run: {because}");
        let (name, took) = (name.to_owned(), Duration::ZERO);
        self.0.push(Done { name, word: FAILED, took, remark });
    }

    fn summary(&self) -> Result<()> {
        let width = self.0.iter().map(|done| done.name.len()).max().unwrap_or(0);
        println!();
        for Done { name, word, took, remark } in &self.0 {
            let line = format!("{name:width$}  {word:7} {:6.1} s  {remark}", took.as_secs_f64());
            println!("{}", line.trim_end());
        }
        let count = |wanted: &str| self.0.iter().filter(|done| done.word == wanted).count();
        let (passed, failed, skipped) = (count(PASSED), count(FAILED), count(SKIPPED));
        let note = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
        println!("{passed} passed, {failed} failed{note}");
        if failed == 0 { Ok(()) } else { Err(Failure::Said) }
    }
}

/// Runs all steps.
pub(crate) fn run() -> Result<()> {
    let mut steps = Steps::default();
    if !steps.step("tools", needed) {
        return steps.summary();
    }
    // It takes as long as the lints, and is needed only after the build.
    let browser = thread::spawn(|| tools::ensure(&[tools::CHROMIUM]));
    steps.cargo("format", &["fmt", "--all", "--check"], &[]);
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    steps.cargo("lints", &clippy, &[]);
    let docs = ["doc", "--workspace", "--no-deps"];
    steps.cargo("docs", &docs, &[("RUSTDOCFLAGS", "-D warnings")]);
    let built = steps.cargo("release build", &["build", "--release", "--package", "piton"], &[]);
    if answers("cargo", &["nextest", "--version"]) {
        let mut words = vec!["nextest", "run", "--workspace", "--no-fail-fast"];
        // One more than there are processors: tests wait for the disk, and for clocks.
        let threads =
            thread::available_parallelism().map_or(2, |cores| cores.get() + 1).to_string();
        words.extend(["--status-level", "fail", "--test-threads", &threads]);
        steps.cargo("tests", &words, &[]);
    } else {
        steps.cargo("tests", &["test", "--workspace", "--all-targets", "--no-fail-fast"], &[]);
    }
    steps.cargo("doctests", &["test", "--workspace", "--doc"], &[]);
    let _ = browser.join();
    if built {
        steps.skippable("report page", page);
    } else {
        steps.left_out("report page", "there is no release build");
    }
    if built {
        steps.skippable("agents", agents::sample);
    } else {
        steps.left_out("agents", "there is no release build");
    }
    for name in soak::NAMES {
        let title = format!("soak {name}");
        if built {
            steps.step(&title, || soak::sample(name));
        } else {
            steps.left_out(&title, "there is no release build");
        }
    }
    steps.summary()
}

/// Measures the page of a report where there is a browser.
fn page() -> Outcome {
    let Some(browser) = report_check::browser() else {
        return Outcome::Skipped(report_check::NO_BROWSER.to_owned());
    };
    match report_check::check(browser, None) {
        Ok(seen) => Outcome::Passed(seen),
        Err(Failure::Said) => Outcome::Failed(String::new()),
        Err(Failure::Other(wrong)) => Outcome::Failed(wrong),
    }
}

/// Looks for the tools and installs those that rustup or the system's packages can give.
fn needed() -> std::result::Result<String, String> {
    let mut installed = Vec::new();
    for (component, words) in
        [("rustfmt", ["fmt", "--version"]), ("clippy", ["clippy", "--version"])]
    {
        if answers("cargo", &words) {
            continue;
        }
        eprintln!("installing {component}");
        if !answers("rustup", &["component", "add", component]) || !answers("cargo", &words) {
            return Err(format!(
                "{component} is missing and `rustup component add {component}` did not bring it; \
                 install it the way this toolchain was installed"
            ));
        }
        installed.push(component);
    }
    if !answers("git", &["--version"]) {
        return Err("git is missing: install it with the system's package manager".to_owned());
    }
    if !["cc", "gcc", "clang"].iter().any(|compiler| answers(compiler, &["--version"])) {
        return Err("a C compiler is missing (SQLite is built from source): install gcc or clang"
            .to_owned());
    }
    let found = tools::ensure(&[tools::STRACE, tools::SCRIPT]);
    installed.extend(found.installed);
    let mut words = if installed.is_empty() {
        "all there".to_owned()
    } else {
        format!("installed {}", installed.join(", "))
    };
    if !found.missing.is_empty() {
        let missing = found.missing.join(", ");
        let _ = write!(words, "; without {missing}: the tests that need it show nothing");
    }
    Ok(words)
}

/// The counts of a test runner, for the summary.
fn counted(output: &str) -> String {
    if let Some((_, line)) = output.lines().rev().find_map(|line| line.split_once("tests run: ")) {
        return line.trim().to_owned();
    }
    let passed: u64 = output
        .lines()
        .filter_map(|line| line.strip_prefix("test result: ok. ")?.split_once(" passed"))
        .filter_map(|(count, _)| count.parse::<u64>().ok())
        .sum();
    if passed > 0 { format!("{passed} passed") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn counts_are_found_in_what_either_runner_says() {
        let nextest = "     Summary [   4.2s] 90 tests run: 90 passed, 1 skipped\n";
        assert_eq!(counted(nextest), "90 passed, 1 skipped");
        let cargo = "test result: ok. 3 passed; 0 failed\nx\ntest result: ok. 4 passed; 0 failed\n";
        assert_eq!(counted(cargo), "7 passed");
        assert_eq!(counted("Finished"), "");
    }
}

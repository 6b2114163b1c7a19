//! A night without a person: eight hours of a plan with scripted agents, in which much goes wrong.
//!
//! Time is short here: an hour takes a few seconds. The clock of the program is the real one; agents
//! work, limits reset and the network comes back that much sooner, and nothing in the program knows. So
//! waits that the program chooses itself, as for a network, are long beside the rest.
//!
//! The run begins on a terminal, which is closed. Its driver is killed while agents work, and another
//! continues. In the morning a person looks, and approves the gate. Then the run is complete, no agent
//! was paid twice, and the summary tells all of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use piton_core::event::{Event, Outcome};

use super::scratch::{RUN, Scratch};
use super::{Broken, Round, processes, record};

/// An hour of the night.
const HOUR_MS: u64 = 4_000;
/// The same where only a sample is wanted.
const SAMPLE_HOUR_MS: u64 = 1_500;
/// Longer than any night here, on a machine that is busy.
const NIGHT_MAX: Duration = Duration::from_secs(240);
/// The pause between two looks at the run.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Lines of a screen.
const SCREEN_LINES: usize = 24;
/// The agent program.
const CLAUDE: &str = include_str!("claude.sh");

/// An outline in place, three lanes that build on it, and what a person must allow.
const PLAN: &str = r#"title = "Tonight"

[defaults]
agent = "claude"
retries = 2
backoff = "0s"

[agents.claude]
program = "claude"

[[phase]]
id = "outline"
prompt = "Write the outline."

[[phase]]
id = "build"

[[phase.lane]]
id = "api"
prompt = "Build the API of outline.txt."
test = "grep -q right api.txt"

[[phase.lane]]
id = "ui"
prompt = "Build the UI of outline.txt."
test = "test -s ui.txt"

[[phase.lane]]
id = "docs"
prompt = "Write the documentation of outline.txt."
test = "test -s docs.txt"

[[phase]]
id = "release"
gate = "Review before release"
run = "echo released >> ../released"
"#;

/// What the summary must tell of the night.
const TOLD: [&str; 8] = [
    "complete",
    "2 usage limits",
    "1 network outage",
    "1 failed test",
    "1 conflict",
    "1 lost driver",
    "1 closed terminal",
    "1 gate approved",
];

/// What is needed of the machine: `script`, which makes terminals.
pub(super) fn has_terminals() -> Result<(), Broken> {
    let found = std::process::Command::new("script").arg("--version").output();
    found.map(drop).map_err(|e| format!("no program makes a terminal: script: {e}"))
}

/// One night.
pub(super) fn night(round: &mut Round<'_>) -> Result<(), Broken> {
    let hour_ms = if round.sample { SAMPLE_HOUR_MS } else { HOUR_MS };
    let mut scratch = Scratch::with_plan(round, PLAN)?;
    prepare(&scratch, hour_ms).map_err(|e| e.to_string())?;
    let mut night = Night { scratch: &scratch, ends: Instant::now() + NIGHT_MAX };
    let told = night.passes(round, Duration::from_millis(hour_ms));
    let checked = told.and_then(|told| {
        paid_once(&scratch)?;
        merged(&scratch)?;
        screen(&told)?;
        scratch.clean()
    });
    checked.map_err(|broken| scratch.report(&broken))
}

fn prepare(scratch: &Scratch, hour_ms: u64) -> std::io::Result<()> {
    fs::create_dir(scratch.outside().join("night"))?;
    let text = CLAUDE.replace("OUTSIDE", &scratch.outside().display().to_string());
    let program = scratch.base().join("bin/claude");
    fs::write(&program, text.replace("HOUR_MS", &hour_ms.to_string()))?;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
}

/// A night as it passes.
struct Night<'a> {
    scratch: &'a Scratch,
    ends: Instant,
}

impl Night<'_> {
    /// The evening, the night and the morning; what the summary says at the end.
    fn passes(&mut self, round: &mut Round<'_>, hour: Duration) -> Result<String, Broken> {
        let mut terminal = self.begins()?;
        self.until("the first agent works", |night| night.account("main BEGUN") == 1)?;
        thread::sleep(hour / 8);
        // The end of `script` closes its terminal: the system sends SIGHUP to the driver.
        terminal.kill().and_then(|()| terminal.wait()).map_err(|e| e.to_string())?;
        round.tally.kills += 1;
        round.tally.met(&["a closed terminal"]);
        self.until("two lanes work", |night| night.account("ui BEGUN") > 0)?;
        let driver = record::driver(self.scratch).ok_or("no driver has the run")?;
        let is_it = |process: &processes::Process| process.pid == driver;
        let driver: Vec<_> = self.scratch.processes().into_iter().filter(is_it).collect();
        processes::end(&driver);
        round.tally.kills += 1;
        round.tally.hits += u64::from(record::running(self.scratch) > 0);
        round.tally.met(&["a killed driver"]);
        thread::sleep(hour / 2);
        let said = self.scratch.start(&["resume", RUN])?.wait_for(NIGHT_MAX)?;
        let said = said.ok_or("the night did not end")?;
        if said.code() != 3 {
            return Err(format!("the night ended with {}, not at the gate", said.word()));
        }
        if !said.said.contains("5 files changed") {
            return Err("the person at the gate does not see the work of all lanes".to_owned());
        }
        let looked = self.scratch.piton(&["waiting"]).output().map_err(|e| e.to_string())?;
        if !String::from_utf8_lossy(&looked.stdout).contains("Review before release") {
            return Err("nobody is told that the gate waits".to_owned());
        }
        let approved = self.scratch.start(&["approve", "release"])?.wait()?;
        if approved.code() != 0 {
            return Err(format!("the gate is not approved: {}", approved.word()));
        }
        let ended = self.scratch.start(&["resume", RUN])?.wait()?;
        if ended.code() != 0 {
            return Err(format!("the run is not complete: {}", ended.word()));
        }
        Ok(ended.said)
    }

    /// Starts the run on a terminal.
    fn begins(&self) -> Result<Child, Broken> {
        let piton = self.scratch.program();
        let line = format!("exec {} run plan.toml --run-id {RUN}", piton.display());
        let mut script = self.scratch.command("script");
        script.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm");
        script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        script.spawn().map_err(|e| format!("script: {e}"))
    }

    /// Waits until something holds.
    fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) -> Result<(), Broken> {
        while !holds(self) {
            if Instant::now() > self.ends {
                return Err(format!("it never came to this: {what}"));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// How often agents noted something.
    fn account(&self, words: &str) -> usize {
        account(self.scratch).iter().filter(|line| line.starts_with(words)).count()
    }
}

fn account(scratch: &Scratch) -> Vec<String> {
    let text = fs::read_to_string(scratch.outside().join("night/account"));
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Checks that each process of an agent is an attempt on record, and that none followed a success unless
/// something called for it: a failed test, a conflict.
fn paid_once(scratch: &Scratch) -> Result<(), Broken> {
    let account = account(scratch);
    let events = record::events(scratch);
    let lanes = [("main", 1), ("api", 2), ("ui", 2), ("docs", 1)];
    for (lane, answers) in lanes {
        let noted = |what: &str| {
            let line = format!("{lane} {what}");
            account.iter().filter(|known| **known == line).count()
        };
        let of_lane = |event: &&(u64, Event)| match &event.1 {
            Event::StepStarted(e) => {
                e.step.phase != "release" && e.step.lane == lane && e.step.step == "work"
            }
            _ => false,
        };
        let started = events.iter().filter(of_lane).count();
        if noted("BEGUN") != started {
            let begun = noted("BEGUN");
            return Err(format!("{lane}: {begun} agents were paid for {started} attempts"));
        }
        if noted("DONE") != answers {
            return Err(format!("{lane}: {} answers, not {answers}", noted("DONE")));
        }
    }
    let lost = events.iter().find(|(_, event)| {
        matches!(event, Event::StepFinished(e) if matches!(e.outcome, Outcome::Interrupted { .. }))
    });
    lost.map_or(Ok(()), |(seq, _)| Err(format!("event {seq}: an attempt was lost")))
}

/// Checks that the work of all lanes is in base, and nothing else.
fn merged(scratch: &Scratch) -> Result<(), Broken> {
    for (file, wanted) in [
        ("outline.txt", "the outline"),
        ("api.txt", "right"),
        ("shared.txt", "api and ui"),
        ("ui.txt", "ui"),
        ("docs.txt", "docs"),
    ] {
        let found = scratch.git(&["show", &format!("main:{file}")])?;
        if found != wanted {
            return Err(format!("{file} is {found:?}, not {wanted:?}"));
        }
    }
    let dirt = scratch.git(&["status", "--porcelain"])?;
    if !dirt.is_empty() {
        return Err(format!("the work tree is not clean: {dirt}"));
    }
    let released = fs::read_to_string(scratch.base().join("released")).unwrap_or_default();
    if released == "released\n" { Ok(()) } else { Err(format!("released: {released:?}")) }
}

/// Checks that what is said in the end tells all of it on one screen.
fn screen(told: &str) -> Result<(), Broken> {
    let summary = told.find("run soak complete").map_or(told, |at| &told[at..]);
    if let Some(missing) =
        TOLD.iter().find(|words| !summary.replace("\n    ", " ").contains(**words))
    {
        return Err(format!("the summary does not tell of {missing:?}:\n{told}"));
    }
    let lines = told.lines().count();
    if lines > SCREEN_LINES {
        return Err(format!("{lines} lines are more than a screen:\n{told}"));
    }
    eprintln!("{told}");
    Ok(())
}

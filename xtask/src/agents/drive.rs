//! Runs of Piton on a stage: the real program drives the real agents.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::Broken;
use super::attempt;
use super::stage::{PROMPT, Stage, ensure};
use crate::shell::capture;

/// A run that has not ended by then does not: agents need up to a minute for a turn on a loaded machine.
const ENDS_WITHIN: Duration = Duration::from_secs(420);
/// How long a keeper needs to end after its driver, at most, on a loaded machine.
const STILL_WITHIN: Duration = Duration::from_secs(10);
/// How often something is looked at that is waited for.
const LOOK: Duration = Duration::from_millis(50);

/// What a plan says besides its one prompt.
#[derive(Default)]
pub(super) struct Plan<'a> {
    /// Keys of its step.
    pub(super) step: &'a str,
    /// Keys of its agent.
    pub(super) agent: &'a str,
    /// Its budgets.
    pub(super) budgets: &'a str,
}

/// A command of Piton while it runs, and what it says.
pub(super) struct Running {
    child: Child,
    said: PathBuf,
}

impl Stage<'_> {
    /// Makes the project a repository with this plan.
    pub(super) fn plan(&self, plan: &Plan<'_>) -> Result<(), Broken> {
        let (id, model) = (self.subject.id, self.subject.model);
        let Plan { step, agent, budgets } = plan;
        let text = format!(
            "[budgets]\n{budgets}\n[agents.{id}]\nmodel = \"{model}\"\n{agent}\n\
             [[phase]]\nid = \"P\"\nagent = \"{id}\"\nprompt = \"{PROMPT}\"\n{step}\n"
        );
        fs::write(self.file("plan.toml"), text)?;
        self.repository()
    }

    /// Makes the project a repository, with what is in it.
    pub(super) fn repository(&self) -> Result<(), Broken> {
        if self.file(".git").exists() {
            return Ok(());
        }
        for words in [
            &["init", "--quiet", "--initial-branch=main", "."][..],
            &["config", "user.email", "agents@example.com"],
            &["config", "user.name", "Agents"],
            &["add", "."],
            &["commit", "--quiet", "--message", "Begin"],
        ] {
            let mut git = Command::new("git");
            git.args(words).current_dir(&self.place.work).env("HOME", &self.place.home);
            let (is_done, said) = capture(&mut git);
            ensure(is_done, || format!("git {}: {said}", words[0]))?;
        }
        Ok(())
    }

    /// Begins a command of Piton.
    pub(super) fn begin(&self, words: &[&str]) -> Result<Running, Broken> {
        let said = self.place.home.join(format!("piton-{}", words[0]));
        let log = File::create(&said)?;
        let mut command = Command::new(&self.piton);
        command.args(words).current_dir(&self.place.work).env_clear();
        command.envs(self.place.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Running { child: command.spawn()?, said })
    }

    /// Runs a command of Piton to its end: its exit code, and all that it said.
    pub(super) fn piton(&self, words: &[&str]) -> Result<(Option<i32>, String), Broken> {
        self.begin(words)?.end()
    }

    /// The requests to the model that offer tools: those of agents, not of titles.
    pub(super) fn requests(&self) -> Vec<String> {
        let asked = self.api.asked().into_iter();
        let has_tools = |body: &serde_json::Value| {
            body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
        };
        asked.filter(|asked| has_tools(&asked.body)).map(|asked| asked.body.to_string()).collect()
    }

    /// Fails unless nothing of the case lives any more. A keeper ends a moment after its driver.
    pub(super) fn is_still(&self) -> Result<(), Broken> {
        let begun = Instant::now();
        let mut strays = attempt::of(&self.place.home);
        while !strays.is_empty() && begun.elapsed() < STILL_WITHIN {
            thread::park_timeout(LOOK);
            strays = attempt::of(&self.place.home);
        }
        let name = |pid: &u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid} {}", String::from_utf8_lossy(&words).replace('\0', " "))
        };
        let names: Vec<String> = strays.iter().map(name).collect();
        ensure(names.is_empty(), || format!("processes live on: {names:?}"))
    }
}

impl Running {
    /// What it said so far.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// Kills the driver alone.
    pub(super) fn kill(&mut self) -> Result<(), Broken> {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::KILL)?;
        }
        self.child.wait()?;
        Ok(())
    }

    /// Waits until something is so.
    pub(super) fn until(&mut self, what: &str, is_so: impl Fn(&str) -> bool) -> Result<(), Broken> {
        let begun = Instant::now();
        while !is_so(&self.said()) {
            if let Some(status) = self.child.try_wait()? {
                return Err(self.broken(&format!("it ended ({status}) before {what}")));
            }
            if begun.elapsed() > ENDS_WITHIN {
                return Err(self.broken(&format!("{what} did not come")));
            }
            thread::park_timeout(LOOK);
        }
        Ok(())
    }

    /// Waits until it ends.
    pub(super) fn end(mut self) -> Result<(Option<i32>, String), Broken> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok((ExitStatus::code(&status), self.said()));
            }
            if begun.elapsed() > ENDS_WITHIN {
                return Err(self.broken("it did not end"));
            }
            thread::park_timeout(LOOK);
        }
    }

    fn broken(&self, why: &str) -> Broken {
        Broken::from(format!("{why}; it said:\n{}", self.said()))
    }
}

/// Fails a case unless a command ended with this code.
pub(super) fn exits((code, said): &(Option<i32>, String), wanted: i32) -> Result<(), Broken> {
    ensure(*code == Some(wanted), || format!("exit {code:?}, not {wanted}; it said:\n{said}"))
}

/// Waits until a file is there.
pub(super) fn appears(file: &Path) -> impl Fn(&str) -> bool + '_ {
    |_| file.exists()
}

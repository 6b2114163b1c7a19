//! Where a case plays: a fresh home and project, an API with its script, and the adapter of a program.

use std::fs;
use std::path::{Path, PathBuf};

use piton_agents::{Ask, Halt, Invocation, Program, Stop, StopPlace, Verdict};
use tempfile::TempDir;

use super::Broken;
use super::api::{Api, Script};
use super::attempt::{self, Attempt, Ending, Place};
use super::install::Cache;
use super::subject::{Around, Subject};

/// The id of new sessions: every case has a home of its own, so one is enough.
pub(super) const SESSION: &str = "6b1f3a52-0c4e-4d7a-9d5e-2f8c1b7a9e10";

/// The prompt of a first attempt; requests are searched for it.
pub(super) const PROMPT: &str = "Write the file done.txt as the marker QUARTZ-7 says.";

/// A case while it plays.
pub(super) struct Stage<'a> {
    /// The program.
    pub(super) subject: &'a Subject,
    /// Its model.
    pub(super) api: Api,
    /// What the agent is asked beside the prompt.
    pub(super) ask: Ask<'a>,
    /// Where its processes run.
    pub(super) place: Place,
    /// Piton itself.
    pub(super) piton: PathBuf,
    /// Further words for the program.
    pub(super) args: Vec<String>,
    program: &'static dyn Program,
    /// What stops the program between operations, once it is laid down.
    stop: Stop,
    folder: TempDir,
}

impl<'a> Stage<'a> {
    /// Makes one.
    pub(super) fn new(subject: &'a Subject, cache: &Cache, piton: &Path) -> Result<Self, Broken> {
        let program = piton_agents::find(subject.id).ok_or("there is no adapter")?;
        let folder = tempfile::Builder::new().prefix("piton-agents-").tempdir()?;
        let base = folder.path().canonicalize()?;
        let (home, work) = (base.join("home"), base.join("work"));
        let api = Api::start(Script::default())?;
        let (bin, beside) = (cache.bin(subject), cache.beside(subject));
        let around = Around { bin, beside, url: api.url() };
        let env = subject.settle(&home, &around)?;
        fs::create_dir_all(&work)?;
        let ask = Ask { session: SESSION, model: Some(subject.model), ..Ask::default() };
        let place = Place { work, home, env };
        let (stop, piton) = (Stop::default(), piton.to_owned());
        let args = Vec::new();
        Ok(Self { subject, api, ask, place, piton, args, program, stop, folder })
    }

    /// A file of the project.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.place.work.join(name)
    }

    /// A variable of the processes.
    pub(super) fn variable(&self, name: &str) -> &str {
        let found = self.place.env.iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value)
    }

    /// Tokens that fit into a conversation with the model.
    pub(super) fn window(&self) -> u64 {
        self.program.window()
    }

    /// Replaces a variable of the processes.
    pub(super) fn env(&mut self, name: &'static str, value: Option<&str>) {
        self.place.env.retain(|(known, _)| *known != name);
        self.place.env.extend(value.map(|value| (name, value.to_owned())));
    }

    /// Lays down what stops the program between operations; whether it stops by a hook.
    pub(super) fn stop_by_hook(&mut self) -> Result<bool, Broken> {
        let path = |path: PathBuf| path.display().to_string();
        let (folder, file) = (path(self.folder.path().to_owned()), path(self.stop_file()));
        let home = path(self.place.home.clone());
        self.stop = self.program.stop(&StopPlace { folder: &folder, home: &home, file: &file });
        for (path, text) in &self.stop.files {
            PathBuf::from(path).parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, text)?;
        }
        Ok(self.program.halt() == Halt::Hook)
    }

    /// The file that stops the program once it exists.
    pub(super) fn stop_file(&self) -> PathBuf {
        self.folder.path().join("stop")
    }

    /// Starts a new session and follows it to its end.
    pub(super) fn start(&self, ending: Ending<'_>) -> Result<Attempt, Broken> {
        self.run(self.program.start(&self.ask()), PROMPT, ending)
    }

    /// Continues a session.
    pub(super) fn resume(&self, session: &str, prompt: &str) -> Result<Attempt, Broken> {
        let invocation = self.program.resume(session, &self.ask());
        self.run(invocation.ok_or("it cannot continue")?, prompt, Ending::Itself)
    }

    fn ask(&self) -> Ask<'_> {
        Ask { settings: self.stop.settings.as_deref(), args: &self.args, ..self.ask }
    }

    fn run(
        &self,
        mut invocation: Invocation,
        prompt: &str,
        ending: Ending<'_>,
    ) -> Result<Attempt, Broken> {
        invocation.env.extend(self.stop.env.iter().cloned());
        attempt::run(&self.place, self.program, &invocation, prompt, ending)
    }

    /// Keeps what the case left behind, for a person to look at.
    pub(super) fn keep(self) -> PathBuf {
        let requests = self.api.asked();
        let lines: Vec<String> = requests.iter().map(|asked| asked.body.to_string()).collect();
        // Only to help: the case has failed already.
        let _ = fs::write(self.place.home.join("requests"), lines.join("\n"));
        self.folder.keep()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = attempt::kill_all(&self.home);
    }
}

/// Fails a case with a reason unless something is so.
pub(super) fn ensure(is_so: bool, why: impl FnOnce() -> String) -> Result<(), Broken> {
    if is_so { Ok(()) } else { Err(Broken::from(why())) }
}

/// Fails a case unless the verdict is as wanted.
pub(super) fn judged(
    attempt: &Attempt,
    wanted: &str,
    is_wanted: impl FnOnce(&Verdict) -> bool,
) -> Result<(), Broken> {
    let Attempt { verdict, code, errors, .. } = attempt;
    let text = || format!("wanted {wanted}, got {verdict:?} (exit {code:?}) {errors:?}");
    ensure(is_wanted(verdict), text)
}

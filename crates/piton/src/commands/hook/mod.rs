//! `piton hook PROGRAM`: what agent programs call at moments of a session.
//!
//! It never breaks the agent: whatever goes wrong is logged, and the exit code is 0. Between two
//! operations mostly nothing is due. That is decided before the command line is parsed, from a note of
//! a few bytes and the end of the program's record: no settings, no ledger, no git.

mod log;
mod measure;
pub mod note;
mod slow;
mod trouble;

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use piton_agents::hook::{Call, Caller, Moment, Unreadable};
use piton_protocols::Table;
use piton_view::hook::{Answer, stop_now};
use piton_workspace::Project;

use crate::cli::HookArgs;
use crate::environment;
use crate::ui;
use note::{Note, Passed};
use trouble::{Result, Trouble};

pub use log::failures;
pub use slow::is_of_another;

/// The word that calls it.
const COMMAND: &str = "hook";
/// Most bytes that a program may say: the results of operations are among them.
const INPUT_BYTES_MAX: u64 = 64 << 20;
/// Times that an operation is refused after a stop, before the agent is left alone: every loop ends.
const DENIALS_MAX: u32 = 20;

/// A call and where it happened.
struct Asked {
    caller: Caller,
    call: Call,
    project: Project,
    cwd: PathBuf,
}

/// Answers a hook if the command line calls one; `None` if it is another command, or one with options.
pub fn called(table: &'static Table) -> Option<ExitCode> {
    let mut words = environment::words();
    let (first, program) = (words.next()?, words.next()?);
    let caller = Caller::find(program.to_str()?)?;
    (first == COMMAND && words.next().is_none()).then(|| main(table, caller))
}

/// The same with options on the command line.
pub fn run(table: &'static Table, args: &HookArgs) {
    match Caller::find(&args.program) {
        Some(caller) => {
            main(table, caller);
        }
        None => misused(&format!("`{}` is not an agent program with hooks", args.program)),
    }
}

/// A command line that begins like a hook and cannot be read: 0 all the same, because programs take
/// other exit codes for an answer. `None` if it is another command.
pub fn misread(why: &str) -> Option<ExitCode> {
    if environment::words().next()? != COMMAND {
        return None;
    }
    misused(why);
    Some(ExitCode::SUCCESS)
}

fn misused(why: &str) {
    if !std::io::stdin().is_terminal() {
        let _ = std::io::copy(&mut input(), &mut std::io::sink());
    }
    let known: Vec<&str> = Caller::ALL.into_iter().map(Caller::as_str).collect();
    ui::say(format!("warning: {why}"));
    ui::say(format!("hint: write `piton hook PROGRAM`, with one of: {}", known.join(", ")));
    let project = Project::for_person(&environment::current_folder().unwrap_or_default());
    if let Some(project) = project.ok().filter(|project| project.state_dir.exists()) {
        log::add(&project.state_dir, COMMAND, why);
    }
}

/// Answers a hook; the exit code is always 0.
pub fn main(table: &'static Table, caller: Caller) -> ExitCode {
    // The driver takes care of the agents of its steps. What the program says is read all the same: it
    // might take a closed pipe for a failure.
    if environment::is_in_step() {
        let _ = std::io::copy(&mut input(), &mut std::io::sink());
        return ExitCode::SUCCESS;
    }
    match look(caller) {
        Ok(asked) => {
            log::catch_panics(&asked.project.state_dir);
            match answer(table, &asked) {
                Ok(Some(answer)) => ui::data_json(&answer),
                Ok(None) => {}
                Err(why) => log::add(&asked.project.state_dir, &asked.words(), &why.to_string()),
            }
        }
        Err(failed) => {
            if let (Some(project), why) = *failed {
                log::add(&project.state_dir, caller.as_str(), &why.to_string());
            }
        }
    }
    ExitCode::SUCCESS
}

impl Asked {
    fn words(&self) -> String {
        format!("{} {}", self.caller.as_str(), self.call.event)
    }

    fn state_dir(&self) -> &Path {
        &self.project.state_dir
    }
}

/// What the program says, up to the limit.
fn input() -> impl std::io::Read {
    std::io::stdin().lock().take(INPUT_BYTES_MAX)
}

/// Reads the call and finds the project.
fn look(caller: Caller) -> std::result::Result<Asked, Box<(Option<Project>, Trouble)>> {
    let mut bytes = Vec::new();
    let read = input().read_to_end(&mut bytes);
    let here = environment::current_folder().unwrap_or_default();
    let project = |dir: &Path| Project::for_person(dir).map_err(Trouble::Project);
    let call = read.map_err(Unreadable::Cut).and_then(|_| Call::read(&bytes));
    let call = call.map_err(Trouble::Input);
    let call = call.map_err(|why| Box::new((project(&here).ok(), why)))?;
    let cwd = call.cwd.as_ref().map(PathBuf::from).filter(|dir| dir.is_absolute());
    let cwd = cwd.unwrap_or_else(|| here.clone());
    // What is wrong with a folder that is not there is written down where the hook runs.
    let noted = |project: &Project| project.state_dir.exists();
    let elsewhere = |why| Box::new((project(&here).ok().filter(noted), why));
    if !cwd.is_dir() {
        return Err(elsewhere(Trouble::Folder(cwd)));
    }
    let project = project(&cwd).map_err(elsewhere)?;
    Ok(Asked { caller, call, project, cwd })
}

fn answer(table: &'static Table, asked: &Asked) -> Result<Option<Answer>> {
    // A subagent has a context of its own, and ends without the session.
    if asked.call.agent_id.is_some() {
        return Ok(None);
    }
    let note = Note::read(asked.state_dir(), &asked.call.session);
    match asked.call.moment(asked.caller) {
        Moment::Other => Ok(None),
        Moment::Before => Ok(refused(asked, note)),
        Moment::Prompt => {
            // A person decides: what stopped the agent is over.
            if let Some(note) = note.filter(|note| note.is_stopped) {
                note.stopped(false).keep(asked.state_dir(), &asked.call.session)?;
            }
            Ok(None)
        }
        Moment::Between => match note {
            Some(note) => between(table, asked, note),
            None => slow::begin(table, asked).and_then(|note| match note {
                Some(note) => between(table, asked, note),
                None => Ok(None),
            }),
        },
        Moment::Start => slow::start(table, asked, note),
        Moment::Compact => slow::compact(table, asked, note),
        Moment::Stop if asked.call.stop_hook_active => Ok(None),
        Moment::Stop => slow::stop(table, asked, note),
        Moment::End => slow::end(table, asked, note),
    }
}

/// Operations have ended: how full is the context?
fn between(table: &'static Table, asked: &Asked, note: Note) -> Result<Option<Answer>> {
    let (new, model) = measure::measured(asked, &note);
    let new = slow::of_model(table, asked, new, model)?;
    let first = if note.first == 0 { new.used } else { note.first };
    let new = Note { first, ..new };
    let usage = new.usage();
    let passed = Passed::of(usage);
    if !note.is_kept || passed <= note.passed {
        if new != note {
            new.keep(asked.state_dir(), &asked.call.session)?;
        }
        return Ok(None);
    }
    slow::threshold(table, asked, new, usage)
}

/// After a stop, Codex is kept from beginning operations until a person asks for something.
fn refused(asked: &Asked, note: Option<Note>) -> Option<Answer> {
    let note = note.filter(|note| note.is_stopped && note.denials < DENIALS_MAX)?;
    let denials = note.denials + 1;
    // Not to have counted one does no harm.
    let _ = Note { denials, ..note }.keep(asked.state_dir(), &asked.call.session);
    let talk = "Piton recorded an emergency checkpoint: the context is nearly full.";
    Some(Answer::deny(&asked.call.event, stop_now(talk)))
}

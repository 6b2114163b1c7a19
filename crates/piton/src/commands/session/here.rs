//! The memory bank that a command works on, and what Piton keeps beside the ledger about sessions.
//!
//! A hook calls the program between two operations of an agent. So the bank is found and the last
//! trigger of a session is looked up without opening the ledger.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use piton_core::agent::Window;
use piton_core::event::Reason;
use piton_core::hash::Sha;
use piton_core::{Timestamp, remedy};
use piton_engine::Store;
use piton_formats::Diagnostic;
use piton_protocols::session::bank::{self, Bank};
use piton_protocols::session::cleanup::{self, Act};
use piton_protocols::session::config::Config;
use piton_protocols::session::settings::{Settings, WINDOW_TOKENS};
use piton_protocols::session::tokens::Usage;
use piton_protocols::session::{CHECKPOINTS, LATEST};
use piton_world::{read, views, write};

use crate::cli::Which;
use crate::commands::hook;
use crate::context::{Context, now};
use crate::drive;
use crate::error::{CommandError, Kind, Result};
use crate::ui;

/// The folder with a note about each session, in the state folder.
const NOTES: &str = "sessions";
/// The run whose files may not be up to date yet, in that folder.
const PENDING: &str = "pending";
/// The lock of all commands that change a memory bank, in that folder.
const LOCK: &str = "lock";

/// What is remembered about a session, to be read without the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Its run.
    pub run: String,
    /// The last checkpoint that it made because of its tokens.
    pub trigger: Option<Reason>,
    /// The task that it started and has not finished.
    pub task: Option<String>,
}

impl Note {
    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let run = lines.next()?.to_owned();
        let word = lines.next().unwrap_or_default();
        let trigger = Reason::ALL.into_iter().find(|reason| reason.as_str() == word);
        let task = lines.next().filter(|task| !task.is_empty()).map(str::to_owned);
        Some(Self { run, trigger, task })
    }
}

/// The memory bank of a project.
pub struct Here<'c> {
    /// The project.
    pub context: &'c Context,
    /// The settings of sessions.
    pub settings: Settings,
    /// The switches of the protocol.
    pub config: Config,
    /// Its files.
    pub bank: Bank,
    /// Whether files that a link leads out of the project to are left unread.
    confined: bool,
    _lock: Option<File>,
}

impl<'c> Here<'c> {
    /// Finds the bank and reads it; the protocol may be switched off.
    pub fn find(context: &'c Context) -> Result<Self> {
        Self::found(context, false)
    }

    /// The same for a caller that may see nothing but the project: a file of the bank that is
    /// elsewhere is not read.
    pub fn find_within(context: &'c Context) -> Result<Self> {
        Self::found(context, true)
    }

    fn found(context: &'c Context, confined: bool) -> Result<Self> {
        let root = &context.project.root;
        let settings = Settings::of(&context.settings);
        let here = context.cwd.strip_prefix(root).map(|dir| dir.to_string_lossy().into_owned());
        let list = |dir: &str| read::names(&root.join(dir));
        let folder = bank::find(&here.unwrap_or_default(), &settings, &list);
        let bank = read_bank(context, &folder, &settings, confined)?;
        let (config, warnings) = bank.config().map_err(|problem| document(&problem))?;
        for warning in warnings {
            ui::say(format!("warning: {}: {}", warning.file, warning.message));
        }
        let found = Self { context, settings, config, bank, confined, _lock: None };
        if !found.window(&[]).thresholds().rise() {
            let words =
                "`warning`, `critical` and `halt` of a session must rise, and be at most 100";
            return Err(CommandError::usage("settings", words.to_owned())
                .hint("mend `[session]` in piton.toml; the defaults are 75, 90 and 97.5"));
        }
        Ok(found)
    }

    /// The same for a command that changes something: alone, and with all files up to date.
    pub fn alone(self) -> Result<Self> {
        let dir = self.notes();
        let failed = |e: io::Error| {
            CommandError::failed("world", format!("{}: {e}", dir.display()))
                .hint("check that you own the folder and that the disk has space")
        };
        fs::create_dir_all(&dir).map_err(failed)?;
        let lock = File::create(dir.join(LOCK)).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut here = Self { _lock: Some(lock), ..self };
        if let Ok(run) = fs::read_to_string(dir.join(PENDING)) {
            let mut store = here.context.write_store()?;
            here.show(&mut store, &run)?;
        }
        here.read_again()?;
        Ok(here)
    }

    /// Reads the files again.
    pub fn read_again(&mut self) -> Result<()> {
        self.bank = read_bank(self.context, &self.bank.root, &self.settings, self.confined)?;
        Ok(())
    }

    /// The text of a file of the bank, by its path from the project's root.
    pub fn text(&self, path: &str) -> Option<String> {
        let root = &self.context.project.root;
        let is_seen = !self.confined || read::is_within(root, path);
        is_seen.then(|| read::protocol_file(root, path).ok()).flatten()
    }

    /// Brings the files of a run up to what the ledger says. Nothing else is collected from them before
    /// they are: it would be recorded twice.
    pub fn show(&self, store: &mut Store, run: &str) -> Result<()> {
        if store.ledger().run(run)?.is_some_and(|row| row.seq > 0) {
            let dir = self.context.project.root.join(self.bank.path(CHECKPOINTS));
            // The writer says what is wrong where this cannot be made.
            let _ = fs::create_dir_all(dir.join("archive"));
            if !drive::show_decision(self.context, store, run)? {
                let message = format!("another command is writing the files of run {run}");
                return Err(CommandError::new(Kind::Driven, "run-driven", message)
                    .hint("try again in a moment"));
            }
        }
        let _ = fs::remove_file(self.notes().join(PENDING));
        Ok(())
    }

    /// Notes that the files of a run may fall behind.
    pub fn begin(&self, run: &str) -> Result<()> {
        self.write_note(PENDING, run.as_bytes())
    }

    /// What runs of this bank record as their plan.
    pub fn plan_path(&self) -> String {
        self.bank.path(LATEST)
    }

    /// The note about a session.
    pub fn note(&self, session: &str) -> Option<Note> {
        Note::read(&fs::read_to_string(self.notes().join(note_name(session))).ok()?)
    }

    /// Tasks that sessions of other runs started, as far as their agents are not known to be gone.
    pub fn claimed(&self, run: &str) -> Vec<String> {
        let (dir, state_dir) = (self.notes(), &self.context.project.state_dir);
        let claim = |name: String| {
            let note = Note::read(&fs::read_to_string(dir.join(&name)).ok()?)?;
            note.task.filter(|_| note.run != run && !hook::note::Note::is_gone(state_dir, &name))
        };
        read::names(&dir).into_iter().filter(|name| is_note(name)).filter_map(claim).collect()
    }

    /// Forgets a session that ended.
    pub fn forget_note(&self, session: &str) {
        // A note that stays is removed when it is old.
        Self::forget(&self.context.project.state_dir, session);
    }

    /// Forgets a session whose agent is known to be gone.
    pub fn forget(state_dir: &Path, session: &str) {
        let _ = fs::remove_file(state_dir.join(NOTES).join(note_name(session)));
    }

    /// Keeps the note about a session. It is a cache: the ledger has it all.
    pub fn keep_note(&self, session: &str, note: &Note) -> Result<()> {
        let Note { run, trigger, task } = note;
        let (trigger, task) = (trigger.map_or("", Reason::as_str), task.as_deref().unwrap_or(""));
        let text = format!("{run}\n{trigger}\n{task}\n");
        self.write_note(&note_name(session), text.as_bytes())
    }

    fn write_note(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.notes().join(name);
        write::replace(&path, bytes)
            .map_err(|e| CommandError::failed("world", format!("{}: {e}", path.display())))
    }

    fn notes(&self) -> PathBuf {
        self.context.project.state_dir.join(NOTES)
    }

    /// How full the conversation is, as the command line says.
    pub fn usage(&self, which: &Which) -> Result<Option<Usage>> {
        let Some(text) = &which.tokens else { return Ok(None) };
        let (used, window) = text.split_once('/').unwrap_or((text, ""));
        let number = |text: &str| text.trim().replace('_', "").parse::<u64>().ok();
        let said = number(window).filter(|window| *window > 0);
        match number(used).filter(|_| said.is_some() || window.is_empty()) {
            Some(used) => Ok(Some(self.used(used, said))),
            None => {
                Err(CommandError::usage("usage", format!("`{text}` is not a number of tokens"))
                    .hint("write it like `150000/200000`"))
            }
        }
    }

    /// How full the conversation is; `window` is what somebody says of its size.
    pub fn used(&self, used: u64, window: Option<u64>) -> Usage {
        let settings = self.window(&[]);
        let window = window.or(settings.tokens).unwrap_or(WINDOW_TOKENS);
        Usage { used, window, thresholds: settings.thresholds() }
    }

    /// What is said of the window of a model or program, by its names, or of all.
    pub fn window(&self, names: &[&str]) -> Window {
        let models = &self.context.settings.models;
        let named = models.window(names.iter().copied());
        named.or(self.config.window).or(self.settings.window())
    }

    /// The names in the folder of checkpoints.
    pub fn checkpoint_names(&self) -> Vec<String> {
        read::names(&self.context.project.root.join(self.bank.path(CHECKPOINTS)))
    }

    /// The names of checkpoints that could not be resumed, as those of their backups would be.
    pub fn archived_names(&self) -> Vec<String> {
        let archive = self.context.project.root.join(self.bank.path(CHECKPOINTS)).join("archive");
        let stamp =
            |name: String| Some(format!("{}{}", cleanup::BACKUP, name.strip_prefix("failed-")?));
        read::names(&archive).into_iter().filter_map(stamp).collect()
    }

    /// Deletes and archives files of checkpoints that are not needed any more; says how many.
    pub fn clean_up(&self, keep: Option<&str>) -> usize {
        let root = &self.context.project.root;
        let folder = root.join(self.bank.path(CHECKPOINTS));
        let modified = |name: &String| read::modified(&folder.join(name)).unwrap_or(Timestamp(0));
        let files: Vec<(String, Timestamp)> = self
            .checkpoint_names()
            .into_iter()
            .map(|name| {
                let at = modified(&name);
                (name, at)
            })
            .collect();
        let acts = cleanup::plan(&files, keep, now());
        let carry_out = |act: &Act| match act {
            Act::Delete(name) => fs::remove_file(folder.join(name)),
            Act::Archive(name) => {
                let dir = self.bank.path(CHECKPOINTS);
                fs::create_dir_all(folder.join("archive"))?;
                views::rename(root, &format!("{dir}/{name}"), &format!("{dir}/archive/{name}"))
            }
        };
        self.forget_old_notes();
        acts.iter().filter(|act| carry_out(act).is_ok()).count()
    }

    /// Deletes the backup with a stamp.
    pub fn forget_copy(&self, stamp: &str) {
        let folder = self.context.project.root.join(self.bank.path(CHECKPOINTS));
        // One that stays is cleaned up with the others.
        let _ = fs::remove_file(folder.join(format!("{}{stamp}.json", cleanup::BACKUP)));
    }

    /// Forgets sessions that have not been heard of for as long as backups are kept.
    fn forget_old_notes(&self) {
        let dir = self.notes();
        hook::note::Note::forget_old(&self.context.project.state_dir, now());
        let is_old = |path: &PathBuf| {
            read::modified(path).is_some_and(|at| now().since(at).0 > cleanup::AGE_MAX.0)
        };
        let notes = read::names(&dir).into_iter().filter(|name| is_note(name));
        for path in notes.map(|name| dir.join(name)).filter(is_old) {
            // It is tried again at the next start.
            let _ = fs::remove_file(path);
        }
    }
}

fn read_bank(context: &Context, folder: &str, settings: &Settings, confined: bool) -> Result<Bank> {
    let root = &context.project.root;
    let outside = RefCell::new(None);
    let read = |path: &str| {
        if confined && !read::is_within(root, path) {
            *outside.borrow_mut() = Some(path.to_owned());
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        read::protocol_file(root, path)
    };
    let bank = Bank::read(folder, settings, &read);
    match outside.into_inner() {
        Some(path) => Err(leaves(&path)),
        None => Ok(bank),
    }
}

/// A path that does not stay in the project.
pub fn leaves(path: &str) -> CommandError {
    CommandError::new(Kind::Blocked, "outside-project", format!("{path} is outside of the project"))
        .hint("name a file below the root of the project that no link leads out of it")
}

/// The name of the note about a session; ids are anything that a program makes up.
fn note_name(session: &str) -> String {
    Sha::of(session.as_bytes()).0
}

/// Tells whether a file is the note about a session.
fn is_note(name: &str) -> bool {
    name != LOCK && name != PENDING
}

/// A file of the bank that cannot be used.
pub fn document(problem: &Diagnostic) -> CommandError {
    let Diagnostic { file, line, message, .. } = problem;
    CommandError::new(Kind::Blocked, "session-file", format!("{file}:{line}: {message}"))
        .hint(remedy![Piton "inspect {file}", Words " shows what is wrong with it"])
}

//! What every command needs: the project, its settings, its ledger, the terminal, the person.
//!
//! The one place that reads the clock; libraries get values.

mod lost;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use piton_core::redact::{Names, Redactor};
use piton_core::{RunState, Timestamp, remedy};
use piton_engine::{Loaded, Store};
use piton_formats::diagnostic::Diagnostic;
use piton_formats::settings::Settings;
use piton_formats::settings::read_settings_with;
use piton_formats::sink;
use piton_formats::template::quote_for_shell;
use piton_ledger::{Liveness, Open, Owner, RunRow, owner_liveness};
use piton_protocols::table::sections;
use piton_protocols::{Protocol, Table, find};
use piton_view::run::Driver;
use piton_view::{RunView, Seen};
use piton_workspace::Project;

use crate::environment::environment;
use crate::error::{CommandError, Kind, Result};
use crate::ui;
pub use piton_world::now;
use piton_world::read;

/// Name of the settings file at the project's root.
pub const SETTINGS_FILE: &str = "piton.toml";
/// Most bytes that settings may have: far more than all of them with a word on each.
const SETTINGS_BYTES_MAX: usize = 1 << 20;

/// What a command works with.
#[derive(Clone)]
pub struct Context {
    /// The protocols that it knows.
    pub table: &'static Table,
    /// The project.
    pub project: Project,
    /// The folder that paths are read from: where the command was called, or the root of a run that
    /// lies elsewhere.
    pub cwd: PathBuf,
    /// The folder the person stands in: what is said to be typed must work there.
    stands: PathBuf,
    /// Its settings.
    pub settings: Settings,
    /// Keeps secrets out of what is written.
    pub redactor: Redactor,
    /// The name of the command that was given.
    pub command: &'static str,
    /// Whether stdout is to be JSON.
    pub json: bool,
    /// Whether questions are answered with yes.
    pub yes: bool,
    /// Whether a person can be asked: stdin and stderr are terminals.
    pub interactive: bool,
    /// What became of settings that can't be read.
    leniency: Leniency,
}

/// What settings that can't be read lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leniency {
    /// The command stops.
    Strict,
    /// The defaults would hold, but there was no need for it.
    Unneeded,
    /// The defaults hold.
    Needed,
}

impl Context {
    /// Finds project and settings from a folder. With `lenient`, settings that can't be read are
    /// told and the defaults hold: nobody must be kept from looking at a run, or ending it, by a
    /// typing error.
    pub fn new(
        table: &'static Table,
        cwd: &Path,
        (json, yes): (bool, bool),
        lenient: bool,
    ) -> Result<Self> {
        let project = Project::for_person(cwd)
            .map_err(|e| CommandError::failed("no-project", e.to_string()))?;
        let variables = &environment().inherited.variables;
        let known = || variables.iter().filter_map(|(k, v)| Some((k.to_str()?, v.to_str()?)));
        let knowing = |names: &Names| Redactor::new(known(), names);
        let path = project.root.join(SETTINGS_FILE);
        // A program that asked for JSON gets its answer; the problem goes to stderr then.
        let redactor = || knowing(&Names::default());
        let read = read_settings(table, &path, json && !lenient, &redactor);
        let leniency = match (lenient, &read) {
            (false, _) => Leniency::Strict,
            (true, Ok(_)) => Leniency::Unneeded,
            (true, Err(_)) => Leniency::Needed,
        };
        let settings = match read {
            Err(error) if lenient => {
                if !error.message.is_empty() {
                    ui::say(&error.message);
                }
                let warning = format!("warning: {SETTINGS_FILE} is ignored: the defaults are used");
                ui::say(&warning);
                let secrets = Names { more: words_in_quotes(&path), ..Names::default() };
                Settings { secrets, ..Settings::default() }
            }
            other => other?,
        };
        let redactor = knowing(&settings.secrets);
        let interactive = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let (cwd, stands) = (cwd.to_owned(), cwd.to_owned());
        Ok(Self {
            table,
            project,
            cwd,
            stands,
            settings,
            redactor,
            command: "",
            json,
            yes,
            interactive,
            leniency,
        })
    }

    /// The same from where a run was started, if that is another work tree of this project: its
    /// plan, its settings and its HEAD are the ones that count. Nothing if it is this one, or gone.
    pub fn for_run(&self, root: &str) -> Result<Option<Self>> {
        let root = Path::new(root);
        if root == self.project.root || !root.is_dir() {
            return Ok(None);
        }
        let mut other =
            Self::new(self.table, root, (self.json, self.yes), self.leniency != Leniency::Strict)?;
        other.stands.clone_from(&self.stands);
        other.command = self.command;
        let real = |c: &Self| c.project.state_dir.canonicalize().ok();
        Ok((real(&other) == real(self)).then_some(other))
    }

    /// Whether a folder is the top of a work tree of this project. One that stands where this project
    /// was before it was moved, or that it was copied from, is another's.
    pub fn is_own_root(&self, root: &Path) -> bool {
        if root == self.project.root {
            return true;
        }
        let real = |project: &Project| project.state_dir.canonicalize().ok();
        root.is_dir()
            && Project::for_person(root).is_ok_and(|other| real(&other) == real(&self.project))
    }

    /// The protocol that a run recorded under a name: the one it follows, or the one that reads its plan.
    pub fn protocol(&self, state: &RunState, id: &str) -> Result<&'static dyn Protocol> {
        let version = state.protocol.version;
        let known =
            find(self.table, id).filter(|p| p.id() != state.protocol.id || p.version() >= version);
        known.ok_or_else(|| {
            let run = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
            let message = format!("run {run} follows the protocol `{id}` (version {version}), which this Piton does not know");
            CommandError::new(Kind::Blocked, "unknown-protocol", message).hint("use the Piton that started the run, or a newer one")
        })
    }

    /// Whether a person can be asked, and is not a program that reads JSON.
    pub fn can_ask(&self) -> bool {
        self.interactive && !self.json
    }

    /// Asks for a yes; no where nobody can be asked.
    pub fn confirms(&self, question: &str) -> bool {
        self.can_ask() && ui::confirms(question) == Some(true)
    }

    /// Whether the settings could not be read, and the defaults hold.
    pub fn has_broken_settings(&self) -> bool {
        self.leniency == Leniency::Needed
    }

    /// A recorded path from where the command works.
    pub fn path_from_cwd(&self, recorded_path: &str) -> PathBuf {
        let full = self.project.root.join(recorded_path);
        full.strip_prefix(&self.cwd).map(Path::to_owned).unwrap_or(full)
    }

    /// The path of a plan as a person would type it here: from where they stand, for a shell.
    pub fn plan_argument(&self, recorded_path: &str) -> String {
        let full = self.project.root.join(recorded_path);
        let stands = self.stands.canonicalize().unwrap_or_else(|_| self.stands.clone());
        let path = relative(&stands, &full).unwrap_or(full);
        let dashed = path.to_string_lossy().starts_with('-');
        let path = if dashed { Path::new(".").join(path) } else { path };
        quote_for_shell(&path.to_string_lossy())
    }

    /// The redactor for what is said of a document that may not be readable: it also knows what the
    /// text gives to names that look secret.
    pub fn redactor_of_text(&self, text: &str) -> Redactor {
        self.redactor.clone().and_assigned_in(text, &self.settings.secrets)
    }

    /// Opens the ledger for reading; an error where there is none.
    pub fn read_store(&self) -> Result<Store> {
        match piton_ledger::open(&self.project.state_dir, Open::ReadOnly) {
            Err(error @ piton_ledger::Error::NoLedger { .. }) => {
                Err(self.lost_ledger().unwrap_or_else(|| error.into()))
            }
            opened => Ok(Store::new(opened?)),
        }
    }

    /// Opens the ledger for reading and writing, making it where there never was one.
    pub fn write_store(&self) -> Result<Store> {
        if let Some(lost) = self.lost_ledger() {
            return Err(lost);
        }
        if self.project.root.to_str().is_none() {
            // The ledger and the views name it, and steps are told of it.
            let message = format!("the path {} is not valid UTF-8", self.project.root.display());
            return Err(
                CommandError::new(Kind::Blocked, "directory", message).hint("rename the folder")
            );
        }
        let ledger = piton_ledger::open(&self.project.state_dir, Open::ReadWrite)?;
        self.hide_state();
        Ok(Store::new(ledger))
    }

    /// What is to be said of a ledger that is gone, or empty, though runs left traces.
    pub fn lost_ledger(&self) -> Option<CommandError> {
        lost::look(&self.project)
    }

    /// Keeps git from taking up state that lies in the work tree: now, or once there is git.
    fn hide_state(&self) {
        let file = self.project.state_dir.join(".gitignore");
        if self.project.keeps_state_in_tree() && !file.exists() {
            // Without it `git add` takes more than it should; nothing else depends on it.
            let _ = std::fs::write(file, "*\n");
        }
    }

    /// The folder of a run: keeper, logs, failure contexts.
    pub fn run_dir(&self, run_id: &str) -> PathBuf {
        self.project.state_dir.join("runs").join(run_id)
    }

    /// The run a command means: the one named (a unique prefix will do), else the newest that fits.
    pub fn pick(
        store: &mut Store,
        named: Option<&str>,
        fits: impl Fn(&RunRow) -> bool,
        what: &str,
    ) -> Result<RunRow> {
        if let Some(row) = named.map(|name| store.ledger().run(name)).transpose()?.flatten() {
            return Ok(row);
        }
        let runs = store.runs()?;
        let Some(name) = named else {
            return runs.into_iter().find(fits).ok_or_else(|| {
                CommandError::usage("no-run", format!("there is no {what} here"))
                    .hint(remedy![Piton "runs", Words " lists all runs; ", Piton "run PLAN", Words " starts one"])
            });
        };
        let near: Vec<&RunRow> = runs.iter().filter(|r| r.run_id.starts_with(name)).collect();
        match near.as_slice() {
            [one] => Ok((*one).clone()),
            [] => {
                let known = runs.iter().map(|r| r.run_id.as_str());
                let meant = piton_formats::keys::nearest(name, known);
                let error = CommandError::usage("no-run", format!("there is no run `{name}` here"));
                Err(match meant {
                    Some(meant) => error.hint(format!("did you mean `{meant}`?")),
                    None => error,
                }
                .hint(remedy![Piton "runs", Words " lists the runs of this project"]))
            }
            many => {
                let ids: Vec<&str> = many.iter().map(|r| r.run_id.as_str()).collect();
                Err(CommandError::usage(
                    "no-run",
                    format!("`{name}` could mean: {}", ids.join(", ")),
                ))
            }
        }
    }

    /// What is seen of a run beside its state.
    pub fn seen(loaded: &Loaded) -> Seen<'_> {
        let driver = loaded.row.owner.as_ref().map(|lease| {
            let alive = Self::driver_lives(&loaded.row);
            Driver {
                pid: lease.owner.pid,
                host: lease.owner.host.clone(),
                alive,
                stopped: alive && lease.owner.is_stopped(),
                heard_at: Timestamp(lease.heartbeat_at),
            }
        });
        let (run_id, seq, place) = (&loaded.row.run_id, loaded.seq, crate::ui::place());
        let (rerun, left, moved, now) = (&[], &[], &[], now());
        Seen { run_id, seq, driver, rerun, left, moved, now, place }
    }

    /// What a run looks like.
    pub fn view(loaded: &Loaded) -> RunView<'_> {
        RunView::new(&loaded.state, Self::seen(loaded))
    }

    /// Whether a process advances a run now.
    pub fn driver_lives(row: &RunRow) -> bool {
        row.owner.as_ref().is_some_and(|lease| match owner_liveness(&lease.owner) {
            Liveness::Alive => true,
            Liveness::Dead => false,
            Liveness::Unknown => lease.expires_at > now().0,
        })
    }

    /// The process of this machine that drives a run.
    pub fn driver_here(row: &RunRow) -> Option<&Owner> {
        let owner = row.owner.as_ref().map(|lease| &lease.owner)?;
        (owner_liveness(owner) == Liveness::Alive).then_some(owner)
    }

    /// This process, as owner of leases.
    pub fn owner() -> Owner {
        Owner::current()
    }

    /// The person at the keyboard, as recorded with decisions.
    pub fn who() -> String {
        let uid = || format!("uid {}", rustix::process::getuid().as_raw());
        environment().user.clone().unwrap_or_else(uid)
    }
}

/// What stands in quotes in settings that can't be read: among it are the names of variables that a
/// person declared secret, and too many of those do no harm.
fn words_in_quotes(path: &Path) -> Vec<String> {
    let text = read::text(path, SETTINGS_BYTES_MAX).unwrap_or_default();
    let quoted = |line: &str| -> Vec<String> {
        line.split(['"', '\'']).skip(1).step_by(2).map(str::to_owned).collect()
    };
    text.lines().flat_map(quoted).collect()
}

/// The way from a folder to a file, where both are below one that is not the root of the system.
fn relative(from: &Path, to: &Path) -> Option<PathBuf> {
    let common = from.ancestors().find(|a| to.starts_with(a) && a.parent().is_some())?;
    let up = from.strip_prefix(common).ok()?.components().map(|_| "..");
    Some(up.collect::<PathBuf>().join(to.strip_prefix(common).ok()?))
}

fn read_settings(
    table: &Table,
    path: &Path,
    json: bool,
    redactor: &dyn Fn() -> Redactor,
) -> Result<Settings> {
    let refused = |problems: &[Diagnostic], text: &str| {
        let redactor = redactor().and_assigned_in(text, &Names::default());
        ui::document_error(problems, text, json, &redactor)
    };
    match read::bytes(path, SETTINGS_BYTES_MAX) {
        Ok(bytes) => {
            let text = sink::utf8(SETTINGS_FILE, bytes)
                .map_err(|found| refused(&found.problems, &found.text))?;
            read_settings_with(SETTINGS_FILE, &text, &sections(table))
                .map_err(|problems| refused(&problems, &text))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Settings::default()),
        Err(e) => Err(CommandError::usage("settings", format!("{}: {e}", path.display()))),
    }
}

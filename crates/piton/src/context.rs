//! What every command needs: the project, its settings, its ledger, the terminal, the person.
//!
//! The one place that reads the environment and the clock; libraries get values.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use piton_core::Timestamp;
use piton_core::redact::Redactor;
use piton_engine::Store;
use piton_formats::settings::Settings;
use piton_ledger::{Liveness, Open, Owner, RunRow, Sqlite, owner_liveness};
use piton_workspace::Project;

use crate::error::{CommandError, Result};

/// Name of the settings file at the project's root.
pub const SETTINGS_FILE: &str = "piton.toml";

/// What a command works with.
pub struct Context {
    /// The project.
    pub project: Project,
    /// The folder the command was called in.
    pub cwd: PathBuf,
    /// Its settings.
    pub settings: Settings,
    /// Keeps secrets out of what is written.
    pub redactor: Redactor,
    /// Whether stdout is to be JSON.
    pub json: bool,
    /// Whether questions are answered with yes.
    pub yes: bool,
    /// Whether a person can be asked: stdin and stderr are terminals.
    pub interactive: bool,
}

impl Context {
    /// Finds project and settings from a folder.
    pub fn new(cwd: &Path, json: bool, yes: bool) -> Result<Self> {
        let project = Project::discover(cwd)
            .map_err(|e| CommandError::failed("no-project", e.to_string()))?;
        let settings = read_settings(&project.root.join(SETTINGS_FILE), json)?;
        let environment: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
            .collect();
        let redactor = Redactor::new(
            environment.iter().map(|(k, v)| (k.as_str(), v.as_str())),
            &settings.secret_names,
        );
        let interactive = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Ok(Self { project, cwd: cwd.to_owned(), settings, redactor, json, yes, interactive })
    }

    /// The same from where a run was started, if that is another work tree of this project: its
    /// plan, its settings and its HEAD are the ones that count. Nothing if it is this one, or gone.
    pub fn of_run(&self, root: &str) -> Result<Option<Self>> {
        let root = Path::new(root);
        if root == self.project.root || !root.is_dir() {
            return Ok(None);
        }
        let other = Self::new(root, self.json, self.yes)?;
        let real = |c: &Self| c.project.state_dir.canonicalize().ok();
        Ok((real(&other) == real(self)).then_some(other))
    }

    /// Opens the ledger for reading; an error where there is none.
    pub fn read_store(&self) -> Result<Store> {
        let ledger = Sqlite::open(&self.project.state_dir, Open::ReadOnly)?;
        Ok(Store::new(Box::new(ledger)))
    }

    /// Opens the ledger for reading and writing, making it where there is none.
    pub fn write_store(&self) -> Result<Store> {
        let ledger = Sqlite::open(&self.project.state_dir, Open::ReadWrite)?;
        Ok(Store::new(Box::new(ledger)))
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
                    .hint("`piton runs` lists all runs; `piton run PLAN` starts one")
            });
        };
        let near: Vec<&RunRow> = runs.iter().filter(|r| r.run_id.starts_with(name)).collect();
        match near.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(CommandError::usage("no-run", format!("there is no run `{name}` here"))
                .hint("`piton runs` lists the runs of this project")),
            many => {
                let ids: Vec<&str> = many.iter().map(|r| r.run_id.as_str()).collect();
                Err(CommandError::usage(
                    "no-run",
                    format!("`{name}` could be any of: {}", ids.join(", ")),
                ))
            }
        }
    }

    /// Whether a process advances a run now.
    pub fn driver_lives(row: &RunRow) -> bool {
        row.owner.as_ref().is_some_and(|lease| match owner_liveness(&lease.owner) {
            Liveness::Alive => true,
            Liveness::Dead => false,
            Liveness::Unknown => lease.expires_at > now().0,
        })
    }

    /// This process, as owner of leases.
    pub fn owner() -> Owner {
        Owner::current()
    }

    /// The person at the keyboard, as recorded with decisions.
    pub fn who() -> String {
        let name = ["PITON_USER", "USER", "LOGNAME"].iter().find_map(|v| std::env::var(v).ok());
        name.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
    }
}

/// The time now.
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
}

fn read_settings(path: &Path, json: bool) -> Result<Settings> {
    match std::fs::read_to_string(path) {
        Ok(text) => piton_formats::settings::read_settings(SETTINGS_FILE, &text)
            .map_err(|problems| crate::commands::document_error(&problems, &text, json)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Settings::default()),
        Err(e) => Err(CommandError::usage("settings", format!("{}: {e}", path.display()))),
    }
}

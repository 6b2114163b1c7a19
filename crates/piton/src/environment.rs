//! What the program takes from its environment: the one place that reads it. Everything else is given
//! values, so what a command does can be read from its arguments.
//!
//! Colour is the exception: `anstream` reads `NO_COLOR`, `CLICOLOR` and `TERM` itself.

use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;

use piton_process::protocol::MARK_VARIABLE;
use piton_world::Inherited;

/// The variable that tells a driver to leave the session of the terminal it was started from.
pub const DETACHED: &str = "PITON_DETACHED";

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(Environment::read);

/// The environment of this process, as it was found.
pub struct Environment {
    /// What is passed on to the keeper and its children.
    pub inherited: Inherited,
    /// The person's home, by its real path.
    pub home: Option<PathBuf>,
    /// The person's name.
    pub user: Option<String>,
    /// The run whose step this process is part of.
    pub run_id: Option<String>,
    /// The step that this process is part of: phase, lane and step.
    pub step: [Option<String>; 3],
    /// The mark of that run.
    pub mark: Option<String>,
    /// Whether this is a driver for the background.
    pub is_detached: bool,
    /// Whether a time zone is named.
    pub names_zone: bool,
    /// Whether the terminal can move its cursor.
    pub moves_cursor: bool,
    /// The language and character set of the person.
    pub locale: String,
}

impl Environment {
    fn read() -> Self {
        let text = |name: &&str| std::env::var(name).ok();
        let set = |name: &&str| text(name).filter(|value| !value.is_empty());
        let inherited = Inherited {
            variables: std::env::vars_os().collect(),
            temp_dir: std::env::temp_dir(),
            program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")),
        };
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Self {
            inherited,
            home: home.map(|home| home.canonicalize().unwrap_or(home)),
            user: ["PITON_USER", "USER", "LOGNAME"].iter().find_map(text),
            run_id: text(&"PITON_RUN_ID"),
            step: ["PITON_PHASE", "PITON_LANE", "PITON_STEP"].map(|name| text(&name)),
            mark: text(&MARK_VARIABLE),
            is_detached: std::env::var_os(DETACHED).is_some(),
            names_zone: std::env::var_os("TZ").is_some_and(|name| !name.is_empty()),
            moves_cursor: std::env::var_os("TERM").is_some_and(|term| term != "dumb"),
            // The first that is set decides, as in C.
            locale: ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default(),
        }
    }
}

/// The environment of this process.
pub fn environment() -> &'static Environment {
    &ENVIRONMENT
}

/// The folder that the program was called in.
pub fn current_folder() -> io::Result<PathBuf> {
    std::env::current_dir()
}

/// Whether JSON is asked for, on a command line that can't be read.
pub fn asks_for_json() -> bool {
    std::env::args_os().any(|arg| arg == "--json")
}

/// The words of the command line.
pub fn words() -> impl Iterator<Item = std::ffi::OsString> {
    std::env::args_os().skip(1)
}

/// The time at which the clock stands still; only debug builds, which tests use, look for one.
pub fn clock() -> Option<String> {
    if cfg!(debug_assertions) { std::env::var("PITON_CLOCK").ok() } else { None }
}

/// Whether this process is part of a step of a run.
pub fn is_in_step() -> bool {
    std::env::var_os(MARK_VARIABLE).is_some() || std::env::var_os("PITON_RUN_ID").is_some()
}

/// The process of the agent that called a hook, if its program says so.
pub fn agent_pid() -> Option<u32> {
    std::env::var("CLAUDE_PID").ok()?.parse().ok()
}

/// The session of the agent that started this process, if its program says so.
pub fn agent_session() -> Option<String> {
    std::env::var("CLAUDE_CODE_SESSION_ID").ok().filter(|session| !session.is_empty())
}

/// A folder that a variable names.
pub fn folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|dir| dir.is_absolute())
}

/// Whether a program is found by its name.
pub fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

//! What lies on disk beside a program: a record of its session to read, and files that make it stop.
//!
//! Names and texts alone: the caller looks, reads and writes.

pub use piton_core::agent::STOP_FILE;
use serde_json::json;

/// Where a program records a session beside its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The variable that names the program's folder.
    pub variable: &'static str,
    /// The program's folder below the user's home where the variable is not set.
    pub usual: &'static str,
    /// The folder in it that has the records, at any depth.
    pub folder: &'static str,
    /// How the name of the record ends.
    pub ending: String,
}

/// Where the files of a [`Stop`] may lie.
#[derive(Clone, Copy, Debug)]
pub struct StopPlace<'a> {
    /// A folder of ours, which lives as long as the attempt.
    pub folder: &'a str,
    /// The user's home.
    pub home: &'a str,
    /// The file that stops the agent once it exists.
    pub file: &'a str,
}

/// What makes a program stop after the operation under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// Paths and texts of files.
    pub files: Vec<(String, String)>,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// Which of the files is named by [`crate::Ask::settings`].
    pub settings: Option<String>,
}

impl Stop {
    /// Begins with the variable that every hook reads.
    pub(crate) fn new(place: &StopPlace<'_>) -> Self {
        Self { env: vec![(STOP_FILE.to_owned(), place.file.to_owned())], ..Self::default() }
    }

    /// Adds a file.
    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }
}

/// A hook that tells Claude Code or Gemini CLI to stop, in the shape of their settings. The file is
/// looked for by the shell: where the variable is not set, nothing is said.
pub(crate) fn hook(event: &str) -> String {
    let answer = json!({"continue": false, "stopReason": "Piton asked to stop here."});
    let command = format!("test ! -e \"${STOP_FILE}\" || printf '%s' '{answer}'");
    let hook = json!({"name": "piton-stop", "type": "command", "command": command});
    json!({"hooks": {event: [{"matcher": "*", "hooks": [hook]}]}}).to_string()
}

/// What Gemini CLI wants to know of an extension.
pub(crate) fn extension() -> String {
    json!({"name": "piton-stop", "version": env!("CARGO_PKG_VERSION")}).to_string()
}

/// Settings with which opencode loads a plugin from a file.
pub(crate) fn plugin(path: &str) -> String {
    json!({"plugin": [format!("file://{path}")]}).to_string()
}

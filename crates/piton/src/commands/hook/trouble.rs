//! What can go wrong in a hook; the log has it in words, the agent does not see it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use piton_agents::hook::Unreadable;

use crate::error::CommandError;

/// Shorthand for results in a hook.
pub(super) type Result<T> = std::result::Result<T, Trouble>;

/// What went wrong.
#[derive(Debug)]
pub enum Trouble {
    /// What the program said cannot be read.
    Input(Unreadable),
    /// The project is not found.
    Project(piton_workspace::Error),
    /// The folder that the agent works in is not there.
    Folder(PathBuf),
    /// A command of Piton failed.
    Command(CommandError),
    /// The note about the session cannot be written.
    Note(PathBuf, io::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(why) => why.fmt(f),
            Self::Project(why) => why.fmt(f),
            Self::Folder(path) => write!(f, "{} is not a folder", path.display()),
            Self::Command(error) => write!(f, "{}: {}", error.code, error.message),
            Self::Note(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl From<CommandError> for Trouble {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

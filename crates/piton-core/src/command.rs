//! A command of a plan: for a shell, or without one.

use serde::{Deserialize, Serialize};

use crate::shell;

/// A command; each text is a template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A line for `sh -c`.
    Shell(String),
    /// A program and its arguments, without a shell.
    Args(Vec<String>),
}

impl Command {
    /// The command as a person would read it.
    pub fn display(&self) -> String {
        match self {
            Self::Shell(line) => line.clone(),
            Self::Args(args) => {
                args.iter().map(|arg| shell::quoted(arg)).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

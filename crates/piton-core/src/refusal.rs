//! Why something is not done before somebody acts, as a value: code, cause, remedies.
//!
//! Commands are kept apart from the words around them, so that whoever shows a refusal can write them
//! as they are typed there, and nobody has to search a sentence for them. How it looks is decided in
//! `piton-view`; what is written here is for logs and files.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The code that `piton explain` knows.
    pub code: Cow<'static, str>,
    /// What is the matter.
    pub cause: String,
    /// What can be done about it: each would do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
}

impl Refusal {
    /// A refusal that says nothing yet about what to do.
    pub fn new(code: &'static str, cause: impl Into<String>) -> Self {
        Self { code: code.into(), cause: cause.into(), remedies: Vec::new() }
    }

    /// The same with one more thing that can be done about it.
    #[must_use]
    pub fn or(mut self, remedy: impl Into<Remedy>) -> Self {
        self.remedies.push(remedy.into());
        self
    }

    /// The same with words before its cause, such as what could not be done.
    #[must_use]
    pub fn because(mut self, what: impl fmt::Display) -> Self {
        self.cause = format!("{what}: {}", self.cause);
        self
    }

    /// The same with every text in it changed, as by a redactor.
    #[must_use]
    pub fn map(mut self, change: impl Fn(&str) -> String) -> Self {
        self.cause = change(&self.cause);
        for part in self.remedies.iter_mut().flat_map(|remedy| &mut remedy.0) {
            let (Part::Words(text) | Part::Piton(text) | Part::Shell(text) | Part::Option(text)) =
                part;
            *text = change(text);
        }
        self
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        for (number, remedy) in self.remedies.iter().enumerate() {
            write!(f, "{}{remedy}", if number == 0 { "; " } else { ", or " })?;
        }
        Ok(())
    }
}

/// Something to do: words with the commands in them kept apart. [`remedy!`](crate::remedy) makes one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy(pub Vec<Part>);

/// A part of what is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What a person reads.
    Words(String),
    /// The arguments of a command of ours.
    Piton(String),
    /// A command of somebody else, as git.
    Shell(String),
    /// An option to add to the command that starts or continues the run.
    Option(String),
}

/// Makes a [`Remedy`] of its parts: `remedy![Words "watch it with ", Piton "attach {run}"]`.
#[macro_export]
macro_rules! remedy {
    ($($kind:ident $text:literal),+ $(,)?) => {
        $crate::refusal::Remedy(vec![$($crate::refusal::Part::$kind(format!($text))),+])
    };
}

impl Remedy {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Something that begins with a command of ours.
    pub fn piton(arguments: impl Into<String>) -> Self {
        Self(vec![Part::Piton(arguments.into())])
    }

    /// Something that begins with a command of somebody else.
    pub fn shell(command: impl Into<String>) -> Self {
        Self(vec![Part::Shell(command.into())])
    }

    /// The same, and then another.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The same, and then these words.
    #[must_use]
    pub fn words(mut self, words: impl Into<String>) -> Self {
        self.0.push(Part::Words(words.into()));
        self
    }

    /// The same, and an option of the command that starts or continues the run.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.0.push(Part::Option(option.into()));
        self
    }

    /// The same, and a command of somebody else in the sentence.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.0.push(Part::Shell(command.into()));
        self
    }

    /// The options in it: the command that continues the run takes them.
    pub fn options(&self) -> Option<String> {
        let options = self.0.iter().filter_map(|part| match part {
            Part::Option(option) => Some(option.as_str()),
            _ => None,
        });
        Some(options.collect::<Vec<_>>().join(" ")).filter(|options| !options.is_empty())
    }

    /// The same, and then a command of ours.
    #[must_use]
    pub fn then_piton(self, arguments: impl Into<String>) -> Self {
        self.then(Part::Piton(arguments.into()))
    }

    /// The same, and then a command of somebody else.
    #[must_use]
    pub fn then_shell(self, command: impl Into<String>) -> Self {
        self.then(Part::Shell(command.into()))
    }

    fn then(mut self, part: Part) -> Self {
        self.0.extend([Part::Words(", then run ".to_owned()), part]);
        self
    }

    /// The commands of ours in it.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Piton(arguments) => Some(arguments.as_str()),
            _ => None,
        })
    }
}

impl From<String> for Remedy {
    fn from(words: String) -> Self {
        Self(vec![Part::Words(words)])
    }
}

impl From<&str> for Remedy {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl From<&String> for Remedy {
    fn from(words: &String) -> Self {
        words.clone().into()
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Words(words) => f.write_str(words),
            Part::Piton(arguments) => write!(f, "`piton {arguments}`"),
            Part::Shell(text) | Part::Option(text) => write!(f, "`{text}`"),
        })
    }
}

//! Resources: runs, checkpoints and briefs, each with its address.

use std::fmt;

/// What every address begins with.
const SCHEME: &str = "piton://runs";

/// Something to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The runs of the project.
    Runs,
    /// A run in full.
    Run(String),
    /// The checkpoints of a run.
    Checkpoints(String),
    /// A checkpoint.
    Checkpoint(String, String),
    /// The brief of a run.
    Brief(String),
}

/// A form of addresses: template, name, what it is, type of its content.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// The address with variables.
    pub uri: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// The type of its content.
    pub mime: &'static str,
}

/// The forms of addresses that have a variable.
pub const TEMPLATES: &[Template] = &[
    Template {
        uri: "piton://runs/{run}",
        name: "run",
        about: "A run in full: phases, steps, gates, checkpoints, costs",
        mime: JSON,
    },
    Template {
        uri: "piton://runs/{run}/checkpoints",
        name: "checkpoints",
        about: "The checkpoints of a run",
        mime: JSON,
    },
    Template {
        uri: "piton://runs/{run}/checkpoints/{checkpoint}",
        name: "checkpoint",
        about: "A checkpoint of a run and its snapshots",
        mime: JSON,
    },
    Template {
        uri: "piton://runs/{run}/brief",
        name: "brief",
        about: "What a fresh agent needs to continue a run, in at most 2,000 tokens",
        mime: TEXT,
    },
];

/// The type of data.
pub const JSON: &str = "application/json";
/// The type of a brief.
pub const TEXT: &str = "text/markdown";

impl Resource {
    /// Reads an address; `None` if it is not one of ours.
    pub fn parse(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME)?;
        if rest.is_empty() {
            return Some(Self::Runs);
        }
        let (run, part) = match rest.strip_prefix('/')?.split_once('/') {
            Some((run, part)) => (run, Some(part)),
            None => (rest.strip_prefix('/')?, None),
        };
        let run = Some(decoded(run)?).filter(|run| !run.is_empty())?;
        Some(match part {
            None => Self::Run(run),
            Some("checkpoints") => Self::Checkpoints(run),
            Some("brief") => Self::Brief(run),
            Some(part) => {
                let name = decoded(part.strip_prefix("checkpoints/")?)?;
                Self::Checkpoint(run, Some(name).filter(|name| !name.is_empty())?)
            }
        })
    }

    /// The type of its content.
    pub fn mime(&self) -> &'static str {
        if matches!(self, Self::Brief(_)) { TEXT } else { JSON }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs => f.write_str(SCHEME),
            Self::Run(run) => write!(f, "{SCHEME}/{}", encoded(run)),
            Self::Checkpoints(run) => write!(f, "{SCHEME}/{}/checkpoints", encoded(run)),
            Self::Brief(run) => write!(f, "{SCHEME}/{}/brief", encoded(run)),
            Self::Checkpoint(run, name) => {
                write!(f, "{SCHEME}/{}/checkpoints/{}", encoded(run), encoded(name))
            }
        }
    }
}

/// A name as part of an address.
fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    name.bytes().map(one).collect()
}

/// The name that a part of an address stands for.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_their_text_form() {
        let text = |text: &str| text.to_owned();
        for resource in [
            Resource::Runs,
            Resource::Run(text("plan-20260101")),
            Resource::Checkpoints(text("r1")),
            Resource::Checkpoint(text("r1"), text("P1/A/work#1.before")),
            Resource::Brief(text("r1")),
        ] {
            assert_eq!(Resource::parse(&resource.to_string()), Some(resource));
        }
        for other in ["piton://run/x", "piton://runs/", "piton://runs/x/y", "file:///etc/passwd"] {
            assert_eq!(Resource::parse(other), None, "{other}");
        }
    }
}

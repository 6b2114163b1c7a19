//! The trait that every agent program implements.

use std::fmt::Debug;

pub use piton_core::agent::Permissions;

use crate::mcp::{Mcp, Servers};
use crate::setup::{Record, Stop, StopPlace};
use crate::stream::Reader;

/// How Claude Code names the tools of MCP servers.
pub(crate) const MCP_TOOL: &str = "mcp__";

/// An agent program: how it is called, and what it says.
pub trait Program: Sync + Debug {
    /// Its name in plans and settings; it never changes.
    fn id(&self) -> &'static str;

    /// The program to look for; empty if the user names it.
    fn binary(&self) -> &'static str;

    /// How a new session starts. The prompt comes on standard input.
    fn start(&self, ask: &Ask<'_>) -> Invocation;

    /// How a session continues; `None` if the program cannot.
    fn resume(&self, session: &str, ask: &Ask<'_>) -> Option<Invocation>;

    /// Reads the stream of one process from its beginning.
    fn reader(&self) -> Box<dyn Reader>;

    /// How it is stopped after the operation under way.
    fn halt(&self) -> Halt;

    /// What must be there before it starts, so that [`Halt::Hook`] works.
    fn stop(&self, _place: &StopPlace<'_>) -> Stop {
        Stop::default()
    }

    /// How it is given the MCP servers of a file, whose path and content are these. `folder` is one of
    /// ours, which lives as long as the attempt.
    fn mcp(
        &self,
        _file: &str,
        _servers: &Servers,
        _folder: &str,
        _permissions: Permissions,
    ) -> Mcp {
        Mcp::default()
    }

    /// Arguments with which it fails if one of these MCP servers of its own settings does not start.
    fn requires(&self, _servers: &[String]) -> Vec<String> {
        Vec::new()
    }

    /// Where it records a session beside its stream; `None` if the stream says everything.
    fn record(&self, _session: &str) -> Option<Record> {
        None
    }

    /// The window of its models where neither the stream nor the settings name one, in tokens.
    fn window(&self) -> u64;
}

/// What an agent is asked to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// The program, if it is not the usual one.
    pub program: Option<&'a str>,
    /// An id for a new session, where the program accepts one: it is stored before the process begins.
    pub session: &'a str,
    /// The model; the program's own choice where there is none.
    pub model: Option<&'a str>,
    /// What the agent may do without asking.
    pub permissions: Permissions,
    /// Tools that are allowed besides, as the program names them.
    pub tools: &'a [String],
    /// Further arguments.
    pub args: &'a [String],
    /// Tools of MCP servers that are allowed unless the user names some of them.
    pub mcp_tools: &'a [String],
    /// A file with settings of ours, hooks among them, where the program takes one.
    pub settings: Option<&'a str>,
}

impl Ask<'_> {
    /// The tools that are allowed by name: those of the user, else the shell where edits are allowed,
    /// and those of MCP servers.
    pub(crate) fn allowed(&self, shell: &str) -> Option<String> {
        let mut allowed = match self.permissions {
            _ if !self.tools.is_empty() => self.tools.to_vec(),
            Permissions::Edits => vec![shell.to_owned()],
            Permissions::Own | Permissions::All => Vec::new(),
        };
        let names_some = self.tools.iter().any(|tool| tool.starts_with(MCP_TOOL));
        if self.permissions == Permissions::Edits && !names_some {
            allowed.extend_from_slice(self.mcp_tools);
        }
        (!allowed.is_empty()).then(|| allowed.join(","))
    }
}

/// How a process is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// The id of its session, if that is known before it begins.
    pub session: Option<String>,
}

impl Invocation {
    /// Begins with a program.
    pub(crate) fn new(ask: &Ask<'_>, usual: &str) -> Self {
        let program = ask.program.unwrap_or(usual).to_owned();
        Self { command: vec![program], ..Self::default() }
    }

    /// Adds arguments.
    pub(crate) fn arg(mut self, words: &[&str]) -> Self {
        self.command.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Adds an argument with its value, if there is one.
    pub(crate) fn option(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.arg(&[name, value]),
            None => self,
        }
    }

    /// Adds the user's own arguments.
    pub(crate) fn own(mut self, args: &[String]) -> Self {
        self.command.extend(args.iter().cloned());
        self
    }

    /// Adds a variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Names its session.
    pub(crate) fn session(mut self, id: &str) -> Self {
        self.session = (!id.is_empty()).then(|| id.to_owned());
        self
    }
}

/// How a program is stopped after the operation under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// A hook or plugin of ours tells it to stop when the operation has ended.
    Hook,
    /// `SIGINT` to its process tree, sent when no operation is under way.
    Interrupt,
    /// It is only ended like any process.
    None,
}

//! MCP servers that an agent is given: one file in the form of Claude Code, put into the form of each
//! program. Gemini CLI has no place for them that belongs to one call.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

/// A file of MCP servers.
#[derive(Debug, Deserialize)]
struct File {
    #[serde(default, rename = "mcpServers")]
    servers: BTreeMap<String, Server>,
}

/// How a server is reached: a program, or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Server {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables added to its environment.
    pub env: BTreeMap<String, String>,
    /// The address of one that runs already.
    pub url: Option<String>,
}

/// Servers by name.
pub type Servers = BTreeMap<String, Server>;

/// Why a file has no servers that an agent can be given.
#[derive(Debug, thiserror::Error)]
pub enum NotServers {
    /// It is not JSON of that form.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    /// Programs do not accept that name alike.
    #[error("{0:?} is not a name that every program accepts")]
    Name(String),
}

/// Reads a file of MCP servers; why it cannot be read, if it can't.
pub fn servers(text: &str) -> Result<Servers, NotServers> {
    let file: File = serde_json::from_str(text)?;
    match file.servers.keys().find(|name| !is_plain(name)) {
        Some(name) => Err(NotServers::Name(name.clone())),
        None => Ok(file.servers),
    }
}

/// What gives a program its MCP servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mcp {
    /// Arguments.
    pub args: Vec<String>,
    /// Variables.
    pub env: Vec<(String, String)>,
    /// Paths and texts of files.
    pub files: Vec<(String, String)>,
    /// Names of their tools, which are allowed where the user allows none.
    pub tools: Vec<String>,
}

/// Servers in the settings of opencode.
pub(crate) fn opencode(servers: &Servers) -> String {
    let one = |server: &Server| {
        if let Some(url) = &server.url {
            return json!({"type": "remote", "url": url, "enabled": true});
        }
        let command: Vec<&String> = std::iter::once(&server.command).chain(&server.args).collect();
        json!({"type": "local", "command": command, "environment": server.env, "enabled": true})
    };
    let servers: BTreeMap<&String, Value> = servers.iter().map(|(n, s)| (n, one(s))).collect();
    json!({"mcp": servers}).to_string()
}

/// Servers as arguments of Codex, which are keys and values of its settings. Texts and lists are
/// written alike in TOML and JSON.
pub(crate) fn codex(servers: &Servers, is_trusted: bool) -> Vec<String> {
    let mut args = Vec::new();
    for (name, server) in servers {
        let mut set = |key: &str, value: String| {
            args.extend(["-c".to_owned(), format!("mcp_servers.{name}.{key}={value}")]);
        };
        if let Some(url) = &server.url {
            set("url", json!(url).to_string());
        } else {
            set("command", json!(server.command).to_string());
            set("args", json!(server.args).to_string());
        }
        // It would go on without the server, and nobody would know.
        set("required", "true".to_owned());
        for (variable, value) in &server.env {
            set(&format!("env.{variable}"), json!(value).to_string());
        }
        if is_trusted {
            set("default_tools_approval_mode", json!("approve").to_string());
        }
    }
    args
}

/// Arguments with which Codex fails if one of the servers in its own settings does not start.
pub(crate) fn codex_requires(servers: &[String]) -> Vec<String> {
    let plain = servers.iter().filter(|name| is_plain(name));
    plain.flat_map(|name| ["-c".to_owned(), format!("mcp_servers.{name}.required=true")]).collect()
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Permissions;
    use crate::table::find;

    const FILE: &str = r#"{"mcpServers":{"db":{"command":"serve","args":["-x","a \"b\""],
        "env":{"KEY":"v"}},"far":{"type":"http","url":"http://127.0.0.1:1/mcp"}}}"#;

    /// Lost: an agent works without the servers that its settings name, and nobody says so.
    #[test]
    fn every_program_gets_the_servers_of_the_file() {
        let servers = servers(FILE).unwrap_or_default();
        assert_eq!(servers.len(), 2);
        let given = |id: &str, permissions| {
            find(id)
                .map(|p| p.mcp("/x/servers.json", &servers, "/x", permissions))
                .unwrap_or_default()
        };
        let claude = given("claude", Permissions::Edits);
        assert_eq!(claude.args, ["--mcp-config", "/x/servers.json"]);
        assert_eq!(claude.tools, ["mcp__db", "mcp__far"]);
        let codex = given("codex", Permissions::Edits).args;
        assert!(codex.contains(&r#"mcp_servers.db.args=["-x","a \"b\""]"#.to_owned()), "{codex:?}");
        assert!(codex.contains(&r#"mcp_servers.db.env.KEY="v""#.to_owned()), "{codex:?}");
        assert!(codex.iter().any(|word| word.ends_with("mode=\"approve\"")), "{codex:?}");
        let own = given("codex", Permissions::Own).args;
        assert!(!own.iter().any(|word| word.contains("approve")), "{own:?}");
        let opencode = given("opencode", Permissions::Edits);
        assert!(opencode.files[0].1.contains(r#"["serve","-x","#), "{opencode:?}");
        assert!(opencode.files[0].1.contains(r#""url":"http://127.0.0.1:1/mcp""#), "{opencode:?}");
        // The settings refuse it for these.
        for id in ["gemini", "command"] {
            assert_eq!(given(id, Permissions::Edits), Mcp::default());
        }
    }

    #[test]
    fn a_file_that_no_program_could_read_is_refused() {
        assert!(super::servers("{").is_err());
        assert!(super::servers(r#"{"mcpServers":{"a.b":{"command":"x"}}}"#).is_err());
        assert!(super::servers("{}").is_ok_and(|servers| servers.is_empty()));
    }
}

//! What the settings of an agent program itself say about work without a person.
//!
//! Texts come in, and what cannot be read says nothing: the program itself reports that.

use serde_json::Value;

/// What a program's own settings say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Whether they let it change something without asking.
    pub allows: bool,
    /// MCP servers whose tools it asks about.
    pub asking_servers: Vec<String>,
    /// MCP servers without which it would go on, and say nothing.
    pub optional_servers: Vec<String>,
    /// Files with hooks that nobody has trusted.
    pub untrusted_hooks: Vec<String>,
    /// The file that switches off all hooks.
    pub hooks_off: Option<String>,
}

/// Reads the settings of a program; `files` are their paths and texts.
pub fn own(id: &str, files: &[(String, String)]) -> Own {
    match id {
        "claude" => claude(files),
        "codex" => codex(files),
        "gemini" => gemini(files),
        "opencode" => opencode(files),
        _ => Own::default(),
    }
}

fn parsed(files: &[(String, String)]) -> impl Iterator<Item = Value> {
    files.iter().filter_map(|(_, text)| serde_json::from_str(text).ok())
}

/// Modes of Claude Code in which it changes files without asking.
const WRITING_MODES: [&str; 2] = ["acceptEdits", "bypassPermissions"];

fn claude(files: &[(String, String)]) -> Own {
    let allows = parsed(files).any(|settings| {
        let permissions = &settings["permissions"];
        let names = permissions["allow"].as_array().is_some_and(|allowed| !allowed.is_empty());
        names || permissions["defaultMode"].as_str().is_some_and(|m| WRITING_MODES.contains(&m))
    });
    // Of several files the last one that says it counts.
    let mut said = files.iter().rev().filter_map(|(path, text)| {
        let settings = serde_json::from_str::<Value>(text).ok()?;
        Some((path, settings["disableAllHooks"].as_bool()?))
    });
    let hooks_off = said.next().filter(|(_, is_off)| *is_off).map(|(path, _)| path.clone());
    Own { allows, hooks_off, ..Own::default() }
}

/// The mode in which Codex asks nobody about the tools of an MCP server.
const APPROVE: &str = "approve";

fn codex(files: &[(String, String)]) -> Own {
    let tables = files.iter().filter(|(path, _)| path.ends_with("config.toml"));
    let tables: Vec<_> = tables.filter_map(|(_, text)| toml_span::parse(text).ok()).collect();
    let mut own = Own::default();
    let mut trusted = Vec::new();
    for table in &tables {
        own.allows |=
            table.pointer("/sandbox_mode").is_some_and(|v| v.as_str() != Some("read-only"));
        let servers = table.pointer("/mcp_servers").and_then(|servers| servers.as_table());
        for (name, server) in servers.into_iter().flatten() {
            let mode = server.pointer("/default_tools_approval_mode").and_then(|m| m.as_str());
            let is_off =
                server.pointer("/enabled").and_then(toml_span::Value::as_bool) == Some(false);
            if is_off {
                continue;
            }
            if mode != Some(APPROVE) {
                own.asking_servers.push(name.name.to_string());
            }
            if server.pointer("/required").is_none() {
                own.optional_servers.push(name.name.to_string());
            }
        }
        let states = table.pointer("/hooks/state").and_then(|states| states.as_table());
        trusted.extend(states.into_iter().flatten().map(|(key, _)| key.name.to_string()));
    }
    let hooks = files.iter().filter(|(path, _)| path.ends_with("hooks.json"));
    let untrusted = hooks.filter(|(path, text)| {
        let has_any = serde_json::from_str::<Value>(text)
            .is_ok_and(|hooks| hooks["hooks"].as_object().is_some_and(|all| !all.is_empty()));
        has_any && !trusted.iter().any(|key| key.starts_with(&format!("{path}:")))
    });
    own.untrusted_hooks = untrusted.map(|(path, _)| path.clone()).collect();
    own
}

fn gemini(files: &[(String, String)]) -> Own {
    let mut own = Own::default();
    for settings in parsed(files) {
        let servers = settings["mcpServers"].as_object().into_iter().flatten();
        let asks = servers.filter(|(_, server)| server["trust"] != true);
        own.asking_servers.extend(asks.map(|(name, _)| name.clone()));
        let tools = &settings["tools"]["allowed"];
        own.allows |= tools.as_array().is_some_and(|allowed| !allowed.is_empty());
    }
    own
}

/// Without settings opencode asks about nothing that an agent needs.
fn opencode(files: &[(String, String)]) -> Own {
    let asks = |settings: Value| {
        let permission = &settings["permission"];
        let edits = [permission, &permission["*"], &permission["edit"], &permission["bash"]];
        edits.into_iter().any(|value| value.as_str().is_some_and(|said| said != "allow"))
    };
    Own { allows: !parsed(files).any(asks), ..Own::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(id: &str, files: &[(&str, &str)]) -> Own {
        let files: Vec<(String, String)> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        own(id, &files)
    }

    /// Lost: a program waits all night for somebody who approves.
    #[test]
    fn own_settings_tell_what_is_allowed() {
        let allows = |id: &str, file: &str, text: &str| read(id, &[(file, text)]).allows;
        for (id, file, text, wanted) in [
            ("claude", "s.json", "{}", false),
            ("claude", "s.json", r#"{"permissions":{"allow":["Edit"]}}"#, true),
            ("claude", "s.json", r#"{"permissions":{"defaultMode":"plan"}}"#, false),
            ("claude", "s.json", r#"{"permissions":{"defaultMode":"acceptEdits"}}"#, true),
            ("claude", "s.json", "not JSON", false),
            ("codex", "config.toml", "model = \"x\"", false),
            ("codex", "config.toml", "sandbox_mode = \"read-only\"", false),
            ("codex", "config.toml", "sandbox_mode = \"workspace-write\"", true),
            ("gemini", "s.json", "{}", false),
            ("gemini", "s.json", r#"{"tools":{"allowed":["write_file"]}}"#, true),
            ("opencode", "o.json", "{}", true),
            ("opencode", "o.json", r#"{"permission":{"edit":"ask"}}"#, false),
            ("opencode", "o.json", r#"{"permission":"allow"}"#, true),
        ] {
            assert_eq!(allows(id, file, text), wanted, "{id} {text}");
        }
    }

    /// Lost: calls of MCP servers fail all night, and hooks do nothing.
    #[test]
    fn servers_that_ask_and_hooks_without_trust_are_found() {
        let config = "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.b]\ncommand = \"x\"\n\
                      default_tools_approval_mode = \"approve\"\n";
        let trust = "[hooks.state.\"/p/.codex/hooks.json:stop:0:0\"]\ntrusted_hash = \"x\"\n";
        let hooks = ("/p/.codex/hooks.json", r#"{"hooks":{"Stop":[]}}"#);
        let found = read("codex", &[("/h/config.toml", config), hooks]);
        assert_eq!(found.asking_servers, ["a"]);
        assert_eq!(found.untrusted_hooks, ["/p/.codex/hooks.json"]);
        let trusted = format!("{config}{trust}");
        let found = read("codex", &[("/h/config.toml", &trusted), hooks]);
        assert!(found.untrusted_hooks.is_empty(), "{found:?}");
        let servers = r#"{"mcpServers":{"db":{"command":"x"},"own":{"trust":true}}}"#;
        assert_eq!(read("gemini", &[("/h/settings.json", servers)]).asking_servers, ["db"]);
    }
}

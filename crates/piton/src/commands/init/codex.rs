//! Codex: hooks and skills in the project, and the MCP server in its own settings.

use super::edit::{Edit, Member, What, hook};
use super::words::{TEXTS, skill};
use super::{Places, Setting};

/// The moments it is called at.
const EVENTS: [&str; 8] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PreCompact",
    "Stop",
    "Interrupt",
    "SessionEnd",
];
/// Seconds that a hook may take.
const TIMEOUT: u64 = 30;
/// The names of the table of the MCP server.
const NAMES: [&str; 2] = ["mcp_servers", "piton"];
/// The MCP server.
const SERVER: &str = "[mcp_servers.piton]\ncommand = \"piton\"\nargs = [\"mcp\"]\n";

pub(super) fn setting(places: &Places) -> Setting {
    let hooks = EVENTS.iter().map(|event| Member::Hook(event, hook("codex", TIMEOUT, None)));
    let mut edits = vec![
        Edit { path: places.root.join(".codex/hooks.json"), what: What::Json(hooks.collect()) },
        Edit { path: places.codex.join("config.toml"), what: What::Toml(&NAMES, SERVER) },
    ];
    edits.extend(TEXTS.iter().map(|text| Edit {
        path: places.root.join(format!(".agents/skills/piton-{}/SKILL.md", text.name)),
        what: What::Own(skill(text)),
    }));
    let next = "start Codex here, and trust the hooks of .codex/hooks.json when it asks: it skips \
                hooks that nobody has trusted, and says nothing";
    Setting { edits, next: vec![next.to_owned()] }
}

//! Claude Code: hooks and status line in the project's settings, the MCP server, slash commands.

use piton_formats::json::Tree;

use super::edit::{Edit, Member, What, hook};
use super::words::{TEXTS, markdown};
use super::{Places, Setting};

/// The moments it is called at. A batch is all operations of one answer.
pub(super) const EVENTS: [&str; 6] =
    ["SessionStart", "UserPromptSubmit", "PostToolBatch", "PreCompact", "Stop", "SessionEnd"];
/// Seconds that a hook may take.
pub(super) const TIMEOUT: u64 = 30;

pub(super) fn setting(places: &Places) -> Setting {
    let mut members: Vec<Member> =
        EVENTS.iter().map(|event| Member::Hook(event, hook("claude", TIMEOUT, None))).collect();
    let line = [("type", "command".into()), ("command", "piton statusline".into())];
    members.push(Member::Value(&["statusLine"], Tree::object(line)));
    let mut edits = vec![
        Edit { path: places.root.join(".claude/settings.json"), what: What::Json(members) },
        Edit {
            path: places.root.join(".mcp.json"),
            what: What::Json(vec![Member::Value(&["mcpServers", "piton"], server())]),
        },
    ];
    edits.extend(TEXTS.iter().map(|text| Edit {
        path: places.root.join(format!(".claude/commands/piton-{}.md", text.name)),
        what: What::Own(markdown(text)),
    }));
    Setting {
        edits,
        next: vec!["Claude Code asks once whether it may use the MCP server `piton`".to_owned()],
    }
}

/// The MCP server.
pub(super) fn server() -> Tree {
    let args = Tree::List(vec!["mcp".into()]);
    Tree::object([("command", "piton".into()), ("args", args)])
}

//! opencode: a plugin that calls `piton hook`, the MCP server, and slash commands.

use piton_formats::json::Tree;

use super::edit::{Edit, Member, What};
use super::words::{TEXTS, markdown};
use super::{Places, Setting};

/// The plugin.
const PLUGIN: &str = include_str!("opencode.js");

pub(super) fn setting(places: &Places) -> Setting {
    let command = Tree::List(vec!["piton".into(), "mcp".into()]);
    let server =
        Tree::object([("type", "local".into()), ("command", command), ("enabled", true.into())]);
    let mut edits = vec![
        Edit { path: places.opencode.join("plugin/piton.js"), what: What::Own(PLUGIN.to_owned()) },
        Edit {
            path: places.root.join("opencode.json"),
            what: What::Commented(vec![Member::Value(&["mcp", "piton"], server)]),
        },
    ];
    edits.extend(TEXTS.iter().map(|text| Edit {
        // In the project they would make it install packages there.
        path: places.opencode.join(format!("command/piton-{}.md", text.name)),
        what: What::Own(markdown(text)),
    }));
    let next =
        "the plugin works in all projects of yours; it does nothing where there is no memory bank";
    Setting { edits, next: vec![next.to_owned()] }
}

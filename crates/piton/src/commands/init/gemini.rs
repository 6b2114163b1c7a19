//! Gemini CLI: an extension of our own, with hooks, MCP server and slash commands.

use piton_formats::json::Tree;

use super::claude::server;
use super::edit::{Edit, Member, What, hook, own_json};
use super::words::TEXTS;
use super::{Places, Setting};

/// The moments it is called at. `AfterModel` would be called with each piece of an answer.
const EVENTS: [&str; 5] = ["SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd"];
/// Milliseconds that a hook may take.
const TIMEOUT_MS: u64 = 30_000;

pub(super) fn setting(places: &Places) -> Setting {
    let folder = places.gemini.join("extensions/piton");
    let hooks: Vec<Member> = EVENTS
        .iter()
        .map(|event| Member::Hook(event, hook("gemini", TIMEOUT_MS, Some("piton"))))
        .collect();
    let about = [
        Member::Value(&["name"], "piton".into()),
        Member::Value(&["version"], env!("CARGO_PKG_VERSION").into()),
        Member::Value(&["mcpServers"], Tree::object([("piton", server())])),
    ];
    let mut edits = vec![
        Edit { path: folder.join("gemini-extension.json"), what: own_json(&about) },
        Edit { path: folder.join("hooks/hooks.json"), what: own_json(&hooks) },
    ];
    edits.extend(TEXTS.iter().map(|text| Edit {
        path: folder.join(format!("commands/piton/{}.toml", text.name)),
        what: What::Own(format!(
            "description = \"{}\"\nprompt = \"\"\"\n{}\"\"\"\n",
            text.about,
            text.body.replace('"', "\\\"")
        )),
    }));
    let next = "the extension works in all projects of yours; it does nothing where there is no memory bank";
    Setting { edits, next: vec![next.to_owned()] }
}

//! How the agent of an order is called: words, variables, and the files that let it be stopped.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use piton_agents::mcp::{self, Servers};
use piton_agents::{Ask, StopPlace};
use piton_core::agent::Agent;
use piton_engine::order::AgentOrder;

/// The file in an attempt's folder that stops its agent once it exists.
const STOP: &str = "stop";

/// A call of a program.
pub(crate) struct Called {
    /// Program and arguments.
    pub(crate) argv: Vec<String>,
    /// Variables.
    pub(crate) env: Vec<(String, String)>,
    /// Files of the attempt, with their texts.
    pub(crate) files: Vec<(PathBuf, String)>,
}

/// The file that stops the agent of an attempt with this folder.
pub(crate) fn stop_file(folder: &Path) -> PathBuf {
    folder.join(STOP)
}

/// How an agent is called; nothing for a command, which is called as it is. `folder` is that of the
/// attempt, `home` the user's.
pub(crate) fn call(
    order: &AgentOrder,
    root: &Path,
    folder: &Path,
    home: Option<&Path>,
) -> Option<Called> {
    let agent = &order.agent;
    let program = piton_agents::find(&agent.program).filter(|_| agent.is_known())?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let own = agent.env.get("HOME").map(PathBuf::from);
    let home = own.as_deref().or(home).unwrap_or(folder);
    let file = stop_file(folder);
    let place = StopPlace { folder: &text(folder), home: &text(home), file: &text(&file) };
    let stop = program.stop(&place);
    // A file that cannot be read was refused before.
    let servers = servers(agent, root).unwrap_or_default();
    let mcp = agent.mcp.as_ref().map(|path| {
        program.mcp(&text(&root.join(path)), &servers, &text(folder), agent.permissions)
    });
    let mcp = mcp.unwrap_or_default();
    let args: Vec<String> = mcp.args.iter().chain(&agent.args).cloned().collect();
    let ask = Ask {
        program: agent.binary.as_deref(),
        session: order.session.as_deref().unwrap_or_default(),
        model: agent.model.as_deref(),
        permissions: agent.permissions,
        tools: &agent.tools,
        args: &args,
        mcp_tools: &mcp.tools,
        settings: stop.settings.as_deref(),
    };
    let continued = order.session.as_deref().filter(|_| order.continues);
    let invocation = continued
        .and_then(|session| program.resume(session, &ask))
        .unwrap_or_else(|| program.start(&ask));
    let mut files = Vec::new();
    for (path, content) in stop.files.into_iter().chain(mcp.files) {
        let path = PathBuf::from(path);
        if path.starts_with(folder) {
            files.push((path, content));
        } else {
            // Without it the agent does not stop between operations; it is ended when its window is full.
            let _ = lay_down(&path, &content);
        }
    }
    let stops = [(piton_agents::STOP_FILE.to_owned(), text(&file))];
    let env: BTreeMap<String, String> = agent
        .env
        .clone()
        .into_iter()
        .chain(invocation.env)
        .chain(stop.env)
        .chain(mcp.env)
        .chain(stops)
        .collect();
    Some(Called { argv: invocation.command, env: env.into_iter().collect(), files })
}

/// The MCP servers of an agent; why they cannot be read, if they can't.
pub(super) fn servers(agent: &Agent, root: &Path) -> io::Result<Servers> {
    let Some(file) = &agent.mcp else { return Ok(Servers::new()) };
    let text = std::fs::read_to_string(root.join(file));
    text.and_then(|text| mcp::servers(&text).map_err(io::Error::other))
        .map_err(|why| io::Error::other(format!("{file}: {why}")))
}

/// Writes a file outside of the attempt's folder, unless it is there.
fn lay_down(path: &Path, content: &str) -> io::Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    crate::write::replace(path, content.as_bytes())
}

//! How the agent of an order is called: words, variables, and the files that let it be stopped.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use piton_agents::mcp::{self, Servers};
use piton_agents::{Ask, Program, Stop, StopPlace};
use piton_core::agent::Agent;
use piton_engine::order::AgentOrder;

use crate::installed::{Place, own_settings};

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
/// attempt.
pub(crate) fn call(order: &AgentOrder, place: &Place<'_>, folder: &Path) -> Option<Called> {
    let Place { home, root, .. } = *place;
    let agent = &order.agent;
    let program = piton_agents::find(&agent.program).filter(|_| agent.is_known())?;
    let file = stop_file(folder);
    let stop = stop_of(agent, program, folder, home);
    // A file that cannot be read was refused before.
    let servers = servers(agent, root).unwrap_or_default();
    let mcp = agent.mcp.as_ref().map(|path| {
        program.mcp(&text(&root.join(path)), &servers, &text(folder), agent.permissions)
    });
    let mcp = mcp.unwrap_or_default();
    let required = program.requires(&own_settings(agent, place).optional_servers);
    let args: Vec<String> = mcp.args.iter().chain(&required).chain(&agent.args).cloned().collect();
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
    // What lies outside of it is laid down before the attempt begins.
    let files = stop.files.into_iter().chain(mcp.files);
    let files = files.map(|(path, content)| (PathBuf::from(path), content));
    let files = files.filter(|(path, _)| path.starts_with(folder)).collect();
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

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn stop_of(agent: &Agent, program: &dyn Program, folder: &Path, home: Option<&Path>) -> Stop {
    let own = agent.env.get("HOME").map(PathBuf::from);
    let home = own.as_deref().or(home).unwrap_or(folder);
    let file = stop_file(folder);
    program.stop(&StopPlace { folder: &text(folder), home: &text(home), file: &text(&file) })
}

/// Lays down the files that let an agent be stopped and lie outside of an attempt's folder; why it cannot
/// be stopped, if one cannot be written. `folder` is one of ours.
pub(crate) fn lay_outside(agent: &Agent, folder: &Path, home: Option<&Path>) -> Option<String> {
    let program = piton_agents::find(&agent.program).filter(|_| agent.is_known())?;
    let files = stop_of(agent, program, folder, home).files.into_iter();
    let mut outside = files.filter(|(path, _)| !Path::new(path).starts_with(folder));
    outside.find_map(|(path, content)| {
        let why = lay_down(Path::new(&path), &content).err()?;
        let name = &agent.name;
        Some(format!(
            "agent {name} cannot be stopped between operations, and is ended where it should: {path}: {why}"
        ))
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: an agent goes on where it should stop, and nobody knew that it cannot be asked.
    #[test]
    fn a_hook_that_cannot_be_laid_down_is_told() {
        let Ok(folder_of_home) = tempfile::tempdir() else { panic!("there is no folder") };
        let home = folder_of_home.path();
        let gemini = Agent::new("gemini", "gemini");
        let folder = Path::new("/run-of-ours");
        assert_eq!(lay_outside(&gemini, folder, Some(home)), None);
        assert!(home.join(".gemini/extensions/piton-stop/hooks/hooks.json").is_file());
        let file = home.join("file");
        assert!(std::fs::write(&file, "").is_ok());
        let told = lay_outside(&gemini, folder, Some(&file)).unwrap_or_default();
        assert!(told.contains("cannot be stopped between operations"), "{told}");
        assert_eq!(lay_outside(&Agent::new("claude", "claude"), folder, Some(&file)), None);
    }
}

//! Which agent programs this machine has, which versions, and whether they are logged in.
//!
//! For `piton doctor` and for whoever wants to know before a run starts. Nothing is changed: a program
//! is only asked for its version.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use piton_agents::own::own;
use piton_agents::ready::{Gap, Needs, Own, Seen, Spot, gaps, needs, version};
use piton_core::agent::Agent;

use crate::Inherited;

/// How long a program may take to say its version: one that runs on node takes seconds when it is not in
/// memory, and more on a machine that is busy.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// The pause between two looks whether it has answered.
const ANSWER_POLL: Duration = Duration::from_millis(10);
/// Most bytes that are read of the answer: a version is one line.
const ANSWER_BYTES_MAX: u64 = 4096;

/// Most bytes that are read of a file with settings of a program: people write them.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// Where programs, logins and settings are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// What children inherit.
    pub inherited: &'a Inherited,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// The project.
    pub root: &'a Path,
}

/// An agent whose program was looked at.
#[derive(Clone, Debug)]
pub struct Found {
    /// The agent.
    pub agent: Agent,
    /// What was seen of its program.
    pub seen: Seen,
    /// What it lacks for work without a person, the worst first.
    pub gaps: Vec<Gap>,
}

/// What programs are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Nothing: they are only looked for.
    None,
    /// Their version, which takes seconds.
    Version,
}

/// Looks at the programs of agents, those that Piton knows. Each program is asked for its version once,
/// all at the same time.
pub fn agents<'a>(
    agents: impl IntoIterator<Item = &'a Agent>,
    place: &Place<'_>,
    question: Question,
) -> Vec<Found> {
    let known = agents.into_iter().filter_map(|agent| {
        let program = piton_agents::find(&agent.program).filter(|_| agent.is_known())?;
        let binary = agent.binary.as_deref().unwrap_or_else(|| program.binary());
        Some((program.id(), agent, find(binary, place)))
    });
    let known: Vec<_> = known.collect();
    let paths: BTreeSet<&PathBuf> = known.iter().filter_map(|(.., path)| path.as_ref()).collect();
    let until = Instant::now() + ANSWER_WAIT;
    let asked = paths.into_iter().filter(|_| question == Question::Version);
    let asked: Vec<(PathBuf, Option<Child>)> =
        asked.map(|path| (path.clone(), ask(path, place.inherited))).collect();
    let answered: BTreeMap<PathBuf, Option<String>> = asked
        .into_iter()
        .map(|(path, child)| (path, child.and_then(|child| answer(child, until))))
        .collect();
    known
        .into_iter()
        .map(|(id, agent, path)| {
            let said = path.as_ref().and_then(|path| answered.get(path)?.as_deref());
            let around = Around { place, agent };
            let seen = Seen {
                id,
                version: said.and_then(version),
                path: path.map(|path| path.to_string_lossy().into_owned()),
                has_login: needs(id).is_none_or(|needs| around.has_login(&needs)),
                is_root: rustix::process::geteuid().is_root() && !around.is_set(SANDBOX),
                own: needs(id).map(|needs| around.own(id, &needs, |_| true)).unwrap_or_default(),
            };
            let mut gaps = gaps(&seen, agent);
            gaps.retain(|gap| question == Question::Version || *gap != Gap::NoAnswer);
            Found { agent: agent.clone(), gaps, seen }
        })
        .collect()
}

/// The variable with which Claude Code is told that root may do everything here.
const SANDBOX: &str = "IS_SANDBOX";

/// What the settings in the folder of an agent's program say. Those of the project are passed over by a
/// program that does not trust it.
pub(crate) fn own_settings(agent: &Agent, place: &Place<'_>) -> Own {
    let around = Around { place, agent };
    let is_in_folder = |spot: &Spot| matches!(spot, Spot::Folder(_));
    let found = needs(&agent.program).map(|needs| around.own(&agent.program, &needs, is_in_folder));
    found.unwrap_or_default()
}

/// The program that a shell would start.
pub fn find(binary: &str, place: &Place<'_>) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| {
        let metadata = file.metadata();
        metadata.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    if binary.contains('/') {
        return Some(place.root.join(binary)).filter(is_program);
    }
    let path = place.inherited.variable("PATH")?;
    let folders = path.as_bytes().split(|byte| *byte == b':');
    let folders = folders.map(|folder| Path::new(OsStr::from_bytes(folder)));
    folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(binary)).find(is_program)
}

/// What an agent would find where it starts.
struct Around<'a> {
    place: &'a Place<'a>,
    agent: &'a Agent,
}

impl Around<'_> {
    fn variable(&self, name: &str) -> Option<OsString> {
        let own = self.agent.env.get(name).map(OsString::from);
        let value = own.or_else(|| self.place.inherited.variable(name).map(OsStr::to_owned));
        value.filter(|value| !value.is_empty())
    }

    fn is_set(&self, name: &str) -> bool {
        self.variable(name).is_some()
    }

    /// A folder that a variable names, else one below the user's home.
    fn folder(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        let set = self.variable(variable).map(PathBuf::from);
        let home = self.agent.env.get("HOME").map(PathBuf::from);
        let home = home.or_else(|| self.place.home.map(Path::to_owned));
        set.or_else(|| Some(home?.join(usual)))
    }

    fn has_login(&self, needs: &Needs) -> bool {
        let (variable, usual) = needs.folder;
        let folder = self.folder(variable, usual);
        needs.variables.iter().any(|name| self.is_set(name))
            || folder.is_some_and(|folder| folder.join(needs.login).is_file())
    }

    fn own(&self, id: &str, needs: &Needs, is_read: impl Fn(&Spot) -> bool) -> Own {
        let (variable, usual) = needs.folder;
        let files = needs.settings.iter().filter(|spot| is_read(spot)).filter_map(|spot| {
            let path = match spot {
                Spot::Folder(name) => self.folder(variable, usual)?.join(name),
                Spot::Config(name) => self.folder("XDG_CONFIG_HOME", ".config")?.join(name),
                Spot::Project(name) => self.place.root.join(name),
            };
            Some((path.to_string_lossy().into_owned(), read(&path)?))
        });
        own(id, &files.collect::<Vec<_>>())
    }
}

/// The text of a file with settings; nothing if there is none that can be read.
fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(SETTINGS_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Asks a program for its version; nothing if it cannot be started.
fn ask(path: &Path, inherited: &Inherited) -> Option<Child> {
    Command::new(path)
        .arg("--version")
        .env_clear()
        .envs(inherited.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

/// What a program printed that was asked; nothing if it does not end in time, or fails.
fn answer(mut child: Child, until: Instant) -> Option<String> {
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break status,
            None if Instant::now() >= until => {
                // Nobody waits for what it may still say.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            None => thread::sleep(ANSWER_POLL),
        }
    };
    let mut said = String::new();
    child.stdout.take()?.take(ANSWER_BYTES_MAX).read_to_string(&mut said).ok()?;
    status.success().then_some(said)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    /// Lost: Codex refuses to start in a project that it does not trust, because it is told of a server
    /// that it does not know.
    #[test]
    fn servers_of_a_project_that_may_be_untrusted_are_not_named() {
        let dir = tempfile::tempdir().unwrap();
        let (home, root) = (dir.path().join("home"), dir.path().join("project"));
        for (folder, server) in [(&home, "own"), (&root, "theirs")] {
            std::fs::create_dir_all(folder.join(".codex")).unwrap();
            let text = format!("[mcp_servers.{server}]\ncommand = \"serve\"\n");
            std::fs::write(folder.join(".codex/config.toml"), text).unwrap();
        }
        let (temp_dir, program) = (dir.path().to_owned(), PathBuf::new());
        let inherited = Inherited { variables: Vec::new(), temp_dir, program };
        let place = Place { inherited: &inherited, home: Some(&home), root: &root };
        let own = own_settings(&Agent::new("codex", "codex"), &place);
        assert_eq!(own.optional_servers, ["own"]);
    }
}

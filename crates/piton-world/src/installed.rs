//! Which agent programs this machine has, which versions, and whether they are logged in.
//!
//! For `piton doctor` and for whoever wants to know before a run starts. Nothing is changed: a program
//! is only asked for its version.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use piton_agents::TABLE;
use piton_agents::ready::{Needs, Seen, needs, version};

use crate::Inherited;

/// How long a program may take to say its version: one that runs on node takes seconds when it is not in
/// memory, and more on a machine that is busy.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// The pause between two looks whether it has answered.
const ANSWER_POLL: Duration = Duration::from_millis(10);
/// Most bytes that are read of the answer: a version is one line.
const ANSWER_BYTES_MAX: u64 = 4096;

/// Looks at all programs that are known by name. They are asked at the same time.
pub fn all(inherited: &Inherited, home: Option<&Path>) -> Vec<Seen> {
    let named = TABLE.iter().filter(|program| !program.binary().is_empty());
    let looks: Vec<Look> =
        named.map(|program| Look::begin(program.id(), program.binary(), inherited)).collect();
    looks.into_iter().map(|look| look.end(inherited, home)).collect()
}

/// Looks at one program; `binary` is its name.
pub fn seen(id: &'static str, binary: &str, inherited: &Inherited, home: Option<&Path>) -> Seen {
    Look::begin(id, binary, inherited).end(inherited, home)
}

/// A look at a program that was asked for its version.
struct Look {
    id: &'static str,
    path: Option<PathBuf>,
    asked: Option<Child>,
    until: Instant,
}

impl Look {
    fn begin(id: &'static str, binary: &str, inherited: &Inherited) -> Self {
        let path = find(binary, variable(inherited, "PATH"));
        let asked = path.as_deref().and_then(|path| ask(path, inherited));
        Self { id, path, asked, until: Instant::now() + ANSWER_WAIT }
    }

    fn end(self, inherited: &Inherited, home: Option<&Path>) -> Seen {
        let Self { id, path, asked, until } = self;
        let Some(path) = path else { return Seen { id, ..Seen::default() } };
        let said = asked.and_then(|child| answer(child, until));
        Seen {
            id,
            version: said.as_deref().and_then(version),
            has_login: needs(id).is_none_or(|needs| has_login(&needs, inherited, home)),
            path: Some(path.to_string_lossy().into_owned()),
        }
    }
}

fn variable<'a>(inherited: &'a Inherited, name: &str) -> Option<&'a OsStr> {
    let mut all = inherited.variables.iter();
    all.find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// The program that a shell would start.
fn find(binary: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let folders = path?.as_bytes().split(|byte| *byte == b':');
    let folders = folders.map(|folder| Path::new(OsStr::from_bytes(folder)));
    let is_program = |file: &PathBuf| {
        let metadata = file.metadata();
        metadata.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(binary)).find(is_program)
}

fn has_login(needs: &Needs, inherited: &Inherited, home: Option<&Path>) -> bool {
    let set = |name: &&str| variable(inherited, name).is_some_and(|value| !value.is_empty());
    let (folder, usual) = needs.folder;
    let folder = variable(inherited, folder).map(PathBuf::from);
    let folder = folder.or_else(|| Some(home?.join(usual)));
    needs.variables.iter().any(set)
        || folder.is_some_and(|folder| folder.join(needs.login).is_file())
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

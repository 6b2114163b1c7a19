//! Which agent programs this machine has, which versions, and whether they are logged in.
//!
//! For `piton doctor` and for whoever wants to know before a run starts. Nothing is changed: a program
//! is only asked for its version.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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

/// Looks at all programs that are known by name, at the same time.
pub fn all(inherited: &Inherited, home: Option<&Path>) -> Vec<Seen> {
    let named = TABLE.iter().filter(|program| !program.binary().is_empty());
    let programs: Vec<_> = named.map(|program| (program.id(), program.binary())).collect();
    thread::scope(|scope| {
        let look = |(id, binary)| scope.spawn(move || seen(id, binary, inherited, home));
        let looks: Vec<_> = programs.into_iter().map(look).collect();
        looks.into_iter().filter_map(|look| look.join().ok()).collect()
    })
}

/// Looks at one program; `binary` is its name or path.
pub fn seen(id: &'static str, binary: &str, inherited: &Inherited, home: Option<&Path>) -> Seen {
    let Some(path) = find(binary, variable(inherited, "PATH")) else {
        return Seen { id, ..Seen::default() };
    };
    let said = ask(&path, inherited);
    Seen {
        id,
        version: said.as_deref().and_then(version),
        has_login: needs(id).is_none_or(|needs| has_login(&needs, inherited, home)),
        path: Some(path.to_string_lossy().into_owned()),
    }
}

fn variable<'a>(inherited: &'a Inherited, name: &str) -> Option<&'a OsStr> {
    let mut all = inherited.variables.iter();
    all.find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// The program that a shell would start.
fn find(binary: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let folders = std::env::split_paths(path?);
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

/// What a program prints when it is asked for its version; nothing if it does not end in time.
fn ask(path: &Path, inherited: &Inherited) -> Option<String> {
    let mut child = Command::new(path)
        .arg("--version")
        .env_clear()
        .envs(inherited.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let until = Instant::now() + ANSWER_WAIT;
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

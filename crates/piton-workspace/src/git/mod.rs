//! The one place that runs git: prompts, hooks, auto-gc, optional locks and locale switched off.
//!
//! Whatever else a caller needs (input, an index of its own, a private environment) is added to the
//! call; nothing here knows what the command is for. Variables that would point git at another
//! repository than the folder given are removed.

mod pool;

use piton_core::refusal::Refusal;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

pub(crate) use pool::Pool;

/// Variables that change how git reads paths, or what it prints.
const REMOVED: [&str; 3] = ["GIT_LITERAL_PATHSPECS", "GIT_EXTERNAL_DIFF", "GIT_TRACE"];

/// Variables that name a repository, as git sets them for its hooks: whoever inherits them works on
/// that one, wherever it is started.
pub const NAMES_A_REPOSITORY: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
];

/// What the message begins with where there is no git to run.
pub(crate) const NOT_RUN: &str = "git could not be run";

/// A git command that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`git {command}` failed: {message}")]
pub struct Error {
    /// Its arguments.
    pub command: String,
    /// Its exit code, where it had one.
    pub code: Option<i32>,
    /// What it complained about.
    pub message: String,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::new("git", error.to_string())
    }
}

impl Error {
    fn new(command: String, output: &Output) -> Self {
        let mut message = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        if message.is_empty() {
            // Killed, it says nothing; how it ended is all there is to tell.
            message = output.status.to_string();
        }
        Self { command, code: output.status.code(), message }
    }
}

/// A git command about to run.
#[derive(Debug)]
#[must_use]
pub(crate) struct Git {
    command: Command,
    words: Vec<String>,
    input: Option<Vec<u8>>,
    witness: Option<std::io::Result<File>>,
}

impl Git {
    /// Begins a command in a folder.
    pub fn at(dir: &Path) -> Self {
        let mut command = Command::new("git");
        command.arg("-C").arg(dir).args([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "gc.auto=0",
            "-c",
            "maintenance.auto=false",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "commit.gpgSign=false",
            "-c",
            "core.quotePath=false",
        ]);
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("LC_ALL", "C");
        for name in NAMES_A_REPOSITORY.into_iter().chain(REMOVED) {
            command.env_remove(name);
        }
        Self { command, words: Vec::new(), input: None, witness: None }
    }

    /// Sets configuration for this command alone; comes before [`Git::args`].
    pub fn config(mut self, setting: &str) -> Self {
        self.command.arg("-c").arg(setting);
        self
    }

    /// Makes everything the command writes durable before it returns: objects, refs, the index.
    pub fn durable(self) -> Self {
        self.config("core.fsync=all").config("core.fsyncMethod=batch")
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.words.push(arg.as_ref().to_string_lossy().into_owned());
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            self = self.arg(arg);
        }
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Uses another index than the work tree's own.
    pub fn index(self, index: &Path) -> Self {
        self.env("GIT_INDEX_FILE", index)
    }

    /// Gives the command bytes to read.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Lets a later driver see that the command still runs, should this process die first: it holds
    /// a shared lock on the file for as long as it lives. Only for commands without input, because
    /// the file takes the place of the input; nothing the command starts inherits it otherwise.
    pub fn witnessed(mut self, file: &Path) -> Self {
        let open = || {
            let mut options = File::options();
            let file = options.read(true).append(true).create(true).open(file)?;
            file.lock_shared()?;
            Ok(file)
        };
        self.witness = Some(open());
        self
    }

    /// Runs it and returns the bytes it printed.
    pub fn bytes(self) -> Result<Vec<u8>, Error> {
        self.ended(Stdio::piped())
    }

    fn ended(self, stdout: Stdio) -> Result<Vec<u8>, Error> {
        let words = self.words.join(" ");
        let output = self.output_to(stdout)?;
        if output.status.success() { Ok(output.stdout) } else { Err(Error::new(words, &output)) }
    }

    /// Runs it for the answer that its exit is: yes, or no with 1.
    pub(crate) fn answer(self) -> Result<bool, Error> {
        self.answer_with(&[0, 1]).map(|output| output.status.success())
    }

    /// Runs it and returns exit and output alike; any other exit code than these is a failure.
    pub(crate) fn answer_with(self, codes: &[i32]) -> Result<Output, Error> {
        let words = self.words.join(" ");
        let output = self.output()?;
        let known = output.status.code().is_some_and(|code| codes.contains(&code));
        if known { Ok(output) } else { Err(Error::new(words, &output)) }
    }

    /// Runs it and returns the text it printed, without the last line break.
    pub fn text(self) -> Result<String, Error> {
        self.bytes().map(|b| String::from_utf8_lossy(&b).trim_end_matches('\n').to_owned())
    }

    /// Runs it for what it does; what it prints is not read.
    pub fn run(self) -> Result<(), Error> {
        self.ended(Stdio::null()).map(drop)
    }

    /// Starts it for a conversation; its complaints are not read.
    pub fn spawn(self, stdin: Stdio, stdout: Stdio) -> std::io::Result<Child> {
        self.converse(stdin, stdout, Stdio::null())
    }

    /// Starts it for a conversation, with a place for its complaints.
    pub(crate) fn converse(
        mut self,
        stdin: Stdio,
        stdout: Stdio,
        stderr: Stdio,
    ) -> std::io::Result<Child> {
        self.command.stdin(stdin).stdout(stdout).stderr(stderr).spawn()
    }

    /// Runs it and returns exit and output alike, for commands whose exit code is an answer.
    pub fn output(self) -> Result<Output, Error> {
        self.output_to(Stdio::piped())
    }

    fn output_to(mut self, stdout: Stdio) -> Result<Output, Error> {
        let words = self.words.join(" ");
        let lost = |e: std::io::Error| Error {
            command: words.clone(),
            code: None,
            message: format!("{NOT_RUN}: {e}"),
        };
        let witness = self.witness.take().transpose().map_err(lost)?;
        let stdin = match witness {
            _ if self.input.is_some() => Stdio::piped(),
            Some(file) => Stdio::from(file),
            None => Stdio::null(),
        };
        self.command.stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        // A writer of its own: git may print before it has read everything. It is there first, for a
        // git without its input would take it for empty.
        let writer = self.input.take().map(writer).transpose().map_err(lost)?;
        let mut child = self.command.spawn().map_err(lost)?;
        let writer = writer.zip(child.stdin.take()).map(|((give, writer), stdin)| {
            let _ = give.send(stdin);
            writer
        });
        let output = child.wait_with_output().map_err(lost)?;
        if let Some(writer) = writer {
            let _ = writer.join();
        }
        Ok(output)
    }
}

/// A thread that writes to whatever it is given.
fn writer(bytes: Vec<u8>) -> std::io::Result<(Sender<ChildStdin>, JoinHandle<()>)> {
    let (give, given) = mpsc::channel::<ChildStdin>();
    let write = move || {
        if let Ok(mut stdin) = given.recv() {
            // A command that stops reading says why by its exit.
            let _ = stdin.write_all(&bytes);
        }
    };
    Ok((give, thread::Builder::new().name("input".to_owned()).spawn(write)?))
}

/// The lines `WORDS<tab>PATH` that git prints with `-z`.
pub(crate) fn tabbed(bytes: &[u8]) -> impl Iterator<Item = (Vec<&str>, &[u8])> {
    bytes.split(|byte| *byte == 0).filter_map(|line| {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        Some((std::str::from_utf8(&line[..tab]).ok()?.split(' ').collect(), &line[tab + 1..]))
    })
}

/// The words that git prints with `-z`.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty())
}

/// A path that differs, as git prints it with `--raw -z`: what it was and what it is.
pub(crate) struct RawChange<'a> {
    pub modes: [&'a str; 2],
    pub ids: [&'a str; 2],
    pub path: &'a [u8],
}

/// Reads `:OLDMODE NEWMODE OLD NEW STATUS`, then the path, again and again; `None` if it is not that.
pub(crate) fn raw_changes(bytes: &[u8]) -> Option<Vec<RawChange<'_>>> {
    let mut words = words(bytes);
    let mut changes = Vec::new();
    while let Some(head) = words.next() {
        let fields = std::str::from_utf8(head).ok()?.strip_prefix(':')?.split(' ');
        let &[old, new, from, to, _] = fields.collect::<Vec<_>>().as_slice() else { return None };
        changes.push(RawChange { modes: [old, new], ids: [from, to], path: words.next()? });
    }
    Some(changes)
}

/// Words as git reads them with `-z`.
pub(crate) fn ended<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend_from_slice(word.as_ref());
        bytes.push(0);
    }
    bytes
}

/// What `cat-file --batch` prints: the bytes of each object.
pub(crate) fn contents(mut output: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        // `ID TYPE SIZE`, a line break, the bytes, a line break.
        let line = output.iter().position(|byte| *byte == b'\n')?;
        let size = std::str::from_utf8(&output[..line]).ok()?.rsplit(' ').next()?.parse().ok()?;
        let (content, rest) = output[line + 1..].split_at_checked(size)?;
        output = rest.strip_prefix(b"\n")?;
        Some(content)
    })
}

/// The configuration that holds in a folder, keys in lower case as git prints them.
pub(crate) fn config(dir: &Path) -> Result<Vec<(String, String)>, Error> {
    let bytes = Git::at(dir).args(["config", "--list", "-z"]).bytes()?;
    let pair = |pair: &[u8]| {
        let pair = String::from_utf8_lossy(pair);
        // A key alone means true.
        let (key, value) = pair.split_once('\n').unwrap_or((&pair, "true"));
        (key.to_owned(), value.to_owned())
    };
    Ok(words(&bytes).map(pair).collect())
}

/// The version of git, in its own words.
pub fn version() -> Result<String, Error> {
    Git::at(Path::new("/")).arg("version").text()
}

/// Runs git in a folder and returns what it printed.
pub(crate) fn git(dir: &Path, args: &[&str]) -> Result<String, Error> {
    Git::at(dir).args(args).text()
}

/// Tells whether a commit is, or is contained in, another.
pub fn is_ancestor(dir: &Path, commit: &str, of: &str) -> Result<bool, Error> {
    Ok(commit == of || Git::at(dir).args(["merge-base", "--is-ancestor", commit, of]).answer()?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::path::Path;

    use super::{Git, git};

    /// Lost: a lane is blocked because a git command failed, and nobody sees how.
    #[test]
    fn a_command_that_fails_without_a_word_tells_how_it_ended() {
        let asked = ["config", "--file", "/dev/null", "--get", "no.such"];
        let said = git(Path::new("/"), &asked).map_err(|error| error.message);
        assert_eq!(said, Err("exit status: 1".to_owned()));
    }

    /// Lost: the next driver does not wait for a git command of a dead one.
    #[test]
    fn a_witnessed_command_holds_its_witness() {
        let home = tempfile::tempdir().unwrap();
        let witness = home.path().join("git-children");
        let same = format!("alias.same=![ /dev/stdin -ef '{}' ]", witness.display());
        let git = Git::at(home.path()).witnessed(&witness).config(&same);
        assert_eq!(git.arg("same").run(), Ok(()));
    }
}

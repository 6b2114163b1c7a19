//! Questions about refs and objects, answered by one git that stays.
//!
//! A lane asks dozens of them, and starting a process for each costs more than the answers. One
//! `git cat-file --batch-command` a repository looks everything up again whenever it is asked, so its
//! answers are as fresh as those of a new process. It is not asked at all where files of git's say
//! what a ref names or that there is none, or again about what never changes: what an object holds.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::loose::{self, Found};
use super::{Memo, Repo};
use crate::git::{Git, Pool};

/// The gits that answer.
static PROCESSES: Pool<CatFile> = Pool::new();

/// What the commit or tree of an object is, by repository and name.
static PEELED: Memo<(PathBuf, String), String> = Memo::new();
/// What objects hold, likewise.
static CONTENTS: Memo<(PathBuf, String), Vec<u8>> = Memo::new();
/// Larger objects than this are asked for each time; the records of lanes have some hundred bytes.
const CONTENTS_BYTES_MAX: usize = 4096;

/// Ends the gits that answer.
pub(crate) fn end_processes() {
    PROCESSES.end();
}

/// The object that a name leads to: a ref, an id, or an expression like `HEAD^{tree}`.
pub fn value(dir: &Path, name: &str) -> Option<String> {
    Repo::find(dir).ok()?.value(name)
}

/// The bytes of the object that a name leads to.
pub(crate) fn bytes(dir: &Path, name: &str) -> Option<Vec<u8>> {
    Repo::find(dir).ok()?.bytes(name)
}

/// Notes what an object holds, by repository and id.
pub(crate) fn remember(key: (PathBuf, String), bytes: &[u8]) {
    if bytes.len() <= CONTENTS_BYTES_MAX {
        CONTENTS.add(key, bytes.to_vec());
    }
}

/// The first line of an answer: `ID TYPE SIZE`.
struct Header {
    id: String,
    size: usize,
}

impl Header {
    /// `None` for `NAME missing` and the like.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.trim_end().split(' ');
        let (id, kind, size) = (words.next()?, words.next()?, words.next()?);
        let is_id = id.len() >= 40 && id.bytes().all(|b| b.is_ascii_hexdigit());
        let is_kind = ["commit", "tree", "blob", "tag"].contains(&kind);
        let size = size.parse().ok().filter(|_| is_id && is_kind && words.next().is_none())?;
        Some(Self { id: id.to_owned(), size })
    }
}

struct CatFile {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl CatFile {
    fn begin(common: &Path) -> io::Result<Self> {
        let git = Git::at(common).env("GIT_DIR", common).env("GIT_NO_LAZY_FETCH", "1");
        let git = git.args(["cat-file", "--batch-command"]);
        let mut child = git.spawn(Stdio::piped(), Stdio::piped())?;
        let lost = || io::Error::other("no pipe");
        let stdin = child.stdin.take().ok_or_else(lost)?;
        let stdout = BufReader::new(child.stdout.take().ok_or_else(lost)?);
        Ok(Self { child, stdin, stdout })
    }

    fn ask<T>(
        &mut self,
        verb: &str,
        name: &str,
        read: impl FnOnce(&mut BufReader<ChildStdout>, &Header) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        self.stdin.write_all(format!("{verb} {name}\n").as_bytes())?;
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let header = Header::parse(&line);
        header.map(|header| read(&mut self.stdout, &header)).transpose()
    }
}

impl Drop for CatFile {
    fn drop(&mut self) {
        // It only ever reads.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The names of a repository as seen from one of its work trees.
pub(super) struct Names<'a> {
    pub(super) git_dir: &'a Path,
    pub(super) common: &'a Path,
}

impl Names<'_> {
    pub(super) fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let known = match self.start(name) {
            Found::Names(id) => Some(id),
            Found::Missing => return None,
            Found::Unsure => None,
        };
        let key = known.map(|id| (self.common.to_owned(), id));
        if let Some(held) = key.as_ref().and_then(|key| CONTENTS.get(key)) {
            return Some(held);
        }
        let name = key.as_ref().map_or(name, |(_, id)| id);
        let bytes = self.ask("contents", name, |said, header| {
            let mut bytes = vec![0; header.size];
            said.read_exact(&mut bytes)?;
            // A line end follows.
            said.read_exact(&mut [0])?;
            Ok(bytes)
        })?;
        if let Some(key) = key {
            remember(key, &bytes);
        }
        Some(bytes)
    }

    pub(super) fn value(&self, name: &str) -> Option<String> {
        let asked = |name: &str| self.ask("info", name, |_, header| Ok(header.id.clone()));
        let (start, peel) = name.split_at(name.find("^{").unwrap_or(name.len()));
        let id = match self.start(start) {
            Found::Names(id) => id,
            Found::Missing => return None,
            Found::Unsure => return asked(name),
        };
        match peel {
            // Whether an object is there, only git can tell.
            "" if start == id => asked(name),
            "" => Some(id),
            "^{tree}" | "^{commit}" => {
                let key = (self.common.to_owned(), format!("{id}{peel}"));
                PEELED.get(&key).or_else(|| {
                    let found = asked(&key.1)?;
                    PEELED.add(key, found.clone());
                    Some(found)
                })
            }
            _ => asked(name),
        }
    }

    /// The id that a name stands for, where git need not be asked for it.
    fn start(&self, name: &str) -> Found {
        match name {
            "HEAD" => loose::head(self.git_dir, self.common),
            id if loose::is_id(id) => Found::Names(id.to_owned()),
            name => loose::read(self.common, name),
        }
    }

    fn ask<T>(
        &self,
        verb: &str,
        name: &str,
        read: impl Fn(&mut BufReader<ChildStdout>, &Header) -> io::Result<T>,
    ) -> Option<T> {
        if name.contains('\n') {
            return None;
        }
        let (common, name) = (std::path::absolute(self.common).ok()?, self.seen_from_all(name)?);
        if let Some(mut process) = PROCESSES.take(&common) {
            // One that was ended in the meantime, as by Ctrl-C, is started again.
            if let Ok(answer) = process.ask(verb, &name, &read) {
                PROCESSES.put(common, process);
                return answer;
            }
        }
        let mut process = CatFile::begin(&common).ok()?;
        let answer = process.ask(verb, &name, &read).ok()?;
        PROCESSES.put(common, process);
        answer
    }

    /// A name that means the same in the folder that all work trees share.
    fn seen_from_all(&self, name: &str) -> Option<String> {
        if name.starts_with("HEAD") && self.git_dir != self.common {
            return Some(format!("worktrees/{}/{name}", self.git_dir.file_name()?.to_str()?));
        }
        Some(name.to_owned())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::git::git;

    fn repository() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "-b", "main"]).unwrap();
        commit(dir.path(), "one");
        dir
    }

    fn commit(dir: &Path, message: &str) {
        let who = ["-c", "user.name=n", "-c", "user.email=e"];
        let args = ["commit", "-q", "--allow-empty", "-m", message];
        git(dir, &[&who[..], &args].concat()).unwrap();
    }

    #[test]
    fn answers_are_those_of_a_git_that_was_just_started() {
        let home = repository();
        let dir = home.path();
        let fresh = |name: &str| git(dir, &["rev-parse", "-q", "--verify", name]).ok();
        for name in ["HEAD", "refs/heads/main", "HEAD^{tree}", "refs/heads/none", "no such name"] {
            assert_eq!(value(dir, name), fresh(name), "{name}");
        }
        commit(dir, "two");
        git(dir, &["pack-refs", "--all"]).unwrap();
        git(dir, &["gc", "-q", "--prune=now"]).unwrap();
        assert_eq!(value(dir, "refs/heads/main"), fresh("HEAD"));
        assert_eq!(value(dir, "HEAD~1^{commit}"), fresh("HEAD~1"));
        git(dir, &["update-ref", "-d", "refs/heads/main"]).unwrap();
        assert_eq!(value(dir, "refs/heads/main"), None);
        assert_eq!(value(dir, "a\nb"), None);
    }

    #[test]
    fn contents_come_whole_and_in_turn() {
        let home = repository();
        std::fs::write(home.path().join("f"), "a\nb\0\n").unwrap();
        let blob = git(home.path(), &["hash-object", "-w", "f"]).unwrap();
        assert_eq!(bytes(home.path(), &blob).as_deref(), Some(b"a\nb\0\n".as_slice()));
        assert_eq!(bytes(home.path(), "refs/none"), None);
        assert_eq!(bytes(home.path(), &blob).map(|b| b.len()), Some(5));
    }

    #[test]
    fn each_work_tree_has_a_head_of_its_own() {
        let home = repository();
        let linked = home.path().join("a linked one");
        git(home.path(), &["worktree", "add", "-q", "-b", "b", &linked.to_string_lossy()]).unwrap();
        commit(&linked, "there");
        let here = value(home.path(), "HEAD").unwrap();
        let there = value(&linked, "HEAD^{commit}").unwrap();
        assert_ne!(here, there);
        assert_eq!(value(home.path(), "refs/heads/b"), Some(there));
    }

    #[test]
    fn one_that_was_ended_is_begun_anew() {
        let home = repository();
        let before = value(home.path(), "HEAD").unwrap();
        assert_eq!(value(home.path(), &before), Some(before.clone()));
        {
            let common = std::path::absolute(home.path().join(".git")).unwrap();
            let mut found = PROCESSES.take(&common).unwrap();
            found.child.kill().unwrap();
            PROCESSES.put(common, found);
        }
        assert_eq!(value(home.path(), &before), Some(before));
    }
}

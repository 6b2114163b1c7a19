//! Questions about refs and objects, answered by one git that stays.
//!
//! A lane asks dozens of them, and starting a process for each costs more than the answers. One
//! `git cat-file --batch-command` a repository looks everything up anew whenever it is asked, so its
//! answers are as fresh as those of a new process. It is not asked at all where files of git's say
//! what a ref names or that there is none, or again about what never changes: what an object holds.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::Project;
use crate::git::Git;
use crate::refs::loose::{self, Look};
use crate::remembered::Remembered;
use crate::stay::Staying;

/// The gits that answer.
static CONVERSATIONS: Staying<Conversation> = Staying::none();

/// What the commit or tree of an object is, by repository and name.
static PEELED: Remembered<(PathBuf, String), String> = Remembered::nothing();
/// What blobs hold, likewise.
static HELD: Remembered<(PathBuf, String), Vec<u8>> = Remembered::nothing();
/// Larger blobs than this are asked for each time; the records of lanes have some hundred bytes.
const HELD_BYTES_MAX: usize = 4096;

/// Ends the gits that answer.
pub(crate) fn hang_up() {
    CONVERSATIONS.end();
}

/// The object that a name leads to: a ref, an id, or an expression like `HEAD^{tree}`.
pub(crate) fn id(dir: &Path, name: &str) -> Option<String> {
    home(dir)?.id(name)
}

/// The same, as seen from a work tree with this git folder and the one that all share.
pub(crate) fn id_at((git_dir, common): (&Path, &Path), name: &str) -> Option<String> {
    Home { git_dir: git_dir.to_owned(), common: common.to_owned() }.id(name)
}

/// The same, as seen from the folder that all work trees share.
pub(crate) fn id_in(common: &Path, name: &str) -> Option<String> {
    Home::of_all(common).id(name)
}

/// The bytes of the object that a name leads to.
pub(crate) fn bytes(dir: &Path, name: &str) -> Option<Vec<u8>> {
    home(dir)?.bytes(name)
}

/// The same, as seen from the folder that all work trees share.
pub(crate) fn bytes_in(common: &Path, name: &str) -> Option<Vec<u8>> {
    Home::of_all(common).bytes(name)
}

/// Notes what a blob holds that was written here.
pub(crate) fn wrote(common: &Path, id: &str, bytes: &[u8]) {
    remember((common.to_owned(), id.to_owned()), bytes);
}

fn remember(key: (PathBuf, String), bytes: &[u8]) {
    if bytes.len() <= HELD_BYTES_MAX {
        HELD.add(key, bytes.to_vec());
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

struct Conversation {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Conversation {
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

impl Drop for Conversation {
    fn drop(&mut self) {
        // It only ever reads.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folders of a repository as seen from one of its work trees.
#[derive(Clone)]
struct Home {
    git_dir: PathBuf,
    common: PathBuf,
}

impl Home {
    fn of_all(common: &Path) -> Self {
        Self { git_dir: common.to_owned(), common: common.to_owned() }
    }

    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let known = match self.start(name) {
            Look::Names(id) => Some(id),
            Look::Missing => return None,
            Look::Unsure => None,
        };
        let key = known.map(|id| (self.common.clone(), id));
        if let Some(held) = key.as_ref().and_then(|key| HELD.of(key)) {
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

    fn id(&self, name: &str) -> Option<String> {
        let asked = |name: &str| self.ask("info", name, |_, header| Ok(header.id.clone()));
        let (start, peel) = name.split_at(name.find("^{").unwrap_or(name.len()));
        let id = match self.start(start) {
            Look::Names(id) => id,
            Look::Missing => return None,
            Look::Unsure => return asked(name),
        };
        match peel {
            // Whether an object is there, only git can tell.
            "" if start == id => asked(name),
            "" => Some(id),
            "^{tree}" | "^{commit}" => {
                let key = (self.common.clone(), format!("{id}{peel}"));
                PEELED.of(&key).or_else(|| {
                    let found = asked(&key.1)?;
                    PEELED.add(key, found.clone());
                    Some(found)
                })
            }
            _ => asked(name),
        }
    }

    /// The id that a name stands for, where git need not be asked for it.
    fn start(&self, name: &str) -> Look {
        match name {
            "HEAD" => loose::head(&self.git_dir, &self.common),
            id if loose::is_id(id) => Look::Names(id.to_owned()),
            name => loose::read(&self.common, name),
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
        let (common, name) = (std::path::absolute(&self.common).ok()?, self.seen_from_all(name)?);
        if let Some(mut conversation) = CONVERSATIONS.take(&common) {
            // One that was ended meanwhile, as by Ctrl-C, is begun anew.
            if let Ok(answer) = conversation.ask(verb, &name, &read) {
                CONVERSATIONS.keep(common, conversation);
                return answer;
            }
        }
        let mut conversation = Conversation::begin(&common).ok()?;
        let answer = conversation.ask(verb, &name, &read).ok()?;
        CONVERSATIONS.keep(common, conversation);
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

/// The repository that a folder belongs to.
fn home(dir: &Path) -> Option<Home> {
    let project = Project::known(dir).ok()?;
    // Above a folder that is gone lies another work tree.
    let is_there = project.root == dir || dir.is_dir();
    let (git_dir, common) = (project.git_dir.filter(|_| is_there)?, project.common_dir?);
    Some(Home { git_dir, common })
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
            assert_eq!(id(dir, name), fresh(name), "{name}");
        }
        commit(dir, "two");
        git(dir, &["pack-refs", "--all"]).unwrap();
        git(dir, &["gc", "-q", "--prune=now"]).unwrap();
        assert_eq!(id(dir, "refs/heads/main"), fresh("HEAD"));
        assert_eq!(id(dir, "HEAD~1^{commit}"), fresh("HEAD~1"));
        git(dir, &["update-ref", "-d", "refs/heads/main"]).unwrap();
        assert_eq!(id(dir, "refs/heads/main"), None);
        assert_eq!(id(dir, "a\nb"), None);
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
        let here = id(home.path(), "HEAD").unwrap();
        let there = id(&linked, "HEAD^{commit}").unwrap();
        assert_ne!(here, there);
        assert_eq!(id(home.path(), "refs/heads/b"), Some(there));
    }

    #[test]
    fn one_that_was_ended_is_begun_anew() {
        let home = repository();
        let before = id(home.path(), "HEAD").unwrap();
        assert_eq!(id(home.path(), &before), Some(before.clone()));
        {
            let common = std::path::absolute(home.path().join(".git")).unwrap();
            let mut found = CONVERSATIONS.take(&common).unwrap();
            found.child.kill().unwrap();
            CONVERSATIONS.keep(common, found);
        }
        assert_eq!(id(home.path(), &before), Some(before));
    }
}

//! Questions about refs and objects, answered by one git that stays.
//!
//! A lane asks dozens of them, and starting a process for each costs more than the answers. One
//! `git cat-file --batch-command` a repository looks everything up anew whenever it is asked, so its
//! answers are as fresh as those of a new process. It ends when this process does, for its input ends
//! then.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::Project;
use crate::git::Git;

/// Repositories that are talked to at once; a run has one.
const CONVERSATIONS_MAX: usize = 2;

/// By the git folder that all work trees of a repository share; the last one asked is the last.
static CONVERSATIONS: Mutex<Vec<(PathBuf, Conversation)>> = Mutex::new(Vec::new());

/// Ends the gits that answer, so that nothing of a repository is in use; the next question begins
/// one anew.
pub fn hang_up() {
    CONVERSATIONS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// The object that a name leads to: a ref, an id, or an expression like `HEAD^{tree}`.
pub(crate) fn id(dir: &Path, name: &str) -> Option<String> {
    ask(dir, "info", name, |_, header| Ok(header.id.clone()))
}

/// The bytes of the object that a name leads to.
pub(crate) fn bytes(dir: &Path, name: &str) -> Option<Vec<u8>> {
    ask(dir, "contents", name, |said, header| {
        let mut bytes = vec![0; header.size];
        said.read_exact(&mut bytes)?;
        // A line end follows.
        said.read_exact(&mut [0])?;
        Ok(bytes)
    })
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

fn ask<T>(
    dir: &Path,
    verb: &str,
    name: &str,
    read: impl Fn(&mut BufReader<ChildStdout>, &Header) -> io::Result<T>,
) -> Option<T> {
    if name.contains('\n') {
        return None;
    }
    let (common, name) = seen_from_all(dir, name)?;
    let mut all = CONVERSATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.iter().position(|(folder, _)| *folder == common);
    if let Some((_, mut conversation)) = known.map(|at| all.remove(at)) {
        // One that was ended meanwhile, as by Ctrl-C, is begun anew.
        if let Ok(answer) = conversation.ask(verb, &name, &read) {
            all.push((common, conversation));
            return answer;
        }
    }
    let mut conversation = Conversation::begin(&common).ok()?;
    let answer = conversation.ask(verb, &name, &read).ok()?;
    if all.len() == CONVERSATIONS_MAX {
        all.remove(0);
    }
    all.push((common, conversation));
    answer
}

/// The folder that all work trees share, and a name that means the same there.
fn seen_from_all(dir: &Path, name: &str) -> Option<(PathBuf, String)> {
    // Above a folder that is gone lies another work tree.
    let project = Project::discover(dir).ok().filter(|_| dir.is_dir())?;
    let (git_dir, common) = (project.git_dir?, project.common_dir?);
    let name = if name.starts_with("HEAD") && git_dir != common {
        format!("worktrees/{}/{name}", git_dir.file_name()?.to_str()?)
    } else {
        name.to_owned()
    };
    Some((std::path::absolute(common).ok()?, name))
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
        {
            let mut all = CONVERSATIONS.lock().unwrap();
            let common = std::path::absolute(home.path().join(".git")).unwrap();
            let found = all.iter_mut().find(|(folder, _)| *folder == common);
            found.unwrap().1.child.kill().unwrap();
        }
        assert_eq!(id(home.path(), "HEAD"), Some(before));
    }
}

//! The project a folder belongs to: its root, its state folder, its checked-out commit.

use std::path::{Path, PathBuf};

/// Longest chain of symbolic refs that is followed; git itself allows five.
const REF_DEPTH_MAX: usize = 5;
/// What stands in HEAD where refs are not files: only git can tell.
pub(crate) const ELSEWHERE: &str = "refs/heads/.invalid";

/// Why a project could not be found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A `.git` that does not lead to a repository.
    #[error("{path} does not lead to a git repository: {why}")]
    BrokenGit {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// A project: a git work tree, or a plain folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Where steps run: the top of the work tree, or the folder itself.
    pub root: PathBuf,
    /// Where Piton keeps its state.
    pub state_dir: PathBuf,
    /// The folder with this work tree's HEAD, if it is a git work tree.
    pub git_dir: Option<PathBuf>,
    /// The folder all linked work trees share.
    pub common_dir: Option<PathBuf>,
}

impl Project {
    /// Finds the project a folder belongs to.
    ///
    /// The nearest `.git` above decides; without one the nearest `.piton`; without either, the
    /// folder itself is the project.
    pub fn discover(folder: &Path) -> Result<Self, Error> {
        for dir in folder.ancestors() {
            let dot_git = dir.join(".git");
            if dot_git.is_dir() && dot_git.join("HEAD").exists() {
                return Ok(Self::in_git(dir, dot_git.clone(), dot_git));
            }
            if dot_git.is_file() {
                let git_dir = linked(&dot_git)?;
                let common = common_dir(&git_dir);
                return Ok(Self::in_git(dir, git_dir, common));
            }
        }
        let own = folder.ancestors().find(|dir| dir.join(".piton").is_dir()).unwrap_or(folder);
        Ok(Self {
            root: own.to_owned(),
            state_dir: own.join(".piton"),
            git_dir: None,
            common_dir: None,
        })
    }

    fn in_git(root: &Path, git_dir: PathBuf, common: PathBuf) -> Self {
        Self {
            root: root.to_owned(),
            state_dir: common.join("piton"),
            git_dir: Some(git_dir),
            common_dir: Some(common),
        }
    }

    /// Whether this is a linked work tree of a repository that lies elsewhere.
    pub fn is_linked(&self) -> bool {
        self.git_dir != self.common_dir
    }

    /// The branch that is checked out, also before its first commit; `None` if HEAD is detached.
    pub fn branch(&self) -> Option<String> {
        let name = head_ref(self.git_dir.as_ref()?)?;
        match name.as_str() {
            ELSEWHERE => super::git(&self.root, &["symbolic-ref", "-q", "--short", "HEAD"]).ok(),
            name => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        }
    }

    /// The commit that is checked out; `None` without git or before the first commit.
    pub fn head(&self) -> Option<String> {
        let (git_dir, common) = (self.git_dir.as_ref()?, self.common_dir.as_ref()?);
        let mut name = "HEAD".to_owned();
        for _ in 0..REF_DEPTH_MAX {
            let loose = if name == "HEAD" { git_dir.join(&name) } else { common.join(&name) };
            let text = match std::fs::read_to_string(&loose) {
                Ok(text) => text.trim().to_owned(),
                Err(_) => packed(common, &name)?,
            };
            match text.strip_prefix("ref:").map(str::trim) {
                Some(ELSEWHERE) => {
                    return super::git(&self.root, &["rev-parse", "--verify", "-q", "HEAD"]).ok();
                }
                Some(next) => next.clone_into(&mut name),
                None => return is_commit(&text).then_some(text),
            }
        }
        None
    }
}

/// The ref that HEAD leads to, or [`ELSEWHERE`]; `None` if it is detached.
pub(crate) fn head_ref(git_dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(git_dir.join("HEAD")).ok()?;
    text.trim().strip_prefix("ref:").map(|name| name.trim().to_owned())
}

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn packed(common: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(common.join("packed-refs")).ok()?;
    let line = text.lines().find(|l| l.split_once(' ').is_some_and(|(_, n)| n == name))?;
    line.split_once(' ').map(|(id, _)| id.to_owned())
}

fn linked(dot_git: &Path) -> Result<PathBuf, Error> {
    let broken = |why: &str| Error::BrokenGit { path: dot_git.to_owned(), why: why.to_owned() };
    let text = std::fs::read_to_string(dot_git).map_err(|e| broken(&e.to_string()))?;
    let target = text.trim().strip_prefix("gitdir:").map(str::trim);
    let target = Path::new(target.ok_or_else(|| broken("it has no `gitdir:` line"))?);
    let base = dot_git.parent().unwrap_or(Path::new("."));
    let git_dir = if target.is_absolute() { target.to_owned() } else { base.join(target) };
    if git_dir.join("HEAD").exists() {
        Ok(git_dir)
    } else {
        Err(broken("the folder it names is gone; `git worktree repair` may help"))
    }
}

fn common_dir(git_dir: &Path) -> PathBuf {
    let Ok(text) = std::fs::read_to_string(git_dir.join("commondir")) else {
        return git_dir.to_owned();
    };
    let named = Path::new(text.trim());
    let joined = if named.is_absolute() { named.to_owned() } else { git_dir.join(named) };
    joined.canonicalize().unwrap_or(joined)
}

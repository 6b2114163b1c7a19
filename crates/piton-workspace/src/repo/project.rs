//! The project a folder belongs to: its root, its state folder, its checked-out commit.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::Memo;
use super::loose::{self, Found};
use crate::files::{os_path, small};
use crate::git::{self, git};

/// What stands in HEAD where refs are not files: only git can tell.
pub(crate) const REFTABLE_HEAD: &str = "refs/heads/.invalid";

/// The folder of the state where there is no git, and where there was none when it was made.
const STATE: &str = ".piton";
/// The folder of the state within that of git.
const IN_GIT: &str = "piton";
/// The file without which a folder holds no state worth a word.
const LEDGER: &str = "ledger.db";

/// What tells the `.git` of a linked work tree from another that had its path: device, number, size,
/// and when it was written.
type Link = (u64, u64, u64, (i64, i64));

/// Linked work trees, by their folder and what its `.git` was.
static LINKED: Memo<(PathBuf, Link), Project> = Memo::new();

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
    /// folder itself is the project. State that was begun before there was git is gone on with.
    pub fn discover(folder: &Path) -> Result<Self, Error> {
        for dir in folder.ancestors() {
            let dot_git = dir.join(".git");
            let Ok(found) = std::fs::metadata(&dot_git) else { continue };
            if found.is_dir() && dot_git.join("HEAD").exists() {
                return Ok(Self::in_git(dir, dot_git.clone(), dot_git));
            }
            if found.is_file() {
                let git_dir = linked(&dot_git)?;
                let common = common_dir(&git_dir);
                return Ok(Self::in_git(dir, git_dir, common));
            }
        }
        let own = folder.ancestors().find(|dir| dir.join(STATE).is_dir()).unwrap_or(folder);
        Ok(Self::without_git(own))
    }

    /// The project of a folder that a person stands in: like [`Project::discover`], but a folder
    /// between it and the top of the work tree that was a project before there was git goes on as one,
    /// without git, because its runs and their paths begin there.
    pub fn for_person(folder: &Path) -> Result<Self, Error> {
        let project = Self::discover(folder)?;
        if project.git_dir.is_none() || project.state_dir.join(LEDGER).exists() {
            return Ok(project);
        }
        let within = folder.ancestors().take_while(|dir| *dir != project.root);
        let mut within = within.filter(|dir| holds_ledger(&dir.join(STATE)));
        Ok(within.next().map_or(project, Self::without_git))
    }

    /// Whether the state lies in the work tree, where git can see it.
    pub fn keeps_state_in_tree(&self) -> bool {
        self.state_dir.ends_with(STATE)
    }

    /// Like [`Project::discover`], but reads the `.git` of a linked work tree once: a lane asks some
    /// dozen times, and none of what it says changes as long as that file does not.
    pub fn discover_cached(folder: &Path) -> Result<Self, Error> {
        let dot_git = folder.join(".git");
        let found = fs::symlink_metadata(&dot_git).ok();
        if found.as_ref().is_some_and(fs::Metadata::is_dir) && dot_git.join("HEAD").exists() {
            return Ok(Self::in_git(folder, dot_git.clone(), dot_git));
        }
        let Some(link) = found.filter(|f| f.is_file() && folder.is_absolute()) else {
            return Self::discover(folder);
        };
        let written = (link.mtime(), link.mtime_nsec());
        let key = (folder.to_owned(), (link.dev(), link.ino(), link.size(), written));
        // A folder of git's that is gone leads nowhere, though the link is there.
        let stands = |p: &Self| p.git_dir.as_ref().is_some_and(|dir| dir.join("HEAD").exists());
        if let Some(project) = LINKED.get(&key).filter(stands) {
            return Ok(project);
        }
        let project = Self::discover(folder)?;
        LINKED.add(key, project.clone());
        Ok(project)
    }

    fn without_git(root: &Path) -> Self {
        let state_dir = root.join(STATE);
        Self { root: root.to_owned(), state_dir, git_dir: None, common_dir: None }
    }

    fn in_git(root: &Path, git_dir: PathBuf, common: PathBuf) -> Self {
        Self {
            root: root.to_owned(),
            state_dir: begun_before(root, &common).unwrap_or_else(|| common.join(IN_GIT)),
            git_dir: Some(git_dir),
            common_dir: Some(common),
        }
    }

    /// Whether this is a linked work tree of a repository that is elsewhere.
    pub fn is_linked(&self) -> bool {
        self.git_dir != self.common_dir
    }

    /// Makes a folder a repository.
    pub fn init(folder: &Path) -> Result<(), git::Error> {
        git(folder, &["init", "--quiet"]).map(drop)
    }

    /// The branch that is checked out, also before its first commit; `None` if HEAD is detached.
    pub fn branch(&self) -> Option<String> {
        let name = head_ref(self.git_dir.as_ref()?)?;
        match name.as_str() {
            REFTABLE_HEAD => git(&self.root, &["symbolic-ref", "-q", "--short", "HEAD"]).ok(),
            name => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        }
    }

    /// The commit that is checked out; `None` without git or before the first commit.
    pub fn head(&self) -> Option<String> {
        match loose::head(self.git_dir.as_ref()?, self.common_dir.as_ref()?) {
            Found::Names(id) => Some(id),
            Found::Missing => None,
            Found::Unsure => git(&self.root, &["rev-parse", "--verify", "-q", "HEAD"]).ok(),
        }
    }

    /// The same if it is a branch that is checked out; `None` also if HEAD is detached.
    pub fn branch_head(&self) -> Option<String> {
        self.branch().and_then(|_| self.head())
    }
}

/// The state of a repository that was made where a project was already: nothing must be lost sight of
/// because somebody, or a step, called `git init`. State within git goes first.
fn begun_before(root: &Path, common: &Path) -> Option<PathBuf> {
    // Seen from a linked work tree, it lies in the main one.
    let main = common.parent().filter(|main| *main != root && common.ends_with(".git"));
    let mut all = std::iter::once(root).chain(main).map(|dir| dir.join(STATE));
    let found = all.find(|state| holds_ledger(state))?;
    (!common.join(IN_GIT).join(LEDGER).exists()).then_some(found)
}

/// Whether a folder in a work tree of git is state with a ledger. A link comes with a commit, and would
/// lead to what is not this project's.
fn holds_ledger(state: &Path) -> bool {
    !state.is_symlink()
        && fs::symlink_metadata(state.join(LEDGER)).is_ok_and(|found| found.is_file())
}

/// The ref that HEAD leads to, or [`REFTABLE_HEAD`]; `None` if it is detached.
pub(crate) fn head_ref(git_dir: &Path) -> Option<String> {
    named_by(&small(&git_dir.join("HEAD")).ok()?)
}

/// The same for what stands in it.
pub(crate) fn named_by(head: &[u8]) -> Option<String> {
    let name = head.trim_ascii().strip_prefix(b"ref:")?.trim_ascii();
    std::str::from_utf8(name).ok().map(str::to_owned)
}

fn linked(dot_git: &Path) -> Result<PathBuf, Error> {
    let broken = |why: &str| Error::BrokenGit { path: dot_git.to_owned(), why: why.to_owned() };
    let text = small(dot_git).map_err(|e| broken(&e.to_string()))?;
    let target = text.trim_ascii().strip_prefix(b"gitdir:").map(<[u8]>::trim_ascii);
    let target = os_path(target.ok_or_else(|| broken("it has no `gitdir:` line"))?);
    let base = dot_git.parent().unwrap_or(Path::new("."));
    let git_dir = if target.is_absolute() { target.to_owned() } else { base.join(target) };
    if git_dir.join("HEAD").exists() {
        Ok(git_dir)
    } else {
        Err(broken(
            "the folder it names is gone; if the repository was moved, `git worktree repair PATH` in it helps",
        ))
    }
}

fn common_dir(git_dir: &Path) -> PathBuf {
    let Ok(text) = small(&git_dir.join("commondir")) else {
        return git_dir.to_owned();
    };
    let named = os_path(text.trim_ascii());
    if named == Path::new("../..")
        && let Some(above) = registered_in(git_dir)
    {
        return above.to_owned();
    }
    let joined = if named.is_absolute() { named.to_owned() } else { git_dir.join(named) };
    joined.canonicalize().unwrap_or(joined)
}

/// The folder above `worktrees/NAME`, as git names it: by a real path, so nothing has to be looked
/// up. Where `worktrees` is a link, git finds no repository above it either.
fn registered_in(git_dir: &Path) -> Option<&Path> {
    let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    let above = git_dir.parent().filter(|above| above.file_name() == Some("worktrees".as_ref()))?;
    (git_dir.is_absolute() && git_dir.components().all(is_plain)).then(|| above.parent()).flatten()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::git::git;

    /// Lost, a step that calls `git init` would make the run that it belongs to disappear.
    #[test]
    fn state_from_before_there_was_git_is_gone_on_with() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("main");
        let below = root.join("below");
        let ledger = |state: PathBuf| {
            fs::create_dir_all(&state).unwrap();
            fs::write(state.join(LEDGER), "x").unwrap();
            state
        };
        fs::create_dir_all(&below).unwrap();
        let before = ledger(root.join(STATE));
        git(&root, &["init", "-q", "-b", "main"]).unwrap();
        let who = ["-c", "user.name=n", "-c", "user.email=e"];
        git(&root, &[&who[..], &["commit", "-q", "--allow-empty", "-m", "m"]].concat()).unwrap();
        git(&root, &["worktree", "add", "-q", "-b", "side", "../side"]).unwrap();
        for dir in [&root, &below, &home.path().join("side")] {
            let found = Project::for_person(dir).unwrap();
            assert!(found.git_dir.is_some());
            assert_eq!(found.state_dir.canonicalize().unwrap(), before.canonicalize().unwrap());
            assert_eq!(Project::discover_cached(dir).unwrap(), Project::discover(dir).unwrap());
        }
        let within = ledger(root.join(".git").join(IN_GIT));
        let found = Project::for_person(&below).unwrap();
        assert_eq!(found.state_dir, within);
        // A folder that was a project of its own stays one, as long as the repository has no state.
        fs::remove_dir_all(&within).unwrap();
        fs::remove_dir_all(&before).unwrap();
        let own = ledger(below.join(STATE));
        let found = Project::for_person(&below).unwrap();
        assert_eq!((found.root, found.state_dir, found.git_dir), (below, own, None));
        assert!(Project::for_person(&root).unwrap().git_dir.is_some());
    }

    /// Lost: a link in somebody's repository would have another project's ledger written.
    #[test]
    fn state_behind_a_link_is_not_that_of_a_repository() {
        let home = tempfile::tempdir().unwrap();
        let (root, other) = (home.path().join("main"), home.path().join("other"));
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join(LEDGER), "x").unwrap();
        fs::create_dir_all(&root).unwrap();
        git(&root, &["init", "-q", "-b", "main"]).unwrap();
        let own = root.join(".git").join(IN_GIT);
        std::os::unix::fs::symlink(&other, root.join(STATE)).unwrap();
        assert_eq!(Project::for_person(&root).unwrap().state_dir, own);
        fs::remove_file(root.join(STATE)).unwrap();
        fs::create_dir(root.join(STATE)).unwrap();
        std::os::unix::fs::symlink(other.join(LEDGER), root.join(STATE).join(LEDGER)).unwrap();
        assert_eq!(Project::for_person(&root).unwrap().state_dir, own);
    }

    #[test]
    fn what_is_known_of_a_work_tree_is_what_a_look_finds_whatever_became_of_it() {
        let home = tempfile::tempdir().unwrap();
        let (main, linked) = (home.path().join("main"), home.path().join("linked"));
        let plain = home.path().join("plain");
        fs::create_dir_all(main.join("below")).unwrap();
        fs::create_dir(&plain).unwrap();
        git(&main, &["init", "-q", "-b", "main"]).unwrap();
        let who = ["-c", "user.name=n", "-c", "user.email=e"];
        git(&main, &[&who[..], &["commit", "-q", "--allow-empty", "-m", "m"]].concat()).unwrap();
        let add = |name: &str| {
            let path = linked.to_string_lossy();
            git(&main, &["worktree", "add", "-q", "-b", name, &path]).unwrap();
        };
        let agree = || {
            for dir in [&main, &linked, &plain, &main.join("below"), &linked.join("below")] {
                let (known, found) = (Project::discover_cached(dir), Project::discover(dir));
                assert_eq!(known.as_ref().ok(), found.as_ref().ok(), "{}", dir.display());
                assert_eq!(known.is_err(), found.is_err());
            }
        };
        agree();
        add("one");
        agree();
        agree();
        assert!(Project::discover_cached(&linked).unwrap().is_linked());
        // Moved away and made again under another name, and its folder of git's gone.
        git(&main, &["worktree", "move", "../linked", "../elsewhere"]).unwrap();
        agree();
        add("two");
        agree();
        assert!(
            Project::discover_cached(&linked).unwrap().branch().is_some_and(|name| name == "two")
        );
        fs::remove_dir_all(main.join(".git/worktrees")).unwrap();
        agree();
        fs::remove_dir_all(main.join(".git")).unwrap();
        agree();
    }
}

//! Where a work tree's git files are, and the settings of git that change what a snapshot holds.
//!
//! Settings come from git, which alone knows all the files they are read from; they are kept in
//! the stat cache together with the stamps of those files, so that a snapshot without a change
//! starts no process.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::Error;
use super::codec::{Reader, Writer};
use super::stat::Stat;
use crate::files::os_path;
use crate::git::Git;
use crate::objects::{self, Oid};
use crate::repo::{self, Project, Repo};

/// Files in the git folder of a work tree that settings may depend on, where they may differ between
/// work trees: its own, and the branch, for which there may be includes.
const OWN_FILES: [&str; 2] = ["config.worktree", "HEAD"];

/// How the keys of git's configuration begin that say how files are converted.
const CONVERTING: [&str; 4] = ["core.autocrlf", "core.eol", "attr.tree", "filter."];

/// Finds the repository of a work tree, given its top.
pub(crate) fn open(dir: &Path) -> Result<Repo, Error> {
    let none = |why: String| Error::NotAWorkTree { dir: dir.to_owned(), why };
    let project = Project::discover_cached(dir).map_err(|e| none(e.to_string()))?;
    let (git_dir, common) = match (project.git_dir, project.common_dir) {
        (Some(git_dir), Some(common)) if project.root == dir => (git_dir, common),
        (Some(_), _) => return Err(none(format!("its top is {}", project.root.display()))),
        _ => return Err(none("it has no `.git`".to_owned())),
    };
    let real = repo::real(&common).map_err(|e| Error::file(&common, e))?;
    let git_dir = if git_dir == common { real.clone() } else { git_dir };
    Ok(Repo { root: dir.to_owned(), git_dir, common: real, state: project.state_dir })
}

/// A file, and how it was when it was read; `None` where it did not exist.
type Source = (PathBuf, Option<Stat>);

/// Where settings hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scope {
    /// In every work tree of the repository.
    #[default]
    Repository,
    /// Perhaps in this one only.
    WorkTree,
}

/// What of git's configuration matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Files whose change makes all of this stale; empty if git could not name them all.
    sources: Vec<Source>,
    /// Files with ignore rules for the whole work tree, weakest first.
    pub(crate) ignores: Vec<PathBuf>,
    /// Files with attributes for the whole work tree.
    pub(crate) attributes: Vec<PathBuf>,
    /// A digest of all that says how files are converted.
    pub(crate) converting: Oid,
    /// Line endings are converted even without attributes.
    pub(crate) autocrlf: bool,
    /// Exec bits are taken from the files.
    pub(crate) file_mode: bool,
    /// Files that the index marks may be left out of the work tree. Without it the mark is a person's
    /// own, and a file that is not there was deleted.
    pub(crate) sparse: bool,
    /// Where they hold.
    scope: Scope,
    /// The repository's object format, if it is not SHA-1.
    pub(crate) format: Option<String>,
}

impl Settings {
    /// Asks git.
    pub(crate) fn load(repo: &Repo, started: i64) -> Result<Self, Error> {
        let listed =
            Git::at(&repo.root).args(["config", "-z", "--list", "--show-origin"]).bytes()?;
        let mut found = Self { file_mode: true, ..Self::default() };
        let mut files = vec![repo.common.join("config")];
        let (mut own_excludes, mut converting) = (false, Writer::default());
        let mut fields = listed.split(|b| *b == 0);
        while let (Some(origin), Some(pair)) = (fields.next(), fields.next()) {
            if let Some(path) = origin.strip_prefix(b"file:") {
                files.push(repo.root.join(os_path(path)));
            }
            own_excludes |= found.take(pair);
            if CONVERTING.iter().any(|key| pair.starts_with(key.as_bytes())) {
                converting.bytes(pair);
            }
        }
        found.converting = Oid::hash(objects::Kind::Blob, &converting.0);
        let vars = Vars::ask(repo);
        let global = vars.paths("GIT_CONFIG_GLOBAL");
        files.extend(vars.paths("GIT_CONFIG_SYSTEM"));
        files.extend(global.iter().cloned());
        found.attributes = ["GIT_ATTR_SYSTEM", "GIT_ATTR_GLOBAL"]
            .iter()
            .flat_map(|name| vars.paths(name))
            .chain([repo.common.join("info/attributes")])
            .collect();
        let users = if own_excludes { excludes_file(repo)? } else { beside(&global) };
        found.ignores = users.into_iter().chain([repo.common.join("info/exclude")]).collect();
        if found.scope == Scope::WorkTree {
            files.extend(OWN_FILES.map(|name| repo.git_dir.join(name)));
        }
        files.sort();
        files.dedup();
        if vars.names_files() {
            let stamp = |f: PathBuf| {
                let stat = Stat::followed(&f).map(|s| s.settled(started));
                (f, stat)
            };
            found.sources = files.into_iter().map(stamp).collect();
        }
        Ok(found)
    }

    /// Whether git says the same in another work tree of the same repository.
    pub(crate) fn hold_in_sibling(&self, from: &Repo, to: &Repo) -> bool {
        self.scope == Scope::Repository && from.common == to.common && self.holds()
    }

    /// Whether git would still say the same.
    pub(crate) fn holds(&self) -> bool {
        !self.sources.is_empty() && self.sources.iter().all(|(f, s)| Stat::followed(f) == *s)
    }

    /// Whether any attributes hold for the whole work tree.
    pub(crate) fn has_attributes(&self) -> bool {
        self.attributes.iter().any(|file| file.exists())
    }

    /// Takes one `KEY<newline>VALUE`; true for a file of ignore rules of the user's own.
    fn take(&mut self, pair: &[u8]) -> bool {
        let text = String::from_utf8_lossy(pair);
        // A key alone means true.
        let (key, value) = text.split_once('\n').unwrap_or((&text, "true"));
        let on = !matches!(value.to_ascii_lowercase().as_str(), "false" | "no" | "off" | "0" | "");
        match key {
            "core.autocrlf" => self.autocrlf = on,
            "core.filemode" => self.file_mode = on,
            "core.sparsecheckout" => self.sparse = on,
            "core.excludesfile" => return true,
            "extensions.worktreeconfig" => self.scope = Scope::WorkTree,
            _ if key.starts_with("includeif.") => self.scope = Scope::WorkTree,
            "extensions.objectformat" => {
                self.format = (value != "sha1").then(|| value.to_owned());
            }
            _ => {}
        }
        false
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        to.len(self.sources.len());
        for (file, stat) in &self.sources {
            to.bytes(file.as_os_str().as_bytes());
            to.stamp(stat.as_ref());
        }
        for files in [&self.ignores, &self.attributes] {
            to.len(files.len());
            for file in files {
                to.bytes(file.as_os_str().as_bytes());
            }
        }
        to.oid(self.converting);
        to.u8(u8::from(self.autocrlf));
        to.u8(u8::from(self.file_mode));
        to.u8(u8::from(self.sparse));
        to.u8(u8::from(self.scope == Scope::WorkTree));
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let path = |bytes: &[u8]| os_path(bytes).to_owned();
        let mut found = Self::default();
        for _ in 0..from.len()? {
            found.sources.push((path(from.bytes()?), from.stamp()?));
        }
        for files in [&mut found.ignores, &mut found.attributes] {
            for _ in 0..from.len()? {
                files.push(path(from.bytes()?));
            }
        }
        found.converting = from.oid()?;
        found.autocrlf = from.u8()? != 0;
        found.file_mode = from.u8()? != 0;
        found.sparse = from.u8()? != 0;
        if from.u8()? != 0 {
            found.scope = Scope::WorkTree;
        }
        Some(found)
    }
}

/// What git says of its surroundings, as `NAME=VALUE` lines; empty if it does not say.
struct Vars(Vec<u8>);

impl Vars {
    /// Asks for all at once: each question would be a process.
    fn ask(repo: &Repo) -> Self {
        Self(Git::at(&repo.root).args(["var", "-l"]).bytes().unwrap_or_default())
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let lines = self.0.split(|b| *b == b'\n');
        lines.filter_map(move |l| l.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }

    /// Whether this git names its files at all: it began to together with its shell.
    fn names_files(&self) -> bool {
        self.values("GIT_SHELL_PATH").next().is_some()
    }

    /// Paths of files, whether they exist or not.
    fn paths(&self, name: &str) -> Vec<PathBuf> {
        self.values(name).map(|path| os_path(path).to_owned()).collect()
    }
}

fn excludes_file(repo: &Repo) -> Result<Option<PathBuf>, Error> {
    let path = Git::at(&repo.root)
        .args(["config", "-z", "--type=path", "--get", "core.excludesFile"])
        .bytes()?;
    let path = path.strip_suffix(b"\0").unwrap_or(&path);
    Ok((!path.is_empty()).then(|| repo.root.join(os_path(path))))
}

/// Where ignore rules lie without a setting: next to the configuration in the user's `git` folder.
fn beside(global: &[PathBuf]) -> Option<PathBuf> {
    let config = global.iter().find(|f| f.ends_with("git/config"))?;
    Some(config.with_file_name("ignore"))
}

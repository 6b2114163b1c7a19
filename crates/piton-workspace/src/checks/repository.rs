//! What a repository uses that matters to lanes: each either works, works with a caution, or not.
//!
//! Read from the configuration and the committed attribute files, in a few calls of git; nothing is
//! tried out. What no one can see in advance (a filter that fails on one file) fails later, with
//! git's own message.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use piton_core::shell;

use crate::files::os_path;
use crate::git::{self, Git};
use crate::repo::Project;

/// The oldest git we work with: `merge-tree --merge-base` came with it.
const GIT_OLDEST: (u32, u32) = (2, 40);

/// The refspec that keeps our refs at home.
const SPARED: &str = "^refs/piton/*";

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It works; good to know.
    Works,
    /// It works within limits the user should know.
    Warn,
    /// It does not work.
    Refuse,
}

/// Something a repository uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// A frozen word for it.
    pub code: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What it is and what follows.
    pub what: String,
    /// What to do about it, where there is something to do.
    pub fix: String,
}

/// Looks at a repository for what matters to lanes. `path` is where programs are looked for.
pub fn repository(dir: &Path, path: &OsStr) -> Vec<Remark> {
    let mut seen = Vec::new();
    let mut say = |code, level, what: &str, fix: &str| {
        seen.push(Remark { code, level, what: what.to_owned(), fix: fix.to_owned() });
    };
    if let Some(version) = too_old(dir) {
        let what = format!("git {version} is too old for merging lanes");
        say("old-git", Level::Refuse, &what, "install git 2.40 or newer");
    }
    let config = Config::read(dir);
    let common = Project::discover(dir).ok().and_then(|project| project.common_dir);
    if has_submodules(dir) {
        say("submodules", Level::Works, "what changes within a submodule is in no snapshot", "");
    }
    if config.is("core.sparsecheckout", "true") {
        let what = "a lane's worktree holds the same sparse selection of files as the main one";
        say("sparse-checkout", Level::Works, what, "");
    }
    if config.has("extensions.partialclone") || config.any("remote.", ".promisor") {
        let what =
            "this is a partial clone: making a worktree or merging may fetch from the remote";
        say("partial-clone", Level::Warn, what, "stay online, or run `git fetch --refetch` once");
    }
    if common.as_ref().is_some_and(|dir| dir.join("shallow").exists()) {
        let what = "this is a shallow clone: a lane rebases only over the history that is here";
        say("shallow-clone", Level::Warn, what, "`git fetch --unshallow` brings the rest");
    }
    if config.is("extensions.objectformat", "sha256") {
        let what = "the repository uses sha256 object ids, which snapshots of lanes can't hold";
        let fix = "convert it to SHA-1, or work in repo with `snapshots.enabled = false`";
        say("sha256", Level::Refuse, what, fix);
    }
    if config.is("extensions.refstorage", "reftable") {
        let what =
            "the refs are kept as a reftable: git is asked for what is otherwise read directly";
        say("reftable", Level::Works, what, "");
    }
    if config.has("core.hookspath") {
        let what = "hooks are configured; they do not run on commits and merges made by piton";
        say("hooks", Level::Works, what, "");
    }
    seen.extend(mirrors(&config));
    for filter in filters(dir) {
        seen.extend(config.filter(&filter, path));
    }
    seen
}

/// The part of [`repository`] that matters to snapshots of lanes in place too.
pub fn publishers(dir: &Path) -> Vec<Remark> {
    mirrors(&Config::read(dir))
}

fn mirrors(config: &Config) -> Vec<Remark> {
    let remark = |(remote, fix)| Remark {
        code: "mirror-remote",
        level: Level::Warn,
        what: format!("git push {remote} would publish refs/piton, snapshots included"),
        fix,
    };
    config.publishers().into_iter().map(remark).collect()
}

/// The version, if it is too old.
fn too_old(dir: &Path) -> Option<String> {
    let text = Git::at(dir).arg("version").text().ok()?;
    let version = text.split_whitespace().nth(2)?.to_owned();
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    let found = (numbers.next()?, numbers.next()?);
    (found < GIT_OLDEST).then_some(version)
}

fn has_submodules(dir: &Path) -> bool {
    dir.join(".gitmodules").exists()
}

/// The filters that committed attribute files name.
fn filters(dir: &Path) -> BTreeSet<String> {
    let listed = Git::at(dir)
        .args(["ls-files", "-z", "--", ".gitattributes", "**/.gitattributes"])
        .bytes()
        .unwrap_or_default();
    let info = Project::discover(dir).ok().and_then(|project| project.common_dir);
    let files = git::words(&listed)
        .map(|path| dir.join(os_path(path)))
        .chain(info.map(|common| common.join("info/attributes")));
    let text: String = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    let words = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    words.filter_map(|word| word.strip_prefix("filter=")).map(ToOwned::to_owned).collect()
}

/// The configuration, keys in lower case as git prints them.
struct Config(Vec<(String, String)>);

impl Config {
    fn read(dir: &Path) -> Self {
        let pairs = git::config(dir).unwrap_or_default().into_iter();
        // Our own settings for the call come last and would be taken for the user's.
        let own = |(key, value): &(String, String)| key == "core.hookspath" && value == "/dev/null";
        Self(pairs.filter(|pair| !own(pair)).collect())
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn is(&self, key: &str, value: &str) -> bool {
        self.get(key).is_some_and(|found| found.eq_ignore_ascii_case(value))
    }

    fn any(&self, start: &str, end: &str) -> bool {
        self.0.iter().any(|(key, _)| key.starts_with(start) && key.ends_with(end))
    }

    /// Remotes to which a plain push would send everything below `refs/`, and what prevents it.
    fn publishers(&self) -> BTreeSet<(&str, String)> {
        let mut found = BTreeSet::new();
        for (key, value) in &self.0 {
            let Some((remote, kind)) = key.strip_prefix("remote.").and_then(|k| k.rsplit_once('.'))
            else {
                continue;
            };
            let spared = format!("remote.{remote}.push");
            let spared = |pair: &(String, String)| pair.0 == spared && pair.1 == SPARED;
            let all = value.trim_start_matches('+').starts_with("refs/*:");
            if kind == "mirror" && value.eq_ignore_ascii_case("true") {
                found.insert((
                    remote,
                    "push branches by name to it, or unset its mirror".to_owned(),
                ));
            } else if kind == "push" && all && !self.0.iter().any(spared) {
                let setting = format!("remote.{remote}.push");
                let spare = shell::git(None, &["config", "--add", &setting, SPARED]);
                found.insert((remote, format!("`{spare}`")));
            }
        }
        found
    }

    /// What there is to say about a filter.
    fn filter(&self, name: &str, path: &OsStr) -> Option<Remark> {
        let command = ["process", "smudge"]
            .iter()
            .find_map(|kind| self.get(&format!("filter.{name}.{kind}")))
            .filter(|command| !command.is_empty());
        let required = self.is(&format!("filter.{name}.required"), "true");
        let (level, what) = match command {
            None if name == "lfs" => (
                Level::Warn,
                "files kept by LFS are pointers only, because LFS is not set up".into(),
            ),
            None => return None,
            Some(command) if found(command, path) => {
                return Some(Remark {
                    code: "filter",
                    level: Level::Works,
                    what: format!("the filter {name} runs on checkout, at git's own speed"),
                    fix: String::new(),
                });
            }
            Some(command) if required => {
                let what = format!("the filter {name} is required, but `{command}` is not found");
                (Level::Refuse, what)
            }
            Some(command) => {
                (Level::Warn, format!("the filter {name} is skipped: `{command}` is not found"))
            }
        };
        let fix = if name == "lfs" {
            "install git-lfs and run git lfs install".to_owned()
        } else {
            format!("install the program that filter.{name} names")
        };
        Some(Remark { code: "filter-missing", level, what, fix })
    }
}

/// Tells whether the program a command begins with is there. What a shell would have to interpret
/// first is taken to be there.
fn found(command: &str, path: &OsStr) -> bool {
    let mut words = command.split_whitespace();
    let Some(word) = words.next() else { return false };
    let program = match (word, words.next()) {
        ("git", Some("lfs")) => "git-lfs",
        _ => word,
    };
    if program.contains(['$', '"', '\'', '~', '`', '(', '=']) {
        return true;
    }
    if program.contains('/') {
        return Path::new(program).exists();
    }
    std::env::split_paths(path).any(|dir| dir.join(program).is_file())
}

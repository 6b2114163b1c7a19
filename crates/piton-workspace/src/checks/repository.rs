//! What a repository uses that limits lanes, or that they do not work with.
//!
//! Read from the configuration, in a few calls of git; nothing is tried out. What no one can see in
//! advance (a filter that is missing or fails on a file) fails later, with git's own message.

use std::collections::BTreeMap;
use std::path::Path;

use piton_core::refusal::{Refusal, Remedy};
use piton_core::shell;

use crate::git;
use crate::refusals;
use crate::repo::Project;

/// The oldest git we work with: `merge-tree --merge-base` came with it.
const GIT_OLDEST: (u32, u32) = (2, 40);

/// The refspec that keeps our refs at home.
const SPARED: &str = "^refs/piton/*";

/// Something a repository uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Whether lanes do not work because of it; otherwise they work within limits.
    pub refuses: bool,
    /// What it is, and what can be done about it.
    pub about: Refusal,
}

/// Looks at a repository for what matters to lanes.
pub fn repository(dir: &Path) -> Vec<Remark> {
    let mut seen = Vec::new();
    let mut say = |refuses, about| seen.push(Remark { refuses, about });
    if let Some(version) = too_old() {
        say(true, refusals::old_git(&version));
    }
    let config = Config::read(dir);
    let common = Project::discover(dir).ok().and_then(|project| project.common_dir);
    if config.has("extensions.partialclone") || config.any("remote.", ".promisor") {
        say(false, refusals::partial_clone());
    }
    if common.as_ref().is_some_and(|dir| dir.join("shallow").exists()) {
        say(false, refusals::shallow_clone());
    }
    if config.is("extensions.objectformat", "sha256") {
        say(true, refusals::sha256());
    }
    seen.extend(mirrors(&config));
    seen
}

/// The part of [`repository`] that matters to snapshots of lanes in place too.
pub fn publishers(dir: &Path) -> Vec<Remark> {
    mirrors(&Config::read(dir))
}

fn mirrors(config: &Config) -> Vec<Remark> {
    let remark = |about| Remark { refuses: false, about };
    config.publishers().into_values().map(remark).collect()
}

/// The version, if it is too old.
fn too_old() -> Option<String> {
    let text = git::version().ok()?;
    let version = text.split_whitespace().nth(2)?.to_owned();
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    let found = (numbers.next()?, numbers.next()?);
    (found < GIT_OLDEST).then_some(version)
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
    fn publishers(&self) -> BTreeMap<&str, Refusal> {
        let mut found = BTreeMap::new();
        for (key, value) in &self.0 {
            let Some((remote, kind)) = key.strip_prefix("remote.").and_then(|k| k.rsplit_once('.'))
            else {
                continue;
            };
            let setting = format!("remote.{remote}.push");
            let spared = |pair: &(String, String)| pair.0 == setting && pair.1 == SPARED;
            let all = value.trim_start_matches('+').starts_with("refs/*:");
            if kind == "mirror" && value.eq_ignore_ascii_case("true") {
                found.insert(remote, refusals::publishes(remote, refusals::no_mirror()));
            } else if kind == "push" && all && !self.0.iter().any(spared) {
                let spare = shell::git(None, &["config", "--add", &setting, SPARED]);
                found.insert(remote, refusals::publishes(remote, Remedy::shell(spare)));
            }
        }
        found
    }
}

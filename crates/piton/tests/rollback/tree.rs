//! What there is to compare: a work tree, and what belongs to the user in the git folder.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::common::Project;

/// Every path of a work tree with its kind, permissions and bytes.
pub type Tree = BTreeMap<PathBuf, String>;

/// Reads a work tree; git's folder and worktrees apart.
pub fn tree(dir: &Path) -> Tree {
    let mut found = Tree::new();
    read(dir, dir, &mut found);
    found
}

fn read(top: &Path, dir: &Path, found: &mut Tree) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(top).unwrap().to_owned();
        if [".git", ".worktrees", ".claude"].iter().any(|own| name == Path::new(own)) {
            continue;
        }
        let about = path.symlink_metadata().unwrap();
        let mode = about.permissions().mode() & 0o7777;
        let what = if about.is_symlink() {
            let to = fs::read_link(&path).unwrap();
            format!("link {}", String::from_utf8_lossy(to.as_os_str().as_bytes()))
        } else if about.is_dir() {
            read(top, &path, found);
            format!("folder {mode:o}")
        } else {
            format!("file {mode:o} {}", String::from_utf8_lossy(&fs::read(&path).unwrap()))
        };
        found.insert(name, what);
    }
}

/// Compares two work trees and names what differs.
#[track_caller]
pub fn same(now: &Tree, wanted: &Tree) {
    let paths = now.keys().chain(wanted.keys());
    let mut other: Vec<_> = paths.filter(|p| now.get(*p) != wanted.get(*p)).collect();
    other.dedup();
    let told = |p: &PathBuf| (p.clone(), now.get(p).cloned(), wanted.get(p).cloned());
    let told: Vec<_> = other.into_iter().map(told).collect();
    assert!(told.is_empty(), "path, found, wanted: {told:#?}");
}

/// The user's own in the git folder: HEAD, index, configuration, hooks, branches and stash.
#[derive(Debug, PartialEq, Eq)]
pub struct Mine(BTreeMap<String, Vec<u8>>);

/// Reads what is the user's own; branches of lanes are not.
pub fn mine(project: &Project) -> Mine {
    let git = project.root().join(".git");
    let mut all = BTreeMap::new();
    for file in ["HEAD", "index", "config", "info/exclude", "logs/refs/stash"] {
        all.insert(file.to_owned(), fs::read(git.join(file)).unwrap_or_default());
    }
    for hook in fs::read_dir(git.join("hooks")).into_iter().flatten().flatten() {
        let name = hook.file_name().to_string_lossy().into_owned();
        all.insert(format!("hooks/{name}"), fs::read(hook.path()).unwrap());
    }
    let args = ["for-each-ref", "--format=%(refname) %(objectname)"];
    let refs = project.git(&args);
    let own = |l: &&str| !l.starts_with("refs/piton") && !l.starts_with("refs/heads/lane/");
    let refs: Vec<&str> = refs.lines().filter(own).collect();
    all.insert("refs".to_owned(), refs.join("\n").into_bytes());
    Mine(all)
}

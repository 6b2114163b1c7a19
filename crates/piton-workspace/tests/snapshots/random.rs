//! Random work trees: a snapshot brings back everything that is not ignored, and so does its undo.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use piton_workspace::restore::{self, Scope};
use proptest::prelude::*;

use crate::support::{Everything, Repo};

/// Names, some of them odd; those in `.o` are ignored.
const NAMES: [&[u8]; 12] = [
    b"a",
    b"b.txt",
    b"c d",
    b"\xc3\xbc",
    b"not\xffutf8",
    b"new\nline",
    b"-dash",
    b"x.o",
    b"A",
    b"a.txt",
    b"%41",
    b"\"q\"",
];
const MODES: [u32; 6] = [0o644, 0o755, 0o600, 0o700, 0o664, 0o444];
const DIR_MODES: [u32; 3] = [0o755, 0o700, 0o775];
const CONTENTS: [&[u8]; 6] = [b"", b"one\n", b"two\n", b"dos\r\n", b"\0binary\r\n", b"$Id: x$\n"];

#[derive(Clone, Debug)]
enum Act {
    Write { path: Vec<usize>, content: usize, mode: usize },
    Link { path: Vec<usize>, to: usize },
    Folder { path: Vec<usize>, mode: usize },
    Remove { path: Vec<usize> },
    Move { from: Vec<usize>, to: Vec<usize> },
    Chmod { path: Vec<usize>, mode: usize },
    Snapshot,
}

fn path() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..NAMES.len(), 1..4)
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (path(), 0..CONTENTS.len(), 0..MODES.len())
            .prop_map(|(path, content, mode)| Act::Write { path, content, mode }),
        1 => (path(), 0..NAMES.len()).prop_map(|(path, to)| Act::Link { path, to }),
        2 => (path(), 0..DIR_MODES.len()).prop_map(|(path, mode)| Act::Folder { path, mode }),
        2 => path().prop_map(|path| Act::Remove { path }),
        2 => (path(), path()).prop_map(|(from, to)| Act::Move { from, to }),
        1 => (path(), 0..MODES.len()).prop_map(|(path, mode)| Act::Chmod { path, mode }),
        1 => Just(Act::Snapshot),
    ]
}

fn full(top: &Path, path: &[usize]) -> PathBuf {
    let names = path.iter().map(|n| std::ffi::OsStr::from_bytes(NAMES[*n]));
    names.fold(top.to_owned(), |path, name| path.join(name))
}

fn remove(path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        let _ = fs::remove_dir_all(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

/// Does what can be done; the rest is no test's business.
fn perform(repo: &Repo, act: &Act) {
    let top = repo.dir();
    let prepare = |path: &Path| {
        let inside = path.ancestors().all(|p| !p.is_symlink() || p == path);
        inside && fs::create_dir_all(path.parent().unwrap()).is_ok()
    };
    match act {
        Act::Write { path, content, mode } => {
            let path = full(top, path);
            if prepare(&path) && !path.is_symlink() && fs::write(&path, CONTENTS[*content]).is_ok()
            {
                fs::set_permissions(&path, fs::Permissions::from_mode(MODES[*mode])).unwrap();
            }
        }
        Act::Link { path, to } => {
            let path = full(top, path);
            if prepare(&path) {
                remove(&path);
                let _ = symlink(std::ffi::OsStr::from_bytes(NAMES[*to]), &path);
            }
        }
        Act::Folder { path, mode } => {
            let path = full(top, path);
            if prepare(&path) && fs::create_dir(&path).is_ok() {
                fs::set_permissions(&path, fs::Permissions::from_mode(DIR_MODES[*mode])).unwrap();
            }
        }
        Act::Remove { path } => remove(&full(top, path)),
        Act::Move { from, to } => {
            let (from, to) = (full(top, from), full(top, to));
            if prepare(&to) {
                let _ = fs::rename(from, to);
            }
        }
        Act::Chmod { path, mode } => {
            let path = full(top, path);
            if path.is_file() && !path.is_symlink() {
                fs::set_permissions(&path, fs::Permissions::from_mode(MODES[*mode])).unwrap();
            }
        }
        Act::Snapshot => {
            repo.take();
        }
    }
}

/// Without what is ignored: that stays as it is, whatever happens.
fn captured(everything: &Everything) -> Everything {
    let ignored = |path: &[u8]| path.split(|b| *b == b'/').any(|name| name.ends_with(b".o"));
    everything.iter().filter(|(p, _)| !ignored(p)).map(|(p, i)| (p.clone(), i.clone())).collect()
}

/// Folders that only hold what is ignored stay after a restore; they are no difference.
fn without_hollow(mut all: Everything, whole: &Everything) -> Everything {
    let hollow = |path: &Vec<u8>| {
        let mut start = path.clone();
        start.push(b'/');
        let ignored = |p: &[u8]| p.split(|b| *b == b'/').any(|n| n.ends_with(b".o"));
        whole.keys().any(|p| p.starts_with(&start) && ignored(p))
    };
    let folders: Vec<Vec<u8>> = all.keys().filter(|p| hollow(p)).cloned().collect();
    for folder in folders {
        all.remove(&folder);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn snapshot_change_restore_undo(
        attributes in any::<bool>(),
        first in prop::collection::vec(act(), 0..25),
        staged in any::<bool>(),
        then in prop::collection::vec(act(), 0..25),
    ) {
        let repo = Repo::new();
        repo.write(".gitignore", "*.o\n");
        if attributes {
            repo.write(".gitattributes", "*.txt text\na ident\n");
        }
        repo.commit();
        for act in &first {
            perform(&repo, act);
        }
        if staged {
            repo.git(&["add", "-A"]);
        }
        let users = repo.users();
        let before = repo.everything();
        let taken = repo.take();
        prop_assert_eq!(&taken.tree, &repo.git_tree());
        for act in &then {
            perform(&repo, act);
        }
        let changed = repo.everything();
        let present = repo.take();
        prop_assert_eq!(&present.tree, &repo.git_tree());
        let plan = repo.plan(&taken.commit, &Scope::default());
        // Only what is ignored may be in the way; then the trees cannot be the same.
        prop_assume!(plan.kept.is_empty());
        restore::execute(&repo.workspace.dir, &plan).unwrap();
        let now = repo.everything();
        let side = |all: &Everything| without_hollow(without_hollow(captured(all), &now), &before);
        prop_assert_eq!(side(&now), side(&before));
        repo.restore(&present.commit);
        let undone = repo.everything();
        let side = |all: &Everything| without_hollow(without_hollow(captured(all), &undone), &changed);
        prop_assert_eq!(side(&undone), side(&changed));
        prop_assert_eq!(repo.users(), users);
    }
}

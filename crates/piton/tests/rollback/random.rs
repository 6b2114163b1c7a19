//! Random work trees: whatever is changed after a run, an exact rollback brings back the files it
//! started from, and an undo those that were there before it. The seed of a case is in its message.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::common::Project;
use crate::tree::{Tree, mine, tree};

const PLAN: &str = r#"
[[phase]]
id = "P"
run = "echo step > step.txt"
"#;

/// Names of files and folders, some of them odd.
const NAMES: [&[u8]; 10] = [
    b"a",
    b"b.txt",
    b"c d",
    b"\xc3\xbc",
    b"not\xffutf8",
    b"new\nline",
    b"-dash",
    b"A",
    b"%41",
    b"\"q\"",
];
/// The name of files that are ignored, wherever they are.
const IGNORED: &str = "built.o";
const MODES: [u32; 5] = [0o644, 0o755, 0o600, 0o700, 0o444];
const DIR_MODES: [u32; 3] = [0o755, 0o700, 0o775];
const CONTENTS: [&[u8]; 5] = [b"", b"one\n", b"two\n", b"dos\r\n", b"\0binary\r\n"];

/// Cases of each test: a case calls the program three times.
const CASES: u64 = 12;
/// Changes to a work tree, at most, before and after a run.
const CHANGES_MAX: usize = 20;

/// Numbers that depend on their seed alone.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        // A linear congruential generator; the low bits of such are poor.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn path(&mut self, top: &Path) -> PathBuf {
        let deep = 1 + self.below(3);
        (0..deep).fold(top.to_owned(), |path, _| {
            path.join(OsStr::from_bytes(NAMES[self.below(NAMES.len())]))
        })
    }
}

fn remove(path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        let _ = fs::remove_dir_all(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

/// Whether something can be put there without leaving the project through a link.
fn prepare(path: &Path) -> bool {
    let inside = path.ancestors().skip(1).all(|p| !p.is_symlink());
    inside && fs::create_dir_all(path.parent().unwrap()).is_ok()
}

fn write(path: &Path, content: &[u8], mode: u32) {
    if prepare(path) && !path.is_symlink() && fs::write(path, content).is_ok() {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Changes something; what can't be done is left.
fn change(top: &Path, random: &mut Random) {
    let path = random.path(top);
    let content = CONTENTS[random.below(CONTENTS.len())];
    match random.below(14) {
        0..5 => write(&path, content, MODES[random.below(MODES.len())]),
        5 => write(&path.join(IGNORED), content, 0o644),
        6 if prepare(&path) => {
            remove(&path);
            symlink(OsStr::from_bytes(NAMES[random.below(NAMES.len())]), &path).unwrap();
        }
        7 | 8 if prepare(&path) && fs::create_dir(&path).is_ok() => {
            let mode = DIR_MODES[random.below(DIR_MODES.len())];
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        9 | 10 => remove(&path),
        11 | 12 => {
            let to = random.path(top);
            if prepare(&to) {
                let _ = fs::rename(&path, to);
            }
        }
        13 if path.is_file() && !path.is_symlink() => {
            let mode = MODES[random.below(MODES.len())];
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        _ => {}
    }
}

/// What a rollback answers for: no ignored files, and no folders that only those keep alive.
fn captured(all: &Tree, other: &Tree) -> Tree {
    let is_ignored = |p: &Path| p.ends_with(IGNORED);
    let holds = |tree: &Tree, p: &Path| tree.keys().any(|k| k.starts_with(p) && is_ignored(k));
    let own = |p: &Path| !is_ignored(p) && !holds(all, p) && !holds(other, p);
    all.iter().filter(|(p, _)| own(p)).map(|(p, w)| (p.clone(), w.clone())).collect()
}

#[track_caller]
fn equal(now: &Tree, wanted: &Tree, what: &str) {
    let (now, wanted) = (captured(now, wanted), captured(wanted, now));
    let paths = now.keys().chain(wanted.keys());
    let other: Vec<_> = paths
        .filter(|p| now.get(*p) != wanted.get(*p))
        .map(|p| (p, now.get(p), wanted.get(p)))
        .collect();
    assert!(other.is_empty(), "{what}: path, found, wanted: {other:#?}");
}

fn rounds(seed: u64) {
    let mut random = Random(seed);
    let project = Project::with_plan(PLAN);
    let top = project.root().to_owned();
    project.write(".gitignore", "*.o\n");
    project.write("stashed.txt", "first\n");
    project.commit();
    project.write("stashed.txt", "second\n");
    project.git(&["stash", "push", "--quiet"]);
    for case in 0..CASES {
        let what = format!("seed {seed}, case {case}");
        for _ in 0..random.below(CHANGES_MAX) {
            change(&top, &mut random);
        }
        match random.below(4) {
            0 => project.commit(),
            1 => drop(project.git(&["add", "--all"])),
            _ => {}
        }
        let before = tree(&top);
        project.piton(&["run", "plan.toml", "--fresh"]).exits(0);
        let own = mine(&project);
        for _ in 0..random.below(CHANGES_MAX) {
            change(&top, &mut random);
        }
        let changed = tree(&top);
        let back = project.piton(&["rollback", "--exact", "--yes"]).exits(0);
        if back.stderr.contains("  stays ") {
            // An ignored file stands where another was: it is not lost.
            continue;
        }
        equal(&tree(&top), &before, &format!("{what}, rolled back"));
        project.piton(&["undo", "--yes"]).exits(0);
        equal(&tree(&top), &changed, &format!("{what}, undone"));
        assert_eq!(mine(&project), own, "{what}: what is the user's");
    }
}

/// If this fails, a rollback is not exact on some work tree, or can't be undone there.
#[test]
fn an_exact_rollback_and_its_undo_give_identical_files() {
    rounds(1);
}

/// If this fails, the same on another row of work trees.
#[test]
fn an_exact_rollback_and_its_undo_give_identical_files_elsewhere() {
    rounds(2);
}

//! Both sides of a conflict in one tree, so that nobody can take it for resolved by doing nothing.
//!
//! Where git can write both sides into a file it does, between markers. Where it can't (a binary
//! file, one side deleted the file, a file where the other side has a folder, renames) it leaves one
//! of them, and nothing in the files tells that there was another. There each side is put beside the
//! file, as `FILE~base` and `FILE~lane`: the conflict is resolved when those are gone. What was made
//! of it then is nobody's guess but the doing of whoever deleted them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use piton_core::shell;

use super::conflict::{Answer, Stage, merge_tree, own_name};
use super::{Error, Result};
use crate::files::os_path;
use crate::git::{self, Git};
use crate::repo::Repo;

/// How a line of a file begins that opens the two sides in it.
const MARKER: &[u8] = b"<<<<<<< ";
/// The index that the tree is made with, in the git folder of a lane's worktree.
const INDEX: &str = "piton-sides";
/// The mode of a commit of another repository: it is written as text, for it is not a file.
const COMMIT_MODE: &str = "160000";

/// A conflict with what both sides made of each file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    /// The tree that git makes of it.
    merged: String,
    /// The files, sorted.
    pub files: Vec<Disputed>,
}

/// A file that two sides are at odds about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disputed {
    /// Its path.
    pub path: PathBuf,
    /// What git calls the conflict, such as `modify/delete`.
    pub kind: String,
    /// Whether both sides are in it, between markers.
    pub has_markers: bool,
    /// What both came from, base's side and the lane's.
    stages: [Option<Blob>; 3],
    /// Where the sides are beside it: base's, then the lane's.
    beside: [Option<PathBuf>; 2],
    /// The name that git gave it, where a folder has its own.
    invented: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Blob {
    mode: String,
    id: String,
}

impl Disputed {
    /// The files that were put beside it.
    pub fn beside(&self) -> impl Iterator<Item = &Path> {
        self.beside.iter().flatten().map(PathBuf::as_path)
    }

    /// The objects that hold what both sides, and what they came from, have in its place.
    pub fn objects(&self) -> impl Iterator<Item = &str> {
        self.stages.iter().flatten().map(|blob| blob.id.as_str())
    }

    /// What whoever resolves it should know, in one line.
    pub fn words(&self) -> String {
        let name = self.path.display();
        let mut words = format!("{name} ({})", self.kind);
        if self.has_markers {
            words.push_str(": both sides are in it, between markers");
            return words;
        }
        for (side, who) in [(0, "base"), (1, "the lane")] {
            let sep = if side == 0 { ": " } else { ", " };
            let _ = match (&self.stages[side + 1], &self.beside[side]) {
                (Some(blob), Some(at)) => {
                    write!(words, "{sep}{who} has {} (`{}`)", at.display(), shown(blob))
                }
                _ => write!(words, "{sep}{who} has none"),
            };
        }
        if let Some(blob) = &self.stages[0] {
            let _ = write!(words, ", before it was `{}`", shown(blob));
        }
        let beside: Vec<String> = self.beside().map(|p| p.display().to_string()).collect();
        if !beside.is_empty() {
            let all = beside.join(" and ");
            let _ = write!(words, "; make {name} what it shall be, then delete {all}");
        }
        words
    }
}

fn shown(blob: &Blob) -> String {
    shell::git(None, &["show", &blob.id])
}

/// What two commits are at odds about: base's, and the lane's.
pub fn sides(dir: &Path, base: &str, lane: &str) -> Result<Sides> {
    let answer = merge_tree(dir, None, base, lane)?;
    let mut sides = disputed(answer, [base, lane]).ok_or(Error::Strange("merge-tree"))?;
    if !sides.files.is_empty() {
        find_markers(dir, &mut sides, base)?;
    }
    Ok(sides)
}

/// Finds out which files hold markers, and where the sides of the others can lie.
fn find_markers(dir: &Path, sides: &mut Sides, base: &str) -> Result<()> {
    let bytes = Git::at(dir).args(["ls-tree", "-r", "-z", &sides.merged]).bytes()?;
    let entry =
        |(words, path): (Vec<&str>, &[u8])| Some((path.to_vec(), (*words.get(2)?).to_owned()));
    let there: BTreeMap<Vec<u8>, String> = git::tabbed(&bytes).filter_map(entry).collect();
    for file in &mut sides.files {
        let name = file.path.as_os_str().as_bytes();
        if let (None, [_, Some(_), Some(_)], Some(id)) =
            (&file.invented, &file.stages, there.get(name))
        {
            let text = Git::at(dir).args(["cat-file", "blob", id]).bytes().unwrap_or_default();
            // Git names the side in the marker: a line of the file's own is another.
            let own = [MARKER, base.as_bytes()].concat();
            file.has_markers = lines(&text).any(|line| line.starts_with(&own));
        }
        if file.has_markers {
            continue;
        }
        for (side, who) in [(0, "~base"), (1, "~lane")] {
            if file.stages[side + 1].is_none() {
                continue;
            }
            let mut beside = [name, who.as_bytes()].concat();
            while there.contains_key(&beside) {
                beside.push(b'~');
            }
            file.beside[side] = Some(os_path(&beside).to_owned());
        }
    }
    Ok(())
}

/// Whether a text holds the two sides of a conflict: lines that open them, and are in none of the
/// texts that it was made of.
pub fn has_markers(text: &[u8], before: &[Vec<u8>]) -> bool {
    let known: Vec<&[u8]> = before.iter().flat_map(|text| lines(text)).collect();
    lines(text).any(|line| line.starts_with(MARKER) && !known.contains(&line))
}

/// The lines of a text, without what ends them.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

impl Sides {
    /// Makes the tree with both sides of every file in it; `dir` is the worktree it is for.
    pub fn tree(&self, dir: &Path) -> Result<String> {
        let moved = self.files.iter().filter(|f| !f.has_markers);
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for file in moved {
            if let Some(invented) = &file.invented {
                let len = self.merged.len();
                lines.push(entry("0", &"0".repeat(len), invented));
            }
            for side in 0..2 {
                if let (Some(blob), Some(at)) = (&file.stages[side + 1], &file.beside[side]) {
                    let (mode, id) = held(dir, blob)?;
                    lines.push(entry(&mode, &id, at));
                }
            }
        }
        if lines.is_empty() {
            return Ok(self.merged.clone());
        }
        let index = Repo::find(dir)?.git_dir.join(INDEX);
        let clear = || {
            let _ = fs::remove_file(&index);
            let _ = fs::remove_file(index.with_extension("lock"));
        };
        clear();
        let git = || Git::at(dir).durable().index(&index);
        let made = (|| {
            git().args(["read-tree", &self.merged]).run()?;
            git().args(["update-index", "-z", "--index-info"]).input(git::ended(lines)).run()?;
            git().args(["write-tree"]).text()
        })();
        clear();
        Ok(made?)
    }
}

fn entry(mode: &str, id: &str, path: &Path) -> Vec<u8> {
    [format!("{mode} {id}\t").as_bytes(), path.as_os_str().as_bytes()].concat()
}

/// A side as a file can hold it.
fn held(dir: &Path, blob: &Blob) -> Result<(String, String)> {
    if blob.mode != COMMIT_MODE {
        return Ok((blob.mode.clone(), blob.id.clone()));
    }
    let text = format!("Subproject commit {}\n", blob.id);
    let git = Git::at(dir).durable().args(["hash-object", "-w", "--stdin"]);
    Ok(("100644".to_owned(), git.input(text.into_bytes()).text()?))
}

/// The files that an answer of git's is about.
fn disputed(answer: Answer, sides: [&str; 2]) -> Option<Sides> {
    let mut files: BTreeMap<Vec<u8>, Disputed> = BTreeMap::new();
    for Stage { mode, id, number, path } in answer.stages {
        let (own, invented) = own_name(&path, sides);
        let file = files.entry(own.to_owned()).or_default();
        os_path(own).clone_into(&mut file.path);
        "conflict".clone_into(&mut file.kind);
        if invented {
            file.invented = Some(os_path(&path).to_owned());
        }
        *file.stages.get_mut(number.checked_sub(1)?)? = Some(Blob { mode, id });
    }
    // The first word about a file counts.
    for message in answer.messages.iter().rev() {
        let kind = message.kind.strip_prefix("CONFLICT (").and_then(|k| k.strip_suffix(')'));
        let Some(kind) = kind else { continue };
        for path in &message.paths {
            if let Some(file) = files.get_mut(own_name(path, sides).0) {
                kind.clone_into(&mut file.kind);
            }
        }
    }
    Some(Sides { merged: answer.tree, files: files.into_values().collect() })
}

//! Repositories with many files, for snapshots and worktrees.
//!
//! They are imported in one pack, as a cloned repository has it: loose objects would make git look
//! slower than people know it.

use std::fmt::Write as _;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::measure::{quiet, repository, time_command};
use crate::rng::Rng;

/// Files of a folder.
const FILES_PER_FOLDER: usize = 50;
/// Folders of a folder.
const FOLDERS_PER_FOLDER: usize = 50;
/// Lines of a file, at least and by how many more at most: a few kilobytes, as source files have.
const LINES: (u64, u64) = (5, 55);
/// Different words: enough that files compress as text does.
const WORDS: u64 = 2000;

/// The path of a file by its number.
pub(super) fn path(number: usize) -> PathBuf {
    let folder = number / FILES_PER_FOLDER;
    let (top, below) = (folder / FOLDERS_PER_FOLDER, folder % FOLDERS_PER_FOLDER);
    PathBuf::from(format!("p{top}/q{below}/f{number}.rs"))
}

/// Makes a repository with so many committed files, without checking them out.
pub(super) fn import(dir: &Path, files: usize) -> Result<(), String> {
    repository(dir)?;
    let mut child = Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let input = child.stdin.take().ok_or("a piped child has an input")?;
    write_import(BufWriter::new(input), files).map_err(|e| e.to_string())?;
    let status = child.wait().map_err(|e| e.to_string())?;
    if !status.success() {
        return Err(format!("git fast-import ended with {status}"));
    }
    git(dir, &["symbolic-ref", "HEAD", "refs/heads/main"])
}

fn write_import(mut out: impl std::io::Write, files: usize) -> std::io::Result<()> {
    let mut rng = Rng::of_round(1, "tree", 0);
    writeln!(out, "commit refs/heads/main\ncommitter b <b@localhost> 1750000000 +0000")?;
    writeln!(out, "data 4\nall\n")?;
    for number in 0..files {
        let text = text(&mut rng);
        writeln!(out, "M 100644 inline {}\ndata {}\n{text}", path(number).display(), text.len())?;
    }
    out.flush()
}

/// The text of a file.
pub(super) fn text(rng: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..LINES.0 + rng.below(LINES.1) {
        for _ in 0..6 {
            let _ = write!(text, "w{:x} ", rng.below(WORDS).wrapping_mul(0x9E37_79B9_7F4A));
        }
        text.push('\n');
    }
    text
}

/// Makes a repository with so many committed files, checked out.
pub(super) fn checked_out(dir: &Path, files: usize) -> Result<(), String> {
    import(dir, files)?;
    git(dir, &["reset", "--hard", "--quiet"])
}

/// Runs git.
pub(super) fn git(dir: &Path, words: &[&str]) -> Result<(), String> {
    time_command(&mut quiet(Path::new("git"), words, dir)).map(drop)
}

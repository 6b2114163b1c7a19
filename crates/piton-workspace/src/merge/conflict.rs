//! One three-way merge of trees, by `git merge-tree`: clean, or in conflict and where.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Error, Result};
use crate::git::{self, Git};

/// How much of git's explanations is kept: it becomes part of a prompt.
const DETAIL_BYTES_MAX: usize = 8 * 1024;

/// How a merge came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Merged {
    /// The tree.
    Clean(String),
    /// The files in conflict, and what git says about them.
    Conflict { files: Vec<String>, detail: String },
}

/// Merges what `theirs` did since `from` into `ours`; without `from`, since they parted.
pub(super) fn merge(dir: &Path, from: Option<&str>, ours: &str, theirs: &str) -> Result<Merged> {
    let mut git = Git::at(dir)
        .durable()
        .config("merge.conflictStyle=merge")
        .args(["merge-tree", "--write-tree", "-z", "--name-only", "--messages"])
        .args(["--allow-unrelated-histories"]);
    if let Some(from) = from {
        git = git.arg(format!("--merge-base={from}"));
    }
    let output = git.args([ours, theirs]).output()?;
    match output.status.code() {
        Some(0) => {
            let tree = output.stdout.split(|byte| *byte == 0).next().unwrap_or_default();
            Ok(Merged::Clean(String::from_utf8_lossy(tree).trim_end().to_owned()))
        }
        Some(1) => parse(&output.stdout, [ours, theirs]).ok_or(Error::Strange("merge-tree")),
        code => Err(Error::Git(git::Error {
            command: format!("merge-tree {ours} {theirs}"),
            code,
            message: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
        })),
    }
}

/// Reads: the tree, the files, an empty word; then messages, each a count of paths, the paths, a
/// kind and a text.
fn parse(bytes: &[u8], sides: [&str; 2]) -> Option<Merged> {
    let mut words = bytes.split(|byte| *byte == 0).map(|w| String::from_utf8_lossy(w).into_owned());
    words.next()?;
    let files = words.by_ref().take_while(|word| !word.is_empty());
    let files: BTreeSet<String> = files.map(|name| own_name(&name, sides).to_owned()).collect();
    let mut detail = String::new();
    while let Some(count) = words.next().filter(|word| !word.is_empty()) {
        let count: usize = count.parse().ok()?;
        let kind = words.by_ref().nth(count)?;
        let text = words.next()?;
        if kind != "Auto-merging" && detail.len() + text.len() < DETAIL_BYTES_MAX {
            detail.push_str(&text);
        }
    }
    Some(Merged::Conflict { files: files.into_iter().collect(), detail })
}

/// The name a file has on its side: where both sides can't have one, git calls it `NAME~COMMIT`.
fn own_name<'a>(name: &'a str, sides: [&str; 2]) -> &'a str {
    let cut = sides.iter().find_map(|commit| name.rfind(&format!("~{commit}")));
    cut.map_or(name, |at| &name[..at])
}

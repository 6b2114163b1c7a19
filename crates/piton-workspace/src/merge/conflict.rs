//! One three-way merge of trees, by `git merge-tree`: clean, or in conflict and where.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Error, Result};
use crate::git::Git;

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

/// What git answers.
pub(super) struct Answer {
    pub is_clean: bool,
    pub tree: String,
    /// What each side has of the files in conflict.
    pub stages: Vec<Stage>,
    pub messages: Vec<Message>,
}

/// A file in conflict, as one side has it.
pub(super) struct Stage {
    pub mode: String,
    pub id: String,
    /// 1 is what both came from, then ours and theirs.
    pub number: usize,
    pub path: Vec<u8>,
}

/// What git says about paths.
pub(super) struct Message {
    pub paths: Vec<Vec<u8>>,
    pub kind: String,
    text: String,
}

/// Merges what `theirs` did since `from` into `ours`; without `from`, since they parted.
pub(super) fn merge(dir: &Path, from: Option<&str>, ours: &str, theirs: &str) -> Result<Merged> {
    let answer = merge_tree(dir, from, ours, theirs)?;
    if answer.is_clean {
        return Ok(Merged::Clean(answer.tree));
    }
    let own = |stage: &Stage| own_name(&stage.path, [ours, theirs]).0.to_vec();
    let files: BTreeSet<Vec<u8>> = answer.stages.iter().map(own).collect();
    let files = files.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let mut detail = String::new();
    for message in answer.messages {
        let fits = detail.len() + message.text.len() < DETAIL_BYTES_MAX;
        if message.kind != "Auto-merging" && fits {
            detail.push_str(&message.text);
        }
    }
    Ok(Merged::Conflict { files, detail })
}

/// Runs git; the same input gives the same answer, and its objects are durable.
pub(super) fn merge_tree(
    dir: &Path,
    from: Option<&str>,
    ours: &str,
    theirs: &str,
) -> Result<Answer> {
    let mut git = Git::at(dir).durable().config("merge.conflictStyle=merge").args([
        "merge-tree",
        "--write-tree",
        "-z",
        "--messages",
        "--allow-unrelated-histories",
    ]);
    if let Some(from) = from {
        git = git.arg(format!("--merge-base={from}"));
    }
    let output = git.args([ours, theirs]).answer_with(&[0, 1])?;
    let answer = parse(&output.stdout, output.status.success());
    answer.ok_or(Error::Strange("merge-tree"))
}

/// Reads: the tree; `MODE ID STAGE`, a tab and the path of each side; an empty word; then messages,
/// each a count of paths, the paths, a kind and a text.
fn parse(bytes: &[u8], is_clean: bool) -> Option<Answer> {
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let mut words = bytes.split(|byte| *byte == 0);
    let tree = text(words.next()?).trim_end().to_owned();
    let (mut stages, mut messages) = (Vec::new(), Vec::new());
    for word in words.by_ref().take_while(|word| !word.is_empty()) {
        let at = word.iter().position(|b| *b == b'\t')?;
        let head = text(&word[..at]);
        let &[mode, id, number] = head.split(' ').collect::<Vec<_>>().as_slice() else {
            return None;
        };
        let (mode, id, path) = (mode.to_owned(), id.to_owned(), word[at + 1..].to_vec());
        stages.push(Stage { mode, id, number: number.parse().ok()?, path });
    }
    while let Some(count) = words.next().filter(|word| !word.is_empty()) {
        let count = text(count).parse().ok()?;
        let paths = words.by_ref().take(count).map(<[u8]>::to_vec).collect();
        let (kind, text) = (text(words.next()?), text(words.next()?));
        messages.push(Message { paths, kind, text });
    }
    Some(Answer { is_clean, tree, stages, messages })
}

/// The name a file has on its side, and whether git gave it another: `NAME~COMMIT`, where both sides
/// can't have the name.
pub(super) fn own_name<'a>(path: &'a [u8], sides: [&str; 2]) -> (&'a [u8], bool) {
    for commit in sides {
        let mark = [b"~", commit.as_bytes()].concat();
        if let Some(at) = path.windows(mark.len()).rposition(|part| part == mark) {
            return (&path[..at], true);
        }
    }
    (path, false)
}

//! Which branch is a lane's, and where the lane started: small records below `refs/piton/`.
//!
//! A branch without a record is never ours. A record is a blob with both, and another ref keeps that
//! commit alive. For the most frequent form of a name there is a short record: the commit the lane
//! started from, and nothing else has to be written. Any name can be recorded; which names there are is
//! up to the protocols.

use std::path::Path;

use super::{PREFIX, Transaction, component, list, run_prefix};
use crate::git::Error;
use crate::objects::write_blob;
use crate::repo::Repo;

/// The two refs about a lane's branch: the record and the start.
pub(crate) fn names(run_id: &str, lane: &str) -> (String, String) {
    let (prefix, lane) = (run_prefix(run_id), lane_name(lane));
    (format!("{prefix}branch/{lane}"), format!("{prefix}start/{lane}"))
}

/// What a lane is called in the name of a ref.
pub(crate) fn lane_name(lane: &str) -> String {
    // A lane's tasks are named below it, and a ref cannot be a folder as well.
    component(&lane.replace('/', "%"))
}

/// How a branch begins that a short record stands for; the path of the lane follows.
const USUAL: &str = "lane/";

/// How a commit begins; no branch has a space in its name.
const COMMIT: &[u8] = b"tree ";

/// The record of a lane: its branch and its start.
pub(crate) fn read(repo: &Repo, name: &str, lane: &str) -> Option<(String, String)> {
    read_or(repo, name, || Some(format!("{USUAL}{lane}")))
}

/// The record of that name, with what the usual branch of its lane is called.
fn read_or(
    repo: &Repo,
    name: &str,
    usual: impl FnOnce() -> Option<String>,
) -> Option<(String, String)> {
    let id = repo.value(name)?;
    let bytes = repo.bytes(&id)?;
    if bytes.starts_with(COMMIT) {
        return Some((usual()?, id));
    }
    let text = String::from_utf8(bytes).ok()?;
    let (branch, start) = text.trim_end().split_once('\n')?;
    Some((branch.to_owned(), start.to_owned()))
}

/// Adds the record of a lane that has none yet.
pub(crate) fn add(
    transaction: Transaction,
    dir: &Path,
    (run_id, lane): (&str, &str),
    (branch, start): (&str, &str),
) -> Result<Transaction, Error> {
    let (record_name, start_name) = names(run_id, lane);
    if branch.strip_prefix(USUAL) == Some(lane) {
        return Ok(transaction.update(&record_name, start, None));
    }
    let blob = write_blob(dir, &format!("{branch}\n{start}\n"))?;
    Ok(transaction.update(&record_name, &blob, None).set(&start_name, start))
}

/// The branch on record as a lane's own, and the commit it is at; nothing once it is gone.
pub fn branch_of(root: &Path, (run_id, lane): (&str, &str)) -> Option<(String, String)> {
    let repo = Repo::find(root).ok()?;
    let (branch, _) = read(&repo, &names(run_id, lane).0, lane)?;
    let head = repo.value(&format!("refs/heads/{branch}"))?;
    Some((branch, head))
}

/// The run that a branch is on record for, if it is one of ours.
pub fn run_of_branch(root: &Path, branch: &str) -> Option<String> {
    let all = list(root, PREFIX).ok()?;
    let repo = Repo::find(root).ok()?;
    all.iter().find_map(|found| {
        let (run, rest) = found.name.strip_prefix(PREFIX)?.split_once('/')?;
        let of = rest.strip_prefix("branch/")?;
        let usual = || branch.strip_prefix(USUAL).filter(|lane| lane_name(lane) == of);
        let (its, _) = read_or(&repo, &found.name, || usual().map(|_| branch.to_owned()))?;
        (its == branch).then(|| run.to_owned())
    })
}

//! What `git worktree list` shows, with ours named.

use std::path::{Path, PathBuf};

use super::admin::{self, Admin, Folder};
use super::mark::Mark;
use super::{Result, links};
use crate::files::{os_path, small};
use crate::git::Git;
use crate::repo::{REFTABLE_HEAD, Repo, head_ref, named_by};

/// A work tree of a repository; the main one comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub path: PathBuf,
    /// The branch it has checked out, by its short name.
    pub branch: Option<String>,
    /// Run and lane, if it is ours.
    pub ours: Option<(String, String)>,
    /// Its folder is gone.
    pub prunable: bool,
}

/// Lists the work trees of a repository.
pub fn list(root: &Path) -> Result<Vec<Entry>> {
    let repo = Repo::find(root)?;
    let admins = admin::scan(&repo);
    let bytes = Git::at(root).args(["worktree", "list", "--porcelain", "-z"]).bytes()?;
    // A line ends with one NUL, an entry with two.
    let mut entries = Vec::new();
    let mut lines: Vec<&[u8]> = Vec::new();
    for line in bytes.split(|byte| *byte == 0) {
        if line.is_empty() {
            entries.extend(entry(&std::mem::take(&mut lines), &admins));
        } else {
            lines.push(line);
        }
    }
    Ok(entries)
}

/// Where a branch is checked out, if anywhere; the folder of that worktree may be gone.
///
/// Read from the files that say so, because every lane asks; git is asked where they do not tell:
/// where refs are not files, and for the main work tree of a repository that is elsewhere.
pub fn checked_out(root: &Path, branch: &str) -> Option<PathBuf> {
    checked_out_in(&Repo::find(root).ok()?, branch)
}

pub(super) fn checked_out_in(repo: &Repo, branch: &str) -> Option<PathBuf> {
    let main = head_ref(&repo.common);
    let told = |entry: Entry| (entry.branch.as_deref() == Some(branch)).then_some(entry.path);
    let name = Some(format!("refs/heads/{branch}"));
    let is_main = main == name;
    if main.as_deref() == Some(REFTABLE_HEAD) || (is_main && !repo.is_main()) {
        return list(&repo.root).ok()?.into_iter().find_map(told);
    }
    if is_main {
        return Some(repo.root.clone());
    }
    let linked = repo.admin_dirs().into_iter().filter(|dir| readable_head(dir) == name);
    linked.map(|dir| Admin::read(&dir)).find_map(|admin| admin.path)
}

/// Where a branch is being rebased, if anywhere: git detaches HEAD in the meantime and notes the branch.
pub fn rebased(root: &Path, branch: &str) -> Option<PathBuf> {
    let repo = Repo::find(root).ok()?;
    let name = format!("refs/heads/{branch}");
    let names = |dir: &Path| {
        let noted = |kind: &str| small(&dir.join(kind).join("head-name"));
        let mut noted = ["rebase-merge", "rebase-apply"].into_iter().filter_map(|k| noted(k).ok());
        noted.any(|text| text.trim_ascii_end() == name.as_bytes())
    };
    if names(&repo.common) {
        let is_main = repo.is_main();
        let main = || list(&repo.root).ok()?.into_iter().next().map(|entry| entry.path);
        return if is_main { Some(repo.root.clone()) } else { main() };
    }
    let linked = repo.admin_dirs().into_iter().filter(|dir| names(dir));
    linked.map(|dir| Admin::read(&dir)).find_map(|admin| admin.path)
}

/// The ref that the HEAD of an entry leads to; one that a power cut tore is repaired first.
fn readable_head(dir: &Path) -> Option<String> {
    match small(&dir.join("HEAD")).ok().filter(|text| links::is_head(text)) {
        Some(text) => named_by(&text),
        None => Mark::read(dir).and_then(|_| head_ref(dir)),
    }
}

fn entry(lines: &[&[u8]], admins: &[Admin]) -> Option<Entry> {
    let bytes = |key: &str| {
        let mut rests = lines.iter().filter_map(|line| line.strip_prefix(key.as_bytes()));
        rests.find_map(|rest| rest.is_empty().then_some(rest).or(rest.strip_prefix(b" ")))
    };
    let value = |key: &str| bytes(key).map(|value| String::from_utf8_lossy(value).into_owned());
    let path = os_path(bytes("worktree")?).to_owned();
    let folder = Folder::at(&path);
    let known = admins.iter().find(|a| a.is_at(&folder));
    let owner = known.and_then(Admin::owner).cloned();
    let gone = known.is_some() && !path.join(".git").exists();
    Some(Entry {
        branch: value("branch").map(|b| b.strip_prefix("refs/heads/").unwrap_or(&b).to_owned()),
        ours: owner.map(|owner| (owner.run_id, owner.lane)),
        prunable: gone || value("prunable").is_some(),
        path,
    })
}

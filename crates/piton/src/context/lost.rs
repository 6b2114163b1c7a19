//! A ledger that is missing or empty where there must have been one.
//!
//! Folders of runs and refs of ours are made only after the ledger was, so where they are and it is
//! not, it was lost. A new one in its place would forget what ran, and take the snapshots of those
//! runs for waste. A first run that was killed while it made the ledger left neither.

use piton_core::remedy;
use piton_ledger::{DATABASE_FILE, Error, Open};
use piton_workspace::{Project, refs};

use crate::error::{CommandError, Kind};

/// A ledger with content takes more than the first page of its file, unless that content is still in
/// its log: only then it is worth a closer look.
const PAGE_BYTES: u64 = 4096;
/// Runs that are named: enough to know which ones are meant.
const NAMED_MAX: usize = 5;

/// Says that the ledger was lost; nothing if it is there, or never was.
pub fn look(project: &Project) -> Option<CommandError> {
    let path = project.state_dir.join(DATABASE_FILE);
    let size = std::fs::metadata(&path).map(|found| found.len()).ok();
    if size.is_some_and(|size| size > PAGE_BYTES) {
        return None;
    }
    let runs = traces(project);
    // After the traces: somebody who makes a ledger now makes it before them.
    let gone = || {
        matches!(
            piton_ledger::open(&project.state_dir, Open::ReadOnly),
            Err(Error::NoLedger { .. })
        )
    };
    if runs.is_empty() || !gone() {
        return None;
    }
    let what = if size.is_some() { "is empty" } else { "is missing" };
    let more = if runs.len() > NAMED_MAX { ", …" } else { "" };
    let named = runs.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    let path = path.display();
    let message = format!("the ledger {path} {what}, but there are traces of runs: {named}{more}");
    let error = CommandError::new(Kind::Blocked, "ledger-lost", message)
        .hint(remedy![Words "copy a backup to {path}, then run ", Piton "doctor --restored"])
        .hint(remedy![Words "or start a new one with ", Piton "doctor --new-ledger", Words "; what the runs left is kept"]);
    Some(error)
}

/// The runs that left a folder or refs.
fn traces(project: &Project) -> Vec<String> {
    let entries = std::fs::read_dir(project.state_dir.join("runs")).into_iter().flatten().flatten();
    let folders = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
    let mut runs: Vec<String> =
        folders.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    if project.common_dir.as_deref().is_some_and(|common| refs::may_exist(common, refs::PREFIX)) {
        let found = refs::list(&project.root, refs::PREFIX).unwrap_or_default();
        runs.extend(found.iter().filter_map(|r| {
            let rest = r.name.strip_prefix(refs::PREFIX)?;
            rest.split_once('/').map(|(run, _)| run.to_owned())
        }));
    }
    runs.sort_unstable();
    runs.dedup();
    runs
}

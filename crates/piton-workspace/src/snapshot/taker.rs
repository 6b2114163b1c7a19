//! Taking snapshots: once, or again and again of the same work tree.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::capture::{Capture, Known, Sibling};
use super::{Error, Meta, Rules, Snapshot, Workspace, packs};
use crate::objects::Oid;
use crate::refs::{Fence, Transaction};
use crate::repo::Repo;

/// Who snapshots are by; no configuration of the user's is needed.
const IDENTITY: &str = "piton <piton@localhost>";
/// Caches above this are read from their file each time: walking such a tree takes far longer than
/// reading, and lanes have one each.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Takes a snapshot and appends it to a chain, unless nothing changed since the chain's last.
///
/// `chain` is a ref of the fence's run. Everything is synced when this returns.
pub fn take(
    workspace: &Workspace,
    rules: &Rules,
    chain: &str,
    fence: &Fence,
    meta: &Meta<'_>,
) -> Result<Snapshot, Error> {
    Taker::new(workspace.clone()).take(rules, chain, fence, meta)
}

/// The first snapshot of a chain. Work trees that begin alike have it in common, and need not write
/// one each.
struct First {
    chain: String,
    commit: String,
    root: Oid,
    repo: Repo,
}

impl First {
    /// Whether it is that of a work tree too, and its chain still holds it.
    fn is_of(&self, captured: &Capture) -> bool {
        self.root == captured.head.root
            && self.repo.common == captured.repo.common
            && captured.repo.value(&self.chain).is_some()
            // What had to be written for it is not there as we know it.
            && captured.has_nothing_new()
    }
}

/// What work trees that are alike have in common.
#[derive(Default)]
struct Common {
    /// What was last found in one of them.
    latest: Option<Sibling>,
    first: Option<First>,
}

/// Takes snapshots of one work tree and remembers between them what the stat cache says.
pub struct Taker {
    workspace: Workspace,
    known: Option<Known>,
    common: Arc<Mutex<Common>>,
}

impl Taker {
    /// Begins with what the cache's file says.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace, known: None, common: Arc::default() }
    }

    /// Lets it begin with what was found in another work tree, and by all that began like it: a
    /// lane's has the settings of the others, and at first most of their files.
    #[must_use]
    pub fn like(mut self, other: Option<&Self>) -> Self {
        if let Some(other) = other {
            self.common = other.common.clone();
        }
        self
    }

    /// The work tree.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Whether the last snapshot left something to go by: not if the work tree is large.
    pub fn is_warm(&self) -> bool {
        self.known.is_some()
    }

    /// Like [`take`].
    pub fn take(
        &mut self,
        rules: &Rules,
        chain: &str,
        fence: &Fence,
        meta: &Meta<'_>,
    ) -> Result<Snapshot, Error> {
        let sibling = self.common().latest.clone();
        let known = self.known.take();
        let captured = Capture::new(&self.workspace, rules, known, sibling.as_ref())?;
        let (repo, settings) = (captured.repo.clone(), captured.head.settings.clone());
        let (snapshot, known) = self.append(captured, chain, fence, meta)?;
        self.known = known.filter(|k| k.size() <= KEPT_BYTES_MAX);
        self.common().latest = Some(Sibling { repo, settings, known: self.known.clone() });
        Ok(snapshot)
    }

    fn common(&self) -> MutexGuard<'_, Common> {
        self.common.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(
        &self,
        mut captured: Capture,
        chain: &str,
        fence: &Fence,
        meta: &Meta<'_>,
    ) -> Result<(Snapshot, Option<Known>), Error> {
        let repo = captured.repo.clone();
        let tip = captured.tip(chain);
        let degraded = captured.head.missed.clone();
        let tree = captured.head.tree.to_string();
        if let Some(tip) = tip.as_ref()
            && captured.root_of(tip)? == Some(captured.head.root)
        {
            if captured.head.anchor != (chain.to_owned(), tip.clone()) {
                // Nobody knows whether the one who moved the ref lived to sync it.
                let synced = crate::refs::sync_ref(&repo.common, chain);
                synced.map_err(|e| Error::file(&repo.common, e))?;
            }
            let known = captured.keep(chain, tip, &self.workspace);
            return Ok((Snapshot { commit: tip.clone(), tree, degraded, changed: false }, known));
        }
        if tip.is_some() {
            // The first one finds what git checked out, or what was there before Piton came.
            captured.sync_changed()?;
        }
        let shared = match (&tip, &self.common().first) {
            (None, Some(first)) if first.is_of(&captured) => Some(first.commit.clone()),
            _ => None,
        };
        let (commit, written) = if let Some(commit) = shared {
            (commit, None)
        } else {
            let commit = commit(captured.head.root, tip.as_deref(), meta);
            (captured.put_commit(&commit)?, captured.finish_objects()?)
        };
        let moved = Transaction::fenced(fence).update(chain, &commit, tip.as_deref());
        let moved = moved.commit_in(&repo, "piton: snapshot");
        let is_packed = written.is_some();
        if let Some(written) = written {
            // Also when the ref did not move: then the objects are garbage, and git may have them.
            written.release();
        }
        moved?;
        if tip.is_none() {
            let (chain, commit, root) = (chain.to_owned(), commit.clone(), captured.head.root);
            self.common().first = Some(First { chain, commit, root, repo: repo.clone() });
        }
        let known = captured.keep(chain, &commit, &self.workspace);
        if is_packed {
            packs::join_if_many(&repo);
        }
        Ok((Snapshot { commit, tree, degraded, changed: true }, known))
    }
}

fn commit(root: Oid, parent: Option<&str>, meta: &Meta<'_>) -> Vec<u8> {
    let seconds = meta.at.div_euclid(1000);
    let parent = parent.map(|id| format!("parent {id}\n")).unwrap_or_default();
    let by = format!("{IDENTITY} {seconds} +0000");
    let mut text = format!("tree {root}\n{parent}author {by}\ncommitter {by}\n\n");
    text.push_str(meta.message.trim_end());
    text.push('\n');
    text.into_bytes()
}

//! Taking snapshots: once, or again and again of the same work tree.

use super::capture::{Capture, Known};
use super::oid::Oid;
use super::repo::{Repo, Settings};
use super::{Error, Meta, Rules, Snapshot, Workspace, packs};
use crate::refs::{Fence, Transaction};

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

/// Takes snapshots of one work tree and remembers between them what the stat cache says.
pub struct Taker {
    workspace: Workspace,
    known: Option<Known>,
    /// The settings of git as they were last found, here or in another work tree.
    settings: Option<(Repo, Settings)>,
}

impl Taker {
    /// Begins with what the cache's file says.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace, known: None, settings: None }
    }

    /// Lets it begin with the settings that were found in another work tree.
    #[must_use]
    pub fn like(mut self, other: Option<&Self>) -> Self {
        self.settings = other.and_then(|other| other.settings.clone());
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
        let elsewhere = self.settings.as_ref();
        let captured = Capture::of_known(&self.workspace, rules, self.known.take(), elsewhere)?;
        if self.settings.as_ref().is_none_or(|(_, known)| *known != captured.head.settings) {
            self.settings = Some((captured.repo.clone(), captured.head.settings.clone()));
        }
        let (snapshot, known) = self.append(captured, chain, fence, meta)?;
        self.known = known.filter(|k| k.size() <= KEPT_BYTES_MAX);
        Ok(snapshot)
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
        let commit = captured.put_commit(&commit(captured.head.root, tip.as_deref(), meta))?;
        let written = captured.finish_objects()?;
        if let Some(written) = &written {
            // Before the ref moves: a mark that a crash leaves is only looked for on listed packs.
            packs::remember(&self.workspace, &written.name());
        }
        let moved = Transaction::fenced(fence).update(chain, &commit, tip.as_deref());
        let moved = moved.commit(&repo.dir, "piton: snapshot");
        if let Some(written) = written {
            // Also when the ref did not move: then the objects are garbage, and git may have them.
            written.release();
        }
        moved?;
        let known = captured.keep(chain, &commit, &self.workspace);
        packs::join_when_many(&self.workspace, &repo);
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

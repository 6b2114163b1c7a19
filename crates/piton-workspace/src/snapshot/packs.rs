//! Joins the many small packs that snapshots leave: each slows down every lookup a little.
//!
//! Git does it, as in its own maintenance: small packs become one, durable before they go, and large ones
//! stay. Failing here costs nothing but speed, so nothing is reported.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::git::Git;
use crate::repo::Repo;

/// Packs that are left alone; git itself repacks at 50.
const PACKS_MAX: usize = 50;
/// After how many packs of this process the folder is looked at: looking costs a little too.
const LOOK_EVERY: usize = 16;

/// Packs that this process wrote.
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Joins packs if there are many, now that one more was written.
pub(super) fn join_if_many(repo: &Repo) {
    if !WRITTEN.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOK_EVERY) {
        return;
    }
    let entries = std::fs::read_dir(repo.objects().join("pack")).into_iter().flatten().flatten();
    let packs = entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "pack"));
    if packs.count() > PACKS_MAX {
        let args = ["repack", "-d", "-l", "-n", "-q", "--geometric=2"];
        let _ = Git::at(&repo.root).durable().args(args).run();
    }
}

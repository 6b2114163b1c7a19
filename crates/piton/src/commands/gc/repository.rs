//! What runs leave in the repository: snapshots, worktrees, looks, stat caches, trash.
//!
//! A chain of snapshots goes only as a whole, with its run: each one holds those before it, and a
//! run that is kept may refer to any of them. Worktrees go only if they are of a run that goes or is
//! gone, and hold nothing that is not committed; branches are never touched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use piton_core::hash::Sha;
use piton_core::{RunState, Timestamp};
use piton_engine::Store;
use piton_view::gc::{Gone, Orphan, Tree};
use piton_workspace::refs::{self, Fence, Ref};
use piton_workspace::{history, missed, snapshot, worktree};

use super::{Candidate, bytes_in};
use crate::context::{Context, now};
use crate::ui;

/// Looks of commands are for the moment; a day later nobody compares with them any more.
const LOOK_AGE_SECS_MAX: i64 = 86_400;
/// Stat caches are named by a hash of 64 digits; whatever else lies beside them is not theirs.
const CACHE_NAME_LEN: usize = 64;
/// Part of every ref that a look of a command made.
const LOOK: &str = "/readers/";

/// What goes without a question: nothing of it can be missed.
#[derive(Debug, Default)]
pub struct Chaff {
    looks: Vec<Ref>,
    caches: Vec<PathBuf>,
    trash: Vec<PathBuf>,
}

/// The refs of all runs. To be read before the list of runs: a run that begins in between then has
/// no refs here, instead of refs without a run.
pub fn standing(context: &Context) -> Vec<Ref> {
    if context.project.git_dir.is_none() {
        return Vec::new();
    }
    let found = refs::list(&context.project.root, refs::PREFIX);
    found.unwrap_or_else(|error| {
        ui::say(format!("warning: snapshots are kept: {error}"));
        Vec::new()
    })
}

/// The refs of one run.
pub fn of_run(all: &[Ref], run_id: &str) -> Vec<Ref> {
    starting_with(all, &refs::run_prefix(run_id)).cloned().collect()
}

/// The refs whose names start with a prefix; git lists them by name.
pub fn starting_with<'a>(all: &'a [Ref], prefix: &'a str) -> impl Iterator<Item = &'a Ref> {
    let from = all.partition_point(|r| r.name.as_str() < prefix);
    all[from..].iter().take_while(move |r| r.name.starts_with(prefix))
}

/// What the snapshots of runs that go take beyond all that stays; `going` are their refs.
pub fn measure(context: &Context, all: &[Ref], going: &[Vec<Ref>], gone: &mut Gone) {
    let going: Vec<&[Ref]> = going.iter().map(Vec::as_slice).collect();
    let names: BTreeSet<&str> = going.iter().copied().flatten().map(|r| r.name.as_str()).collect();
    let staying: Vec<&Ref> = all.iter().filter(|r| !names.contains(r.name.as_str())).collect();
    // What git can't tell is not said.
    let bytes = snapshot::shares(&context.project.root, &going, &staying).unwrap_or_default();
    let shown = gone.runs.iter_mut().map(|run| &mut run.snapshot_bytes);
    let shown = shown.chain(gone.snapshots.iter_mut().map(|orphan| &mut orphan.bytes));
    shown.zip(bytes).for_each(|(shown, bytes)| *shown = bytes);
}

/// Snapshots of runs that the ledger does not know any more, with the refs of each.
pub fn orphans(context: &Context, all: &[Ref], runs: &[Candidate]) -> (Vec<Orphan>, Vec<Vec<Ref>>) {
    let known: BTreeSet<String> = runs.iter().map(|run| refs::component(&run.row.run_id)).collect();
    let mut orphans: BTreeMap<&str, Vec<Ref>> = BTreeMap::new();
    for found in all.iter().filter(|_| context.project.git_dir.is_some()) {
        let rest = found.name.strip_prefix(refs::PREFIX).unwrap_or_default();
        if let Some((run, _)) = rest.split_once('/').filter(|(run, _)| !known.contains(*run)) {
            orphans.entry(run).or_default().push(found.clone());
        }
    }
    let orphan = |(run, refs): (&str, _)| (Orphan { run_id: run.to_owned(), bytes: 0 }, refs);
    orphans.into_iter().map(orphan).unzip()
}

/// Worktrees of ours whose run is not kept; what is not committed in one keeps it.
pub fn trees(context: &Context, runs: &[Candidate], doomed: &BTreeSet<&str>) -> Vec<Tree> {
    if context.project.git_dir.is_none() {
        return Vec::new();
    }
    let ids = runs.iter().map(|run| run.row.run_id.as_str());
    let kept: BTreeSet<&str> = ids.filter(|run_id| !doomed.contains(run_id)).collect();
    let root = &context.project.root;
    let entries = worktree::list(root).unwrap_or_else(|error| {
        ui::say(format!("warning: worktrees are kept: {error}"));
        Vec::new()
    });
    let mut found: Vec<Tree> = Vec::new();
    // Those of tasks lie within that of their lane, and go first.
    let mut entries = entries;
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.path.components().count()));
    for entry in entries {
        let Some((run_id, lane)) = entry.ours.filter(|(run_id, _)| !kept.contains(run_id.as_str()))
        else {
            continue;
        };
        let path = entry.path;
        if root.starts_with(&path) {
            ui::say(format!("the worktree {} is kept: you are working in it", path.display()));
        } else if path.is_dir() && !is_clean_beside(&path, &found) {
            let shown = path.display();
            ui::say(format!("the worktree {shown} is kept: it has uncommitted changes"));
        } else if path.is_dir() && !history::is_named(&path) {
            let shown = path.display();
            ui::say(format!("the worktree {shown} is kept: its commits are not on a branch"));
        } else if path.is_dir()
            && !missed::submodules_only_here(&path).is_ok_and(|only| only.is_empty())
        {
            let shown = path.display();
            ui::say(format!(
                "the worktree {shown} is kept: its submodules have content that exists nowhere else"
            ));
        } else {
            found.push(Tree { path, run_id, lane });
        }
    }
    found
}

/// Whether all in a work tree is committed.
pub fn is_clean(dir: &Path) -> bool {
    is_clean_beside(dir, &[])
}

/// The same, but for worktrees within it that go too.
fn is_clean_beside(dir: &Path, going: &[Tree]) -> bool {
    let goes = |name: &String| {
        let path = dir.join(name.trim_end_matches('/'));
        going.iter().any(|tree| tree.path == path)
    };
    history::uncommitted(dir).is_ok_and(|all| all.iter().all(goes))
}

/// Deletes the snapshots of runs that are gone; what can't go now goes with the next gc. All at once:
/// each deletion may write the list of all packed refs anew.
pub fn delete_refs(context: &Context, runs: &[Vec<Ref>]) {
    let root = &context.project.root;
    if refs::delete(root, &runs.concat()).is_ok() {
        return;
    }
    // One that moved meanwhile keeps only its own run's.
    for refs in runs {
        if let Err(error) = refs::delete(root, refs) {
            ui::say(format!("warning: snapshots of a deleted run could not be deleted: {error}"));
        }
    }
}

/// Removes a worktree without a run; says why where it can't go.
pub fn remove_tree(context: &Context, tree: &Tree) -> bool {
    let root = &context.project.root;
    let gone = Fence::current(root, &tree.run_id)
        .map_err(|e| e.to_string())
        .and_then(|f| worktree::remove(root, &tree.path, &f).map_err(|e| e.to_string()));
    if let Err(why) = &gone {
        ui::say(format!("the worktree {} is kept: {why}", tree.path.display()));
    }
    gone.is_ok()
}

/// Finds what can go without a question.
pub fn chaff(context: &Context, store: &mut Store, all: &[Ref], runs: &[Candidate]) -> Chaff {
    if context.project.git_dir.is_none() {
        return Chaff::default();
    }
    let root = &context.project.root;
    let mut found =
        Chaff { trash: worktree::trash_folders(root).unwrap_or_default(), ..Chaff::default() };
    let mut dirs: Vec<PathBuf> = vec![root.clone()];
    dirs.extend(worktree::list(root).into_iter().flatten().map(|entry| entry.path));
    for run in runs {
        let Ok(loaded) = store.load_row(run.row.clone()) else {
            // Unknown is what it needs: everything stays.
            return Chaff { trash: found.trash, ..Chaff::default() };
        };
        let state = &loaded.state;
        dirs.push(PathBuf::from(&state.root));
        let works = state.lanes().filter_map(|(_, lane)| lane.work.as_ref());
        dirs.extend(works.filter(|w| !w.is_removed()).map(|w| PathBuf::from(&w.dir)));
        found.looks.extend(old_looks(root, &of_run(all, &run.row.run_id), state, now()));
    }
    found.caches = vanished(&context.project.state_dir.join(crate::drive::CACHE_DIR), &dirs);
    found
}

/// Looks that are old, and that no checkpoint of the run was made from.
fn old_looks(root: &Path, refs: &[Ref], state: &RunState, now: Timestamp) -> Vec<Ref> {
    let old = |r: &&Ref| {
        let age = r.committed_at.map_or(0, |at| now.0.div_euclid(1000).saturating_sub(at));
        r.name.contains(LOOK) && age > LOOK_AGE_SECS_MAX
    };
    let looks: Vec<&Ref> = refs.iter().filter(old).collect();
    if looks.is_empty() {
        return Vec::new();
    }
    let recorded = format!("{state:?}");
    let unused = |r: &&&Ref| {
        let chain = history::commits(root, &r.value);
        chain.is_ok_and(|chain| !chain.iter().any(|commit| recorded.contains(commit)))
    };
    looks.iter().filter(unused).map(|r| (*r).clone()).collect()
}

/// The stat caches of work trees that are not there any more.
fn vanished(cache: &Path, dirs: &[PathBuf]) -> Vec<PathBuf> {
    // The root is named with a slash at its end, as joining an empty path leaves it.
    let names = |dir: &PathBuf| [dir.clone(), dir.join("")];
    let hash = |dir: PathBuf| Sha::of(dir.as_os_str().as_encoded_bytes()).0;
    let there = |dir: &&PathBuf| dir.is_dir();
    let used: BTreeSet<String> = dirs.iter().filter(there).flat_map(names).map(hash).collect();
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let is_cache =
        |name: &str| name.len() == CACHE_NAME_LEN && name.bytes().all(|b| b.is_ascii_hexdigit());
    let unused = |e: &std::fs::DirEntry| {
        e.file_name().to_str().is_some_and(|name| is_cache(name) && !used.contains(name))
    };
    entries.filter(unused).map(|e| e.path()).collect()
}

impl Chaff {
    /// What files of it take.
    pub fn bytes(&self) -> u64 {
        self.caches.iter().chain(&self.trash).map(|path| bytes_in(path)).sum()
    }

    /// How many things there are.
    pub fn count(&self) -> usize {
        self.looks.len() + self.caches.len() + self.trash.len()
    }

    /// Deletes it; what can't go now goes with the next gc.
    pub fn delete(&self, context: &Context) {
        let root = &context.project.root;
        if let Err(error) = refs::delete(root, &self.looks) {
            ui::say(format!("warning: temporary snapshots could not be deleted: {error}"));
        }
        for cache in &self.caches {
            let _ = std::fs::remove_file(cache);
        }
        if context.project.git_dir.is_some()
            && let Err(error) = worktree::empty_trash(root)
        {
            ui::say(format!("warning: the trash could not be emptied: {error}"));
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    /// Lost: the cache of a work tree that is in use would be made anew again and again, or those of
    /// removed worktrees would stay for ever.
    #[test]
    fn only_caches_of_vanished_work_trees_go() {
        let scratch = tempfile::tempdir().unwrap();
        let cache = scratch.path().join("cache");
        let (there, gone) = (scratch.path().join("there"), scratch.path().join("gone"));
        std::fs::create_dir_all(&cache).unwrap();
        std::fs::create_dir(&there).unwrap();
        let named = |dir: &Path| {
            let name = Sha::of(dir.as_os_str().as_encoded_bytes()).0;
            std::fs::write(cache.join(&name), "x").unwrap();
            cache.join(name)
        };
        let (_, _, old) = (named(&there), named(&there.join("")), named(&gone));
        std::fs::write(cache.join("packs"), "").unwrap();
        assert_eq!(vanished(&cache, &[there, gone]), [old]);
    }
}

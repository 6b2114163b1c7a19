//! A snapshot before it is written: walk, contents, trees, side, with the objects in hand.
//!
//! Dropped, it leaves nothing behind.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags};

use super::cache::{self, Cache, FolderRecord, Head};
use super::codec::Writer;
use super::settings::{self, Settings};
use super::stat::{Stat, now_ns};
use super::trees::{self, Line};
use super::visit::is_rules;
use super::walk::{Body, Folder, Walk};
use super::{Error, Rules, Workspace, attributes, content, convert, side};
use crate::files::{os_path, sync};
use crate::git::{Git, is_ancestor};
use crate::index::{Index, Tracked};
use crate::objects::{self, FILE, GITLINK, Objects, Oid, Packs, TREE, Written};
use crate::repo::Repo;

/// Changed files from which it pays to look up what the repository already has.
const LOOKUP_MIN: usize = 1000;
/// Below this many bytes in few files even a first snapshot writes them again: reading the indexes of
/// all packs costs more.
const UNSEEN_BYTES_MAX: u64 = 1 << 18;
const UNSEEN_MAX: usize = 32;

/// The state of a work tree, not yet written.
pub(crate) struct Capture {
    pub(crate) repo: Repo,
    pub(crate) head: Head,
    cache: Option<Arc<Cache>>,
    folders: Vec<Folder>,
    trees: Vec<Oid>,
    /// Files that hold something else than in the last snapshot.
    changed: Vec<Vec<u8>>,
    objects: Option<Objects>,
    started: i64,
    /// The cache on disk says something else.
    stale: bool,
    /// The anchor's ref was seen to name the anchor's commit.
    anchored: bool,
}

/// What one snapshot leaves to the next of the same work tree.
#[derive(Clone)]
pub(crate) struct Known {
    repo: Repo,
    cache: Arc<Cache>,
}

/// What was last found in another work tree.
#[derive(Clone)]
pub(crate) struct Sibling {
    pub(crate) repo: Repo,
    pub(crate) settings: Arc<Settings>,
    /// Its last snapshot, if that is small.
    pub(crate) known: Option<Known>,
}

impl Sibling {
    /// The settings, if they hold for a work tree too.
    fn settings(&self, of: &Repo) -> Option<Arc<Settings>> {
        self.settings.hold_in_sibling(&self.repo, of).then(|| self.settings.clone())
    }

    /// Objects that the repository of a work tree holds for good because of a snapshot elsewhere.
    fn objects(&self, of: &Repo) -> HashSet<Oid> {
        let known = self.known.as_ref().filter(|k| k.repo.common == of.common && k.stands());
        known.map(|k| k.cache.objects()).unwrap_or_default()
    }
}

impl Known {
    /// Whether the repository still holds the last snapshot: not if it was replaced in the meantime.
    fn stands(&self) -> bool {
        let (name, commit) = &self.cache.head.anchor;
        self.repo.value(name).as_deref() == Some(commit)
    }

    /// Bytes held.
    pub(crate) fn size(&self) -> usize {
        self.cache.size()
    }
}

impl Capture {
    /// Looks at a work tree, with what was known of it, and of another one of the repository; none
    /// of that is believed unchecked.
    pub(crate) fn new(
        workspace: &Workspace,
        rules: &Rules,
        known: Option<Known>,
        sibling: Option<&Sibling>,
    ) -> Result<Self, Error> {
        let started = now_ns();
        refuse(workspace, rules)?;
        let standing = known.filter(Known::stands);
        let mut is_anchored = standing.is_some();
        let (repo, cache) = match standing {
            Some(Known { repo, cache }) => (repo, Some(cache)),
            None => (settings::open(&workspace.dir)?, Cache::load(&workspace.cache).map(Arc::new)),
        };
        let settings = match cache.as_ref().map(|c| &c.head.settings).filter(|s| s.holds()) {
            Some(settings) => settings.clone(),
            None => match sibling.and_then(|other| other.settings(&repo)) {
                Some(settings) => settings,
                None => Settings::load(&repo, started)?.into(),
            },
        };
        if let Some(format) = settings.format.clone() {
            return Err(Error::Format { format });
        }
        let cache = cache.filter(|c| is_anchored || anchored(&repo, c));
        is_anchored &= cache.is_some();
        let mut objects = Objects::new(&repo.objects());
        if let (None, Some(other)) = (&cache, sibling) {
            objects.there.held = other.objects(&repo);
        }
        let mut capture = Self {
            head: head_of(&repo, rules, settings, cache.as_deref()),
            objects: Some(objects),
            repo,
            cache,
            folders: Vec::new(),
            trees: Vec::new(),
            changed: Vec::new(),
            started,
            stale: true,
            anchored: is_anchored,
        };
        capture.scan(workspace, rules)?;
        Ok(capture)
    }

    fn scan(&mut self, workspace: &Workspace, rules: &Rules) -> Result<(), Error> {
        let top = open_top(&self.repo)?;
        let before = self.cache.as_ref().map(|c| &c.head);
        let index_changed = before.is_none_or(|b| b.index != self.head.index);
        let reconsider = before.is_none_or(|b| {
            b.rules != self.head.rules
                || b.ignores != self.head.ignores
                || b.settings.ignores != self.head.settings.ignores
                || b.settings.file_mode != self.head.settings.file_mode
                || b.settings.sparse != self.head.settings.sparse
        });
        let index = OnceLock::new();
        if index_changed || reconsider {
            let read = Index::read(&self.repo.root, &self.repo.index())?;
            let listed = |keep: &dyn Fn(&Tracked) -> bool| {
                read.entries.iter().filter(|t| keep(t)).cloned().collect::<Vec<_>>()
            };
            self.head.links = listed(&|t| t.mode == GITLINK);
            let sparse = self.head.settings.sparse;
            let absent = |t: &Tracked| {
                t.mode != GITLINK && ((sparse && t.skipped) || rules.excludes(&t.path))
            };
            self.head.absent = listed(&absent);
            let _ = index.set(Ok(read));
        }
        let walk = Walk {
            repo: &self.repo,
            rules,
            cache: self.cache.as_deref(),
            head: &self.head,
            reconsider,
            index_changed,
            index,
            top,
            files: AtomicUsize::new(0),
            vanished: false.into(),
        };
        let mut folders = walk.run()?;
        attributes::reconsider(&walk, &mut folders);
        let same_absent = before.is_some_and(|b| b.absent == self.head.absent);
        let reuse = same_absent && !walk.vanished.load(std::sync::atomic::Ordering::Relaxed);
        let known = self.cache.as_deref().filter(|_| same_absent);
        trees::add_absent(&mut folders, &self.head.absent, known);
        let untouched = !reconsider && !index_changed && reuse;
        if untouched && folders.iter().all(|f| matches!(f.body, Body::Same(_))) {
            let known = before.is_some_and(|b| b.settings == self.head.settings);
            self.stale = !known || self.cache.as_ref().is_none_or(|c| c.len() != folders.len());
            if !self.stale {
                // Nothing changed: ids stand as they are.
                self.folders = folders;
                return Ok(());
            }
        }
        let Some(mut objects) = self.objects.take() else { return Ok(()) };
        let listed = folders.iter().filter_map(|f| match &f.body {
            Body::Listed(entries) => Some(entries),
            Body::Same(_) => None,
        });
        let dirty = listed.flatten().filter(|e| e.dirty);
        let (count, bytes) = dirty.fold((0, 0), |(n, sum), e| (n + 1, sum + e.stat.size));
        let small = is_few((count, bytes));
        if count >= LOOKUP_MIN || (self.cache.is_none() && !small) {
            objects.there.packs = Some(Packs::open(&self.repo.objects()));
        }
        self.changed = content::read_all(&walk, &mut folders, &mut objects, &scratch(workspace))?;
        let cache = self.cache.as_deref();
        let trees = trees::build(&folders, cache, &self.head.absent, reuse, &mut objects)?;
        let side = side::collect(&folders, cache, &trees);
        self.head.files = walk.files.into_inner();
        (self.folders, self.trees) = (folders, trees);
        self.put_root(side, objects)
    }

    /// The top of a snapshot: what git would commit, and the side.
    fn put_root(&mut self, side: side::Side, mut objects: Objects) -> Result<(), Error> {
        let tree = self.trees.first().copied().unwrap_or_default();
        let manifest = NewObject::new(objects::Kind::Blob, side.manifest.encode());
        let mut lines = vec![line("manifest", FILE, manifest.oid)];
        if let Some(raw) = trees::nest(&side.raw, &mut objects)? {
            lines.push(line("raw", TREE, raw));
        }
        let beside = NewObject::new(objects::Kind::Tree, trees::encode(lines));
        let lines = vec![line("side", TREE, beside.oid), line("tree", TREE, tree)];
        let root = NewObject::new(objects::Kind::Tree, trees::encode(lines));
        // A top that is held holds all below it.
        if root.oid != self.head.root && !objects.there.held.contains(&root.oid) {
            for new in [&manifest, &beside, &root] {
                objects.put(new.kind, &new.data)?;
            }
        }
        self.head.root = root.oid;
        self.head.tree = tree;
        self.head.missed = side.manifest.missed;
        self.objects = Some(objects);
        Ok(())
    }

    /// The last snapshot of a chain.
    pub(crate) fn tip(&self, chain: &str) -> Option<String> {
        let (name, commit) = &self.head.anchor;
        if self.anchored && name == chain {
            return Some(commit.clone());
        }
        self.repo.value(chain)
    }

    /// The whole tree of an earlier snapshot.
    pub(crate) fn root_of(&self, commit: &str) -> Result<Option<Oid>, Error> {
        if let Some(last) = self.cache.as_ref().filter(|cache| cache.head.anchor.1 == commit) {
            return Ok(Some(last.head.root));
        }
        let name = format!("{commit}^{{tree}}");
        if let Some(tree) = self.repo.value(&name) {
            return Ok(Oid::from_hex(tree.as_bytes()));
        }
        let text = Git::at(&self.repo.root).args(["rev-parse", "--verify", &name]).text()?;
        Ok(Oid::from_hex(text.as_bytes()))
    }

    /// Adds the commit.
    pub(crate) fn put_commit(&mut self, data: &[u8]) -> Result<String, Error> {
        let objects = self.objects.get_or_insert_with(|| Objects::new(&self.repo.objects()));
        Ok(objects.put(objects::Kind::Commit, data)?.to_string())
    }

    /// Makes the files durable that changed since the last snapshot, where they lie: what a step made
    /// is not put back after a power cut, and whoever goes on must find it.
    pub(crate) fn sync_changed(&self) -> Result<(), Error> {
        let paths = self.changed.iter().map(|path| os_path(path));
        sync::contents(&self.repo.root, &paths.collect::<Vec<_>>())
            .map_err(|e| Error::file(&self.repo.root, e))
    }

    /// Whether no object has to be written.
    pub(crate) fn has_nothing_new(&self) -> bool {
        self.objects.as_ref().is_none_or(Objects::is_empty)
    }

    /// Makes all new objects durable.
    pub(crate) fn finish_objects(&mut self) -> Result<Option<Written>, Error> {
        Ok(self.objects.take().map(Objects::finish).transpose()?.flatten())
    }

    /// Keeps the cache, now that a commit holds what it names; failing only costs time later.
    pub(crate) fn keep(
        mut self,
        chain: &str,
        commit: &str,
        workspace: &Workspace,
    ) -> Option<Known> {
        let anchor = (chain.to_owned(), commit.to_owned());
        if !self.stale && self.head.anchor == anchor {
            return self.cache.map(|cache| Known { repo: self.repo, cache });
        }
        self.head.anchor = anchor;
        let settle = |stamp: &mut Option<Stat>| *stamp = stamp.map(|s| s.settled(self.started));
        self.head.ignores.iter_mut().for_each(settle);
        self.head.attributes.iter_mut().for_each(settle);
        settle(&mut self.head.index);
        let blocks: Vec<Option<Vec<u8>>> = self.folders.iter().map(|f| self.block(f)).collect();
        let folders: Vec<FolderRecord<&[u8]>> = self
            .folders
            .iter()
            .zip(&blocks)
            .enumerate()
            .map(|(at, (folder, block))| self.out(at, folder, block.as_deref()))
            .collect();
        let data = cache::encode(&self.head, &folders);
        if !self.is_soon_read() && self.folders.iter().any(|f| self.is_worth_keeping(f)) {
            let _ = cache::save(&workspace.cache, &data);
        }
        drop(folders);
        Cache::decode(data).map(|cache| Known { repo: self.repo, cache: cache.into() })
    }

    /// Whether this is the worktree of a lane, and so small that reading it again after a crash takes
    /// no longer than writing down what is known of it.
    fn is_soon_read(&self) -> bool {
        let mut all = (0, 0);
        let small = self.folders.iter().all(|folder| match &folder.body {
            Body::Same(_) => false,
            Body::Listed(entries) => {
                all = entries.iter().fold(all, |(n, sum), e| (n + 1, sum + e.stat.size));
                is_few(all)
            }
        });
        small && self.repo.git_dir != self.repo.common
    }

    /// Whether the next snapshot could believe anything about a folder: of files that have only just
    /// been written it can't.
    fn is_worth_keeping(&self, folder: &Folder) -> bool {
        let Body::Listed(entries) = &folder.body else { return true };
        entries.iter().any(|e| e.captured() && e.stat.settled(self.started).is_settled())
    }

    fn block(&self, folder: &Folder) -> Option<Vec<u8>> {
        let Body::Listed(entries) = &folder.body else { return None };
        let mut to = Writer::default();
        for entry in entries {
            let mut entry = entry.clone();
            if entry.captured() || is_rules(&entry.name) {
                entry.stat = entry.stat.settled(self.started);
            }
            entry.write(&mut to);
        }
        Some(to.0)
    }

    fn out<'a>(
        &'a self,
        at: usize,
        folder: &'a Folder,
        block: Option<&'a [u8]>,
    ) -> FolderRecord<&'a [u8]> {
        let record = match (&folder.body, &self.cache) {
            (Body::Same(place), Some(cache)) => Some((cache.record(*place), cache.block(*place))),
            _ => None,
        };
        let block = block.or(record.map(|r| r.1)).unwrap_or_default();
        let listed = || match &folder.body {
            Body::Listed(entries) => entries.iter().filter(|e| e.captured()).count(),
            Body::Same(_) => 0,
        };
        FolderRecord {
            path: &folder.path,
            stat: folder.stat.settled(self.started),
            kind: folder.kind,
            tree: self.trees.get(at).copied().or(record.map(|r| r.0.tree)).unwrap_or_default(),
            tracked_only: folder.tracked_only,
            attributes: record
                .map_or_else(|| convert::block_has_attributes(block), |r| r.0.attributes),
            files: record.map_or_else(listed, |r| r.0.files),
            block,
        }
    }
}

/// Whether so many files with so many bytes are read again at no cost.
fn is_few((files, bytes): (usize, u64)) -> bool {
    files <= UNSEEN_MAX && bytes <= UNSEEN_BYTES_MAX
}

/// An object that perhaps need not be written.
struct NewObject {
    kind: objects::Kind,
    oid: Oid,
    data: Vec<u8>,
}

impl NewObject {
    fn new(kind: objects::Kind, data: Vec<u8>) -> Self {
        Self { kind, oid: Oid::hash(kind, &data), data }
    }
}

fn line(name: &str, mode: u32, oid: Oid) -> Line {
    Line { name: name.as_bytes().to_vec(), mode, oid }
}

/// Refuses folders that hold far more than a project.
fn refuse(workspace: &Workspace, rules: &Rules) -> Result<(), Error> {
    let what = if workspace.dir.parent().is_none() {
        "the root of the file system"
    } else if rules.home.as_deref() == Some(workspace.dir.as_path()) {
        "your home folder"
    } else {
        return Ok(());
    };
    // Without the slash that a path may end in.
    Err(Error::NotAProject { dir: workspace.dir.components().collect(), what })
}

/// Whether what a cache names is still held by the ref that held it.
fn anchored(repo: &Repo, cache: &Cache) -> bool {
    let (name, commit) = &cache.head.anchor;
    let value = repo.value(name);
    value.is_some_and(|value| is_ancestor(&repo.root, commit, &value).unwrap_or(false))
}

/// Opens the top of a work tree.
pub(super) fn open_top(repo: &Repo) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, &repo.root, flags, Mode::empty()).map_err(|e| Error::io(&repo.root, e))
}

/// What holds now, with the ids of before.
pub(super) fn head_of(
    repo: &Repo,
    rules: &Rules,
    settings: Arc<Settings>,
    cache: Option<&Cache>,
) -> Head {
    let mut head = cache.map(|c| c.head.clone()).unwrap_or_default();
    head.ignores = settings.ignores.iter().map(|f| Stat::followed(f)).collect();
    head.attributes = settings.attributes.iter().map(|f| Stat::followed(f)).collect();
    head.index = Stat::followed(&repo.index());
    head.settings = settings;
    head.rules = rules.digest();
    head
}

/// A folder for conversions, next to the cache; no other process has the same.
fn scratch(workspace: &Workspace) -> PathBuf {
    let mut name = workspace.cache.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.convert", std::process::id()));
    workspace.cache.with_file_name(name)
}

//! Makes the trees that git would commit, from the leaves up; unchanged folders keep theirs.

use std::collections::HashMap;

use super::cache::Cache;
use super::entry::{FolderKind, Kind, View};
use super::stat::Stat;
use super::walk::{Body, Folder};
use crate::files::{name, parent};
use crate::index::Tracked;
use crate::objects::{self, Error, GITLINK, Objects, Oid, TREE};

/// A line of a tree.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) oid: Oid,
}

/// What a folder is to its parent: nothing, a tree, a submodule.
type Node = Option<(u32, Oid)>;

/// Adds folders that only exist in the index, so that their files have a place.
pub(super) fn add_absent(folders: &mut Vec<Folder>, absent: &[Tracked], cache: Option<&Cache>) {
    let find = |folders: &[Folder], path: &[u8]| {
        folders.binary_search_by(|f| f.path.as_slice().cmp(path)).is_ok()
    };
    let mut missing: Vec<Vec<u8>> = Vec::new();
    for tracked in absent {
        let mut path = parent(&tracked.path);
        while let Some(folder) = path {
            if find(folders, folder) || missing.last().is_some_and(|m| m == folder) {
                break;
            }
            missing.push(folder.to_vec());
            path = parent(folder);
        }
    }
    missing.sort();
    missing.dedup();
    for path in missing {
        let known = cache.and_then(|c| Some((c.folder(&path)?, c)));
        let same = known.filter(|(at, c)| c.record(*at).kind == FolderKind::Absent);
        let body = same.map_or_else(|| Body::Listed(Vec::new()), |(at, _)| Body::Same(at));
        let (stat, kind) = (Stat::default(), FolderKind::Absent);
        folders.push(Folder { path, stat, kind, tracked_only: false, body });
    }
    folders.sort_unstable_by(|a, b| a.path.cmp(&b.path));
}

/// Makes the trees; each folder's id comes back in its place, [`Oid::NONE`] where it has none.
pub(super) fn build(
    folders: &[Folder],
    cache: Option<&Cache>,
    absent: &[Tracked],
    reuse: bool,
    objects: &mut Objects,
) -> Result<Vec<Oid>, Error> {
    let mut extra: HashMap<&[u8], Vec<&Tracked>> = HashMap::new();
    for tracked in absent {
        extra.entry(parent(&tracked.path).unwrap_or_default()).or_default().push(tracked);
    }
    let mut trees = vec![Oid::NONE; folders.len()];
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); folders.len()];
    let mut changed = vec![false; folders.len()];
    let mut nodes: Vec<Node> = vec![None; folders.len()];
    for at in (0..folders.len()).rev() {
        let folder = &folders[at];
        let known = cache.and_then(|c| Some(c.record(c.folder(&folder.path)?)));
        let before: Node = known.and_then(|r| node(r.kind, r.tree));
        let tree = match (&folder.body, known) {
            (Body::Same(_), Some(record)) if reuse && !changed[at] => record.tree,
            _ => {
                let extra = extra.get(folder.path.as_slice()).map_or(&[][..], Vec::as_slice);
                let lines = lines(folder, cache, extra, &below[at], folders, &nodes);
                let was = known.map_or(Oid::NONE, |r| r.tree);
                write(lines, at == 0, was, objects)?
            }
        };
        trees[at] = tree;
        nodes[at] = node(folder.kind, tree);
        if let Some(parent) = parent(&folder.path) {
            let found = folders[..at].binary_search_by(|f| f.path.as_slice().cmp(parent));
            if let Ok(parent) = found {
                below[parent].push(at);
                changed[parent] |= nodes[at] != before;
            }
        }
    }
    Ok(trees)
}

fn node(kind: FolderKind, tree: Oid) -> Node {
    match kind {
        FolderKind::Plain | FolderKind::Absent => (tree != Oid::NONE).then_some((TREE, tree)),
        FolderKind::Submodule(oid) => Some((GITLINK, oid)),
        FolderKind::Nested | FolderKind::Unreadable => None,
    }
}

fn lines(
    folder: &Folder,
    cache: Option<&Cache>,
    extra: &[&Tracked],
    below: &[usize],
    folders: &[Folder],
    nodes: &[Node],
) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut missed: Vec<Vec<u8>> = Vec::new();
    folder.each(cache, |&View { name, kind, oid, .. }| {
        if let Some(mode) = kind.git_mode() {
            lines.push(Line { name: name.to_vec(), mode, oid });
        } else if matches!(kind, Kind::Missed(_)) {
            missed.push(name.to_vec());
        }
    });
    for at in below {
        if let Some((mode, oid)) = nodes[*at] {
            lines.push(Line { name: name(&folders[*at].path).to_vec(), mode, oid });
        }
    }
    for tracked in extra {
        let own = name(&tracked.path);
        if !lines.iter().any(|l| l.name == own) && !missed.iter().any(|m| m == own) {
            lines.push(Line { name: own.to_vec(), mode: tracked.mode, oid: tracked.oid });
        }
    }
    lines
}

/// Writes a tree unless it is empty or was there before; the top always has one.
fn write(lines: Vec<Line>, top: bool, was: Oid, objects: &mut Objects) -> Result<Oid, Error> {
    if lines.is_empty() && !top {
        return Ok(Oid::NONE);
    }
    let data = encode(lines);
    let oid = Oid::hash(objects::Kind::Tree, &data);
    if oid == was {
        return Ok(oid);
    }
    objects.put(objects::Kind::Tree, &data)
}

/// A tree's bytes; git sorts folders as if their names ended in a slash.
pub(crate) fn encode(mut lines: Vec<Line>) -> Vec<u8> {
    let key = |line: &Line| {
        let end = (line.mode == TREE).then_some(b'/');
        line.name.iter().copied().chain(end).collect::<Vec<u8>>()
    };
    lines.sort_by_cached_key(key);
    let mut data = Vec::with_capacity(lines.len() * 48);
    for line in &lines {
        data.extend_from_slice(format!("{:o} ", line.mode).as_bytes());
        data.extend_from_slice(&line.name);
        data.push(0);
        data.extend_from_slice(&line.oid.0);
    }
    data
}

/// Makes nested trees of paths; `None` without any.
pub(super) fn nest(
    files: &[(Vec<u8>, u32, Oid)],
    objects: &mut Objects,
) -> Result<Option<Oid>, Error> {
    if files.is_empty() {
        return Ok(None);
    }
    let mut lines = Vec::new();
    let mut at = 0;
    while at < files.len() {
        let (path, mode, oid) = &files[at];
        let Some(slash) = path.iter().position(|b| *b == b'/') else {
            lines.push(Line { name: path.clone(), mode: *mode, oid: *oid });
            at += 1;
            continue;
        };
        let start = path[..=slash].to_vec();
        let end = at + files[at..].iter().take_while(|(p, ..)| p.starts_with(&start)).count();
        let inner: Vec<_> =
            files[at..end].iter().map(|(p, m, o)| (p[slash + 1..].to_vec(), *m, *o)).collect();
        if let Some(oid) = nest(&inner, objects)? {
            lines.push(Line { name: start[..slash].to_vec(), mode: TREE, oid });
        }
        at = end;
    }
    objects.put(objects::Kind::Tree, &encode(lines)).map(Some)
}

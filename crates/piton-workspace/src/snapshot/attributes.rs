//! Whether the attributes of a work tree, or what git does because of them, changed since the cache was
//! made: then what git would make of a file may be something else although the file is the same.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;

use super::cache::Cache;
use super::entry::{Entry, Kind, View};
use super::walk::{Body, Folder, Walk};
use crate::files::join;
use crate::objects::{self, Oid};

/// The file of a folder's attributes.
pub(super) const FILE: &[u8] = b".gitattributes";

/// Each file of attributes with what it says.
type Said = BTreeMap<Vec<u8>, Oid>;

/// Has files read again if their attributes changed; not those that are as they were committed, which git
/// leaves alone too until somebody writes them.
pub(super) fn reconsider(walk: &Walk<'_>, folders: &mut [Folder]) {
    let Some(cache) = walk.cache else { return };
    let (then, now) = (&cache.head, walk.head);
    let same = then.settings.converting == now.settings.converting
        && then.settings.attributes == now.settings.attributes
        && then.attributes == now.attributes;
    if same && said_then(cache) == said_now(walk, cache, folders) {
        return;
    }
    let index = walk.index().ok();
    for folder in folders {
        if let Body::Same(at) = folder.body {
            folder.body = Body::Listed(cache.entries(at));
        }
        let Body::Listed(entries) = &mut folder.body else { continue };
        for entry in entries.iter_mut() {
            let tracked = || index?.get(&join(&folder.path, &entry.name));
            let read = entry.captured() && !entry.dirty && entry.kind != Kind::Link;
            if !read || tracked().is_some_and(|tracked| tracked.oid == entry.oid) {
                continue;
            }
            (entry.oid, entry.raw) = (entry.content(), None);
            (entry.filter_failed, entry.dirty) = (false, true);
        }
    }
}

/// What a file of attributes says that is not captured: it holds all the same.
pub(super) fn ignored(walk: &Walk<'_>, path: &[u8]) -> Oid {
    std::fs::read(walk.full(path)).map_or(Oid::NONE, |data| Oid::hash(objects::Kind::Blob, &data))
}

fn said_then(cache: &Cache) -> Said {
    let with = (0..cache.len()).filter(|at| cache.record(*at).attributes);
    with.filter_map(|at| said_in(cache, at)).collect()
}

fn said_in(cache: &Cache, at: usize) -> Option<(Vec<u8>, Oid)> {
    let own = View::all(cache.block(at)).find(|view| view.name == FILE)?;
    Some((cache.path_at(at).to_vec(), own.raw.unwrap_or(own.oid)))
}

fn said_now(walk: &Walk<'_>, cache: &Cache, folders: &[Folder]) -> Said {
    let said = |folder: &Folder| match &folder.body {
        Body::Same(at) if cache.record(*at).attributes => said_in(cache, *at),
        Body::Same(_) => None,
        Body::Listed(entries) => {
            let own = entries.iter().find(|e| e.name == FILE)?;
            Some((folder.path.clone(), content(walk, folder, own)))
        }
    };
    folders.iter().filter_map(said).collect()
}

/// What an entry holds now, read if the walk could not vouch for it.
fn content(walk: &Walk<'_>, folder: &Folder, own: &Entry) -> Oid {
    if !own.dirty {
        return own.content();
    }
    let path = walk.full(&join(&folder.path, FILE));
    if own.kind == Kind::Link {
        let target = std::fs::read_link(path).unwrap_or_default();
        return Oid::hash(objects::Kind::Blob, target.as_os_str().as_bytes());
    }
    ignored(walk, &join(&folder.path, FILE))
}

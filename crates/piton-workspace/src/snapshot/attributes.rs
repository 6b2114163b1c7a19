//! Whether the attributes of a work tree, or what git does because of them, changed since the cache was
//! made: then what git would make of a file may be something else although the file is the same.

use std::collections::BTreeMap;

use super::cache::Cache;
use super::entry::{Kind, View};
use super::stat::Stat;
use super::walk::{Body, Folder, Walk};
use crate::files::join;

/// The file of a folder's attributes.
pub(super) const FILE: &[u8] = b".gitattributes";

/// The folders with a file of attributes, and its stamp.
type Stamps = BTreeMap<Vec<u8>, Stat>;

/// Has files read again if their attributes changed; not those that are as they were committed, which git
/// leaves alone too until somebody writes them.
pub(super) fn reconsider(walk: &Walk<'_>, folders: &mut [Folder]) {
    let Some(cache) = walk.cache else { return };
    let (then, now) = (&cache.head, walk.head);
    let same = then.settings.converting == now.settings.converting
        && then.settings.attributes == now.settings.attributes
        && then.attributes == now.attributes;
    if same && stamps_then(cache) == stamps_now(cache, folders) {
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

fn stamps_then(cache: &Cache) -> Stamps {
    (0..cache.len()).filter_map(|at| known(cache, at)).collect()
}

fn stamps_now(cache: &Cache, folders: &[Folder]) -> Stamps {
    let stamp = |folder: &Folder| match &folder.body {
        Body::Same(at) => known(cache, *at),
        Body::Listed(entries) => {
            let own = entries.iter().find(|e| e.name == FILE)?;
            Some((folder.path.clone(), own.stat))
        }
    };
    folders.iter().filter_map(stamp).collect()
}

fn known(cache: &Cache, at: usize) -> Option<(Vec<u8>, Stat)> {
    if !cache.record(at).attributes {
        return None;
    }
    let own = View::all(cache.block(at)).find(|view| view.name == FILE)?;
    Some((cache.path_at(at).to_vec(), own.stat))
}

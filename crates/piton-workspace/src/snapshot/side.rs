//! The side of a snapshot: what git's tree cannot hold, so that a restore is exact.
//!
//! `side/raw/PATH` has the bytes on disk of files that git would convert. `side/manifest` is text: the
//! usual permissions, those that differ, folders without a captured file, and what was missed.
//! Paths in it are as they are, but for bytes that would break a line (`%0A`).

use std::collections::{BTreeMap, BTreeSet};

use super::Missed;
use super::cache::Cache;
use super::entry::{FolderKind, Kind, View, Why};
use super::walk::Folder;
use crate::files::{join, parent};
use crate::objects::Oid;

const HEADER: &str = "piton-side 1";

/// What permissions are usual for; symbolic links have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    File,
    Exec,
    Folder,
}

impl Class {
    const ALL: [(Self, &'static str, u32); 3] =
        [(Self::File, "file", 0o644), (Self::Exec, "exec", 0o755), (Self::Folder, "folder", 0o755)];

    fn new(kind: Kind) -> Option<Self> {
        match kind {
            Kind::File => Some(Self::File),
            Kind::Exec => Some(Self::Exec),
            _ => None,
        }
    }

    fn tag(self) -> &'static str {
        Self::ALL.into_iter().find(|row| row.0 == self).map_or("file", |row| row.1)
    }

    fn from_tag(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|row| row.1 == tag).map(|row| row.0)
    }

    fn usual(self) -> u32 {
        Self::ALL.into_iter().find(|row| row.0 == self).map_or(0o644, |row| row.2)
    }
}

/// What `side/manifest` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    usual: BTreeMap<Class, u32>,
    pub(crate) modes: BTreeMap<Vec<u8>, (Class, u32)>,
    pub(crate) folders: BTreeSet<Vec<u8>>,
    pub(crate) missed: Vec<Missed>,
}

impl Manifest {
    /// The permissions of a path of a class.
    pub(crate) fn perm(&self, path: &[u8], class: Class) -> u32 {
        match self.modes.get(path) {
            Some((found, perm)) if *found == class => *perm,
            _ => self.usual(class),
        }
    }

    fn usual(&self, class: Class) -> u32 {
        self.usual.get(&class).copied().unwrap_or_else(|| class.usual())
    }

    /// Whether both mean the same by a path that neither names.
    pub(crate) fn same_usual(&self, other: &Self) -> bool {
        Class::ALL.into_iter().all(|(class, ..)| self.usual(class) == other.usual(class))
    }

    /// As text.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut text = format!("{HEADER}\n").into_bytes();
        let mut line = |words: String, path: &[u8]| {
            text.extend_from_slice(words.as_bytes());
            text.extend_from_slice(&escape(path));
            text.push(b'\n');
        };
        for (class, ..) in Class::ALL {
            line(format!("usual {} {:o}", class.tag(), self.usual(class)), b"");
        }
        for (path, (class, perm)) in &self.modes {
            line(format!("mode {} {perm:o} ", class.tag()), path);
        }
        for path in &self.folders {
            line("folder ".to_owned(), path);
        }
        for missed in &self.missed {
            line(format!("missed {} ", missed.why.tag()), &missed.path);
        }
        text
    }

    /// From text; `None` if it is none of ours. Lines that are not known are passed over.
    pub(crate) fn decode(text: &[u8]) -> Option<Self> {
        let mut lines = text.split(|b| *b == b'\n');
        if lines.next()? != HEADER.as_bytes() {
            return None;
        }
        let mut found = Self::default();
        for line in lines {
            let words: Vec<&[u8]> = line.splitn(2, |b| *b == b' ').collect();
            let &[tag, rest] = words.as_slice() else { continue };
            match tag {
                b"usual" => found.usual.extend(class(rest).map(|(c, perm, _)| (c, perm))),
                b"mode" => found.modes.extend(class(rest).map(|(c, perm, path)| (path, (c, perm)))),
                b"folder" => found.folders.extend([unescape(rest)]),
                b"missed" => {
                    let mut words = rest.splitn(2, |b| *b == b' ');
                    let (why, path) = (words.next()?, words.next().unwrap_or_default());
                    let why = Why::from_tag(&String::from_utf8_lossy(why));
                    found.missed.push(Missed { path: unescape(path), why });
                }
                _ => {}
            }
        }
        Some(found)
    }
}

/// Reads `CLASS PERMISSIONS [PATH]`.
fn class(text: &[u8]) -> Option<(Class, u32, Vec<u8>)> {
    let mut words = text.splitn(3, |b| *b == b' ');
    let class = Class::from_tag(std::str::from_utf8(words.next()?).ok()?)?;
    let perm = u32::from_str_radix(std::str::from_utf8(words.next()?).ok()?, 8).ok()?;
    Some((class, perm, unescape(words.next().unwrap_or_default())))
}

fn escape(path: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(path).is_ok();
    let mut escaped = Vec::with_capacity(path.len());
    for byte in path {
        if *byte < b' ' || *byte == b'%' || *byte == 0x7f || (*byte >= 0x80 && !text) {
            escaped.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            escaped.push(*byte);
        }
    }
    escaped
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let code = text.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if text[at] == b'%' => {
                path.push(byte);
                at += 3;
            }
            _ => {
                path.push(text[at]);
                at += 1;
            }
        }
    }
    path
}

/// The side of a whole work tree.
#[derive(Default)]
pub(super) struct Side {
    pub(super) manifest: Manifest,
    /// Sorted by path.
    pub(super) raw: Vec<(Vec<u8>, u32, Oid)>,
}

/// Collects it.
pub(super) fn collect(folders: &[Folder], cache: Option<&Cache>, trees: &[Oid]) -> Side {
    let mut side = Side::default();
    let mut counts: BTreeMap<(Class, u32), usize> = BTreeMap::new();
    for folder in folders {
        if !folder.path.is_empty() && folder.kind == FolderKind::Plain {
            *counts.entry((Class::Folder, folder.stat.perm())).or_default() += 1;
        }
        folder.each(cache, |&View { name, kind, stat, raw, filter_failed, .. }| {
            if let Some(class) = Class::new(kind) {
                *counts.entry((class, stat.perm())).or_default() += 1;
            }
            let why = match kind {
                Kind::Missed(why) => Some(why),
                _ if filter_failed => Some(Why::Filter),
                _ => None,
            };
            if why.is_some() || raw.is_some() {
                let path = join(&folder.path, name);
                if let (Some(raw), Some(mode)) = (raw, kind.git_mode()) {
                    side.raw.push((path.clone(), mode, raw));
                }
                side.manifest.missed.extend(why.map(|why| Missed { path, why }));
            }
        });
        if let Some(why) = folder.kind.missed() {
            side.manifest.missed.push(Missed { path: folder.path.clone(), why });
        }
    }
    side.raw.sort_unstable();
    side.manifest.missed.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    for (class, ..) in Class::ALL {
        let of_class = counts.iter().filter(|((c, _), _)| *c == class);
        if let Some(((_, perm), _)) = of_class.max_by_key(|(_, count)| **count) {
            side.manifest.usual.insert(class, *perm);
        }
    }
    if counts.len() > side.manifest.usual.len() {
        unusual(folders, cache, &mut side.manifest);
    }
    side.manifest.folders = bare(folders, trees);
    side
}

fn unusual(folders: &[Folder], cache: Option<&Cache>, manifest: &mut Manifest) {
    let mut modes = BTreeMap::new();
    for folder in folders {
        let perm = folder.stat.perm();
        let plain = !folder.path.is_empty() && folder.kind == FolderKind::Plain;
        if plain && perm != manifest.usual(Class::Folder) {
            modes.insert(folder.path.clone(), (Class::Folder, perm));
        }
        folder.each(cache, |&View { name, kind, stat, .. }| {
            if let Some(class) = Class::new(kind).filter(|c| stat.perm() != manifest.usual(*c)) {
                modes.insert(join(&folder.path, name), (class, stat.perm()));
            }
        });
    }
    manifest.modes = modes;
}

/// Folders that the tree does not imply; of nested ones the innermost implies the others.
fn bare(folders: &[Folder], trees: &[Oid]) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    let mut implied: BTreeSet<&[u8]> = BTreeSet::new();
    for (folder, tree) in folders.iter().zip(trees).rev() {
        let plain = folder.kind == FolderKind::Plain && !folder.path.is_empty();
        if !plain || *tree != Oid::NONE {
            continue;
        }
        // A folder whose files are only taken when tracked is ignored itself.
        if !implied.contains(folder.path.as_slice()) && !folder.tracked_only {
            found.insert(folder.path.clone());
        }
        implied.extend(parent(&folder.path));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_survives_odd_names() {
        let usual = [(Class::File, 0o664), (Class::Exec, 0o755), (Class::Folder, 0o755)].into();
        let mut manifest = Manifest { usual, ..Manifest::default() };
        manifest.modes.insert(b"a %\nb\xff".to_vec(), (Class::File, 0o600));
        manifest.folders.insert("dir with ü".as_bytes().to_vec());
        manifest.missed.push(Missed { path: b"x y".to_vec(), why: Why::TooLarge });
        assert_eq!(Manifest::decode(&manifest.encode()), Some(manifest));
        assert_eq!(Manifest::decode(b"something else\n"), None);
    }
}

//! The stat cache of one work tree: what each folder held, and the ids of what was read.
//!
//! It only saves time. It is written without a sync, checked by length and checksum, and made again
//! whenever it does not fit. Each folder is one block that does not refer to the others, so an
//! unchanged folder is copied as it is. Ids in it are used only while the snapshot that named them
//! is still held by its ref (the anchor).

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Missed;
use super::codec::{Reader, Writer};
use super::entry::{Entry, FolderKind, View, Why};
use super::settings::Settings;
use super::stat::Stat;
use crate::index::Tracked;
use crate::objects::Oid;

/// Raised whenever the layout below changes.
const MAGIC: &[u8; 8] = b"PITONST7";
const HEADER: usize = 8 + 8 + 4;
/// Up to here a cache is written over the one before: some hundred files, read again in milliseconds
/// if the cache is torn.
const OVER_BYTES_MAX: usize = 1 << 16;

/// What holds for the whole work tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) settings: Arc<Settings>,
    /// A digest of the rules that the caller set.
    pub(crate) rules: Oid,
    /// Stamps of the ignore files that hold everywhere.
    pub(crate) ignores: Vec<Option<Stat>>,
    /// Stamps of the files of attributes that hold everywhere.
    pub(crate) attributes: Vec<Option<Stat>>,
    pub(crate) index: Option<Stat>,
    /// Tracked, but left out by a sparse checkout or excluded by the caller.
    pub(crate) absent: Vec<Tracked>,
    /// Submodules.
    pub(crate) links: Vec<Tracked>,
    /// The ref and commit that hold everything named here.
    pub(crate) anchor: (String, String),
    /// The tree of the whole snapshot, and what git would commit.
    pub(crate) root: Oid,
    pub(crate) tree: Oid,
    /// What was not captured.
    pub(crate) missed: Vec<Missed>,
    pub(crate) files: usize,
}

impl Head {
    fn write(&self, to: &mut Writer) {
        self.settings.write(to);
        to.oid(self.rules);
        for stamps in [&self.ignores, &self.attributes] {
            to.len(stamps.len());
            for stamp in stamps {
                to.stamp(stamp.as_ref());
            }
        }
        to.stamp(self.index.as_ref());
        for list in [&self.absent, &self.links] {
            to.len(list.len());
            for entry in list {
                to.bytes(&entry.path);
                to.u32(entry.mode);
                to.oid(entry.oid);
                to.u8(u8::from(entry.skipped));
            }
        }
        to.bytes(self.anchor.0.as_bytes());
        to.bytes(self.anchor.1.as_bytes());
        to.oid(self.root);
        to.oid(self.tree);
        to.len(self.missed.len());
        for missed in &self.missed {
            to.bytes(missed.why.tag().as_bytes());
            to.bytes(&missed.path);
        }
        to.u64(self.files as u64);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let mut head = Self { settings: Settings::read(from)?.into(), ..Self::default() };
        head.rules = from.oid()?;
        for stamps in [&mut head.ignores, &mut head.attributes] {
            for _ in 0..from.len()? {
                stamps.push(from.stamp()?);
            }
        }
        head.index = from.stamp()?;
        for list in [&mut head.absent, &mut head.links] {
            for _ in 0..from.len()? {
                let path = from.bytes()?.to_vec();
                let (mode, oid) = (from.u32()?, from.oid()?);
                list.push(Tracked { path, mode, oid, skipped: from.u8()? != 0 });
            }
        }
        head.anchor = (text(from.bytes()?)?, text(from.bytes()?)?);
        (head.root, head.tree) = (from.oid()?, from.oid()?);
        for _ in 0..from.len()? {
            let why = Why::from_tag(&text(from.bytes()?)?);
            head.missed.push(Missed { path: from.bytes()?.to_vec(), why });
        }
        head.files = usize::try_from(from.u64()?).ok()?;
        Some(head)
    }
}

/// One folder in the cache; its path and its entries are bytes, or where those are.
#[derive(Clone, Debug)]
pub(crate) struct FolderRecord<B = Range<usize>> {
    pub(crate) path: B,
    pub(crate) stat: Stat,
    pub(crate) kind: FolderKind,
    pub(crate) tree: Oid,
    /// Only tracked names were taken, because the folder is ignored.
    pub(crate) tracked_only: bool,
    /// It holds a `.gitattributes`.
    pub(crate) attributes: bool,
    /// Captured files in it, not below it.
    pub(crate) files: usize,
    pub(crate) block: B,
}

/// A cache that was read.
pub(crate) struct Cache {
    data: Vec<u8>,
    pub(crate) head: Head,
    folders: Vec<FolderRecord>,
}

impl Cache {
    /// Reads a cache; anything wrong with it means there is none.
    pub(crate) fn load(file: &Path) -> Option<Self> {
        Self::decode(std::fs::read(file).ok()?)
    }

    /// Takes the bytes of a cache.
    pub(crate) fn decode(data: Vec<u8>) -> Option<Self> {
        let mut from = Reader::new(&data, 0);
        if from.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let (len, sum) = (from.u64()?, from.u32()?);
        let body = data.get(HEADER..)?;
        if body.len() as u64 != len || crc32fast::hash(body) != sum {
            return None;
        }
        let head = Head::read(&mut from)?;
        let count = from.len()?;
        let mut folders = Vec::with_capacity(count.min(data.len()));
        for _ in 0..count {
            folders.push(read_folder(&mut from)?);
        }
        Some(Self { data, head, folders })
    }

    /// Finds a folder.
    pub(crate) fn folder(&self, path: &[u8]) -> Option<usize> {
        self.folders.binary_search_by(|f| self.path(f).cmp(path)).ok()
    }

    /// The path of a folder.
    pub(crate) fn path_at(&self, at: usize) -> &[u8] {
        self.path(&self.folders[at])
    }

    fn path(&self, folder: &FolderRecord) -> &[u8] {
        self.data.get(folder.path.clone()).unwrap_or_default()
    }

    pub(crate) fn record(&self, at: usize) -> &FolderRecord {
        &self.folders[at]
    }

    /// A folder's entries as bytes.
    pub(crate) fn block(&self, at: usize) -> &[u8] {
        self.data.get(self.folders[at].block.clone()).unwrap_or_default()
    }

    /// A folder's entries, sorted by name.
    pub(crate) fn entries(&self, at: usize) -> Vec<Entry> {
        Entry::all(self.block(at))
    }

    /// Objects that the snapshot it was made with holds: contents and trees.
    pub(crate) fn objects(&self) -> HashSet<Oid> {
        let trees = self.folders.iter().map(|folder| folder.tree);
        let blocks = (0..self.len()).flat_map(|at| View::all(self.block(at)));
        let files = blocks.filter(|view| view.kind.git_mode().is_some());
        let files = files.flat_map(|view| [view.oid, view.raw.unwrap_or(view.oid)]);
        trees.chain(files).chain([self.head.root]).filter(|oid| *oid != Oid::NONE).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.folders.len()
    }

    /// Bytes held.
    pub(crate) fn size(&self) -> usize {
        self.data.len()
    }
}

fn read_folder(from: &mut Reader<'_>) -> Option<FolderRecord> {
    let bytes = |from: &mut Reader<'_>| {
        let len = from.len()?;
        let start = from.at();
        from.take(len)?;
        Some(start..from.at())
    };
    let path = bytes(from)?;
    let stat = from.stat()?;
    let kind = FolderKind::read(from)?;
    let tree = from.oid()?;
    let flags = from.u8()?;
    let files = from.len()?;
    let block = bytes(from)?;
    let (tracked_only, attributes) = (flags & 1 != 0, flags & 2 != 0);
    Some(FolderRecord { path, stat, kind, tree, tracked_only, attributes, files, block })
}

/// The bytes of a cache; folders sorted by path.
pub(crate) fn encode(head: &Head, folders: &[FolderRecord<&[u8]>]) -> Vec<u8> {
    let size = folders.iter().map(|f| f.block.len() + f.path.len() + 128).sum::<usize>();
    let mut to = Writer(Vec::with_capacity(size + 4096));
    to.0.resize(HEADER, 0);
    head.write(&mut to);
    to.len(folders.len());
    for folder in folders {
        to.bytes(folder.path);
        to.stat(&folder.stat);
        folder.kind.write(&mut to);
        to.oid(folder.tree);
        to.u8(u8::from(folder.tracked_only) | u8::from(folder.attributes) << 1);
        to.len(folder.files);
        to.bytes(folder.block);
    }
    let mut data = to.0;
    let sum = crc32fast::hash(&data[HEADER..]);
    let len = (data.len() - HEADER) as u64;
    data[..8].copy_from_slice(MAGIC);
    data[8..16].copy_from_slice(&len.to_le_bytes());
    data[16..20].copy_from_slice(&sum.to_le_bytes());
    data
}

/// Writes a cache. Whoever reads a large one in the meantime sees the old file or the new one; a small one
/// that is half written has a wrong checksum, and costs its reader less than the exchange costs here.
pub(crate) fn save(file: &Path, data: &[u8]) -> io::Result<()> {
    let small = data.len() <= OVER_BYTES_MAX;
    let fresh = if small { file.to_owned() } else { beside(file) };
    let open = || OpenOptions::new().write(true).create(true).truncate(false).open(&fresh);
    let mut new: File = open().or_else(|error| {
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new("."))).map_err(|_| error)?;
        open()
    })?;
    new.write_all(data)?;
    // Not before: a file that is emptied and written again is flushed to disk by some systems.
    new.set_len(data.len() as u64)?;
    if small { Ok(()) } else { std::fs::rename(&fresh, file) }
}

/// A name of this process's own, so that two never write the same file.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    file.with_file_name(name)
}

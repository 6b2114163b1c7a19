//! One small pack per snapshot: all objects that it newly names, synced with four calls.
//!
//! Objects go in whole, also those that exist elsewhere, because nobody knows whether those were
//! ever synced: not those that an earlier snapshot made durable and its ref still holds. A `.keep`
//! protects the pack from a collection of garbage that began before the ref points to it;
//! [`Written::release`] takes it away. Git looks only whether it is there, so it is a second name of
//! the pack, which takes a fraction of the time of a file of its own.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use sha1::{Digest as _, Sha1};

use super::oid::{Kind, Oid};
use super::{Error, deflate, partial};
use crate::files;

/// A pack stays in memory up to here; a first snapshot may be far larger.
const MEMORY_BYTES_MAX: usize = 16 << 20;
/// Offsets from here on need eight bytes in the index.
const OFFSET_SMALL_MAX: u64 = 0x7fff_ffff;

/// An object as it stands in a pack.
pub(crate) struct Packed {
    oid: Oid,
    crc: u32,
    bytes: Vec<u8>,
}

impl Packed {
    /// An object ready to be appended.
    pub(crate) fn new(oid: Oid, kind: Kind, data: &[u8]) -> Result<Self, Error> {
        let mut bytes = Vec::with_capacity(data.len() / 2 + 64);
        let mut size = data.len();
        let low = |size: usize, mask: u8| size.to_le_bytes()[0] & mask;
        let mut byte = kind.in_pack() << 4 | low(size, 15);
        size >>= 4;
        while size > 0 {
            bytes.push(byte | 0x80);
            byte = low(size, 0x7f);
            size >>= 7;
        }
        bytes.push(byte);
        deflate::append(data, &mut bytes).map_err(|e| Error::Pack(e.to_string()))?;
        Ok(Self { oid, crc: crc32fast::hash(&bytes), bytes })
    }
}

/// A pack being made; dropped without [`Pack::finish`], it leaves nothing behind.
pub(crate) struct Pack {
    folder: PathBuf,
    buffer: Vec<u8>,
    spilled: Option<(PathBuf, File)>,
    written: u64,
    objects: Vec<(Oid, u32, u64)>,
}

impl Pack {
    /// Begins one for a folder of objects.
    pub(crate) fn new(objects: &Path) -> Self {
        Self {
            folder: objects.join("pack"),
            buffer: header(0).to_vec(),
            spilled: None,
            written: 0,
            objects: Vec::new(),
        }
    }

    /// Appends an object.
    pub(crate) fn append(&mut self, object: &Packed) -> Result<(), Error> {
        let offset = self.written + self.buffer.len() as u64;
        self.objects.push((object.oid, object.crc, offset));
        self.buffer.extend_from_slice(&object.bytes);
        if self.buffer.len() > MEMORY_BYTES_MAX {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<(), Error> {
        if self.spilled.is_none() {
            self.spilled = Some(self.create("pack")?);
        }
        if let Some((path, file)) = &mut self.spilled {
            file.write_all(&self.buffer).map_err(|e| Error::file(path, e))?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    fn create(&self, what: &str) -> Result<(PathBuf, File), Error> {
        partial::create(&self.folder, what).map_err(|e| Error::file(&self.folder, e))
    }

    /// Makes it durable and visible; `None` if it holds nothing.
    pub(crate) fn finish(mut self) -> Result<Option<Written>, Error> {
        if self.objects.is_empty() {
            return Ok(None);
        }
        self.objects.sort_unstable();
        let sum = self.seal()?;
        let (index_path, mut index_file) = self.create("idx")?;
        let written = index_file
            .write_all(&index(&self.objects, sum))
            .and_then(|()| index_file.sync_all())
            .map_err(|e| Error::file(&index_path, e));
        if let Err(error) = written {
            let _ = std::fs::remove_file(&index_path);
            return Err(error);
        }
        let base = self.folder.join(format!("pack-{sum}"));
        let keep = base.with_extension("keep");
        // From here on nothing is taken away again when this fails.
        let Some((path, _held)) = self.spilled.take() else {
            return Err(Error::Pack("the file is gone".to_owned()));
        };
        // One that is there already does too. Where the file system knows no second names, nothing
        // protects the pack.
        let _ = std::fs::hard_link(&path, &keep);
        for (from, to) in [(&path, "pack"), (&index_path, "idx")] {
            let to = base.with_extension(to);
            std::fs::rename(from, &to).map_err(|e| Error::file(&to, e))?;
        }
        let folder = File::open(&self.folder).and_then(|f| f.sync_all());
        folder.map_err(|e| Error::file(&self.folder, e))?;
        Ok(Some(Written { keep }))
    }

    /// Puts the count in and the checksum behind, and syncs the file; returns the checksum.
    fn seal(&mut self) -> Result<Oid, Error> {
        let count = u32::try_from(self.objects.len())
            .map_err(|_| Error::Pack("more objects than a pack can hold".to_owned()))?;
        let sum = if self.spilled.is_none() {
            self.buffer[..12].copy_from_slice(&header(count));
            Oid(Sha1::digest(&self.buffer).into())
        } else {
            self.spill()?;
            self.with_file(|file| recount(file, count))?
        };
        self.buffer.extend_from_slice(&sum.0);
        self.spill()?;
        self.with_file(|file| file.sync_all())?;
        Ok(sum)
    }

    fn with_file<T>(
        &mut self,
        act: impl FnOnce(&mut File) -> std::io::Result<T>,
    ) -> Result<T, Error> {
        match &mut self.spilled {
            Some((path, file)) => act(file).map_err(|e| Error::file(path, e)),
            None => Err(Error::Pack("the file is gone".to_owned())),
        }
    }
}

/// Tells whether a `.keep` is one of ours.
pub(crate) fn is_ours(keep: &Path, pack: &Path) -> bool {
    files::is_same(std::fs::symlink_metadata(keep), std::fs::symlink_metadata(pack))
}

/// Puts the count into a file that was begun without it; its checksum, and the place behind it.
fn recount(file: &mut File, count: u32) -> std::io::Result<Oid> {
    file.rewind()?;
    file.write_all(&header(count))?;
    file.rewind()?;
    let mut hash = Sha1::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(Oid(hash.finalize().into())),
            n => hash.update(&chunk[..n]),
        }
    }
}

impl Drop for Pack {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.spilled {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A pack that is there for good.
pub(crate) struct Written {
    keep: PathBuf,
}

impl Written {
    /// Lets git repack it, now that a ref holds its objects.
    pub(crate) fn release(self) {
        // One left behind only keeps a small pack from being joined with others, until a driver
        // sweeps it away.
        let _ = std::fs::remove_file(&self.keep);
    }
}

fn header(count: u32) -> [u8; 12] {
    let mut bytes = *b"PACK\0\0\0\x02\0\0\0\0";
    bytes[8..].copy_from_slice(&count.to_be_bytes());
    bytes
}

/// An index of version 2.
fn index(objects: &[(Oid, u32, u64)], pack: Oid) -> Vec<u8> {
    let mut bytes = b"\xfftOc\0\0\0\x02".to_vec();
    let mut at = 0;
    for first in 0..=255 {
        while objects.get(at).is_some_and(|(oid, ..)| oid.0[0] <= first) {
            at += 1;
        }
        bytes.extend_from_slice(&u32::try_from(at).unwrap_or(u32::MAX).to_be_bytes());
    }
    bytes.extend(objects.iter().flat_map(|(oid, ..)| oid.0));
    bytes.extend(objects.iter().flat_map(|(_, crc, _)| crc.to_be_bytes()));
    let mut large: Vec<u64> = Vec::new();
    for (.., offset) in objects {
        let place = u32::try_from(*offset).ok().filter(|_| *offset <= OFFSET_SMALL_MAX);
        let place = place.unwrap_or_else(|| {
            large.push(*offset);
            0x8000_0000 | u32::try_from(large.len() - 1).unwrap_or(u32::MAX)
        });
        bytes.extend_from_slice(&place.to_be_bytes());
    }
    bytes.extend(large.iter().flat_map(|offset| offset.to_be_bytes()));
    bytes.extend_from_slice(&pack.0);
    let sum = Sha1::digest(&bytes);
    bytes.extend_from_slice(&sum);
    bytes
}

//! Files and folders of the system: read, replaced, kept below the project's root, made durable.
//!
//! Nothing here knows of git.

pub mod beneath;
pub mod sync;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What a small file is read with: those that say where things are have some dozen bytes, and one
/// call is enough for all but the longest paths.
const SMALL_BYTES: usize = 1024;

/// A path as the system wants it; it need not be text.
pub(crate) fn os_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

/// The folder of a path; the top's is empty, and the top has none.
pub(crate) fn parent(path: &[u8]) -> Option<&[u8]> {
    if path.is_empty() {
        return None;
    }
    Some(path.iter().rposition(|b| *b == b'/').map_or(b"", |at| &path[..at]))
}

/// The last part of a path.
pub(crate) fn name(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(path, |at| &path[at + 1..])
}

/// A path within a folder.
pub(crate) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// Whether a path is within a folder.
pub(crate) fn is_below(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Reads a file that is short as a rule, in as few calls as can be: around every step some dozen are.
pub(crate) fn small(file: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(file)?;
    let (mut bytes, mut len) = (vec![0; SMALL_BYTES], 0);
    loop {
        match file.read(&mut bytes[len..]) {
            Ok(read) => len += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        // A file has no more than fits when it does not fill what it is read into.
        if len < bytes.len() {
            bytes.truncate(len);
            return Ok(bytes);
        }
        bytes.resize(2 * len, 0);
    }
}

/// What tells a file from all others: device and number.
pub(crate) type Id = (u64, u64);

/// The id of what was looked at.
pub(crate) fn id(found: &fs::Metadata) -> Id {
    (found.dev(), found.ino())
}

/// Whether two looks found one file; not if either found nothing.
pub(crate) fn is_same(one: io::Result<fs::Metadata>, other: io::Result<fs::Metadata>) -> bool {
    one.is_ok_and(|one| other.is_ok_and(|other| id(&one) == id(&other)))
}

/// Writes a small file of ours where it is and syncs it and its folder. A step may have put a link
/// there: that goes.
pub(crate) fn put(file: &Path, bytes: &[u8]) -> io::Result<()> {
    write_new(file, bytes)?;
    sync::folder(file.parent().unwrap_or(Path::new(".")))
}

/// Replaces a small file of ours: a copy next to it, synced, then renamed.
pub(crate) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let copy = file.with_file_name(name);
    write_new(&copy, bytes)?;
    fs::rename(&copy, file)?;
    sync::folder(file.parent().unwrap_or(Path::new(".")))
}

/// Makes a file in the place of what is there, and syncs it.
fn write_new(file: &Path, bytes: &[u8]) -> io::Result<()> {
    remove(file)?;
    let mut new = File::create_new(file)?;
    new.write_all(bytes)?;
    new.sync_all()
}

/// Removes a file or link, if there is one.
pub(crate) fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

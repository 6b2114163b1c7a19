//! Reading files that people name or keep: reading one that is not a regular file would wait for it,
//! one without end would fill the memory.
//!
//! A plan that is named on the command line may come through a pipe, and is read by its own rule.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use piton_core::Timestamp;
use piton_formats::plan::PLAN_BYTES_MAX;
use rustix::fs::OFlags;

/// The bytes of a regular file that has no more than so many.
pub fn bytes(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for somebody who writes.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    regular(File::options().read(true).custom_flags(flags).open(path)?, bytes_max)
}

/// The bytes of what was opened, if that is a regular file and has no more than so many.
pub fn regular(file: File, bytes_max: usize) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    up_to(file, bytes_max)
}

/// The text of a regular file that has no more than so many bytes.
pub fn text(path: &Path, bytes_max: usize) -> io::Result<String> {
    String::from_utf8(bytes(path, bytes_max)?).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// The text of a file that a protocol asks for, by its path from a folder.
pub fn protocol_file(folder: &Path, path: &str) -> io::Result<String> {
    text(&folder.join(path), PLAN_BYTES_MAX)
}

/// Whether a path from a folder stays below it, wherever links lead; one that is not there does if the
/// nearest folder that is there does.
pub fn is_within(folder: &Path, path: &str) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let whole = folder.join(path);
    let goes_up = |part: std::path::Component<'_>| part == std::path::Component::ParentDir;
    let real = whole.ancestors().find_map(|above| above.canonicalize().ok());
    // A link that leads nowhere could be made to lead anywhere.
    let is_dangling = whole.symlink_metadata().is_ok() && !whole.exists();
    !is_dangling
        && !Path::new(path).components().any(goes_up)
        && real.is_some_and(|real| real.starts_with(&folder))
}

/// The names in a folder; none if it cannot be read.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// When a file was modified last; `None` if it is not there.
pub fn modified(path: &Path) -> Option<Timestamp> {
    let since = path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp)
}

/// All bytes of an open file, if there are not more than a limit.
pub fn up_to(file: File, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(io::Error::other(format!("it has more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

//! Writing a file that a person named: replaced in one step, so that nobody reads half of it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Most names that are tried for the copy beside the file: others are of processes that were killed.
const NAMES_MAX: u32 = 100;

/// Replaces a file, or makes it: a copy beside it is written and synced, then renamed. A link is
/// followed. What is not a regular file, such as a pipe, is written to as it is.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let there = match fs::metadata(path) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let target = if there.is_some() { path.canonicalize()? } else { path.to_owned() };
    let (copy, mut file) = beside(&target)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| {
        there.map_or(Ok(()), |there| file.set_permissions(there.permissions()))?;
        fs::rename(&copy, &target)
    });
    if written.is_err() {
        let _ = fs::remove_file(&copy);
    }
    written?;
    File::open(folder(&target))?.sync_all()
}

/// A new file beside another.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or_else(|| io::Error::from(ErrorKind::IsADirectory))?;
    for number in 0..NAMES_MAX {
        let mut copy = OsString::from(".");
        copy.push(name);
        copy.push(format!(".{}-{number}.new", std::process::id()));
        let copy = folder(path).join(copy);
        match OpenOptions::new().write(true).create_new(true).open(&copy) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return Ok((copy, made?)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// Lost: a link, its mode or a file beside it would go with the old text.
    #[test]
    fn a_file_is_replaced_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("real file.md"), dir.path().join("link.md"));
        replace(&file, b"one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real file.md", &link).unwrap();
        replace(&link, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    /// Lost: a device that a person names would be replaced by a file.
    #[test]
    fn what_is_not_a_file_stays_what_it_is() {
        replace(Path::new("/dev/null"), b"text").unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
        let dir = tempfile::tempdir().unwrap();
        assert!(replace(dir.path(), b"text").is_err());
        assert!(replace(&dir.path().join("none/a.md"), b"text").is_err());
    }
}

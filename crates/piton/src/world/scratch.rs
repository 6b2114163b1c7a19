//! The folders that steps may write to: one per attempt, made by the keeper in one per driver, so that
//! one that was overtaken can only ever remove its own. Not the logs, which lie with the run.
//!
//! A step may put links there, so nothing here follows one.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use piton_engine::world::Attempt;
use rustix::fs::{AtFlags, Mode, OFlags};

/// How the files in a run's folder begin that say where a driver's scratch folder lies; its epoch
/// follows.
const SCRATCH: &str = "scratch.";
/// What a first attempt finds as its failure context.
pub const NO_FAILURES: &str = "{\n  \"attempts\": [],\n  \"text\": \"\"\n}\n";
/// The file that an attempt may write facts to, in its folder.
const OUTPUT: &str = "output.json";

/// Makes the folder of a driver, outside of the repository's own folder, because sandboxes of agents
/// forbid that one; the run's folder says where it is.
pub fn make(dir: &Path, mark: &str, epoch: u64) -> io::Result<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let base = std::env::temp_dir().join(format!("piton-{uid}"));
    let scratch = base.join(format!("{mark}.{epoch}"));
    // First where it will be: who falls in between leaves no folder that nobody knows of.
    std::fs::write(dir.join(pointer(epoch)), scratch.as_os_str().as_encoded_bytes())?;
    for folder in [base, scratch.clone()] {
        make_private(&folder)?;
        let own = std::fs::symlink_metadata(&folder)?;
        if !own.is_dir() || own.uid() != uid || own.mode() & 0o077 != 0 {
            return Err(io::Error::other(format!(
                "{} is not a private folder of yours; remove it or set TMPDIR",
                folder.display()
            )));
        }
    }
    Ok(scratch)
}

/// The name of the file that says where a driver's folder lies.
pub fn pointer(epoch: u64) -> String {
    format!("{SCRATCH}{epoch}")
}

/// The scratch folders of a run's drivers, with their epochs.
pub fn folders(dir: &Path) -> Vec<(u64, PathBuf)> {
    use std::os::unix::ffi::OsStringExt as _;
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(io::Result::ok);
    let pointers = entries.filter_map(|entry| {
        let epoch: u64 = entry.file_name().to_str()?.strip_prefix(SCRATCH)?.parse().ok()?;
        let path = std::fs::read(entry.path()).ok()?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        // These folders are removed: a torn name must lead nowhere.
        let whole = path.is_absolute() && path.extension() == Some(epoch.to_string().as_ref());
        whole.then_some((epoch, path))
    });
    pointers.collect()
}

/// The folder of an attempt.
pub fn attempt_folder(scratch: &Path, attempt: &Attempt) -> PathBuf {
    let slug = attempt.step.to_string().replace('/', "~");
    scratch.join(format!("{slug}.{}", attempt.number))
}

/// Where an attempt may write facts.
pub fn output_file(folder: &Path) -> PathBuf {
    folder.join(OUTPUT)
}

/// Opens what an attempt wrote to read it. It may be anything but a link.
pub fn open_output(folder: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(open_folder(folder)?, OUTPUT, flags, Mode::empty())?;
    Ok(File::from(file))
}

/// Removes what an attempt wrote.
pub fn remove_output(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(open_folder(folder)?, OUTPUT, AtFlags::empty())?)
}

fn open_folder(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?)
}

/// Makes a folder for its user alone.
pub fn make_private(dir: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut permissions = std::fs::metadata(dir)?.permissions();
    if permissions.mode() & 0o700 != 0o700 {
        // The umask took from its owner, too.
        permissions.set_mode(0o700);
        std::fs::set_permissions(dir, permissions)?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't set up its files has failed")]
mod tests {
    use super::*;

    /// Lost: a name cut off by a crash could lead to a folder that is nobody's to remove.
    #[test]
    fn only_a_whole_name_leads_to_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        for (epoch, text) in [(1, "/tmp"), (2, ""), (3, "/tmp/piton-0/abc.3"), (4, "/tmp/abc.3")] {
            std::fs::write(dir.path().join(pointer(epoch)), text).unwrap();
        }
        assert_eq!(folders(dir.path()), [(3, PathBuf::from("/tmp/piton-0/abc.3"))]);
    }
}

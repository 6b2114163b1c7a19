//! The folders that steps may write to: one per driver, so that one that was overtaken can only ever
//! remove its own, and in it one per attempt that is given files, made by the keeper. Not the logs,
//! which lie with the run.
//!
//! A step may put links there, so nothing here follows one. An attempt that is given nothing has no
//! folder of its own: making one waits for the commit of its intent, which is being synced.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use piton_engine::world::Attempt;
use rustix::fs::{Mode, OFlags};

/// How the files in a run's folder begin that say where a driver's scratch folder is; its epoch
/// follows.
const SCRATCH: &str = "scratch.";
/// What a first attempt finds as its failure context.
const NO_FAILURES: &str = "{\n  \"attempts\": [],\n  \"text\": \"\"\n}\n";
/// The file with that.
const NO_FAILURES_FILE: &str = "no-failures.json";

/// Makes the folder of a driver below one for temporary files: outside of the repository's own folder, because sandboxes of agents
/// forbid that one; the run's folder says where it is.
pub fn make(temp_dir: &Path, dir: &Path, mark: &str, epoch: u64) -> io::Result<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let base = temp_dir.join(format!("piton-{uid}"));
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
    match File::create_new(no_failures(&scratch)) {
        Ok(mut file) => file.write_all(NO_FAILURES.as_bytes())?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    Ok(scratch)
}

/// What first attempts find as their failure context: written once, and by nobody again.
pub fn no_failures(scratch: &Path) -> PathBuf {
    scratch.join(NO_FAILURES_FILE)
}

/// The name of the file that says where a driver's folder is.
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

/// The folder of an attempt, for what it is given.
pub fn attempt_folder(scratch: &Path, attempt: &Attempt) -> PathBuf {
    scratch.join(slug(attempt))
}

/// Where an attempt may write facts.
pub fn output_file(scratch: &Path, attempt: &Attempt) -> PathBuf {
    scratch.join(format!("{}.output.json", slug(attempt)))
}

fn slug(attempt: &Attempt) -> String {
    format!("{}.{}", attempt.step.to_string().replace('/', "~"), attempt.number)
}

/// Opens what an attempt wrote to read it. It may be anything but a link.
pub fn open_output(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
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

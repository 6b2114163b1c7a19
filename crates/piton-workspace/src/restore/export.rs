//! Writes files of a snapshot into another folder.

use std::path::{Path, PathBuf};

use super::apply::Apply;
use super::error::Error;
use super::execute::sizes_of_all;
use super::state::Version;
use super::{Scope, State, Step};
use crate::files::os_path;
use crate::objects::Oid;
use crate::snapshot;
use crate::snapshot::side::{Class, Manifest};

/// The files that [`export`] writes.
pub fn exported(dir: &Path, commit: &str, paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, Error> {
    let files = steps(dir, commit, paths)?.into_iter().filter(|step| step.to.oid().is_some());
    Ok(files.map(|step| step.path).collect())
}

fn steps(dir: &Path, commit: &str, paths: &[PathBuf]) -> Result<Vec<Step>, Error> {
    let version = Version::open(dir, commit)?;
    let nothing = Manifest::default();
    let manifest = version.manifest.as_ref().unwrap_or(&nothing);
    let mut steps = Vec::new();
    for path in version.folders(manifest)? {
        let perm = manifest.perm(&path, Class::Folder);
        steps.push(Step { path, from: State::Absent, to: State::Folder { perm } });
    }
    for (path, (mode, oid)) in version.files()? {
        let to = version.state(&path, mode, oid, manifest);
        if !matches!(to, State::Submodule { .. }) {
            steps.push(Step { path, from: State::Absent, to });
        }
    }
    steps.sort_by(|a, b| a.path.cmp(&b.path));
    let scope = Scope { paths: paths.to_vec(), ..Scope::default() };
    steps.retain(|step| scope.holds(step));
    Ok(steps)
}

/// Writes files of a snapshot or commit below a folder, exactly as they were on disk, and says how
/// many. Without paths, all. What is there already is never overwritten.
pub fn export(dir: &Path, commit: &str, paths: &[PathBuf], to_dir: &Path) -> Result<usize, Error> {
    let steps = steps(dir, commit, paths)?;
    let failed =
        |path: &Path, e| Error::Snapshot(snapshot::Error::Io { path: path.to_owned(), source: e });
    std::fs::create_dir_all(to_dir).map_err(|e| failed(to_dir, e))?;
    for step in steps.iter().filter(|s| s.to.oid().is_some()) {
        let path = to_dir.join(os_path(&step.path));
        if path.symlink_metadata().is_ok() {
            let source = std::io::Error::new(
                std::io::ErrorKind::AlreadyExists,
                "exists already: name a folder that does not hold it",
            );
            return Err(failed(&path, source));
        }
    }
    let oids: Vec<Oid> = steps.iter().filter_map(|s| s.to.oid()).collect();
    let sizes = sizes_of_all(dir, &oids)?;
    let done = Apply::new(dir, to_dir, &sizes).run(&steps);
    done.map_err(|e| failed(to_dir, std::io::Error::other(e.to_string())))?;
    Ok(oids.len())
}

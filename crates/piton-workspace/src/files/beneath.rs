//! Places below the project's root for what Piton itself writes there.
//!
//! Links come with commits and merges, and from steps. One that stays in the project is followed; one
//! that leads out of it is refused, because what is there is not the project's. An [`AnchoredPath`]
//! holds the folder open that it was found in, so a link that comes later leads nowhere either.
//!
//! What the user says explicitly, such as the path of a plan, is not looked at here.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// How folders are opened: by their own name, through no link.
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A link that leads out of the project.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is a link to {}, which is outside of the project, so nothing is written there \
     [link-leads-out]; remove the link, or point it to a place in the project",
    link.display(), to.display()
)]
pub struct LinkLeadsOut {
    link: PathBuf,
    to: PathBuf,
}

impl LinkLeadsOut {
    /// Whether this is why something failed.
    pub fn is(error: &io::Error) -> bool {
        matches!(error.get_ref(), Some(inner) if inner.is::<Self>())
    }
}

/// The real path of what is, or will be, at a path; an error if that is not below the root.
pub fn real(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let within = root.canonicalize()?;
    let there = path.ancestors().find(|above| above.symlink_metadata().is_ok()).unwrap_or(path);
    let real = there.canonicalize()?;
    if !real.starts_with(&within) {
        let leads_out = |above: &&Path| {
            above.is_symlink() && above.canonicalize().is_ok_and(|to| !to.starts_with(&within))
        };
        let below = path.ancestors().take_while(|above| *above != root);
        let link = below.filter(leads_out).last().unwrap_or(path).to_owned();
        return Err(io::Error::other(LinkLeadsOut { link, to: real }));
    }
    let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
    Ok(real.components().chain(rest.components()).collect())
}

/// Opens a folder below the root, by its real name; those that are missing are made.
pub fn folder(root: &Path, path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let (path, root) = (real(root, path)?, root.canonicalize()?);
    let mut folder = rustix::fs::open(&root, FOLDER, Mode::empty())?;
    for part in path.strip_prefix(&root).unwrap_or(&path).components() {
        let Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        folder = match rustix::fs::openat(&folder, name, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                rustix::fs::openat(&folder, name, FOLDER, Mode::empty())?
            }
            opened => opened?,
        };
    }
    Ok((folder, path))
}

/// A name in an open folder of the project.
#[derive(Clone, Debug)]
pub struct AnchoredPath {
    folder: Rc<OwnedFd>,
    name: OsString,
    path: PathBuf,
}

impl AnchoredPath {
    /// Finds a path below the root; folders that are missing are made. What is there is not followed.
    pub fn at(root: &Path, path: &Path) -> io::Result<Self> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (folder, above) = folder(root, above)?;
        Ok(Self { folder: Rc::new(folder), path: above.join(name), name: name.to_owned() })
    }

    /// The same for where a link at the path leads, if there is one.
    pub fn behind(root: &Path, path: &Path) -> io::Result<Self> {
        Self::at(root, &real(root, path)?)
    }

    /// Another name in the same folder.
    #[must_use]
    pub fn beside(&self, name: impl Into<OsString>) -> Self {
        let name = name.into();
        Self { folder: Rc::clone(&self.folder), path: self.path.with_file_name(&name), name }
    }

    /// Its name.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Where it is, for people.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens what is there, unless it is a link; never waits.
    pub fn open(&self, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        Ok(rustix::fs::openat(&*self.folder, &self.name, flags, mode)?.into())
    }

    /// Makes a file where there is nothing.
    pub fn create(&self) -> io::Result<File> {
        self.open(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    /// Makes a link where there is nothing.
    pub fn link_to(&self, target: &Path) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &*self.folder, &self.name)?)
    }

    /// Gives it the name of another, or lets both change places.
    pub fn rename(&self, to: &Self, flags: RenameFlags) -> rustix::io::Result<()> {
        if flags.is_empty() {
            return rustix::fs::renameat(&*self.folder, &self.name, &*to.folder, &to.name);
        }
        rustix::fs::renameat_with(&*self.folder, &self.name, &*to.folder, &to.name, flags)
    }

    /// Removes a file or link, if there is one.
    pub fn remove(&self) -> io::Result<()> {
        match rustix::fs::unlinkat(&*self.folder, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// All names in its folder.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        use std::os::unix::ffi::OsStrExt as _;
        let name = |entry: rustix::fs::DirEntry| {
            OsStr::from_bytes(entry.file_name().to_bytes()).to_owned()
        };
        let entries = Dir::read_from(&*self.folder)?;
        entries.map(|entry| Ok(entry.map(name)?)).collect()
    }
}

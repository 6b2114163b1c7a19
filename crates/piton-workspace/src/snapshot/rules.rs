//! Which names are ignored: `.gitignore` files, `info/exclude`, the user's own file.
//!
//! A chain of pattern lists, innermost folder first; each list is read only when a name turns up
//! that was not known before. Tracked paths are not this module's business.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gix_glob::pattern::Case;
use gix_glob::search::pattern::List;
use gix_ignore::search::{Ignore, pattern_matching_relative_path};

use crate::files::{join, os_path};

/// The rules that hold in one folder.
pub(crate) struct Ignores {
    parent: Option<Arc<Ignores>>,
    /// The folder's path with a final slash; empty for the top.
    base: Vec<u8>,
    file: PathBuf,
    follow: bool,
    list: OnceLock<Option<List<Ignore>>>,
}

impl Ignores {
    /// The rules that hold everywhere, weakest first.
    pub(crate) fn everywhere(files: &[PathBuf]) -> Option<Arc<Self>> {
        files.iter().fold(None, |parent, file| {
            Some(Arc::new(Self {
                parent,
                base: Vec::new(),
                file: file.clone(),
                follow: true,
                list: OnceLock::new(),
            }))
        })
    }

    /// The rules within a folder that has a `.gitignore`.
    pub(crate) fn within(parent: Option<Arc<Self>>, top: &Path, folder: &[u8]) -> Arc<Self> {
        let file = top.join(os_path(folder)).join(".gitignore");
        Arc::new(Self { parent, base: base(folder), file, follow: false, list: OnceLock::new() })
    }

    /// The rules within a folder, where its `.gitignore` is not read but given.
    pub(crate) fn given(parent: Option<Arc<Self>>, folder: &[u8], bytes: &[u8]) -> Arc<Self> {
        let mut made = Self {
            parent,
            base: base(folder),
            file: PathBuf::from(".gitignore"),
            follow: false,
            list: OnceLock::new(),
        };
        made.list = OnceLock::from(made.parsed(bytes));
        Arc::new(made)
    }

    /// Whether a path is ignored, its parents not being so.
    pub(crate) fn ignores(&self, path: &[u8], is_dir: bool) -> bool {
        let name_at = path.iter().rposition(|b| *b == b'/').map(|at| at + 1);
        let mut rules = Some(self);
        while let Some(here) = rules {
            if let Some(list) = here.list.get_or_init(|| here.load()) {
                let found = pattern_matching_relative_path(
                    list,
                    path.into(),
                    name_at,
                    Some(is_dir),
                    Case::Sensitive,
                );
                if let Some(found) = found {
                    return !found.pattern.is_negative();
                }
            }
            rules = here.parent.as_deref();
        }
        false
    }

    /// A file that cannot be read has no rules, as for git.
    fn load(&self) -> Option<List<Ignore>> {
        if !self.follow && !self.file.symlink_metadata().ok()?.is_file() {
            return None;
        }
        self.parsed(&std::fs::read(&self.file).ok()?)
    }

    fn parsed(&self, bytes: &[u8]) -> Option<List<Ignore>> {
        let mut list = List::from_bytes(bytes, self.file.clone(), None, Ignore::default()).ok()?;
        list.base = (!self.base.is_empty()).then(|| self.base.as_slice().into());
        Some(list)
    }
}

/// A folder's path with a final slash; empty for the top.
fn base(folder: &[u8]) -> Vec<u8> {
    if folder.is_empty() { Vec::new() } else { join(folder, b"") }
}

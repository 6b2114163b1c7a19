//! Gits that stay, because starting one for each question or move costs more than what it does.
//!
//! Each belongs to the git folder that all work trees of a repository share. Whoever needs one takes
//! it out and puts it back, so two threads never talk to the same one. They all end with this
//! process, for their input ends then.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Gits of one kind that wait to be used; a run has one repository.
const WAITING_MAX: usize = 2;

/// Gits of one kind; the last one used is the last.
pub(crate) struct Pool<T>(Mutex<Vec<(PathBuf, T)>>);

impl<T> Pool<T> {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Takes one out.
    pub(crate) fn take(&self, common: &Path) -> Option<T> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|(folder, _)| folder == common)?;
        Some(all.remove(at).1)
    }

    /// Puts one back; the one that was not used for longest goes if there are too many.
    pub(crate) fn put(&self, common: PathBuf, git: T) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = (all.len() >= WAITING_MAX).then(|| all.remove(0));
        all.push((common, git));
        // Its end is waited for, which need not hold up anybody.
        drop(all);
        drop(gone);
    }

    /// Ends them.
    pub(crate) fn end(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(all);
    }
}

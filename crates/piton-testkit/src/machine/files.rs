//! The files of the machine: of the root and of worktrees alike, by their full path.

use piton_core::Timestamp;
use piton_core::event::FileHash;
use piton_core::hash::Sha;
use piton_engine::world::SealError;

use super::SimMachine;
use crate::repo::{Tree, is_seen, place};

#[derive(Clone, Debug, Default)]
pub(super) struct SimFile {
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) durable: Option<Vec<u8>>,
    /// When it was last changed.
    changed: Timestamp,
}

impl SimMachine {
    /// Puts a file there, durably, as a person does.
    pub fn put(&mut self, path: &str, text: &str) {
        let bytes = Some(text.as_bytes().to_vec());
        let file = SimFile { durable: bytes.clone(), bytes, changed: self.now };
        self.files.insert(path.to_owned(), file);
    }

    /// Whether a file was changed after a moment.
    pub(crate) fn changed_after(&self, path: &str, at: Timestamp) -> bool {
        self.files.get(path).is_some_and(|file| file.changed > at)
    }

    /// Takes a file away.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// The text of a file, if it is there.
    pub fn text(&self, path: &str) -> Option<String> {
        let bytes = self.files.get(path)?.bytes.as_ref()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        self.files.keys().cloned()
    }

    /// The files of a folder with their texts.
    pub fn files_of(&self, dir: &str) -> Tree {
        self.tree(dir)
    }

    pub(crate) fn tree(&self, dir: &str) -> Tree {
        let prefix = place(dir, "");
        let texts = self.files.keys().filter_map(|path| {
            let below = path.strip_prefix(&prefix).filter(|below| is_seen(below))?;
            Some((below.to_owned(), self.text(path)?))
        });
        texts.collect()
    }

    /// The hash of a file, if it is there.
    pub fn hash(&self, path: &str) -> Option<Sha> {
        self.files.get(path)?.bytes.as_ref().map(|bytes| Sha::of(bytes))
    }

    pub(super) fn write(
        &mut self,
        workspace: &str,
        files: &[(String, String)],
        attempt: u32,
        at: Timestamp,
    ) {
        for (path, text) in files {
            let text = text.replace("{attempt}", &attempt.to_string());
            if workspace.is_empty() {
                let file = self.files.entry(path.clone()).or_default();
                (file.bytes, file.changed) = (Some(text.into_bytes()), at);
            } else {
                // What a power cut does to the files of a worktree is not simulated.
                self.put(&place(workspace, path), &text);
                self.files.entry(place(workspace, path)).or_default().changed = at;
            }
        }
    }

    /// The files of a folder that match patterns: exact paths, or everything below `dir/*`.
    pub(crate) fn matching(&self, dir: &str, pattern: &str) -> Vec<FileHash> {
        let prefix = place(dir, "");
        let fits = |path: &str| match pattern.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => path == pattern,
        };
        let below = self.files.keys().filter_map(|path| Some((path, path.strip_prefix(&prefix)?)));
        below
            .filter(|(_, below)| fits(below))
            .filter_map(|(path, below)| {
                Some(FileHash { path: below.to_owned(), sha256: self.hash(path)? })
            })
            .collect()
    }

    pub(crate) fn seal(
        &mut self,
        dir: &str,
        patterns: &[String],
    ) -> Result<Vec<FileHash>, SealError> {
        let (mut sealed, mut missing) = (Vec::new(), Vec::new());
        for pattern in patterns {
            let found = self.matching(dir, pattern);
            if found.is_empty() {
                missing.push(pattern.clone());
            }
            sealed.extend(found);
        }
        if !missing.is_empty() {
            return Err(SealError::Missing(missing));
        }
        if let Some(file) = sealed.iter().find(|file| self.unreadable.contains(&file.path)) {
            return Err(SealError::Failed(format!("{}: Input/output error", file.path)));
        }
        for file in &sealed {
            let place = place(dir, &file.path);
            if let (true, Some(file)) = (self.switches.seal_syncs, self.files.get_mut(&place)) {
                file.durable.clone_from(&file.bytes);
            }
        }
        Ok(sealed)
    }
}

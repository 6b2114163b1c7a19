//! What a person and their git do to the repository of a simulated machine.

use super::SimMachine;
use crate::repo::{BASE, LOOKS_MAX, SimRepo, Tree, merge, place};

impl SimMachine {
    /// The state of a pull request is asked for, which takes time.
    pub(crate) fn look(&mut self) {
        let Some(repo) = self.repo.as_mut() else { return };
        repo.looks += 1;
        assert!(repo.looks < LOOKS_MAX, "it is asked for without end");
        let takes = repo.look_takes;
        self.pass(takes);
    }

    /// Makes a repository of the root with these files committed to base.
    #[must_use]
    pub fn with_repo(mut self, files: &[(&str, &str)]) -> Self {
        for (path, text) in files {
            self.put(path, text);
        }
        let mut repo = SimRepo::default();
        let first = repo.commit(None, self.tree(""), "first");
        self.head = Some(first.clone());
        repo.refs.insert(BASE.to_owned(), first);
        self.repo = Some(repo);
        self
    }

    /// A person changes a file of base and commits it.
    pub fn commit_as_person(&mut self, path: &str, text: &str) {
        self.put(path, text);
        let Some(repo) = &mut self.repo else { return };
        let parent = repo.head(BASE).unwrap_or_default();
        let mut tree = repo.tree(&parent);
        tree.insert(path.to_owned(), text.to_owned());
        let commit = repo.commit(Some(parent), tree, &format!("person: {path}"));
        repo.refs.insert(BASE.to_owned(), commit.clone());
        self.head = Some(commit);
    }

    /// A person puts a lane's work onto base, with one file resolved, and commits it.
    pub fn resolve_as_person(&mut self, branch: &str, dir: &str, path: &str, text: &str) {
        let Some(repo) = &mut self.repo else { return };
        let (base, head) = (repo.head(BASE).unwrap_or_default(), repo.head(branch));
        let head = head.unwrap_or_default();
        let before = repo.tree(&repo.fork(&head, &base));
        let (mut tree, _) = merge(&before, &repo.tree(&base), &repo.tree(&head));
        tree.insert(path.to_owned(), text.to_owned());
        let commit = repo.commit(Some(base), tree.clone(), &format!("person resolved {branch}"));
        repo.refs.insert(branch.to_owned(), commit);
        self.check_out(dir, &tree);
    }

    /// Somebody merges the pull request of a branch, by a squash.
    pub fn merge_pull_request(&mut self, branch: &str) {
        let Some(repo) = &mut self.repo else { return };
        let (base, head) = (repo.head(BASE).unwrap_or_default(), repo.head(branch));
        let head = head.unwrap_or_default();
        let before = repo.tree(&repo.fork(&head, &base));
        let (tree, _) = merge(&before, &repo.tree(&base), &repo.tree(&head));
        let commit = repo.commit(Some(base), tree.clone(), &format!("squashed {branch}"));
        repo.refs.insert(BASE.to_owned(), commit.clone());
        repo.pulls_merged.insert(branch.to_owned());
        self.head = Some(commit);
        self.check_out("", &tree);
    }

    /// Makes the files of a folder those of a tree; ignored ones stay.
    pub(crate) fn check_out(&mut self, dir: &str, tree: &Tree) {
        for path in self.tree(dir).keys().filter(|path| !tree.contains_key(*path)) {
            self.remove(&place(dir, path));
        }
        for (path, text) in tree {
            self.put(&place(dir, path), text);
        }
    }

    /// Removes a folder with all that is in it.
    pub(crate) fn remove_all(&mut self, dir: &str) {
        let prefix = place(dir, "");
        let below: Vec<String> = self.paths().filter(|p| p.starts_with(&prefix)).collect();
        for path in below {
            self.remove(&path);
        }
    }
}

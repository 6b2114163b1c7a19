//! Two versions of a work tree, compared path by path with everything that a snapshot knows:
//! bytes on disk, permissions, links, folders.
//!
//! A version is a snapshot or a plain commit. A plain commit says nothing of permissions and empty
//! folders, so it differs from a snapshot only in what git holds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use crate::files::parent;
use crate::git::{self, Git};
use crate::objects::{EXEC, GITLINK, LINK, Oid, TREE};
use crate::snapshot::side::{Class, Manifest};
use crate::snapshot::{self, Error};

/// What a path is in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing.
    Absent,
    /// Bytes as on disk, and permissions.
    File { oid: Oid, perm: u32 },
    /// A symbolic link.
    Link { oid: Oid },
    /// A folder.
    Folder { perm: u32 },
    /// A submodule.
    Submodule { oid: Oid },
}

impl State {
    /// The object with its bytes.
    pub(crate) fn oid(self) -> Option<Oid> {
        match self {
            Self::File { oid, .. } | Self::Link { oid } => Some(oid),
            Self::Absent | Self::Folder { .. } | Self::Submodule { .. } => None,
        }
    }

    /// Whether something else has to go before this can be there.
    pub(crate) fn same_type(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// A path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) path: Vec<u8>,
    pub(crate) from: State,
    pub(crate) to: State,
}

/// One version of a work tree.
pub(crate) struct Version<'a> {
    dir: &'a Path,
    tree: String,
    pub(crate) manifest: Option<Manifest>,
    raw: HashMap<Vec<u8>, Oid>,
}

type Files = BTreeMap<Vec<u8>, (u32, Oid)>;

impl<'a> Version<'a> {
    /// Opens a snapshot or a plain commit.
    pub(crate) fn open(dir: &'a Path, commit: &str) -> Result<Self, Error> {
        let manifest = snapshot::manifest(dir, commit)?;
        if manifest.is_none() {
            let tree = format!("{commit}^{{tree}}");
            return Ok(Self { dir, tree, manifest, raw: HashMap::new() });
        }
        let sides = list(dir, &format!("{commit}:side"), &["-r"])?;
        let raw = |(path, (_, oid)): (&Vec<u8>, &(u32, Oid))| {
            Some((path.strip_prefix(b"raw/".as_slice())?.to_vec(), *oid))
        };
        let raw = sides.iter().filter_map(raw).collect();
        Ok(Self { dir, tree: format!("{commit}:tree"), manifest, raw })
    }

    /// All files.
    pub(crate) fn files(&self) -> Result<Files, Error> {
        list(self.dir, &self.tree, &["-r"])
    }

    /// All folders.
    pub(crate) fn folders(&self, manifest: &Manifest) -> Result<BTreeSet<Vec<u8>>, Error> {
        let listed = list(self.dir, &self.tree, &["-r", "-d"])?;
        let trees = listed.into_iter().filter(|(_, (mode, _))| *mode == TREE);
        let mut folders: BTreeSet<Vec<u8>> = trees.map(|(path, _)| path).collect();
        let bare = self.manifest.as_ref().unwrap_or(manifest);
        for path in &bare.folders {
            let mut path = path.as_slice();
            while !path.is_empty() && folders.insert(path.to_vec()) {
                path = parent(path).unwrap_or_default();
            }
        }
        Ok(folders)
    }

    /// What a path that git holds is on disk.
    pub(crate) fn state(&self, path: &[u8], mode: u32, oid: Oid, manifest: &Manifest) -> State {
        let manifest = self.manifest.as_ref().unwrap_or(manifest);
        match mode {
            0 => State::Absent,
            LINK => State::Link { oid },
            GITLINK => State::Submodule { oid },
            mode => {
                let class = if mode == EXEC { Class::Exec } else { Class::File };
                let oid = self.raw.get(path).copied().unwrap_or(oid);
                State::File { oid, perm: manifest.perm(path, class) }
            }
        }
    }
}

/// Lists a tree: `MODE TYPE OID<tab>PATH`.
fn list(dir: &Path, tree: &str, how: &[&str]) -> Result<Files, Error> {
    let output = Git::at(dir).args(["ls-tree", "-z", "--full-tree"]).args(how).arg(tree).bytes()?;
    let entry = |(words, path): (Vec<&str>, &[u8])| {
        let found = words.first().zip(words.get(2)).and_then(|(mode, oid)| held(mode, oid));
        found.map(|found| (path.to_vec(), found)).ok_or_else(|| odd("ls-tree", path))
    };
    git::tabbed(&output).map(entry).collect()
}

/// A mode and an id, as git prints them.
fn held(mode: &str, oid: &str) -> Option<(u32, Oid)> {
    Some((u32::from_str_radix(mode, 8).ok()?, Oid::from_hex(oid.as_bytes())?))
}

fn odd(command: &str, line: &[u8]) -> Error {
    Error::Git(crate::git::Error {
        command: command.to_owned(),
        code: Some(0),
        message: format!("unexpected line {:?}", String::from_utf8_lossy(line)),
    })
}

/// The paths that differ between two versions, sorted.
pub(crate) fn compare(dir: &Path, a: &str, b: &str) -> Result<Vec<Step>, Error> {
    let (a, b) = (Version::open(dir, a)?, Version::open(dir, b)?);
    compare_versions(&a, &b)
}

/// The same, of versions that are open.
pub(crate) fn compare_versions(a: &Version<'_>, b: &Version<'_>) -> Result<Vec<Step>, Error> {
    let nothing = Manifest::default();
    // Where one says nothing, it is taken to say what the other does.
    let for_a = b.manifest.as_ref().unwrap_or(&nothing);
    let for_b = a.manifest.as_ref().unwrap_or(&nothing);
    let of_a = a.manifest.as_ref().unwrap_or(for_a);
    let of_b = b.manifest.as_ref().unwrap_or(for_b);
    let mut steps: BTreeMap<Vec<u8>, Step> = BTreeMap::new();
    // Git may hold other bytes for a file that is the same on disk.
    let mut looked_at = BTreeSet::new();
    for (path, old, new) in diff_tree(a, b)? {
        looked_at.insert(path.clone());
        let from = a.state(&path, old.0, old.1, for_a);
        let to = b.state(&path, new.0, new.1, for_b);
        if from != to {
            steps.insert(path.clone(), Step { path, from, to });
        }
    }
    let named = |v: &Version<'_>, m: &Manifest| {
        v.raw.keys().chain(m.modes.keys()).cloned().collect::<BTreeSet<Vec<u8>>>()
    };
    let same_usual = of_a.same_usual(of_b);
    let mut suspects = named(a, of_a);
    suspects.append(&mut named(b, of_b));
    suspects.retain(|path| !looked_at.contains(path));
    if !suspects.is_empty() || !same_usual {
        for (path, (mode, oid)) in b.files()? {
            if looked_at.contains(&path) || (same_usual && !suspects.contains(&path)) {
                continue;
            }
            // Git holds the same in both; only the side may differ.
            let (from, to) = (a.state(&path, mode, oid, for_a), b.state(&path, mode, oid, for_b));
            if from != to {
                steps.insert(path.clone(), Step { path, from, to });
            }
        }
    }
    let (folders_a, folders_b) = (a.folders(for_a)?, b.folders(for_b)?);
    for path in folders_a.union(&folders_b) {
        let state = |folders: &BTreeSet<Vec<u8>>, manifest: &Manifest| match folders.get(path) {
            Some(_) => State::Folder { perm: manifest.perm(path, Class::Folder) },
            None => State::Absent,
        };
        let (from, to) = (state(&folders_a, of_a), state(&folders_b, of_b));
        if from == to {
            continue;
        }
        let step = steps.entry(path.clone());
        let step = step.or_insert_with(|| Step { path: path.clone(), from, to });
        // A file on one side and a folder on the other is one step.
        if from != State::Absent {
            step.from = from;
        }
        if to != State::Absent {
            step.to = to;
        }
    }
    Ok(steps.into_values().collect())
}

type Difference = (Vec<u8>, (u32, Oid), (u32, Oid));

fn diff_tree(a: &Version<'_>, b: &Version<'_>) -> Result<Vec<Difference>, Error> {
    let output = Git::at(a.dir)
        .args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none"])
        .args([&a.tree, &b.tree])
        .bytes()?;
    let difference = |change: &git::RawChange<'_>| {
        let ([old, new], [from, to]) = (change.modes, change.ids);
        Some((change.path.to_vec(), held(old, from)?, held(new, to)?))
    };
    let changes = git::raw_changes(&output);
    let found = changes.and_then(|all| all.iter().map(difference).collect());
    found.ok_or_else(|| odd("diff-tree", &output))
}

//! What git would make of a file's bytes on the way in: line endings, `$Id$`, encodings, filters.
//!
//! Git itself does the converting, through an index and an object folder of our own, so that it
//! decides as `git add` would (also by what is tracked now). Attributes are asked for only when
//! there are any, and files are handed over only when their bytes could be touched.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use super::content::Task;
use super::entry::View;
use super::walk::{Body, Folder, Walk};
use super::{Error, attributes};
use crate::git::{self, Git};
use crate::objects::{self, Kind, Objects, Oid};

/// Files handed to git at once; bounds the memory that what it gives back takes.
const BATCH_MAX: usize = 256;

/// What could happen to a file's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Conversion {
    /// Nothing.
    #[default]
    None,
    /// Line endings, and `$Id$` perhaps.
    Text { ident: bool, endings: bool },
    /// Anything.
    Program,
}

impl Conversion {
    /// Whether it would touch these bytes.
    pub(super) fn touches(self, data: &[u8]) -> bool {
        let has = |needle: &[u8]| data.windows(needle.len()).any(|w| w == needle);
        match self {
            Self::None => false,
            Self::Text { ident, endings } => (endings && has(b"\r\n")) || (ident && has(b"$Id")),
            Self::Program => true,
        }
    }
}

/// Finds out what could happen to each file.
pub(super) fn classify(
    walk: &Walk<'_>,
    folders: &[Folder],
    tasks: &mut [Task],
) -> Result<(), Error> {
    let settings = &walk.head.settings;
    if !settings.has_attributes() && !folders.iter().any(|f| has_attributes(walk, f)) {
        if settings.autocrlf {
            let text = Conversion::Text { ident: false, endings: true };
            for task in tasks {
                task.set(text);
            }
        }
        return Ok(());
    }
    let input = git::ended(tasks.iter().map(|task| &task.path));
    let names = ["text", "crlf", "eol", "ident", "filter", "working-tree-encoding"];
    let listed =
        Git::at(&walk.repo.root).args(["check-attr", "-z", "--stdin"]).args(names).input(input);
    let listed = listed.bytes()?;
    let mut fields = listed.split(|b| *b == 0);
    let mut all: HashMap<&[u8], Attributes> = HashMap::new();
    while let (Some(path), Some(name), Some(value)) = (fields.next(), fields.next(), fields.next())
    {
        all.entry(path).or_default().take(name, value);
    }
    for task in tasks {
        let found = all.get(task.path.as_slice()).map(|a| a.conversion(settings.autocrlf));
        task.set(found.unwrap_or(Conversion::Program));
    }
    Ok(())
}

/// Whether a folder has attributes of its own.
pub(super) fn has_attributes(walk: &Walk<'_>, folder: &Folder) -> bool {
    match &folder.body {
        Body::Same(at) => walk.cache.is_some_and(|c| c.record(*at).attributes),
        Body::Listed(entries) => entries.iter().any(|e| e.name == attributes::FILE),
    }
}

/// Whether a block of the cache has attributes in it.
pub(super) fn block_has_attributes(block: &[u8]) -> bool {
    View::all(block).any(|view| view.name == attributes::FILE)
}

#[derive(Default)]
struct Attributes {
    /// Whether line endings may be converted, if anything says so.
    text: Option<bool>,
    ident: bool,
    program: bool,
}

impl Attributes {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        let given = value != b"unspecified";
        match name {
            b"text" if value == b"unset" => self.text = Some(false),
            b"text" | b"crlf" | b"eol" if given && value != b"unset" && self.text.is_none() => {
                self.text = Some(true);
            }
            b"ident" => self.ident = value == b"set",
            b"filter" | b"working-tree-encoding" => self.program |= given && value != b"unset",
            _ => {}
        }
    }

    fn conversion(&self, autocrlf: bool) -> Conversion {
        let endings = self.text.unwrap_or(autocrlf);
        match (self.program, self.ident || endings) {
            (true, _) => Conversion::Program,
            (false, true) => Conversion::Text { ident: self.ident, endings },
            (false, false) => Conversion::None,
        }
    }
}

/// Has git convert files; `None` for those whose filter failed.
pub(super) fn clean(
    walk: &Walk<'_>,
    scratch: &Path,
    paths: &[&[u8]],
    objects: &mut Objects,
) -> Result<Vec<Option<Oid>>, Error> {
    let failed = |e| Error::file(scratch, e);
    let mut cleaned = Vec::with_capacity(paths.len());
    for batch in paths.chunks(BATCH_MAX) {
        let _ = std::fs::remove_dir_all(scratch);
        std::fs::create_dir_all(scratch.join("objects")).map_err(failed)?;
        let done = clean_batch(walk, scratch, batch, objects);
        let _ = std::fs::remove_dir_all(scratch);
        cleaned.extend(done?);
    }
    Ok(cleaned)
}

fn clean_batch(
    walk: &Walk<'_>,
    scratch: &Path,
    batch: &[&[u8]],
    objects: &mut Objects,
) -> Result<Vec<Option<Oid>>, Error> {
    let mut found = Vec::new();
    match add(walk, scratch, batch) {
        Ok(ids) => found.extend(batch.iter().map(|path| ids.get(*path).copied())),
        // One of them has a filter that fails: which, git does not say in a way to rely on.
        Err(_) => {
            for path in batch {
                match add(walk, scratch, &[path]) {
                    Ok(ids) => found.push(ids.get(*path).copied()),
                    Err(Error::Git(error)) if git_blames_filter(&error.message) => found.push(None),
                    Err(error) => return Err(error),
                }
            }
        }
    }
    let wanted: Vec<Oid> = found.iter().flatten().copied().filter(|o| objects.wants(*o)).collect();
    if wanted.is_empty() {
        return Ok(found);
    }
    let input = Oid::lines(&wanted);
    let output = at(walk, scratch).args(["cat-file", "--batch"]).input(input).bytes()?;
    let mut contents = git::contents(&output);
    for oid in wanted {
        let broken = || objects::Error::Pack(format!("git converted a file but lost {oid}"));
        if objects.put(Kind::Blob, contents.next().ok_or_else(broken)?)? != oid {
            return Err(broken().into());
        }
    }
    Ok(found)
}

/// Whether git failed because of a file's own filter or encoding, and not because of git.
fn git_blames_filter(message: &str) -> bool {
    message.contains("filter") || message.contains("encode")
}

/// A git that writes into the scratch folder only.
fn at(walk: &Walk<'_>, scratch: &Path) -> Git {
    let mut there = OsString::from("\"");
    // Quoted, because the separator of paths may be part of one.
    there.push(walk.repo.objects().to_string_lossy().replace('\\', "\\\\").replace('"', "\\\""));
    there.push("\"");
    Git::at(&walk.repo.root)
        .config("core.safecrlf=false")
        .index(&scratch.join("index"))
        .env("GIT_OBJECT_DIRECTORY", scratch.join("objects"))
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", there)
}

/// Adds files to an index that knows only what is tracked of them; gives back their ids.
fn add(walk: &Walk<'_>, scratch: &Path, paths: &[&[u8]]) -> Result<HashMap<Vec<u8>, Oid>, Error> {
    let _ = std::fs::remove_file(scratch.join("index"));
    let index = walk.index()?;
    let tracked = paths.iter().filter_map(|path| index.get(path)).map(|entry| {
        [format!("{:o} {} 0\t", entry.mode, entry.oid).as_bytes(), &entry.path].concat()
    });
    let tracked = git::ended(tracked);
    if !tracked.is_empty() {
        at(walk, scratch).args(["update-index", "-z", "--index-info"]).input(tracked).run()?;
    }
    at(walk, scratch)
        .args(["update-index", "--add", "-z", "--stdin"])
        .input(git::ended(paths))
        .run()?;
    let listed = at(walk, scratch).args(["ls-files", "-s", "-z"]).bytes()?;
    let id = |(words, path): (Vec<&str>, &[u8])| {
        Some((path.to_vec(), Oid::from_hex(words.get(1)?.as_bytes())?))
    };
    Ok(git::tabbed(&listed).filter_map(id).collect())
}

//! The files of a run's plan: kept before a replan and as it left them, and put back.
//!
//! They are the plan's own file and all that its protocol reads to read it. The copies lie in the folder
//! of the run, one folder for each version, which is there completely or not at all. Files that a replan
//! made and that are not read before it stay where they are.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use piton_core::{Plan, RunState};
use piton_engine::world::{NotAPlan, PlanRead, Plans, Version};
use piton_engine::{Error, Result};
use piton_formats::plan::PLAN_BYTES_MAX;
use piton_protocols::files::Wanted;

use crate::read;
use crate::views::replace::Replacer;

/// The folder of the copies, within that of a run.
const DIR: &str = "replans";
/// The file that lists the paths of a copy, a line each; the files beside it have their numbers.
const NAMES: &str = "names";
/// Copies of what was found in the place of a version; more than that is a loop.
const FOUND_MAX: usize = 1_000;

/// Gives the text of a file by its path from the project's root.
pub type Texts<'t> = dyn Fn(&str) -> io::Result<String> + 't;

/// Reads a plan from texts, as the recorded one was read; why it is none otherwise.
pub type Reader = dyn Fn(&RunState, &Plan, &Texts<'_>) -> Result<PlanRead, NotAPlan>;

/// The files of a run's plan.
pub struct PlanFiles {
    root: PathBuf,
    dir: PathBuf,
    replacer: Replacer,
    reader: Box<Reader>,
}

/// A file and its bytes.
type Copy = (String, Vec<u8>);

impl PlanFiles {
    /// The files of the plan of a run in `run_dir`; `state_dir` outlives all runs.
    pub fn new(root: &Path, run_dir: &Path, state_dir: &Path, reader: Box<Reader>) -> Self {
        let replacer = Replacer::new(root, state_dir);
        Self { root: root.to_owned(), dir: run_dir.join(DIR), replacer, reader }
    }

    fn folder(&self, attempt: u32, version: Version) -> PathBuf {
        folder(&self.dir, attempt, version)
    }

    /// The files of the plan as they are on disk.
    fn present(&self, state: &RunState, before: Option<&Plan>) -> io::Result<Vec<Copy>> {
        let asked = RefCell::new(vec![state.plan_path.clone()]);
        let texts = |path: &str| {
            let text = read::text(&self.root.join(path), PLAN_BYTES_MAX);
            let mut asked = asked.borrow_mut();
            if text.is_ok() && !asked.iter().any(|known| known == path) {
                asked.push(path.to_owned());
            }
            text
        };
        if let Some(before) = before {
            // Whether it is a plan is judged by the copy.
            let _ = (self.reader)(state, before, &texts);
        }
        let mut found = Vec::new();
        for path in asked.into_inner() {
            match read::bytes(&self.root.join(&path), PLAN_BYTES_MAX) {
                Ok(bytes) => found.push((path, bytes)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(_) if self.root.join(&path).is_dir() => {}
                Err(e) => return Err(io::Error::new(e.kind(), format!("{path}: {e}"))),
            }
        }
        Ok(found)
    }

    fn put_file(&mut self, attempt: u32, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut known: Vec<Vec<u8>> = vec![bytes.to_vec()];
        for version in [Version::Before, Version::After] {
            let copies = load(&self.folder(attempt, version)).unwrap_or_default();
            known.extend(copies.into_iter().filter(|(name, _)| name == path).map(|(_, b)| b));
        }
        let full = self.root.join(path);
        let aside = self.dir.join(attempt.to_string());
        self.replacer.replace(&full, &attempt.to_string(), &mut |there, _| {
            let there = there.unwrap_or(bytes);
            if !known.iter().any(|version| version == there) {
                keep_found(&aside, there)?;
                known.push(there.to_vec());
            }
            Ok(Wanted::Text { text: bytes.to_vec(), sync: true })
        })?;
        // Also where it was there already: what is recorded next says so.
        File::open(&full)?.sync_all()?;
        full.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

impl Plans for PlanFiles {
    fn keep(&mut self, state: &RunState, before: &Plan, attempt: u32) -> Result<()> {
        let copies = self.present(state, Some(before)).map_err(Error::world)?;
        if copies.is_empty() {
            return Err(Error::world(format!("{} is gone", state.plan_path)));
        }
        // A replan of that number never began.
        let folder = self.dir.join(attempt.to_string());
        match fs::remove_dir_all(&folder) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Error::world(e)),
            _ => {}
        }
        save(&self.folder(attempt, Version::Before), &copies).map_err(Error::world)
    }

    fn left(
        &mut self,
        state: &RunState,
        attempt: u32,
        before: &Plan,
    ) -> Result<Result<PlanRead, NotAPlan>> {
        let folder = self.folder(attempt, Version::After);
        if !folder.exists() {
            let copies = self.present(state, Some(before)).map_err(Error::world)?;
            save(&folder, &copies).map_err(Error::world)?;
        }
        let copies = load(&folder).map_err(Error::world)?;
        Ok((self.reader)(state, before, &|path| of(&copies, &self.root, path)))
    }

    fn put(&mut self, _: &RunState, attempt: u32, version: Version) -> Result<()> {
        let copies = load(&self.folder(attempt, version)).map_err(Error::world)?;
        for (path, bytes) in copies {
            self.put_file(attempt, &path, &bytes).map_err(Error::world)?;
        }
        Ok(())
    }
}

/// The texts of a plan as they were before the replan that is under way, for whoever goes on with the
/// run; files that are not kept are read where they lie.
pub fn before(
    root: &Path,
    run_dir: &Path,
    attempt: u32,
) -> io::Result<impl Fn(&str) -> io::Result<String> + use<>> {
    let copies = load(&folder(&run_dir.join(DIR), attempt, Version::Before))?;
    let root = root.to_owned();
    Ok(move |path: &str| of(&copies, &root, path))
}

/// Keeps what lies in the place of a file and is no version of it.
fn keep_found(dir: &Path, bytes: &[u8]) -> io::Result<()> {
    for number in 0..FOUND_MAX {
        let path = dir.join(format!("found-{number}"));
        match File::options().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes)?;
                file.sync_all()?;
                return File::open(dir)?.sync_all();
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other("too many copies are kept"))
}

fn of(copies: &[Copy], root: &Path, path: &str) -> io::Result<String> {
    let Some((_, bytes)) = copies.iter().find(|(name, _)| name == path) else {
        return read::text(&root.join(path), PLAN_BYTES_MAX);
    };
    String::from_utf8(bytes.clone()).map_err(|_| io::Error::other("it is not UTF-8"))
}

fn folder(dir: &Path, attempt: u32, version: Version) -> PathBuf {
    let name = match version {
        Version::Before => "before",
        Version::After => "after",
    };
    dir.join(attempt.to_string()).join(name)
}

/// Writes a folder of copies: durable, and there completely or not at all.
fn save(folder: &Path, copies: &[Copy]) -> io::Result<()> {
    let Some(parent) = folder.parent() else { return Err(io::ErrorKind::InvalidInput.into()) };
    fs::create_dir_all(parent)?;
    let half = folder.with_extension("half");
    match fs::remove_dir_all(&half) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    fs::create_dir(&half)?;
    let mut names = String::new();
    for (number, (path, bytes)) in copies.iter().enumerate() {
        names.push_str(path);
        names.push('\n');
        write(&half.join(number.to_string()), bytes)?;
    }
    write(&half.join(NAMES), names.as_bytes())?;
    File::open(&half)?.sync_all()?;
    fs::rename(&half, folder)?;
    // The folders above may be new too.
    for dir in folder.ancestors().skip(1).take(3) {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Reads a folder of copies.
fn load(folder: &Path) -> io::Result<Vec<Copy>> {
    let names = read::text(&folder.join(NAMES), PLAN_BYTES_MAX)?;
    let copy = |(number, path): (usize, &str)| {
        Ok((path.to_owned(), read::bytes(&folder.join(number.to_string()), PLAN_BYTES_MAX)?))
    };
    names.lines().enumerate().map(copy).collect()
}

//! The five small files by which git knows a worktree: made for a new one, made again for a torn one.
//!
//! In the admin folder `HEAD`, `commondir`, `gitdir` and `locked`, in the worktree `.git`. Their
//! format is in git's documentation (`gitrepository-layout`). None of them is synced when it is
//! made, because that costs more than all the rest of a worktree; the mark is, and says what they
//! held. Whoever reads a mark of an earlier boot looks at them first and writes what is torn again.
//! Until then git leaves the entry alone: the lock protects it by being there, whatever it holds.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::add::NUMBERS_MAX;
use super::admin::as_path;
use super::mark::{Mark, Owner};
use super::{At as _, Error, Result, remove};
use crate::files::{put, small};
use crate::git;
use crate::repo::{Memo, Repo, is_id};

/// What stands in `commondir`: an admin folder is two below what all work trees share.
const COMMON: &[u8] = b"../..\n";

/// How the lock of an admin folder is called before it is complete, with the run that makes it behind:
/// a kill may leave it empty. Git has no file of that name.
const LOCK_ASIDE: &str = "locked.new.";

/// Words in the settings of a repository under which git does more for a new worktree than write
/// these files, or other ones: copies of settings and of a sparse selection, permissions for a
/// group, relative paths, refs that are not files. Or there may be such settings elsewhere.
const UNUSUAL: [&[u8]; 5] = [b"worktree", b"sparse", b"shared", b"extensions", b"include"];

/// Settings of the same effect that may stand in a user's or the system's settings.
const UNUSUAL_KEYS: [&str; 3] =
    ["core.sharedrepository", "core.sparsecheckout", "worktree.userelativepaths"];

/// Repositories, and whether no settings of the user or the system are unusual. These are asked for
/// once: whoever changes them in the meantime gets worktrees as before, which are as valid.
static USUAL: Memo<PathBuf, bool> = Memo::new();

/// Registers a worktree, locked from its first moment on, as `git worktree add --no-checkout --lock`
/// does; its admin folder. `None` where that is for git to do. `path` is the real one, and its folder
/// is empty or not there.
pub(super) fn register(
    repo: &Repo,
    path: &Path,
    branch: &str,
    owner: &Owner,
) -> Result<Option<PathBuf>> {
    if !is_usual(repo) {
        return Ok(None);
    }
    let Some(admin) = name(repo, path)? else { return Ok(None) };
    let new = |file: &Path, bytes: &[u8]| {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .open(file)
            .and_then(|mut f| f.write_all(bytes))
            .at(file)
    };
    // First of all and whole, so that nobody prunes it and everybody knows whose it is.
    let (lock, aside) = (admin.join("locked"), admin.join(aside(&owner.run_id)));
    new(&aside, format!("{}\n", owner.reason()).as_bytes())?;
    fs::rename(&aside, &lock).at(&lock)?;
    new(&admin.join("gitdir"), &line(&[path.join(".git").as_os_str().as_bytes()]))?;
    new(&admin.join("commondir"), COMMON)?;
    new(&admin.join("HEAD"), &head(branch))?;
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => made.at(path)?,
    }
    let linked = new(&path.join(".git"), &link(&admin));
    if matches!(&linked, Err(Error::File { source, .. }) if source.kind() == ErrorKind::AlreadyExists)
    {
        // Another run was faster: the place is its own.
        remove::delete_later([None, remove::discard_admin(repo, &admin)?]);
    }
    linked.map(|()| Some(admin))
}

/// The lock of an admin folder that a run is about to complete.
fn aside(run_id: &str) -> String {
    format!("{LOCK_ASIDE}{run_id}")
}

/// The lock of an admin folder that some run was about to complete when it was killed, and which run.
pub(super) fn left_aside(admin: &Path) -> Option<(PathBuf, String)> {
    fs::read_dir(admin).ok()?.flatten().find_map(|entry| {
        let name = entry.file_name();
        let run_id = name.to_str()?.strip_prefix(LOCK_ASIDE)?;
        Some((entry.path(), run_id.to_owned()))
    })
}

/// Tells whether a folder holds nothing but a link to an admin folder that was never written whole.
pub(super) fn is_begun(path: &Path, admin: &Path) -> bool {
    let entries = fs::read_dir(path).into_iter().flatten();
    let mut names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let alone = matches!(names.next(), Some(Ok(name)) if name == ".git") && names.next().is_none();
    alone && small(&path.join(".git")).is_ok_and(|text| link(admin).starts_with(&text))
}

/// Writes what a power cut tore, durably, if the mark says what it was.
pub(super) fn repair(admin: &Path, mark: &Mark) -> io::Result<()> {
    let Some(made_at) = &mark.path else { return Ok(()) };
    let repair = |file: &Path, is_whole: &dyn Fn(&[u8]) -> bool, bytes: &[u8]| match small(file) {
        Ok(found) if !found.contains(&0) && is_whole(&found) => Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => Ok(()),
        _ => put(file, bytes),
    };
    let dot_git = Path::new(made_at).join(".git");
    let gitdir = line(&[dot_git.as_os_str().as_bytes()]);
    repair(&admin.join("gitdir"), &is_gitdir, &gitdir)?;
    repair(&admin.join("commondir"), &|found| found.trim_ascii() == COMMON.trim_ascii(), COMMON)?;
    // A step may have checked out something else, which is its own affair.
    repair(&admin.join("HEAD"), &is_head, &head(&mark.branch))?;
    // One that is not there was unlocked.
    let locked = admin.join("locked");
    if locked.exists() {
        let reason = format!("{}\n", mark.owner.reason());
        repair(&locked, &|found| !found.trim_ascii().is_empty(), reason.as_bytes())?;
    }
    // Where it is now, should somebody have moved it.
    let Some(path) = path(admin).filter(|path| path.is_dir()) else { return Ok(()) };
    repair(&path.join(".git"), &is_link, &link(admin))
}

/// The worktree that an admin folder leads to, by the name that it has there.
pub(super) fn path(admin: &Path) -> Option<PathBuf> {
    let text = small(&admin.join("gitdir")).ok().filter(|text| is_gitdir(text))?;
    // A path relative to the admin folder is followed as far as there is something.
    admin.join(as_path(&text)).parent().map(Path::to_owned)
}

fn is_gitdir(text: &[u8]) -> bool {
    text.trim_ascii_end().ends_with(b"/.git") && !text.contains(&0)
}

/// Whether a HEAD says something.
pub(super) fn is_head(text: &[u8]) -> bool {
    text.starts_with(b"ref:") || std::str::from_utf8(text).is_ok_and(|text| is_id(text.trim()))
}

fn head(branch: &str) -> Vec<u8> {
    line(&[b"ref: refs/heads/", branch.as_bytes()])
}

fn is_link(text: &[u8]) -> bool {
    text.strip_prefix(b"gitdir: ").is_some_and(|path| !path.trim_ascii().is_empty())
}

/// What the file in a worktree says.
pub(super) fn link(admin: &Path) -> Vec<u8> {
    line(&[b"gitdir: ", admin.as_os_str().as_bytes()])
}

fn line(parts: &[&[u8]]) -> Vec<u8> {
    let mut line = parts.concat();
    line.push(b'\n');
    line
}

/// Makes an admin folder: the name of the worktree's, with a number if it is taken. `None` if git
/// would name it differently.
pub(super) fn name(repo: &Repo, path: &Path) -> Result<Option<PathBuf>> {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_".contains(b);
    let plain = path.file_name().and_then(|name| name.to_str());
    let Some(name) = plain.filter(|name| name.as_bytes().iter().all(is_plain)) else {
        return Ok(None);
    };
    let all = repo.common.join("worktrees");
    let numbers = (1..=NUMBERS_MAX).map(|number| number.to_string());
    for number in std::iter::once(String::new()).chain(numbers) {
        let admin = all.join(format!("{name}{number}"));
        let mut made = fs::create_dir(&admin);
        if made.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            let _ = fs::create_dir(&all);
            made = fs::create_dir(&admin);
        }
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.at(&admin).map(|()| Some(admin)),
        }
    }
    Ok(None)
}

/// Whether git would do no more than we do.
pub(super) fn is_usual(repo: &Repo) -> bool {
    let Ok(mut own) = small(&repo.common.join("config")) else { return false };
    own.make_ascii_lowercase();
    let has = |word: &&[u8]| own.windows(word.len()).any(|found| found == *word);
    if UNUSUAL.iter().any(has) || repo.git_dir.join("info/sparse-checkout").exists() {
        return false;
    }
    if let Some(usual) = USUAL.get(&repo.common) {
        return usual;
    }
    let Ok(pairs) = git::config(&repo.root) else { return false };
    let usual = !pairs.iter().any(|(key, _)| UNUSUAL_KEYS.contains(&key.as_str()));
    USUAL.add(repo.common.clone(), usual);
    usual
}

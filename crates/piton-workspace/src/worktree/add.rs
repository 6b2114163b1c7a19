//! A worktree for a lane: found again, completed, or made.
//!
//! The order of the steps is what makes it safe to be killed: the branch is claimed in one ref
//! transaction, then the worktree is registered (locked with our reason from its first moment on), then the files are written, and last our mark. What has no mark yet was never handed out, so it
//! is thrown away and made again.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::admin::{self, Admin, Folder};
use super::branch::{self, Claim};
use super::mark::{self, Mark, Owner};
use super::{At as _, Error, Result, check, checkout, copy, links, list, locks, remove, reset};
use crate::files::{self, beneath};
use crate::refs::Fence;
use crate::repo::{self, Repo};

/// How many numbered names are tried before the name is given up.
pub(super) const NUMBERS_MAX: u32 = 99;

/// What the folder of all worktrees ignores: itself and everything below.
const IGNORE_ALL: &[u8] = b"*\n";

/// The worktree a lane needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The run.
    pub run_id: String,
    /// The lane, by a name that is unique within the run.
    pub lane: String,
    /// Where it should be, absolute or below the project's root.
    pub path: PathBuf,
    /// The short name its branch should have.
    pub branch: String,
    /// The commit it starts from.
    pub start: String,
    /// Files and folders of the project to copy into it when it is new.
    pub copy: Vec<String>,
    /// How many threads write its files.
    pub workers: usize,
}

impl Spec {
    pub(super) fn owner(&self) -> Owner {
        Owner { run_id: self.run_id.clone(), lane: self.lane.clone() }
    }
}

/// The worktree a lane got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// Where it is; not as asked if something foreign was there.
    pub path: PathBuf,
    /// Its branch, likewise.
    pub branch: String,
    /// The commit its branch is at.
    pub head: String,
    /// The commit the lane started from.
    pub start: String,
    /// It was there already; its files are as they were left.
    pub reused: bool,
    /// The lane started from another commit than the one asked for now.
    pub base_moved: bool,
    /// What should have been copied but is not in the project.
    pub not_copied: Vec<String>,
}

/// Finds or makes the worktree of a lane.
pub fn add(root: &Path, spec: &Spec, fence: &Fence) -> Result<Added> {
    let repo = Repo::find(root)?;
    check(&repo, fence)?;
    locks::await_children(&repo)?;
    let owner = spec.owner();
    let admins = admin::scan(&repo);
    for admin in admins.iter().filter(|a| a.owner() == Some(&owner)) {
        if let Some(added) = take_up(&repo, spec, admin, fence)? {
            return Ok(added);
        }
    }
    // Before a branch is made that nothing would come of.
    let wanted = repo.root.join(&spec.path);
    let nearest = |above: &Path| Some((above.to_owned(), fs::metadata(above).ok()?.is_dir()));
    if let Some((above, false)) = wanted.ancestors().skip(1).find_map(nearest) {
        return Err(Error::NoFolder(above));
    }
    let wanted = within(&repo, &wanted)?;
    let claim = branch::claim(&repo, spec, fence)?;
    make(&repo, &admins, spec, &claim, &wanted)
}

/// Where a worktree will be, by the real name of the folder that it will be in.
fn within(repo: &Repo, wanted: &Path) -> Result<PathBuf> {
    let (Some(above), Some(name)) = (wanted.parent(), wanted.file_name()) else {
        return Err(Error::NoFolder(wanted.to_owned()));
    };
    Ok(real(repo, above)?.join(name))
}

/// The real path of a folder for worktrees, or of one. A path outside of the project is meant; a link
/// that leads there is not.
pub(super) fn real(repo: &Repo, path: &Path) -> Result<PathBuf> {
    let is_root = |above: &Path| above.canonicalize().is_ok_and(|above| above == repo.root);
    if !path.ancestors().any(is_root) {
        return Ok(path.to_owned());
    }
    beneath::real(&repo.root, path).at(path)
}

/// Whether a folder is a worktree of ours, and was completed.
pub fn is_complete(path: &Path) -> bool {
    admin::leads_to(path).is_some_and(|dir| Mark::read(&dir).is_some())
}

/// Whether a folder is a worktree of ours that was last known to be complete before the machine restarted:
/// its files may be torn. Its index is not, after this.
pub fn restarted(root: &Path, path: &Path) -> Result<bool> {
    // The link in the folder may be torn as well: reading the marks writes it again.
    drop(admin::scan(&Repo::find(root)?));
    let mark = admin::leads_to(path).and_then(|dir| Mark::read(&dir));
    let is_earlier = mark.is_some_and(|mark| mark.boot != mark::boot());
    if is_earlier {
        reset::repair_index(&Repo::find(path)?)?;
    }
    Ok(is_earlier)
}

/// Notes that a worktree of ours is complete, as far as the machine did not restart since.
pub fn note_complete(path: &Path) -> Result<()> {
    let marked = admin::leads_to(path).and_then(|dir| Some((Mark::read(&dir)?, dir)));
    match marked.filter(|(mark, _)| mark.boot != mark::boot()) {
        Some((mark, dir)) => Mark { boot: mark::boot().to_owned(), ..mark }.write(&dir),
        None => Ok(()),
    }
}

/// Refuses a folder of a lane that has no entry in git: a person has to move it. Piton locks its worktrees,
/// so git does not prune them; somebody deleted the entry. What was staged, and a merge or rebase in
/// progress, went with it.
pub fn refuse_forgotten(root: &Path, spec: &Spec) -> Result<()> {
    let repo = Repo::find(root)?;
    let path = repo.root.join(&spec.path);
    let Ok(real) = path.canonicalize() else { return Ok(()) };
    locks::await_children(&repo)?;
    let (folder, owner) = (Folder::at(&real), spec.owner());
    let is_known = |a: &Admin| a.is_at(&folder) || a.owner() == Some(&owner);
    if admin::scan(&repo).iter().any(is_known) { Ok(()) } else { Err(Error::Forgotten(real)) }
}

/// Takes up an entry of the lane, or clears it away if it was never complete or lost its folder.
fn take_up(repo: &Repo, spec: &Spec, admin: &Admin, fence: &Fence) -> Result<Option<Added>> {
    let there = admin.path.as_ref().filter(|path| path.is_dir());
    if let Some(path) = there.and_then(|_| links::path(&admin.dir)) {
        // By the name that git knows: the entry has the real one.
        real(repo, &path)?;
    }
    let (Some(mark), Some(path)) = (&admin.mark, there) else {
        let begun = |path: &&PathBuf| admin.is_linked() || links::is_begun(path, &admin.dir);
        let files = there.filter(begun);
        let files = remove::discard_files(repo, files)?;
        remove::delete_later([files, remove::discard_admin(repo, &admin.dir)?]);
        return Ok(None);
    };
    if !admin.is_linked() {
        // Complete, with work in it, but its link is gone: somebody deleted the file `.git`.
        let link = path.join(".git");
        files::replace(&link, &links::link(&admin.dir)).at(link)?;
    }
    locks::sweep_admin(repo, &admin.dir, Some(mark))?;
    let own = repo.linked(path, &admin.dir);
    if mark.boot != mark::boot() {
        reset::repair_index(&own)?;
    }
    reset::finish_move(&own, mark, fence)?;
    let head = match branch::head(repo, &mark.branch) {
        // Somebody deleted it under the worktree.
        Err(Error::NoBranch(_)) => branch::make_again(&own, mark, fence)?,
        head => head?,
    };
    Ok(Some(Added {
        path: path.clone(),
        branch: mark.branch.clone(),
        head,
        start: mark.start.clone(),
        reused: true,
        base_moved: mark.start != spec.start,
        not_copied: Vec::new(),
    }))
}

fn make(repo: &Repo, admins: &[Admin], spec: &Spec, claim: &Claim, wanted: &Path) -> Result<Added> {
    let branch = claim.branch.as_str();
    if let Some(path) = list::checked_out_in(repo, branch) {
        return Err(Error::BranchInUse { branch: branch.to_owned(), path });
    }
    hide_folder(repo, admins, &repo.root.join(&spec.path))?;
    let (path, dir) = at_free_path(repo, admins, spec, claim, wanted)?;
    let head = branch::head(repo, branch)?;
    checkout::fill(repo, &path, &dir, &head, spec.workers)?;
    let not_copied = copy::into(&repo.root, &path, &spec.copy)?;
    let mark = Mark {
        owner: spec.owner(),
        branch: branch.to_owned(),
        start: claim.start.clone(),
        boot: mark::boot().to_owned(),
        path: mark::as_line(&path),
        // A name of several lines could not be told apart in the mark.
        missing: not_copied.iter().filter(|name| !name.contains('\n')).cloned().collect(),
    };
    if mark.path.is_none() || mark.boot.is_empty() {
        // After a power cut nobody could tell that they are torn, or what they held.
        sync(&path, &dir)?;
    }
    mark.write_first(&dir)?;
    Ok(Added {
        path,
        branch: mark.branch,
        head,
        base_moved: mark.start != spec.start,
        start: mark.start,
        reused: false,
        not_copied,
    })
}

/// Registers the worktree at the first path that is free, also where another run takes that in the meantime.
fn at_free_path(
    repo: &Repo,
    admins: &[Admin],
    spec: &Spec,
    claim: &Claim,
    wanted: &Path,
) -> Result<(PathBuf, PathBuf)> {
    let mut path = free_path(admins, wanted)?;
    for _ in 1..branch::CLAIMS_MAX {
        match register(repo, spec, claim, &path) {
            Err(error) if is_taken(&error) && path.join(".git").exists() => {
                path = free_path(&admin::scan(repo), wanted)?;
            }
            registered => return registered,
        }
    }
    register(repo, spec, claim, &path)
}

/// Whether something was in the way.
fn is_taken(error: &Error) -> bool {
    match error {
        Error::File { source, .. } => source.kind() == ErrorKind::AlreadyExists,
        error => matches!(error, Error::Git(_)),
    }
}

/// Registers the worktree at a path that is free; its real path and its admin folder.
fn register(repo: &Repo, spec: &Spec, claim: &Claim, path: &Path) -> Result<(PathBuf, PathBuf)> {
    let owner = spec.owner();
    // Git refuses a branch that somebody is about to rebase, which a new one can't be.
    if let (true, Some(above), Some(name)) = (claim.is_new, path.parent(), path.file_name()) {
        let real = repo::real(above).at(above)?.join(name);
        if let Some(dir) = links::register(repo, &real, &claim.branch, &owner)? {
            return Ok((real, dir));
        }
    }
    repo.git()
        .config("worktree.guessRemote=false")
        .args(["worktree", "add", "--quiet", "--no-checkout", "--lock", "--reason"])
        .args([&owner.reason(), "--"])
        .arg(path)
        .arg(&claim.branch)
        .run()?;
    let path = path.canonicalize().at(path)?;
    let dir = admin::leads_to(&path).ok_or_else(|| Error::Foreign(path.clone()))?;
    Ok((path, dir))
}

/// Copies into a worktree of ours what was not there to be copied when it was made; what came now.
pub fn copy_missing(root: &Path, path: &Path) -> Result<Vec<String>> {
    let marked = admin::leads_to(path).and_then(|dir| Some((Mark::read(&dir)?, dir)));
    let Some((mark, dir)) = marked.filter(|(mark, _)| !mark.missing.is_empty()) else {
        return Ok(Vec::new());
    };
    let repo = Repo::find(root)?;
    // What a step made in the meantime is its own.
    let absent = |name: &&String| fs::symlink_metadata(path.join(name)).is_err();
    let wanted: Vec<String> = mark.missing.iter().filter(absent).cloned().collect();
    let missing = copy::into(&repo.root, path, &wanted)?;
    let copied = wanted.into_iter().filter(|name| !missing.contains(name)).collect::<Vec<_>>();
    if missing != mark.missing {
        Mark { missing, ..mark }.write(&dir)?;
    }
    Ok(copied)
}

/// Makes durable what says where a worktree is, before the mark says that it is complete.
fn sync(path: &Path, admin: &Path) -> Result<()> {
    let own = ["HEAD", "commondir", "gitdir", "locked"].map(|name| admin.join(name));
    for file in own.iter().chain([&path.join(".git")]) {
        fs::File::open(file).and_then(|file| file.sync_all()).at(file)?;
    }
    Ok(())
}

/// Makes the folder of all worktrees ignore itself, so that it never counts as a change.
fn hide_folder(repo: &Repo, admins: &[Admin], path: &Path) -> Result<()> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).at(parent)?;
    // A task's worktree is within its lane's, whose files are none of ours to add to.
    let below = path.strip_prefix(&repo.root).ok().filter(|_| repo.is_main());
    let Some(first) = below.and_then(|rest| rest.components().next()) else { return Ok(()) };
    let top = repo.root.join(first);
    if top == path || admins.iter().any(|a| a.path.as_ref().is_some_and(|p| *p == top)) {
        return Ok(());
    }
    let ignore = top.join(".gitignore");
    match fs::metadata(&ignore) {
        Ok(found) if found.len() > 0 => Ok(()),
        // Another run may write the same bytes at the same time, which does no harm.
        _ => fill(&ignore).at(ignore),
    }
}

/// Writes the rule that ignores everything, and syncs it.
fn fill(ignore: &Path) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(false).open(ignore)?;
    file.write_all(IGNORE_ALL)?;
    file.sync_all()?;
    files::sync::folder(ignore.parent().unwrap_or(ignore))
}

/// The first path of that name that nobody uses: not there, or an empty folder.
fn free_path(admins: &[Admin], wanted: &Path) -> Result<PathBuf> {
    let is_free = |path: &Path| {
        let there = fs::symlink_metadata(path).ok();
        let empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        let unused = there.as_ref().is_none_or(|found| found.is_dir() && empty());
        let folder = Folder::with(path, there.as_ref());
        // Those that were cleared away a moment ago are not there any more.
        unused && !admins.iter().any(|admin| admin.is_at(&folder) && admin.dir.is_dir())
    };
    let name = wanted.file_name().unwrap_or_default();
    let numbered = (2..=NUMBERS_MAX).map(|number| {
        let mut name = name.to_owned();
        name.push(format!("-{number}"));
        wanted.with_file_name(name)
    });
    let mut all = std::iter::once(wanted.to_owned()).chain(numbered);
    all.find(|path| is_free(path)).ok_or_else(|| Error::NoFreeName(wanted.display().to_string()))
}

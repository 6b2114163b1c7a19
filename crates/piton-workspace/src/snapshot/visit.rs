//! One folder of the walk: the quick way when its names are known, the careful one otherwise.

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use super::entry::{Entry, FolderKind, Kind, View, Why};
use super::protected::is_refused;
use super::rules::Ignores;
use super::stat::Stat;
use super::walk::{Body, Folder, Job, Walk};
use super::{Error, attributes};
use crate::files::join;
use crate::objects::{EXEC, GITLINK, Oid};
use crate::repo::Project;

/// The file of a folder's ignore rules.
const IGNORES: &[u8] = b".gitignore";

/// A name on disk.
struct Found {
    name: Vec<u8>,
    stat: Stat,
}

/// How a name is to be treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Take,
    /// Ignored, but tracked.
    TakeTracked,
    Leave,
}

impl Walk<'_> {
    /// Visits one folder; `None` if it is gone.
    pub(super) fn visit(&self, job: Job, children: &mut Vec<Job>) -> Result<Option<Folder>, Error> {
        let link = self.head.links.binary_search_by(|l| l.path.as_slice().cmp(&job.path));
        if let Ok(at) = link {
            let inside = Project::discover(&self.full(&job.path)).ok();
            let own = inside.filter(|p| p.root == self.full(&job.path)).and_then(|p| p.head());
            let oid = own.and_then(|id| Oid::from_hex(id.as_bytes()));
            let kind = FolderKind::Submodule(oid.unwrap_or(self.head.links[at].oid));
            return Ok(Some(self.closed(job, kind)));
        }
        let fd = match self.open(&job.path) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(Errno::ACCESS | Errno::PERM) => {
                return Ok(Some(self.closed(job, FolderKind::Unreadable)));
            }
            Err(error) => return Err(Error::io(&self.full(&job.path), error)),
        };
        if let Some(folder) = self.quick(&job, &fd, children)? {
            return Ok(Some(folder));
        }
        children.clear();
        self.careful(job, fd, children)
    }

    /// Looks only at names that the cache has; `None` if that does not do.
    fn quick(
        &self,
        job: &Job,
        fd: &OwnedFd,
        children: &mut Vec<Job>,
    ) -> Result<Option<Folder>, Error> {
        let Some((cache, at)) = self.cache.and_then(|c| Some((c, c.folder(&job.path)?))) else {
            return Ok(None);
        };
        let record = cache.record(at);
        let judged =
            job.reconsider || self.index_changed || record.tracked_only != job.tracked_only;
        if judged || record.stat != job.stat {
            return Ok(None);
        }
        match record.kind {
            FolderKind::Plain => {}
            FolderKind::Nested => {
                let Job { stat, tracked_only, .. } = *job;
                let (path, kind, body) = (job.path.clone(), record.kind, Body::Same(at));
                return Ok(Some(Folder { path, stat, kind, tracked_only, body }));
            }
            _ => return Ok(None),
        }
        let mut dirty: Vec<(usize, Stat)> = Vec::new();
        let mut ignores = None;
        for (place, known) in View::all(cache.block(at)).enumerate() {
            // Rules hold even where they ignore their own file.
            let own_rules = is_rules(known.name);
            if known.kind == Kind::Ignored && !own_rules {
                continue;
            }
            let stat = match rustix::fs::statat(fd, known.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Stat::new(&stat),
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => {
                    return Err(Error::io(&self.full(&join(&job.path, known.name)), error));
                }
            };
            if known.name == IGNORES {
                ignores = Some(Ignores::within(job.ignores.clone(), &self.repo.root, &job.path));
            }
            if known.kind == Kind::Folder {
                if stat.file_type() != FileType::Directory {
                    return Ok(None);
                }
                let tracked_only = job.tracked_only || known.forced;
                let path = join(&job.path, known.name);
                children.push(Job { path, stat, ignores: None, reconsider: false, tracked_only });
            } else if stat != known.stat {
                if own_rules || stat.file_type() != known.stat.file_type() {
                    return Ok(None);
                }
                dirty.push((place, stat));
            }
        }
        let ignores = ignores.or_else(|| job.ignores.clone());
        for child in children.iter_mut() {
            child.ignores.clone_from(&ignores);
        }
        let body = if dirty.is_empty() {
            Body::Same(at)
        } else {
            let mut entries = cache.entries(at);
            for (place, stat) in dirty {
                let path = join(&job.path, &entries[place].name);
                let (known, forced) = (entries[place].clone(), entries[place].forced);
                entries[place] = self.file(&path, &known.name, stat, Some(&known))?;
                entries[place].forced = forced;
            }
            Body::Listed(entries)
        };
        Ok(Some(Folder {
            path: job.path.clone(),
            stat: job.stat,
            kind: FolderKind::Plain,
            tracked_only: job.tracked_only,
            body,
        }))
    }

    /// Reads the names again and judges each that the cache does not vouch for.
    fn careful(
        &self,
        mut job: Job,
        fd: OwnedFd,
        children: &mut Vec<Job>,
    ) -> Result<Option<Folder>, Error> {
        let known = self.known(&job);
        let mut found = match self.names(&job, fd) {
            Ok(found) => found,
            Err(Error::Io { source, .. })
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                return Ok(Some(self.closed(job, FolderKind::Unreadable)));
            }
            Err(error) => return Err(error),
        };
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let inside = !job.path.is_empty();
        if inside && found.iter().any(|f| f.name == b".git") && self.is_nested(&job)? {
            return Ok(Some(self.closed(job, FolderKind::Nested)));
        }
        let lookup = |name: &[u8]| {
            known.binary_search_by(|e| e.name.as_slice().cmp(name)).ok().map(|at| &known[at])
        };
        let rules_now = found.iter().find(|f| f.name == IGNORES);
        let rules_then = lookup(IGNORES);
        job.reconsider |= rules_now.map(|f| f.stat) != rules_then.map(|e| e.stat);
        if rules_now.is_some() {
            job.ignores = Some(Ignores::within(job.ignores, &self.repo.root, &job.path));
        }
        let mut entries = Vec::with_capacity(found.len());
        for Found { name, stat } in found {
            let path = join(&job.path, &name);
            let old = lookup(&name);
            let is_dir = stat.file_type() == FileType::Directory;
            let verdict = self.judge(&job, &path, &name, is_dir, old)?;
            if verdict == Verdict::Leave {
                let bare = Stat { mode: stat.mode, ..Stat::default() };
                let stamp = if is_rules(&name) { stat } else { bare };
                entries.push(Entry::new(&name, Kind::Ignored, stamp));
                continue;
            }
            let forced = verdict == Verdict::TakeTracked;
            let mut entry = if is_dir && !is_refused(&name, false) {
                children.push(Job {
                    // One that is named itself is captured with all that is in it, be it nothing.
                    tracked_only: forced && !self.rules.also.contains(&join(&path, b"")),
                    path,
                    stat,
                    ignores: job.ignores.clone(),
                    reconsider: job.reconsider,
                });
                Entry::new(&name, Kind::Folder, stat)
            } else {
                self.file(&path, &name, stat, old)?
            };
            entry.forced = forced;
            entries.push(entry);
        }
        let Job { path, stat, tracked_only, .. } = job;
        let body = Body::Listed(entries);
        Ok(Some(Folder { path, stat, kind: FolderKind::Plain, tracked_only, body }))
    }

    fn known(&self, job: &Job) -> Vec<Entry> {
        let place = self.cache.and_then(|c| Some((c, c.folder(&job.path)?)));
        match place {
            Some((c, at)) if c.record(at).kind == FolderKind::Plain => c.entries(at),
            _ => Vec::new(),
        }
    }

    /// The names in a folder with their stats; the top's `.git` is nobody's business.
    fn names(&self, job: &Job, fd: OwnedFd) -> Result<Vec<Found>, Error> {
        let failed = |error: Errno| Error::io(&self.full(&job.path), error);
        let mut listing = Dir::new(fd).map_err(failed)?;
        let mut found = Vec::new();
        while let Some(entry) = listing.read() {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." || (name == b".git" && job.path.is_empty()) {
                continue;
            }
            let fd = listing.fd().map_err(failed)?;
            match rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => found.push(Found { name: name.to_vec(), stat: Stat::new(&stat) }),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(found)
    }

    /// As for git, a folder with tracked files is not a repository of its own, whatever it holds.
    fn is_nested(&self, job: &Job) -> Result<bool, Error> {
        let full = self.full(&job.path);
        let own = Project::discover(&full).is_ok_and(|p| p.root == full && p.git_dir.is_some());
        Ok(own && !self.index()?.has_below(&job.path))
    }

    fn judge(
        &self,
        job: &Job,
        path: &[u8],
        name: &[u8],
        is_dir: bool,
        old: Option<&Entry>,
    ) -> Result<Verdict, Error> {
        if name == b".git" || self.excluded(path) {
            return Ok(Verdict::Leave);
        }
        if let (Some(old), false) = (old, job.reconsider) {
            let same_type = (old.stat.file_type() == FileType::Directory) == is_dir;
            match (old.kind, old.forced) {
                _ if !same_type => {}
                (Kind::Ignored, _) if !self.index_changed => return Ok(Verdict::Leave),
                (Kind::Ignored, _) => {}
                (_, true) if !self.index_changed => return Ok(Verdict::TakeTracked),
                (_, true) => {}
                _ => return Ok(Verdict::Take),
            }
        }
        let ignores = job.ignores.as_ref();
        if !job.tracked_only && !ignores.is_some_and(|rules| rules.ignores(path, is_dir)) {
            return Ok(Verdict::Take);
        }
        let index = self.index()?;
        let tracked = index.get(path).is_some_and(|t| (t.mode == GITLINK) == is_dir);
        let tracked = tracked || (is_dir && index.has_below(path));
        let tracked = tracked || self.rules.takes(path, is_dir);
        Ok(if tracked { Verdict::TakeTracked } else { Verdict::Leave })
    }

    /// Anything that is not a folder to be looked into.
    fn file(
        &self,
        path: &[u8],
        name: &[u8],
        stat: Stat,
        old: Option<&Entry>,
    ) -> Result<Entry, Error> {
        let is_link = stat.file_type() == FileType::Symlink;
        let kind = match stat.file_type() {
            _ if is_refused(name, is_link) => Kind::Missed(Why::Name),
            FileType::Symlink => Kind::Link,
            FileType::RegularFile if stat.size > self.rules.file_bytes_max => {
                Kind::Missed(Why::TooLarge)
            }
            FileType::RegularFile if self.executable(path, &stat)? => Kind::Exec,
            FileType::RegularFile => Kind::File,
            _ => Kind::Missed(Why::Special),
        };
        let reusable = |old: &&Entry| old.stat == stat && (old.kind == kind || unread(old.kind));
        if let (Some(old), true) = (old.filter(reusable), kind.git_mode().is_some()) {
            return Ok(old.clone());
        }
        let mut entry = Entry::new(name, kind, stat);
        if entry.captured() {
            entry.dirty = true;
            // Read again, it may turn out to be what it was.
            entry.oid = old.filter(|old| old.captured()).map_or(Oid::NONE, Entry::content);
        }
        Ok(entry)
    }

    /// A folder that is not looked into.
    fn closed(&self, job: Job, kind: FolderKind) -> Folder {
        let Job { path, stat, tracked_only, .. } = job;
        let known = self.cache.and_then(|c| Some((c.folder(&path)?, c)));
        let same = known.filter(|(at, c)| {
            let record = c.record(*at);
            (record.stat, record.kind, record.tracked_only) == (stat, kind, tracked_only)
        });
        let body = same.map_or_else(|| Body::Listed(Vec::new()), |(at, _)| Body::Same(at));
        Folder { path, stat, kind, tracked_only, body }
    }

    fn executable(&self, path: &[u8], stat: &Stat) -> Result<bool, Error> {
        if self.head.settings.file_mode {
            return Ok(stat.mode & 0o100 != 0);
        }
        Ok(self.index()?.get(path).is_some_and(|t| t.mode == EXEC))
    }
}

/// Whether a file says something about others, so that its own stamp matters even where it is ignored.
pub(super) fn is_rules(name: &[u8]) -> bool {
    name == IGNORES || name == attributes::FILE
}

/// Found unreadable with the same stamp: still so.
fn unread(kind: Kind) -> bool {
    kind == Kind::Missed(Why::Unreadable)
}

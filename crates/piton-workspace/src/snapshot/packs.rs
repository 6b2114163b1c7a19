//! Joins the many small packs that snapshots leave: each slows down every lookup a little.
//!
//! Our packs are listed next to the cache. Above a number they become one, durable before the
//! small ones go. Packs of the user are never touched; git's own collection of garbage may take
//! ours at any time. Failing here costs nothing but speed, so nothing is reported.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Workspace;
use crate::git::{Error, Git};
use crate::objects::is_ours;
use crate::repo::Repo;

/// The list of our packs, next to the stat caches.
pub(super) const LIST: &str = "packs";
/// Small packs that are left alone; git itself repacks at 50.
const PACKS_MAX: usize = 50;
/// A mark of a snapshot in progress that is older than this was left by a crash.
const KEEP_AGE_MAX: Duration = Duration::from_secs(3600);

fn list(workspace: &Workspace) -> PathBuf {
    workspace.cache.with_file_name(LIST)
}

/// Notes a pack as ours; whether there are many by now.
pub(super) fn remember(workspace: &Workspace, name: &str) -> bool {
    let path = list(workspace);
    let open = || OpenOptions::new().append(true).create(true).open(&path);
    let file = open().or_else(|error| {
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(|_| error)?;
        open()
    });
    let Ok(mut file) = file else { return false };
    // One call: lines of two processes do not mix.
    let _ = file.write_all(format!("{name}\n").as_bytes());
    // A line is a name of 45 bytes and a line break.
    file.metadata().is_ok_and(|about| about.len() > (PACKS_MAX as u64) * 46)
}

/// Joins our packs.
pub(super) fn join_all(workspace: &Workspace, repo: &Repo) {
    let _ = join(workspace, repo);
}

fn join(workspace: &Workspace, repo: &Repo) -> Result<(), Error> {
    let lost = |e: std::io::Error| Error {
        command: "pack-objects".to_owned(),
        code: None,
        message: e.to_string(),
    };
    let path = list(workspace);
    let lock = File::create(path.with_extension("lock")).map_err(lost)?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let folder = repo.objects().join("pack");
    let text = std::fs::read_to_string(&path).map_err(lost)?;
    let listed_bytes = text.len();
    let mut names = listed(&text);
    let indexed = multi_pack_index(&folder);
    names.retain(|name| {
        let pack = folder.join(format!("{name}.pack"));
        let held = indexed.windows(name.len()).any(|w| w == name.as_bytes());
        pack.exists() && !held && released(&folder.join(format!("{name}.keep")), &pack)
    });
    let mut left = lines(&names, "");
    if names.len() > PACKS_MAX {
        let input = lines(&names, ".pack");
        let made = Git::at(&repo.root)
            .durable()
            .args(["pack-objects", "-q", "--stdin-packs"])
            .arg(folder.join("pack"))
            .input(input)
            .text()?;
        let made = format!("pack-{made}");
        if !folder.join(format!("{made}.idx")).exists() {
            return Ok(());
        }
        for name in names.iter().filter(|name| **name != made) {
            for ending in ["idx", "pack", "rev"] {
                let _ = std::fs::remove_file(folder.join(format!("{name}.{ending}")));
            }
        }
        left = format!("{made}\n");
    }
    // Names that others added in the meantime stay.
    let now = std::fs::read_to_string(&path).map_err(lost)?;
    left.push_str(now.get(listed_bytes..).unwrap_or_default());
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, left).and_then(|()| std::fs::rename(&fresh, &path)).map_err(lost)
}

/// The packs that a list names, each once.
pub(super) fn listed(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = text.lines().collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn lines(names: &[&str], ending: &str) -> String {
    names.iter().flat_map(|name| [*name, ending, "\n"]).collect()
}

/// Whether no snapshot in progress holds a pack; a mark that a crash left is removed.
fn released(keep: &Path, pack: &Path) -> bool {
    let Ok(about) = std::fs::metadata(keep) else { return true };
    let age = about.modified().ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
    age > KEEP_AGE_MAX && is_ours(keep, pack) && std::fs::remove_file(keep).is_ok()
}

/// The bytes of git's index over several packs, which names those it must not lose.
fn multi_pack_index(folder: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(folder.join("multi-pack-index")).unwrap_or_default();
    let layers = std::fs::read_dir(folder.join("multi-pack-index.d"));
    for layer in layers.into_iter().flatten().flatten() {
        bytes.extend(std::fs::read(layer.path()).unwrap_or_default());
    }
    bytes
}

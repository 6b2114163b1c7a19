//! Files that Piton keeps in a work tree and that nobody means to commit: git is told to ignore them.
//!
//! In `info/exclude` of the repository, which all its worktrees share and which is never committed. What
//! the project tracks or ignores by itself is left to it.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use crate::git::Git;
use crate::repo::Project;

/// The line before the first of ours.
const HEADING: &str = "# Files that Piton writes for its runs.";

/// Has git ignore files and folders of a repository, unless files there are tracked.
pub fn keep_out(root: &Path, paths: &[String]) -> io::Result<()> {
    let Some(common) = Project::discover_cached(root).ok().and_then(|project| project.common_dir)
    else {
        return Ok(());
    };
    let wanted: Vec<String> = paths.iter().map(|path| line(path)).collect();
    let file = common.join("info/exclude");
    let is_known = |text: &str| wanted.iter().all(|line| text.lines().any(|known| known == line));
    if fs::read_to_string(&file).is_ok_and(|text| is_known(&text)) {
        return Ok(());
    }
    let open = paths.iter().zip(&wanted).filter(|(path, _)| !is_tracked(root, path));
    let open: Vec<&String> = open.map(|(_, line)| line).collect();
    fs::create_dir_all(common.join("info"))?;
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(&file)?;
    // Two runs may start at once.
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let mut added = String::new();
    for line in open.into_iter().filter(|line| !text.lines().any(|known| known == line.as_str())) {
        if added.is_empty() && !text.lines().any(|known| known == HEADING) {
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            added = format!("{gap}{HEADING}\n");
        }
        added.push_str(line);
        added.push('\n');
    }
    file.write_all(added.as_bytes())
}

/// A path as a line that means it alone, below the root.
fn line(path: &str) -> String {
    let mut line = String::from("/");
    for c in path.trim_matches('/').chars() {
        if "*?[]\\!# ".contains(c) {
            line.push('\\');
        }
        line.push(c);
    }
    line
}

/// Whether git has files there; where it cannot say, it is left alone.
pub fn is_tracked(root: &Path, path: &str) -> bool {
    let listed = Git::at(root).args(["ls-files", "-z", "--", path]).bytes();
    listed.is_ok_and(|listed| !listed.is_empty())
}

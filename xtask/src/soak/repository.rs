//! What a repository must look like once all lanes are merged: one line of commits with all that was
//! merged, the user's own things as they were, and no trace of worktrees and branches.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use piton_core::event::Event;

use super::scratch::Scratch;
use super::{Broken, record};

/// Files of ours that lie in the user's work tree.
const OWN: &str = ".claude/";
/// Where refs of ours stay.
const OWN_REFS: &str = "refs/piton/";
/// The branch that lanes go to.
const BASE: &str = "refs/heads/main";
/// What the user's own commits say.
const USERS: &str = "by the user";
/// Hooks of the user's that must not run on what is done inside.
const HOOKS: [&str; 9] = [
    "commit-msg",
    "post-checkout",
    "post-commit",
    "post-merge",
    "post-rewrite",
    "pre-commit",
    "pre-merge-commit",
    "pre-rebase",
    "prepare-commit-msg",
];

/// The things of the user's that a run has to leave alone.
#[derive(PartialEq, Eq)]
pub(super) struct Users {
    refs: Vec<String>,
    worktrees: Vec<String>,
    stash: String,
    config: Vec<u8>,
}

impl Users {
    /// Gives the user a stash, a tag, a branch, a worktree and hooks, and remembers them.
    pub(super) fn prepare(scratch: &Scratch) -> Result<Self, Broken> {
        let foreign = scratch.base().join("foreign").display().to_string();
        for words in [
            &["tag", "v1"][..],
            &["worktree", "add", "--quiet", "-b", "lane/mine", &foreign],
            &["stash", "push", "--quiet", "--include-untracked"],
        ] {
            if words[0] == "stash" {
                fs::write(scratch.base().join("repo/later.txt"), "later\n")
                    .map_err(|e| e.to_string())?;
            }
            scratch.git(words)?;
        }
        let note = format!("#!/bin/sh\necho \"$0\" >> {}/hooked\n", scratch.base().display());
        for hook in HOOKS {
            let file = scratch.base().join("repo/.git/hooks").join(hook);
            fs::create_dir_all(file.parent().unwrap_or(&file)).map_err(|e| e.to_string())?;
            fs::write(&file, &note).map_err(|e| e.to_string())?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755))
                .map_err(|e| e.to_string())?;
        }
        Self::of(scratch)
    }

    fn of(scratch: &Scratch) -> Result<Self, Broken> {
        let refs = scratch.git(&["for-each-ref", "--format=%(refname) %(objectname)"])?;
        let is_users = |line: &&str| {
            !line.starts_with(OWN_REFS) && line.split(' ').next().is_some_and(|name| name != BASE)
        };
        let worktrees = scratch.git(&["worktree", "list", "--porcelain"])?;
        let folders = worktrees.lines().filter(|line| line.starts_with("worktree "));
        Ok(Self {
            refs: refs.lines().filter(is_users).map(str::to_owned).collect(),
            worktrees: folders.map(str::to_owned).collect(),
            stash: scratch.git(&["stash", "list", "--format=%H %gs"])?,
            config: fs::read(scratch.base().join("repo/.git/config")).unwrap_or_default(),
        })
    }

    /// What differs now.
    fn difference(&self, now: &Self) -> Option<String> {
        if self.refs != now.refs {
            return Some(format!("refs {:?} became {:?}", self.refs, now.refs));
        }
        if self.worktrees != now.worktrees {
            return Some(format!("worktrees {:?} became {:?}", self.worktrees, now.worktrees));
        }
        if self.stash != now.stash {
            return Some(format!("the stash {} became {}", self.stash, now.stash));
        }
        (self.config != now.config).then(|| "the configuration changed".to_owned())
    }
}

/// Commits to base as a user would, without a change; whether git let them. A commit that is made
/// from an index that base has left behind shows as one with changes.
pub(super) fn user_commits(scratch: &Scratch) -> Result<bool, Broken> {
    let words =
        ["-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--allow-empty", "-m", USERS];
    match scratch.git(&words) {
        Ok(_) => Ok(true),
        // Somebody is at work there: git says so, and the user tries again later.
        Err(said) if said.contains(".lock") || said.contains("cannot lock ref") => Ok(false),
        Err(said) => Err(format!("the user could not commit: {said}")),
    }
}

/// Checks that base has the user's commits, as they were made.
pub(super) fn has_users_commits(scratch: &Scratch, wanted: u64) -> Result<(), Broken> {
    let log = scratch.git(&["log", "--format=%T %s", "main"])?;
    let lines: Vec<&str> = log.lines().collect();
    let mut found = 0;
    for pair in lines.windows(2) {
        let (tree, subject) = pair[0].split_once(' ').unwrap_or_default();
        if subject != USERS {
            continue;
        }
        found += 1;
        if !pair[1].starts_with(tree) {
            return Err(format!("a commit of the user's took something back:\n{log}"));
        }
    }
    if found == wanted {
        return Ok(());
    }
    Err(format!("base has {found} commits of the user's, not {wanted}:\n{log}"))
}

/// Checks a repository whose lanes are merged.
pub(super) fn check(scratch: &Scratch, users: &Users) -> Result<(), Broken> {
    let status = record::status(scratch);
    if status.as_deref() != Some("complete") {
        return Err(format!("the run is {status:?}, not complete"));
    }
    let empty = |what: &str, text: String| {
        if text.is_empty() { Ok(()) } else { Err(format!("{what}: {text}")) }
    };
    empty("merge commits in base", scratch.git(&["rev-list", "--merges", "main"])?)?;
    contains_all(scratch)?;
    only_forward(scratch)?;
    // Branches and worktrees of lanes that are left show up as refs and worktrees of the user's.
    if let Some(difference) = users.difference(&Users::of(scratch)?) {
        return Err(difference);
    }
    let hooked = fs::read_to_string(scratch.base().join("hooked")).unwrap_or_default();
    empty("hooks of the user's ran", hooked)?;
    let head = scratch.git(&["symbolic-ref", "--short", "HEAD"])?;
    if head != "main" {
        return Err(format!("HEAD is on {head}"));
    }
    let changes = scratch.git(&["status", "--porcelain", "--untracked-files=all"])?;
    let foreign: Vec<&str> = changes.lines().filter(|line| !line[3..].starts_with(OWN)).collect();
    empty("the work tree of base is not clean", foreign.join("\n"))?;
    nothing_left(scratch)?;
    scratch.git(&["fsck", "--no-dangling", "--no-progress"]).map(drop)
}

/// Checks that no folder of a worktree and no lock or note of a move is left.
fn nothing_left(scratch: &Scratch) -> Result<(), Broken> {
    let repository = scratch.base().join("repo");
    let folders = fs::read_dir(repository.join(".worktrees")).into_iter().flatten().flatten();
    let names = folders.map(|entry| entry.file_name());
    let left: Vec<_> = names.filter(|name| name != ".gitignore").collect();
    if !left.is_empty() {
        return Err(format!("folders of worktrees are left: {left:?}"));
    }
    let mut left = Vec::new();
    stale(&repository.join(".git"), &mut left);
    if left.is_empty() { Ok(()) } else { Err(format!("files are left: {left:?}")) }
}

/// Finds what only lives as long as git or we are at work.
fn stale(folder: &Path, left: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            // Our own state is looked at by `doctor`; its lock files are files to be locked.
            if name != "piton" {
                stale(&path, left);
            }
        } else if name.ends_with(".lock")
            || name.starts_with("piton")
            || name.contains("_piton_")
            || name.starts_with("locked.new.")
        {
            left.push(path);
        }
    }
}

/// Checks that base contains every commit that was recorded as merged, each once.
fn contains_all(scratch: &Scratch) -> Result<(), Broken> {
    let all = scratch.git(&["rev-list", "main"])?;
    let base: BTreeSet<&str> = all.lines().collect();
    let mut lanes = BTreeSet::new();
    for (_, event) in record::events(scratch) {
        let Event::LaneMerged(merged) = event else { continue };
        if !lanes.insert(merged.lane.to_string()) {
            return Err(format!("{} was merged twice", merged.lane));
        }
        if let Some(to) = merged.to.as_ref().filter(|to| !base.contains(to.as_str())) {
            return Err(format!("base has lost {to} of {}", merged.lane));
        }
    }
    Ok(())
}

/// Checks that base never lost a commit that it had: its log leads only forward, along its history.
fn only_forward(scratch: &Scratch) -> Result<(), Broken> {
    let history = scratch.git(&["rev-list", "main"])?;
    let history: Vec<&str> = history.lines().collect();
    let moves = scratch.git(&["reflog", "--format=%H", "main"])?;
    let place = |commit: &str| history.iter().position(|known| *known == commit);
    let places: Option<Vec<usize>> = moves.lines().map(place).collect();
    match places {
        Some(places) if places.windows(2).all(|pair| pair[0] < pair[1]) => Ok(()),
        _ => Err(format!("base did not only go forward: {moves}\nhistory: {history:?}")),
    }
}

//! A repository to play with, and everything that is in its work tree, for comparing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use piton_workspace::refs::Fence;
use piton_workspace::restore::{self, Plan, Scope};
use piton_workspace::snapshot::{self, Meta, Rules, Snapshot, Taker, Workspace};

/// The run that the snapshots belong to.
pub const RUN: &str = "run-1";
/// Their chain.
pub const CHAIN: &str = "refs/piton/run-1/lane";

/// Files younger than this may still change without looking changed, and no cache names them.
const SETTLED: Duration = Duration::from_millis(11);

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Bytes and permissions.
    File(Vec<u8>, u32),
    /// Where it leads.
    Link(PathBuf),
    /// Permissions.
    Folder(u32),
}

/// Everything in a work tree.
pub type Everything = BTreeMap<Vec<u8>, Item>;

/// A repository with a work tree.
pub struct Repo {
    tmp: tempfile::TempDir,
    pub workspace: Workspace,
    pub rules: Rules,
    pub fence: Fence,
    /// Takes each second snapshot, if there is one; the others begin with the cache's file.
    pub taker: Option<RefCell<(Taker, bool)>>,
}

impl Repo {
    /// An empty one without commits.
    pub fn empty() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("work");
        fs::create_dir(&dir).unwrap();
        git(&dir, &["init", "-q", "-b", "main"]);
        let workspace = Workspace { cache: dir.join(".git/piton/cache/main"), dir };
        let fence = Fence::raise(&workspace.dir, RUN, 1).unwrap();
        let taker = Some(RefCell::new((Taker::new(workspace.clone()), false)));
        Self { tmp, workspace, rules: Rules::default(), fence, taker }
    }

    /// One with two committed files.
    pub fn new() -> Self {
        let repo = Self::empty();
        repo.write("a.txt", "one\n");
        repo.write("src/b.txt", "two\n");
        repo.commit();
        repo
    }

    pub fn dir(&self) -> &Path {
        &self.workspace.dir
    }

    /// A folder next to the work tree.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.tmp.path().join(name)
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir().join(path)
    }

    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Waits until what was written is old enough to be believed: files on the clock they are
    /// stamped with, so that a machine however fast or slow waits no longer than it must.
    pub fn settle(&self) {
        let stamp = |name: &str| {
            let file = self.beside(name);
            fs::write(&file, "").unwrap();
            fs::metadata(file).unwrap().modified().unwrap()
        };
        let written = stamp("written");
        while stamp("now") < written + SETTLED {
            std::thread::yield_now();
        }
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    pub fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub fn git(&self, args: &[&str]) -> String {
        git(self.dir(), args)
    }

    pub fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "work", "--allow-empty"]);
    }

    pub fn try_take(&self) -> Result<Snapshot, snapshot::Error> {
        let meta = Meta { message: "checkpoint", at: 1_700_000_000_123 };
        if let Some(taker) = &self.taker {
            let (taker, again) = &mut *taker.borrow_mut();
            *again = !*again;
            if *again {
                return taker.take(&self.rules, CHAIN, &self.fence, &meta);
            }
        }
        snapshot::take(&self.workspace, &self.rules, CHAIN, &self.fence, &meta)
    }

    pub fn take(&self) -> Snapshot {
        self.try_take().unwrap()
    }

    pub fn plan(&self, target: &str, scope: &Scope) -> Plan {
        restore::plan(&self.workspace, &self.rules, &self.take(), target, scope).unwrap()
    }

    /// The present as a restore begins at it.
    pub fn present(&self, target: &str) -> Snapshot {
        self.present_of(target, false)
    }

    /// The same; `own` says whether the work tree belongs to a lane alone.
    pub fn present_of(&self, target: &str, own: bool) -> Snapshot {
        let meta = Meta { message: "present", at: 1_700_000_000_123 };
        let mut taker = snapshot::Taker::new(self.workspace.clone());
        restore::present(&mut taker, &self.rules, CHAIN, &self.fence, &meta, (target, own)).unwrap()
    }

    pub fn restore(&self, target: &str) {
        self.restore_beside(target, None);
    }

    /// Goes back in a work tree that belongs to a lane alone.
    pub fn restore_own(&self, target: &str) {
        let (present, scope) =
            (self.present_of(target, true), Scope { own: true, ..Scope::default() });
        let plan = restore::plan(&self.workspace, &self.rules, &present, target, &scope).unwrap();
        assert_eq!(plan.blocked().count(), 0, "{plan:?}");
        restore::execute(&self.workspace.dir, &plan).unwrap();
    }

    /// Goes back to the present that a restore to another snapshot began at.
    pub fn undo(&self, present: &str, other: &str) {
        self.restore_beside(present, Some(other.to_owned()));
    }

    fn restore_beside(&self, target: &str, beside: Option<String>) {
        let (present, scope) = (self.present(target), Scope { beside, ..Scope::default() });
        let plan = restore::plan(&self.workspace, &self.rules, &present, target, &scope).unwrap();
        restore::execute(&self.workspace.dir, &plan).unwrap();
    }

    /// The paths of a snapshot's tree.
    pub fn paths(&self, snapshot: &Snapshot) -> Vec<String> {
        let text = self.git(&["ls-tree", "-r", "--name-only", &snapshot.tree]);
        text.lines().map(str::to_owned).collect()
    }

    pub fn shows(&self, snapshot: &Snapshot, path: &str) -> String {
        self.git(&["show", &format!("{}:tree/{path}", snapshot.commit)])
    }

    /// The tree that git would commit now, made with an index of its own.
    pub fn git_tree(&self) -> String {
        let index = self.beside("index");
        let _ = fs::remove_file(&index);
        if self.path(".git/index").exists() {
            fs::copy(self.path(".git/index"), &index).unwrap();
            // A younger copy would hide edits within the second of the user's index from git.
            let written = fs::metadata(self.path(".git/index")).unwrap().modified().unwrap();
            fs::File::options().write(true).open(&index).unwrap().set_modified(written).unwrap();
        }
        let run = |args: &[&str]| {
            let mut command = command(self.dir(), args);
            output(command.env("GIT_INDEX_FILE", &index))
        };
        run(&["add", "-A"]);
        run(&["write-tree"])
    }

    /// All that is in the work tree, but for git's own.
    pub fn everything(&self) -> Everything {
        let mut found = Everything::new();
        collect(self.dir(), self.dir(), &mut found);
        found
    }

    /// What belongs to the user: HEAD, index and stash.
    pub fn users(&self) -> (String, Vec<u8>, String) {
        let head = fs::read_to_string(self.path(".git/HEAD")).unwrap();
        let refs = self.git(&["for-each-ref", "refs/heads", "refs/stash"]);
        (head, fs::read(self.path(".git/index")).unwrap_or_default(), refs)
    }
}

fn collect(top: &Path, dir: &Path, found: &mut Everything) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(top).unwrap().as_os_str().as_bytes().to_vec();
        if name == b".git" {
            continue;
        }
        let about = path.symlink_metadata().unwrap();
        let mode = about.permissions().mode() & 0o7777;
        let item = if about.is_symlink() {
            Item::Link(fs::read_link(&path).unwrap())
        } else if about.is_dir() {
            collect(top, &path, found);
            Item::Folder(mode)
        } else {
            // Not of a FIFO: nobody writes to it.
            let bytes = if about.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            Item::File(bytes, mode)
        };
        found.insert(name, item);
    }
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(["-c", "user.name=t", "-c", "user.email=t@localhost"]);
    command.args(["-c", "protocol.file.allow=always", "-c", "commit.gpgSign=false"]);
    // A collection in the background would meet the one that a test asks for.
    command.args(["-c", "gc.auto=0"]).args(args);
    command
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {problem}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Runs git as a user would.
pub fn git(dir: &Path, args: &[&str]) -> String {
    output(&mut command(dir, args))
}

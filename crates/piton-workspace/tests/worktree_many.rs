//! Worktrees with many files, which are written by threads: the same files and index as git's own.
//!
//! If these fail, a lane could start from files that are not those of its commit.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use piton_workspace::worktree;
use tree_support::{Repo, git, hermetic};

/// Enough files for the threads, of every kind.
fn many(repo: &Repo) {
    for number in 0..1200 {
        let dir = format!("d{}/e{}/f{}", number % 7, number % 13, number % 3);
        repo.write(&format!("{dir}/file {number}.txt"), &"line\n".repeat(number % 50));
    }
    repo.write("empty", "");
    repo.write(&format!("long/{}/{}", "n".repeat(200), "m".repeat(200)), "long name\n");
    repo.write("big.bin", &"0123456789abcdef".repeat(100_000));
    repo.write("a-b/x", "sorts before a/\n");
    repo.write("a/x", "x\n");
    repo.write("a.b", "x\n");
    repo.write(".gitattributes", "*.txt text=auto diff\n*.bin binary\n");
    fs::write(repo.root.join(OsStr::from_bytes(b"odd \xff\n\"name")), "odd\n").unwrap();
    symlink("a/x", repo.root.join("link")).unwrap();
    symlink("/nowhere", repo.root.join("d1/dangling")).unwrap();
    fs::set_permissions(repo.root.join("a.b"), fs::Permissions::from_mode(0o755)).unwrap();
    repo.commit("many");
}

/// Every path below a folder with what it is.
fn files(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().to_owned();
            let meta = fs::symlink_metadata(&path).unwrap();
            if name == Path::new(".git") || name == Path::new(".worktrees") {
                continue;
            }
            let content = if meta.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_owned()
            } else if meta.is_dir() {
                folders.push(path);
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(name, (meta.mode(), content));
        }
    }
    found
}

#[test]
fn the_files_are_those_git_would_write() {
    hermetic(|repo| {
        many(repo);
        let lane = repo.lane("SL-1");
        let theirs = repo.root.with_file_name("theirs");
        repo.git(&["worktree", "add", "-q", "--detach", theirs.to_str().unwrap()]);
        assert!(files(&lane.path) == files(&theirs));
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        let staged = |dir: &Path| git(dir, &["ls-files", "--stage"]);
        assert_eq!(staged(&lane.path), staged(&theirs));
        git(&lane.path, &["fsck", "--strict", "--cache"]);
        let admin = repo.admins().into_iter().find(|dir| dir.join("piton").exists()).unwrap();
        assert!(!admin.join("ORIG_HEAD").exists(), "git did not have to do it");
        assert!(!repo.root.join(".git/index.piton").exists());
    });
}

#[test]
fn the_index_knows_the_files() {
    hermetic(|repo| {
        many(repo);
        let lane = repo.lane("SL-1");
        // Nothing to refresh means that what it says about the files is what the system says.
        let trusted = git(&lane.path, &["diff-files", "--name-only"]);
        assert_eq!(trusted, "");
        assert_eq!(git(&lane.path, &["write-tree"]), repo.head("main^{tree}"));
        fs::write(lane.path.join("d1/e1/f1/file 1.txt"), "edit\n").unwrap();
        git(&lane.path, &["commit", "-q", "-a", "-m", "edit"]);
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        git(&lane.path, &["fsck", "--strict", "--cache"]);
    });
}

#[test]
fn what_needs_git_is_left_to_git() {
    hermetic(|repo| {
        many(repo);
        repo.write("d1/.gitattributes", "*.x eol=crlf\n");
        fs::write(repo.root.join("d1/a.x"), "one\r\n").unwrap();
        repo.commit("crlf");
        let lane = repo.lane("SL-1");
        assert_eq!(fs::read_to_string(lane.path.join("d1/a.x")).unwrap(), "one\r\n");
        assert_eq!(git(&lane.path, &["status", "--porcelain"]), "");
        repo.git(&["rm", "-q", "d1/.gitattributes", "d1/a.x"]);
        repo.commit("plain");
        repo.git(&["config", "core.autocrlf", "true"]);
        let lane = repo.lane("SL-2");
        let text = fs::read_to_string(lane.path.join("d1/e1/f1/file 1.txt")).unwrap();
        assert_eq!(text, "line\r\n");
        repo.git(&["config", "--unset", "core.autocrlf"]);
        repo.git(&["sparse-checkout", "set", "d1"]);
        let lane = repo.lane("SL-3");
        assert!(lane.path.join("d1").exists() && !lane.path.join("d2").exists());
        worktree::remove(&repo.root, &lane.path, &repo.fence()).unwrap();
    });
}

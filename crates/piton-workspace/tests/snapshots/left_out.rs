//! What is not captured is listed; what must not be captured is refused or left alone.

use std::os::unix::net::UnixListener;
use std::process::Command;

use piton_workspace::restore::{KeptWhy, Scope};
use piton_workspace::snapshot::{Error, Rules, Why};

use crate::support::{Repo, git};

fn listed(repo: &Repo) -> Vec<(String, Why)> {
    let degraded = repo.take().degraded.into_iter();
    degraded.map(|m| (String::from_utf8_lossy(&m.path).into_owned(), m.why)).collect()
}

#[test]
fn what_cannot_be_captured_is_listed_and_never_touched() {
    let mut repo = Repo::new();
    repo.rules.file_bytes_max = 100;
    let before = repo.take();
    repo.write("large", [b'x'; 101]);
    let _socket = UnixListener::bind(repo.path("socket")).unwrap();
    assert!(Command::new("mkfifo").arg(repo.path("fifo")).status().unwrap().success());
    std::fs::create_dir(repo.path("nested")).unwrap();
    git(&repo.path("nested"), &["init", "-q"]);
    repo.write("nested/file", "x");
    let expected = [
        ("fifo", Why::Special),
        ("large", Why::TooLarge),
        ("nested", Why::Nested),
        ("socket", Why::Special),
    ];
    let expected = expected.map(|(p, w)| (p.to_owned(), w));
    assert_eq!(listed(&repo), expected);
    assert_eq!(listed(&repo), expected, "also when nothing changed");
    let everything = repo.everything();
    repo.restore(&before.commit);
    assert_eq!(repo.everything(), everything);
}

#[test]
fn a_file_that_outgrew_the_limit_is_kept_by_a_restore() {
    let mut repo = Repo::new();
    repo.rules.file_bytes_max = 100;
    let before = repo.take();
    repo.write("a.txt", [b'x'; 101]);
    let plan = repo.plan(&before.commit, &Scope::default());
    assert_eq!(plan.kept.len(), 1);
    assert_eq!(plan.kept[0].why, KeptWhy::NotCaptured(Why::TooLarge));
    assert_eq!(plan.writes().chain(plan.deletes()).count(), 0);
}

#[test]
fn a_submodule_is_kept_as_its_commit() {
    let inner = Repo::new();
    let repo = Repo::new();
    repo.git(&["submodule", "-q", "add", inner.dir().to_str().unwrap(), "sub"]);
    repo.commit();
    assert_eq!(listed(&repo), [("sub".to_owned(), Why::Submodule)]);
    git(&repo.path("sub"), &["commit", "-q", "--allow-empty", "-m", "moved"]);
    let taken = repo.take();
    let head = git(&repo.path("sub"), &["rev-parse", "HEAD"]);
    assert_eq!(repo.git(&["rev-parse", &format!("{}:sub", taken.tree)]), head);
    assert_eq!(taken.tree, repo.git_tree());
    repo.git(&["submodule", "-q", "deinit", "-f", "sub"]);
    assert_eq!(repo.take().tree, repo.git_tree());
}

#[test]
fn a_repository_among_tracked_files_hides_none_of_them() {
    let repo = Repo::new();
    repo.take();
    git(&repo.path("src"), &["init", "-q"]);
    repo.write("src/b.txt", "edited\n");
    assert_eq!(repo.shows(&repo.take(), "src/b.txt"), "edited");
}

#[test]
fn excluded_paths_are_left_alone() {
    let mut repo = Repo::new();
    repo.write("plans/view.md", "tracked view\n");
    repo.commit();
    repo.rules.exclude.push("plans/view.md".to_owned());
    repo.rules.exclude.push("state/".to_owned());
    repo.write("state/x", "1");
    repo.write(".worktrees/lane/file", "1");
    let taken = repo.take();
    assert_eq!(repo.paths(&taken), ["a.txt", "plans/view.md", "src/b.txt"]);
    repo.write("plans/view.md", "rendered anew\n");
    repo.write("state/x", "2");
    assert!(!repo.take().changed);
    repo.write("a.txt", "changed\n");
    repo.restore(&taken.commit);
    assert_eq!(repo.read("plans/view.md"), "rendered anew\n");
    assert_eq!(repo.read("state/x"), "2");
}

#[test]
fn too_much_is_refused_with_what_to_change() {
    let mut repo = Repo::new();
    repo.rules.files_max = 1;
    let error = repo.try_take().unwrap_err();
    assert!(matches!(error, Error::TooManyFiles { max: 1 }));
    assert!(piton_core::refusal::Refusal::from(error).to_string().contains("files_max"));
    repo.rules = Rules::default();
    repo.rules.home = Some(repo.dir().to_owned());
    assert!(matches!(repo.try_take(), Err(Error::NotAProject { .. })));
    repo.rules.home = None;
    repo.workspace.dir.push("src");
    repo.taker = None;
    assert!(matches!(repo.try_take(), Err(Error::NotAWorkTree { .. })));
}

#[test]
fn another_object_format_is_refused() {
    let repo = Repo::new();
    let dir = repo.beside("sha256");
    std::fs::create_dir(&dir).unwrap();
    git(&dir, &["init", "-q", "--object-format=sha256"]);
    let mut workspace = repo.workspace.clone();
    workspace.cache = dir.join(".git/piton/cache/main");
    workspace.dir = dir;
    let meta = piton_workspace::snapshot::Meta { message: "m", at: 0 };
    let chain = crate::support::CHAIN;
    let taken = piton_workspace::snapshot::take(&workspace, &repo.rules, chain, &repo.fence, &meta);
    assert!(matches!(taken, Err(Error::Format { format }) if format == "sha256"));
}

/// Lost: a lane whose step made such a file could not be committed, for a reason in git's words only.
#[test]
fn names_that_git_refuses_are_named_and_left_alone() {
    let repo = Repo::new();
    let before = repo.take();
    repo.write("git~1", "one\n");
    repo.write("sub/.GIT/x", "x\n");
    repo.write("sub/plain", "plain\n");
    repo.write("q/.git ", "z\n");
    std::os::unix::fs::symlink("elsewhere", repo.path(".gitmodules")).unwrap();
    let expected = [".gitmodules", "git~1", "q/.git ", "sub/.GIT"];
    let expected = expected.map(|path| (path.to_owned(), Why::Name));
    assert_eq!(listed(&repo), expected);
    repo.settle();
    assert_eq!(listed(&repo), expected, "also when nothing changed");
    repo.write("sub/.GIT/y", "y\n");
    assert_eq!(listed(&repo), expected, "also when something in it did");
    let taken = repo.take();
    let names = repo.git(&["ls-tree", "-r", "--name-only", &taken.tree]);
    assert_eq!(names, "a.txt\nsrc/b.txt\nsub/plain");
    repo.git(&["read-tree", "--index-output=.git/other", &taken.tree]);
    repo.restore(&before.commit);
    assert!(!repo.path("sub/plain").exists());
    assert_eq!((repo.read("git~1"), repo.read("sub/.GIT/x")), ("one\n".into(), "x\n".into()));
}

/// Lost: a person would read a git command and no reason.
#[test]
fn a_snapshot_that_git_collected_is_said_to_be_gone() {
    let repo = Repo::new();
    let gone = "0123456789012345678901234567890123456789";
    let error = piton_workspace::snapshot::load(repo.dir(), gone).unwrap_err();
    assert!(matches!(error, Error::Gone { .. }), "{error}");
    let taken = repo.take();
    let error = piton_workspace::restore::diff(repo.dir(), &taken.commit, gone).unwrap_err();
    assert!(error.to_string().contains("refs/piton"), "{error}");
}

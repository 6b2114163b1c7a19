//! A user commits in the work tree of base while a merge advances it, with the order of both forced.
//!
//! A `git` of the test's own stands around the call that moves base, and the user's git is made to
//! wait in the middle of a commit. If this fails, a commit of the user's can take back what a merge
//! brought, or a merge what the user staged.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use piton_workspace::checks;
use piton_workspace::merge::{self, Advanced, Followed};
use piton_workspace::refs::Fence;
use tree_support::{RUN, Repo, commit, hermetic, write};

/// Says, as `root old new`, what a process is to advance instead of testing.
const ADVANCE: &str = "PITON_TEST_ADVANCE";

/// Runs what stands in `before` and `after` around the call that moves base.
const SHIM: &str = r#"#!/bin/sh
PATH=${PATH#*:}
case " $* " in
*" piton: merge lane "*) . "$SHIM/before"; git "$@"; code=$?; . "$SHIM/after"; exit $code ;;
esac
exec git "$@"
"#;

/// What git asks once it has read the index, and waits for: it says that it is there, and waits to
/// be told. Ten seconds are far more than a merge takes.
const PAUSE: &str = r#"#!/bin/sh
: >"$SHIM/there"
n=0
while [ ! -e "$SHIM/go" ] && [ $n -lt 1000 ]; do sleep 0.01; n=$((n + 1)); done
exit 0
"#;

/// Waits for a file in the shell.
const AWAIT: &str =
    "n=0; while [ ! -e \"$SHIM/WHAT\" ] && [ $n -lt 1000 ]; do sleep 0.01; n=$((n + 1)); done\n";

struct Scene<'a> {
    repo: &'a Repo,
    shim: std::path::PathBuf,
    old: String,
    new: String,
}

impl<'a> Scene<'a> {
    /// A lane that changes one file, and a user who staged another one.
    fn new(repo: &'a Repo) -> Self {
        let old = repo.head("main");
        let lane = repo.lane("SL-1");
        write(&lane.path, "a.txt", "one\nlane\nthree\n");
        write(&lane.path, "lane.txt", "lane\n");
        let new = commit(&lane.path, "lane");
        repo.write("dir/b.txt", "by the user\n");
        repo.git(&["add", "dir/b.txt"]);
        let shim = repo.root.with_extension("shim");
        fs::create_dir_all(&shim).unwrap();
        let scene = Self { repo, shim, old, new };
        for (name, text) in [("git", SHIM), ("pause", PAUSE), ("before", ""), ("after", "")] {
            scene.script(name, text);
        }
        scene
    }

    fn script(&self, name: &str, text: &str) {
        fs::write(self.shim.join(name), text).unwrap();
        fs::set_permissions(self.shim.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The user's command, as a shell takes it.
    fn user(&self, args: &str) -> String {
        let (dir, shim) = (self.repo.root.display(), self.shim.display());
        format!("git -C '{dir}' -c core.fsmonitor='{shim}/pause' commit -q -m theirs {args}")
    }

    fn start(&self, line: &str) -> Child {
        let mut sh = Command::new("/bin/sh");
        sh.args(["-c", line]).env("SHIM", &self.shim).stdin(Stdio::null()).spawn().unwrap()
    }

    fn go(&self) {
        fs::write(self.shim.join("go"), "").unwrap();
    }

    /// A shell's line that starts a command beside and waits until it is somewhere.
    fn beside(line: &str, until: &str) -> String {
        let code = "echo $? >\"$SHIM/code.new\"; mv \"$SHIM/code.new\" \"$SHIM/code\"";
        let started = format!("{{ {line}; {code}; }} </dev/null >/dev/null 2>&1 &\n");
        started + &AWAIT.replace("WHAT", until)
    }

    /// How the command beside ended.
    fn code(&self) -> String {
        let mut wait = self.start(&AWAIT.replace("WHAT", "code"));
        assert!(wait.wait().unwrap().success());
        fs::read_to_string(self.shim.join("code")).unwrap()
    }

    fn advance(&self, test: &str) -> String {
        assert!(self.try_advance(test));
        fs::read_to_string(self.shim.join("advanced")).unwrap()
    }

    fn advance_well(&self, test: &str) {
        assert_eq!(self.advance(test), format!("{:?}", Advanced::Done(Followed::Done)));
    }

    /// Advances base in a process of its own, with the test's git.
    fn try_advance(&self, test: &str) -> bool {
        let path = format!("{}:{}", self.shim.display(), std::env::var("PATH").unwrap());
        let status = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(ADVANCE, format!("{}\n{}\n{}", self.repo.root.display(), self.old, self.new))
            .env("SHIM", &self.shim)
            .env("PATH", path)
            .status()
            .unwrap();
        status.success()
    }

    /// Both sides are in base and in the work tree, and nothing of the step is left.
    fn both_are_there(&self) {
        let repo = self.repo;
        assert_eq!(repo.git(&["show", "main:a.txt"]), "one\nlane\nthree");
        assert_eq!(repo.git(&["show", "main:lane.txt"]), "lane");
        assert_eq!(repo.git(&["show", "main:dir/b.txt"]), "by the user");
        assert_eq!(repo.status(), "");
        self.nothing_is_left();
    }

    fn nothing_is_left(&self) {
        let left = fs::read_dir(self.repo.root.join(".git")).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> =
            left.filter(|name| name.starts_with("piton-") || name.contains(".lock")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Does what the environment says instead of testing.
fn is_told() -> bool {
    let Ok(told) = std::env::var(ADVANCE) else { return false };
    let [root, old, new] = told.split('\n').collect::<Vec<_>>()[..] else { panic!("{told}") };
    let root = Path::new(root);
    let fence = Fence::raise(root, RUN, 1).unwrap();
    let base = checks::base(root, Some("main")).unwrap();
    let advanced = merge::advance(root, &base, old, new, &fence).unwrap();
    let shim = std::env::var("SHIM").unwrap();
    fs::write(Path::new(&shim).join("advanced"), format!("{advanced:?}")).unwrap();
    true
}

/// The user's git sees base moved, reads the index, and stands still until long after the merge.
#[test]
fn a_commit_that_sees_base_moved_reads_the_new_index() {
    if is_told() {
        return;
    }
    for args in ["", "-a", "dir/b.txt"] {
        hermetic(|repo| {
            let scene = Scene::new(repo);
            scene.script("after", &Scene::beside(&scene.user(args), "there"));
            scene.advance_well("a_commit_that_sees_base_moved_reads_the_new_index");
            scene.go();
            assert_eq!(scene.code(), "0\n", "{args}");
            scene.both_are_there();
        });
    }
}

/// The user's git has read all before anything of the merge, and goes on long after it: git refuses
/// the commit, whichever kind it is.
#[test]
fn a_commit_from_before_the_merge_is_refused() {
    if is_told() {
        return;
    }
    for args in ["", "-a", "dir/b.txt"] {
        hermetic(|repo| {
            let scene = Scene::new(repo);
            let mut user = scene.start(&Scene::beside(&scene.user(args), "there"));
            assert!(user.wait().unwrap().success());
            scene.advance_well("a_commit_from_before_the_merge_is_refused");
            scene.go();
            assert_ne!(scene.code(), "0\n", "{args}");
            assert_eq!(repo.head("main"), scene.new, "{args}");
            if args.is_empty() {
                // Git itself wrote the index that it had read, as the guarantees say.
                repo.git(&["reset", "-q"]);
                repo.git(&["add", "dir/b.txt"]);
            }
            assert_eq!(repo.status(), "M  dir/b.txt", "{args}");
            repo.git(&["commit", "-q", "-m", "again"]);
            scene.both_are_there();
        });
    }
}

/// A hook makes git read the index once more, when it is the new one already, and base moves to the
/// user's commit before it could move to the lane's.
#[test]
fn a_commit_that_brings_the_merge_itself_is_left_so() {
    if is_told() {
        return;
    }
    hermetic(|repo| {
        let scene = Scene::new(repo);
        let hooks = repo.root.join(".git/hooks");
        fs::create_dir_all(&hooks).unwrap();
        fs::copy(scene.shim.join("pause"), hooks.join("pre-commit")).unwrap();
        let user = format!("git -C '{}' commit -q -m theirs", repo.root.display());
        assert!(scene.start(&Scene::beside(&user, "there")).wait().unwrap().success());
        scene.script("before", &format!(": >\"$SHIM/go\"\n{}", AWAIT.replace("WHAT", "code")));
        let advanced = scene.advance("a_commit_that_brings_the_merge_itself_is_left_so");
        assert_eq!(scene.code(), "0\n");
        let theirs = repo.head("main");
        assert_eq!(repo.head("main~1"), scene.old);
        assert_eq!(advanced, format!("{:?}", Advanced::BaseMoved { found: Some(theirs) }));
        scene.both_are_there();
    });
}

/// The user's `git switch` to base has read where base stands, and says that it is checked out when it
/// has moved: the files and the index are those of before, and the next commit would take the lane's work
/// back.
#[test]
fn a_user_on_the_way_to_base_arrives_where_it_is() {
    if is_told() {
        return;
    }
    hermetic(|repo| {
        let scene = Scene::new(repo);
        repo.git(&["checkout", "-q", "--detach"]);
        let arrives =
            format!("git -C '{}' symbolic-ref HEAD refs/heads/main\n", repo.root.display());
        scene.script("after", &arrives);
        scene.advance_well("a_user_on_the_way_to_base_arrives_where_it_is");
        repo.git(&["commit", "-q", "-m", "theirs"]);
        scene.both_are_there();
    });
}

/// Base can't move because of a commit of the user's: files and index go back to what they were.
#[test]
fn what_base_did_not_get_goes_back() {
    if is_told() {
        return;
    }
    hermetic(|repo| {
        let scene = Scene::new(repo);
        repo.write("lane.txt", "lane\n");
        let before = repo.status();
        let theirs = repo.git(&["commit-tree", "-m", "theirs", "-p", "main", "main^{tree}"]);
        let user =
            format!("git -C '{}' update-ref refs/heads/main {theirs}\n", repo.root.display());
        scene.script("before", &user);
        let advanced = scene.advance("what_base_did_not_get_goes_back");
        let moved = Advanced::BaseMoved { found: Some(theirs.clone()) };
        assert_eq!(advanced, format!("{moved:?}"));
        assert_eq!((repo.head("main"), repo.status()), (theirs, before));
        assert_eq!(repo.read("a.txt"), "one\ntwo\nthree\n");
        scene.nothing_is_left();
    });
}

/// Killed when the index is the new one and base has not moved, or moves afterwards.
#[test]
fn killed_between_the_index_and_the_ref() {
    if is_told() {
        return;
    }
    // It has what it is to do, and does it alone.
    let orphan = "cat >\"$SHIM/in\"; exec <\"$SHIM/in\" >/dev/null; kill -9 $PPID\n";
    for (way, moves) in [("kill -9 $PPID; exit 1\n", false), (orphan, true)] {
        for after in ["settle", "would_follow", "advance"] {
            hermetic(|repo| {
                let scene = Scene::new(repo);
                // Of theirs, and just what the lane brings.
                repo.write("lane.txt", "lane\n");
                let before = repo.status();
                scene.script("before", way);
                assert!(!scene.try_advance("killed_between_the_index_and_the_ref"));
                let dir = repo.root.join(".git");
                assert!(dir.join("index.lock").exists() && dir.join("piton-follow").exists());
                assert!(!repo.tries(&["commit", "-m", "theirs"]), "the index is held");
                let base = checks::base(&repo.root, None).unwrap();
                let (old, new) = (scene.old.as_str(), scene.new.as_str());
                match after {
                    "settle" => merge::finish_interrupted(&repo.root, &base, old, new).unwrap(),
                    "would_follow" => merge::would_follow(&base, old, new).unwrap(),
                    _ => {
                        merge::advance(&repo.root, &base, old, new, &repo.fence()).unwrap();
                    }
                }
                scene.nothing_is_left();
                if moves || after == "advance" {
                    assert_eq!(
                        (repo.head("main").as_str(), repo.status().as_str()),
                        (new, "M  dir/b.txt")
                    );
                } else {
                    assert_eq!((repo.head("main").as_str(), repo.status()), (old, before));
                    assert_eq!(repo.read("lane.txt"), "lane\n");
                    merge::advance(&repo.root, &base, old, new, &repo.fence()).unwrap();
                }
                repo.git(&["commit", "-q", "-m", "theirs"]);
                scene.both_are_there();
            });
        }
    }
}

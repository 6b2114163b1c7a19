//! Pages of transactions: interrupted, in progress, done.

use super::*;
use crate::git::git;
use crate::refs::{Transaction, value};

const NAME: &str = "refs/piton/r/epoch";
const BRANCH: &str = "refs/heads/b";

struct Scene {
    dir: tempfile::TempDir,
    repo: Repo,
    commit: String,
}

fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q", "-b", "main"]).unwrap();
    let tree = git(dir.path(), &["write-tree"]).unwrap();
    let who = ["-c", "user.name=n", "-c", "user.email=e"];
    let commit = git(dir.path(), &[&who[..], &["commit-tree", "-m", "m", &tree]].concat());
    let repo = Repo::find(dir.path()).unwrap();
    Scene { dir, repo, commit: commit.unwrap() }
}

impl Scene {
    fn lines(&self) -> String {
        format!("update {NAME} {0}\nupdate {BRANCH} {0}\n", self.commit)
    }

    /// Leaves a transaction as a kill of everybody does, with these locks.
    fn cut_short(&self, locks: &[(&str, &str)]) {
        let mut page = Page::new(&self.repo).unwrap();
        assert!(page.begin(&self.lines(), true).unwrap());
        page.leave();
        self.lock(locks);
    }

    fn lock(&self, locks: &[(&str, &str)]) {
        for (name, text) in locks {
            let path = self.repo.common.join(format!("{name}.lock"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn both(&self) -> Transaction {
        Transaction::default().set(NAME, &self.commit).set(BRANCH, &self.commit)
    }

    fn commit(&self) -> Result<(), crate::git::Error> {
        self.both().commit(self.dir.path(), "t")
    }
}

#[test]
fn locks_of_a_transaction_that_was_cut_short_go() {
    let scene = scene();
    let value_line = format!("{}\n", scene.commit);
    scene.cut_short(&[(NAME, ""), (BRANCH, &value_line), ("HEAD", "")]);
    scene.commit().unwrap();
    assert_eq!(value(scene.dir.path(), BRANCH), Some(scene.commit.clone()));
    let left = fs::read_dir(folder(&scene.repo)).unwrap().count();
    assert_eq!(left, 1, "only the file that holds a sweep off stays");
}

#[test]
fn a_lock_of_the_users_stays() {
    let scene = scene();
    scene.lock(&[(BRANCH, "")]);
    scene.commit().unwrap_err();
    scene.cut_short(&[(BRANCH, "somebody else's\n")]);
    scene.commit().unwrap_err();
    assert!(scene.repo.common.join(format!("{BRANCH}.lock")).exists());
    assert_eq!(value(scene.dir.path(), NAME), None);
}

/// Lost: after a power cut, which takes the note, a lane could never be begun again.
#[test]
fn a_lock_of_a_lane_goes_though_nothing_is_written_down_and_the_users_stay() {
    let scene = scene();
    let begin = |branch: &str| {
        let lane = Transaction::default().of_lane().set(branch, &scene.commit);
        lane.set(NAME, &scene.commit).commit(scene.dir.path(), "t")
    };
    let (lane, theirs) = ("refs/heads/lane/P/A", "refs/heads/lane/theirs");
    scene.lock(&[(lane, "\0\0")]);
    begin(lane).unwrap();
    // One that is not on record, though a lane should have it.
    git(scene.dir.path(), &["update-ref", theirs, &scene.commit]).unwrap();
    scene.lock(&[(NAME, ""), (BRANCH, ""), (theirs, ""), ("HEAD", "")]);
    begin(theirs).unwrap_err();
    clear(&scene.repo).unwrap();
    for (name, stays) in [(NAME, false), (BRANCH, true), (theirs, true), ("HEAD", true)] {
        assert_eq!(scene.repo.common.join(format!("{name}.lock")).exists(), stays, "{name}");
    }
}

#[test]
fn nothing_goes_while_a_transaction_is_under_way() {
    let scene = scene();
    let mut page = Page::new(&scene.repo).unwrap();
    assert!(page.begin(&scene.lines(), true).unwrap());
    scene.lock(&[(NAME, "")]);
    assert_eq!(sweep_until(&scene.repo, &scene.both(), Instant::now()).unwrap(), 0);
    // The git of a dead driver holds what it complains into.
    let git = page.complaints().unwrap();
    page.leave();
    drop(page);
    assert_eq!(sweep_until(&scene.repo, &scene.both(), Instant::now()).unwrap(), 0);
    drop(git);
    assert_eq!(sweep_until(&scene.repo, &scene.both(), Instant::now()).unwrap(), 1);
}

#[test]
fn pages_that_nobody_writes_on_go_with_the_next_driver() {
    let scene = scene();
    let mut waits = Page::new(&scene.repo).unwrap();
    assert!(waits.begin("update a b\n", false).unwrap());
    waits.end();
    assert_eq!(clear(&scene.repo).unwrap(), 0);
    assert_eq!(fs::read_dir(folder(&scene.repo)).unwrap().count(), 1);
    // Whoever had one sees that it is gone.
    assert!(!waits.begin("update a b\n", false).unwrap());
}

#[test]
fn what_a_page_says_is_done_is_not_taken_for_cut_short() {
    let scene = scene();
    let mut page = Page::new(&scene.repo).unwrap();
    let user = scene.repo.common.join(format!("{BRANCH}.lock"));
    assert!(page.begin(&scene.lines(), true).unwrap());
    page.end();
    scene.lock(&[(BRANCH, "")]);
    let leave = |mut page: Page| page.leave();
    leave(page);
    assert_eq!(clear(&scene.repo).unwrap(), 0);
    assert_eq!(sweep(&scene.repo, &Transaction::default()).unwrap(), 0);
    assert!(user.exists());
    // The next one on it was interrupted.
    let mut page = Page::new(&scene.repo).unwrap();
    assert!(page.begin("update refs/heads/done x\ncommit\nstart\n", true).unwrap());
    page.end();
    assert!(page.begin(&scene.lines(), true).unwrap());
    leave(page);
    scene.lock(&[(BRANCH, ""), (NAME, "")]);
    assert_eq!(clear(&scene.repo).unwrap(), 2);
    assert!(!user.exists());
}

#[test]
fn a_page_tells_complaints_from_what_was_done_and_begins_anew_when_it_is_long() {
    let scene = scene();
    let mut page = Page::new(&scene.repo).unwrap();
    let lines = format!("update a {}\n", "b".repeat(4096));
    let mut len = 0;
    for _ in 0..40 {
        assert!(page.begin(&lines, false).unwrap());
        assert_eq!(page.complaint(), "");
        page.end();
        len = page.file.metadata().unwrap().len();
        assert!(len <= PAGE_BYTES_MAX + 2 * 4200);
    }
    assert!(len < 40 * 4096, "it began anew");
    assert!(page.begin(&lines, false).unwrap());
    page.complaints().unwrap().write_all(b"fatal: no\n").unwrap();
    assert_eq!(page.complaint(), "fatal: no");
    assert_eq!(open("a\ndone\nb\n"), "b\n");
    assert_eq!((open("a\ndone\n"), open("a\nfatal: undone\n")), ("", "a\nfatal: undone\n"));
}
